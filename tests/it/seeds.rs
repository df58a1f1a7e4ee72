//! Many seeds and policies in virtual time, by the command line: the same bytes on any number of threads, and codes that follow the worst.

use crate::support::{Folder, Said, command, stormwake};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A small storm: immediate retries keep it stuck, a budget lets it recover.
const PLAN: &str = "\
version: 1
name: storm
seed: 3
target: { service: { servers: 2, service_time: 10ms, queue: 600, notices_cancel: false } }
policies:
  immediate: { attempts: 4, timeout: 500ms, retry_on: [connect, reset, timeout, 5xx], backoff: none }
  budget: { attempts: 4, timeout: 500ms, retry_on: [connect, reset, timeout, 5xx], backoff: none, budget: { ratio: 10%, window: 10s, tier: fleet } }
fleets:
  app: { clients: 500, policy: immediate, load: { poisson: { rate: 130/s } } }
steady_state: { for: 5s }
timeline:
  - { at: 6s, for: 5s, name: outage, fault: { blackhole: {} } }
recovery: { after: outage, within: 8s, hold: 5s }
length: 28s
";

const COMPARE: &str = "\
compare:
  fleet: app
  reference: immediate
  candidates: [budget]
  seeds: 6
";

fn folder(test: &str, more: &str) -> Folder {
    let folder = Folder::new(test);
    folder.write("storm.yaml", PLAN.to_string() + more);
    folder
}

fn simulate(folder: &Folder, more: &[&str]) -> Said {
    stormwake(folder, &[&["simulate", "storm.yaml"], more].concat())
}

fn compare(folder: &Folder, more: &[&str]) -> Said {
    stormwake(folder, &[&["compare", "storm.yaml"], more].concat())
}

/// The files of this name under a folder.
fn found(folder: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => open.push(path),
                false if path.file_name().is_some_and(|file| file == name) => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    found
}

fn only(folder: &Path, name: &str) -> Vec<u8> {
    let files = found(folder, name);
    assert_eq!(files.len(), 1, "{name} in {}: {files:?}", folder.display());
    std::fs::read(&files[0]).expect("a readable file")
}

fn document(said: &Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("stdout is no document: {e}\n{said:#?}"))
}

#[test]
fn seeds_are_the_same_to_the_byte_on_any_number_of_threads() {
    let folder = folder("seeds-threads", "");
    let with = |threads: &str, out: &str| {
        let said = simulate(&folder, &["--seeds", "5", "--threads", threads, "--out", out, "--json"]);
        assert_eq!(said.code, Some(1), "{said:#?}");
        let written = only(&folder.path().join(out), "seeds.json");
        assert_eq!(String::from_utf8_lossy(&written), said.out, "what is printed is what is written");
        written
    };
    let (one, two) = (with("1", "one"), with("2", "two"));
    assert!(one == two, "seeds.json depends on the number of threads");
    let pages = ["one", "two"].map(|out| found(&folder.path().join(out), "report.html"));
    let page = |index: usize| {
        std::fs::read(pages[index].iter().min_by_key(|path| path.components().count()).expect("a page")).expect("a page")
    };
    assert!(page(0) == page(1) && String::from_utf8_lossy(&page(0)).contains("seeds.json"), "the page repeats");
    let result: Value = serde_json::from_slice(&one).expect("JSON");
    let seeds: Vec<u64> = result["seeds"].as_array().expect("rows").iter().filter_map(|row| row["seed"].as_u64()).collect();
    assert_eq!(seeds, [3, 4, 5, 6, 7]);
    fits(&folder, "--seeds", &result);

    // The report of the worst seed is that of the seed alone, and repeats.
    let worst = result["worst"].as_u64().expect("a worst seed").to_string();
    let alone = |out: &str| {
        let said = simulate(&folder, &["--seed", &worst, "--out", out]);
        assert_eq!(said.code, Some(1), "{said:#?}");
        ["result.json", "windows.csv", "latency.hlog", "events.ndjson", "effective.yaml", "latency.hgrm", "latency-before.hgrm"]
            .map(|name| only(&folder.path().join(out), name))
    };
    let first = alone("alone");
    assert!(first == alone("again"), "a run repeats to the byte");
    assert!(first[0] == only(&folder.path().join("one"), "result.json"), "the worst seed's report is another");
    let result: Value = serde_json::from_slice(&first[0]).expect("JSON");
    assert_eq!((&result["engine"], &result["started_unix_ms"]), (&"sim".into(), &Value::Null));
    fits(&folder, "--result", &result);
    let events = String::from_utf8(first[3].clone()).expect("text");
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    events.iter().for_each(|event| fits(&folder, "--events", event));
    assert_eq!((&events[0]["event"], &events[0]["schema_version"]), (&"prepared".into(), &1.into()));
    assert!(events.len() > 5, "{events:?}");
}

/// Fails unless a document is one of its printed schema.
fn fits(folder: &Folder, of: &str, document: &Value) {
    let schema: Value = serde_json::from_str(&stormwake(folder, &["schema", of]).out).expect("a schema");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let errors: Vec<String> = validator.iter_errors(document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{of}: {errors:?}");
}

/// An outage so short that some seeds recover.
const SHORT: &[&str] = &["--set", "timeline.outage.for=1200ms"];

#[test]
fn the_code_follows_the_worst_seed_unless_a_share_is_enough() {
    for (test, more, args, code, words) in [
        ("seeds-expected", "expect: { class: STUCK }\n", &[][..], 0, "4 of 4 STUCK, as expected (95% interval 40% to 100%)"),
        ("seeds-stuck", "", &[], 1, "0 of 4 recovered"),
        ("seeds-recovers", "", &["--set", "fleets.app.policy=budget"], 0, "4 of 4 recovered"),
        // Near the tipping point one of the four stays stuck.
        ("seeds-share", "gates: [{ recovered: '>= 75% of seeds' }]\n", SHORT, 0, "got 3 of 4"),
        ("seeds-some", "", SHORT, 1, "3 of 4 recovered"),
        ("seeds-share-not", "gates: [{ recovered: '>= 50% of seeds' }]\n", &[], 1, "got 0 of 4"),
        ("seeds-untouched", "", &["--set", "recovery.operations=50000"], 3, "INCONCLUSIVE 4"),
    ] {
        let folder = folder(test, more);
        let said = simulate(&folder, &[&["--seeds", "4", "--quiet"], args].concat());
        assert_eq!(said.code, Some(code), "{test}: {said:#?}");
        assert!(said.out.contains(words), "{test}: {said:#?}");
        assert!(said.out.contains("(the worst in seed") && !said.err.contains("seeds,"), "{test}: {said:#?}");
    }
}

#[test]
fn policies_are_compared_on_the_same_seeds() {
    let folder = folder("compare", COMPARE);
    let said = compare(&folder, &["--json", "--threads", "1"]);
    assert_eq!(said.code, Some(0), "{said:#?}");
    let result = document(&said);
    let again = compare(&folder, &["--json", "--threads", "2"]);
    assert_eq!(said.out, again.out, "compare.json repeats on any number of threads");
    let pages = found(&folder.path().join("reports"), "report.html");
    let pages: Vec<Vec<u8>> = pages.iter().map(|path| std::fs::read(path).expect("a page")).collect();
    assert!(pages.len() == 2 && pages[0] == pages[1], "the page repeats");
    let schema: Value = serde_json::from_str(&stormwake(&folder, &["schema", "--compare"]).out).expect("a schema");
    assert!(jsonschema::validator_for(&schema).expect("a schema").is_valid(&result));
    let policies = result["policies"].as_array().expect("policies");
    let recovered: Vec<u64> = policies.iter().filter_map(|policy| policy["recovered"]["runs"].as_u64()).collect();
    assert_eq!(recovered, [0, 6], "{said:#?}");
    let effects = policies[1]["effects"].as_array().expect("effects");
    let of = |figure: &str| effects.iter().find(|effect| effect["figure"] == figure).expect("an effect");
    assert_eq!(of("peak_attempts")["difference"], "less");
    assert_eq!(
        (&of("offered")["difference"], &of("offered")["median"]),
        (&"none".into(), &0.0.into()),
        "the arrivals are the same"
    );
}

#[test]
fn the_gates_of_a_comparison_decide_its_code() {
    for (test, gate, code) in [
        ("compare-holds", "{ policy: budget, peak_attempts: '<= 60% of reference' }", 0),
        ("compare-breaks", "{ policy: budget, peak_attempts: '<= 1% of reference' }", 1),
        ("compare-unknown", "{ policy: budget, recovery_time: '<= reference' }", 3),
    ] {
        let folder = folder(test, &format!("{COMPARE}  gates: [{gate}]\n"));
        let args: &[&str] = if code == 3 { &["--set", "recovery.operations=50000"] } else { &[] };
        let said = compare(&folder, &[&["--seeds", "3"], args].concat());
        assert_eq!(said.code, Some(code), "{test}: {said:#?}");
        assert!(said.out.contains("against it") && said.out.contains("line "), "{test}: {said:#?}");
    }
}

#[test]
fn bad_flags_and_plans_are_usage_errors() {
    let folder = folder("seeds-usage", "");
    let service = PLAN.lines().find(|line| line.starts_with("target:")).expect("a target");
    folder.write("url.yaml", PLAN.replace(service, "target: { url: 'http://127.0.0.1:1/' }"));
    folder.write("bytes.yaml", PLAN.replace("blackhole: {}", "bandwidth: { rate: 1KB/s }") + COMPARE);
    for (args, words) in [
        (&["simulate", "storm.yaml", "--seeds", "0"][..], "--seeds"),
        (&["simulate", "storm.yaml", "--seeds", "2", "--seed", "1"], "cannot be used with"),
        (&["simulate", "storm.yaml", "--threads", "0"], "--threads"),
        (&["simulate", "url.yaml"], "model:"),
        (&["simulate", "bytes.yaml"], "a fault of bytes"),
        (&["simulate", "bytes.yaml", "--seed", "1"], "a fault of bytes"),
        (&["compare", "bytes.yaml"], "a fault of bytes"),
        (&["bisect", "bytes.yaml", "--vary", "fleets.app.clients=100..900"], "a fault of bytes"),
        (&["compare", "storm.yaml"], "add `compare:"),
        (&["compare", "storm.yaml", "--repeats", "2"], "--live"),
        (&["compare", "storm.yaml", "--live", "--threads", "2"], "cannot be used with"),
        (&["schema", "--seeds", "--compare"], "cannot be used with"),
    ] {
        let said = stormwake(&folder, args);
        assert_eq!(said.code, Some(2), "{args:?}: {said:#?}");
        assert!(said.err.contains(words) && said.out.is_empty(), "{args:?}: {said:#?}");
    }
    assert!(found(&folder.path().join("reports"), "effective.yaml").is_empty(), "what never began leaves no report");
}

#[test]
fn a_closed_pipe_is_no_error() {
    let folder = folder("seeds-pipe", "expect: { class: STUCK }\n");
    let mut child = command(&folder, &["simulate", "storm.yaml", "--seeds", "2", "--json"]).spawn().expect("the binary starts");
    drop(child.stdout.take());
    let said: Said = child.wait_with_output().expect("it ends").into();
    assert_eq!(said.code, Some(0), "{said:#?}");
}

#[test]
fn a_signal_ends_many_seeds_and_what_was_done_is_shown() {
    let folder = folder("seeds-signal", COMPARE);
    for (args, file) in [
        (&["simulate", "storm.yaml", "--seeds", "5000", "--threads", "1", "--out", "a"][..], "seeds.json"),
        (&["compare", "storm.yaml", "--seeds", "5000", "--threads", "1", "--out", "b"], "compare.json"),
    ] {
        let child = command(&folder, args).spawn().expect("the binary starts");
        let out = folder.path().join(args[args.len() - 1]);
        let start = Instant::now();
        while found(&out, "effective.yaml").is_empty() {
            assert!(start.elapsed() < Duration::from_secs(20), "no report was begun");
            std::thread::yield_now();
        }
        let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(killed.is_ok_and(|status| status.success()));
        let said: Said = child.wait_with_output().expect("it ends").into();
        assert_eq!(said.code, Some(130), "{said:#?}");
        assert!(said.out.starts_with("ABORTED") && said.out.contains("by SIGINT after"), "{said:#?}");
        let result: Value = serde_json::from_slice(&only(&out, file)).expect("JSON");
        assert_eq!((&result["outcome"], &result["exit_code"]), (&"aborted".into(), &130.into()));
    }
}
