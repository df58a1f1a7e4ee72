//! Where a run is looked at: at our own clients, or at the tap of one of the plan's proxies.
//!
//! A tap's windows read like our clients' ([`RunRecord::at_tap`]), so health, recovery and gates are judged there as they are here. What differs
//! is said here: a tap has a baseline of its own, which must be healthy like ours (of `steady_state.require` those figures that it knows); and where
//! it could not tell repeats from new requests it gives no evidence of retries, which a recovery needs as well.
//!
//! A service that asks for less than its share is not well: it may refuse its own callers. So a recovery at a tap compares what comes through there with
//! what our clients' load asks for, at the rate of the baseline: requests there for each operation that was offered to the service.

use super::baseline::{Measured, measure};
use super::config::{Conditions, SteadyState};
use super::verdict::Judgement;
use crate::metrics::RunRecord;
use std::collections::BTreeMap;

/// A run as it is seen at a tap.
#[derive(Clone, Debug)]
pub struct View {
    /// Its windows are the tap's.
    pub record: RunRecord,
    /// The same where at least as much was offered as our clients' load asks for; for the recovery.
    pub awaited: RunRecord,
    /// The baseline there.
    pub measured: Measured,
    /// Why nothing can be said of retries there; none where it can.
    pub doubt: Option<String>,
}

/// The views that a judgement asks for, by the name of the tap; none of a tap where nothing was measured.
pub fn views(record: &RunRecord, judgement: &Judgement, operations: u64) -> BTreeMap<String, Option<View>> {
    let recovery = judgement.recovery.iter().filter_map(|recovery| recovery.at.as_ref()).map(|at| &at.value);
    let gates = judgement.gates.iter().filter_map(|gate| gate.at.as_ref());
    let names = recovery.chain(gates).cloned();
    names.map(|name| (name.clone(), view(record, judgement.steady.as_ref(), operations, &name))).collect()
}

fn view(record: &RunRecord, steady: Option<&SteadyState>, operations: u64, name: &str) -> Option<View> {
    let doubt = record.taps.iter().find(|tap| tap.name == name)?.doubt();
    let seen = record.at_tap(name)?;
    let known = |steady: &SteadyState| {
        let require = steady.require.0.iter().filter(|condition| condition.figure.known_at_taps()).cloned().collect();
        SteadyState { require: Conditions(require), ..steady.clone() }
    };
    let measured = measure(&seen, steady.map(known).as_ref(), operations);
    let awaited = awaited(record, &seen, &measured);
    Some(View { record: seen, awaited, measured, doubt })
}

/// The run at a tap with the load there that our clients' makes of it, where that is more than came.
fn awaited(ours: &RunRecord, seen: &RunRecord, measured: &Measured) -> RunRecord {
    let mut awaited = seen.clone();
    let Some(baseline) = &measured.baseline else { return awaited };
    let offered = |record: &RunRecord| baseline.windows_of(record).iter().map(|window| window.all.offered).sum::<u64>() as f64;
    let (asked, came) = (offered(ours), offered(seen));
    if asked > 0.0 {
        for (window, ours) in awaited.windows.iter_mut().zip(&ours.windows) {
            let due = (ours.all.offered as f64 * came / asked).round() as u64;
            window.all.offered = window.all.offered.max(due);
        }
    }
    awaited
}

/// What is said where a plan asks for a tap and the run has none.
pub fn nothing_measured(name: &str) -> String {
    format!("nothing was measured at {name}: only a live run has that proxy")
}

#[cfg(test)]
mod tests {
    use super::super::config::{Class, During, GateConfig, RecoveryConfig};
    use super::super::scenario::{Scenario, condition};
    use super::super::{Outcome, Status, judge};
    use super::*;
    use crate::config::{At, Place};
    use crate::metrics::{Figure, TapRecord, TapWindow};
    use crate::time::{Span, Timestamp};

    /// Thirty good seconds, an outage of ten, forty more good ones at our clients; at the tap what `after` makes of each of the last forty.
    fn record(after: impl Fn(u64) -> TapWindow) -> RunRecord {
        let mut record = Scenario::new().good(30).fault(10, |w| w).good(40).record();
        let latency = || std::iter::repeat_n(Span::from_millis(20), 100).collect();
        let of = |second: u64| match second {
            0..30 => TapWindow { requests: 100, statuses: [(200, 100)].into(), latency: latency(), ..TapWindow::default() },
            30..40 => TapWindow { requests: 300, repeats: 200, statuses: [(503, 300)].into(), ..TapWindow::default() },
            _ => after(second),
        };
        let windows = (0..80).map(|second| TapWindow { start: Timestamp::ZERO + Span::from_secs(second), ..of(second) });
        record.taps = vec![TapRecord { name: "provider".into(), windows: windows.collect(), ..TapRecord::default() }];
        record
    }

    fn well(_: u64) -> TapWindow {
        let latency = std::iter::repeat_n(Span::from_millis(20), 100).collect();
        TapWindow { requests: 100, statuses: [(200, 100)].into(), latency, ..TapWindow::default() }
    }

    /// A service that calls a tenth of what it is asked for, and refuses its callers the rest; or none of it.
    fn shed(_: u64) -> TapWindow {
        let latency = std::iter::repeat_n(Span::from_millis(20), 10).collect();
        TapWindow { requests: 10, statuses: [(200, 10)].into(), latency, ..TapWindow::default() }
    }

    fn silent(_: u64) -> TapWindow {
        TapWindow::default()
    }

    fn storm(second: u64) -> TapWindow {
        let latency = std::iter::repeat_n(Span::from_millis(900), 600).collect();
        let statuses = [(200, 30), (503, 570)].into();
        TapWindow { requests: 600, repeats: 500, statuses, latency, in_flight: second * 10, ..TapWindow::default() }
    }

    fn asking(at: Option<&str>, gates: &[(Figure, &str, Option<&str>)]) -> Judgement {
        let secs = Span::from_secs;
        let at = at.map(|at| At { value: at.to_string(), place: Place::default() });
        let (after, horizon, require) = (None, None, Conditions::default());
        let recovery =
            RecoveryConfig { at, after, within: secs(20), hold: secs(10), horizon, span: secs(5), operations: 200, require };
        let place = Place::default();
        let gate = |(figure, text, at): &(Figure, &str, Option<&str>)| GateConfig {
            condition: condition(*figure, text),
            during: During::Step("outage".into()),
            during_place: place,
            fleet: None,
            at: at.map(str::to_string),
            place,
        };
        Judgement { recovery: Some(recovery), gates: gates.iter().map(gate).collect(), ..Judgement::default() }
    }

    #[test]
    fn a_recovery_is_judged_where_the_plan_says() {
        for (at, after, class) in [
            (None, storm as fn(u64) -> TapWindow, Class::Recovered),
            (Some("provider"), well, Class::Recovered),
            (Some("provider"), storm, Class::Stuck),
            (Some("provider"), shed, Class::Stuck),
            (Some("provider"), silent, Class::Stuck),
            (Some("other"), well, Class::Inconclusive),
        ] {
            let recovery = judge(&record(after), &asking(at, &[])).recovery.unwrap();
            assert_eq!(recovery.class, class, "{at:?}: {}", recovery.sentence);
            assert_eq!(recovery.at.as_deref(), at);
        }
    }

    #[test]
    fn gates_look_at_the_tap_that_they_name() {
        let gates = [
            (Figure::RetryShare, "<= 30%", Some("provider")),
            (Figure::Amplification, ">= 3x", Some("provider")),
            (Figure::Attempts, ">= 2.9x baseline", Some("provider")),
            (Figure::Attempts, ">= 100000/s", None),
            (Figure::Errors, "<= 1%", Some("other")),
        ];
        let findings = judge(&record(well), &asking(Some("provider"), &gates)).findings;
        let statuses: Vec<Status> = findings.iter().map(|finding| finding.status).collect();
        assert_eq!(statuses, [Status::Fail, Status::Pass, Status::Pass, Status::Fail, Status::Inconclusive], "{findings:?}");
        assert_eq!(findings[0].gate, "retry_share at provider <= 30% during outage");
        assert_eq!(findings[0].observed, "66.7%");
    }

    #[test]
    fn a_tap_whose_baseline_is_not_healthy_or_that_cannot_tell_is_no_evidence() {
        let mut sick = record(well);
        sick.taps[0].windows[3].statuses = [(200, 10), (500, 90)].into();
        let verdict = judge(&sick, &asking(Some("provider"), &[]));
        assert_eq!(verdict.outcome, Outcome::Inconclusive);
        assert!(verdict.reasons.iter().any(|reason| reason.contains("at provider")), "{:?}", verdict.reasons);

        let mut unclear = record(well);
        unclear.taps[0].windows.iter_mut().for_each(|window| window.unknown = window.requests);
        let gates = [(Figure::RetryShare, "<= 90%", Some("provider")), (Figure::Errors, ">= 99%", Some("provider"))];
        let verdict = judge(&unclear, &asking(Some("provider"), &gates));
        assert_eq!(verdict.recovery.unwrap().class, Class::Inconclusive);
        let statuses: Vec<Status> = verdict.findings.iter().map(|finding| finding.status).collect();
        assert_eq!(statuses, [Status::Inconclusive, Status::Pass], "errors are errors, whoever asks again");
    }
}
