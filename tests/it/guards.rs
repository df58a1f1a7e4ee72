//! What holds a client back, in whole runs of the simulator: each budget, breaker, throttle, hedge and hint comes to what its rule says.

use crate::simulated::{plan, seeds};
use crate::support::{Folder, shared, stormwake, with_evidence};
use std::ops::RangeInclusive;
use stormwake::metrics::{Counts, RunRecord};

/// What a run came to.
#[derive(Clone, Copy, Debug)]
struct Sums {
    offered: f64,
    attempts: f64,
    retries: f64,
    succeeded: f64,
}

impl Sums {
    fn of(record: &RunRecord) -> Self {
        let sum = |count: fn(&Counts) -> u64| record.windows.iter().map(|window| count(&window.all)).sum::<u64>() as f64;
        Self {
            offered: sum(|c| c.offered),
            attempts: sum(|c| c.attempts),
            retries: sum(|c| c.retries),
            succeeded: sum(|c| c.succeeded),
        }
    }
}

/// A policy in a run of twenty seconds, and between which bounds a figure of it has to lie.
struct Case {
    name: &'static str,
    clients: u32,
    load: &'static str,
    policy: &'static str,
    fault: &'static str,
    figure: fn(&Sums) -> f64,
    within: RangeInclusive<f64>,
}

const ALL_FAIL: &str = "at: 0s, fault: { status: { code: 503 } }";
const NOTHING_ANSWERS: &str = "at: 0s, fault: { blackhole: {} }";
const HUNDRED: &str = "constant: { rate: 100/s }";

/// A hundred operations a second by ten clients, all of which fail.
const fn failing(name: &'static str, policy: &'static str, figure: fn(&Sums) -> f64, within: RangeInclusive<f64>) -> Case {
    Case { name, clients: 10, load: HUNDRED, policy, fault: ALL_FAIL, figure, within }
}

fn run(case: &Case) -> Sums {
    let text = format!(
        "version: 1\nname: guards\ntarget: {{ service: {{ servers: unlimited, service_time: 1ms }} }}\n\
         policies: {{ p: {{ timeout: 1s, {} }} }}\n\
         fleets: {{ all: {{ clients: {}, policy: p, load: {{ {} }} }} }}\n\
         timeline: [{{ name: harm, {} }}]\ngates: [{{ success: '>= 0%' }}]\nlength: 20s\n",
        case.policy, case.clients, case.load, case.fault
    );
    seeds(&plan(&text), &[1], |record| Sums::of(&record)).remove(0)
}

fn check(cases: &[Case]) {
    let _machine = shared();
    let wrong = cases.iter().filter_map(|case| {
        let sums = run(case);
        let figure = (case.figure)(&sums);
        (!case.within.contains(&figure)).then(|| format!("{}: {figure}, not within {:?}; {sums:?}", case.name, case.within))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn amplification(sums: &Sums) -> f64 {
    sums.attempts / sums.offered
}

#[test]
fn each_budget_allows_what_it_says() {
    check(&[
        failing("ratio", "attempts: 4, budget: { ratio: 10%, tier: fleet }", amplification, 1.095..=1.1),
        failing("a reserve", "attempts: 4, budget: { ratio: 0%, min_per_second: 5, tier: fleet }", |s| s.retries, 95.0..=150.0),
        failing("quota", "attempts: 4, budget: { quota: {}, tier: fleet }", |s| s.retries, 100.0..=100.0),
        failing("of each client", "attempts: 4, budget: { quota: { capacity: 50 }, tier: client }", |s| s.retries, 100.0..=100.0),
        failing(
            "a class that costs more",
            "attempts: 4, on: { 5xx: { cost: 10 } }, budget: { quota: {}, tier: fleet }",
            |s| s.retries,
            50.0..=50.0,
        ),
        failing(
            "of each operation",
            "attempts: 9, budget: { quota: { capacity: 12 }, tier: operation }",
            amplification,
            3.0..=3.0,
        ),
        failing(
            "so many of each",
            "attempts: 9, budget: { bucket: { deposit: 0%, burst: 1 }, tier: operation }",
            amplification,
            2.0..=2.0,
        ),
        failing(
            "three at a time, each of a tenth of a second",
            "attempts: 2, backoff: { fixed: { delay: 100ms } }, budget: { concurrent: { max: 3 }, tier: fleet }",
            |s| s.retries,
            540.0..=600.0,
        ),
        Case {
            name: "a fifth of those on the wire: a quarter of the first attempts",
            clients: 400,
            load: HUNDRED,
            policy: "attempts: 4, budget: { concurrent: { share: 20%, at_least: 0 }, tier: fleet }",
            fault: NOTHING_ANSWERS,
            figure: amplification,
            within: 1.18..=1.25,
        },
        failing(
            "five failures, of retries too, are half of the tokens",
            "attempts: 2, budget: { grpc: {}, tier: fleet }",
            |s| s.retries,
            2.0..=2.0,
        ),
        Case {
            name: "it parks what it cannot pay for, and pays later",
            clients: 10,
            load: HUNDRED,
            policy: "attempts: 9, budget: { ratio: 50%, tier: fleet, when_spent: park }",
            fault: "at: 0s, for: 5s, fault: { status: { code: 503 } }",
            figure: |s| s.succeeded / s.offered,
            within: 0.99..=1.0,
        },
    ]);
}

#[test]
fn breakers_throttles_and_hedges_do_what_they_say() {
    check(&[
        failing(
            "a probe every five seconds",
            "attempts: 1, breaker: { failures: 5, open_for: 5s, probes: 1, tier: fleet }",
            |s| s.attempts,
            8.0..=8.0,
        ),
        failing(
            "first attempts pass",
            "attempts: 4, breaker: { rate: 50%, calls: 20, open_for: 1h, suppresses: retries, tier: fleet }",
            |s| s.attempts - s.offered,
            5.0..=20.0,
        ),
        failing(
            "requests / (requests + 1) are refused",
            "attempts: 1, throttle: { sre: { tier: fleet } }",
            |s| s.attempts,
            3.0..=20.0,
        ),
        Case {
            name: "what is throttled at 20/s is sent at hardly more",
            clients: 100,
            load: HUNDRED,
            policy: "attempts: 1, throttle: { adaptive: { tier: fleet } }",
            fault: "at: 0s, fault: { rate_limit: { rate: 20/s } }",
            figure: |s| s.succeeded / s.attempts,
            within: 0.6..=1.0,
        },
        Case {
            name: "slow answers make pauses of three times their length",
            clients: 10,
            load: "closed: {}",
            policy: "attempts: 1, throttle: { aimd: { slow_after: 500ms, min: 0.25 } }",
            fault: "at: 0s, fault: { latency: { add: 900ms } }",
            figure: |s| s.attempts,
            within: 60.0..=90.0,
        },
        Case {
            name: "a hedge where the first is lost",
            clients: 400,
            load: HUNDRED,
            policy: "attempts: 2, hedge: { after: 100ms }",
            fault: "at: 0s, fault: { blackhole: { share: 50% } }",
            figure: amplification,
            within: 1.46..=1.54,
        },
    ]);
}

/// A form in which a fault says two seconds, what a client has to read for it, and whether its operations then succeed: whoever
/// waits retries after the fault.
const FORMS: [(&str, &str, bool); 7] = [
    ("retry_after: 2s", "retry_after", true),
    ("retry_after: 2s, hint: http_date", "retry_after", true),
    ("retry_after: 2s, hint: retry_after_ms", "retry_after_ms", true),
    ("retry_after: 2s, hint: ratelimit", "ratelimit", true),
    ("retry_after: 2s, hint: x_ratelimit_reset", "x_ratelimit_reset", true),
    ("retry_after: 2s, hint: grpc_pushback", "grpc_pushback", true),
    ("hint: grpc_stop", "grpc_pushback", false),
];

/// A fleet for each form, whose operations all meet it; and one that reads no hint, retries at once and fails.
fn every_form() -> String {
    let policy = |reads: &str| format!("{{ attempts: 2, timeout: 1s, retry_after: {reads} }}");
    let fleet = |n: usize, reads: &str| {
        format!("  f{n}: {{ clients: 5, policy: {}, load: {{ constant: {{ rate: 10/s }} }} }}\n", policy(reads))
    };
    let step = |n: usize, hint: &str| {
        format!("  - {{ at: 0s, for: 1500ms, name: s{n}, fleets: [f{n}], fault: {{ status: {{ code: 503, {hint} }} }} }}\n")
    };
    let mut text = String::from(
        "version: 1\nname: hints\ntarget: { service: { servers: unlimited, service_time: 1ms } }\n\
         gates: [{ success: '>= 0%' }]\nlength: 5s\nfleets:\n",
    );
    FORMS.iter().enumerate().for_each(|(n, (_, reads, _))| text += &fleet(n, &format!("{{ honor: {{ reads: [{reads}] }} }}")));
    text += &fleet(FORMS.len(), "ignore");
    text += "timeline:\n";
    FORMS.iter().enumerate().for_each(|(n, (hint, ..))| text += &step(n, hint));
    text + &step(FORMS.len(), FORMS[0].0)
}

/// Which fleets have operations that failed, against those that should: whoever did not wait met the fault again.
fn failures(engine: &str, failed: &[u64]) {
    let expected = FORMS.iter().map(|(_, _, good)| !good).chain([true]);
    let wrong: Vec<String> = expected
        .zip(failed)
        .enumerate()
        .filter(|(_, (fails, failed))| if *fails { **failed < 10 } else { **failed > 0 })
        .map(|(n, (_, failed))| format!("{engine}: {failed} operations of {:?} failed", FORMS.get(n)))
        .collect();
    assert!(failed.len() == FORMS.len() + 1 && wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn hints_of_each_form_are_obeyed_in_virtual_time() {
    let _machine = shared();
    let record = seeds(&plan(&every_form()), &[1], |record| record).remove(0);
    let failed = |fleet: usize| record.windows.iter().map(|window| window.fleets[fleet].failed).sum();
    failures("sim", &(0..record.fleets.len()).map(failed).collect::<Vec<_>>());
}

#[test]
fn hints_of_each_form_are_obeyed_on_the_wire() {
    let folder = Folder::new("hints");
    let file = folder.write("hints.yaml", every_form());
    let said = with_evidence(|| stormwake(&folder, &["run", file.to_str().expect("UTF-8"), "--json"]));
    let result = said.result();
    let fleets = result["fleets"].as_array().expect("fleets");
    let failed: Vec<u64> = fleets.iter().map(|fleet| fleet["failed"].as_u64().expect("a number")).collect();
    failures("live", &failed);
}
