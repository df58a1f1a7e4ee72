//! Data stops, and the connection is closed after a while.

use super::{Direction, Piece, Taken};
use crate::time::{Span, Timestamp};
use crate::{keyword, record};

keyword! {
    /// From when a stalled connection's time is counted.
    pub enum Measure {
        /// From the last byte that came, and vanished: who goes on sending is never closed (Toxiproxy's `timeout`).
        silence => Silence,
        /// From when the fault met the connection, whatever comes.
        absolute => Absolute,
    }
}

record! {
    /// Data stops: what comes vanishes, and the connection is closed (FIN) after a while; when the fault ends, at the latest, if anything has
    /// vanished.
    pub struct Stall {
        /// After how long it is closed; never by itself where nothing is said.
        timeout: Span = Span::ZERO,
        /// From when that is counted.
        measure: Measure = Measure::Silence,
        /// Which way.
        stream: Direction = Direction::Both,
    }
}

impl Stall {
    pub(super) const fn of_silence(timeout: Span) -> Self {
        Self { timeout, measure: Measure::Silence, stream: Direction::Both }
    }

    pub(super) const fn forever() -> Self {
        Self::of_silence(Span::ZERO)
    }
}

#[derive(Debug)]
pub(super) struct Stage {
    stall: Stall,
    since: Timestamp,
    /// When something vanished last.
    last: Option<Timestamp>,
}

impl Stage {
    pub(super) const fn new(stall: Stall, since: Timestamp) -> Self {
        Self { stall, since, last: None }
    }

    pub(super) fn take(&mut self, piece: Piece) -> Taken {
        self.last = self.last.max(Some(piece.at));
        Taken::Vanish
    }

    pub(super) fn closes_at(&self) -> Option<Timestamp> {
        let Stall { timeout, measure, .. } = self.stall;
        let from = match measure {
            Measure::Silence => self.since.max(self.last.unwrap_or_default()),
            Measure::Absolute => self.since,
        };
        (!timeout.is_zero()).then(|| from + timeout)
    }

    pub(super) const fn swallowed(&self) -> bool {
        self.last.is_some()
    }
}
