//! Figures of a stretch of windows.

use super::figure::Figure;
use super::record::{Counts, Window};
use super::sketch::{Sketch, Tally};
use crate::event::AttemptOutcome;
use crate::time::Span;

/// A figure over a stretch of windows, of one fleet or of all, in the figure's unit (shares as fractions, times in
/// seconds). None where there is no evidence: no windows, nothing in them, no such fleet, or a figure that windows
/// do not hold (`recovery_time`, `error_window`, `relapses`, `wave_score`, `wasted_work`, `duplicates`).
pub fn figure(figure: Figure, windows: &[Window], fleet: Option<usize>, window: Span) -> Option<f64> {
    let stretch = Stretch { windows, fleet, window };
    if !stretch.all().any(|counts| !counts.is_empty() || counts.backlog > 0) {
        return None;
    }
    match figure {
        Figure::Success => share(stretch.sum(|c| c.succeeded), stretch.sum(Counts::judged)),
        Figure::Errors => share(stretch.sum(failed_attempts), stretch.sum(ended_attempts)),
        Figure::RetryShare => share(stretch.sum(|c| c.retries), stretch.sum(|c| c.attempts)),
        Figure::Amplification => share(stretch.sum(|c| c.attempts), stretch.sum(|c| c.first_attempts)),
        Figure::LaunderedRetries => stretch.laundered(),
        Figure::Goodput => stretch.rate(|c| c.succeeded),
        Figure::Offered => stretch.rate(|c| c.offered),
        Figure::Attempts => stretch.rate(|c| c.attempts),
        Figure::PeakAttempts => stretch.most(|c| c.attempts).map(|n| n / window.as_secs_f64()),
        Figure::P50 => stretch.quantile(500, |c| &c.latency),
        Figure::P90 => stretch.quantile(900, |c| &c.latency),
        Figure::P99 => stretch.quantile(990, |c| &c.latency),
        Figure::P999 => stretch.quantile(999, |c| &c.latency),
        Figure::AttemptP99 => stretch.quantile(990, |c| &c.attempt_latency),
        Figure::LagP99 => stretch.quantile(990, |c| &c.lag),
        Figure::InFlight => stretch.most(|c| c.in_flight),
        Figure::Backlog => stretch.most(|c| c.backlog),
        Figure::OldestAge => stretch.most(|c| c.oldest_age.0).map(|nanos| nanos / 1e9),
        Figure::Failed | Figure::Lost => Some(stretch.sum(|c| c.failed) as f64),
        Figure::Unresolved => Some(stretch.sum(|c| c.unresolved) as f64),
        Figure::Refused => Some(stretch.sum(|c| c.refused) as f64),
        Figure::RecoveryTime
        | Figure::ErrorWindow
        | Figure::Relapses
        | Figure::WaveScore
        | Figure::WastedWork
        | Figure::Duplicates => None,
    }
}

/// The mean over the windows of a figure that is a level at their ends (`in_flight`, `backlog`, `oldest_age`): less
/// moved by one window than the most. None for other figures, and where there are no windows.
pub fn mean_level(figure: Figure, windows: &[Window], fleet: Option<usize>) -> Option<f64> {
    let level: fn(&Counts) -> f64 = match figure {
        Figure::InFlight => |c| c.in_flight as f64,
        Figure::Backlog => |c| c.backlog as f64,
        Figure::OldestAge => |c| c.oldest_age.as_secs_f64(),
        _ => return None,
    };
    let stretch = Stretch { windows, fleet, window: Span::ZERO };
    let n = stretch.all().count();
    (n > 0).then(|| stretch.all().map(level).sum::<f64>() / n as f64)
}

/// How many observations a figure rests on in a stretch: attempts, operations, latencies or windows.
pub fn samples(figure: Figure, windows: &[Window], fleet: Option<usize>) -> u64 {
    let stretch = Stretch { windows, fleet, window: Span::ZERO };
    match figure {
        Figure::Success => stretch.sum(Counts::judged),
        Figure::Errors => stretch.sum(ended_attempts),
        Figure::RetryShare | Figure::LaunderedRetries => stretch.sum(|c| c.attempts),
        Figure::Amplification => stretch.sum(|c| c.first_attempts),
        Figure::P50 | Figure::P90 | Figure::P99 | Figure::P999 => stretch.sum(|c| c.latency.count()),
        Figure::AttemptP99 => stretch.sum(|c| c.attempt_latency.count()),
        Figure::LagP99 => stretch.sum(|c| c.lag.count()),
        _ => stretch.all().count() as u64,
    }
}

/// Attempts that ended in a window or a stretch.
pub fn ended_attempts(counts: &Counts) -> u64 {
    counts.by_outcome.values().sum()
}

fn failed_attempts(counts: &Counts) -> u64 {
    // A hedge that lost was cancelled by its own client, and is nobody's failure.
    let good = [AttemptOutcome::Success, AttemptOutcome::Cancelled];
    ended_attempts(counts) - good.iter().filter_map(|outcome| counts.by_outcome.get(outcome)).sum::<u64>()
}

struct Stretch<'a> {
    windows: &'a [Window],
    fleet: Option<usize>,
    window: Span,
}

impl<'a> Stretch<'a> {
    fn all(&self) -> impl Iterator<Item = &'a Counts> + use<'a> {
        let fleet = self.fleet;
        self.windows.iter().filter_map(move |w| fleet.map_or(Some(&w.all), |fleet| w.fleets.get(fleet)))
    }

    fn sum(&self, value: impl Fn(&Counts) -> u64) -> u64 {
        self.all().map(value).sum()
    }

    fn most(&self, value: impl Fn(&Counts) -> u64) -> Option<f64> {
        self.all().map(value).max().map(|n| n as f64)
    }

    fn rate(&self, value: impl Fn(&Counts) -> u64) -> Option<f64> {
        let seconds = self.window.as_secs_f64() * self.windows.len() as f64;
        (seconds > 0.0).then(|| self.sum(value) as f64 / seconds)
    }

    fn quantile(&self, per_mille: u64, sketch: impl Fn(&Counts) -> &Sketch) -> Option<f64> {
        let mut tally = Tally::default();
        self.all().for_each(|counts| tally.merge(sketch(counts)));
        tally.quantile(per_mille).map(Span::as_secs_f64)
    }

    /// attempts/operations − 1/(1 − retry share), where 1 − retry share is (attempts − retries) / attempts.
    fn laundered(&self) -> Option<f64> {
        let attempts = self.sum(|c| c.attempts);
        let per_operation = share(attempts, self.sum(|c| c.first_attempts))?;
        Some(per_operation - share(attempts, attempts - self.sum(|c| c.retries).min(attempts))?)
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use AttemptOutcome::{Status, Success, Timeout};
    use std::collections::BTreeMap;

    /// Two windows of half a second: one good, one bad, in fleet 0; fleet 1 idles.
    fn windows() -> Vec<Window> {
        let good = Counts {
            offered: 100,
            attempts: 100,
            first_attempts: 100,
            by_outcome: BTreeMap::from([(Success, 100)]),
            succeeded: 100,
            latency: (1..=100).map(Span::from_millis).collect(),
            backlog: 5,
            ..Counts::default()
        };
        let bad = Counts {
            offered: 100,
            attempts: 300,
            retries: 150,
            first_attempts: 100,
            by_outcome: BTreeMap::from([(Success, 40), (Status(503), 50), (Timeout, 110)]),
            succeeded: 40,
            failed: 50,
            refused: 10,
            unresolved: 7,
            backlog: 95,
            oldest_age: Span::from_millis(1500),
            ..Counts::default()
        };
        [good, bad].map(|all| Window { fleets: vec![all.clone(), Counts::default()], all, ..Window::default() }).to_vec()
    }

    #[test]
    fn figures_follow_their_definitions() {
        let windows = windows();
        for (name, wanted) in [
            (Figure::Success, 140.0 / 200.0),
            (Figure::Errors, 160.0 / 300.0),
            (Figure::Goodput, 140.0),
            (Figure::Offered, 200.0),
            (Figure::Attempts, 400.0),
            (Figure::PeakAttempts, 600.0),
            (Figure::RetryShare, 150.0 / 400.0),
            (Figure::Amplification, 2.0),
            (Figure::LaunderedRetries, 2.0 - 400.0 / 250.0),
            (Figure::Backlog, 95.0),
            (Figure::OldestAge, 1.5),
            (Figure::Failed, 50.0),
            (Figure::Lost, 50.0),
            (Figure::Unresolved, 7.0),
            (Figure::Refused, 10.0),
        ] {
            for fleet in [None, Some(0)] {
                let seen = figure(name, &windows, fleet, Span::from_millis(500)).unwrap();
                assert!((seen - wanted).abs() < 1e-9, "{}: {seen}, not {wanted}", name.word());
            }
        }
        let p99 = figure(Figure::P99, &windows, None, Span::from_millis(500)).unwrap();
        assert!((p99 - 0.099).abs() < 0.001, "{p99}");
        assert_eq!(mean_level(Figure::Backlog, &windows, None), Some(50.0));
        assert_eq!(samples(Figure::Errors, &windows, None), 300);
    }

    #[test]
    fn no_evidence_is_no_figure() {
        let windows = windows();
        for name in Figure::ALL {
            for (stretch, fleet) in [(&windows[..0], None), (&windows[..], Some(1)), (&windows[..], Some(9))] {
                assert_eq!(figure(*name, stretch, fleet, Span::from_secs(1)), None, "{}", name.word());
            }
        }
        assert_eq!(figure(Figure::P99, &windows[1..], None, Span::from_secs(1)), None, "nothing succeeded with a latency");
        assert_eq!(figure(Figure::LagP99, &windows, None, Span::from_secs(1)), None);
        let held = Window { all: Counts { backlog: 3, ..Counts::default() }, ..Window::default() };
        assert_eq!(
            figure(Figure::Goodput, std::slice::from_ref(&held), None, Span::from_secs(1)),
            Some(0.0),
            "held, and nothing came of it"
        );
        assert_eq!(figure(Figure::RetryShare, &[held], None, Span::from_secs(1)), None);
    }
}
