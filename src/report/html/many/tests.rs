//! What must hold of the pages of many runs.

use super::super::super::compare::CompareResult;
use super::super::super::curves::{CurvePhase, CurveResult, CurvesResult};
use super::super::super::result::FindingResult;
use super::super::super::sample;
use super::super::super::seeds::{GateCount, SeedRow, SeedsResult};
use super::super::run::tests::check;
use super::super::{compare, seeds};

const PLAN: &str = "version: 1\nname: storm\n";

fn hostile() -> String {
    format!("</title><script>alert(1)</script>\"' onload=\"x\" \u{202e}gnp\u{7} 🚀 عربى {}", "long ".repeat(60))
}

#[test]
fn every_page_of_seeds_keeps_the_rules() {
    for result in [sample::seeds_fail(), sample::seeds_share(), sample::seeds_expected(), sample::seeds_interrupted()] {
        let page = seeds(&result, PLAN);
        let parts = check(&page);
        for id in ["figures", "gates", "curves", "times", "each", "seeds", "setup", "plan"] {
            assert!(parts.tags.contains(&format!("h2 id=\"{id}\"")), "{id}");
        }
        assert!(page.replace("<wbr>", "").contains(&result.plan.sha256) && page.contains("from seeds.json"));
        assert_eq!(page, seeds(&result, PLAN), "equal documents give equal bytes");
    }
    let fail = seeds(&sample::seeds_fail(), PLAN);
    assert!(fail.contains("3 of 6 recovered") && fail.contains("2 runs never") && fail.contains("1 run without evidence"));
    assert!(fail.contains("✗ seed 3: STUCK, never") && fail.contains("the worst, seed 3"));
    assert!(seeds(&sample::seeds_interrupted(), PLAN).contains("after 2 of 20 runs"));
}

#[test]
fn a_comparison_says_which_is_better_and_whether_that_is_shown() {
    let result = sample::comparison();
    let page = compare(&result, PLAN);
    let parts = check(&page);
    for id in ["policies", "gates", "curves", "times", "each", "own-gates", "seeds", "setup", "plan"] {
        assert!(parts.tags.contains(&format!("h2 id=\"{id}\"")), "{id}");
    }
    assert!(page.contains("budget is shown to recover sooner than immediate"), "{}", &page[..9_000]);
    assert!(page.contains("backoff shows no difference in recovery time against immediate"));
    assert!(page.contains("shown: ends; the reference never") && page.contains("no difference shown"));
    assert!(page.contains("6 runs never") && page.contains("immediate (reference)"));
    assert_eq!(page, compare(&result, PLAN), "equal documents give equal bytes");
    check(&compare(&sample::comparison_of_few(), PLAN));
}

#[test]
fn nothing_to_draw_is_no_trouble() {
    let mut result = sample::comparison();
    result.policies.iter_mut().for_each(|policy| policy.seeds.clear());
    check(&compare(&result, ""));
    result.policies.clear();
    check(&compare(&result, ""));
    let mut result = sample::seeds_fail();
    result.curves = None;
    result.seeds.iter_mut().for_each(|row| row.curve = None);
    let page = seeds(&result, "");
    check(&page);
    assert!(!page.contains("id=\"curves\"") && page.contains("2 runs never"), "older documents have no curves");
    (result.seeds, result.classes, result.worst) = (Vec::new(), Vec::new(), None);
    check(&seeds(&result, ""));
}

/// Curves of a long run in which no point is like the one before.
fn noisy(common: &mut CurvesResult, rows: &mut [SeedRow]) {
    (common.step_ms, common.length_ms) = (60_000, 7_200_000);
    common.offered = noise(0, 300.0);
    for row in rows.iter_mut().filter(|row| row.curve.is_some()) {
        row.curve = Some(CurveResult {
            goodput: noise(row.seed, 350.0),
            lowest: noise(row.seed + 7, 200.0),
            highest: noise(row.seed + 13, 500.0),
            retry_share: noise(row.seed + 17, 0.3).into_iter().map(|x| Some(x / 1e3)).collect(),
        });
    }
}

fn noise(salt: u64, least: f64) -> Vec<f64> {
    (0..120u64).map(|n| least + ((n * 2_654_435_761 + salt * 40_503) % 9_973) as f64 / 53.0).collect()
}

#[test]
fn a_hundred_thousand_seeds_fit() {
    let mut result = sample::seeds_many(1_000);
    let last = result.seeds[998].clone();
    result.seeds.extend((1_001..=100_000).map(|seed| SeedRow { seed, curve: None, ..last.clone() }));
    noisy(result.curves.as_mut().unwrap(), &mut result.seeds);
    let page = seeds(&result, PLAN);
    check(&page);
    assert!(page.contains("the first 40 of 201 seeds") && page.contains("more, in seeds.json"));
}

#[test]
fn many_policies_of_many_seeds_fit() {
    let mut result = sample::comparison();
    let policy = result.policies[1].clone();
    result
        .policies
        .extend((0..40).map(|n| super::super::super::compare::PolicyResult { name: format!("policy {n}"), ..policy.clone() }));
    for policy in &mut result.policies {
        let row = policy.seeds[0].clone();
        policy.seeds = (1..=200).map(|seed| SeedRow { seed, ..row.clone() }).collect();
        noisy(policy.curves.as_mut().unwrap(), &mut policy.seeds);
    }
    let page = compare(&result, &PLAN.repeat(1_000));
    check(&page);
    assert!(page.contains("more policies, in compare.json") && page.contains("35 more"));
    let said = page.matches("The first 8 of 43 policies; the others are in compare.json.").count();
    assert_eq!(said, 4, "curves, times, policy by policy, seeds");
    assert!(page.contains("… and 34 more, in compare.json"), "the reasons that are left out");
    assert!(page.contains("… and 25 more policies, in compare.json") && page.contains("<caption>Policies 13 to 18</caption>"));
}

fn tainted(rows: &mut [SeedRow]) {
    for row in rows {
        (row.sentence, row.reasons) = (Some(hostile()), vec![hostile(); 20]);
    }
}

#[test]
fn hostile_names_are_shown_and_do_nothing() {
    let name = hostile;
    let gate = GateCount { gate: name(), pass: 1, fail: 2, inconclusive: 3, line: None };
    let finding = |finding: &FindingResult| FindingResult { gate: name(), observed: name(), wanted: name(), ..finding.clone() };
    let phase = CurvePhase { name: name(), from_ms: 15_000, to_ms: 25_000, faults: vec![name()] };
    let mut many: SeedsResult = sample::seeds_share();
    (many.plan.name, many.plan.path) = (name(), name());
    (many.gates, many.share_gate) = (vec![gate.clone(); 300], many.share_gate.as_ref().map(finding));
    many.curves.as_mut().unwrap().phases = vec![phase.clone(); 500];
    tainted(&mut many.seeds);
    let mut versus: CompareResult = sample::comparison();
    (versus.plan.name, versus.plan.path, versus.fleet) = (name(), name(), name());
    versus.gates = versus.gates.iter().map(finding).collect();
    for policy in &mut versus.policies {
        (policy.name, policy.gates) = (name(), vec![gate.clone(); 300]);
        policy.curves.as_mut().unwrap().phases = vec![phase.clone(); 500];
        tainted(&mut policy.seeds);
    }
    let plan = format!("name: {}\n", name()).repeat(5_000);
    for page in [seeds(&many, &plan), compare(&versus, &plan)] {
        let parts = check(&page);
        assert_eq!(parts.tags.iter().filter(|tag| tag.starts_with("script")).count(), 1);
        assert!(!page.contains(['\u{202e}', '\u{7}']) && page.contains("🚀 عربى"));
        assert!(page.contains("&lt;/title&gt;&lt;script&gt;alert(1)"));
    }
}
