//! Every shipped plan: it checks, it fits the schema, it says what it expects. New plans are found by themselves.

use crate::support::{Folder, stormwake};
use std::path::PathBuf;

fn shipped() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/plans");
    let mut plans: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the plans are there")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .collect();
    plans.sort();
    assert!(plans.len() >= 2, "the quickstart and its twin at least: {plans:?}");
    plans
}

#[test]
fn every_plan_checks_without_a_warning() {
    let folder = Folder::new("plans-check");
    for plan in shipped() {
        let said = stormwake(&folder, &["check", plan.to_str().expect("UTF-8")]);
        assert_eq!(said.code, Some(0), "{}: {said:#?}", plan.display());
        assert!(!said.err.contains("warning"), "{}: {}", plan.display(), said.err);
    }
}

#[test]
fn every_plan_states_its_question_and_what_it_expects() {
    for plan in shipped() {
        let text = std::fs::read_to_string(&plan).expect("a readable plan");
        let head: String = text.lines().take_while(|l| l.starts_with('#')).collect::<Vec<_>>().join("\n");
        assert!(head.contains("Question:") && head.contains("Expected:"), "{}: the head comment", plan.display());
        assert!(text.contains("expect:") || text.contains("gates:"), "{}: `expect` or `gates`", plan.display());
    }
}

#[test]
fn every_plan_fits_the_printed_schema() {
    let folder = Folder::new("plans-schema");
    let said = stormwake(&folder, &["schema"]);
    assert_eq!(said.code, Some(0), "{said:#?}");
    let schema: serde_json::Value = serde_json::from_str(&said.out).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is a schema");
    for plan in shipped() {
        let text = std::fs::read_to_string(&plan).expect("a readable plan");
        let value: serde_json::Value = serde_saphyr::from_str(&text).expect("the plan is YAML");
        let wrong: Vec<String> = validator.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(wrong.is_empty(), "{}: {wrong:#?}", plan.display());
    }
    let spoiled = serde_json::json!({ "version": 1, "lenght": "4s" });
    assert!(!validator.is_valid(&spoiled), "a schema that accepts everything proves nothing");
}
