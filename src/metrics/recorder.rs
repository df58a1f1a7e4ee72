//! scaffold
#![allow(missing_docs)]
use crate::event::Event;
use crate::fault::Phase;
use crate::fleet::Gauges;
use crate::time::Span;
pub struct Recorder;
#[derive(Debug)]
pub struct Slice;
#[derive(Debug)]
pub struct Totals;
impl Recorder {
    pub fn new(_fleets: usize, _phases: &[Phase], _window: Span) -> Self { Self }
    pub fn record(&mut self, _event: &Event) {}
    pub fn close_window(&mut self, _index: usize, _gauges: &[Gauges]) -> Slice { Slice }
    pub fn finish(self) -> Totals { Totals }
}
