//! Gates and baselines that no run, or hardly any, could show.

use super::{load_with, unmark, with};

const GATE: &str = "  - { errors: \"<= 1%\" }";

/// A line, what takes its place with `¶` where the problem points, and what is said.
const REFUSED: &[(&str, &str, &str)] = &[
    (GATE, "  - { duplicates: \"== 0\", during: ¶out }", "`duplicates` is counted over the whole run only|remove `during`"),
    (GATE, "  - { wasted_work: \"<= 5%\", during: ¶recovery }", "`wasted_work` is counted over the whole run only"),
    (GATE, "  - { recovery_time: ¶\"<= 2x baseline\" }", "a baseline has none to compare it with"),
    (GATE, "  - { relapses: ¶\"<= 1x baseline\" }", "compare it with an absolute value"),
];

pub(super) const WARNINGS: &[(&str, &str, &str)] = &[
    (GATE, "  - { recovery_time: \"<= 9s\", during: ¶out }", "`during` changes nothing"),
    (
        "poisson: { rate: 100/s }",
        "poisson: { rate: 19/s }",
        "about 190 operations come in the baseline of 10s|lower `recovery.operations`",
    ),
    (
        "/x\n",
        "/x\n  model: { servers: 1, service_time: 1ms, queue: { order: lifo, codel: ¶{} } }\n",
        "with `order: lifo` these are the newest",
    ),
];

#[test]
fn what_no_run_could_show_is_refused_at_its_place() {
    for (old, new, wants) in REFUSED {
        let (text, line, column) =
            unmark(&with(old, new).replace("url: http://127.0.0.1:8080/x", "service: { servers: 9, service_time: 1ms }"));
        let shown = load_with(&text, &[]).err().unwrap_or_else(|| panic!("{new} is accepted"));
        assert!(wants.split('|').all(|want| shown.contains(want)), "{new}\n{shown}");
        assert!(shown.contains(&format!("plan.yaml:{line}:{column}: error: ")), "{new}\n{shown}");
    }
}

#[test]
fn what_the_load_will_hardly_bring_is_warned_of() {
    for (changes, wants) in [
        (
            &[("for: 10s, name: out", "for: 2s, name: out"), (GATE, "  - { p999: \"<= 1s\", during: out }")][..],
            "about 200 operations come in `out`, which lasts 2s, and `p999` takes 1000",
        ),
        (&[(GATE, "  - { p999: \"<= 1s\", during: baseline }")], ""),
        (
            &[("for: 10s }\n", "for: 5s }\n"), (GATE, "  - { p999: \"<= 2x baseline\", during: recovery }")],
            "about 500 operations come in the baseline, which lasts 5s",
        ),
        (&[("load: { poisson: { rate: 100/s } }", "load: closed"), (GATE, "  - { p999: \"<= 1s\", during: out }")], ""),
    ] {
        let text = changes.iter().fold(super::BASE.to_string(), |text, (old, new)| {
            assert!(text.contains(old), "{old}");
            text.replacen(old, new, 1)
        });
        let shown = load_with(&text, &[]).unwrap_or_else(|shown| panic!("{changes:?}\n{shown}")).warnings_text;
        assert!(if wants.is_empty() { shown.is_empty() } else { shown.contains(wants) }, "{changes:?}\n{shown}");
    }
}

#[test]
fn a_warning_is_said_to_the_runs_that_it_concerns() {
    let model = with("/x\n", "/x\n  model: { servers: 9, service_time: 1ms }\n");
    let loaded = load_with(&model.replace(GATE, "  - { duplicates: \"== 0\" }"), &[]).unwrap();
    let counted = "is not counted by a target of your own";
    assert!(loaded.warnings_text.contains(counted) && loaded.live_warnings.contains(counted));
    assert_eq!(loaded.simulated_warnings, "", "virtual time has the model, which counts");
    let unused = load_with(&with("  p: {", "  q: { attempts: 1, timeout: 1s }\n  p: {"), &[]).unwrap();
    assert_eq!([&unused.live_warnings, &unused.simulated_warnings], [&unused.warnings_text; 2]);
}
