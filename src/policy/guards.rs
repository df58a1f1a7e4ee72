//! What stands between an attempt and the wire when its moment has come: a client's breaker, then its throttle.
//!
//! Owns whose they are (each client's own, or one for the fleet, shared by its shards behind a lock) and the order in which
//! they are asked. Leaves to others what each of them decides, and what follows a refusal (`operation`).

use super::breaker::{Breaker, SharedBy};
use super::throttle::{Admission, Throttle};
use super::{BreakerConfig, Policy, ThrottleConfig};
use crate::config::At;
use crate::event::AttemptOutcome;
use crate::time::{Span, Timestamp};
use std::sync::{Arc, Mutex, PoisonError};

/// The breakers and throttles of some clients of a fleet.
#[derive(Debug, Default)]
pub struct Guards {
    breakers: Held<Breaker>,
    throttles: Held<Throttle>,
}

/// The breaker and the throttle that a fleet shares, where their tier says so.
#[derive(Clone, Debug, Default)]
pub struct SharedGuards {
    breaker: Option<Arc<Mutex<Breaker>>>,
    throttle: Option<Arc<Mutex<Throttle>>>,
}

/// Whose they are.
#[derive(Debug, Default)]
enum Held<T> {
    #[default]
    None,
    /// Each client's own.
    Each(Vec<T>),
    /// The fleet's.
    Shared(Arc<Mutex<T>>),
}

impl SharedGuards {
    /// What the fleet of a policy shares.
    pub fn new(policy: &Policy) -> Self {
        let breaker = config(&policy.breaker).filter(|breaker| breaker.tier == SharedBy::Fleet);
        let throttle = config(&policy.throttle).filter(|throttle| throttle.tier() == SharedBy::Fleet);
        Self {
            breaker: breaker.map(|config| Arc::new(Mutex::new(Breaker::new(config)))),
            throttle: throttle.map(|config| Arc::new(Mutex::new(Throttle::new(config)))),
        }
    }
}

impl Guards {
    /// Those of so many clients.
    pub fn new(policy: &Policy, clients: usize, shared: &SharedGuards) -> Self {
        let breaker: Option<&BreakerConfig> = config(&policy.breaker);
        let throttle: Option<&ThrottleConfig> = config(&policy.throttle);
        Self {
            breakers: Held::new(clients, shared.breaker.clone(), breaker.map(|config| || Breaker::new(config))),
            throttles: Held::new(clients, shared.throttle.clone(), throttle.map(|config| || Throttle::new(config))),
        }
    }

    /// Whether nothing is asked of anybody.
    pub fn is_empty(&self) -> bool {
        matches!((&self.breakers, &self.throttles), (Held::None, Held::None))
    }

    /// A client wants to send now. `draw` is uniform in [0, 1). What is admitted is told of by [`Guards::ended`] when it ends.
    pub fn admit(&mut self, client: u32, now: Timestamp, retry: bool, draw: f64) -> Admission {
        if self.breakers.ask(client, |breaker| breaker.admits(now, retry)) == Some(false) {
            return Admission::Refused;
        }
        self.throttles.ask(client, |throttle| throttle.admit(now, retry, draw)).unwrap_or(Admission::Now)
    }

    /// An attempt that was admitted has ended so. A hedge that was cancelled says nothing.
    pub fn ended(&mut self, client: u32, now: Timestamp, outcome: AttemptOutcome, took: Span) {
        if outcome == AttemptOutcome::Cancelled {
            return;
        }
        self.breakers.ask(client, |breaker| breaker.ended(now, outcome != AttemptOutcome::Success));
        self.throttles.ask(client, |throttle| throttle.ended(now, outcome, took));
    }

    /// How many attempts a client may have on the wire at once; none where nothing sets it.
    pub fn concurrency(&mut self, client: u32) -> Option<u32> {
        self.throttles.ask(client, |throttle| throttle.concurrency()).filter(|most| *most != u32::MAX)
    }
}

impl<T> Held<T> {
    fn new(clients: usize, shared: Option<Arc<Mutex<T>>>, make: Option<impl Fn() -> T>) -> Self {
        match (shared, make) {
            (Some(shared), _) => Self::Shared(shared),
            (None, Some(make)) => Self::Each((0..clients).map(|_| make()).collect()),
            (None, None) => Self::None,
        }
    }

    /// Asks a client's, or the fleet's. A panic elsewhere does not make what it left behind unusable.
    fn ask<R>(&mut self, client: u32, ask: impl FnOnce(&mut T) -> R) -> Option<R> {
        match self {
            Self::None => None,
            Self::Each(all) => all.get_mut(client as usize).map(ask),
            Self::Shared(shared) => Some(ask(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))),
        }
    }
}

fn config<T>(config: &Option<At<T>>) -> Option<&T> {
    config.as_ref().map(|config| &config.value)
}
