//! A tap: what is counted of the requests that pass one of a plan's `proxies`, where a real service calls what it depends on.
//!
//! Nobody tells it which request is a retry, so it tells by what they look like. A request is a *repeat* where one with the same method, path and
//! `Idempotency-Key` passed before, the last of them no longer ago than `repeats.within`; where it has no such header, one with the same body. The
//! first stands for the operation, each repeat for a retry of it, whether or not the one before was answered: what is sent again after a good
//! answer is work done twice all the same. A request without key and without body says nothing of itself, and one whose body is longer
//! than [`MOST_BODY`], or never came, says too little: these are *unknown*. They pass for new ones, and so a tap with more than a few of them gives no
//! evidence of retries ([`TapRecord::doubt`]).
//!
//! Owns the counting and what is remembered for it, which is bounded. Leaves to others: sockets (`engine::live`), and what the figures mean (`gate`).
//!
//! So that one judge serves both, a tap's windows are told in the terms of our own clients' ([`TapWindow::counts`]):
//!
//! | figure | at a tap |
//! |---|---|
//! | attempts, retries, first attempts, offered | requests, repeats, requests that are no repeats, the same |
//! | goodput, succeeded | answers of 2xx |
//! | errors, failed | requests that ended in another way: other statuses, resets, no answer, no connection to the upstream |
//! | latency | from a request's head to the end of its answer, of those that were answered |
//! | in flight, backlog | requests that have not ended |

use super::record::{Counts, RunRecord, Window};
use super::sketch::{Sketch, Tally};
use super::waves::Waves;
use crate::event::AttemptOutcome;
use crate::time::{Span, Timestamp};
use std::collections::{BTreeMap, VecDeque};

/// The longest body that a request is told by, in bytes.
pub const MOST_BODY: usize = 64 * 1024;
/// So many requests are remembered at once: a minute of 3,000 a second. Beyond that the oldest is forgotten.
const MOST_SEEN: usize = 200_000;
/// The most windows of a tap: those of the longest run. What comes later is not kept.
const MOST_WINDOWS: usize = 86_400;
/// More than this share of requests that cannot be told apart, and nothing is said of retries.
const MOST_UNKNOWN: f64 = 0.01;

/// What a request is told by: two of one identity are one operation's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity(u128);

/// An identity while it is put together (FNV-1a, 128 bits).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint(u128);

impl Fingerprint {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0100_0000_0000_0000_0000_013b;

    /// Of these parts, each told apart from the next.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut whole = Self(Self::BASIS);
        for part in parts {
            whole.add(part);
            whole.add(&(part.len() as u64).to_be_bytes());
        }
        whole
    }

    /// Adds what follows.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |sum, &byte| (sum ^ u128::from(byte)).wrapping_mul(Self::PRIME));
    }

    /// What it has come to.
    pub fn identity(&self) -> Identity {
        Identity(self.0)
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapEnd {
    /// With an answer of this status, all of which was passed on; from the upstream, or from a fault in its place.
    Answered(u16),
    /// Its connection was reset.
    Reset,
    /// Its connection ended without a whole answer: its client waited no longer, or the upstream hung up.
    Unanswered,
    /// The upstream could not be connected to.
    Unreached,
}

/// What passed in one window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TapWindow {
    /// When it begins.
    pub start: Timestamp,
    /// Connections of clients that were let in.
    pub connects: u64,
    /// Requests that came, booked at their head.
    pub requests: u64,
    /// Of them, repeats, booked once that is known.
    pub repeats: u64,
    /// Of them, those of which nobody can say.
    pub unknown: u64,
    /// Answers, by status, booked when they end.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests whose connection was reset.
    pub resets: u64,
    /// Requests whose connection ended without a whole answer.
    pub unanswered: u64,
    /// Requests for which the upstream could not be connected to.
    pub unreached: u64,
    /// From a request's head to the end of its answer.
    pub latency: Sketch,
    /// Requests that have not ended, at the end of the window.
    pub in_flight: u64,
}

impl TapWindow {
    /// How many requests were answered with a status from a class, such as 2 for 2xx.
    pub fn of_class(&self, class: u16) -> u64 {
        self.statuses.iter().filter(|(status, _)| **status / 100 == class).map(|(_, n)| n).sum()
    }

    /// The same in the terms of our own clients.
    pub fn counts(&self) -> Counts {
        let good = self.of_class(2);
        let first = self.requests.saturating_sub(self.repeats);
        let bad = self.statuses.iter().filter(|(status, _)| **status / 100 != 2);
        let bad = bad.map(|(status, n)| (AttemptOutcome::Status(*status), *n));
        let others = [
            (AttemptOutcome::Success, good),
            (AttemptOutcome::Reset, self.resets),
            (AttemptOutcome::Timeout, self.unanswered),
            (AttemptOutcome::Connect, self.unreached),
        ];
        let by_outcome: BTreeMap<AttemptOutcome, u64> = bad.chain(others).filter(|(_, n)| *n > 0).collect();
        let ended: u64 = by_outcome.values().sum();
        Counts {
            offered: first,
            attempts: self.requests,
            retries: self.repeats,
            first_attempts: first,
            arrived: self.requests,
            succeeded: good,
            failed: ended - good,
            by_outcome,
            latency: self.latency.clone(),
            attempt_latency: self.latency.clone(),
            in_flight: self.in_flight,
            backlog: self.in_flight,
            ..Counts::default()
        }
    }
}

/// What a tap leaves behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TapRecord {
    /// The name of its proxy in the plan.
    pub name: String,
    /// The series, gapless from the start of the run.
    pub windows: Vec<TapWindow>,
    /// Requests that were forgotten before `repeats.within` was over, because there were too many: their repeats passed for new ones.
    pub forgotten: u64,
    /// Whether what came, came in step; none where nobody looked.
    pub waves: Option<Waves>,
}

impl TapRecord {
    /// Why nothing can be said of retries here; none where it can.
    pub fn doubt(&self) -> Option<String> {
        let sum = |of: fn(&TapWindow) -> u64| self.windows.iter().map(of).sum::<u64>();
        let (requests, unknown) = (sum(|w| w.requests), sum(|w| w.unknown));
        if (unknown + self.forgotten) as f64 <= requests as f64 * MOST_UNKNOWN {
            return None;
        }
        Some(format!(
            "of {requests} requests at {} {} cannot be told from repeats: have the service send an Idempotency-Key that it keeps \
             across retries, or say `repeats: {{ bodyless: path }}` where method and path tell them apart",
            self.name,
            unknown + self.forgotten,
        ))
    }
}

impl RunRecord {
    /// The run as it is seen at the tap of a proxy: its windows in the place of our clients'. None where there is no such tap.
    pub fn at_tap(&self, name: &str) -> Option<Self> {
        let tap = self.taps.iter().find(|tap| tap.name == name)?;
        let seen = |window: &TapWindow| Window { start: window.start, all: window.counts(), fleets: Vec::new() };
        Some(Self {
            window: self.window,
            windows: tap.windows.iter().map(seen).collect(),
            phases: self.phases.clone(),
            faults: self.faults.clone(),
            waves: tap.waves.clone(),
            ended: self.ended,
            length: self.length,
            ..Self::default()
        })
    }
}

/// A tap while it counts.
#[derive(Debug)]
pub struct Tap {
    window: Span,
    within: Span,
    done: Vec<TapWindow>,
    open: TapWindow,
    latency: Tally,
    in_flight: u64,
    seen: Seen,
}

impl Tap {
    /// A tap that has seen nothing: of windows of this length, where a repeat comes `within` so long.
    pub fn new(window: Span, within: Span) -> Self {
        let (done, open, latency) = (Vec::new(), TapWindow::default(), Tally::default());
        Self { window: window.max(Span(1)), within, done, open, latency, in_flight: 0, seen: Seen::default() }
    }

    /// A client was let in.
    pub fn connected(&mut self, at: Timestamp) {
        self.book(at, |window| window.connects += 1);
    }

    /// The head of a request has come.
    pub fn requested(&mut self, at: Timestamp) {
        self.book(at, |window| window.requests += 1);
        self.in_flight += 1;
    }

    /// It is known what a request is told by; or that nobody will know. To be told once of each.
    pub fn identified(&mut self, at: Timestamp, identity: Option<Identity>) {
        let repeats = identity.map(|identity| self.seen.again(identity, at, self.within));
        self.book(at, |window| match repeats {
            Some(again) => window.repeats += u64::from(again),
            None => window.unknown += 1,
        });
    }

    /// A request has ended, so long after its head.
    pub fn ended(&mut self, at: Timestamp, how: TapEnd, took: Span) {
        self.book(at, |window| match how {
            TapEnd::Answered(status) => *window.statuses.entry(status).or_default() += 1,
            TapEnd::Reset => window.resets += 1,
            TapEnd::Unanswered => window.unanswered += 1,
            TapEnd::Unreached => window.unreached += 1,
        });
        self.in_flight = self.in_flight.saturating_sub(1);
        if matches!(how, TapEnd::Answered(_)) && at > Timestamp::ZERO {
            self.latency.record(took);
        }
    }

    /// What was counted up to a moment: the series of a run that ended then, its last window begun.
    pub fn record(&mut self, name: &str, ended: Timestamp) -> TapRecord {
        self.turn(ended);
        let mut windows = self.done.clone();
        windows.push(self.closed());
        windows.retain(|window| window.start < ended);
        TapRecord { name: name.to_string(), windows, forgotten: self.seen.forgotten, waves: None }
    }

    /// Books in the window of a moment. What comes before the clock runs is not of the run.
    fn book(&mut self, at: Timestamp, count: impl FnOnce(&mut TapWindow)) {
        if at > Timestamp::ZERO {
            self.turn(at);
            count(&mut self.open);
        }
    }

    /// Closes the windows before that of a moment. A moment that lies before (threads tell theirs in no order) counts as now.
    fn turn(&mut self, at: Timestamp) {
        let wanted = usize::try_from(at.0 / self.window.0).unwrap_or(usize::MAX).min(MOST_WINDOWS);
        while self.done.len() < wanted {
            let closed = self.closed();
            self.latency = Tally::default();
            self.done.push(closed);
            let start = Timestamp::ZERO + self.window * self.done.len() as u64;
            self.open = TapWindow { start, ..TapWindow::default() };
        }
    }

    fn closed(&self) -> TapWindow {
        TapWindow { latency: self.latency.clone().take(), in_flight: self.in_flight, ..self.open.clone() }
    }
}

/// The requests that have passed not long ago.
#[derive(Debug, Default)]
struct Seen {
    /// When each passed last.
    last: BTreeMap<Identity, Timestamp>,
    /// Every passing, in order.
    order: VecDeque<(Identity, Timestamp)>,
    forgotten: u64,
}

impl Seen {
    /// Remembers a request; whether it passed before, no longer ago than `within`.
    fn again(&mut self, identity: Identity, at: Timestamp, within: Span) -> bool {
        while let Some(&(oldest, passed)) = self.order.front() {
            let over = at.since(passed) > within;
            if !over && self.order.len() < MOST_SEEN {
                break;
            }
            self.order.pop_front();
            if self.last.get(&oldest) == Some(&passed) {
                self.last.remove(&oldest);
                self.forgotten += u64::from(!over);
            }
        }
        self.order.push_back((identity, at));
        self.last.insert(identity, at).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Timestamp {
        Timestamp::ZERO + Span::from_millis(n)
    }

    fn tap() -> Tap {
        Tap::new(Span::from_secs(1), Span::from_secs(10))
    }

    fn of(key: &str) -> Identity {
        Fingerprint::of(&[b"POST", b"/charge", key.as_bytes()]).identity()
    }

    #[test]
    fn parts_are_told_apart() {
        let of = |parts: &[&str]| Fingerprint::of(&parts.iter().map(|part| part.as_bytes()).collect::<Vec<_>>());
        assert_eq!(of(&["POST", "/a", "k"]), of(&["POST", "/a", "k"]));
        for other in [&["POST", "/ak", ""], &["POST", "/a", "l"], &["GET", "/a", "k"]] {
            assert_ne!(of(&["POST", "/a", "k"]), of(other), "{other:?}");
        }
        let (mut whole, mut pieces) = (of(&["a"]), of(&["a"]));
        whole.add(b"body");
        pieces.add(b"bo");
        pieces.add(b"dy");
        assert_eq!(whole.identity(), pieces.identity());
    }

    #[test]
    fn a_repeat_is_what_passed_within_the_time_whatever_became_of_it() {
        let mut tap = tap();
        for (at, key, how) in [
            (100, "a", TapEnd::Answered(503)),
            (200, "b", TapEnd::Answered(200)),
            (300, "a", TapEnd::Answered(200)),
            (400, "a", TapEnd::Answered(200)),
            // A chain may be longer than the time, if no gap of it is.
            (10_300, "a", TapEnd::Answered(200)),
            (10_500, "b", TapEnd::Answered(200)),
        ] {
            tap.requested(ms(at));
            tap.identified(ms(at), Some(of(key)));
            tap.ended(ms(at + 10), how, Span::from_millis(10));
        }
        let record = tap.record("provider", ms(11_000));
        assert_eq!(record.windows.len(), 11);
        assert_eq!((record.windows[0].requests, record.windows[0].repeats), (4, 2));
        assert_eq!((record.windows[10].requests, record.windows[10].repeats), (2, 1));
        assert_eq!(record.windows[0].statuses, BTreeMap::from([(200, 3), (503, 1)]));
        assert_eq!(record.windows[0].latency.count(), 4);
        assert_eq!((record.forgotten, record.doubt()), (0, None));
    }

    #[test]
    fn what_has_not_ended_is_in_flight_in_every_window_until_it_has() {
        let mut tap = tap();
        tap.connected(Timestamp::ZERO);
        tap.requested(Timestamp::ZERO);
        tap.requested(ms(500));
        tap.connected(ms(500));
        tap.ended(ms(3_100), TapEnd::Reset, Span::from_millis(2_600));
        tap.ended(ms(3_200), TapEnd::Unanswered, Span::from_millis(3_200));
        let record = tap.record("provider", ms(4_500));
        let in_flight: Vec<u64> = record.windows.iter().map(|w| w.in_flight).collect();
        assert_eq!(in_flight, [2, 2, 2, 0, 0]);
        assert_eq!(
            (record.windows[0].requests, record.windows[0].connects),
            (1, 1),
            "before the clock runs nothing is of the run"
        );
        assert_eq!((record.windows[3].resets, record.windows[3].unanswered), (1, 1));
        assert_eq!(record.windows[3].latency.count(), 0);
    }

    #[test]
    fn a_window_reads_like_one_of_our_own_clients() {
        let window = TapWindow {
            requests: 10,
            repeats: 4,
            statuses: BTreeMap::from([(200, 3), (204, 1), (503, 2)]),
            resets: 1,
            unanswered: 2,
            unreached: 1,
            in_flight: 7,
            ..TapWindow::default()
        };
        let counts = window.counts();
        assert_eq!((counts.attempts, counts.retries, counts.first_attempts, counts.offered), (10, 4, 6, 6));
        assert_eq!((counts.succeeded, counts.failed, counts.backlog), (4, 6, 7));
        assert_eq!(counts.by_outcome[&AttemptOutcome::Status(503)], 2);
        assert_eq!(counts.by_outcome.values().sum::<u64>(), 10);
        let record = RunRecord {
            window: Span::from_secs(1),
            taps: vec![TapRecord { name: "provider".into(), windows: vec![window], ..TapRecord::default() }],
            ..RunRecord::default()
        };
        assert_eq!(record.at_tap("provider").map(|seen| seen.windows[0].all.attempts), Some(10));
        assert!(record.at_tap("other").is_none());
    }

    #[test]
    fn what_cannot_be_told_apart_is_no_evidence() {
        let mut tap = tap();
        for n in 0..100_u64 {
            tap.requested(ms(n + 1));
            tap.identified(ms(n + 1), (n > 1).then(|| of(&n.to_string())));
        }
        let record = tap.record("provider", ms(1_000));
        assert_eq!(record.windows[0].unknown, 2);
        assert!(record.doubt().is_some_and(|doubt| doubt.contains("Idempotency-Key")));
    }

    #[test]
    fn memory_is_bounded_and_what_is_forgotten_too_soon_is_counted() {
        let mut tap = tap();
        for n in 0..(MOST_SEEN as u64 + 5) {
            tap.identified(ms(1), Some(Identity(u128::from(n))));
        }
        assert_eq!((tap.seen.order.len(), tap.seen.last.len(), tap.seen.forgotten), (MOST_SEEN, MOST_SEEN, 5));
        tap.identified(ms(11_000), Some(of("a")));
        assert_eq!((tap.seen.order.len(), tap.seen.forgotten), (1, 5), "what is over is not forgotten too soon");
        tap.requested(ms(86_400_000 * 3));
        assert_eq!(tap.done.len(), MOST_WINDOWS);
    }
}
