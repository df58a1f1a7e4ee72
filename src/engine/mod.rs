//! The engines: they own time and effects, and carry what the machines say.

#[cfg(feature = "live")]
pub mod live;
pub mod shared;
pub mod sim;

use crate::metrics::{RunEvent, Window};
use crate::time::Timestamp;

/// What a run tells while it goes on.
pub trait Observer: Send {
    /// Something happened to the run itself. Called as it happens.
    fn event(&mut self, at: Timestamp, event: &RunEvent);

    /// A window is complete. Called once for each, in order.
    fn window(&mut self, window: &Window, phase: &str);
}

/// Hears nothing: for a run of which only the record is wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn event(&mut self, _at: Timestamp, _event: &RunEvent) {}

    fn window(&mut self, _window: &Window, _phase: &str) {}
}
