//! Whether a run's measurements can be trusted: the generator kept time, no window is missing, and what the timeline wanted done was done.
//!
//! The p99 of generator lag may not exceed the larger of 20 ms and a tenth of the smallest timeout or latency threshold of
//! the plan, multiples of the baseline and the defaults of `recovery` worked out. It is looked at over the whole run, and by itself
//! over the two stretches that a recovery is judged by: the baseline, and what follows the fault. So a long quiet run does not hide
//! that the generator was late where it counts. One of these stretches with fewer lags than a gate on a p99 takes is not looked at by itself;
//! the whole run always is.

use super::baseline::Measured;
use super::condition::{Bound, Condition};
use super::config::StopTrigger;
use super::health::Health;
use super::recovery::{whole_windows, windows_from};
use super::verdict::Judgement;
use crate::metrics::{ActionOutcome, FaultRecord, Figure, RunRecord, Window, figure, samples};
use crate::time::Span;

/// The lag that is never too much.
const LEAST_LAG: f64 = 0.020;
/// The least number of lags of a stretch whose p99 means something.
const LEAST_SAMPLES: u64 = 100;

/// Why the run's measurements cannot be trusted, the gravest first; empty where they can. `fault` is the one that the run is to
/// recover from.
pub fn distrust(record: &RunRecord, judgement: &Judgement, measured: &Measured, fault: Option<&FaultRecord>) -> Vec<String> {
    let most = LEAST_LAG.max(smallest_limit(record, judgement, measured) / 10.0);
    let missing = missing_windows(record);
    let missing = (missing > 0).then(|| format!("{missing} windows of the series are missing or incomplete"));
    late(record, measured, fault, most)
        .into_iter()
        .chain(missing)
        .chain(failed_faults(record))
        .chain(failed_actions(record))
        .collect()
}

/// Where the generator lagged: in the whole run, or else in a stretch that counts.
fn late(record: &RunRecord, measured: &Measured, fault: Option<&FaultRecord>, most: f64) -> Option<String> {
    let baseline = measured.baseline.as_ref().map_or(&[][..], |baseline| baseline.windows_of(record));
    let after = fault.map_or(&[][..], |fault| {
        let end = whole_windows(record);
        &record.windows[windows_from(record, fault.to).min(end)..end]
    });
    let enough = |windows: &[Window]| samples(Figure::LagP99, windows, None) >= LEAST_SAMPLES;
    let (run, stretches) = ((String::new(), &record.windows[..]), [(" in the baseline", baseline), (" after the fault", after)]);
    let stretches =
        stretches.into_iter().filter(|(_, windows)| enough(windows)).map(|(name, windows)| (name.to_string(), windows));
    std::iter::once(run).chain(stretches).find_map(|(name, windows)| {
        let lag = figure(Figure::LagP99, windows, None, record.window).filter(|lag| *lag > most)?;
        let (lag, most) = Figure::LagP99.unit().show_beside(lag, most);
        Some(format!("the generator lagged: p99 is {lag}{name}, and {most} is the most; lower the load or give it more cores"))
    })
}

/// The smallest timeout or latency threshold in seconds; zero where there is none.
fn smallest_limit(record: &RunRecord, judgement: &Judgement, measured: &Measured) -> f64 {
    let timeout = Some(judgement.smallest_timeout).filter(|timeout| !timeout.is_zero()).map(Span::as_secs_f64);
    let stops = judgement.stop_if.iter().filter_map(|stop| match &stop.trigger {
        StopTrigger::Figure(condition) => Some((condition, None)),
        StopTrigger::Check { .. } => None,
    });
    let fleet = |name: &Option<String>| name.as_ref().and_then(|name| judgement.fleet_names.iter().position(|n| n == name));
    let gates = judgement.gates.iter().map(|gate| (&gate.condition, fleet(&gate.fleet)));
    let required = judgement.steady.iter().flat_map(|steady| &steady.require.0).map(|condition| (condition, None));
    let conditions = gates.chain(stops).chain(required);
    let thresholds = conditions.filter_map(|(condition, fleet)| threshold(record, condition, fleet, measured));
    let clauses = judgement.recovery.as_ref().zip(measured.baseline.as_ref()).map(|(config, baseline)| {
        let clauses = Health::new(record, baseline, config).clauses;
        clauses.into_iter().filter(|clause| is_latency(clause.figure)).filter_map(|clause| clause.fixed_bound())
    });
    timeout.into_iter().chain(thresholds).chain(clauses.into_iter().flatten()).reduce(f64::min).unwrap_or(0.0)
}

/// The bound of a condition on a latency, in seconds.
fn threshold(record: &RunRecord, condition: &Condition, fleet: Option<usize>, measured: &Measured) -> Option<f64> {
    match condition.comparison.bound {
        _ if !is_latency(condition.figure) => None,
        Bound::Absolute(seconds) => Some(seconds),
        Bound::OfBaseline(factor) => Some(measured.baseline.as_ref()?.figure(record, condition.figure, fleet)? * factor),
    }
}

fn is_latency(figure: Figure) -> bool {
    matches!(figure, Figure::P50 | Figure::P90 | Figure::P99 | Figure::P999 | Figure::AttemptP99)
}

/// Faults that did not happen as the plan has them.
fn failed_faults(record: &RunRecord) -> impl Iterator<Item = String> {
    let failed = record.faults.iter().filter_map(|fault| Some((&fault.name, fault.failed.as_ref()?)));
    failed.map(|(name, why)| format!("the fault `{name}` did not happen as the plan has it: {why}"))
}

/// What the plan wanted done, and was not: the run is not the one that it describes.
fn failed_actions(record: &RunRecord) -> impl Iterator<Item = String> {
    let failed = record.actions.iter().filter(|action| action.outcome == ActionOutcome::Failed);
    failed.map(|action| format!("the action `{}` failed, so this is not the run of the plan: {}", action.name, action.detail))
}

fn missing_windows(record: &RunRecord) -> u64 {
    let incomplete: u64 = record.limits_reached.iter().filter(|l| l.limit == "windows").map(|l| l.count).sum();
    let due = record.ended.0 / record.window.0.max(1);
    let gaps = record.windows.windows(2).filter(|pair| pair[1].start != pair[0].start + record.window).count();
    incomplete.max(due.saturating_sub(record.windows.len() as u64)) + gaps as u64
}

#[cfg(test)]
mod tests {
    use super::super::baseline::measure;
    use super::super::config::{Conditions, During, GateConfig, RecoveryConfig, StopConfig};
    use super::super::recovery::fault_of;
    use super::super::scenario::{Scenario, condition};
    use super::*;
    use crate::config::Place;
    use std::ops::Range;

    /// Thirty good seconds, an outage of ten, and many more good ones: 20 ms, so the default bound on p99 is 40 ms.
    fn run() -> RunRecord {
        Scenario::new().good(30).fault(10, |w| w).good(4000).record()
    }

    fn lagging(windows: Range<usize>, millis: u64, each: usize) -> RunRecord {
        let mut record = run();
        for window in &mut record.windows[windows] {
            window.all.lag = std::iter::repeat_n(Span::from_millis(millis), each).collect();
        }
        record
    }

    fn reasons(record: &RunRecord, judgement: &Judgement) -> Vec<String> {
        distrust(record, judgement, &measure(record, None, 200), fault_of(record, None))
    }

    fn patient() -> Judgement {
        Judgement { smallest_timeout: Span::from_secs(1), ..Judgement::default() }
    }

    #[test]
    fn lag_is_looked_at_where_it_counts() {
        let short =
            |record: RunRecord| RunRecord { ended: record.windows[60].start, windows: record.windows[..60].to_vec(), ..record };
        for (name, record, says) in [
            ("on time", run(), None),
            ("in the baseline", lagging(0..30, 30, 400), Some("p99 is 30ms in the baseline, and 20ms is the most")),
            ("too few to say", lagging(0..30, 30, 3), None),
            ("during the fault of a long run", lagging(30..40, 30, 400), None),
            ("in the whole run", lagging(0..4040, 30, 1), Some("p99 is 30ms, and")),
            ("after the fault", short(lagging(40..60, 30, 400)), Some("p99 is 30ms, and")),
        ] {
            let reasons = reasons(&record, &Judgement::default());
            match says {
                None => assert!(reasons.is_empty(), "{name}: {reasons:?}"),
                Some(says) => assert!(reasons.len() == 1 && reasons[0].contains(says), "{name}: {reasons:?}"),
            }
        }
        let mut record = Scenario::new().good(4000).fault(10, |w| w).good(20).record();
        for window in &mut record.windows[4010..] {
            window.all.lag = std::iter::repeat_n(Span::from_millis(30), 400).collect();
        }
        let reasons = reasons(&record, &Judgement::default());
        assert!(reasons[0].contains("p99 is 30ms after the fault, and"), "{reasons:?}");
    }

    #[test]
    fn every_latency_threshold_of_the_plan_counts() {
        let late = lagging(0..4040, 30, 400);
        let place = Place::default;
        let gate = |text| {
            let condition = condition(Figure::P99, text);
            GateConfig { condition, during: During::Run, during_place: place(), fleet: None, at: None, place: place() }
        };
        let stop =
            |name, text| StopConfig { trigger: StopTrigger::Figure(condition(name, text)), lasting: Span::ZERO, place: place() };
        let secs = Span::from_secs;
        let recovery = |require: Vec<_>| RecoveryConfig {
            at: None,
            after: None,
            within: secs(20),
            hold: secs(10),
            horizon: None,
            span: secs(5),
            operations: 200,
            require: Conditions(require),
        };
        for (name, judgement, trusted) in [
            ("timeouts of a second", patient(), true),
            ("a gate", Judgement { gates: vec![gate("<= 200ms")], ..patient() }, false),
            ("a loose gate", Judgement { gates: vec![gate("<= 2s")], ..patient() }, true),
            ("a relative gate", Judgement { gates: vec![gate("<= 2x baseline")], ..patient() }, false),
            ("a stop condition", Judgement { stop_if: vec![stop(Figure::P99, "> 200ms")], ..patient() }, false),
            ("a relative stop condition", Judgement { stop_if: vec![stop(Figure::P50, "> 3x baseline")], ..patient() }, false),
            ("a stop condition on errors", Judgement { stop_if: vec![stop(Figure::Errors, "> 5%")], ..patient() }, true),
            ("the clauses of a recovery", Judgement { recovery: Some(recovery(vec![])), ..patient() }, false),
            (
                "a loose clause",
                Judgement { recovery: Some(recovery(vec![condition(Figure::P99, "<= 500ms")])), ..patient() },
                true,
            ),
        ] {
            assert_eq!(reasons(&late, &judgement).is_empty(), trusted, "{name}");
        }
    }
}
