//! A penalty box: who violates a limit is banned for a while, and who goes on violates it again.

use crate::record;
use crate::time::{Span, Timestamp};

record! {
    /// A penalty box. While a ban lasts everything is refused, and whatever still comes extends it.
    pub struct PenaltyBox {
        /// By how much each violation extends the ban.
        ban: Span,
        /// The furthest that a ban reaches from now; no limit where nothing is said.
        cap: Option<Span>,
    } => |p: &PenaltyBox| {
        if p.ban.is_zero() {
            return Err("`ban` must be above zero: write such as `5s`, or leave `penalty_box` out".to_string());
        }
        match p.cap {
            Some(cap) if cap < p.ban => Err(format!("`cap` is shorter than the ban of {}: write that or more", p.ban)),
            _ => Ok(()),
        }
    }
}

/// The ban of one client, fleet, or of everybody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ban(Timestamp);

impl Ban {
    /// Whether it lasts at this moment.
    pub fn is_on(self, now: Timestamp) -> bool {
        now < self.0
    }

    /// A violation at this moment.
    pub fn extend(&mut self, now: Timestamp, by: &PenaltyBox) {
        let until = self.0.max(now) + by.ban;
        self.0 = by.cap.map_or(until, |cap| until.min(now + cap));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_violation_extends_a_ban_up_to_its_cap() {
        let bounded = PenaltyBox { ban: Span(10), cap: Some(Span(25)) };
        let unbounded = PenaltyBox { cap: None, ..bounded.clone() };
        // Violations at these moments; until when the ban lasts after each, with the cap and without.
        let table = [(0, 10, 10), (4, 20, 20), (5, 30, 30), (6, 31, 40), (7, 32, 50), (60, 70, 70)];
        let (mut capped, mut free) = (Ban::default(), Ban::default());
        assert!(!capped.is_on(Timestamp::ZERO));
        for (at, until_capped, until_free) in table {
            capped.extend(Timestamp(at), &bounded);
            free.extend(Timestamp(at), &unbounded);
            for (ban, until) in [(capped, until_capped), (free, until_free)] {
                assert!(ban.is_on(Timestamp(until - 1)) && !ban.is_on(Timestamp(until)), "at {at}, until {until}: {ban:?}");
            }
        }
    }
}
