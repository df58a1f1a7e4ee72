//! What is shown of a run: fed with its events and windows, asked when it is drawn.

use super::series::Series;
use crate::engine::Observer;
use crate::engine::shared::WINDOW;
use crate::fault::{Phase, Timeline};
use crate::metrics::{ActionOutcome, RunEvent, Window};
use crate::plan::Plan;
use crate::report::layout::Style;
use crate::time::{Span, Timestamp};
use std::collections::VecDeque;

/// The most lines of the log that are kept: more than a terminal has.
const LINES: usize = 200;

/// How much a line of the log is worth a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    /// In passing.
    Plain,
    /// Something has changed.
    Strong,
    /// Something is not as it should be.
    Warning,
}

/// A line of the log.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) at: Timestamp,
    pub(super) weight: Weight,
    pub(super) text: String,
}

/// Where a fault is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It has not begun.
    Ahead,
    /// It acts.
    Acting,
    /// Somebody has ended it, and it has not gone yet.
    Ending,
    /// It is over, and has touched so much.
    Over { at: Timestamp, touched: u64, early: bool },
}

/// A fault of the plan.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    /// Its index in the plan's timeline.
    pub(super) step: usize,
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    pub(super) stage: Stage,
    early: bool,
}

/// What is known of a run before it begins, beside its plan.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Who runs it.
    pub operator: Option<String>,
    /// Why.
    pub note: Option<String>,
}

/// A run, as it is shown.
pub struct View {
    pub(super) name: String,
    pub(super) seed: u64,
    pub(super) length: Span,
    pub(super) facts: Facts,
    pub(super) style: Style,
    pub(super) series: Series,
    pub(super) phases: Vec<Phase>,
    pub(super) phase: String,
    pub(super) lines: VecDeque<Line>,
    timeline: Timeline,
    faults: Vec<Fault>,
    baseline: Baseline,
    stopping: Option<String>,
    over: bool,
}

/// What the plan's baseline has shown.
#[derive(Debug, Default)]
struct Baseline {
    stretch: Option<(Timestamp, Timestamp)>,
    succeeded: u64,
    windows: u64,
    done: bool,
}

impl View {
    /// Of a run of this plan that has not begun. `style.width` is not used.
    pub fn new(plan: &Plan, facts: Facts, style: Style) -> Self {
        let timeline = Timeline::new(plan.timeline.clone(), plan.seed);
        let phases = timeline.phases(plan.length);
        let mut faults: Vec<Fault> = timeline.steps().enumerate().filter(|(_, step)| step.from < step.to).map(fault).collect();
        faults.sort_by_key(|fault| (fault.from, fault.step));
        Self {
            name: plan.name.clone(),
            seed: plan.seed,
            length: plan.length,
            facts,
            style,
            series: Series::new(WINDOW),
            phase: phases.first().map(|phase| phase.name.clone()).unwrap_or_default(),
            phases,
            lines: VecDeque::new(),
            timeline,
            faults,
            baseline: Baseline { stretch: plan.baseline(), ..Baseline::default() },
            stopping: None,
            over: false,
        }
    }

    /// The faults, in the order in which they begin.
    pub(super) fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Why the run is being stopped before its end; none where it is not.
    pub(super) fn stopping(&self) -> Option<&str> {
        self.stopping.as_deref()
    }

    /// Whether the load is over.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Goodput of the plan's baseline, in operations per second, once that is over.
    pub(super) fn baseline(&self) -> Option<f64> {
        let Baseline { succeeded, windows, done, .. } = self.baseline;
        (done && windows > 0).then(|| succeeded as f64 / WINDOW.times(windows).as_secs_f64())
    }

    /// Whether a fault rests at a moment, between two times at which it acts.
    pub(super) fn rests(&self, fault: &Fault, now: Timestamp) -> bool {
        let step = self.timeline.step(fault.step);
        step.spans(now) && !step.acts(now)
    }

    /// Whether the fault of a row can be ended by hand.
    ///
    /// # Errors
    /// Why it cannot, in a sentence.
    pub(super) fn endable(&self, row: usize) -> Result<(), String> {
        let Some(fault) = self.faults.get(row) else { return Err("the plan has no fault".into()) };
        let name = self.style.fit(&fault.name, 30);
        match fault.stage {
            _ if self.stopping.is_some() || self.over => Err("the run is ending, and every fault with it".into()),
            Stage::Ahead => Err(format!("{name} has not begun yet")),
            Stage::Ending => Err(format!("{name} is being ended already")),
            Stage::Over { .. } => Err(format!("{name} has ended already")),
            Stage::Acting => Ok(()),
        }
    }

    /// Adds a line to the log.
    pub fn log(&mut self, at: Timestamp, text: &str) {
        self.line(at, Weight::Warning, text.to_string());
    }

    fn line(&mut self, at: Timestamp, weight: Weight, text: String) {
        if self.lines.len() >= LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(Line { at, weight, text });
    }

    fn named(&mut self, name: &str) -> Option<&mut Fault> {
        self.faults.iter_mut().find(|fault| fault.name == name)
    }

    fn cut_short(&mut self, at: Timestamp, name: &str) {
        let Some(fault) = self.named(name) else { return };
        (fault.stage, fault.early) = (Stage::Ending, true);
        let step = fault.step;
        self.timeline.end(step, at);
        self.phases = self.timeline.phases(self.length);
    }

    fn ended(&mut self, at: Timestamp, name: &str, touched: u64) {
        if let Some(fault) = self.named(name) {
            fault.stage = Stage::Over { at, touched, early: fault.early };
        }
    }
}

fn fault((step, of): (usize, &crate::fault::Step)) -> Fault {
    let (name, kind) = (of.name.clone(), of.kind());
    Fault { step, name, kind, from: of.from, to: of.to, stage: Stage::Ahead, early: false }
}

impl Observer for View {
    fn event(&mut self, at: Timestamp, event: &RunEvent) {
        match event {
            RunEvent::PhaseStarted { phase } => self.phase.clone_from(phase),
            RunEvent::FaultStarted { fault } => {
                if let Some(known) = self.named(fault) {
                    known.stage = Stage::Acting;
                }
            }
            RunEvent::FaultCutShort { fault } => self.cut_short(at, fault),
            RunEvent::FaultEnded { fault, touched } => self.ended(at, fault, *touched),
            RunEvent::Stopping { reason } => self.stopping = Some(reason.clone()),
            RunEvent::Ended => self.over = true,
            _ => {}
        }
        if let Some((weight, text)) = told(event) {
            self.line(at, weight, text);
        }
    }

    fn window(&mut self, window: &Window, phase: &str) {
        self.series.add(window);
        if let Some((from, to)) = self.baseline.stretch
            && from <= window.start
            && window.start + WINDOW <= to
        {
            self.baseline.windows += 1;
            self.baseline.succeeded += window.all.succeeded;
        }
        self.baseline.done |= self.baseline.stretch.is_some_and(|(_, to)| to <= window.start + WINDOW);
        if self.phase.is_empty() {
            self.phase = phase.to_string();
        }
    }
}

/// What the log says of an event; none where it says nothing.
fn told(event: &RunEvent) -> Option<(Weight, String)> {
    use Weight::{Plain, Strong, Warning};
    Some(match event {
        RunEvent::Started => (Plain, "the run has begun".into()),
        RunEvent::PhaseStarted { .. } => return None,
        RunEvent::FaultStarted { fault } => (Strong, format!("fault {fault} began")),
        RunEvent::FaultCutShort { fault } => (Strong, format!("the operator ends fault {fault}")),
        RunEvent::FaultEnded { fault, touched } => (Strong, format!("fault {fault} ended; it touched {touched} requests")),
        RunEvent::Acted { action } => {
            let weight = if action.outcome == ActionOutcome::Done { Plain } else { Warning };
            (weight, super::super::progress::acted(action).1)
        }
        RunEvent::Undone { action, confirmed: true, .. } => (Plain, format!("{action} was undone")),
        RunEvent::Undone { action, detail, .. } => (Warning, format!("{action} COULD NOT BE UNDONE: {detail}")),
        RunEvent::Stopping { reason } => (Warning, format!("stopping: {reason}")),
        RunEvent::Check { check, passed: false, detail } => (Warning, format!("check {check} failed: {detail}")),
        RunEvent::Check { check, .. } => (Plain, format!("check {check} passed again")),
        RunEvent::Note { text } => (Plain, text.clone()),
        RunEvent::Noted { text } => (Strong, format!("note: {text}")),
        RunEvent::Refused { text } => (Warning, text.clone()),
        RunEvent::Warning { text } => (Warning, format!("warning: {text}")),
        RunEvent::Ended => (Plain, "the run is over".into()),
    })
}
