//! What the timeline did beside harm, and whether the load came back in step.

use super::build::fine;
use crate::metrics::{ActionOutcome, ActionRecord, RunRecord, Taps, Wave, WaveClass};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What came of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ActionStatus {
    /// It was done.
    Done,
    /// It was tried, and failed.
    Failed,
    /// It was not tried: a simulated run reaches nothing outside.
    Skipped,
}

/// What an action of the timeline came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActionResult {
    /// Its name.
    pub name: String,
    /// Its kind, as in the plan.
    pub kind: String,
    /// The fleet that it was done to; null for commands and webhooks.
    pub fleet: Option<String>,
    /// When, in milliseconds since the run began.
    pub at_ms: u64,
    /// What came of it.
    pub outcome: ActionStatus,
    /// How many clients, workers or operations it changed something for; null for commands and webhooks.
    pub affected: Option<u64>,
    /// What a command or a webhook answered, or why it was not done; shortened.
    pub detail: String,
    /// Whether what undoes it worked; null where nothing does, or nothing was done.
    pub undone: Option<bool>,
}

/// Whether there are waves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum WaveVerdict {
    /// Peak/mean at most 1.3, or an autocorrelation of at most 0.2.
    None,
    /// Something in between.
    Weak,
    /// Peak/mean at least 1.5 and an autocorrelation of at least 0.5, over at least three periods.
    Waves,
}

/// The strongest period of a tap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaveResult {
    /// Whether that is a wave.
    pub verdict: WaveVerdict,
    /// The period, in milliseconds.
    pub period_ms: u64,
    /// Whether a policy implies that period; where not, the series shows it.
    pub implied: bool,
    /// The median over its whole periods of the highest window / the mean window, the trend divided out.
    pub peak_to_mean: f64,
    /// The correlation of the series with itself one period later, the trend divided out; 0 where it is not told from noise.
    pub autocorrelation: f64,
    /// How many whole periods that is seen over.
    pub periods: u64,
}

/// What is seen at each tap; null where there is too little to see.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TapsResult {
    /// Of operations whose moment to be sent came.
    pub scheduled: Option<WaveResult>,
    /// Of attempts sent.
    pub dispatched: Option<WaveResult>,
    /// Of requests that reached the proxy.
    pub arrived: Option<WaveResult>,
}

/// Whether the load came back in step, from the first fault on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WavesResult {
    /// Where the stretch begins, in milliseconds since the run began.
    pub from_ms: u64,
    /// The figure `wave_score`: at the arrived tap, peak/mean of the strongest period, or 1 where nothing repeats; null where there is too little to see.
    pub score: Option<f64>,
    /// Over all fleets.
    pub all: TapsResult,
    /// By fleet, in the order of the plan; empty where these are too many for so long a run.
    pub fleets: Vec<TapsResult>,
}

impl From<WaveClass> for WaveVerdict {
    fn from(class: WaveClass) -> Self {
        match class {
            WaveClass::None => Self::None,
            WaveClass::Weak => Self::Weak,
            WaveClass::Waves => Self::Waves,
        }
    }
}

impl From<ActionOutcome> for ActionStatus {
    fn from(outcome: ActionOutcome) -> Self {
        match outcome {
            ActionOutcome::Done => Self::Done,
            ActionOutcome::Failed => Self::Failed,
            ActionOutcome::Skipped => Self::Skipped,
        }
    }
}

pub(super) fn actions(record: &RunRecord) -> Vec<ActionResult> {
    record.actions.iter().map(action).collect()
}

fn action(action: &ActionRecord) -> ActionResult {
    ActionResult {
        name: action.name.clone(),
        kind: action.kind.to_string(),
        fleet: action.fleet.clone(),
        at_ms: action.at.as_millis(),
        outcome: action.outcome.into(),
        affected: action.affected,
        detail: action.detail.clone(),
        undone: action.undone,
    }
}

pub(super) fn waves(record: &RunRecord) -> Option<WavesResult> {
    let waves = record.waves.as_ref()?;
    Some(WavesResult {
        from_ms: waves.from.as_millis(),
        score: waves.all.arrived.and_then(|wave| fine(wave.score())),
        all: taps(&waves.all),
        fleets: waves.fleets.iter().map(taps).collect(),
    })
}

fn taps(taps: &Taps) -> TapsResult {
    let of = |wave: &Option<Wave>| wave.as_ref().map(wave_result);
    TapsResult { scheduled: of(&taps.scheduled), dispatched: of(&taps.dispatched), arrived: of(&taps.arrived) }
}

pub(super) fn wave_result(wave: &Wave) -> WaveResult {
    WaveResult {
        verdict: wave.class.into(),
        period_ms: wave.period.as_millis(),
        implied: wave.implied,
        peak_to_mean: fine(wave.peak_to_mean).unwrap_or(1.0),
        autocorrelation: fine(wave.autocorrelation).unwrap_or(0.0),
        periods: wave.periods,
    }
}
