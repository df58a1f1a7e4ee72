//! A comparison of policies in Markdown: a row for each policy, and a row for what each changes.

use super::escape::{cell as name, text};
use super::{CELL, SENTENCE, findings, foot, heading, joined, table, wide};
use crate::report::compare::{CompareResult, PolicyResult};
use crate::report::compare_text::{SHOWN, bounds, cell, effect_cell, header, worth};
use crate::report::result::Engine;
use crate::report::seeds_text::{class_counts, spaced};

/// The summary of a comparison.
pub fn of_comparison(result: &CompareResult) -> Vec<u8> {
    let mut parts = vec![heading(result.outcome, &header(result, &wide()).join(" "))];
    parts.extend(findings(&result.gates));
    let figures = SHOWN.map(|figure| spaced(figure.word()));
    let figures = || figures.iter().map(String::as_str);
    let head: Vec<&str> = ["policy", "recovered", "95% interval", "classes"].into_iter().chain(figures()).collect();
    let rows: Vec<Vec<String>> = result.policies.iter().map(policy).collect();
    parts.extend(table(&head, &rows));
    if let Some((reference, candidates)) = result.policies.split_first() {
        let against = format!("against {}", name(&reference.name, CELL));
        let head: Vec<&str> = std::iter::once(against.as_str()).chain(figures()).collect();
        let rows: Vec<Vec<String>> = candidates.iter().map(effects).collect();
        parts.extend(table(&head, &rows));
        parts.extend(worth(candidates).map(|said| format!("{}\n", text(&said, SENTENCE))));
    }
    let engine = match result.engine {
        Engine::Live => "on real sockets",
        Engine::Sim => "in virtual time",
    };
    parts.push(foot(&result.plan, engine, &result.stormwake));
    joined(parts)
}

fn policy(policy: &PolicyResult) -> Vec<String> {
    let named = name(&policy.name, CELL) + if policy.reference { " (reference)" } else { "" };
    let recovered = format!("{} of {}", policy.recovered.runs, policy.recovered.of);
    let known = [named, recovered, text(&bounds(policy), CELL), text(&class_counts(&policy.classes), CELL)];
    known.into_iter().chain(SHOWN.map(|figure| text(&cell(policy, figure), CELL))).collect()
}

/// What a candidate changes: differences that are shown stand out.
fn effects(policy: &PolicyResult) -> Vec<String> {
    let shown =
        |said: String| if said.starts_with(['+', '-']) { format!("**{}**", text(&said, CELL)) } else { text(&said, CELL) };
    std::iter::once(name(&policy.name, CELL)).chain(SHOWN.map(|figure| shown(effect_cell(policy, figure)))).collect()
}
