//! Configuration as a tree with places, and how plain types are read from it.
//!
//! Owns: the [`Node`] tree (what a plan file is once its syntax is gone), [`Problems`] (everything that is wrong,
//! each with its place), the [`Read`] trait, and the macros [`record!`](crate::record), [`choice!`](crate::choice)
//! and [`keyword!`](crate::keyword), which define a type, how it is read and its [`Shape`] in one go. So a fault,
//! a backoff or a gate is configured, documented and implemented in one file. Leaves to others: YAML (`plan`),
//! and the shape's rendering as JSON Schema (`report`).

mod macros;
mod node;
mod problem;
mod read;
mod scale;
mod shape;

pub use node::{Key, Node, Place, Source, Value};
pub use problem::{Concerns, Problem, Problems, Severity, closest};
pub use read::{
    At, Entry, Fields, Lenient, Part, Read, RealTime, Table, checked, read_choice, read_keyword, read_part, read_text,
};
pub use scale::TimeScale;
pub use shape::{Alternative, Field, Shape};
