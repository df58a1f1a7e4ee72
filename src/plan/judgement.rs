//! What the judge needs of a plan.

use super::Plan;
use crate::gate::Judgement;
use crate::time::Span;

impl Plan {
    /// What the plan asks of a run.
    pub fn judgement(&self) -> Judgement {
        Judgement {
            steady: self.steady_state.clone(),
            recovery: self.recovery.clone(),
            gates: self.gates.clone(),
            expect: self.expect.clone(),
            stop_if: self.stop_if.clone(),
            smallest_timeout: self.smallest_timeout(),
            fleet_names: self.fleets.iter().map(|fleet| fleet.name.clone()).collect(),
        }
    }

    /// The smallest timeout, deadline or `success.within`: what a late generator is measured against. Zero where there is none.
    fn smallest_timeout(&self) -> Span {
        let timeouts = self.fleets.iter().flat_map(|fleet| [Some(fleet.policy.timeout), fleet.policy.deadline]).flatten();
        timeouts.chain(self.target.success.within).min().unwrap_or(Span::ZERO)
    }
}
