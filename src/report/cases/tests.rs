use super::super::sample;
use super::*;
use crate::report::result::RunResult;
use crate::report::seeds::SeedsResult;

fn gravest(suites: &Suites) -> (usize, usize) {
    let count = |status| suites.cases().filter(|case| case.status == status).count();
    (count(GateStatus::Fail), count(GateStatus::Inconclusive))
}

/// The cases say no less and no more than the outcome.
fn agrees(suites: &Suites, what: &str) {
    let (failed, unknown) = gravest(suites);
    let said = match suites.outcome {
        RunOutcome::Pass => failed + unknown == 0,
        RunOutcome::Fail => failed > 0,
        RunOutcome::Inconclusive => failed == 0 && unknown > 0,
        RunOutcome::Aborted => unknown > 0,
    };
    assert!(said && suites.suites.iter().all(|suite| !suite.cases.is_empty()), "{what}: {suites:#?}");
}

fn of_case<'a>(suites: &'a Suites, name: &str) -> &'a Case {
    suites.cases().find(|case| case.name.starts_with(name)).unwrap_or_else(|| panic!("{name}: {suites:#?}"))
}

#[test]
fn the_cases_of_a_run_say_what_its_outcome_says() {
    for result in [sample::pass(), sample::stuck(), sample::aborted()] {
        agrees(&of_run(&result), "sample");
    }
    let stuck = of_run(&sample::stuck());
    assert_eq!(of_case(&stuck, "recovery is STUCK").status, GateStatus::Pass);
    let recovery = |mut result: RunResult, outcome, class, expect| {
        result.outcome = outcome;
        result.plan.expect = expect;
        result.recovery.as_mut().unwrap().class = class;
        result
    };
    use RecoveryClass::{Inconclusive, Recovered, Stuck};
    for (outcome, class, expect) in [
        (RunOutcome::Fail, Stuck, None),
        (RunOutcome::Fail, Recovered, Some(Stuck)),
        (RunOutcome::Pass, Stuck, Some(Stuck)),
        (RunOutcome::Inconclusive, Inconclusive, None),
        (RunOutcome::Inconclusive, Inconclusive, Some(Stuck)),
        (RunOutcome::Inconclusive, Recovered, None),
        (RunOutcome::Fail, Recovered, None),
        (RunOutcome::Aborted, Recovered, None),
        (RunOutcome::Aborted, Stuck, None),
    ] {
        agrees(&of_run(&recovery(sample::pass(), outcome, class, expect)), &format!("{outcome:?} {class:?} {expect:?}"));
    }
    let mut nothing = sample::pass();
    (nothing.recovery, nothing.outcome) = (None, RunOutcome::Inconclusive);
    nothing.findings.clear();
    nothing.reasons = vec!["nothing was asked of this run".into()];
    let suites = of_run(&nothing);
    agrees(&suites, "nothing asked");
    assert_eq!(of_case(&suites, "carried out").message, "nothing was asked of this run");
    nothing.plan.expect = Some(Stuck);
    agrees(&of_run(&nothing), "expected without recovery");
}

#[test]
fn what_was_broken_off_is_an_error_and_a_report_that_is_not_whole_too() {
    let suites = of_run(&sample::aborted());
    assert_eq!(of_case(&suites, "carried out").message, "stopped by SIGINT after 23s; every fault was removed");
    let result = RunResult { exit_code: 6, ..sample::pass() };
    let suites = of_run(&result);
    assert_eq!(gravest(&suites), (0, 1));
    assert!(of_case(&suites, "carried out").message.contains("exit code 6"));
    let suites = of_seeds(&sample::seeds_interrupted());
    agrees(&suites, "interrupted");
    assert!(of_case(&suites, "carried out").message.contains("by SIGINT after 2 of 20 seeds"), "{suites:#?}");
}

#[test]
fn the_cases_of_many_seeds_say_what_their_outcome_says() {
    for result in [sample::seeds_fail(), sample::seeds_share(), sample::seeds_expected()] {
        agrees(&of_seeds(&result), "sample");
    }
    let suites = of_seeds(&sample::seeds_share());
    assert_eq!(suites.suites[0].cases[0].name, "recovered >= 95% of seeds");
    assert!(suites.suites[0].cases[0].details.iter().any(|line| line.contains("seed 14: RECOVERED_LATE")), "{suites:#?}");
    let failed = of_seeds(&sample::seeds_fail());
    assert_eq!(of_case(&failed, "amplification <= 2.9x").message, "held in 4 of 6, wanted in every seed");
    let mut doubtful = sample::seeds_expected();
    doubtful.outcome = RunOutcome::Inconclusive;
    doubtful.seeds[3].outcome = RunOutcome::Inconclusive;
    doubtful.seeds[3].reasons = vec!["the generator lagged".into()];
    let suites = of_seeds(&doubtful);
    agrees(&suites, "doubtful");
    assert_eq!(of_case(&suites, "carried out").message, "seed 4: the generator lagged");
    let nobody = SeedsResult { seeds: Vec::new(), gates: Vec::new(), outcome: RunOutcome::Inconclusive, ..sample::seeds_fail() };
    agrees(&of_seeds(&nobody), "no seeds");
    let mut one_aborted = sample::seeds_share();
    (one_aborted.outcome, one_aborted.seeds[5].outcome) = (RunOutcome::Aborted, RunOutcome::Aborted);
    agrees(&of_seeds(&one_aborted), "one aborted");
}

#[test]
fn a_comparison_has_a_suite_for_each_policy_with_its_own_gates() {
    let result = sample::comparison();
    let suites = of_comparison(&result);
    agrees(&suites, "comparison");
    let names: Vec<(&str, usize)> = suites.suites.iter().map(|suite| (suite.name.as_str(), suite.cases.len())).collect();
    assert_eq!(names, [("quickstart (immediate)", 1), ("quickstart (budget)", 2), ("quickstart (backoff)", 2)]);
    assert_eq!(of_case(&suites, "budget: ").status, GateStatus::Pass);
    let mut ungated = result.clone();
    ungated.gates.clear();
    for outcome in [RunOutcome::Pass, RunOutcome::Aborted] {
        (ungated.outcome, ungated.exit_code) = (outcome, if outcome == RunOutcome::Pass { 0 } else { 130 });
        agrees(&of_comparison(&ungated), "without gates");
    }
    ungated.outcome = RunOutcome::Inconclusive;
    ungated.policies[2].seeds[1].outcome = RunOutcome::Inconclusive;
    let suites = of_comparison(&ungated);
    agrees(&suites, "without evidence");
    assert_eq!(suites.suites[1].cases.last().unwrap().status, GateStatus::Pass);
    ungated.policies.clear();
    agrees(&of_comparison(&ungated), "nobody");
    // One policy's name may begin with another's.
    let mut alike = result;
    (alike.policies[0].name, alike.policies[1].name) = ("a".into(), "a: b".into());
    alike.gates[0].gate = "a: b: recovered >= 95% of seeds".into();
    let suites = of_comparison(&alike);
    assert!(suites.suites[1].cases[0].name.starts_with("a: b: "), "{suites:#?}");
}
