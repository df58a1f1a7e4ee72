//! A rate that changes linearly.

use crate::record;
use crate::time::{Rate, Span};

record! {
    /// The fleet's rate goes from one value to another and stays there.
    pub struct Ramp {
        /// The rate at the start, over the whole fleet.
        from: Rate,
        /// The rate at the end.
        to: Rate,
        /// How long the change takes.
        over: Span,
    }
}
