//! The windows of a run, as many as a screen can show: older ones are merged two by two, and no peak is lost.

use crate::metrics::Window;
use crate::time::{Span, Timestamp};

/// The most points that are kept: more than a terminal has columns.
const MOST: usize = 2_048;

/// What a curve shows of the windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Curve {
    /// Operations a second that succeeded.
    Goodput,
    /// Operations a second that were offered.
    Offered,
    /// Attempts a second.
    Attempted,
    /// Retries / attempts.
    RetryShare,
    /// Median operation latency, in milliseconds.
    P50,
    /// Its 99th percentile, in milliseconds.
    P99,
    /// Operations offered and not finished.
    Backlog,
    /// Attempts on the wire.
    InFlight,
}

/// How many curves there are.
const CURVES: usize = 8;

/// The lowest and the highest of some windows.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Extremes {
    low: f64,
    high: f64,
}

impl Extremes {
    fn with(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// The one that is farther from a value.
    fn farthest(self, from: f64) -> f64 {
        if (self.low - from).abs() > (self.high - from).abs() { self.low } else { self.high }
    }
}

fn joined(a: Option<Extremes>, b: Option<Extremes>) -> Option<Extremes> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.with(b)),
        (one, other) => one.or(other),
    }
}

/// Some windows in a row; by curve, none where there is no evidence.
type Point = [Option<Extremes>; CURVES];

/// The windows of a run so far.
#[derive(Debug)]
pub(super) struct Series {
    window: Span,
    points: Vec<Point>,
    /// How many windows a point stands for, and how many of them the last one has.
    each: u64,
    filled: u64,
    last: Point,
}

impl Series {
    /// Of windows of this length.
    pub(super) fn new(window: Span) -> Self {
        Self { window: window.max(Span(1)), points: Vec::new(), each: 1, filled: 1, last: [None; CURVES] }
    }

    /// Adds the next window.
    pub(super) fn add(&mut self, window: &Window) {
        self.last = self.point(window);
        if self.filled < self.each {
            self.filled += 1;
            let point = self.points.pop().unwrap_or([None; CURVES]);
            return self.points.push(merged(&point, &self.last));
        }
        if self.points.len() >= MOST {
            self.points =
                self.points.chunks(2).map(|two| two.iter().fold([None; CURVES], |all, one| merged(&all, one))).collect();
            self.each *= 2;
        }
        self.filled = 1;
        self.points.push(self.last);
    }

    /// What a curve shows of the last window.
    pub(super) fn now(&self, curve: Curve) -> Option<f64> {
        self.last[curve as usize].map(|extremes| extremes.high)
    }

    /// The highest value of a curve so far.
    pub(super) fn peak(&self, curve: Curve) -> Option<f64> {
        self.points.iter().fold(None, |all, point| joined(all, point[curve as usize])).map(|extremes| extremes.high)
    }

    /// One value for each of so many columns of a stretch of the run, as far as it has come: rates show what is farthest from the median, all else the
    /// highest.
    pub(super) fn columns(&self, curve: Curve, (from, to): (Timestamp, Timestamp), width: usize) -> Vec<Option<f64>> {
        let usual = matches!(curve, Curve::Goodput | Curve::Offered).then(|| self.median(curve));
        let long = to.since(from).0.max(1) as f64 / width.max(1) as f64;
        let each = self.window.0 as f64 * self.each as f64;
        let column = |column: usize| {
            let begin = from.0 as f64 + long * column as f64;
            let first = (begin / each) as usize;
            let last = (((begin + long) / each).ceil() as usize).max(first + 1).min(self.points.len());
            // A column that no window has reached is not there yet.
            let points = self.points.get(first..last).filter(|points| !points.is_empty())?;
            let all = points.iter().fold(None, |all, point| joined(all, point[curve as usize]));
            Some(all.map(|extremes| usual.map_or(extremes.high, |usual| extremes.farthest(usual))))
        };
        (0..width).map_while(column).collect()
    }

    fn median(&self, curve: Curve) -> f64 {
        let mut all: Vec<f64> = self.points.iter().filter_map(|point| point[curve as usize]).map(|e| e.high).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(0.0)
    }

    fn point(&self, window: &Window) -> Point {
        let counts = &window.all;
        let seconds = self.window.as_secs_f64();
        let rate = |n: u64| Some(n as f64 / seconds);
        let share = (counts.attempts > 0).then(|| counts.retries as f64 / counts.attempts as f64);
        let latency = |per_mille| counts.latency.quantile(per_mille).map(|span| span.as_secs_f64() * 1e3);
        let values = [
            rate(counts.succeeded),
            rate(counts.offered),
            rate(counts.attempts),
            share,
            latency(500),
            latency(990),
            Some(counts.backlog as f64),
            Some(counts.in_flight as f64),
        ];
        values.map(|value| value.map(|value| Extremes { low: value, high: value }))
    }
}

fn merged(a: &Point, b: &Point) -> Point {
    std::array::from_fn(|curve| joined(a[curve], b[curve]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(windows: u64, goodput: impl Fn(u64) -> u64) -> Series {
        let mut series = Series::new(Span::from_secs(1));
        for second in 0..windows {
            let mut window = Window { start: Timestamp::ZERO + Span::from_secs(second), ..Window::default() };
            (window.all.offered, window.all.succeeded) = (100, goodput(second));
            series.add(&window);
        }
        series
    }

    fn seconds(from: u64, to: u64) -> (Timestamp, Timestamp) {
        (Timestamp::ZERO + Span::from_secs(from), Timestamp::ZERO + Span::from_secs(to))
    }

    #[test]
    fn a_day_is_bounded_and_keeps_its_peaks_and_dips() {
        let series = fed(86_400, |second| match second {
            70_001 => 0,
            70_500 => 900,
            _ => 100,
        });
        assert!(series.points.len() <= MOST, "{}", series.points.len());
        assert_eq!((series.each, series.peak(Curve::Goodput)), (64, Some(900.0)));
        let columns = series.columns(Curve::Goodput, seconds(0, 86_400), 100);
        assert_eq!((columns.len(), columns[81]), (100, Some(900.0)));
        let columns = series.columns(Curve::Goodput, seconds(0, 86_400), 1_350);
        assert_eq!(columns.iter().flatten().filter(|value| **value == 0.0).count(), 1);
        assert_eq!(series.columns(Curve::RetryShare, seconds(0, 86_400), 10), [None; 10], "no attempts, no share");
    }

    #[test]
    fn columns_end_where_the_run_is() {
        let series = fed(30, |second| second);
        assert_eq!(series.columns(Curve::Goodput, seconds(0, 60), 60).len(), 30);
        assert_eq!(series.columns(Curve::Offered, seconds(0, 60), 120).len(), 60, "one window may have two columns");
        assert_eq!(series.columns(Curve::Goodput, seconds(20, 30), 10)[9], Some(29.0));
        assert_eq!(series.now(Curve::Goodput), Some(29.0));
        assert!(Series::new(Span::ZERO).columns(Curve::Goodput, seconds(0, 60), 60).is_empty());
    }
}
