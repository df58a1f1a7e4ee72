//! Clients that share a load shape and a policy.

pub mod config;

pub use config::{Connections, FleetConfig, IdempotencyKey, LateStarts};
pub mod devices;
pub use devices::{Command, Devices, Gauges, Output, Send, Setup, Shared, Token};
