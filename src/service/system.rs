//! The services of a target together: which of them a request is for, and what they call.

use super::{Answer, Arrival, Counts, Service, ServiceChange, ServiceConfig};
use crate::time::Timestamp;

/// The services of a target, with every name resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemConfig {
    /// What serves every request that is for none of the others.
    pub front: ServiceConfig,
}

/// The services of a target, sans-IO: driven as a [`Service`] is.
#[derive(Clone, Debug)]
pub struct System {
    front: Service,
}

impl System {
    /// All idle.
    pub fn new(config: &SystemConfig) -> Self {
        Self { front: Service::new(&config.front) }
    }

    /// A request arrives; answers that are due go to `out`.
    pub fn arrive(&mut self, now: Timestamp, arrival: Arrival, out: &mut Vec<Answer>) {
        self.front.arrive(now, arrival, out);
    }

    /// The client of a request has gone. An id that waits for no answer is ignored.
    pub fn cancel(&mut self, now: Timestamp, id: u64, out: &mut Vec<Answer>) {
        self.front.cancel(now, id, out);
    }

    /// The moment at which [`System::advance`] has something to do; none while nothing is going on.
    pub fn due(&self) -> Option<Timestamp> {
        self.front.due()
    }

    /// Lets the time pass; the answers that are due by now go to `out`.
    pub fn advance(&mut self, now: Timestamp, out: &mut Vec<Answer>) {
        self.front.advance(now, out);
    }

    /// Changes a service while it runs.
    pub fn change(&mut self, now: Timestamp, change: &ServiceChange, out: &mut Vec<Answer>) {
        self.front.change(now, change, out);
    }

    /// What they did so far, and hold.
    pub fn counts(&self) -> Counts {
        self.front.counts()
    }
}
