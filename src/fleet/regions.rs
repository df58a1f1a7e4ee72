//! Where the clients of a fleet are, so that a fault can strike some of them.
//!
//! A client's region is a function of its number and of the fleet's size: it depends on no seed and no shard, the shares are
//! exact to one client, and any run of neighbouring numbers is spread evenly over the regions.

use crate::config::{Node, Place, Problems, Read, Shape, Table, TimeScale};
use crate::load::Crowd;
use crate::time::Share;
use std::ops::Range;

/// The most regions of a fleet.
const MAX_REGIONS: usize = 64;

/// The regions of a fleet by name, in the order of the plan, with the share of its clients in each. Without any, all clients
/// are in one region that has no name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Regions(Table<Share>);

impl Regions {
    /// The names, in order; a region's number is its place among them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.0.iter().map(|entry| entry.name.as_str())
    }

    /// The names, and where each stands in the plan.
    pub fn places(&self) -> impl Iterator<Item = (&str, Place)> {
        self.0.0.iter().map(|entry| (entry.name.as_str(), entry.place))
    }

    /// How many regions; 1 where none is named.
    pub fn count(&self) -> u16 {
        u16::try_from(self.0.0.len().max(1)).expect("regions are bounded as they are read")
    }

    /// The number of a region.
    pub fn number(&self, name: &str) -> Option<u16> {
        self.names().position(|known| known == name).and_then(|number| u16::try_from(number).ok())
    }

    /// By client of a fleet of `clients`, its region.
    pub fn of(&self, clients: u32) -> impl Fn(u32) -> u16 + use<> {
        let crowd = Crowd::new(0, 0, clients);
        let ends: Vec<u32> = (0..self.count()).map(|region| self.turns(region, clients).end).collect();
        move |client| match ends.len() {
            1 => 0,
            _ => ends.partition_point(|&end| end <= crowd.turn(client)) as u16,
        }
    }

    /// The turns (see [`Crowd::turn`]) of the clients in a region, in a fleet of `clients`.
    pub fn turns(&self, region: u16, clients: u32) -> Range<u32> {
        let cut = |regions: usize| match regions {
            n if n >= self.0.0.len() => clients,
            n => {
                let before: f64 = self.0.0[..n].iter().map(|entry| entry.value.get()).sum();
                (before * f64::from(clients)).round() as u32
            }
        };
        let region = usize::from(region);
        (if region == 0 { 0 } else { cut(region) })..cut(region + 1)
    }

    fn check(&self) -> Result<(), String> {
        let shares = || self.0.0.iter().map(|entry| entry.value.get());
        let sum: f64 = shares().sum();
        if self.0.0.is_empty() || self.0.0.len() > MAX_REGIONS {
            return Err(format!("expected 1 to {MAX_REGIONS} regions, such as `{{ eu: 40%, us: 60% }}`"));
        }
        if shares().any(|share| share == 0.0) {
            return Err("a region with 0% of the clients has none: remove it".into());
        }
        if (sum - 1.0).abs() > 1e-6 {
            let percent = (sum * 1e8).round() / 1e6;
            return Err(format!("the shares of the regions are {percent}% together: they must be 100%"));
        }
        Ok(())
    }
}

impl Read for Regions {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let regions = Table::read(node, problems).map(Self)?;
        match regions.check() {
            Ok(()) => Some(regions),
            Err(message) => {
                problems.error(node.place, message);
                None
            }
        }
    }
    fn shape() -> Shape {
        Table::<Share>::shape()
    }
    fn rescale(&mut self, _by: TimeScale) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Entry;

    fn regions(shares: &[f64]) -> Regions {
        let entry = |(n, share): (usize, &f64)| Entry {
            name: format!("r{n}"),
            place: Place::default(),
            value: Share::new(*share).unwrap(),
        };
        Regions(Table(shares.iter().enumerate().map(entry).collect()))
    }

    #[test]
    fn shares_are_exact_to_one_client_and_neighbours_are_spread() {
        for (shares, clients) in [(vec![0.4, 0.6], 1_000), (vec![0.2, 0.3, 0.5], 97), (vec![1.0], 10), (vec![0.05, 0.95], 3)] {
            let regions = regions(&shares);
            let of = regions.of(clients);
            let all: Vec<u16> = (0..clients).map(&of).collect();
            for (number, share) in shares.iter().enumerate() {
                let count = |of: &[u16]| of.iter().filter(|&&region| usize::from(region) == number).count() as f64;
                assert!((count(&all) - share * f64::from(clients)).abs() <= 1.0, "{shares:?} {number}");
                let turns = regions.turns(number as u16, clients);
                assert_eq!(f64::from(turns.end - turns.start), count(&all));
                let first_half = count(&all[..all.len() / 2]);
                let off = (first_half - count(&all) / 2.0).abs();
                assert!(off <= 2.0 + f64::from(clients) / 64.0, "{shares:?} {number}: {first_half}");
            }
        }
        assert_eq!((0..50).map(Regions::default().of(50)).max(), Some(0), "without regions there is one");
        assert_eq!(Regions::default().turns(0, 50), 0..50);
    }

    #[test]
    fn shares_that_are_not_the_whole_are_refused() {
        for (shares, want) in [(vec![0.4, 0.5], "90% together"), (vec![0.5, 0.5, 0.0], "has none"), (vec![], "expected 1 to")] {
            let said = regions(&shares).check().unwrap_err();
            assert!(said.contains(want), "{said}");
        }
        assert_eq!(regions(&[0.1; 10]).check(), Ok(()), "a sum that is off by rounding");
    }
}
