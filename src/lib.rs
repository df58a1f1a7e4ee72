//! stormwake: a load-generating chaos test harness that answers one question about a system before production
//! does: *when the fault ends, does the incident end?*
//!
//! # Map
//!
//! A module uses only modules on lower floors, and modules listed before it on its own. The tidy test
//! (`tests/it/tidy.rs`) reads this list and fails on any other `use`, and on a module that is not listed.
//!
//! Floor 0: vocabulary, pure data
//! - `time`: moments, lengths of time, rates and shares, and how each is written
//! - `rng`: counter-based randomness
//! - `event`: what a run emits
//! - `config`: configuration as a tree with places, and how plain types are read from it
//!
//! Floor 1: state machines, without IO
//! - `pace`: a shared pacer: at most so many a second
//! - `load`: when operations are offered
//! - `policy`: whether and when to retry
//! - `operation`: the retry loop
//! - `fleet`: clients that share a load shape and a policy
//! - `fault`: what harm, and when
//! - `service`: a model of a target
//! - `metrics`: events to windows and histograms
//! - `gate`: windows to findings to a verdict
//! - `plan`: YAML to a checked plan
//!
//! Floor 2: engines
//! - `engine`: carries out what the machines decide; owns time and effects
//!
//! Floor 3: surface
//! - `report`: a run's record to bytes
//! - `cli`: one file per command; exit codes in one table

pub mod config;
pub mod engine;
pub mod event;
pub mod fault;
pub mod fleet;
pub mod gate;
pub mod load;
pub mod metrics;
pub mod operation;
pub mod pace;
pub mod plan;
pub mod policy;
pub mod report;
pub mod rng;
pub mod service;
pub mod time;

#[cfg(feature = "live")]
pub mod cli;
