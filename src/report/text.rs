//! The verdict on one screen: what came out, the curve that shows it, the figures behind it, where the rest is.
//!
//! It aims at 24 lines. What decides is never cut for that: the sentence, the reasons, every gate that did not hold and the path of the
//! report are told whole, and the curve and the figures give way to them; where that is not enough, there are more lines.

pub(super) mod facts;
pub(super) mod gates;
pub(super) mod headline;
mod lines;
mod people;
#[cfg(test)]
mod tests;

use super::curve::curve;
use super::layout::Style;
use super::result::RunResult;
use facts::facts;
use gates::{gates, why};
use headline::{Ended, Headline};
use lines::LABEL;

/// Lines of a screen.
const SCREEN: usize = 24;
/// The most lines of the sentence on the recovery.
const SENTENCE: usize = 10;
/// Reasons that are told; the others are in `result.json`.
const REASONS: usize = 8;

/// How a screen is shared out: lines of goodput in the curve, whether the facts are told in few lines.
type Shares = (usize, bool);
/// What gives way, in this order: goodput's height, facts, the rest of that height.
const SHARES: [Shares; 5] = [(4, false), (3, false), (2, false), (2, true), (1, true)];
/// Where all of that is not enough there is more than a screen to read, and a small curve is worth its lines.
const LONGER: Shares = (2, true);

/// The verdict as text: of 24 lines where what decides has room there, each of at most `style.width` columns but for the one that says where
/// the report is, which is `report`.
pub fn verdict(result: &RunResult, style: &Style, report: Option<&str>) -> String {
    let mut decides = why(result, style);
    decides.extend(gates(result, style));
    let fits = |(head, facts): &(Vec<String>, Vec<String>)| head.len() + decides.len() + facts.len() <= SCREEN;
    let shared = SHARES.into_iter().map(|shares| around(result, style, report, shares)).find(fits);
    let (head, facts) = shared.unwrap_or_else(|| around(result, style, report, LONGER));
    let lines = head.into_iter().chain(decides).chain(facts);
    lines.map(|line| format!("{}\n", line.trim_end())).collect()
}

/// What stands above the reasons and gates, and what below.
fn around(result: &RunResult, style: &Style, report: Option<&str>, (height, tight): Shares) -> (Vec<String>, Vec<String>) {
    let mut head = header(result, style);
    head.extend(result.recovery.iter().flat_map(|recovery| style.wrap(&recovery.sentence, style.width, SENTENCE)));
    head.push(String::new());
    let curve = curve(result, style, height);
    if !curve.is_empty() {
        head.extend(curve);
        head.push(String::new());
    }
    let mut facts = facts(result, style, tight);
    facts.extend(report.map(|path| report_line(path, LABEL, style)));
    (head, facts)
}

/// The first line, and others for what does not fit: outcome, class, plan, seed, exit code.
pub(super) fn header(result: &RunResult, style: &Style) -> Vec<String> {
    Headline::of(result).lines(result.outcome, Ended::of(result.exit_code, result.advisory), style)
}

/// Where the report is: never cut, for a path is there to be copied.
pub(super) fn report_line(path: &str, label: usize, style: &Style) -> String {
    style.pad("report", label.min(style.width)) + &style.clean(path)
}
