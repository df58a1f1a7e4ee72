//! What stays the same for a fleet while it runs: its plan, and what follows from it for one operation. Kept apart from
//! the state, so that the state can be changed while the rules are read.

use super::config::{IdempotencyKey, LateStarts, WhenFull};
use super::interface::{NO_DESTINATION, Send, Setup};
use super::kinds::{Kind, Kinds};
use super::link::Link;
use super::route::Routes;
use super::slab::{Entry, Held};
use crate::config::At;
use crate::event::{AttemptOutcome, LateBy, OperationId, OperationOutcome};
use crate::load::{Crowd, Load, Next, Step, Stretch};
use crate::operation::{Attempt, LEAST_AFTER_REFUSAL, Terms, on_grid};
use crate::policy::budget::Tier;
use crate::policy::{Budget, Policy};
use crate::rng::{Key, Purpose};
use crate::time::{Span, Timestamp};
use std::sync::Arc;

/// How often parked retries ask their budget, whatever happens: other shards earn too, and a window forgets.
pub(super) const LOOK_EVERY: Span = Span::from_millis(100);

/// How late a generator may be before a start counts as late; a timer is never on time to the nanosecond.
pub(super) const LATE_AFTER: Span = Span::from_millis(5);

/// The rules of one fleet in one shard. Clients are named by their place in the shard.
#[derive(Debug)]
pub(super) struct Rules {
    seed: u64,
    fleet: u16,
    first_client: u32,
    policy: Policy,
    load: Load,
    pace: Stretch,
    crowd: Crowd,
    late_starts: LateStarts,
    idempotency_key: IdempotencyKey,
    /// The most operations one client may hold.
    pub(super) outbox: u32,
    /// What becomes of one more.
    pub(super) when_full: WhenFull,
    grain: Span,
    least_wait: Span,
    end: Timestamp,
    routes: Routes,
    link: Option<Link>,
    kinds: Kinds,
    shared_budget: Option<Arc<Budget>>,
    budgets: Vec<Budget>,
}

impl Rules {
    pub(super) fn new(setup: Setup) -> Self {
        let Setup { seed, fleet, policy, config, clients, grain, end, route_weights, shared, enqueues, .. } = setup;
        let (shared_budget, budgets) = budgets_of(&policy, shared.budget, clients.len());
        Self {
            seed,
            fleet,
            first_client: clients.start,
            policy,
            crowd: Crowd::new(seed, fleet, config.clients),
            load: config.load,
            pace: Stretch::NONE,
            late_starts: config.late_starts,
            idempotency_key: config.idempotency_key,
            outbox: config.outbox,
            when_full: config.when_full,
            grain,
            least_wait: if enqueues { LEAST_AFTER_REFUSAL } else { Span::ZERO },
            end,
            routes: Routes::new(&route_weights),
            kinds: Kinds::new(&config.operations),
            link: config.link.map(|link| Link::new(link, config.connections, config.clients, clients)),
            shared_budget,
            budgets,
        }
    }

    /// The fleet's number.
    pub(super) const fn fleet(&self) -> u16 {
        self.fleet
    }

    /// Another policy from here on, with what the fleet shares of it.
    pub(super) fn set_policy(&mut self, policy: Policy, shared: Option<Arc<Budget>>, clients: usize) {
        (self.shared_budget, self.budgets) = budgets_of(&policy, shared, clients);
        self.policy = policy;
    }

    /// Another rate of arrivals from here on, as a factor of the planned one. Gives what was before.
    pub(super) fn set_pace(&mut self, now: Timestamp, factor: f64) -> Stretch {
        let after = self.pace.turned(now, factor);
        std::mem::replace(&mut self.pace, after)
    }

    /// The moment that a start has now, which had another at the pace before.
    pub(super) fn repaced(&self, before: Stretch, start: Timestamp) -> Timestamp {
        self.pace.run_time(before.load_time(start))
    }

    /// Whether a client's next operation starts when its last one has ended.
    pub(super) const fn is_closed(&self) -> bool {
        self.load.is_closed()
    }

    /// A moment to wait for.
    pub(super) fn on_grid(&self, at: Timestamp) -> Timestamp {
        on_grid(at, self.grain)
    }

    /// A client's number over all shards.
    pub(super) const fn number_of(&self, client: u32) -> u32 {
        self.first_client + client
    }

    /// A client's place in the shard; of another shard's client, a place that is not there.
    pub(super) const fn place_of(&self, number: u32) -> u32 {
        number.wrapping_sub(self.first_client)
    }

    /// The name of an operation.
    pub(super) const fn id(&self, client: u32, number: u64) -> OperationId {
        OperationId { fleet: self.fleet, client: self.number_of(client), number }
    }

    /// What an operation is run by.
    pub(super) fn terms(&self, client: u32, number: u64) -> Terms<'_> {
        let budget = self.shared_budget.as_deref().or_else(|| self.budgets.get(client as usize));
        Terms { policy: &self.policy, budget, grain: self.grain, least_wait: self.least_wait, key: self.key(client, number, 0) }
    }

    /// The intended start of a client's operation, given that of the one before and when that one ended;
    /// [`Timestamp::NEVER`] where there is none, or none yet.
    pub(super) fn next_start(&self, client: u32, number: u64, previous: Timestamp, ended: Option<Timestamp>) -> Timestamp {
        let pace = &self.pace;
        let step = Step { client: self.number_of(client), number, previous: pace.load_time(previous), ended };
        match self.load.next(&self.crowd, step, pace.load_time(self.end)) {
            Next::At(at) => pace.run_time(at).max(previous),
            Next::WhenItEnds | Next::Never => Timestamp::NEVER,
        }
    }

    /// Whether an operation that is offered now is dropped at once. A busy client makes it late by any delay beyond
    /// what the plan allows; a generator must be late by more than a timer's noise.
    pub(super) fn drops(&self, intended: Timestamp, is_busy: bool, now: Timestamp) -> bool {
        let allowed = match &self.late_starts {
            LateStarts::Queue(_) => return false,
            LateStarts::Drop(_) => Span::ZERO,
            LateStarts::BoundedCatchup(bound) => bound.within,
        };
        if is_busy { self.on_grid(intended + allowed) <= now } else { self.is_behind(intended + allowed.max(LATE_AFTER), now) }
    }

    /// When an operation that waits in an outbox leaves it unsent, and how.
    pub(super) fn gives_up(&self, entry: &Entry) -> Option<(Timestamp, OperationOutcome)> {
        let operation = &entry.operation;
        let fails = operation.expires(&self.terms(entry.client, entry.number)).map(|at| (at, OperationOutcome::Failed));
        let drops = match &self.late_starts {
            LateStarts::BoundedCatchup(bound) if operation.attempts() == 0 && entry.held != Held::No => {
                Some((self.on_grid(operation.intended() + bound.within), OperationOutcome::Dropped))
            }
            _ => None,
        };
        match (fails, drops) {
            // At one moment the deadline comes first: the operation would have failed had it been started.
            (Some(fails), Some(drops)) => Some(if drops.0 < fails.0 { drops } else { fails }),
            (fails, drops) => fails.or(drops),
        }
    }

    /// Who made a first attempt late that is sent now; none where it is on time, or only the ceiling held it back.
    pub(super) fn late_start(&self, intended: Timestamp, held: Held, now: Timestamp) -> Option<LateBy> {
        match held {
            Held::No => self.is_behind(intended + LATE_AFTER, now).then_some(LateBy::Generator),
            Held::Busy => self.is_behind(intended, now).then_some(LateBy::Plan),
            Held::AtOnce | Held::Ceiling => None,
        }
    }

    /// The attempt as it goes to the engine.
    pub(super) fn send(&self, entry: &Entry, attempt: Attempt, connection: u32) -> Send {
        let (client, number) = (entry.client, entry.number);
        Send {
            connection,
            operation: self.id(client, number),
            destination: NO_DESTINATION,
            attempt: attempt.number,
            route: self.routes.pick(self.key(client, number, 0)),
            timeout_at: attempt.timeout_at,
            idempotency_key: self.idempotency_key.draw(self.key(client, number, attempt.number)),
            enqueued_at: entry.operation.intended(),
            priority: self.kinds.are_there().then(|| self.kind(client, number).priority),
            delay: self.link.as_ref().map_or(Span::ZERO, |link| link.delay(client, self.key(client, number, attempt.number))),
        }
    }

    /// Whether an attempt that ended so speaks of an outage: its class is one that is retried.
    pub(super) fn is_outage(&self, outcome: AttemptOutcome) -> bool {
        self.terms(0, 0).retries(outcome)
    }

    /// What an operation is.
    pub(super) fn kind(&self, client: u32, number: u64) -> Kind {
        self.kinds.of(self.key(client, number, 0))
    }

    /// Who shares the budget, where there is one.
    pub(super) fn budget_tier(&self) -> Option<Tier> {
        self.policy.budget.as_ref().map(|budget| budget.value.tier)
    }

    /// The draw by which a throttle may refuse the next attempt of an operation: uniform in [0, 1).
    pub(super) fn throttle_draw(&self, entry: &Entry) -> f64 {
        self.key(entry.client, entry.number, entry.operation.attempts() + 1).stream(Purpose::Throttle).unit()
    }

    fn is_behind(&self, at: Timestamp, now: Timestamp) -> bool {
        now > self.on_grid(at)
    }

    fn key(&self, client: u32, operation: u64, attempt: u32) -> Key {
        Key { seed: self.seed, fleet: u32::from(self.fleet), client: self.number_of(client), operation, attempt }
    }
}

/// The budgets of a policy: the fleet's, or each client's own.
fn budgets_of(policy: &Policy, shared: Option<Arc<Budget>>, clients: usize) -> (Option<Arc<Budget>>, Vec<Budget>) {
    let Some(At { value: budget, .. }) = &policy.budget else { return (None, Vec::new()) };
    match budget.tier {
        Tier::Fleet => (shared.or_else(|| Some(Arc::new(Budget::new(budget)))), Vec::new()),
        // Each operation keeps its own account.
        Tier::Operation => (None, Vec::new()),
        Tier::Client => (None, (0..clients).map(|_| Budget::new(budget)).collect()),
    }
}
