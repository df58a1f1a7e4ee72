//! Many runs as they might have been.

use super::plan;
use crate::config::Place;
use crate::fault::Phase;
use crate::gate::condition::Comparison;
use crate::gate::config::During;
use crate::gate::curve::Point;
use crate::gate::{Class, Condition, Contestant, GateConfig, Outcome, SeedRun, SeedShare, Status, judge_contest, judge_seeds};
use crate::gate::{CompareGate, Compared, Curve, Operator};
use crate::metrics::{ActionOutcome, ActionRecord, Figure, StopReason, WaveClass};
use crate::report::compare::{self, CompareInfo, CompareResult};
use crate::report::curves::Frame;
use crate::report::result::{Engine, PlanInfo};
use crate::report::seeds::{self, SeedsInfo, SeedsResult};
use crate::time::{Share, Span, Timestamp};
use std::sync::LazyLock;

const NEVER: f64 = f64::INFINITY;

/// A run that recovered after so many seconds; none without evidence.
fn run(seed: u64, seconds: Option<f64>, amplification: f64) -> SeedRun {
    let (outcome, class, sentence) = match seconds {
        None => (Outcome::Inconclusive, Class::Inconclusive, "outage touched no request: there was nothing to recover from"),
        Some(time) if time.is_infinite() => (
            Outcome::Fail,
            Class::Stuck,
            "40s after outage ended, goodput is 2.5% of the baseline's 400/s and the backlog does not fall",
        ),
        Some(time) if time > 15.0 => {
            (Outcome::Fail, Class::RecoveredLate, "healthy again after 17.5s, later than the 15s allowed")
        }
        Some(_) => (Outcome::Pass, Class::Recovered, "healthy again in time, and it held for 20s"),
    };
    let known = seconds.is_some();
    let value = |figure: &Figure| match figure {
        _ if !known => None,
        Figure::RecoveryTime => seconds,
        Figure::ErrorWindow => Some(18.0 + seed as f64),
        Figure::Amplification => Some(amplification),
        Figure::PeakAttempts => Some(amplification * 530.0),
        Figure::RetryShare => Some(1.0 - 1.0 / amplification),
        Figure::WastedWork => Some((0.9 - 1.0 / amplification).max(0.0)),
        Figure::Relapses => seconds.filter(|time| time.is_finite()).map(|_| 0.0),
        Figure::Failed | Figure::Lost => Some(3_000.0 + 5_000.0 * (amplification - 1.0)),
        Figure::P99 => Some(0.031 * amplification),
        Figure::OldestAge => None,
        Figure::WaveScore => Some(amplification / 2.0),
        _ => Some(0.0),
    };
    let reasons = if outcome == Outcome::Pass { Vec::new() } else { vec![format!("{}: {sentence}", class.word())] };
    SeedRun {
        seed,
        outcome,
        class: Some(class),
        sentence: sentence.into(),
        reasons,
        gates: vec![
            if known { Status::Pass } else { Status::Inconclusive },
            if amplification < 2.9 { Status::Pass } else { Status::Fail },
        ],
        doubtful: false,
        figures: Figure::ALL.iter().map(value).collect(),
        waves: known.then_some(if amplification < 2.9 { WaveClass::None } else { WaveClass::Weak }),
        actions: Vec::new(),
        curve: Some(curve(seconds, amplification)),
    }
}

/// The curve of such a run: nothing succeeds in the outage, and as long as it does not recover little does.
fn curve(seconds: Option<f64>, amplification: f64) -> Curve {
    let back = 25.0 + seconds.unwrap_or(0.0);
    let point = |at: u32| {
        let at = f64::from(at);
        let (goodput, retry_share) = match at {
            _ if at < 15.0 => (400.0, 0.0),
            _ if at < 25.0 => (0.0, 1.0 - 1.0 / amplification),
            _ if at < back => (10.0, 1.0 - 1.0 / amplification),
            _ => (400.0, 0.0),
        };
        Point { offered: 400.0, goodput, lowest: goodput, highest: goodput, retry_share: Some(retry_share) }
    };
    Curve { points: (0..60).map(point).collect() }
}

/// What these curves have in common.
pub fn frame() -> Frame<'static> {
    static PHASES: LazyLock<Vec<Phase>> = LazyLock::new(|| {
        let at = |seconds| Timestamp::ZERO + Span::from_secs(seconds);
        let phase = |name: &str, from, to, faults: &[&str]| {
            let faults = faults.iter().map(|name| name.to_string()).collect();
            Phase { name: name.into(), from: at(from), to: at(to), faults }
        };
        vec![phase("steady", 0, 15, &[]), phase("outage", 15, 25, &["outage"]), phase("after outage", 25, 60, &[])]
    });
    Frame { window: Span::from_secs(1), length: Span::from_secs(60), phases: &PHASES }
}

/// So many runs, the later ones worse.
pub fn many_runs(runs: u64) -> Vec<SeedRun> {
    (1..=runs)
        .map(|seed| run(seed, if seed > 250 && seed % 100 == 99 { Some(NEVER) } else { Some(5.0 + seed as f64 / 1e3) }, 1.2))
        .collect()
}

/// What the timeline of such a run did.
fn acted(seed: u64) -> Vec<ActionRecord> {
    let action = |name: &str, kind, fleet: Option<&str>, outcome, affected| ActionRecord {
        name: name.into(),
        kind,
        fleet: fleet.map(str::to_string),
        at: Timestamp(900_000_000_000),
        outcome,
        affected,
        detail: String::new(),
        undone: None,
    };
    vec![
        action("again", "restart", Some("app"), ActionOutcome::Done, Some(200 + seed)),
        action("page", "exec", None, ActionOutcome::Skipped, None),
    ]
}

fn gates() -> Vec<GateConfig> {
    let gate = |figure, text: &str, during, line| GateConfig {
        condition: Condition::new(figure, Comparison::parse(text).unwrap()).unwrap(),
        during,
        during_place: Place::default(),
        fleet: None,
        at: None,
        place: Place { line, ..Place::default() },
    };
    vec![
        gate(Figure::PeakAttempts, "<= 2.5x baseline", During::Recovery, 41),
        gate(Figure::Amplification, "<= 2.9x", During::Run, 42),
    ]
}

fn info(exit_code: u8, expect: Option<Class>) -> PlanInfo {
    PlanInfo { engine: Engine::Sim, exit_code, started_unix_ms: None, expect, ..plan() }
}

fn judged(runs: &[SeedRun], exit: u8, expect: Option<Class>, share: Option<f64>, stopped: Option<StopReason>) -> SeedsResult {
    let at_least = |share| SeedShare {
        at_least: Share::new(share).unwrap(),
        more: false,
        text: format!(">= {}% of seeds", share * 100.0),
        place: Place { line: 40, ..Place::default() },
    };
    let verdict = judge_seeds(runs, expect, share.map(at_least).as_ref());
    let planned = if stopped.is_some() { 20 } else { runs.len() as u64 };
    let plan = info(exit, expect);
    seeds::result(runs, &verdict, SeedsInfo { plan: &plan, gates: &gates(), planned, stopped: stopped.as_ref(), frame: frame() })
}

fn six() -> Vec<SeedRun> {
    let runs = [(Some(8.2), 1.2), (Some(7.1), 1.19), (Some(NEVER), 3.02), (Some(9.0), 1.25), (None, 1.2), (Some(NEVER), 2.98)];
    runs.into_iter()
        .enumerate()
        .map(|(index, (time, amplification))| run(index as u64 + 1, time, amplification))
        .map(|run| SeedRun { actions: acted(run.seed), ..run })
        .collect()
}

/// Half of six seeds recover, and the worst decides.
pub fn seeds_fail() -> SeedsResult {
    judged(&six(), 1, None, None, None)
}

/// Nineteen of twenty recover, and that is enough.
pub fn seeds_share() -> SeedsResult {
    let late = |seed| if seed == 14 { 17.5 } else { 7.0 + seed as f64 / 10.0 };
    let runs: Vec<SeedRun> = (1..=20).map(|seed| run(seed, Some(late(seed)), 1.1 + seed as f64 / 100.0)).collect();
    judged(&runs, 0, None, Some(0.95), None)
}

/// So many seeds, of which a few never recover.
pub fn seeds_many(runs: u64) -> SeedsResult {
    judged(&many_runs(runs), 1, None, Some(0.95), None)
}

/// Every seed is stuck, as the plan expects.
pub fn seeds_expected() -> SeedsResult {
    let stuck = |seed| {
        let run = run(seed, Some(NEVER), 2.8);
        SeedRun { outcome: Outcome::Pass, reasons: Vec::new(), ..run }
    };
    judged(&(1..=20).map(stuck).collect::<Vec<_>>(), 0, Some(Class::Stuck), None, None)
}

/// Interrupted after a few.
pub fn seeds_interrupted() -> SeedsResult {
    judged(&six()[..2], 130, None, None, Some(StopReason::Signal(2)))
}

/// A policy whose runs recovered after so many seconds.
pub fn contestant(seconds: &[Option<f64>]) -> Contestant {
    let runs = seconds.iter().enumerate().map(|(index, &time)| run(index as u64 + 1, time, 1.2)).collect();
    Contestant { name: "any".into(), runs }
}

fn contestants(seeds: u64) -> Vec<Contestant> {
    let policy = |name: &str, of: &dyn Fn(u64) -> SeedRun| Contestant { name: name.into(), runs: (1..=seeds).map(of).collect() };
    vec![
        policy("immediate", &|seed| run(seed, Some(NEVER), 3.0 + seed as f64 / 100.0)),
        policy("budget", &|seed| run(seed, Some(7.0 + seed as f64 / 10.0), 1.1 + seed as f64 / 100.0)),
        policy("backoff", &|seed| run(seed, if seed == 2 { Some(12.0) } else { Some(NEVER) }, 2.95 + (seed % 3) as f64 / 10.0)),
    ]
}

fn compared(seeds: u64) -> CompareResult {
    let contestants = contestants(seeds);
    let gate = |policy, figure, operator: Operator, factor: f64, text: &str, line| CompareGate {
        policy,
        figure,
        operator,
        against: if factor < 0.9 { crate::gate::Against::Reference(factor) } else { crate::gate::Against::Absolute(factor) },
        text: text.into(),
        place: Place { line, ..Place::default() },
    };
    let gates = [
        gate(0, Compared::Figure(Figure::PeakAttempts), Operator::AtMost, 0.6, "<= 60% of reference", 51),
        gate(1, Compared::Recovered, Operator::AtLeast, 0.95, ">= 95% of seeds", 52),
    ];
    let findings = judge_contest(&gates, &contestants[0], &contestants[1..]);
    let plan = info(1, None);
    let info = CompareInfo { plan: &plan, gates: &self::gates(), fleet: "app", planned: seeds, stopped: None, frame: frame() };
    compare::result(&contestants, &findings, info)
}

/// Three policies on six seeds.
pub fn comparison() -> CompareResult {
    compared(6)
}

/// Three policies on three seeds, which is little.
pub fn comparison_of_few() -> CompareResult {
    compared(3)
}
