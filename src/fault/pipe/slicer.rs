//! Bytes are cut into pieces, with a pause behind each.

use super::{Direction, Draws, Piece, Taken};
use crate::record;
use crate::size::Size;
use crate::time::{Span, Timestamp};

record! {
    /// Data is cut into pieces, with a pause behind each.
    pub struct Slicer {
        /// The size of a piece.
        size: Size,
        /// It varies by U(−variation, +variation); less than the size.
        variation: Size = Size(0),
        /// The pause.
        delay: Span = Span::ZERO,
        /// Which way.
        stream: Direction = Direction::Both,
    } => |s: &Slicer| match (s.size.0, s.variation.0) {
        (0, _) => Err("`size` must be at least `1B`".to_string()),
        (size, variation) if variation >= size => Err("`variation` must be less than `size`".to_string()),
        _ => Ok(()),
    }
}

impl Slicer {
    pub(super) const fn cut(&self) -> Cut {
        Cut { size: self.size.0, variation: self.variation.0, delay: self.delay }
    }
}

/// How it is cut: the bytes of a piece, by how many they vary, and the pause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cut {
    pub(super) size: u64,
    pub(super) variation: u64,
    pub(super) delay: Span,
}

#[derive(Debug)]
pub(super) struct Stage {
    cut: Cut,
    /// When the pause behind the last piece is over.
    free: Timestamp,
}

impl Stage {
    pub(super) const fn new(cut: Cut) -> Self {
        Self { cut, free: Timestamp::ZERO }
    }

    /// What is no longer than the shortest piece is never cut, and no die is rolled for it.
    pub(super) fn take(&mut self, piece: Piece, draws: &mut Draws) -> Taken {
        let Cut { size, variation, delay } = self.cut;
        let at = piece.at.max(self.free);
        let (len, shortest) = (piece.len as u64, size.saturating_sub(variation));
        let most = if len <= shortest || variation == 0 {
            size
        } else {
            // The width is a whole number of sizes, each as likely as the others.
            let width = variation.saturating_mul(2).saturating_add(1) as f64;
            shortest + (draws.next().unit() * width) as u64
        };
        self.free = at + delay;
        Taken::Pass(len.min(most.max(1)) as usize, at)
    }
}
