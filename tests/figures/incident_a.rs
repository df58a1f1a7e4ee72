//! The 41-minute retry storm: every row of its table, from the shipped plans.

use std::sync::atomic::AtomicI32;
use stormwake::engine::sim::many::many;
use stormwake::event::AttemptOutcome;
use stormwake::metrics::{Counts, RunRecord, Window};
use stormwake::plan::{Source, load};

/// When the provider stops to answer, and when it comes back, in seconds.
const BEGINS: usize = 120;
const BACK: usize = 210;

/// What one run showed. Windows are of a second each.
struct Seen {
    seed: u64,
    windows: Vec<Window>,
    amplification: f64,
}

impl Seen {
    fn of(seed: u64, record: RunRecord) -> Self {
        let attempts: u64 = record.windows.iter().map(|window| window.all.attempts).sum();
        let operations: u64 = record.summaries.iter().map(|summary| summary.first_attempts).sum();
        Self { seed, windows: record.windows, amplification: attempts as f64 / operations as f64 }
    }

    fn sum(&self, from: usize, to: usize, of: fn(&Counts) -> u64) -> f64 {
        self.windows[from..to].iter().map(|window| of(&window.all)).sum::<u64>() as f64
    }

    /// Errors in a minute of the incident, from 1.
    fn errors(&self, minute: usize) -> f64 {
        self.sum(BEGINS + 60 * (minute - 1), BEGINS + 60 * minute, failed)
    }

    fn retry_share(&self, from: usize, to: usize) -> f64 {
        self.sum(from, to, |c| c.retries) / self.sum(from, to, |c| c.attempts)
    }

    /// Whether over nine tenths of the attempts of the last minute failed.
    fn is_stuck(&self) -> bool {
        let end = self.windows.len();
        assert!(end >= BEGINS + 20 * 60, "twenty minutes of it at least");
        self.sum(end - 60, end, failed) > 0.9 * self.sum(end - 60, end, |c| c.by_outcome.values().sum())
    }

    /// Seconds from one moment to the last error.
    fn until_last_error(&self, from: usize) -> usize {
        self.windows.iter().rposition(|window| failed(&window.all) > 0).map_or(0, |last| last + 1 - from)
    }
}

/// Attempts that failed as their client saw it; one that it gave up itself is none.
fn failed(counts: &Counts) -> u64 {
    let good = |outcome: &AttemptOutcome| matches!(outcome, AttemptOutcome::Success | AttemptOutcome::Cancelled);
    counts.by_outcome.iter().filter(|(outcome, _)| !good(outcome)).map(|(_, n)| n).sum()
}

/// Runs a shipped plan with so many seeds.
fn run(name: &str, length: &str, seeds: u64) -> Vec<Seen> {
    let path = format!("{}/plans/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("a shipped plan");
    let overrides = [format!("length={length}")];
    let source = Source { file: &path, text: &text, overrides: &overrides, env: &|_| None };
    let plan = load(&source).unwrap_or_else(|error| panic!("{error}")).plan;
    let seen =
        many(&plan, &(1..=seeds).collect::<Vec<_>>(), 2, &AtomicI32::new(0), &|seed, record| Seen::of(seed, record), &|_| ());
    seen.expect("a plan with a service can be simulated")
}

fn within(seen: &Seen, what: &str, value: f64, low: f64, high: f64) {
    assert!((low..=high).contains(&value), "seed {}: {what} is {value}, not {low} to {high}", seen.seed);
}

#[test]
fn a_fixed_wait_of_500_ms_stays_stuck_on_every_seed() {
    for seen in &run("incident-a", "22m", 12) {
        within(seen, "errors in the first minute", seen.errors(1), 190.0, 215.0);
        within(seen, "errors in the second minute", seen.errors(2), 9571.0 * 0.94, 9571.0 * 1.06);
        for minute in [3, 4] {
            within(seen, "errors in the third and fourth minute", seen.errors(minute), 23_415.0 * 0.985, 23_415.0 * 1.015);
        }
        within(seen, "retry share in the storm", seen.retry_share(300, 1320), 0.872, 0.878);
        assert!(seen.is_stuck(), "seed {}", seen.seed);
    }
}

#[test]
fn a_restart_with_full_jitter_ends_it_after_41_minutes() {
    for seen in &run("incident-a-restart", "45m", 12) {
        within(seen, "the error window in minutes", seen.until_last_error(BEGINS) as f64 / 60.0, 39.0, 43.0);
    }
}

#[test]
fn a_restart_with_the_old_policy_ends_nothing() {
    for seen in &run("incident-a-restart-old", "22m", 3) {
        assert!(seen.is_stuck(), "seed {}", seen.seed);
        let resumed = seen.sum(17 * 60 + 60, 18 * 60 + 60, |c| c.attempts);
        within(seen, "attempts in the minute after", resumed, 23_000.0, 23_800.0);
    }
}

#[test]
fn full_jitter_from_the_start_is_over_in_three_minutes() {
    for seen in &run("incident-a-after", "12m", 12) {
        within(seen, "recovery in seconds", seen.until_last_error(BACK) as f64, 1.0, 180.0);
        within(seen, "the error window in minutes", seen.until_last_error(BEGINS) as f64 / 60.0, 1.5, 5.0);
    }
}

/// A budget whose refused retries go back to the queue makes first attempts of them.
#[test]
fn a_budget_that_requeues_launders_retries() {
    for seen in &run("incident-a-laundered", "8m", 3) {
        let share = seen.retry_share(300, 480);
        within(seen, "the retry share, which reads healthy", share, 0.08, 0.11);
        let attempts = seen.sum(300, 480, |c| c.attempts) / 180.0;
        within(seen, "attempts a second, more than without the budget", attempts, 400.0, 3_000.0);
        let laundered = seen.amplification - 1.0 / (1.0 - share);
        assert!(laundered > 5.0, "seed {}: {laundered} laundered retries an operation", seen.seed);
    }
    for seen in &run("incident-a-parked", "8m", 3) {
        within(
            seen,
            "retries a second where the message waits for the budget",
            seen.sum(300, 480, |c| c.retries) / 180.0,
            0.5,
            5.0,
        );
        within(seen, "failed attempts after the outage", seen.sum(300, 480, failed), 0.0, 0.0);
    }
}
