//! Quantiles of a run's histograms and sketches.

use super::build::{coarse, fine, span_ms};
use super::{Distribution, Latency, Percentile};
use crate::metrics::{Sketch, Tally};
use hdrhistogram::Histogram;

/// Several histograms of microseconds together.
fn together<'a>(histograms: impl Iterator<Item = &'a Histogram<u64>>) -> Histogram<u64> {
    let mut all = Histogram::<u64>::new(3).expect("3 significant digits are within bounds");
    for histogram in histograms {
        // A histogram that resizes takes any other; where it cannot, its values are missing from the count for all to see.
        let _ = all.add(histogram);
    }
    all
}

/// Percentiles that come closer the nearer they are to 100, as HdrHistogram's plots have them: so many steps for each halving of what is left.
const SPECTRUM_STEPS: u32 = 5;

pub(super) fn spectrum<'a>(histograms: impl Iterator<Item = &'a Histogram<u64>>) -> Vec<Percentile> {
    let all = together(histograms);
    let ms = |micros: u64| micros as f64 / 1e3;
    let steps = all.iter_quantiles(SPECTRUM_STEPS);
    let point = |percent: f64, value| Some(Percentile { percent: fine(percent)?, ms: coarse(ms(value))? });
    let mut points: Vec<Percentile> =
        steps.filter_map(|step| point(step.quantile_iterated_to() * 100.0, step.value_iterated_to())).collect();
    points.dedup();
    points
}

/// Quantiles of several histograms of microseconds together.
pub(super) fn latency<'a>(histograms: impl Iterator<Item = &'a Histogram<u64>>) -> Latency {
    let all = together(histograms);
    if all.is_empty() {
        return Latency::default();
    }
    let ms = |micros: u64| coarse(micros as f64 / 1e3);
    Latency {
        count: all.len(),
        p50_ms: ms(all.value_at_quantile(0.5)),
        p90_ms: ms(all.value_at_quantile(0.9)),
        p99_ms: ms(all.value_at_quantile(0.99)),
        p999_ms: ms(all.value_at_quantile(0.999)),
        max_ms: ms(all.max()),
    }
}

/// The percentiles that are kept of a distribution, in thousandths.
const KEPT: [u64; 19] = [0, 10, 20, 50, 100, 200, 300, 400, 500, 600, 700, 800, 900, 950, 980, 990, 995, 999, 1000];

pub(super) fn distribution<'a>(sketches: impl Iterator<Item = &'a Sketch>) -> Distribution {
    let mut all = Tally::default();
    sketches.for_each(|sketch| all.merge(sketch));
    let percentile = |&per_mille: &u64| {
        all.quantile(per_mille).map(|value| Percentile { percent: per_mille as f64 / 10.0, ms: span_ms(value) })
    };
    Distribution {
        count: all.count(),
        mean_ms: all.mean().map(span_ms),
        percentiles: KEPT.iter().filter_map(percentile).collect(),
    }
}
