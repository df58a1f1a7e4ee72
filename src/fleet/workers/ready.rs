//! What is ready to be dispatched: lanes with a bound on their workers, and in each lane a line for every destination.
//!
//! Of all lines that may go, whoever became ready first goes first; with `fresh_first`, first attempts before all
//! others. So lines are a matter of looking up, not of fairness: without bounds, pauses and buckets the queue is first come first served.

use super::job::Job;
use crate::fleet::slab::{List, Slab};
use std::collections::BTreeMap;

/// The lane that everything is in that has none of its own.
pub(super) const SHARED: u16 = 0;

/// A lane.
#[derive(Clone, Copy, Debug)]
struct Lane {
    /// The most workers in it.
    concurrency: u32,
    /// Workers in it.
    busy: u32,
}

/// The line of one destination in one lane.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// First attempts, where they go first.
    fresh: List,
    /// All else.
    others: List,
}

/// The ready part of the queue.
#[derive(Debug)]
pub(super) struct Ready {
    lanes: Vec<Lane>,
    /// By lane and destination.
    lines: BTreeMap<(u16, u16), Line>,
    fresh_first: bool,
    turn: u64,
    len: u64,
}

impl Ready {
    /// Nothing is ready; there is only the shared lane.
    pub(super) fn new(fresh_first: bool) -> Self {
        let shared = Lane { concurrency: u32::MAX, busy: 0 };
        Self { lanes: vec![shared], lines: BTreeMap::new(), fresh_first, turn: 0, len: 0 }
    }

    /// Adds a lane; gives its number.
    pub(super) fn add_lane(&mut self, concurrency: u32) -> u16 {
        self.lanes.push(Lane { concurrency, busy: 0 });
        u16::try_from(self.lanes.len() - 1).expect("a plan has fewer destinations, lanes and actions than that")
    }

    /// How many operations are ready.
    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    /// Whether another worker may go into a lane.
    pub(super) fn has_room(&self, lane: u16) -> bool {
        let Lane { concurrency, busy } = self.lanes[usize::from(lane)];
        busy < concurrency
    }

    /// A worker goes into a lane.
    pub(super) fn enter(&mut self, lane: u16) {
        self.lanes[usize::from(lane)].busy += 1;
    }

    /// A worker leaves a lane.
    pub(super) fn leave(&mut self, lane: u16) {
        self.lanes[usize::from(lane)].busy -= 1;
    }

    /// Puts an operation at the tail of its line: that of its lane and destination.
    pub(super) fn push(&mut self, slot: u32, held: &mut Slab<Job>) {
        self.turn += 1;
        self.len += 1;
        let job = held.get_mut(slot);
        job.turn = self.turn;
        let (key, is_fresh) = ((job.lane, job.destination), self.is_fresh(job));
        let line = self.lines.entry(key).or_insert(Line { fresh: List::EMPTY, others: List::EMPTY });
        held.push_ready(if is_fresh { &mut line.fresh } else { &mut line.others }, slot);
    }

    /// Takes an operation out, from wherever it stands in its line.
    pub(super) fn take(&mut self, slot: u32, held: &mut Slab<Job>) {
        let job = held.get(slot);
        let (key, is_fresh) = ((job.lane, job.destination), self.is_fresh(job));
        let Some(line) = self.lines.get_mut(&key) else { return };
        held.take_ready(if is_fresh { &mut line.fresh } else { &mut line.others }, slot);
        self.len -= 1;
    }

    /// Who is next, among the destinations that are open.
    pub(super) fn next(&self, held: &Slab<Job>, is_open: impl Fn(u16) -> bool) -> Option<u32> {
        let heads = self.that_may_go().filter(|((_, destination), _)| is_open(*destination)).map(|(_, line)| {
            let is_other = line.fresh.is_empty();
            (is_other, if is_other { line.others.first } else { line.fresh.first })
        });
        heads.min_by_key(|&(is_other, slot)| (is_other, held.get(slot).turn)).map(|(_, slot)| slot)
    }

    /// The destinations with somebody ready whose lane has room.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u16> {
        self.that_may_go().map(|((_, destination), _)| *destination)
    }

    fn that_may_go(&self) -> impl Iterator<Item = (&(u16, u16), &Line)> {
        self.lines.iter().filter(|((lane, _), line)| self.has_room(*lane) && !(line.fresh.is_empty() && line.others.is_empty()))
    }

    fn is_fresh(&self, job: &Job) -> bool {
        self.fresh_first && job.operation.attempts() == 0
    }
}
