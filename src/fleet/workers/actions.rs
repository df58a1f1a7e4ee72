//! What the timeline does to a fleet of workers in mid-run.

use super::config::DispatchRate;
use super::job::{NOBODY, Place};
use super::machine::{Workers, wake_at};
use crate::event::{AttemptOutcome, Event, OperationOutcome};
use crate::fleet::action::FleetAction;
use crate::fleet::interface::{Command, Output, Reason};
use crate::policy::Policy;
use crate::policy::guards::SharedGuards;
use crate::time::{Span, Timestamp};
use std::sync::Arc;

impl Workers {
    /// Carries an action out, and books what it touched.
    pub(super) fn act(&mut self, number: u16, now: Timestamp, out: &mut Output) {
        let Some((_, action)) = self.actions.get(usize::from(number)).cloned() else { return };
        let affected = match action {
            FleetAction::Restart { policy, stagger } => self.restart(policy, stagger, now, out),
            FleetAction::SetPolicy { policy } => {
                self.set_policy(policy);
                self.crew.len().into()
            }
            FleetAction::SetLane { destination, concurrency } => self.each(destination, |workers, number| {
                let Workers { destinations, ready, .. } = workers;
                destinations[usize::from(number)].set_lane(concurrency, ready);
            }),
            FleetAction::Pause { destination, scope } => {
                self.each(destination, |workers, number| workers.destination(number).paused = Some(scope))
            }
            FleetAction::Resume { destination } => {
                self.each(destination, |workers, number| workers.destination(number).paused = None)
            }
            FleetAction::SetRate { destination, rate, burst } => {
                let rate = rate.map(|rate| DispatchRate { rate, burst });
                self.each(destination, |workers, number| workers.destination(number).set_rate(rate.clone()))
            }
            FleetAction::SetArrivals { factor } => self.set_arrivals(factor, now, out),
            FleetAction::Scale { to } => {
                let before = self.crew.len();
                self.crew.scale(to);
                self.crew.len().abs_diff(before).into()
            }
            FleetAction::DropBacklog { destination } => self.drop_backlog(destination, now, out),
        };
        out.events.push(Event::Acted { fleet: self.rules.fleet(), action: number, at: now, affected });
        self.dispatch(now, out);
    }

    /// Does something with one destination, or with each; with how many.
    fn each(&mut self, destination: Option<u16>, act: impl Fn(&mut Self, u16)) -> u64 {
        let all = 0..self.destinations.len() as u16;
        let numbers = destination.map_or(all.clone(), |number| number..number + 1);
        let known: Vec<u16> = numbers.filter(|number| all.contains(number)).collect();
        known.iter().for_each(|&number| act(self, number));
        known.len() as u64
    }

    fn set_arrivals(&mut self, factor: f64, now: Timestamp, out: &mut Output) -> u64 {
        let before = self.rules.set_pace(now, factor);
        for number in 0..self.destinations.len() as u16 {
            let state = &mut self.destinations[usize::from(number)];
            if state.next > now && state.next != Timestamp::NEVER {
                state.next = self.rules.repaced(before, state.next).max(now);
                self.arm(number, now, out);
            }
        }
        self.destinations.len() as u64
    }

    fn set_policy(&mut self, policy: Arc<Policy>) {
        self.rules.set_policy(policy);
        self.guards = self.rules.guards(self.crew.len(), &SharedGuards::new(self.rules.policy()));
    }

    /// Everybody stops; what they had goes back to the tail of the queue, in the order of the workers, and begins a new pass.
    fn restart(&mut self, policy: Option<Arc<Policy>>, stagger: Span, now: Timestamp, out: &mut Output) -> u64 {
        let mut had: Vec<(u32, u32)> =
            self.held.in_order().filter(|(_, job)| job.worker != NOBODY).map(|(slot, job)| (job.worker, slot)).collect();
        had.sort_unstable();
        for &(worker, slot) in &had {
            if self.held.get(slot).place == Place::Wire {
                out.commands.push(Command::Cancel { connection: worker });
                self.cancelled(slot, now, out);
            }
            self.part(slot);
        }
        self.crew.stop_all();
        if let Some(policy) = policy {
            self.set_policy(policy);
        }
        had.iter().for_each(|&(_, slot)| self.requeue(slot, now, out));
        let workers = self.crew.len();
        for worker in 0..workers {
            let later = Span(stagger.0 / u64::from(workers) * u64::from(worker));
            wake_at(self.rules.on_grid(now + later), Reason::Back(worker), out);
        }
        workers.into()
    }

    /// The attempt on a wire is given up by us.
    fn cancelled(&mut self, slot: u32, now: Timestamp, out: &mut Output) {
        let job = *self.held.get(slot);
        job.operation.close_only(now, AttemptOutcome::Cancelled, &self.rules.terms(&job));
        let (operation, attempt, sent) = (self.rules.id(job.destination, job.number), job.operation.attempts(), job.since);
        out.events.push(Event::Ended { operation, attempt, sent, at: now, outcome: AttemptOutcome::Cancelled });
        self.in_flight -= 1;
    }

    /// Throws away what nobody works on.
    fn drop_backlog(&mut self, destination: Option<u16>, now: Timestamp, out: &mut Output) -> u64 {
        let of = |number: u16| destination.is_none_or(|destination| destination == number);
        let waiting = self.held.in_order().filter(|(_, job)| of(job.destination) && job.worker == NOBODY);
        let slots: Vec<u32> = waiting.map(|(slot, _)| slot).collect();
        for &slot in &slots {
            if self.held.get(slot).place == Place::Ready {
                self.ready.take(slot, &mut self.held);
            }
            self.finish(slot, now, OperationOutcome::Dropped, out);
        }
        slots.len() as u64
    }
}
