//! The verdict on one screen: what came out, the curve that shows it, the figures behind it, where the rest is.

use super::curve::curve;
use super::layout::{Colour, NONE, Style, columns, count, factor, millis, number, percent, rate};
use super::result::{
    ActionResult, ActionStatus, DestinationResult, FindingResult, GateStatus, ProxyResult, RunResult, ServiceResult, StoppedBy,
    Totals, WaveResult, WaveVerdict,
};
use super::seeds_text::headed;

/// Lines of a screen.
const SCREEN: usize = 24;
/// Destinations that have a line each; the others are in `result.json`.
const DESTINATIONS: usize = 3;
/// Proxies that have a line each.
const PROXIES: usize = 3;
/// Columns of a label.
const LABEL: usize = 12;
/// Above this, retries that a requeue made look like first attempts are worth a warning.
const WORTH_A_WARNING: f64 = 0.2;

/// How a screen is shared out: lines of goodput in the curve, whether the facts are told in few lines, lines of the sentence.
type Shares = (usize, bool, usize);
/// What gives way to the gates, in this order: goodput's height, facts, the curve, the sentence.
const SHARES: [Shares; 7] = [(4, false, 3), (3, false, 3), (2, false, 3), (2, true, 3), (1, true, 3), (0, true, 3), (0, true, 1)];
/// From here on what passed is counted rather than listed.
const LISTED: usize = 2;

/// The verdict as text of at most 24 lines, each at most `style.width` columns. `report` is where the report is.
pub fn verdict(result: &RunResult, style: &Style, report: Option<&str>) -> String {
    let below = Below::of(result, style);
    let mut last = (Vec::new(), Vec::new());
    for (index, shares) in SHARES.into_iter().enumerate() {
        last = around(result, style, report, shares);
        let room = SCREEN.saturating_sub(last.0.len() + last.1.len());
        if room >= if index < LISTED { below.wanted() } else { below.needed() } {
            break;
        }
    }
    let (mut lines, facts) = last;
    let room = SCREEN.saturating_sub(lines.len() + facts.len());
    lines.extend(below.bounded(room, style));
    lines.extend(facts);
    lines.truncate(SCREEN);
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// What stands above the reasons and gates, and what below.
fn around(result: &RunResult, style: &Style, report: Option<&str>, (height, tight, said): Shares) -> (Vec<String>, Vec<String>) {
    let mut head = vec![header(result, style)];
    head.extend(result.recovery.iter().flat_map(|recovery| style.wrap(&recovery.sentence, style.width, said)));
    head.push(String::new());
    let curve = curve(result, style, height);
    if !curve.is_empty() {
        head.extend(curve);
        head.push(String::new());
    }
    let mut facts = facts(result, style, tight);
    facts.extend(report.map(|path| label_line("report", path, style)));
    (head, facts)
}

fn header(result: &RunResult, style: &Style) -> String {
    let mut parts: Vec<String> = class_words(result).into_iter().collect();
    if !result.cleanup_confirmed {
        parts.push("CLEANUP NOT CONFIRMED".into());
    }
    parts.extend(result.stopped.as_ref().map(|stopped| {
        let by = match stopped.by {
            StoppedBy::StopCondition => "stop condition",
            StoppedBy::Signal => stopped.detail.as_str(),
            StoppedBy::Internal => "an error",
        };
        format!("by {by} after {} of {}", millis(Some(result.duration_ms as f64)), millis(Some(result.length_ms as f64)))
    }));
    let at = parts.len();
    parts.push(format!("seed {}", result.seed));
    parts.extend(result.plan.time_scale.as_ref().map(|scale| format!("time scale {scale}")));
    // Of all that stands here the name is known best, so it is what gives way.
    let room = style.width.saturating_sub(columns(&headed(result.outcome, &parts, result.exit_code, &style.plain())) + 3);
    let name = style.fit(&result.plan.name, room);
    if columns(&name) >= columns(&result.plan.name).min(4) {
        parts.insert(at, name);
    }
    headed(result.outcome, &parts, result.exit_code, style)
}

/// The class in words, and whether it was expected.
pub(super) fn class_words(result: &RunResult) -> Option<String> {
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

/// The parts beside a label, in at most so many lines; what does not fit is counted.
fn parts_lines(label: &str, parts: &[String], most: usize, style: &Style) -> Vec<String> {
    let room = style.width.saturating_sub(LABEL);
    let mut texts: Vec<String> = vec![String::new()];
    let parts: Vec<&String> = parts.iter().filter(|part| !part.is_empty()).collect();
    for (index, part) in parts.iter().enumerate() {
        let after = parts.len() - index - 1;
        let more = |left: usize| format!("  and {left} more");
        let text = texts.last().map_or("", String::as_str);
        let gap = if text.is_empty() { "" } else { "  " };
        // On the last line something stays free to say that there is more.
        let kept = if texts.len() < most || after == 0 { 0 } else { columns(&more(after)) };
        if text.is_empty() || columns(text) + columns(gap) + columns(part) + kept <= room {
            let longer = format!("{text}{gap}{part}");
            texts.pop();
            texts.push(longer);
        } else if texts.len() < most {
            texts.push(part.to_string());
        } else {
            let said = style.fit(text, room.saturating_sub(columns(&more(after + 1)))) + &more(after + 1);
            texts.pop();
            texts.push(said);
            break;
        }
    }
    let line = |(index, text): (usize, &String)| label_line(if index == 0 { label } else { "" }, text, style);
    texts.iter().enumerate().map(line).collect()
}

/// The figures. Told tightly, what there is several of has a line.
fn facts(result: &RunResult, style: &Style, tight: bool) -> Vec<String> {
    let totals = &result.totals;
    let mut lines = operations(totals, style);
    lines.extend(attempts(totals, style));
    lines.push(latency(result, style));
    lines.extend(recovery(result, style));
    let shown = if tight { 1 } else { DESTINATIONS };
    lines.extend(result.destinations.iter().take(shown).map(|of| destination(of, style)));
    lines.extend(result.proxies.iter().take(if tight { 1 } else { PROXIES }).map(|of| proxy(of, style)));
    lines.extend(waves(result, style));
    lines.extend(actions(result, style, if tight { 1 } else { 3 }));
    lines.push(generator(result, style));
    lines.extend(target(result, style));
    if !result.limits_reached.is_empty() {
        let limits: Vec<String> =
            result.limits_reached.iter().map(|limit| format!("{} {}", limit.limit, count(limit.count))).collect();
        lines.push(label_line("limits", &format!("reached: {}", limits.join(", ")), style));
    }
    lines
}

/// A count and its word; nothing where it is nought.
fn some(n: u64, word: &str) -> String {
    if n > 0 { format!("{} {word}", count(n)) } else { String::new() }
}

/// How the operations ended: no loss is left out, so the figures are short before they take a second line.
fn operations(totals: &Totals, style: &Style) -> Vec<String> {
    let parts = |show: fn(u64) -> String| -> Vec<String> {
        let some = |n: u64, word: &str| if n > 0 { format!("{} {word}", show(n)) } else { String::new() };
        vec![
            format!("{} offered", show(totals.operations)),
            format!("{} succeeded", show(totals.succeeded)),
            format!("{} failed", show(totals.failed)),
            some(totals.unresolved, "unresolved"),
            some(totals.dead_lettered, "dead-lettered"),
            some(totals.refused, "refused"),
            some(totals.dropped, "dropped"),
            some(totals.superseded, "superseded"),
        ]
    };
    let short = || parts_lines("operations", &parts(|n| number(n as f64)), 1, style);
    let exact = parts_lines("operations", &parts(count), 2, style);
    let whole = |lines: &[String]| !lines.iter().any(|line| line.ends_with(" more"));
    if exact.len() > 1 && whole(&short()) { short() } else { exact }
}

fn attempts(totals: &Totals, style: &Style) -> Vec<String> {
    let parts = [
        count(totals.attempts),
        format!("amplification {}", factor(totals.amplification)),
        format!("retry share {}", percent(totals.retry_share)),
        format!("peak {}", rate(totals.peak_attempts)),
    ];
    let laundered = totals.laundered_retries.filter(|&laundered| laundered > WORTH_A_WARNING);
    let held = [
        laundered.map_or(String::new(), |x| format!("laundered {x:.2}: retries that pass for first attempts")),
        some(totals.budget_refused, "over budget"),
        some(totals.throttled, "held by breaker or throttle"),
    ];
    let mut lines = vec![parts_line("attempts", &parts, style)];
    if held.iter().any(|part| !part.is_empty()) {
        lines.extend(parts_lines("", &held, 2, style));
    }
    lines
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

/// What passed a proxy of the plan.
fn proxy(of: &ProxyResult, style: &Style) -> String {
    let bad = of.resets + of.unanswered + of.unreached;
    let parts = [
        format!("{} requests", count(of.requests)),
        format!("amplification {}", factor(of.amplification)),
        format!("retry share {}", percent(of.retry_share)),
        format!("p99 {}", millis(of.p99_ms)),
        some(of.statuses.range(400..).map(|(_, n)| n).sum(), "refused or failed"),
        some(bad, "not answered"),
        of.wave.as_ref().map_or(String::new(), |wave| wave_words("waves", wave)),
    ];
    parts_line(&style.fit(&of.name, LABEL - 1), &parts, style)
}

/// The waves by tap, the last one first: there they hurt.
fn waves(result: &RunResult, style: &Style) -> Option<String> {
    let taps = &result.waves.as_ref()?.all;
    let seen = [("arrived", &taps.arrived), ("dispatched", &taps.dispatched), ("scheduled", &taps.scheduled)];
    let parts: Vec<String> = seen.iter().filter_map(|(tap, wave)| wave.as_ref().map(|wave| wave_words(tap, wave))).collect();
    let none = "unknown: too short, or too little traffic, to see them in";
    Some(if parts.is_empty() { label_line("waves", none, style) } else { parts_line("waves", &parts, style) })
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
fn actions(result: &RunResult, style: &Style, most: usize) -> Vec<String> {
    let mut sorted: Vec<&ActionResult> = result.actions.iter().collect();
    sorted.sort_by_key(|action| (action.undone != Some(false), action.outcome != ActionStatus::Failed));
    let words = |action: &&ActionResult| {
        let undone = if action.undone == Some(false) { ", NOT UNDONE" } else { "" };
        let what = match (action.outcome, action.affected) {
            (ActionStatus::Done, Some(affected)) => affected_words(action, affected, result),
            // Of a change of the service the detail is what changed, in a few words.
            (ActionStatus::Done, None) if action.kind == "service" && !action.detail.is_empty() => action.detail.clone(),
            (ActionStatus::Done, None) => "done".into(),
            (ActionStatus::Failed, _) => "FAILED".into(),
            (ActionStatus::Skipped, _) => "left out".into(),
        };
        format!("{} {}: {what}{undone}", millis(Some(action.at_ms as f64)), action.name)
    };
    let parts: Vec<String> = sorted.iter().map(words).collect();
    if parts.is_empty() { Vec::new() } else { parts_lines("actions", &parts, most, style) }
}

/// `200 workers`.
fn affected_words(action: &ActionResult, affected: u64, result: &RunResult) -> String {
    let workers = result.destinations.iter().any(|of| Some(&of.fleet) == action.fleet.as_ref());
    let what = match (action.kind.as_str(), workers) {
        ("drop_backlog", _) => "operation",
        ("restart" | "set_policy" | "scale", true) => "worker",
        ("restart" | "set_policy" | "scale" | "pause" | "resume", false) => "client",
        ("pause" | "resume" | "set_lane" | "set_limit", true) => "destination",
        _ => return format!("{} affected", count(affected)),
    };
    format!("{} {what}{}", count(affected), if affected == 1 { "" } else { "s" })
}

fn generator(result: &RunResult, style: &Style) -> String {
    let generator = &result.generator;
    let wasted = result.service.as_ref().and_then(|service| service.wasted_work);
    let parts = [
        format!("lag p50 {} p99 {}", millis(generator.lag_p50_ms), millis(generator.lag_p99_ms)),
        some(generator.late, "late"),
        some(generator.dropped, "dropped"),
        wasted.map_or(String::new(), |share| format!("target: wasted work {}", percent(Some(share)))),
    ];
    parts_line("generator", &parts, style)
}

/// What the built-in target refused and why, what it did again, and, where there are several services, each and their calls.
fn target(result: &RunResult, style: &Style) -> Vec<String> {
    let Some(service) = &result.service else { return Vec::new() };
    let causes_of_all = causes(service);
    let mut lines = if causes_of_all.is_empty() { Vec::new() } else { parts_lines("target", &causes_of_all, 2, style) };
    for (name, of) in &service.services {
        let parts = [format!("{name}: {} requests", count(of.arrived)), some(of.served, "served"), some(of.failed, "failed")];
        lines.extend(parts_lines("", &[parts.to_vec(), causes(of)].concat(), 2, style));
    }
    for call in &service.calls {
        let each = call.attempts as f64 / call.calls.max(1) as f64;
        let parts = [
            format!("{} → {}", call.from, call.to),
            format!("{} calls", count(call.calls)),
            format!("{each:.2} attempts each"),
            some(call.failed, "failed"),
        ];
        lines.push(parts_line("calls", &parts, style));
    }
    lines
}

/// What a service refused, dropped or lost, and what it did again, in words.
fn causes(service: &ServiceResult) -> Vec<String> {
    let causes = [
        (service.limited, "limited"),
        (service.queue_full, "found the queue full"),
        (service.memory_full, "found the memory full"),
        (service.not_admitted, "not admitted"),
        (service.shed, "shed"),
        (service.expired, "expired"),
        (service.dropped_by_codel, "dropped by CoDel"),
        (service.backlog_rejected, "refused with the backlog"),
        (service.lost, "lost in a restart"),
        (service.duplicates_suppressed, "duplicates suppressed"),
        (service.duplicates_executed, "done again"),
    ];
    causes.into_iter().map(|(count, what)| some(count, what)).filter(|part| !part.is_empty()).collect()
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

/// The reasons and the gates, before it is known how many lines they have.
struct Below {
    why: Vec<String>,
    /// Gates that failed, then those without evidence.
    urgent: Vec<String>,
    passed: Vec<String>,
}

impl Below {
    fn of(result: &RunResult, style: &Style) -> Self {
        let lines = |status| result.findings.iter().filter(move |finding| finding.status == status);
        let urgent = lines(GateStatus::Fail).chain(lines(GateStatus::Inconclusive));
        Self {
            why: why(result, style),
            urgent: urgent.map(|finding| finding_line(finding, style)).collect(),
            passed: lines(GateStatus::Pass).map(|finding| finding_line(finding, style)).collect(),
        }
    }

    /// Lines that all of it takes.
    fn wanted(&self) -> usize {
        self.why.len() + self.urgent.len() + self.passed.len()
    }

    /// Lines that it takes to show every gate that did not pass, and to say that there is more.
    fn needed(&self) -> usize {
        self.why.len().min(2) + self.urgent.len() + self.passed.len().min(1)
    }

    /// As much as there is room for; what is left out is said. A gate that did not pass has the first claim to a line.
    fn bounded(self, room: usize, style: &Style) -> Vec<String> {
        let rest = room.saturating_sub(self.urgent.len());
        let for_why = rest - self.passed.len().min(rest / 2).max(usize::from(rest > 0 && !self.passed.is_empty()));
        let mut lines = self.why;
        cut(&mut lines, for_why, style, |_| "and more, see result.json".to_string());
        let urgent = self.urgent.len();
        let mut gates = self.urgent;
        gates.extend(self.passed);
        let all = gates.len();
        cut(&mut gates, room.saturating_sub(lines.len()), style, |kept| match urgent.saturating_sub(kept) {
            0 => format!("and {} more gates, see result.json", all - kept),
            bad => format!("and {} more gates ({bad} failed or unknown), see result.json", all - kept),
        });
        lines.extend(gates);
        lines
    }
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

/// Cuts lines to those there is room for; the last says what is missing, from how many are kept.
fn cut(lines: &mut Vec<String>, room: usize, style: &Style, missing: impl Fn(usize) -> String) {
    if lines.len() > room {
        lines.truncate(room.saturating_sub(1));
        if room > 0 {
            lines.push(label_line("", &missing(lines.len()), style));
        }
    }
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
    fn what_passed_a_proxy_has_a_line_and_says_so_where_retries_are_not_known() {
        let mut result = sample::stuck();
        let proxy = ProxyResult {
            name: "provider".into(),
            connects: 7,
            requests: 12_345,
            repeats: 8_000,
            unknown: 0,
            amplification: Some(2.84),
            retry_share: Some(0.65),
            peak_requests: Some(300.0),
            classes: [("2xx".to_string(), 4_000)].into(),
            statuses: [(200, 4_000), (429, 300), (503, 8_000)].into(),
            resets: 40,
            unanswered: 4,
            unreached: 1,
            p50_ms: Some(2.0),
            p99_ms: Some(31.0),
            peak_in_flight: 60,
            wave: None,
            windows: Vec::new(),
        };
        let unclear = ProxyResult { name: "cache".into(), amplification: None, retry_share: None, ..proxy.clone() };
        result.proxies = vec![proxy, unclear];
        let style = Style { width: 120, ..Style::default() };
        let text = verdict(&result, &style, None);
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_string();
        assert_eq!(
            line("provider"),
            "provider    12,345 requests  amplification 2.84x  retry share 65%  p99 31ms  8,300 refused or failed  45 not answered"
        );
        assert!(line("cache").contains("amplification n/a  retry share n/a"), "{text}");
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
        let action = |name: &str, kind: &str, at_ms, outcome, affected, undone| ActionResult {
            name: name.into(),
            kind: kind.into(),
            fleet: None,
            at_ms,
            outcome,
            affected,
            detail: String::new(),
            undone,
        };
        let mut result = sample::stuck();
        result.waves = Some(super::super::result::WavesResult { from_ms: 0, score: None, all: taps, fleets: Vec::new() });
        result.actions = vec![
            action("hold", "pause", 900_000, ActionStatus::Done, Some(1_200), None),
            action("stop", "exec", 2_000, ActionStatus::Done, None, Some(false)),
            action("page", "http", 2_000, ActionStatus::Failed, None, Some(true)),
        ];
        let text = verdict(&result, &Style { width: 120, ..Style::default() }, None);
        for line in [
            "waves       arrived WEAK 59.8x every 1m (r 1.00)  dispatched NONE  scheduled WAVES 59.8x every 1m (r 1.00)",
            "actions     2s stop: done, NOT UNDONE  2s page: FAILED  15m hold: 1,200 clients",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        let stall = |name: &str, at_ms, what: &str| ActionResult {
            detail: what.into(),
            ..action(name, "service", at_ms, ActionStatus::Done, None, None)
        };
        result.actions.extend([stall("stall", 1_000_000, "capacity 0%"), stall("stall-end", 1_010_000, "capacity 100%")]);
        let text = verdict(&result, &Style { width: 160, ..Style::default() }, None);
        assert!(text.contains("stall: capacity 0%  16m50s stall-end: capacity 100%"), "{text}");
        let action = result.actions[0].clone();
        result.actions = vec![action; 20];
        let text = verdict(&result, &Style::default(), None);
        assert!(text.contains("15m hold: 1,200 clients  and 14 more\n"), "{text}");
        result.waves =
            Some(super::super::result::WavesResult { from_ms: 0, score: None, all: Default::default(), fleets: Vec::new() });
        assert!(verdict(&result, &Style::default(), None).contains("waves       unknown"));
    }

    #[test]
    fn no_loss_and_nothing_held_back_is_left_out() {
        let mut result = sample::stuck();
        let totals = &mut result.totals;
        (totals.dead_lettered, totals.dropped, totals.superseded) = (5_853, 12_345, 77_000);
        (totals.budget_refused, totals.throttled, totals.laundered_retries) = (1_234, 5_678, Some(0.45));
        let text = verdict(&result, &Style::default(), Some(REPORT));
        for part in ["5,853 dead-lettered", "77,000 superseded", "1,234 over budget", "5,678 held by breaker", "laundered 0.45"] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        result.totals.laundered_retries = Some(0.19);
        assert!(!verdict(&result, &Style::default(), None).contains("laundered"));
    }

    #[test]
    fn every_gate_that_did_not_pass_has_a_line_whatever_else_there_is() {
        let long = "because of everything, ".repeat(20);
        for (failed, unknown, passed) in [(1, 0, 0), (2, 0, 12), (2, 3, 12), (5, 2, 1), (4, 0, 0)] {
            let mut result = sample::pass();
            let gate = result.findings[0].clone();
            let gates = |n, status| std::iter::repeat_n(FindingResult { status, ..gate.clone() }, n);
            let all = gates(passed, GateStatus::Pass).chain(gates(unknown, GateStatus::Inconclusive));
            result.findings = all.chain(gates(failed, GateStatus::Fail)).collect();
            let recovery = result.recovery.as_mut().unwrap();
            recovery.sentence = long.clone();
            result.reasons = vec!["something else".into(), long.clone()];
            (result.totals.dead_lettered, result.totals.dropped, result.totals.throttled) = (5_853, 12_345, 9);
            let text = verdict(&result, &Style::default(), Some(REPORT));
            let shown = |sign| text.lines().filter(|line| line.starts_with(sign)).count();
            assert_eq!((shown("✗ fail"), shown("? unknown")), (failed, unknown), "{failed} {unknown} {passed}\n{text}");
            assert!(text.contains(REPORT) && text.lines().count() <= SCREEN, "{text}");
        }
    }

    #[test]
    fn the_exit_code_is_never_cut() {
        let mut result = sample::aborted();
        result.plan.name = "a plan with a name that is long".repeat(3);
        result.plan.time_scale = Some("1/20".into());
        for (width, said) in [(80, "of 1m · a pl… · seed 7 · time scale 1/20"), (60, "after 23s of 1m"), (40, "by SIGINT")] {
            let text = verdict(&result, &Style { width, ..Style::default() }, None);
            let first = text.lines().next().unwrap();
            assert!(first.ends_with("exit 130") && first.contains(said), "{first}");
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
