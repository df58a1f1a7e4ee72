//! The stretch before the first fault that later windows are compared with.
//!
//! It is the last `steady_state.for` before the first fault begins, in whole windows: not the first seconds of the
//! run, where connections are made and caches are cold. Where the plan has no `steady_state`, it is the last 30 s, or
//! what there is. It must itself be healthy in absolute terms, or nothing that is compared with it means anything.

use super::condition::{Bound, Comparison, Condition, Operator};
use super::config::SteadyState;
use crate::metrics::{Figure, RunRecord, Unit, figure};
use crate::time::{Span, Timestamp};
use std::ops::Range;

/// How long the baseline is where the plan does not say.
const DEFAULT_LENGTH: Span = Span::from_secs(30);

/// The figures before the first fault, over all fleets.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// When it begins.
    pub from: Timestamp,
    /// When it ends.
    pub to: Timestamp,
    /// The numbers of its windows.
    pub windows: Range<usize>,
    /// Operations that succeeded / operations that ended.
    pub success: Option<f64>,
    /// Attempts that failed / attempts that ended.
    pub errors: Option<f64>,
    /// Operations per second that succeeded.
    pub goodput: Option<f64>,
    /// Operations per second offered.
    pub offered: Option<f64>,
    /// Attempts per second.
    pub attempts: Option<f64>,
    /// Retries / attempts.
    pub retry_share: Option<f64>,
    /// Median operation latency in seconds.
    pub p50: Option<f64>,
    /// 99th percentile of operation latency in seconds.
    pub p99: Option<f64>,
    /// The largest backlog.
    pub backlog: Option<f64>,
}

/// A baseline, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The stretch; none where there is no whole window of it.
    pub baseline: Option<Baseline>,
    /// Why nothing can be compared with it; none where it can.
    pub trouble: Option<String>,
}

impl Baseline {
    /// A figure of the baseline, for one fleet or for all.
    pub fn figure(&self, record: &RunRecord, name: Figure, fleet: Option<usize>) -> Option<f64> {
        figure(name, self.windows_of(record), fleet, record.window)
    }

    /// Its windows.
    pub fn windows_of<'a>(&self, record: &'a RunRecord) -> &'a [crate::metrics::Window] {
        record.windows.get(self.windows.clone()).unwrap_or_default()
    }

    fn over(record: &RunRecord, windows: Range<usize>) -> Self {
        let of = |name| figure(name, &record.windows[windows.clone()], None, record.window);
        let at = |index: usize| Timestamp::ZERO + record.window * index as u64;
        Self {
            from: at(windows.start),
            to: at(windows.end),
            success: of(Figure::Success),
            errors: of(Figure::Errors),
            goodput: of(Figure::Goodput),
            offered: of(Figure::Offered),
            attempts: of(Figure::Attempts),
            retry_share: of(Figure::RetryShare),
            p50: of(Figure::P50),
            p99: of(Figure::P99),
            backlog: of(Figure::Backlog),
            windows,
        }
    }
}

/// Finds the baseline of a run and says whether it can be used: long enough, at least `operations` ended in it, and
/// healthy. `steady_state.require` says what healthy means; success >= 99% where it does not name `success`.
pub fn measure(record: &RunRecord, steady: Option<&SteadyState>, operations: u64) -> Measured {
    let Some(first) = record.faults.iter().map(|f| f.from).filter(|from| *from < record.ended).min() else {
        return Measured { baseline: None, trouble: Some("there is no baseline: no fault took place after it".into()) };
    };
    let length = steady.map_or(DEFAULT_LENGTH, |s| s.r#for);
    let windows = windows_before(first, length, record.window);
    let wanted = whole(length, record.window);
    let windows = windows.start.min(record.windows.len())..windows.end.min(record.windows.len());
    if windows.is_empty() {
        let trouble = format!("the baseline is empty: the first fault begins at {first}; leave whole windows before it");
        return Measured { baseline: None, trouble: Some(trouble) };
    }
    let baseline = Baseline::over(record, windows.clone());
    let trouble = if steady.is_some() && windows.len() < wanted {
        let have = record.window * windows.len() as u64;
        Some(format!("the baseline is too short: {have} before the first fault, and steady_state.for is {length}"))
    } else {
        too_few(record, &baseline, operations).or_else(|| unhealthy(record, &baseline, steady))
    };
    Measured { baseline: Some(baseline), trouble }
}

/// The numbers of the windows of a baseline: those wholly before the first fault, as many whole ones as `length` takes, at
/// least one.
pub(super) fn windows_before(first: Timestamp, length: Span, window: Span) -> Range<usize> {
    let end = (first.0 / window.0.max(1)) as usize;
    end.saturating_sub(whole(length, window))..end
}

fn whole(length: Span, window: Span) -> usize {
    (length.0 / window.0.max(1)).max(1) as usize
}

fn too_few(record: &RunRecord, baseline: &Baseline, operations: u64) -> Option<String> {
    let ended: u64 = baseline.windows_of(record).iter().map(|w| w.all.ended()).sum();
    (ended < operations).then(|| {
        format!("the baseline is too thin: {ended} operations ended in it, and it takes {operations} (recovery.operations)")
    })
}

fn unhealthy(record: &RunRecord, baseline: &Baseline, steady: Option<&SteadyState>) -> Option<String> {
    let required = steady.map_or(&[][..], |s| &s.require.0);
    let named = required.iter().any(|c| c.figure == Figure::Success);
    let success = (!named).then(least_success);
    success.iter().chain(required).find_map(|condition| {
        let observed = baseline.figure(record, condition.figure, None);
        let bound = match condition.comparison.bound {
            Bound::Absolute(bound) => Some(bound),
            Bound::OfBaseline(factor) => observed.map(|o| o * factor),
        };
        let holds = observed.zip(bound).is_some_and(|(o, b)| condition.comparison.operator.holds(o, b));
        (!holds).then(|| {
            let shown = |o: f64| condition.figure.unit().show_beside(o, bound.unwrap_or(o)).0;
            let seen = observed.map_or("unknown".to_string(), shown);
            let (name, text) = (condition.figure.word(), &condition.comparison.text);
            format!("the baseline was not healthy: {name} was {seen}, and {text} is required (steady_state.require)")
        })
    })
}

fn least_success() -> Condition {
    let comparison =
        Comparison { text: ">= 99%".into(), operator: Operator::AtLeast, bound: Bound::Absolute(0.99), unit: Some(Unit::Share) };
    Condition { figure: Figure::Success, comparison }
}

#[cfg(test)]
mod tests {
    use super::super::scenario::{Scenario, condition};
    use super::*;
    use crate::gate::config::Conditions;

    fn steady(seconds: u64, require: &[(Figure, &str)]) -> SteadyState {
        let require = Conditions(require.iter().map(|(figure, text)| condition(*figure, text)).collect());
        SteadyState { r#for: Span::from_secs(seconds), require }
    }

    fn check(scenario: Scenario, steady: Option<SteadyState>, wanted: Result<(u64, u64), &str>) {
        let measured = measure(&scenario.record(), steady.as_ref(), 200);
        match (wanted, measured.trouble) {
            (Ok((from, to)), None) => {
                let baseline = measured.baseline.unwrap();
                assert_eq!((baseline.from.as_millis(), baseline.to.as_millis()), (from * 1000, to * 1000));
            }
            (Err(part), Some(trouble)) => assert!(trouble.contains(part), "{trouble}"),
            (wanted, trouble) => panic!("{wanted:?}, but {trouble:?}"),
        }
    }

    #[test]
    fn the_last_stretch_before_the_first_fault_is_taken() {
        let run = || Scenario::new().good(40).fault(10, |w| w.goodput(0.0)).good(10);
        check(run(), Some(steady(10, &[])), Ok((30, 40)));
        check(run(), None, Ok((10, 40)));
        check(run(), Some(steady(41, &[])), Err("too short"));
        let half = SteadyState { r#for: Span::from_millis(10_500), require: Conditions::default() };
        check(run(), Some(half), Ok((30, 40)));
        check(run(), Some(steady(10, &[(Figure::P99, "<= 10ms")])), Err("p99 was"));
        check(run(), Some(steady(10, &[(Figure::P99, "<= 100ms")])), Ok((30, 40)));
        check(Scenario::new().good(10).fault(5, |w| w).good(10), None, Ok((0, 10)));
        check(Scenario::new().fault(5, |w| w).good(10), None, Err("empty"));
        check(Scenario::new().good(50), Some(steady(10, &[])), Err("no fault"));
    }

    #[test]
    fn warm_up_does_not_count_and_an_unhealthy_baseline_does() {
        let cold = Scenario::new().with(5, |w| w.goodput(0.2)).good(10).fault(5, |w| w).good(5);
        check(cold, Some(steady(10, &[])), Ok((5, 15)));
        let ill = || Scenario::new().good(9).with(1, |w| w.goodput(0.8)).fault(5, |w| w).good(5);
        check(ill(), Some(steady(10, &[])), Err("success was 98%"));
        check(ill(), Some(steady(10, &[(Figure::Success, ">= 95%")])), Ok((0, 10)));
        check(Scenario::new().rate(10.0).good(10).fault(5, |w| w).good(5), Some(steady(10, &[])), Err("too thin"));
        check(Scenario::new().rate(0.0).good(10).fault(5, |w| w).good(5), Some(steady(10, &[])), Err("too thin"));
    }
}
