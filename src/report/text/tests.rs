//! The verdict as it looks, and what it must never leave out.

use super::super::layout::columns;
use super::super::result::{
    self, ActionResult, ActionStatus, FindingResult, GateStatus, ProxyResult, RunResult, WaveResult, WaveVerdict,
};
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
                // What decides may take more: four gates that did not hold, each longer than a line, and two reasons.
                let most = if name == "inconclusive" || width < 79 { usize::MAX } else { SCREEN };
                assert!(text.lines().count() <= most, "{name} {width}:\n{text}");
                let wide = |line: &&str| columns(line) > width && !line.starts_with("report");
                assert_eq!(text.lines().find(wide), None, "{name} {width}:\n{text}");
                assert!(!ascii || text.is_ascii(), "{name}:\n{text}");
                assert!(!text.contains('\u{1b}') && text.contains(REPORT), "{name}:\n{text}");
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
    let shown = |sign| text.lines().filter(|line| line.starts_with(sign)).count();
    assert_eq!((shown("✗ fail"), shown("? unknown"), shown("✓ pass")), (1, 3, 6), "{text}");
    assert!(text.contains("limits") && text.contains("max_attempts 12"), "{text}");
}

#[test]
fn what_waited_for_a_busy_client_is_no_lateness_of_the_generator() {
    use crate::metrics::{Counts, RunRecord, Window};
    for (late_by_generator, shown) in [(0, false), (2, true)] {
        let all = Counts { late_starts: 40, late_by_generator, ..Counts::default() };
        let record = RunRecord { windows: vec![Window { all, ..Window::default() }], ..RunRecord::default() };
        let result = result::result(&record, &sample::verdict_of_nothing(), &sample::plan());
        assert_eq!((result.generator.late, result.windows[0].late_starts), (late_by_generator, 40));
        assert_eq!(verdict(&result, &Style::default(), None).contains("2 late"), shown);
    }
}

/// What passed a proxy that was asked for more than it could do.
fn proxy(name: &str) -> ProxyResult {
    ProxyResult {
        name: name.into(),
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
    }
}

#[test]
fn what_passed_a_proxy_has_a_line_and_says_so_where_retries_are_not_known() {
    let mut result = sample::stuck();
    let proxy = proxy("provider");
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
    let taps = result::TapsResult {
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
    result.waves = Some(result::WavesResult { from_ms: 0, score: None, all: taps, fleets: Vec::new() });
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
    result.waves = Some(result::WavesResult { from_ms: 0, score: None, all: Default::default(), fleets: Vec::new() });
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
    let one = sample::pass();
    for (failed, unknown, passed) in [(1, 0, 0), (2, 0, 12), (2, 3, 13), (5, 2, 1), (40, 30, 200)] {
        let mut result = one.clone();
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
        assert_eq!(shown("✓ pass"), if passed > 12 { 1 } else { passed }, "{text}");
        assert_eq!(text.contains(&format!("{passed} gates, each in result.json")), passed > 12, "{text}");
        assert!(text.contains(REPORT) && text.contains("goodput"), "{text}");
        assert_eq!(text.matches("everything").count(), 20, "no word of the sentence is cut: {text}");
    }
}

#[test]
fn what_decides_is_never_cut() {
    let mut result = sample::pass();
    let reason =
        "a reason that goes on for longer than a line of eighty columns can hold, and then for another one, to its very end";
    result.reasons = vec![reason.into()];
    let finding = &mut result.findings[0];
    (finding.status, finding.gate) = (GateStatus::Fail, format!("p99 of {} <= 2x baseline during recovery", "fleet".repeat(40)));
    (finding.wanted, finding.observed) = ("<= 2x baseline (40ms)".into(), "41ms, and a word on it".into());
    let path = format!("/srv/{}/report", "deep/".repeat(40));
    for width in [40, 80, 120] {
        let text = verdict(&result, &Style { width, ..Style::default() }, Some(&path));
        let joined: String = text.split_whitespace().collect();
        for whole in [reason, &result.findings[0].gate, "got 41ms, and a word on it", "(40ms)", &path] {
            assert!(joined.contains(&whole.split_whitespace().collect::<String>()), "{width}: {whole}\n{text}");
        }
        assert!(text.contains(&path), "a path is there to be copied: {text}");
    }
}

#[test]
fn the_headline_says_first_why_it_did_not_pass() {
    use result::RecoveryClass::{Inconclusive as Unknown, Recovered, Stuck};
    use result::RunOutcome::{Aborted, Fail, Inconclusive, Pass};
    let (passed, aborted) = (sample::pass(), sample::aborted());
    let gates = |failed, unknown| {
        let gate = |status| FindingResult { status, ..passed.findings[0].clone() };
        let of = |n, status| std::iter::repeat_n(gate(status), n);
        let all = of(failed, GateStatus::Fail).chain(of(unknown, GateStatus::Inconclusive));
        all.chain(of(5 - failed - unknown, GateStatus::Pass)).collect::<Vec<_>>()
    };
    for (outcome, class, expected, failed, unknown, head) in [
        (Pass, Some(Recovered), None, 0, 0, "PASS  RECOVERED · "),
        (Pass, Some(Stuck), Some(Stuck), 0, 0, "PASS  STUCK, as expected · "),
        (Pass, None, None, 0, 0, "PASS  5 gates held · "),
        (Fail, Some(Stuck), None, 0, 0, "FAIL: STUCK · "),
        (Fail, Some(Recovered), Some(Stuck), 0, 0, "FAIL: RECOVERED, expected STUCK · "),
        (Fail, Some(Recovered), None, 2, 0, "FAIL: 2 of 5 gates failed · RECOVERED · "),
        (Fail, Some(Stuck), Some(Stuck), 1, 0, "FAIL: 1 of 5 gates failed · STUCK, as expected · "),
        (Fail, Some(Recovered), None, 2, 1, "FAIL: 2 of 5 gates failed, 1 without evidence · RECOVERED · "),
        (Fail, Some(Stuck), None, 2, 0, "FAIL: STUCK · 2 of 5 gates failed · "),
        (Fail, Some(Stuck), Some(Recovered), 2, 0, "FAIL: STUCK, expected RECOVERED · 2 of 5 gates failed · "),
        (Fail, Some(Unknown), None, 1, 0, "FAIL: 1 of 5 gates failed · recovery unknown · "),
        (Fail, Some(Unknown), Some(Stuck), 1, 0, "FAIL: 1 of 5 gates failed · recovery unknown, expected STUCK · "),
        (Fail, None, None, 1, 0, "FAIL: 1 of 5 gates failed · quickstart"),
        (Inconclusive, Some(Unknown), None, 0, 0, "INCONCLUSIVE: recovery unknown · "),
        (Inconclusive, Some(Unknown), Some(Unknown), 0, 0, "INCONCLUSIVE: recovery unknown · "),
        (Inconclusive, Some(Unknown), Some(Stuck), 0, 0, "INCONCLUSIVE: recovery unknown, expected STUCK · "),
        (Inconclusive, Some(Recovered), None, 0, 2, "INCONCLUSIVE: 2 of 5 gates without evidence · RECOVERED · "),
        (Inconclusive, Some(Stuck), Some(Stuck), 0, 1, "INCONCLUSIVE: 1 of 5 gates without evidence · STUCK, as expected · "),
        (Inconclusive, Some(Recovered), None, 0, 0, "INCONCLUSIVE: evidence is missing · RECOVERED · "),
        (Inconclusive, None, None, 0, 0, "INCONCLUSIVE: evidence is missing · quickstart"),
        (Aborted, None, None, 0, 0, "ABORTED: by SIGINT after 23s of 1m · quickstart"),
        (Aborted, Some(Stuck), None, 1, 0, "ABORTED: by SIGINT after 23s of 1m · STUCK · 1 of 5 gates failed · "),
        (Aborted, Some(Stuck), Some(Stuck), 0, 0, "ABORTED: by SIGINT after 23s of 1m · STUCK, as expected · "),
    ] {
        let mut result = if outcome == Aborted { aborted.clone() } else { passed.clone() };
        (result.outcome, result.plan.expect, result.findings) = (outcome, expected, gates(failed, unknown));
        let recovery = passed.recovery.clone();
        result.recovery = class.map(|class| result::RecoveryResult { class, ..recovery.unwrap() });
        let style = Style { width: 160, ..Style::default() };
        let text = verdict(&result, &style, None);
        assert!(text.starts_with(head), "{head}\n{text}");
    }
    let mut dirty = aborted;
    dirty.cleanup_confirmed = false;
    let text = verdict(&dirty, &Style { width: 160, ..Style::default() }, None);
    assert!(text.starts_with("ABORTED: CLEANUP NOT CONFIRMED · by SIGINT after 23s of 1m · "), "{text}");
}

#[test]
fn the_exit_code_is_never_cut() {
    let mut result = sample::aborted();
    result.plan.name = "a plan with a name that is long ".repeat(3) + "eu-1";
    result.plan.time_scale = Some("1/20".into());
    for (width, said) in
        [(80, "ABORTED: by SIGINT after 23s of 1m · "), (60, "after 23s of 1m"), (40, "ABORTED"), (20, "ABORTED")]
    {
        let text = verdict(&result, &Style { width, ..Style::default() }, None);
        let first = text.lines().next().unwrap();
        assert!(first.ends_with("exit 130") && first.contains(said), "{first}");
        assert!(width < 40 || text.contains("eu-1") && text.contains("seed 7"), "a title is cut in its middle: {text}");
    }
}

#[test]
fn a_recovery_at_a_tap_says_whose_it_is() {
    let mut result = sample::stuck();
    result.recovery.as_mut().unwrap().at = Some("provider".into());
    let window = |n: u64| result::ProxyWindow {
        from_ms: n * 1_000,
        connects: 0,
        requests: if n < 15 { 100 } else { 300 },
        repeats: if n < 15 { 0 } else { 200 },
        unknown: 0,
        statuses: [(200, 100 - n), (503, 200)].into(),
        resets: 0,
        unanswered: 0,
        unreached: 0,
        p99_ms: None,
        in_flight: 0,
    };
    result.proxies = vec![ProxyResult { windows: (0..60).map(window).collect(), ..proxy("provider") }];
    let text = verdict(&result, &Style { width: 32, ..Style::default() }, None);
    for line in [
        "at provider",
        "  requests    300/s ▃▃▃█████████",
        "  answer 2xx  100/s ▃▃▂▂▂▂▂▂▁▁▁▁",
        "  repeats       67%    ▅▅▅▅▅▅▅▅▅",
    ] {
        assert!(text.lines().any(|there| there == line), "{line}\n{text}");
    }
    let text = verdict(&result, &Style::default(), None);
    assert!(text.contains("recovery    at provider: none  error window 45s (4.5x the fault)"), "{text}");
}

#[test]
fn what_nobody_could_count_is_unknown() {
    use crate::metrics::RunRecord;
    for (touched, failed, shown) in [
        (0, Some("somebody else removed it"), "blackhole: not as planned, touched unknown"),
        (7, Some("somebody else removed it"), "blackhole: not as planned, touched 7"),
        (0, None, ""),
    ] {
        let mut record: RunRecord = sample::record();
        (record.faults[0].touched, record.faults[0].failed) = (touched, failed.map(str::to_string));
        let result = result::result(&record, &sample::verdict_of_nothing(), &sample::plan());
        let text = verdict(&result, &Style::default(), None);
        assert_eq!(text.contains("faults "), failed.is_some());
        assert!(text.contains(shown), "{shown}\n{text}");
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
    assert!(text.lines().count() <= 100 && text.contains("CLEANUP NOT CONFIRMED"), "{text}");
    assert!(text.contains("and 32 reasons more, see result.json"), "{text}");

    let empty = result::result(&Default::default(), &sample::verdict_of_nothing(), &sample::plan());
    let text = verdict(&empty, &Style::default(), None);
    assert!(text.starts_with("INCONCLUSIVE") && text.contains("n/a"), "{text}");
}
