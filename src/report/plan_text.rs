//! A plan as text: what it is, its timeline drawn, the load it can make, and what arithmetic says of it.

use super::fault_text;
use super::layout;
use super::service_text::service;
use crate::fault::{Origin, Step};
use crate::fleet::workers::{WorkerCount, config::LIVE_UNLIMITED};
use crate::load::Load;
use crate::plan::arithmetic::{self, Offered, WorstAttempts, WorstLoad};
use crate::plan::proxy::Spoken;
use crate::plan::{Action, Compare, Deed, External, Fleet, Loaded, NamedProxy, Plan, Scheme};
use crate::time::{Span, Timestamp};
use std::fmt::Write as _;

/// The least width that a drawing is made for.
const LEAST_WIDTH: usize = 60;
/// The most characters that are shown of a command; more would not fit the narrowest drawing.
const COMMAND: usize = 40;
/// The greatest: a wider bar says no more.
const MOST_WIDTH: usize = 120;

/// What `stormwake check` prints of a plan, for a terminal `width` columns wide.
pub fn check(plan: &Plan, width: usize) -> String {
    let width = width.clamp(LEAST_WIDTH, MOST_WIDTH);
    let mut out = String::new();
    summary(&mut out, plan, width);
    out.push('\n');
    out.push_str(&timeline(plan, width));
    out.push('\n');
    worst(&mut out, &arithmetic::worst_load(plan), width);
    sockets(&mut out, plan);
    rules(&mut out, plan, width);
    out
}

/// The same as JSON: name, length, worst-case load, sockets, rules, warnings.
pub fn json(loaded: &Loaded) -> serde_json::Value {
    let plan = &loaded.plan;
    let worst = arithmetic::worst_load(plan);
    let sockets = arithmetic::sockets(plan);
    let fleets = worst.fleets.iter().map(|fleet| {
        serde_json::json!({ "name": fleet.fleet, "clients": fleet.clients, "worst_attempts_per_second": fleet.attempted, "into": fleet.into })
    });
    let proxies = (1..).zip(&plan.proxies).map(|(number, NamedProxy { name, config })| match config {
        Some(config) => serde_json::json!({
            "name": name, "listen": config.listen.value.0, "upstream": config.upstream.value.0.authority(),
            "protocol": config.protocol.word(), "tls": config.tls.is_some(),
        }),
        None => {
            let external = external_at(plan, number);
            serde_json::json!({
                "name": name, "toxiproxy": external.map(|external| external.api.to_string()), "proxy": external.map(|external| &external.name),
            })
        }
    });
    let steps = plan.timeline.iter().map(|step| {
        serde_json::json!({
            "name": step.name, "fault": step.kind(), "on": plan.proxy_of(step.on), "from_ms": step.from.as_millis(), "to_ms": step.to.as_millis(),
        })
    });
    let actions = plan.actions.iter().map(|action| {
        let fleet = fleet_of(plan, action);
        let command = if let Deed::Exec(exec) = &action.what { Some(&exec.command) } else { None };
        serde_json::json!({
            "name": action.name, "action": action.kind(), "fleet": fleet, "at_ms": action.at.as_millis(), "command": command,
        })
    });
    let rules = arithmetic::rules(plan);
    let rules =
        rules.iter().map(|rule| serde_json::json!({ "rule": rule.key, "danger": rule.danger, "sentence": rule.sentence }));
    let warnings = loaded.warnings.sorted().into_iter().map(|problem| {
        serde_json::json!({ "line": problem.place.line, "column": problem.place.column, "message": problem.message, "hint": problem.hint })
    });
    let compare = plan.compare.as_ref().map(|compare| {
        let candidates: Vec<&str> = compare.candidates.iter().map(|candidate| candidate.name.as_str()).collect();
        serde_json::json!({
            "reference": compare.reference.name, "candidates": candidates, "seeds": compare.seeds, "runs": compare.runs(),
        })
    });
    serde_json::json!({
        "name": plan.name,
        "sha256": loaded.sha256,
        "seed": plan.seed,
        "length_ms": plan.length.as_millis(),
        "simulates": simulates(plan),
        "compare": compare,
        "proxies": proxies.collect::<Vec<_>>(),
        "fleets": fleets.collect::<Vec<_>>(),
        "timeline": steps.collect::<Vec<_>>(),
        "actions": actions.collect::<Vec<_>>(),
        "time_scale": plan.time_scale.map(|scale| scale.to_string()),
        "worst_attempts_per_second": worst.attempted,
        "sockets": { "clients": sockets.clients, "proxy": sockets.proxy, "target": sockets.target },
        "rules": rules.collect::<Vec<_>>(),
        "warnings": warnings.collect::<Vec<_>>(),
    })
}

fn summary(out: &mut String, plan: &Plan, width: usize) {
    let faults = match plan.timeline.len() {
        1 => "1 fault".to_string(),
        n => format!("{n} faults"),
    };
    let scale = plan.time_scale.map_or(String::new(), |scale| format!(", at time scale {scale}"));
    put(out, "", &format!("{}: {} in full, {faults}, seed {}{scale}", plan.name, plan.length, plan.seed), width);
    put(out, "  target   ", &target(plan), width);
    match &plan.target.model {
        Some(model) => put(out, "  model    ", &format!("in simulation: {}", service(model)), width),
        None if simulates(plan) => {}
        None if plan.live_only().is_some() => {}
        None => put(out, "  runs     ", "live only: a `model` beside the `url` would let it be simulated", width),
    }
    for entry in &plan.target.services.0 {
        put(out, "  service  ", &format!("{}: {}", entry.name, service(&entry.value)), width);
    }
    for (number, proxy) in (1..).zip(&plan.proxies) {
        put(out, "  proxy    ", &between(plan, number, proxy), width);
    }
    if let Some(why) = plan.live_only() {
        put(out, "  runs     ", &format!("live only: {why}"), width);
    }
    if let Some(text) = carried_out(plan) {
        put(out, "  faults   ", &text, width);
    }
    for fleet in &plan.fleets {
        let policy = if fleet.policy_name == "inline" { "its own policy" } else { &fleet.policy_name };
        let offered = arithmetic::offered(&fleet.config);
        let offered = format!("{}{}", offer(offered), once(&fleet.config.load, offered));
        put(out, "  fleet    ", &format!("{}: {}, {offered} ({policy})", fleet.name, population(fleet, plan)), width);
    }
    if let Some(expect) = &plan.expect {
        put(out, "  expects  ", expect.class.word(), width);
    }
    if let Some(recovered) = &plan.recovered {
        put(out, "  seeds    ", &format!("recovered {}", recovered.text), width);
    }
    if let Some(compare) = &plan.compare {
        put(out, "  compares ", &comparison(plan, compare), width);
    }
}

/// Where a proxy stands.
fn between(plan: &Plan, number: u16, NamedProxy { name, config }: &NamedProxy) -> String {
    let Some(config) = config else {
        let whose = external_at(plan, number)
            .map(|external| format!("`{}` of the {} at {}", external.name, external.server, external.api));
        return format!("{name}: {}, which counts nothing", whose.unwrap_or_default());
    };
    let upstream = &config.upstream.value.0;
    let scheme = if upstream.scheme == Scheme::Https { "https://" } else { "" };
    let trusted = config.tls.as_ref().and_then(|front| front.ca_file.as_ref());
    let trusted = trusted.map_or(String::new(), |path| format!(" (trusted by who trusts {path}, written when the run begins)"));
    let ends = format!("{name}: {}{trusted} → {scheme}{}", config.address(), upstream.authority());
    match config.protocol {
        Spoken::Http => format!("{ends}; a request is a repeat within {}", config.repeats.within),
        Spoken::Tcp => format!("{ends}, as bytes"),
    }
}

/// Who carries out the faults between clients and target; none where there are none.
fn carried_out(plan: &Plan) -> Option<String> {
    plan.timeline.iter().find(|step| step.on == 0 && step.fault.is_some())?;
    Some(match external_at(plan, 0) {
        Some(External { name, server, api, .. }) => {
            format!(
                "by the proxy `{name}` of the {server} at {api}, wherever that stands; in simulation between clients and target"
            )
        }
        None => "by the run's own proxy, between clients and target".into(),
    })
}

/// The Toxiproxy that has a proxy of the plan.
fn external_at(plan: &Plan, number: u16) -> Option<&External> {
    plan.external.iter().find(|external| external.on == number)
}

/// Who a fleet is.
fn population(fleet: &Fleet, plan: &Plan) -> String {
    match (&fleet.workers, fleet.into) {
        (Some(workers), _) => match workers.workers {
            WorkerCount::Limited(n) => format!("{n} workers"),
            WorkerCount::Unlimited => format!("unlimited workers (live {LIVE_UNLIMITED})"),
        },
        (None, Some(into)) => {
            let queue = plan.fleets.get(usize::from(into.fleet)).map_or("", |fleet| &fleet.name);
            format!("{} clients that fill the queue of {queue}", fleet.config.clients)
        }
        (None, None) => format!("{} clients", fleet.config.clients),
    }
}

/// Whether the plan says how its target behaves, so that virtual time can run it.
fn simulates(plan: &Plan) -> bool {
    plan.target.behaviour().is_some()
}

fn comparison(plan: &Plan, compare: &Compare) -> String {
    let fleet = plan.fleets.get(usize::from(compare.fleet)).map_or("", |fleet| &fleet.name);
    let names: Vec<&str> = compare.candidates.iter().map(|candidate| candidate.name.as_str()).collect();
    let seeds = match compare.seeds {
        1 => "1 seed".to_string(),
        n => format!("{n} seeds"),
    };
    format!(
        "{} with {} on fleet {fleet}: {} policies × {seeds} = {} runs, {} of virtual time",
        names.join(", "),
        compare.reference.name,
        names.len() + 1,
        compare.runs(),
        plan.length.times(compare.runs())
    )
}

/// Writes a text behind a head, wrapped to the width; what follows is indented as deep as the head.
fn put(out: &mut String, head: &str, text: &str, width: usize) {
    let indent = head.chars().count();
    for (n, line) in wrap(text, width.saturating_sub(indent)).into_iter().enumerate() {
        let _ = if n == 0 { writeln!(out, "{head}{line}") } else { writeln!(out, "{:indent$}{line}", "") };
    }
}

fn target(plan: &Plan) -> String {
    let Some(built_in) = &plan.target.service else {
        let url = plan.target.url.as_ref().map(|url| url.value.to_string()).unwrap_or_default();
        return format!("{} {url}", plan.target.method.value);
    };
    format!("built-in: {}", service(built_in))
}

fn offer(offered: Offered) -> String {
    match offered {
        Offered::Rate(rate) => format!("{} operations/s", number(rate)),
        Offered::Spike { rate, peak, lasting } => {
            format!("{} operations/s, {}/s for {}", number(rate), number(peak), Span::from_secs_f64(lasting))
        }
        Offered::Burst { operations, lasting: 0.0 } => format!("{} operations at once", number(operations)),
        Offered::Burst { operations, lasting } => {
            format!("{} operations within {}", number(operations), Span::from_secs_f64(lasting))
        }
        Offered::Closed { think: 0.0, .. } => "closed load without a pause".into(),
        Offered::Closed { think, .. } => format!("closed load, {} between operations", Span::from_secs_f64(think)),
    }
}

/// When a load comes that comes once; nothing of others.
fn once(load: &Load, offered: Offered) -> String {
    let once = if matches!(offered, Offered::Burst { lasting: 0.0, .. }) { "" } else { ", once" };
    match load {
        Load::OnReconnect(reconnect) => format!("{once} after `{}`", reconnect.config.after.value),
        Load::Trigger(trigger) => format!("{once} at {}", trigger.at),
        _ => String::new(),
    }
}

/// The timeline as bars below a ruler, `width` columns wide.
pub fn timeline(plan: &Plan, width: usize) -> String {
    let width = width.clamp(LEAST_WIDTH, MOST_WIDTH);
    let rows = rows(plan);
    let names = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).clamp(8, 24);
    let bar = width - names - 8;
    let mut out = ruler(plan.length, names, bar);
    for row in &rows {
        let name: String = row.name.chars().take(names).collect();
        let _ = writeln!(out, "  {name:<names$} {}", draw(row, plan.length, bar).trim_end());
        put(&mut out, &" ".repeat(names + 5), &row.note, width);
    }
    out
}

/// One line of the drawing.
struct Row {
    name: String,
    /// Stretches and the mark that each is drawn with.
    parts: Vec<(Timestamp, Timestamp, char)>,
    note: String,
}

fn rows(plan: &Plan) -> Vec<Row> {
    let mut rows = Vec::new();
    let first = plan.timeline.iter().map(|step| step.from).min().unwrap_or(Timestamp(plan.length.0));
    if let Some(steady) = &plan.steady_state {
        let from = first - steady.r#for;
        rows.push(Row {
            name: "baseline".into(),
            parts: vec![(from, first, '─')],
            note: format!("{from} to {first}: the baseline"),
        });
    }
    for step in &plan.timeline {
        let whom = whom(plan, step);
        let does = match &step.fault {
            Some(fault) => fault_text::fault(step, fault),
            None => plan.actions.iter().find(|action| action.name == step.name).map_or_else(|| step.kind().to_string(), what),
        };
        let note = format!("{} to {} ({}): {does}{whom}", step.from, step.to, step.to.since(step.from));
        rows.push(Row { name: step.name.clone(), parts: vec![(step.from, step.to, '█')], note });
    }
    let shown = |action: &&Action| !plan.timeline.iter().any(|step| step.fault.is_none() && step.place == action.place);
    for action in plan.actions.iter().filter(shown) {
        let whom = fleet_of(plan, action).map_or(String::new(), |fleet| format!(" of {fleet}"));
        let note = format!("{}: {}{whom}{}", action.at, what(action), outside(&action.what));
        rows.push(Row { name: action.name.clone(), parts: vec![(action.at, action.at, '▲')], note });
    }
    rows.extend(recovery(plan));
    rows
}

/// What an action does, in a few words.
fn what(action: &Action) -> String {
    match &action.what {
        Deed::Service { change, .. } => format!("service: {change}"),
        Deed::Fleet { .. } | Deed::Exec(_) | Deed::Http(_) => action.kind().to_string(),
    }
}

/// What an action does outside the run, and what that takes.
fn outside(what: &Deed) -> String {
    match what {
        Deed::Fleet { .. } | Deed::Service { .. } => String::new(),
        Deed::Exec(exec) => {
            let undo = if exec.undo.is_empty() { "" } else { ", and its undo" };
            format!(" `{}`{undo}; live only, and needs --approve", words(&exec.command))
        }
        Deed::Http(call) => format!(" {} {}; live only", call.method.value, words(std::slice::from_ref(&call.url.value))),
    }
}

/// The first words of a command.
fn words(command: &[String]) -> String {
    let all: String = command.join(" ").chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match all.char_indices().nth(COMMAND) {
        Some((end, _)) => format!("{}…", &all[..end]),
        None => all,
    }
}

fn fleet_of<'a>(plan: &'a Plan, action: &Action) -> Option<&'a str> {
    plan.fleets.get(usize::from(action.fleet()?)).map(|fleet| fleet.name.as_str())
}

/// Whom a step strikes, where that is not everybody.
fn whom(plan: &Plan, step: &Step) -> String {
    let fleet_of = |number: &u16| plan.fleets.get(usize::from(*number));
    let names: Vec<String> = match (&step.regions, &step.fleets) {
        (Some(regions), _) => {
            let name = |origin: &Origin| {
                let fleet = fleet_of(&origin.fleet)?;
                Some(format!("{} in {}", fleet.name, fleet.config.regions.names().nth(usize::from(origin.region))?))
            };
            regions.iter().filter_map(name).collect()
        }
        (None, Some(fleets)) => fleets.iter().filter_map(fleet_of).map(|fleet| fleet.name.clone()).collect(),
        (None, None) => return plan.proxy_of(step.on).map_or(String::new(), |on| format!(", on {on}")),
    };
    format!(", for {}", names.join(", "))
}

fn recovery(plan: &Plan) -> Option<Row> {
    let recovery = plan.recovery.as_ref()?;
    let after = recovery.after.as_ref()?;
    let step = plan.timeline.iter().find(|step| step.name == after.value)?;
    let due = step.to + recovery.within;
    let held = due + recovery.hold;
    let at = recovery.at.as_ref().map_or(String::new(), |at| format!(" at {}", at.value));
    let note = format!("{} to {due}: healthy again after `{}`{at}; then ┄ held for {}", step.to, step.name, recovery.hold);
    Some(Row { name: "recovery".into(), parts: vec![(step.to, due, '░'), (due, held, '┄')], note })
}

fn draw(row: &Row, length: Span, width: usize) -> String {
    let mut cells = vec![' '; width];
    for (from, to, mark) in &row.parts {
        let (from, to) = (column(*from, length, width), column(*to, length, width));
        // However short, a stretch shows.
        let to = to.max(from + 1);
        for cell in cells.iter_mut().take(to).skip(from.min(width - 1)) {
            *cell = *mark;
        }
    }
    cells.into_iter().collect()
}

fn column(at: Timestamp, length: Span, width: usize) -> usize {
    let share = at.as_secs_f64() / length.as_secs_f64().max(1e-9);
    ((share * width as f64).round() as usize).min(width)
}

/// Moments above their columns, at a step that leaves them room.
fn ruler(length: Span, names: usize, width: usize) -> String {
    let mut line = vec![' '; width + 5];
    let mut free = 0;
    let mut at = Span::ZERO;
    let step = ruler_step(length, width);
    while at <= length {
        let label = if at.is_zero() { "0".to_string() } else { at.to_string() };
        let column = column(Timestamp(at.0), length, width);
        if column >= free && column + label.chars().count() <= line.len() {
            for (n, c) in label.chars().enumerate() {
                line[column + n] = c;
            }
            free = column + label.chars().count() + 2;
        }
        at += step;
    }
    let line: String = line.into_iter().collect();
    format!("  {:<names$} {}\n", "timeline", line.trim_end())
}

/// A round step with about twelve columns to each label.
fn ruler_step(length: Span, width: usize) -> Span {
    let labels = (width / 12).max(1) as u64;
    let steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600];
    let fits = steps.into_iter().map(Span::from_secs).find(|step| step.times(labels) >= length);
    fits.unwrap_or(Span::from_secs(6 * 3600))
}

fn worst(out: &mut String, worst: &WorstLoad, width: usize) {
    out.push_str("Worst case, every attempt failing\n");
    for load in &worst.fleets {
        let attempts = match load.attempts {
            WorstAttempts::AtMost(1.0) => "1 attempt each".into(),
            WorstAttempts::AtMost(attempts) => format!("{} attempts each", number(attempts)),
            WorstAttempts::Unbounded => "attempts without limit".into(),
        };
        // What comes once is told as a number, not as a rate.
        let (total, per) = match (load.offered, load.attempts) {
            (Offered::Burst { operations, .. }, WorstAttempts::AtMost(each)) => (Some(operations * each), ""),
            _ => (load.attempted, "/s"),
        };
        let total = match (total, &load.into) {
            (Some(total), None) => format!("{} attempts{per}", number(total)),
            (Some(total), Some(queue)) => format!("{} enqueues{per} into {queue}, none at the target", number(total)),
            (None, Some(queue)) => format!("as many enqueues as {queue} refuses, none at the target"),
            (None, None) => "as many attempts as the target's speed allows".into(),
        };
        put(out, &format!("  {}: ", load.fleet), &format!("{}, {attempts}: {total}", offer(load.offered)), width);
    }
    let total =
        worst.attempted.map_or("bounded by the target's speed only".into(), |total| format!("{} attempts/s", number(total)));
    let at_target = if worst.fleets.iter().any(|load| load.into.is_some()) { " at the target" } else { "" };
    let ceiling = worst.ceiling.map_or(String::new(), |ceiling| format!(" (ceiling {}/s)", number(ceiling)));
    let _ = writeln!(out, "  in all: {total}{at_target}{ceiling}");
}

fn sockets(out: &mut String, plan: &Plan) {
    let sockets = arithmetic::sockets(plan);
    let _ = writeln!(
        out,
        "\nSockets\n  {} in this process: {} of clients, {} of the proxy",
        sockets.own_process(),
        sockets.clients,
        sockets.proxy
    );
    if sockets.target > 0 {
        let _ = writeln!(out, "  {} in the built-in target's process", sockets.target);
    }
}

fn rules(out: &mut String, plan: &Plan, width: usize) {
    let rules = arithmetic::rules(plan);
    if rules.is_empty() {
        return;
    }
    out.push_str("\nArithmetic\n");
    for rule in rules {
        let mark = if rule.danger { '!' } else { '·' };
        put(out, &format!("  {mark} "), &rule.sentence, width);
    }
}

/// Lines of at most `width` characters, broken at spaces; a longer word stays whole.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("it begins with one line and never loses any");
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_string());
        } else {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

/// A number as a person writes it.
pub(super) fn number(value: f64) -> String {
    if value >= 1e6 {
        layout::number(value)
    } else if value >= 100.0 {
        format!("{value:.0}")
    } else {
        format!("{}", (value * 100.0).round() / 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Source, load};

    const PLAN: &str = "version: 1
name: p
target: { url: 'http://127.0.0.1:1/' }
fleets:
  a: { clients: 10, policy: { attempts: 3, timeout: 1s, backoff: { fixed: { delay: 1s } } }, load: { constant: { rate: 10/s } } }
  b: { clients: 5, policy: { attempts: unlimited, timeout: 1s, deadline: 5s }, load: closed }
steady_state: { for: 30s }
timeline:
  - { at: 60s, for: 60s, name: block, fault: blackhole }
  - { at: 90s, for: 1ms, name: blink, fault: { latency: { add: 1s } }, fleets: [b] }
recovery: { after: block, within: 60s, hold: 30s }
length: 4m
";

    fn plan_of(text: &str) -> Loaded {
        load(&Source { file: "p.yaml", text, overrides: &[], env: &|_| None }).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn the_timeline_is_drawn_to_scale() {
        let plan = plan_of(PLAN).plan;
        let drawn = timeline(&plan, 64);
        let lines: Vec<&str> = drawn.lines().collect();
        // 48 columns for 240 s: five seconds a column.
        assert_eq!(lines[0], "  timeline 0           1m          2m          3m          4m");
        assert_eq!(lines[1], "  baseline       ──────");
        assert_eq!(lines[3], "  block                ████████████");
        assert_eq!(lines[5], "  blink                      █");
        assert_eq!(lines[6], "             1m30s to 1m30s1ms (1ms): latency add 1s, for b");
        assert_eq!(lines[7], "  recovery                         ░░░░░░░░░░░░┄┄┄┄┄┄");
    }

    #[test]
    fn the_whole_text_fits_its_width_and_says_what_it_must() {
        for width in [10, 60, 80, 100, 1000] {
            let text = check(&plan_of(PLAN).plan, width);
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= width.clamp(LEAST_WIDTH, MOST_WIDTH), "{width}: {widest}\n{text}");
        }
        let text = check(&plan_of(PLAN).plan, 100);
        for want in [
            "p: 4m in full, 2 faults, seed 1",
            "a: 10 operations/s, 3 attempts each: 30 attempts/s",
            "b: closed load without a pause, attempts without limit: as many attempts as the target's speed",
            "in all: bounded by the target's speed only",
            "45 in this process: 15 of clients, 30 of the proxy",
            "`a` has no jitter",
        ] {
            assert!(text.contains(want), "{want}\n{text}");
        }
    }

    #[test]
    fn what_applies_is_said() {
        let seeds = "recovery: { after: block, within: 60s, hold: 30s }\ngates: [{ recovered: '>= 95% of seeds' }]\n";
        let compare = "compare: { fleet: a, reference: slow, candidates: [quick, { own: { attempts: 2, timeout: 1s } }] }\n";
        let policies = "policies: { slow: { attempts: 2, timeout: 2s }, quick: { attempts: 4, timeout: 1s } }\nfleets:\n";
        let text = PLAN
            .replace("'http://127.0.0.1:1/' }", "'http://127.0.0.1:1/', model: { servers: 8, service_time: 40ms } }")
            .replace("recovery: { after: block, within: 60s, hold: 30s }\n", &format!("{seeds}{compare}"))
            .replace("fleets:\n", policies);
        let loaded = plan_of(&text);
        let said = check(&loaded.plan, 120);
        for want in [
            "  model    in simulation: 8 servers, 40ms each: 200/s; queue 1000",
            "  seeds    recovered >= 95% of seeds",
            "  compares quick, own with slow on fleet a: 3 policies × 20 seeds = 60 runs, 4h of virtual time",
        ] {
            assert!(said.contains(want), "{want}\n{said}");
        }
        let json = json(&loaded);
        assert_eq!((&json["simulates"], &json["compare"]["runs"]), (&true.into(), &60.into()));
        let live = plan_of(PLAN);
        assert!(check(&live.plan, 100).contains("live only: a `model` beside the `url`"));
        assert_eq!(super::json(&live)["simulates"], false);
    }

    #[test]
    fn what_workers_producers_and_actions_can_make_is_said() {
        let text = "version: 1
name: w
target: { service: { servers: unlimited, service_time: 0s, limiter: { token_bucket: { rate: 100/s } } } }
policies:
  p: { attempts: 3, timeout: 1s, backoff: { exponential: { base: 1s, cap: 60s, jitter: equal, clamp: after_jitter } }, budget: { bucket: { deposit: 10%, burst: 5 }, tier: client } }
  q: { attempts: 5, timeout: 1s }
fleets:
  relay: { workers: unlimited, policy: p, queue: { destinations: { a: { arrivals: { poisson: { rate: 20/s } } }, b: {} } } }
  apps: { clients: 100, policy: q, load: { poisson: { rate: 10/s } }, into: relay, destination: b }
  back: { clients: 4000, policy: p, regions: { eu: 60%, us: 40% }, load: { on_reconnect: { after: cable } } }
timeline:
  - { at: 10s, for: 10s, name: cable, fault: refuse, regions: [eu] }
  - { at: 30s, name: more, action: { set_rate: { fleet: apps, to: 30/s } } }
  - { at: 40s, name: new, action: { set_policy: { fleet: relay, policy: q } } }
  - { at: 50s, name: stop, action: { exec: { command: [systemctl, stop, relay], undo: [systemctl, start, relay] } } }
length: 2m
";
        let said = check(&plan_of(text).plan, 120);
        for want in [
            "fleet    back: 4000 clients, 2400 operations at once after `cable` (p)",
            "relay: 50 operations/s, 5 attempts each: 250 attempts/s",
            "apps: 30 operations/s, 5 attempts each: 150 enqueues/s into relay, none at the target",
            "back: 2400 operations at once, 3 attempts each: 7200 attempts",
            "2400 operations of `back` come at once after `cable`: beside the 30/s they drain in 34.3s",
            " attempts/s at the target",
            "15000 in this process: 5000 of clients, 10000 of the proxy",
            "50s: exec `systemctl stop relay`, and its undo; live only, and needs --approve",
        ] {
            assert!(said.contains(want), "{want}\n{said}");
        }
        assert!(!said.contains("the jitter is gone") && !said.contains("the budget of `relay` does not"), "{said}");
        assert!(!said.contains("of them drain in"), "who offers something all the time is not struck: {said}");
        let everywhere = check(&plan_of(&text.replace(", regions: [eu]", "")).plan, 120);
        assert!(everywhere.contains("300 of them drain in"), "{everywhere}");
        let requeued = text.replace("queue: {", "queue: { on_give_up: requeue,");
        let said = check(&plan_of(&requeued).plan, 1000);
        assert!(said.contains("! the budget of `relay` does not protect") && said.contains("! vulnerable"), "{said}");
    }

    #[test]
    fn who_carries_out_the_faults_is_said() {
        let ours = "faults   by the run's own proxy, between clients and target";
        let theirs = "faults   by the proxy `pay` of the Toxiproxy at http://127.0.0.1:8474";
        let outside = PLAN
            .replace("name: p\n", "name: p\nproxy: { toxiproxy: 'http://127.0.0.1:8474', name: pay }\n")
            .replace(", fleets: [b] }", " }");
        for (text, wants, not) in [(PLAN.to_string(), ours, theirs), (outside, theirs, ours)] {
            let said = check(&plan_of(&text).plan, 120);
            assert!(said.contains(wants) && !said.contains(not), "{said}");
        }
    }

    #[test]
    fn rulers_of_any_length_have_room() {
        for length in ["1s", "7s", "45s", "90s", "17m", "24h"] {
            let text = format!(
                "version: 1\ntarget: {{ url: 'http://127.0.0.1:1/' }}\nfleets: {{ a: {{ clients: 1, policy: {{ attempts: 1, timeout: 1s }}, load: closed }} }}\nlength: {length}\n"
            );
            let drawn = timeline(&plan_of(&text).plan, 80);
            let labels = drawn.lines().next().unwrap().split_whitespace().count() - 1;
            assert!((2..=8).contains(&labels), "{length}: {drawn}");
        }
    }

    #[test]
    fn json_says_the_same() {
        let json = json(&plan_of(PLAN));
        assert_eq!(json["length_ms"], 240_000);
        assert_eq!(json["sockets"]["proxy"], 30);
        assert_eq!(json["timeline"][1]["to_ms"], 90_001);
        assert_eq!(json["worst_attempts_per_second"], serde_json::Value::Null);
    }
}
