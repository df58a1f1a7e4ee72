//! What follows from a plan without running it: worst-case load, sockets, and the rules of arithmetic that are right
//! surprisingly often. Plain data, each with a sentence; drawing is left to `report`.

mod hints;
pub mod layers;
mod patience;
mod rules;

pub use rules::{Rule, rules};

use super::{Deed, Fleet, Plan};
use crate::fleet::workers::WorkerCount;
use crate::fleet::workers::config::{LIVE_UNLIMITED, OnGiveUp};
use crate::fleet::{FleetAction, FleetConfig};
use crate::load::Load;
use crate::policy::backoff::WaitInput;
use crate::policy::{Attempts, Policy};
use crate::service::config::{Servers, ServiceConfig};
use crate::service::{ServiceTime, limiter::LimitersConfig};
use crate::time::Span;

/// What a fleet offers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Offered {
    /// Operations per second, at most, whatever the target does: open load.
    Rate(f64),
    /// Operations per second, and for a while more (or fewer): open load.
    Spike {
        /// Outside the spike.
        rate: f64,
        /// During it.
        peak: f64,
        /// How long it lasts, in seconds.
        lasting: f64,
    },
    /// So many operations, once.
    Burst {
        /// How many.
        operations: f64,
        /// Over how long they are spread, in seconds; 0 for all at one moment.
        lasting: f64,
    },
    /// One operation per client at a time: closed load.
    Closed {
        /// Clients.
        clients: f64,
        /// The pause between two operations, in seconds.
        think: f64,
    },
}

impl Offered {
    /// Operations per second where that does not depend on the target, a spike left aside; else 0.
    pub fn rate(self) -> f64 {
        match self {
            Self::Rate(rate) | Self::Spike { rate, .. } => rate,
            Self::Burst { .. } | Self::Closed { .. } => 0.0,
        }
    }

    /// The most operations per second where that does not depend on the target, over a second at least; else 0.
    pub fn peak(self) -> f64 {
        match self {
            Self::Spike { rate, peak, .. } => rate.max(peak),
            Self::Burst { operations, lasting } => operations / lasting.max(1.0),
            other => other.rate(),
        }
    }

    /// The most operations that come within so many seconds; none where that depends on the target.
    pub fn within(self, seconds: f64) -> Option<f64> {
        match self {
            Self::Rate(_) | Self::Spike { .. } => Some(self.peak() * seconds),
            Self::Burst { operations, lasting } if lasting > seconds => Some(operations * seconds / lasting),
            Self::Burst { operations, .. } => Some(operations),
            Self::Closed { .. } => None,
        }
    }

    /// So many times that.
    fn times(self, factor: f64) -> Self {
        match self {
            Self::Rate(rate) => Self::Rate(rate * factor),
            Self::Spike { rate, peak, lasting } => Self::Spike { rate: rate * factor, peak: peak * factor, lasting },
            Self::Burst { .. } | Self::Closed { .. } => self,
        }
    }

    /// Whether operations come whatever the target does, and go on coming.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Rate(_) | Self::Spike { .. })
    }
}

/// What a fleet offers.
pub fn offered(fleet: &FleetConfig) -> Offered {
    offered_by(&fleet.load, fleet.clients)
}

/// What so many clients offer.
pub fn offered_by(load: &Load, clients: u32) -> Offered {
    let clients = f64::from(clients);
    let by = |rate: Option<crate::time::Rate>, each: Option<crate::time::Rate>| {
        Offered::Rate(rate.map_or(0.0, |rate| rate.get()) + each.map_or(0.0, |each| each.get() * clients))
    };
    match load {
        Load::Constant(load) => by(load.rate, load.each),
        Load::Poisson(load) => by(load.rate, load.each),
        Load::Ramp(ramp) => Offered::Rate(ramp.from.get().max(ramp.to.get())),
        Load::Spike(spike) => {
            Offered::Spike { rate: spike.rate.get(), peak: spike.peak.get(), lasting: spike.r#for.as_secs_f64() }
        }
        Load::Closed(closed) => Offered::Closed { clients, think: closed.think.as_secs_f64() },
        Load::Trigger(trigger) => Offered::Burst { operations: clients, lasting: trigger.spread.as_secs_f64() },
        Load::OnReconnect(reconnect) => {
            let turns = reconnect.returns.as_ref().and_then(|returns| returns.turns.as_ref());
            let cut_off = turns.map_or(clients, |turns| turns.iter().map(|turns| turns.len() as f64).sum());
            Offered::Burst { operations: cut_off, lasting: reconnect.config.spread.as_secs_f64() }
        }
        Load::DayCurve(curve) => Offered::Rate(curve.peak().get()),
        Load::Schedule(schedule) => {
            let lasting = schedule.spread.as_secs_f64().max(1.0);
            Offered::Spike { rate: clients / schedule.every.as_secs_f64(), peak: clients / lasting, lasting }
        }
        Load::Foreground(shape) => {
            let rate = shape.operations_per_second(clients);
            let Some(first) = &shape.first else { return Offered::Rate(rate) };
            let lasting = (first.spread + shape.within).as_secs_f64().max(1.0);
            Offered::Spike { rate, peak: rate + clients * f64::from(shape.operations) / lasting, lasting }
        }
    }
}

/// Operations per second that the whole plan offers, closed fleets taken at their fastest that can be told: an
/// answer in the mean service time of the built-in target or the model; spikes, and what comes once, left aside. None where a fleet's rate
/// cannot be told.
pub fn offered_total(plan: &Plan) -> Option<f64> {
    let service = plan.target.behaviour().map_or(0.0, |service| mean_service_time(&service.time()));
    plan.senders()
        .map(|fleet| match offered(&fleet.config) {
            Offered::Rate(rate) | Offered::Spike { rate, .. } => Some(rate),
            Offered::Burst { .. } => Some(0.0),
            Offered::Closed { clients, think } if think + service > 0.0 => Some(clients / (think + service)),
            Offered::Closed { .. } => None,
        })
        .sum()
}

/// The mean of a service time, in seconds.
pub fn mean_service_time(time: &ServiceTime) -> f64 {
    time.mean().as_secs_f64()
}

/// Requests per second that the built-in target can serve; none where nothing limits it.
pub fn capacity(service: &ServiceConfig) -> Option<f64> {
    capacity_of(service, mean_service_time(&service.time()))
}

/// The same of a service whose requests take a server for so many seconds each.
fn capacity_of(service: &ServiceConfig, held: f64) -> Option<f64> {
    let served = match service.servers() {
        Servers::Limited(n) if held > 0.0 => Some(f64::from(n) / held),
        Servers::Limited(_) | Servers::Unlimited => None,
    };
    let let_in = service.limiter.as_ref().and_then(LimitersConfig::rate);
    match (served, let_in) {
        (Some(served), Some(let_in)) => Some(served.min(let_in)),
        (served, let_in) => served.or(let_in),
    }
}

/// How many attempts an operation may take at worst.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WorstAttempts {
    /// So many.
    AtMost(f64),
    /// As many as fit before a limit: with no wait between them, only the target's speed bounds them.
    Unbounded,
}

/// How many attempts an operation may take at worst: every attempt fails at once.
pub fn worst_attempts(policy: &Policy) -> WorstAttempts {
    let limit = [policy.deadline, policy.max_elapsed].into_iter().flatten().min();
    let (most, limit) = match (policy.attempts, limit) {
        (Attempts::Limited(n), limit) => (n, limit.unwrap_or(Span::MAX)),
        (Attempts::Unlimited, Some(limit)) => (1_000_000, limit),
        (Attempts::Unlimited, None) => return WorstAttempts::Unbounded,
    };
    let (mut elapsed, mut made) = (0.0, 1u32);
    for wait in mean_waits(policy).take(most.saturating_sub(1) as usize) {
        elapsed += wait;
        if elapsed > limit.as_secs_f64() {
            break;
        }
        made += 1;
    }
    match policy.attempts {
        Attempts::Unlimited if made >= most => WorstAttempts::Unbounded,
        _ => WorstAttempts::AtMost(f64::from(made)),
    }
}

/// The policies that a fleet has in the course of a plan: its own, and those that actions bring.
pub fn policies_of<'a>(fleet: &'a Fleet, plan: &'a Plan) -> impl Iterator<Item = &'a Policy> {
    let brought = actions_on(fleet, plan).filter_map(|action| match action {
        FleetAction::SetPolicy { policy } | FleetAction::Restart { policy: Some(policy), .. } => Some(&**policy),
        _ => None,
    });
    std::iter::once(&fleet.policy).chain(brought)
}

/// What the timeline does to a fleet.
fn actions_on<'a>(fleet: &'a Fleet, plan: &'a Plan) -> impl Iterator<Item = &'a FleetAction> {
    let number = plan.fleets.iter().position(|known| known.name == fleet.name);
    plan.actions.iter().filter_map(move |action| match &action.what {
        Deed::Fleet { fleet, action } if Some(usize::from(*fleet)) == number => Some(action),
        _ => None,
    })
}

/// What a fleet offers at worst: at the highest rate that an action sets, of its own or of the producers that fill its queue.
pub fn most_offered(fleet: &Fleet, plan: &Plan) -> Offered {
    let highest = |fleet: &Fleet| {
        let set = actions_on(fleet, plan).map(|action| match action {
            FleetAction::SetArrivals { factor } => *factor,
            _ => 1.0,
        });
        set.fold(1.0, f64::max)
    };
    let number = plan.fleets.iter().position(|known| known.name == fleet.name);
    let fills = |producer: &&Fleet| producer.into.is_some_and(|into| Some(usize::from(into.fleet)) == number);
    let (mut brought, mut at_most) = (0.0, 0.0);
    for producer in plan.fleets.iter().filter(fills) {
        let rate = offered(&producer.config).peak();
        brought += rate;
        at_most += rate * highest(producer);
    }
    let planned = offered(&fleet.config);
    let own = (planned.peak() - brought).max(0.0);
    let factor = (own * highest(fleet) + at_most) / planned.peak().max(f64::MIN_POSITIVE);
    if factor > 1.0 { planned.times(factor) } else { planned }
}

/// Whether an operation whose pass is over begins another one.
pub fn requeues(fleet: &Fleet) -> bool {
    fleet.workers.as_ref().is_some_and(|workers| workers.queue.on_give_up == OnGiveUp::Requeue)
}

/// How many attempts an operation of a fleet may take at worst, over all its passes and under any policy that it has.
pub fn worst_attempts_of(fleet: &Fleet, plan: &Plan) -> WorstAttempts {
    if requeues(fleet) {
        return WorstAttempts::Unbounded;
    }
    let most = |most, policy| match (most, worst_attempts(policy)) {
        (WorstAttempts::AtMost(most), WorstAttempts::AtMost(attempts)) => WorstAttempts::AtMost(most.max(attempts)),
        _ => WorstAttempts::Unbounded,
    };
    policies_of(fleet, plan).fold(WorstAttempts::AtMost(0.0), most)
}

/// The mean wait before each retry, in seconds, to the last one if there is one: that of the middle draw, as every jitter is
/// linear in its draw.
fn mean_waits(policy: &Policy) -> impl Iterator<Item = f64> {
    (1..).scan(None, |previous, failed_attempt| {
        *previous = Some(policy.backoff.wait(WaitInput { failed_attempt, previous: *previous, draw: 0.5 })?);
        previous.map(Span::as_secs_f64)
    })
}

/// The most load that a fleet can make.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetLoad {
    /// Its name.
    pub fleet: String,
    /// Its virtual clients.
    pub clients: u32,
    /// What it offers.
    pub offered: Offered,
    /// Attempts of one operation.
    pub attempts: WorstAttempts,
    /// Attempts per second at worst; none where only the target's speed bounds them.
    pub attempted: Option<f64>,
    /// For producers: the fleet whose queue their attempts go into, and not to the target.
    pub into: Option<String>,
}

/// The most load that a plan can make.
#[derive(Clone, Debug, PartialEq)]
pub struct WorstLoad {
    /// By fleet.
    pub fleets: Vec<FleetLoad>,
    /// Over all fleets, the ceiling applied; none where only the target's speed bounds it.
    pub attempted: Option<f64>,
    /// The ceiling of the plan, per second.
    pub ceiling: Option<f64>,
}

/// The most load that a plan can make: `clients × rate × attempts`, every attempt failing.
pub fn worst_load(plan: &Plan) -> WorstLoad {
    let fleets: Vec<FleetLoad> = plan.fleets.iter().map(|fleet| fleet_load(fleet, plan)).collect();
    let sum = fleets.iter().filter(|fleet| fleet.into.is_none()).map(|fleet| fleet.attempted).sum::<Option<f64>>();
    let ceiling = plan.target.max_attempts.map(|rate| rate.get());
    let attempted = match (sum, ceiling) {
        (Some(sum), Some(ceiling)) => Some(sum.min(ceiling)),
        (sum, ceiling) => sum.or(ceiling),
    };
    WorstLoad { fleets, attempted, ceiling }
}

fn fleet_load(fleet: &Fleet, plan: &Plan) -> FleetLoad {
    let offered = most_offered(fleet, plan);
    let attempts = worst_attempts_of(fleet, plan);
    let attempted = match (offered, attempts) {
        (Offered::Rate(_) | Offered::Spike { .. } | Offered::Burst { .. }, WorstAttempts::AtMost(attempts)) => {
            Some(offered.peak() * attempts)
        }
        (Offered::Closed { clients, think }, WorstAttempts::AtMost(_)) if think > 0.0 => {
            policies_of(fleet, plan).map(|policy| closed_attempts(policy, clients, think)).reduce(f64::max)
        }
        _ => None,
    };
    let into = fleet.into.and_then(|into| plan.fleets.get(usize::from(into.fleet))).map(|queue| queue.name.clone());
    FleetLoad { fleet: fleet.name.clone(), clients: fleet.config.clients, offered, attempts, attempted, into }
}

/// Attempts per second of clients that each go through all attempts of a policy and then pause.
fn closed_attempts(policy: &Policy, clients: f64, think: f64) -> f64 {
    let WorstAttempts::AtMost(attempts) = worst_attempts(policy) else { return f64::INFINITY };
    clients * attempts / (think + mean_waits(policy).take((attempts as usize).saturating_sub(1)).sum::<f64>())
}

/// The sockets that a plan needs, by process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sockets {
    /// Of the clients: one each.
    pub clients: u64,
    /// Of the proxy: two for each client, one to it and one to the target.
    pub proxy: u64,
    /// Of the built-in target, in its own process: one for each client; 0 for somebody else's.
    pub target: u64,
}

impl Sockets {
    /// In the process that holds clients and proxy.
    pub fn own_process(self) -> u64 {
        self.clients + self.proxy
    }
}

/// The sockets that a plan needs on a live run, where unlimited workers are as many as fit.
pub fn sockets(plan: &Plan) -> Sockets {
    let connections = |fleet: &Fleet| match &fleet.workers {
        Some(workers) if workers.workers == WorkerCount::Unlimited => LIVE_UNLIMITED,
        _ => fleet.connections(),
    };
    let clients: u64 = plan.fleets.iter().map(|fleet| u64::from(connections(fleet))).sum();
    Sockets { clients, proxy: 2 * clients, target: if plan.target.service.is_some() { clients } else { 0 } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Node, Problems, Read, Source as TextSource};
    use crate::plan::yaml;

    fn read<T: Read>(text: &str) -> T {
        let mut problems = Problems::default();
        let root: Node = yaml::parse(text, TextSource::File, &mut problems).unwrap().root;
        T::read(&root, &mut problems).unwrap_or_else(|| panic!("{text}: {problems:?}"))
    }

    #[test]
    fn capacity_is_the_narrowest_limit() {
        for (text, want) in [
            ("{ servers: 6, service_time: 10ms }", Some(600.0)),
            ("{ servers: unlimited, service_time: 10ms }", None),
            ("{ servers: 10, service_time: { uniform: { from: 60ms, to: 90ms } } }", Some(10.0 / 0.075)),
            ("{ servers: unlimited, service_time: 0, limiter: { token_bucket: { rate: 50/s } } }", Some(50.0)),
            ("{ servers: 6, service_time: 10ms, limiter: { sliding_log: { limit: 100, window: 2s } } }", Some(50.0)),
            ("{ servers: 6, service_time: 10ms, limiter: { fixed_window: { limit: 600, window: 1m } } }", Some(10.0)),
            ("{ servers: 6, service_time: 10ms, limiter: { token_bucket: { rate: 5/s, per: client } } }", Some(600.0)),
            ("{ servers: 6, service_time: 10ms, limiter: [concurrency: { limit: 9 }, adaptive_concurrency: {}] }", Some(600.0)),
            ("{ servers: 1, service_time: { exponential: { mean: 20ms } } }", Some(50.0)),
        ] {
            let service: ServiceConfig = read(text);
            match (capacity(&service), want) {
                (Some(got), Some(want)) => assert!((got - want).abs() < 1e-6, "{text}: {got}"),
                (got, want) => assert_eq!(got, want, "{text}"),
            }
        }
        // A lognormal with p50 40 ms and p99 180 ms: sigma 0.6465, mean 40 · exp(sigma²/2) = 49.3 ms.
        let mean = mean_service_time(&read("{ p50: 40ms, p99: 180ms }"));
        assert!((mean - 0.0493).abs() < 1e-4, "{mean}");
    }

    #[test]
    fn what_comes_in_waves_is_a_spike_over_its_mean() {
        let spike = |rate, peak, lasting| Offered::Spike { rate, peak, lasting };
        for (load, want) in [
            ("schedule: { every: 1m, spread: 5s }", spike(5.0, 60.0, 5.0)),
            ("schedule: { every: 1m }", spike(5.0, 300.0, 1.0)),
            ("day_curve: { points: [{ at: 0s, rate: 7/s }, { at: 1h, rate: 90/s }] }", Offered::Rate(90.0)),
            ("foreground: { each: 0.01/s, operations: 4, within: 5s }", Offered::Rate(12.0)),
            (
                "foreground: { each: 0.01/s, operations: 4, within: 5s, first: { at: 1m, spread: 15s } }",
                spike(12.0, 12.0 + 60.0, 20.0),
            ),
            ("on_reconnect: { after: x }", Offered::Burst { operations: 300.0, lasting: 0.0 }),
            ("trigger: { at: 9s, spread: 30s }", Offered::Burst { operations: 300.0, lasting: 30.0 }),
        ] {
            let fleet: FleetConfig = read(&format!("{{ clients: 300, load: {{ {load} }} }}"));
            assert_eq!(offered(&fleet), want, "{load}");
        }
    }

    #[test]
    fn what_comes_once_is_no_rate() {
        let burst = |lasting| Offered::Burst { operations: 300.0, lasting };
        for (offered, rate, peak, within) in [
            (burst(0.0), 0.0, 300.0, Some(300.0)),
            (burst(30.0), 0.0, 10.0, Some(50.0)),
            (burst(2.0), 0.0, 150.0, Some(300.0)),
            (Offered::Spike { rate: 5.0, peak: 60.0, lasting: 5.0 }, 5.0, 60.0, Some(300.0)),
            (Offered::Closed { clients: 9.0, think: 1.0 }, 0.0, 0.0, None),
        ] {
            assert_eq!((offered.rate(), offered.peak(), offered.within(5.0)), (rate, peak, within), "{offered:?}");
        }
    }

    #[test]
    fn worst_attempts_follow_the_tightest_limit() {
        for (text, want) in [
            ("{ attempts: 4, timeout: 1s }", WorstAttempts::AtMost(4.0)),
            ("{ attempts: 40, timeout: 1s, deadline: 10s, backoff: { fixed: { delay: 1s } } }", WorstAttempts::AtMost(11.0)),
            (
                "{ attempts: unlimited, timeout: 1s, max_elapsed: 10s, backoff: { fixed: { delay: 2s } } }",
                WorstAttempts::AtMost(6.0),
            ),
            ("{ attempts: unlimited, timeout: 1s, deadline: 10s }", WorstAttempts::Unbounded),
            (
                "{ attempts: unlimited, timeout: 1s, deadline: 31s, backoff: { exponential: { base: 1s } } }",
                WorstAttempts::AtMost(6.0),
            ),
        ] {
            assert_eq!(worst_attempts(&read(text)), want, "{text}");
        }
    }
}
