//! `compare.json`: policies on one plan and the same seeds, as one document.
//!
//! The parts of a policy's runs are those of `seeds.json`. An effect is the median of the paired differences `candidate − reference`, with the order-statistic interval
//! of that median (see `stats::effect`); a difference is shown where that interval holds no zero. Not where the two policies' own ranges do not overlap: paired
//! runs see the same arrivals and the same fault dice, and what differs between seeds is not what differs between policies.

use super::curves::{self, CurvesResult, Frame};
use super::published::COMPARE;
use super::result::{Engine, FindingResult, PlanInfo, PlanRef, RunOutcome, Stopped};
use super::result::{document, finding, fine, outcome, stopped};
use super::seeds::{ClassCount, FigureSpread, GateCount, SeedRow, ShareResult};
use super::seeds::{classes, gates, plan_ref, rows, share, spreads};
use crate::gate::{Contestant, Finding, GateConfig, Outcome, contest};
use crate::metrics::{Figure, StopReason};
use crate::stats::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Policies compared, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompareResult {
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
    /// The engine that ran it.
    pub engine: Engine,
    /// The fleet whose policy varied.
    pub fleet: String,
    /// When the first run started, in milliseconds since the Unix epoch; null in virtual time.
    pub started_unix_ms: Option<u64>,
    /// The outcome: that of the gates of the comparison; without any, a pass unless a run had no evidence.
    pub outcome: RunOutcome,
    /// The exit code of the process.
    pub exit_code: u8,
    /// Whether a failed or inconclusive outcome ends the process with 0 (`--advisory`); left out where it does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub advisory: bool,
    /// Why not every run was made; null where every one was.
    pub stopped: Option<Stopped>,
    /// How many runs each policy was to have.
    pub planned: u64,
    /// The gates of the comparison, in the order of the plan.
    pub gates: Vec<FindingResult>,
    /// The reference, and then the candidates, in the order of the plan.
    pub policies: Vec<PolicyResult>,
}

/// One policy's runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyResult {
    /// Its name.
    pub name: String,
    /// Whether it is what the others are measured against.
    pub reference: bool,
    /// How many of its runs recovered in time.
    pub recovered: ShareResult,
    /// How many passed by the plan's own gates and expectation.
    pub passed: u64,
    /// How many had which recovery class.
    pub classes: Vec<ClassCount>,
    /// Median and range of each figure over the runs with evidence.
    pub figures: Vec<FigureSpread>,
    /// What it changes in each figure against the reference; empty for the reference.
    pub effects: Vec<EffectResult>,
    /// What became of the plan's own gates.
    pub gates: Vec<GateCount>,
    /// The seed of its worst run: by outcome (aborted, fail, inconclusive, pass), then by recovery time; the first of equals. Null without runs.
    #[serde(default)]
    pub worst: Option<u64>,
    /// What the recovery curves have in common; null in documents of versions before they were kept.
    #[serde(default)]
    pub curves: Option<CurvesResult>,
    /// One for each run, in the order of the seeds.
    pub seeds: Vec<SeedRow>,
}

/// What a candidate changes in a figure, from pairs of runs with one seed: in the figure's unit, below zero where the candidate has less.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EffectResult {
    /// Which figure, by its name in the table of figures.
    pub figure: String,
    /// How many seeds have evidence of it under both policies.
    pub pairs: u64,
    /// What is shown.
    pub difference: Difference,
    /// The median difference; null where it is infinite, or nothing is known.
    pub median: Option<f64>,
    /// The lower end of the interval in which the true median lies; null likewise.
    pub low: Option<f64>,
    /// The upper end; null likewise.
    pub high: Option<f64>,
    /// How surely it lies there, 0 to 1: 0.95 or more, or less where the pairs are too few for that; null without pairs.
    pub confidence: Option<f64>,
}

/// What a comparison shows of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Difference {
    /// The candidate has less than the reference.
    Less,
    /// The candidate has more.
    More,
    /// No difference is shown: the interval holds zero.
    None,
    /// No seed has evidence under both policies.
    Unknown,
}

/// What is known beside the runs.
#[derive(Clone, Copy, Debug)]
pub struct CompareInfo<'a> {
    /// The plan; its `seed` is not used.
    pub plan: &'a PlanInfo,
    /// Its own gates.
    pub gates: &'a [GateConfig],
    /// The fleet whose policy varied.
    pub fleet: &'a str,
    /// How many runs each policy was to have.
    pub planned: u64,
    /// Why not every run was made.
    pub stopped: Option<&'a StopReason>,
    /// What the curves have in common.
    pub frame: Frame<'a>,
}

/// How a comparison ends: its gates decide. Without any it is no judgement, and passes unless a run is no evidence. Interrupted, it is aborted.
pub fn conclude(findings: &[Finding], contestants: &[Contestant], interrupted: bool) -> Outcome {
    use crate::gate::Status;
    let any = |status| findings.iter().any(|finding| finding.status == status);
    let silent = |outcome| matches!(outcome, Outcome::Inconclusive | Outcome::Aborted);
    let unclear = || contestants.iter().any(|c| c.runs.is_empty() || c.runs.iter().any(|run| silent(run.outcome)));
    match () {
        () if interrupted => Outcome::Aborted,
        () if any(Status::Fail) => Outcome::Fail,
        () if any(Status::Inconclusive) => Outcome::Inconclusive,
        () if findings.is_empty() && unclear() => Outcome::Inconclusive,
        () => Outcome::Pass,
    }
}

/// The document of a comparison. The first contestant is the reference.
pub fn result(contestants: &[Contestant], findings: &[Finding], info: CompareInfo) -> CompareResult {
    let ended = conclude(findings, contestants, info.stopped.is_some());
    CompareResult {
        schema_version: COMPARE.version,
        stormwake: env!("CARGO_PKG_VERSION").to_string(),
        plan: plan_ref(info.plan),
        operator: info.plan.operator.clone(),
        note: info.plan.note.clone(),
        engine: info.plan.engine,
        fleet: info.fleet.to_string(),
        started_unix_ms: info.plan.started_unix_ms,
        outcome: outcome(ended),
        exit_code: info.plan.exit_code,
        advisory: info.plan.advisory,
        stopped: info.stopped.map(stopped),
        planned: info.planned,
        gates: findings.iter().map(finding).collect(),
        policies: (0..contestants.len()).map(|index| policy(index, contestants, info)).collect(),
    }
}

fn policy(index: usize, contestants: &[Contestant], info: CompareInfo) -> PolicyResult {
    let contestant = &contestants[index];
    let runs = &contestant.runs;
    let effects = |candidate| Figure::ALL.iter().map(move |&figure| effect(figure, &contestants[0], candidate)).collect();
    PolicyResult {
        name: contestant.name.clone(),
        reference: index == 0,
        recovered: share(contestant.recovered(), runs, Some(crate::gate::Class::Recovered)),
        passed: runs.iter().filter(|run| run.outcome == Outcome::Pass).count() as u64,
        classes: classes(runs),
        figures: spreads(runs),
        effects: if index == 0 { Vec::new() } else { effects(contestant) },
        gates: gates(runs, info.gates),
        worst: crate::gate::worst(runs).map(|index| runs[index].seed),
        curves: Some(curves::common(runs, info.frame)),
        seeds: rows(runs, info.frame),
    }
}

fn effect(figure: Figure, reference: &Contestant, candidate: &Contestant) -> EffectResult {
    let effect = contest::effect(figure, reference, candidate);
    EffectResult {
        figure: figure.word().to_string(),
        pairs: effect.map_or(0, |effect| effect.pairs as u64),
        difference: effect.map_or(Difference::Unknown, difference),
        median: effect.and_then(|effect| fine(effect.median)),
        low: effect.and_then(|effect| fine(effect.low)),
        high: effect.and_then(|effect| fine(effect.high)),
        confidence: effect.and_then(|effect| fine(effect.confidence)),
    }
}

fn difference(effect: Effect) -> Difference {
    match effect.is_shown() {
        true if effect.low > 0.0 => Difference::More,
        true => Difference::Less,
        false => Difference::None,
    }
}

/// The document's bytes: one line for each figure, effect, gate and seed.
pub fn json(result: &CompareResult) -> Vec<u8> {
    document(result, 4)
}

/// The JSON Schema of `compare.json`.
pub fn schema() -> Value {
    COMPARE.schema::<CompareResult>()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::gate::Status;

    #[test]
    fn the_document_validates_against_its_schema_and_reads_back() {
        let validator = jsonschema::validator_for(&schema()).unwrap();
        let result = sample::comparison();
        let bytes = json(&result);
        let value: Value = serde_json::from_slice(&bytes).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(serde_json::from_value::<CompareResult>(value).unwrap(), result);
        assert_eq!(bytes, json(&sample::comparison()));
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.lines().filter(|line| line.trim_start().starts_with("{\"seed\":")).count(), 18, "a line a run");
    }

    #[test]
    fn what_overlaps_is_no_difference() {
        let result = sample::comparison();
        let effect = |policy: usize, figure: &str| {
            result.policies[policy].effects.iter().find(|effect| effect.figure == figure).cloned().unwrap()
        };
        assert!(result.policies[0].reference && result.policies[0].effects.is_empty());
        let attempts = effect(1, "amplification");
        assert_eq!((attempts.difference, attempts.pairs), (Difference::Less, 6));
        assert!(attempts.high.unwrap() < 0.0 && attempts.confidence.unwrap() >= 0.95, "{attempts:?}");
        assert_eq!(effect(2, "amplification").difference, Difference::None, "differences on either side of zero");
        let time = effect(1, "recovery_time");
        assert_eq!((time.difference, time.median), (Difference::Less, None), "it ends what never ended");
        assert_eq!(effect(2, "oldest_age").difference, Difference::Unknown);
    }

    #[test]
    fn its_own_gates_decide() {
        let finding = |status| Finding {
            gate: "budget: recovered >= 95%".into(),
            status,
            observed: String::new(),
            wanted: String::new(),
            value: None,
            bound: None,
            place: Default::default(),
        };
        let (good, unclear) = (sample::contestant(&[Some(8.0)]), sample::contestant(&[Some(8.0), None]));
        let stuck = sample::contestant(&[Some(f64::INFINITY)]);
        use Status::{Fail, Inconclusive, Pass};
        for (statuses, contestants, interrupted, outcome) in [
            (&[Pass, Pass][..], vec![good.clone()], false, Outcome::Pass),
            (&[Pass], vec![unclear.clone()], false, Outcome::Pass),
            (&[Pass, Inconclusive], vec![good.clone()], false, Outcome::Inconclusive),
            (&[Inconclusive, Fail], vec![good.clone()], false, Outcome::Fail),
            (&[], vec![good.clone(), stuck], false, Outcome::Pass),
            (&[], vec![good.clone(), unclear], false, Outcome::Inconclusive),
            (&[], vec![good.clone(), sample::contestant(&[])], false, Outcome::Inconclusive),
            (&[Fail], vec![good], true, Outcome::Aborted),
        ] {
            let findings: Vec<Finding> = statuses.iter().map(|&status| finding(status)).collect();
            assert_eq!(conclude(&findings, &contestants, interrupted), outcome, "{statuses:?}");
        }
    }
}
