//! Windows to findings to a verdict.
//!
//! Owns what a run means: its [`Baseline`], whether it is healthy at a moment ([`health`]), its recovery class
//! ([`recovery`]), whether its measurements can be trusted ([`trust`]), its gates ([`findings`]), the outcome ([`judge`]), and when it is stopped before its end
//! ([`Stops`]). And what a plan asks of many runs ([`many`]). Leaves to others: how figures are made (`metrics`), and how a verdict is written down (`report`).

pub mod baseline;
pub mod condition;
pub mod config;
pub mod findings;
pub mod health;
pub mod many;
pub mod recovery;
#[cfg(test)]
mod scenario;
pub mod stop;
pub mod trend;
pub mod trust;
pub mod verdict;

pub use baseline::Baseline;
pub use condition::{Bound, Comparison, Condition, Operator};
pub use config::{Class, Expect, GateConfig, RecoveryConfig, SteadyState, StopConfig};
pub use findings::{Finding, Status};
pub use many::{Against, CompareGate, Compared, RunGate, SeedShare};
pub use recovery::Recovery;
pub use stop::Stops;
pub use verdict::{Judgement, Outcome, Verdict, judge};
