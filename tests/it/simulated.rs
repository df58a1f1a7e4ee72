//! Plans as text, simulated.

use std::sync::atomic::AtomicI32;
use stormwake::engine::sim::many::many;
use stormwake::metrics::RunRecord;
use stormwake::plan::{Plan, Source, load};

/// The plan of a text.
pub fn plan(text: &str) -> Plan {
    let source = Source { file: "plan.yaml", text, overrides: &[], env: &|_| None };
    load(&source).unwrap_or_else(|error| panic!("{error}")).plan
}

/// What is kept of the record of each of these seeds.
pub fn seeds<T: Send>(plan: &Plan, seeds: &[u64], each: impl Fn(RunRecord) -> T + Sync) -> Vec<T> {
    let signal = AtomicI32::new(0);
    many(plan, seeds, 2, &signal, &|_, record| each(record), &|_| ()).unwrap_or_else(|error| panic!("{error}"))
}
