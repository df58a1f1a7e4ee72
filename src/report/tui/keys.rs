//! What a key does: a state machine over what is shown, which asks before anything is done to the run.

use super::editor::Editor;
use super::view::View;
use crate::engine::live::run::commands::{Command, NOTE_LENGTH};

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// A letter with Ctrl.
    Ctrl(char),
    /// Enter.
    Enter,
    /// Escape.
    Esc,
    /// Backspace.
    Backspace,
    /// Delete.
    Delete,
    /// Up.
    Up,
    /// Down.
    Down,
    /// Left.
    Left,
    /// Right.
    Right,
    /// To the begin of the line.
    Home,
    /// To its end.
    End,
}

/// What is to be done for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Ask the run for something.
    Tell(Command),
    /// What Ctrl-C does without a view.
    Interrupt,
}

/// What the keys are about at the moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// The run is watched.
    #[default]
    Watching,
    /// Whether to end the fault of a row.
    EndFault(usize),
    /// Whether to stop the run.
    Stop,
    /// Whether to end the process at once, without a report.
    EndAtOnce,
    /// A note is written.
    Writing(Editor),
    /// What the keys do is shown.
    Help,
}

/// Where somebody sits who watches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Desk {
    pub(super) mode: Mode,
    /// The row of the fault that is selected.
    pub(super) selected: usize,
    /// Whether only the last minutes are shown.
    pub(super) near: bool,
    /// Why the last key did nothing.
    pub(super) said: Option<String>,
}

impl Desk {
    /// What a key does.
    pub fn press(&mut self, key: Key, view: &View) -> Option<Deed> {
        self.said = None;
        if key == Key::Ctrl('c') {
            return Some(Deed::Interrupt);
        }
        match std::mem::take(&mut self.mode) {
            Mode::Watching => self.watching(key, view),
            Mode::Help => None,
            Mode::Writing(editor) => self.writing(editor, key),
            Mode::EndFault(row) => {
                let step = view.faults().get(row).map(|fault| fault.step);
                self.asked(key, Mode::EndFault(row), step.map(|step| Deed::Tell(Command::EndFault(step))))
            }
            Mode::Stop => self.asked(key, Mode::Stop, Some(Deed::Tell(Command::Stop))),
            Mode::EndAtOnce => self.asked(key, Mode::EndAtOnce, Some(Deed::Interrupt)),
        }
    }

    /// What is pasted goes into a note that is written, and nowhere else: none of it is a key.
    pub fn paste(&mut self, text: &str) {
        if let Mode::Writing(editor) = &mut self.mode {
            text.chars().take(NOTE_LENGTH).for_each(|c| editor.insert(if c.is_control() { ' ' } else { c }));
        }
    }

    /// The run has not taken what was asked of it.
    pub fn not_taken(&mut self) {
        self.said = Some("the run is ending, and takes nothing more".into());
    }

    fn watching(&mut self, key: Key, view: &View) -> Option<Deed> {
        match key {
            Key::Up | Key::Char('k') => self.selected = self.selected.saturating_sub(1),
            Key::Down | Key::Char('j') => self.selected = (self.selected + 1).min(view.faults().len().saturating_sub(1)),
            Key::Char('e') => match view.endable(self.selected) {
                Ok(()) => self.mode = Mode::EndFault(self.selected),
                Err(why) => self.said = Some(why),
            },
            Key::Char('n') if view.stopping().is_some() => self.not_taken(),
            Key::Char('n') => self.mode = Mode::Writing(Editor::default()),
            Key::Char('q') if view.stopping().is_some() => self.mode = Mode::EndAtOnce,
            Key::Char('q') => self.mode = Mode::Stop,
            Key::Char('z') => self.near = !self.near,
            Key::Char('?' | 'h') => self.mode = Mode::Help,
            _ => {}
        }
        None
    }

    fn asked(&mut self, key: Key, question: Mode, yes: Option<Deed>) -> Option<Deed> {
        match key {
            Key::Char('y' | 'Y') => yes,
            Key::Char('n' | 'N' | 'q') | Key::Esc => None,
            _ => {
                self.mode = question;
                None
            }
        }
    }

    fn writing(&mut self, mut editor: Editor, key: Key) -> Option<Deed> {
        match key {
            Key::Enter if editor.text().trim().is_empty() => return None,
            Key::Enter => return Some(Deed::Tell(Command::Note(editor.text()))),
            Key::Esc => return None,
            Key::Char(c) => editor.insert(c),
            Key::Backspace => editor.backspace(),
            Key::Delete => editor.delete(),
            Key::Left => editor.go(-1),
            Key::Right => editor.go(1),
            Key::Home | Key::Ctrl('a') => editor.go(isize::MIN),
            Key::End | Key::Ctrl('e') => editor.go(isize::MAX),
            Key::Ctrl('u') => editor = Editor::default(),
            Key::Ctrl(_) | Key::Up | Key::Down => {}
        }
        self.mode = Mode::Writing(editor);
        None
    }
}
