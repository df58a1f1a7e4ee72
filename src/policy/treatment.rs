//! Different failures, different answers: what a policy does after one class of outcomes, where that differs from what it
//! does after the others.
//!
//! A 429 is not a 5xx, and a timeout is ambiguous where a rejection is not. So each class can have a backoff of its own,
//! a lane, a price in the budget, or no retry at all. What a treatment leaves out is the policy's.

use super::{Backoff, RetryAfter, RetryOn};
use crate::config::{Key, Node, Problems, Read, Shape, TimeScale, Value};
use crate::event::AttemptOutcome;
use crate::record;

/// The most that a retry can cost.
pub const MAX_COST: u16 = 10_000;

record! {
    /// What a policy does after outcomes of one class. What is left out is as for all others.
    pub struct Treatment {
        /// Whether outcomes of this class are retried.
        retry: bool = true,
        /// The wait before a retry.
        backoff: Option<Backoff>,
        /// What a server's hint is worth.
        retry_after: Option<RetryAfter>,
        /// What a retry costs the budget, in its tokens.
        cost: Option<u16>,
        /// The lane of its fleet's queue that a retry waits in.
        lane: Option<String>,
    } => |t: &Treatment| match t.cost {
        Some(cost) if cost > MAX_COST => Err(format!("`cost` is {cost}: {MAX_COST} at most")),
        _ => Ok(()),
    }
}

/// Treatments by class of outcome, the most specific first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Treatments(Vec<(RetryOn, Treatment)>);

impl Treatments {
    /// Of these; where two classes hold one outcome, a single status goes before its class.
    pub fn new(mut treatments: Vec<(RetryOn, Treatment)>) -> Self {
        treatments.sort_by_key(|(class, _)| matches!(class, RetryOn::StatusClass(_)));
        Self(treatments)
    }

    /// The treatment of an outcome, if it has one of its own.
    pub fn of(&self, outcome: AttemptOutcome) -> Option<&Treatment> {
        self.0.iter().find(|(class, _)| class.matches(outcome)).map(|(_, treatment)| treatment)
    }

    /// All of them, with their classes.
    pub fn iter(&self) -> impl Iterator<Item = (RetryOn, &Treatment)> {
        self.0.iter().map(|(class, treatment)| (*class, treatment))
    }
}

impl Read for Treatments {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            let message = format!("expected treatments by class, such as `429: {{ retry: false }}`, found {}", node.kind());
            problems.error(node.place, message);
            return None;
        };
        let read = entries.iter().map(|(key, node)| (class_of(key, problems), Treatment::read(node, problems)));
        let read: Vec<_> = read.collect();
        read.into_iter().map(|(class, treatment)| Some((class?, treatment?))).collect::<Option<Vec<_>>>().map(Self::new)
    }

    fn shape() -> Shape {
        Shape::Map(Box::new(Treatment::shape()))
    }

    fn rescale(&mut self, by: TimeScale) {
        self.0.iter_mut().for_each(|(_, treatment)| treatment.rescale(by));
    }
}

fn class_of(key: &Key, problems: &mut Problems) -> Option<RetryOn> {
    let node = Node { value: Value::Text(key.name.clone()), place: key.place };
    RetryOn::read(&node, problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_class_decides() {
        let of = |cost| Treatment { retry: true, backoff: None, retry_after: None, cost: Some(cost), lane: None };
        let all = Treatments::new(vec![
            (RetryOn::StatusClass(4), of(1)),
            (RetryOn::Status(429), of(2)),
            (RetryOn::Timeout, of(3)),
            (RetryOn::StatusClass(5), of(4)),
        ]);
        for (outcome, want) in [
            (AttemptOutcome::Status(429), Some(2)),
            (AttemptOutcome::Status(408), Some(1)),
            (AttemptOutcome::Status(503), Some(4)),
            (AttemptOutcome::Timeout, Some(3)),
            (AttemptOutcome::Reset, None),
            (AttemptOutcome::Success, None),
        ] {
            assert_eq!(all.of(outcome).and_then(|treatment| treatment.cost), want, "{outcome:?}");
        }
    }
}
