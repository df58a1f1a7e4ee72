//! What somebody asks of the run while it goes on, carried out.

use super::{Coordinator, Parts};
use crate::engine::live::clock::Clock;
use crate::engine::live::run::commands::{self, Command, Commands, MOST_NOTES};
use crate::engine::live::shard::Control;
use crate::engine::live::signal::Signals;
use crate::metrics::{NoteRecord, RunEvent, StopReason};
use crate::plan::{Deed, Plan};
use crate::time::Timestamp;
use std::sync::Arc;

impl Coordinator {
    /// Carries a command out. What cannot be done is told, and changes nothing.
    pub(super) fn obey(&mut self, command: Command) -> Option<StopReason> {
        match command {
            Command::EndFault(step) => return self.end_fault(step),
            Command::Note(text) => self.note(&text),
            Command::Stop => {
                // From here on a signal is the second thing that asks for an end.
                Signals::asked_otherwise();
                return Some(StopReason::Operator);
            }
        }
        None
    }

    fn note(&mut self, text: &str) {
        let Some(text) = commands::note(text) else { return };
        if self.noted.len() >= MOST_NOTES {
            self.notes_left_out += 1;
            let text = format!("the note is not kept: a run keeps {MOST_NOTES}");
            return self.tell(&RunEvent::Refused { text });
        }
        self.noted.push(NoteRecord { at: self.parts.clock.now(), text: text.clone() });
        self.tell(&RunEvent::Noted { text });
    }

    /// Ends a fault now. The plan's later steps keep their times.
    fn end_fault(&mut self, step: usize) -> Option<StopReason> {
        // What is due already comes first, so that a fault is not ended and then begun.
        while self.moments.last().is_some_and(|moment| *moment <= self.parts.clock.now()) {
            let stop = self.turn();
            if stop.is_some() {
                return stop;
            }
        }
        let back = self.way_back(step);
        let event = back.and_then(|back| Ok((back, self.faults.cut_short(&self.parts.timeline, step)?)));
        match event {
            Ok((back, event)) => self.cut_short(step, back, &event),
            Err(why) => self.tell(&RunEvent::Refused { text: format!("no fault is ended: {why}") }),
        }
        None
    }

    fn cut_short(&mut self, step: usize, back: Option<usize>, event: &RunEvent) {
        let now = self.parts.clock.now();
        self.parts.timeline.end(step, now);
        let Parts { proxies, timeline, external, target, .. } = &self.parts;
        external.iter().for_each(|external| external.turn(&timeline.spanning(now)));
        proxies.apply(&timeline.active(now));
        if let (Some(action), Some(target)) = (back, target) {
            target.change(action);
            self.unconfirmed.push((action, now));
            self.changed_early.push(action);
        }
        let ended = self.faults.end_here(timeline, step, now, |step| timeline.touched(step));
        self.tell(event);
        ended.iter().for_each(|event| self.tell(event));
        self.rephase(now);
    }

    /// Cuts the phases anew, from the one that begins now on.
    fn rephase(&mut self, now: Timestamp) {
        let phases = self.parts.timeline.phases(self.parts.plan.length);
        self.parts.series.rephase(&phases);
        let shared: Arc<[_]> = phases.clone().into();
        self.parts.shards.iter().for_each(|shard| shard.tell(Control::Phases(shared.clone())));
        let begun = phases.iter().find(|phase| phase.from == now).map(|phase| phase.name.clone());
        self.parts.phases = phases;
        if let Some(phase) = begun {
            self.tell(&RunEvent::PhaseStarted { phase });
        }
    }

    /// For a step that changes the target: the action that puts it back. None for a fault of traffic.
    fn way_back(&self, step: usize) -> Result<Option<usize>, String> {
        let plan = &self.parts.plan;
        match plan.timeline.get(step) {
            Some(of) if of.fault.is_none() => match put_back(plan, step) {
                Some(action) if self.parts.target.is_some() => Ok(Some(action)),
                _ => Err(format!("`{}` changes the target, and the plan has no way back from it", of.name)),
            },
            _ => Ok(None),
        }
    }
}

/// The action that puts back what a step of the timeline has changed in the target; none where it lasts to the end of the run.
fn put_back(plan: &Plan, step: usize) -> Option<usize> {
    let place = plan.timeline[step].place;
    plan.actions.iter().position(|action| action.place == place && matches!(action.what, Deed::Service { ends: true, .. }))
}

/// The next command; never, where nobody watches.
pub(super) async fn command_of(commands: Option<&mut Commands>) -> Command {
    match commands {
        Some(commands) => commands.next().await,
        None => std::future::pending().await,
    }
}
