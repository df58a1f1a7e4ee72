//! What may be logged of things that may hold a secret: which they are, and not what is in them.
//!
//! A secret is the value of any header, user and query of a URL, the arguments of a command, the value of an override. Bodies and the
//! environment are not logged at all.

use std::fmt::{self, Display, Formatter};

/// What stands where something was left out.
const GONE: &str = "***";
/// The most characters that are shown.
const MOST: usize = 200;

/// Shows what something is without what may be secret in it.
#[derive(Clone, Copy, Debug)]
pub enum Redacted<'a> {
    /// A URL: without user and password, query and fragment.
    Url(&'a str),
    /// A header by its name: without its value.
    Header(&'a str),
    /// A command: its program without its arguments.
    Command(&'a [String]),
    /// An override `KEY=VALUE` of the command line: its key.
    Override(&'a str),
}

impl Display for Redacted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(text) => url(text, f),
            Self::Header(name) => write!(f, "{}: {GONE}", clean(name)),
            Self::Command(words) => match words {
                [] => f.write_str("nothing"),
                [program] => f.write_str(&clean(program)),
                [program, ..] => write!(f, "{} {GONE}", clean(program)),
            },
            Self::Override(text) => match text.split_once('=') {
                Some((key, _)) => write!(f, "{}={GONE}", clean(key)),
                None => f.write_str(GONE),
            },
        }
    }
}

/// By hand, and not by a parser: what is no URL may hold a secret all the same.
fn url(text: &str, f: &mut Formatter<'_>) -> fmt::Result {
    let (text, more) = match text.find(['?', '#']) {
        Some(at) => (&text[..at], &text[at..=at]),
        None => (text, ""),
    };
    let (scheme, rest) = text.split_once("://").map_or((None, text), |(scheme, rest)| (Some(scheme), rest));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if let Some(scheme) = scheme {
        write!(f, "{}://", clean(scheme))?;
    }
    let (user, host) = authority.rsplit_once('@').map_or(("", authority), |(_, host)| (GONE, host));
    let at = if user.is_empty() { "" } else { "@" };
    write!(f, "{user}{at}{}{}", clean(host), clean(path))?;
    if more.is_empty() { Ok(()) } else { write!(f, "{more}{GONE}") }
}

/// On one line, and of bounded length.
fn clean(text: &str) -> String {
    text.chars().take(MOST).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_is_is_shown_and_what_may_be_secret_is_not() {
        let words = |text: &str| text.split(' ').filter(|word| !word.is_empty()).map(String::from).collect::<Vec<_>>();
        let command = words("curl -H secret");
        for (what, shown) in [
            (Redacted::Url("http://127.0.0.1:80/a/b"), "http://127.0.0.1:80/a/b"),
            (Redacted::Url("https://me:secret@h.example/hook?token=secret&x=y"), "https://***@h.example/hook?***"),
            (Redacted::Url("http://h.example?secret"), "http://h.example?***"),
            (Redacted::Url("http://h.example/#secret"), "http://h.example/#***"),
            (Redacted::Url("secret@h.example:1"), "***@h.example:1"),
            (Redacted::Url("http://a@secret:b@h/"), "http://***@h/"),
            (Redacted::Url("http://h/a@b"), "http://h/a@b"),
            (Redacted::Url("/hook?secret"), "/hook?***"),
            (Redacted::Url("http://h/\u{1b}[2J\n"), "http://h/\\u{1b}[2J\\n"),
            (Redacted::Url(""), ""),
            (Redacted::Header("Authorization"), "Authorization: ***"),
            (Redacted::Header("x\r\ny"), "x\\r\\ny: ***"),
            (Redacted::Command(&command), "curl ***"),
            (Redacted::Command(&command[..1]), "curl"),
            (Redacted::Command(&[]), "nothing"),
            (Redacted::Override("target.headers.authorization=secret"), "target.headers.authorization=***"),
            (Redacted::Override("secret"), "***"),
        ] {
            let text = what.to_string();
            assert!(text == shown && !text.contains("secret"), "{what:?}: {text}");
        }
        assert!(Redacted::Header(&"x".repeat(10_000)).to_string().len() < 300);
    }
}
