//! What the timeline does to a fleet in mid-run, beside faults. Plain data, with every name resolved; the fleet's machine carries it
//! out itself, by a wake-up at its moment, so that both engines do the same.

use crate::policy::Policy;
use crate::time::{Rate, Span};
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
    /// A destination's token bucket gets another rate.
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
    /// What waits is thrown away: it fails.
    DropBacklog {
        /// The destination's number in its fleet; none for every one of them.
        destination: Option<u16>,
    },
}

/// What a pause stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseScope {
    /// New deliveries are refused at ingress; what is there already, scheduled retries above all, goes on.
    Ingress,
    /// Nothing is dispatched any more, scheduled work included. New deliveries are taken in and wait.
    All,
}
