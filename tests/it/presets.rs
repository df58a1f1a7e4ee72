//! Presets: their waits as a table that a golden file pins, and what the commands about them print and end with.
//! `UPDATE_GOLDEN=1 cargo test` rewrites the file; a difference wants a reason.

use crate::support::{Folder, stormwake};
use std::fmt::Write as _;
use std::path::PathBuf;
use stormwake::plan::presets;
use stormwake::policy::audit::ranges;
use stormwake::report::policies::own_backoffs;

/// Ten waits of every preset where all draws are 0, 1/2 and 1.
fn table() -> String {
    let mut out = String::new();
    for preset in presets::all() {
        let own = own_backoffs(&preset.policy).map(|(class, backoff)| (format!("{}, {class}", preset.name), backoff));
        for (name, backoff) in std::iter::once((preset.name.to_string(), &preset.policy.backoff)).chain(own) {
            let _ = writeln!(out, "{name}");
            for range in ranges(backoff, 10) {
                let waits = [range.least, range.middle, range.most].map(|wait| format!("  {:>12}", wait.to_string()));
                let _ = writeln!(out, "  {:>2}{}", range.retry, waits.concat());
            }
        }
    }
    out
}

#[test]
fn every_preset_waits_as_its_golden_table_says() {
    let made = table();
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/presets.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, &made).expect("the golden file is written");
    }
    let golden = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(made == golden, "not as in {}; UPDATE_GOLDEN=1 rewrites it, and git shows the difference", file.display());
}

/// A plan with a policy of its own, one by a preset's name, and one that overrides a preset.
const PLAN: &str = "
version: 1
length: 1m
target: { service: { servers: 1, service_time: { exponential: { mean: 1ms } } } }
policies:
  march: { attempts: 3, timeout: 1s, backoff: { fixed: { delay: 20s } } }
  calm: { preset: google-api-core, timeout: 2s, backoff: { exponential: { cap: 5s } } }
fleets:
  a: { clients: 1, policy: march, load: { poisson: { rate: 1/s } } }
  b: { clients: 1, policy: calm, load: { poisson: { rate: 1/s } } }
  c: { clients: 1, policy: stripe, load: { poisson: { rate: 1/s } } }
";

#[test]
fn policies_are_listed_and_spelled_out() {
    let folder = Folder::new("policies");
    folder.write("plan.yaml", PLAN);
    for (args, code, out, err) in [
        (&["policies"][..], 0, "aws-standard-2.1", ""),
        (&["policies", "--json"], 0, "\"name\": \"client-go-workqueue\"", ""),
        (&["policies", "show", "urllib3"], 0, "zero_first_retry: true", ""),
        (&["policies", "show", "stripe", "--json"], 0, "\"least_s\": 0.5", ""),
        (&["policies", "show", "strpe"], 2, "", "did you mean `stripe`?"),
        (&["policies", "show", "calm", "--plan", "plan.yaml"], 0, "    cap: 5s\n", ""),
        (&["policies", "show", "stripe", "--plan", "plan.yaml"], 0, "attempts: 3\n", ""),
        (&["policies", "show", "clam", "--plan", "plan.yaml"], 2, "", "did you mean `calm`?"),
        (&["policies", "show"], 2, "", "NAME"),
    ] {
        let said = stormwake(&folder, args);
        assert_eq!(said.code, Some(code), "{args:?} {said:?}");
        assert!(said.out.contains(out) && said.err.contains(err) && said.err.is_empty() == err.is_empty(), "{args:?} {said:?}");
    }
}

#[test]
fn an_audit_fails_where_a_peak_passes_the_limit() {
    let folder = Folder::new("audit");
    folder.write("plan.yaml", PLAN);
    let few = ["--clients", "300", "--from", "60s", "--to", "120s"];
    for (args, code, out) in [
        (&["plan.yaml", "--max-peak", "30"][..], 0, "PASS no peak/mean past 30"),
        (&["plan.yaml", "--max-peak", "3"], 1, "FAIL peak/mean past 3.00: march\n"),
        (&["finagle", "--max-peak", "3"], 1, "retries at once, without end"),
        (&["aws-standard-2.1"], 0, "aws-standard-2.1, 429"),
        (&["stripe", "--json"], 0, "\"peak_to_mean\":"),
        (&["strpe"], 2, ""),
        (&["missing.yaml"], 2, ""),
        (&["stripe", "--max-peak", "0.5"], 2, ""),
    ] {
        let args: Vec<&str> = ["audit"].iter().chain(args).chain(&few).copied().collect();
        let said = stormwake(&folder, &args);
        assert_eq!(said.code, Some(code), "{args:?} {said:?}");
        assert!(said.out.contains(out) && said.out.is_empty() == out.is_empty(), "{args:?} {said:?}");
        assert_eq!(said.out, stormwake(&folder, &args).out, "it repeats to the byte");
    }
    assert_eq!(stormwake(&folder, &["audit", "stripe", "--from", "9s", "--to", "9s"]).code, Some(2));
}
