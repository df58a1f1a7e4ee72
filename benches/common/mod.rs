//! What the benchmarks share: timing, medians, plans, output.
#![allow(dead_code, reason = "no benchmark needs all of it")]

use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicI32;
use std::time::Instant;
use stormwake::engine::Unobserved;
use stormwake::engine::sim::{Effort, Queues, Trace, run_on};
use stormwake::metrics::RunRecord;
use stormwake::plan::{Plan, Source, load};

/// Runs `work`; gives its result and how many seconds it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let began = Instant::now();
    let result = work();
    (result, began.elapsed().as_secs_f64())
}

/// The median; of an even number the higher of the two in the middle.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Prints a line; a reader that has gone is no error.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Runs a plan on queues `Q`; gives its record, what it took, and how many seconds.
pub fn simulate<Q: Queues>(plan: &Plan) -> (RunRecord, Effort, f64) {
    let ((record, effort, ()), seconds) = timed(|| simulated::<Q, ()>(plan, ()));
    (record, effort, seconds)
}

/// Runs a plan on queues `Q` with somebody who listens.
pub fn simulated<Q: Queues, T: Trace>(plan: &Plan, trace: T) -> (RunRecord, Effort, T) {
    run_on::<Q, T>(plan, &mut Unobserved, &AtomicI32::new(0), trace).expect("a plan with a service can be simulated")
}

/// The plan of a file, by its path in this repository.
pub fn plan(path: &str) -> Plan {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("the plan is there");
    load(&Source { file: path, text: &text, overrides: &[], env: &|_| None }).unwrap_or_else(|error| panic!("{error}")).plan
}
