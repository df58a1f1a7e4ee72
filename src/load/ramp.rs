//! A rate that changes linearly.
//!
//! Evenly spaced like constant load, on a bent time axis: the n-th start of the fleet is where the integral of the
//! rate reaches n. The square root that this takes is exact on every machine, unlike `pow`.

use super::{Crowd, Next, Step};
use crate::record;
use crate::time::{Rate, Span, Timestamp};

record! {
    /// The fleet's rate goes from one value to another and stays there.
    pub struct Ramp {
        /// The rate at the start, over the whole fleet.
        from: Rate,
        /// The rate at the end.
        to: Rate,
        /// How long the change takes.
        over: Span,
    }
}

impl Ramp {
    pub(super) fn next(&self, crowd: &Crowd, step: Step) -> Next {
        match self.reaches(crowd.position(step.client, step.number)) {
            Some(seconds) => Next::At(Timestamp::ZERO + Span::from_secs_f64(seconds)),
            None => Next::Never,
        }
    }

    /// When the integral of the rate reaches `n`, in seconds; none where it never does.
    fn reaches(&self, n: f64) -> Option<f64> {
        let (from, to, over) = (self.from.get(), self.to.get(), self.over.as_secs_f64());
        let by_then = (from + to) / 2.0 * over;
        if n >= by_then {
            return (to > 0.0).then(|| over + (n - by_then) / to);
        }
        // The root of from·t + (to − from)/(2·over)·t² = n, in the form that neither cancels nor divides by zero
        // where the ramp is flat; what is under the root is negative only by rounding.
        let root = (from * from + 2.0 * n * (to - from) / over).max(0.0).sqrt();
        if n > 0.0 { Some(2.0 * n / (from + root)) } else { Some(0.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Load, tests::starts};
    use super::*;

    /// Starts in each of the first ten seconds of a ramp over eight.
    fn per_second(from: f64, to: f64) -> Vec<usize> {
        let rate = |r| Rate::per_second(r).unwrap();
        let load = Load::Ramp(Ramp { from: rate(from), to: rate(to), over: Span::from_secs(8) });
        let mut counts = vec![0; 10];
        for (at, _) in starts(&load, 1, 13, Timestamp::ZERO + Span::from_secs(10)) {
            counts[at.as_secs_f64() as usize] += 1;
        }
        counts
    }

    #[test]
    fn each_second_holds_its_part_of_the_integral() {
        assert_eq!(per_second(0.0, 800.0), [50, 150, 250, 350, 450, 550, 650, 750, 800, 800]);
        assert_eq!(per_second(800.0, 0.0), [750, 650, 550, 450, 350, 250, 150, 50, 0, 0]);
        assert_eq!(per_second(100.0, 100.0), [100; 10]);
    }

    #[test]
    fn a_ramp_over_no_time_is_a_step() {
        let rate = |r| Rate::per_second(r).unwrap();
        let load = Load::Ramp(Ramp { from: rate(5.0), to: rate(100.0), over: Span::ZERO });
        assert_eq!(starts(&load, 1, 3, Timestamp::ZERO + Span::from_secs(2)).len(), 200);
    }
}
