//! A rule: one step of a timeline with what it remembers while it acts.

use super::{Dice, Effect, Fault, Request, Step, Toxic};
use crate::config::Place;
use crate::pace::Pacer;
use crate::time::Timestamp;
use std::sync::atomic::{AtomicU64, Ordering};

/// A step that can act, and what it remembers: shared by all snapshots in which it acts, and by all threads.
#[derive(Debug)]
pub struct Rule {
    /// Tells it from others, and is mixed into its dice: the step's index in the plan.
    pub number: usize,
    /// What it does, and to whom.
    pub step: Step,
    /// A fault of bytes by Toxiproxy's terms, in the place of the step's own.
    pub toxic: Option<Toxic>,
    /// Only rate limits have one, and a bandwidth that all connections share: of bytes.
    bucket: Option<Pacer>,
    touched: AtomicU64,
}

impl Rule {
    /// A rule that has touched nothing yet. Rate limits start with a full bucket.
    pub fn new(number: usize, step: Step) -> Self {
        let bucket = match &step.fault {
            Some(Fault::RateLimit(limit)) => Some(limit.bucket()),
            Some(Fault::Bandwidth(bandwidth)) => bandwidth.bucket(),
            _ => None,
        };
        Self { number, step, toxic: None, bucket, touched: AtomicU64::new(0) }
    }

    /// A toxic, which acts until it is taken out.
    pub fn of_toxic(number: usize, name: String, toxic: Toxic) -> Self {
        let (from, to) = (Timestamp::ZERO, Timestamp::NEVER);
        let (fleets, destinations, regions, place) = (None, None, None, Place::default());
        let step = Step { name, from, to, fault: None, on: 0, fleets, destinations, regions, place };
        Self { toxic: Some(toxic), ..Self::new(number, step) }
    }

    /// Counts something that it touched.
    pub fn touch(&self) {
        self.touched.fetch_add(1, Ordering::Relaxed);
    }

    /// How many requests and connections it has touched.
    pub fn touched(&self) -> u64 {
        self.touched.load(Ordering::Relaxed)
    }

    /// Whether it may act on the bytes of a connection.
    pub(super) fn of_bytes(&self) -> bool {
        self.toxic.is_some()
            || self.step.fault.as_ref().is_some_and(|fault| fault.of_bytes() || matches!(fault, Fault::Latency(_)))
    }

    /// Whether it is meant for a connection.
    pub(super) fn meets(&self, connection: &Request) -> bool {
        self.step.strikes(connection.origin) && self.step.is_meant_for(Some(connection))
    }

    /// The bytes that it lets through over all connections.
    pub(super) fn bucket(&self) -> Option<&Pacer> {
        self.bucket.as_ref()
    }

    /// What it does to a request that rolls these dice.
    pub(super) fn effect(&self, dice: Dice, now: Timestamp) -> Effect {
        if self.toxic.is_some() {
            return Effect::Pass;
        }
        let token = || self.bucket.as_ref().is_none_or(|bucket| bucket.take(now));
        self.step.fault.as_ref().map_or(Effect::Witness, |fault| fault.effect(dice, token))
    }
}
