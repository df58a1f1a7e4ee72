//! What the terminal is like: its width, whether it shows colours and Unicode.

use crate::report::layout::Style;
use crate::report::progress::{Manner, is_utf8_locale, terminal_width};
use std::io::IsTerminal;

/// A standard stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Where data goes.
    Out,
    /// Where talk goes.
    Err,
}

/// How text for a stream is laid out. Colours only on a terminal, and not where `NO_COLOR` is set.
pub fn style(stream: Stream) -> Style {
    let terminal = match stream {
        Stream::Out => std::io::stdout().is_terminal(),
        Stream::Err => std::io::stderr().is_terminal(),
    };
    let size = match stream {
        Stream::Out => rustix::termios::tcgetwinsize(std::io::stdout()),
        Stream::Err => rustix::termios::tcgetwinsize(std::io::stderr()),
    };
    let var = |name: &str| std::env::var(name).ok();
    let reported = size.ok().map(|size| usize::from(size.ws_col));
    let plain = var("NO_COLOR").is_some_and(|value| !value.is_empty()) || var("TERM").as_deref() == Some("dumb");
    let utf8 = is_utf8_locale(var("LC_ALL").as_deref(), var("LC_CTYPE").as_deref(), var("LANG").as_deref());
    Style { width: terminal_width(reported, var("COLUMNS").as_deref()), colour: terminal && !plain, ascii: terminal && !utf8 }
}

/// One line that is rewritten on a terminal, plain lines elsewhere.
pub fn manner() -> Manner {
    if std::io::stderr().is_terminal() { Manner::Rewritten } else { Manner::Plain }
}
