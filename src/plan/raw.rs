//! The plan as written, before names are resolved and numbers are checked against each other.

use super::action::RawAction;
use super::compare::RawCompare;
use super::fleet::RawFleet;
use super::presets::PolicySpec;
use super::target::TargetConfig;
use crate::config::{At, Lenient, Read, Table, TimeScale};
use crate::fault::Fault;
use crate::gate::{Expect, RecoveryConfig, RunGate, SteadyState, StopConfig};
use crate::network::Network;
use crate::record;
use crate::time::Span;

/// How long the windows are by which a run is judged, at any speed.
const WINDOW: Span = Span::from_secs(1);

record! {
    /// A step of the timeline: a fault at a time for a duration, or an action at a time.
    pub struct RawStep {
        /// When it begins, from the start of the run.
        at: At<Span>,
        /// How long it lasts; to the end of the run where nothing is said. Of actions, `pause` alone can last.
        r#for: Option<At<Span>>,
        /// Its name, for `recovery`, gates and reports; the fault's or action's own where nothing is said.
        name: Option<At<String>>,
        /// The harm that it does; or, in its place, `action`.
        fault: Option<At<Fault>>,
        /// What it does beside harm.
        action: Option<At<RawAction>>,
        /// The fleets that the fault strikes; all of them where nothing is said.
        fleets: Option<At<Vec<At<String>>>>,
        /// The destinations of workers' queues whose requests it strikes; all requests where nothing is said.
        destinations: Option<At<Vec<At<String>>>>,
        /// The regions it strikes, of the fleets that it strikes; all of them where nothing is said.
        regions: Option<At<Vec<At<String>>>>,
    } => |s: &RawStep| match (&s.fault, &s.action) {
        (Some(_), None) | (None, Some(_)) => Ok(()),
        (None, None) => Err("a step needs a `fault`, or an `action`: such as `fault: { blackhole: {} }`".to_string()),
        (Some(_), Some(_)) => Err("`action` and `fault` exclude each other: make two steps of it".to_string()),
    }
}

record! {
    /// A stormwake plan: top to bottom like a game day.
    pub struct RawPlan {
        /// The version of the plan's language: 1.
        version: Lenient<At<u32>>,
        /// What reports and folders are named after; the file's name where nothing is said.
        name: Option<Lenient<At<String>>>,
        /// Drives every random choice of the run.
        seed: Lenient<u64> = Lenient(Some(1)),
        /// Where the load goes.
        target: Lenient<At<TargetConfig>>,
        /// The network of a simulated run, as settings or as a word: `loopback`, `wan`. A live run has its own.
        network: Lenient<Network> = Lenient(Some(Network::loopback())),
        /// Policies by name.
        policies: Lenient<Table<Lenient<PolicySpec>>> = Lenient(Some(Table::default())),
        /// Fleets by name.
        fleets: Lenient<At<Table<Lenient<At<RawFleet>>>>>,
        /// The baseline: the stretch before the first fault (30s of it at most) where nothing is said and `recovery` needs one.
        steady_state: Option<Lenient<At<SteadyState>>>,
        /// The faults, and what else happens.
        timeline: Lenient<Vec<Lenient<At<RawStep>>>> = Lenient(Some(Vec::new())),
        /// What counts as recovered.
        recovery: Option<Lenient<At<RecoveryConfig>>>,
        /// Checks on the run, and on the seeds of many.
        gates: Lenient<Vec<Lenient<RunGate>>> = Lenient(Some(Vec::new())),
        /// When the run is stopped before its end.
        stop_if: Lenient<Vec<Lenient<StopConfig>>> = Lenient(Some(Vec::new())),
        /// What a plan that shows a failure expects; it passes when it gets that.
        expect: Option<Lenient<At<Expect>>>,
        /// Policies to compare on this plan, with `stormwake compare`.
        compare: Option<Lenient<At<RawCompare>>>,
        /// How long the run is.
        length: Lenient<At<Span>>,
        /// Puts the plan at another speed: `1/20` divides every duration by twenty and multiplies every rate.
        time_scale: Option<Lenient<TimeScale>>,
        /// What deadlines are rounded up to; no time scale changes it.
        timer_grain: Lenient<At<Span>> = Lenient(Some(At { value: Span::from_micros(250), place: Default::default() })),
    }
}

impl RawPlan {
    /// The plan at the speed that it asks for, and which that is; none where that is its own.
    pub(super) fn at_its_speed(mut self) -> (Self, Option<TimeScale>) {
        let scale = self.time_scale.as_ref().and_then(|scale| scale.0).filter(|scale| !scale.is_none());
        if let Some(scale) = scale {
            // The grain is the machine's, not the plan's.
            let grain = self.timer_grain.clone();
            self.rescale(scale);
            self.timer_grain = grain;
            self.judged().into_iter().for_each(|span| *span = (*span).max(WINDOW));
        }
        (self, scale)
    }

    /// What is judged by windows, and so cannot be shorter than one.
    fn judged(&mut self) -> Vec<&mut Span> {
        let steady = self.steady_state.as_mut().and_then(|steady| steady.0.as_mut());
        let recovery = self.recovery.as_mut().and_then(|recovery| recovery.0.as_mut());
        let mut all: Vec<&mut Span> = steady.map(|steady| &mut steady.value.r#for).into_iter().collect();
        all.extend(recovery.into_iter().flat_map(|At { value, .. }| [&mut value.span, &mut value.hold]));
        all.into_iter().filter(|span| !span.is_zero()).collect()
    }
}
