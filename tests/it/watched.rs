//! A live run that somebody watches: what they ask of it while it goes on, through the channel and through a terminal.

use crate::external::fake::Fake;
use crate::support::{BINARY, Folder, Server, alone, shared};
use serde_json::Value;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command as Process, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use stormwake::engine::Observer;
use stormwake::engine::live::run::commands::{Command, Commander, commands};
use stormwake::engine::live::run::{RunSetup, run};
use stormwake::gate::{Class, judge};
use stormwake::metrics::{ActionOutcome, RunEvent, RunRecord, StopReason, Window};
use stormwake::plan::{Loaded, Source, load};
use stormwake::report::events::EventLog;
use stormwake::report::result::{Engine, PlanInfo, result};
use stormwake::time::{Span, Timestamp};

/// Plans of the built-in target, which serves 400 requests a second.
fn plan(rest: &str) -> Loaded {
    let text = format!(
        "version: 1\nname: watched\ntarget: {{ service: {{ servers: 4, service_time: 10ms, queue: 100 }} }}\n\
         fleets:\n  app: {{ clients: 100, policy: {{ attempts: 2, timeout: 300ms }}, load: {{ constant: {{ rate: 100/s }} }} }}\n{rest}"
    );
    load(&Source { file: "watched.yaml", text: &text, overrides: &[], env: &|_| None }).unwrap_or_else(|e| panic!("{e}"))
}

/// Bytes that are kept.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Somebody who watches, keeps the log of events, and asks for something at each event and window.
struct Watcher<F> {
    log: EventLog<Kept>,
    commander: Commander,
    ask: F,
}

/// What is heard: an event, or the end of a window.
enum Heard<'a> {
    Event(&'a RunEvent),
    Window(Timestamp),
}

impl<F: FnMut(Heard) -> Vec<Command> + Send> Watcher<F> {
    fn hear(&mut self, heard: Heard) {
        for command in (self.ask)(heard) {
            assert!(self.commander.send(command), "the run takes it");
        }
    }
}

impl<F: FnMut(Heard) -> Vec<Command> + Send> Observer for Watcher<F> {
    fn event(&mut self, at: Timestamp, event: &RunEvent) {
        self.log.event(at, event);
        self.hear(Heard::Event(event));
    }
    fn window(&mut self, window: &Window, _phase: &str) {
        self.hear(Heard::Window(window.start + Span::from_secs(1)));
    }
}

/// Runs a plan while somebody watches it; its record and the lines of its events.
fn watched(loaded: &Loaded, ask: impl FnMut(Heard) -> Vec<Command> + Send + 'static) -> (RunRecord, Vec<Value>) {
    let (commander, asked) = commands();
    let kept = Kept::default();
    let log = EventLog::new(kept.clone(), &PlanInfo::of(loaded, "watched.yaml", Engine::Live));
    let setup = RunSetup {
        plan: loaded.plan.clone(),
        effective_yaml: loaded.effective.clone(),
        program: PathBuf::from(BINARY),
        approve: false,
        shards: Some(2),
        observer: Box::new(Watcher { log, commander, ask }),
        commands: Some(asked),
    };
    let record = run(setup).unwrap_or_else(|error| panic!("{error}"));
    let text = String::from_utf8(kept.0.lock().unwrap().clone()).expect("UTF-8");
    (record, text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect())
}

#[test]
fn a_fault_that_is_ended_early_has_ended_and_recovery_is_judged_from_there() {
    let _machine = alone();
    let loaded = plan(
        "timeline:\n  - { at: 3s, for: 5s, name: outage, fault: { reset: {} } }\n  - { at: 9s, for: 500ms, name: blip, fault: { latency: { add: 1ms } } }\n\
         steady_state: { for: 3s }\nrecovery: { after: outage, within: 3s, hold: 2s, span: 2s, operations: 100 }\nlength: 10s\n",
    );
    // After a second and a half of it the outage is ended, twice; the blip has not begun.
    let (record, events) = watched(&loaded, |heard| match heard {
        Heard::Window(end) if end == Timestamp::ZERO + Span::from_secs(5) => {
            let note = Command::Note(" pager\u{1b} fired\n".into());
            vec![note, Command::EndFault(0), Command::EndFault(0), Command::EndFault(1), Command::EndFault(7)]
        }
        _ => Vec::new(),
    });
    let outage = &record.faults[0];
    let late = Timestamp::ZERO + Span::from_millis(6_500);
    assert!(outage.ended_early && outage.touched > 0 && outage.to < late, "{outage:?}");
    assert!(!record.faults[1].ended_early, "{:?}", record.faults);
    let phases: Vec<_> = record.phases.iter().map(|phase| (phase.name.as_str(), phase.to == outage.to)).collect();
    let wanted = [("steady", false), ("outage", true), ("after outage", false), ("blip", false), ("after blip", false)];
    assert_eq!(phases, wanted);
    let verdict = judge(&record, &loaded.plan.judgement());
    let document = result(&record, &verdict, &PlanInfo::of(&loaded, "watched.yaml", Engine::Live));
    let recovery = verdict.recovery.expect("the plan asks for one");
    assert_eq!((recovery.class, recovery.fault.as_deref()), (Class::Recovered, Some("outage")), "{recovery:?}");
    // What is offered after the end is booked in the phase that begins with it: nothing of it fails.
    let (during, after) = (&document.phases[1], &document.phases[2]);
    assert!(after.latency.count + 5 >= after.offered && after.offered > 250, "{after:?}");
    assert!(during.latency.count < during.offered / 2, "{during:?}");
    assert_eq!(document.notes.iter().map(|note| note.text.as_str()).collect::<Vec<_>>(), ["pager  fired"]);
    let named = |name: &str| events.iter().filter(|line| line["event"] == name).collect::<Vec<_>>();
    let by_hand = |line: &&&Value| line["by"] == "operator";
    assert_eq!(named("note").iter().filter(by_hand).map(|line| &line["text"]).collect::<Vec<_>>(), ["pager  fired"]);
    assert_eq!(named("fault_cut_short").iter().map(|line| &line["fault"]).collect::<Vec<_>>(), ["outage"]);
    assert_eq!(named("fault_ended").iter().map(|line| &line["fault"]).collect::<Vec<_>>(), ["outage", "blip"]);
    let refused: Vec<&str> = named("refused").iter().filter_map(|line| line["text"].as_str()).collect();
    let wanted = [
        "no fault is ended: `outage` has ended already",
        "no fault is ended: `blip` has not begun yet",
        "no fault is ended: the plan has no fault of number 7",
    ];
    assert_eq!(refused, wanted);
}

#[test]
fn a_changed_target_is_put_back_early_and_a_stop_ends_the_run_in_order() {
    let _machine = shared();
    let loaded = plan(
        "timeline:\n  - { at: 1s, for: 20s, name: slow, service: { capacity: 50% } }\n  - { at: 1s, name: gone, service: { restart: { down_for: 9s } } }\nlength: 30s\n",
    );
    let (record, events) = watched(&loaded, |heard| match heard {
        Heard::Window(end) if end == Timestamp::ZERO + Span::from_secs(2) => {
            vec![Command::EndFault(1), Command::EndFault(0)]
        }
        Heard::Event(RunEvent::Acted { action }) if action.name == "slow-end" => vec![Command::Stop],
        _ => Vec::new(),
    });
    assert_eq!(record.stopped, Some(StopReason::Operator));
    assert!(record.cleanup_confirmed && record.ended < Timestamp::ZERO + Span::from_secs(10), "{:?}", record.ended);
    let back = record.actions.iter().find(|action| action.name == "slow-end").expect("it was put back");
    assert!(back.outcome == ActionOutcome::Done && back.at < Timestamp::ZERO + Span::from_secs(10), "{back:?}");
    let refused = events.iter().find(|line| line["event"] == "refused").expect("one is refused");
    assert_eq!(refused["text"], "no fault is ended: `gone` changes the target, and the plan has no way back from it");
    let stopping = events.iter().find(|line| line["event"] == "stopping").expect("it is told");
    assert_eq!(stopping["reason"], "the operator");
}

#[test]
fn a_fault_in_a_toxiproxy_is_ended_early_there() {
    let _machine = shared();
    let server = Server::answering(*b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let fake = Arc::new(Fake::new(&server));
    let text = format!(
        "version: 1\nname: remote\ntarget: {{ url: '{}' }}\nproxy: {{ toxiproxy: '{}', name: payments }}\n\
         fleets:\n  app: {{ clients: 20, policy: {{ attempts: 2, timeout: 300ms }}, load: {{ constant: {{ rate: 50/s }} }} }}\n\
         timeline: [ {{ at: 1s, for: 30s, name: outage, fault: {{ blackhole: {{}} }} }} ]\nlength: 40s\n",
        fake.listen(),
        fake.url()
    );
    let loaded =
        load(&Source { file: "remote.yaml", text: &text, overrides: &[], env: &|_| None }).unwrap_or_else(|e| panic!("{e}"));
    let (there, at_its_end) = (fake.clone(), Arc::new(Mutex::new(None)));
    let left = at_its_end.clone();
    let (record, events) = watched(&loaded, move |heard| match heard {
        Heard::Window(end) if end == Timestamp::ZERO + Span::from_secs(3) => vec![Command::EndFault(0)],
        Heard::Event(RunEvent::FaultEnded { .. }) => {
            *left.lock().unwrap() = Some(there.toxics().len());
            vec![Command::Stop]
        }
        _ => Vec::new(),
    });
    assert_eq!(*at_its_end.lock().unwrap(), Some(0), "it was gone when it was told to be");
    let outage = &record.faults[0];
    let (early, late) = (Timestamp::ZERO + Span::from_secs(3), Timestamp::ZERO + Span::from_secs(8));
    assert!(outage.ended_early && outage.failed.is_none() && early <= outage.to && outage.to < late, "{outage:?}");
    let named: Vec<&str> =
        events.iter().filter_map(|line| line["event"].as_str()).filter(|name| name.starts_with("fault")).collect();
    assert_eq!(named, ["fault_started", "fault_cut_short", "fault_ended"]);
    assert!(record.cleanup_confirmed, "{record:?}");
}

/// The program on a terminal of its own, which `script` of util-linux makes.
struct OnTerminal {
    process: Child,
    shown: Receiver<Vec<u8>>,
    screen: Vec<u8>,
}

impl OnTerminal {
    /// None where there is no such `script`.
    fn start(folder: &Folder, command: &str) -> Option<Self> {
        let version = Process::new("script").arg("--version").output().ok()?;
        if !String::from_utf8_lossy(&version.stdout).contains("util-linux") {
            return None;
        }
        let mut process = Process::new("script")
            .args(["-qec", &format!("stty rows 24 cols 80; exec {command}"), "/dev/null"])
            .current_dir(folder.path())
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let (more, shown) = channel();
        let mut out = process.stdout.take().expect("it is piped");
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n) = out.read(&mut bytes) {
                if n == 0 || more.send(bytes[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        Some(Self { process, shown, screen: Vec::new() })
    }

    fn press(&mut self, keys: &str) {
        let keyboard = self.process.stdin.as_mut().expect("it is piped");
        keyboard.write_all(keys.as_bytes()).and_then(|()| keyboard.flush()).expect("it takes keys");
    }

    /// Waits until something is shown, or everything was.
    fn wait_for(&mut self, what: &str) {
        let until = Instant::now() + Duration::from_secs(20);
        while !self.words().contains(what) {
            match self.shown.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(more) => self.screen.extend(more),
                Err(error) => panic!("`{what}` is not shown: {error}: {}", self.words()),
            }
        }
    }

    /// What was shown, in the order in which it came: only what changes is, and between words the cursor moves.
    fn words(&self) -> String {
        let text = String::from_utf8_lossy(&self.screen).into_owned();
        let after = |part: &str| part.split_once(|c: char| c.is_ascii_alphabetic()).map_or("", |(_, rest)| rest).to_string();
        let parts =
            text.split("\u{1b}[").enumerate().map(|(index, part)| if index == 0 { part.to_string() } else { after(part) });
        parts.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Its exit code, and everything that it has shown.
    fn end(mut self) -> (Option<i32>, String) {
        while let Ok(more) = self.shown.recv_timeout(Duration::from_secs(20)) {
            self.screen.extend(more);
        }
        let code = self.process.wait().expect("it has ended").code();
        (code, String::from_utf8_lossy(&self.screen).replace("\r\n", "\n"))
    }
}

#[test]
fn on_a_terminal_keys_note_and_stop_and_the_terminal_is_given_back() {
    let _machine = shared();
    let folder = Folder::new("watched");
    let plan = "version: 1\nname: watched\ntarget: { service: { servers: 4, service_time: 10ms, queue: 100 } }\n\
         fleets:\n  app: { clients: 20, policy: { attempts: 2, timeout: 300ms }, load: { constant: { rate: 50/s } } }\nlength: 60s\n";
    folder.write("plan.yaml", plan);
    let Some(mut terminal) = OnTerminal::start(&folder, &format!("{BINARY} run plan.yaml --tui --operator ada --json")) else {
        let _ = writeln!(std::io::stderr(), "SKIPPED: there is no `script` of util-linux to make a terminal");
        return;
    };
    terminal.wait_for("the run has begun");
    terminal.press("npager fired\r");
    terminal.wait_for("note: pager fired");
    terminal.press("q");
    terminal.wait_for("stop the run?");
    terminal.press("y");
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(4), "{shown}");
    let (view, after) = shown.rsplit_once("\u{1b}[?1049l").expect("the alternate screen is left");
    assert!(view.contains("\u{1b}[?1049h") && view.ends_with("\u{1b}[?2004l") && view.contains("\u{1b}[?25h"), "{view:?}");
    let document: Value = serde_json::from_str(after).unwrap_or_else(|e| panic!("{e}: {after}"));
    assert_eq!((&document["operator"], &document["notes"][0]["text"]), (&"ada".into(), &"pager fired".into()));
    assert_eq!((&document["stopped"]["by"], &document["exit_code"]), (&"operator".into(), &4.into()));
    assert!(!after.contains('\u{1b}'), "{after}");
}

#[test]
fn without_a_terminal_there_is_no_view_and_it_says_so() {
    let folder = Folder::new("unwatched");
    folder.write("plan.yaml", "never read");
    let said = crate::support::stormwake(&folder, &["run", "plan.yaml", "--tui"]);
    assert!(said.code == Some(2) && said.err.contains("`--tui` needs a terminal on stderr"), "{said:?}");
    let said = crate::support::stormwake(&folder, &["run", "plan.yaml", "--tui", "--quiet"]);
    assert!(said.code == Some(2) && said.err.contains("cannot be used with"), "{said:?}");
    let said = crate::support::stormwake(&folder, &["run", "plan.yaml", "--operator", "a\u{7}b"]);
    assert!(said.code == Some(2) && said.err.contains("one line of at most 500 characters"), "{said:?}");
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        // It has ended, unless the test has failed.
        let _ = self.process.kill();
    }
}
