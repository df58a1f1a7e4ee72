//! The destinations of fleets of workers, over the run and by window.

use super::build::{fine, ratio, sketch_ms, span_ms};
use crate::metrics::{DestinationCounts, RunRecord, Sketch, Window, median};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One destination over the whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DestinationResult {
    /// The fleet of workers.
    pub fleet: String,
    /// Its name.
    pub name: String,
    /// Operations offered.
    pub operations: u64,
    /// Attempts sent.
    pub attempts: u64,
    /// Of them, retries.
    pub retries: u64,
    /// Operations that succeeded within their deadline.
    pub succeeded: u64,
    /// Median operation latency from the intended start, of those that succeeded, in milliseconds.
    pub p50_ms: Option<f64>,
    /// Operations offered and not finished at the end of the last window.
    pub backlog: u64,
    /// Of those of all destinations of the fleet, 0 to 1; null where there are none.
    pub backlog_share: Option<f64>,
    /// The most of them at the end of a window.
    pub peak_backlog: u64,
}

/// One destination in one window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DestinationWindow {
    /// The fleet of workers.
    pub fleet: String,
    /// Its name.
    pub name: String,
    /// Operations, booked at their intended start.
    pub offered: u64,
    /// Attempts, booked when sent.
    pub attempts: u64,
    /// Operations that succeeded within their deadline, booked at completion.
    pub succeeded: u64,
    /// Median operation latency from the intended start, of those that succeeded, in milliseconds.
    pub p50_ms: Option<f64>,
    /// Operations offered and not finished at the end of the window.
    pub backlog: u64,
    /// Of those of all destinations of the fleet, 0 to 1; null where there are none.
    pub backlog_share: Option<f64>,
}

/// Every destination of the run, by fleet and in the order of the plan.
pub(super) fn over_the_run(record: &RunRecord) -> Vec<DestinationResult> {
    let all = record.destinations.iter().enumerate().flat_map(|(fleet, names)| {
        names.iter().enumerate().map(move |(number, name)| {
            let windows = || record.windows.iter().filter_map(move |window| window.fleets.get(fleet)?.destinations.get(number));
            let sum = |of: fn(&DestinationCounts) -> u64| windows().map(of).sum();
            let last = record.windows.last().map(|window| &window.fleets[fleet].destinations[..]).unwrap_or_default();
            DestinationResult {
                fleet: record.fleets[fleet].clone(),
                name: name.clone(),
                operations: sum(|counts| counts.offered),
                attempts: sum(|counts| counts.attempts),
                retries: sum(|counts| counts.retries),
                succeeded: sum(|counts| counts.succeeded),
                p50_ms: median(windows()).map(span_ms),
                backlog: last.get(number).map_or(0, |counts| counts.backlog),
                backlog_share: share(last, number),
                peak_backlog: windows().map(|counts| counts.backlog).max().unwrap_or(0),
            }
        })
    });
    all.collect()
}

/// Every destination in one window.
pub(super) fn in_window(record: &RunRecord, window: &Window) -> Vec<DestinationWindow> {
    let all = record.destinations.iter().zip(&window.fleets).zip(&record.fleets).flat_map(|((names, counts), fleet)| {
        let of = &counts.destinations[..];
        names.iter().zip(of).enumerate().map(move |(number, (name, counts))| DestinationWindow {
            fleet: fleet.clone(),
            name: name.clone(),
            offered: counts.offered,
            attempts: counts.attempts,
            succeeded: counts.succeeded,
            p50_ms: p50(&counts.latency),
            backlog: counts.backlog,
            backlog_share: share(of, number),
        })
    });
    all.collect()
}

fn p50(latency: &Sketch) -> Option<f64> {
    sketch_ms(latency, 500)
}

fn share(all: &[DestinationCounts], number: usize) -> Option<f64> {
    ratio(all.get(number)?.backlog, all.iter().map(|counts| counts.backlog).sum()).and_then(fine)
}
