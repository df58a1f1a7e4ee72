//! The truth test of `calibrate`: a live run of a service whose times are known must give them back.

use crate::support::{Folder, Said, stormwake, with_evidence};
use std::path::PathBuf;
use stormwake::service::time::Percentiles;
use stormwake::time::Span;

fn plan(service_time: &str, seconds: u64) -> String {
    format!(
        "version: 1\nname: known\nseed: 1\ntarget: {{ service: {{ servers: unlimited, service_time: {service_time} }} }}\n\
         fleets: {{ all: {{ clients: 100, policy: {{ attempts: 1, timeout: 2s }}, load: {{ poisson: {{ rate: 150/s }} }} }} }}\n\
         steady_state: {{ for: {}s }}\ntimeline:\n  - {{ at: {seconds}s, for: 500ms, name: late, fault: {{ latency: {{ add: 50ms }} }} }}\n\
         gates:\n  - {{ errors: '<= 1%' }}\nlength: {}s\n",
        seconds - 1,
        seconds + 1
    )
}

/// Runs a plan live, and calibrates from its report.
fn calibrated(folder: &Folder, plan: &str, args: &[&str]) -> Said {
    let file = folder.write("known.yaml", plan);
    let run = || stormwake(folder, &["run", file.to_str().expect("UTF-8"), "--quiet"]);
    let ran = with_evidence(run);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let report = newest(folder);
    stormwake(folder, &[&["calibrate", report.to_str().expect("UTF-8")], args].concat())
}

/// The report of the last run.
fn newest(folder: &Folder) -> PathBuf {
    let runs = std::fs::read_dir(folder.path().join("reports/known")).expect("a report");
    let mut runs: Vec<PathBuf> = runs.map(|run| run.expect("a readable folder").path()).collect();
    runs.sort();
    runs.pop().expect("a run")
}

fn span(value: &serde_json::Value) -> Span {
    Span::parse(value.as_str().unwrap_or_else(|| panic!("no time: {value}"))).expect("a time")
}

fn mean(service_time: &serde_json::Value) -> Span {
    let Some(points) = service_time["percentiles"].as_object() else { return span(service_time) };
    let points = points.iter().map(|(name, time)| (name[1..].parse().expect("a percentile"), span(time)));
    Percentiles::new(points).expect("a distribution").mean()
}

#[test]
fn an_exponential_service_is_found_again() {
    let folder = Folder::new("calibrate-exponential");
    let said = calibrated(&folder, &plan("{ exponential: { mean: 20ms } }", 7), &["--json"]);
    assert_eq!(said.code, Some(0), "{said:#?}");
    let found = said.result();
    // What the target itself has counted: the draws of one run are not the distribution.
    let run: serde_json::Value =
        serde_json::from_slice(&std::fs::read(newest(&folder).join("result.json")).expect("a result")).expect("JSON");
    let count = |key: &str| run["service"][key].as_f64().unwrap_or_else(|| panic!("{key}: {}", run["service"]));
    let truth = (count("useful_seconds") + count("wasted_seconds")) / count("served");
    assert!((0.018..0.022).contains(&truth), "{truth}");
    let mean = mean(&found["target"]["model"]["service_time"]).as_secs_f64();
    assert!((0.9..1.1).contains(&(mean / truth)), "mean {mean}, and the target served for {truth}: {found:#}");
    assert_eq!(found["target"]["model"]["servers"], "unlimited");
    assert!(span(&found["network"]["upstream"]) < Span::from_millis(2), "{found:#}");
    assert!(found["why"]["network"]["upstream"].as_str().is_some_and(|why| why.contains("fastest of")), "{found:#}");
}

#[test]
fn a_constant_service_is_found_again_and_its_model_makes_a_plan() {
    let folder = Folder::new("calibrate-constant");
    let said = calibrated(&folder, &plan("10ms", 5), &[]);
    assert_eq!(said.code, Some(0), "{said:#?}");
    let url = "target:\n  url: http://127.0.0.1:1/\n";
    let rest =
        "fleets: { all: { clients: 10, policy: { attempts: 1, timeout: 2s }, load: { poisson: { rate: 10/s } } } }\nlength: 5s\n";
    let pasted = format!("version: 1\nname: pasted\n{}{rest}", said.out.replace("target:\n", url));
    let plan = folder.write("pasted.yaml", &pasted);
    let checked = stormwake(&folder, &["check", plan.to_str().expect("UTF-8"), "--effective"]);
    assert_eq!(checked.code, Some(0), "{pasted}\n{checked:#?}");
    let document = newest(&folder).join("result.json");
    let json = stormwake(&folder, &["calibrate", document.to_str().expect("UTF-8"), "--json", "--round-trip", "100us"]).result();
    let mean = mean(&json["target"]["model"]["service_time"]);
    assert!((Span::from_micros(9_500)..Span::from_micros(12_000)).contains(&mean), "{mean}: {json:#}");
    assert_eq!(json["network"]["upstream"], "50us");
}

#[test]
fn what_is_no_report_is_said_to_be_none() {
    let folder = Folder::new("calibrate-bad");
    folder.write("result.json", "{}");
    for (path, wanted) in [(".", "is no result of a run"), ("reports/none", "give the folder of a run")] {
        let said = stormwake(&folder, &["calibrate", path]);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:#?}");
        assert!(said.err.contains(wanted), "{said:#?}");
    }
}
