//! The known thresholds of metastable failures: below each a service recovers from what struck it, above it stays stuck for good.
//!
//! Each set-up is first in, first out, with a queue without end, and does the work of clients that have gone, where nothing else is said.

use crate::simulated::{plan, seeds};
use stormwake::metrics::{Counts, RunRecord, Window};

/// When the trigger comes, in seconds, in every set-up.
const STRIKES: usize = 60;
/// Over how many seconds at the end a run is judged.
const JUDGED: usize = 60;

/// What one run showed. Its windows are of a second each.
struct Seen {
    /// Successes / operations, and attempts / operations, over the last minute.
    success: f64,
    amplification: f64,
    /// The first second after the trigger whose next five hold nine tenths of the operations that five seconds before it offered.
    good_from: Option<usize>,
}

impl Seen {
    /// What a record shows of a trigger that lasts so many seconds.
    fn of(record: &RunRecord, lasts: usize) -> Self {
        let windows = &record.windows;
        let last = &windows[windows.len() - JUDGED..];
        let operations = sum(last, |c| c.offered);
        let usual = sum(&windows[STRIKES - 50..STRIKES], |c| c.offered) / 10.0;
        let is_good = |from: &usize| sum(&windows[*from..from + 5], |c| c.succeeded) >= 0.9 * usual;
        Self {
            success: sum(last, |c| c.succeeded) / operations,
            amplification: sum(last, |c| c.attempts) / operations,
            good_from: (STRIKES + lasts..windows.len() - 4).find(is_good),
        }
    }

    fn is_stuck(&self) -> bool {
        self.success < 0.5
    }
}

fn sum(windows: &[Window], count: fn(&Counts) -> u64) -> f64 {
    windows.iter().map(|window| count(&window.all)).sum::<u64>() as f64
}

/// Runs a plan of these parts with seeds from 1 on.
fn run(parts: &[&str], count: u64, lasts: usize) -> Vec<Seen> {
    let text = format!("version: 1\nname: threshold\ngates: [{{ success: '>= 0%' }}]\n{}\n", parts.join("\n"));
    seeds(&plan(&text), &(1..=count).collect::<Vec<_>>(), |record| Seen::of(&record, lasts))
}

fn stuck(seen: &[Seen]) -> usize {
    seen.iter().filter(|seen| seen.is_stuck()).count()
}

/// Bronson and others, "Metastable Failures in Distributed Systems" (HotOS 2021): a database that does 300 a second stands still for ten
/// seconds; its clients wait for a second, and try once more. Enough clients that none is met busy.
fn database(load: &str, seeds: u64) -> Vec<Seen> {
    let load = format!("fleets: {{ app: {{ clients: 20000, policy: app, load: {{ {load} }} }} }}");
    let parts = [
        "target: { service: { rate: 300/s, queue: unlimited } }",
        "policies: { app: { attempts: 2, timeout: 1s, backoff: none } }",
        &load,
        "timeline: [{ at: 60s, for: 10s, name: stall, service: { capacity: 0% } }]",
        "length: 400s",
    ];
    run(&parts, seeds, 10)
}

#[test]
fn above_half_of_its_capacity_one_retry_keeps_a_database_down() {
    for seen in database("poisson: { rate: 280/s }", 6) {
        assert!(seen.success < 0.01, "no answer comes in time: {}", seen.success);
        assert!((seen.amplification - 2.0).abs() < 0.01, "every operation is tried twice: {}", seen.amplification);
    }
    let above = database("constant: { rate: 155/s }", 1);
    assert!(above[0].is_stuck() && (above[0].amplification - 2.0).abs() < 0.01, "two attempts make 310/s of it");
}

#[test]
fn below_half_of_its_capacity_it_drains_what_the_stall_left() {
    let below = database("constant: { rate: 145/s }", 1);
    assert!(below[0].success > 0.99, "290/s, which drains at 10/s: {}", below[0].success);
    // When the stall is over, 140 × 19 attempts wait: ten seconds of first ones and nine of retries. At 20/s they are down to a second's work
    // after 118 s, which the retries meet of what was offered a second earlier.
    let even = database("constant: { rate: 140/s }", 1);
    let after = |seen: &Seen| seen.good_from.expect("it recovers") as f64 - 70.0;
    assert!((after(&even[0]) - 117.0).abs() <= 1.0, "recovered after {} s", after(&even[0]));
    // At random, that time has a standard deviation of 13.5 s: of the mean of twelve, 3.9 s.
    let random = database("poisson: { rate: 140/s }", 12);
    let mean = random.iter().map(after).sum::<f64>() / random.len() as f64;
    assert!((mean - 117.0).abs() < 12.0, "recovered after {mean} s on average");
    assert!(random.iter().all(|seen| seen.success > 0.99 && seen.amplification < 1.01));
}

/// Huang and others, "Metastable Failures in the Wild" (OSDI 2022): how deep a fall of the capacity is, how long it lasts and how much the service
/// has to do decide together. Timeout 3 s, four retries at once; here one server that does 100 a second, and operations evenly spaced.
fn grid(load: f64, fall: u32, lasts: usize) -> Seen {
    let load = format!("fleets: {{ app: {{ clients: 2000, policy: app, load: {{ constant: {{ rate: {load}/s }} }} }} }}");
    let fall = format!("timeline: [{{ at: 60s, for: {lasts}s, name: fall, service: {{ capacity: {}% }} }}]", 100 - fall);
    let parts = [
        "target: { service: { servers: 1, service_time: 10ms, queue: unlimited } }",
        "policies: { app: { attempts: 5, timeout: 3s, backoff: none } }",
        &load,
        &fall,
        "length: 300s",
    ];
    run(&parts, 1, lasts).remove(0)
}

#[test]
fn depth_length_and_load_decide_together_whether_a_fall_of_the_capacity_is_survived() {
    let (full, less) = (38.0, 0.7 * 38.0);
    for (load, fall, lasts, metastable) in
        [(full, 78, 10, false), (full, 80, 10, true), (full, 80, 9, false), (less, 80, 10, false)]
    {
        let seen = grid(load, fall, lasts);
        let told = format!("{load}/s, less {fall}% for {lasts} s: {}, {} attempts", seen.success, seen.amplification);
        assert_eq!(seen.is_stuck(), metastable, "{told}");
        let (success, amplification) = if metastable { (0.0, 5.0) } else { (1.0, 1.0) };
        assert!((seen.success - success).abs() < 0.01 && (seen.amplification - amplification).abs() < 0.01, "{told}");
    }
    // The band is narrow: at 36% of its capacity it survives all four, at 39% not the second one's milder twin either.
    assert!(!grid(36.0, 80, 10).is_stuck());
    assert!(grid(39.0, 78, 10).is_stuck());
}

/// After Brooker: a service that slows with what it serves has two states, and a spike may push it into the worse one.
fn bistable(backoff: &str, seeds: u64) -> Vec<Seen> {
    let policy = format!("policies: {{ app: {{ attempts: 3, timeout: 3s, backoff: {backoff} }} }}");
    let parts = [
        "target: { service: { servers: unlimited, service_time: 1s, slows_with_concurrency: 1% } }",
        "network: { latency: { exponential: { mean: 100ms } }, upstream: 0s, connect: 0s }",
        &policy,
        "fleets: { app: { clients: 100000, policy: app, load: { spike: { rate: 40/s, peak: 80/s, at: 60s, for: 5s } } } }",
        "length: 260s",
    ];
    run(&parts, seeds, 5)
}

/// One seed proves nothing: a binomial with 60 draws at 0.65 or 0.7 lies within 34 to 49 nearly always.
#[test]
fn a_spike_leaves_a_service_that_slows_with_its_load_in_either_of_two_states() {
    let none = stuck(&bistable("none", 60));
    assert!((34..=49).contains(&none), "{none} of 60 are stuck without backoff");
    let jitter = stuck(&bistable("{ exponential: { base: 20s, jitter: full } }", 60));
    assert_eq!(jitter, 0, "of 60, with full jitter from 20 s on");
}

/// A spike of three times the load into a queue of 100, which refuses whoever comes when it is full.
fn ordered(queue: &str) -> Vec<Seen> {
    let target =
        format!("target: {{ service: {{ servers: 1, service_time: {{ exponential: {{ mean: 100ms }} }}, queue: {queue} }} }}");
    let parts = [
        &target,
        "network: { latency: 0s, upstream: 0s, connect: 0s }",
        "policies: { app: { attempts: 4, timeout: 4s, backoff: none } }",
        "fleets: { app: { clients: 20000, policy: app, load: { spike: { rate: 9.3/s, peak: 30/s, at: 60s, for: 5s } } } }",
        "length: 600s",
    ];
    run(&parts, 40, 5)
}

#[test]
fn the_last_come_first_and_an_age_under_the_timeout_recover_where_the_first_come_stay_stuck() {
    for (queue, wanted) in [
        ("100", 40),
        ("{ bound: 100, order: lifo }", 0),
        ("{ bound: 100, expire_after: 3s }", 0),
        // Beyond the timeout, an age is no cure.
        ("{ bound: 100, expire_after: 5s }", 40),
    ] {
        let seen = ordered(queue);
        assert_eq!(stuck(&seen), wanted, "queue {queue}: of 40");
        let mut after: Vec<usize> = seen.iter().filter_map(|seen| seen.good_from).map(|from| from - 65).collect();
        after.sort();
        assert!(wanted > 0 || after[20] < 30, "queue {queue}: recovers at once, after {after:?} s");
    }
}
