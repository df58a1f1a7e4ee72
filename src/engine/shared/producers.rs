//! Attempts that go into a queue and not to the target: they take no time, and no wire.

use crate::fleet::Send;
use crate::plan::{Into, Plan};
use std::collections::VecDeque;

/// Attempts of producers that have been sent, and are not in their queue yet. An engine hands them on before anything else
/// happens, each as a thing that happens by itself: a producer that is refused and tries again at once does not keep it from the rest.
#[derive(Debug, Default)]
pub struct Producers {
    /// By fleet.
    into: Vec<Option<Into>>,
    sent: VecDeque<Enqueue>,
}

/// An attempt to enqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enqueue {
    /// The producer's fleet.
    pub fleet: u16,
    /// Its connection.
    pub connection: u32,
    /// Where the operation goes.
    pub into: Into,
}

impl Producers {
    /// Those of a plan.
    pub fn new(plan: &Plan) -> Self {
        Self { into: plan.fleets.iter().map(|fleet| fleet.into).collect(), sent: VecDeque::new() }
    }

    /// Takes an attempt, if it is a producer's.
    pub fn take(&mut self, send: &Send) -> bool {
        let (fleet, connection) = (send.operation.fleet, send.connection);
        let Some(into) = self.into.get(usize::from(fleet)).copied().flatten() else { return false };
        self.sent.push_back(Enqueue { fleet, connection, into });
        true
    }

    /// An attempt is given up; whether it was a producer's.
    pub fn cancel(&mut self, fleet: u16, connection: u32) -> bool {
        self.sent.retain(|sent| (sent.fleet, sent.connection) != (fleet, connection));
        self.into.get(usize::from(fleet)).is_some_and(Option::is_some)
    }

    /// The next attempt.
    pub fn pop(&mut self) -> Option<Enqueue> {
        self.sent.pop_front()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }
}
