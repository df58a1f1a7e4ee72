//! What is shown while many runs go on: on a terminal one line, rewritten as they end; elsewhere a plain line every few seconds.

use super::layout::{Style, columns};
use super::progress::Manner;
use crate::time::{Span, Timestamp};
use std::io::Write;

/// How long a plain line stands before the next.
const EVERY: Span = Span::from_secs(3);

/// Counts runs for people. A stream that takes no more is left alone.
pub struct Tally<W: Write> {
    out: W,
    manner: Manner,
    style: Style,
    /// Columns of the line that stands unfinished on the terminal.
    standing: usize,
    next: Timestamp,
    broken: bool,
}

impl<W: Write> Tally<W> {
    /// A tally that has shown nothing yet. A line is at most `style.width` columns on a terminal.
    pub fn new(out: W, manner: Manner, style: Style) -> Self {
        Self { out, manner, style, standing: 0, next: Timestamp::ZERO + EVERY, broken: false }
    }

    /// Tells how far it has come, such as `12/20 seeds, 11 recovered`; `now` is since the first began.
    pub fn tell(&mut self, now: Timestamp, text: &str) {
        match self.manner {
            Manner::Rewritten => {
                // A terminal that is written to in its last column may wrap.
                let line = self.style.fit(text, self.style.width.max(2) - 1);
                let width = columns(&line);
                let blank = " ".repeat(self.standing.saturating_sub(width));
                self.put(&format!("\r{line}{blank}"));
                self.standing = width;
            }
            Manner::Plain if now >= self.next => {
                let line = self.style.clean(text);
                self.put(&format!("{line}\n"));
                self.next = now + EVERY;
            }
            Manner::Plain => {}
        }
    }

    fn put(&mut self, text: &str) {
        if !self.broken {
            self.broken = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).is_err();
        }
    }
}

impl<W: Write> Drop for Tally<W> {
    /// Leaves a clean line for what comes next.
    fn drop(&mut self) {
        if self.standing > 0 {
            let blank = " ".repeat(self.standing);
            self.put(&format!("\r{blank}\r"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(manner: Manner, width: usize) -> String {
        let mut out = Vec::new();
        let mut tally = Tally::new(&mut out, manner, Style { width, ..Style::default() });
        for done in 1..=20u64 {
            tally.tell(Timestamp::ZERO + Span::from_millis(400 * done), &format!("{done}/20 seeds, {} recovered", done / 2));
        }
        drop(tally);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_terminal_has_one_line_and_keeps_none() {
        for width in [1, 2, 10, 80] {
            let text = told(Manner::Rewritten, width);
            assert!(!text.contains(['\n', '\u{1b}']), "{text:?}");
            assert!(text.ends_with(" \r"), "{text:?}");
            assert!(text.split('\r').all(|line| columns(line) < width.max(2)), "{text:?}");
        }
        assert!(told(Manner::Rewritten, 80).contains("\r12/20 seeds, 6 recovered"));
    }

    #[test]
    fn elsewhere_a_plain_line_every_few_seconds() {
        let text = told(Manner::Plain, 10);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines, ["8/20 seeds, 4 recovered", "16/20 seeds, 8 recovered"]);
    }
}
