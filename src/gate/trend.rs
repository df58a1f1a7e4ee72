//! Whether a level falls, and when it will have fallen far enough: a straight line through its last values.

use crate::time::Span;

/// A line by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// How much the level changes per second.
    pub slope: f64,
    /// Where the line stands at the last value.
    pub end: f64,
    /// Whether it falls by more than noise: the slope is below zero by three times its own standard error, and over
    /// the stretch it comes to more than a tenth of the mean. Levels remember: operations live for several windows, so
    /// a backlog wanders. The error is that of first-order autoregressive residuals, √((1 + r)/(1 − r)) times that of
    /// independent ones.
    pub falling: bool,
}

impl Trend {
    /// The trend of levels one `window` apart; none of fewer than four.
    pub fn of(levels: &[f64], window: Span) -> Option<Self> {
        if levels.len() < 4 {
            return None;
        }
        let n = levels.len() as f64;
        let (mid, mean) = ((n - 1.0) / 2.0, levels.iter().sum::<f64>() / n);
        let (mut xx, mut xy) = (0.0, 0.0);
        for (i, level) in levels.iter().enumerate() {
            let x = i as f64 - mid;
            xx += x * x;
            xy += x * (level - mean);
        }
        let step = xy / xx;
        let residuals: Vec<f64> = levels.iter().enumerate().map(|(i, level)| level - mean - step * (i as f64 - mid)).collect();
        let squares: f64 = residuals.iter().map(|r| r * r).sum();
        let memory = memory(&residuals, squares);
        let error = libm::sqrt(squares / (n - 2.0) / xx * (1.0 + memory) / (1.0 - memory));
        let falling = step < -3.0 * error && -step * (n - 1.0) > mean / 10.0;
        Some(Self { slope: step / window.as_secs_f64(), end: mean + step * mid, falling })
    }

    /// How long from the last value until the line is at `level`; none where it does not fall.
    pub fn drain(&self, level: f64) -> Option<Span> {
        self.falling.then(|| Span::from_secs_f64((self.end - level).max(0.0) / -self.slope))
    }
}

/// The residuals' autocorrelation from one window to the next, kept within what can be corrected for.
fn memory(residuals: &[f64], squares: f64) -> f64 {
    let products: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    if squares > 0.0 { (products / squares).clamp(0.0, 0.95) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};

    const WINDOW: Span = Span::from_millis(500);

    #[test]
    fn a_line_is_found_and_projected() {
        let levels: Vec<f64> = (0..20).map(|i| 1000.0 - 10.0 * f64::from(i)).collect();
        let trend = Trend::of(&levels, WINDOW).unwrap();
        assert!((trend.slope + 20.0).abs() < 1e-9 && (trend.end - 810.0).abs() < 1e-9 && trend.falling);
        assert_eq!(trend.drain(10.0), Some(Span::from_secs(40)));
        assert_eq!(trend.drain(900.0), Some(Span::ZERO));
    }

    #[test]
    fn noise_is_no_trend() {
        let noise = [1.0, 0.93, 1.08, 0.95, 1.1, 0.9, 1.02, 0.97, 1.05, 0.92];
        let flat: Vec<f64> = noise.iter().map(|n| n * 2000.0).collect();
        assert!(!Trend::of(&flat, WINDOW).unwrap().falling);
        let falling: Vec<f64> = noise.iter().enumerate().map(|(i, n)| n * 2000.0 * (1.0 - i as f64 / 12.0)).collect();
        assert!(Trend::of(&falling, WINDOW).unwrap().falling);
        let creeping: Vec<f64> = (0..10).map(|i| 2000.0 - f64::from(i)).collect();
        assert!(!Trend::of(&creeping, WINDOW).unwrap().falling, "steady, but next to nothing");
        let rising: Vec<f64> = (0..10).map(f64::from).collect();
        assert_eq!(Trend::of(&rising, WINDOW).unwrap().drain(0.0), None);
        assert_eq!(Trend::of(&[0.0; 10], WINDOW).map(|t| t.falling), Some(false));
        assert_eq!(Trend::of(&[3.0, 2.0, 1.0], WINDOW), None);
    }

    /// A stuck system's backlog of a thousand: as many operations as come up in the seconds that each of them lives.
    #[test]
    fn a_backlog_that_wanders_is_rarely_taken_for_one_that_falls() {
        let keep = 0.6;
        let wanders = |seed: u64| {
            let mut draws = Key { seed, ..Key::default() }.stream(Purpose::Network);
            let mut off = draws.normal();
            let levels: Vec<f64> = (0..20)
                .map(|_| {
                    off = keep * off + libm::sqrt(1.0 - keep * keep) * draws.normal();
                    1000.0 + 32.0 * off
                })
                .collect();
            Trend::of(&levels, WINDOW).is_some_and(|t| t.falling)
        };
        let taken = (0..5_000).filter(|&seed| wanders(seed)).count();
        assert!(taken < 50, "{taken} of 5000");
    }
}
