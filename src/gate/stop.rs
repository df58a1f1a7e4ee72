//! When a run is stopped before its end.
//!
//! A figure is looked at window by window; it stops the run when as many windows in a row as `for` takes stood like this. A window
//! without evidence neither counts nor breaks the row. A comparison with the baseline cannot stop anything before the baseline is over.
//! A check stops the run when it has failed, without passing in between, for `failing_for`.

use super::baseline::windows_before;
use super::condition::{Bound, Condition};
use super::config::{StopConfig, StopTrigger};
use crate::metrics::{Figure, Window, figure};
use crate::time::{Span, Timestamp};
use std::ops::Range;

/// The stop conditions of a run, and how far each has come.
#[derive(Clone, Debug)]
pub struct Stops {
    window: Span,
    conditions: Vec<Armed>,
    /// The numbers of the baseline's windows, as the judge counts them; none where no condition asks for a baseline.
    baseline: Option<Range<usize>>,
    /// Those that have been seen.
    seen: Vec<Window>,
}

#[derive(Clone, Debug)]
struct Armed {
    config: StopConfig,
    /// Windows in a row that stood like this.
    row: u64,
    /// Since when a check has failed.
    failing_since: Option<Timestamp>,
}

impl Stops {
    /// The conditions of a plan. `baseline` is the stretch from `steady_state.for` before the first fault to its begin.
    pub fn new(conditions: &[StopConfig], window: Span, baseline: Option<(Timestamp, Timestamp)>) -> Self {
        let armed = |config: &StopConfig| Armed { config: config.clone(), row: 0, failing_since: None };
        let relative = conditions.iter().any(|c| matches!(&c.trigger, StopTrigger::Figure(c) if is_relative(c)));
        let baseline = baseline.filter(|_| relative).map(|(from, to)| windows_before(to, to.since(from), window));
        Self { window, conditions: conditions.iter().map(armed).collect(), baseline, seen: Vec::new() }
    }

    /// A window is complete. Returns why the run is to be stopped, if it is.
    pub fn window(&mut self, window: &Window) -> Option<String> {
        let index = (window.start.0 / self.window.0.max(1)) as usize;
        let over = self.baseline.as_ref().is_some_and(|windows| index >= windows.end);
        if self.baseline.as_ref().is_some_and(|windows| windows.contains(&index)) {
            self.seen.push(window.clone());
        }
        let baseline = if over { &self.seen[..] } else { &[] };
        let length = self.window;
        self.conditions.iter_mut().find_map(|armed| armed.window(window, baseline, length))
    }

    /// A check was asked: `index` is the condition's number in the plan. Returns why the run is to be stopped, if it is.
    pub fn check(&mut self, now: Timestamp, index: usize, passed: bool, detail: &str) -> Option<String> {
        let armed = self.conditions.get_mut(index)?;
        if passed {
            armed.failing_since = None;
            return None;
        }
        let since = *armed.failing_since.get_or_insert(now);
        let lasted = now.since(since);
        (lasted >= armed.config.lasting).then(|| match lasted {
            Span::ZERO => format!("its check failed: {detail}"),
            _ => format!("its check has failed for {}: {detail}", Span::from_millis(lasted.as_millis())),
        })
    }
}

fn is_relative(condition: &Condition) -> bool {
    matches!(condition.comparison.bound, Bound::OfBaseline(_))
}

impl Armed {
    fn window(&mut self, window: &Window, baseline: &[Window], length: Span) -> Option<String> {
        let StopTrigger::Figure(condition) = &self.config.trigger else { return None };
        let name: Figure = condition.figure;
        let observed = figure(name, std::slice::from_ref(window), None, length)?;
        let bound = match condition.comparison.bound {
            Bound::Absolute(bound) => bound,
            Bound::OfBaseline(factor) => figure(name, baseline, None, length)? * factor,
        };
        if !condition.comparison.operator.holds(observed, bound) {
            self.row = 0;
            return None;
        }
        self.row += 1;
        let needed = self.config.lasting.0.div_ceil(length.0.max(1)).max(1);
        (self.row >= needed).then(|| {
            let (seen, lasted) = (name.unit().show_beside(observed, bound).0, length * self.row);
            format!("{} {} for {lasted}: it is {seen}", name.word(), condition.comparison.text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Probe;
    use super::super::scenario::{Scenario, condition};
    use super::*;
    use crate::config::Place;

    fn stop(trigger: StopTrigger, seconds: u64) -> StopConfig {
        StopConfig { trigger, lasting: Span::from_secs(seconds), place: Place::default() }
    }

    /// The window at whose end a scenario is stopped, counted from 1.
    fn stopped(scenario: Scenario, name: Figure, text: &str, seconds: u64) -> Option<(usize, String)> {
        let config = stop(StopTrigger::Figure(condition(name, text)), seconds);
        let baseline = Some((Timestamp::ZERO, Timestamp::ZERO + Span::from_secs(10)));
        let mut stops = Stops::new(&[config], Span::from_secs(1), baseline);
        let windows = scenario.record().windows;
        windows.iter().enumerate().find_map(|(i, w)| stops.window(w).map(|reason| (i + 1, reason)))
    }

    #[test]
    fn a_figure_must_stand_like_this_for_so_long() {
        let run = || Scenario::new().good(10).with(4, |w| w.goodput(0.1)).good(1).with(9, |w| w.goodput(0.1));
        let at = |text, seconds| stopped(run(), Figure::Success, text, seconds).map(|(at, _)| at);
        assert_eq!(at("< 50%", 0), Some(11));
        assert_eq!(at("< 50%", 4), Some(14));
        assert_eq!(at("< 50%", 5), Some(20), "one good window starts the row anew");
        assert_eq!(at("< 50%", 10), None);
        assert_eq!(at("< 0.5x baseline", 2), Some(12));
        assert_eq!(at("<= 1x baseline", 0), Some(11), "the baseline itself stops nothing");
        let (_, reason) = stopped(run(), Figure::Success, "< 50%", 2).unwrap();
        assert_eq!(reason, "success < 50% for 2s: it is 10%");
    }

    #[test]
    fn the_baseline_is_the_one_that_the_judge_takes() {
        // The first fault begins within the eleventh window: the ten before it are the baseline, the first of them at half load.
        let run = Scenario::new().with(1, |w| w.offered(0.1).goodput(0.1)).good(9).with(5, |w| w.goodput(0.9));
        let mut record = run.record();
        let begin = Timestamp::ZERO + Span::from_millis(10_500);
        record.faults.push(crate::metrics::FaultRecord {
            name: "late".into(),
            kind: "hang",
            from: begin,
            to: record.ended,
            touched: 1,
            ended_early: false,
            failed: None,
        });
        let judged = super::super::baseline::measure(&record, None, 200).baseline.unwrap();
        assert_eq!(judged.windows, 0..10);
        let stop = stop(StopTrigger::Figure(condition(Figure::Goodput, "< 1x baseline")), 0);
        let mut stops = Stops::new(&[stop], record.window, Some((begin - Span::from_secs(10), begin)));
        let stopped = record.windows.iter().position(|window| stops.window(window).is_some());
        assert_eq!((stopped, stops.seen.len()), (Some(10), 10));
    }

    #[test]
    fn windows_without_evidence_neither_count_nor_break_the_row() {
        let run = Scenario::new().good(10).with(2, |w| w.goodput(0.1)).with(5, |w| w.silent()).with(5, |w| w.goodput(0.1));
        assert_eq!(stopped(run, Figure::Success, "< 50%", 3).map(|(at, _)| at), Some(18));
    }

    #[test]
    fn a_check_must_fail_for_so_long() {
        let config = |seconds| stop(StopTrigger::Check { probe: Probe::Http("x".into()), every: Span::from_secs(5) }, seconds);
        let mut stops = Stops::new(&[config(0), config(10)], Span::from_secs(1), None);
        let at = |seconds| Timestamp::ZERO + Span::from_secs(seconds);
        assert_eq!(stops.check(at(5), 0, true, "200"), None);
        assert_eq!(stops.check(at(5), 0, false, "503"), Some("its check failed: 503".into()));
        assert_eq!(stops.check(at(5), 1, false, "503"), None);
        assert_eq!(stops.check(at(10), 1, true, "200"), None);
        assert_eq!(stops.check(at(15), 1, false, "503"), None);
        assert_eq!(stops.check(at(20), 1, false, "503"), None);
        assert_eq!(stops.check(at(25), 1, false, "503"), Some("its check has failed for 10s: 503".into()));
        assert_eq!(stops.check(at(25), 9, false, ""), None);
    }
}
