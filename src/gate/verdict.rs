//! A run's record to its verdict: what happened, whether that is what was wanted, and why.
//!
//! Outcomes, the gravest first: *aborted* where it could not be confirmed that the faults were removed, or where the run was
//! stopped; *fail*; *inconclusive*; *pass*. A run whose measurements cannot be trusted (the generator lagged, windows are missing) says nothing of its
//! target, good or bad: its class and its gates are inconclusive, all but gates on the lag itself.

use super::baseline::{Baseline, Measured, measure};
use super::condition::Bound;
use super::config::{Class, During, Expect, GateConfig, RecoveryConfig, SteadyState, StopConfig};
use super::findings::{Evidence, Finding, Status, find};
use super::recovery::{Recovery, assess, fault_of};
use super::trust::distrust;
use super::view::{View, nothing_measured, views};
use crate::metrics::{ActionRecord, RunRecord, StopReason};
use crate::time::{Span, Timestamp};

/// The least number of operations of a baseline where the plan has no `recovery`.
pub(crate) const LEAST_OPERATIONS: u64 = 200;

/// What a plan asks of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// The baseline.
    pub steady: Option<SteadyState>,
    /// What counts as recovered.
    pub recovery: Option<RecoveryConfig>,
    /// Checks on the run.
    pub gates: Vec<GateConfig>,
    /// What a plan that shows a failure expects.
    pub expect: Option<Expect>,
    /// When the run is stopped before its end.
    pub stop_if: Vec<StopConfig>,
    /// The smallest timeout, deadline or `success.within` of the plan; zero where it has none.
    pub smallest_timeout: Span,
    /// The names of the fleets, by number.
    pub fleet_names: Vec<String>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// What was wanted, shown.
    Pass,
    /// Not what was wanted.
    Fail,
    /// Not enough evidence.
    Inconclusive,
    /// Stopped, or left with faults that may still act.
    Aborted,
}

impl Outcome {
    /// Its word in results.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Inconclusive => "inconclusive",
            Self::Aborted => "aborted",
        }
    }
}

/// A run's verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// How it ended.
    pub outcome: Outcome,
    /// What became of it once the fault had ended; none where the plan does not ask.
    pub recovery: Option<Recovery>,
    /// The baseline; none where there is none.
    pub baseline: Option<Baseline>,
    /// One for each gate, in the order of the plan.
    pub findings: Vec<Finding>,
    /// Why it did not pass, the gravest first; empty where it did.
    pub reasons: Vec<String>,
}

/// Judges a run.
pub fn judge(record: &RunRecord, judgement: &Judgement) -> Verdict {
    let config = judgement.recovery.as_ref();
    let measured = measure(record, judgement.steady.as_ref(), config.map_or(LEAST_OPERATIONS, |c| c.operations));
    let after = config.and_then(|c| c.after.as_ref()).map(|after| after.value.as_str());
    let fault = fault_of(record, after);
    let distrust = distrust(record, judgement, &measured, fault);
    let views = views(record, judgement, config.map_or(LEAST_OPERATIONS, |c| c.operations));
    let recovery = config.map(|config| {
        let at = config.at.as_ref().map(|at| at.value.as_str());
        let seen = match at.map(|at| views.get(at).and_then(Option::as_ref)) {
            None => Ok((record, &measured, None)),
            Some(Some(view)) => Ok((&view.awaited, &view.measured, view.doubt.as_ref())),
            Some(None) => Err(nothing_measured(at.unwrap_or_default())),
        };
        let recovery = match (seen, fault, distrust.first()) {
            (_, _, Some(reason)) => Recovery::inconclusive(fault, reason),
            (Err(reason), ..) => Recovery::inconclusive(fault, &reason),
            (_, None, _) => Recovery::inconclusive(None, &no_fault(after)),
            (_, Some(fault), _) if fault.touched == 0 => Recovery::inconclusive(Some(fault), &untouched(&fault.name)),
            (Ok((_, _, Some(doubt))), ..) => Recovery::inconclusive(fault, doubt),
            (Ok((record, Measured { baseline: Some(baseline), trouble: None }, None)), Some(fault), _) => {
                assess(record, baseline, config, fault)
            }
            (Ok((_, measured, _)), ..) => {
                Recovery::inconclusive(fault, measured.trouble.as_deref().unwrap_or("there is no baseline"))
            }
        };
        told_of(recovery, at)
    });
    let evidence = Evidence {
        record,
        baseline: &measured,
        recovery: recovery.as_ref(),
        fault,
        fleets: &judgement.fleet_names,
        distrust: distrust.first().map(String::as_str),
        doubt: None,
    };
    let find_at = |gate: &GateConfig| match gate.at.as_ref().map(|at| (at, views.get(at).and_then(Option::as_ref))) {
        None => find(gate, &evidence),
        Some((_, Some(View { record, measured, doubt, .. }))) => {
            find(gate, &Evidence { record, baseline: measured, doubt: doubt.as_deref(), ..evidence })
        }
        Some((at, None)) => find(gate, &Evidence { distrust: Some(&nothing_measured(at)), ..evidence }),
    };
    let findings: Vec<Finding> = judgement.gates.iter().map(find_at).collect();
    let mut doubts = doubts(record, judgement, &measured, distrust);
    let troubles = views.iter().filter_map(|(at, view)| Some((at, view.as_ref()?.measured.trouble.as_ref()?)));
    doubts.extend(troubles.filter(|_| needs_baseline(judgement)).map(|(at, trouble)| format!("at {at}: {trouble}")));
    conclude(record, judgement, Case { measured, recovery, findings, doubts })
}

/// A recovery that says where it was seen.
fn told_of(recovery: Recovery, at: Option<&str>) -> Recovery {
    let Some(at) = at else { return recovery };
    Recovery { at: Some(at.to_string()), sentence: format!("at {at}: {}", recovery.sentence), ..recovery }
}

struct Case {
    measured: Measured,
    recovery: Option<Recovery>,
    findings: Vec<Finding>,
    doubts: Vec<String>,
}

fn conclude(record: &RunRecord, judgement: &Judgement, case: Case) -> Verdict {
    let aborted = aborted(record);
    let class = class_reason(judgement, case.recovery.as_ref());
    let (mut failed, mut unclear) = (Vec::new(), Vec::new());
    match class {
        Some((Status::Fail, reason)) => failed.push(reason),
        Some((Status::Inconclusive, reason)) => unclear.push(reason),
        _ => {}
    }
    for finding in &case.findings {
        match finding.status {
            Status::Pass => {}
            Status::Fail => failed.push(format!("{}: it was {}", finding.gate, finding.observed)),
            Status::Inconclusive => unclear.push(format!("{}: {}", finding.gate, finding.observed)),
        }
    }
    unclear.splice(0..0, case.doubts);
    let outcome = match (aborted.is_empty(), failed.is_empty(), unclear.is_empty()) {
        (false, ..) => Outcome::Aborted,
        (_, false, _) => Outcome::Fail,
        (_, _, false) => Outcome::Inconclusive,
        _ => Outcome::Pass,
    };
    let mut reasons: Vec<String> = Vec::new();
    for reason in aborted.into_iter().chain(failed).chain(unclear) {
        // What makes the class inconclusive is often a doubt already.
        if !reasons.iter().any(|r| reason == *r || reason == format!("{}: {r}", Class::Inconclusive.word())) {
            reasons.push(reason);
        }
    }
    Verdict { outcome, recovery: case.recovery, baseline: case.measured.baseline, findings: case.findings, reasons }
}

/// Whether the class is what was wanted, and why not.
fn class_reason(judgement: &Judgement, recovery: Option<&Recovery>) -> Option<(Status, String)> {
    let wanted = judgement.expect.as_ref().map(|e| e.class);
    let Some(recovery) = recovery else {
        return wanted.map(|class| {
            let reason = format!("expected {}, but the plan has no `recovery` to judge: add one", class.word());
            (Status::Inconclusive, reason)
        });
    };
    let said = format!("{}: {}", recovery.class.word(), recovery.sentence);
    match (recovery.class, wanted) {
        (Class::Inconclusive, _) => Some((Status::Inconclusive, said)),
        (class, Some(wanted)) if class != wanted => Some((Status::Fail, format!("expected {}, got {said}", wanted.word()))),
        (_, Some(_)) | (Class::Recovered, None) => None,
        (_, None) => Some((Status::Fail, said)),
    }
}

/// Why the run was not carried to its end, the gravest first.
fn aborted(record: &RunRecord) -> Vec<String> {
    let cleanup = (!record.cleanup_confirmed).then(|| unconfirmed(record));
    let stopped = record.stopped.as_ref().map(|stopped| match stopped {
        StopReason::StopCondition(seen) => format!("stopped by a stop condition: {seen}"),
        StopReason::Signal(2) => format!("interrupted at {} of {}", shown(record.ended), record.length),
        StopReason::Signal(_) => format!("stopped by {stopped} at {} of {}", shown(record.ended), record.length),
        StopReason::Operator => format!("stopped by the operator at {} of {}", shown(record.ended), record.length),
        StopReason::Internal(what) => format!("broken off: {what}"),
    });
    cleanup.into_iter().chain(stopped).collect()
}

/// What may still be in force.
fn unconfirmed(record: &RunRecord) -> String {
    if !record.left.is_empty() {
        let left = record.left.iter().map(|left| format!("{}; by hand: {}", left.what, left.by_hand.join("; ")));
        return left.collect::<Vec<_>>().join("; ");
    }
    let undone = |action: &&ActionRecord| action.undone == Some(false);
    let names: Vec<String> =
        record.actions.iter().filter(undone).map(|action| format!("`{}` ({})", action.name, action.kind)).collect();
    match names.is_empty() {
        true => "it could not be confirmed that every fault was removed".to_string(),
        false => format!("the undo of {} failed: what it did may still be in force, undo it by hand", names.join(", ")),
    }
}

/// What keeps the run from passing, whatever its class and gates.
fn doubts(record: &RunRecord, judgement: &Judgement, measured: &Measured, distrust: Vec<String>) -> Vec<String> {
    let mut doubts = distrust;
    doubts.extend(measured.trouble.clone().filter(|_| needs_baseline(judgement)));
    let took_place = record.faults.iter().filter(|f| f.from < record.ended);
    doubts.extend(took_place.filter(|f| f.touched == 0 && f.failed.is_none()).map(|f| untouched(&f.name)));
    if record.stopped.is_none() && record.ended + record.window < Timestamp::ZERO + record.length {
        doubts.push(format!("the run ended early, at {} of {}", shown(record.ended), record.length));
    }
    if judgement.recovery.is_none() && judgement.gates.is_empty() {
        let advice = "nothing was asked of this run: add `recovery` and a fault in `timeline`, or `gates`";
        doubts.push(advice.to_string());
    }
    doubts
}

fn needs_baseline(judgement: &Judgement) -> bool {
    let relative = |gate: &GateConfig| matches!(gate.condition.comparison.bound, Bound::OfBaseline(_));
    judgement.steady.is_some()
        || judgement.recovery.is_some()
        || judgement.gates.iter().any(|gate| relative(gate) || gate.during == During::Baseline)
}

fn untouched(fault: &str) -> String {
    format!("the fault {fault} touched no request: there was nothing to recover from")
}

fn no_fault(after: Option<&str>) -> String {
    match after {
        Some(name) => format!("the fault {name} did not take place: there was nothing to recover from"),
        None => "no fault took place: there was nothing to recover from".to_string(),
    }
}

/// A moment without its nanoseconds.
fn shown(at: Timestamp) -> Span {
    Span::from_millis(at.as_millis())
}

#[cfg(test)]
mod tests {
    use super::super::config::Conditions;
    use super::super::scenario::{Scenario, condition};
    use super::*;
    use crate::config::Place;
    use crate::metrics::{ActionOutcome, Figure, Left, LimitReached, ServiceCounts, Sketch};
    use Outcome::{Aborted, Fail, Inconclusive, Pass};

    fn gate(name: Figure, text: &str, during: During) -> GateConfig {
        let place = Place { line: 7, ..Place::default() };
        GateConfig { condition: condition(name, text), during, during_place: place, fleet: None, at: None, place }
    }

    /// A recovery within 20 s that holds for 10 s, and these gates.
    fn asking(gates: &[(Figure, &str)]) -> Judgement {
        let secs = Span::from_secs;
        let (after, horizon, require) = (None, None, Conditions::default());
        let recovery = RecoveryConfig {
            at: None,
            after,
            within: secs(20),
            hold: secs(10),
            horizon,
            span: secs(5),
            operations: 200,
            require,
        };
        let gates = gates.iter().map(|(name, text)| gate(*name, text, During::Run)).collect();
        let fleet_names = vec!["app".to_string()];
        Judgement { recovery: Some(recovery), gates, fleet_names, ..Judgement::default() }
    }

    fn expecting(class: Class, gates: &[(Figure, &str)]) -> Judgement {
        Judgement { expect: Some(Expect { class }), ..asking(gates) }
    }

    fn gates_only(gates: &[(Figure, &str)]) -> Judgement {
        Judgement { recovery: None, ..asking(gates) }
    }

    fn well() -> RunRecord {
        Scenario::new().good(30).fault(10, |w| w).good(40).record()
    }

    fn stuck() -> RunRecord {
        Scenario::new().good(30).fault(10, |w| w).with(40, |w| w.goodput(0.0).retries(3.0)).record()
    }

    fn but(mut record: RunRecord, change: impl Fn(&mut RunRecord)) -> RunRecord {
        change(&mut record);
        record
    }

    fn check(name: &str, record: &RunRecord, judgement: &Judgement, outcome: Outcome, reason: &str) -> Verdict {
        let verdict = judge(record, judgement);
        assert_eq!(verdict.outcome, outcome, "{name}: {verdict:#?}");
        assert_eq!(verdict.reasons.is_empty(), outcome == Pass, "{name}: {:?}", verdict.reasons);
        let said = reason.is_empty() || verdict.reasons[0].contains(reason);
        assert!(said, "{name}: the first of {:?} does not say `{reason}`", verdict.reasons);
        verdict
    }

    const HOLDS: (Figure, &str) = (Figure::Amplification, "<= 1.3x");
    const BROKEN: (Figure, &str) = (Figure::Failed, "== 0");
    const UNKNOWN: (Figure, &str) = (Figure::WastedWork, "<= 5%");

    #[test]
    fn outcome_from_class_and_findings() {
        for (name, record, judgement, outcome, reason) in [
            ("recovered", well(), asking(&[]), Pass, ""),
            ("recovered, and a gate holds", well(), asking(&[HOLDS]), Pass, ""),
            ("recovered, and a gate breaks", well(), asking(&[HOLDS, BROKEN]), Fail, "failed == 0: it was 4000"),
            ("recovered, and a gate without evidence", well(), asking(&[HOLDS, UNKNOWN]), Inconclusive, "wasted_work"),
            ("fail before inconclusive", well(), asking(&[UNKNOWN, BROKEN]), Fail, "failed"),
            ("stuck", stuck(), asking(&[]), Fail, "STUCK: 40s after outage"),
            ("stuck, and a gate without evidence", stuck(), asking(&[UNKNOWN]), Fail, "STUCK"),
            ("expected", stuck(), expecting(Class::Stuck, &[]), Pass, ""),
            ("expected, but a gate breaks", stuck(), expecting(Class::Stuck, &[BROKEN]), Fail, "failed"),
            ("expected, but a gate without evidence", stuck(), expecting(Class::Stuck, &[UNKNOWN]), Inconclusive, "wasted_work"),
            ("expected something else", well(), expecting(Class::Stuck, &[]), Fail, "expected STUCK, got RECOVERED"),
            (
                "expected, and no recovery",
                well(),
                Judgement { recovery: None, ..expecting(Class::Stuck, &[HOLDS]) },
                Inconclusive,
                "add one",
            ),
            ("gates alone hold", well(), gates_only(&[HOLDS]), Pass, ""),
            ("gates alone break", well(), gates_only(&[BROKEN]), Fail, "failed"),
            ("gates alone, no fault", Scenario::new().good(30).record(), gates_only(&[BROKEN]), Pass, ""),
            ("nothing asked", well(), gates_only(&[]), Inconclusive, "add `recovery`"),
        ] {
            check(name, &record, &judgement, outcome, reason);
        }
    }

    #[test]
    fn no_evidence_no_pass() {
        let lagging = |record| {
            but(record, |r| {
                r.windows.iter_mut().for_each(|w| w.all.lag = std::iter::repeat_n(Span::from_millis(30), 50).collect::<Sketch>())
            })
        };
        let untouched = || but(well(), |r| r.faults[0].touched = 0);
        let ill = || Scenario::new().with(30, |w| w.goodput(0.9)).fault(10, |w| w).good(40).record();
        let patient = |judgement| Judgement { smallest_timeout: Span::from_secs(1), ..judgement };
        for (name, record, judgement, outcome, reason) in [
            ("nothing touched", untouched(), asking(&[]), Inconclusive, "outage touched no request"),
            ("nothing touched, gates alone", untouched(), gates_only(&[HOLDS]), Inconclusive, "touched no request"),
            ("nothing touched, a gate breaks", untouched(), asking(&[BROKEN]), Fail, "failed"),
            ("not healthy before", ill(), asking(&[]), Inconclusive, "not healthy: success was 90%"),
            ("not healthy before, expected", ill(), expecting(Class::Inconclusive, &[]), Inconclusive, "not healthy"),
            ("not healthy before, a gate breaks", ill(), asking(&[BROKEN]), Fail, "failed"),
            ("not healthy before, gates alone", ill(), gates_only(&[HOLDS]), Pass, ""),
            (
                "too few",
                Scenario::new().rate(2.0).good(30).fault(10, |w| w).good(40).record(),
                asking(&[]),
                Inconclusive,
                "too thin",
            ),
            ("a late generator", lagging(well()), asking(&[HOLDS]), Inconclusive, "the generator lagged: p99 is 30"),
            ("a late generator proves no failure", lagging(stuck()), asking(&[BROKEN]), Inconclusive, "lagged"),
            ("late, but timeouts are long", lagging(well()), patient(gates_only(&[HOLDS])), Pass, ""),
            (
                "late, timeouts are long, latency is judged",
                lagging(well()),
                patient(asking(&[])),
                Inconclusive,
                "20ms is the most",
            ),
            ("late, and that is a gate", lagging(well()), asking(&[(Figure::LagP99, "<= 5ms")]), Fail, "lag_p99"),
            (
                "a fault that failed",
                but(well(), |r| r.faults[0].failed = Some("500".into())),
                asking(&[HOLDS]),
                Inconclusive,
                "did not happen as the plan has it: 500",
            ),
            (
                "a fault that never was",
                but(well(), never),
                asking(&[HOLDS]),
                Inconclusive,
                "did not happen as the plan has it: 500",
            ),
            ("windows missing", but(well(), |r| drop(r.windows.drain(70..))), asking(&[]), Inconclusive, "10 windows"),
            ("a window missing", but(well(), |r| drop(r.windows.remove(50))), asking(&[]), Inconclusive, "missing"),
            ("shards that owe windows", but(well(), owe), asking(&[HOLDS]), Inconclusive, "2 windows"),
            (
                "ended early",
                but(well(), |r| r.length = Span::from_secs(90)),
                asking(&[]),
                Inconclusive,
                "ended early, at 1m20s of 1m30s",
            ),
            ("nothing at all", RunRecord { cleanup_confirmed: true, ..RunRecord::default() }, asking(&[HOLDS]), Inconclusive, ""),
        ] {
            check(name, &record, &judgement, outcome, reason);
        }
    }

    #[test]
    fn a_gate_that_failed_decides_and_what_lacks_evidence_is_said_beside_it() {
        let ill = Scenario::new().with(30, |w| w.goodput(0.9)).fault(10, |w| w).good(40).record();
        let relative = (Figure::P99, "<= 2x baseline");
        let verdict = check("ill", &ill, &asking(&[BROKEN, relative]), Fail, "failed");
        let statuses: Vec<Status> = verdict.findings.iter().map(|finding| finding.status).collect();
        assert_eq!(statuses, [Status::Fail, Status::Inconclusive], "what is compared with that baseline has no evidence");
        assert!(verdict.reasons.iter().any(|reason| reason.contains("the baseline was not healthy")), "{:?}", verdict.reasons);
        assert_eq!(verdict.recovery.unwrap().class, Class::Inconclusive);
    }

    fn never(record: &mut RunRecord) {
        let fault = &mut record.faults[0];
        (fault.to, fault.touched, fault.failed) = (fault.from, 0, Some("500".into()));
    }

    fn owe(record: &mut RunRecord) {
        record.limits_reached.push(LimitReached { limit: "windows".into(), count: 2 });
    }

    #[test]
    fn several_at_once() {
        let stopped = |record, reason: StopReason| but(record, |r| r.stopped = Some(reason.clone()));
        let condition = || StopReason::StopCondition("attempts > 3500/s for 10s".into());
        let dirty = |record| but(record, |r| r.cleanup_confirmed = false);
        let undo = |name: &str, undone| ActionRecord {
            name: name.into(),
            kind: "exec",
            fleet: None,
            at: Timestamp::ZERO,
            outcome: ActionOutcome::Done,
            affected: None,
            detail: String::new(),
            undone: Some(undone),
        };
        let two = || Left { what: "it may still be there: gone".into(), by_hand: vec!["curl a".into(), "curl b".into()] };
        let outside = but(dirty(well()), |r| r.left = vec![two()]);
        let left = but(dirty(well()), |r| r.actions = vec![undo("hold", true), undo("cut", false)]);
        for (name, record, reason) in [
            ("something is left outside", outside, "may still be there: gone; by hand: curl a; curl b"),
            ("an undo failed", left, "the undo of `cut` (exec) failed"),
            ("a stop condition", stopped(well(), condition()), "stop condition: attempts"),
            ("a signal", stopped(stuck(), StopReason::Signal(2)), "interrupted at 1m20s of 1m20s"),
            ("another signal", stopped(stuck(), StopReason::Signal(15)), "stopped by SIGTERM at"),
            ("the operator", stopped(stuck(), StopReason::Operator), "stopped by the operator at 1m20s of 1m20s"),
            ("a hangup", stopped(stuck(), StopReason::Signal(1)), "stopped by SIGHUP at"),
            ("the target died", stopped(well(), StopReason::Internal("the target died".into())), "the target died"),
            ("cleanup unconfirmed", dirty(well()), "could not be confirmed"),
            ("cleanup unconfirmed comes first", dirty(stopped(stuck(), condition())), "could not be confirmed"),
        ] {
            check(name, &record, &asking(&[BROKEN, UNKNOWN]), Aborted, reason);
        }
        let verdict = judge(&dirty(stopped(stuck(), condition())), &asking(&[UNKNOWN, BROKEN]));
        let starts: Vec<&str> = verdict.reasons.iter().map(|r| r.split(' ').next().unwrap()).collect();
        assert_eq!(starts, ["it", "stopped", "STUCK:", "failed", "wasted_work"], "the gravest first");
    }

    #[test]
    fn gates_look_where_they_are_told() {
        let record =
            but(Scenario::new().good(30).fault(10, |w| w).with(20, |w| w.retries(0.5).errors(0.0)).good(20).record(), |r| {
                r.service = Some(ServiceCounts {
                    of: crate::service::Counts { useful: Span::from_secs(30), wasted: Span::from_secs(10), ..Default::default() },
                    ..Default::default()
                });
            });
        let step = || During::Step("outage".into());
        for (name, text, during, status, observed) in [
            (Figure::Success, ">= 99%", During::Baseline, Status::Pass, "100%"),
            (Figure::Success, "== 0%", step(), Status::Pass, "0%"),
            (Figure::Success, ">= 99%", During::Run, Status::Fail, "87.5%"),
            (Figure::Success, ">= 99%", During::Recovery, Status::Pass, "100%"),
            (Figure::Amplification, "<= 1.3x", During::Recovery, Status::Pass, "1.25x"),
            (Figure::PeakAttempts, "<= 1.4x baseline", During::Recovery, Status::Fail, "600/s"),
            (Figure::PeakAttempts, "<= 1.6x baseline", During::Recovery, Status::Pass, "600/s"),
            (Figure::P99, "<= 25ms", step(), Status::Inconclusive, "no evidence"),
            (Figure::Success, ">= 99%", During::Step("flood".into()), Status::Inconclusive, "did not take place"),
            (Figure::RecoveryTime, "<= 25s", During::Run, Status::Pass, "20s"),
            (Figure::RecoveryTime, "<= 2x baseline", During::Run, Status::Inconclusive, "the baseline has no recovery_time"),
            (Figure::Relapses, "== 0", During::Run, Status::Pass, "0"),
            (Figure::ErrorWindow, "<= 10s", During::Run, Status::Pass, "10s"),
            (Figure::WastedWork, "<= 5%", During::Run, Status::Fail, "25%"),
            (Figure::WastedWork, "<= 5%", During::Recovery, Status::Inconclusive, "whole run only"),
        ] {
            let judgement = Judgement { gates: vec![gate(name, text, during)], ..asking(&[]) };
            let finding = judge(&record, &judgement).findings.remove(0);
            assert_eq!(finding.status, status, "{finding:?}");
            assert!(finding.observed.contains(observed), "{finding:?}");
            assert_eq!(finding.place.line, 7);
        }
    }

    #[test]
    fn what_was_seen_never_reads_as_if_the_gate_held() {
        let run = Scenario::new().good(30).fault(10, |w| w.goodput(0.9584)).good(40).record();
        for (figure, text, during, status, observed) in [
            (Figure::Success, ">= 99.5%", During::Run, Status::Fail, "99.47%"),
            (Figure::Success, ">= 99%", During::Run, Status::Pass, "99.5%"),
        ] {
            let judgement = Judgement { gates: vec![gate(figure, text, during)], ..asking(&[]) };
            let finding = judge(&run, &judgement).findings.remove(0);
            assert_eq!((finding.status, finding.observed.as_str()), (status, observed), "{finding:?}");
        }
    }

    #[test]
    fn findings_name_gate_bound_and_fleet() {
        let find = |fleet: &str, text| {
            let gate = GateConfig { fleet: Some(fleet.into()), ..gate(Figure::PeakAttempts, text, During::Recovery) };
            judge(&well(), &Judgement { gates: vec![gate], ..asking(&[]) }).findings.remove(0)
        };
        let finding = find("app", "<= 2x baseline");
        assert_eq!(finding.gate, "peak_attempts of app <= 2x baseline during recovery");
        assert_eq!((finding.status, finding.value, finding.bound), (Status::Pass, Some(400.0), Some(800.0)));
        assert_eq!(finding.wanted, "<= 2x baseline (800/s)");
        assert_eq!(find("app", "<= 5/s").wanted, "<= 5/s");
        let unknown = find("web", "<= 2x baseline");
        assert_eq!((unknown.status, unknown.observed.as_str()), (Status::Inconclusive, "there is no fleet `web`"));
    }

    #[test]
    fn a_recovery_that_never_came_is_longer_than_what_was_seen() {
        let find = |text| {
            let gates = &[(Figure::RecoveryTime, text)];
            judge(&stuck(), &asking(gates)).findings.remove(0)
        };
        assert_eq!((find("<= 30s").status, find("<= 30s").observed.as_str()), (Status::Fail, "more than 40s"));
        assert_eq!(find("<= 50s").status, Status::Inconclusive);
        assert_eq!(find(">= 30s").status, Status::Pass);
        let relapses = judge(&stuck(), &asking(&[(Figure::Relapses, "== 0")])).findings.remove(0);
        assert_eq!(relapses.status, Status::Inconclusive, "nothing recovered, so nothing could be lost");
    }
}
