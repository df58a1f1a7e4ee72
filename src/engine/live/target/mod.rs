//! The built-in target: a real HTTP/1.1 server around one service machine, and the child process it runs in.
//!
//! The server gets a process of its own because file descriptors are counted by process: 5,000 clients with their
//! proxy leave no room for 5,000 connections more. Owns: [`Server`] (sockets to [`Service`](crate::service::Service)
//! and back) and [`TargetProcess`] (start, watch and end the child). Leaves to others: `stormwake target --child`
//! itself (`cli`).

mod control;
mod desk;
mod error;
mod io;
mod name;
mod page;
mod process;
mod server;
mod wire;

pub use error::TargetError;
pub use io::Io;
pub use process::TargetProcess;
pub use server::{Handle, Server, raise_file_limit};
pub use wire::{CallStats, Change, Changed, PLAN_END, Ready, Stats, TargetStats};
