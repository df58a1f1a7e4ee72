//! A `stormwake proxy` that carries out the faults of a plan: what a run does to it under its lease, and what becomes of that when the run dies.

use crate::plane::{Plane, listen_of};
use crate::proxy::{connect, get, named};
use crate::support::{Folder, Said, Server, command, shared, stormwake, with_evidence};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const PLAN: &str = "\
version: 1
name: driven
target: { url: 'http://TARGET/' }
proxy: { stormwake: 'http://API', name: payments }
fleets:
  app: { clients: 20, policy: { attempts: 2, timeout: 300ms }, load: { constant: { rate: 100/s } } }
steady_state: { for: 3s }
timeline:
  - { at: 4s, for: 2s, name: outage, fault: FAULT }
recovery: { within: 5s, hold: 2s, require: { p99: '<= 200ms' } }
length: 14s
";

/// The same with a fault that lasts to the end.
const LONG: [(&str, &str); 3] =
    [("at: 4s, for: 2s", "at: 500ms, for: 50s"), ("length: 14s", "length: 60s"), ("steady_state: { for: 3s }\n", "")];

/// A service, a proxy before it, and a folder for a run.
struct Scene {
    folder: Folder,
    plane: Plane,
    addr: SocketAddr,
    _service: Server,
}

impl Scene {
    fn new(name: &str, protocol: &str) -> Self {
        let (service, upstream) = named("one");
        let plane = Plane::start(&[]);
        let body = json!({ "name": "payments", "listen": "127.0.0.1:0", "upstream": upstream.to_string(), "protocol": protocol });
        let addr = listen_of(&plane.does("POST", "/v1/proxies", &body.to_string()));
        Self { folder: Folder::new(&format!("driven-{name}")), plane, addr, _service: service }
    }

    fn write(&self, fault: &str, changes: &[(&str, &str)]) -> String {
        let text = PLAN.replace("TARGET", &self.addr.to_string()).replace("API", &self.plane.api.to_string());
        let text = changes.iter().fold(text.replace("FAULT", fault), |text, (old, new)| {
            assert_eq!(text.matches(old).count(), 1, "{old}");
            text.replace(old, new)
        });
        self.folder.write("driven.yaml", text).to_str().expect("UTF-8").to_string()
    }

    fn start(&self, fault: &str, changes: &[(&str, &str)]) -> Child {
        command(&self.folder, &["run", &self.write(fault, changes)]).spawn().expect("the binary starts")
    }

    fn faults(&self) -> Value {
        serde_json::from_str::<Value>(&self.plane.does("GET", "/v1/faults", "")).expect("JSON")["payments"].clone()
    }

    fn leases(&self) -> Value {
        serde_json::from_str(&self.plane.does("GET", "/v1/leases", "")).expect("JSON")
    }

    /// Whether a request goes through.
    fn flows(&self) -> bool {
        let mut client = connect(self.addr);
        client.set_read_timeout(Some(Duration::from_millis(200))).expect("a socket");
        get(&mut client, 3).is_ok_and(|answer| answer == "one")
    }

    /// What the run's log of events says so far.
    fn events(&self) -> String {
        let runs = std::fs::read_dir(self.folder.path().join("reports/driven")).into_iter().flatten().flatten();
        runs.filter_map(|run| std::fs::read_to_string(run.path().join("events.ndjson")).ok()).collect()
    }
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

#[test]
fn a_stormwake_proxy_carries_out_the_faults_and_counts_what_they_touch() {
    for (name, fault, kind) in [
        ("status", "{ status: { code: 503, share: 60%, body: down } }", "status"),
        ("bytes", "{ stall: { timeout: 200ms } }", "stall"),
    ] {
        let scene = Scene::new(name, "http");
        scene.plane.does("PUT", "/v1/proxies/payments/faults/others", r#"{"fault":{"latency":{"add":"1ms"}}}"#);
        let plan = scene.write(fault, &[]);
        let said = with_evidence(|| stormwake(&scene.folder, &["run", &plan, "--json"]));
        let result = said.result();
        assert_eq!((said.code, &result["recovery"]["class"]), (Some(0), &"RECOVERED".into()), "{said:#?}");
        let outage = &result["faults"][0];
        let number = |key: &str| outage[key].as_u64().expect("a number");
        assert!(number("from_ms").abs_diff(4_000) < 300 && number("to_ms").abs_diff(6_000) < 300, "{outage}");
        assert!(number("touched") > 5 && outage.get("failed").is_none() && outage["kind"] == kind, "{outage}");
        if kind == "status" {
            // Of some 200 operations, 60% of their first attempts and 60% of the retries: what the server struck, not all that came.
            let (touched, failed) = (number("touched"), result["totals"]["failed"].as_u64().expect("a number"));
            assert!((120..300).contains(&touched) && failed * 2 <= touched, "{outage} {}", result["totals"]);
        }
        assert_eq!(scene.faults().as_object().expect("a map").keys().collect::<Vec<_>>(), ["others"], "others' faults stay");
        assert_eq!(scene.leases(), json!([]), "the lease goes with the run");
        assert!(said.err.contains("others (latency)"), "{said:#?}");
    }
}

/// The proof of the lease: nothing removes the fault of a run that was killed but the server's own clock.
#[test]
fn a_killed_run_leaves_nothing_in_the_stormwake_proxy() {
    let _machine = shared();
    for fault in ["{ blackhole: {} }", "{ status: { code: 503 } }"] {
        let scene = Scene::new(if fault.contains("status") { "killed-status" } else { "killed-hole" }, "http");
        let mut child = scene.start(fault, &LONG);
        wait_for("the fault", || scene.events().contains("fault_started"));
        assert!(scene.faults().as_object().is_some_and(|faults| faults.len() == 1) && !scene.flows());
        child.kill().expect("it was running");
        let killed = Instant::now();
        child.wait().expect("it ends");
        wait_for("the fault is gone", || scene.faults() == json!({}));
        let took = killed.elapsed();
        assert!(took < Duration::from_millis(5_300), "{took:?}");
        wait_for("traffic flows", || scene.flows());
        assert_eq!(scene.leases(), json!([]));
    }
}

#[test]
fn a_run_keeps_its_lease_for_longer_than_that_lasts_and_a_signal_ends_it() {
    let _machine = shared();
    let scene = Scene::new("kept", "tcp");
    let child = scene.start("{ hang: {} }", &LONG);
    wait_for("the fault", || scene.events().contains("fault_started"));
    let (begun, lease) = (Instant::now(), scene.leases()[0]["id"].clone());
    wait_for("longer than a lease lasts", || {
        assert_eq!(scene.leases()[0]["id"], lease);
        assert_eq!(scene.faults().as_object().map(serde_json::Map::len), Some(1));
        begun.elapsed() > Duration::from_secs(7)
    });
    signal(&child, "-INT");
    let said = end(child);
    assert_eq!(said.code, Some(130), "{said:#?}");
    assert_eq!((scene.faults(), scene.leases()), (json!({}), json!([])));
    assert!(scene.flows());
}

/// A run that stands still loses its lease; when it goes on it takes another, and says what became of its fault.
#[test]
fn a_run_that_stands_still_loses_its_lease() {
    let _machine = shared();
    let scene = Scene::new("stopped", "http");
    let child = scene.start("{ hang: {} }", &LONG);
    wait_for("the fault", || scene.events().contains("fault_started"));
    signal(&child, "-STOP");
    wait_for("the lease runs out", || scene.faults() == json!({}));
    signal(&child, "-CONT");
    signal(&child, "-INT");
    let said = end(child);
    assert_eq!(said.code, Some(130), "{said:#?}");
    assert!(said.err.contains("it was not there to its end"), "{said:#?}");
}

/// A server that does not answer at the end may hold the faults still: that is said, and its own clock removes them.
#[test]
fn a_server_that_stands_still_at_the_end_is_said_to_hold_the_faults() {
    let _machine = shared();
    let scene = Scene::new("mute", "http");
    let child = scene.start("{ hang: {} }", &LONG);
    wait_for("the fault", || scene.events().contains("fault_started"));
    scene.plane.signal("-STOP");
    signal(&child, "-INT");
    let said = end(child);
    scene.plane.signal("-CONT");
    assert_eq!(said.code, Some(7), "{said:#?}");
    assert!(said.out.contains("CLEANUP NOT CONFIRMED"), "{said:#?}");
    assert!(said.err.contains("they go with the run's lease, within 5s"), "{said:#?}");
    assert!(
        said.err.contains("curl -X DELETE http://") && said.err.contains("/v1/proxies/payments/faults/stormwake-"),
        "{said:#?}"
    );
    wait_for("the lease ends", || scene.faults() == json!({}));
}

#[test]
fn a_server_that_cannot_do_it_is_not_taken() {
    let _machine = shared();
    let scene = Scene::new("not", "tcp");
    let run = |fault: &str, changes: &[(&str, &str)]| stormwake(&scene.folder, &["run", &scene.write(fault, changes)]);
    for (fault, changes, says) in [
        (
            "{ status: { code: 503 } }",
            vec![],
            vec!["`payments` moves bytes, and `outage` needs to know requests", "protocol: http"],
        ),
        ("{ hang: {} }", vec![("name: payments", "name: orders")], vec!["has no proxy `orders`", "/proxies` lists"]),
    ] {
        let said = run(fault, &changes);
        assert_eq!(said.code, Some(6), "{said:#?}");
        assert!(says.iter().all(|words| said.err.contains(words)), "{said:#?}");
    }
    scene.plane.does("PATCH", "/v1/proxies/payments", r#"{"enabled":false}"#);
    let said = run("{ hang: {} }", &[]);
    assert!(said.code == Some(6) && said.err.contains("curl -X PATCH") && said.err.contains("/v1/proxies/payments"), "{said:#?}");
    let toxiproxy = ("stormwake: 'http", "toxiproxy: 'http");
    scene.plane.does("PATCH", "/v1/proxies/payments", r#"{"enabled":true}"#);
    let other = run("{ loss: { share: 5% } }", &[toxiproxy]);
    assert_eq!(other.code, Some(2), "as a Toxiproxy it is asked for no more than one can do: {other:#?}");
    assert_eq!((scene.leases(), scene.faults()), (json!([]), json!({})));
}
