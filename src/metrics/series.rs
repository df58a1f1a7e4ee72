//! scaffold
#![allow(missing_docs)]
use super::recorder::{Slice, Totals};
use super::{RunRecord, Window};
use crate::fault::Phase;
use crate::time::Span;
pub struct Series;
impl Series {
    pub fn new(_fleets: Vec<String>, _phases: Vec<Phase>, _window: Span, _shards: usize) -> Self { Self }
    pub fn merge(&mut self, _slice: Slice) {}
    pub fn complete(&mut self) -> Option<&Window> { None }
    pub fn finish(self, _totals: Vec<Totals>) -> RunRecord { RunRecord::default() }
}
