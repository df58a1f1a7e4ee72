//! Operations as they come up: offered, taken into an outbox or turned away, and the wake-up for the next one.

use super::actions::Ingress;
use super::{Client, Devices, Output, Reason, wake_at};
use crate::event::{Event, LateBy, OperationOutcome};
use crate::operation::Operation;
use crate::time::Timestamp;

/// How many operations of one client one wake-up offers at most; a generator that is behind by more
/// catches up in steps, and its engine gets its turn between them.
const ARRIVALS_PER_WAKE: usize = 256;

impl Devices {
    /// Offers what is due of a client's operations, and asks for the wake-up of the next one.
    pub(super) fn arrivals(&mut self, client: u32, now: Timestamp, out: &mut Output) {
        for _ in 0..ARRIVALS_PER_WAKE {
            let Client { number, next: intended, .. } = *self.client(client);
            if intended > now {
                break;
            }
            let ingress = self.controls.ingress(self.rules.number_of(client));
            if self.rules.is_closed() && ingress != Ingress::Open {
                return;
            }
            let next = self.rules.next_start(client, number + 1, intended, None);
            let state = self.client(client);
            (state.number, state.next) = (number + 1, next);
            if ingress != Ingress::Away {
                self.offer(client, number, intended, now, out);
            }
        }
        self.arm(client, now, out);
    }

    pub(super) fn arm(&mut self, client: u32, now: Timestamp, out: &mut Output) {
        let state = self.client(client);
        if !state.armed && state.next != Timestamp::NEVER {
            state.armed = true;
            let at = state.next.max(now);
            wake_at(self.rules.on_grid(at), Reason::Arrival(client), out);
        }
    }

    fn offer(&mut self, client: u32, number: u64, intended: Timestamp, now: Timestamp, out: &mut Output) {
        let operation = self.rules.id(client, number);
        out.events.push(Event::Offered { operation, at: intended });
        let is_busy = self.is_busy(client);
        if self.rules.drops(intended, is_busy, now) {
            let by = if is_busy { LateBy::Plan } else { LateBy::Generator };
            out.events.push(Event::LateStart { operation, at: now, late: now.since(intended), by });
            self.turn_away(client, number, intended, now, OperationOutcome::Dropped, out);
        } else if self.controls.ingress(operation.client) == Ingress::Paused || !self.make_room(client, number, now, out) {
            self.turn_away(client, number, intended, now, OperationOutcome::Refused, out);
        } else {
            self.client(client).held += 1;
            let slot = self.held.insert(client, number, Operation::new(intended));
            self.taken_in(slot);
            self.make_ready(slot, Some(intended), now, out);
        }
    }

    /// The end of an operation that is not taken in.
    fn turn_away(
        &mut self,
        client: u32,
        number: u64,
        offered: Timestamp,
        now: Timestamp,
        outcome: OperationOutcome,
        out: &mut Output,
    ) {
        let operation = self.rules.id(client, number);
        out.events.push(Event::Finished { operation, offered, at: now, outcome, attempts: 0, last: None });
        self.schedule_after_end(client, now);
    }

    /// Under closed load, the end of an operation is what the next one waits for.
    pub(super) fn schedule_after_end(&mut self, client: u32, ended: Timestamp) {
        if self.rules.is_closed() {
            let number = self.client(client).number;
            self.client(client).next = self.rules.next_start(client, number, Timestamp::ZERO, Some(ended));
        }
    }
}
