//! When a run is healthy, clause by clause.
//!
//! A clause at T is judged over a *span*: the windows from T on, at least `recovery.span` long and growing until
//! `recovery.operations` operations were offered or ended in it. The run is healthy at T when every clause holds on
//! every span that begins at or after T and ends within `recovery.hold` of it (on the one that begins at T, where that is longer).
//! So health begins where the good stretch begins, not where it was noticed, and a stretch whose hold does not fit
//! before the end proves nothing. Silence is not health: a span holds no window without a success where the baseline
//! would have brought ten, or a closed load that hangs, and so offers nothing, would pass for a small one that is well.
//!
//! | clause | holds when |
//! |---|---|
//! | goodput | at least 95% of the smaller of the baseline's and what the span offered |
//! | errors | at most the baseline's + 1% |
//! | p99 | at most 2x the baseline's, or 10 ms |
//! | retry_share | at most 2x the baseline's, or 5% |
//! | backlog | its mean is at most the baseline's largest, and a slack: the largest of 10 operations, a tenth of that, and 50 ms of the baseline's offered load |
//!
//! `recovery.require` replaces clauses figure by figure and may add others. In it too, `goodput` relative to the
//! baseline means the smaller of the two, latencies relative to it have the floor of 10 ms, `backlog` relative to it has
//! the slack, and levels (`in_flight`, `backlog`, `oldest_age`) are judged by their mean over the span.

use super::baseline::Baseline;
use super::condition::{Bound, Condition, Operator};
use super::config::RecoveryConfig;
use crate::metrics::{Counts, Figure, RunRecord, Window, figure, mean_level};
use crate::time::Span;
use std::ops::Range;

/// The bit of a span that holds a silent window, beside those of the clauses.
const SILENT: u32 = 63;

/// No latency below this is too slow, in seconds.
const LATENCY_FLOOR: f64 = 0.010;

/// One condition of health.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause {
    /// What is looked at.
    pub figure: Figure,
    operator: Operator,
    limit: Limit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// In the figure's unit.
    Fixed(f64),
    /// So many times the smaller of the baseline's goodput, given here, and what was offered.
    Goodput { factor: f64, baseline: f64 },
}

/// What healthy means in a run.
#[derive(Clone, Debug)]
pub struct Health<'a> {
    record: &'a RunRecord,
    /// The clauses, in the order of the table.
    pub clauses: Vec<Clause>,
    /// The least span, in windows.
    pub span: usize,
    /// The hold, in windows.
    pub hold: usize,
    /// The least number of operations of a span.
    pub operations: u64,
    /// The baseline's goodput per window.
    goodput_per_window: f64,
}

/// A clause's judgement on one span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Judged {
    /// The number of the window after the span.
    end: usize,
    /// The clauses that do not hold, as bits, and [`SILENT`].
    broken: u64,
}

/// How health went over a stretch of the run.
#[derive(Clone, Debug)]
pub struct Course {
    windows: Range<usize>,
    hold: usize,
    /// For each window of the stretch, the span that begins there; none where it does not fit.
    spans: Vec<Option<Judged>>,
}

impl Clause {
    /// The clauses of a plan: the defaults, replaced and joined by what `require` names.
    fn all(record: &RunRecord, baseline: &Baseline, require: &[Condition]) -> Vec<Self> {
        let defaults = Self::defaults(baseline).into_iter().filter(|d| require.iter().all(|c| c.figure != d.figure));
        let named = require.iter().map(|condition| Self::named(record, baseline, condition));
        defaults.chain(named).collect()
    }

    fn defaults(baseline: &Baseline) -> [Self; 5] {
        let or_zero = |value: Option<f64>| value.unwrap_or(0.0);
        let at_most = |figure, bound| Self { figure, operator: Operator::AtMost, limit: Limit::Fixed(bound) };
        let goodput = Limit::Goodput { factor: 0.95, baseline: or_zero(baseline.goodput) };
        [
            Self { figure: Figure::Goodput, operator: Operator::AtLeast, limit: goodput },
            at_most(Figure::Errors, or_zero(baseline.errors) + 0.01),
            at_most(Figure::P99, (2.0 * or_zero(baseline.p99)).max(LATENCY_FLOOR)),
            at_most(Figure::RetryShare, (2.0 * or_zero(baseline.retry_share)).max(0.05)),
            at_most(Figure::Backlog, or_zero(baseline.backlog) + backlog_slack(baseline)),
        ]
    }

    fn named(record: &RunRecord, baseline: &Baseline, condition: &Condition) -> Self {
        let Condition { figure, comparison } = condition;
        let (figure, operator) = (*figure, comparison.operator);
        let of_baseline = |factor: f64| baseline.figure(record, figure, None).unwrap_or(0.0) * factor;
        let limit = match (comparison.bound, figure) {
            (Bound::Absolute(bound), _) => Limit::Fixed(bound),
            (Bound::OfBaseline(factor), Figure::Goodput) => Limit::Goodput { factor, baseline: baseline.goodput.unwrap_or(0.0) },
            (Bound::OfBaseline(factor), Figure::Backlog) => Limit::Fixed(of_baseline(factor) + backlog_slack(baseline)),
            (Bound::OfBaseline(factor), Figure::P50 | Figure::P90 | Figure::P99 | Figure::P999 | Figure::AttemptP99) => {
                Limit::Fixed(of_baseline(factor).max(LATENCY_FLOOR))
            }
            (Bound::OfBaseline(factor), _) => Limit::Fixed(of_baseline(factor)),
        };
        Self { figure, operator, limit }
    }

    /// What was seen on a span, and the bound there; none without evidence.
    pub fn look(&self, windows: &[Window], window: Span) -> Option<(f64, f64)> {
        let observed = mean_level(self.figure, windows, None).or_else(|| figure(self.figure, windows, None, window))?;
        let bound = match self.limit {
            Limit::Fixed(bound) => bound,
            Limit::Goodput { factor, baseline } => factor * baseline.min(figure(Figure::Offered, windows, None, window)?),
        };
        Some((observed, bound))
    }

    /// Whether it holds on a span; not without evidence.
    fn holds(&self, windows: &[Window], window: Span) -> bool {
        self.look(windows, window).is_some_and(|(observed, bound)| self.operator.holds(observed, bound))
    }

    /// The bound where it does not depend on the span.
    pub fn fixed_bound(&self) -> Option<f64> {
        match self.limit {
            Limit::Fixed(bound) => Some(bound),
            Limit::Goodput { .. } => None,
        }
    }

    /// What was seen and what is wanted, as text: `retry_share 74.7% (wanted <= 5%)`.
    pub fn describe(&self, windows: &[Window], window: Span) -> String {
        let (name, unit) = (self.figure.word(), self.figure.unit());
        match self.look(windows, window) {
            // Latencies of operations are of those that succeeded.
            None if self.figure.is_of_successes() => format!("{name} unknown (nothing succeeded)"),
            None => format!("{name} unknown"),
            Some((observed, bound)) => {
                let (seen, wanted) = unit.show_beside(observed, bound);
                format!("{name} {seen} (wanted {} {wanted})", self.operator.sign())
            }
        }
    }
}

/// How far above the baseline's largest a backlog may stand and still be back.
fn backlog_slack(baseline: &Baseline) -> f64 {
    let tenth = baseline.backlog.unwrap_or(0.0) / 10.0;
    tenth.max(baseline.offered.unwrap_or(0.0) * 0.05).max(10.0)
}

impl<'a> Health<'a> {
    /// What healthy means for a run with this baseline.
    pub fn new(record: &'a RunRecord, baseline: &Baseline, config: &RecoveryConfig) -> Self {
        let windows = |span: Span| span.0.div_ceil(record.window.0.max(1)).max(1) as usize;
        Self {
            record,
            clauses: Clause::all(record, baseline, &config.require.0),
            span: windows(config.span),
            hold: windows(config.hold),
            operations: config.operations.max(1),
            goodput_per_window: baseline.goodput.unwrap_or(0.0) * record.window.as_secs_f64(),
        }
    }

    /// Judges every span of a stretch of windows.
    pub fn course(&self, windows: Range<usize>) -> Course {
        let spans = windows.clone().map(|start| self.judge(start, windows.end)).collect();
        Course { windows, hold: self.hold, spans }
    }

    /// Whether a stretch has the operations that a clause needs.
    pub fn enough(&self, windows: &[Window]) -> bool {
        windows.iter().map(|w| operations(&w.all)).sum::<u64>() >= self.operations
    }

    /// The clauses that do not hold on a stretch.
    pub fn broken(&self, windows: &'a [Window]) -> impl Iterator<Item = &Clause> {
        self.clauses.iter().filter(move |clause| !clause.holds(windows, self.record.window))
    }

    fn judge(&self, start: usize, limit: usize) -> Option<Judged> {
        let mut end = start + self.span;
        let mut seen: u64 = self.record.windows.get(start..end.min(limit))?.iter().map(|w| operations(&w.all)).sum();
        while seen < self.operations && end < limit {
            seen += operations(&self.record.windows[end].all);
            end += 1;
        }
        if end > limit || seen < self.operations {
            return None;
        }
        let windows = &self.record.windows[start..end];
        let broken = self.clauses.iter().enumerate().filter(|(_, clause)| !clause.holds(windows, self.record.window));
        let broken = broken.fold(0, |bits, (i, _)| bits | 1 << (i as u32).min(SILENT - 1));
        let silent = self.goodput_per_window >= 10.0 && windows.iter().any(|w| w.all.succeeded == 0);
        Some(Judged { end, broken: broken | u64::from(silent) << SILENT })
    }
}

/// The operations that a window is evidence of.
fn operations(counts: &Counts) -> u64 {
    counts.offered.max(counts.ended())
}

impl Course {
    /// The first window at or after `from` at which the run is healthy.
    pub fn healthy_from(&self, from: usize) -> Option<usize> {
        (from.max(self.windows.start)..self.windows.end).find(|t| self.healthy_at(*t))
    }

    /// The first window at or after `from` whose span breaks a clause.
    pub fn broken_from(&self, from: usize) -> Option<usize> {
        (from..self.windows.end).find(|t| self.span(*t).is_some_and(|s| s.broken != 0))
    }

    /// Where the good stretch begins that lasts to the end, whether or not its hold fits; none where the last span
    /// is not good.
    pub fn good_to_the_end(&self) -> Option<usize> {
        let judged = self.windows.clone().rev().skip_while(|t| self.span(*t).is_none());
        judged.take_while(|t| self.span(*t).is_some_and(|s| s.broken == 0)).last()
    }

    /// Of the clauses, by number, the one that was the last to be broken on a span that begins before `healthy`;
    /// none where none was. Of several, the first; a number beyond them all is silence.
    pub fn last_broken(&self, healthy: usize) -> Option<usize> {
        let broken = (self.windows.start..healthy).rev().find_map(|t| self.span(t).map(|s| s.broken).filter(|b| *b != 0));
        broken.map(|bits| bits.trailing_zeros() as usize)
    }

    fn healthy_at(&self, t: usize) -> bool {
        let Some(first) = self.span(t).filter(|s| s.broken == 0) else { return false };
        let end = (t + self.hold).max(first.end);
        end <= self.windows.end && (t..end).all(|u| self.span(u).is_none_or(|s| s.end > end || s.broken == 0))
    }

    fn span(&self, t: usize) -> Option<Judged> {
        *self.spans.get(t.checked_sub(self.windows.start)?)?
    }
}
