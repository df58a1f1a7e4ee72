use super::super::sample;
use super::*;
use crate::report::result::RunResult;

fn string(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn summaries_look_like_this() {
    let all = [
        ("pass", of_run(&sample::pass())),
        ("stuck", of_run(&sample::stuck())),
        ("inconclusive", of_run(&sample::inconclusive())),
        ("aborted", of_run(&sample::aborted())),
        ("seeds-fail", of_seeds(&sample::seeds_fail())),
        ("seeds-share", of_seeds(&sample::seeds_share())),
        ("seeds-interrupted", of_seeds(&sample::seeds_interrupted())),
        ("compare", of_comparison(&sample::comparison())),
        ("compare-few", of_comparison(&sample::comparison_of_few())),
    ];
    for (name, bytes) in all {
        sample::golden(&format!("summary-{name}.md"), &string(bytes));
    }
}

#[test]
fn advice_is_said_to_be_advice() {
    let advice = RunResult { advisory: true, outcome: RunOutcome::Fail, ..sample::pass() };
    assert!(string(of_run(&advice)).starts_with("### ✗ FAIL · RECOVERED · quickstart · seed 7 · advisory · exit 0\n"));
}

const HOSTILE: &str = "<script>alert(1)</script>|`a`\r\n\n# x\u{202e}@team #1 ](http://evil.example) www.evil.example זה 🌩 \\|";

/// No more cells than the head has, as a reader of tables would split them.
fn cells(line: &str) -> usize {
    let mut escaped = false;
    let mut bars = 0;
    for c in line.chars() {
        bars += usize::from(c == '|' && !escaped);
        escaped = c == '\\' && !escaped;
    }
    bars.saturating_sub(1)
}

/// What of a line is in no code span.
fn outside(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('`') {
        out.push_str(&rest[..at]);
        let fence = rest[at..].len() - rest[at..].trim_start_matches('`').len();
        rest = &rest[at + fence..];
        if out.ends_with('\\') {
            continue;
        }
        let runs = rest.match_indices('`').map(|(at, _)| at).filter(|&at| !rest[..at].ends_with('`'));
        let ends = |at: &usize| rest[*at..].len() - rest[*at..].trim_start_matches('`').len() == fence;
        let end = runs.into_iter().find(ends).unwrap_or_else(|| panic!("a code span is left open: {line}"));
        rest = &rest[end + fence..];
    }
    out + rest
}

fn harmless(summary: &str) {
    let mut columns = 0;
    for line in summary.lines() {
        let outside = outside(line);
        assert!(!outside.contains("<script") && !outside.contains("http://") && !outside.contains("@team"), "{line}");
        match (line.starts_with("| "), columns) {
            (true, 0) => columns = cells(line),
            (true, columns) => assert_eq!(cells(line), columns, "{line}"),
            (false, _) => columns = 0,
        }
    }
    assert!(!summary.contains(['\u{202e}', '\r', '\u{7}']), "{summary}");
    assert_eq!(summary.lines().filter(|line| line.starts_with('#')).count(), 1, "{summary}");
}

#[test]
fn hostile_names_are_shown_and_do_nothing_and_the_whole_is_bounded() {
    let name = HOSTILE.repeat(3) + &"x".repeat(300);
    let mut result = sample::inconclusive();
    (result.plan.name, result.plan.path) = (name.clone(), name.clone());
    result.reasons = vec![name.clone(); 40];
    result.findings.iter_mut().for_each(|finding| {
        (finding.gate, finding.wanted, finding.observed) = (name.clone(), name.clone(), name.clone());
    });
    result.findings = (0..500).map(|index| result.findings[index % 10].clone()).collect();
    result.recovery.as_mut().unwrap().sentence = format!("{name}.");
    (result.operator, result.note) = (Some(name.clone()), Some(name.clone()));
    result.limits_reached[0].limit = name.clone();
    let summary = string(of_run(&result));
    harmless(&summary);
    assert!(summary.len() < 256 * 1024, "{}", summary.len());
    assert!(summary.contains("and 400 more rows, see the report") && summary.contains("and 30 more"), "{summary}");

    let mut result = sample::seeds_fail();
    result.plan.name = name.clone();
    result.gates.iter_mut().for_each(|gate| gate.gate = name.clone());
    result.seeds.iter_mut().for_each(|row| row.sentence = Some(name.clone()));
    harmless(&string(of_seeds(&result)));

    let mut result = sample::comparison();
    (result.fleet, result.plan.path) = (name.clone(), name.clone());
    result.policies.iter_mut().for_each(|policy| policy.name = name.clone());
    result.gates.iter_mut().for_each(|gate| gate.gate = name.clone());
    harmless(&string(of_comparison(&result)));
}
