//! A model of a target: what a service with these limits does with the requests it gets.
//!
//! Owns the machine [`Service`] and its parts, one file or folder each, in the order in which a request meets them: memory, [`limiter`],
//! [`duplicates`], [`admission`], then [`servers`] at the pace of [`capacity`], or the [`queue`]; and [`System`], the services of a target that call each
//! other. The live target and the simulator drive the same [`System`]. Leaves to others: sockets, timers, and what a request looks like.

pub mod admission;
pub mod backlog;
pub mod capacity;
pub mod change;
pub mod config;
pub mod counts;
pub mod curve;
pub mod drain;
pub mod duplicates;
pub mod estimate;
pub mod executions;
pub mod histogram;
pub mod holding;
pub mod job;
pub mod key;
pub mod limiter;
pub mod machine;
pub mod names;
pub mod queue;
pub mod refusal;
pub mod refusals;
pub mod request;
pub mod servers;
pub mod system;
pub mod time;

pub use change::ServiceChange;
pub use config::ServiceConfig;
pub use counts::Counts;
pub use holding::Holding;
pub use key::{KeyHash, RequestKey};
pub use machine::{Calling, Service};
pub use request::{Answer, Arrival, BROKEN, Metadata, answer_body};
pub use system::{CallCounts, System, SystemConfig};
pub use time::ServiceTime;
