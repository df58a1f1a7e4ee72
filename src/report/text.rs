//! The verdict on one screen: what came out, the curve that shows it, the figures behind it, where the rest is.

use super::curve::{OTHER_LINES, curve};
use super::layout::{Colour, NONE, Style, columns, count, factor, millis, number, percent, rate};
use super::result::{
    ActionResult, ActionStatus, DestinationResult, FindingResult, GateStatus, RunOutcome, RunResult, StoppedBy, Totals,
    WaveResult, WaveVerdict,
};

/// Lines of a screen.
const SCREEN: usize = 24;
/// Destinations that have a line each; the others are in `result.json`.
const DESTINATIONS: usize = 3;
/// Columns of a label.
const LABEL: usize = 12;

/// The verdict as text of at most 24 lines, each at most `style.width` columns. `report` is where the report is.
pub fn verdict(result: &RunResult, style: &Style, report: Option<&str>) -> String {
    let mut head = vec![header(result, style)];
    head.extend(result.recovery.iter().flat_map(|recovery| style.wrap(&recovery.sentence, style.width, 3)));
    head.push(String::new());
    let mut facts = facts(result, style);
    facts.extend(report.map(|path| label_line("report", path, style)));
    let why = why(result, style);
    let findings = findings(result, style);

    let room = SCREEN.saturating_sub(head.len() + facts.len() + 1);
    let wanted = why.len() + findings.len();
    let height = room.saturating_sub(OTHER_LINES + wanted).clamp(2, 4);
    let curve = curve(result, style, height);
    let room = room.saturating_sub(curve.len());

    let mut lines = head;
    if !curve.is_empty() {
        lines.extend(curve);
        lines.push(String::new());
    }
    lines.extend(bounded(why, findings, room, style));
    lines.extend(facts);
    lines.truncate(SCREEN);
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn header(result: &RunResult, style: &Style) -> String {
    let (word, colour) = match result.outcome {
        RunOutcome::Pass => ("PASS", Colour::Green),
        RunOutcome::Fail => ("FAIL", Colour::Red),
        RunOutcome::Inconclusive => ("INCONCLUSIVE", Colour::Yellow),
        RunOutcome::Aborted => ("ABORTED", Colour::Yellow),
    };
    let mut parts: Vec<String> = Vec::new();
    parts.extend(class_words(result));
    parts.extend(result.stopped.as_ref().map(|stopped| {
        let by = match stopped.by {
            StoppedBy::StopCondition => "stop condition",
            StoppedBy::Signal => stopped.detail.as_str(),
            StoppedBy::Internal => "an error",
        };
        format!("by {by} after {} of {}", millis(Some(result.duration_ms as f64)), millis(Some(result.length_ms as f64)))
    }));
    if !result.cleanup_confirmed {
        parts.push("CLEANUP NOT CONFIRMED".into());
    }
    parts.push(result.plan.name.clone());
    parts.push(format!("seed {}", result.seed));
    parts.extend(result.plan.time_scale.as_ref().map(|scale| format!("time scale {scale}")));
    parts.push(format!("exit {}", result.exit_code));
    let dot = if style.ascii { " - " } else { " · " };
    let rest = style.fit(&parts.join(dot), style.width.saturating_sub(word.len() + 2));
    format!("{}  {rest}", style.paint(colour, word))
}

fn class_words(result: &RunResult) -> Option<String> {
    let word = |class| serde_json::to_value(class).ok().and_then(|value| value.as_str().map(str::to_string));
    let class = word(result.recovery.as_ref()?.class)?;
    Some(match result.plan.expect.and_then(word) {
        Some(expected) if expected == class => format!("{class}, as expected"),
        Some(expected) => format!("{class}, expected {expected}"),
        // An inconclusive run says so once.
        None if class == "INCONCLUSIVE" => return None,
        None => class,
    })
}

fn label_line(label: &str, text: &str, style: &Style) -> String {
    let rest = style.width.saturating_sub(LABEL);
    format!("{}{}", style.pad(label, LABEL), style.fit(text, rest))
}

/// The parts that fit beside a label, in the order of their weight.
fn parts_line(label: &str, parts: &[String], style: &Style) -> String {
    let room = style.width.saturating_sub(LABEL);
    let mut text = String::new();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let gap = if text.is_empty() { "" } else { "  " };
        if text.is_empty() || columns(&text) + columns(gap) + columns(part) <= room {
            text = text + gap + part;
        }
    }
    label_line(label, &text, style)
}

fn facts(result: &RunResult, style: &Style) -> Vec<String> {
    let totals = &result.totals;
    let mut lines = vec![operations(totals, style), attempts(totals, style), latency(result, style)];
    lines.extend(recovery(result, style));
    lines.extend(result.destinations.iter().take(DESTINATIONS).map(|of| destination(of, style)));
    lines.extend(waves(result, style));
    lines.extend(actions(result, style));
    lines.push(generator(result, style));
    if !result.limits_reached.is_empty() {
        let limits: Vec<String> =
            result.limits_reached.iter().map(|limit| format!("{} {}", limit.limit, count(limit.count))).collect();
        lines.push(label_line("limits", &format!("reached: {}", limits.join(", ")), style));
    }
    lines
}

fn operations(totals: &Totals, style: &Style) -> String {
    let parts = |show: fn(u64) -> String| -> Vec<String> {
        let some = |n: u64, word: &str| if n > 0 { format!("{} {word}", show(n)) } else { String::new() };
        vec![
            format!("{} offered", show(totals.operations)),
            format!("{} succeeded", show(totals.succeeded)),
            format!("{} failed", show(totals.failed)),
            some(totals.unresolved, "unresolved"),
            some(totals.refused, "refused"),
            some(totals.dropped, "dropped"),
            some(totals.superseded, "superseded"),
            some(totals.dead_lettered, "dead-lettered"),
        ]
    };
    let exact = parts(count);
    let length: usize = exact.iter().filter(|part| !part.is_empty()).map(|part| columns(part) + 2).sum();
    let fits = length <= style.width.saturating_sub(LABEL) + 2;
    parts_line("operations", &if fits { exact } else { parts(|n| number(n as f64)) }, style)
}

fn attempts(totals: &Totals, style: &Style) -> String {
    let laundered = totals.laundered_retries.filter(|&laundered| laundered > 0.2);
    let parts = [
        count(totals.attempts),
        format!("amplification {}", factor(totals.amplification)),
        format!("retry share {}", percent(totals.retry_share)),
        format!("peak {}", rate(totals.peak_attempts)),
        laundered.map_or(String::new(), |x| format!("laundered {x:.2}")),
    ];
    parts_line("attempts", &parts, style)
}

fn latency(result: &RunResult, style: &Style) -> String {
    let pair = |p50, p99| format!("{}/{}", millis(p50), millis(p99));
    let mut parts = vec!["p50/p99".to_string()];
    for stretch in &result.stretches {
        let latency = &stretch.latency;
        parts.push(format!(
            "{} {}",
            stretch.name,
            if latency.count == 0 { NONE.into() } else { pair(latency.p50_ms, latency.p99_ms) }
        ));
    }
    if result.stretches.is_empty() {
        parts.push(pair(result.totals.latency.p50_ms, result.totals.latency.p99_ms));
    }
    parts_line("latency", &parts, style)
}

fn recovery(result: &RunResult, style: &Style) -> Option<String> {
    let recovery = result.recovery.as_ref()?;
    let time = recovery.recovery_time_ms.map_or_else(|| "none".into(), |ms| format!("after {}", millis(Some(ms))));
    let ratio = recovery.error_window_ratio.map_or(String::new(), |ratio| format!(" ({ratio:.1}x the fault)"));
    let window = recovery.error_window_ms.map_or_else(|| "none".into(), |ms| millis(Some(ms)) + &ratio);
    let parts = [
        time,
        recovery.last_clause.as_ref().map_or(String::new(), |clause| format!("last to clear {clause}")),
        format!("error window {window}"),
        if recovery.relapses > 0 { format!("relapses {}", recovery.relapses) } else { String::new() },
        recovery.projected_drain_ms.map_or(String::new(), |ms| format!("backlog drains in {}", millis(Some(ms)))),
    ];
    Some(parts_line("recovery", &parts, style))
}

fn destination(of: &DestinationResult, style: &Style) -> String {
    let parts = [
        format!(
            "{} attempts, {} of {} succeeded",
            number(of.attempts as f64),
            number(of.succeeded as f64),
            number(of.operations as f64)
        ),
        format!("backlog {} ({})", number(of.backlog as f64), percent(of.backlog_share)),
        format!("p50 {}", millis(of.p50_ms)),
    ];
    parts_line(&style.fit(&of.name, LABEL - 1), &parts, style)
}

/// The waves by tap, the last one first: there they hurt.
fn waves(result: &RunResult, style: &Style) -> Option<String> {
    let taps = &result.waves.as_ref()?.all;
    let seen = [("arrived", &taps.arrived), ("dispatched", &taps.dispatched), ("scheduled", &taps.scheduled)];
    let parts: Vec<String> = seen.iter().filter_map(|(tap, wave)| wave.as_ref().map(|wave| wave_words(tap, wave))).collect();
    (!parts.is_empty()).then(|| parts_line("waves", &parts, style))
}

fn wave_words(tap: &str, wave: &WaveResult) -> String {
    let word = match wave.verdict {
        WaveVerdict::None => return format!("{tap} NONE"),
        WaveVerdict::Weak => "WEAK",
        WaveVerdict::Waves => "WAVES",
    };
    let WaveResult { peak_to_mean, autocorrelation, period_ms, .. } = wave;
    format!("{tap} {word} {peak_to_mean:.1}x every {} (r {autocorrelation:.2})", millis(Some(*period_ms as f64)))
}

/// What the timeline did beside harm, what went wrong first.
fn actions(result: &RunResult, style: &Style) -> Option<String> {
    let mut sorted: Vec<&ActionResult> = result.actions.iter().collect();
    sorted.sort_by_key(|action| (action.undone != Some(false), action.outcome != ActionStatus::Failed));
    let words = |action: &&ActionResult| {
        let undone = if action.undone == Some(false) { ", NOT UNDONE" } else { "" };
        let what = match (action.outcome, action.affected) {
            (ActionStatus::Done, Some(affected)) => format!("{} affected", count(affected)),
            (ActionStatus::Done, None) => "done".into(),
            (ActionStatus::Failed, _) => "FAILED".into(),
            (ActionStatus::Skipped, _) => "left out".into(),
        };
        format!("{} {what}{undone}", action.name)
    };
    (!sorted.is_empty()).then(|| parts_line("actions", &sorted.iter().map(words).collect::<Vec<_>>(), style))
}

fn generator(result: &RunResult, style: &Style) -> String {
    let generator = &result.generator;
    let some = |n: u64, word: &str| if n > 0 { format!("{} {word}", count(n)) } else { String::new() };
    let wasted = result.service.as_ref().and_then(|service| service.wasted_work);
    let parts = [
        format!("lag p50 {} p99 {}", millis(generator.lag_p50_ms), millis(generator.lag_p99_ms)),
        some(generator.late, "late"),
        some(generator.dropped, "dropped"),
        wasted.map_or(String::new(), |share| format!("target: wasted work {}", percent(Some(share)))),
    ];
    parts_line("generator", &parts, style)
}

/// Why the outcome is what it is, as far as neither the sentence above nor the gates below say it.
fn why(result: &RunResult, style: &Style) -> Vec<String> {
    let said = result.recovery.as_ref().map(|recovery| recovery.sentence.as_str());
    let by_sentence = |reason: &str| said.is_some_and(|said| !said.is_empty() && reason.ends_with(said));
    let by_gate = |reason: &str| result.findings.iter().any(|finding| reason.starts_with(&format!("{}: ", finding.gate)));
    let width = style.width.saturating_sub(LABEL);
    let mut lines = Vec::new();
    for reason in result.reasons.iter().filter(|reason| !by_sentence(reason) && !by_gate(reason)) {
        for (index, line) in style.wrap(reason, width, 2).iter().enumerate() {
            lines.push(label_line(if index == 0 { "because" } else { "" }, line, style));
        }
    }
    lines
}

/// The gates, those that need a look first.
fn findings(result: &RunResult, style: &Style) -> Vec<String> {
    let weight = |finding: &&FindingResult| match finding.status {
        GateStatus::Fail => 0,
        GateStatus::Inconclusive => 1,
        GateStatus::Pass => 2,
    };
    let mut sorted: Vec<&FindingResult> = result.findings.iter().collect();
    sorted.sort_by_key(weight);
    sorted.into_iter().map(|finding| finding_line(finding, style)).collect()
}

fn finding_line(finding: &FindingResult, style: &Style) -> String {
    let (sign, plain, word, colour) = match finding.status {
        GateStatus::Pass => ("✓", "+", "pass", Colour::Green),
        GateStatus::Fail => ("✗", "x", "fail", Colour::Red),
        GateStatus::Inconclusive => ("?", "?", "unknown", Colour::Yellow),
    };
    let sign = style.pad(&format!("{} {word}", if style.ascii { plain } else { sign }), LABEL);
    let line = finding.line.map_or(String::new(), |line| format!("  line {line}"));
    let observed = if finding.value.is_some() { "got " } else { "" }.to_string() + &finding.observed;
    // The gate names its bound; where that is a multiple of the baseline, `wanted` adds what it came to.
    let bound = finding.wanted.find('(').map_or(String::new(), |at| format!(" {}", &finding.wanted[at..]));
    let room = style.width.saturating_sub(LABEL);
    let room_for_gate = room.saturating_sub(columns(&style.fit(&format!("  {observed}{line}"), room / 2)));
    let fits = columns(&finding.gate) + columns(&bound) <= room_for_gate;
    let gate = style.fit(&format!("{}{}", finding.gate, if fits { &bound } else { "" }), room_for_gate);
    let rest = style.fit(&format!("{gate}  {observed}{line}"), room);
    format!("{}{rest}", style.paint(colour, &sign))
}

/// As much as there is room for; what is left out is said.
fn bounded(why: Vec<String>, findings: Vec<String>, room: usize, style: &Style) -> Vec<String> {
    let findings_least = findings.len().min(room / 2);
    let mut lines = cut(why, room - findings_least, "reasons", style);
    lines.extend(cut(findings, room.saturating_sub(lines.len()), "gates", style));
    lines
}

fn cut(mut lines: Vec<String>, room: usize, what: &str, style: &Style) -> Vec<String> {
    if lines.len() > room {
        let left_out = lines.len() - room.saturating_sub(1);
        lines.truncate(room.saturating_sub(1));
        if room > 0 {
            let text = match what {
                "gates" => format!("and {left_out} more gates, see result.json"),
                _ => "and more, see result.json".to_string(),
            };
            lines.push(label_line("", &text, style));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use std::path::Path;

    /// Compares with a file of `tests/golden`, or rewrites it where `UPDATE_GOLDEN` is set.
    fn check(name: &str, text: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, text).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(text == golden, "{name} differs; UPDATE_GOLDEN=1 rewrites it. Now:\n{text}");
    }

    fn all() -> [(&'static str, RunResult); 4] {
        [
            ("pass", sample::pass()),
            ("stuck", sample::stuck()),
            ("inconclusive", sample::inconclusive()),
            ("aborted", sample::aborted()),
        ]
    }

    const REPORT: &str = "reports/quickstart/20261130T065512Z-seed7/";

    #[test]
    fn verdicts_look_like_this() {
        for (name, result) in all() {
            check(&format!("verdict-{name}.txt"), &verdict(&result, &Style::default(), Some(REPORT)));
        }
        let ascii = Style { ascii: true, ..Style::default() };
        check("verdict-stuck-ascii.txt", &verdict(&sample::stuck(), &ascii, Some(REPORT)));
    }

    #[test]
    fn a_verdict_fits_its_screen() {
        for (name, result) in all() {
            for width in [20, 40, 79, 80, 100, 200] {
                for ascii in [false, true] {
                    let style = Style { width, ascii, ..Style::default() };
                    let text = verdict(&result, &style, Some(REPORT));
                    assert!(text.lines().count() <= SCREEN, "{name} {width}:\n{text}");
                    assert!(text.lines().all(|line| columns(line) <= width), "{name} {width}:\n{text}");
                    assert!(!ascii || text.is_ascii(), "{name}:\n{text}");
                    assert!(!text.contains('\u{1b}'));
                }
            }
        }
    }

    #[test]
    fn colour_adds_nothing_but_colour() {
        for (name, result) in all() {
            let plain = verdict(&result, &Style::default(), None);
            let coloured = verdict(&result, &Style { colour: true, ..Style::default() }, None);
            let mut stripped = String::new();
            for (index, part) in coloured.split('\u{1b}').enumerate() {
                stripped.push_str(if index == 0 { part } else { part.split_once('m').unwrap().1 });
            }
            let bare = |text: &str| text.lines().map(|line| line.trim_end().to_string()).collect::<Vec<_>>();
            assert_eq!(bare(&stripped), bare(&plain), "{name}");
            assert_ne!(coloured, plain, "{name}");
        }
    }

    #[test]
    fn what_needs_a_look_is_never_left_out_for_what_passed() {
        let text = verdict(&sample::inconclusive(), &Style::default(), Some(REPORT));
        assert!(text.contains("✗ fail") && text.contains("more gates, see result.json"), "{text}");
        assert!(text.contains("limits") && text.contains("max_attempts 12"), "{text}");
    }

    #[test]
    fn what_waited_for_a_busy_client_is_no_lateness_of_the_generator() {
        use crate::metrics::{Counts, RunRecord, Window};
        for (late_by_generator, shown) in [(0, false), (2, true)] {
            let all = Counts { late_starts: 40, late_by_generator, ..Counts::default() };
            let record = RunRecord { windows: vec![Window { all, ..Window::default() }], ..RunRecord::default() };
            let result = super::super::result::result(&record, &sample::verdict_of_nothing(), &sample::plan());
            assert_eq!((result.generator.late, result.windows[0].late_starts), (late_by_generator, 40));
            assert_eq!(verdict(&result, &Style::default(), None).contains("2 late"), shown);
        }
    }

    #[test]
    fn waves_and_actions_have_a_line_each() {
        let wave = |verdict| WaveResult {
            verdict,
            period_ms: 60_000,
            implied: true,
            peak_to_mean: 59.8,
            autocorrelation: 0.997,
            periods: 9,
        };
        let taps = super::super::result::TapsResult {
            scheduled: Some(wave(WaveVerdict::Waves)),
            dispatched: Some(wave(WaveVerdict::None)),
            arrived: Some(wave(WaveVerdict::Weak)),
        };
        let action = |name: &str, outcome, affected, undone| ActionResult {
            name: name.into(),
            kind: "exec".into(),
            fleet: None,
            at_ms: 1,
            outcome,
            affected,
            detail: String::new(),
            undone,
        };
        let mut result = sample::stuck();
        result.waves = Some(super::super::result::WavesResult { from_ms: 0, score: None, all: taps, fleets: Vec::new() });
        result.actions = vec![
            action("hold", ActionStatus::Done, Some(1_200), None),
            action("stop", ActionStatus::Done, None, Some(false)),
            action("page", ActionStatus::Failed, None, Some(true)),
        ];
        let text = verdict(&result, &Style { width: 120, ..Style::default() }, None);
        for line in [
            "waves       arrived WEAK 59.8x every 1m (r 1.00)  dispatched NONE  scheduled WAVES 59.8x every 1m (r 1.00)",
            "actions     stop done, NOT UNDONE  page FAILED  hold 1,200 affected",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn hostile_and_empty_results_make_no_trouble() {
        let mut result = sample::stuck();
        result.plan.name = "x\u{1b}[31m\n".repeat(100);
        result.reasons = vec!["y\n\u{7}".repeat(400); 40];
        result.phases[1].name = "\u{1b}]0;gone\u{7}".into();
        result.cleanup_confirmed = false;
        let text = verdict(&result, &Style::default(), Some("z\u{1b}"));
        assert!(!text.contains(['\u{1b}', '\u{7}']));
        assert!(text.lines().count() <= SCREEN && text.contains("CLEANUP NOT CONFIRMED"), "{text}");

        let empty = super::super::result::result(&Default::default(), &sample::verdict_of_nothing(), &sample::plan());
        let text = verdict(&empty, &Style::default(), None);
        assert!(text.starts_with("INCONCLUSIVE") && text.contains("n/a"), "{text}");
    }
}
