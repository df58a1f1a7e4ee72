//! `junit.xml`: the cases of a result, for CI systems that show test results.
//!
//! A case that failed is a `failure`, one without evidence, or that was broken off, an `error`. The message of either says what was seen and what was wanted; its
//! text names the gate's line in the plan. A `time` is in seconds and stands where it is known: at the suite of one run, and at the case of the run itself. There are no
//! random identifiers, and no timestamps in virtual time, so that equal runs give equal bytes.

use super::cases::{Case, Suite, Suites};
use super::layout::Style;
use super::result::{GateStatus, RunOutcome};
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite, XmlString};
use std::time::Duration;

/// The document's bytes.
pub fn xml(of: &Suites) -> Vec<u8> {
    let mut report = Report::new("stormwake");
    report.add_test_suites(of.suites.iter().map(|suite| test_suite(suite, of)));
    report.time = of.duration_ms.map(Duration::from_millis);
    let mut bytes = Vec::new();
    report.serialize(&mut bytes).expect("memory takes every write");
    bytes
}

fn test_suite(suite: &Suite, of: &Suites) -> TestSuite {
    let mut made = TestSuite::new(text(&suite.name));
    made.time = of.duration_ms.map(Duration::from_millis);
    let moment = of.started_unix_ms.and_then(|ms| i64::try_from(ms).ok());
    let moment = moment.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    if let Some(moment) = moment {
        made.extra.insert("timestamp".into(), moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into());
    }
    made.add_properties(suite.properties.iter().map(|(name, value)| Property::new(*name, text(value))));
    let last = suite.cases.len().saturating_sub(1);
    made.add_test_cases(suite.cases.iter().enumerate().map(|(index, case)| {
        let mut made = test_case(case, suite, of);
        // What the run took is told once, for readers add up the cases.
        made.time = of.duration_ms.filter(|_| index == last).map(Duration::from_millis);
        made
    }));
    made
}

fn test_case(case: &Case, suite: &Suite, of: &Suites) -> TestCase {
    let details = case.details.join("\n");
    let mut made = TestCase::new(text(&case.name), status(case, of, &details));
    made.set_classname(text(&suite.name));
    if let Some(file) = &of.file {
        made.extra.insert("file".into(), text(&Style::default().clean(file)));
        made.extra.extend(case.line.map(|line| ("line".into(), line.to_string().into())));
    }
    if case.status == GateStatus::Pass {
        let lines: Vec<&str> = [case.message.as_str(), details.as_str()].into_iter().filter(|text| !text.is_empty()).collect();
        made.set_system_out(text(&lines.join("\n")));
    }
    made
}

fn status(case: &Case, of: &Suites, details: &str) -> TestCaseStatus {
    let (kind, word) = match case.status {
        GateStatus::Pass => return TestCaseStatus::success(),
        GateStatus::Fail => (NonSuccessKind::Failure, "fail"),
        GateStatus::Inconclusive if of.outcome == RunOutcome::Aborted => (NonSuccessKind::Error, "aborted"),
        GateStatus::Inconclusive => (NonSuccessKind::Error, "inconclusive"),
    };
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(word).set_message(text(&case.message)).set_description(text(details));
    status
}

/// Text that XML can hold. What stands for a line of its own has none within it, so that line breaks are ours.
fn text(text: &str) -> XmlString {
    let legal = |c: char| match c {
        '\n' => '\n',
        '\u{fffe}' | '\u{ffff}' => '?',
        c if c.is_control() => '?',
        c => c,
    };
    XmlString::new(text.chars().map(legal).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::super::cases::{of_comparison, of_run, of_seeds};
    use super::super::result::FindingResult;
    use super::super::sample;
    use super::*;

    fn string(of: &Suites) -> String {
        String::from_utf8(xml(of)).unwrap()
    }

    /// What `quick-junit` reads back.
    fn read(of: &Suites) -> Report {
        Report::deserialize_from_str(&string(of)).unwrap()
    }

    #[test]
    fn documents_look_like_this_and_are_equal_on_repeat() {
        let all = [
            ("pass", of_run(&sample::pass())),
            ("inconclusive", of_run(&sample::inconclusive())),
            ("aborted", of_run(&sample::aborted())),
            ("seeds-fail", of_seeds(&sample::seeds_fail())),
            ("compare", of_comparison(&sample::comparison())),
        ];
        for (name, suites) in &all {
            assert_eq!(xml(suites), xml(&suites.clone()));
            sample::golden(&format!("junit-{name}.xml"), &string(suites));
        }
    }

    #[test]
    fn failures_and_errors_are_counted_and_the_time_is_told_once() {
        let report = read(&of_run(&sample::inconclusive()));
        assert_eq!((report.tests, report.failures, report.errors), (12, 1, 5));
        let [suite] = report.test_suites.as_slice() else { panic!("{report:?}") };
        assert_eq!(suite.name.as_str(), "quickstart (naive)");
        assert_eq!(suite.time, Some(Duration::from_secs(60)));
        assert_eq!(suite.test_cases.iter().filter_map(|case| case.time).collect::<Vec<_>>(), [Duration::from_secs(60)]);
        let names: std::collections::BTreeSet<&str> = suite.test_cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), suite.test_cases.len(), "names are their own");
    }

    #[test]
    fn nothing_random_and_no_clock_stands_in_simulated_runs() {
        let mut result = sample::pass();
        assert!(string(&of_run(&result)).contains(r#"timestamp="2026-11-30T"#));
        result.started_unix_ms = None;
        let text = string(&of_run(&result));
        assert!(!text.contains("timestamp") && !text.contains("uuid"), "{text}");
        result.started_unix_ms = Some(u64::MAX);
        assert!(!string(&of_run(&result)).contains("timestamp"));
    }

    #[test]
    fn hostile_names_are_text() {
        let mut result = sample::pass();
        let hostile = "]]><script>\u{0}\u{1b}[31m\u{1b}]0;x\u{7}\"'&\u{ffff}\u{fffe}\u{202e}\r\nזה 🌩 @all |`".to_string()
            + &"x".repeat(300);
        let finding = FindingResult { gate: hostile.clone(), status: GateStatus::Fail, ..result.findings[0].clone() };
        result.findings = vec![FindingResult { observed: hostile.clone(), wanted: hostile.clone(), ..finding }; 500];
        (result.plan.name, result.plan.path) = (hostile.clone(), hostile.clone());
        result.fleets[0].policy = hostile.clone();
        result.reasons = vec![hostile.clone()];
        let text = string(&of_run(&result));
        let illegal = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{fffe}' | '\u{ffff}' | '\u{202e}');
        assert!(!text.contains(illegal) && !text.contains("<script>"), "{}", &text[..2000]);
        let report = read(&of_run(&result));
        assert_eq!((report.tests, report.failures), (502, 500));
        assert!(
            report.test_suites[0].test_cases[7].name.starts_with("]]><script>?"),
            "{:?}",
            report.test_suites[0].test_cases[7]
        );
    }
}
