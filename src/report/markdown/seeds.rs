//! Many seeds of one plan in Markdown.

use super::escape::{cell, text};
use super::{CELL, SENTENCE, findings, foot, heading, joined, line_cell, sign, table, urgency, wide};
use crate::report::seeds::{GateCount, SeedsResult};
use crate::report::seeds_text::{gate_status, header, held, range_of_seeds, shown_spreads, spread_cells, worst_said};

/// The summary of many seeds.
pub fn of_seeds(result: &SeedsResult) -> Vec<u8> {
    let mut parts = vec![heading(result.outcome, &header(result, &wide()).join(" "))];
    parts.push(format!("seeds {}\n", text(&range_of_seeds(result), SENTENCE)));
    parts.extend(result.share_gate.as_ref().and_then(|gate| findings(std::slice::from_ref(gate))));
    parts.extend(gates(&result.gates));
    let spreads: Vec<Vec<String>> = shown_spreads(result)
        .into_iter()
        .map(|spread| spread_cells(spread, result).map(|cell| text(&cell, CELL)).to_vec())
        .collect();
    parts.extend(table(&["", "median", "range", "seeds"], &spreads));
    parts.extend(worst_said(result).map(|said| format!("worst: {}\n", text(&said, SENTENCE))));
    parts.push(foot(&result.plan, "in virtual time", &result.stormwake));
    joined(parts)
}

/// What became of each gate, over all seeds.
pub(super) fn gates(gates: &[GateCount]) -> Option<String> {
    let mut sorted: Vec<&GateCount> = gates.iter().collect();
    sorted.sort_by_key(|count| urgency(gate_status(count)));
    let row = |count: &&GateCount| {
        vec![sign(gate_status(count)).to_string(), cell(&count.gate, CELL), held(count), line_cell(count.line)]
    };
    let rows: Vec<Vec<String>> = sorted.iter().map(row).collect();
    table(&["", "gate", "seeds", "line"], &rows)
}
