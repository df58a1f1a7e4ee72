//! `seeds.json`: what many runs of one plan showed, as one document; and the parts that other documents of many runs share.
//!
//! Nothing in it depends on the machine, the clock or the number of threads. A figure of a run without evidence is `null`, and so is a recovery time of a
//! run that did not recover; in medians and ranges the latter counts as longer than any, `never` says how many there were, and an end of a range that is one
//! of them is `null`.

use super::curves::{self, CurveResult, CurvesResult, Frame};
use super::published::SEEDS;
use super::result::{FindingResult, GateStatus, PlanInfo, PlanRef, RecoveryClass, RunOutcome, Stopped, WaveVerdict};
use super::result::{class, document, finding, fine, outcome, stopped};
use crate::gate::{GateConfig, SeedRun, SeedsVerdict, Status, findings};
use crate::metrics::{ActionOutcome, ActionRecord, Figure, StopReason};
use crate::stats;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Many runs of one plan, and what came of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeedsResult {
    /// The version of this document's shape: it grows when a field goes or changes its meaning, not when one comes.
    #[serde(default = "super::published::first")]
    pub schema_version: u32,
    /// The version of stormwake that wrote this.
    pub stormwake: String,
    /// The plan.
    pub plan: PlanRef,
    /// Who ran it; left out where nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// Why; left out where nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The outcome of all of them together.
    pub outcome: RunOutcome,
    /// The exit code of the process.
    pub exit_code: u8,
    /// Whether a failed or inconclusive outcome ends the process with 0 (`--advisory`); left out where it does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub advisory: bool,
    /// Why not every seed was run; null where every one was.
    pub stopped: Option<Stopped>,
    /// How many seeds were to be run.
    pub planned: u64,
    /// How many had the class that is wanted.
    pub recovered: ShareResult,
    /// The gate on the share of seeds; null where the plan has none.
    pub share_gate: Option<FindingResult>,
    /// How many runs had which recovery class.
    pub classes: Vec<ClassCount>,
    /// Median and range of each figure over the runs with evidence.
    pub figures: Vec<FigureSpread>,
    /// In how many runs the load came back in waves, by what was seen at the arrived tap; runs with too little to see are in none.
    #[serde(default)]
    pub waves: Vec<WaveCount>,
    /// What the timeline did beside harm, in the order of its moments.
    #[serde(default)]
    pub actions: Vec<ActionSpread>,
    /// What became of each gate, in the order of the plan.
    pub gates: Vec<GateCount>,
    /// The seed of the worst run: by outcome (aborted, fail, inconclusive, pass), then by recovery time; the first of equals. Null without runs.
    pub worst: Option<u64>,
    /// What the recovery curves have in common; null in documents of versions before they were kept.
    #[serde(default)]
    pub curves: Option<CurvesResult>,
    /// One for each run, in the order of the seeds.
    pub seeds: Vec<SeedRow>,
}

/// How many of so many runs, and between which bounds the share behind that lies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShareResult {
    /// The class that is counted: what the plan expects, or RECOVERED; null where passing runs are counted, because the plan asks for no recovery.
    pub class: Option<RecoveryClass>,
    /// How many had it.
    pub runs: u64,
    /// Of how many, those without evidence among them.
    pub of: u64,
    /// The lower Clopper–Pearson bound of the share, 0 to 1.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
    /// How surely the share lies between them, 0 to 1.
    pub confidence: f64,
}

/// How many runs had a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassCount {
    /// The class.
    pub class: RecoveryClass,
    /// Runs.
    pub runs: u64,
}

/// How many runs showed waves, or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaveCount {
    /// What was seen.
    pub verdict: WaveVerdict,
    /// Runs.
    pub runs: u64,
}

/// An action of the timeline over many runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActionSpread {
    /// Its name.
    pub name: String,
    /// Its kind, as in the plan.
    pub kind: String,
    /// The fleet that it was done to; null for commands and webhooks.
    pub fleet: Option<String>,
    /// When it was to be done, in milliseconds since the run began.
    pub at_ms: u64,
    /// Runs in which its moment came.
    pub runs: u64,
    /// Of them, those that left it out: a simulated run reaches nothing outside.
    pub left_out: u64,
    /// How many clients, workers or operations it changed something for: the median; null for commands and webhooks.
    pub median: Option<f64>,
    /// The smallest of the same.
    pub min: Option<f64>,
    /// The largest of the same.
    pub max: Option<f64>,
}

/// A figure over many runs, in its unit: shares 0 to 1, times in seconds, rates per second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureSpread {
    /// Which, by its name in the table of figures.
    pub figure: String,
    /// How many runs have evidence of it.
    pub runs: u64,
    /// In how many of them it was infinite: they did not recover as long as they lasted.
    pub never: u64,
    /// The median; null where it is infinite, or nothing is known.
    pub median: Option<f64>,
    /// The smallest; null likewise.
    pub min: Option<f64>,
    /// The largest; null likewise.
    pub max: Option<f64>,
}

/// What became of a gate over many runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateCount {
    /// The gate as text.
    pub gate: String,
    /// Runs in which it held.
    pub pass: u64,
    /// Runs in which it did not.
    pub fail: u64,
    /// Runs with too little evidence.
    pub inconclusive: u64,
    /// The gate's line in the plan; null where it was given on the command line.
    pub line: Option<u32>,
}

/// One run of many.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeedRow {
    /// Its seed.
    pub seed: u64,
    /// Its outcome.
    pub outcome: RunOutcome,
    /// Its recovery class; null where the plan asks for no recovery.
    pub class: Option<RecoveryClass>,
    /// The class in a sentence, with the numbers behind it; null without one.
    pub sentence: Option<String>,
    /// Why it did not pass, a sentence each.
    pub reasons: Vec<String>,
    /// What became of the plan's gates, in their order.
    pub gates: Vec<GateStatus>,
    /// Whether what arrived came in waves; null where there was too little to see.
    #[serde(default)]
    pub waves: Option<WaveVerdict>,
    /// Figures of the whole run by their names in the table of figures, in its units; null without evidence, and for the recovery time of a run that did not recover.
    pub figures: BTreeMap<String, Option<f64>>,
    /// Its recovery curve; left out where it is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<CurveResult>,
}

/// What is known beside the runs.
#[derive(Clone, Copy, Debug)]
pub struct SeedsInfo<'a> {
    /// The plan; its `seed` is not used.
    pub plan: &'a PlanInfo,
    /// Its gates.
    pub gates: &'a [GateConfig],
    /// How many seeds were to be run.
    pub planned: u64,
    /// Why not every seed was run.
    pub stopped: Option<&'a StopReason>,
    /// What the curves have in common.
    pub frame: Frame<'a>,
}

/// The document of many runs.
pub fn result(runs: &[SeedRun], verdict: &SeedsVerdict, info: SeedsInfo) -> SeedsResult {
    SeedsResult {
        schema_version: SEEDS.version,
        stormwake: env!("CARGO_PKG_VERSION").to_string(),
        plan: plan_ref(info.plan),
        operator: info.plan.operator.clone(),
        note: info.plan.note.clone(),
        outcome: if info.stopped.is_some() { RunOutcome::Aborted } else { outcome(verdict.outcome) },
        exit_code: info.plan.exit_code,
        advisory: info.plan.advisory,
        stopped: info.stopped.map(stopped),
        planned: info.planned,
        recovered: share(verdict.wanted, runs, info.plan.expect),
        share_gate: verdict.share.as_ref().map(finding),
        classes: classes(runs),
        figures: spreads(runs),
        waves: waves(runs),
        actions: actions(runs),
        gates: gates(runs, info.gates),
        worst: verdict.worst.map(|index| runs[index].seed),
        curves: Some(curves::common(runs, info.frame)),
        seeds: rows(runs, info.frame),
    }
}

/// The document's bytes: one line for each figure, gate and seed.
pub fn json(result: &SeedsResult) -> Vec<u8> {
    document(result, 2)
}

/// The JSON Schema of `seeds.json`.
pub fn schema() -> Value {
    SEEDS.schema::<SeedsResult>()
}

/// A document's reference to its plan.
pub(super) fn plan_ref(plan: &PlanInfo) -> PlanRef {
    PlanRef {
        name: plan.name.clone(),
        path: plan.path.clone(),
        sha256: plan.sha256.clone(),
        expect: plan.expect.map(class),
        judged_line: plan.judged_line,
        time_scale: plan.time_scale.clone(),
    }
}

/// So many of these runs had the class that is wanted. The bounds are for runs with evidence: without it a run is neither.
pub(super) fn share(wanted: u64, runs: &[SeedRun], expected: Option<crate::gate::Class>) -> ShareResult {
    let of = runs.len() as u64;
    let asked = runs.iter().any(|run| run.class.is_some()) || expected.is_some();
    let known = if asked { runs.iter().filter(|run| !run.is_unknown()).count() as u64 } else { of };
    let (low, high) = stats::clopper_pearson(wanted, known, stats::CONFIDENCE);
    let class = asked.then(|| class(expected.unwrap_or(crate::gate::Class::Recovered)));
    let rounded = |x: f64| fine(x).unwrap_or(x);
    ShareResult { class, runs: wanted, of, low: rounded(low), high: rounded(high), confidence: stats::CONFIDENCE }
}

/// How many runs had which class, in the order of the classes.
pub(super) fn classes(runs: &[SeedRun]) -> Vec<ClassCount> {
    let mut counts = BTreeMap::new();
    for class in runs.iter().filter_map(|run| run.class) {
        *counts.entry(class).or_insert(0) += 1;
    }
    counts.into_iter().map(|(of, runs)| ClassCount { class: class(of), runs }).collect()
}

/// Median and range of every figure.
pub(super) fn spreads(runs: &[SeedRun]) -> Vec<FigureSpread> {
    Figure::ALL.iter().map(|&figure| spread(figure, runs)).collect()
}

fn spread(figure: Figure, runs: &[SeedRun]) -> FigureSpread {
    let values: Vec<f64> = runs.iter().filter_map(|run| run.figure(figure)).collect();
    let spread = stats::spread(&values);
    FigureSpread {
        figure: figure.word().to_string(),
        runs: values.len() as u64,
        never: values.iter().filter(|value| value.is_infinite()).count() as u64,
        median: spread.and_then(|spread| fine(spread.median)),
        min: spread.and_then(|spread| fine(spread.min)),
        max: spread.and_then(|spread| fine(spread.max)),
    }
}

fn waves(runs: &[SeedRun]) -> Vec<WaveCount> {
    let mut counts = BTreeMap::new();
    for class in runs.iter().filter_map(|run| run.waves) {
        *counts.entry(WaveVerdict::from(class)).or_insert(0) += 1;
    }
    counts.into_iter().rev().map(|(verdict, runs)| WaveCount { verdict, runs }).collect()
}

/// Names of actions are their own within a plan.
fn actions(runs: &[SeedRun]) -> Vec<ActionSpread> {
    let mut by_name: BTreeMap<(u64, &str), Vec<&ActionRecord>> = BTreeMap::new();
    for action in runs.iter().flat_map(|run| &run.actions) {
        by_name.entry((action.at.as_millis(), &action.name)).or_default().push(action);
    }
    let spread = |((at_ms, name), all): ((u64, &str), Vec<&ActionRecord>)| {
        let affected: Vec<f64> = all.iter().filter_map(|action| action.affected).map(|affected| affected as f64).collect();
        let spread = stats::spread(&affected);
        ActionSpread {
            name: name.to_string(),
            kind: all[0].kind.to_string(),
            fleet: all[0].fleet.clone(),
            at_ms,
            runs: all.len() as u64,
            left_out: all.iter().filter(|action| action.outcome == ActionOutcome::Skipped).count() as u64,
            median: spread.and_then(|spread| fine(spread.median)),
            min: spread.and_then(|spread| fine(spread.min)),
            max: spread.and_then(|spread| fine(spread.max)),
        }
    };
    by_name.into_iter().map(spread).collect()
}

/// What became of each gate.
pub(super) fn gates(runs: &[SeedRun], gates: &[GateConfig]) -> Vec<GateCount> {
    let count = |(index, gate): (usize, &GateConfig)| {
        let of = |status| runs.iter().filter(|run| run.gates.get(index) == Some(&status)).count() as u64;
        let in_file = gate.place.source == crate::config::Source::File && gate.place.line > 0;
        GateCount {
            gate: findings::describe(gate),
            pass: of(Status::Pass),
            fail: of(Status::Fail),
            inconclusive: of(Status::Inconclusive),
            line: in_file.then_some(gate.place.line),
        }
    };
    gates.iter().enumerate().map(count).collect()
}

/// A row for each run.
pub(super) fn rows(runs: &[SeedRun], frame: Frame) -> Vec<SeedRow> {
    let status = |status: &Status| match status {
        Status::Pass => GateStatus::Pass,
        Status::Fail => GateStatus::Fail,
        Status::Inconclusive => GateStatus::Inconclusive,
    };
    let row = |(run, curve): (&SeedRun, Option<CurveResult>)| SeedRow {
        seed: run.seed,
        outcome: outcome(run.outcome),
        class: run.class.map(class),
        sentence: run.class.map(|_| run.sentence.clone()),
        reasons: run.reasons.clone(),
        gates: run.gates.iter().map(status).collect(),
        waves: run.waves.map(WaveVerdict::from),
        figures: Figure::ALL.iter().map(|&figure| (figure.word().into(), run.figure(figure).and_then(fine))).collect(),
        curve,
    };
    runs.iter().zip(curves::each(runs, frame)).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn all() -> [SeedsResult; 4] {
        [sample::seeds_fail(), sample::seeds_share(), sample::seeds_expected(), sample::seeds_interrupted()]
    }

    #[test]
    fn the_document_validates_against_its_schema_and_reads_back() {
        let validator = jsonschema::validator_for(&schema()).unwrap();
        for result in all() {
            let value: Value = serde_json::from_slice(&json(&result)).unwrap();
            let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{errors:?}");
            assert_eq!(serde_json::from_value::<SeedsResult>(value).unwrap(), result);
        }
        let mut wrong = serde_json::to_value(sample::seeds_fail()).unwrap();
        wrong["outcome"] = "maybe".into();
        assert!(!validator.is_valid(&wrong));
    }

    #[test]
    fn every_field_of_the_schema_says_what_it_is() {
        for schema in [schema(), super::super::compare::schema()] {
            let roots = schema["$defs"].as_object().unwrap().iter().map(|(name, schema)| (name.as_str(), schema));
            for (name, schema) in roots.chain([("root", &schema)]) {
                for (field, property) in schema["properties"].as_object().into_iter().flatten() {
                    assert!(property["description"].is_string(), "{name}.{field}");
                }
            }
        }
    }

    #[test]
    fn figures_are_over_the_runs_with_evidence_and_never_is_the_longest() {
        let result = sample::seeds_fail();
        assert_eq!((result.recovered.runs, result.recovered.of), (3, 6));
        assert_eq!(result.worst, Some(3));
        let times = &result.figures.iter().find(|spread| spread.figure == "recovery_time").unwrap();
        assert_eq!((times.runs, times.never, times.min, times.median, times.max), (5, 2, Some(7.1), Some(9.0), None));
        assert_eq!(result.classes.iter().map(|count| count.runs).sum::<u64>(), 6);
        assert_eq!(result.seeds.iter().map(|row| row.seed).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(result.seeds[2].figures["recovery_time"], None);
        assert_eq!(result.seeds[2].figures["amplification"], Some(3.02));
        assert_eq!(
            result.waves,
            [WaveCount { verdict: WaveVerdict::Weak, runs: 2 }, WaveCount { verdict: WaveVerdict::None, runs: 3 }]
        );
        let [restart, page] = result.actions.as_slice() else { panic!("{:?}", result.actions) };
        assert_eq!((restart.runs, restart.left_out, restart.min, restart.max), (6, 0, Some(201.0), Some(206.0)));
        assert_eq!((page.runs, page.left_out, page.median), (6, 6, None));
        let lines = String::from_utf8(json(&result)).unwrap();
        assert_eq!(lines.lines().filter(|line| line.starts_with("    {\"seed\":")).count(), 6);
    }
}
