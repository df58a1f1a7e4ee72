//! A vertical scale: where a value lies, what stands on the axis, and how values are written into a path.
//!
//! Paths hold values rather than pixels: a transform puts them in place. What the script reads out is then what was
//! measured, and a path costs no more characters than its numbers.

use super::super::super::layout::{millis, number, percent};

/// What a chart's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Events per second.
    Rate,
    /// A count.
    Count,
    /// A share, 0 to 1.
    Share,
    /// Milliseconds.
    Millis,
    /// A factor.
    Factor,
}

impl Unit {
    /// A value with its unit.
    pub fn show(self, x: f64) -> String {
        match self {
            Self::Rate => format!("{}/s", number(x)),
            Self::Count => number(x),
            Self::Share => percent(Some(x)),
            Self::Millis => millis(Some(x)),
            Self::Factor => format!("{}×", number(x)),
        }
    }

    /// What the script calls it.
    pub fn key(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Count => "count",
            Self::Share => "share",
            Self::Millis => "ms",
            Self::Factor => "factor",
        }
    }
}

/// How values become heights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Evenly, from zero.
    Linear {
        /// The value at the top.
        top: f64,
        /// The step between ticks.
        step: f64,
    },
    /// By the logarithm; zero and what is below stand at the foot.
    Log {
        /// The value at the foot.
        low: f64,
        /// The value at the top.
        high: f64,
    },
}

/// Units of a path for each factor of ten of a logarithmic scale: a quarter of a percent each.
const PER_DECADE: f64 = 1_000.0;
/// Ticks of a linear scale, about.
const TICKS: f64 = 4.0;
/// A few values that tower so high above nine tenths of the others would flatten them.
const TOWERING: f64 = 12.0;
/// Values outside of these are taken for the nearer of them: no measurement reaches that far, and beyond, arithmetic gives out.
const SANE: (f64, f64) = (1e-12, 1e18);

impl Scale {
    /// From zero to at least `top`, with ticks at 1, 2 or 5 times a power of ten.
    pub fn linear(top: f64) -> Self {
        let top = if top.is_finite() && top > 0.0 { top.clamp(SANE.0, SANE.1) } else { 1.0 };
        let step = nice(top / TICKS);
        Self::Linear { top: (top / step - 1e-9).ceil() * step, step }
    }

    /// From zero to at least `top` milliseconds, with ticks as clocks have them.
    pub fn time(top: f64) -> Self {
        let linear = Self::linear(top);
        let step = TIME_STEPS.into_iter().map(|step| step as f64).find(|step| top / step <= TICKS + 1.0);
        match step.filter(|_| top >= 1.0) {
            Some(step) => Self::Linear { top: (top / step - 1e-9).ceil() * step, step },
            None => linear,
        }
    }

    /// Shares from nothing to all.
    pub fn share() -> Self {
        Self::Linear { top: 1.0, step: 0.25 }
    }

    /// By the logarithm, its ends at 1, 2 or 5 times a power of ten.
    pub fn log(low: f64, high: f64) -> Self {
        let usable = |x: f64| x.is_finite() && x > 0.0;
        let high = if usable(high) { high.clamp(SANE.0, SANE.1) } else { 1.0 };
        let low = if usable(low) { low.clamp(SANE.0, high) } else { high / 10.0 };
        let (low, high) = (rungs(low, low).0, rungs(high, high).1);
        Self::Log { low: if low < high { low } else { low / 10.0 }, high }
    }

    /// Linear, or logarithmic where a few values tower so far above the others that a linear scale would hide these.
    pub fn fit(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.filter(|x| x.is_finite() && *x > 0.0).collect();
        values.sort_by(f64::total_cmp);
        let Some(&top) = values.last() else { return Self::linear(1.0) };
        let usual = values[values.len() * 9 / 10 - usize::from(values.len() * 9 / 10 == values.len())];
        // The foot stands for nothing: the least of all values stays clear of it.
        if top > usual * TOWERING { Self::log(values[0] / 2.0, top) } else { Self::linear(top) }
    }

    /// Whether it is logarithmic.
    pub fn is_log(&self) -> bool {
        matches!(self, Self::Log { .. })
    }

    /// Where a value lies, from 0 at the foot to 1 at the top.
    pub fn place(&self, x: f64) -> f64 {
        let at = match *self {
            Self::Linear { top, .. } => x / top,
            Self::Log { low, high } => libm::log10(x.max(low) / low) / libm::log10(high / low),
        };
        at.clamp(0.0, 1.0)
    }

    /// The values that stand on the axis, from below.
    pub fn ticks(&self) -> Vec<f64> {
        match *self {
            Self::Linear { top, step } => (0..=(top / step).round() as usize).map(|n| n as f64 * step).collect(),
            Self::Log { low, high } => log_ticks(low, high),
        }
    }

    /// What stands on the axis in this unit: where, and how it is written.
    pub fn labels(&self, unit: Unit) -> Vec<(f64, String)> {
        let write = |tick: f64| (self.place(tick), unit.show(tick));
        match *self {
            Self::Log { low, high } if unit == Unit::Millis => {
                let within = |ticks: &[f64]| -> Vec<f64> { ticks.iter().copied().filter(|x| (low..=high).contains(x)).collect() };
                let (few, more) = (within(&CLOCK), within(&FINER));
                if few.len() > 2 { few } else { more }.into_iter().map(write).collect()
            }
            Self::Log { low, .. } => {
                let above = self.ticks().into_iter().filter(|tick| *tick > low * 1.01).map(write);
                std::iter::once((0.0, unit.show(0.0))).chain(above).collect()
            }
            Self::Linear { .. } => self.ticks().into_iter().map(write).collect(),
        }
    }

    /// A value as a path has it.
    pub fn coordinate(&self, x: f64) -> String {
        match self {
            Self::Linear { .. } => short(x),
            Self::Log { low, .. } => {
                let at = libm::log10(x.max(*low)) * PER_DECADE;
                format!("{:.0}", at + 0.0)
            }
        }
    }

    /// The lowest and the highest coordinate.
    pub fn coordinates(&self) -> (f64, f64) {
        match *self {
            Self::Linear { top, .. } => (0.0, top),
            Self::Log { low, high } => (libm::log10(low) * PER_DECADE, libm::log10(high) * PER_DECADE),
        }
    }
}

/// Ticks of a logarithmic scale of time, in milliseconds, and closer ones for where too few of these are in sight.
const CLOCK: [f64; 10] = [0.1, 1.0, 10.0, 100.0, 1_000.0, 10_000.0, 60_000.0, 600_000.0, 3_600_000.0, 36_000_000.0];
const FINER: [f64; 26] = [
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4, 2e4, 6e4, 12e4, 3e5, 6e5, 12e5,
    36e5, 72e5, 18e6, 36e6,
];

/// The smallest of 1, 2 and 5 times a power of ten that is no smaller.
fn nice(x: f64) -> f64 {
    rungs(x, x).1
}

/// The next of 1, 2 and 5 times a power of ten below one value and above another.
fn rungs(low: f64, high: f64) -> (f64, f64) {
    let ladder = |x: f64| {
        let power = libm::floor(libm::log10(x)) as i32;
        [(power - 1, 5.0), (power, 1.0), (power, 2.0), (power, 5.0), (power + 1, 1.0)]
            .map(|(power, factor)| factor * libm::exp10(f64::from(power)))
    };
    let below = ladder(low).into_iter().rev().find(|&rung| rung <= low * (1.0 + 1e-9)).unwrap_or(low);
    let above = ladder(high).into_iter().find(|&rung| rung >= high * (1.0 - 1e-9)).unwrap_or(high);
    (below, above)
}

fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let decades = libm::log10(high / low);
    let factors: &[f64] = if decades <= 1.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let every = if decades > 7.0 { 2 } else { 1 };
    let (from, to) = (libm::floor(libm::log10(low)) as i32, libm::ceil(libm::log10(high)) as i32);
    let powers = (from..=to).filter(|power| power.rem_euclid(every) == 0);
    let all = powers.flat_map(|power| factors.iter().map(move |factor| factor * libm::exp10(f64::from(power))));
    all.filter(|&x| x >= low * (1.0 - 1e-9) && x <= high * (1.0 + 1e-9)).collect()
}

/// A number in as few characters as four digits take.
pub fn short(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return "0".into();
    }
    let x = x.clamp(-SANE.1, SANE.1);
    let size = libm::floor(libm::log10(x.abs())) as i32;
    let decimals = usize::try_from(3 - size).unwrap_or(0).min(9);
    let text = format!("{x:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// Steps of a time axis, in milliseconds.
const TIME_STEPS: [u64; 25] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000,
    1_800_000, 3_600_000, 7_200_000, 14_400_000, 21_600_000,
];
/// Ticks of a time axis, at the most.
const TIME_TICKS: u64 = 8;

/// The moments that stand on a time axis, in milliseconds, and how each is written.
pub fn time_ticks(span_ms: u64) -> Vec<(u64, String)> {
    let fits = |step: &u64| span_ms / step < TIME_TICKS;
    let day = 86_400_000;
    let step = TIME_STEPS.into_iter().find(fits).unwrap_or_else(|| day * (span_ms / day / TIME_TICKS + 1));
    (0..=span_ms / step).map(|n| (n * step, moment(n * step))).collect()
}

/// A moment of the run: `0s`, `1m30s`.
pub fn moment(ms: u64) -> String {
    if ms == 0 { "0s".into() } else { millis(Some(ms as f64)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_ones_twos_and_fives() {
        assert_eq!(Scale::linear(397.0).ticks(), [0.0, 100.0, 200.0, 300.0, 400.0]);
        assert_eq!(Scale::linear(400.0).ticks(), [0.0, 100.0, 200.0, 300.0, 400.0]);
        assert_eq!(Scale::linear(3_800.0).ticks(), [0.0, 1_000.0, 2_000.0, 3_000.0, 4_000.0]);
        assert_eq!(Scale::linear(0.0), Scale::linear(f64::NAN));
        assert_eq!(Scale::log(3.0, 40.0).ticks(), [2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(Scale::log(3.0, 4_000.0).ticks(), [10.0, 100.0, 1_000.0]);
        for top in [1e-6, 0.013, 1.0, 7.3, 99.99, 1e12] {
            let ticks = Scale::linear(top).ticks();
            assert!((3..=7).contains(&ticks.len()) && *ticks.last().unwrap() >= top * 0.999, "{top}: {ticks:?}");
        }
    }

    #[test]
    fn a_few_towers_make_a_scale_logarithmic() {
        let mut values = vec![6.0; 500];
        assert!(!Scale::fit(values.iter().copied()).is_log());
        values[60] = 5_700.0;
        let scale = Scale::fit(values.iter().copied());
        assert!(scale.is_log());
        assert_eq!((scale.place(0.0), scale.place(10_000.0)), (0.0, 1.0));
        assert!((0.05..0.2).contains(&scale.place(6.0)) && scale.place(600.0) > 0.5);
        assert!(!Scale::fit([].into_iter()).is_log());
    }

    #[test]
    fn what_no_clock_measures_still_has_a_place() {
        let extremes = [f64::from_bits(1), f64::MIN_POSITIVE, 1e-300, 1.0, 1e300, f64::MAX];
        for (low, high) in extremes.into_iter().flat_map(|low| extremes.map(|high| (low, high))) {
            for scale in
                [Scale::linear(high), Scale::time(high), Scale::log(low, high), Scale::fit([low, high, high].into_iter())]
            {
                let (foot, top) = scale.coordinates();
                assert!(foot.is_finite() && top.is_finite() && foot < top, "{low} {high}: {scale:?}");
                assert!([low, high].iter().all(|x| (0.0..=1.0).contains(&scale.place(*x))), "{low} {high}: {scale:?}");
                let (ticks, path) = (scale.ticks(), scale.coordinate(high));
                assert!((1..=20).contains(&ticks.len()) && ticks.iter().all(|tick| tick.is_finite()), "{scale:?}: {ticks:?}");
                assert!(path.len() < 24 && !path.contains("inf") && !path.contains("NaN"), "{scale:?}: {path}");
            }
        }
    }

    #[test]
    fn axes_of_time_go_by_the_clock() {
        let labels = |scale: Scale, unit| scale.labels(unit).into_iter().map(|(_, label)| label).collect::<Vec<_>>().join(" ");
        assert_eq!(labels(Scale::time(540_000.0), Unit::Millis), "0ms 2m 4m 6m 8m 10m");
        assert_eq!(labels(Scale::time(26_700.0), Unit::Millis), "0ms 10s 20s 30s");
        assert_eq!(labels(Scale::time(0.3), Unit::Millis), "0ms 0.1ms 0.2ms 0.3ms");
        assert_eq!(labels(Scale::Log { low: 8.0, high: 1_300_000.0 }, Unit::Millis), "10ms 100ms 1s 10s 1m 10m");
        assert_eq!(labels(Scale::Log { low: 20.0, high: 200.0 }, Unit::Millis), "20ms 50ms 100ms 200ms");
        assert_eq!(labels(Scale::log(0.5, 900.0), Unit::Rate), "0/s 1/s 10/s 100/s 1k/s");
    }

    #[test]
    fn time_is_told_in_its_own_units() {
        let labels = |ms| time_ticks(ms).into_iter().map(|(_, label)| label).collect::<Vec<_>>().join(" ");
        assert_eq!(labels(60_000), "0s 10s 20s 30s 40s 50s 1m");
        assert_eq!(labels(510_000), "0s 2m 4m 6m 8m");
        assert_eq!(labels(86_400_000), "0s 4h 8h 12h 16h 20h 24h");
        assert_eq!(labels(1_500), "0s 200ms 400ms 600ms 800ms 1s 1.2s 1.4s");
        for span in [0, 1, 7, 999, 123_456, 10_000_000_000] {
            assert!((1..=9).contains(&time_ticks(span).len()), "{span}");
        }
    }

    #[test]
    fn numbers_are_written_short_and_keep_four_digits() {
        for (x, want) in [(0.0, "0"), (412.0, "412"), (0.123_456, "0.1235"), (12.5, "12.5"), (1_234_567.0, "1234567")] {
            assert_eq!(short(x), want);
        }
        assert_eq!(Scale::log(1.0, 1_000.0).coordinate(100.0), "2000");
        assert_eq!(Scale::log(1.0, 1_000.0).coordinate(0.0), "0");
        assert_eq!([short(1e308), short(-1e308)], ["1000000000000000000", "-1000000000000000000"]);
    }
}
