//! What one shard books: events into the current window, and into histograms by phase and fleet.
//!
//! No locks, and nothing allocated per event once the first windows have passed. A window of a run at 5,000
//! operations/s keeps under 5 KB (the test `a_day_of_windows_is_bounded` measures it), so the longest run, 24 h of
//! windows of 1 s, keeps 400 MB; a histogram that nothing was booked into keeps nothing.

use super::destinations::Shelf;
use super::record::{Counts, Summary};
use super::sketch::{Tally, bucket_floor};
use crate::event::{AttemptOutcome, Event, LateBy, OperationId, OperationOutcome};
use crate::fault::Phase;
use crate::fleet::Gauges;
use crate::time::{Span, Timestamp};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// The longest time that a histogram tells apart from longer ones: 1 h in microseconds.
const LONGEST: u64 = 3_600_000_000;

/// Books one shard's events.
#[derive(Debug)]
pub struct Recorder {
    window: Span,
    phases: Vec<Phase>,
    /// The number of the window that `open[0]` is; `open[1]` is the one after.
    index: usize,
    /// By window and fleet: the tick may come a little after the first events of the next window.
    open: [Vec<Open>; 2],
    /// By phase, then fleet.
    books: Vec<Vec<Book>>,
    /// By fleet, its destinations; empty where no fleet has any.
    shelves: Vec<Shelf>,
    /// What fleets did at the timeline's word since the last window was closed.
    acted: Vec<Acted>,
    /// By fleet, what had been scheduled, had arrived, and had been connected, when it was.
    so_far: Vec<[u64; 3]>,
}

/// What a fleet did at the timeline's word, as far as one shard goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acted {
    /// The fleet's number.
    pub fleet: u16,
    /// The action's place among the fleet's own.
    pub action: u16,
    /// When.
    pub at: Timestamp,
    /// How many clients, workers or operations it changed something for.
    pub affected: u64,
}

/// One window of one shard.
#[derive(Clone, Debug)]
pub struct Slice {
    /// The window's number, from 0.
    pub index: usize,
    /// What happened, by fleet.
    pub fleets: Vec<Counts>,
    /// What fleets did at the timeline's word.
    pub acted: Vec<Acted>,
}

/// What one shard booked over the whole run.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Histograms by phase and fleet, where anything was booked.
    pub summaries: Vec<Summary>,
    /// What came after the last window was closed, by fleet: above all, operations still held at the end.
    pub rest: Vec<Counts>,
    /// What fleets did at the timeline's word after it.
    pub acted: Vec<Acted>,
}

/// The window of one fleet, while it is written.
#[derive(Clone, Debug, Default)]
struct Open {
    counts: Counts,
    /// Outcomes of attempts; few, and they stay from window to window.
    outcomes: Vec<(AttemptOutcome, u64)>,
    latency: Tally,
    attempt_latency: Tally,
    lag: Tally,
}

/// The histograms of one phase and fleet; each is made when its first value comes.
#[derive(Clone, Debug, Default)]
struct Book {
    succeeded: Lazy,
    failed: Lazy,
    attempt_succeeded: Lazy,
    attempt_failed: Lazy,
    lag: Lazy,
    attempts_per_operation: BTreeMap<u32, u64>,
    first_attempts: u64,
}

#[derive(Clone, Debug, Default)]
struct Lazy(Option<Histogram<u64>>);

impl Recorder {
    /// A recorder for so many fleets. `phases` in order and without gaps; `window` is never zero.
    pub fn new(fleets: usize, phases: &[Phase], window: Span) -> Self {
        let open = vec![Open::default(); fleets];
        let books = vec![vec![Book::default(); fleets]; phases.len().max(1)];
        Self {
            window: window.max(Span(1)),
            phases: phases.to_vec(),
            index: 0,
            open: [open.clone(), open],
            books,
            shelves: Vec::new(),
            acted: Vec::new(),
            so_far: vec![[0; 3]; fleets],
        }
    }

    /// The same, with books by destination: `destinations` is how many each fleet has.
    pub fn with_destinations(mut self, destinations: &[usize]) -> Self {
        if destinations.iter().any(|&count| count > 0) {
            self.shelves = destinations.iter().map(|&count| Shelf::new(count)).collect();
        }
        self
    }

    /// Books an event. Operations are booked at their intended start and at their end, attempts at their send and
    /// at their end; what belongs to a window that is closed already goes into the current one. Events of fleets
    /// that the plan does not have are ignored.
    pub fn record(&mut self, event: &Event) {
        if !self.shelves.is_empty() {
            self.shelve(event);
        }
        match *event {
            Event::Offered { operation, at } => self.count(operation, at, |open| open.counts.offered += 1),
            Event::Sent { operation, attempt, retry, at, lag } => self.sent(operation, attempt, retry, at, lag),
            Event::Ended { operation, sent, at, outcome, .. } => self.ended(operation, sent, at, outcome),
            Event::Finished { operation, offered, at, outcome, attempts, .. } => {
                self.finished(operation, offered, at, outcome, attempts);
            }
            Event::LateStart { operation, at, by, .. } => self.count(operation, at, |open| {
                open.counts.late_starts += 1;
                open.counts.late_by_generator += u64::from(by == LateBy::Generator);
            }),
            Event::Throttled { operation, at } => self.count(operation, at, |open| open.counts.throttled += 1),
            Event::BudgetRefused { operation, at } => self.count(operation, at, |open| open.counts.budget_refused += 1),
            Event::Acted { fleet, action, at, affected } => self.acted.push(Acted { fleet, action, at, affected }),
        }
    }

    /// Closes a window: `gauges` is what this shard's clients hold, by fleet. Windows are closed in order.
    pub fn close_window(&mut self, index: usize, gauges: &[Gauges]) -> Slice {
        let mut fleets: Vec<Counts> = self.open[0].iter_mut().map(Open::close).collect();
        for ((counts, gauges), so_far) in fleets.iter_mut().zip(gauges).zip(&mut self.so_far) {
            let [scheduled, arrived, connected] = *so_far;
            counts.scheduled = gauges.scheduled.saturating_sub(scheduled);
            counts.arrived = gauges.arrived.saturating_sub(arrived);
            counts.connects = gauges.connected.saturating_sub(connected);
            *so_far = [gauges.scheduled, gauges.arrived, gauges.connected];
            counts.in_flight = gauges.in_flight;
            counts.backlog = gauges.backlog;
            counts.oldest_age = gauges.oldest_age;
            counts.deep_retries = gauges.deep_retries;
            counts.late = gauges.late;
        }
        self.open.swap(0, 1);
        for (counts, shelf) in fleets.iter_mut().zip(&mut self.shelves) {
            counts.destinations = shelf.close();
        }
        self.index = index + 1;
        Slice { index, fleets, acted: std::mem::take(&mut self.acted) }
    }

    /// What was booked over the whole run, and what came after the last window.
    pub fn finish(mut self) -> Totals {
        let [current, next] = &mut self.open;
        let mut rest: Vec<Counts> = current.iter_mut().map(Open::close).collect();
        rest.iter_mut().zip(next).for_each(|(counts, open)| counts.add(&open.close()));
        let summaries =
            self.books.into_iter().enumerate().flat_map(|(phase, books)| {
                books.into_iter().enumerate().filter_map(move |(fleet, book)| book.summary(phase, fleet))
            });
        Totals { summaries: summaries.collect(), rest, acted: self.acted }
    }

    /// Books the lag of an attempt that came up too late to be sent at all: the run was over when the generator got to it.
    pub fn missed(&mut self, operation: OperationId, at: Timestamp, lag: Span) {
        self.count(operation, at, |open| open.lag.record(lag));
        if let Some(book) = self.book(operation, at) {
            book.lag.record(lag);
        }
    }

    fn sent(&mut self, operation: OperationId, attempt: u32, retry: bool, at: Timestamp, lag: Option<Span>) {
        let first = u64::from(attempt == 1);
        self.count(operation, at, |open| {
            open.counts.attempts += 1;
            open.counts.retries += u64::from(retry);
            open.counts.first_attempts += first;
            lag.iter().for_each(|lag| open.lag.record(*lag));
        });
        if let Some(book) = self.book(operation, at) {
            book.first_attempts += first;
            lag.iter().for_each(|lag| book.lag.record(*lag));
        }
    }

    fn ended(&mut self, operation: OperationId, sent: Timestamp, at: Timestamp, outcome: AttemptOutcome) {
        let took = at.since(sent);
        self.count(operation, at, |open| {
            open.outcome(outcome);
            open.attempt_latency.record(took);
        });
        if let Some(book) = self.book(operation, sent) {
            match outcome {
                AttemptOutcome::Success => book.attempt_succeeded.record(took),
                AttemptOutcome::Cancelled => {}
                _ => book.attempt_failed.record(took),
            }
        }
    }

    fn finished(&mut self, operation: OperationId, offered: Timestamp, at: Timestamp, outcome: OperationOutcome, attempts: u32) {
        let took = at.since(offered);
        self.count(operation, at, |open| match outcome {
            OperationOutcome::Succeeded => {
                open.counts.succeeded += 1;
                open.latency.record(took);
            }
            OperationOutcome::Failed => open.counts.failed += 1,
            OperationOutcome::Unresolved => open.counts.unresolved += 1,
            OperationOutcome::Refused => open.counts.refused += 1,
            OperationOutcome::Dropped => open.counts.dropped += 1,
            OperationOutcome::Superseded => open.counts.superseded += 1,
            OperationOutcome::DeadLettered => open.counts.dead_lettered += 1,
        });
        let Some(book) = self.book(operation, offered) else { return };
        match outcome {
            OperationOutcome::Succeeded => book.succeeded.record(took),
            OperationOutcome::Failed | OperationOutcome::DeadLettered => book.failed.record(took),
            OperationOutcome::Unresolved
            | OperationOutcome::Refused
            | OperationOutcome::Dropped
            | OperationOutcome::Superseded => {}
        }
        if attempts > 0 {
            *book.attempts_per_operation.entry(bucket_floor(u64::from(attempts)) as u32).or_default() += 1;
        }
    }

    fn count(&mut self, operation: OperationId, at: Timestamp, book: impl FnOnce(&mut Open)) {
        let ahead = usize::from(at.0 / self.window.0 > self.index as u64);
        if let Some(open) = self.open[ahead].get_mut(usize::from(operation.fleet)) {
            book(open);
        }
    }

    fn shelve(&mut self, event: &Event) {
        let (Event::Offered { operation, .. } | Event::Sent { operation, .. } | Event::Finished { operation, .. }) = event else {
            return;
        };
        let (window, index) = (self.window.0, self.index as u64);
        if let Some(shelf) = self.shelves.get_mut(usize::from(operation.fleet)) {
            shelf.record(event, |at| at.0 / window > index);
        }
    }

    fn book(&mut self, operation: OperationId, at: Timestamp) -> Option<&mut Book> {
        let phase = phase_at(&self.phases, at);
        self.books[phase].get_mut(usize::from(operation.fleet))
    }
}

/// The number of the phase that a moment lies in; the first where it lies before all of them.
pub(super) fn phase_at(phases: &[Phase], at: Timestamp) -> usize {
    phases.partition_point(|phase| phase.from <= at).saturating_sub(1)
}

impl Open {
    fn outcome(&mut self, outcome: AttemptOutcome) {
        match self.outcomes.iter_mut().find(|(known, _)| *known == outcome) {
            Some((_, n)) => *n += 1,
            None => self.outcomes.push((outcome, 1)),
        }
    }

    fn close(&mut self) -> Counts {
        let mut counts = std::mem::take(&mut self.counts);
        for (outcome, n) in self.outcomes.iter_mut().filter(|(_, n)| *n > 0) {
            counts.by_outcome.insert(*outcome, std::mem::take(n));
        }
        counts.latency = self.latency.take();
        counts.attempt_latency = self.attempt_latency.take();
        counts.lag = self.lag.take();
        counts
    }
}

impl Lazy {
    fn record(&mut self, value: Span) {
        let histogram = self.0.get_or_insert_with(histogram);
        histogram.record(value.as_micros().min(LONGEST)).expect("a histogram that resizes itself takes every value");
    }
}

/// An empty histogram of three digits that grows with its values: 16 KB at first, 190 KB at most.
pub(super) fn histogram() -> Histogram<u64> {
    let mut histogram = Histogram::new(3).expect("three digits are allowed");
    histogram.auto(true);
    histogram
}

impl Book {
    fn summary(self, phase: usize, fleet: usize) -> Option<Summary> {
        let histograms = [self.succeeded, self.failed, self.attempt_succeeded, self.attempt_failed, self.lag];
        let unused = histograms.iter().all(|h| h.0.is_none()) && self.attempts_per_operation.is_empty();
        if unused && self.first_attempts == 0 {
            return None;
        }
        let [succeeded, failed, attempt_succeeded, attempt_failed, lag] = histograms.map(|h| h.0.unwrap_or_else(histogram));
        Some(Summary {
            phase,
            fleet,
            succeeded,
            failed,
            attempt_succeeded,
            attempt_failed,
            lag,
            retry_share: histogram(),
            attempts_per_operation: self.attempts_per_operation,
            first_attempts: self.first_attempts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{RunRecord, Series};
    use crate::rng::{Key, Purpose};

    fn ms(n: u64) -> Timestamp {
        Timestamp::ZERO + Span::from_millis(n)
    }

    fn op(fleet: u16, number: u64) -> OperationId {
        OperationId { fleet, client: 0, number }
    }

    fn phase(name: &str, from: u64, to: u64) -> Phase {
        Phase { name: name.into(), from: ms(from), to: ms(to), faults: Vec::new() }
    }

    /// An operation of one attempt: offered, sent, answered, finished.
    fn whole(recorder: &mut Recorder, operation: OperationId, at: u64, took: u64) {
        recorder.record(&Event::Offered { operation, at: ms(at) });
        recorder.record(&Event::Sent { operation, attempt: 1, retry: false, at: ms(at), lag: Some(Span::ZERO) });
        let (at, sent) = (ms(at + took), ms(at));
        recorder.record(&Event::Ended { operation, attempt: 1, sent, at, outcome: AttemptOutcome::Success });
        finish(recorder, operation, sent, at, OperationOutcome::Succeeded, 1);
    }

    fn finish(
        recorder: &mut Recorder,
        operation: OperationId,
        offered: Timestamp,
        at: Timestamp,
        outcome: OperationOutcome,
        n: u32,
    ) {
        recorder.record(&Event::Finished { operation, offered, at, outcome, attempts: n, last: None });
    }

    #[test]
    fn each_event_is_booked_where_it_belongs() {
        let mut recorder = Recorder::new(2, &[phase("steady", 0, 1000), phase("outage", 1000, 9000)], Span::from_secs(1));
        whole(&mut recorder, op(1, 0), 100, 50);
        // Offered and sent before the phase changes, failed after it; the tick comes late.
        recorder.record(&Event::Offered { operation: op(0, 0), at: ms(990) });
        recorder.record(&Event::Sent { operation: op(0, 0), attempt: 1, retry: false, at: ms(995), lag: None });
        recorder.record(&Event::Sent { operation: op(0, 0), attempt: 2, retry: true, at: ms(1005), lag: None });
        let first = recorder.close_window(0, &[Gauges { backlog: 1, ..Gauges::default() }, Gauges::default()]);
        let timeout = AttemptOutcome::Timeout;
        recorder.record(&Event::Ended { operation: op(0, 0), attempt: 1, sent: ms(995), at: ms(1500), outcome: timeout });
        recorder.record(&Event::Ended { operation: op(0, 0), attempt: 2, sent: ms(1005), at: ms(1600), outcome: timeout });
        finish(&mut recorder, op(0, 0), ms(990), ms(1600), OperationOutcome::Failed, 2);
        recorder.record(&Event::BudgetRefused { operation: op(0, 0), at: ms(1600) });
        recorder.record(&Event::Offered { operation: op(9, 0), at: ms(1600) });
        let second = recorder.close_window(1, &[Gauges::default(); 2]);

        let (a, b) = (&first.fleets[0], &first.fleets[1]);
        assert_eq!((a.offered, a.attempts, a.first_attempts, a.retries, a.backlog), (1, 1, 1, 0, 1));
        assert_eq!((b.offered, b.succeeded, b.latency.count(), b.attempt_latency.count(), b.lag.count()), (1, 1, 1, 1, 1));
        let a = &second.fleets[0];
        assert_eq!((a.attempts, a.retries, a.first_attempts, a.failed, a.budget_refused), (1, 1, 0, 1, 1));
        assert_eq!(a.by_outcome, BTreeMap::from([(timeout, 2)]));

        let totals = recorder.finish();
        let found = |phase, fleet| totals.summaries.iter().find(|s| (s.phase, s.fleet) == (phase, fleet));
        let steady = found(0, 0).unwrap();
        assert_eq!((steady.failed.len(), steady.attempt_failed.len(), steady.first_attempts), (1, 1, 1));
        assert_eq!(steady.attempts_per_operation, BTreeMap::from([(2, 1)]));
        let outage = found(1, 0).unwrap();
        assert_eq!((outage.failed.len(), outage.attempt_failed.len(), outage.first_attempts), (0, 1, 0));
        assert_eq!(found(0, 1).unwrap().succeeded.max(), 50_015, "microseconds, three digits");
        assert!(found(1, 1).is_none(), "nothing was booked there");
    }

    #[test]
    fn late_starts_are_told_apart_by_whose_doing_they_are() {
        let mut recorder = Recorder::new(1, &[], Span::from_secs(1));
        for by in [LateBy::Plan, LateBy::Generator, LateBy::Plan] {
            recorder.record(&Event::LateStart { operation: op(0, 0), at: ms(10), late: Span::from_millis(9), by });
        }
        let slice = recorder.close_window(0, &[Gauges::default()]);
        assert_eq!((slice.fleets[0].late_starts, slice.fleets[0].late_by_generator), (3, 1));
    }

    #[test]
    fn what_comes_after_the_last_window_is_kept() {
        let mut recorder = Recorder::new(1, &[phase("steady", 0, 1000)], Span::from_secs(1));
        recorder.record(&Event::Offered { operation: op(0, 0), at: ms(900) });
        recorder.close_window(0, &[Gauges::default()]);
        finish(&mut recorder, op(0, 0), ms(900), ms(1000), OperationOutcome::Unresolved, 0);
        let totals = recorder.finish();
        assert_eq!(totals.rest[0].unresolved, 1);
        assert!(totals.summaries.is_empty(), "an operation without an attempt has no place in a histogram");
    }

    #[test]
    fn histograms_stop_at_an_hour() {
        let mut recorder = Recorder::new(1, &[], Span::from_secs(1));
        finish(&mut recorder, op(0, 0), Timestamp::ZERO, Timestamp::NEVER, OperationOutcome::Succeeded, u32::MAX);
        let totals = recorder.finish();
        let max = totals.summaries[0].succeeded.max();
        assert!((LONGEST..LONGEST + LONGEST / 1000).contains(&max), "{max}");
    }

    /// 5,000 operations/s with a lognormal latency (median 40 ms, p99 180 ms), each on the wire once, a lag up to 2 ms.
    #[test]
    fn a_day_of_windows_is_bounded() {
        let phases = [phase("steady", 0, 10_000)];
        let mut recorder = Recorder::new(1, &phases, Span::from_secs(1));
        let mut series = Series::new(1, 1, &phases, Span::from_secs(1));
        for window in 0..10 {
            for i in 0..5_000u32 {
                let mut stream = Key { seed: window, client: i, ..Key::default() }.stream(Purpose::ServiceTime);
                let took = Span::from_secs_f64(0.04 * libm::exp(0.647 * stream.normal()));
                let (operation, at) = (op(0, u64::from(i)), ms(window * 1000 + u64::from(i) / 5));
                let lag = Some(Span::from_secs_f64(stream.unit() * 0.002));
                recorder.record(&Event::Sent { operation, attempt: 1, retry: false, at, lag });
                let (sent, at) = (at, at + took);
                recorder.record(&Event::Ended { operation, attempt: 1, sent, at, outcome: AttemptOutcome::Success });
                finish(&mut recorder, operation, sent, at, OperationOutcome::Succeeded, 1);
            }
            series.merge(recorder.close_window(window as usize, &[Gauges::default()]));
        }
        let record = series.finish(Vec::new(), RunRecord::default());
        let each = record.windows.iter().map(bytes).max().unwrap();
        assert!((1_000..5_000).contains(&each), "{each} bytes for a window");
    }

    /// What a window of one fleet keeps: `all` shares the sketches of the only fleet.
    fn bytes(window: &crate::metrics::Window) -> usize {
        let counts = &window.fleets[0];
        let map = 2 * counts.by_outcome.len() * 200;
        let sketches = counts.latency.bytes() + counts.attempt_latency.bytes() + counts.lag.bytes();
        size_of::<crate::metrics::Window>() + size_of::<Counts>() + map + sketches
    }
}
