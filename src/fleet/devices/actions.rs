//! What the timeline does to the clients in mid-run: each action at a wake-up of its own.
//!
//! A client that is held (by a pause of everything, or while it restarts) sends nothing; what comes up, and what falls due, waits in its
//! outbox. Load that is held (by a pause at ingress, or because the fleet was scaled below the client) takes nothing new in: of open load each
//! operation is refused, or never comes up; of closed load none begins until it is let go again.

use super::super::action::{FleetAction, PauseScope, TimedAction};
use super::super::interface::{Setup, SharedAfter};
use super::{Command, Devices, Guards, Hedges, NONE, Output, Place, Reason, wake_at};
use crate::event::{AttemptOutcome, Event, OperationOutcome};
use crate::policy::Policy;
use crate::time::{Span, Timestamp};
use std::sync::Arc;

/// What holds the clients of a shard, and what will be done to them.
#[derive(Debug)]
pub(super) struct Controls {
    actions: Vec<TimedAction>,
    after: Vec<Option<SharedAfter>>,
    paused: Option<PauseScope>,
    /// Clients with this number and above offer nothing.
    members: u32,
    /// How many clients the whole fleet has.
    planned: u32,
    /// By client, whether it has yet to come back from a restart; empty where none has.
    down: Vec<bool>,
}

/// What becomes of an operation that comes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ingress {
    Open,
    /// It is refused; of closed load, it is not begun.
    Paused,
    /// It does not come up.
    Away,
}

impl Controls {
    pub(super) fn new(setup: &Setup) -> Self {
        let planned = setup.config.clients;
        let (actions, after) = (setup.actions.clone(), setup.shared.after.clone());
        Self { actions, after, paused: None, members: u32::MAX, planned, down: Vec::new() }
    }

    /// Whether a client may send nothing.
    pub(super) fn holds(&self, client: u32) -> bool {
        self.paused == Some(PauseScope::All) || !self.down.is_empty() && self.down[client as usize]
    }

    /// What becomes of the operations of the client of this number over all shards.
    pub(super) fn ingress(&self, number: u32) -> Ingress {
        if number >= self.members {
            Ingress::Away
        } else if self.paused == Some(PauseScope::Ingress) {
            Ingress::Paused
        } else {
            Ingress::Open
        }
    }
}

impl Devices {
    /// Asks for the wake-ups of all actions, and carries out those of the very start.
    pub(super) fn plan_actions(&mut self, now: Timestamp, out: &mut Output) {
        for number in 0..self.controls.actions.len() {
            let (at, number) = (self.controls.actions[number].0, u16::try_from(number).expect("a plan has fewer steps"));
            if at <= now {
                self.act(number, now, out);
            } else {
                wake_at(self.rules.on_grid(at), Reason::Action(number), out);
            }
        }
    }

    /// Carries an action out.
    pub(super) fn act(&mut self, number: u16, now: Timestamp, out: &mut Output) {
        let Some((_, action)) = self.controls.actions.get(usize::from(number)).cloned() else { return };
        let everybody = self.clients.len() as u64;
        let affected = match action {
            FleetAction::Restart { policy, stagger } => self.restart(number, policy, stagger, now, out),
            FleetAction::SetPolicy { policy } => {
                if let (Some(hedges), Some(hedge)) = (&mut self.hedges, &policy.hedge) {
                    hedges.set(hedge.value.clone());
                }
                self.set_policy(number, &policy);
                self.settle_all(now, out);
                everybody
            }
            FleetAction::Pause { scope, .. } => {
                self.controls.paused = Some(scope);
                everybody
            }
            FleetAction::Resume { .. } => {
                self.controls.paused = None;
                self.settle_all(now, out);
                everybody
            }
            FleetAction::SetArrivals { factor } => self.set_arrivals(factor, now, out),
            FleetAction::Scale { to } => self.scale(to, now, out),
            FleetAction::DropBacklog { .. } => self.drop_backlog(now, out),
            // A plan that asks this of clients is refused.
            FleetAction::SetLane { .. } | FleetAction::SetRate { .. } => 0,
        };
        out.events.push(Event::Acted { fleet: self.rules.fleet(), action: number, at: now, affected });
    }

    /// A client has come back from a restart.
    pub(super) fn back(&mut self, client: u32, now: Timestamp, out: &mut Output) {
        if let Some(down) = self.controls.down.get_mut(client as usize) {
            *down = false;
        }
        if !self.controls.down.contains(&true) {
            self.controls.down = Vec::new();
        }
        self.settle(client, now, out);
    }

    fn restart(&mut self, number: u16, policy: Option<Arc<Policy>>, stagger: Span, now: Timestamp, out: &mut Output) -> u64 {
        // In the order of their offers, and so they stand in the outboxes then.
        let held: Vec<u32> = self.held.in_order().map(|(slot, _)| slot).collect();
        self.controls.down = vec![true; self.clients.len()];
        held.into_iter().for_each(|slot| self.recall(slot, now, out));
        if let Some(policy) = policy {
            // Nothing is on a wire now: a plan that turns hedging on or off otherwise is refused.
            self.hedges = policy.hedge.as_ref().map(|hedge| Hedges::new(hedge.value.clone()));
            self.set_policy(number, &policy);
        }
        for client in 0..self.clients.len() as u32 {
            let share = f64::from(self.rules.number_of(client)) / f64::from(self.controls.planned.max(1));
            wake_at(self.rules.on_grid(now + stagger.scale(share)), Reason::Back(client), out);
        }
        self.clients.len() as u64
    }

    /// Takes an operation back to the end of its client's outbox, wherever it is, for a new pass.
    fn recall(&mut self, slot: u32, now: Timestamp, out: &mut Output) {
        let entry = *self.held.get(slot);
        if entry.place == Place::Wire {
            self.give_up_wires(slot, now, out);
        }
        let terms = self.rules.terms(entry.client, entry.number);
        let operation = &mut self.held.get_mut(slot).operation;
        operation.leave(&terms);
        operation.next_pass();
        match entry.place {
            Place::Ready => {
                self.stand_back(slot);
                self.stand_ready(slot);
            }
            Place::Wire if !self.comes_back(slot) => self.finish(slot, now, OperationOutcome::Superseded, out),
            _ => self.make_ready(slot, None, now, out),
        }
    }

    /// Cancels every attempt of an operation.
    fn give_up_wires(&mut self, slot: u32, now: Timestamp, out: &mut Output) {
        if self.hedges.is_some() {
            return self.cancel_others(slot, now, out);
        }
        let entry = *self.held.get(slot);
        let (client, terms) = (entry.client, self.rules.terms(entry.client, entry.number));
        let (operation, attempt, at) = (self.rules.id(client, entry.number), entry.operation.attempts(), now);
        entry.operation.close_only(now, AttemptOutcome::Cancelled, &terms);
        out.events.push(Event::Ended { operation, attempt, sent: entry.since, at, outcome: AttemptOutcome::Cancelled });
        let wires: Vec<u32> = self.wires.held_by(&self.clients, client, slot).collect();
        for wire in wires {
            out.commands.push(Command::Cancel { connection: self.wires.connection(self.rules.number_of(client), wire) });
            self.wires.release(&mut self.clients, client, wire);
            self.in_flight -= 1;
        }
    }

    fn set_policy(&mut self, number: u16, policy: &Arc<Policy>) {
        let shared = self.controls.after.get(usize::from(number)).cloned().flatten().unwrap_or_default();
        self.guards = Guards::new(policy, self.clients.len(), &shared.guards);
        self.rules.set_policy((**policy).clone(), shared.budget, self.clients.len());
    }

    fn set_arrivals(&mut self, factor: f64, now: Timestamp, out: &mut Output) -> u64 {
        let before = self.rules.set_pace(now, factor);
        for client in 0..self.clients.len() as u32 {
            let next = self.client(client).next;
            if next > now && next != Timestamp::NEVER {
                self.client(client).next = self.rules.repaced(before, next).max(now);
                self.client(client).armed = false;
                self.arm(client, now, out);
            }
        }
        self.clients.len() as u64
    }

    fn scale(&mut self, to: u32, now: Timestamp, out: &mut Output) -> u64 {
        let here = |members: u32| u64::from(members.saturating_sub(self.rules.number_of(0)).min(self.clients.len() as u32));
        let affected = here(self.controls.members).abs_diff(here(to));
        self.controls.members = to;
        self.settle_all(now, out);
        affected
    }

    fn drop_backlog(&mut self, now: Timestamp, out: &mut Output) -> u64 {
        let waiting = self.held.in_order().filter(|(_, entry)| entry.place != Place::Wire);
        let slots: Vec<u32> = waiting.map(|(slot, _)| slot).collect();
        for &slot in &slots {
            self.leave(slot, OperationOutcome::Dropped, now, out);
        }
        if self.rules.is_closed() {
            self.settle_all(now, out);
        }
        slots.len() as u64
    }

    /// Something that held clients has gone: they send what they may, and closed load begins again.
    fn settle_all(&mut self, now: Timestamp, out: &mut Output) {
        for client in 0..self.clients.len() as u32 {
            let is_closed = self.rules.is_closed();
            let state = self.client(client);
            if is_closed && state.next < now {
                state.next = now;
            }
            if state.held > 0 || state.next <= now || state.outbox.first != NONE {
                self.settle(client, now, out);
            }
        }
    }
}
