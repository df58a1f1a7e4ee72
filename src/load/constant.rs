//! Evenly spaced operations.
//!
//! The spacing is even over the whole fleet: clients take turns, and the n-th start of the fleet is at n / rate.
//! So the rate is exact from the first second on, and `each` is the same with the clients staggered evenly.

use super::{Crowd, Next, Step};
use crate::record;
use crate::time::{Rate, Span, Timestamp};

record! {
    /// Evenly spaced operations; `rate` is for the fleet, `each` for every client.
    pub struct Constant {
        /// Operations per second of the whole fleet.
        rate: Option<Rate>,
        /// Operations per second of each client.
        each: Option<Rate>,
    } => |c: &Constant| one_rate(c.rate, c.each)
}

impl Constant {
    pub(super) fn next(&self, crowd: &Crowd, step: Step) -> Next {
        let rate = fleet_rate(self.rate, self.each, crowd);
        if rate <= 0.0 {
            return Next::Never;
        }
        Next::At(Timestamp::ZERO + Span::from_secs_f64(crowd.position(step.client, step.number) / rate))
    }
}

/// The rate of the whole fleet, per second.
pub(super) fn fleet_rate(rate: Option<Rate>, each: Option<Rate>, crowd: &Crowd) -> f64 {
    rate.map_or(0.0, Rate::get) + each.map_or(0.0, Rate::get) * crowd.clients()
}

/// Exactly one of `rate` and `each` must be there.
pub(super) fn one_rate(rate: Option<Rate>, each: Option<Rate>) -> Result<(), String> {
    match (rate, each) {
        (Some(_), None) | (None, Some(_)) => Ok(()),
        (None, None) => Err("a rate is missing: write `rate: 600/s` for the fleet, or `each: 0.2/s` for every client".into()),
        (Some(_), Some(_)) => Err("`rate` and `each` exclude each other: keep one".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Load, tests::starts};
    use super::*;

    #[test]
    fn the_fleet_is_evenly_spaced_whatever_its_size() {
        for clients in [1, 3, 40, 1000] {
            let load = Load::Constant(Constant { rate: Some(Rate::per_second(400.0).unwrap()), each: None });
            let all = starts(&load, 9, clients, Timestamp::ZERO + Span::from_secs(10));
            assert_eq!(all.len(), 4000);
            assert!(all.iter().enumerate().all(|(n, (at, _))| at.0 == n as u64 * 2_500_000), "{clients}");
        }
    }

    #[test]
    fn each_client_keeps_its_own_rate() {
        let load = Load::Constant(Constant { rate: None, each: Some(Rate::per_second(0.5).unwrap()) });
        let all = starts(&load, 9, 20, Timestamp::ZERO + Span::from_secs(10));
        let of_one: Vec<_> = all.iter().filter(|(_, client)| *client == 7).map(|(at, _)| *at).collect();
        assert_eq!(of_one.len(), 5);
        assert!(of_one.windows(2).all(|w| w[1].since(w[0]) == Span::from_secs(2)));
    }
}
