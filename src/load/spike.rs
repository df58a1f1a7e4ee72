//! Operations at random, at a rate that jumps up for a while.
//!
//! Each client is a Poisson process of its share of the rate, by inversion: the next start is where the integral of the
//! rate, from the last start on, reaches a unit-exponential draw. That draw is the one that plain Poisson load uses, so
//! before the spike the starts are those of `poisson` with the same rate and seed.

use super::{Crowd, Next, Step};
use crate::record;
use crate::time::{Rate, Span, Timestamp};

record! {
    /// A Poisson process whose rate is `peak` for a while, and `rate` before and after. Rates are of the whole fleet.
    pub struct Spike {
        /// Operations per second of the whole fleet, outside the spike.
        rate: Rate,
        /// Operations per second of the whole fleet, during the spike.
        peak: Rate,
        /// When the spike begins.
        at: Span,
        /// How long it lasts.
        r#for: Span,
    } => |s: &Spike| match s.r#for.is_zero() {
        true => Err("`for` must be longer than nothing: write `5s`".to_string()),
        false => Ok(()),
    }
}

impl Spike {
    pub(super) fn next(&self, crowd: &Crowd, step: Step) -> Next {
        let mut wanted = crowd.draws(step.client, step.number).exponential();
        let mut from = step.previous;
        for (until, rate) in self.stretches() {
            let rate = rate.get() / crowd.clients();
            if from >= until || rate <= 0.0 {
                from = from.max(until);
                continue;
            }
            let at = from + Span::from_secs_f64(wanted / rate);
            if at < until {
                return Next::At(at);
            }
            wanted = (wanted - until.since(from).as_secs_f64() * rate).max(0.0);
            from = until;
        }
        Next::Never
    }

    /// Before the spike, in it, after it: where each ends, and its rate.
    fn stretches(&self) -> [(Timestamp, Rate); 3] {
        let begins = Timestamp::ZERO + self.at;
        [(begins, self.rate), (begins + self.r#for, self.peak), (Timestamp::NEVER, self.rate)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Load, Poisson, tests::starts};
    use super::*;

    fn rate(rate: f64) -> Rate {
        Rate::per_second(rate).unwrap()
    }

    /// 93/s, and 300/s from 60 s to 65 s.
    fn spike() -> Spike {
        Spike { rate: rate(93.0), peak: rate(300.0), at: Span::from_secs(60), r#for: Span::from_secs(5) }
    }

    fn end(seconds: u64) -> Timestamp {
        Timestamp::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn inside_and_outside_each_second_has_its_rate() {
        let (mut before, mut inside, mut after) = (0f64, 0f64, 0f64);
        for seed in 0..40 {
            for (at, _) in starts(&Load::Spike(spike()), seed, 10, end(125)) {
                match at.as_secs_f64() {
                    t if t < 60.0 => before += 1.0,
                    t if t < 65.0 => inside += 1.0,
                    _ => after += 1.0,
                }
            }
        }
        // Three standard errors of a Poisson count: √n.
        for (count, mean) in [(before, 40.0 * 93.0 * 60.0), (inside, 40.0 * 300.0 * 5.0), (after, 40.0 * 93.0 * 60.0)] {
            assert!((count - mean).abs() < 3.0 * f64::sqrt(mean), "{count} of {mean}");
        }
    }

    #[test]
    fn the_edges_are_sharp_and_counts_have_the_variance_of_a_poisson_process() {
        let mut counts = vec![0f64; 400];
        for seed in 0..400 {
            let hits = starts(&Load::Spike(spike()), seed, 3, end(70)).into_iter();
            counts[seed as usize] = hits.filter(|(at, _)| (64_000_000_000..65_000_000_000).contains(&at.0)).count() as f64;
        }
        let mean = counts.iter().sum::<f64>() / 400.0;
        let variance = counts.iter().map(|c| (c - mean) * (c - mean)).sum::<f64>() / 399.0;
        assert!((mean - 300.0).abs() < 3.0, "{mean}");
        assert!((variance - 300.0).abs() < 64.0, "{variance}");
    }

    #[test]
    fn before_the_spike_the_starts_are_those_of_poisson_load() {
        let plain = Load::Poisson(Poisson { rate: Some(rate(93.0)), each: None });
        let wanted = starts(&plain, 7, 10, end(60));
        assert_eq!(starts(&Load::Spike(spike()), 7, 10, end(60)), wanted);
        assert!(wanted.len() > 5_000);
    }

    #[test]
    fn a_rate_of_nothing_outside_leaves_the_spike_alone() {
        let lone = Spike { rate: rate(0.0), ..spike() };
        let all = starts(&Load::Spike(lone), 1, 10, end(600));
        assert!((1_400..1_600).contains(&all.len()), "{}", all.len());
        assert!(all.iter().all(|(at, _)| (end(60)..end(65)).contains(at)));
        let gap = Spike { peak: rate(0.0), ..spike() };
        assert!(starts(&Load::Spike(gap), 1, 10, end(120)).iter().all(|(at, _)| !(end(60)..end(65)).contains(at)));
    }
}
