//! The services of a target together: which of them a request is for, and what they call.
//!
//! A request goes to the service that its destination names, and to the front one where it names none. A service may call another one
//! for every request: after its own work, its server taken meanwhile, by a retry policy and with a budget of its own. Calls are
//! operations like any client's and run by the same loop (`operation`); their timers are kept here, so that whoever drives a system
//! needs to know of nothing but requests, answers and the time. One service that calls nothing costs nothing more than itself.

mod call;
mod config;
mod mesh;

pub use call::CallCounts;
pub use config::{CallConfig, FailsConfig, MAX_DEPTH, MAX_SERVICES, Member, SystemConfig};

use super::change::FRONT;
use super::job::{NO_SLOT, Slot};
use super::{Answer, Arrival, Counts, Holding, Service, ServiceChange};
use crate::time::Timestamp;
use mesh::Mesh;

/// The services of a target, sans-IO: driven as a [`Service`] is.
#[derive(Debug)]
pub struct System(Kind);

#[derive(Debug)]
enum Kind {
    Alone(Box<Service>),
    Mesh(Box<Mesh>),
}

impl System {
    /// All idle.
    pub fn new(config: &SystemConfig) -> Self {
        Self(if config.is_alone() {
            Kind::Alone(Box::new(Service::new(&config.front.service)))
        } else {
            Kind::Mesh(Box::new(Mesh::new(config)))
        })
    }

    /// A request arrives; answers that are due go to `out`. Gives what [`System::cancel`] is to be told of it.
    pub fn arrive(&mut self, now: Timestamp, arrival: Arrival, out: &mut Vec<Answer>) -> Slot {
        match &mut self.0 {
            Kind::Alone(service) => service.arrive(now, arrival, out).unwrap_or(NO_SLOT),
            Kind::Mesh(mesh) => {
                mesh.arrive(now, arrival, out);
                NO_SLOT
            }
        }
    }

    /// The client of a request has gone; `job` is what its arrival gave. A request that waits for no answer is ignored. A service that notices ends its call as well; what it
    /// called hears of that, and may notice or not.
    pub fn cancel(&mut self, now: Timestamp, id: u64, job: Slot, out: &mut Vec<Answer>) {
        match &mut self.0 {
            Kind::Alone(service) => service.cancel(now, id, job, out),
            Kind::Mesh(mesh) => mesh.cancel(now, id, out),
        }
    }

    /// Reads what the end of that job's request is going to read. Nothing changes.
    pub fn foresee(&self, job: Slot) -> u64 {
        match &self.0 {
            Kind::Alone(service) => service.foresee(job),
            Kind::Mesh(_) => 0,
        }
    }

    /// The moment at which [`System::advance`] has something to do; none while nothing is going on.
    pub fn due(&self) -> Option<Timestamp> {
        match &self.0 {
            Kind::Alone(service) => service.due(),
            Kind::Mesh(mesh) => mesh.due(),
        }
    }

    /// Lets the time pass; the answers that are due by now go to `out`.
    pub fn advance(&mut self, now: Timestamp, out: &mut Vec<Answer>) {
        match &mut self.0 {
            Kind::Alone(service) => service.advance(now, out),
            Kind::Mesh(mesh) => mesh.advance(now, out),
        }
    }

    /// Changes the service that the change names while it runs; none where no service has the name.
    pub fn change(&mut self, now: Timestamp, change: &ServiceChange, out: &mut Vec<Answer>) {
        match &mut self.0 {
            Kind::Alone(service) if change.whose() == FRONT => service.change(now, change, out),
            Kind::Alone(_) => {}
            Kind::Mesh(mesh) => mesh.change(now, change, out),
        }
    }

    /// What of each service can be changed, as it was when the time was last told; the front one first, which is called `service`.
    pub fn holding(&self) -> Vec<(&str, Holding)> {
        match &self.0 {
            Kind::Alone(service) => vec![(FRONT, service.holding())],
            Kind::Mesh(mesh) => mesh.holding().collect(),
        }
    }

    /// What the front service did so far and holds; but `useful`, `wasted` and `refusing` are of all services, so that shares are
    /// those of all work.
    pub fn counts(&self) -> Counts {
        match &self.0 {
            Kind::Alone(service) => service.counts(),
            Kind::Mesh(mesh) => mesh.counts(),
        }
    }

    /// What each service did so far and holds, the front one first, which is called `service`.
    pub fn each(&self) -> Vec<(&str, Counts)> {
        match &self.0 {
            Kind::Alone(service) => vec![(FRONT, service.counts())],
            Kind::Mesh(mesh) => mesh.each().collect(),
        }
    }

    /// What came of the calls, for each service that makes some: who calls, whom, and the counts.
    pub fn calls(&self) -> Vec<(&str, &str, CallCounts)> {
        match &self.0 {
            Kind::Alone(_) => Vec::new(),
            Kind::Mesh(mesh) => mesh.calls().collect(),
        }
    }
}

#[cfg(test)]
mod tests;
