//! From a run's record and its verdict to the document.

use super::quantiles::{distribution, latency, spectrum};
use super::service::service;
use super::*;
use crate::event::AttemptOutcome;
use crate::fault::Phase;
use crate::gate::{Baseline, Class, Finding, Outcome, Recovery, Status, Verdict};
use crate::metrics::{Counts, RunRecord, Sketch, StopReason, Summary, Window};
use crate::time::{Span, Timestamp};
use hdrhistogram::Histogram;
use std::ops::Range;

/// The document of a run.
pub fn result(record: &RunRecord, verdict: &Verdict, plan: &PlanInfo) -> RunResult {
    let mut result = RunResult {
        schema_version: super::super::published::RESULT.version,
        stormwake: env!("CARGO_PKG_VERSION").to_string(),
        plan: PlanRef {
            name: plan.name.clone(),
            path: plan.path.clone(),
            sha256: plan.sha256.clone(),
            expect: plan.expect.map(class),
            judged_line: plan.judged_line,
            time_scale: plan.time_scale.clone(),
        },
        engine: plan.engine,
        seed: plan.seed,
        operator: plan.operator.clone(),
        note: plan.note.clone(),
        started_unix_ms: plan.started_unix_ms,
        outcome: outcome(verdict.outcome),
        exit_code: plan.exit_code,
        advisory: plan.advisory,
        reasons: verdict.reasons.clone(),
        duration_ms: record.ended.as_millis(),
        length_ms: record.length.as_millis(),
        window_ms: record.window.as_millis(),
        stopped: record.stopped.as_ref().map(stopped),
        cleanup_confirmed: record.cleanup_confirmed,
        recovery: verdict.recovery.as_ref().map(recovery),
        totals: totals(record),
        baseline: verdict.baseline.as_ref().map(|of| baseline(record, of)),
        stretches: stretches(record),
        fleets: (0..record.fleets.len()).map(|fleet| fleet_result(record, fleet, plan)).collect(),
        destinations: destinations::over_the_run(record),
        proxies: proxies::proxies(record),
        phases: phases(record),
        faults: faults(record),
        actions: timeline::actions(record),
        notes: told::notes(record),
        rules: Vec::new(),
        waves: timeline::waves(record),
        findings: verdict.findings.iter().map(finding).collect(),
        generator: generator(record),
        service: record.service.as_ref().map(service),
        connects: record.connects.map(|c| ConnectsResult { count: c.count, fastest_ms: span_ms(c.fastest) }),
        limits_reached: limits(record),
        heat: heat::heat(record),
        windows: record.windows.iter().map(|of| window(record, of)).collect(),
    };
    result.rules = told::rules(plan, &result);
    result
}

/// The name of an attempt's outcome: `success`, `status_503`, `timeout`, …
pub(in crate::report) fn outcome_name(outcome: AttemptOutcome) -> String {
    match outcome {
        AttemptOutcome::Success => "success".into(),
        AttemptOutcome::Status(status) => format!("status_{status}"),
        AttemptOutcome::Unexpected => "unexpected".into(),
        AttemptOutcome::Connect => "connect".into(),
        AttemptOutcome::Reset => "reset".into(),
        AttemptOutcome::Timeout => "timeout".into(),
        AttemptOutcome::Malformed => "malformed".into(),
        AttemptOutcome::Cancelled => "cancelled".into(),
        AttemptOutcome::Refused => "refused".into(),
    }
}

pub(in crate::report) fn outcome(outcome: Outcome) -> RunOutcome {
    match outcome {
        Outcome::Pass => RunOutcome::Pass,
        Outcome::Fail => RunOutcome::Fail,
        Outcome::Inconclusive => RunOutcome::Inconclusive,
        Outcome::Aborted => RunOutcome::Aborted,
    }
}

pub(in crate::report) fn class(class: Class) -> RecoveryClass {
    match class {
        Class::Recovered => RecoveryClass::Recovered,
        Class::RecoveredLate => RecoveryClass::RecoveredLate,
        Class::Recovering => RecoveryClass::Recovering,
        Class::Stuck => RecoveryClass::Stuck,
        Class::Degraded => RecoveryClass::Degraded,
        Class::Inconclusive => RecoveryClass::Inconclusive,
    }
}

pub(in crate::report) fn stopped(reason: &StopReason) -> Stopped {
    match reason {
        StopReason::StopCondition(detail) => Stopped { by: StoppedBy::StopCondition, detail: detail.clone() },
        StopReason::Signal(_) => Stopped { by: StoppedBy::Signal, detail: reason.to_string() },
        StopReason::Operator => Stopped { by: StoppedBy::Operator, detail: reason.to_string() },
        StopReason::Internal(detail) => Stopped { by: StoppedBy::Internal, detail: detail.clone() },
    }
}

fn recovery(recovery: &Recovery) -> RecoveryResult {
    RecoveryResult {
        class: class(recovery.class),
        fault: recovery.fault.clone(),
        at: recovery.at.clone(),
        recovery_time_ms: recovery.recovery_time.map(span_ms),
        unrecovered_for_ms: span_ms(recovery.unrecovered_for),
        error_window_ms: recovery.error_window.map(span_ms),
        error_window_ratio: recovery.error_window_ratio.and_then(fine),
        last_clause: recovery.last_clause.map(|clause| clause.word().to_string()),
        relapses: recovery.relapses,
        backlog_slope: recovery.backlog_slope.and_then(coarse),
        projected_drain_ms: recovery.projected_drain.map(span_ms),
        sentence: recovery.sentence.clone(),
    }
}

fn baseline(record: &RunRecord, baseline: &Baseline) -> BaselineResult {
    BaselineResult {
        from_ms: baseline.from.as_millis(),
        to_ms: baseline.to.as_millis(),
        success: baseline.success.and_then(fine),
        errors: baseline.errors.and_then(fine),
        goodput: baseline.goodput.and_then(coarse),
        offered: baseline.offered.and_then(coarse),
        attempts: baseline.attempts.and_then(coarse),
        retry_share: baseline.retry_share.and_then(fine),
        p50_ms: baseline.p50.and_then(|seconds| coarse(seconds * 1e3)),
        p99_ms: baseline.p99.and_then(|seconds| coarse(seconds * 1e3)),
        backlog: baseline.backlog.and_then(coarse),
        attempt_latency: Some(distribution(baseline.windows_of(record).iter().map(|window| &window.all.attempt_latency))),
    }
}

pub(in crate::report) fn finding(finding: &Finding) -> FindingResult {
    let status = match finding.status {
        Status::Pass => GateStatus::Pass,
        Status::Fail => GateStatus::Fail,
        Status::Inconclusive => GateStatus::Inconclusive,
    };
    let in_file = finding.place.source == crate::config::Source::File && finding.place.line > 0;
    FindingResult {
        gate: finding.gate.clone(),
        status,
        observed: finding.observed.clone(),
        wanted: finding.wanted.clone(),
        value: finding.value.and_then(fine),
        bound: finding.bound.and_then(fine),
        line: in_file.then_some(finding.place.line),
    }
}

fn totals(record: &RunRecord) -> Totals {
    let sum = Sum::of(record.windows.iter().map(|window| &window.all));
    let amplification = ratio(sum.attempts, first_attempts(record.summaries_of_all()));
    let retry_share = ratio(sum.retries, sum.attempts);
    let over = sum.succeeded + sum.failed + sum.refused + sum.dropped + sum.dead_lettered;
    let ended: u64 = sum.by_outcome.values().sum();
    let good: u64 = ["success", "cancelled"].iter().filter_map(|name| sum.by_outcome.get(*name)).sum();
    let peak = record.windows.iter().map(|window| window.all.attempts).max();
    Totals {
        operations: sum.offered,
        attempts: sum.attempts,
        retries: sum.retries,
        succeeded: sum.succeeded,
        failed: sum.failed,
        unresolved: sum.unresolved,
        // A device gives up for good: nobody holds an operation that its client has failed.
        lost: sum.failed,
        refused: sum.refused,
        dropped: sum.dropped,
        superseded: sum.superseded,
        dead_lettered: sum.dead_lettered,
        budget_refused: sum.budget_refused,
        throttled: sum.throttled,
        by_outcome: sum.by_outcome,
        amplification: amplification.and_then(fine),
        retry_share: retry_share.and_then(fine),
        laundered_retries: laundered(amplification, retry_share).and_then(fine),
        success: ratio(sum.succeeded, over).and_then(fine),
        errors: ratio(ended - good, ended).and_then(fine),
        peak_attempts: peak.and_then(|peak| rate(peak, record.window)),
        backlog: record.windows.last().map(|window| window.all.backlog),
        latency: latency(record.summaries_of_all().map(|summary| &summary.succeeded)),
        retry_share_histogram: shares(record.windows.iter().filter_map(|window| basis_points(&window.all))),
        attempts_per_operation: attempts_per_operation(record.summaries_of_all()),
    }
}

/// Never below zero by more than rounding: attempts/operations is 1/(1 − share) where no pass is repeated.
fn laundered(amplification: Option<f64>, retry_share: Option<f64>) -> Option<f64> {
    let (amplification, retry_share) = (amplification?, retry_share?);
    (retry_share < 1.0).then(|| amplification - 1.0 / (1.0 - retry_share))
}

fn fleet_result(record: &RunRecord, fleet: usize, plan: &PlanInfo) -> FleetResult {
    let sum = Sum::of(record.windows.iter().filter_map(|window| window.fleets.get(fleet)));
    let summaries = || record.summaries.iter().filter(move |summary| summary.fleet == fleet);
    FleetResult {
        name: record.fleets[fleet].clone(),
        policy: plan.policies.get(fleet).cloned().unwrap_or_default(),
        operations: sum.offered,
        attempts: sum.attempts,
        retries: sum.retries,
        succeeded: sum.succeeded,
        failed: sum.failed,
        unresolved: sum.unresolved,
        refused: sum.refused,
        dropped: sum.dropped,
        superseded: sum.superseded,
        dead_lettered: sum.dead_lettered,
        amplification: ratio(sum.attempts, first_attempts(summaries())).and_then(fine),
        retry_share: ratio(sum.retries, sum.attempts).and_then(fine),
        latency: latency(summaries().map(|summary| &summary.succeeded)),
    }
}

/// The phases that began: a run that is stopped never comes to the later ones.
fn phases(record: &RunRecord) -> Vec<PhaseResult> {
    let begun = (0..record.phases.len()).filter(|&index| record.phases[index].from < record.ended);
    begun.map(|index| phase_result(record, index)).collect()
}

fn phase_result(record: &RunRecord, index: usize) -> PhaseResult {
    let phase = &record.phases[index];
    let windows = || record.windows.iter().filter(|window| phase.from <= window.start && window.start < phase.to);
    let summaries = || record.summaries_of_all().filter(move |summary| summary.phase == index);
    let sum = Sum::of(windows().map(|window| &window.all));
    let time = windows().map(|window| window_length(record, window)).sum::<Span>();
    PhaseResult {
        name: phase.name.clone(),
        from_ms: phase.from.as_millis(),
        to_ms: phase.to.min(record.ended).max(phase.from).as_millis(),
        faults: phase.faults.clone(),
        offered: sum.offered,
        attempts: sum.attempts,
        retries: sum.retries,
        succeeded: sum.succeeded,
        failed: sum.failed,
        goodput: rate(sum.succeeded, time),
        retry_share: ratio(sum.retries, sum.attempts).and_then(fine),
        latency: latency(summaries().map(|summary| &summary.succeeded)),
        attempt_latency: latency(summaries().map(|summary| &summary.attempt_succeeded)),
        retry_share_histogram: share_counts(summaries().map(|summary| &summary.retry_share)),
        attempts_per_operation: attempts_per_operation(summaries()),
    }
}

/// A stretch of a run, and the phases that it is made of.
pub(in crate::report) struct StretchPhases {
    pub name: &'static str,
    pub phases: Range<usize>,
    from: Timestamp,
    to: Timestamp,
}

/// The stretches that a run had: before, during and after its faults.
pub(in crate::report) fn stretch_phases(record: &RunRecord) -> Vec<StretchPhases> {
    let struck = |phase: &Phase| !phase.faults.is_empty();
    let first = record.phases.iter().position(struck).unwrap_or(record.phases.len());
    let last = record.phases.iter().rposition(struck).map_or(record.phases.len(), |last| last + 1);
    [("before", 0..first), ("during", first..last), ("after", last..record.phases.len())]
        .into_iter()
        .filter_map(|(name, phases)| {
            let of = record.phases.get(phases.clone())?;
            let (from, to) = (of.first()?.from, of.last()?.to.min(record.ended));
            (from < to).then_some(StretchPhases { name, phases, from, to })
        })
        .collect()
}

fn stretches(record: &RunRecord) -> Vec<Stretch> {
    let stretch = |of: StretchPhases| {
        let histograms = || record.summaries_of_all().filter(|s| of.phases.contains(&s.phase)).map(|s| &s.succeeded);
        Stretch {
            name: of.name.into(),
            from_ms: of.from.as_millis(),
            to_ms: of.to.as_millis(),
            latency: latency(histograms()),
            spectrum: spectrum(histograms()),
        }
    };
    stretch_phases(record).into_iter().map(stretch).collect()
}

fn faults(record: &RunRecord) -> Vec<FaultResult> {
    let fault = |fault: &crate::metrics::FaultRecord| FaultResult {
        name: fault.name.clone(),
        kind: fault.kind.to_string(),
        from_ms: fault.from.as_millis(),
        to_ms: fault.to.as_millis(),
        // What somebody else has removed took its count with it.
        touched: Some(fault.touched).filter(|touched| *touched > 0 || fault.failed.is_none()),
        ended_early: fault.ended_early,
        failed: fault.failed.clone(),
    };
    record.faults.iter().map(fault).collect()
}

fn limits(record: &RunRecord) -> Vec<LimitResult> {
    record.limits_reached.iter().map(|limit| LimitResult { limit: limit.limit.clone(), count: limit.count }).collect()
}

fn generator(record: &RunRecord) -> Generator {
    let lag = latency(record.summaries.iter().map(|summary| &summary.lag));
    let sum = Sum::of(record.windows.iter().map(|window| &window.all));
    Generator {
        lag_p50_ms: lag.p50_ms,
        lag_p99_ms: lag.p99_ms,
        lag_max_ms: lag.max_ms,
        late: sum.late_by_generator,
        dropped: sum.dropped,
    }
}

fn window(record: &RunRecord, window: &Window) -> WindowResult {
    let all = &window.all;
    WindowResult {
        t_ms: window.start.as_millis(),
        offered: all.offered,
        attempts: all.attempts,
        retries: all.retries,
        scheduled: all.scheduled,
        arrived: all.arrived,
        connects: all.connects,
        succeeded: all.succeeded,
        failed: all.failed,
        refused: all.refused,
        dropped: all.dropped,
        superseded: all.superseded,
        dead_lettered: all.dead_lettered,
        late_starts: all.late_starts,
        budget_refused: all.budget_refused,
        throttled: all.throttled,
        by_outcome: all.by_outcome.iter().map(|(&outcome, &count)| (outcome_name(outcome), count)).collect(),
        p50_ms: sketch_ms(&all.latency, 500),
        p99_ms: sketch_ms(&all.latency, 990),
        attempt_p99_ms: sketch_ms(&all.attempt_latency, 990),
        lag_p99_ms: sketch_ms(&all.lag, 990),
        retry_share: ratio(all.retries, all.attempts).and_then(fine),
        in_flight: all.in_flight,
        backlog: all.backlog,
        oldest_age_ms: (all.backlog > 0).then(|| span_ms(all.oldest_age)),
        deep_retries: all.deep_retries,
        late: all.late,
        destinations: destinations::in_window(record, window),
    }
}

/// Counts of several windows together.
#[derive(Default)]
struct Sum {
    offered: u64,
    attempts: u64,
    retries: u64,
    succeeded: u64,
    failed: u64,
    unresolved: u64,
    refused: u64,
    dropped: u64,
    superseded: u64,
    dead_lettered: u64,
    late_by_generator: u64,
    budget_refused: u64,
    throttled: u64,
    by_outcome: BTreeMap<String, u64>,
}

impl Sum {
    fn of<'a>(windows: impl Iterator<Item = &'a Counts>) -> Self {
        let mut sum = Self::default();
        for counts in windows {
            sum.offered += counts.offered;
            sum.attempts += counts.attempts;
            sum.retries += counts.retries;
            sum.succeeded += counts.succeeded;
            sum.failed += counts.failed;
            sum.unresolved += counts.unresolved;
            sum.refused += counts.refused;
            sum.dropped += counts.dropped;
            sum.superseded += counts.superseded;
            sum.dead_lettered += counts.dead_lettered;
            sum.late_by_generator += counts.late_by_generator;
            sum.budget_refused += counts.budget_refused;
            sum.throttled += counts.throttled;
            for (&outcome, &count) in &counts.by_outcome {
                *sum.by_outcome.entry(outcome_name(outcome)).or_default() += count;
            }
        }
        sum
    }
}

fn first_attempts<'a>(summaries: impl Iterator<Item = &'a Summary>) -> u64 {
    summaries.map(|summary| summary.first_attempts).sum()
}

fn attempts_per_operation<'a>(summaries: impl Iterator<Item = &'a Summary>) -> Vec<AttemptsCount> {
    let mut counts = BTreeMap::new();
    for (&attempts, &operations) in summaries.flat_map(|summary| &summary.attempts_per_operation) {
        *counts.entry(attempts).or_default() += operations;
    }
    counts.into_iter().map(|(attempts, operations)| AttemptsCount { attempts, operations }).collect()
}

/// The retry share of a window as its histograms take it: rounded down; none without attempts.
fn basis_points(counts: &Counts) -> Option<u64> {
    (counts.attempts > 0).then(|| counts.retries * 10_000 / counts.attempts)
}

fn shares(samples: impl Iterator<Item = u64>) -> Vec<ShareCount> {
    let mut counts = BTreeMap::new();
    for sample in samples {
        *counts.entry(sample).or_default() += 1;
    }
    counts.into_iter().map(|(basis_points, windows)| ShareCount { basis_points, windows }).collect()
}

fn share_counts<'a>(histograms: impl Iterator<Item = &'a Histogram<u64>>) -> Vec<ShareCount> {
    let mut counts = BTreeMap::new();
    for histogram in histograms {
        for step in histogram.iter_recorded() {
            *counts.entry(step.value_iterated_to()).or_default() += step.count_at_value();
        }
    }
    counts.into_iter().map(|(basis_points, windows)| ShareCount { basis_points, windows }).collect()
}

pub(super) fn sketch_ms(sketch: &Sketch, per_mille: u64) -> Option<f64> {
    sketch.quantile(per_mille).map(span_ms)
}

/// How much of a window the run had: less than all for the last.
fn window_length(record: &RunRecord, window: &Window) -> Span {
    (window.start + record.window).min(record.ended.max(window.start)).since(window.start)
}

pub(super) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn rate(count: u64, time: Span) -> Option<f64> {
    (!time.is_zero()).then(|| count as f64 / time.as_secs_f64()).and_then(coarse)
}

pub(super) fn span_ms(span: Span) -> f64 {
    (span.0 as f64 / 1e3).round() / 1e3
}

/// Three decimals: for milliseconds, rates and counts. None for what is no number.
pub(super) fn coarse(x: f64) -> Option<f64> {
    rounded(x, 1e3)
}

/// Six decimals: for shares and factors. None for what is no number.
pub(in crate::report) fn fine(x: f64) -> Option<f64> {
    rounded(x, 1e6)
}

fn rounded(x: f64, scale: f64) -> Option<f64> {
    // Adding zero turns -0 into 0.
    x.is_finite().then(|| (x * scale).round() / scale + 0.0)
}
