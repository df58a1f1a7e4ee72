//! Segments are lost, and come again as TCP would send them again: late, and with all behind them.

use super::{Direction, Draws, Piece, Taken};
use crate::record;
use crate::time::{Share, Span, Timestamp};

record! {
    /// Segments of 1460 bytes are lost. TCP sends a lost one again after 200 ms, and after twice as long each time that it is lost again;
    /// all that follows waits for it.
    pub struct Loss {
        /// The share of segments that is lost, below 100%.
        share: Share,
        /// Which way.
        stream: Direction = Direction::Both,
    } => |l: &Loss| if l.share == Share::ALL {
        Err("`share` is 100%: nothing would ever arrive; use `blackhole` or `half_open` for that".to_string())
    } else {
        Ok(())
    }
}

/// The payload of an Ethernet frame behind the headers of IPv4 and TCP.
const SEGMENT: usize = 1460;
/// The least timeout after which a lost segment is sent again; Linux has the same, RFC 6298 a second.
const FIRST: Span = Span::from_millis(200);
/// The longest such timeout (Linux: 120 s).
const LONGEST: Span = Span::from_secs(120);
/// A segment is lost so often in a row at most (Linux gives up then).
const MOST: u32 = 15;

#[derive(Debug)]
pub(super) struct Stage {
    share: Share,
    /// When the last segment arrived: none overtakes it.
    last: Timestamp,
}

impl Stage {
    pub(super) const fn new(share: Share) -> Self {
        Self { share, last: Timestamp::ZERO }
    }

    /// Segments in a row that are not lost go together; one that is lost goes alone.
    pub(super) fn take(&mut self, piece: Piece, draws: &mut Draws) -> Taken {
        let mut whole = 0;
        loop {
            let before = draws.drawn;
            let late = self.late(draws);
            if !late.is_zero() && whole > 0 {
                // It is the next one's: the same dice are rolled for it again.
                draws.drawn = before;
                break;
            }
            whole = piece.len.min(whole + SEGMENT);
            self.last = self.last.max(piece.at + late);
            if !late.is_zero() || whole == piece.len {
                break;
            }
        }
        Taken::Pass(whole, self.last)
    }

    /// An end has no segment of its own, and overtakes none.
    pub(super) fn end(&mut self, at: Timestamp) -> Timestamp {
        self.last.max(at)
    }

    /// By how much the next segment is late.
    fn late(&self, draws: &mut Draws) -> Span {
        let mut dice = draws.next();
        let lost = (0..MOST).take_while(|_| dice.unit() < self.share.get());
        lost.map(|n| (FIRST * (1 << n)).min(LONGEST)).sum()
    }

    pub(super) fn undo(&mut self) {
        self.last = Timestamp::ZERO;
    }
}
