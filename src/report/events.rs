//! `events.ndjson`: what happened to the run, one JSON object a line, written as it happens.
//!
//! Each line goes out whole and at once, so that a killed run leaves all it had. The first names the plan. A write
//! that fails ends the log, not the run: the error is kept for whoever prints the end of the run.

use super::published::EVENTS;
use super::result::{ActionStatus, Engine, PlanInfo};
use crate::engine::Observer;
use crate::metrics::{ActionRecord, RunEvent, Window};
use crate::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
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
        log.line(Timestamp::ZERO, Happened::prepared(plan));
        log
    }

    /// Tells whether the log broke; keeps telling when the log has been given away.
    pub fn failure(&self) -> Failure {
        self.failure.clone()
    }

    fn line(&mut self, at: Timestamp, happened: Happened<'_>) {
        if self.failure.get().is_some() {
            return;
        }
        if let Err(error) = write_line(&mut self.out, &Line { t_ms: at.as_millis(), happened }) {
            // Only the first error is wanted, and there is none yet.
            let _ = self.failure.0.set(error.to_string());
        }
    }
}

impl<W: Write + Send> Observer for EventLog<W> {
    fn event(&mut self, at: Timestamp, event: &RunEvent) {
        self.line(at, Happened::of(event));
    }

    fn window(&mut self, _window: &Window, _phase: &str) {}
}

/// One line of `events.ndjson`. Lines come in the order of what they tell; the first is `prepared`.
#[derive(Debug, Serialize, JsonSchema)]
struct Line<'a> {
    /// When, in milliseconds since the run began.
    t_ms: u64,
    /// What happened, and the particulars of it.
    #[serde(flatten)]
    happened: Happened<'a>,
}

/// What happened.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Happened<'a> {
    /// The plan is read, and the folder of the report is there; the run has not begun.
    Prepared {
        /// The version of the shape of these lines: it grows when a field goes or changes its meaning, not when a field or an event comes.
        schema_version: u32,
        /// The version of stormwake that writes this.
        stormwake: &'a str,
        /// The plan's name.
        plan: &'a str,
        /// Its file, as given.
        path: &'a str,
        /// SHA-256 of the effective plan, in hexadecimal.
        sha256: &'a str,
        /// The engine that runs it.
        engine: Engine,
        /// The seed of the run.
        seed: u64,
        /// When the run starts, in milliseconds since the Unix epoch; null in virtual time.
        started_unix_ms: Option<u64>,
    },
    /// The clock started.
    Started,
    /// A phase began.
    PhaseStarted {
        /// Its name.
        phase: &'a str,
    },
    /// A fault was applied.
    FaultStarted {
        /// Its name.
        fault: &'a str,
    },
    /// A fault was removed.
    FaultEnded {
        /// Its name.
        fault: &'a str,
        /// How many requests and connects it touched.
        touched: u64,
    },
    /// An action of the timeline was done, or tried.
    Acted {
        /// Its name.
        action: &'a str,
        /// Its kind, as in the plan.
        kind: &'a str,
        /// The fleet that it was done to; null for commands, webhooks and changes of the target.
        fleet: Option<&'a str>,
        /// What came of it.
        outcome: ActionStatus,
        /// How many clients, workers or operations it changed something for; null where it is done to no fleet.
        affected: Option<u64>,
        /// What a command or a webhook answered, or why it was not done; shortened.
        detail: &'a str,
    },
    /// What undoes an action was done, or tried.
    Undone {
        /// The name of the action.
        action: &'a str,
        /// Whether it worked.
        confirmed: bool,
        /// What it answered; shortened.
        detail: &'a str,
    },
    /// The run is being stopped before its end.
    Stopping {
        /// Why.
        reason: &'a str,
    },
    /// A check of `stop_if` failed, or passed again.
    Check {
        /// What was asked.
        check: &'a str,
        /// Whether it passed.
        passed: bool,
        /// What it answered; shortened.
        detail: &'a str,
    },
    /// Something that is worth keeping with the run, and no cause for concern.
    Note {
        /// What.
        text: &'a str,
    },
    /// Something that the user should know.
    Warning {
        /// What.
        text: &'a str,
    },
    /// The run is over.
    Ended,
}

/// The JSON Schema of one line.
pub fn schema() -> Value {
    EVENTS.schema::<Line<'_>>()
}

impl<'a> Happened<'a> {
    fn prepared(plan: &'a PlanInfo) -> Self {
        Self::Prepared {
            schema_version: EVENTS.version,
            stormwake: env!("CARGO_PKG_VERSION"),
            plan: &plan.name,
            path: &plan.path,
            sha256: &plan.sha256,
            engine: plan.engine,
            seed: plan.seed,
            started_unix_ms: plan.started_unix_ms,
        }
    }

    fn of(event: &'a RunEvent) -> Self {
        match event {
            RunEvent::Started => Self::Started,
            RunEvent::PhaseStarted { phase } => Self::PhaseStarted { phase },
            RunEvent::FaultStarted { fault } => Self::FaultStarted { fault },
            RunEvent::FaultEnded { fault, touched } => Self::FaultEnded { fault, touched: *touched },
            RunEvent::Acted { action } => Self::acted(action),
            RunEvent::Undone { action, confirmed, detail } => Self::Undone { action, confirmed: *confirmed, detail },
            RunEvent::Stopping { reason } => Self::Stopping { reason },
            RunEvent::Check { check, passed, detail } => Self::Check { check, passed: *passed, detail },
            RunEvent::Note { text } => Self::Note { text },
            RunEvent::Warning { text } => Self::Warning { text },
            RunEvent::Ended => Self::Ended,
        }
    }

    fn acted(action: &'a ActionRecord) -> Self {
        Self::Acted {
            action: &action.name,
            kind: action.kind,
            fleet: action.fleet.as_deref(),
            outcome: action.outcome.into(),
            affected: action.affected,
            detail: &action.detail,
        }
    }
}

fn write_line(out: &mut impl Write, line: &Line<'_>) -> io::Result<()> {
    let mut text = serde_json::to_string(line)?;
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
            RunEvent::Acted { action: action() },
            RunEvent::Undone { action: text(), confirmed: true, detail: text() },
            RunEvent::Stopping { reason: text() },
            RunEvent::Check { check: text(), passed: false, detail: text() },
            RunEvent::Note { text: text() },
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
    fn every_line_validates_and_every_event_and_field_says_what_it_is() {
        let disk = Disk::default();
        let mut log = EventLog::new(disk.clone(), &sample::plan());
        every_event().iter().for_each(|event| log.event(Timestamp(7), event));
        let (schema, mut seen) = (schema(), std::collections::BTreeSet::new());
        let validator = jsonschema::validator_for(&schema).unwrap();
        for bytes in disk.0.lock().unwrap().iter() {
            let line: Value = serde_json::from_slice(bytes).unwrap();
            let errors: Vec<String> = validator.iter_errors(&line).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{line}: {errors:?}");
            seen.insert(line["event"].as_str().unwrap().to_string());
            let mut wrong = line.clone();
            wrong["event"] = "perhaps".into();
            assert!(!validator.is_valid(&wrong));
        }
        let known = schema["oneOf"].as_array().unwrap();
        assert_eq!(seen.len(), known.len(), "each event of the schema is tried");
        for event in known {
            assert!(event["description"].is_string(), "{event}");
            let fields = event["properties"].as_object().unwrap().iter();
            fields
                .filter(|(name, _)| *name != "event")
                .for_each(|(name, field)| assert!(field["description"].is_string(), "{name}"));
        }
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
