//! Operations at random, at a rate that follows a curve: a day, from night through morning to evening.
//!
//! The rate is linear between the points of the curve, and constant before the first and after the last. Each client is a
//! Poisson process of its share of it, by inversion: the next start is where the integral of the rate, from the last start
//! on, reaches a unit-exponential draw. On a stretch that is linear this is a quadratic equation; its square root is
//! exact on every machine. The draws are those of `poisson`, so a flat curve gives its starts.

use super::{Crowd, Next, Step};
use crate::record;
use crate::time::{Rate, Span, Timestamp};

/// The most points of a curve: more than one for each two minutes of a day.
const MAX_POINTS: usize = 1_000;

record! {
    /// A point of a curve.
    pub struct Point {
        /// The moment, from the start of the run.
        at: Span,
        /// Operations per second of the whole fleet, then.
        rate: Rate,
    }
}

record! {
    /// A Poisson process whose rate follows a curve, over the whole fleet.
    pub struct DayCurve {
        /// The curve: the rate is linear between its points, constant before the first and after the last.
        points: Vec<Point>,
    } => |curve: &DayCurve| match curve.points.len() {
        0 => Err("`points` is empty: write `[{ at: 0s, rate: 10/s }, { at: 2h, rate: 400/s }]`".to_string()),
        n if n > MAX_POINTS => Err(format!("`points` has {n} entries: {MAX_POINTS} at most")),
        _ if curve.points.windows(2).any(|pair| pair[0].at >= pair[1].at) => {
            Err("`points` must stand in the order of time, each at a moment of its own".to_string())
        }
        _ => Ok(()),
    }
}

impl DayCurve {
    pub(super) fn next(&self, crowd: &Crowd, step: Step) -> Next {
        let wanted = crowd.draws(step.client, step.number).exponential();
        self.reaches(step.previous, wanted, crowd.clients()).map_or(Next::Never, Next::At)
    }

    /// The highest rate of the curve.
    pub fn peak(&self) -> Rate {
        self.points.iter().map(|point| point.rate).fold(Rate::default(), |most, rate| if rate > most { rate } else { most })
    }

    /// When the integral of one client's rate, from a moment on, reaches `wanted`; none where it never does.
    fn reaches(&self, mut from: Timestamp, mut wanted: f64, clients: f64) -> Option<Timestamp> {
        let after = self.points.partition_point(|point| Timestamp::ZERO + point.at <= from);
        for index in after..=self.points.len() {
            let (begin, end) = (self.points.get(index.saturating_sub(1))?, self.points.get(index).or(self.points.last())?);
            let (low, high) = (begin.rate.get() / clients, end.rate.get() / clients);
            let until = if index < self.points.len() { Timestamp::ZERO + end.at } else { Timestamp::NEVER };
            let slope = if index == 0 || end.at <= begin.at { 0.0 } else { (high - low) / (end.at - begin.at).as_secs_f64() };
            let begins = Timestamp::ZERO + begin.at;
            let here = if slope == 0.0 { low } else { (low + slope * from.since(begins).as_secs_f64()).max(0.0) };
            let there = if slope == 0.0 { low } else { high };
            let area = (here + there) / 2.0 * until.since(from).as_secs_f64();
            if wanted < area {
                // The root of here·t + slope/2·t² = wanted, in the form that neither cancels nor divides by zero.
                let root = (here * here + 2.0 * wanted * slope).max(0.0).sqrt();
                let at = from + Span::from_secs_f64(2.0 * wanted / (here + root));
                return Some(at.min(until));
            }
            wanted -= area;
            from = until;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Load, Poisson, tests::starts};
    use super::*;

    fn curve(points: &[(u64, f64)]) -> DayCurve {
        let point = |&(at, rate): &(u64, f64)| Point { at: Span::from_secs(at), rate: Rate::per_second(rate).unwrap() };
        DayCurve { points: points.iter().map(point).collect() }
    }

    fn end(seconds: u64) -> Timestamp {
        Timestamp::ZERO + Span::from_secs(seconds)
    }

    /// Starts in each stretch of ten seconds, over many seeds.
    fn per_ten_seconds(curve: &DayCurve, seeds: u64, seconds: u64) -> Vec<f64> {
        let mut counts = vec![0.0; seconds as usize / 10];
        for seed in 0..seeds {
            for (at, _) in starts(&Load::DayCurve(curve.clone()), seed, 7, end(seconds)) {
                counts[at.as_secs_f64() as usize / 10] += 1.0;
            }
        }
        counts
    }

    #[test]
    fn each_stretch_holds_its_part_of_the_integral() {
        let day = curve(&[(10, 20.0), (30, 100.0), (40, 100.0), (50, 0.0), (60, 0.0), (70, 50.0)]);
        // Means of the rate in each ten seconds, by hand.
        let wanted = [20.0, 40.0, 80.0, 100.0, 50.0, 0.0, 25.0, 50.0, 50.0];
        for (count, mean) in per_ten_seconds(&day, 60, 90).into_iter().zip(wanted.map(|rate| rate * 10.0 * 60.0)) {
            // Three and a half standard errors of a Poisson count, for nine of them.
            assert!((count - mean).abs() <= 3.5 * f64::sqrt(mean), "{count} of {mean}");
        }
    }

    #[test]
    fn a_flat_curve_is_poisson_load() {
        let plain = Load::Poisson(Poisson { rate: Some(Rate::per_second(93.0).unwrap()), each: None });
        let wanted = starts(&plain, 7, 10, end(60));
        assert!(wanted.len() > 5_000);
        for flat in [curve(&[(0, 93.0)]), curve(&[(20, 93.0)]), curve(&[(0, 93.0), (9_000, 93.0)])] {
            assert_eq!(starts(&Load::DayCurve(flat), 7, 10, end(60)), wanted);
        }
    }

    #[test]
    fn a_curve_that_ends_at_nothing_ends() {
        let evening = Load::DayCurve(curve(&[(0, 50.0), (10, 0.0)]));
        let all = starts(&evening, 1, 5, end(100_000));
        assert!((170..330).contains(&all.len()) && all.iter().all(|(at, _)| *at <= end(10)), "{}", all.len());
        assert_eq!(starts(&Load::DayCurve(curve(&[(0, 0.0)])), 1, 5, end(100)), []);
    }
}
