//! The machines of a run's clients, and what they share.

use crate::fault::Origin;
use crate::fleet::{Machine, Setup, Shared};
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

/// By fleet, the machine of some of its clients: `clients_of` gives which, from how many there are. `shared` is
/// [`shared_state`], the same for all machines of a run.
pub fn machines(plan: &Plan, shared: &[Shared], clients_of: impl Fn(u32) -> Range<u32>) -> Vec<Machine> {
    let fleets = plan.fleets.iter().zip(shared).enumerate().map(|(number, (fleet, shared))| {
        Machine::new(Setup {
            seed: plan.seed,
            fleet: fleet_number(number),
            policy: fleet.policy.clone(),
            config: fleet.config.clone(),
            clients: clients_of(fleet.config.clients),
            grain: plan.timer_grain,
            end: Timestamp::ZERO + plan.length,
            route_weights: plan.target.routes.iter().map(|route| route.weight).collect(),
            actions: action::of_fleet(&plan.actions, fleet_number(number)),
            shared: shared.clone(),
        })
    });
    fleets.collect()
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
    fn the_ceiling_lets_a_tenth_of_a_second_through_at_once() {
        let at_once = |rate: f64| {
            let rate = Rate::per_second(rate).unwrap();
            let pacer = Pacer::new(rate, ceiling_burst(rate));
            (0..10_000).filter(|_| pacer.take(Timestamp::ZERO)).count()
        };
        assert_eq!((at_once(400.0), at_once(5.0), at_once(0.1)), (40, 1, 1));
    }
}
