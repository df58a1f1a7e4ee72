//! The shards' slices, merged into the run's series.

use super::record::{Counts, LimitReached, RunRecord, Summary, Window};
use super::recorder::{Acted, Slice, Totals, histogram, phase_at};
use crate::fault::Phase;
use crate::time::{Span, Timestamp};
use hdrhistogram::Histogram;
use std::collections::{BTreeMap, VecDeque};

/// The most windows of a run: 240 h of one second each, ten times the longest plan. Later ones are counted and not kept.
const MOST_WINDOWS: usize = 86_400 * 10;

/// Merges the windows of several shards, in order.
#[derive(Debug)]
pub struct Series {
    shards: usize,
    fleets: usize,
    phases: Vec<Phase>,
    window: Span,
    /// Windows that every shard has sent.
    done: Vec<Window>,
    /// The windows after them, and how many shards have sent each.
    open: VecDeque<(Window, usize)>,
    /// Windows beyond the most that are kept.
    beyond: u64,
    /// By fleet, whether it hands its operations to another fleet's queue.
    producers: Vec<bool>,
    /// What fleets did at the timeline's word and has not been told, shards together, in the order of fleets and actions.
    acted: BTreeMap<(u16, u16), Acted>,
}

impl Series {
    /// A series of so many shards and fleets.
    pub fn new(shards: usize, fleets: usize, phases: &[Phase], window: Span) -> Self {
        let (done, open) = (Vec::new(), VecDeque::new());
        let (acted, producers) = (BTreeMap::new(), vec![false; fleets]);
        Self { shards: shards.max(1), fleets, phases: phases.to_vec(), window, done, open, beyond: 0, producers, acted }
    }

    /// Tells fleets apart that hand their operations to another's queue. Such an operation is the other's once it is taken in, and is
    /// counted there; of the whole, only those count that never were.
    #[must_use]
    pub fn with_producers(self, producers: Vec<bool>) -> Self {
        Self { producers, ..self }
    }

    /// The phases from here on: those that have begun keep their numbers.
    pub fn rephase(&mut self, phases: &[Phase]) {
        self.phases = phases.to_vec();
    }

    /// Adds one window of one shard. A slice of a window that is complete already adds to nothing: a shard sends
    /// each of its windows once.
    pub fn merge(&mut self, slice: Slice) {
        self.add_acted(&slice.acted);
        if slice.index >= MOST_WINDOWS {
            self.beyond += 1;
            return;
        }
        let Some(ahead) = slice.index.checked_sub(self.done.len()) else { return };
        while self.open.len() <= ahead {
            let window = self.empty(self.done.len() + self.open.len());
            self.open.push_back((window, 0));
        }
        let (window, sent) = &mut self.open[ahead];
        *sent += 1;
        window.fleets.iter_mut().zip(&slice.fleets).for_each(|(sum, counts)| sum.add_shard(counts));
    }

    /// The next window that every shard has sent, each once and in order.
    pub fn complete(&mut self) -> Option<&Window> {
        if self.open.front()?.1 < self.shards {
            return None;
        }
        let (window, _) = self.open.pop_front()?;
        self.done.push(totalled(window, &self.producers));
        self.done.last()
    }

    /// What fleets did at the timeline's word in windows that are complete, each once.
    pub fn acted(&mut self) -> Vec<Acted> {
        let until = Timestamp::ZERO + self.window * self.done.len() as u64;
        let (told, kept) = std::mem::take(&mut self.acted).into_iter().partition(|(_, acted)| acted.at < until);
        self.acted = kept;
        let told: BTreeMap<_, _> = told;
        told.into_values().collect()
    }

    /// What they did after that, with what shards had not told of when they ended.
    pub fn acted_last(&mut self, totals: &[Totals]) -> Vec<Acted> {
        totals.iter().for_each(|totals| self.add_acted(&totals.acted));
        std::mem::take(&mut self.acted).into_values().collect()
    }

    fn add_acted(&mut self, acted: &[Acted]) {
        for of_shard in acted {
            let known = self.acted.entry((of_shard.fleet, of_shard.action)).or_insert(Acted { affected: 0, ..*of_shard });
            known.at = known.at.min(of_shard.at);
            known.affected += of_shard.affected;
        }
    }

    /// The run's record: its windows and histograms, beside what `rest` says of the run. Windows that a shard owes
    /// are kept with what there is, and counted as a limit reached.
    pub fn finish(mut self, totals: Vec<Totals>, rest: RunRecord) -> RunRecord {
        while self.complete().is_some() {}
        let owed = self.open.len() as u64 + self.beyond;
        let open = std::mem::take(&mut self.open);
        self.done.extend(open.into_iter().map(|(window, _)| totalled(window, &self.producers)));
        self.add_rest(&totals);
        let mut summaries = merge_summaries(totals);
        self.sample_retry_shares(&mut summaries);
        let mut limits_reached = rest.limits_reached;
        if owed > 0 {
            limits_reached.push(LimitReached { limit: "windows".into(), count: owed });
        }
        let producers = self.producers;
        RunRecord { window: self.window, windows: self.done, phases: self.phases, summaries, limits_reached, producers, ..rest }
    }

    /// What came after the last window belongs to it.
    fn add_rest(&mut self, totals: &[Totals]) {
        let some = totals.iter().flat_map(|t| &t.rest).any(|counts| !counts.is_empty());
        if !some {
            return;
        }
        let mut last = self.done.pop().unwrap_or_else(|| self.empty(0));
        for rest in totals.iter().map(|t| &t.rest) {
            last.fleets.iter_mut().zip(rest).for_each(|(sum, counts)| sum.add(counts));
        }
        self.done.push(totalled(last, &self.producers));
    }

    /// One sample for each window, by phase and fleet; a window without attempts has none.
    fn sample_retry_shares(&self, summaries: &mut [Summary]) {
        for window in &self.done {
            let phase = phase_at(&self.phases, window.start);
            for (fleet, counts) in window.fleets.iter().enumerate().filter(|(_, counts)| counts.attempts > 0) {
                let points = counts.retries * 10_000 / counts.attempts;
                if let Some(summary) = summaries.iter_mut().find(|s| (s.phase, s.fleet) == (phase, fleet)) {
                    summary.retry_share.record(points).expect("a histogram that resizes itself takes every value");
                }
            }
        }
    }

    fn empty(&self, index: usize) -> Window {
        let start = Timestamp::ZERO + self.window * index as u64;
        Window { start, all: Counts::default(), fleets: vec![Counts::default(); self.fleets] }
    }
}

/// Fills in what is over all fleets. The sketches of an only fleet are shared, not copied.
fn totalled(mut window: Window, producers: &[bool]) -> Window {
    window.all = Counts::default();
    for (counts, produces) in window.fleets.iter().zip(producers.iter().copied().chain(std::iter::repeat(false))) {
        if produces { window.all.add(&never_taken_in(counts)) } else { window.all.add(counts) }
    }
    window
}

/// Of a producer's operations, those that no queue took in. What still waits to be is backlog.
fn never_taken_in(counts: &Counts) -> Counts {
    let Counts { failed, unresolved, refused, dropped, superseded, backlog, oldest_age, .. } = *counts;
    let offered = failed + unresolved + refused + dropped + superseded;
    Counts { offered, failed, unresolved, refused, dropped, superseded, backlog, oldest_age, ..Counts::default() }
}

/// The summaries of all shards, those of one phase and fleet merged, in order.
fn merge_summaries(totals: Vec<Totals>) -> Vec<Summary> {
    let mut merged: Vec<Summary> = Vec::new();
    for summary in totals.into_iter().flat_map(|t| t.summaries) {
        let key = (summary.phase, summary.fleet);
        match merged.binary_search_by_key(&key, |s| (s.phase, s.fleet)) {
            Ok(at) => merged[at].merge(&summary),
            Err(at) => merged.insert(at, summary),
        }
    }
    merged
}

impl Summary {
    /// Adds what another shard booked of the same phase and fleet.
    fn merge(&mut self, other: &Self) {
        merge_histogram(&mut self.succeeded, &other.succeeded);
        merge_histogram(&mut self.failed, &other.failed);
        merge_histogram(&mut self.attempt_succeeded, &other.attempt_succeeded);
        merge_histogram(&mut self.attempt_failed, &other.attempt_failed);
        merge_histogram(&mut self.lag, &other.lag);
        self.first_attempts += other.first_attempts;
        for (attempts, n) in &other.attempts_per_operation {
            *self.attempts_per_operation.entry(*attempts).or_default() += n;
        }
    }

    /// A summary with nothing in it.
    pub fn empty(phase: usize, fleet: usize) -> Self {
        Self {
            phase,
            fleet,
            succeeded: histogram(),
            failed: histogram(),
            attempt_succeeded: histogram(),
            attempt_failed: histogram(),
            lag: histogram(),
            retry_share: histogram(),
            attempts_per_operation: Default::default(),
            first_attempts: 0,
        }
    }
}

fn merge_histogram(sum: &mut Histogram<u64>, other: &Histogram<u64>) {
    sum.add(other).expect("histograms that resize themselves take every value");
}

impl Counts {
    /// Adds what another window, fleet or shard counted, destinations apart. Of ages the oldest stays.
    pub fn add(&mut self, other: &Self) {
        let Self { offered, attempts, retries, first_attempts, succeeded, failed, unresolved, refused, .. } = other;
        self.offered += offered;
        self.attempts += attempts;
        self.retries += retries;
        self.scheduled += other.scheduled;
        self.arrived += other.arrived;
        self.connects += other.connects;
        self.first_attempts += first_attempts;
        self.succeeded += succeeded;
        self.failed += failed;
        self.unresolved += unresolved;
        self.refused += refused;
        self.dropped += other.dropped;
        self.superseded += other.superseded;
        self.dead_lettered += other.dead_lettered;
        self.late_starts += other.late_starts;
        self.budget_refused += other.budget_refused;
        self.throttled += other.throttled;
        other.by_outcome.iter().for_each(|(outcome, n)| *self.by_outcome.entry(*outcome).or_default() += n);
        self.latency.merge(&other.latency);
        self.attempt_latency.merge(&other.attempt_latency);
        self.lag.merge(&other.lag);
        self.in_flight += other.in_flight;
        self.backlog += other.backlog;
        self.oldest_age = self.oldest_age.max(other.oldest_age);
        self.deep_retries += other.deep_retries;
        self.late += other.late;
    }

    /// Adds what another shard counted of the same fleet: its destinations too.
    pub fn add_shard(&mut self, other: &Self) {
        self.add(other);
        if self.destinations.len() < other.destinations.len() {
            self.destinations.resize_with(other.destinations.len(), Default::default);
        }
        self.destinations.iter_mut().zip(&other.destinations).for_each(|(sum, counts)| sum.add(counts));
    }

    /// Operations that ended, unresolved ones aside.
    pub fn ended(&self) -> u64 {
        self.succeeded + self.failed + self.refused + self.dropped + self.superseded + self.dead_lettered
    }

    /// Of them, those that success is a share of: one whose place a newer one took neither succeeded nor failed.
    pub fn judged(&self) -> u64 {
        self.ended() - self.superseded
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        let attempts = self.attempts == 0 && self.by_outcome.is_empty();
        attempts && self.offered + self.ended() + self.unresolved + self.late_starts + self.budget_refused + self.throttled == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn slice(index: usize, offered: u64, retries: u64) -> Slice {
        Slice {
            index,
            fleets: vec![Counts { offered, attempts: 10, retries, backlog: 1, ..Counts::default() }],
            acted: Vec::new(),
        }
    }

    #[test]
    fn of_a_producer_the_whole_counts_what_no_queue_took_in() {
        let mut series = Series::new(1, 2, &[], Span::from_secs(1)).with_producers(vec![false, true]);
        let worker = Counts { offered: 8, attempts: 20, succeeded: 5, backlog: 3, ..Counts::default() };
        let producer = Counts { offered: 10, attempts: 12, succeeded: 8, failed: 2, ..Counts::default() };
        series.merge(Slice { index: 0, fleets: vec![worker, producer], acted: Vec::new() });
        let all = &series.complete().unwrap().all;
        assert_eq!((all.offered, all.attempts, all.succeeded, all.failed, all.backlog), (10, 20, 5, 2, 3));
    }

    fn series(shards: usize) -> Series {
        Series::new(shards, 1, &[], Span::from_secs(1))
    }

    #[test]
    fn a_window_is_complete_when_every_shard_has_sent_it() {
        let mut series = series(2);
        series.merge(slice(0, 1, 0));
        series.merge(slice(1, 2, 0));
        assert!(series.complete().is_none());
        series.merge(slice(1, 20, 0));
        assert!(series.complete().is_none(), "in order");
        series.merge(slice(0, 10, 0));
        assert_eq!(series.complete().map(|w| (w.start.as_millis(), w.all.offered, w.all.backlog)), Some((0, 11, 2)));
        assert_eq!(series.complete().map(|w| (w.start.as_millis(), w.fleets[0].offered)), Some((1000, 22)));
        assert!(series.complete().is_none());
        series.merge(slice(0, 99, 0));
        assert_eq!(series.finish(Vec::new(), RunRecord::default()).windows[0].all.offered, 11);
    }

    #[test]
    fn windows_that_a_shard_owes_are_counted() {
        let mut series = series(2);
        series.merge(slice(0, 1, 0));
        series.merge(slice(usize::MAX, 1, 0));
        let record = series.finish(Vec::new(), RunRecord::default());
        assert_eq!(record.limits_reached, [LimitReached { limit: "windows".into(), count: 2 }]);
        assert_eq!((record.windows.len(), record.windows[0].all.offered), (1, 1));
    }

    #[test]
    fn the_last_window_takes_what_came_after_it() {
        let rest = || Totals { rest: vec![Counts { unresolved: 3, ..Counts::default() }], ..Totals::default() };
        let mut with_window = series(1);
        with_window.merge(slice(0, 5, 0));
        for series in [with_window, series(1)] {
            let record = series.finish(vec![rest(), rest()], RunRecord::default());
            assert_eq!((record.windows.len(), record.windows[0].all.unresolved), (1, 6));
        }
    }

    #[test]
    fn shards_merge_and_each_window_gives_one_sample_of_the_retry_share() {
        let mut series = series(1);
        (0..4).for_each(|i| series.merge(slice(i, 1, i as u64)));
        series.merge(Slice { index: 4, fleets: vec![Counts::default()], acted: Vec::new() });
        let shard = |n| {
            let mut summary = Summary::empty(0, 0);
            summary.succeeded.record(n).unwrap();
            summary.attempts_per_operation = BTreeMap::from([(1, n)]);
            Totals { summaries: vec![summary], ..Totals::default() }
        };
        let record = series.finish(vec![shard(5), shard(4_000_000)], RunRecord::default());
        let summary = &record.summaries[0];
        assert_eq!(summary.succeeded.len(), 2);
        assert_eq!(summary.attempts_per_operation[&1], 4_000_005);
        assert_eq!(summary.retry_share.len(), 4, "the window without attempts has none");
        assert_eq!(summary.retry_share.value_at_quantile(0.75), 2_000, "basis points");
    }
}
