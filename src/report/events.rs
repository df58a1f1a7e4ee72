//! `events.ndjson`: what happened to the run, one JSON object a line, written as it happens.
//!
//! Each line goes out whole and at once, so that a killed run leaves all it had. The first names the plan. A write
//! that fails ends the log, not the run: the error is kept for whoever prints the end of the run.

use super::result::{ActionStatus, PlanInfo};
use crate::engine::Observer;
use crate::metrics::{ActionRecord, RunEvent, Window};
use crate::time::Timestamp;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};

/// Writes run events.
pub struct EventLog<W> {
    out: W,
    failure: Failure,
}

/// What went wrong with an event log, for those who no longer hold the log itself.
#[derive(Clone, Debug, Default)]
pub struct Failure(Arc<OnceLock<String>>);

impl Failure {
    /// The first error; none while all is well.
    pub fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

impl<W: Write + Send> EventLog<W> {
    /// A log whose first line names the plan. The writer should not buffer.
    pub fn new(out: W, plan: &PlanInfo) -> Self {
        let mut log = Self { out, failure: Failure::default() };
        log.line(Timestamp::ZERO, "prepared", plan_fields(plan));
        log
    }

    /// Tells whether the log broke; keeps telling when the log has been given away.
    pub fn failure(&self) -> Failure {
        self.failure.clone()
    }

    fn line(&mut self, at: Timestamp, event: &str, fields: Value) {
        if self.failure.get().is_some() {
            return;
        }
        if let Err(error) = write_line(&mut self.out, at, event, fields) {
            // Only the first error is wanted, and there is none yet.
            let _ = self.failure.0.set(error.to_string());
        }
    }
}

impl<W: Write + Send> Observer for EventLog<W> {
    fn event(&mut self, at: Timestamp, event: &RunEvent) {
        let (name, fields) = describe(event);
        self.line(at, name, fields);
    }

    fn window(&mut self, _window: &Window, _phase: &str) {}
}

fn plan_fields(plan: &PlanInfo) -> Value {
    json!({
        "stormwake": env!("CARGO_PKG_VERSION"), "plan": plan.name, "path": plan.path, "sha256": plan.sha256,
        "engine": plan.engine, "seed": plan.seed, "started_unix_ms": plan.started_unix_ms,
        "operator": plan.operator, "note": plan.note,
    })
}

fn describe(event: &RunEvent) -> (&'static str, Value) {
    match event {
        RunEvent::Started => ("started", Value::Null),
        RunEvent::PhaseStarted { phase } => ("phase_started", json!({ "phase": phase })),
        RunEvent::FaultStarted { fault } => ("fault_started", json!({ "fault": fault })),
        RunEvent::FaultEnded { fault, touched } => ("fault_ended", json!({ "fault": fault, "touched": touched })),
        RunEvent::FaultCutShort { fault } => ("fault_cut_short", json!({ "fault": fault, "by": "operator" })),
        RunEvent::Acted { action } => ("acted", action_fields(action)),
        RunEvent::Undone { action, confirmed, detail } => {
            ("undone", json!({ "action": action, "confirmed": confirmed, "detail": detail }))
        }
        RunEvent::Stopping { reason } => ("stopping", json!({ "reason": reason })),
        RunEvent::Check { check, passed, detail } => ("check", json!({ "check": check, "passed": passed, "detail": detail })),
        RunEvent::Note { text } => ("note", json!({ "text": text, "by": "stormwake" })),
        RunEvent::Noted { text } => ("note", json!({ "text": text, "by": "operator" })),
        RunEvent::Refused { text } => ("refused", json!({ "text": text })),
        RunEvent::Warning { text } => ("warning", json!({ "text": text })),
        RunEvent::Ended => ("ended", Value::Null),
    }
}

fn action_fields(action: &ActionRecord) -> Value {
    json!({
        "action": action.name, "kind": action.kind, "fleet": action.fleet, "outcome": ActionStatus::from(action.outcome),
        "affected": action.affected, "detail": action.detail,
    })
}

fn write_line(out: &mut impl Write, at: Timestamp, event: &str, fields: Value) -> io::Result<()> {
    let mut line = Map::new();
    line.insert("t_ms".into(), at.as_millis().into());
    line.insert("event".into(), event.into());
    if let Value::Object(fields) = fields {
        line.extend(fields);
    }
    let mut text = Value::Object(line).to_string();
    text.push('\n');
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    /// A writer that is full after so many writes, and can be looked into.
    #[derive(Clone, Default)]
    struct Disk(Arc<std::sync::Mutex<Vec<Vec<u8>>>>, usize);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut writes = self.0.lock().unwrap();
            if self.1 > 0 && writes.len() >= self.1 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            writes.push(bytes.to_vec());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn action() -> ActionRecord {
        ActionRecord {
            name: "a \"b\"\nc".into(),
            kind: "pause",
            fleet: Some("app".into()),
            at: Timestamp::ZERO,
            outcome: crate::metrics::ActionOutcome::Done,
            affected: Some(9),
            detail: String::new(),
            undone: None,
        }
    }

    fn every_event() -> Vec<RunEvent> {
        let text = || "a \"b\"\nc".to_string();
        vec![
            RunEvent::Started,
            RunEvent::PhaseStarted { phase: text() },
            RunEvent::FaultStarted { fault: text() },
            RunEvent::FaultEnded { fault: text(), touched: 7 },
            RunEvent::FaultCutShort { fault: text() },
            RunEvent::Acted { action: action() },
            RunEvent::Undone { action: text(), confirmed: true, detail: text() },
            RunEvent::Stopping { reason: text() },
            RunEvent::Check { check: text(), passed: false, detail: text() },
            RunEvent::Note { text: text() },
            RunEvent::Noted { text: text() },
            RunEvent::Refused { text: text() },
            RunEvent::Warning { text: text() },
            RunEvent::Ended,
        ]
    }

    #[test]
    fn every_event_is_one_write_of_one_line() {
        let disk = Disk::default();
        let mut log = EventLog::new(disk.clone(), &sample::plan());
        for event in every_event() {
            log.event(Timestamp(2_500_000_000), &event);
        }
        let writes = disk.0.lock().unwrap();
        assert_eq!(writes.len(), every_event().len() + 1);
        for bytes in writes.iter() {
            let text = std::str::from_utf8(bytes).unwrap();
            assert_eq!(text.find('\n'), Some(text.len() - 1), "{text}");
            assert!(serde_json::from_str::<Value>(text).unwrap()["event"].is_string());
        }
        let ended = String::from_utf8(writes[4].clone()).unwrap();
        assert_eq!(ended, "{\"t_ms\":2500,\"event\":\"fault_ended\",\"fault\":\"a \\\"b\\\"\\nc\",\"touched\":7}\n");
        assert_eq!(log.failure().get(), None);
    }

    #[test]
    fn a_full_disk_ends_the_log_and_is_told() {
        let disk = Disk(Arc::default(), 2);
        let mut log = EventLog::new(disk.clone(), &sample::plan());
        let failure = log.failure();
        for event in every_event() {
            log.event(Timestamp::ZERO, &event);
        }
        drop(log);
        assert_eq!(disk.0.lock().unwrap().len(), 2);
        assert!(failure.get().is_some());
    }
}
