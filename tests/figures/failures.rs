//! Independent failures: each attempt fails with probability p, whatever happened to others, and three retries have a closed form.

use crate::simulated::{plan, seeds};
use stormwake::metrics::{Counts, RunRecord};

/// 100 clients with ten operations a second each, for a minute. The fault acts a second longer than the load, so that an operation
/// of the last moment meets it too.
fn text(share: f64, policy: &str) -> String {
    format!(
        "version: 1\nname: failures\ntarget: {{ service: {{ servers: unlimited, service_time: 1ms }} }}\n\
         fleets: {{ all: {{ clients: 100, policy: {{ attempts: 4, timeout: 1s{policy} }}, load: {{ constant: {{ each: 10/s }} }} }} }}\n\
         timeline: [{{ at: 0s, for: 1m, name: flaky, fault: {{ status: {{ code: 503, share: {}% }} }} }}]\n\
         gates: [{{ success: '>= 0%' }}]\nlength: 1m\n",
        share * 100.0
    )
}

/// Attempts per operation, and the share of operations that succeeded.
fn seen(record: &RunRecord) -> (f64, f64) {
    let sum = |count: fn(&Counts) -> u64| record.windows.iter().map(|window| count(&window.all)).sum::<u64>() as f64;
    (sum(|c| c.attempts) / sum(|c| c.offered), sum(|c| c.succeeded) / sum(|c| c.offered))
}

/// The mean over as many seeds as make the standard error of the load a quarter of what is allowed.
fn check(policy: &str, cases: &[(f64, u64, f64, f64)]) {
    let mut wrong = Vec::new();
    for &(p, count, load, success) in cases {
        let numbers: Vec<u64> = (1..=count).collect();
        let all = seeds(&plan(&text(p, policy)), &numbers, |record| seen(&record));
        let mean = |figure: fn(&(f64, f64)) -> f64| all.iter().map(figure).sum::<f64>() / count as f64;
        let (seen_load, seen_success) = (mean(|s| s.0), mean(|s| s.1));
        if (seen_load - load).abs() > 0.005 || (seen_success - success).abs() > 0.006 {
            wrong.push(format!("p {p}: load {seen_load:.4}, not {load:.4}; success {seen_success:.4}, not {success:.4}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// An operation's attempts have a standard deviation of 0.24, 0.56 and 1.05 at p 0.05, 0.2 and 0.5: over the 60,000
/// operations of a seed a standard error of 0.0010, 0.0023 and 0.0043.
#[test]
fn three_retries_have_their_closed_form() {
    let closed = |(p, seeds): (f64, u64)| (p, seeds, (1.0 - p.powi(4)) / (1.0 - p), 1.0 - p.powi(4));
    check("", &[(0.05, 1), (0.2, 4), (0.5, 12)].map(closed));
}

/// The reference's own figures: the budget holds both down, and varies less than what it caps.
#[test]
fn a_bucket_of_a_tenth_caps_the_load_and_what_succeeds() {
    let policy = ", budget: { bucket: { deposit: 10%, burst: 5 }, tier: client }";
    check(policy, &[(0.05, 2, 1.051, 0.9998), (0.2, 2, 1.107, 0.885), (0.5, 2, 1.108, 0.551)]);
}

/// Three retries, but none while more than a tenth of the client's last hundred attempts failed: at p 0.05 the tenth is rarely passed,
/// at 0.2 and 0.5 nearly always.
#[test]
fn a_breaker_at_a_tenth_suppresses_retries_where_many_fail() {
    let policy = ", breaker: { above: 10%, calls: 100, minimum_calls: 0, open_for: 0s, suppresses: retries, tier: client }";
    check(policy, &[(0.05, 2, 1.050, 0.997), (0.2, 2, 1.001, 0.802), (0.5, 2, 1.000, 0.504)]);
}
