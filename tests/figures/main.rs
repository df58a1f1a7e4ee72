//! Figures that take many customers or many seeds: tests like the others, built for release, which `.ci/run` runs beside them.
#![allow(clippy::disallowed_methods, reason = "the peers of these tests live in real time")]

mod failures;
mod incident_a;
mod incident_c;
mod layers;
#[path = "../it/plane.rs"]
mod plane;
mod proxy;
mod queueing;
#[path = "../it/simulated.rs"]
mod simulated;
mod spike;
mod thresholds;
mod writers;
