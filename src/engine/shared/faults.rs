//! What the faults of a run really did: when each began and ended.

use crate::fault::Timeline;
use crate::metrics::{FaultRecord, RunEvent};
use crate::plan::Plan;
use crate::time::Timestamp;

/// The faults of a run, by step.
pub struct Faults {
    marks: Vec<Mark>,
}

#[derive(Clone, Default)]
struct Mark {
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    /// Whether somebody else carries it out, and says when it began and ended.
    remote: bool,
    /// Whether somebody has ended it by hand.
    cut_short: bool,
    failed: Option<String>,
}

impl Faults {
    /// None has begun.
    pub fn new(timeline: &Timeline) -> Self {
        Self { marks: vec![Mark::default(); timeline.steps().len()] }
    }

    /// The same, where somebody else carries out some steps: those begin and end when they are said to.
    pub fn with_remote(mut self, steps: impl IntoIterator<Item = usize>) -> Self {
        for step in steps {
            self.marks[step].remote = true;
        }
        self
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
            if step.to == moment && step.from < step.to && !self.marks[index].remote {
                events.extend(self.end(timeline, index, now, &touched));
            }
        }
        for (index, step) in timeline.steps().enumerate() {
            if step.from == moment && step.from < step.to && !self.marks[index].remote {
                events.extend(self.begin(timeline, index, now));
            }
        }
        events
    }

    /// Books that a step began.
    pub fn begin(&mut self, timeline: &Timeline, index: usize, now: Timestamp) -> Option<RunEvent> {
        self.marks[index].from = Some(now);
        Some(RunEvent::FaultStarted { fault: timeline.step(index).name.clone() })
    }

    /// Books that somebody ends a step by hand, before the plan would.
    ///
    /// # Errors
    /// Why it is not ended, in a sentence.
    pub fn cut_short(&mut self, timeline: &Timeline, index: usize) -> Result<RunEvent, String> {
        let Some(mark) = self.marks.get_mut(index) else { return Err(format!("the plan has no fault of number {index}")) };
        let fault = timeline.step(index).name.clone();
        match mark {
            Mark { to: Some(_), .. } => Err(format!("`{fault}` has ended already")),
            Mark { cut_short: true, .. } => Err(format!("`{fault}` is being ended already")),
            Mark { from: None, failed: Some(_), .. } => Err(format!("`{fault}` could not be begun, and there is nothing to end")),
            Mark { from: None, .. } => Err(format!("`{fault}` has not begun yet")),
            Mark { from: Some(_), .. } => {
                mark.cut_short = true;
                Ok(RunEvent::FaultCutShort { fault })
            }
        }
    }

    /// Books that a step did not happen as the plan has it; the first reason counts.
    pub fn fail(&mut self, index: usize, why: String) {
        self.marks[index].failed.get_or_insert(why);
    }

    /// Books the end of everything that still acts, and that nobody else ends.
    pub fn end_all(&mut self, timeline: &Timeline, now: Timestamp, touched: impl Fn(usize) -> u64) -> Vec<RunEvent> {
        let ours: Vec<usize> = (0..self.marks.len()).filter(|index| !self.marks[*index].remote).collect();
        ours.into_iter().filter_map(|index| self.end(timeline, index, now, &touched)).collect()
    }

    /// Books that a step ended, where nobody else ends it.
    pub fn end_here(
        &mut self,
        timeline: &Timeline,
        index: usize,
        now: Timestamp,
        touched: impl Fn(usize) -> u64,
    ) -> Option<RunEvent> {
        if self.marks[index].remote { None } else { self.end(timeline, index, now, &touched) }
    }

    /// Books that a step ended; nothing where it does not act.
    pub fn end(
        &mut self,
        timeline: &Timeline,
        index: usize,
        now: Timestamp,
        touched: &impl Fn(usize) -> u64,
    ) -> Option<RunEvent> {
        let mark = &mut self.marks[index];
        if mark.from.is_none() || mark.to.is_some() {
            return None;
        }
        mark.to = Some(now);
        Some(RunEvent::FaultEnded { fault: timeline.step(index).name.clone(), touched: touched(index) })
    }

    /// For the record: what nobody has seen to end lasted until now at least.
    pub fn cut(&mut self, now: Timestamp) {
        self.marks.iter_mut().filter(|mark| mark.from.is_some()).for_each(|mark| mark.to = mark.to.or(Some(now)));
    }

    /// For the record: those that began, or should have and did not. Of the latter nothing that came is evidence.
    pub fn records(&self, plan: &Plan, touched: impl Fn(usize) -> u64) -> Vec<FaultRecord> {
        let begun = self.marks.iter().zip(&plan.timeline).enumerate().filter_map(|(index, (mark, step))| {
            let from = mark.from.or_else(|| mark.failed.as_ref().map(|_| step.from))?;
            let to = mark.to.unwrap_or(from);
            let touched = if mark.from.is_some() { touched(index) } else { 0 };
            let (name, kind, ended_early, failed) = (step.name.clone(), step.kind(), mark.cut_short, mark.failed.clone());
            Some(FaultRecord { name, kind, from, to, touched, ended_early, failed })
        });
        begun.collect()
    }
}

/// What a simulated run says of faults that somebody else carries out in a live one; none where there are none.
pub fn without_toxiproxy(plan: &Plan) -> Option<String> {
    let names = plan.external.iter().map(|external| format!("`{}` at {}", external.name, external.api));
    let names = names.collect::<Vec<_>>().join(", ");
    let text =
        format!("a simulated run has no proxy of others: what {names} would do is done between the clients and the target");
    (!names.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Phase;
    use crate::time::Span;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn what_somebody_else_carries_out_is_booked_when_they_say_so() {
        let text = "version: 1\ntarget: { url: 'http://127.0.0.1:1/' }\nlength: 9s\n\
             fleets: { a: { clients: 1, policy: { attempts: 1, timeout: 1s }, load: { constant: { rate: 1/s } } } }\n\
             timeline:\n  - { at: 1s, for: 2s, name: here, fault: { hang: {} } }\n  - { at: 1s, for: 2s, name: there, fault: { hang: {} } }\n\
             \x20 - { at: 1s, for: 2s, name: never, fault: { hang: {} } }\n";
        let source = crate::plan::Source { file: "x", text, overrides: &[], env: &|_| None };
        let plan = crate::plan::load(&source).unwrap_or_else(|e| panic!("{e}")).plan;
        let timeline = Timeline::new(plan.timeline.clone(), 1);
        let touched = |_| 7;
        let mut faults = Faults::new(&timeline).with_remote([1, 2]);
        assert_eq!(faults.turn(&timeline, at(1), at(1), touched).len(), 1);
        assert!(faults.begin(&timeline, 1, at(2)).is_some());
        faults.fail(2, "no".into());
        faults.fail(2, "later".into());
        assert_eq!(faults.turn(&timeline, at(3), at(3), touched).len(), 1);
        assert!(faults.end(&timeline, 2, at(3), &touched).is_none(), "what never began does not end");
        assert!(faults.end_all(&timeline, at(4), touched).is_empty());
        assert_eq!(faults.cut_short(&timeline, 1), Ok(RunEvent::FaultCutShort { fault: "there".into() }));
        let refused: Vec<String> = [0, 1, 2, 3].map(|step| faults.cut_short(&timeline, step).unwrap_err()).into();
        let wanted = [
            "`here` has ended already",
            "`there` is being ended already",
            "`never` could not be begun, and there is nothing to end",
            "the plan has no fault of number 3",
        ];
        assert_eq!(refused, wanted);
        assert!(faults.end(&timeline, 1, at(5), &touched).is_some());
        faults.cut(at(6));
        let records = faults.records(&plan, touched);
        let told: Vec<_> = records.iter().map(|fault| (fault.from, fault.to, fault.touched, fault.failed.as_deref())).collect();
        assert_eq!(told, [(at(1), at(3), 7, None), (at(2), at(5), 7, None), (at(1), at(1), 0, Some("no"))]);
        assert_eq!(records.iter().map(FaultRecord::took_place).collect::<Vec<_>>(), [true, true, false]);
        assert_eq!(records.iter().map(|fault| fault.ended_early).collect::<Vec<_>>(), [false, true, false]);
        let unbegun = Faults::new(&timeline).cut_short(&timeline, 0).unwrap_err();
        assert_eq!(unbegun, "`here` has not begun yet");
        assert_eq!(timeline.phases(Span::from_secs(9)).iter().map(|phase: &Phase| phase.faults.len()).max(), Some(3));
    }
}
