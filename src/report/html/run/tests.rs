//! What must hold of every page, whatever the run.

use super::super::super::result::{self, NoteResult, ProxyResult, ProxyWindow, RuleResult, RunResult};
use super::super::super::sample;
use super::super::words::UNKNOWN;
use super::run;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

const PLAN: &str = "version: 1\nname: storm\n";
/// Bytes of a page, at the most.
const MOST: usize = 400_000;

/// The page without style sheet and script, its tags, and what its policy allows.
pub(in crate::report::html) struct Parts {
    pub tags: Vec<String>,
    pub text: String,
    style: String,
    script: String,
    policy: String,
}

fn between(text: &str, from: &str, to: &str) -> String {
    let (_, rest) = text.split_once(from).unwrap_or_else(|| panic!("no {from}"));
    rest.split_once(to).unwrap_or_else(|| panic!("no {to}")).0.to_string()
}

fn parts(page: &str) -> Parts {
    let style = between(page, "<style>", "</style>");
    let script = between(page, "<script>", "</script>");
    let markup = page.replacen(&style, "", 1).replacen(&script, "", 1);
    let mut tags = Vec::new();
    let mut text = String::new();
    for piece in markup.split('<').skip(1) {
        let (tag, after) = piece.split_once('>').expect("a tag has an end");
        tags.push(tag.to_string());
        text.push_str(after);
        text.push(' ');
    }
    Parts { tags, text, style, script, policy: between(page, "content=\"default-src", "\"") }
}

/// The names and values of a tag's attributes.
fn attributes(tag: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = tag;
    while let Some((before, after)) = rest.split_once("=\"") {
        let name = before.rsplit(' ').next().unwrap_or_default().to_string();
        let (value, left) = after.split_once('"').expect("a value has an end");
        found.push((name, value.to_string()));
        rest = left;
    }
    found
}

fn base64(bytes: &[u8]) -> String {
    // Three bytes at a time, by another way than the page's own.
    let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    let digit = |chunk: &[u8]| {
        let bits = std::str::from_utf8(chunk).unwrap();
        let value = u8::from_str_radix(&format!("{bits:0<6}"), 2).unwrap();
        char::from(match value {
            0..26 => b'A' + value,
            26..52 => b'a' + value - 26,
            52..62 => b'0' + value - 52,
            62 => b'+',
            _ => b'/',
        })
    };
    let text: String = bits.as_bytes().chunks(6).map(digit).collect();
    let padding = text.len().next_multiple_of(4) - text.len();
    text + &"=".repeat(padding)
}

/// Holds a page to the rules of all pages.
pub(in crate::report::html) fn check(page: &str) -> Parts {
    let parts = parts(page);
    let mut ids = BTreeSet::new();
    let mut named = Vec::new();
    for tag in &parts.tags {
        for (name, value) in attributes(tag) {
            assert!(name != "style" && name != "src" && !name.starts_with("on"), "{tag}");
            match name.as_str() {
                "id" => assert!(ids.insert(value.clone()), "`{value}` is there twice"),
                "href" => assert!(value.starts_with('#') || value == "data:,", "{tag}"),
                "aria-labelledby" => named.extend(value.split(' ').map(str::to_string).collect::<Vec<_>>()),
                _ => {}
            }
        }
    }
    let links = parts.tags.iter().flat_map(|tag| attributes(tag)).filter(|(name, _)| name == "href");
    named.extend(links.filter_map(|(_, value)| value.strip_prefix('#').map(str::to_string)));
    assert!(named.iter().all(|id| ids.contains(id)), "{named:?} are not all among {ids:?}");
    assert!(!page.contains("http://") && !page.contains("https://"));
    for text in [&parts.style, &parts.script] {
        let hash = format!("'sha256-{}'", base64(&Sha256::digest(text.as_bytes())));
        assert!(parts.policy.contains(&hash), "{hash} is not in {}", parts.policy);
    }
    let images = parts.tags.iter().filter(|tag| tag.contains("role=\"img\"")).count();
    let described = parts.tags.iter().filter(|tag| tag.starts_with("desc id=")).count();
    assert_eq!(images, described, "every drawing is told in words");
    check_headings(&parts.tags);
    let balanced = |name: &str| {
        let opened = parts.tags.iter().filter(|tag| tag.split(' ').next() == Some(name)).count();
        opened == parts.tags.iter().filter(|tag| **tag == format!("/{name}")).count()
    };
    for name in ["div", "section", "figure", "table", "tr", "td", "th", "ul", "li", "dl", "dd", "bdi", "p", "g", "text", "pre"] {
        assert!(balanced(name), "{name} is not closed as often as it is opened");
    }
    assert!(!parts.text.contains("NaN") && !parts.tags.iter().any(|tag| tag.contains("NaN") || tag.contains("inf")));
    assert!(page.len() < MOST, "{} bytes", page.len());
    parts
}

fn check_headings(tags: &[String]) {
    let levels = tags.iter().filter_map(|tag| match tag.as_bytes() {
        [b'h', level @ b'1'..=b'6', ..] => Some(level - b'0'),
        _ => None,
    });
    let mut last = 0;
    for level in levels {
        assert!(level <= last + 1 && (level > 1 || last == 0), "h{level} after h{last}");
        last = level;
    }
}

fn proxy(windows: u64) -> ProxyResult {
    let window = |n: u64| ProxyWindow {
        from_ms: n * 1_000,
        connects: 1,
        requests: 50 + n * 7_919 % 83,
        repeats: 10,
        unknown: 0,
        statuses: BTreeMap::from([(200, 30 + n % 7), (503, n % 11)]),
        resets: n % 3,
        unanswered: 0,
        unreached: 0,
        p99_ms: None,
        in_flight: 4,
    };
    ProxyResult {
        name: "provider".into(),
        connects: 9,
        requests: 900,
        repeats: 100,
        unknown: 0,
        amplification: None,
        retry_share: None,
        peak_requests: Some(99.0),
        classes: BTreeMap::new(),
        statuses: BTreeMap::new(),
        resets: 1,
        unanswered: 2,
        unreached: 3,
        p50_ms: Some(4.0),
        p99_ms: None,
        peak_in_flight: 7,
        wave: None,
        windows: (0..windows).map(window).collect(),
    }
}

/// A run of so many windows in which no two beside each other are alike.
fn long(windows: u64) -> RunResult {
    let mut result = sample::stuck();
    let noise = |n: u64, salt: u64, of: u64| (n.wrapping_mul(2_654_435_761).wrapping_add(salt * 40_503)) / 7 % of;
    let usual = result.windows[3].clone();
    result.windows = (0..windows)
        .map(|n| {
            let mut window = usual.clone();
            window.t_ms = n * 1_000;
            (window.offered, window.attempts, window.arrived) =
                (300 + noise(n, 1, 200), 900 + noise(n, 2, 700), 800 + noise(n, 3, 700));
            (window.succeeded, window.scheduled, window.connects) =
                (200 + noise(n, 4, 250), 900 + noise(n, 5, 500), noise(n, 6, 90));
            (window.backlog, window.in_flight, window.late) = (noise(n, 7, 5_000), noise(n, 8, 900), noise(n, 9, 40));
            window.by_outcome = BTreeMap::from([("success".into(), window.succeeded), ("status_503".into(), noise(n, 10, 400))]);
            (window.p50_ms, window.p99_ms) = (Some(5.0 + noise(n, 11, 900) as f64), Some(900.0 + noise(n, 12, 9_000) as f64));
            (window.oldest_age_ms, window.retry_share) =
                (Some(noise(n, 13, 90_000) as f64), Some(noise(n, 14, 9_999) as f64 / 1e4));
            window
        })
        .collect();
    (result.duration_ms, result.length_ms) = (windows * 1_000, windows * 1_000);
    let columns = windows.min(240);
    let heat = result.heat.as_mut().expect("the sample has a map");
    heat.column_ms = windows * 1_000 / columns;
    heat.edges_ms = (0..40).map(|n| libm::exp10(f64::from(n) / 8.0)).collect();
    heat.columns = (0..columns)
        .map(|n| result::HeatColumn {
            t_ms: n * heat.column_ms,
            first: 2,
            counts: (0..36).map(|row| noise(n * 36 + row, 15, 3_000)).collect(),
        })
        .collect();
    result.proxies = (0..4).map(|_| proxy(windows)).collect();
    result
}

fn samples() -> Vec<RunResult> {
    vec![sample::pass(), sample::stuck(), sample::inconclusive(), sample::aborted()]
}

fn empty() -> RunResult {
    result::result(&Default::default(), &sample::verdict_of_nothing(), &sample::plan())
}

#[test]
fn every_page_keeps_the_rules_and_has_every_section() {
    let sections = [
        "load", "retries", "latency", "backlog", "attempts", "spectrum", "waves", "fleets", "rules", "gates", "happened",
        "setup", "plan",
    ];
    for result in samples().into_iter().chain([empty()]) {
        let page = run(&result, PLAN);
        let parts = check(&page);
        for id in sections {
            assert!(parts.tags.contains(&format!("h2 id=\"{id}\"")), "{id}");
        }
        assert!(page.contains("name: storm") && page.replace("<wbr>", "").contains(&result.plan.sha256));
        assert_eq!(page, run(&result, PLAN), "equal runs give equal bytes");
    }
    assert!(run(&sample::stuck(), PLAN).contains("STUCK, as expected"));
    let pass = run(&sample::pass(), PLAN);
    assert!(pass.contains("healthy again after 8s") && pass.contains("backlog cleared last"));
    assert!(run(&sample::aborted(), PLAN).contains("ABORTED"));
}

#[test]
fn ten_minutes_and_a_day_fit_and_keep_their_peaks() {
    for windows in [1, 2, 600, 86_400] {
        let mut result = long(windows);
        let at = windows as usize / 3;
        result.windows[at].attempts = 7_654;
        result.windows[at].backlog = 27_650;
        let page = run(&result, PLAN);
        check(&page);
        for peak in ["7654", "27650"] {
            assert!(page.contains(&format!("V{peak}")) || page.contains(&format!(" {peak}h")), "{peak} of {windows} windows");
        }
    }
}

#[test]
fn a_single_window_of_zeros_is_no_trouble() {
    let mut result = sample::stuck();
    result.windows.truncate(1);
    result.windows[0] = Default::default();
    (result.duration_ms, result.window_ms) = (0, 0);
    check(&run(&result, ""));
}

#[test]
fn figures_that_nobody_measured_break_no_page() {
    let mut result = sample::stuck();
    let (most, least) = (u64::MAX, f64::from_bits(1));
    for window in &mut result.windows {
        (window.offered, window.attempts, window.retries, window.succeeded, window.connects) = (most, most, most, most, most);
        (window.retry_share, window.p50_ms, window.p99_ms) = (Some(f64::MAX), Some(least), Some(f64::MAX));
        window.by_outcome.values_mut().for_each(|count| *count = most);
    }
    result.proxies = vec![proxy(60)];
    for window in &mut result.proxies[0].windows {
        (window.requests, window.resets, window.unanswered, window.unreached) = (most, most, most, most);
    }
    result.baseline.as_mut().unwrap().attempts = Some(least);
    result.totals.retry_share = Some(f64::MAX);
    result.totals.retry_share_histogram = vec![result::ShareCount { basis_points: most, windows: most }; 2];
    result.stretches[0].name = "a\u{1b}[2J".into();
    for point in &mut result.stretches[0].spectrum {
        point.ms = least;
    }
    let page = run(&result, "");
    check(&page);
    assert!(!page.contains("NaN") && !page.contains("inf%") && !page.contains("inf×") && !page.contains('\u{1b}'));
}

#[test]
fn nobody_knows_is_said_and_never_shown_as_zero() {
    let page = run(&empty(), "");
    let parts = check(&page);
    let said = parts.text.to_lowercase().matches(UNKNOWN).count();
    assert!(said > 20, "{said} times");
    assert!(parts.text.contains("text is not there"));
    let mut result = sample::pass();
    result.findings[0].line = None;
    result.generator.lag_p99_ms = None;
    result.recovery.as_mut().unwrap().recovery_time_ms = None;
    let page = run(&result, PLAN);
    assert!(page.contains("command line") && page.contains("p99 unknown"));
}

#[test]
fn hostile_names_are_shown_and_do_nothing() {
    let hostile = format!("</title><script>alert(1)</script>\"' onload=\"x\" \u{202e}gnp\u{7} 🚀 عربى {}", "long ".repeat(60));
    let mut result = sample::stuck();
    let name = || hostile.clone();
    (result.plan.name, result.plan.path, result.operator, result.note) = (name(), name(), Some(name()), Some(name()));
    (result.faults[0].name, result.faults[0].kind, result.fleets[0].name) = (name(), name(), name());
    (result.phases[1].name, result.findings[0].gate, result.findings[0].observed) = (name(), name(), name());
    result.fleets[0].policy = name();
    result.recovery.as_mut().unwrap().sentence = name();
    result.reasons = vec![name(); 40];
    result.notes = vec![NoteResult { t_ms: 20_000, text: name() }; 300];
    result.rules = vec![RuleResult { key: name(), danger: true, sentence: name(), observed: Some(name()) }];
    result.proxies = vec![ProxyResult { name: name(), ..proxy(60) }];
    result.limits_reached = vec![result::LimitResult { limit: name(), count: 3 }; 50];
    let fleet = result.fleets[0].clone();
    result.fleets = vec![fleet; 500];
    let phase = result.phases[1].clone();
    result.phases = vec![phase; 200];
    let fault = result.faults[0].clone();
    result.faults = vec![fault; 500];
    let page = run(&result, &format!("name: {hostile}\n").repeat(5_000));
    let parts = check(&page);
    assert_eq!(parts.tags.iter().filter(|tag| tag.starts_with("script")).count(), 1);
    assert!(!page.contains(['\u{202e}', '\u{7}']) && page.contains("🚀 عربى"));
    assert!(page.contains("&lt;/title&gt;&lt;script&gt;alert(1)") && page.contains("more, in result.json"));
}

#[test]
fn what_people_said_and_did_is_shown() {
    let mut result = sample::stuck();
    (result.operator, result.note) = (Some("ada".into()), Some("monthly game day".into()));
    (result.advisory, result.exit_code) = (true, 0);
    result.stopped = Some(result::Stopped { by: result::StoppedBy::Operator, detail: "the operator".into() });
    let note = |t_ms, text: &str| NoteResult { t_ms, text: text.into() };
    result.notes = vec![note(16_000, "pager fired"), note(16_100, "too near for a label"), note(40_000, "still down")];
    assert!(!run(&result, PLAN).contains("by hand"));
    result.faults[0].ended_early = true;
    let (name, end) = (result.faults[0].name.clone(), super::super::chart::moment(result.faults[0].to_ms));
    let page = run(&result, PLAN);
    check(&page);
    for said in ["run by ada", "monthly game day", "stopped by its operator", "exit code 0, advisory: whatever the outcome"] {
        assert!(page.contains(said), "{said}");
    }
    assert!(page.contains(&format!("ended by hand at {end}, before the plan would have")), "{end}");
    assert!(page.contains(&format!("<title>{name} ended by hand</title>")) && page.contains(">by hand</text>"));
    let marks =
        ["pager fired", "too near for a label", "still down"].map(|text| page.contains(&format!("<title>{text}</title>")));
    let labels = ["N1", "N2", "N3"].map(|label| page.contains(&format!(">{label}</text>")));
    assert_eq!((marks, labels), ([true; 3], [true, false, true]));
}
