//! What the timeline makes a fleet do in mid-run, its names resolved. The fleet's machine carries it out at a wake-up of its
//! own, so that no engine is involved; every shard does its clients' part.

use crate::config::At;
use crate::policy::Policy;
use crate::policy::budget::{Budget, Tier};
use crate::time::{Span, Timestamp};
use crate::keyword;
use std::sync::Arc;

keyword! {
    /// What a pause holds up.
    pub enum PauseScope {
        /// Nothing new is taken in: it is refused, and counted so. What was taken in goes on, its retries too.
        ingress => Ingress,
        /// Nothing is sent any more, retries neither. What comes up or falls due meanwhile is held, as far as its bounds let it.
        all => All,
    }
}

/// Something that the timeline makes a fleet do.
#[derive(Clone, Debug, PartialEq)]
pub enum FleetAction {
    /// Every client or worker stops at once: what it has on the wire is given up and goes back, with all that it held, to the outbox or the queue
    /// for a new pass. The i-th of n begins again after i/n of `stagger`.
    Restart {
        /// The policy after it; the one before where there is none.
        policy: Option<Box<Policy>>,
        /// Over how long they come back.
        stagger: Span,
    },
    /// Another policy from here on; what waits already keeps its moment.
    SetPolicy {
        /// Which.
        policy: Box<Policy>,
    },
    /// Another lane for what is bound for a destination: new operations, and retries that fall due from here on. What is ready stays where it is.
    SetLane {
        /// The number of the destination in the fleet.
        destination: u16,
        /// Where to.
        to: LaneChange,
    },
    /// Holds the fleet up, or what is bound for one destination, until a resume.
    Pause {
        /// The number of the destination in the fleet; all of them where none is named.
        destination: Option<u16>,
        /// What is held up.
        scope: PauseScope,
    },
    /// Ends a pause of either scope.
    Resume {
        /// The number of the destination in the fleet; all of them where none is named.
        destination: Option<u16>,
    },
    /// Another rate of arrivals from here on; the draws stay.
    SetRate {
        /// The new rate / the rate that the plan gives the fleet.
        factor: f64,
    },
    /// So many clients or workers from here on: those beyond them offer, or take, nothing new.
    Scale {
        /// How many.
        to: u32,
    },
    /// Everything that waits to be sent, in outboxes, queues or backoff, is dropped. What is on the wire stays.
    DropBacklog {
        /// The number of the destination in the fleet; all of them where none is named.
        destination: Option<u16>,
    },
}

/// Where operations for a destination go from here on.
#[derive(Clone, Debug, PartialEq)]
pub enum LaneChange {
    /// To a lane of the fleet, by its name.
    Named(String),
    /// To a lane of their own, with so many attempts on the wire at once.
    Own {
        /// How many.
        concurrency: u32,
    },
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
            Self::SetRate { .. } => "set_rate",
            Self::Scale { .. } => "scale",
            Self::DropBacklog { .. } => "drop_backlog",
        }
    }

    /// The policy that it brings, if it brings one.
    pub fn policy(&self) -> Option<&Policy> {
        match self {
            Self::Restart { policy, .. } => policy.as_deref(),
            Self::SetPolicy { policy } => Some(policy),
            _ => None,
        }
    }

    /// The budget that the fleet's shards share after it, where the policy that it brings has one of that tier.
    pub fn shared_budget(&self) -> Option<Arc<Budget>> {
        let At { value: budget, .. } = self.policy()?.budget.as_ref()?;
        (budget.tier == Tier::Fleet).then(|| Arc::new(Budget::new(budget)))
    }
}
