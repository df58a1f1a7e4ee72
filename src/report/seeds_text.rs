//! Many runs on one screen: how many recovered, what differs between them, which is the worst, where the rest is.

use super::layout::{NONE, Style, columns, count, factor, millis, number, percent, rate};
use super::result::{GateStatus, RecoveryClass, RunOutcome, Stopped, WaveVerdict};
use super::seeds::{ActionSpread, ClassCount, FigureSpread, GateCount, SeedRow, SeedsResult, ShareResult};
use super::text::gates::{are_counted, finding_lines, gate_lines, held_words, signed};
use super::text::headline::{Ended, Headline, gates_in_words};
use super::text::report_line;
use crate::metrics::{Figure, Unit};

/// Lines of a screen.
const SCREEN: usize = 24;
/// Columns of a label.
pub(super) const LABEL: usize = 14;
/// The most lines of the sentence on the worst run.
const SENTENCE: usize = 12;
/// Figures that give way to no gate.
const LEAST_SHOWN: usize = 4;
/// The figures that are shown, in this order; where gates need the lines, the last ones give way.
pub(super) const SHOWN: [Figure; 15] = [
    Figure::RecoveryTime,
    Figure::ErrorWindow,
    Figure::Relapses,
    Figure::Amplification,
    Figure::PeakAttempts,
    Figure::WaveScore,
    Figure::RetryShare,
    Figure::WastedWork,
    Figure::Failed,
    Figure::Lost,
    Figure::Duplicates,
    Figure::Refused,
    Figure::P99,
    Figure::Unresolved,
    Figure::LaunderedRetries,
];
/// Of these the ones that were nought in every run are left out.
const IF_ANY: [Figure; 4] = [Figure::Duplicates, Figure::Refused, Figure::Unresolved, Figure::LaunderedRetries];

/// The verdict on many runs as text of at most 24 lines, each at most `style.width` columns. `report` is where the report is.
pub fn verdict(result: &SeedsResult, style: &Style, report: Option<&str>) -> String {
    let mut lines = header(result, style);
    lines.push(line("seeds", &range_of_seeds(result), style));
    lines.extend(actions(result, style));
    lines.push(String::new());
    let mut foot = worst(result, style);
    foot.extend(report.map(|path| report_line(path, LABEL, style)));
    let mut gates = gates(result, style);
    if !gates.is_empty() {
        gates.push(String::new());
    }
    let mut spreads = spreads(result, style);
    // A heading and an empty line.
    let around = lines.len() + foot.len() + 2;
    spreads.truncate(SCREEN.saturating_sub(around + gates.len()).max(LEAST_SHOWN));
    if !spreads.is_empty() {
        lines.push(columns_of("", "median", "range", "seeds", style));
        lines.extend(spreads);
        lines.push(String::new());
    }
    lines.extend(gates);
    lines.extend(foot);
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn spreads(result: &SeedsResult, style: &Style) -> Vec<String> {
    shown_spreads(result).into_iter().map(|spread| spread_line(spread, result, style)).collect()
}

/// The figures that are worth a line, in their order.
pub(super) fn shown_spreads(result: &SeedsResult) -> Vec<&FigureSpread> {
    let of = |figure: &Figure| result.figures.iter().find(|spread| spread.figure == figure.word());
    let same = |a: &FigureSpread, b: &FigureSpread| (a.min, a.median, a.max) == (b.min, b.median, b.max);
    let shown = |figure: &Figure| {
        // That nobody could see waves is worth a line as well.
        let spread = of(figure).filter(|spread| spread.runs > 0 || (*figure == Figure::WaveScore && !result.seeds.is_empty()))?;
        if IF_ANY.contains(figure) && spread.max.is_none_or(|max| max <= 0.0) {
            return None;
        }
        // Where everything that failed was lost, one line says it.
        let said = *figure == Figure::Lost && of(&Figure::Failed).is_some_and(|failed| same(failed, spread));
        (!said).then_some(spread)
    };
    SHOWN.iter().filter_map(shown).collect()
}

/// What the timeline did beside harm, and what it would have done outside.
fn actions(result: &SeedsResult, style: &Style) -> Vec<String> {
    let (outside, done): (Vec<&ActionSpread>, Vec<_>) = result.actions.iter().partition(|action| action.left_out > 0);
    let said = |action: &&ActionSpread| {
        let range = match (action.min, action.max) {
            (Some(min), Some(max)) if min < max => format!("{} to {} affected", number(min), number(max)),
            (_, Some(max)) => format!("{} affected", number(max)),
            _ => "done".to_string(),
        };
        format!("{} {}: {range}", millis(Some(action.at_ms as f64)), action.name)
    };
    let named = outside.iter().enumerate().map(|(index, action)| {
        let why = if index == 0 { "in virtual time: " } else { "" };
        format!("{why}{} ({})", action.name, action.kind)
    });
    let lines = [listed("actions", done.iter().map(said), style), listed("left out", named, style)];
    lines.into_iter().flatten().collect()
}

/// The first line, and others for what does not fit: outcome, how many recovered, plan, exit code.
pub(super) fn header(result: &SeedsResult, style: &Style) -> Vec<String> {
    let count = |wrong: fn(&GateCount) -> bool| result.gates.iter().filter(|gate| wrong(gate)).count();
    let (failed, unknown) = (count(|gate| gate.fail > 0), count(|gate| gate.fail == 0 && gate.inconclusive > 0));
    let gates = gates_in_words(result.gates.len(), failed, unknown).map(|words| words + " in some seed");
    let stopped = result.stopped.as_ref().map(|stopped| interrupted(stopped, result.seeds.len(), result.planned, "seeds"));
    let recovered = headline(&result.recovered, result.plan.expect.is_some());
    let all = result.recovered.runs == result.recovered.of;
    let (why, said) = match result.outcome {
        RunOutcome::Pass => (Vec::new(), vec![recovered]),
        // What decides comes first: where every seed recovered, it is a gate.
        _ if all => (stopped.into_iter().chain(gates).collect(), vec![recovered]),
        _ => (stopped.into_iter().chain([recovered]).chain(gates).collect(), Vec::new()),
    };
    let title = result.plan.name.clone();
    Headline { why, said, title, run: Vec::new() }.lines(result.outcome, Ended::of(result.exit_code, result.advisory), style)
}

/// `1 to 20: RECOVERED 17, STUCK 3`.
pub(super) fn range_of_seeds(result: &SeedsResult) -> String {
    let (Some(first), Some(last)) = (result.seeds.first(), result.seeds.last()) else { return NONE.into() };
    let range = if first.seed == last.seed { first.seed.to_string() } else { format!("{} to {}", first.seed, last.seed) };
    if result.classes.is_empty() { range } else { format!("{range}: {}", class_counts(&result.classes)) }
}

/// That not all was run, and why.
pub(super) fn interrupted(stopped: &Stopped, done: usize, planned: u64, what: &str) -> String {
    format!("by {} after {done} of {planned} {what}", stopped.detail)
}

/// `3 of 6 recovered (95% interval 15% to 95%)`.
pub(super) fn headline(share: &ShareResult, expected: bool) -> String {
    let what = match share.class {
        Some(class) if expected && share.runs == share.of => format!("{}, as expected", class_word(class)),
        Some(class) if expected => format!("have the expected {}", class_word(class)),
        Some(_) => "recovered".into(),
        None => "passed".into(),
    };
    format!("{} of {} {what} ({})", share.runs, share.of, interval(share))
}

/// `95% interval 62% to 97%`.
pub(super) fn interval(share: &ShareResult) -> String {
    format!("{} interval {} to {}", percent(Some(share.confidence)), tenths(share.low), tenths(share.high))
}

/// A bound, with a digit more where it would else be taken for all or nothing.
fn tenths(share: f64) -> String {
    if (0.001..0.995).contains(&share) { percent(Some((share * 100.0).round() / 100.0)) } else { percent(Some(share)) }
}

/// A class as plans and results write it.
pub(super) fn class_word(class: RecoveryClass) -> String {
    serde_json::to_value(class).ok().and_then(|value| value.as_str().map(str::to_string)).unwrap_or_default()
}

/// `RECOVERED 17, STUCK 3`.
pub(super) fn class_counts(classes: &[ClassCount]) -> String {
    let words: Vec<String> = classes.iter().map(|count| format!("{} {}", class_word(count.class), count.runs)).collect();
    if words.is_empty() { NONE.into() } else { words.join(", ") }
}

/// A label and what it is of.
fn line(label: &str, text: &str, style: &Style) -> String {
    format!("{}{}", style.pad(label, LABEL.min(style.width)), style.fit(text, style.width.saturating_sub(LABEL)))
}

/// Parts beside a label in one line; what does not fit is counted.
fn listed(label: &str, parts: impl Iterator<Item = String>, style: &Style) -> Option<String> {
    let parts: Vec<String> = parts.map(|part| style.clean(&part)).collect();
    let room = style.width.saturating_sub(LABEL);
    let text = |kept: usize| match parts.len() - kept {
        0 => parts.join("  "),
        more => format!("{}  and {more} more", parts[..kept].join("  ")),
    };
    let kept = (1..=parts.len()).rev().find(|&kept| columns(&text(kept)) <= room || kept == 1)?;
    Some(line(label, &text(kept), style))
}

fn columns_of(label: &str, median: &str, range: &str, seeds: &str, style: &Style) -> String {
    line(label, &format!("{}  {}  {seeds}", style.pad(median, 9), style.pad(range, 22)), style)
}

fn spread_line(spread: &FigureSpread, result: &SeedsResult, style: &Style) -> String {
    let [figure, median, range, seeds] = spread_cells(spread, result);
    columns_of(&figure, &median, &range, &seeds, style)
}

/// A figure over many runs: its name, the median, the range, how many runs have it.
pub(super) fn spread_cells(spread: &FigureSpread, result: &SeedsResult) -> [String; 4] {
    let all = result.recovered.of;
    let seeds = if spread.runs < all { format!("{} of {all}", spread.runs) } else { all.to_string() };
    let never = if spread.never > 0 { format!(", {} never", spread.never) } else { String::new() };
    let waves = if spread.figure == Figure::WaveScore.word() { wave_counts(result) } else { String::new() };
    let (median, range) = (middle(spread), range(spread).unwrap_or_default());
    [labelled(&spread.figure), median, range, format!("{seeds}{never}{waves}")]
}

/// `: WAVES 17, NONE 3`.
pub(super) fn wave_counts(result: &SeedsResult) -> String {
    let word = |verdict| match verdict {
        WaveVerdict::None => "NONE",
        WaveVerdict::Weak => "WEAK",
        WaveVerdict::Waves => "WAVES",
    };
    let words: Vec<String> = result.waves.iter().map(|count| format!("{} {}", word(count.verdict), count.runs)).collect();
    if words.is_empty() { String::new() } else { format!(": {}", words.join(", ")) }
}

/// A figure's name for people.
pub(super) fn spaced(figure: &str) -> String {
    figure.replace('_', " ")
}

/// A figure's label; of latencies, that those alone count which succeeded.
pub(super) fn labelled(figure: &str) -> String {
    let of_successes = Figure::ALL.iter().any(|known| known.word() == figure && known.is_of_successes());
    if of_successes { format!("success {figure}") } else { spaced(figure) }
}

/// The median of a figure: `8.2s`, or `never` where most runs did not come to it.
pub(super) fn middle(spread: &FigureSpread) -> String {
    if spread.runs == 0 { NONE.into() } else { shown(&spread.figure, spread.median) }
}

/// The range of a figure: `7.1s to 9s`; none where all runs have the same.
pub(super) fn range(spread: &FigureSpread) -> Option<String> {
    let (low, high) = (shown(&spread.figure, spread.min), shown(&spread.figure, spread.max));
    (spread.runs > 0 && low != high).then(|| format!("{low} to {high}"))
}

/// A value of a figure as the screens write it; what is infinite never came.
pub(super) fn shown(figure: &str, value: Option<f64>) -> String {
    let unit = Figure::ALL.iter().find(|known| known.word() == figure).map_or(Unit::Count, |known| known.unit());
    match (unit, value) {
        (_, None) => "never".into(),
        (Unit::Share, value) => percent(value),
        (Unit::Rate, value) => rate(value),
        (Unit::Time, Some(seconds)) => millis(Some(seconds * 1e3)),
        (Unit::Factor, value) => factor(value),
        (Unit::Count, Some(n)) if n >= 0.0 && n.fract() == 0.0 => count(n as u64),
        // The median of an even number of seeds lies between two counts.
        (Unit::Count, Some(n)) if n >= 100.0 => count(n.round() as u64),
        (Unit::Count, Some(n)) => number(n),
    }
}

fn worst(result: &SeedsResult, style: &Style) -> Vec<String> {
    let Some(said) = worst_said(result) else { return Vec::new() };
    let room = style.width.saturating_sub(LABEL);
    let label = |(index, text): (usize, &String)| line(if index == 0 { "worst" } else { "" }, text, style);
    style.wrap(&said, room, SENTENCE).iter().enumerate().map(label).collect()
}

/// The worst run in a sentence.
pub(super) fn worst_said(result: &SeedsResult) -> Option<String> {
    result.seeds.iter().find(|row| Some(row.seed) == result.worst).map(said)
}

/// A run in a sentence.
pub(super) fn said(row: &SeedRow) -> String {
    let class = row.class.map_or_else(String::new, |class| format!(", {}", class_word(class)));
    let sentence = row.sentence.clone().filter(|sentence| !sentence.is_empty());
    // A class that is as it should be does not say why the run did not pass.
    let reason = row.reasons.first().filter(|reason| sentence.as_ref().is_none_or(|said| !reason.ends_with(said.as_str())));
    let why: Vec<String> = reason.cloned().into_iter().chain(sentence).collect();
    let outcome = match row.outcome {
        RunOutcome::Pass => "pass",
        RunOutcome::Fail => "fail",
        RunOutcome::Inconclusive => "inconclusive",
        RunOutcome::Aborted => "aborted",
    };
    format!("seed {}: {outcome}{class}{}{}", row.seed, if why.is_empty() { "" } else { ": " }, why.join("; "))
}

/// The gates, those that need a look first, that on the share of seeds among them. Of many that held in every seed, how many.
fn gates(result: &SeedsResult, style: &Style) -> Vec<String> {
    let share = result.share_gate.iter().flat_map(|gate| finding_lines(gate, LABEL, style));
    let mut counts: Vec<&GateCount> = result.gates.iter().collect();
    counts.sort_by_key(|count| (count.fail == 0, count.inconclusive == 0));
    let (urgent, held): (Vec<&GateCount>, Vec<_>) = counts.into_iter().partition(|count| count.fail + count.inconclusive > 0);
    let lines = |count: &GateCount| count_lines(count, style);
    let held = match are_counted(held.len()) {
        true => vec![signed(GateStatus::Pass, LABEL, style) + &held_words(held.len(), "seeds.json")],
        false => held.into_iter().flat_map(lines).collect(),
    };
    share.chain(urgent.into_iter().flat_map(lines)).chain(held).collect()
}

/// What became of a gate over many runs: a failure decides, and then a run without evidence.
pub(super) fn gate_status(count: &GateCount) -> GateStatus {
    match (count.fail, count.inconclusive) {
        (0, 0) => GateStatus::Pass,
        (0, _) => GateStatus::Inconclusive,
        _ => GateStatus::Fail,
    }
}

/// `held in 4 of 6, 1 without evidence`.
pub(super) fn held(count: &GateCount) -> String {
    let all = count.pass + count.fail + count.inconclusive;
    let unknown = if count.inconclusive > 0 { format!(", {} without evidence", count.inconclusive) } else { String::new() };
    format!("held in {} of {all}{unknown}", count.pass)
}

fn count_lines(count: &GateCount, style: &Style) -> Vec<String> {
    gate_lines(gate_status(count), &count.gate, &held(count), count.line, LABEL, style)
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn all() -> [(&'static str, SeedsResult); 4] {
        [
            ("fail", sample::seeds_fail()),
            ("share", sample::seeds_share()),
            ("expected", sample::seeds_expected()),
            ("interrupted", sample::seeds_interrupted()),
        ]
    }

    const REPORT: &str = "reports/quickstart/20261130T065512Z-seed1/";

    #[test]
    fn verdicts_on_many_seeds_look_like_this() {
        for (name, result) in all() {
            sample::golden(&format!("seeds-{name}.txt"), &verdict(&result, &Style::default(), Some(REPORT)));
        }
        let ascii = Style { ascii: true, ..Style::default() };
        sample::golden("seeds-fail-ascii.txt", &verdict(&sample::seeds_fail(), &ascii, Some(REPORT)));
    }

    #[test]
    fn a_verdict_fits_its_screen() {
        for (name, mut result) in all() {
            let gate = GateCount { gate: "g".repeat(90), pass: 2, fail: 1, inconclusive: 3, line: Some(7) };
            for gates in [0, 3, 40] {
                result.gates = vec![gate.clone(); gates];
                for width in [10, 20, 40, 79, 80, 100, 200] {
                    let text = verdict(&result, &Style { width, ..Style::default() }, Some(REPORT));
                    assert!(text.lines().count() <= SCREEN || gates > 0 || width < 79, "{name} {width}:\n{text}");
                    let lines = text.lines().filter(|line| !line.starts_with("report"));
                    let widest = lines.map(columns).max().unwrap();
                    assert!(widest <= width.max(14), "{name} {width}: {widest}\n{text}");
                }
            }
            let text = verdict(&result, &Style::default(), None);
            assert_eq!(
                text.lines().filter(|line| line.starts_with("✗ fail")).count(),
                40 + usize::from(result.share_gate.is_some_and(|gate| gate.status == GateStatus::Fail)),
                "{text}"
            );
        }
    }

    #[test]
    fn gates_that_did_not_hold_are_all_shown_and_a_share_never_contradicts_itself() {
        let mut result = sample::seeds_fail();
        let gate = |fail| GateCount { gate: "errors <= 1%".into(), pass: 6 - fail, fail, inconclusive: 0, line: Some(7) };
        for (gates, held) in [(10, 5), (60, 1)] {
            result.gates = (0..gates).map(|index| gate(u64::from(index % 2 == 0))).collect();
            let text = verdict(&result, &Style::default(), Some(REPORT));
            let shown = |sign| text.lines().filter(|line| line.starts_with(sign)).count();
            assert_eq!((shown("✗ fail"), shown("✓ pass")), (gates / 2, held), "{text}");
            assert_eq!(text.contains("30 gates, each in seeds.json"), gates == 60, "{text}");
        }
        let mut result = sample::seeds_expected();
        for (runs, said) in [(0, "0 of 20 have the expected STUCK"), (20, "20 of 20 STUCK, as expected")] {
            result.recovered.runs = runs;
            assert!(verdict(&result, &Style::default(), None).contains(said));
        }
    }

    #[test]
    fn a_failure_says_first_why_and_losses_of_any_run_are_shown() {
        let mut result = sample::seeds_expected();
        let wide = Style { width: 160, ..Style::default() };
        result.outcome = RunOutcome::Fail;
        result.gates = vec![GateCount { gate: "errors <= 1%".into(), pass: 6, fail: 2, inconclusive: 0, line: Some(7) }];
        let text = verdict(&result, &wide, None);
        assert!(text.starts_with("FAIL: the gate failed in some seed · 20 of 20 STUCK, as expected"), "{text}");
        for (max, shown) in [(0.0, false), (3.0, true)] {
            for figure in [Figure::Duplicates, Figure::Refused] {
                let nought = Some(0.0);
                result.figures.retain(|spread| spread.figure != figure.word());
                let figure = figure.word().to_string();
                result.figures.push(FigureSpread { figure, runs: 20, never: 0, min: nought, median: nought, max: Some(max) });
                let text = verdict(&result, &wide, None);
                let row = |line: &str| line.starts_with(&result.figures.last().unwrap().figure);
                assert_eq!(text.lines().any(row), shown, "{text}");
            }
        }
    }

    #[test]
    fn bounds_are_never_taken_for_certainty() {
        for (share, text) in [(0.0, "0%"), (0.168, "17%"), (0.7513, "75%"), (0.9987, "99.9%"), (0.9999, ">99.9%"), (1.0, "100%")]
        {
            assert_eq!(tenths(share), text);
        }
    }
}
