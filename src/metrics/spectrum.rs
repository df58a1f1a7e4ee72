//! How much of a series' variation stands at which period: a discrete Fourier transform of our own, by halves (Cooley and
//! Tukey), so that a day of windows takes a moment. Sines and cosines are libm's.

use std::f64::consts::TAU;
use std::ops::RangeInclusive;

/// The period, in samples and within `periods`, at which the variation is strongest; none where nothing varies, or no such period
/// can be told. The series is smoothed over three samples first: of a train of pulses, whose harmonics are all equally strong, it is
/// then the pulses' own period.
pub fn top_period(series: &[f64], periods: RangeInclusive<usize>) -> Option<f64> {
    let power = periodogram(&smoothed(series));
    let padded = power.len() * 2;
    let (shortest, longest) = (*periods.start() as f64, *periods.end() as f64);
    let period = |bin: usize| padded as f64 / bin as f64;
    let fit = (1..power.len()).filter(|&bin| (shortest..=longest).contains(&period(bin)));
    let top = fit.max_by(|&a, &b| power[a].total_cmp(&power[b]))?;
    (power[top] > 0.0).then(|| period(top))
}

fn smoothed(series: &[f64]) -> Vec<f64> {
    let at = |i: usize| series[i.min(series.len() - 1)];
    (0..series.len()).map(|i| (at(i.saturating_sub(1)) + 2.0 * at(i) + at(i + 1)) / 4.0).collect()
}

/// Squared amplitudes of a series about its mean, padded with zeros to a power of two: entry k of n is the period 2n/k.
fn periodogram(series: &[f64]) -> Vec<f64> {
    let mean = series.iter().sum::<f64>() / series.len().max(1) as f64;
    let size = series.len().next_power_of_two().max(2);
    let mut values: Vec<(f64, f64)> = series.iter().map(|x| (x - mean, 0.0)).collect();
    values.resize(size, (0.0, 0.0));
    transform(&mut values);
    values[..size / 2].iter().map(|(re, im)| re * re + im * im).collect()
}

/// The transform in place; the length is a power of two.
fn transform(values: &mut [(f64, f64)]) {
    let size = values.len();
    let bits = size.trailing_zeros();
    for i in 0..size {
        let j = i.reverse_bits() >> (usize::BITS - bits);
        if i < j {
            values.swap(i, j);
        }
    }
    let turns: Vec<(f64, f64)> =
        (0..size / 2).map(|k| -TAU * k as f64 / size as f64).map(|angle| (libm::cos(angle), libm::sin(angle))).collect();
    let mut half = 1;
    while half < size {
        let stride = size / (2 * half);
        for block in values.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for (k, (a, b)) in low.iter_mut().zip(high).enumerate() {
                let (cos, sin) = turns[k * stride];
                let turned = (b.0 * cos - b.1 * sin, b.0 * sin + b.1 * cos);
                *b = (a.0 - turned.0, a.1 - turned.1);
                *a = (a.0 + turned.0, a.1 + turned.1);
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_transform() {
        let series: Vec<f64> = (0..32).map(|i| f64::from(i * i % 7)).collect();
        let mean = series.iter().sum::<f64>() / 32.0;
        let power = periodogram(&series);
        for (k, power) in power.iter().enumerate() {
            let (mut re, mut im) = (0.0, 0.0);
            for (i, x) in series.iter().enumerate() {
                let angle = -TAU * (k * i) as f64 / 32.0;
                re += (x - mean) * libm::cos(angle);
                im += (x - mean) * libm::sin(angle);
            }
            assert!((re * re + im * im - power).abs() < 1e-9, "{k}");
        }
    }

    #[test]
    fn the_period_of_sines_and_of_pulses_is_found() {
        let sine: Vec<f64> = (0..400).map(|i| libm::sin(TAU * f64::from(i) / 23.0)).collect();
        let pulses: Vec<f64> = (0..900).map(|i| if i % 60 == 7 { 100.0 } else { 0.0 }).collect();
        for (series, wanted) in [(sine, 23.0), (pulses, 60.0)] {
            let found = top_period(&series, 3..=100).unwrap();
            assert!((found - wanted).abs() < 1.0, "{found}, not {wanted}");
        }
        assert_eq!(top_period(&[4.0; 64], 3..=16), None);
        assert_eq!(top_period(&[1.0], 3..=16), None);
    }
}
