//! What the actions of a run came to: told as it is known, and kept for the record.

use crate::metrics::{Acted, ActionOutcome, ActionRecord, RunEvent};
use crate::plan::action::{self, Deed};
use crate::plan::{Action, Plan};
use crate::time::Timestamp;

/// The actions of a run, by their place in the plan.
pub struct Acts {
    records: Vec<Option<ActionRecord>>,
}

impl Acts {
    /// Nothing has been done.
    pub fn new(plan: &Plan) -> Self {
        Self { records: vec![None; plan.actions.len()] }
    }

    /// Books what fleets did, and gives what is to be told of it.
    pub fn fleets_acted(&mut self, plan: &Plan, acted: &[Acted]) -> Vec<(Timestamp, RunEvent)> {
        let mut events = Vec::new();
        for Acted { fleet, action, at, affected } in acted {
            let Some(index) = action::by_place(&plan.actions, *fleet, usize::from(*action)) else { continue };
            let record = ActionRecord { affected: Some(*affected), at: *at, ..blank(plan, index) };
            events.push(self.book(index, record));
        }
        events
    }

    /// Books a change of the service that was made at a moment.
    pub fn service_changed(&mut self, plan: &Plan, index: usize, at: Timestamp) -> (Timestamp, RunEvent) {
        let detail = match &plan.actions[index].what {
            Deed::Service { change, .. } => change.to_string(),
            _ => String::new(),
        };
        self.book(index, ActionRecord { at, detail, ..blank(plan, index) })
    }

    /// Books an action, and gives what is to be told of it.
    pub fn book(&mut self, index: usize, record: ActionRecord) -> (Timestamp, RunEvent) {
        self.records[index] = Some(record.clone());
        (record.at, RunEvent::Acted { action: record })
    }

    /// Whether what undoes an action worked.
    pub fn undone(&mut self, index: usize, confirmed: bool) {
        if let Some(record) = &mut self.records[index] {
            record.undone = Some(confirmed);
        }
    }

    /// For the record, where nothing outside is reached: commands and webhooks whose moment came are skipped, and nothing is told of the others.
    pub fn skip_outside(&mut self, plan: &Plan, until: Timestamp) {
        for (index, action) in plan.actions.iter().enumerate().filter(|(_, action)| action.at < until) {
            if action.what.is_outside() {
                let detail = "a simulated run reaches nothing outside".to_string();
                self.records[index] = Some(ActionRecord { outcome: ActionOutcome::Skipped, detail, ..blank(plan, index) });
            }
        }
    }

    /// For the record: those whose moment came.
    pub fn records(self) -> Vec<ActionRecord> {
        self.records.into_iter().flatten().collect()
    }
}

/// The record of an action before anything is known of it.
pub fn blank(plan: &Plan, index: usize) -> ActionRecord {
    let action: &Action = &plan.actions[index];
    ActionRecord {
        name: action.name.clone(),
        kind: action.kind(),
        fleet: action.fleet().and_then(|fleet| plan.fleets.get(usize::from(fleet))).map(|fleet| fleet.name.clone()),
        at: action.at,
        outcome: ActionOutcome::Done,
        affected: None,
        detail: String::new(),
        undone: None,
    }
}

/// What a simulated run says of actions that it leaves out; none where it leaves out none.
pub fn left_out(plan: &Plan) -> Option<String> {
    let outside = plan.actions.iter().filter(|action| action.what.is_outside());
    let names: Vec<String> = outside.map(|action| format!("`{}` ({})", action.name, action.kind())).collect();
    (!names.is_empty()).then(|| format!("a simulated run reaches nothing outside, and leaves out {}", names.join(", ")))
}
