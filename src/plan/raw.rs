//! The plan as written, before names are resolved and numbers are checked against each other.

use super::target::TargetConfig;
use crate::config::{At, Table};
use crate::fault::Fault;
use crate::gate::{Expect, GateConfig, RecoveryConfig, SteadyState, StopConfig};
use crate::policy::Policy;
use crate::record;
use crate::time::Span;

record! {
    /// A step of the timeline: a fault, at a time, for a duration.
    pub struct RawStep {
        /// When it begins, from the start of the run.
        at: Span,
        /// How long it lasts; to the end of the run where nothing is said.
        r#for: Option<Span>,
        /// Its name, for `recovery`, gates and reports; the fault's own where nothing is said.
        name: Option<String>,
        /// What it does.
        fault: Fault,
        /// The fleets it strikes; all of them where nothing is said.
        fleets: Vec<At<String>> = Vec::new(),
    }
}

record! {
    /// A stormwake plan: top to bottom like a game day.
    pub struct RawPlan {
        /// The version of the plan's language: 1.
        version: At<u32>,
        /// What reports and folders are named after; the file's name where nothing is said.
        name: Option<At<String>>,
        /// Drives every random choice of the run.
        seed: u64 = 1,
        /// Where the load goes.
        target: At<TargetConfig>,
        /// Policies by name.
        policies: Table<Policy> = Table::default(),
        /// Fleets by name.
        fleets: At<Table<At<super::fleet::RawFleet>>>,
        /// The baseline.
        steady_state: Option<At<SteadyState>>,
        /// The faults.
        timeline: Vec<At<RawStep>> = Vec::new(),
        /// What counts as recovered.
        recovery: Option<At<RecoveryConfig>>,
        /// Checks on the run.
        gates: Vec<GateConfig> = Vec::new(),
        /// When the run is stopped before its end.
        stop_if: Vec<StopConfig> = Vec::new(),
        /// What a plan that shows a failure expects; it passes when it gets that.
        expect: Option<Expect>,
        /// How long the run is.
        length: At<Span>,
        /// What deadlines are rounded up to.
        timer_grain: Span = Span::from_micros(250),
    }
}
