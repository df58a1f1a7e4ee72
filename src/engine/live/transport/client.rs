//! The task of one connection, and the slot through which the driver speaks to it.

use super::line::Line;
use super::response::{self, Answer};
use super::{Broken, Completion, Completions, Door, Requests, WireCounts};
use crate::engine::live::clock::Clock;
use crate::fleet::{Connections, Send};
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tracing::trace;

/// What the connections of one fleet in one region share.
pub struct Wire {
    pub fleet: u16,
    pub door: Door,
    pub connections: Connections,
    pub requests: Arc<Requests>,
    pub clock: Arc<dyn Clock>,
    pub completions: Rc<Completions>,
    pub counts: Rc<Cell<WireCounts>>,
}

/// What a connection's task is asked to do.
enum Job {
    WarmUp,
    Attempt { serial: u64, send: Send },
}

/// The driver's side of one connection.
pub struct Slot {
    connection: u32,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    job: Option<Job>,
    /// The attempt that the driver waits for; 0 where it waits for none.
    awaited: u64,
    /// Set until the task has closed its connection.
    cancel: bool,
    warmed: Option<bool>,
    task: Option<Waker>,
    warmer: Option<Waker>,
}

impl Slot {
    pub fn new(connection: u32) -> Self {
        Self { connection, state: RefCell::new(State::default()) }
    }

    pub fn send(&self, serial: u64, send: Send) {
        let mut state = self.state.borrow_mut();
        state.awaited = serial;
        state.job = Some(Job::Attempt { serial, send });
        wake(&mut state.task);
    }

    pub fn cancel(&self) {
        let mut state = self.state.borrow_mut();
        state.awaited = 0;
        state.job = None;
        state.cancel = true;
        wake(&mut state.task);
    }

    /// Whether a completion is the one waited for; it is then no longer.
    pub fn settle(&self, serial: u64) -> bool {
        let mut state = self.state.borrow_mut();
        let awaited = state.awaited == serial;
        if awaited {
            state.awaited = 0;
        }
        awaited
    }

    pub fn warm_up(&self) {
        let mut state = self.state.borrow_mut();
        state.job = Some(Job::WarmUp);
        wake(&mut state.task);
    }

    /// Waits for a warm-up: whether it succeeded.
    pub async fn warmed(&self) -> bool {
        std::future::poll_fn(|cx| {
            let mut state = self.state.borrow_mut();
            match state.warmed.take() {
                Some(connected) => Poll::Ready(connected),
                None => {
                    state.warmer = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn warm(&self, connected: bool) {
        let mut state = self.state.borrow_mut();
        state.warmed = Some(connected);
        wake(&mut state.warmer);
    }

    /// Whether the driver gave up what was running; asked once.
    fn poll_cancelled(&self, cx: &mut Context<'_>) -> bool {
        let mut state = self.state.borrow_mut();
        if std::mem::take(&mut state.cancel) {
            return true;
        }
        if !state.task.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.task = Some(cx.waker().clone());
        }
        false
    }

    fn take_job(&self) -> Option<Job> {
        self.state.borrow_mut().job.take()
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

/// The task: one job after the other, for as long as the transport lives.
pub async fn run(wire: Rc<Wire>, slot: Rc<Slot>) {
    let mut line = None;
    loop {
        match next_job(&wire, &slot, &mut line).await {
            Job::WarmUp => {
                if wire.connections == Connections::KeepAlive && line.is_none() {
                    line = wire.connect().await.ok();
                }
                slot.warm(line.is_some() || wire.connections == Connections::PerAttempt);
            }
            Job::Attempt { serial, send } => {
                let answer = until_cancelled(&slot, attempt(&wire, &mut line, &send)).await;
                let Some(answer) = answer else {
                    line = None;
                    continue;
                };
                if wire.connections == Connections::PerAttempt || !answer.reusable {
                    line = None;
                }
                let Answer { outcome, hint, .. } = answer;
                wire.completions.push(Completion { fleet: wire.fleet, connection: slot.connection, serial, outcome, hint });
            }
        }
    }
}

/// Waits for a job, and meanwhile notices when the other side closes the idle connection.
async fn next_job(wire: &Wire, slot: &Slot, line: &mut Option<Line>) -> Job {
    std::future::poll_fn(|cx| {
        if slot.poll_cancelled(cx) {
            *line = None;
            // Asked again, so that this task is registered for what comes next.
            slot.poll_cancelled(cx);
        }
        if line.as_mut().is_some_and(|line| line.poll_ended(cx).is_ready()) {
            wire.count(|counts| counts.idle_closes += 1);
            *line = None;
        }
        slot.take_job().map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// Runs a future unless the driver gives it up: then it is dropped, and `None` returned.
async fn until_cancelled<F: Future>(slot: &Slot, work: F) -> Option<F::Output> {
    let mut work = pin!(work);
    std::future::poll_fn(|cx| if slot.poll_cancelled(cx) { Poll::Ready(None) } else { work.as_mut().poll(cx).map(Some) }).await
}

/// One attempt, connecting where there is no connection.
async fn attempt(wire: &Wire, line: &mut Option<Line>, send: &Send) -> Answer {
    let sent = wire.clock.now();
    if !send.delay.is_zero() {
        tokio::time::sleep(send.delay.to_std()).await;
    }
    if let Some(open) = line
        && !open.usable().await
    {
        wire.count(|counts| counts.idle_closes += 1);
        *line = None;
    }
    let open = match line {
        Some(open) => open,
        None => match wire.connect().await {
            Ok(opened) => line.insert(opened),
            Err(_) => return Answer::broken(Broken::Connect),
        },
    };
    let request = wire.requests.build(send);
    let answered = response::read(open, request, wire.requests.success(), &*wire.clock, sent).await;
    answered.unwrap_or_else(Answer::broken)
}

impl Wire {
    async fn connect(&self) -> io::Result<Line> {
        let opened = Line::open(self.door.addr).await;
        if let Err(error) = &opened {
            trace!(proxy = %self.door.addr, %error, "a client could not connect");
        }
        if opened.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            (self.door.on_refused)();
        }
        match opened.as_ref().err().and_then(Errno::from_io_error) {
            Some(Errno::ADDRNOTAVAIL) => self.count(|counts| counts.out_of_ports += 1),
            Some(Errno::MFILE | Errno::NFILE) => self.count(|counts| counts.out_of_descriptors += 1),
            _ => {}
        }
        opened
    }

    fn count(&self, change: impl FnOnce(&mut WireCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }
}
