//! `--metrics`: what is read while a run goes on, and what its report says in the end.

use crate::support::{Folder, command, shared, stormwake};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Child;
use std::time::Duration;

const PLAN: &str = "version: 1\nname: watched\nseed: 3\n\
    target: { service: { servers: 4, service_time: 2ms } }\n\
    fleets:\n  app: { clients: 20, policy: { attempts: 3, timeout: 200ms, backoff: none, retry_on: [connect, reset, timeout, 5xx] }, load: { constant: { rate: 100/s } } }\n  \
    jobs: { clients: 5, policy: { attempts: 1, timeout: 200ms }, load: { constant: { rate: 20/s } } }\n\
    timeline:\n  - { at: 1s, for: 1s, name: outage, fault: { refuse: {} } }\n\
    length: 4s\n";

/// Ends with the value, if it has not by itself.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The sum of a family's samples that have all of these parts.
fn sum(text: &str, name: &str, parts: &[&str]) -> f64 {
    let of = |line: &&str| line.split(['{', ' ']).next() == Some(name) && parts.iter().all(|part| line.contains(part));
    text.lines().filter(of).map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum()
}

#[test]
fn figures_are_served_while_a_run_goes_on_and_end_as_its_report_has_them() {
    let _machine = shared();
    let folder = Folder::new("metrics");
    folder.write("plan.yaml", PLAN);
    let args = ["run", "plan.yaml", "--json", "--metrics", "127.0.0.1:0", "--metrics-linger", "1m", "--out", "reports"];
    let mut run = Running(command(&folder, &args).spawn().expect("the binary starts"));
    let mut err = BufReader::new(run.0.stderr.take().unwrap()).lines().map_while(Result::ok);
    let address = err.find_map(|line| Some(line.strip_prefix("metrics at http://")?.strip_suffix("/metrics")?.to_string()));
    let address = address.expect("the address is said before the run");
    // stderr is read to the end beside, so that the run is never held up by it.
    let outage = std::thread::spawn(move || err.filter(|line| line.contains("outage began")).count());
    let mut seen = String::new();
    let during = (0..10_000).any(|_| {
        std::thread::park_timeout(Duration::from_millis(20));
        seen = get(&address, "/metrics");
        sum(&seen, "stormwake_fault_active", &["fault=\"outage\""]) == 1.0 && sum(&seen, "stormwake_attempts_total", &[]) > 0.0
    });
    assert!(during && sum(&seen, "stormwake_run_ended", &[]) == 0.0, "{seen}");
    assert!(get(&address, "/").contains("/metrics"));
    let mut out = BufReader::new(run.0.stdout.take().unwrap());
    let mut document = String::new();
    while out.read_line(&mut document).expect("the document comes") > 0 && !document.ends_with("\n}\n") {}
    let document: serde_json::Value = serde_json::from_str(&document).expect("a result");
    let last = get(&address, "/metrics");
    let totals = &document["totals"];
    let of = |name: &str, parts: &[&str]| sum(&last, name, parts);
    let ended = |word: &str| of("stormwake_operations_ended_total", &[&format!("outcome=\"{word}\"")]);
    for (name, value) in [
        ("operations", of("stormwake_operations_offered_total", &[])),
        ("attempts", of("stormwake_attempts_total", &[])),
        ("retries", of("stormwake_retries_total", &[])),
        ("succeeded", ended("succeeded")),
        ("failed", ended("failed")),
        ("refused", ended("refused")),
        ("dropped", ended("dropped")),
        ("unresolved", ended("unresolved")),
        ("succeeded", of("stormwake_operation_latency_seconds_count", &[])),
    ] {
        assert_eq!(totals[name].as_f64(), Some(value), "{name}: {totals}");
    }
    let outcomes: BTreeMap<String, f64> = serde_json::from_value(totals["by_outcome"].clone()).unwrap();
    assert!(outcomes.len() > 1, "{outcomes:?}");
    for (outcome, count) in outcomes {
        assert_eq!(of("stormwake_attempts_ended_total", &[&format!("outcome=\"{outcome}\"")]), count, "{outcome}");
    }
    assert_eq!(of("stormwake_run_ended", &[]), 1.0);
    drop(run);
    assert_eq!(outage.join().unwrap(), 1);
}

#[test]
fn an_address_that_cannot_be_had_is_said_before_anything_begins() {
    let _machine = shared();
    let folder = Folder::new("metrics-refused");
    folder.write("plan.yaml", PLAN);
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    for (args, code, words) in [
        (vec!["--metrics", &taken], 6, "choose another address with --metrics"),
        (vec!["--metrics", "0.0.0.0:0"], 5, "add --metrics-expose if you mean it"),
        (vec!["--metrics", "9464"], 2, "such as 127.0.0.1:9464"),
        (vec!["--metrics-linger", "5s"], 2, "--metrics"),
    ] {
        let said = stormwake(&folder, &[&["run", "plan.yaml", "--out", "reports"][..], &args].concat());
        assert!(said.code == Some(code) && said.err.contains(words), "{args:?}: {said:#?}");
        assert!(!folder.path().join("reports").exists(), "{args:?}: no report is begun");
    }
    let policies = "policies: { none: { attempts: 1, timeout: 200ms }, more: { attempts: 2, timeout: 200ms } }";
    let compare = "compare: { fleet: app, reference: none, candidates: [more] }";
    folder.write("compare.yaml", format!("{PLAN}{policies}\n{compare}\n"));
    let said = stormwake(&folder, &["compare", "compare.yaml", "--metrics", "127.0.0.1:0"]);
    assert!(said.code == Some(2) && said.err.contains("--metrics needs --live"), "{said:#?}");
    drop(holder);
}

#[cfg(feature = "otlp")]
#[test]
fn a_collector_that_is_down_costs_a_warning_and_one_elsewhere_is_refused() {
    let _machine = shared();
    let folder = Folder::new("otlp");
    folder.write("plan.yaml", PLAN);
    let run = |url: &str| {
        let args = ["run", "plan.yaml", "--quiet", "--out", "reports", "--otlp", url];
        command(&folder, &args).env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=hush").output().expect("the binary starts")
    };
    let nobody = {
        let holder = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}?hush", holder.local_addr().unwrap())
    };
    let said = crate::support::Said::from(run(&nobody));
    assert!(said.err.starts_with("warning: 1 of 1 times the collector at http://127.0.0.1:"), "{said:#?}");
    assert!(!said.err.contains("hush") && !said.out.is_empty(), "{said:#?}");
    let said = crate::support::Said::from(run("http://192.0.2.7:4318"));
    assert!(said.code == Some(5) && said.err.contains("--otlp: refused"), "{said:#?}");
}
