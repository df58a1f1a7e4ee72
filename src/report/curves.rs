//! The recovery curves of many runs, in `seeds.json` and `compare.json`.
//!
//! Curves of one plan have their points at the same moments. How many are kept is bounded: those of the first seeds, and that of the worst.

use crate::fault::Phase;
use crate::gate::curve::{self, Point};
use crate::gate::{CURVES, Curve, SeedRun};
use crate::stats;
use crate::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the curves of a plan's runs have in common.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// How long a window of the runs is.
    pub window: Span,
    /// How long the runs are.
    pub length: Span,
    /// The phases of the plan.
    pub phases: &'a [Phase],
}

/// What the curves of many runs have in common; each run's own stands with its seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvesResult {
    /// How far the points of a curve are apart, in milliseconds: a whole number of windows. The first begins with the run.
    pub step_ms: u64,
    /// How long a run is, as the plan has it, in milliseconds.
    pub length_ms: u64,
    /// The phases, as the plan has them.
    pub phases: Vec<CurvePhase>,
    /// Operations offered per second: at each point the median of the runs whose curve is kept.
    pub offered: Vec<f64>,
    /// Runs whose curve is not kept: those after the first 200, the worst of all apart.
    pub left_out: u64,
}

/// A stretch between two changes of the timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePhase {
    /// `steady`, the names of the faults that act joined by `+`, or `after NAME`.
    pub name: String,
    /// When it begins, in milliseconds since the run began.
    pub from_ms: u64,
    /// When it ends.
    pub to_ms: u64,
    /// The faults that act, by name.
    pub faults: Vec<String>,
}

/// The recovery curve of one run: a value for each point, from the start of the run to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurveResult {
    /// Goodput in operations per second: the mean of the windows that share a point.
    pub goodput: Vec<f64>,
    /// Goodput of the window that has the least of them; left out where every point is one window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lowest: Vec<f64>,
    /// Goodput of the window that has the most; left out likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub highest: Vec<f64>,
    /// Retries / attempts, 0 to 1, of the window where that is highest; null without attempts.
    pub retry_share: Vec<Option<f64>>,
}

/// What these runs have in common.
pub(super) fn common(runs: &[SeedRun], frame: Frame) -> CurvesResult {
    let curves: Vec<&Curve> = runs.iter().filter_map(|run| run.curve.as_ref()).collect();
    let longest = curves.iter().map(|curve| curve.points.len()).max().unwrap_or(0);
    let offered = |index: usize| {
        let values: Vec<f64> = curves.iter().filter_map(|curve| curve.points.get(index)).map(|point| point.offered).collect();
        rate(stats::median(&values).unwrap_or(0.0))
    };
    let phase = |phase: &Phase| CurvePhase {
        name: phase.name.clone(),
        from_ms: phase.from.as_millis(),
        to_ms: phase.to.as_millis(),
        faults: phase.faults.clone(),
    };
    let kept = kept(runs).count();
    CurvesResult {
        step_ms: curve::step(frame.window, frame.length).as_millis(),
        length_ms: frame.length.as_millis(),
        phases: frame.phases.iter().map(phase).collect(),
        offered: (0..longest).map(offered).collect(),
        left_out: (runs.len() - kept) as u64,
    }
}

/// The curves of these runs, one for each; none of a run whose curve is not kept.
pub(super) fn each(runs: &[SeedRun], frame: Frame) -> Vec<Option<CurveResult>> {
    let whole = curve::step(frame.window, frame.length) == frame.window;
    let mut curves = vec![None; runs.len()];
    kept(runs).for_each(|(index, curve)| curves[index] = Some(drawn(curve, whole)));
    curves
}

/// The curves of the first so many runs and of the worst, by the index of the run.
fn kept(runs: &[SeedRun]) -> impl Iterator<Item = (usize, &Curve)> {
    let first = usize::try_from(CURVES).unwrap_or(usize::MAX).min(runs.len());
    let worst = crate::gate::worst(runs).filter(|&index| index >= first);
    (0..first).chain(worst).filter_map(|index| runs[index].curve.as_ref().map(|curve| (index, curve)))
}

fn drawn(curve: &Curve, whole: bool) -> CurveResult {
    let of = |value: fn(&Point) -> f64| -> Vec<f64> { curve.points.iter().map(|point| rate(value(point))).collect() };
    let ends = |value| if whole { Vec::new() } else { of(value) };
    CurveResult {
        goodput: of(|point| point.goodput),
        lowest: ends(|point| point.lowest),
        highest: ends(|point| point.highest),
        retry_share: curve.points.iter().map(|point| point.retry_share.map(|share| (share * 1e4).round() / 1e4)).collect(),
    }
}

/// A hundredth of an operation per second is more than a drawing shows.
fn rate(x: f64) -> f64 {
    (x * 1e2).round() / 1e2 + 0.0
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn the_first_runs_and_the_worst_are_kept() {
        let runs = sample::many_runs(1_000);
        let frame = sample::frame();
        let curves = each(&runs, frame);
        let kept: Vec<usize> = (0..runs.len()).filter(|&index| curves[index].is_some()).collect();
        assert_eq!(kept.len() as u64, CURVES + 1);
        assert_eq!(kept.last().copied(), crate::gate::worst(&runs));
        assert!(kept.last().is_some_and(|&index| index > 200), "the worst is among those that are left out otherwise");
        let common = common(&runs, frame);
        assert_eq!(
            (common.left_out, common.step_ms, common.offered.len()),
            (799, 1_000, curves[0].as_ref().unwrap().goodput.len())
        );
        assert_eq!(common.phases.iter().map(|phase| phase.faults.len()).collect::<Vec<_>>(), [0, 1, 0]);
    }

    #[test]
    fn ends_are_written_where_a_point_is_several_windows() {
        let runs = sample::many_runs(1);
        let whole = each(&runs, sample::frame()).remove(0).unwrap();
        assert!(whole.lowest.is_empty() && whole.highest.is_empty());
        let hour = Frame { length: Span::from_secs(3_600), ..sample::frame() };
        let part = each(&runs, hour).remove(0).unwrap();
        assert_eq!((part.lowest.len(), part.highest.len()), (part.goodput.len(), part.goodput.len()));
    }

    #[test]
    fn no_runs_have_no_curves() {
        let common = common(&[], sample::frame());
        assert_eq!((common.left_out, common.offered.len()), (0, 0));
        assert!(each(&[], sample::frame()).is_empty());
    }
}
