//! A spike into a queue: five seconds of three times the load, and then? It depends on what the clients do about failures.
//!
//! 93 operations a second, at random, on one server that does 100 (exponential), before it a queue of 1000, first in, first out; clients give an
//! attempt up after 4 s, and the server does its work all the same. From 60 to 65 s there are 300 a second, which fills the
//! queue; what has waited for longer than 4 s is of use to nobody. Each row is a plan, run by the simulator.

use std::sync::atomic::AtomicI32;
use stormwake::engine::sim::SimError;
use stormwake::engine::sim::many::many;
use stormwake::metrics::{Counts, RunRecord, Window};
use stormwake::plan::{Plan, PlanError, Source, load};

/// When the spike is over, in seconds.
const SPIKE_ENDS: usize = 65;
/// Operations a second, outside the spike.
const RATE: f64 = 93.0;

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// What the clients do.
    pub name: &'static str,
    /// The same, as what the plan adds to their policy.
    pub policy: &'static str,
    /// How long a run is, in seconds.
    pub length: u32,
    /// Whether every seed stays stuck, or none.
    pub stuck: bool,
    /// The mean recovery time in seconds, and by which share it may differ.
    pub recovery: Option<(f64, f64)>,
    /// The mean amplification over the last minute.
    pub amplification: Option<f64>,
}

/// The table.
pub const ROWS: [Row; 6] = [
    Row {
        name: "no retry",
        policy: "attempts: 1",
        length: 600,
        stuck: false,
        recovery: Some((89.0, 0.05)),
        amplification: Some(1.0),
    },
    Row {
        name: "3 retries, immediate",
        policy: "attempts: 4",
        length: 600,
        stuck: true,
        recovery: None,
        amplification: Some(4.0),
    },
    Row {
        name: "3 retries, full jitter",
        policy: "attempts: 4, backoff: { exponential: { base: 1s, cap: 30s, jitter: full } }",
        length: 600,
        stuck: true,
        recovery: None,
        amplification: Some(4.0),
    },
    Row {
        name: "10% bucket",
        policy: "attempts: 4, budget: { bucket: { deposit: 10%, burst: 5 }, tier: fleet }",
        length: 600,
        stuck: true,
        recovery: None,
        amplification: Some(1.1),
    },
    Row {
        name: "5% bucket",
        policy: "attempts: 4, budget: { bucket: { deposit: 5%, burst: 5 }, tier: fleet }",
        length: 1000,
        stuck: false,
        recovery: Some((250.0, 0.1)),
        amplification: None,
    },
    Row {
        name: "AWS standard 2.1",
        policy: "attempts: 3, backoff: { exponential: { base: 50ms, cap: 20s, jitter: full } }, budget: { quota: { capacity: 500, cost: 14 }, tier: fleet }",
        length: 600,
        stuck: false,
        recovery: Some((91.0, 0.05)),
        amplification: Some(1.0),
    },
];

/// What one seed showed.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Whether under half of the operations of the last minute succeeded.
    pub stuck: bool,
    /// Seconds from the end of the spike to the first second whose next five hold nine tenths of the successes that the load allows.
    pub recovery: Option<f64>,
    /// Attempts per operation in the last minute.
    pub amplification: f64,
}

impl Row {
    /// Its plan. So many clients that hardly one is met while its last attempt is still on the wire.
    ///
    /// # Errors
    /// None, as long as the text is a plan.
    pub fn plan(&self, clients: u32) -> Result<Plan, PlanError> {
        let text = format!(
            "version: 1\nname: spike\n\
             target: {{ service: {{ servers: 1, service_time: {{ exponential: {{ mean: 10ms }} }}, queue: 1000 }} }}\n\
             network: {{ latency: 0s, upstream: 0s, connect: 0s }}\n\
             policies: {{ app: {{ timeout: 4s, {} }} }}\n\
             fleets: {{ app: {{ clients: {clients}, policy: app, load: {{ spike: {{ rate: 93/s, peak: 300/s, at: 60s, for: 5s }} }} }} }}\n\
             gates: [{{ success: '>= 0%' }}]\nlength: {}s\n",
            self.policy, self.length
        );
        load(&Source { file: self.name, text: &text, overrides: &[], env: &|_| None }).map(|loaded| loaded.plan)
    }

    /// What each seed showed.
    ///
    /// # Errors
    /// What the simulator says of the plan.
    pub fn run(&self, plan: &Plan, seeds: &[u64]) -> Result<Vec<Seen>, SimError> {
        many(plan, seeds, 2, &AtomicI32::new(0), &|_, record| judge(&record), &|_| ())
    }
}

/// What a record shows. Its windows are of a second each.
fn judge(record: &RunRecord) -> Seen {
    let windows = &record.windows;
    let last = &windows[windows.len().saturating_sub(60)..];
    let operations = sum(last, |c| c.offered);
    let recovers = |from: &usize| sum(&windows[*from..from + 5], |c| c.succeeded) >= 0.9 * 5.0 * RATE;
    let recovery = (SPIKE_ENDS..windows.len().saturating_sub(4)).find(recovers);
    Seen {
        stuck: sum(last, |c| c.succeeded) / operations < 0.5,
        recovery: recovery.map(|second| (second - SPIKE_ENDS) as f64),
        amplification: sum(last, |c| c.attempts) / operations,
    }
}

fn sum(windows: &[Window], count: fn(&Counts) -> u64) -> f64 {
    windows.iter().map(|window| count(&window.all)).sum::<u64>() as f64
}

/// A mean, its standard error, and the median; NaN where there is nothing to take them of.
pub fn summary(values: &[f64]) -> (f64, f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (mean, (variance / n).sqrt(), sorted.get(values.len() / 2).copied().unwrap_or(f64::NAN))
}
