//! The story of the quickstart, live: the same outage, with and without a retry budget.

use crate::support::{Folder, Said, stormwake, with_evidence};

/// The quickstart at half its durations and twice its rates: the same story in half the time.
const HALF: &[&str] = &[
    "target.service.service_time=5ms",
    "policies.app.timeout=500ms",
    "fleets.app.load.poisson.rate=800/s",
    "steady_state.for=5s",
    "timeline.outage.at=6s",
    "timeline.outage.for=5s",
    "recovery.within=8s",
    "recovery.hold=5s",
    "length=32s",
];

fn run(test: &str, plan: &str, more: &[&str]) -> Said {
    let folder = Folder::new(test);
    let file = format!("{}/plans/{plan}.yaml", env!("CARGO_MANIFEST_DIR"));
    let mut args = vec!["run", &file, "--json"];
    for set in HALF.iter().chain(more) {
        args.extend(["--set", *set]);
    }
    with_evidence(|| stormwake(&folder, &args))
}

fn books(result: &serde_json::Value) {
    let totals = &result["totals"];
    let count = |key: &str| totals[key].as_u64().unwrap_or_else(|| panic!("{key} of {totals}"));
    let ended: u64 = ["succeeded", "failed", "unresolved", "refused", "dropped"].into_iter().map(count).sum();
    assert_eq!(count("operations"), ended, "every operation ends in exactly one outcome: {totals}");
    let windows = result["windows"].as_array().expect("windows");
    for key in ["attempts", "retries", "succeeded", "failed"] {
        let sum: u64 = windows.iter().map(|w| w[key].as_u64().expect("a count")).sum();
        assert_eq!(count(key), sum, "the windows add up to the total of {key}");
    }
}

#[test]
fn immediate_retries_keep_the_quickstart_stuck() {
    let said = run("stuck", "quickstart", &[]);
    assert_eq!(said.code, Some(0), "{said:#?}");
    let result = said.result();
    books(&result);
    assert_eq!(result["recovery"]["class"], "STUCK");
    let windows = result["windows"].as_array().expect("windows");
    let last = &windows[windows.len() - 10..];
    let sum = |key: &str| last.iter().map(|w| w[key].as_u64().expect("a count")).sum::<u64>() as f64;
    let share = sum("retries") / sum("attempts");
    assert!((0.70..=0.78).contains(&share), "three of four attempts are retries: {share}");
}

#[test]
fn a_budget_of_a_tenth_lets_the_quickstart_recover() {
    let said = run("recovers", "quickstart-budget", &[]);
    assert_eq!(said.code, Some(0), "{said:#?}");
    let result = said.result();
    books(&result);
    assert_eq!(result["recovery"]["class"], "RECOVERED");
}

/// A plan that expects what does not happen fails.
#[test]
fn an_expectation_can_fail() {
    let short = [
        "steady_state.for=3s",
        "timeline.outage.at=4s",
        "timeline.outage.for=2s",
        "recovery.within=4s",
        "recovery.hold=3s",
        "length=14s",
    ];
    let said = run("expectation", "quickstart-budget", &[&short[..], &["expect.class=STUCK"]].concat());
    assert_eq!(said.code, Some(1), "{said:#?}");
}
