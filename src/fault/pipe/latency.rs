//! Bytes are delayed, each piece by a draw of its own, and in order.

use super::{Draws, Piece, Taken};
use crate::keyword;
use crate::rng;
use crate::time::{Span, Timestamp};

keyword! {
    /// How a delay varies around its mean, with `jitter` for a measure.
    pub enum Distribution {
        /// Even between `add` − `jitter` and `add` + `jitter`.
        uniform => Uniform,
        /// Normal with mean `add` and standard deviation `jitter`; what would be below zero is zero.
        normal => Normal,
        /// Lognormal with mean `add` and standard deviation `jitter`: never below zero, some far above.
        lognormal => Lognormal,
        /// Pareto with mean `add` and standard deviation `jitter`: never below a least delay, a few very far above.
        pareto => Pareto,
    }
}

/// A delay and how it varies.
#[derive(Clone, Debug, PartialEq)]
pub struct Delays {
    add: Span,
    jitter: Span,
    distribution: Distribution,
}

impl Delays {
    /// Around a mean.
    pub const fn new(add: Span, jitter: Span, distribution: Distribution) -> Self {
        Self { add, jitter, distribution }
    }

    /// Evenly around a mean.
    pub const fn around(add: Span, jitter: Span) -> Self {
        Self::new(add, jitter, Distribution::Uniform)
    }

    /// Whether every draw is the same, and no die needs to be rolled.
    const fn is_constant(&self) -> bool {
        self.jitter.0 == 0
    }

    /// One delay. With m for the mean, s for the standard deviation and v = (s/m)²: a lognormal one is
    /// m/√(1+v) · exp(√ln(1+v) · N(0,1)), from the moments of that distribution; a Pareto one has the shape a = 1 + √(1 + 1/v), which
    /// gives its coefficient of variation 1/√(a(a−2)), and the least value m(a−1)/a, and is drawn by inversion.
    pub fn draw(&self, draws: &mut rng::Stream) -> Span {
        let (add, jitter) = (self.add, self.jitter);
        if jitter.is_zero() {
            return add;
        }
        let variance = || {
            let ratio = jitter.0 as f64 / add.0 as f64;
            ratio * ratio
        };
        match self.distribution {
            Distribution::Uniform => add + jitter.scale(2.0 * draws.unit()) - jitter,
            Distribution::Normal => {
                let off = draws.normal();
                if off < 0.0 { add - jitter.scale(-off) } else { add + jitter.scale(off) }
            }
            // Without a mean there is no such distribution.
            Distribution::Lognormal | Distribution::Pareto if add.is_zero() => Span::ZERO,
            Distribution::Lognormal => {
                let v = variance();
                add.scale(libm::exp(libm::sqrt(libm::log1p(v)) * draws.normal()) / libm::sqrt(1.0 + v))
            }
            Distribution::Pareto => {
                let a = 1.0 + libm::sqrt(1.0 + 1.0 / variance());
                add.scale((a - 1.0) / a * libm::exp(draws.exponential() / a))
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Stage {
    delays: Delays,
    /// When the last piece went on: none overtakes it.
    last: Timestamp,
}

impl Stage {
    pub(super) const fn new(delays: Delays) -> Self {
        Self { delays, last: Timestamp::ZERO }
    }

    pub(super) fn take(&mut self, piece: Piece, draws: &mut Draws) -> Taken {
        Taken::Pass(piece.len, self.end(piece.at, draws))
    }

    /// An end is a piece like any other.
    pub(super) fn end(&mut self, at: Timestamp, draws: &mut Draws) -> Timestamp {
        let delay = if self.delays.is_constant() { self.delays.add } else { self.delays.draw(&mut draws.next()) };
        self.last = (at + delay).max(self.last);
        self.last
    }

    /// What comes again may draw a shorter delay.
    pub(super) fn undo(&mut self) {
        self.last = Timestamp::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};

    /// Mean, standard deviation, and the quantiles 0, 50% and 99% of 40,000 draws, in milliseconds.
    fn shape(add: u64, jitter: u64, distribution: Distribution) -> [f64; 5] {
        let delays = Delays::new(Span::from_millis(add), Span::from_millis(jitter), distribution);
        let draw = |n| delays.draw(&mut Key { seed: 5, operation: n, ..Key::default() }.stream(Purpose::Bytes)).0 as f64 / 1e6;
        let mut all: Vec<f64> = (0..40_000).map(draw).collect();
        all.sort_by(f64::total_cmp);
        let mean = all.iter().sum::<f64>() / 40_000.0;
        let deviation = (all.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 40_000.0).sqrt();
        [mean, deviation, all[0], all[20_000], all[39_600]]
    }

    #[test]
    fn each_distribution_has_its_moments_and_quantiles() {
        // By hand, for mean 100 and deviation 30 (v = 0.09): lognormal: median 100/√1.09 = 95.78, sigma 0.29356, p99 = median · e^(2.3263 sigma)
        // = 189.6. Pareto: a = 1 + √(1 + 1/0.09) = 4.4801, least = 77.68, median = least · 2^(1/a) = 90.68, p99 = least · 100^(1/a) = 217.1.
        for (distribution, want) in [
            (Distribution::Uniform, [100.0, 30.0 / 3f64.sqrt(), 70.0, 100.0, 129.4]),
            (Distribution::Normal, [100.0, 30.0, f64::NAN, 100.0, 169.8]),
            (Distribution::Lognormal, [100.0, 30.0, f64::NAN, 95.78, 189.6]),
            (Distribution::Pareto, [100.0, 30.0, 77.68, 90.68, 217.1]),
        ] {
            let got = shape(100, 30, distribution);
            for (n, (got, want)) in got.iter().zip(want).enumerate() {
                // The deviation of a heavy tail is known least.
                let off = if n == 1 && distribution == Distribution::Pareto { 0.15 } else { 0.02 };
                assert!(want.is_nan() || (got / want - 1.0).abs() < off, "{distribution:?}, figure {n}: {got} instead of {want}");
            }
        }
    }

    #[test]
    fn nothing_is_below_zero_and_no_jitter_is_no_draw() {
        assert_eq!(shape(10, 50, Distribution::Normal)[2], 0.0);
        assert_eq!(shape(0, 50, Distribution::Pareto), [0.0; 5]);
        for distribution in Distribution::ALL {
            assert_eq!(shape(10, 0, *distribution), [10.0, 0.0, 10.0, 10.0, 10.0]);
        }
    }
}
