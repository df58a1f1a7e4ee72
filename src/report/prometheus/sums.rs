//! What one fleet did in one phase, added up window by window.

use super::{MOST_OUTCOMES, OTHER};
use crate::exposition::{Buckets, Value};
use crate::metrics::{Counts, Sketch};
use crate::report::result::outcome_name;
use std::collections::BTreeMap;

type Counter = (&'static str, &'static str, fn(&Counts) -> u64);

/// The counters: name without `stormwake_`, help, and what of a window.
pub const COUNTERS: [Counter; 9] = [
    ("operations_offered_total", "Operations offered, at their intended start.", |c| c.offered),
    ("attempts_total", "Attempts sent.", |c| c.attempts),
    ("retries_total", "Of them, retries.", |c| c.retries),
    ("first_attempts_total", "Of them, the first of their operation.", |c| c.first_attempts),
    ("retries_refused_total", "Retries that the budget refused.", |c| c.budget_refused),
    ("attempts_throttled_total", "Tries that a breaker or a throttle of the client refused.", |c| c.throttled),
    ("requests_arrived_total", "Requests that reached the proxy.", |c| c.arrived),
    ("connects_total", "Connections that clients made to the proxy.", |c| c.connects),
    ("late_starts_total", "Operations that started late, whatever the cause.", |c| c.late_starts),
];

type Ending = (&'static str, fn(&Counts) -> u64);

/// How operations end, and what of a window.
pub const OPERATIONS: [Ending; 7] = [
    ("succeeded", |c| c.succeeded),
    ("failed", |c| c.failed),
    ("refused", |c| c.refused),
    ("dropped", |c| c.dropped),
    ("superseded", |c| c.superseded),
    ("dead_lettered", |c| c.dead_lettered),
    ("unresolved", |c| c.unresolved),
];

/// The buckets of latencies, in seconds: a 1-2.5-5 series from a request on loopback to an operation that outlives an outage.
const BOUNDS: [f64; 16] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

/// Sums.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    /// As [`COUNTERS`] has them.
    pub counters: [u64; COUNTERS.len()],
    /// As [`OPERATIONS`] has them.
    pub operations: [u64; OPERATIONS.len()],
    /// Attempts that ended, by how.
    pub outcomes: BTreeMap<String, u64>,
    /// Latency of operations.
    pub latency: Latency,
    /// Latency of attempts.
    pub attempt_latency: Latency,
}

/// Latencies by size.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    counts: [u64; BOUNDS.len() + 1],
    micros: u128,
}

impl Sums {
    /// Adds a window.
    pub fn add(&mut self, counts: &Counts) {
        self.counters.iter_mut().zip(&COUNTERS).for_each(|(sum, (_, _, of))| *sum += of(counts));
        self.operations.iter_mut().zip(&OPERATIONS).for_each(|(sum, (_, of))| *sum += of(counts));
        for (outcome, n) in &counts.by_outcome {
            let word = outcome_name(*outcome);
            let room = self.outcomes.len() < MOST_OUTCOMES || self.outcomes.contains_key(&word);
            *self.outcomes.entry(if room { word } else { OTHER.into() }).or_default() += n;
        }
        self.latency.add(&counts.latency);
        self.attempt_latency.add(&counts.attempt_latency);
    }
}

impl Latency {
    fn add(&mut self, sketch: &Sketch) {
        for (value, n) in sketch.values() {
            let bucket = BOUNDS.partition_point(|bound| *bound < value.as_secs_f64());
            self.counts[bucket] += n;
            self.micros += u128::from(value.as_micros()) * u128::from(n);
        }
    }

    /// As a sample has it.
    pub fn value(&self) -> Value {
        Value::Buckets(Buckets { bounds: &BOUNDS, counts: self.counts.to_vec(), sum: self.micros as f64 / 1e6 })
    }
}
