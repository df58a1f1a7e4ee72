//! The figures behind a verdict, a line for each kind of them.

use super::lines::{LABEL, label_line, parts_line, parts_lines};
use super::people::people;
use crate::report::layout::{NONE, Style, columns, count, factor, millis, number, percent, rate, total};
use crate::report::result::{
    ActionResult, ActionStatus, DestinationResult, FaultResult, ProxyResult, RunResult, ServiceResult, Totals, WaveResult,
    WaveVerdict,
};

/// Destinations that have a line each; the others are in `result.json`.
const DESTINATIONS: usize = 3;
/// Proxies that have a line each.
const PROXIES: usize = 3;
/// Columns of a line that may be as long as what it says.
const UNBROKEN: usize = 400;
/// Above this, retries that a requeue made look like first attempts are worth a warning.
const WORTH_A_WARNING: f64 = 0.2;

/// The figures. Told tightly, what there is several of has a line.
pub(super) fn facts(result: &RunResult, style: &Style, tight: bool) -> Vec<String> {
    let totals = &result.totals;
    let mut lines = operations(totals, style);
    lines.extend(attempts(totals, style));
    lines.extend(latency(result, style));
    lines.extend(recovery(result, style));
    let shown = if tight { 1 } else { DESTINATIONS };
    lines.extend(result.destinations.iter().take(shown).map(|of| destination(of, style)));
    lines.extend(result.proxies.iter().take(if tight { 1 } else { PROXIES }).map(|of| proxy(of, style)));
    lines.extend(unclear_faults(result, style));
    lines.extend(waves(result, style));
    lines.extend(people(result, style, tight));
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

/// The figures of the whole run, each with its label; what goes on under a label has an empty one.
pub(in crate::report) fn facts_of(result: &RunResult) -> Vec<(String, String)> {
    let style = Style { width: UNBROKEN, ..Style::default() };
    let parted = |line: String| {
        let mut used = 0;
        let label = |c: &char| {
            used += columns(c.encode_utf8(&mut [0; 4]));
            used <= LABEL
        };
        let label: String = line.chars().take_while(label).collect();
        (label.trim().to_string(), line[label.len()..].trim().replace("  ", " · "))
    };
    facts(result, &style, false).into_iter().map(parted).collect()
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

fn latency(result: &RunResult, style: &Style) -> Vec<String> {
    let pair = |p50, p99| format!("{}/{}", millis(p50), millis(p99));
    // Of operations that failed there is no latency: they might have taken for ever.
    let mut parts = vec!["success p50/p99".to_string()];
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
    parts_lines("latency", &parts, 2, style)
}

fn recovery(result: &RunResult, style: &Style) -> Vec<String> {
    let Some(recovery) = &result.recovery else { return Vec::new() };
    let time = recovery.recovery_time_ms.map_or_else(|| "none".into(), |ms| format!("after {}", millis(Some(ms))));
    let ratio = recovery.error_window_ratio.map_or(String::new(), |ratio| format!(" ({ratio:.1}x the fault)"));
    let window = recovery.error_window_ms.map_or_else(|| "none".into(), |ms| millis(Some(ms)) + &ratio);
    // Whose it is: our clients' where nothing is said.
    let at = recovery.at.as_ref().map_or(String::new(), |at| format!("at {at}: "));
    let parts = [
        at + &time,
        recovery.last_clause.as_ref().map_or(String::new(), |clause| format!("last to clear {clause}")),
        format!("error window {window}"),
        if recovery.relapses > 0 { format!("relapses {}", recovery.relapses) } else { String::new() },
        recovery.projected_drain_ms.map_or(String::new(), |ms| format!("backlog drains in {}", millis(Some(ms)))),
    ];
    parts_lines("recovery", &parts, 2, style)
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
        format!("success p50 {}", millis(of.p50_ms)),
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
        some(total(of.statuses.range(400..).map(|(_, n)| *n)), "refused or failed"),
        some(bad, "not answered"),
        of.wave.as_ref().map_or(String::new(), |wave| wave_words("waves", wave)),
    ];
    parts_line(&style.fit(&of.name, LABEL - 1), &parts, style)
}

/// Faults that did not happen as the plan has them, and what they met all the same.
fn unclear_faults(result: &RunResult, style: &Style) -> Vec<String> {
    let part = |fault: &FaultResult| {
        let touched = fault.touched.map_or_else(|| "unknown".into(), count);
        format!("{}: not as planned, touched {touched}", fault.name)
    };
    let parts: Vec<String> = result.faults.iter().filter(|fault| fault.failed.is_some()).map(part).collect();
    if parts.is_empty() { Vec::new() } else { parts_lines("faults", &parts, 2, style) }
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
