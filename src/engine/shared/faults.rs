//! What the faults of a run really did: when each began and ended.

use crate::fault::Timeline;
use crate::metrics::{FaultRecord, RunEvent};
use crate::time::Timestamp;

/// The faults of a run, by step.
pub struct Faults {
    marks: Vec<Mark>,
}

#[derive(Clone, Copy, Default)]
struct Mark {
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

impl Faults {
    /// None has begun.
    pub fn new(timeline: &Timeline) -> Self {
        Self { marks: vec![Mark::default(); timeline.steps().len()] }
    }

    /// Books what the plan changes at `moment`, which really happened at `now`. Ends come first.
    pub fn turn(
        &mut self,
        timeline: &Timeline,
        moment: Timestamp,
        now: Timestamp,
        touched: impl Fn(usize) -> u64,
    ) -> Vec<RunEvent> {
        let mut events = Vec::new();
        for (index, step) in timeline.steps().enumerate() {
            if step.to == moment && step.from < step.to {
                events.extend(self.end(timeline, index, now, &touched));
            }
        }
        for (mark, step) in self.marks.iter_mut().zip(timeline.steps()) {
            if step.from == moment && step.from < step.to {
                mark.from = Some(now);
                events.push(RunEvent::FaultStarted { fault: step.name.clone() });
            }
        }
        events
    }

    /// Books the end of everything that still acts.
    pub fn end_all(&mut self, timeline: &Timeline, now: Timestamp, touched: impl Fn(usize) -> u64) -> Vec<RunEvent> {
        (0..self.marks.len()).filter_map(|index| self.end(timeline, index, now, &touched)).collect()
    }

    fn end(&mut self, timeline: &Timeline, index: usize, now: Timestamp, touched: &impl Fn(usize) -> u64) -> Option<RunEvent> {
        let mark = &mut self.marks[index];
        if mark.from.is_none() || mark.to.is_some() {
            return None;
        }
        mark.to = Some(now);
        Some(RunEvent::FaultEnded { fault: timeline.step(index).name.clone(), touched: touched(index) })
    }

    /// For the record: those that began.
    pub fn records(&self, timeline: &Timeline, touched: impl Fn(usize) -> u64) -> Vec<FaultRecord> {
        let begun = self.marks.iter().zip(timeline.steps()).enumerate().filter_map(|(index, (mark, step))| {
            let from = mark.from?;
            let to = mark.to.unwrap_or(from);
            Some(FaultRecord { name: step.name.clone(), kind: step.kind(), from, to, touched: touched(index) })
        });
        begun.collect()
    }
}
