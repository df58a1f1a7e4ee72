//! Policies as text and JSON: the list of presets; one policy spelled out, with the waits before its retries drawn.

use super::curve::blocks;
use super::layout::{Style, columns, millis};
use super::plan_text::wrap;
use crate::config::{Node, Value};
use crate::plan::emit;
use crate::plan::presets::Preset;
use crate::policy::audit::{Range, ranges};
use crate::policy::{Attempts, Backoff, HedgeConfig, Policy, RetryOn};
use crate::time::Span;
use serde_json::json;

/// How many retries are drawn.
const DRAWN: usize = 10;
/// How many where the longest wait comes later than that.
const MOST_DRAWN: usize = 20;
/// Columns of a label.
const LABEL: usize = 8;
/// Columns of a range's figures.
const FIGURE: usize = 9;
/// The widest bar: a wider one says no more.
const WIDEST: usize = 100;

/// A policy that is shown, and where it is from.
pub struct Shown<'a> {
    /// Its name.
    pub name: &'a str,
    /// The preset that it is, if it is one.
    pub preset: Option<&'a Preset>,
    /// As a plan would spell it out.
    pub node: &'a Node,
    /// What was read from that.
    pub policy: &'a Policy,
}

/// The presets, a line each.
pub fn list(presets: &[Preset], style: &Style) -> String {
    let widest = |text: fn(&Preset) -> &str| presets.iter().map(|preset| columns(text(preset))).max().unwrap_or(0);
    let name = widest(|preset| preset.name) + 2;
    let line = |preset: &Preset| {
        let client = format!("{} ({})", preset.client, preset.version);
        let width = style.width.saturating_sub(name).max(20);
        let below = whole(&client, width, style).into_iter().chain(whole(&preset.summary, width, style));
        let heads = std::iter::once(preset.name).chain(std::iter::repeat(""));
        heads.zip(below).map(|(head, line)| style.pad(head, name) + &line + "\n").collect::<String>()
    };
    let lines: String = presets.iter().map(line).collect();
    let hint = "`stormwake policies show NAME` spells one out. In a plan, write `policy: NAME`; or `preset: NAME` with what it should change beside it.";
    lines + "\n" + &style.wrap(hint, style.width, 3).join("\n") + "\n"
}

/// The presets as JSON: name, client, version, rule, source and note of each.
pub fn list_json(presets: &[Preset]) -> serde_json::Value {
    presets.iter().map(about).collect()
}

fn about(preset: &Preset) -> serde_json::Value {
    json!({
        "name": preset.name, "client": preset.client, "version": preset.version, "summary": preset.summary,
        "source": preset.source, "note": preset.note,
    })
}

/// A policy spelled out, and its waits drawn.
pub fn show(shown: &Shown, style: &Style) -> String {
    let mut lines = Vec::new();
    match shown.preset {
        Some(preset) => {
            let head = format!("{}: {} ({})", shown.name, preset.client, preset.version);
            lines.extend(whole(&head, style.width, style));
            lines.extend(whole(&preset.summary, style.width, style));
            lines.push(String::new());
            for (label, text) in [("source", &preset.source), ("note", &preset.note)] {
                let wrapped = whole(text, style.width.saturating_sub(LABEL).max(20), style);
                let labels = std::iter::once(label).chain(std::iter::repeat(""));
                lines.extend(labels.zip(wrapped).map(|(label, line)| style.pad(label, LABEL) + &line));
            }
        }
        None => lines.push(style.fit(&format!("{}: a policy of the plan", shown.name), style.width)),
    }
    lines.push(String::new());
    lines.extend(emit::emit(shown.node).lines().map(|line| style.clean(line)));
    if let Some(hedges) = hedges(shown.policy) {
        lines.push(String::new());
        lines.extend(style.wrap(&hedges, style.width, 4));
    }
    for (heading, waits) in waits(shown.policy) {
        lines.push(String::new());
        lines.push(style.fit(&heading, style.width));
        if waits.iter().all(|range| range.most.is_zero()) {
            lines.push("none: each follows at once".into());
        } else {
            lines.extend(bars(&waits, style));
        }
    }
    lines.extend(beyond(shown.policy).into_iter().flat_map(|line| style.wrap(&line, style.width, 3)));
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A text in lines, none of it cut: a word that is wider than that, such as an address, has a line of its own.
fn whole(text: &str, width: usize, style: &Style) -> Vec<String> {
    wrap(&style.clean(text), width)
}

/// When a policy hedges.
fn hedges(policy: &Policy) -> Option<String> {
    let HedgeConfig { after, at_most } = policy.hedge.as_ref()?.value;
    let attempts = if at_most == 1 { "one further attempt" } else { "further attempts" };
    let at = (1..=at_most).take(DRAWN).map(|n| after.times(u64::from(n)).to_string()).collect::<Vec<_>>().join(", ");
    Some(format!(
        "hedges every {after}: {attempts} beside one that is not answered yet, {at} after it, and at once where one fails"
    ))
}

/// The same as JSON: the policy as a plan would spell it out, and the waits in seconds where every draw is 0, 1/2 and 1.
pub fn show_json(shown: &Shown) -> serde_json::Value {
    let mut value = shown.preset.map_or_else(|| json!({ "name": shown.name }), about);
    value["policy"] = tree(shown.node);
    value["waits"] = waits_json(&drawn(&shown.policy.backoff));
    let own = own_backoffs(shown.policy);
    value["on"] = own.map(|(class, backoff)| (class.to_string(), json!({ "waits": waits_json(&drawn(backoff)) }))).collect();
    value
}

fn waits_json(waits: &[Range]) -> serde_json::Value {
    let seconds = Span::as_secs_f64;
    let wait = |range: &Range| {
        json!({
            "retry": range.retry, "least_s": seconds(range.least), "middle_s": seconds(range.middle), "most_s": seconds(range.most),
        })
    };
    waits.iter().map(wait).collect()
}

/// A policy's tree as JSON: texts stay texts.
fn tree(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::Null => serde_json::Value::Null,
        Value::Text(text) => json!(text),
        Value::List(items) => items.iter().map(tree).collect(),
        Value::Map(entries) => entries.iter().map(|(key, node)| (key.name.clone(), tree(node))).collect(),
    }
}

/// The waits of a policy, each kind under its heading: the usual ones, and those after classes with a backoff of their own.
fn waits(policy: &Policy) -> Vec<(String, Vec<Range>)> {
    let usual = ("wait before each retry, from the least to the most:".to_string(), drawn(&policy.backoff));
    // A hedge waits for nothing but its turn.
    let usual = Some(usual).filter(|_| policy.hedge.is_none() || !matches!(policy.backoff, Backoff::None(_)));
    let own = own_backoffs(policy).map(|(class, backoff)| (format!("after {class}:"), drawn(backoff)));
    usual.into_iter().chain(own).collect()
}

/// The waits that are drawn: ten, or as many as it takes to see that they grow no further.
fn drawn(backoff: &Backoff) -> Vec<Range> {
    let mut waits = ranges(backoff, MOST_DRAWN as u32);
    let longest = waits.last().map(|range| range.most);
    let reached = waits.iter().position(|range| Some(range.most) == longest).map_or(0, |index| index + 1);
    waits.truncate(if reached < MOST_DRAWN { reached.max(DRAWN) } else { DRAWN });
    waits
}

/// The classes of outcomes that have a backoff of their own.
pub fn own_backoffs(policy: &Policy) -> impl Iterator<Item = (RetryOn, &Backoff)> {
    policy
        .on
        .iter()
        .filter(|(_, treatment)| treatment.retry)
        .filter_map(|(class, treatment)| Some((class, treatment.backoff.as_ref()?)))
}

/// What the drawing shows beyond what the policy allows.
fn beyond(policy: &Policy) -> Option<String> {
    let Attempts::Limited(attempts) = policy.attempts else { return None };
    let retries = attempts.saturating_sub(1);
    let rows =
        waits(policy).first().map(|(_, waits)| waits).filter(|waits| waits.iter().any(|range| !range.most.is_zero()))?.len();
    ((retries as usize) < rows).then(|| match retries {
        0 => "attempts: 1 allows no retry; the waits are those of the backoff alone".to_string(),
        1 => "attempts: 2 allows 1 retry; the further waits are those of the backoff alone".to_string(),
        n => format!("attempts: {attempts} allows {n} retries; the further waits are those of the backoff alone"),
    })
}

/// A bar a line, on one scale from nothing to the longest wait.
fn bars(waits: &[Range], style: &Style) -> Vec<String> {
    let top = waits.iter().map(|range| range.most).max().unwrap_or_default();
    let left = 4 + 2 * FIGURE;
    let width = style.width.saturating_sub(left).clamp(10, WIDEST);
    let head = format!("{:>3} {:>w$}{:>w$}", "#", "least", "most", w = FIGURE);
    let line = |range: &Range| {
        let figures = format!("{:>3} {:>w$}{:>w$}", range.retry, figure(range.least), figure(range.most), w = FIGURE);
        format!("{figures} {}", bar(*range, top, width.saturating_sub(1), style))
    };
    std::iter::once(head).chain(waits.iter().map(line)).collect()
}

fn figure(wait: Span) -> String {
    millis(Some(wait.as_secs_f64() * 1e3))
}

/// Dots up to the least wait, blocks from there to the most; a wait that does not vary is one block.
fn bar(range: Range, top: Span, width: usize, style: &Style) -> String {
    let cell = |wait: Span| match top.0 {
        0 => 0,
        top => (wait.0 as f64 / top as f64 * (width - 1) as f64).round() as usize,
    };
    let (from, to) = (cell(range.least), cell(range.most).max(cell(range.least)));
    let before = if style.ascii { "." } else { "·" };
    let full = blocks(style)[8].to_string();
    before.repeat(from) + &full.repeat(to - from + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::presets;

    fn shown(name: &str, style: &Style) -> String {
        let preset = presets::named(name).unwrap();
        show(&Shown { name, preset: Some(&preset), node: &preset.node, policy: &preset.policy }, style)
    }

    #[test]
    fn a_preset_is_spelled_out_and_drawn() {
        let style = Style { width: 60, ascii: true, ..Style::default() };
        let text = shown("stripe", &style);
        for want in [
            "stripe: Stripe SDK for Python",
            "source  https://docs.stripe.com",
            "\nattempts: 3\n",
            "    floor: 500ms\n",
            "\n  #     least     most\n  1     500ms    500ms ....#\n  2     500ms       1s ....####\n",
            "\n 10      2.5s       5s ..................####",
            "attempts: 3 allows 2 retries",
        ] {
            assert!(text.contains(want), "{want}\n{text}");
        }
        for name in presets::names() {
            for width in [20, 60, 200] {
                let text = shown(name, &Style { width, ..style });
                let long = text.lines().find(|line| columns(line) > width.max(70) && line.trim().contains(' '));
                assert!(long.is_none_or(|line| line.contains("://")), "{name} at {width}: {long:?}");
                let source = presets::named(name).unwrap().source;
                assert!(source.split_whitespace().all(|word| text.contains(word)), "{name} at {width}: {source}");
            }
        }
    }

    #[test]
    fn hedges_are_told_and_a_late_cap_is_seen() {
        let style = Style { width: 80, ascii: true, ..Style::default() };
        let hedging = shown("grpc-hedging", &style);
        assert!(hedging.contains("hedges every 500ms") && !hedging.contains("least"), "{hedging}");
        let workqueue = shown("client-go-workqueue", &style);
        assert!(workqueue.contains("\n 19 ") && !workqueue.contains("\n 20 "), "{workqueue}");
    }

    #[test]
    fn the_list_and_json_have_every_preset() {
        let all = presets::all();
        assert_eq!(all.len(), presets::names().count());
        let text = list(&all, &Style::default());
        let json = list_json(&all);
        for (index, preset) in all.iter().enumerate() {
            let rule = format!("{} {} ({}) {}", preset.name, preset.client, preset.version, preset.summary);
            assert!(rule.split_whitespace().all(|word| text.contains(word)), "{}", preset.name);
            assert_eq!(json[index]["name"], preset.name);
            let shown = Shown { name: preset.name, preset: Some(preset), node: &preset.node, policy: &preset.policy };
            let json = show_json(&shown);
            assert!(json["policy"]["attempts"].is_string() && json["waits"].as_array().is_some_and(|w| !w.is_empty()), "{json}");
        }
    }
}
