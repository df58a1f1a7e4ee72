//! A Toxiproxy that carries out the faults of a plan: what a run does to it, and what becomes of that on every way out.

pub mod fake;

use crate::support::{Folder, Said, Server, command, shared, stormwake, with_evidence};
use fake::{Fake, Manner};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// The latency that counts as healthy is below the timeout, so that no more than 1% may meet one; what the machine's other work adds to a healthy
/// millisecond is nothing that a run here is about.
const PLAN: &str = "\
version: 1
name: remote
target: { url: 'TARGET' }
proxy: { toxiproxy: 'API', name: payments }
fleets:
  app: { clients: 20, policy: { attempts: 2, timeout: 300ms }, load: { constant: { rate: 100/s } } }
steady_state: { for: 3s }
timeline:
  - { at: 4s, for: 2s, name: outage, fault: { FAULT: {} } }
recovery: { within: 5s, hold: 2s, require: { p99: '<= 250ms' } }
length: 14s
";

/// The same with a fault that lasts to the end.
const LONG: [(&str, &str); 3] =
    [("at: 4s, for: 2s", "at: 500ms, for: 50s"), ("length: 14s", "length: 60s"), ("steady_state: { for: 3s }\n", "")];

fn healthy() -> Server {
    Server::answering(*b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
}

fn plan(fake: &Fake, fault: &str, changes: &[(&str, &str)]) -> String {
    let text = PLAN.replace("TARGET", &fake.listen()).replace("API", &fake.url()).replace("FAULT", fault);
    changes.iter().fold(text, |text, (old, new)| {
        assert_eq!(text.matches(old).count(), 1, "{old}");
        text.replace(old, new)
    })
}

fn start(folder: &Folder, plan: &str) -> Child {
    folder.write("remote.yaml", plan);
    command(folder, &["run", "remote.yaml"]).spawn().expect("the binary starts")
}

fn wait_for(what: &str, mut come: impl FnMut() -> bool) {
    let start = Instant::now();
    while !come() {
        assert!(start.elapsed() < Duration::from_secs(20), "not within 20 s: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn signal(child: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill is there");
    assert!(status.success());
}

fn end(child: Child) -> Said {
    child.wait_with_output().expect("it ends").into()
}

/// Waits for the process, does something, and then waits for whoever else holds its stderr.
fn end_of(mut child: Child, then: impl FnOnce()) -> Said {
    child.wait().expect("it ends");
    then();
    end(child)
}

/// The watchdogs that a process has started.
fn watchdogs(parent: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    let is = |id: &u32| std::fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.contains("watchdog"));
    list.split_whitespace().filter_map(|id| id.parse().ok()).filter(is).collect()
}

fn runs(id: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_toxiproxy_carries_out_the_faults_and_is_left_as_it_was() {
    for (fault, calls) in [("refuse", 2), ("blackhole", 4)] {
        let (folder, server) = (Folder::new(&format!("remote-{fault}")), healthy());
        let fake = Fake::new(&server);
        fake.has("slow");
        let said = with_evidence(|| {
            fake.state().calls.clear();
            stormwake(&folder, &["run", folder.write("remote.yaml", plan(&fake, fault, &[])).to_str().expect("UTF-8"), "--json"])
        });
        let result = said.result();
        assert_eq!((said.code, &result["recovery"]["class"]), (Some(0), &"RECOVERED".into()), "{said:#?}");
        let outage = &result["faults"][0];
        let number = |key: &str| outage[key].as_u64().expect("a number");
        assert!(number("from_ms").abs_diff(4_000) < 300 && number("to_ms").abs_diff(6_000) < 300, "{outage}");
        assert!(number("touched") > 50 && outage.get("failed").is_none() && outage["kind"] == fault, "{outage}");
        assert!(result["totals"]["failed"].as_u64().is_some_and(|failed| failed >= 20), "it had an effect: {}", result["totals"]);
        assert_eq!((fake.toxics(), fake.state().enabled), (vec!["slow".to_string()], true), "others' toxics stay");
        assert_eq!(fake.state().calls.len(), calls, "{:?}", fake.state().calls);
        assert!(said.err.contains("slow (noop)"), "{said:#?}");
    }
}

#[test]
fn a_fault_that_was_not_carried_out_makes_no_verdict() {
    let _machine = shared();
    for (name, manner, says) in [
        ("lies", Manner::Lies, "the server said yes, but the proxy is still enabled"),
        ("fails", Manner::Fails, "500"),
        ("hangs", Manner::Hangs, "no answer within 2s"),
    ] {
        let (folder, server) = (Folder::new(&format!("remote-{name}")), healthy());
        let fake = Fake::new(&server);
        let short = [("at: 4s, for: 2s", "at: 2s, for: 1s"), ("length: 14s", "length: 8s"), ("for: 3s", "for: 1s")];
        let child = start(&folder, &plan(&fake, "refuse", &short));
        wait_for("a watchdog", || !watchdogs(child.id()).is_empty());
        fake.state().manner = manner;
        wait_for("the fault is given up", || events(&folder).contains("did not happen"));
        fake.state().manner = Manner::Honest;
        let said = end(child);
        assert_eq!(said.code, Some(3), "{name}: {said:#?}");
        assert!(said.out.contains("did not happen as the plan has it"), "{name}: {said:#?}");
        let outage = &result_of(&folder)["faults"][0];
        assert!(outage["failed"].as_str().is_some_and(|why| why.contains(says)), "{name}: {outage}");
        assert!(outage["touched"].is_null(), "{name}: nobody could count: {outage}");
        assert!(fake.state().enabled, "{name}");
    }
}

/// What is half done is taken back while the run goes on, and what could not be ended is ended as soon as that can be.
#[test]
fn a_change_that_failed_is_put_right_before_the_end() {
    let _machine = shared();
    let (folder, server) = (Folder::new("remote-half"), healthy());
    let fake = Fake::new(&server);
    let child = start(&folder, &plan(&fake, "blackhole", &LONG));
    wait_for("a watchdog", || !watchdogs(child.id()).is_empty());
    fake.state().manner = Manner::AddsOne;
    wait_for("the fault is given up", || events(&folder).contains("did not happen"));
    wait_for("its first half is taken back", || fake.toxics().is_empty());
    signal(&child, "-INT");
    let said = end(child);
    assert_eq!(said.code, Some(130), "{said:#?}");

    let (folder, server) = (Folder::new("remote-late"), healthy());
    let fake = Fake::new(&server);
    let ends = [("at: 4s, for: 2s", "at: 1s, for: 1s"), ("length: 14s", "length: 60s"), ("steady_state: { for: 3s }\n", "")];
    let child = start(&folder, &plan(&fake, "blackhole", &ends));
    wait_for("the fault", || events(&folder).contains("fault_started"));
    fake.state().manner = Manner::Fails;
    wait_for("its end fails", || events(&folder).contains("did not end it"));
    fake.state().manner = Manner::Honest;
    wait_for("it is ended", || fake.toxics().is_empty());
    wait_for("that is told", || events(&folder).contains("fault_ended"));
    signal(&child, "-INT");
    let said = end(child);
    assert_eq!(said.code, Some(130), "{said:#?}");
    let outage = &result_of(&folder)["faults"][0];
    assert!(outage["to_ms"].as_u64().is_some_and(|to| to > 2_000) && outage["failed"].is_string(), "{outage}");
}

#[test]
fn a_server_that_is_gone_at_the_end_is_said_to_hold_the_faults_still() {
    let _machine = shared();
    let (folder, server) = (Folder::new("remote-gone"), healthy());
    let fake = Fake::new(&server);
    let child = start(&folder, &plan(&fake, "blackhole", &LONG));
    wait_for("the fault", || events(&folder).contains("fault_started"));
    fake.state().manner = Manner::Gone;
    signal(&child, "-INT");
    let mut toxics = Vec::new();
    let said = end_of(child, || {
        toxics = fake.toxics();
        fake.state().manner = Manner::Honest;
    });
    assert_eq!(said.code, Some(7), "{said:#?}");
    assert_eq!((toxics.len(), fake.toxics().len()), (2, 0), "the watchdog goes on trying");
    assert!(said.err.contains("the run has gone: its faults were removed from the proxy `payments`"), "{said:#?}");
    for toxic in toxics {
        let line = format!("  curl -X DELETE {}/proxies/payments/toxics/{toxic}\n", fake.url());
        assert!(said.err.contains(&line), "{line}{said:#?}");
    }
    assert!(said.out.contains("CLEANUP NOT CONFIRMED"), "{said:#?}");
    let outage = &result_of(&folder)["faults"][0];
    assert!(outage["to_ms"].as_u64() > outage["from_ms"].as_u64() && outage["failed"].is_string(), "{outage}");
}

/// While the removal is tried a second signal waits for it, and says so; a third leaves it, and the watchdog does it then.
#[test]
fn a_third_signal_leaves_the_removal_to_the_watchdog() {
    let _machine = shared();
    let (folder, server) = (Folder::new("remote-third"), healthy());
    let fake = Fake::new(&server);
    let child = start(&folder, &plan(&fake, "refuse", &LONG));
    wait_for("the fault", || events(&folder).contains("fault_started"));
    fake.state().manner = Manner::Hangs;
    signal(&child, "-INT");
    wait_for("the first is heard", || events(&folder).contains("stopping"));
    // Of two equal ones that come close together the system may drop one.
    signal(&child, "-QUIT");
    signal(&child, "-TERM");
    let said = end_of(child, || fake.state().manner = Manner::Honest);
    assert_eq!(said.code, Some(7), "{said:#?}");
    for words in
        ["undoing the faults in the Toxiproxy's `payments`, up to 3s", "left undone: the faults in the Toxiproxy's `payments`"]
    {
        assert!(said.err.contains(words), "{said:#?}");
    }
    assert!(fake.state().enabled, "the watchdog, whose stderr is the run's, has ended before that does");
}

#[test]
fn a_signal_removes_the_faults_and_confirms_it() {
    let _machine = shared();
    for fault in ["refuse", "hang"] {
        let (folder, server) = (Folder::new(&format!("remote-signal-{fault}")), healthy());
        let fake = Fake::new(&server);
        let child = start(&folder, &plan(&fake, fault, &LONG));
        wait_for("the fault", || events(&folder).contains("fault_started"));
        let dogs = watchdogs(child.id());
        assert!(fake.state().enabled != (fault == "refuse") && dogs.len() == 1, "{dogs:?}");
        signal(&child, "-INT");
        let said = end(child);
        assert_eq!(said.code, Some(130), "{said:#?}");
        assert_eq!((fake.toxics(), fake.state().enabled), (vec![], true));
        let events = events(&folder);
        let line = |words: &str| events.lines().position(|l| l.contains(words)).unwrap_or_else(|| panic!("no {words}: {events}"));
        assert!(line("fault_ended") < line("\"ended\""), "{events}");
        assert!(!runs(dogs[0]), "the watchdog goes with the run");
    }
}

/// The lease: five seconds after SIGKILL nothing of the run is left, whatever signals the watchdog was sent.
#[test]
fn a_killed_run_leaves_nothing_in_the_toxiproxy() {
    let _machine = shared();
    for fault in ["refuse", "blackhole"] {
        let (folder, server) = (Folder::new(&format!("remote-killed-{fault}")), healthy());
        let fake = Fake::new(&server);
        fake.has("slow");
        let mut child = start(&folder, &plan(&fake, fault, &LONG));
        wait_for("the fault", || events(&folder).contains("fault_started"));
        let dogs = watchdogs(child.id());
        for name in ["-INT", "-TERM", "-HUP"] {
            let status = Command::new("kill").args([name, &dogs[0].to_string()]).status().expect("kill is there");
            assert!(status.success());
        }
        let killed = Instant::now();
        child.kill().expect("it was running");
        child.wait().expect("it ends");
        wait_for("the watchdog has removed the faults", || fake.state().enabled && fake.toxics() == ["slow"]);
        assert!(killed.elapsed() < Duration::from_secs(5), "{:?}", killed.elapsed());
        wait_for("the watchdog ends", || !runs(dogs[0]));
    }
}

/// A run that stands still is as good as dead: its lease runs out, and when it goes on it says what became of its fault.
#[test]
fn a_run_that_stands_still_loses_its_faults() {
    let _machine = shared();
    let (folder, server) = (Folder::new("remote-stopped"), healthy());
    let fake = Fake::new(&server);
    let child = start(&folder, &plan(&fake, "hang", &LONG));
    wait_for("the fault", || events(&folder).contains("fault_started"));
    signal(&child, "-STOP");
    wait_for("the lease runs out", || fake.toxics().is_empty());
    signal(&child, "-CONT");
    signal(&child, "-INT");
    let said = end(child);
    assert_eq!(said.code, Some(130), "{said:#?}");
    let outage = &result_of(&folder)["faults"][0];
    assert!(outage["failed"].as_str().is_some_and(|why| why.contains("it was not there to its end")), "{outage}");
}

/// A case by name: what is wrong with the server, which proxy is asked for, and what is said.
type Refused = (&'static str, &'static dyn Fn(&Fake), &'static str, &'static [&'static str]);

#[test]
fn a_proxy_that_is_not_as_it_should_be_is_not_taken() {
    let _machine = shared();
    let cases: [Refused; 5] = [
        ("unknown", &|_| {}, "orders", &["has no proxy `orders`", "/proxies` lists"]),
        ("disabled", &|fake| fake.state().enabled = false, "payments", &["is disabled", r#"curl -X POST -d '{"enabled":true}'"#]),
        (
            "marked",
            &|fake| fake.has("stormwake-dead-outage-upstream"),
            "payments",
            &["another run", "/toxics/stormwake-dead-outage-upstream"],
        ),
        ("fails", &|fake| fake.state().manner = Manner::Gone, "payments", &["cannot be used", "is it running there?"]),
        ("hangs", &|fake| fake.state().manner = Manner::Hangs, "payments", &["no answer within 2s"]),
    ];
    for (name, prepare, proxy, says) in cases {
        let (folder, server) = (Folder::new(&format!("remote-not-{name}")), healthy());
        let fake = Fake::new(&server);
        prepare(&fake);
        let plan = plan(&fake, "refuse", &[("name: payments", &format!("name: {proxy}"))]);
        let said = stormwake(&folder, &["run", folder.write("remote.yaml", plan).to_str().expect("UTF-8")]);
        assert_eq!(said.code, Some(6), "{name}: {said:#?}");
        for words in says {
            assert!(said.err.contains(words), "{name}: {words}: {said:#?}");
        }
        assert!(fake.state().calls.is_empty(), "{name}: {:?}", fake.state().calls);
    }
    let (folder, server) = (Folder::new("remote-far"), healthy());
    let fake = Fake::new(&server);
    let far = plan(&fake, "refuse", &[]).replace(&fake.url(), "http://192.0.2.1:8474");
    let said = stormwake(&folder, &["run", folder.write("remote.yaml", far).to_str().expect("UTF-8")]);
    assert_eq!(said.code, Some(5), "{said:#?}");
    assert!(said.err.contains("allow: [192.0.2.1]"), "{said:#?}");
}

/// What the run's log of events says so far.
fn events(folder: &Folder) -> String {
    let runs = std::fs::read_dir(folder.path().join("reports/remote")).into_iter().flatten().flatten();
    runs.filter_map(|run| std::fs::read_to_string(run.path().join("events.ndjson")).ok()).collect()
}

fn result_of(folder: &Folder) -> serde_json::Value {
    let mut runs = std::fs::read_dir(folder.path().join("reports/remote")).into_iter().flatten().flatten();
    let path = runs.next().expect("a run").path().join("result.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("a result")).expect("JSON")
}
