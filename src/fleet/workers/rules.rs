//! What an operation of a fleet of workers is run by: the policy, which an action may replace, budgets, and names.

use super::config::{OnGiveUp, WorkersConfig};
use super::destination::NamedLanes;
use super::job::{Job, NO_LANE};
use crate::config::At;
use crate::event::{AttemptOutcome, OperationId};
use crate::fleet::config::IdempotencyKey;
use crate::fleet::interface::{Send, Setup};
use crate::fleet::route::Routes;
use crate::load::{Crowd, Load, Next, Step, Stretch};
use crate::operation::{Attempt, Terms, on_grid};
use crate::policy::budget::Tier;
use crate::policy::guards::SharedGuards;
use crate::policy::{Budget, Guards, Policy};
use crate::rng::{Key, Purpose};
use crate::time::{Span, Timestamp};
use std::sync::Arc;

/// The rules of one fleet.
#[derive(Debug)]
pub(super) struct Rules {
    seed: u64,
    fleet: u16,
    policy: Arc<Policy>,
    idempotency_key: IdempotencyKey,
    grain: Span,
    end: Timestamp,
    /// For the streams of its destinations: each is one client's.
    crowd: Crowd,
    /// How fast they run against what the plan says.
    pace: Stretch,
    routes: Routes,
    pub(super) hold: bool,
    pub(super) on_give_up: OnGiveUp,
    pub(super) bound: u64,
    lanes: NamedLanes,
    budgets: Budgets,
}

/// The budgets of a fleet.
#[derive(Debug)]
enum Budgets {
    None,
    Shared(Arc<Budget>),
    /// By worker; each is made when it is first asked for.
    Each(Vec<Option<Budget>>),
}

impl Budgets {
    fn of(policy: &Policy, shared: Option<Arc<Budget>>) -> Self {
        match &policy.budget {
            None => Self::None,
            Some(At { value, .. }) => match value.tier {
                Tier::Fleet => Self::Shared(shared.unwrap_or_else(|| Arc::new(Budget::new(value)))),
                Tier::Client => Self::Each(Vec::new()),
                // Each operation keeps its own account.
                Tier::Operation => Self::None,
            },
        }
    }
}

impl Rules {
    pub(super) fn new(setup: &Setup, workers: &WorkersConfig, lanes: NamedLanes) -> Self {
        Self {
            seed: setup.seed,
            fleet: setup.fleet,
            idempotency_key: workers.idempotency_key,
            grain: setup.grain,
            end: setup.end,
            crowd: Crowd::new(setup.seed, setup.fleet, 1),
            pace: Stretch::NONE,
            routes: Routes::new(&setup.route_weights),
            hold: workers.queue.hold_while_waiting,
            on_give_up: workers.queue.on_give_up,
            bound: u64::from(workers.queue.bound),
            lanes,
            budgets: Budgets::of(&setup.policy, setup.shared.budget.clone()),
            policy: Arc::new(setup.policy.clone()),
        }
    }

    /// Another policy holds from now on, with budgets of its own.
    pub(super) fn set_policy(&mut self, policy: Arc<Policy>) {
        self.budgets = Budgets::of(&policy, None);
        self.policy = policy;
    }

    /// The breakers and throttles of so many workers.
    pub(super) fn guards(&self, workers: u32, shared: &SharedGuards) -> Guards {
        Guards::new(&self.policy, workers as usize, shared)
    }

    /// The policy that holds.
    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Sees to it that a worker has what it needs, where that is its own.
    pub(super) fn equip(&mut self, worker: u32) {
        if let (Budgets::Each(budgets), Some(At { value, .. })) = (&mut self.budgets, &self.policy.budget) {
            let place = worker as usize;
            if budgets.len() <= place {
                budgets.resize_with(place + 1, || None);
            }
            budgets[place].get_or_insert_with(|| Budget::new(value));
        }
    }

    /// The intended start of the operation of a stream that has this number in it, given that of the one before;
    /// [`Timestamp::NEVER`] where there is none.
    pub(super) fn next_start(&self, load: &Load, destination: u16, number: u64, previous: Timestamp) -> Timestamp {
        let pace = &self.pace;
        let step = Step { client: destination.into(), number, previous: pace.load_time(previous), ended: None };
        match load.next(&self.crowd, step, pace.load_time(self.end)) {
            Next::At(at) => pace.run_time(at).max(previous),
            Next::WhenItEnds | Next::Never => Timestamp::NEVER,
        }
    }

    /// Operations come `factor` times as fast as the plan says from now on. Returns how fast they came before.
    pub(super) fn set_pace(&mut self, now: Timestamp, factor: f64) -> Stretch {
        let after = self.pace.turned(now, factor);
        std::mem::replace(&mut self.pace, after)
    }

    /// The moment that a start has now, which had another at the pace before.
    pub(super) fn repaced(&self, before: Stretch, start: Timestamp) -> Timestamp {
        self.pace.run_time(before.load_time(start))
    }

    /// A moment to wait for.
    pub(super) fn on_grid(&self, at: Timestamp) -> Timestamp {
        on_grid(at, self.grain)
    }

    /// Whether a moment has passed by more than the grain.
    pub(super) fn is_behind(&self, at: Timestamp, now: Timestamp) -> bool {
        now > self.on_grid(at)
    }

    /// The fleet's number.
    pub(super) const fn fleet(&self) -> u16 {
        self.fleet
    }

    /// The name of an operation: its destination stands for its client.
    pub(super) const fn id(&self, destination: u16, number: u64) -> OperationId {
        OperationId { fleet: self.fleet, client: destination as u32, number }
    }

    /// What an operation is run by.
    pub(super) fn terms(&self, job: &Job) -> Terms<'_> {
        let budget = match &self.budgets {
            Budgets::None => None,
            Budgets::Shared(budget) => Some(&**budget),
            Budgets::Each(budgets) => budgets.get(job.account as usize).and_then(Option::as_ref),
        };
        Terms { policy: &self.policy, budget, grain: self.grain, least_wait: Span::ZERO, key: self.key(job, 0) }
    }

    /// When an operation that is not on the wire gives up.
    pub(super) fn expires(&self, job: &Job) -> Option<Timestamp> {
        if self.policy.deadline.is_none() && self.policy.max_elapsed.is_none() {
            return None;
        }
        job.operation.expires(&self.terms(job))
    }

    /// Its deadline.
    pub(super) fn deadline(&self, job: &Job) -> Option<Timestamp> {
        job.operation.deadline(&self.terms(job))
    }

    /// The attempt as it goes to the engine.
    pub(super) fn send(&self, job: &Job, attempt: Attempt) -> Send {
        Send {
            connection: job.worker,
            operation: self.id(job.destination, job.number),
            destination: job.destination,
            attempt: attempt.number,
            route: self.routes.pick(self.key(job, 0)),
            timeout_at: attempt.timeout_at,
            idempotency_key: self.idempotency_key.draw(self.key(job, attempt.number)),
            enqueued_at: job.operation.intended(),
            priority: None,
            delay: Span::ZERO,
        }
    }

    /// The lane that an outcome sends a retry to.
    pub(super) fn lane_after(&self, outcome: AttemptOutcome, destination: u16) -> u16 {
        let name = self.policy.on.of(outcome).and_then(|treatment| treatment.lane.as_deref());
        name.and_then(|name| self.lanes.number(name, destination)).unwrap_or(NO_LANE)
    }

    /// The draw by which a throttle may refuse the next attempt of an operation: uniform in [0, 1).
    pub(super) fn throttle_draw(&self, job: &Job) -> f64 {
        self.key(job, job.operation.attempts() + 1).stream(Purpose::Throttle).unit()
    }

    fn key(&self, job: &Job, attempt: u32) -> Key {
        let (fleet, client) = (u32::from(self.fleet), u32::from(job.destination));
        Key { seed: self.seed, fleet, client, operation: job.number, attempt }
    }
}
