//! What every section of a run's page needs: the windows as rates, and what stands behind them.

use super::super::super::curve::{whole_windows, window_seconds};
use super::super::super::layout::millis;
use super::super::super::result::{RunResult, WindowResult};
use super::super::chart::{Backdrop, Band, Level, Mark, MarkKind, Unit};
use super::super::words::{UNKNOWN, known};

/// Notes and actions, of each so many, that are marked in charts; the tables have more.
const MARKED: usize = 20;
/// Windows at the end whose mean is the figure at the end.
const END: usize = 5;

/// A run as its page sees it.
pub struct View<'a> {
    /// The run.
    pub result: &'a RunResult,
    /// Its windows, without a stub at the end.
    pub windows: &'a [WindowResult],
    /// What stands behind series.
    pub backdrop: Backdrop,
    /// The same for charts that have half the width: without notes and actions.
    pub aside: Backdrop,
}

impl<'a> View<'a> {
    /// Of a run.
    pub fn of(result: &'a RunResult) -> Self {
        let windows = whole_windows(result);
        let backdrop = backdrop(result, windows.len());
        let marks = backdrop.marks.iter().filter(|mark| mark.kind == MarkKind::Recovery).cloned().collect();
        let aside = Backdrop { marks, ..backdrop.clone() };
        Self { result, windows, backdrop, aside }
    }

    /// A count of each window as a rate.
    pub fn rate(&self, count: impl Fn(&WindowResult) -> u64) -> Vec<Option<f64>> {
        self.windows.iter().map(|window| Some(count(window) as f64 / window_seconds(self.result, window))).collect()
    }

    /// A figure of each window.
    pub fn figure(&self, figure: impl Fn(&WindowResult) -> Option<f64>) -> Vec<Option<f64>> {
        self.windows.iter().map(figure).collect()
    }

    /// The range of a rate in the baseline's windows.
    pub fn usual(&self, count: impl Fn(&WindowResult) -> u64, mean: Option<f64>) -> Option<Level> {
        let baseline = self.result.baseline.as_ref()?;
        let mean = mean?;
        let within = self.windows.iter().filter(|window| (baseline.from_ms..baseline.to_ms).contains(&window.t_ms));
        let rates: Vec<f64> = within.map(|window| count(window) as f64 / window_seconds(self.result, window)).collect();
        let low = rates.iter().copied().fold(mean, f64::min);
        let high = rates.iter().copied().fold(mean, f64::max);
        Some(Level { low, high, name: format!("baseline {}", Unit::Rate.show(mean)) })
    }

    /// The mean of the last few windows.
    pub fn at_the_end(&self, values: &[Option<f64>]) -> Option<f64> {
        let last: Vec<f64> = values[values.len().saturating_sub(END)..].iter().flatten().copied().collect();
        (!last.is_empty()).then(|| last.iter().sum::<f64>() / last.len() as f64)
    }

    /// A series in words: its range and its end.
    pub fn gist(&self, what: &str, unit: Unit, values: &[Option<f64>]) -> String {
        let all = || values.iter().flatten().copied();
        let (low, high) = (all().reduce(f64::min), all().reduce(f64::max));
        let (Some(low), Some(high)) = (low, high) else { return format!("{what}: {UNKNOWN}. ") };
        let top = values.iter().position(|value| *value == Some(high)).unwrap_or(0) as u64 * self.result.window_ms;
        let end = known(self.at_the_end(values), |x| unit.show(x));
        let (low, high) = (unit.show(low), unit.show(high));
        format!("{what}: from {low} to {high} (at {}), {end} at the end. ", millis(Some(top as f64)))
    }
}

/// The highest of a series.
pub fn peak(values: &[Option<f64>]) -> Option<f64> {
    values.iter().flatten().copied().reduce(f64::max)
}

/// When the clock of the recovery started, in milliseconds.
fn clock_started(result: &RunResult) -> Option<f64> {
    let of = result.recovery.as_ref()?.fault.as_ref()?;
    let named = |name: &str| name == of || name.strip_prefix(of.as_str()).is_some_and(|rest| rest.starts_with('#'));
    result.faults.iter().filter(|fault| named(&fault.name)).map(|fault| fault.to_ms as f64).reduce(f64::max)
}

fn backdrop(result: &RunResult, windows: usize) -> Backdrop {
    let window_ms = result.window_ms.max(1) as f64;
    let bands = result.faults.iter().map(|fault| Band {
        from_ms: fault.from_ms as f64,
        to_ms: fault.to_ms as f64,
        name: fault.name.clone(),
    });
    Backdrop {
        span_ms: (windows as f64 * window_ms).max(window_ms),
        window_ms,
        bands: bands.collect(),
        baseline: result.baseline.as_ref().map(|baseline| (baseline.from_ms as f64, baseline.to_ms as f64)),
        marks: marks(result),
    }
}

fn marks(result: &RunResult) -> Vec<Mark> {
    let event = |at_ms: u64, label: String, detail: String| Mark { at_ms: at_ms as f64, kind: MarkKind::Event, label, detail };
    let actions = result.actions.iter().enumerate().take(MARKED);
    let actions = actions.map(|(n, action)| event(action.at_ms, format!("A{}", n + 1), action.name.clone()));
    let notes = result.notes.iter().enumerate().take(MARKED);
    let notes = notes.map(|(n, note)| event(note.t_ms, format!("N{}", n + 1), note.text.clone()));
    let by_hand = result.faults.iter().filter(|fault| fault.ended_early).take(MARKED);
    let by_hand = by_hand.map(|fault| event(fault.to_ms, "by hand".into(), format!("{} ended by hand", fault.name)));
    actions.chain(notes).chain(by_hand).chain(recovered(result)).collect()
}

fn recovered(result: &RunResult) -> Option<Mark> {
    let after = result.recovery.as_ref()?.recovery_time_ms?;
    let label = format!("healthy again after {}", millis(Some(after)));
    Some(Mark { at_ms: clock_started(result)? + after, kind: MarkKind::Recovery, detail: label.clone(), label })
}
