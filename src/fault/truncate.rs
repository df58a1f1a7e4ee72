//! Answers are cut short.

use super::{Dice, Effect, Harm};
use crate::time::Share;
use crate::{keyword, record};

keyword! {
    /// How a connection ends behind an answer that was cut short.
    pub enum CutEnd {
        /// In order, as if that had been all.
        fin => Fin,
        /// With a reset.
        rst => Rst,
    }
}

record! {
    /// The upstream does its work, and the body of its answer is cut; then the connection ends. An answer whose body is no longer than
    /// what is kept of it passes as it is.
    pub struct Truncate {
        /// How much of the body passes, 50% where nothing is said; nothing of one whose length its head does not say.
        keep: Option<Share>,
        /// So many bytes of it pass; in the place of `keep`.
        bytes: Option<u64>,
        /// How the connection ends.
        end: CutEnd = CutEnd::Fin,
        /// The share of requests that it strikes.
        share: Share = Share::ALL,
    } => |cut: &Truncate| match (cut.keep, cut.bytes) {
        (Some(_), Some(_)) => Err("`bytes` and `keep` exclude each other: keep one".to_string()),
        (Some(Share::ALL), None) => Err("`keep` is 100%: the whole body would pass; such as `keep: 50%`".to_string()),
        _ => Ok(()),
    }
}

/// How much of an answer's body passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keep {
    /// A share of it.
    Share(Share),
    /// So many bytes.
    Bytes(u64),
}

impl Eq for Keep {}

impl Keep {
    /// In bytes, of a body of this length; of one whose length nobody knows a share is nothing.
    pub fn of(self, length: Option<u64>) -> u64 {
        match self {
            Self::Share(share) => length.map_or(0, |length| (length as f64 * share.get()) as u64),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl Truncate {
    pub(super) fn effect(&self, dice: Dice) -> Effect {
        if !dice.strikes(self.share) {
            return Effect::Pass;
        }
        let half = || Share::new(0.5).unwrap_or_default();
        let keep = self.bytes.map_or_else(|| Keep::Share(self.keep.unwrap_or_else(half)), Keep::Bytes);
        Effect::Harm(Harm::Cut { keep, end: self.end })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Request;
    use super::*;

    #[test]
    fn it_keeps_a_share_or_a_number_of_bytes() {
        let dice = Request::ours(0, 1, 1).dice(1, 0);
        let cut = |keep, bytes, share| Truncate { keep, bytes, end: CutEnd::Rst, share }.effect(dice);
        let harm = |keep| Effect::Harm(Harm::Cut { keep, end: CutEnd::Rst });
        let tenth = Share::new(0.1).unwrap();
        assert_eq!(cut(None, None, Share::ALL), harm(Keep::Share(Share::new(0.5).unwrap())));
        assert_eq!(cut(Some(tenth), None, Share::ALL), harm(Keep::Share(tenth)));
        assert_eq!(cut(None, Some(7), Share::ALL), harm(Keep::Bytes(7)));
        assert_eq!(cut(None, None, Share::default()), Effect::Pass);
    }

    #[test]
    fn a_share_is_of_the_length_that_is_known() {
        let half = Keep::Share(Share::new(0.5).unwrap());
        assert_eq!((half.of(Some(9)), half.of(Some(0)), half.of(None)), (4, 0, 0));
        assert_eq!((Keep::Bytes(7).of(Some(3)), Keep::Bytes(7).of(None)), (7, 7));
    }
}
