//! What somebody who watches a live run may ask of it while it goes on.
//!
//! Owns the bounded way from whoever asks to the coordinator, and what a note may be. How a command is carried out stands in
//! `coordinator/commanded.rs`.

use tokio::sync::mpsc;

/// How many commands may wait: a person types them.
const WAITING: usize = 64;
/// The most characters of a note.
pub const NOTE_LENGTH: usize = 500;
/// The most notes of a run.
pub const MOST_NOTES: usize = 1_000;

/// Something that is asked of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// End a fault now, and not when the plan would: a step of the plan's timeline by its index. The steps after it keep their times.
    EndFault(usize),
    /// Remove the faults and end the run, with a report.
    Stop,
    /// Keep a note with the run.
    Note(String),
}

/// Where commands come from.
#[derive(Clone, Debug)]
pub struct Commander(mpsc::Sender<Command>);

/// Where they go.
#[derive(Debug)]
pub struct Commands(mpsc::Receiver<Command>);

/// A way for commands into one run.
pub fn commands() -> (Commander, Commands) {
    let (from, to) = mpsc::channel(WAITING);
    (Commander(from), Commands(to))
}

impl Commander {
    /// Asks for something. Never waits. False where nobody takes it: the run is ending, or too much waits already.
    pub fn send(&self, command: Command) -> bool {
        self.0.try_send(command).is_ok()
    }
}

impl Commands {
    /// The next command; never, where nobody can send one. Cancel safe.
    pub async fn next(&mut self) -> Command {
        match self.0.recv().await {
            Some(command) => command,
            None => std::future::pending().await,
        }
    }
}

/// A note as it is kept: one line of at most [`NOTE_LENGTH`] characters, none of them for control. None of an empty one.
pub fn note(text: &str) -> Option<String> {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let plain = plain.trim();
    let mut kept: String = plain.chars().take(NOTE_LENGTH).collect();
    if kept.len() < plain.len() {
        kept.pop();
        kept.push('…');
    }
    (!kept.is_empty()).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_one_bounded_line() {
        assert_eq!(note(" pager fired\n"), Some("pager fired".into()));
        assert_eq!(note("a\u{1b}[2J\tb"), Some("a [2J b".into()));
        assert_eq!((note(""), note(" \r\n")), (None, None));
        let long = note(&"é".repeat(NOTE_LENGTH + 1)).unwrap();
        assert_eq!((long.chars().count(), long.ends_with('…')), (NOTE_LENGTH, true));
        assert_eq!(note(&"é".repeat(NOTE_LENGTH)).unwrap(), "é".repeat(NOTE_LENGTH));
    }

    #[test]
    fn commands_wait_in_bounds_and_none_is_taken_when_the_run_has_gone() {
        let (commander, mut commands) = commands();
        let taken = (0..WAITING + 5).filter(|_| commander.send(Command::Stop)).count();
        assert_eq!(taken, WAITING);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(commands.next()), Command::Stop);
        drop(commands);
        assert!(!commander.send(Command::Stop));
    }
}
