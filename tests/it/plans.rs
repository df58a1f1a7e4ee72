//! Every shipped plan: it checks, it fits the schema, it says what it expects. New plans are found by themselves.

use crate::support::{Folder, stormwake};
use std::path::PathBuf;
use stormwake::config::{Read, Shape};
use stormwake::metrics::Figure;
use stormwake::plan::RawPlan;

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

/// The reference's table of figures is made from the code's; every key of the language stands in the reference.
#[test]
fn the_reference_is_complete() {
    const MARK: &str = "<!-- made from the code: UPDATE_GOLDEN=1 cargo test the_reference -->\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/plans/REFERENCE.md");
    let text = std::fs::read_to_string(path).expect("the reference is there");
    let (before, table) = text.split_once(MARK).expect("the mark of the table of figures");
    let Shape::Keyword(figures) = Figure::shape() else { panic!("figures are words") };
    let rows = figures.iter().zip(Figure::ALL).map(|(shape, figure)| {
        let unit = format!("{:?}", figure.unit()).to_lowercase();
        format!("| `{}` | {unit} | {} |\n", shape.name, shape.doc.replace('\n', " ").replace('|', "\\|"))
    });
    let wanted = format!("\n| figure | unit | |\n|---|---|---|\n{}", rows.collect::<String>());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, format!("{before}{MARK}{wanted}")).expect("the reference can be written");
    } else {
        assert_eq!(table, wanted, "run UPDATE_GOLDEN=1 cargo test the_reference");
    }
    let mut keys = Vec::new();
    collect(&RawPlan::shape(), &mut keys);
    keys.retain(|key| !["`KEY", "KEY ", "KEY,", "KEY:"].iter().any(|form| before.contains(&form.replace("KEY", key))));
    assert!(keys.is_empty(), "keys that plans/REFERENCE.md does not explain: {keys:?}");
}

fn collect(shape: &Shape, keys: &mut Vec<&'static str>) {
    match shape {
        Shape::List(inner) | Shape::Map(inner) => collect(inner, keys),
        Shape::Record { fields, .. } => fields.iter().for_each(|f| {
            // Conditions are records of figures, which have their own table.
            if Figure::ALL.iter().all(|figure| figure.word() != f.name) {
                keys.push(f.name);
                collect(&f.shape, keys);
            }
        }),
        Shape::Choice { alternatives, .. } => alternatives.iter().for_each(|a| {
            keys.push(a.name);
            a.shape.iter().for_each(|s| collect(s, keys));
        }),
        Shape::OneOf(shapes) => shapes.iter().for_each(|s| collect(s, keys)),
        _ => {}
    }
}
