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

/// How long something took, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    /// On the wall's clock.
    pub wall: f64,
    /// On a processor: what a machine with busy neighbours shows too. That of the clock where the system does not say.
    pub processor: f64,
}

/// Runs `work` on this thread; gives its result and how long it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Took) {
    let (began, used) = (Instant::now(), on_processor());
    let result = work();
    let wall = began.elapsed().as_secs_f64();
    let processor = on_processor().zip(used).map_or(wall, |(now, used)| now - used);
    (result, Took { wall, processor })
}

/// Seconds that this thread has spent on a processor.
fn on_processor() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse::<f64>().ok().map(|nanos| nanos / 1e9)
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

/// Runs a plan on queues `Q`; gives its record, what it did, and how long it took.
pub fn simulate<Q: Queues>(plan: &Plan) -> (RunRecord, Effort, Took) {
    let ((record, effort, ()), took) = timed(|| simulated::<Q, ()>(plan, ()));
    (record, effort, took)
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
