//! What several runs say together: bounds for a share, median and range, the effect of one thing against another.
//!
//! Nothing is drawn and nothing is assumed to be normal: shares have exact binomial bounds, figures have order statistics. A value may be
//! infinite, for what did not happen as long as anybody looked; what is no number is left out. Logarithms and exponentials come from `libm`, so that
//! equal values give equal bytes on any machine.

/// The confidence that is used where nothing else is said.
pub const CONFIDENCE: f64 = 0.95;

/// Steps of a bisection: more than a double has bits.
const HALVINGS: u32 = 80;
/// Terms of a continued fraction; it takes about the square root of its arguments.
const TERMS: u32 = 20_000;

/// The Clopper–Pearson interval of a share that was met `k` times in `n`: exact, never narrower than it says. With nothing seen it is 0 to 1.
/// (C. J. Clopper, E. S. Pearson, Biometrika 26, 1934.) `k` above `n` counts as `n`.
pub fn clopper_pearson(k: u64, n: u64, confidence: f64) -> (f64, f64) {
    let (k, tail) = (k.min(n), (1.0 - confidence.clamp(0.0, 1.0)) / 2.0);
    let (hits, misses) = (k as f64, (n - k) as f64);
    // P(at least k of n) is I_p(k, n − k + 1).
    let low = if k == 0 { 0.0 } else { root(tail, |p| incomplete_beta(p, hits, misses + 1.0)) };
    let high = if k == n { 1.0 } else { root(1.0 - tail, |p| incomplete_beta(p, hits + 1.0, misses)) };
    (low, high)
}

/// The `q`-quantile (0 to 1) of these values, interpolated between neighbours as R and NumPy do; none of no values.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    between(&sorted(values), q)
}

/// The median of these values; none of no values.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Median and range of a figure over several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// How many values stand behind it.
    pub count: usize,
    /// The median.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// Median and range of these values; none of no values.
pub fn spread(values: &[f64]) -> Option<Spread> {
    let sorted = sorted(values);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    Some(Spread { count: sorted.len(), median: between(&sorted, 0.5)?, min, max })
}

/// What one thing changes against another, from pairs that differ in nothing else.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// How many pairs stand behind it.
    pub pairs: usize,
    /// The median of the differences.
    pub median: f64,
    /// The lower end of the range in which the true median lies.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// How surely it lies in that range: at least what was asked for, or less where the pairs are too few for it.
    pub confidence: f64,
}

/// The effect of the second of each pair against the first: the median of the differences `second − first`, and the order-statistic interval of
/// that median. None of no pairs.
///
/// The interval runs from the r-th smallest to the r-th largest difference, with the largest r whose binomial confidence is still enough: it assumes
/// nothing of how the differences are spread, and it excludes zero exactly where a sign test finds a difference. So it is the same claim for differences and
/// for ratios, and differences stand a reference of zero. The plain range from the least to the greatest would grow with every pair, and hide more the more is
/// known. Fewer than 6 pairs cannot carry 95%: then it is the plain range, and `confidence` says what that is worth.
///
/// Two infinite values of one pair (neither happened) are no difference.
pub fn effect(pairs: &[(f64, f64)], confidence: f64) -> Option<Effect> {
    let difference = |&(a, b): &(f64, f64)| if a == b { 0.0 } else { b - a };
    let differences: Vec<f64> = pairs.iter().map(difference).collect();
    let sorted = sorted(&differences);
    let median = between(&sorted, 0.5)?;
    let (rank, confidence) = median_rank(sorted.len(), confidence);
    let (low, high) = (sorted[rank], sorted[sorted.len() - 1 - rank]);
    Some(Effect { pairs: sorted.len(), median, low, high, confidence })
}

impl Effect {
    /// Whether a difference is shown: the range holds no zero, and so the differences lie on one side of it. One pair or two show nothing.
    pub fn is_shown(&self) -> bool {
        self.pairs > 2 && (self.low > 0.0 || self.high < 0.0)
    }
}

/// How many of the outermost of `n` sorted values may be left off at either end so that the rest still hold the median with this
/// confidence, and the confidence that this has.
fn median_rank(n: usize, wanted: f64) -> (usize, f64) {
    // P(at most `rank` of n lie below the median), n coins; both ends miss it alike.
    let mut term = libm::exp(-(n as f64) * std::f64::consts::LN_2);
    let mut below = term;
    let mut best = (0, 1.0 - 2.0 * below);
    for rank in 1..n / 2 {
        term *= (n - rank + 1) as f64 / rank as f64;
        below += term;
        if 1.0 - 2.0 * below < wanted {
            break;
        }
        best = (rank, 1.0 - 2.0 * below);
    }
    (best.0, best.1.max(0.0))
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|x| !x.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn between(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = q.clamp(0.0, 1.0) * last as f64;
    let index = (place as usize).min(last);
    let (low, part) = (sorted[index], place - index as f64);
    let high = sorted[(index + 1).min(last)];
    // Between equal values, infinite ones among them, there is nothing to interpolate.
    Some(if part == 0.0 || low == high { low } else { low + (high - low) * part })
}

/// Where a function that grows from 0 to 1 over [0, 1] reaches `wanted`.
fn root(wanted: f64, grows: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if grows(middle) < wanted { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// The regularised incomplete beta function I_x(a, b), by its continued fraction (Abramowitz and Stegun 26.5.8).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast below the mean; above it, the other tail does.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * libm::log(x) + b * libm::log1p(-x);
    (libm::exp(front) * beta_fraction(x, a, b) / a).clamp(0.0, 1.0)
}

/// The continued fraction of [`incomplete_beta`], by Lentz's method.
fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    let away = |y: f64| if y.abs() < 1e-300 { 1e-300 } else { y };
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let (mut c, mut value) = (1.0, d);
    for m in 1..=TERMS {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = value;
        for term in [even, odd] {
            d = 1.0 / away(1.0 + term * d);
            c = away(1.0 + term / c);
            value *= c * d;
        }
        if (value - before).abs() <= f64::EPSILON * value.abs() {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, want: f64, by: f64) {
        assert!((got - want).abs() <= by, "{got} is not {want}");
    }

    #[test]
    fn bounds_of_a_share_are_the_known_ones() {
        for (k, n, low, high) in [
            (19, 20, 0.7513, 0.9987),
            (0, 20, 0.0, 0.1684),
            (20, 20, 0.8316, 1.0),
            (10, 20, 0.2720, 0.7280),
            (1, 1, 0.025, 1.0),
            (0, 1, 0.0, 0.975),
            (5, 10, 0.1871, 0.8129),
            (50, 100, 0.3983, 0.6017),
            (0, 0, 0.0, 1.0),
        ] {
            let got = clopper_pearson(k, n, 0.95);
            close(got.0, low, 6e-5);
            close(got.1, high, 6e-5);
        }
        // Closed forms at the ends: 1 − (α/2)^(1/n), at any size.
        for n in [1, 7, 100, 5_000, 100_000] {
            let (_, high) = clopper_pearson(0, n, 0.9);
            close(high, 1.0 - libm::pow(0.05, 1.0 / n as f64), 1e-12);
            let (low, _) = clopper_pearson(n, n, 0.9);
            close(low, libm::pow(0.05, 1.0 / n as f64), 1e-12);
        }
        assert_eq!(clopper_pearson(30, 20, 0.95), clopper_pearson(20, 20, 0.95));
    }

    /// At its bounds a share is just as improbable as the confidence says, by the sum of the binomial's own terms.
    #[test]
    fn bounds_of_a_share_leave_the_tails_that_they_say() {
        let at_least = |k: u64, n: u64, p: f64| -> f64 {
            let choose = |i: u64| (0..i).map(|j| libm::log((n - j) as f64) - libm::log((j + 1) as f64)).sum::<f64>();
            (k..=n).map(|i| libm::exp(choose(i) + i as f64 * libm::log(p) + (n - i) as f64 * libm::log1p(-p))).sum()
        };
        for (k, n) in [(1, 20), (7, 20), (19, 20), (250, 300), (3, 1_000), (500, 1_000)] {
            for confidence in [0.5, 0.9, 0.99] {
                let (low, high) = clopper_pearson(k, n, confidence);
                let tail = (1.0 - confidence) / 2.0;
                close(at_least(k, n, low), tail, 1e-9);
                close(1.0 - at_least(k + 1, n, high), tail, 1e-9);
            }
        }
    }

    #[test]
    fn quantiles_interpolate_and_infinity_is_a_value() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[f64::NAN]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.9), Some(4.6));
        assert_eq!((quantile(&[1.0, 2.0], -1.0), quantile(&[1.0, 2.0], 7.0)), (Some(1.0), Some(2.0)));
        let never = f64::INFINITY;
        assert_eq!(median(&[1.0, never, never]), Some(never));
        assert_eq!(median(&[1.0, 2.0, never]), Some(2.0));
        let spread = spread(&[5.0, never, 3.0, 4.0, never]).unwrap();
        assert_eq!((spread.count, spread.median, spread.min, spread.max), (5, 5.0, 3.0, never));
    }

    /// The ranks of the usual tables of the median's order-statistic interval.
    #[test]
    fn the_median_of_differences_has_the_tabled_interval() {
        for (n, rank, confidence) in
            [(5, 0, 0.9375), (6, 0, 0.96875), (9, 1, 0.9609), (12, 2, 0.9614), (20, 5, 0.9586), (50, 17, 0.9672)]
        {
            let found = median_rank(n, 0.95);
            assert_eq!(found.0, rank, "{n}");
            close(found.1, confidence, 6e-5);
        }
        assert_eq!(median_rank(1, 0.95), (0, 0.0));
        let pairs: Vec<(f64, f64)> = (0..20).map(|n| (10.0, 10.0 + f64::from(n))).collect();
        let effect = effect(&pairs, CONFIDENCE).unwrap();
        assert_eq!((effect.pairs, effect.median, effect.low, effect.high), (20, 9.5, 5.0, 14.0));
        assert!(effect.is_shown());
    }

    #[test]
    fn a_difference_is_shown_where_the_range_holds_no_zero() {
        let never = f64::INFINITY;
        let shown = |pairs: &[(f64, f64)]| effect(pairs, CONFIDENCE).unwrap().is_shown();
        assert!(shown(&[(1.0, 2.0); 6]));
        assert!(shown(&[(2.0, 1.0); 6]));
        assert!(!shown(&[(1.0, 2.0), (1.0, 2.0), (1.0, 2.0), (1.0, 2.0), (1.0, 2.0), (2.0, 1.0)]));
        assert!(!shown(&[(1.0, 1.0); 20]), "equal is no difference");
        assert!(!shown(&[(never, never); 20]), "neither happened");
        assert!(shown(&[(never, 3.0); 20]), "one happened");
        assert!(shown(&[(3.0, never); 20]));
        assert_eq!(effect(&[], CONFIDENCE), None);
        let few = effect(&[(1.0, 2.0), (1.0, 3.0), (1.0, 4.0)], CONFIDENCE).unwrap();
        assert_eq!((few.low, few.median, few.high, few.confidence), (1.0, 2.0, 3.0, 0.75), "three pairs say so little");
    }
}
