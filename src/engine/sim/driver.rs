//! The loop of a simulated run: takes what happens next, from the clients' wake-ups or from the world behind them, and hands it
//! to the machine that it is for. It keeps no rule of its own but the order: at one moment the world comes first, so that an
//! answer that is here is heard, as the live driver hears it.

use super::queue::{Entry, Queue};
use super::trace::Trace;
use super::world::{Completion, Happened, Step, World};
use crate::engine::Observer;
use crate::engine::shared::{
    Acts, Enqueue, Faults, Part, Producers, UNCOUNTED, WINDOW, left_out, limits_reached, look_for_waves, machines, recorder,
    shared_state, without_toxiproxy,
};
use crate::fault::Phase;
use crate::fleet::{Command, Gauges, Machine, Output, Token};
use crate::gate::Stops;
use crate::metrics::{Acted, Recorder, RunEvent, RunRecord, Series, StopReason};
use crate::plan::Plan;
use crate::policy::Hint;
use crate::service::SystemConfig;
use crate::time::Timestamp;
use std::sync::atomic::{AtomicI32, Ordering};

/// How many things may happen within one window beside so many for each client: beyond it virtual time hardly moves, and nobody would see
/// the end.
const CROWDED: u64 = 1_000_000;
/// The same, for each client: a million attempts a minute of one client would fit. So hard work only few of many.
const CROWDED_EACH: u64 = 100_000;
/// How many clients may work so hard.
const FEW: u64 = 1_000;
/// The same, for each of the others.
const OTHERS_EACH: u64 = 100;
/// How many things happen between two looks at whether a signal came.
const LOOK_EVERY: u64 = 8192;

/// A wake-up that a machine asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wake {
    fleet: u16,
    token: Token,
}

/// The queues that a run is driven by. Which they are changes how fast it is, and nothing else.
pub trait Queues {
    /// For the clients' wake-ups.
    type Wakes: Queue<Wake> + Default;
    /// For the world's steps.
    type Steps: Queue<Step> + Default;
}

/// What a run took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Things that happened: wake-ups and steps that were still wanted when they came.
    pub live_events: u64,
    /// Wake-ups and steps that had become pointless: mostly the timeouts of attempts that were answered.
    pub stale_events: u64,
}

/// A run in virtual time.
pub struct Driver<'a, Q: Queues, T> {
    plan: &'a Plan,
    world: World<Q::Steps>,
    wakes: Q::Wakes,
    machines: Vec<Machine>,
    output: Output,
    producers: Producers,
    recorder: Recorder,
    series: Series,
    phases: Vec<Phase>,
    faults: Faults,
    acts: Acts,
    stops: Stops,
    /// The window that is open.
    open: usize,
    end: Timestamp,
    /// When something happened last.
    now: Timestamp,
    observer: &'a mut dyn Observer,
    trace: T,
    effort: Effort,
    /// By fleet, the clients of the wake-ups at hand.
    ahead: Vec<(u16, u32)>,
    /// What had happened when the open window began.
    before_window: u64,
}

impl<'a, Q: Queues, T: Trace> Driver<'a, Q, T> {
    /// A run that has not begun.
    pub fn new(plan: &'a Plan, service: &SystemConfig, observer: &'a mut dyn Observer, trace: T) -> Self {
        let world = World::new(plan, service);
        let phases = world.timeline().phases(plan.length);
        Self {
            wakes: Q::Wakes::default(),
            machines: machines(plan, &shared_state(plan), Part::ALL),
            output: Output::default(),
            producers: Producers::new(plan),
            recorder: recorder(plan, &phases),
            series: Series::new(1, plan.fleets.len(), &phases, WINDOW).with_producers(plan.producers()),
            phases,
            faults: Faults::new(world.timeline()),
            acts: Acts::new(plan),
            stops: Stops::new(&plan.stop_if, WINDOW, plan.baseline()),
            open: 0,
            end: Timestamp::ZERO + plan.length,
            now: Timestamp::ZERO,
            world,
            plan,
            observer,
            trace,
            effort: Effort::default(),
            ahead: Vec::new(),
            before_window: 0,
        }
    }

    /// Runs to the end of the plan, to a stop condition, or until there is a signal.
    pub fn run(mut self, signal: &AtomicI32) -> (RunRecord, Effort, T) {
        self.tell(Timestamp::ZERO, &RunEvent::Started);
        for text in left_out(self.plan).into_iter().chain(without_toxiproxy(self.plan)) {
            self.tell(Timestamp::ZERO, &RunEvent::Note { text });
        }
        self.enter_phase(Timestamp::ZERO);
        self.each_machine(Timestamp::ZERO, Machine::start);
        let stopped = self.work(signal);
        if let Some(reason) = &stopped {
            self.tell(self.end, &RunEvent::Stopping { reason: reason.to_string() });
        }
        self.finish(stopped)
    }

    /// Everything that happens before the end.
    fn work(&mut self, signal: &AtomicI32) -> Option<StopReason> {
        loop {
            if self.happened().is_multiple_of(LOOK_EVERY)
                && let Some(stop) = self.look(signal)
            {
                return Some(stop);
            }
            if let Some(sent) = self.producers.pop() {
                self.enqueue(sent);
                continue;
            }
            let (of_world, of_clients) = (self.world.next_at(), self.wakes.next_at());
            let next = of_world.min(of_clients);
            // What comes at its very end was rounded up to it, and is booked where it was meant.
            while self.window_end() < next && self.window_end() < self.end {
                if let Some(stop) = self.close_window(signal) {
                    return Some(stop);
                }
            }
            if next >= self.end {
                return None;
            }
            if of_world <= of_clients {
                self.step(next);
            } else if let Some((now, wake)) = self.next_wake() {
                let lived = self.machines[usize::from(wake.fleet)].wake(now, wake.token, &mut self.output);
                self.count(lived);
                self.carry_out(now, wake.fleet);
            }
        }
    }

    /// The next wake-up. What those at hand are going to read is read before, all of it at once: with a million clients it lies far
    /// away, and waiting for one after the other would take most of the time.
    fn next_wake(&mut self) -> Option<(Timestamp, Wake)> {
        let at_hand = self.wakes.at_hand();
        if !at_hand.is_empty() {
            let machine = |wake: &Wake| &self.machines[usize::from(wake.fleet)];
            let mut read = at_hand.iter().fold(0, |read, Entry { item, .. }| read ^ machine(item).foresee_token(item.token));
            self.ahead.clear();
            self.ahead
                .extend(at_hand.iter().filter_map(|Entry { item, .. }| Some((item.fleet, machine(item).foresee(item.token)?))));
            for &(fleet, client) in &self.ahead {
                read ^= self.machines[usize::from(fleet)].foresee_client(client) ^ self.world.foresee(fleet, client);
            }
            if self.world.is_wide() {
                read ^= self.ahead.iter().fold(0, |read, &(fleet, client)| read ^ self.world.foresee_target(fleet, client));
            }
            std::hint::black_box(read);
        }
        self.wakes.pop()
    }

    /// A producer's attempt reaches its queue, at the moment at which it was sent.
    fn enqueue(&mut self, sent: Enqueue) {
        let (now, into) = (self.now, sent.into.fleet);
        let outcome = self.machines[usize::from(into)].enqueue(now, sent.into.destination, &mut self.output);
        self.carry_out(now, into);
        self.machines[usize::from(sent.fleet)].ended(now, sent.connection, outcome, Hint::NONE, &mut self.output);
        self.carry_out(now, sent.fleet);
        self.count(true);
    }

    /// One step of the world.
    fn step(&mut self, now: Timestamp) {
        let happened = self.world.advance();
        self.count(happened != Happened::Stale);
        match happened {
            Happened::Stale | Happened::Inside => {}
            Happened::Turned => self.turned(now),
            Happened::Changed(action) => {
                let (at, event) = self.acts.service_changed(self.plan, action, now);
                self.tell(at, &event);
            }
            Happened::Ended(Completion { fleet, connection, outcome, hint }) => {
                self.machines[usize::from(fleet)].ended(now, connection, outcome, hint, &mut self.output);
                self.carry_out(now, fleet);
            }
        }
    }

    fn happened(&self) -> u64 {
        self.effort.live_events + self.effort.stale_events
    }

    /// Whether the run is to end here and now: a signal came, or virtual time stands nearly still.
    fn look(&mut self, signal: &AtomicI32) -> Option<StopReason> {
        let number = signal.load(Ordering::Relaxed);
        let crowd = self.happened() - self.before_window;
        let clients = self.plan.fleets.iter().map(|fleet| u64::from(fleet.config.clients)).sum::<u64>();
        let stop = if number != 0 {
            StopReason::Signal(number)
        } else if crowd > CROWDED + CROWDED_EACH * clients.min(FEW) + OTHERS_EACH * clients {
            StopReason::Internal(format!(
                "virtual time hardly moves: {crowd} events within second {}, for {clients} clients; give what they do at once some time: \
                 a `network` that takes some, a backoff, a `think`, a longer service time",
                self.open + 1
            ))
        } else {
            return None;
        };
        let now = self.world.next_at().min(self.wakes.next_at()).min(self.end);
        self.end = now.max(Timestamp::ZERO + WINDOW.times(self.open as u64));
        Some(stop)
    }

    fn count(&mut self, lived: bool) {
        self.effort.live_events += u64::from(lived);
        self.effort.stale_events += u64::from(!lived);
    }

    fn turned(&mut self, now: Timestamp) {
        let world = &self.world;
        let events = self.faults.turn(world.timeline(), now, now, |step| world.touched(step));
        events.iter().for_each(|event| self.tell(now, event));
        self.enter_phase(now);
    }

    fn enter_phase(&mut self, now: Timestamp) {
        let phase = self.phases.iter().find(|phase| phase.from == now).map(|phase| phase.name.clone());
        if let Some(phase) = phase {
            self.tell(now, &RunEvent::PhaseStarted { phase });
        }
    }

    fn each_machine(&mut self, now: Timestamp, act: impl Fn(&mut Machine, Timestamp, &mut Output)) {
        for fleet in 0..self.machines.len() {
            act(&mut self.machines[fleet], now, &mut self.output);
            self.carry_out(now, crate::engine::shared::fleet_number(fleet));
        }
    }

    fn carry_out(&mut self, now: Timestamp, fleet: u16) {
        self.now = now;
        for event in self.output.events.drain(..) {
            self.recorder.record(&event);
            self.trace.event(&event);
        }
        for command in self.output.commands.drain(..) {
            match command {
                Command::Send(send) if self.producers.take(&send) => {}
                Command::Send(send) => self.world.send(now, &send),
                Command::Cancel { connection } if self.producers.cancel(fleet, connection) => {}
                Command::Cancel { connection } => self.world.cancel(now, fleet, connection),
                Command::Wake { at, token } => self.wakes.push(at, Wake { fleet, token }),
            }
        }
    }

    fn window_end(&self) -> Timestamp {
        Timestamp::ZERO + WINDOW.times(self.open as u64 + 1)
    }

    /// Closes the open window. Returns why the run ends with it, if it does.
    fn close_window(&mut self, signal: &AtomicI32) -> Option<StopReason> {
        let at = self.window_end();
        let gauges = self.gauges(at);
        let stop = self.hand_in(&gauges).filter(|_| at < self.end);
        let signal = signal.load(Ordering::Relaxed);
        let stop = if signal == 0 { stop.map(StopReason::StopCondition) } else { Some(StopReason::Signal(signal)) };
        if stop.is_some() {
            self.end = at;
        }
        stop
    }

    /// Hands a window in and on. Returns the stop condition that it meets, if it meets one.
    fn hand_in(&mut self, gauges: &[Gauges]) -> Option<String> {
        let slice = self.recorder.close_window(self.open, gauges);
        self.series.merge(slice);
        self.open += 1;
        self.before_window = self.happened();
        let mut stop = None;
        while let Some(window) = self.series.complete() {
            let phase = self.phases.iter().rfind(|phase| phase.from <= window.start);
            self.observer.window(window, phase.map_or("", |phase| &phase.name));
            stop = stop.or_else(|| self.stops.window(window));
        }
        let acted = self.series.acted();
        self.tell_acted(&acted);
        stop
    }

    fn tell_acted(&mut self, acted: &[Acted]) {
        for (at, event) in self.acts.fleets_acted(self.plan, acted) {
            self.tell(at, &event);
        }
    }

    /// By fleet, what its clients hold, and what has reached the proxy.
    fn gauges(&self, at: Timestamp) -> Vec<Gauges> {
        let machines = self.machines.iter().enumerate();
        let of = |(fleet, machine): (usize, &Machine)| {
            let (arrived, connected) = (self.world.arrived(fleet), self.world.connects(fleet));
            Gauges { arrived, connected, ..machine.gauges(at) }
        };
        machines.map(of).collect()
    }

    /// Ends what still acts and gathers what there is.
    fn finish(mut self, stopped: Option<StopReason>) -> (RunRecord, Effort, T) {
        let end = self.end;
        let world = &self.world;
        let events = self.faults.end_all(world.timeline(), end, |step| world.touched(step));
        events.iter().for_each(|event| self.tell(end, event));
        // The last window shows what was held; stopping makes it unresolved.
        let gauges = self.gauges(end);
        self.each_machine(end, Machine::stop);
        if self.window_end() < end + WINDOW {
            // The run is over: a stop condition that is met now changes nothing.
            let _ = self.hand_in(&gauges);
        }
        let totals = vec![self.recorder.finish()];
        let acted = self.series.acted_last(&totals);
        for (at, event) in self.acts.fleets_acted(self.plan, &acted) {
            self.observer.event(at, &event);
        }
        self.acts.skip_outside(self.plan, end);
        self.observer.event(end, &RunEvent::Ended);
        let world = &self.world;
        let rest = RunRecord {
            fleets: self.plan.fleets.iter().map(|fleet| fleet.name.clone()).collect(),
            destinations: self.plan.destinations(),
            faults: self.faults.records(self.plan, |step| world.touched(step)),
            actions: self.acts.records(),
            ended: end,
            length: self.plan.length,
            stopped,
            cleanup_confirmed: true,
            service: Some(world.counts()),
            ..RunRecord::default()
        };
        let holds = self.machines.iter().map(Machine::ceiling_holds).sum();
        let mut record = self.series.finish(totals, rest);
        look_for_waves(self.plan, &mut record);
        let uncounted = self.world.timeline().left_out();
        let reached = limits_reached(&record, [("max_attempts", holds), (UNCOUNTED, uncounted)]);
        record.limits_reached.extend(reached);
        (record, self.effort, self.trace)
    }

    fn tell(&mut self, at: Timestamp, event: &RunEvent) {
        self.observer.event(at, event);
    }
}
