//! Tables of runs and gates.

use super::super::super::layout::count;
use super::super::super::result::{FindingResult, GateStatus};
use super::super::super::seeds::{GateCount, SeedRow};
use super::super::super::seeds_text::{class_word, said, shown, spaced};
use super::super::frame::{Section, Tone};
use super::super::table::{Cell, ROWS, Table};
use super::super::words::plain;
use super::{Runs, Time, outcome};
use crate::metrics::Figure;

/// Figures of a run that stand in the table of seeds.
const OF_A_RUN: [Figure; 5] = [Figure::Amplification, Figure::PeakAttempts, Figure::RetryShare, Figure::WastedWork, Figure::Lost];

/// A figure of a run in words.
fn figure(row: &SeedRow, figure: Figure) -> String {
    let value = row.figures.get(figure.word()).copied().flatten();
    value.map_or_else(|| super::super::words::UNKNOWN.into(), |value| shown(figure.word(), Some(value)))
}

fn status(row: &SeedRow) -> Cell {
    let (tone, word) = outcome(row.outcome);
    Cell::Status(
        tone,
        row.class.map_or_else(|| word.to_lowercase(), |class| format!("{} {}", word.to_lowercase(), class_word(class))),
    )
}

/// The seeds of one plan, the worst first.
pub fn seeds(runs: &Runs, document: &'static str) -> Section {
    let mut head = vec!["seed".to_string(), "outcome".into(), "#healthy again after".into()];
    head.extend(OF_A_RUN.map(|figure| format!("#{}", spaced(figure.word()))));
    head.push("why".into());
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new("Seeds, the worst first", &head).of(document);
    for row in runs.worst_first().into_iter().take(ROWS) {
        let mut cells = vec![Cell::text(row.seed.to_string()), status(row), Cell::figure(Time::of(row).words())];
        cells.extend(OF_A_RUN.map(|name| Cell::figure(figure(row, name))));
        cells.push(Cell::sentence(why(row)));
        table.row(cells);
    }
    table.left_out(runs.rows.len().saturating_sub(ROWS));
    Section::new("seeds", "Seeds", "Each is a run that `--seed` makes again.").with(table.html())
}

/// Characters of what a run has to say; the document has all.
const WHY: usize = 140;

/// What a run has to say beside its outcome.
fn why(row: &SeedRow) -> String {
    let said = said(row);
    said.split_once(": ").and_then(|(_, rest)| rest.split_once(": ")).map_or(String::new(), |(_, why)| {
        // What is broken stands in the run's own page.
        plain(why.split("; broken: ").next().unwrap_or(why), WHY)
    })
}

/// The seeds of several policies: a row for each seed, a column for each policy; `more` says which policies have none.
pub fn paired(runs: &[Runs], more: &str, document: &'static str) -> Section {
    let mut head = vec!["seed"];
    head.extend(runs.iter().map(|runs| runs.name));
    let mut table = Table::new("Each seed under each policy", &head).of(document);
    let longest = runs.iter().max_by_key(|runs| runs.rows.len()).map_or(&[][..], |runs| runs.rows);
    for seed in longest.iter().map(|row| row.seed).take(ROWS) {
        let cell = |runs: &Runs| {
            let Some(row) = runs.rows.iter().find(|row| row.seed == seed) else { return Cell::text("not run") };
            let (tone, word) = outcome(row.outcome);
            let class = row.class.map_or_else(|| word.to_lowercase(), class_word);
            Cell::Stacked(Time::of(row).words(), vec![(Some(tone), class)])
        };
        table.row(std::iter::once(Cell::text(seed.to_string())).chain(runs.iter().map(cell)).collect());
    }
    table.left_out(longest.len().saturating_sub(ROWS));
    let lead = format!("On one seed all policies meet the same arrivals and the same fault dice.{more}");
    Section::new("seeds", "Seeds", lead).with(table.html())
}

/// Findings, those that did not hold first.
pub fn findings(caption: &str, findings: &[FindingResult], document: &'static str) -> String {
    let mut table = Table::new(caption, &["gate", "status", "wanted", "observed", "#plan line"]).of(document);
    let mut findings: Vec<&FindingResult> = findings.iter().collect();
    findings.sort_by_key(|finding| rank(finding.status));
    for finding in findings {
        let cells =
            [Cell::text(&finding.gate), verdict(finding.status), Cell::text(&finding.wanted), Cell::text(&finding.observed)];
        table.row(cells.into_iter().chain([place(finding.line)]).collect());
    }
    table.html()
}

/// What became of the plan's gates in many runs, those that did not hold first; `whose` tells policies apart, and is empty where there is one.
pub fn gate_counts<'a>(caption: &str, gates: impl Iterator<Item = (&'a str, &'a GateCount)>, document: &'static str) -> String {
    let mut gates: Vec<(&str, &GateCount)> = gates.collect();
    let named = gates.iter().any(|(whose, _)| !whose.is_empty());
    let head = ["gate", "policy", "status", "#held in", "#did not hold in", "#without evidence", "#plan line"];
    let head: Vec<&str> = head.into_iter().filter(|word| named || *word != "policy").collect();
    let mut table = Table::new(caption, &head).of(document);
    let worst = |gate: &GateCount| match (gate.fail, gate.inconclusive) {
        (0, 0) => GateStatus::Pass,
        (0, _) => GateStatus::Inconclusive,
        _ => GateStatus::Fail,
    };
    gates.sort_by_key(|(_, gate)| rank(worst(gate)));
    for (whose, gate) in gates {
        let counts = [gate.pass, gate.fail, gate.inconclusive].map(|runs| Cell::figure(count(runs)));
        let policy = named.then(|| Cell::text(whose));
        let cells = [Cell::text(&gate.gate)].into_iter().chain(policy).chain([verdict(worst(gate))]).chain(counts);
        table.row(cells.chain([place(gate.line)]).collect());
    }
    table.html()
}

fn rank(status: GateStatus) -> u8 {
    match status {
        GateStatus::Fail => 0,
        GateStatus::Inconclusive => 1,
        GateStatus::Pass => 2,
    }
}

fn verdict(status: GateStatus) -> Cell {
    match status {
        GateStatus::Pass => Cell::Status(Tone::Good, "pass".into()),
        GateStatus::Fail => Cell::Status(Tone::Bad, "fail".into()),
        GateStatus::Inconclusive => Cell::Status(Tone::Unsure, "inconclusive".into()),
    }
}

fn place(line: Option<u32>) -> Cell {
    Cell::figure(line.map_or_else(|| "command line".to_string(), |line| line.to_string()))
}
