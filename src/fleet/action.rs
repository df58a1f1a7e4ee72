//! What the timeline does to a fleet in mid-run, beside faults. Plain data, with every name resolved; the fleet's machine carries it
//! out itself, by a wake-up at its moment, so that both engines do the same.

use super::interface::SharedAfter;
use crate::keyword;
use crate::policy::Policy;
use crate::policy::budget::{Budget, Tier};
use crate::policy::guards::SharedGuards;
use crate::time::{Rate, Span, Timestamp};
use std::sync::Arc;

/// Something that is done to a fleet.
#[derive(Clone, Debug, PartialEq)]
pub enum FleetAction {
    /// Everybody stops at once: attempts on the wire are given up, what is held goes back to the queue (of devices: stays
    /// in the outbox). The i-th of N starts again `stagger` · i/N later.
    Restart {
        /// How they retry from then on; as before where nothing is said.
        policy: Option<Arc<Policy>>,
        /// Over how long they start again.
        stagger: Span,
    },
    /// Retries follow another policy from now on; waits that have begun stay.
    SetPolicy {
        /// Which.
        policy: Arc<Policy>,
    },
    /// A destination's deliveries go to another lane from now on: new ones, and every retry that falls due. What stands ready
    /// stays where it is.
    SetLane {
        /// The destination's number in its fleet; none for every one of them.
        destination: Option<u16>,
        /// A lane of its own with so many workers at most; none for the lane that all share.
        concurrency: Option<u32>,
    },
    /// A destination is paused, until [`FleetAction::Resume`].
    Pause {
        /// The destination's number in its fleet; none for every one of them.
        destination: Option<u16>,
        /// What stops.
        scope: PauseScope,
    },
    /// A pause ends.
    Resume {
        /// The destination's number in its fleet; none for every one of them.
        destination: Option<u16>,
    },
    /// Operations come at another rate from now on; the draws stay.
    SetArrivals {
        /// The new rate / the one that the plan gives the fleet.
        factor: f64,
    },
    /// A destination's token bucket gets another rate. Of workers only.
    SetRate {
        /// The destination's number in its fleet; none for every one of them.
        destination: Option<u16>,
        /// Dispatches a second; none for no limit.
        rate: Option<Rate>,
        /// How many may go at once.
        burst: u32,
    },
    /// There are so many workers, or clients, from now on. Those too many go when they are free.
    Scale {
        /// How many.
        to: u32,
    },
    /// What waits to be sent, in outbox, queue or backoff, is thrown away: dropped, in the books. What is on the wire stays.
    DropBacklog {
        /// The destination's number in its fleet; none for every one of them.
        destination: Option<u16>,
    },
}

keyword! {
    /// What a pause stops.
    pub enum PauseScope {
        /// New operations are refused at ingress; what is there already, scheduled retries above all, goes on.
        ingress => Ingress,
        /// Nothing is dispatched any more, scheduled work included. New operations are taken in and wait.
        all => All,
    }
}

/// An action and its moment. A machine's actions are in the order of their moments, and are called by their place in it.
pub type TimedAction = (Timestamp, FleetAction);

impl FleetAction {
    /// Its kind, as a plan names it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Restart { .. } => "restart",
            Self::SetPolicy { .. } => "set_policy",
            Self::SetLane { .. } => "set_lane",
            Self::Pause { .. } => "pause",
            Self::Resume { .. } => "resume",
            Self::SetArrivals { .. } => "set_rate",
            Self::SetRate { .. } => "set_limit",
            Self::Scale { .. } => "scale",
            Self::DropBacklog { .. } => "drop_backlog",
        }
    }

    /// The policy that it brings, if it brings one.
    pub fn policy(&self) -> Option<&Arc<Policy>> {
        match self {
            Self::Restart { policy, .. } => policy.as_ref(),
            Self::SetPolicy { policy } => Some(policy),
            _ => None,
        }
    }

    /// What the fleet's shards share after it, where it brings a policy.
    pub fn shared(&self) -> Option<SharedAfter> {
        let policy = self.policy()?;
        let budget = policy.budget.as_ref().filter(|budget| budget.value.tier == Tier::Fleet);
        let budget = budget.map(|budget| Arc::new(Budget::new(&budget.value)));
        Some(SharedAfter { budget, guards: SharedGuards::new(policy) })
    }
}
