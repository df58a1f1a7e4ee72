//! Nobody who listens.

use crate::engine::Observer;
use crate::metrics::{RunEvent, Window};
use crate::time::Timestamp;

/// Hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn event(&mut self, _: Timestamp, _: &RunEvent) {}

    fn window(&mut self, _: &Window, _: &str) {}
}
