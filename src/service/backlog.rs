//! The rule by which a service refuses everything that waits at once.

use super::refusal::Refusing;
use crate::record;
use crate::time::{Span, Timestamp};

record! {
    /// When everything that waits is refused at once: as soon as either is met.
    pub struct BacklogRule {
        /// The one that waits longest has waited for so long.
        older_than: Option<Span>,
        /// More than so many wait.
        deeper_than: Option<u32>;
        with
        /// What everybody is told. With `retry_after: backlog` the k-th in the queue is told k / capacity, so that the return is paced.
        refusing: Refusing,
    } => BacklogRule::check
}

impl BacklogRule {
    /// Whether it is met while so many wait, the oldest of them for so long.
    pub fn is_met(&self, waiting: usize, oldest: Option<Span>) -> bool {
        let is_old = self.older_than.zip(oldest).is_some_and(|(limit, age)| age >= limit);
        let is_deep = self.deeper_than.is_some_and(|limit| waiting > limit as usize);
        waiting > 0 && (is_old || is_deep)
    }

    /// When it is met by age alone, where the oldest has waited since then.
    pub fn due(&self, oldest: Timestamp) -> Option<Timestamp> {
        self.older_than.map(|limit| oldest + limit)
    }

    fn check(&self) -> Result<(), String> {
        if self.older_than.is_none() && self.deeper_than.is_none() {
            return Err(
                "a rule is missing: give `older_than`, such as `60s`, or `deeper_than`, such as `5000`, or both".to_string()
            );
        }
        if self.older_than.is_some_and(Span::is_zero) {
            return Err("`older_than` must be above zero: such as `60s`".to_string());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(older_than: Option<u64>, deeper_than: Option<u32>) -> BacklogRule {
        BacklogRule { older_than: older_than.map(Span::from_secs), deeper_than, refusing: Refusing::plain() }
    }

    #[test]
    fn either_rule_is_enough_and_nobody_is_no_backlog() {
        for (older, deeper, waiting, oldest, wanted) in [
            (Some(60), None, 1, Some(60), true),
            (Some(60), None, 9000, Some(59), false),
            (None, Some(10), 10, Some(900), false),
            (None, Some(10), 11, Some(0), true),
            (Some(60), Some(10), 11, Some(1), true),
            (Some(60), Some(10), 2, Some(61), true),
            (Some(60), Some(0), 0, None, false),
        ] {
            let met = rule(older, deeper).is_met(waiting, oldest.map(Span::from_secs));
            assert_eq!(met, wanted, "{older:?} {deeper:?}: {waiting} wait, {oldest:?} s");
        }
    }

    #[test]
    fn age_is_met_at_the_moment_that_is_due() {
        let since = Timestamp::ZERO + Span::from_secs(5);
        let due = rule(Some(60), Some(1)).due(since).unwrap();
        assert!(rule(Some(60), None).is_met(1, Some(due.since(since))));
        assert_eq!((due, rule(None, Some(1)).due(since)), (Timestamp::ZERO + Span::from_secs(65), None));
    }
}
