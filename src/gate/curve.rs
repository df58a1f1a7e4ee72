//! A run's recovery curve in few points: what is drawn of one run among many.
//!
//! Where several windows share a point, goodput keeps their mean, their lowest and their highest, and the retry share its highest, so that neither a
//! short gap nor a short storm is lost. All runs of a plan have their points at the same moments. Leaves to others: how many curves are kept, and how they are drawn.

use super::recovery::whole_windows;
use crate::metrics::{Counts, RunRecord, Window};
use crate::time::Span;

/// The most points of a curve.
pub const POINTS: u64 = 120;
/// Of how many runs of a plan the curve is kept, from the first seed on.
pub const CURVES: u64 = 200;

/// A run over time. Rates are per second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// The points, gapless from the start of the run.
    pub points: Vec<Point>,
}

/// Some windows of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Operations offered: the mean of the windows.
    pub offered: f64,
    /// Goodput: the mean of the windows.
    pub goodput: f64,
    /// Goodput of the window that has the least.
    pub lowest: f64,
    /// Goodput of the window that has the most.
    pub highest: f64,
    /// The retry share of the window where it is highest; none without attempts.
    pub retry_share: Option<f64>,
}

/// How far the points of a run of this length are apart: a whole number of windows.
pub fn step(window: Span, length: Span) -> Span {
    window * length.0.div_ceil(window.0.max(1)).div_ceil(POINTS).max(1)
}

impl Curve {
    /// The curve of this run. A window that its end cut short says nothing about a rate.
    pub fn of(record: &RunRecord) -> Self {
        let together = step(record.window, record.length).0 / record.window.0.max(1);
        let together = usize::try_from(together).unwrap_or(usize::MAX).max(1);
        let seconds = record.window.as_secs_f64();
        let windows = &record.windows[..whole_windows(record)];
        let most = usize::try_from(POINTS).unwrap_or(usize::MAX);
        Self { points: windows.chunks(together).take(most).map(|windows| Point::of(windows, seconds)).collect() }
    }
}

impl Point {
    fn of(windows: &[Window], seconds: f64) -> Self {
        let rate = |count: u64| count as f64 / seconds;
        let mean =
            |count: fn(&Counts) -> u64| rate(windows.iter().map(|window| count(&window.all)).sum()) / windows.len().max(1) as f64;
        let goodput = || windows.iter().map(|window| rate(window.all.succeeded));
        let share = |counts: &Counts| (counts.attempts > 0).then(|| counts.retries as f64 / counts.attempts as f64);
        Self {
            offered: mean(|counts| counts.offered),
            goodput: mean(|counts| counts.succeeded),
            lowest: goodput().reduce(f64::min).unwrap_or(0.0),
            highest: goodput().reduce(f64::max).unwrap_or(0.0),
            retry_share: windows.iter().filter_map(|window| share(&window.all)).reduce(f64::max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scenario::Scenario;
    use super::*;

    #[test]
    fn a_short_run_keeps_its_windows() {
        let record = Scenario::new().good(30).fault(10, |w| w.retries(3.0)).good(40).record();
        let points = Curve::of(&record).points;
        assert_eq!((points.len(), step(record.window, record.length)), (80, Span::from_secs(1)));
        let quiet = Point { offered: 400.0, goodput: 400.0, lowest: 400.0, highest: 400.0, retry_share: Some(0.0) };
        assert_eq!((points[0], points[35].goodput, points[35].retry_share), (quiet, 0.0, Some(0.75)));
    }

    #[test]
    fn a_long_run_loses_no_gap_and_no_storm() {
        let record =
            Scenario::new().good(1_000).with(1, |w| w.goodput(0.0).retries(4.0)).with(1, |w| w.goodput(2.0)).good(2_000).record();
        let points = Curve::of(&record).points;
        assert_eq!((points.len() as u64, step(record.window, record.length)), (116, Span::from_secs(26)));
        let at = points[1_000 / 26];
        assert_eq!((at.lowest, at.highest, at.retry_share), (0.0, 800.0, Some(0.8)));
        assert!((at.goodput - 400.0).abs() < 1e-9 && points[0].lowest == 400.0, "{at:?}");
    }

    #[test]
    fn points_are_bounded_and_what_was_cut_short_is_none() {
        let mut record = Scenario::new().good(10).with(1, |w| w.silent()).record();
        assert_eq!(Curve::of(&record).points.last().unwrap().retry_share, None, "no attempt is no evidence");
        record.ended = crate::time::Timestamp::ZERO + Span::from_millis(3_500);
        assert_eq!(Curve::of(&record).points.len(), 3, "the fourth window is a stub");
        record.length = Span::from_secs(100_000);
        assert_eq!(Curve::of(&record).points.len(), 1, "a run that ended early stands at the same moments as one that did not");
        assert_eq!(Curve::of(&RunRecord::default()), Curve::default());
        assert!(step(Span::from_secs(1), Span::from_secs(86_400)).0 * POINTS >= Span::from_secs(86_400).0);
    }
}
