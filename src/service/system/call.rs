//! One call of a service to another: an operation of its own, run by the one retry loop.

use super::config::CallConfig;
use crate::event::AttemptOutcome;
use crate::operation::{Operation, Terms};
use crate::policy::budget::Tier;
use crate::policy::{Budget, Policy};
use crate::rng::{Key, Purpose};
use crate::service::job::NO_SLOT;
use crate::service::machine::Calling;
use crate::service::request::{Arrival, BROKEN, Metadata};
use crate::time::{Span, Timestamp};

/// What the calls of one service came to so far. Those that are neither succeeded, failed nor abandoned are under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Calls begun: one for each request whose own service was done.
    pub calls: u64,
    /// Attempts sent.
    pub attempts: u64,
    /// Of them, those that timed out.
    pub timed_out: u64,
    /// Calls that succeeded.
    pub succeeded: u64,
    /// Calls that were given up by their policy.
    pub failed: u64,
    /// Calls that ended with the request that they were made for.
    pub abandoned: u64,
}

impl CallCounts {
    /// Attempts beyond the first of each call.
    pub const fn retries(&self) -> u64 {
        self.attempts.saturating_sub(self.calls)
    }

    /// Attempts / calls; none where there was no call.
    pub fn amplification(&self) -> Option<f64> {
        (self.calls > 0).then(|| self.attempts as f64 / self.calls as f64)
    }
}

/// What a service calls with: its policy, and the budget that all its calls share.
#[derive(Debug)]
pub(super) struct Caller {
    /// Which service is called.
    pub to: usize,
    /// One way. Never nothing, or a call that is retried at once would be so without end.
    pub latency: Span,
    /// What follows a call that failed.
    pub on_failure: u16,
    /// Who the called service takes the client to be.
    pub client: u64,
    /// What came of them.
    pub counts: CallCounts,
    policy: Policy,
    budget: Option<Budget>,
}

/// A call under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// The retry loop.
    pub operation: Operation,
    /// Names its attempts to the draws.
    pub key: Key,
    /// What its requests say of themselves, their attempt aside.
    pub of: Metadata,
    /// Names its attempt on the wire, or the wait before the next one; what carries another name is out of date.
    pub token: u64,
    /// When the attempt on the wire times out; none while it waits.
    pub on_wire: Option<Timestamp>,
}

impl Caller {
    /// Of a service whose name is `client` to those it calls; they stand behind `first` in the list of all.
    pub fn new(config: &CallConfig, client: u64, first: usize) -> Self {
        let budget = config.policy.budget.as_ref().map(|budget| &budget.value);
        Self {
            to: config.to + first,
            latency: config.latency.max(Span(1)),
            on_failure: config.on_failure,
            client,
            counts: CallCounts::default(),
            policy: config.policy.clone(),
            budget: budget.filter(|budget| budget.tier != Tier::Operation).map(Budget::new),
        }
    }

    /// What a call is run by. The model's own moments are exact: nothing waits for them but the machine.
    pub fn terms(&self, key: Key) -> Terms<'_> {
        Terms { policy: &self.policy, budget: self.budget.as_ref(), grain: Span::ZERO, least_wait: Span::ZERO, key }
    }

    /// A call for a request whose own service is done.
    pub fn call(&mut self, calling: &Calling) -> Call {
        self.counts.calls += 1;
        // The attempts of a call are numbered from 1, and those of the request may have calls of their own each.
        let key = Key { operation: calling.key.stream(Purpose::Call).bits(), attempt: 0, ..calling.key };
        let of = Metadata { client: self.client, ..calling.of };
        Call { operation: Operation::new(calling.at), key, of, token: 0, on_wire: None }
    }

    /// Its next attempt goes on the wire: the request, and when it times out.
    pub fn begin(&mut self, now: Timestamp, token: u64, call: &mut Call) -> (Arrival, Timestamp) {
        let attempt = call.operation.begin(now, &self.terms(call.key));
        self.counts.attempts += 1;
        (call.token, call.on_wire) = (token, Some(attempt.timeout_at));
        let key = Key { attempt: attempt.number, ..call.key };
        let of = Metadata { attempt: attempt.number, ..call.of };
        (Arrival { id: token, key, destination: 0, before: NO_SLOT, of }, attempt.timeout_at)
    }

    /// The request that a call was made for is no more.
    pub fn abandon(&mut self, now: Timestamp, call: &mut Call) {
        self.counts.abandoned += 1;
        let terms = self.terms(call.key);
        if call.on_wire.is_some() {
            call.operation.close_only(now, AttemptOutcome::Cancelled, &terms);
        }
        call.operation.leave(&terms);
    }
}

/// What a status is to whoever called.
pub(super) const fn outcome(status: u16) -> AttemptOutcome {
    match status {
        BROKEN => AttemptOutcome::Reset,
        200..=299 => AttemptOutcome::Success,
        status => AttemptOutcome::Status(status),
    }
}
