//! Virtual time: the same machines as live, a scheduler in place of the clock, a model in place of network and target.
//!
//! A run is a function of its plan and seed: one thread, one total order of events, counter-based draws, software floats. It
//! reads no clock and does no IO.

mod driver;
mod flight;
pub mod many;
pub mod queue;
mod trace;
pub mod world;

pub use driver::{Driver, Effort, Queues};
pub use trace::{EventHash, EventList, Trace};

use super::Observer;
use crate::fault::{Fault, Step};
use crate::metrics::RunRecord;
use crate::plan::Plan;
use crate::service::SystemConfig;
use queue::{BucketQueue, HeapQueue};
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
    /// A fault whose harm depends on the size of answers, and nobody knows that of a model's.
    #[error(
        "`{step}` slows the bodies of answers, and how long those of `{url}` are, no model says: simulate it with `service:` in the place of \
         the URL, or with `latency` in the place of `slow_body`"
    )]
    NoSize {
        /// The step.
        step: String,
        /// The target.
        url: String,
    },
    /// A fault harms bytes, and there are none.
    #[error(
        "the step `{step}` is `{fault}`, a fault of bytes, and a simulation has none: run the plan on real sockets with `stormwake run`, or put \
         `latency`, `reset` or `blackhole` with a share in its place"
    )]
    OfBytes {
        /// The step that has it.
        step: String,
        /// Which.
        fault: &'static str,
    },
    /// It has a part that only real services play.
    #[error("{0}")]
    LiveOnly(String),
}

/// What simulations run on.
#[derive(Clone, Copy, Debug)]
pub struct Buckets;

impl Queues for Buckets {
    type Wakes = BucketQueue<driver::Wake>;
    type Steps = BucketQueue<world::Step>;
}

/// The reference that they are compared with.
#[derive(Clone, Copy, Debug)]
pub struct Heaps;

impl Queues for Heaps {
    type Wakes = HeapQueue<driver::Wake>;
    type Steps = HeapQueue<world::Step>;
}

/// Simulates a plan with its seed. `signal` becomes the number of a signal when the run is to end early.
///
/// # Errors
/// A plan that says too little of its target, or has a fault of bytes.
pub fn run(plan: &Plan, observer: &mut dyn Observer, signal: &AtomicI32) -> Result<RunRecord, SimError> {
    run_on::<Buckets, ()>(plan, observer, signal, ()).map(|(record, ..)| record)
}

/// [`run`], on queues of the caller's choice, with somebody who listens to every event; says what it took too.
///
/// # Errors
/// A plan that says too little of its target, or has a fault of bytes.
pub fn run_on<Q: Queues, T: Trace>(
    plan: &Plan,
    observer: &mut dyn Observer,
    signal: &AtomicI32,
    trace: T,
) -> Result<(RunRecord, Effort, T), SimError> {
    Ok(Driver::<Q, T>::new(plan, &model(plan)?, observer, trace).run(signal))
}

/// What stands in for a plan's target: the built-in one, or the model beside its URL.
///
/// # Errors
/// A URL without a model or with one that says too little, and a plan with a part that only real sockets and services play.
pub fn model(plan: &Plan) -> Result<SystemConfig, SimError> {
    if let Some(why) = plan.live_only() {
        return Err(SimError::LiveOnly(why));
    }
    if let Some((step, fault)) = plan.timeline.iter().find_map(|step| Some((step, step.fault.as_ref().filter(|f| f.of_bytes())?)))
    {
        return Err(SimError::OfBytes { step: step.name.clone(), fault: fault.key() });
    }
    let target = &plan.target;
    let url = || target.url.as_ref().map(|url| url.value.to_string()).unwrap_or_default();
    let system = target.system().ok_or_else(|| SimError::NoModel { url: url() })?;
    let slow = |step: &&Step| matches!(step.fault, Some(Fault::SlowBody(_)));
    match plan.timeline.iter().find(slow).filter(|_| target.service.is_none()) {
        Some(step) => Err(SimError::NoSize { step: step.name.clone(), url: url() }),
        None => Ok(system),
    }
}

#[cfg(test)]
mod tests;
