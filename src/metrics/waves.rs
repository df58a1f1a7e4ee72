//! Waves: whether a load comes back in step, and how high it then stands.
//!
//! Looked at are three taps, a window at a time: *scheduled* (operations whose moment to be sent came), *dispatched* (attempts sent) and
//! *arrived* (requests that reached the proxy). A saturated pool hides at the later taps what stands at the first.
//!
//! The stretch is that from the start of the first fault to the end, or the whole run where there is no fault. For a period, the trend
//! (the centred mean over one period) is divided out, so that neither growth nor decay counts. Then there are the median over whole periods of
//! the highest window / the mean window, and the correlation of the series with itself one period later. Periods that are looked at
//! are those that the policies imply, and the one at which the variation is strongest, its double and its triple (`spectrum`).
//!
//! Too little for a judgement is none: fewer than three whole periods, or fewer than `LEAST_COUNT` counted in them on average. Nor does
//! a correlation repeat anything that is within three standard errors (1/√n) of none.

use super::record::{Counts, RunRecord, Window};
use super::spectrum::top_period;
use crate::time::{Span, Timestamp};

/// The shortest period, in windows: of a shorter one the shape cannot be seen.
const SHORTEST: usize = 3;
/// So many whole periods it takes.
const LEAST_PERIODS: usize = 3;
/// So much must be counted in a period, on average.
const LEAST_COUNT: f64 = 20.0;
/// Fleets are looked at one by one up to so many windows of all of them together.
const MOST_WINDOWS: usize = 2_000_000;

/// Whether there are waves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaveClass {
    /// Peak/mean at most 1.3, or an autocorrelation of at most 0.2.
    None,
    /// Something in between.
    Weak,
    /// Peak/mean at least 1.5 and an autocorrelation of at least 0.5.
    Waves,
}

/// The strongest period of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wave {
    /// The period.
    pub period: Span,
    /// Whether a policy implies it; where not, the series shows it.
    pub implied: bool,
    /// The median over its whole periods of the highest window / the mean window, the trend divided out.
    pub peak_to_mean: f64,
    /// The correlation of the series with itself one period later, the trend divided out.
    pub autocorrelation: f64,
    /// How many whole periods that is seen over.
    pub periods: u64,
    /// Whether that is a wave.
    pub class: WaveClass,
}

/// What is seen at each tap; none where there is too little to see.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Taps {
    /// Of operations whose moment to be sent came.
    pub scheduled: Option<Wave>,
    /// Of attempts sent.
    pub dispatched: Option<Wave>,
    /// Of requests that reached the proxy.
    pub arrived: Option<Wave>,
}

/// The waves of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waves {
    /// Where the stretch begins.
    pub from: Timestamp,
    /// Over all fleets.
    pub all: Taps,
    /// By fleet; empty where these are too many for so long a run.
    pub fleets: Vec<Taps>,
}

impl Wave {
    /// The figure `wave_score`: peak/mean, or 1 where nothing repeats.
    pub fn score(&self) -> f64 {
        if self.autocorrelation <= 0.2 { 1.0 } else { self.peak_to_mean }
    }
}

impl WaveClass {
    /// Its word in results.
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Weak => "WEAK",
            Self::Waves => "WAVES",
        }
    }
}

/// The waves of a run whose series is complete; `implied` are the periods that each fleet's policy and load imply.
pub fn measure(record: &RunRecord, implied: &[Vec<Span>]) -> Waves {
    let from = record.faults.iter().map(|fault| fault.from).min().unwrap_or(Timestamp::ZERO);
    let whole = record.windows.iter().take_while(|window| window.start + record.window <= record.ended);
    let windows: Vec<&Window> = whole.filter(|window| window.start >= from).collect();
    let all: Vec<Span> = implied.iter().flatten().copied().collect();
    let few = windows.len().saturating_mul(record.fleets.len()) <= MOST_WINDOWS;
    let none = Vec::new();
    let fleets = (0..record.fleets.len()).filter(|_| few).map(|fleet| {
        let of = |window: &&Window| window.fleets.get(fleet).cloned().unwrap_or_default();
        let counts: Vec<Counts> = windows.iter().map(of).collect();
        taps(&counts.iter().collect::<Vec<_>>(), implied.get(fleet).unwrap_or(&none), record.window)
    });
    let fleets = fleets.collect();
    Waves { from, all: taps(&windows.iter().map(|window| &window.all).collect::<Vec<_>>(), &all, record.window), fleets }
}

fn taps(windows: &[&Counts], implied: &[Span], window: Span) -> Taps {
    let of =
        |tap: fn(&Counts) -> u64| wave(&windows.iter().map(|counts| tap(counts) as f64).collect::<Vec<_>>(), implied, window);
    Taps { scheduled: of(|c| c.scheduled), dispatched: of(|c| c.attempts), arrived: of(|c| c.arrived) }
}

/// The strongest period of a series of windows.
pub fn wave(series: &[f64], implied: &[Span], window: Span) -> Option<Wave> {
    // The trend takes half a period at either end.
    let longest = series.len() / (LEAST_PERIODS + 1);
    if longest < SHORTEST {
        return None;
    }
    let fits = |period: &usize| (SHORTEST..=longest).contains(period);
    let to_windows = |span: &Span| (span.as_secs_f64() / window.as_secs_f64().max(1e-9) + 0.5) as usize;
    let mut periods: Vec<(usize, bool)> = implied.iter().map(to_windows).filter(fits).map(|period| (period, true)).collect();
    periods.extend(shown(series, longest).into_iter().filter(fits).map(|period| (period, false)));
    // Of one period told twice, the implied one stays.
    periods.sort_unstable_by_key(|&(period, implied)| (period, !implied));
    periods.dedup_by_key(|(period, _)| *period);
    let sums = sums(series);
    let waves = periods.into_iter().filter_map(|(period, implied)| {
        let Seen { peak_to_mean, autocorrelation, periods } = look(series, &sums, period)?;
        let class = class(peak_to_mean, autocorrelation);
        Some(Wave { period: window * period as u64, implied, peak_to_mean, autocorrelation, periods, class })
    });
    // A period repeats at its multiples too: the shortest that is nearly as good is the period itself.
    waves.reduce(|best, next| {
        let clearly = next.autocorrelation > best.autocorrelation + 0.05;
        if (next.class, clearly) > (best.class, false) && (next.class > best.class || clearly) { next } else { best }
    })
}

/// The periods at which the series itself varies most, in windows.
fn shown(series: &[f64], longest: usize) -> Vec<usize> {
    let sums = sums(series);
    let flat: Vec<f64> = (0..series.len()).map(|i| around(series, &sums, i, longest)).collect();
    let Some(top) = top_period(&flat, SHORTEST..=longest) else { return Vec::new() };
    let multiples = [1.0, 2.0, 3.0].map(|n| (top * n + 0.5) as usize);
    multiples.into_iter().flat_map(|period| [period - 1, period, period + 1]).collect()
}

/// A value against the mean of `span` values around it, of fewer at the ends.
fn around(series: &[f64], sums: &[f64], i: usize, span: usize) -> f64 {
    let (from, to) = (i.saturating_sub(span / 2), (i + span / 2 + 1).min(series.len()));
    against(series[i], (sums[to] - sums[from]) / (to - from) as f64)
}

/// A value against its trend; where nothing is around, nothing stands out.
fn against(value: f64, trend: f64) -> f64 {
    if trend > 0.0 { value / trend } else { 1.0 }
}

/// Entry i is the sum of the first i values.
fn sums(series: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    std::iter::once(0.0)
        .chain(series.iter().map(|x| {
            sum += x;
            sum
        }))
        .collect()
}

/// What is seen at one period.
struct Seen {
    peak_to_mean: f64,
    autocorrelation: f64,
    periods: u64,
}

fn look(series: &[f64], sums: &[f64], period: usize) -> Option<Seen> {
    let flat = without_trend(series, sums, period);
    let periods = flat.len() / period;
    let half = period / 2;
    let counted = sums[series.len() - half] - sums[half];
    if periods < LEAST_PERIODS || counted < LEAST_COUNT * periods as f64 {
        return None;
    }
    let mut peaks: Vec<f64> = flat.chunks_exact(period).map(peak_to_mean).collect();
    peaks.sort_unstable_by(f64::total_cmp);
    let peak_to_mean = (peaks[(periods - 1) / 2] + peaks[periods / 2]) / 2.0;
    let pairs = flat.len() - period;
    let seen = correlation(&flat[..pairs], &flat[period..]);
    let is_noise = seen < 3.0 / (pairs as f64).sqrt();
    Some(Seen { peak_to_mean, autocorrelation: if is_noise { seen.min(0.0) } else { seen }, periods: periods as u64 })
}

/// Every value that has a whole period around it, against the mean of that period.
fn without_trend(series: &[f64], sums: &[f64], period: usize) -> Vec<f64> {
    let half = period / 2;
    let trend = |i: usize| {
        let inner = sums[i + half + 1] - sums[i - half];
        // An even period has a centre between two windows: the outer two count half.
        let outer = if period.is_multiple_of(2) { (series[i - half] + series[i + half]) / 2.0 } else { 0.0 };
        // What sums leave of nothing by rounding is nothing: counts are whole.
        let sum = inner - outer;
        if sum < 0.25 { 0.0 } else { sum / period as f64 }
    };
    (half..series.len() - half).map(|i| against(series[i], trend(i))).collect()
}

fn peak_to_mean(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let peak = values.iter().copied().fold(0.0, f64::max);
    if mean > 0.0 { peak / mean } else { 1.0 }
}

/// Pearson's; zero where one of them does not vary.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (of_a, of_b) = (mean(a), mean(b));
    let (mut both, mut var_a, mut var_b) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (a - of_a, b - of_b);
        both += a * b;
        var_a += a * a;
        var_b += b * b;
    }
    let scale = (var_a * var_b).sqrt();
    if scale > 1e-9 { both / scale } else { 0.0 }
}

fn class(peak_to_mean: f64, autocorrelation: f64) -> WaveClass {
    if peak_to_mean >= 1.5 && autocorrelation >= 0.5 {
        WaveClass::Waves
    } else if peak_to_mean <= 1.3 || autocorrelation <= 0.2 {
        WaveClass::None
    } else {
        WaveClass::Weak
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose, Stream};

    const SECOND: Span = Span::from_secs(1);

    fn draws(seed: u64) -> Stream {
        Key { seed, ..Key::default() }.stream(Purpose::Arrival)
    }

    /// A Poisson count, by summing exponential gaps.
    fn poisson(mean: f64, draws: &mut Stream) -> f64 {
        let (mut at, mut n) = (draws.exponential(), 0.0);
        while at < mean {
            at += draws.exponential();
            n += 1.0;
        }
        n
    }

    fn noise(mean: f64, seed: u64, level: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut draws = draws(seed);
        (0..600).map(|i| poisson(mean * level(i), &mut draws)).collect()
    }

    fn of(series: &[f64], implied: &[u64]) -> Wave {
        let implied: Vec<Span> = implied.iter().map(|&s| Span::from_secs(s)).collect();
        wave(series, &implied, SECOND).expect("there is enough to see")
    }

    #[test]
    fn noise_is_none() {
        for mean in [1.0, 7.0, 100.0, 1000.0] {
            for seed in 0..10 {
                let wave = of(&noise(mean, seed, |_| 1.0), &[2, 4, 8, 16, 32, 60]);
                assert_eq!(wave.class, WaveClass::None, "{mean} {seed}: {wave:?}");
                assert!(wave.score() <= 1.3, "{mean} {seed}: {wave:?}");
            }
        }
    }

    #[test]
    fn growth_in_steps_or_slow_is_none() {
        // Retries of a steady 600/s whose waits are capped at 60 s: another 600/s every minute.
        let staircase: Vec<f64> = (0..1200).map(|i| 600.0 * (6 + i / 60) as f64).collect();
        assert_eq!(of(&staircase, &[60]).class, WaveClass::None);
        let grows: Vec<f64> = (0..600).map(|i| 10.0 + i as f64).collect();
        assert_eq!(of(&grows, &[4, 60]).class, WaveClass::None);
        let swells = noise(50.0, 3, |i| 1.0 + i as f64 / 60.0);
        assert_eq!(of(&swells, &[4, 60]).class, WaveClass::None);
    }

    #[test]
    fn returns_in_step_are_waves_whatever_the_trend() {
        for (name, level) in [("level", 0.0), ("growing", 1.0), ("fading", -0.9)] {
            let series: Vec<f64> =
                (0..600).map(|i| if i % 60 == 13 { 36_000.0 * (1.0 + level * i as f64 / 600.0) } else { 0.0 }).collect();
            let told = of(&series, &[2, 4, 8, 16, 32, 60]);
            assert_eq!(
                (told.class, told.period, told.implied),
                (WaveClass::Waves, Span::from_secs(60), true),
                "{name}: {told:?}"
            );
            assert!((told.peak_to_mean - 60.0).abs() < 3.0, "{name}: {told:?}");
            let found = of(&series, &[]);
            assert_eq!(
                (found.class, found.period, found.implied),
                (WaveClass::Waves, Span::from_secs(60), false),
                "{name}: {found:?}"
            );
        }
    }

    #[test]
    fn waves_show_through_noise_and_a_ripple_is_weak() {
        let swing = |height: f64| move |i: usize| 1.0 + height * libm::sin(std::f64::consts::TAU * i as f64 / 20.0);
        let waves = of(&noise(200.0, 5, swing(0.8)), &[]);
        assert_eq!((waves.class, waves.period), (WaveClass::Waves, Span::from_secs(20)), "{waves:?}");
        let ripple = of(&noise(200.0, 5, swing(0.25)), &[20]);
        assert_eq!((ripple.class, ripple.period), (WaveClass::Weak, Span::from_secs(20)), "{ripple:?}");
    }

    #[test]
    fn one_pulse_or_two_are_no_waves() {
        for pulses in [&[100][..], &[100, 160], &[50, 400]] {
            let mut series = noise(100.0, 8, |_| 1.0);
            pulses.iter().for_each(|&at| series[at] += 5_000.0);
            let wave = of(&series, &[60]);
            assert_eq!(wave.class, WaveClass::None, "{pulses:?}: {wave:?}");
        }
    }

    #[test]
    fn too_little_is_no_evidence() {
        let wave = |series: &[f64]| wave(series, &[Span::from_secs(60)], SECOND);
        assert_eq!(wave(&[]), None);
        assert_eq!(wave(&[5.0; 11]), None, "too short");
        assert_eq!(wave(&[0.0; 600]), None, "nothing");
        assert_eq!(wave(&[0.1; 600]), None, "too few");
    }

    #[test]
    fn the_stretch_is_that_from_the_first_fault_on() {
        let window = |i: u64| {
            let arrived = if i.is_multiple_of(20) && i >= 300 { 400 } else { 20 };
            let all = Counts { arrived, attempts: 100, ..Counts::default() };
            Window { start: Timestamp::ZERO + SECOND * i, fleets: vec![all.clone()], all }
        };
        let (from, to) = (Timestamp(300_000_000_000), Timestamp(301_000_000_000));
        let fault =
            super::super::FaultRecord { name: "f".into(), kind: "hang", from, to, touched: 1, ended_early: false, failed: None };
        let record = RunRecord {
            fleets: vec!["a".into()],
            window: SECOND,
            windows: (0..500).map(window).collect(),
            faults: vec![fault],
            ended: Timestamp(500_500_000_000),
            ..RunRecord::default()
        };
        let waves = measure(&record, &[vec![Span::from_secs(20)]]);
        assert_eq!((waves.from, waves.fleets[0]), (from, waves.all));
        assert_eq!(waves.all.arrived.map(|wave| (wave.class, wave.period)), Some((WaveClass::Waves, Span::from_secs(20))));
        assert_eq!(waves.all.dispatched.map(|wave| wave.class), Some(WaveClass::None));
        assert_eq!(waves.all.scheduled, None);
    }
}
