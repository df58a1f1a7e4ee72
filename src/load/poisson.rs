//! Operations at random, independently of each other.
//!
//! Each client is a Poisson process of its share of the rate; together they are one of the whole rate, because
//! Poisson processes superpose.

use super::constant::{fleet_rate, one_rate};
use super::{Crowd, Next, Step};
use crate::record;
use crate::time::{Rate, Span};

record! {
    /// A Poisson process; `rate` is for the fleet, `each` for every client.
    pub struct Poisson {
        /// Operations per second of the whole fleet.
        rate: Option<Rate>,
        /// Operations per second of each client.
        each: Option<Rate>,
    } => |p: &Poisson| one_rate(p.rate, p.each)
}

impl Poisson {
    pub(super) fn next(&self, crowd: &Crowd, step: Step) -> Next {
        let rate = fleet_rate(self.rate, self.each, crowd) / crowd.clients();
        if rate <= 0.0 {
            return Next::Never;
        }
        let gap = crowd.draws(step.client, step.number).exponential() / rate;
        Next::At(step.previous + Span::from_secs_f64(gap))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Load, tests::starts};
    use super::*;
    use crate::time::Timestamp;

    #[test]
    fn counts_of_seconds_have_the_mean_and_variance_of_a_poisson_process() {
        let load = Load::Poisson(Poisson { rate: Some(Rate::per_second(93.0).unwrap()), each: None });
        let mut counts = vec![0f64; 1000];
        for (at, _) in starts(&load, 4, 50, Timestamp::ZERO + Span::from_secs(1000)) {
            counts[at.as_secs_f64() as usize] += 1.0;
        }
        let mean = counts.iter().sum::<f64>() / 1000.0;
        let variance = counts.iter().map(|c| (c - mean) * (c - mean)).sum::<f64>() / 999.0;
        // Three standard errors: of the mean 0.31, of the variance about 4.2.
        assert!((mean - 93.0).abs() < 0.95, "{mean}");
        assert!((variance - 93.0).abs() < 13.0, "{variance}");
    }

    #[test]
    fn an_absurd_rate_ends_in_a_moment_not_in_a_panic() {
        let poisson = Poisson { rate: Some(Rate::per_second(1e-300).unwrap()), each: None };
        let step = Step { client: 0, number: 0, previous: Timestamp::ZERO, ended: None };
        assert_eq!(poisson.next(&Crowd::new(1, 0, 1), step), Next::At(Timestamp::NEVER));
    }
}
