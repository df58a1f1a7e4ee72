//! The machines of a run's clients, and what they share.

use super::WINDOW;
use crate::fault::{Origin, Phase};
use crate::fleet::{Machine, Setup, Shared};
use crate::metrics::Recorder;

use crate::pace::Pacer;
use crate::plan::{Fleet, Plan, action};
use crate::policy::Budget;
use crate::policy::budget::Tier;
use crate::policy::guards::SharedGuards;
use crate::time::{Rate, Timestamp};
use std::ops::Range;
use std::sync::Arc;

/// What all clients of a run share, however they are divided: by fleet its budget, and one ceiling for all.
pub fn shared_state(plan: &Plan) -> Vec<Shared> {
    let ceiling = plan.target.max_attempts.map(|rate| Arc::new(Pacer::new(rate, ceiling_burst(rate))));
    let shared = plan.fleets.iter().enumerate().map(|(number, fleet)| {
        let budget = fleet.policy.budget.as_ref().filter(|budget| budget.value.tier == Tier::Fleet);
        let actions = action::of_fleet(&plan.actions, fleet_number(number));
        Shared {
            budget: budget.map(|budget| Arc::new(Budget::new(&budget.value))),
            guards: SharedGuards::new(&fleet.policy),
            after: actions.iter().map(|(_, action)| action.shared()).collect(),
            ceiling: ceiling.clone(),
        }
    });
    shared.collect()
}

/// One shard among several.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its number.
    pub index: usize,
    /// How many there are.
    pub of: usize,
}

impl Part {
    /// The only one.
    pub const ALL: Self = Self { index: 0, of: 1 };

    /// A fleet's clients in this shard. Those of devices are divided, contiguous, and no two shards differ by more than one.
    /// Workers share a queue, so that they and those who fill it live in one shard; the fleets of workers take turns.
    pub fn clients(self, plan: &Plan, fleet: usize) -> Range<u32> {
        let home = match &plan.fleets[fleet] {
            Fleet { into: Some(into), .. } => Some(usize::from(into.fleet)),
            Fleet { workers: Some(_), .. } => Some(fleet),
            Fleet { .. } => None,
        };
        let clients = plan.fleets[fleet].config.clients;
        match home {
            Some(home) if home % self.of.max(1) == self.index => 0..clients,
            Some(_) => 0..0,
            None => self.share(clients),
        }
    }

    /// A fleet's connections in this shard.
    pub fn connections(self, plan: &Plan, fleet: usize) -> Range<u32> {
        let (clients, each) = (self.clients(plan, fleet), plan.fleets[fleet].connections_each());
        clients.start * each..clients.end * each
    }

    fn share(self, clients: u32) -> Range<u32> {
        let cut = |i: usize| u32::try_from(u64::from(clients) * i as u64 / self.of.max(1) as u64).unwrap_or(clients);
        cut(self.index)..cut(self.index + 1)
    }
}

/// By fleet, the machine of its clients in a shard. `shared` is [`shared_state`], the same for all machines of a run.
pub fn machines(plan: &Plan, shared: &[Shared], part: Part) -> Vec<Machine> {
    let fleets = plan.fleets.iter().zip(shared).enumerate().map(|(number, (fleet, shared))| {
        Machine::new(Setup {
            seed: plan.seed,
            fleet: fleet_number(number),
            policy: fleet.policy.clone(),
            config: fleet.config.clone(),
            workers: fleet.workers.clone(),
            clients: part.clients(plan, number),
            grain: plan.timer_grain,
            enqueues: fleet.into.is_some(),
            end: Timestamp::ZERO + plan.length,
            route_weights: plan.target.routes.iter().map(|route| route.weight).collect(),
            actions: action::of_fleet(&plan.actions, fleet_number(number)),
            shared: shared.clone(),
        })
    });
    fleets.collect()
}

/// The recorder of a shard.
pub fn recorder(plan: &Plan, phases: &[Phase]) -> Recorder {
    let destinations: Vec<usize> = plan.fleets.iter().map(|fleet| fleet.destinations().len()).collect();
    Recorder::new(plan.fleets.len(), phases, WINDOW).with_destinations(&destinations)
}

/// Where a run's traffic comes from: every fleet with each of its regions, in order.
pub fn origins(plan: &Plan) -> Vec<Origin> {
    let of = |(number, fleet): (usize, &Fleet)| {
        let number = fleet_number(number);
        (0..fleet.config.regions.count()).map(move |region| Origin { fleet: number, region })
    };
    plan.fleets.iter().enumerate().flat_map(of).collect()
}

/// A fleet's number, from its place in the plan.
pub fn fleet_number(index: usize) -> u16 {
    u16::try_from(index).expect("a plan has fewer fleets than that")
}

/// How many attempts the ceiling lets through at once: what comes in a tenth of a second. An even pace alone would hold
/// back random arrivals far below the ceiling.
fn ceiling_burst(rate: Rate) -> u32 {
    ((rate.get() / 10.0) as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_share_out_every_client_once() {
        for (clients, shards) in [(0, 2), (1, 2), (5, 2), (5_000, 3), (7, 7), (u32::MAX, 4)] {
            let ranges: Vec<_> = (0..shards).map(|index| Part { index, of: shards }.share(clients)).collect();
            assert_eq!(ranges[0].start, 0);
            assert_eq!(ranges[shards - 1].end, clients);
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
            let sizes: Vec<u32> = ranges.iter().map(|r| r.end - r.start).collect();
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
        }
    }

    #[test]
    fn the_ceiling_lets_a_tenth_of_a_second_through_at_once() {
        let at_once = |rate: f64| {
            let rate = Rate::per_second(rate).unwrap();
            let pacer = Pacer::new(rate, ceiling_burst(rate));
            (0..10_000).filter(|_| pacer.take(Timestamp::ZERO)).count()
        };
        assert_eq!((at_once(400.0), at_once(5.0), at_once(0.1)), (40, 1, 1));
    }
}
