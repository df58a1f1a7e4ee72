//! Where operations go: when they come, which lane they take, whether they are paused, and how fast they may be dispatched.

use super::config::{DispatchRate, QueueConfig};
use super::ready::{Ready, SHARED};
use super::rules::Rules;
use crate::fleet::action::PauseScope;
use crate::load::Load;
use crate::pace::Pacer;
use crate::time::Timestamp;

/// A destination.
#[derive(Debug)]
pub(super) struct Destination {
    load: Option<Load>,
    /// How many stand in the queue when the run begins.
    pub(super) backlog: u32,
    /// The number of the next operation that is named.
    number: u64,
    /// How many operations its own stream has brought.
    brought: u64,
    /// When that brings the next one; [`Timestamp::NEVER`] where it does not.
    pub(super) next: Timestamp,
    /// When the wake-up that was asked for it comes; [`Timestamp::NEVER`] where none was.
    pub(super) armed: Timestamp,
    /// The lane that its operations take.
    pub(super) lane: u16,
    /// Whether it is paused, and what of it.
    pub(super) paused: Option<PauseScope>,
    bucket: Option<Pacer>,
}

/// The destinations of a queue, with their lanes.
pub(super) fn destinations(queue: &QueueConfig, ready: &mut Ready) -> Vec<Destination> {
    let streams = queue.streams().into_iter().map(|(_, config)| {
        let concurrency = config.concurrency.or(queue.concurrency_each);
        Destination {
            load: config.arrivals,
            backlog: config.backlog,
            number: 0,
            brought: 0,
            next: Timestamp::NEVER,
            armed: Timestamp::NEVER,
            lane: concurrency.map_or(SHARED, |concurrency| ready.add_lane(concurrency)),
            paused: None,
            bucket: config.rate.as_ref().or(queue.rate.as_ref()).map(bucket),
        }
    });
    streams.collect()
}

/// The lanes that a policy may name.
#[derive(Debug)]
pub(super) struct NamedLanes(Vec<NamedLane>);

#[derive(Debug)]
struct NamedLane {
    name: String,
    /// The lane; of the first destination, where each has one.
    first: u16,
    per_destination: bool,
}

impl NamedLanes {
    /// Those of a queue with so many destinations.
    pub(super) fn new(queue: &QueueConfig, destinations: usize, ready: &mut Ready) -> Self {
        let named = queue.lanes.0.iter().map(|entry| {
            let count = if entry.value.per_destination { destinations.max(1) } else { 1 };
            let lanes: Vec<u16> = (0..count).map(|_| ready.add_lane(entry.value.concurrency)).collect();
            NamedLane { name: entry.name.clone(), first: lanes[0], per_destination: entry.value.per_destination }
        });
        Self(named.collect())
    }

    /// The number of a lane, for a destination.
    pub(super) fn number(&self, name: &str, destination: u16) -> Option<u16> {
        let lane = self.0.iter().find(|lane| lane.name == name)?;
        Some(if lane.per_destination { lane.first + destination } else { lane.first })
    }
}

fn bucket(rate: &DispatchRate) -> Pacer {
    Pacer::new(rate.rate, rate.burst)
}

impl Destination {
    /// Names the next operation.
    pub(super) const fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number - 1
    }

    /// Goes on to the next operation that its stream brings.
    pub(super) fn advance(&mut self, rules: &Rules, destination: u16) {
        let previous = if self.brought == 0 { Timestamp::ZERO } else { self.next };
        self.next =
            self.load.as_ref().map_or(Timestamp::NEVER, |load| rules.next_start(load, destination, self.brought, previous));
        self.brought += 1;
    }

    /// Whether something may be dispatched to it now.
    pub(super) fn is_open(&self, now: Timestamp) -> bool {
        self.paused != Some(PauseScope::All) && self.token_at(now) <= now
    }

    /// When its bucket has a token.
    pub(super) fn token_at(&self, now: Timestamp) -> Timestamp {
        self.bucket.as_ref().map_or(now, |bucket| bucket.when(now))
    }

    /// Something is dispatched to it.
    pub(super) fn spend(&self, now: Timestamp) {
        if let Some(bucket) = &self.bucket {
            bucket.take(now);
        }
    }

    /// Gives it a lane of its own, or takes it away.
    pub(super) fn set_lane(&mut self, concurrency: Option<u32>, ready: &mut Ready) {
        self.lane = match concurrency {
            None => SHARED,
            Some(concurrency) => ready.add_lane(concurrency),
        };
    }

    /// Gives its bucket another rate.
    pub(super) fn set_rate(&mut self, rate: Option<DispatchRate>) {
        self.bucket = rate.as_ref().map(bucket);
    }
}
