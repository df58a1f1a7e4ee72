//! Simulated runs to the byte: what a plan and a seed give today they give tomorrow, and on every machine.
//! `UPDATE_GOLDEN=1 cargo test` rewrites the files; a difference wants a reason.

use std::path::PathBuf;
use std::sync::atomic::AtomicI32;
use stormwake::engine::{Unobserved, sim};
use stormwake::gate::judge;
use stormwake::plan::{Loaded, Source, load};
use stormwake::report::result::{Engine, PlanInfo, json, result};

/// A storm that a budget ends, through a hang that lets go.
const BUDGET: &str = "
version: 1
name: golden-budget
target: { service: { servers: 2, service_time: { p50: 8ms, p99: 30ms }, queue: 100 } }
fleets:
  app:
    clients: 200
    policy:
      attempts: 4
      timeout: 300ms
      backoff: { exponential: { base: 50ms, cap: 1s, jitter: full } }
      budget: { bucket: { deposit: 20%, burst: 10 }, tier: fleet }
    load: { poisson: { rate: 120/s } }
timeline: [ { at: 5s, for: 2s, name: hang, fault: { hang: { release: true } } } ]
steady_state: { for: 4s }
recovery: { after: hang, within: 5s, hold: 2s }
length: 14s
";

/// Clients far away, hints, several fleets, a limiter, latency that varies.
const FAR: &str = "
version: 1
name: golden-far
network: wan
target:
  service: { servers: unlimited, service_time: { exponential: { mean: 20ms } }, limiter: { sliding_log: { limit: 60, retry_after: 1s } } }
policies:
  polite: { attempts: 5, timeout: 2s, retry_on: [429, 5xx, timeout], backoff: { fixed: { delay: 500ms, jitter: equal } }, retry_after: honor }
  rude: { attempts: 3, timeout: 500ms, retry_on: [429, reset, timeout, connect] }
fleets:
  near: { clients: 50, policy: polite, load: { constant: { rate: 30/s } } }
  far: { clients: 20, policy: rude, load: { closed: { think: 700ms } }, connections: per_attempt }
timeline:
  - { at: 3s, for: 2s, name: slow, fault: { latency: { add: 300ms, jitter: 200ms, share: 50% } } }
  - { at: 6s, for: 1s, name: gone, fault: { refuse: {} }, fleets: [far] }
length: 10s
";

fn plan(text: &str) -> Loaded {
    load(&Source { file: "golden.yaml", text, overrides: &[], env: &|_| None }).unwrap_or_else(|e| panic!("{e}"))
}

/// `result.json` of a plan's run.
fn document(text: &str) -> Vec<u8> {
    let loaded = plan(text);
    let plan = &loaded.plan;
    let record = sim::run(plan, &mut Unobserved, &AtomicI32::new(0)).expect("it has a service");
    let verdict = judge(&record, &plan.judgement());
    let info = PlanInfo::of(&loaded, "golden.yaml", Engine::Sim);
    json(&result(&record, &verdict, &info))
}

#[test]
fn a_simulated_run_is_the_same_to_the_byte() {
    for (name, text) in [("budget", BUDGET), ("far", FAR)] {
        let made = document(text);
        assert!(made == document(text), "{name}: a run does not repeat");
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/sim-{name}.json"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&file, &made).expect("the golden file is written");
        }
        let golden = std::fs::read(&file).unwrap_or_default();
        assert!(
            made == golden,
            "{name}: not as in {}; UPDATE_GOLDEN=1 rewrites it, and git shows the difference",
            file.display()
        );
    }
}
