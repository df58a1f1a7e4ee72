//! Windows to findings to a verdict.

pub mod condition;
pub mod config;
pub mod verdict;

pub use condition::{Bound, Comparison, Condition, Operator};
pub use config::{Class, Expect, GateConfig, RecoveryConfig, SteadyState, StopConfig};
pub use verdict::{Baseline, Finding, FindingStatus, Judgement, Outcome, Recovery, Verdict, judge};
pub mod stop;
pub use stop::Stops;
