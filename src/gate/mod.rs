//! Windows to findings to a verdict.
//!
//! Owns what a run means: its [`Baseline`], whether it is healthy at a moment ([`health`]), its recovery class
//! ([`recovery`]), whether its measurements can be trusted ([`trust`]), its gates ([`findings`]), the outcome ([`judge`]), and when it is stopped before its end
//! ([`Stops`]), at our own clients or at the tap of one of the plan's proxies ([`view`]). And what a plan asks of many runs ([`many`]), their verdict ([`seeds`]) and what is drawn of each ([`curve`]), policies against each other ([`contest`]), and at which
//! value of a setting half of the runs stay stuck ([`tipping`]). Leaves to others: how figures are made (`metrics`), and how a verdict is written
//! down (`report`).

pub mod baseline;
pub mod condition;
pub mod config;
pub mod contest;
pub mod curve;
pub mod findings;
pub mod health;
pub mod many;
pub mod recovery;
#[cfg(test)]
mod scenario;
pub mod seeds;
pub mod stop;
pub mod tipping;
pub mod trend;
pub mod trust;
pub mod verdict;
pub mod view;

pub use baseline::Baseline;
pub use condition::{Bound, Comparison, Condition, Operator};
pub use config::{Class, Expect, GateConfig, RecoveryConfig, SteadyState, StopConfig};
pub use contest::{Contestant, judge_contest};
pub use curve::{CURVES, Curve};
pub use findings::{Finding, Status};
pub use many::{Against, CompareGate, Compared, RunGate, SeedShare};
pub use recovery::Recovery;
pub use seeds::{SeedRun, SeedsVerdict, judge_seeds, worst};
pub use stop::Stops;
pub use verdict::{Judgement, Outcome, Verdict, judge};
