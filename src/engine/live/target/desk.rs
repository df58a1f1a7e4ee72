//! Where requests wait for what the machine says: one machine, one timer, and the futures between them.

use super::wire::CallStats;
use crate::engine::live::clock::Clock;
use crate::engine::live::timer::Timer;
use crate::rng::Key;
use crate::service::job::{NO_SLOT, Slot};
use crate::service::{Answer, Arrival, Counts, Holding, Metadata, ServiceChange, System, SystemConfig};
use crate::time::Timestamp;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::{Notify, oneshot};

/// The machine of one thread's server.
pub struct Desk {
    clock: Arc<dyn Clock>,
    state: RefCell<State>,
    /// Told when the machine is due earlier than the timer is armed for.
    sooner: Notify,
}

struct State {
    service: System,
    waiting: BTreeMap<u64, oneshot::Sender<Answer>>,
    /// Room for answers on their way from the machine to those who wait.
    out: Vec<Answer>,
    next_id: u64,
    /// What the timer is armed for.
    armed: Option<Timestamp>,
}

impl Desk {
    /// An idle machine.
    pub fn new(config: &SystemConfig, clock: Arc<dyn Clock>) -> Rc<Self> {
        let state = State { service: System::new(config), waiting: BTreeMap::new(), out: Vec::new(), next_id: 0, armed: None };
        Rc::new(Self { clock, state: RefCell::new(state), sooner: Notify::new() })
    }

    /// Brings a request to the machine. The future gives the answer; dropped before that, the client has gone.
    /// Where the machine gives none, it gives none until then.
    pub fn request(self: &Rc<Self>, key: Key, destination: u64, of: Metadata) -> Waiter {
        let (sender, answer) = oneshot::channel();
        let (mut id, mut job) = (0, NO_SLOT);
        self.tell(|state, now| {
            id = state.next_id;
            state.next_id += 1;
            state.waiting.insert(id, sender);
            let of = Metadata { enqueued: of.enqueued.min(now), ..of };
            job = state.service.arrive(now, Arrival { id, key, destination, before: NO_SLOT, of }, &mut state.out);
        });
        Waiter { desk: self.clone(), id, job, answer, answered: false }
    }

    /// Calls the machine at the moments that it names. Returns only when the timer fails.
    pub async fn keep_time(&self, mut timer: Timer) -> io::Error {
        loop {
            let due = self.arm();
            let Some(at) = due else {
                self.sooner.notified().await;
                continue;
            };
            tokio::select! {
                biased;
                waited = timer.until(&*self.clock, at) => match waited {
                    Ok(()) => self.tell(|state, now| state.service.advance(now, &mut state.out)),
                    Err(error) => return error,
                },
                () = self.sooner.notified() => {}
            }
        }
    }

    /// Changes the machine while it runs.
    pub fn change(&self, change: &ServiceChange) {
        self.tell(|state, now| state.service.change(now, change, &mut state.out));
    }

    /// What each of several services did so far, and the calls between them; nothing where there is one.
    pub fn each(&self) -> (Vec<(String, Counts)>, Vec<CallStats>) {
        let service = &self.state.borrow().service;
        let each = Some(service.each()).filter(|each| each.len() > 1).unwrap_or_default();
        let calls = service.calls().into_iter().map(|(from, to, counts)| CallStats::new(from, to, &counts)).collect();
        (each.into_iter().map(|(name, counts)| (name.to_string(), counts)).collect(), calls)
    }

    /// The machine's time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Milliseconds since 1970 UTC, for hints that name a moment.
    pub fn wall_millis(&self) -> i64 {
        self.clock.wall_millis()
    }

    /// By service, what of it can be changed, as it is now; the front one first.
    pub fn holding(&self) -> Vec<(String, Holding)> {
        let mut all = Vec::new();
        self.tell(|state, now| {
            // The timer may be a little late.
            state.service.advance(now, &mut state.out);
            all = state.service.holding().into_iter().map(|(name, holding)| (name.to_string(), holding)).collect();
        });
        all
    }

    /// What the machine did so far.
    pub fn counts(&self) -> Counts {
        self.state.borrow().service.counts()
    }

    fn arm(&self) -> Option<Timestamp> {
        let mut state = self.state.borrow_mut();
        state.armed = state.service.due();
        state.armed
    }

    /// Tells the machine something, hands its answers out, and has the timer armed anew where that is needed.
    fn tell(&self, what: impl FnOnce(&mut State, Timestamp)) {
        let mut state = self.state.borrow_mut();
        what(&mut state, self.clock.now());
        let State { waiting, out, .. } = &mut *state;
        for answer in out.drain(..) {
            if let Some(sender) = waiting.remove(&answer.id) {
                // Whoever waited may have gone in this very moment; the work was done for them all the same.
                let _ = sender.send(answer);
            }
        }
        let due = state.service.due();
        if due.is_some_and(|due| state.armed.is_none_or(|armed| due < armed)) {
            self.sooner.notify_one();
        }
    }
}

/// A request that waits.
pub struct Waiter {
    desk: Rc<Desk>,
    id: u64,
    /// The job that answers it.
    job: Slot,
    answer: oneshot::Receiver<Answer>,
    answered: bool,
}

impl Future for Waiter {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let this = self.get_mut();
        Pin::new(&mut this.answer).poll(cx).map(|answer| {
            this.answered = true;
            answer.expect("the desk, which this future holds, keeps the sender until it answers")
        })
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if !self.answered {
            let (id, job) = (self.id, self.job);
            self.desk.tell(|state, now| {
                state.waiting.remove(&id);
                state.service.cancel(now, id, job, &mut state.out);
            });
        }
    }
}
