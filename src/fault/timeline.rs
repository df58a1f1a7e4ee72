//! The timeline: which faults act when, and the phases that they cut a run into.

use super::Fault;
use crate::config::Place;
use crate::time::Timestamp;

/// A fault at a time for a duration.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its name; unique in the plan.
    pub name: String,
    /// When it begins.
    pub from: Timestamp,
    /// When it ends; at the end of the run where the plan says nothing.
    pub to: Timestamp,
    /// What it does.
    pub fault: Fault,
    /// The numbers of the fleets it strikes; none for all of them.
    pub fleets: Option<Vec<u16>>,
    /// Where it stands in the plan.
    pub place: Place,
}

/// A stretch of the run between two changes of the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// `steady`, the names of the faults that act joined by `+`, or `after NAME`.
    pub name: String,
    /// When it begins.
    pub from: Timestamp,
    /// When it ends.
    pub to: Timestamp,
    /// The indexes of the steps that act.
    pub steps: Vec<usize>,
}
/// scaffold
pub struct Timeline { steps: Vec<Step> }
/// scaffold
#[derive(Clone, Default)]
pub struct Active;
#[allow(missing_docs)]
impl Timeline {
    pub fn new(steps: Vec<Step>, _seed: u64) -> Self { Self { steps } }
    pub fn steps(&self) -> &[Step] { &self.steps }
    pub fn changes(&self) -> Vec<Timestamp> { let mut all: Vec<_> = self.steps.iter().flat_map(|s| [s.from, s.to]).collect(); all.sort(); all.dedup(); all }
    pub fn active(&self, _now: Timestamp) -> Active { Active }
    pub fn phases(&self, length: crate::time::Span) -> Vec<Phase> { vec![Phase { name: "steady".into(), from: Timestamp::ZERO, to: Timestamp::ZERO + length, steps: vec![] }] }
}
