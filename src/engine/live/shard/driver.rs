//! The driver: feeds a shard's machines with moments and completions, and carries out their commands.
//!
//! It works in bounded batches and yields between them, so that the tasks of clients and proxy on the same thread
//! come to their turn. Completions go before wake-ups, so that an answer that is here is heard; whether it came in time
//! its machine decides.

use super::seams::{Book, Seams, Timers, Wire};
use super::wakeups::Wakeups;
use super::{Control, Message};
use crate::engine::live::clock::Clock;
use crate::engine::shared::{Enqueue, Producers, WINDOW, fleet_number};
use crate::event::Event;
use crate::fleet::on_grid;
use crate::fleet::{Command, Gauges, Machine, Output};
use crate::plan::Plan;
use crate::policy::Hint;
use crate::time::{Span, Timestamp};
use std::io;
use std::sync::Arc;
use tokio::sync::mpsc;

/// The most completions, and the most wake-ups, between two yields.
const BATCH: usize = 64;
/// How long, after the end, a driver that is behind books what was due before it. What it leaves out then is a small
/// part of what it has booked as late.
const CATCH_UP: Span = Span::from_secs(1);

pub struct Driver<C, W, T, B> {
    clock: Arc<C>,
    wire: W,
    timers: T,
    book: B,
    machines: Vec<Machine>,
    wakeups: Wakeups,
    output: Output,
    producers: Producers,
    gauges: Vec<Gauges>,
    /// By fleet, the connections that were open when the clock started.
    warmed_up: Vec<u64>,
    messages: mpsc::UnboundedSender<Message>,
    /// The window that is open.
    open: usize,
    stop_at: Timestamp,
    grain: Span,
}

impl<C: Clock, W: Wire, T: Timers, B: Book> Driver<C, W, T, B> {
    /// A driver of the plan's `machines`, whose windows and record go to `messages`.
    pub fn new(
        plan: &Plan,
        machines: Vec<Machine>,
        clock: Arc<C>,
        seams: Seams<W, T, B>,
        messages: mpsc::UnboundedSender<Message>,
    ) -> Self {
        let Seams { wire, timers, book } = seams;
        Self {
            clock,
            wire,
            timers,
            book,
            machines,
            wakeups: Wakeups::default(),
            output: Output::default(),
            producers: Producers::new(plan),
            gauges: Vec::new(),
            warmed_up: Vec::new(),
            messages,
            open: 0,
            stop_at: Timestamp::ZERO + plan.length,
            grain: plan.timer_grain,
        }
    }

    /// Runs from the clock's zero until the end of the plan, or until it is told to stop; then hands in the record.
    pub async fn run(mut self, commands: &mut mpsc::UnboundedReceiver<Control>) -> io::Result<()> {
        self.warmed_up = (0..self.machines.len()).map(|fleet| self.wire.connected(fleet_number(fleet))).collect();
        self.each_machine(Timestamp::ZERO, Machine::start);
        loop {
            tokio::select! {
                biased;
                command = commands.recv() => match command {
                    Some(Control::StopAt(at)) => self.stop_at = self.stop_at.min(at),
                    Some(Control::Start) => {}
                    // Nobody wants the record any more.
                    None => return Ok(()),
                },
                () = self.wire.ready() => {}
                waited = self.timers.until(&*self.clock, self.next_moment()) => waited?,
            }
            while self.work() {
                tokio::task::yield_now().await;
                if let Ok(Control::StopAt(at)) = commands.try_recv() {
                    self.stop_at = self.stop_at.min(at);
                }
            }
            if self.clock.now() >= self.stop_at {
                self.finish();
                return Ok(());
            }
        }
    }

    /// When there is something to do, whatever comes.
    fn next_moment(&self) -> Timestamp {
        let due = if self.producers.is_empty() { self.wakeups.next_at() } else { Timestamp::ZERO };
        due.min(self.window_end()).min(self.stop_at)
    }

    fn window_end(&self) -> Timestamp {
        Timestamp::ZERO + WINDOW.times(self.open as u64 + 1)
    }

    /// One batch of what is due; whether more of it may be.
    fn work(&mut self) -> bool {
        let completions = self.drain_completions();
        let wakeups = self.drain_wakeups();
        let now = self.clock.now();
        if now >= self.stop_at {
            return false;
        }
        // What was due in the window belongs to it, however late it is done.
        while self.window_end() <= now && self.wakeups.next_at() >= self.window_end() {
            self.close_window(self.window_end());
        }
        completions == BATCH || wakeups == BATCH || !self.producers.is_empty()
    }

    fn drain_completions(&mut self) -> usize {
        for done in 0..BATCH {
            let now = self.clock.now();
            if now >= self.stop_at {
                return done;
            }
            if self.enqueue_next(now) {
                continue;
            }
            let Some(ended) = self.wire.next() else { return done };
            let machine = &mut self.machines[usize::from(ended.fleet)];
            machine.ended(now, ended.connection, ended.outcome, ended.hint, &mut self.output);
            self.carry_out(ended.fleet);
        }
        BATCH
    }

    fn drain_wakeups(&mut self) -> usize {
        for done in 0..BATCH {
            let now = self.clock.now();
            if now >= self.stop_at {
                return done;
            }
            if self.enqueue_next(now) {
                continue;
            }
            let Some(wakeup) = self.wakeups.pop_due(now) else { return done };
            self.machines[usize::from(wakeup.fleet)].wake(now, wakeup.token, &mut self.output);
            self.carry_out(wakeup.fleet);
        }
        BATCH
    }

    /// A producer's attempt reaches its queue; whether there was one.
    fn enqueue_next(&mut self, now: Timestamp) -> bool {
        let Some(Enqueue { fleet, connection, into }) = self.producers.pop() else { return false };
        let outcome = self.machines[usize::from(into.fleet)].enqueue(now, into.destination, &mut self.output);
        self.carry_out(into.fleet);
        self.machines[usize::from(fleet)].ended(now, connection, outcome, Hint::NONE, &mut self.output);
        self.carry_out(fleet);
        true
    }

    fn each_machine(&mut self, now: Timestamp, act: impl Fn(&mut Machine, Timestamp, &mut Output)) {
        for fleet in 0..self.machines.len() {
            act(&mut self.machines[fleet], now, &mut self.output);
            self.carry_out(fleet_number(fleet));
        }
    }

    fn carry_out(&mut self, fleet: u16) {
        for event in self.output.events.drain(..) {
            self.book.record(&event);
        }
        for command in self.output.commands.drain(..) {
            match command {
                Command::Send(send) if self.producers.take(&send) => {}
                Command::Send(send) => self.wire.send(send),
                Command::Cancel { connection } if self.producers.cancel(fleet, connection) => {}
                Command::Cancel { connection } => self.wire.cancel(fleet, connection),
                Command::Wake { at, token } => self.wakeups.push(at, fleet, token),
            }
        }
    }

    fn close_window(&mut self, at: Timestamp) {
        self.gauge(at);
        let slice = self.book.close_window(self.open, &self.gauges);
        self.open += 1;
        let _ = self.messages.send(Message::Slice(slice));
    }

    /// By fleet, what its clients hold, and what has reached the proxy.
    fn gauge(&mut self, at: Timestamp) {
        self.gauges.clear();
        let machines = (0u16..).zip(&self.machines);
        let of = |((fleet, machine), warmed_up): ((u16, &Machine), &u64)| {
            let (arrived, connected) = (self.wire.arrived(fleet), self.wire.connected(fleet));
            Gauges { arrived, connected: connected.saturating_sub(*warmed_up), ..machine.gauges(at) }
        };
        self.gauges.extend(machines.zip(&self.warmed_up).map(of));
    }

    /// Does what was due before the end and is not done yet: operations that come up late are offered all the same, and how
    /// late everything is counts as lag. A driver that was held up so leaves a record of it, not a gap. Nothing
    /// goes on the wire any more.
    fn catch_up(&mut self) {
        let (end, until) = (self.stop_at, self.clock.now() + CATCH_UP);
        // As the machines see it: what they ask for by then they are given at once.
        let moment = on_grid(end, self.grain);
        for done in 1usize.. {
            while self.window_end() < end && self.wakeups.next_at() >= self.window_end() {
                self.close_window(self.window_end());
            }
            let Some(wakeup) = self.wakeups.pop_due(Timestamp(end.0.saturating_sub(1))) else { return };
            self.machines[usize::from(wakeup.fleet)].wake(moment, wakeup.token, &mut self.output);
            self.book_late(wakeup.fleet, moment);
            if done.is_multiple_of(BATCH) && self.clock.now() >= until {
                return;
            }
        }
    }

    /// As [`Driver::carry_out`], after the end: what would be sent is only booked as late.
    fn book_late(&mut self, fleet: u16, moment: Timestamp) {
        let now = self.clock.now();
        for event in self.output.events.drain(..) {
            match event {
                Event::Sent { attempt: 1, .. } => {}
                Event::Sent { operation, at, lag, .. } => {
                    lag.iter().for_each(|lag| self.book.missed(operation, at, *lag + now.since(at)));
                }
                Event::Offered { operation, at } => {
                    self.book.record(&event);
                    self.book.missed(operation, at, now.since(at));
                }
                _ => self.book.record(&event),
            }
        }
        for command in self.output.commands.drain(..) {
            match command {
                Command::Send(_) => {}
                Command::Cancel { connection } => self.wire.cancel(fleet, connection),
                // The rest of a long catch-up: due now, not when it is over.
                Command::Wake { at, token } if at <= moment => {
                    self.wakeups.push(Timestamp(self.stop_at.0.saturating_sub(1)), fleet, token);
                }
                Command::Wake { at, token } => self.wakeups.push(at, fleet, token),
            }
        }
    }

    /// Ends the load at `stop_at` exactly, so that every shard hands in the same windows.
    fn finish(mut self) {
        let end = self.stop_at;
        self.catch_up();
        while self.window_end() < end {
            self.close_window(self.window_end());
        }
        // The last window shows what was held; stopping makes it unresolved.
        self.gauge(end);
        self.each_machine(end, Machine::stop);
        // A shard that heard of the stop too late has closed that window; the recorder then keeps the rest.
        if self.window_end() < end + WINDOW {
            let slice = self.book.close_window(self.open, &self.gauges);
            let _ = self.messages.send(Message::Slice(slice));
        }
        let ceiling_holds = self.machines.iter().map(Machine::ceiling_holds).sum();
        let totals = Box::new(self.book.finish());
        let _ = self.messages.send(Message::Finished { totals, wires: self.wire.counts(), ceiling_holds });
    }
}
