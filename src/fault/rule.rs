//! A rule: one step of a timeline with what it remembers while it acts.

use super::limit_concurrency::Places;
use super::which::Counted;
use super::{Answer, Dice, Effect, Fault, Matchers, Request, Step, TimeShape, Toxic, Which};
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
    /// Only limits of what passes at once have them.
    places: Option<Places>,
    /// Only what strikes every n-th or the first few counts.
    counted: Option<Counted>,
    /// The bit of its matcher; none where it has no matcher.
    bit: Option<u64>,
    touched: AtomicU64,
}

impl Rule {
    /// A rule that has touched nothing yet. Rate limits start with a full bucket, and places are empty. One with a matcher strikes nothing
    /// before it is known to what looks at heads.
    pub fn new(number: usize, step: Step) -> Self {
        let bucket = match &step.fault {
            Some(Fault::RateLimit(limit)) => Some(limit.bucket()),
            Some(Fault::Bandwidth(bandwidth)) => bandwidth.bucket(),
            _ => None,
        };
        let places = match &step.fault {
            Some(Fault::LimitConcurrency(limit)) => Some(limit.places()),
            _ => None,
        };
        let counted = Counted::new(&step.which);
        let bit = step.which.r#match.as_ref().map(|_| 0);
        Self { number, step, toxic: None, bucket, places, counted, bit, touched: AtomicU64::new(0) }
    }

    /// The same, among rules with these matchers.
    #[must_use]
    pub fn known_to(mut self, matchers: &Matchers) -> Self {
        self.bit = self.step.which.r#match.as_ref().map(|of| matchers.bit(of));
        self
    }

    /// A toxic, which acts until it is taken out.
    pub fn of_toxic(number: usize, name: String, toxic: Toxic) -> Self {
        let (from, to) = (Timestamp::ZERO, Timestamp::NEVER);
        let (fleets, destinations, regions, place) = (None, None, None, Place::default());
        let (which, shape) = (Which::ALL, TimeShape::FULL);
        let step = Step { name, from, to, fault: None, on: 0, fleets, destinations, regions, which, shape, place };
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
        self.step.strikes(connection.origin) && !self.counts() && self.is_meant_for(Some(connection))
    }

    /// The bytes that it lets through over all connections.
    pub(super) fn bucket(&self) -> Option<&Pacer> {
        self.bucket.as_ref()
    }

    /// Requests that it left alone for want of room to count them.
    pub fn left_out(&self) -> u64 {
        self.counted.as_ref().map_or(0, |counted| counted.left_out.load(Ordering::Relaxed))
    }

    /// Whether it counts requests.
    pub(super) fn counts(&self) -> bool {
        self.counted.is_some()
    }

    /// Whether it strikes answers, and not requests.
    pub(super) fn is_of_answers(&self) -> bool {
        self.step.fault.as_ref().is_some_and(Fault::is_of_answers)
    }

    /// Whether it is meant for a request; for a connection without one, where it looks at nothing that only requests have.
    pub(super) fn is_meant_for(&self, request: Option<&Request>) -> bool {
        self.step.is_meant_for(request) && self.bit.is_none_or(|bit| request.is_some_and(|request| request.matched & bit != 0))
    }

    /// The dice that a request rolls against it at a moment.
    pub(super) fn dice(&self, request: &Request, seed: u64, now: Timestamp) -> Dice {
        request.dice(seed, self.number).at_level(self.step.level(now))
    }

    /// What it does to a request that it is meant for.
    pub(super) fn effect(&self, request: &Request, seed: u64, now: Timestamp) -> Effect {
        if self.toxic.is_some() {
            return Effect::Pass;
        }
        let Some(fault) = &self.step.fault else { return Effect::Witness };
        if self.counted.as_ref().is_some_and(|counted| !counted.takes(request)) {
            return Effect::Pass;
        }
        let token = || self.bucket.as_ref().is_none_or(|bucket| bucket.take(now));
        let place = || self.places.as_ref().map(|places| places.enter(request.ticket));
        fault.effect(self.dice(request, seed, now), token, place)
    }

    /// Whether the holder of a ticket has a place among those that pass at once.
    pub fn has_place(&self, ticket: u64) -> bool {
        self.places.as_ref().is_some_and(|places| places.is_inside(ticket))
    }

    /// Gives a place back, or the wait for one up. Gives the ticket of who has a place now and waited for it.
    pub fn leave(&self, ticket: u64) -> Option<u64> {
        self.places.as_ref()?.leave(ticket)
    }

    /// What a request gets that waited too long for a place.
    pub fn refusal(&self) -> Option<Answer> {
        match &self.step.fault {
            Some(Fault::LimitConcurrency(limit)) => Some(limit.refusal()),
            _ => None,
        }
    }
}
