//! Clients that share a load shape and a policy.
//!
//! [`Devices`] is the machine: clients with an outbox and one connection each. The other files are its parts, and
//! [`interface`] is what an engine exchanges with it.

pub mod action;
mod ceiling;
mod client;
pub mod config;
pub mod devices;
pub mod interface;
mod route;
mod rules;
mod slab;
#[cfg(test)]
mod storm;

pub use crate::operation::on_grid;
pub use action::{FleetAction, LaneChange, PauseScope, TimedAction};
pub use config::{Connections, FleetConfig, IdempotencyKey, LateStarts};
pub use devices::Devices;
pub use interface::{Command, Gauges, Output, Send, Setup, Shared, Token};
