//! The connection is closed once so many bytes have passed.

use super::{Direction, Piece, Taken};
use crate::record;
use crate::size::Size;
use crate::time::Timestamp;

record! {
    /// A connection is closed (FIN) once so many bytes have passed on it since the fault began, in one direction.
    pub struct LimitData {
        /// How many.
        bytes: Size,
        /// Which way they are counted.
        stream: Direction = Direction::Both,
    }
}

#[derive(Debug)]
pub(super) struct Stage {
    left: usize,
    /// When the last of them passed.
    spent: Option<Timestamp>,
}

impl Stage {
    pub(super) fn new(bytes: u64) -> Self {
        Self { left: usize::try_from(bytes).unwrap_or(usize::MAX), spent: None }
    }

    /// A limit of nothing closes at the first byte, and lets none through.
    pub(super) fn take(&mut self, piece: Piece) -> Taken {
        if self.left == 0 {
            self.spent.get_or_insert(piece.at);
            return Taken::Vanish;
        }
        let len = piece.len.min(self.left);
        self.left -= len;
        if self.left == 0 {
            self.spent = Some(piece.at);
        }
        Taken::Pass(len, piece.at)
    }

    pub(super) fn undo(&mut self, len: usize) {
        self.left += len;
        self.spent = None;
    }

    pub(super) const fn closes_at(&self) -> Option<Timestamp> {
        self.spent
    }
}
