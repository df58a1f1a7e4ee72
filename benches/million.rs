//! The whole engine on a million clients: retry loop, service, histograms and all, for ten virtual minutes; and the same engine on the
//! standard library's heap.
//!
//! `cargo bench --bench million [-- ROUNDS]`. Each run is a process of its own, so that its peak of memory is its own.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod common;

use common::{median, plan, say, simulated, timed};
use std::process::Command;
use stormwake::engine::sim::{Buckets, EventHash, Heaps, Queues, Trace};
use stormwake::metrics::RunRecord;
use stormwake::plan::Plan;
use stormwake::time::Span;

const PLAN: &str = "plans/bench-million.yaml";
/// The stretch on which both queues are compared: the first minute of the outage in it.
const STRETCH: u64 = 120;
const ROUNDS: usize = 3;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.first().map(String::as_str) {
        Some("child") => child(&args[1..]),
        rounds => compare(rounds.and_then(|text| text.parse().ok()).unwrap_or(ROUNDS)),
    }
}

/// What a child says of its run.
struct Said {
    live: f64,
    stale: f64,
    wall: f64,
    processor: f64,
    peak_kib: f64,
    hash: String,
}

fn compare(rounds: usize) {
    let plan = plan(PLAN);
    let (clients, length) = (f64::from(plan.fleets[0].config.clients), plan.length);
    say(&format!("{PLAN}: {clients} clients; medians of {rounds} rounds, each run in a process of its own\n"));
    let whole: Vec<Said> = (0..rounds).map(|_| run("buckets", length, "quiet")).collect();
    let of = |figure: fn(&Said) -> f64| median(whole.iter().map(figure).collect());
    say(&format!(
        "{length} of virtual time in {:.1} s on a processor, {:.1} s on the clock",
        of(|s| s.processor),
        of(|s| s.wall)
    ));
    say(&format!("{:.0} million live events, {:.0} million stale ones", of(|s| s.live) / 1e6, of(|s| s.stale) / 1e6));
    say(&format!("{:.2} million live events a second", of(|s| s.live / s.processor) / 1e6));
    say(&format!(
        "{:.0} MB at the peak, {:.0} bytes a client\n",
        of(|s| s.peak_kib) / 976.6,
        of(|s| s.peak_kib) * 1024.0 / clients
    ));
    side_by_side(rounds);
}

/// Buckets and heaps in turns, on the first stretch.
fn side_by_side(rounds: usize) {
    let stretch = Span::from_secs(STRETCH);
    let pair = |trace| (run("heaps", stretch, trace), run("buckets", stretch, trace));
    let pairs: Vec<_> = (0..rounds).map(|_| pair("quiet")).collect();
    let ratio = median(pairs.iter().map(|(heaps, buckets)| heaps.processor / buckets.processor).collect());
    let rate = |said: &Said| said.live / said.processor / 1e6;
    let heaps = median(pairs.iter().map(|(heaps, _)| rate(heaps)).collect());
    let buckets = median(pairs.iter().map(|(_, buckets)| rate(buckets)).collect());
    say(&format!(
        "the first {stretch}: {buckets:.2} million live events a second on buckets, {heaps:.2} on heaps: {ratio:.2} times"
    ));
    let (heaps, buckets) = pair("hashed");
    assert_eq!(heaps.hash, buckets.hash, "both queues give one run, event by event");
    say(&format!("both give one run, event by event: hash {}", buckets.hash));
}

/// Runs a child; gives what it says.
fn run(queues: &str, length: Span, trace: &str) -> Said {
    let program = std::env::current_exe().expect("this program has a path");
    let length = length.as_millis().to_string();
    let output = Command::new(program).args(["child", queues, &length, trace]).output().expect("a child of this program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let words: Vec<&str> = text.split_whitespace().collect();
    let number = |at: usize| words[at].parse().expect("a child prints numbers");
    match words.len() {
        6 => Said {
            live: number(0),
            stale: number(1),
            wall: number(2),
            processor: number(3),
            peak_kib: number(4),
            hash: words[5].to_string(),
        },
        _ => panic!("a child failed: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// One run; prints live events, stale events, seconds on the clock and on a processor, the peak of memory in KiB and the hash of its events.
fn child(args: &[String]) {
    let millis = args[1].parse().expect("a length in milliseconds");
    let plan = Plan { length: Span::from_millis(millis), ..plan(PLAN) };
    match (args[0].as_str(), args[2].as_str()) {
        ("heaps", "hashed") => tell::<Heaps, EventHash>(&plan, EventHash::default(), |trace| trace.value()),
        ("heaps", _) => tell::<Heaps, ()>(&plan, (), |()| 0),
        (_, "hashed") => tell::<Buckets, EventHash>(&plan, EventHash::default(), |trace| trace.value()),
        _ => tell::<Buckets, ()>(&plan, (), |()| 0),
    }
}

fn tell<Q: Queues, T: Trace>(plan: &Plan, trace: T, hash: impl Fn(&T) -> u64) {
    let ((record, effort, trace), took) = timed(|| simulated::<Q, T>(plan, trace));
    check(plan, &record);
    let (events, hash) = (format!("{} {}", effort.live_events, effort.stale_events), hash(&trace));
    say(&format!("{events} {} {} {} {hash:016x}", took.wall, took.processor, peak_kib()));
}

/// A run that did not do its work would be fast.
fn check(plan: &Plan, record: &RunRecord) {
    let offered: u64 = record.windows.iter().map(|window| window.all.offered).sum();
    let expected = 7000.0 * plan.length.as_secs_f64();
    assert!((offered as f64 / expected - 1.0).abs() < 0.01, "{offered} operations, not {expected}");
}

/// The most memory that this process has had, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or_default()
}
