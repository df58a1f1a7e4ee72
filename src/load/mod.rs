//! When operations are offered: one shape, one file.

pub mod closed;
pub mod constant;
pub mod poisson;
pub mod ramp;
pub mod trigger;

use crate::choice;

pub use closed::Closed;
pub use constant::Constant;
pub use poisson::Poisson;
pub use ramp::Ramp;
pub use trigger::Trigger;

choice! {
    /// When operations are offered.
    pub enum Load {
        /// Evenly spaced.
        constant => Constant(Constant),
        /// At random, independently of each other.
        poisson => Poisson(Poisson),
        /// At a rate that changes linearly.
        ramp => Ramp(Ramp),
        /// Each client starts its next operation when its last one has ended: closed load.
        closed => Closed(Closed),
        /// Every client offers one operation at one moment.
        trigger => Trigger(Trigger),
    }
}
