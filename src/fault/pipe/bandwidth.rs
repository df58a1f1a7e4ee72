//! So many bytes a second, on each connection or over all of them.

use super::{Direction, Piece, Taken, chain};
use crate::fault::Rule;
use crate::pace::Pacer;
use crate::record;
use crate::size::ByteRate;
use crate::time::{Rate, Span, Timestamp};

record! {
    /// So many bytes a second pass.
    pub struct Bandwidth {
        /// How many.
        rate: ByteRate,
        /// Which way.
        stream: Direction = Direction::Both,
        /// Whether all connections share the rate, in both directions together; each has it for itself where not.
        overall: bool = false,
    }
}

impl Bandwidth {
    /// What all connections share, where they share the rate.
    pub(crate) fn bucket(&self) -> Option<Pacer> {
        let rate = || Rate::per_second(self.rate.get() as f64).expect("a rate of bytes is above zero and finite");
        self.overall.then(|| Pacer::new(rate(), 1))
    }
}

/// What is due within this time goes at once, since no timer could tell: the next piece waits the longer.
const GRAIN: Span = Span::from_millis(1);
/// A piece takes so long to pass at most, so that bytes come evenly.
const SLICE: Span = Span::from_millis(10);

/// How long bytes take at a rate, rounded up.
fn takes(len: usize, rate: ByteRate) -> Span {
    Span((len as u64).saturating_mul(1_000_000_000).div_ceil(rate.get()))
}

#[derive(Debug)]
pub(super) struct Stage {
    rate: ByteRate,
    /// When the last piece has passed.
    free: Timestamp,
}

impl Stage {
    pub(super) const fn new(rate: ByteRate) -> Self {
        Self { rate, free: Timestamp::ZERO }
    }

    /// A piece goes on when its last byte has passed.
    pub(super) fn take(&mut self, piece: Piece) -> Taken {
        let most = (self.rate.get() / (1_000_000_000 / SLICE.0)).clamp(1, chain::MOST as u64) as usize;
        let len = piece.len.min(most);
        self.free = self.free.max(piece.at) + takes(len, self.rate);
        Taken::Pass(len, unless_soon(piece.at, self.free))
    }

    pub(super) fn undo(&mut self, len: usize) {
        self.free = self.free - takes(len, self.rate);
    }

    /// A hundredth of a second's worth: enough for it never to run dry between two timers.
    pub(super) fn room(&self) -> usize {
        usize::try_from(self.rate.get() / 100).unwrap_or(chain::MOST).clamp(chain::LEAST, chain::MOST)
    }
}

fn unless_soon(at: Timestamp, due: Timestamp) -> Timestamp {
    if due.since(at) <= GRAIN { at } else { due }
}

/// The piece that a connection has paid for and not yet let go.
#[derive(Debug, Default)]
pub(super) struct Overall {
    paid: usize,
    from: Timestamp,
}

/// What one connection takes from the common rate at a time, so that all get their turn.
const TURN: usize = 16 * 1024;

impl Overall {
    /// Turns are given in the order in which connections ask.
    pub(super) fn take(&mut self, piece: Piece, rule: &Rule) -> Taken {
        if self.paid > 0 {
            let len = piece.len.min(self.paid);
            self.paid -= len;
            return Taken::Pass(len, self.from.max(piece.at));
        }
        let Some(bucket) = rule.bucket() else { return Taken::Pass(piece.len, piece.at) };
        let len = piece.len.min(TURN);
        self.from = unless_soon(piece.at, bucket.reserve_many(len as u64, piece.at));
        Taken::Pass(len, self.from)
    }

    pub(super) fn undo(&mut self, len: usize) {
        self.paid += len;
    }
}
