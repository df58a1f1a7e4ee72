//! The tipping point of a setting: the value at which half of the seeds stay stuck.
//!
//! Owns which values are tried and what follows from their counts; leaves to others what a value is of, and the runs. The
//! same seeds run at every value. What is asked of a value is how many of the runs that showed anything stayed stuck.
//!
//! - **Direction.** The ends of the range are tried first, and three values between them. Where half or more of the runs stay stuck at
//!   one end and fewer at the other, the share is taken to grow towards the stuck end. Where both ends agree, and a value
//!   between them does not, the search goes on at the lower shore of that island, and says so.
//! - **Point.** Bisection on where the isotonic fit of all counts (the best one that never falls; Ayer et al. 1955) crosses one half.
//! - **Uncertainty.** From the last value up to which every count tried lies significantly below one half, to the first from
//!   which every count lies significantly above (exact binomial test, 2.5% on each side): the bounds are bisected too. With runs that each
//!   have a threshold of their own, that is the order-statistic interval of the median, 95.9% at 20 seeds.
//! - **Order.** A count that is significantly lower than one before it contradicts the direction and is reported; no count
//!   between them can then be a bound.

/// Values tried at most.
pub const MOST_TRIED: usize = 64;
/// Fewer runs than this cannot be told from half, whatever they show.
pub const LEAST_RUNS: u64 = 6;
/// The chance of an error on each side.
const SIDE: f64 = 0.025;
/// So many values between the ends are tried whatever the ends show.
const BETWEEN: u32 = 3;

/// Which values a search may try.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The lower end.
    pub from: f64,
    /// The upper end, above the lower one.
    pub to: f64,
    /// How near a bracket comes: its width / its upper end.
    pub tolerance: f64,
    /// Values are multiples of this, but for the ends.
    pub grain: f64,
}

/// What the runs at a value showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// The value.
    pub value: f64,
    /// Runs that stayed stuck.
    pub stuck: u64,
    /// Runs that showed anything: stuck or recovered.
    pub runs: u64,
}

/// A tipping point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tipping {
    /// The value at which half of the runs stay stuck, by the best fit.
    pub value: f64,
    /// The share of stuck runs cannot be told from half from here; none where that holds at the lower end of the range.
    pub from: Option<f64>,
    /// To here; none where that holds at the upper end.
    pub to: Option<f64>,
    /// Whether runs stay stuck above it, and not below.
    pub rising: bool,
    /// Two values, in the order of growing shares, of which the first has significantly more stuck runs.
    pub contradiction: Option<(f64, f64)>,
    /// Whether both ends of the range agree, and this is the lower shore of an island between them.
    pub island: bool,
}

/// What a search came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found {
    /// The tipping point.
    Tipping(Tipping),
    /// Half or more of the runs stay stuck wherever it was tried.
    AllStuck,
    /// Fewer than half do, wherever it was tried.
    NoneStuck,
}

/// A search, sans-IO: ask [`Search::next`] for a value, try it, tell [`Search::tried`].
#[derive(Clone, Debug)]
pub struct Search {
    range: Range,
    /// In rising order of values.
    tried: Vec<Tried>,
}

impl Search {
    /// A search over a range.
    ///
    /// # Errors
    /// A range without an inside, or numbers that are none.
    pub fn new(range: Range) -> Result<Self, String> {
        let numbers = [range.from, range.to, range.tolerance, range.grain];
        if numbers.iter().any(|n| !n.is_finite() || *n < 0.0) || range.tolerance == 0.0 {
            return Err("a range is made of numbers from 0 on, and a tolerance above 0".into());
        }
        if range.from >= range.to {
            return Err("the lower end of the range must lie below the upper one".into());
        }
        Ok(Self { range, tried: Vec::new() })
    }

    /// The value to try next; none where the search is over.
    pub fn next(&self) -> Option<f64> {
        let ends = [self.range.from, self.range.to];
        if let Some(end) = ends.into_iter().find(|end| !self.knows(*end)) {
            return Some(end);
        }
        if self.tried.len() >= MOST_TRIED {
            return None;
        }
        let parts = (1..=BETWEEN).map(|n| self.between(self.range.from, self.range.to, f64::from(n) / f64::from(BETWEEN + 1)));
        if let Some(value) = parts.into_iter().find(|value| !self.knows(*value)) {
            return Some(value);
        }
        let slope = self.slope()?;
        let crossing = slope.crossing();
        let gaps = [Some((crossing, crossing + 1)), slope.last_below(), slope.first_above()];
        gaps.into_iter().flatten().find_map(|(a, b)| self.middle(slope.counts[a].value, slope.counts[b].value))
    }

    /// Books what a value showed. A value that was tried before is replaced.
    pub fn tried(&mut self, tried: Tried) {
        self.tried.retain(|known| known.value != tried.value);
        let place = self.tried.partition_point(|known| known.value < tried.value);
        self.tried.insert(place, tried);
    }

    /// What was tried so far, in rising order.
    pub fn counts(&self) -> &[Tried] {
        &self.tried
    }

    /// What the values tried so far come to; none where the ends have not both been tried.
    pub fn found(&self) -> Option<Found> {
        if !self.knows(self.range.from) || !self.knows(self.range.to) {
            return None;
        }
        let Some(slope) = self.slope() else {
            return Some(if self.tried[0].is_stuck() { Found::AllStuck } else { Found::NoneStuck });
        };
        let value_of = |index: usize| slope.counts[index].value;
        let below = slope.last_below().map(|(last, _)| value_of(last));
        let above = slope.first_above().map(|(_, first)| value_of(first));
        let (from, to) = if slope.rising { (below, above) } else { (above, below) };
        let value = self.estimate(&slope).max(from.unwrap_or(self.range.from)).min(to.unwrap_or(self.range.to));
        let (contradiction, island) = (slope.contradiction(), slope.island);
        Some(Found::Tipping(Tipping { value, from, to, rising: slope.rising, contradiction, island }))
    }

    fn knows(&self, value: f64) -> bool {
        self.tried.iter().any(|tried| tried.value == value)
    }

    /// The counts from the end that recovers to the one that stays stuck; none where all agree.
    fn slope(&self) -> Option<Slope> {
        let (first, last) = (self.tried.first()?, self.tried.last()?);
        let mut counts = self.tried.clone();
        let island = first.is_stuck() == last.is_stuck();
        if island {
            // What lies beyond the lower shore belongs to another crossing.
            let shore = counts.iter().position(|tried| tried.is_stuck() != first.is_stuck())?;
            counts.truncate(shore + 1);
        }
        let rising = !first.is_stuck();
        if !rising {
            counts.reverse();
        }
        Some(Slope { counts, rising, island })
    }

    fn estimate(&self, slope: &Slope) -> f64 {
        let fit = slope.fit();
        let at = slope.crossing();
        let part = (0.5 - fit[at]) / (fit[at + 1] - fit[at]);
        let (a, b) = (slope.counts[at].value, slope.counts[at + 1].value);
        if self.is_log() { a * libm::pow(b / a, part) } else { a + (b - a) * part }
    }

    /// A value between two, unless they are near enough.
    fn middle(&self, a: f64, b: f64) -> Option<f64> {
        let (low, high) = (a.min(b), a.max(b));
        let middle = self.between(low, high, 0.5);
        // Rounding may make a gap seem a little wider than it is.
        let near = high - low <= self.range.tolerance * high * (1.0 + 1e-9);
        (!near && low < middle && middle < high).then_some(middle)
    }

    fn between(&self, low: f64, high: f64, part: f64) -> f64 {
        let value = if self.is_log() { low * libm::pow(high / low, part) } else { low + (high - low) * part };
        if self.range.grain > 0.0 { (value / self.range.grain).round() * self.range.grain } else { value }
    }

    /// Over a decade and more, ratios count; below, differences.
    fn is_log(&self) -> bool {
        self.range.from > 0.0 && self.range.to / self.range.from >= 10.0
    }
}

impl Tried {
    /// Whether half or more of the runs stayed stuck.
    pub fn is_stuck(&self) -> bool {
        2 * self.stuck >= self.runs
    }

    fn share(&self) -> f64 {
        self.stuck as f64 / self.runs.max(1) as f64
    }

    /// Whether the share of stuck runs lies significantly below one half.
    fn is_below(&self) -> bool {
        at_most(self.stuck, self.runs) < SIDE
    }

    fn is_above(&self) -> bool {
        at_most(self.runs - self.stuck.min(self.runs), self.runs) < SIDE
    }
}

/// Counts in the order in which the share of stuck runs grows.
struct Slope {
    counts: Vec<Tried>,
    rising: bool,
    island: bool,
}

impl Slope {
    /// The index before which the fit lies below one half, and from the next on does not.
    fn crossing(&self) -> usize {
        let below = self.fit().iter().filter(|share| **share < 0.5).count();
        below.clamp(1, self.counts.len() - 1) - 1
    }

    /// The last count up to which all lie significantly below one half, and the one after it.
    fn last_below(&self) -> Option<(usize, usize)> {
        let below = self.counts.iter().take_while(|tried| tried.is_below()).count();
        (0 < below && below < self.counts.len()).then(|| (below - 1, below))
    }

    /// The first count from which all lie significantly above one half, and the one before it.
    fn first_above(&self) -> Option<(usize, usize)> {
        let above = self.counts.iter().rev().take_while(|tried| tried.is_above()).count();
        let first = self.counts.len() - above;
        (0 < above && 0 < first).then(|| (first - 1, first))
    }

    /// The isotonic fit: neighbours in the wrong order are pooled until there are none.
    fn fit(&self) -> Vec<f64> {
        let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
        for tried in &self.counts {
            let (mut share, mut weight, mut length) = (tried.share(), tried.runs.max(1) as f64, 1);
            while let Some(&(before, heavy, long)) = blocks.last().filter(|block| block.0 >= share) {
                share = (share * weight + before * heavy) / (weight + heavy);
                (weight, length) = (weight + heavy, length + long);
                blocks.pop();
            }
            blocks.push((share, weight, length));
        }
        blocks.iter().flat_map(|&(share, _, length)| std::iter::repeat_n(share, length)).collect()
    }

    /// The first two counts that stand in the wrong order significantly: neither is compatible with the other's share.
    fn contradiction(&self) -> Option<(f64, f64)> {
        let pairs = self.counts.iter().enumerate().flat_map(|(n, a)| self.counts[n + 1..].iter().map(move |b| (a, b)));
        pairs.into_iter().find(|(a, b)| a.is_above() && b.is_below()).map(|(a, b)| (a.value, b.value))
    }
}

/// The chance that of `n` fair coins at most `k` show heads.
fn at_most(k: u64, n: u64) -> f64 {
    let n = n.min(1_000);
    let mut term = libm::pow(0.5, n as f64);
    let mut sum = term;
    for i in 0..k.min(n) {
        term *= (n - i) as f64 / (i + 1) as f64;
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};

    const RANGE: Range = Range { from: 1.0, to: 120.0, tolerance: 0.02, grain: 0.01 };

    /// Searches to the end; `stuck` says how many of 20 runs stay stuck at a value.
    fn search(range: Range, stuck: impl Fn(f64) -> u64) -> (Found, Vec<Tried>) {
        let mut search = Search::new(range).unwrap();
        while let Some(value) = search.next() {
            assert!((range.from..=range.to).contains(&value) && !search.knows(value), "{value}: {search:?}");
            search.tried(Tried { value, stuck: stuck(value), runs: 20 });
        }
        (search.found().unwrap(), search.counts().to_vec())
    }

    fn tipping(range: Range, stuck: impl Fn(f64) -> u64) -> Tipping {
        match search(range, stuck) {
            (Found::Tipping(tipping), _) => tipping,
            (found, tried) => panic!("{found:?}: {tried:?}"),
        }
    }

    fn unit(seed: u64, n: u64) -> f64 {
        Key { seed, operation: n, ..Key::default() }.stream(Purpose::Network).unit()
    }

    /// The quantile function of the logistic distribution around `middle`.
    fn threshold(middle: f64, width: f64, unit: f64) -> f64 {
        middle + width * libm::log(unit.max(1e-12) / (1.0 - unit).max(1e-12))
    }

    #[test]
    fn a_step_is_found_within_the_tolerance_from_either_side() {
        for edge in [1.3, 2.0, 12.34, 60.0, 119.0] {
            let rising = tipping(RANGE, |value| if value >= edge { 20 } else { 0 });
            let falling = tipping(RANGE, |value| if value <= edge { 20 } else { 0 });
            for (found, is_rising) in [(rising, true), (falling, false)] {
                let (from, to) = (found.from.unwrap(), found.to.unwrap());
                assert!(from <= edge && edge <= to && to - from <= 0.021 * to, "{edge}: {found:?}");
                assert!(from <= found.value && found.value <= to && found.rising == is_rising, "{edge}: {found:?}");
                assert_eq!((found.contradiction, found.island), (None, false));
            }
        }
        let counts = tipping(Range { from: 100.0, to: 5_000.0, tolerance: 0.02, grain: 1.0 }, |n| if n > 777.0 { 20 } else { 0 });
        assert!(counts.from.unwrap().fract() == 0.0 && (counts.value - 777.0).abs() < 16.0, "{counts:?}");
        let small = tipping(Range { from: 0.0, to: 4.0, tolerance: 0.02, grain: 1.0 }, |n| if n > 2.0 { 20 } else { 0 });
        assert_eq!((small.from, small.to), (Some(2.0), Some(3.0)), "no finer than the grain");
    }

    #[test]
    fn the_true_point_lies_in_the_interval_in_95_of_100_cases() {
        for (width, paired) in [(0.05, true), (0.5, true), (3.0, true), (0.05, false), (0.5, false), (3.0, false)] {
            let (cases, middle) = (400, 30.0);
            let inside = (0..cases).filter(|&case| {
                let found = tipping(RANGE, |value| {
                    let fresh = if paired { 0 } else { (value * 100.0) as u64 * 1_000 };
                    (0..20).filter(|n| threshold(middle, width, unit(case, fresh + n)) < value).count() as u64
                });
                found.from.is_none_or(|from| from <= middle) && found.to.is_none_or(|to| middle <= to)
            });
            let inside = inside.count();
            // Three standard errors of 400 cases below 95%.
            assert!(inside * 1_000 >= cases as usize * 917, "width {width}, paired {paired}: {inside} of {cases}");
        }
    }

    #[test]
    fn a_noisy_response_is_bounded_by_shares_that_differ_from_half() {
        let share = |value: f64| 20.0 / (1.0 + libm::exp((30.0 - value) / 4.0));
        let found = tipping(RANGE, |value| share(value).round() as u64);
        assert!((found.value - 30.0).abs() < 1.0, "{found:?}");
        let (from, to) = (found.from.unwrap(), found.to.unwrap());
        assert!(share(from).round() <= 5.0 && share(from * 1.03).round() > 5.0, "{found:?}");
        assert!(share(to).round() >= 15.0 && share(to * 0.97).round() < 15.0, "{found:?}");
    }

    #[test]
    fn ends_that_agree_have_no_tipping_point_unless_there_is_an_island() {
        let (found, tried) = search(RANGE, |_| 0);
        assert_eq!((found, tried.len()), (Found::NoneStuck, 5));
        assert_eq!(search(RANGE, |_| 20).0, Found::AllStuck);
        let island = tipping(RANGE, |value| if (5.0..70.0).contains(&value) { 20 } else { 0 });
        assert!(island.island && island.rising && (island.value - 5.0).abs() < 0.2, "{island:?}");
        let lake = tipping(RANGE, |value| if (5.0..70.0).contains(&value) { 0 } else { 20 });
        assert!(lake.island && !lake.rising && (lake.value - 5.0).abs() < 0.2, "{lake:?}");
    }

    #[test]
    fn a_count_in_the_wrong_order_is_reported_and_widens_the_interval() {
        let hump = |value: f64| if value >= 60.0 || (3.0..12.0).contains(&value) { 20 } else { 0 };
        let found = tipping(RANGE, hump);
        let (stuck, free) = found.contradiction.expect("10.95 is stuck, and what lies above recovers");
        assert!(hump(stuck) == 20 && hump(free) == 0 && stuck < free, "{found:?}");
        assert!(found.from.unwrap() <= 3.0 && found.to.unwrap() >= 60.0, "{found:?}");
    }

    #[test]
    fn an_end_that_cannot_be_told_from_half_leaves_the_interval_open() {
        let found = tipping(RANGE, |value| if value < 30.0 { 8 } else { 20 });
        assert!(found.from.is_none() && found.to.is_some(), "{found:?}");
    }

    #[test]
    fn few_runs_are_never_significant_and_bad_ranges_are_refused() {
        let count = |stuck, runs| Tried { value: 1.0, stuck, runs };
        assert!(!count(0, LEAST_RUNS - 1).is_below() && count(0, LEAST_RUNS).is_below());
        assert!(!count(LEAST_RUNS - 1, LEAST_RUNS - 1).is_above() && count(LEAST_RUNS, LEAST_RUNS).is_above());
        assert!(count(5, 20).is_below() && !count(6, 20).is_below() && count(15, 20).is_above() && !count(14, 20).is_above());
        for (from, to, tolerance) in [(2.0, 2.0, 0.1), (3.0, 2.0, 0.1), (f64::NAN, 2.0, 0.1), (-1.0, 2.0, 0.1), (1.0, 2.0, 0.0)] {
            assert!(Search::new(Range { from, to, tolerance, grain: 0.0 }).is_err(), "{from} {to} {tolerance}");
        }
        assert_eq!(Search::new(RANGE).unwrap().found(), None);
    }

    #[test]
    fn a_search_is_bounded() {
        let (_, tried) = search(Range { tolerance: 1e-9, grain: 0.0, ..RANGE }, |value| (value / 6.0) as u64);
        assert!(tried.len() <= MOST_TRIED);
    }
}
