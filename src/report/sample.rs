//! Runs as they might have been, for the tests of the reports.

mod many;

pub use many::*;

use super::result::{Engine, PlanInfo, RunResult, result};
use crate::config::Place;
use crate::event::AttemptOutcome;
use crate::fault::Phase;
use crate::gate::{Baseline, Class, Finding, Outcome, Recovery, Status, Verdict};
use crate::metrics::{Counts, FaultRecord, Figure, LimitReached, RunRecord, ServiceCounts, StopReason, Summary, Window};
use crate::time::{Span, Timestamp};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

fn at(seconds: u64) -> Timestamp {
    Timestamp(seconds * 1_000_000_000)
}

/// What a second of the run was like.
struct Second {
    attempts: u64,
    succeeded: u64,
    failed: u64,
    latency_ms: u64,
    backlog: u64,
}

const OFFERED: u64 = 400;

fn steady() -> Second {
    Second { attempts: OFFERED, succeeded: OFFERED, failed: 0, latency_ms: 12, backlog: 5 }
}

fn outage(since: u64) -> Second {
    Second {
        attempts: (400 + since * 150).min(1_600),
        succeeded: 0,
        failed: 300.min(since * 100),
        latency_ms: 0,
        backlog: 400 * since,
    }
}

fn stuck_at(second: u64) -> Second {
    match second {
        0..15 => steady(),
        15..25 => outage(second - 15),
        _ => Second {
            attempts: 1_580 + second % 7 * 5,
            succeeded: 8 + second % 5,
            failed: 385,
            latency_ms: 900,
            backlog: 1_600 + second % 3,
        },
    }
}

fn recovering_at(second: u64) -> Second {
    match second {
        0..15 => steady(),
        15..25 => outage(second - 15),
        25..33 => Second { attempts: 640, succeeded: 590, failed: 10, latency_ms: 700, backlog: 1_600 - (second - 25) * 190 },
        _ => steady(),
    }
}

fn counts(second: &Second) -> Counts {
    let mut counts = Counts {
        offered: OFFERED,
        attempts: second.attempts,
        retries: second.attempts.saturating_sub(OFFERED),
        succeeded: second.succeeded,
        failed: second.failed,
        in_flight: second.attempts.min(1_950),
        backlog: second.backlog,
        oldest_age: Span::from_millis(second.backlog),
        ..Counts::default()
    };
    if second.succeeded > 0 {
        counts.by_outcome.insert(AttemptOutcome::Success, second.succeeded);
    }
    if second.attempts > second.succeeded {
        counts.by_outcome.insert(AttemptOutcome::Timeout, second.attempts - second.succeeded);
    }
    for n in 0..second.succeeded {
        counts.latency.record(Span::from_millis(second.latency_ms + n % 20));
    }
    counts.lag.record(Span::from_micros(200));
    counts
}

fn summary(phase: &Phase, index: usize, windows: &[Window]) -> Summary {
    let histogram = || Histogram::<u64>::new_with_bounds(1, 3_600_000_000, 3).unwrap();
    let mut summary = Summary {
        phase: index,
        fleet: 0,
        succeeded: histogram(),
        failed: histogram(),
        attempt_succeeded: histogram(),
        attempt_failed: histogram(),
        lag: histogram(),
        retry_share: Histogram::new_with_bounds(1, 10_000, 4).unwrap(),
        attempts_per_operation: BTreeMap::new(),
        first_attempts: 0,
    };
    for window in windows.iter().filter(|window| phase.from <= window.start && window.start < phase.to) {
        let counts = &window.all;
        let latency = counts.latency.quantile(500).map_or(0, Span::as_micros);
        summary.succeeded.record_n(latency, counts.succeeded).unwrap();
        summary.attempt_succeeded.record_n(latency, counts.succeeded).unwrap();
        summary.failed.record_n(4_000_000, counts.failed).unwrap();
        summary.attempt_failed.record_n(1_000_000, counts.attempts - counts.succeeded.min(counts.attempts)).unwrap();
        summary.lag.record_n(210, counts.attempts).unwrap();
        summary.retry_share.record(counts.retries * 10_000 / counts.attempts.max(1)).unwrap();
        *summary.attempts_per_operation.entry(1).or_default() += counts.succeeded;
        *summary.attempts_per_operation.entry(4).or_default() += counts.failed;
        summary.first_attempts += counts.attempts - counts.retries;
    }
    summary
}

fn record_of(seconds: u64, at_second: fn(u64) -> Second) -> RunRecord {
    let mut windows: Vec<Window> = (0..seconds)
        .map(|second| {
            let all = counts(&at_second(second));
            Window { start: at(second), fleets: vec![all.clone()], all }
        })
        .collect();
    let over = |all: &Counts| all.succeeded + all.failed;
    let held = windows.iter().map(|window| window.all.offered).sum::<u64>()
        - windows.iter().map(|window| over(&window.all)).sum::<u64>();
    windows.last_mut().expect("a run has windows").all.unresolved = held;
    let phase =
        |name: &str, from, to, faults: &[String]| Phase { name: name.into(), from: at(from), to: at(to), faults: faults.into() };
    let phases = vec![
        phase("steady", 0, 15, &[]),
        phase("blackhole", 15, 25, &["blackhole".into()]),
        phase("after blackhole", 25, 60, &[]),
    ];
    RunRecord {
        taps: Vec::new(),
        producers: Vec::new(),
        fleets: vec!["devices".into()],
        destinations: vec![Vec::new()],
        window: Span::from_secs(1),
        summaries: phases.iter().enumerate().map(|(index, phase)| summary(phase, index, &windows)).collect(),
        windows,
        phases,
        actions: Vec::new(),
        notes: Vec::new(),
        waves: None,
        faults: vec![FaultRecord {
            name: "blackhole".into(),
            kind: "blackhole",
            from: at(15),
            to: at(25.min(seconds)),
            touched: 9_412,
            ended_early: false,
            failed: None,
        }],
        ended: at(seconds),
        length: Span::from_secs(60),
        stopped: None,
        cleanup_confirmed: true,
        left: Vec::new(),
        limits_reached: Vec::new(),
        service: Some(ServiceCounts {
            of: crate::service::Counts {
                useful: Span::from_secs(20),
                wasted: Span::from_secs(60),
                arrived: 60_000,
                ..Default::default()
            },
            ..Default::default()
        }),
        connects: None,
    }
}

/// A run that got stuck.
pub fn record() -> RunRecord {
    record_of(60, stuck_at)
}

/// A plan.
pub fn plan() -> PlanInfo {
    PlanInfo {
        name: "quickstart".into(),
        path: "plans/quickstart.yaml".into(),
        sha256: "0".repeat(64),
        engine: Engine::Live,
        seed: 7,
        exit_code: 0,
        advisory: false,
        started_unix_ms: Some(1_796_021_712_000),
        expect: None,
        judged_line: Some(29),
        time_scale: None,
        policies: vec!["naive".into()],
        rules: Vec::new(),
        operator: None,
        note: None,
    }
}

fn finding(gate: &str, wanted: &str, status: Status, observed: &str, value: Option<f64>, line: u32) -> Finding {
    let place = Place { line, ..Place::default() };
    Finding { gate: gate.into(), status, observed: observed.into(), wanted: wanted.into(), value, bound: Some(1.0), place }
}

fn verdict(outcome: Outcome, class: Class, sentence: &str) -> Verdict {
    Verdict {
        outcome,
        recovery: Some(Recovery {
            at: None,
            class,
            fault: Some("blackhole".into()),
            recovery_time: None,
            unrecovered_for: Span::ZERO,
            error_window: None,
            error_window_ratio: None,
            last_clause: None,
            relapses: 0,
            backlog_slope: None,
            projected_drain: None,
            sentence: sentence.into(),
        }),
        baseline: Some(Baseline {
            from: at(5),
            to: at(15),
            windows: 5..15,
            success: Some(1.0),
            errors: Some(0.0),
            goodput: Some(400.0),
            offered: Some(400.0),
            attempts: Some(400.0),
            retry_share: Some(0.0),
            p50: Some(0.021),
            p99: Some(0.031),
            backlog: Some(5.0),
        }),
        findings: Vec::new(),
        reasons: Vec::new(),
    }
}

/// Recovered, every gate held.
pub fn pass() -> RunResult {
    let sentence = "Healthy again 8s after `blackhole` ended, within the 15s that the plan allows, and it held for 20s.";
    let mut verdict = verdict(Outcome::Pass, Class::Recovered, sentence);
    let recovery = verdict.recovery.as_mut().unwrap();
    recovery.recovery_time = Some(Span::from_secs(8));
    recovery.error_window = Some(Span::from_secs(18));
    recovery.error_window_ratio = Some(1.8);
    recovery.last_clause = Some(Figure::Backlog);
    verdict.findings = vec![
        finding(
            "peak_attempts <= 2.5x baseline during recovery",
            "<= 2.5x baseline (1000/s)",
            Status::Pass,
            "640/s",
            Some(640.0),
            41,
        ),
        finding("success >= 70%", ">= 70%", Status::Pass, "89.7%", Some(0.8967), 42),
    ];
    result(&record_of(60, recovering_at), &verdict, &plan())
}

/// Stuck, which is what the plan expects.
pub fn stuck() -> RunResult {
    let sentence = "The fault has been gone for 35s, offered load is 400/s as before, and goodput is 2.5% of the baseline's \
                    400/s; the backlog of 1,602 operations does not fall.";
    let mut verdict = verdict(Outcome::Pass, Class::Stuck, sentence);
    verdict.recovery.as_mut().unwrap().error_window = Some(Span::from_secs(45));
    verdict.recovery.as_mut().unwrap().error_window_ratio = Some(4.5);
    verdict.reasons = vec![sentence.into(), "the plan expects STUCK".into()];
    verdict.findings = vec![finding("retry_share >= 70% during recovery", ">= 70%", Status::Pass, "74.8%", Some(0.748), 38)];
    let plan = PlanInfo { expect: Some(Class::Stuck), ..plan() };
    result(&record(), &verdict, &plan)
}

/// The fault touched nothing, and much else is to be said.
pub fn inconclusive() -> RunResult {
    let mut record = record_of(60, |_| steady());
    record.faults[0].touched = 0;
    record.limits_reached = vec![LimitReached { limit: "max_attempts".into(), count: 12 }];
    let mut verdict =
        verdict(Outcome::Inconclusive, Class::Inconclusive, "No request met the fault `blackhole`: nothing was injected.");
    verdict.reasons = vec![
        "errors <= 1%: it was 2%".into(),
        "the fault `blackhole` touched no request".into(),
        "generator lag p99 was 61ms, more than the 20ms at which this plan's figures can be trusted; fewer clients, or a larger \
         machine, would help"
            .into(),
    ];
    verdict.findings = (0..9)
        .map(|n| {
            let status = if n % 3 == 0 { Status::Inconclusive } else { Status::Pass };
            let value = (n % 3 != 0).then_some(0.031);
            let observed = if value.is_some() { "31ms" } else { "41 samples, fewer than the 100 that p99 takes" };
            finding("p99 of devices <= 400ms during recovery", "<= 400ms", status, observed, value, 40 + n)
        })
        .collect();
    verdict.findings.push(finding("errors <= 1%", "<= 1%", Status::Fail, "2%", Some(0.02), 61));
    result(&record, &verdict, &PlanInfo { exit_code: 3, ..plan() })
}

/// Stopped by the user in the middle of the fault.
pub fn aborted() -> RunResult {
    let mut record = record_of(23, stuck_at);
    record.stopped = Some(StopReason::Signal(2));
    let mut verdict = verdict(Outcome::Aborted, Class::Inconclusive, "");
    verdict.recovery = None;
    verdict.reasons = vec!["stopped by SIGINT after 23s; every fault was removed".into()];
    result(&record, &verdict, &PlanInfo { exit_code: 130, ..plan() })
}

/// A judge who saw nothing.
pub fn verdict_of_nothing() -> Verdict {
    Verdict { outcome: Outcome::Inconclusive, recovery: None, baseline: None, findings: Vec::new(), reasons: Vec::new() }
}

/// Compares with a file of `tests/golden`, or rewrites it where `UPDATE_GOLDEN` is set.
pub fn golden(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == golden, "{name} differs; UPDATE_GOLDEN=1 rewrites it. Now:\n{text}");
}
