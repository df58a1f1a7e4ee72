//! Presets: their waits as a table that a golden file pins, and what the commands about them print and end with.
//! `UPDATE_GOLDEN=1 cargo test` rewrites the file; a difference wants a reason.

use crate::support::stormwake;
use std::fmt::Write as _;
use std::path::PathBuf;
use stormwake::plan::presets;
use stormwake::policy::audit::ranges;

/// Ten waits of every preset where all draws are 0, 1/2 and 1.
fn table() -> String {
    let mut out = String::new();
    for preset in presets::all() {
        let _ = writeln!(out, "{}", preset.name);
        for range in ranges(&preset.policy.backoff, 10) {
            let _ = writeln!(out, "  {:>2}  {:>14}  {:>14}  {:>14}", range.retry, range.least, range.middle, range.most);
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
