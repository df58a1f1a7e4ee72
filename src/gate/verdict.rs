//! The verdict on a run: what the judge found, as plain data.

use super::config::Class;
use crate::config::Place;
use crate::metrics::Unit;
use crate::time::{Span, Timestamp};

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Recovered, or as the plan expects, and every gate passed.
    Pass,
    /// Something did not hold.
    Fail,
    /// No evidence either way.
    Inconclusive,
    /// Ended before its time.
    Aborted,
}

/// What one gate found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingStatus {
    /// It held.
    Pass,
    /// It did not.
    Fail,
    /// Too little evidence.
    Inconclusive,
}

/// How the run recovered.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovery {
    /// The class.
    pub class: Class,
    /// The step whose end started the clock.
    pub fault: String,
    /// End of the fault to the start of the first sustained good stretch.
    pub recovery_time: Option<Span>,
    /// First to last window with errors above baseline + 1%, from the fault's start.
    pub error_window: Option<Span>,
    /// The same, divided by how long the fault was.
    pub error_window_ratio: Option<f64>,
    /// The clause that cleared last.
    pub last_clause: Option<String>,
    /// Times that health was lost again after recovery.
    pub relapses: u32,
    /// The class in a sentence, with the numbers behind it.
    pub sentence: String,
}

/// The stretch that later windows are compared with. Rates per second, times in seconds, shares as fractions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline {
    /// When it begins.
    pub from: Timestamp,
    /// When it ends.
    pub to: Timestamp,
    /// Goodput.
    pub goodput: Option<f64>,
    /// 99th percentile of operation latency.
    pub p99: Option<f64>,
    /// Share of attempts that failed.
    pub errors: Option<f64>,
    /// Retry share.
    pub retry_share: Option<f64>,
}

/// One gate's result.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What was asked.
    pub gate: String,
    /// What came of it.
    pub status: FindingStatus,
    /// The figure, in its unit.
    pub observed: Option<f64>,
    /// What it had to be.
    pub wanted: String,
    /// Where the gate stands in the plan.
    pub place: Place,
    /// What the figure is counted in.
    pub unit: Unit,
}

/// The verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The outcome.
    pub outcome: Outcome,
    /// The recovery; none where the plan asks for none.
    pub recovery: Option<Recovery>,
    /// The baseline; none where the plan has none.
    pub baseline: Option<Baseline>,
    /// One for each gate.
    pub findings: Vec<Finding>,
    /// Why the outcome is what it is.
    pub reasons: Vec<String>,
}
/// scaffold
pub struct Judgement { /// s
 pub steady: Option<super::SteadyState>, /// s
 pub recovery: Option<super::RecoveryConfig>, /// s
 pub gates: Vec<super::GateConfig>, /// s
 pub expect: Option<super::Expect>, /// s
 pub smallest_limit: Span, /// s
 pub fleet_names: Vec<String> }
/// scaffold
pub fn judge(_record: &crate::metrics::RunRecord, _judgement: &Judgement) -> Verdict {
    Verdict { outcome: Outcome::Pass, recovery: None, baseline: None, findings: vec![], reasons: vec![] }
}
