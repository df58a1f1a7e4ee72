//! scaffold
#![allow(missing_docs)]
use super::StopConfig;
use crate::metrics::Window;
use crate::time::{Span, Timestamp};
pub struct Stops;
impl Stops {
    pub fn new(_configs: &[StopConfig], _window: Span) -> Self { Self }
    pub fn window(&mut self, _window: &Window) -> Option<String> { None }
    pub fn check(&mut self, _index: usize, _now: Timestamp, _passed: bool, _detail: &str) -> Option<String> { None }
}
