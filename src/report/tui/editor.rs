//! A line of text that is typed.

use crate::engine::live::run::commands::NOTE_LENGTH;

/// The line so far, and where the next character goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Editor {
    text: Vec<char>,
    at: usize,
}

impl Editor {
    /// Puts a character in; one too many, and one for control, is left out.
    pub(super) fn insert(&mut self, c: char) {
        if self.text.len() < NOTE_LENGTH && !c.is_control() {
            self.text.insert(self.at, c);
            self.at += 1;
        }
    }

    /// Takes the character before the cursor out.
    pub(super) fn backspace(&mut self) {
        if self.at > 0 {
            self.at -= 1;
            self.text.remove(self.at);
        }
    }

    /// Takes the character at the cursor out.
    pub(super) fn delete(&mut self) {
        if self.at < self.text.len() {
            self.text.remove(self.at);
        }
    }

    /// Moves the cursor by characters; a long way goes to an end.
    pub(super) fn go(&mut self, by: isize) {
        self.at = self.at.saturating_add_signed(by).min(self.text.len());
    }

    /// The line.
    pub(super) fn text(&self) -> String {
        self.text.iter().collect()
    }

    /// What stands before the cursor, and what from it on.
    pub(super) fn halves(&self) -> (String, String) {
        (self.text[..self.at].iter().collect(), self.text[self.at..].iter().collect())
    }
}
