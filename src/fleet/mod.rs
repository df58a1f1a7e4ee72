//! Clients that share a load shape and a policy.
//!
//! [`Machine`] is what an engine drives: [`Devices`], clients with an outbox each. The other files are its parts, and
//! [`interface`] is what an engine exchanges with it.

pub mod action;
mod ceiling;
mod client;
pub mod config;
pub mod devices;
pub mod interface;
pub mod kinds;
pub mod link;
mod machine;
mod ranks;
pub mod regions;
pub mod restraint;
mod route;
mod rules;
mod slab;
#[cfg(test)]
mod storm;
pub mod workers;

pub use crate::operation::on_grid;
pub use action::{FleetAction, PauseScope, TimedAction};
pub use config::{Connections, FleetConfig, IdempotencyKey, LateStarts, WhenFull};
pub use devices::Devices;
pub use interface::{Command, Gauges, NO_DESTINATION, Output, Send, Setup, Shared, SharedAfter, Token};
pub use kinds::{Operations, Priority};
pub use link::LinkConfig;
pub use machine::Machine;
pub use regions::Regions;
pub use restraint::Defer;
pub use workers::{Workers, WorkersConfig};
