//! The coordinator: moves the faults, gathers the windows, watches for reasons to stop, and ends the run.

mod commanded;
mod remote;

use super::RunError;
use super::commands::Commands;
use super::hearing::Hearing;
use super::proxies::Proxies;
use crate::engine::live::actions::{Answer as Answered, Outside, Undone};
use crate::engine::live::clock::{Clock, LiveClock};
use crate::engine::live::external::External;
use crate::engine::live::shard::{Control, Message, Shard};
use crate::engine::live::signal::Signals;
use crate::engine::live::stop::{Answer, Checks};
use crate::engine::live::target::TargetProcess;
use crate::engine::live::timer::Timer;
use crate::engine::live::transport::{Requests, WireCounts};
use crate::engine::shared::{Acts, Faults, UNCOUNTED, WINDOW, blank, limits_reached, look_for_waves};
use crate::fault::{Phase, Timeline};
use crate::gate::stop::Stops;
use crate::metrics::{
    Acted, ActionOutcome, ActionRecord, NoteRecord, RunEvent, RunRecord, Series, ServiceCounts, StopReason, Totals,
};
use crate::plan::{Deed, Plan};
use crate::time::{Span, Timestamp};
use commanded::command_of;
use remote::told_of;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// From the start of the clock's countdown to its zero: time for every shard to hear of it.
const LEAD: Span = Span::from_millis(20);
/// How far ahead a stop is told, so that all shards stop at one moment.
const STOP_AHEAD: Span = Span::from_millis(50);
/// How long each step of the end may take: faults out, records in, target stopped, threads gone, observers heard. All
/// of them together stay below the ten seconds that an interrupted run may take.
const PATIENCE: Span = Span::from_millis(1_900);
/// How long after the end of the load a shard may still be busy with it.
const OVERDUE: Span = Span::from_secs(5);
/// Longer than this between two looks, which the pulse keeps apart, and nobody was served.
const LATE: Span = Span::from_millis(500);
/// So many attempts say something about the target.
const FEW: u64 = 10;
/// How long the built-in target may take to confirm a change: it makes one within milliseconds.
const CONFIRM: Span = Span::from_millis(500);
/// How often the target's process is looked at.
const PULSE: Span = Span::from_millis(200);

/// What a coordinator is made from.
pub struct Parts {
    pub plan: Arc<Plan>,
    pub clock: Arc<LiveClock>,
    pub timeline: Timeline,
    pub proxies: Proxies,
    pub phases: Vec<Phase>,
    pub requests: Arc<Requests>,
    pub shards: Vec<Shard>,
    pub messages: mpsc::UnboundedReceiver<Message>,
    pub series: Series,
    pub checks: Checks,
    /// Commands and webhooks; none once the end has begun.
    pub outside: Option<Outside>,
    /// The servers that carry out faults; none once the end has begun.
    pub external: Option<External>,
    pub target: Option<TargetProcess>,
    pub signals: Signals,
    pub hearing: Hearing,
    pub warnings: Vec<String>,
    /// What is worth keeping with the run.
    pub notes: Vec<String>,
    /// What is asked of the run while it goes on; none where nobody watches it, and once the end has begun.
    pub commands: Option<Commands>,
}

pub struct Coordinator {
    parts: Parts,
    timer: Timer,
    /// The moments at which something changes that have not come yet; the last one first.
    moments: Vec<Timestamp>,
    faults: Faults,
    acts: Acts,
    stops: Stops,
    /// Whether each check of `stop_if` passed when it was last asked.
    passed: Vec<bool>,
    totals: Vec<Totals>,
    wires: WireCounts,
    ceiling_holds: u64,
    /// Attempts that have ended so far; none once it was said that the target cannot be connected to.
    ended: Option<u64>,
    /// Shards that ended without their record.
    lost: usize,
    /// The changes that the built-in target was told to make and has not confirmed: by the plan's action, and since when.
    unconfirmed: Vec<(usize, Timestamp)>,
    /// By step: what a server says that it has touched.
    counted: BTreeMap<usize, u64>,
    /// The plan's actions that were done before their time, because somebody has ended a step by hand.
    changed_early: Vec<usize>,
    /// What somebody noted, and how many notes more.
    noted: Vec<NoteRecord>,
    notes_left_out: u64,
}

impl Coordinator {
    /// Everything is ready; the clock stands at zero.
    pub fn new(parts: Parts) -> Result<Self, RunError> {
        let timer = Timer::new().map_err(|source| RunError::System { what: "no timer", source })?;
        let mut moments: Vec<Timestamp> = parts.timeline.changes();
        moments.extend(parts.phases.iter().map(|phase| phase.from));
        moments.extend(parts.outside.iter().flat_map(Outside::moments));
        moments.extend(service_changes(&parts.plan).map(|(_, at)| at));
        moments.sort_unstable_by(|a, b| b.cmp(a));
        moments.dedup();
        Ok(Self {
            timer,
            moments,
            faults: Faults::new(&parts.timeline).with_remote(parts.plan.remote_steps()),
            acts: Acts::new(&parts.plan),
            stops: Stops::new(&parts.plan.stop_if, WINDOW, parts.plan.baseline()),
            passed: vec![true; parts.plan.stop_if.len()],
            totals: Vec::new(),
            wires: WireCounts::default(),
            ceiling_holds: 0,
            ended: Some(0),
            lost: 0,
            unconfirmed: Vec::new(),
            counted: BTreeMap::new(),
            changed_early: Vec::new(),
            noted: Vec::new(),
            notes_left_out: 0,
            parts,
        })
    }

    /// Starts the clock, runs to the end, cleans up.
    pub async fn run(mut self) -> RunRecord {
        self.start();
        let stopped = self.watch().await;
        if let Some(reason) = &stopped {
            let reason = reason.to_string();
            self.tell(&RunEvent::Stopping { reason });
        }
        self.finish(stopped).await
    }

    fn start(&mut self) {
        let clock = &self.parts.clock;
        let lead_millis = i64::try_from(LEAD.as_millis()).unwrap_or_default();
        self.parts.requests.start_at(clock.wall_millis() + lead_millis);
        clock.begin_in(LEAD);
        self.parts.shards.iter().for_each(|shard| shard.tell(Control::Start));
        self.tell(&RunEvent::Started);
        for text in std::mem::take(&mut self.parts.notes) {
            self.tell(&RunEvent::Note { text });
        }
        for text in std::mem::take(&mut self.parts.warnings) {
            self.tell(&RunEvent::Warning { text });
        }
    }

    /// Goes along with the run until its load is over, or something stops it.
    async fn watch(&mut self) -> Option<StopReason> {
        let mut pulse = tokio::time::interval(PULSE.to_std());
        let mut overdue = Timestamp::ZERO + self.parts.plan.length + OVERDUE;
        while self.totals.len() < self.parts.shards.len() {
            let next = self.moments.last().copied().unwrap_or(Timestamp::NEVER).min(overdue);
            let Parts { clock, messages, checks, outside, external, signals, target, commands, .. } = &mut self.parts;
            let before = clock.now();
            let stop = tokio::select! {
                biased;
                number = signals.first() => Some(StopReason::Signal(number)),
                waited = self.timer.until(&**clock, next) => match waited {
                    Ok(()) if next == overdue && clock.now().since(before) > LATE => None,
                    Ok(()) if next == overdue => Some(StopReason::Internal("a shard did not end its load in time".into())),
                    Ok(()) => self.turn(),
                    Err(error) => Some(StopReason::Internal(format!("the timer failed: {error}"))),
                },
                command = command_of(commands.as_mut()) => self.obey(command),
                message = messages.recv() => self.hear(message),
                answer = checks.next() => self.weigh(&answer),
                answer = answer_of(outside.as_mut()) => self.acted(answer),
                told = told_of(external.as_mut()) => self.carried_out(told),
                action = change_of(target.as_mut()) => self.changed(action),
                _ = pulse.tick() => target.as_mut().and_then(TargetProcess::died).map(StopReason::Internal),
            };
            if stop.is_some() {
                return stop;
            }
            let now = self.parts.clock.now();
            self.give_up(|since| now.since(since) > CONFIRM);
            // A process that was stopped meanwhile was late itself: the shards get their time again.
            if now.since(before) > LATE {
                overdue = overdue.max(now + OVERDUE);
            }
        }
        None
    }

    /// Makes the changes of the moment that has come.
    fn turn(&mut self) -> Option<StopReason> {
        let moment = self.moments.pop()?;
        let Parts { proxies, timeline, clock, external, .. } = &self.parts;
        let active = timeline.active(moment);
        external.iter().for_each(|external| external.turn(&timeline.spanning(moment)));
        proxies.apply(&active);
        let events = self.faults.turn(timeline, moment, clock.now(), |step| timeline.touched(step));
        events.iter().for_each(|event| self.tell(event));
        let phase = self.parts.phases.iter().find(|phase| phase.from == moment).map(|phase| phase.name.clone());
        if let Some(phase) = phase {
            self.tell(&RunEvent::PhaseStarted { phase });
        }
        self.change_target(moment);
        // Faults first: what is begun outside may take the machine's time.
        if let Some(outside) = &mut self.parts.outside {
            outside.begin(moment);
        }
        None
    }

    /// Has the built-in target make the changes of a moment.
    fn change_target(&mut self, moment: Timestamp) {
        let Some(target) = &self.parts.target else { return };
        let now = self.parts.clock.now();
        let early = |action: usize| self.changed_early.contains(&action);
        for (action, _) in service_changes(&self.parts.plan).filter(|(action, at)| *at == moment && !early(*action)) {
            target.change(action);
            self.unconfirmed.push((action, now));
        }
    }

    /// The built-in target has made a change.
    fn changed(&mut self, action: usize) -> Option<StopReason> {
        if let Some(place) = self.unconfirmed.iter().position(|(waiting, _)| *waiting == action) {
            self.unconfirmed.remove(place);
            let (_, event) = self.acts.service_changed(&self.parts.plan, action, self.parts.clock.now());
            self.tell(&event);
        }
        None
    }

    /// Says of changes that the target has not confirmed for long that they failed.
    fn give_up(&mut self, is_long: impl Fn(Timestamp) -> bool) {
        for (action, at) in self.unconfirmed.extract_if(.., |(_, since)| is_long(*since)).collect::<Vec<_>>() {
            let detail = format!("the built-in target did not confirm within {CONFIRM} that it had made the change");
            let record = ActionRecord { at, outcome: ActionOutcome::Failed, detail, ..blank(&self.parts.plan, action) };
            let (_, event) = self.acts.book(action, record);
            self.tell(&event);
        }
    }

    /// Waits, for a bounded time, for the changes that were made last, and ends the target.
    async fn end_target(&mut self) -> Option<ServiceCounts> {
        let mut target = self.parts.target.take()?;
        while !self.unconfirmed.is_empty()
            && let Some(action) = within(CONFIRM, target.changed()).await
        {
            let _ = self.changed(action);
        }
        self.give_up(|_| true);
        within(PATIENCE, target.stop()).await.flatten()
    }

    /// A command or a webhook has answered.
    fn acted(&mut self, answer: Answered) -> Option<StopReason> {
        let Answered { index, began, worked, detail } = answer;
        let outcome = if worked { ActionOutcome::Done } else { ActionOutcome::Failed };
        let record = ActionRecord { at: began, outcome, detail, ..blank(&self.parts.plan, index) };
        let (_, event) = self.acts.book(index, record);
        self.tell(&event);
        None
    }

    /// Kills what still runs outside, and begins to undo what was done there.
    fn begin_undoing(&mut self) -> Option<JoinHandle<Vec<Undone>>> {
        let (answers, undoing) = self.parts.outside.take()?.end();
        for answer in answers {
            let _ = self.acted(answer);
        }
        Some(undoing)
    }

    /// Waits until everything outside is undone, each within its own time; whether it is.
    async fn undo(&mut self, undoing: Option<JoinHandle<Vec<Undone>>>) -> bool {
        let Some(undoing) = undoing else { return true };
        let Ok(undone) = undoing.await else { return false };
        for Undone { index, confirmed, detail } in &undone {
            self.acts.undone(*index, *confirmed);
            let (action, detail) = (self.parts.plan.actions[*index].name.clone(), detail.clone());
            self.tell(&RunEvent::Undone { action, confirmed: *confirmed, detail });
        }
        undone.iter().all(|undone| undone.confirmed)
    }

    fn hear(&mut self, message: Option<Message>) -> Option<StopReason> {
        match message {
            Some(Message::Slice(slice)) => {
                self.parts.series.merge(slice);
                return self.report_windows();
            }
            Some(Message::Finished { totals, wires, ceiling_holds }) => {
                self.totals.push(*totals);
                self.ceiling_holds += ceiling_holds;
                self.wires = self.wires.plus(wires);
            }
            Some(Message::Warm { .. }) => {}
            Some(Message::Died { shard, why }) => {
                self.lost += 1;
                return Some(StopReason::Internal(format!("shard {shard} ended: {why}")));
            }
            None => return Some(StopReason::Internal("every shard has ended".into())),
        }
        None
    }

    /// Hands on the windows that every shard has sent.
    fn report_windows(&mut self) -> Option<StopReason> {
        let mut stop = None;
        while let Some(window) = self.parts.series.complete() {
            let phase = self.parts.phases.iter().rfind(|phase| phase.from <= window.start);
            self.parts.hearing.window(window, phase.map_or("", |phase| &phase.name));
            stop = stop.or_else(|| self.stops.window(window));
            let ended: u64 = window.all.by_outcome.values().sum();
            self.ended = self.ended.map(|before| before + ended);
        }
        let acted = self.parts.series.acted();
        self.tell_acted(&acted);
        self.warn_of_unreachable();
        stop.map(StopReason::StopCondition)
    }

    fn tell_acted(&mut self, acted: &[Acted]) {
        for (at, event) in self.acts.fleets_acted(&self.parts.plan, acted) {
            self.parts.hearing.event(at, &event);
        }
    }

    /// Says once that most attempts fail because the target takes no connections: else that is one column among many.
    fn warn_of_unreachable(&mut self) {
        let (failed, why) = self.parts.proxies.main.unreached();
        if self.ended.is_none_or(|ended| ended < FEW || failed <= ended / 2) {
            return;
        }
        self.ended = None;
        let url = self.parts.plan.target.url.as_ref();
        let target = url.map_or_else(|| "the built-in target".into(), |url| format!("the target at {}", url.value.authority()));
        let text = format!("{target} refuses connections, {failed} since the run began: {why}");
        self.tell(&RunEvent::Warning { text });
    }

    fn weigh(&mut self, answer: &Answer) -> Option<StopReason> {
        let changed = self.passed.get(answer.index).is_some_and(|passed| *passed != answer.passed);
        if changed {
            self.passed[answer.index] = answer.passed;
            let Answer { check, passed, detail, .. } = answer.clone();
            self.tell(&RunEvent::Check { check, passed, detail });
        }
        // One that fails has failed since it was asked: a check that hangs says so only when its time is over.
        let stop = self.stops.check(answer.asked, answer.index, answer.passed, &answer.detail);
        let stop = stop.or_else(|| self.stops.check(answer.at, answer.index, answer.passed, &answer.detail));
        stop.map(StopReason::StopCondition)
    }

    /// Removes the faults, then stops the load, then gathers what there is.
    async fn finish(mut self, stopped: Option<StopReason>) -> RunRecord {
        self.parts.commands = None;
        let removing = self.begin_removing();
        let cleared = self.parts.proxies.clear();
        let now = self.parts.clock.now();
        let events = self.faults.end_all(&self.parts.timeline, now, |step| self.parts.timeline.touched(step));
        events.iter().for_each(|event| self.tell(event));
        let undoing = self.begin_undoing();
        let end = Timestamp::ZERO + self.parts.plan.length;
        let ended = if stopped.is_some() { end.min(now + STOP_AHEAD) } else { end };
        let cleanup_confirmed = cleared && self.parts.proxies.settled(PATIENCE).await;
        let internal = self.stop_load(ended).await;
        let left = self.removed(removing).await;
        let undone = self.undo(undoing).await;
        let service = self.end_target().await;
        let faults = self.faults.records(&self.parts.plan, |step| self.touched(step));
        let shards = std::mem::take(&mut self.parts.shards);
        let joined = within(PATIENCE, tokio::task::spawn_blocking(move || shards.into_iter().for_each(Shard::join))).await;
        if joined.is_none() {
            self.tell(&RunEvent::Warning { text: "a shard did not end in time".into() });
        }
        for text in self.parts.proxies.notices() {
            self.tell(&RunEvent::Warning { text });
        }
        let acted = self.parts.series.acted_last(&self.totals);
        self.tell_acted(&acted);
        self.tell(&RunEvent::Ended);
        let unheard = self.parts.hearing.end(PATIENCE).await;
        let rest = RunRecord {
            fleets: self.parts.plan.fleets.iter().map(|fleet| fleet.name.clone()).collect(),
            destinations: self.parts.plan.destinations(),
            faults,
            actions: self.acts.records(),
            notes: self.noted,
            ended,
            length: self.parts.plan.length,
            stopped: stopped.or(internal),
            cleanup_confirmed: cleanup_confirmed && undone && left.is_empty(),
            left,
            service,
            taps: self.parts.proxies.taps(ended),
            connects: self.parts.proxies.main.connects(),
            ..RunRecord::default()
        };
        let mut record = self.parts.series.finish(self.totals, rest);
        look_for_waves(&self.parts.plan, &mut record);
        let own = [
            ("ephemeral ports", self.wires.out_of_ports),
            ("file descriptors", self.wires.out_of_descriptors),
            ("max_attempts", self.ceiling_holds),
            ("progress", unheard),
            ("notes", self.notes_left_out),
            (UNCOUNTED, self.parts.timeline.left_out()),
        ];
        let reached = limits_reached(&record, own.into_iter().chain(self.parts.proxies.main.limits()));
        record.limits_reached.extend(reached);
        record.limits_reached.extend(self.parts.proxies.limits(&record.taps));
        record
    }

    /// Stops the shards' load at a moment and waits for their records; says why where one does not come.
    async fn stop_load(&mut self, at: Timestamp) -> Option<StopReason> {
        self.parts.shards.iter().for_each(|shard| shard.tell(Control::StopAt(at)));
        let gather = async {
            let mut broken = None;
            while self.totals.len() + self.lost < self.parts.shards.len() {
                let message = self.parts.messages.recv().await;
                let over = message.is_none();
                // The load is over: a stop condition that is met now changes nothing.
                if let Some(reason @ StopReason::Internal(_)) = self.hear(message) {
                    broken = Some(reason);
                }
                if over {
                    break;
                }
            }
            broken
        };
        let late = || Some(StopReason::Internal("a shard did not hand in its record".into()));
        within(PATIENCE, gather).await.unwrap_or_else(late)
    }

    fn tell(&mut self, event: &RunEvent) {
        self.parts.hearing.event(self.parts.clock.now(), event);
    }
}

/// The changes of the service that a plan makes: by its action, and when.
fn service_changes(plan: &Plan) -> impl Iterator<Item = (usize, Timestamp)> {
    let changes = plan.actions.iter().enumerate().filter(|(_, action)| matches!(action.what, Deed::Service { .. }));
    changes.map(|(index, action)| (index, action.at))
}

/// The next change that the built-in target has made; never, where there is none.
async fn change_of(target: Option<&mut TargetProcess>) -> usize {
    match target {
        Some(target) => target.changed().await,
        None => std::future::pending().await,
    }
}

/// The next answer of a command or a webhook; never, where there is none.
async fn answer_of(outside: Option<&mut Outside>) -> Answered {
    match outside {
        Some(outside) => outside.next().await,
        None => std::future::pending().await,
    }
}

async fn within<F: Future>(limit: Span, work: F) -> Option<F::Output> {
    tokio::time::timeout(limit.to_std(), work).await.ok()
}
