//! A small histogram of times, one per window and kind of latency, and the tally that fills it.
//!
//! Buckets are log-linear: microseconds up to 255 each have their own, and every power of two above is cut into
//! 128, so that a bucket is under 1% wide, from 1 µs to 24 h. Integer arithmetic only: a quantile is the same on
//! every machine. A [`Tally`] is dense and is written to in the hot path; a [`Sketch`] is what stays of it.

use crate::time::Span;
use std::ops::Range;
use std::sync::Arc;

/// Bits of a value that its bucket keeps below the leading one.
const BITS: u32 = 7;
/// The longest time that is told apart from longer ones: 24 h in microseconds.
const LONGEST: u64 = 86_400_000_000;
/// How many buckets there are.
const BUCKETS: usize = bucket_of(LONGEST) as usize + 1;

/// Counts by bucket, sorted and sparse: two to three bytes for each bucket in use. Clones share their storage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch {
    /// For each bucket in use, in order: the step from the one before, and its count, each in as few bytes as it needs.
    packed: Arc<[u8]>,
    /// All counts together.
    count: u64,
}

/// Counts by bucket, dense: one array of 31 KB, made when the first value comes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    counts: Vec<u64>,
    count: u64,
    /// From the first bucket in use to behind the last: what a window uses of the array is a small part of it.
    used: Range<u16>,
}

impl Sketch {
    /// Adds one value. Rewrites the sketch: the hot path fills a [`Tally`].
    pub fn record(&mut self, value: Span) {
        let mut tally = Tally::default();
        tally.record(value);
        tally.merge(self);
        *self = tally.take();
    }

    /// Adds what another holds.
    pub fn merge(&mut self, other: &Self) {
        if self.count == 0 {
            *self = other.clone();
        } else if other.count > 0 {
            let mut tally = Tally::default();
            tally.merge(self);
            tally.merge(other);
            *self = tally.take();
        }
    }

    /// How many values it holds.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The value below or at which so many thousandths of all values lie (500 for the median), as the middle of its
    /// bucket; none where it holds none.
    pub fn quantile(&self, per_mille: u64) -> Option<Span> {
        quantile(self.iter(), self.count, per_mille)
    }

    /// The values that it holds, each as the middle of its bucket, from the smallest, and how many there are.
    pub fn values(&self) -> impl Iterator<Item = (Span, u64)> + '_ {
        self.iter().map(|(bucket, n)| (Span::from_micros(middle_of(bucket)), n))
    }

    /// The bytes that it keeps on the heap.
    pub fn bytes(&self) -> usize {
        self.packed.len()
    }

    /// Buckets in use and their counts, in order.
    fn iter(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        let mut rest = &self.packed[..];
        let mut bucket = 0;
        std::iter::from_fn(move || {
            bucket += read_number(&mut rest)? as u16;
            Some((bucket, read_number(&mut rest)?))
        })
    }
}

impl FromIterator<Span> for Sketch {
    fn from_iter<I: IntoIterator<Item = Span>>(values: I) -> Self {
        let mut tally = Tally::default();
        values.into_iter().for_each(|value| tally.record(value));
        tally.take()
    }
}

impl Tally {
    /// Adds one value; longer than 24 h counts as 24 h, and below 1 µs as 0.
    pub fn record(&mut self, value: Span) {
        self.add(bucket_of(value.as_micros().min(LONGEST)), 1);
    }

    /// Adds what a sketch holds.
    pub fn merge(&mut self, sketch: &Sketch) {
        sketch.iter().for_each(|(bucket, n)| self.add(bucket, n));
    }

    /// How many values it holds.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// As [`Sketch::quantile`].
    pub fn quantile(&self, per_mille: u64) -> Option<Span> {
        quantile(self.iter(), self.count, per_mille)
    }

    /// The values that it holds, each as the middle of its bucket, from the smallest, and how many there are.
    pub fn values(&self) -> impl Iterator<Item = (Span, u64)> + '_ {
        self.iter().map(|(bucket, n)| (Span::from_micros(middle_of(bucket)), n))
    }

    /// The mean, each value counted as the middle of its bucket; none where it holds none.
    pub fn mean(&self) -> Option<Span> {
        let sum: u128 = self.iter().map(|(bucket, n)| u128::from(middle_of(bucket)) * u128::from(n) * 1_000).sum();
        (self.count > 0).then(|| Span((sum / u128::from(self.count)) as u64))
    }

    /// What it holds, as a sketch; empty afterwards, its array kept for the next window.
    pub fn take(&mut self) -> Sketch {
        if self.count == 0 {
            return Sketch::default();
        }
        let mut packed = Vec::new();
        let mut before = 0;
        for (bucket, n) in self.iter() {
            write_number(&mut packed, u64::from(bucket - before));
            write_number(&mut packed, n);
            before = bucket;
        }
        let used = std::mem::take(&mut self.used);
        self.counts[usize::from(used.start)..usize::from(used.end)].fill(0);
        Sketch { packed: packed.into(), count: std::mem::take(&mut self.count) }
    }

    fn add(&mut self, bucket: u16, n: u64) {
        if self.counts.is_empty() {
            self.counts.resize(BUCKETS, 0);
        }
        self.counts[usize::from(bucket)] += n;
        self.count += n;
        let Range { start, end } = self.used;
        self.used = if start == end { bucket..bucket + 1 } else { start.min(bucket)..end.max(bucket + 1) };
    }

    fn iter(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        let used = self.used.clone();
        used.zip(&self.counts[usize::from(self.used.start)..usize::from(self.used.end)])
            .filter(|(_, n)| **n > 0)
            .map(|(bucket, n)| (bucket, *n))
    }
}

/// The lower edge of the bucket that a number falls into: itself up to 255, under 1% less above. Bounds how many
/// different values of a count are kept apart.
pub fn bucket_floor(value: u64) -> u64 {
    low_of(bucket_of(value))
}

/// The bucket of a value in microseconds.
const fn bucket_of(micros: u64) -> u16 {
    let octave = (micros | (1 << BITS)).ilog2() - BITS;
    ((octave as u64) * (1 << BITS) + (micros >> octave)) as u16
}

/// The smallest value of a bucket.
fn low_of(bucket: u16) -> u64 {
    let octave = octave_of(bucket);
    (u64::from(bucket) - (octave << BITS)) << octave
}

/// The middle of a bucket.
fn middle_of(bucket: u16) -> u64 {
    low_of(bucket) + (1 << octave_of(bucket)) / 2
}

fn octave_of(bucket: u16) -> u64 {
    (u64::from(bucket) >> BITS).saturating_sub(1)
}

fn quantile(buckets: impl Iterator<Item = (u16, u64)>, count: u64, per_mille: u64) -> Option<Span> {
    let rank = (u128::from(count) * u128::from(per_mille.min(1000))).div_ceil(1000).max(1) as u64;
    let mut seen = 0;
    for (bucket, n) in buckets {
        seen += n;
        if seen >= rank {
            return Some(Span::from_micros(middle_of(bucket)));
        }
    }
    None
}

/// Seven bits to a byte, the low ones first; the top bit says that more follow.
fn write_number(bytes: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        bytes.push(n as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
}

fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut n = 0;
    let mut shift = 0;
    loop {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        n |= u64::from(first & 0x7f) << shift;
        shift += 7;
        if first & 0x80 == 0 {
            return Some(n);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};

    #[test]
    fn buckets_are_gapless_and_under_one_per_cent_wide() {
        assert_eq!(low_of(0), 0);
        for bucket in 0..BUCKETS as u16 - 1 {
            let (low, next) = (low_of(bucket), low_of(bucket + 1));
            assert_eq!(bucket_of(low), bucket);
            assert_eq!(bucket_of(next - 1), bucket);
            assert!(next - low == 1 || (next - low) as f64 / (low as f64) < 0.01, "bucket {bucket}: {low} to {next}");
        }
        assert!(BUCKETS < usize::from(u16::MAX));
    }

    #[test]
    fn quantiles_lie_within_one_per_cent_of_the_true_ones() {
        let mut values: Vec<u64> = (0..20_000).map(draw).collect();
        let sketch: Sketch = values.iter().map(|v| Span::from_micros(*v)).collect();
        values.sort_unstable();
        for per_mille in [1, 100, 500, 900, 990, 999, 1000] {
            let truth = values[(values.len() * per_mille as usize).div_ceil(1000) - 1] as f64;
            let seen = sketch.quantile(per_mille).unwrap().as_micros() as f64;
            assert!((seen - truth).abs() <= truth * 0.01 + 1.0, "{per_mille}: {seen} for {truth}");
        }
    }

    /// Spread evenly over the orders of magnitude from 1 µs to about 100 s.
    fn draw(i: u32) -> u64 {
        let mut stream = Key { seed: 7, client: i, ..Key::default() }.stream(Purpose::ServiceTime);
        let octave = stream.bits() % 27;
        (1 << octave) + stream.bits() % (1 << octave)
    }

    #[test]
    fn recording_merging_and_taking_agree() {
        let all: Vec<Span> = (1..2_000u64).map(|i| Span::from_micros(i * i)).collect();
        let (left, right) = all.split_at(700);
        let mut merged: Sketch = left.iter().copied().collect();
        merged.merge(&right.iter().copied().collect());
        assert_eq!(merged, all.iter().copied().collect());
        let mut one_by_one = Sketch::default();
        all.iter().for_each(|v| one_by_one.record(*v));
        assert_eq!(one_by_one, merged);
        assert_eq!(merged.count(), 1_999);
    }

    #[test]
    fn the_mean_lies_within_one_per_cent_of_the_true_one() {
        let mut tally = Tally::default();
        (1..=2_000).for_each(|n| tally.record(Span::from_micros(n * n)));
        let truth = (1..=2_000u64).map(|n| n * n).sum::<u64>() as f64 / 2_000.0;
        let seen = tally.mean().unwrap().as_micros() as f64;
        assert!((seen / truth - 1.0).abs() < 0.01, "{seen} for {truth}");
        assert_eq!(Tally::default().mean(), None);
    }

    #[test]
    fn edges() {
        assert_eq!(Sketch::default().quantile(500), None);
        let mut sketch = Sketch::default();
        sketch.record(Span::ZERO);
        assert_eq!(sketch.quantile(990), Some(Span::ZERO));
        sketch.record(Span::MAX);
        let day = Span::from_secs(86_400).as_secs_f64();
        assert!((sketch.quantile(1000).unwrap().as_secs_f64() - day).abs() < day * 0.01);
        let mut tally = Tally::default();
        assert_eq!(tally.take(), Sketch::default());
        (0..300).for_each(|_| tally.record(Span::from_millis(3)));
        assert_eq!(tally.take().count(), 300);
        assert_eq!(tally, Tally { counts: vec![0; BUCKETS], count: 0, used: 0..0 });
    }

    #[test]
    fn counts_of_attempts_stay_few() {
        assert_eq!((0..=255).map(bucket_floor).collect::<Vec<_>>(), (0..=255).collect::<Vec<_>>());
        let floor = bucket_floor(u64::from(u32::MAX));
        assert!(floor <= u64::from(u32::MAX) && floor as f64 > f64::from(u32::MAX) * 0.99);
    }
}
