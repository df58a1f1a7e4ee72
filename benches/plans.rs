//! An hour in a second, and the whole folder of plans in a minute.
//!
//! `cargo bench --bench plans`
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod common;

use common::{median, plan, say, simulate};
use std::path::Path;
use stormwake::engine::sim::{Buckets, model};

const ROUNDS: usize = 5;

fn main() {
    hour();
    folder();
}

fn hour() {
    let plan = plan("benches/hour.yaml");
    let runs: Vec<_> = (0..ROUNDS).map(|_| simulate::<Buckets>(&plan)).collect();
    let (record, effort, _) = &runs[0];
    let attempts: u64 = record.windows.iter().map(|window| window.all.attempts).sum();
    let wall = median(runs.iter().map(|run| run.2.wall).collect());
    let processor = median(runs.iter().map(|run| run.2.processor).collect());
    say(&format!(
        "{} of {} clients and {:.0} attempts/s: {processor:.2} s on a processor, {wall:.2} s on the clock (medians of {ROUNDS}), {:.2} million \
         live events a second\n",
        plan.length,
        plan.fleets[0].config.clients,
        attempts as f64 / plan.length.as_secs_f64(),
        effort.live_events as f64 / processor / 1e6
    ));
}

fn folder() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans");
    let entries = std::fs::read_dir(folder).expect("the plans are there").flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name.ends_with(".yaml"));
    names.sort();
    let (mut wall, mut processor) = (0.0, 0.0);
    say(&format!("{:<28}{:>14}{:>12}{:>22}", "plan", "processor s", "clock s", "million live events"));
    for name in names {
        let plan = plan(&format!("plans/{name}"));
        if model(&plan).is_err() {
            say(&format!("{name:<28} skipped: a URL without a model"));
            continue;
        }
        let (_, effort, took) = simulate::<Buckets>(&plan);
        wall += took.wall;
        processor += took.processor;
        say(&format!("{name:<28}{:>14.2}{:>12.2}{:>22.2}", took.processor, took.wall, effort.live_events as f64 / 1e6));
    }
    say(&format!("{:<28}{processor:>14.2}{wall:>12.2}", "the whole folder, one seed"));
}
