//! Storms on real sockets: the story of the quickstart, with and without a retry budget, and a provider that limits. Each
//! is simulated too, with the same seed, and must come to the same (ARCHITECTURE.md keeps the table).

use crate::support::{Folder, Said, stormwake, with_evidence};
use std::io::Write;

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
    "length=27s",
];

fn run(test: &str, plan: &str, more: &[&str]) -> Said {
    let folder = Folder::new(test);
    let file = plan_file(plan);
    let mut args = vec!["run", &file, "--json"];
    for set in HALF.iter().chain(more) {
        args.extend(["--set", *set]);
    }
    with_evidence(|| stormwake(&folder, &args))
}

/// The same plan and seed in virtual time agrees with what was seen live: the class, attempts and retry share within 5%,
/// the recovery time within 10% or 2 s.
fn agrees(test: &str, file: &str, sets: &[&str], live: &serde_json::Value) {
    let folder = Folder::new(&format!("{test}-simulated"));
    let mut args = vec!["simulate", file, "--seed", "1", "--json"];
    sets.iter().for_each(|set| args.extend(["--set", *set]));
    let said = stormwake(&folder, &args);
    assert_eq!(said.code, Some(0), "{said:#?}");
    let sim = said.result();
    let figure = |of: &serde_json::Value, at: &str| of.pointer(at).and_then(serde_json::Value::as_f64);
    let both = |at: &str| (figure(live, at), figure(&sim, at));
    let attempts = both("/totals/attempts");
    let shares = both("/totals/retry_share");
    let recovery = both("/recovery/recovery_time_ms");
    let table = format!(
        "{test}: live and simulated: {} {}, attempts {attempts:?}, retry share {shares:?}, recovery {recovery:?} ms",
        live["recovery"]["class"], sim["recovery"]["class"]
    );
    let _ = writeln!(std::io::stderr(), "{table}");
    assert_eq!(live["recovery"]["class"], sim["recovery"]["class"], "{table}");
    for (live, sim) in [attempts, shares] {
        let (live, sim) = live.zip(sim).unwrap_or_else(|| panic!("{table}"));
        assert!((live / sim - 1.0).abs() <= 0.05, "{table}");
    }
    match recovery {
        (Some(live), Some(sim)) => assert!((live - sim).abs() <= (sim * 0.1).max(2_000.0), "{table}"),
        recovery => assert_eq!(recovery, (None, None), "{table}"),
    }
    assert_eq!(figure(live, "/totals/operations"), figure(&sim, "/totals/operations"), "the arrivals are the seed's: {table}");
}

fn plan_file(plan: &str) -> String {
    format!("{}/plans/{plan}.yaml", env!("CARGO_MANIFEST_DIR"))
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
    agrees("stuck", &plan_file("quickstart"), HALF, &result);
}

#[test]
fn a_budget_of_a_tenth_lets_the_quickstart_recover() {
    let said = run("recovers", "quickstart-budget", &[]);
    assert_eq!(said.code, Some(0), "{said:#?}");
    let result = said.result();
    books(&result);
    assert_eq!(result["recovery"]["class"], "RECOVERED");
    agrees("recovers", &plan_file("quickstart-budget"), HALF, &result);
}

/// A provider that fails for a while and limits what comes back; clients honour its Retry-After.
const LIMITED: &str = "
version: 1
name: limited
seed: 1
target:
  service:
    servers: 64
    service_time: { p50: 10ms, p99: 40ms }
    limiter: { token_bucket: { rate: 300/s, burst: 50, retry_after: 1s } }
policies:
  app:
    attempts: 8
    timeout: 1s
    retry_on: [connect, reset, timeout, 429, 5xx]
    backoff: { exponential: { base: 200ms, cap: 5s, jitter: full } }
    retry_after: honor
fleets:
  app: { clients: 1000, policy: app, load: { poisson: { rate: 200/s } } }
steady_state: { for: 5s }
timeline: [ { at: 6s, for: 3s, name: failing, fault: { status: { code: 503 } } } ]
recovery: { after: failing, within: 10s, hold: 4s }
expect: { class: RECOVERED }
length: 24s
";

#[test]
fn a_limited_provider_comes_back_live_as_in_virtual_time() {
    let folder = Folder::new("limited");
    let file = folder.write("limited.yaml", LIMITED).display().to_string();
    let said = with_evidence(|| stormwake(&folder, &["run", &file, "--json"]));
    assert_eq!(said.code, Some(0), "{said:#?}");
    let result = said.result();
    books(&result);
    agrees("limited", &file, &[], &result);
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
