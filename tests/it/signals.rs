//! Signals and other ways out: faults go first, a report is left, the code says how it ended.

use crate::support::{Folder, Said, Server, command, shared, stormwake};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const PLAN: &str = "\
version: 1
name: long
target: { url: 'URL' }
fleets:
  app: { clients: 20, policy: { attempts: 2, timeout: 500ms }, load: { constant: { rate: 50/s } } }
timeline:
  - { at: 500ms, for: 50s, name: outage, fault: { blackhole: {} } }
length: 60s
";

fn healthy() -> Server {
    Server::answering(*b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
}

fn start(folder: &Folder, server: &Server, more: &str) -> Child {
    folder.write("long.yaml", PLAN.replace("URL", &server.url()) + more);
    command(folder, &["run", "long.yaml"]).spawn().expect("the binary starts")
}

/// Waits until the run's event log shows a line with these words.
fn wait_for(folder: &Folder, words: &str) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(20) {
        let logs = glob(folder);
        if logs.iter().any(|log| std::fs::read_to_string(log).is_ok_and(|text| text.contains(words))) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("no `{words}` in the events: {:?}", glob(folder));
}

fn glob(folder: &Folder) -> Vec<std::path::PathBuf> {
    let runs = std::fs::read_dir(folder.path().join("reports/long")).into_iter().flatten().flatten();
    runs.map(|run| run.path().join("events.ndjson")).filter(|path| path.exists()).collect()
}

fn kill(child: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill is there");
    assert!(status.success());
}

fn end(child: Child) -> (Said, Duration) {
    let start = Instant::now();
    let said: Said = child.wait_with_output().expect("it ends").into();
    (said, start.elapsed())
}

fn result_of(folder: &Folder) -> serde_json::Value {
    let path = glob(folder).pop().expect("a run").with_file_name("result.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("a result")).expect("JSON")
}

/// Under `nohup` SIGHUP is ignored, as it should be.
fn hears_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask").trim();
    ignored.ends_with(['0', '2', '4', '6', '8', 'a', 'c', 'e'])
}

#[test]
fn the_first_signal_removes_faults_and_writes_the_report() {
    let _machine = shared();
    let hangup = hears_hangup().then_some(("-HUP", 129));
    for (signal, code) in [("-INT", 130), ("-QUIT", 131), ("-TERM", 143)].into_iter().chain(hangup) {
        let (folder, server) = (Folder::new(&format!("signal{signal}")), healthy());
        let child = start(&folder, &server, "");
        wait_for(&folder, "fault_started");
        kill(&child, signal);
        let (said, took) = end(child);
        assert_eq!(said.code, Some(code), "{said:#?}");
        assert!(took < Duration::from_secs(10), "{took:?}");
        let result = result_of(&folder);
        assert_eq!(result["outcome"], "aborted");
        assert_eq!(result["exit_code"], code);
        let events = std::fs::read_to_string(glob(&folder).pop().expect("a run")).expect("events");
        let line =
            |words: &str| events.lines().position(|l| l.contains(words)).unwrap_or_else(|| panic!("no {words} in {events}"));
        assert!(line("fault_ended") < line("\"ended\""), "faults go first: {events}");
    }
}

/// Stopped from before the end until long after it: what was due is booked, late, and a run so late says nothing.
#[test]
fn a_run_that_was_held_up_over_its_end_is_inconclusive() {
    let _machine = shared();
    let (folder, server) = (Folder::new("held-up"), healthy());
    let plan = PLAN.replace("URL", &server.url()).replace("length: 60s", "length: 3s").replace("for: 50s", "for: 500ms");
    folder.write("long.yaml", plan);
    let child = command(&folder, &["run", "long.yaml"]).spawn().expect("the binary starts");
    wait_for(&folder, "fault_ended");
    kill(&child, "-STOP");
    // Only time that passes makes a process late: beyond the end and the patience behind it.
    std::thread::sleep(Duration::from_secs(8));
    kill(&child, "-CONT");
    let (said, _) = end(child);
    assert_eq!(said.code, Some(3), "{said:#?}");
    assert!(said.out.contains("the generator lagged"), "{said:#?}");
    let result = result_of(&folder);
    let offered = result["totals"]["operations"].as_u64().expect("it is counted");
    assert!((145..=150).contains(&offered), "50/s over 3 s: {offered}");
}

#[test]
fn the_second_signal_ends_at_once() {
    let _machine = shared();
    let (folder, server) = (Folder::new("second-signal"), healthy());
    let child = start(&folder, &server, "");
    wait_for(&folder, "fault_started");
    kill(&child, "-INT");
    kill(&child, "-INT");
    let (said, took) = end(child);
    assert_eq!(said.code, Some(130), "{said:#?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// The system and the shell both say that a terminal closes.
#[test]
fn a_terminal_that_closes_says_it_twice_and_leaves_a_report() {
    let _machine = shared();
    if !hears_hangup() {
        return;
    }
    let (folder, server) = (Folder::new("hangup-twice"), healthy());
    let child = start(&folder, &server, "");
    wait_for(&folder, "fault_started");
    kill(&child, "-HUP");
    wait_for(&folder, "stopping");
    kill(&child, "-HUP");
    let (said, _) = end(child);
    assert_eq!(said.code, Some(129), "{said:#?}");
    assert_eq!((&result_of(&folder)["outcome"], &result_of(&folder)["exit_code"]), (&"aborted".into(), &129.into()));
}

#[test]
fn a_stop_condition_stops_with_its_code() {
    let _machine = shared();
    let (folder, server) = (Folder::new("stop-if"), healthy());
    let child = start(&folder, &server, "stop_if:\n  - { errors: '> 50%', for: 2s }\n");
    let (said, took) = end(child);
    assert_eq!(said.code, Some(4), "{said:#?}");
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert_eq!(result_of(&folder)["outcome"], "aborted");
}

#[test]
fn a_failing_check_stops_with_its_code() {
    let _machine = shared();
    let (folder, server) = (Folder::new("stop-check"), healthy());
    let child = start(&folder, &server, "stop_if:\n  - { check: { command: ['false'], every: 200ms }, failing_for: 1s }\n");
    let (said, _) = end(child);
    assert_eq!(said.code, Some(4), "{said:#?}");
}

/// The processes that a process has started and that still run.
fn children(parent: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

fn runs(id: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// SIGKILL in the middle of a fault: the events are there, and neither a target nor a proxy with a fault is.
#[test]
fn a_killed_run_leaves_nothing_behind() {
    let _machine = shared();
    let folder = Folder::new("killed");
    folder.write("long.yaml", PLAN.replace("url: 'URL'", "service: { servers: 4, service_time: 1ms }"));
    let mut child = command(&folder, &["run", "long.yaml"]).spawn().expect("the binary starts");
    wait_for(&folder, "fault_started");
    let targets = children(child.id());
    assert!(!targets.is_empty(), "the built-in target is a child process");
    child.kill().expect("it was running");
    child.wait().expect("it ends");
    let start = Instant::now();
    while targets.iter().any(|id| runs(*id)) {
        assert!(start.elapsed() < Duration::from_secs(5), "the target outlives its parent");
        std::thread::sleep(Duration::from_millis(20));
    }
    let log = std::fs::File::open(glob(&folder).pop().expect("a run")).expect("events");
    for line in BufReader::new(log).lines() {
        let line = line.expect("readable");
        serde_json::from_str::<serde_json::Value>(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
    }
}

/// A plan whose action leaves a mark, which its undo removes.
fn marking(undo: &str) -> String {
    let step = format!("  - {{ at: 200ms, name: stop, action: {{ exec: {{ command: [touch, mark], undo: {undo} }} }} }}\n");
    PLAN.replace("length:", &(step + "length:"))
}

#[test]
fn what_an_action_did_is_undone_on_every_way_out() {
    let _machine = shared();
    let (removes, fails) = ("[rm, mark]", "['false']");
    let unhealthy = "stop_if:\n  - { errors: '> 50%', for: 1s }\n";
    for (name, undo, more, signal, code) in [
        ("undone-signal", removes, "", Some("-INT"), 130),
        ("undone-stop", removes, unhealthy, None, 4),
        ("not-undone", fails, "", Some("-TERM"), 7),
    ] {
        let (folder, server) = (Folder::new(name), healthy());
        folder.write("long.yaml", marking(undo).replace("URL", &server.url()) + more);
        let child = command(&folder, &["run", "long.yaml", "--approve"]).spawn().expect("the binary starts");
        wait_for(&folder, "fault_started");
        assert!(folder.path().join("mark").exists(), "{name}: the action was done");
        signal.iter().for_each(|signal| kill(&child, signal));
        let (said, _) = end(child);
        assert_eq!(said.code, Some(code), "{name}: {said:#?}");
        assert_eq!(folder.path().join("mark").exists(), undo == fails, "{name}");
        let action = &result_of(&folder)["actions"][0];
        assert_eq!((&action["outcome"], &action["undone"]), (&"done".into(), &(undo == removes).into()), "{name}");
    }
}

#[test]
fn a_second_signal_waits_for_what_is_to_be_undone() {
    let _machine = shared();
    let (folder, server) = (Folder::new("undone-second"), healthy());
    folder.write("long.yaml", marking("[sh, -c, 'sleep 1; rm mark']").replace("URL", &server.url()));
    let child = command(&folder, &["run", "long.yaml", "--approve"]).spawn().expect("the binary starts");
    wait_for(&folder, "fault_started");
    kill(&child, "-INT");
    wait_for(&folder, "stopping");
    kill(&child, "-INT");
    let (said, _) = end(child);
    assert_eq!((said.code, folder.path().join("mark").exists()), (Some(130), false), "{said:#?}");
}

#[test]
fn a_third_signal_leaves_it_undone_and_says_so() {
    let _machine = shared();
    let (folder, server) = (Folder::new("left-undone"), healthy());
    folder.write("long.yaml", marking("[sh, -c, 'echo $$ > new; mv new id; sleep 100; rm mark']").replace("URL", &server.url()));
    let child = command(&folder, &["run", "long.yaml", "--approve"]).spawn().expect("the binary starts");
    wait_for(&folder, "fault_started");
    kill(&child, "-INT");
    let (start, id) = (Instant::now(), folder.path().join("id"));
    while !id.exists() {
        assert!(start.elapsed() < Duration::from_secs(10), "the undo is not begun");
        std::thread::sleep(Duration::from_millis(20));
    }
    // Of two equal ones that come close together the system may drop one.
    kill(&child, "-QUIT");
    kill(&child, "-TERM");
    let (said, took) = end(child);
    assert_eq!((said.code, folder.path().join("mark").exists()), (Some(7), true), "{said:#?}");
    assert!(took < Duration::from_secs(3), "{took:?}");
    for words in ["undoing stop, up to 10s; once more leaves it undone", "left undone: stop (cut short)"] {
        assert!(said.err.contains(words), "{said:#?}");
    }
    let id = std::fs::read_to_string(id).expect("an id").trim().parse().expect("a number");
    let start = Instant::now();
    while runs(id) {
        assert!(start.elapsed() < Duration::from_secs(5), "the undo outlives the run");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(result_of(&folder)["exit_code"], 7);
}

#[test]
fn a_command_is_run_only_with_approval_and_never_simulated() {
    let folder = Folder::new("unapproved");
    let plan = marking("[]").replace("url: 'URL'", "service: { servers: 4, service_time: 1ms }").replace("60s", "2s");
    folder.write("long.yaml", plan.replace("for: 50s", "for: 1s"));
    let said = stormwake(&folder, &["run", "long.yaml"]);
    assert_eq!(said.code, Some(5), "{said:#?}");
    assert!(said.err.contains("`touch mark`") && said.err.contains("--approve"), "{said:#?}");
    let said = stormwake(&folder, &["simulate", "long.yaml", "--seed", "1"]);
    assert!(said.out.contains("stop: left out"), "{said:#?}");
    assert!(!folder.path().join("mark").exists(), "nothing was run");
}
