//! Where the figures come from: the run, the generator, the target, the limits, the plan.

use super::super::super::layout::{Style, count, millis, percent};
use super::super::super::result::{Engine, RunResult, ServiceResult};
use super::super::frame::Section;
use super::super::table::{Cell, Facts, Table, paragraph};
use super::super::words::{UNKNOWN, known};
use askama::Template;

/// The run and its generator.
pub fn setup(result: &RunResult) -> Section {
    let lead = "What it takes to run this again, and how far its figures can be trusted.";
    let mut section = Section::new("setup", "Run, generator and target", lead).with(run(result)).with(generator(result));
    section = match &result.service {
        Some(service) => section.with(target(service)),
        None => section.with(paragraph("The target was somebody else's: what it did inside is unknown.")),
    };
    let outcomes = result.totals.by_outcome.iter();
    let mut table = Table::new("Attempts by outcome", &["outcome", "#attempts"]);
    outcomes.for_each(|(outcome, n)| table.row(vec![Cell::text(outcome.replace('_', " ")), Cell::figure(count(*n))]));
    if table.is_empty() { section } else { section.with(table.html()) }
}

fn ms(value: Option<f64>) -> String {
    known(value, |ms| millis(Some(ms)))
}

fn run(result: &RunResult) -> String {
    let mut facts = Facts::default();
    let engine = if result.engine == Engine::Live { "live, on real sockets" } else { "simulated, in virtual time" };
    let started = result.started_unix_ms.and_then(|ms| jiff::Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok());
    let started = started.map(|at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
    facts.add("plan", &result.plan.path);
    facts.add("plan's SHA-256", &result.plan.sha256);
    facts.add("seed", result.seed.to_string());
    facts.add("engine", engine);
    facts.add(
        "started",
        started.unwrap_or_else(|| if result.engine == Engine::Sim { "in virtual time".into() } else { UNKNOWN.into() }),
    );
    facts.add("length", format!("{} of {}", millis(Some(result.duration_ms as f64)), millis(Some(result.length_ms as f64))));
    facts.add("window", millis(Some(result.window_ms as f64)));
    facts.add("time scale", result.plan.time_scale.clone().unwrap_or_else(|| "1".into()));
    facts.add("run by", result.operator.clone().unwrap_or_else(|| "nobody said".into()));
    facts.add("why", result.note.clone().unwrap_or_else(|| "nobody said".into()));
    facts.add("faults removed", if result.cleanup_confirmed { "confirmed" } else { "NOT CONFIRMED" });
    facts.add("exit code", result.exit_code.to_string());
    facts.add(
        "advisory",
        if result.advisory { "yes: exit code 0 even where the outcome is a failure or inconclusive" } else { "no" },
    );
    facts.html()
}

fn generator(result: &RunResult) -> String {
    let generator = &result.generator;
    let mut facts = Facts::default();
    let lag = [("p50", generator.lag_p50_ms), ("p99", generator.lag_p99_ms), ("max", generator.lag_max_ms)];
    facts.add("generator lag", lag.map(|(name, value)| format!("{name} {}", ms(value))).join(", "));
    facts.add("started late", format!("{} operations", count(generator.late)));
    facts.add("dropped as too late", format!("{} operations", count(generator.dropped)));
    let connects = result.connects.as_ref();
    let connects = connects.map(|c| format!("{}, the fastest in {}", count(c.count), millis(Some(c.fastest_ms))));
    facts.add("connects to the target", connects.unwrap_or_else(|| UNKNOWN.into()));
    let limits = result.limits_reached.iter().take(12).map(|limit| format!("{} {} times", limit.limit, count(limit.count)));
    let limits = limits.collect::<Vec<_>>().join(", ");
    facts.add("limits reached", if limits.is_empty() { "none".into() } else { limits });
    facts.html()
}

fn target(service: &ServiceResult) -> String {
    let mut table = Table::new(
        "What the built-in target counted",
        &[
            "service",
            "#arrived",
            "#served",
            "#refused",
            "#expired or shed",
            "#client gone",
            "#done again",
            "#suppressed",
            "#wasted work",
        ],
    );
    table.row(service_row("target", service));
    service.services.iter().for_each(|(name, of)| table.row(service_row(name, of)));
    let mut calls =
        Table::new("Calls between services", &["from", "to", "#calls", "#attempts", "#timed out", "#succeeded", "#failed"]);
    for call in &service.calls {
        let figures = [call.calls, call.attempts, call.timed_out, call.succeeded, call.failed].map(|n| Cell::figure(count(n)));
        calls.row([Cell::text(&call.from), Cell::text(&call.to)].into_iter().chain(figures).collect());
    }
    if calls.is_empty() { table.html() } else { table.html() + &calls.html() }
}

fn service_row(name: &str, of: &ServiceResult) -> Vec<Cell> {
    let refused = of.limited + of.queue_full + of.memory_full + of.not_admitted + of.backlog_rejected;
    let counts = [
        of.arrived,
        of.served,
        refused,
        of.expired + of.shed + of.dropped_by_codel,
        of.cancelled,
        of.duplicates_executed,
        of.duplicates_suppressed,
    ];
    let figures = counts.map(|n| Cell::figure(count(n)));
    let wasted = Cell::figure(known(of.wasted_work, |x| percent(Some(x))));
    std::iter::once(Cell::text(name)).chain(figures).chain([wasted]).collect()
}

/// Lines and characters of the plan that are shown; `effective.yaml` has all.
const LINES: usize = 500;
const CHARACTERS: usize = 40_000;

#[derive(Template)]
#[template(
    source = "<pre wrap tabindex=\"0\" role=\"region\" aria-label=\"The plan as YAML\"><code>{{ crate::report::html::words::broken(text)|safe }}</code></pre>",
    ext = "html"
)]
struct Listing {
    text: String,
}

/// The effective plan.
pub fn plan(yaml: &str) -> Section {
    let section = Section::new(
        "plan",
        "The plan",
        "After variables and overrides, as in effective.yaml; there alone stand the values of keys that sound like secrets.",
    );
    if yaml.trim().is_empty() {
        return section.with(paragraph("Unknown: the plan's text is not there."));
    }
    // Line ends are what plans are made of; all else that is not printable goes.
    let clean = |line: &str| Style::default().clean(line.trim_end());
    let mut headers = Headers::default();
    let mut text = String::new();
    let (mut characters, mut shown) = (0, 0);
    for line in yaml.lines() {
        let line = clean(&headers.without_secret(line));
        characters += line.chars().count() + 1;
        if shown == LINES || characters > CHARACTERS {
            break;
        }
        shown += 1;
        text.push_str(&line);
        text.push('\n');
    }
    let more = yaml.lines().count() - shown;
    let section = section.with(Listing { text }.render().expect("a string takes every write"));
    if more == 0 { section } else { section.with(paragraph(&format!("… and {more} lines more, in effective.yaml"))) }
}

/// What a header whose value is nobody's business has in its name.
const SECRET: [&str; 9] = ["authorization", "cookie", "credential", "key", "passwd", "password", "secret", "token", "session"];

/// Leaves the values of headers that sound like secrets out of a plan: a page is there to be handed on. Other keys are the plan's own
/// figures, such as `max_tokens`, and stay.
#[derive(Default)]
struct Headers {
    /// How far `headers:` is indented, while its lines come.
    within: Option<usize>,
}

impl Headers {
    fn without_secret(&mut self, line: &str) -> String {
        let indent = line.len() - line.trim_start().len();
        if self.within.is_some_and(|outer| indent <= outer && !line.trim().is_empty()) {
            self.within = None;
        }
        if line.trim_end().ends_with("headers:") && self.within.is_none() {
            self.within = Some(indent);
            return line.to_string();
        }
        let Some((key, value)) = line.split_once(':').filter(|_| self.within.is_some()) else { return line.to_string() };
        let name = key.to_ascii_lowercase();
        // What names where a secret is found, or how an operation is known, is none.
        let is_none = ["from_env", "from_file", "idempotency"].iter().any(|word| name.contains(word));
        let is_secret = !value.trim().is_empty() && !is_none && SECRET.iter().any(|word| name.contains(word));
        if is_secret { format!("{key}: ***") } else { line.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sounds_like_a_secret_is_not_handed_on() {
        for (line, shown) in [
            ("    authorization: Bearer hunter9", "    authorization: ***"),
            ("  X-Api-Key: 'abc'", "  X-Api-Key: ***"),
            ("  \"set-cookie\": a=b", "  \"set-cookie\": ***"),
            ("  authorization:", "  authorization:"),
            ("    from_env: PAYMENT_TOKEN", "    from_env: PAYMENT_TOKEN"),
            ("  idempotency-key: attempt", "  idempotency-key: attempt"),
            ("  clients: 2000", "  clients: 2000"),
            ("no colon", "no colon"),
        ] {
            let mut headers = Headers { within: Some(0) };
            assert_eq!(headers.without_secret(line), shown);
        }
        for line in ["max_tokens: 10", "  sessions: 3/s", "  idempotency_key: attempt"] {
            assert_eq!(Headers::default().without_secret(line), line, "a figure of the plan's own");
        }
        let (mut headers, lines) = (Headers::default(), ["target:", "  headers:", "    cookie: a", "  token: b"]);
        assert_eq!(lines.map(|line| headers.without_secret(line)), ["target:", "  headers:", "    cookie: ***", "  token: b"]);
        assert!(!plan("headers:\n  authorization: Bearer hunter9\n").blocks.concat().contains("hunter9"));
    }
}
