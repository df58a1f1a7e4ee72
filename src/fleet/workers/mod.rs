//! Workers that share a queue: the machine of such a fleet, and its parts.
//!
//! One machine holds the whole fleet, because its queue is one: live, it lives in one shard. [`machine`] says how work comes
//! into the queue and back into it, `dispatch` how it goes to workers and on the wire; `ready` holds what may be dispatched, by lane and destination; `crew` knows the
//! workers; `destination` knows where operations go and when they come; `parking` holds retries that no budget has earned yet; `actions` is what the timeline does to it.

mod actions;
pub mod config;
mod crew;
mod destination;
mod dispatch;
mod job;
pub mod machine;
mod parking;
mod ready;
mod rules;
#[cfg(test)]
mod tests;

pub use config::{DestinationConfig, QueueConfig, WorkerCount, WorkersConfig};
pub use machine::Workers;
