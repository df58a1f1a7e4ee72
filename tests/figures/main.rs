//! Figures that take many customers or many seeds: tests like the others, built for release, which `.ci/run` runs beside them.

mod failures;
mod incident_a;
mod incident_c;
mod layers;
mod queueing;
#[path = "../it/simulated.rs"]
mod simulated;
mod spike;
mod thresholds;
mod writers;
