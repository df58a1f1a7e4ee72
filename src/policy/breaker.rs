//! The breaker: stops attempts, or retries alone, once enough of the last ones failed; tries again after a while with a few.
//!
//! It opens on failures in a row, or on a failure rate over the last calls or over a sliding window of time. While it is *open* it
//! refuses; after `open_for` it is *half-open* and lets `probes` through, whose outcomes close it or open it anew. With
//! `open_for: 0s` there is no half-open state: it is open for just as long as what opens it holds.
//!
//! Retries alone can be suppressed: then first attempts pass whatever the state, and count as evidence. Sources: resilience4j (50% of
//! 100 calls, 60 s, 10 probes), Polly v8; the rule without state is that of the independent-failures comparison.
//!
//! What is the same for every breaker of a fleet stands behind one shared pointer, and the window behind a box: a million clients
//! may have one each.

use crate::config::{Node, Problems, Read, Shape, TimeScale};
use crate::time::{Share, Span, Timestamp};
use crate::{keyword, record};
use std::sync::Arc;

keyword! {
    /// Who shares a breaker or a throttle.
    pub enum SharedBy {
        /// Each client has its own.
        client => Client,
        /// The fleet shares one.
        fleet => Fleet,
    }
}

keyword! {
    /// What an open breaker refuses.
    pub enum Suppresses {
        /// Every attempt.
        all => All,
        /// Retries; first attempts pass.
        retries => Retries,
    }
}

/// A breaker as the plan has it.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakerConfig {
    /// Who shares it.
    pub tier: SharedBy,
    /// What every breaker of a fleet has in common.
    pub rule: Arc<Rule>,
}

/// When a breaker opens, for how long, and what it refuses.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// What opens it.
    pub opens: Opens,
    /// How long it is open before it is half-open; zero for as long as what opens it holds.
    pub open_for: Span,
    /// How many attempts it lets through while it is half-open.
    pub probes: u16,
    /// What it refuses.
    pub suppresses: Suppresses,
}

/// What opens a breaker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Opens {
    /// So many failures in a row.
    Failures(u32),
    /// A failure rate.
    Rate {
        /// The rate.
        rate: Share,
        /// Whether the rate itself does not open it yet.
        strictly: bool,
        /// Over which attempts.
        over: Over,
        /// With fewer of them nothing is judged.
        minimum_calls: u32,
    },
}

/// The attempts that a rate is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The last so many that ended.
    Calls(u32),
    /// Those that ended within such a window, in tenths of it.
    Window(Span),
}

record! {
    /// Stops attempts, or retries alone, while too many of the last ones failed. Exactly one of `failures`, `rate` and `above` says when.
    struct RawBreaker {
        /// It opens on so many failures in a row.
        failures: Option<u32>,
        /// It opens when this share of the attempts looked at failed, or more.
        rate: Option<Share>,
        /// It opens when more than this share of them failed.
        above: Option<Share>,
        /// With `rate` or `above`: looks at the last so many attempts; 100 where neither this nor `window` is said.
        calls: Option<u32>,
        /// With `rate` or `above`: looks at the attempts that ended within such a window.
        window: Option<Span>,
        /// With `rate` or `above`: with fewer attempts nothing is judged; `calls`, or 100, where nothing is said.
        minimum_calls: Option<u32>,
        /// How long it stays open before it lets probes through; 0s: for as long as what opens it holds, without probes.
        open_for: Span = Span::from_secs(60),
        /// How many attempts it lets through before it decides again.
        probes: u16 = 10,
        /// What it refuses: `all` or `retries`.
        suppresses: Suppresses = Suppresses::All,
        /// Who shares it: `client` or `fleet`.
        tier: SharedBy,
    } => |raw: &RawBreaker| raw.rule().map(|_| ())
}

/// Calls looked at where nothing is said, and the fewest that a window judges.
const USUAL_CALLS: u32 = 100;
/// The most calls: they take a bit each.
const MAX_CALLS: u32 = 65_536;

impl RawBreaker {
    fn rule(&self) -> Result<Rule, String> {
        let opens = match (self.failures, self.rate, self.above) {
            (Some(failures), None, None) => self.in_a_row(failures)?,
            (None, Some(rate), None) => self.by_rate(rate, false)?,
            (None, None, Some(above)) => self.by_rate(above, true)?,
            _ => return Err("a breaker needs exactly one of `failures: 5`, `rate: 50%` and `above: 10%`".into()),
        };
        if self.probes == 0 {
            return Err("`probes` is 0: nothing would ever close it; write 1 or more".into());
        }
        let forgets = matches!(opens, Opens::Rate { over: Over::Window(_), .. });
        if self.open_for.is_zero() && self.suppresses == Suppresses::All && !forgets {
            return Err("`open_for` is 0s, and `suppresses: all` lets nothing through that could close it: give it a time, use `suppresses: retries`, or a rate over a `window`".into());
        }
        Ok(Rule { opens, open_for: self.open_for, probes: self.probes, suppresses: self.suppresses })
    }

    fn in_a_row(&self, failures: u32) -> Result<Opens, String> {
        let also =
            [("calls", self.calls.is_some()), ("window", self.window.is_some()), ("minimum_calls", self.minimum_calls.is_some())];
        match also.iter().find(|(_, there)| *there) {
            Some((name, _)) => Err(format!("`{name}` goes with `rate` or `above`: `failures` counts failures in a row")),
            None if failures == 0 => Err("`failures` is 0: it would be open from the start; write 1 or more".into()),
            None => Ok(Opens::Failures(failures)),
        }
    }

    fn by_rate(&self, rate: Share, strictly: bool) -> Result<Opens, String> {
        if !strictly && rate.get() == 0.0 {
            return Err("`rate` is 0%: it would be open from the start; write `above: 0%` for any failure".into());
        }
        if strictly && rate.get() == 1.0 {
            return Err("`above` is 100%: no rate is above that; write `rate: 100%`".into());
        }
        let (over, usual) = match (self.calls, self.window) {
            (Some(_), Some(_)) => return Err("`calls` and `window` exclude each other: keep one".into()),
            (None, Some(window)) if window < Span::from_millis(10) || window > Span::from_secs(86_400) => {
                return Err(format!("`window` is {window}: expected 10ms to 24h"));
            }
            (None, Some(window)) => (Over::Window(window), USUAL_CALLS),
            (calls, None) => {
                let calls = calls.unwrap_or(USUAL_CALLS);
                (Over::Calls(calls), calls)
            }
        };
        let minimum_calls = self.minimum_calls.unwrap_or(usual);
        match over {
            Over::Calls(calls) if !(1..=MAX_CALLS).contains(&calls) => {
                Err(format!("`calls` is {calls}: expected 1 to {MAX_CALLS}"))
            }
            Over::Calls(calls) if minimum_calls > calls => {
                Err(format!("`minimum_calls` is {minimum_calls}, and only the last {calls} are looked at: it would never open"))
            }
            _ => Ok(Opens::Rate { rate, strictly, over, minimum_calls }),
        }
    }
}

impl Read for BreakerConfig {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let raw = RawBreaker::read(node, problems)?;
        // What was read makes a rule: it was checked.
        raw.rule().ok().map(|rule| Self { tier: raw.tier, rule: Arc::new(rule) })
    }

    fn shape() -> Shape {
        RawBreaker::shape()
    }

    fn rescale(&mut self, by: TimeScale) {
        let rule = Arc::make_mut(&mut self.rule);
        rule.open_for.rescale(by);
        if let Opens::Rate { over: Over::Window(window), .. } = &mut rule.opens {
            window.rescale(by);
        }
    }
}

/// What a breaker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It lets everything through.
    Closed,
    /// It refuses.
    Open,
    /// It lets probes through.
    HalfOpen,
}

/// The state of one breaker. `now` must not run backwards.
#[derive(Clone, Debug)]
pub struct Breaker {
    rule: Arc<Rule>,
    seen: Seen,
    phase: Phase,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Closed,
    /// Until then; then it is half-open, though nobody has asked yet.
    Open(Timestamp),
    /// `sent` probes went out, and of the attempts that ended since, `failed` did not succeed. A probe whose end is
    /// never told must not keep it here: at `again` it sends as many anew.
    HalfOpen {
        sent: u16,
        ended: u16,
        failed: u16,
        again: Timestamp,
    },
}

impl Breaker {
    /// A closed breaker that has seen nothing.
    pub fn new(config: &BreakerConfig) -> Self {
        Self { seen: Seen::new(&config.rule.opens), rule: config.rule.clone(), phase: Phase::Closed }
    }

    /// Whether an attempt may be sent now. Where it may, it counts as sent.
    pub fn admits(&mut self, now: Timestamp, retry: bool) -> bool {
        let passes = !retry && self.rule.suppresses == Suppresses::Retries;
        if self.rule.open_for.is_zero() {
            return passes || !self.trips(now);
        }
        self.half_open(now);
        match &mut self.phase {
            Phase::Closed => true,
            Phase::Open(_) => passes,
            Phase::HalfOpen { sent, again, .. } => {
                if *sent >= self.rule.probes && now >= *again {
                    (*sent, *again) = (0, now + self.rule.open_for);
                }
                let is_probe = *sent < self.rule.probes;
                *sent += u16::from(is_probe);
                passes || is_probe
            }
        }
    }

    /// An attempt has ended. Not to be told of one that was never on the wire.
    pub fn ended(&mut self, now: Timestamp, failed: bool) {
        if self.rule.open_for.is_zero() {
            return self.seen.add(now, failed);
        }
        self.half_open(now);
        match self.phase {
            Phase::Closed => {
                self.seen.add(now, failed);
                if self.trips(now) {
                    self.phase = Phase::Open(now + self.rule.open_for);
                }
            }
            // What was sent before it opened says nothing new.
            Phase::Open(_) => {}
            Phase::HalfOpen { sent, ended, failed: so_far, again } => {
                let (ended, failed) = (ended + 1, so_far + u16::from(failed));
                self.phase = Phase::HalfOpen { sent, ended, failed, again };
                self.judge_probes(now, ended, failed);
            }
        }
    }

    /// What it does now.
    pub fn state(&self, now: Timestamp) -> State {
        match self.phase {
            Phase::Closed if self.rule.open_for.is_zero() && self.trips(now) => State::Open,
            Phase::Closed => State::Closed,
            Phase::Open(until) if now < until => State::Open,
            Phase::Open(_) | Phase::HalfOpen { .. } => State::HalfOpen,
        }
    }

    /// When an open breaker lets probes through; none where it is not open, or not for a set time.
    pub fn reopens_at(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Open(until) => Some(until),
            Phase::Closed | Phase::HalfOpen { .. } => None,
        }
    }

    fn half_open(&mut self, now: Timestamp) {
        if let Phase::Open(until) = self.phase
            && now >= until
        {
            self.phase = Phase::HalfOpen { sent: 0, ended: 0, failed: 0, again: now + self.rule.open_for };
        }
    }

    /// With failures in a row one failure opens it anew; with a rate that of the probes decides.
    fn judge_probes(&mut self, now: Timestamp, ended: u16, failed: u16) {
        let opens = match self.rule.opens {
            Opens::Failures(_) => failed > 0,
            Opens::Rate { rate, strictly, .. } if ended >= self.rule.probes => {
                is_met(rate, strictly, failed.into(), ended.into())
            }
            Opens::Rate { .. } => false,
        };
        if opens {
            self.phase = Phase::Open(now + self.rule.open_for);
        } else if ended >= self.rule.probes {
            self.phase = Phase::Closed;
        } else {
            return;
        }
        self.seen = Seen::new(&self.rule.opens);
    }

    /// Whether what opens it holds.
    fn trips(&self, now: Timestamp) -> bool {
        match self.rule.opens {
            Opens::Failures(failures) => self.seen.in_a_row() >= failures,
            Opens::Rate { rate, strictly, minimum_calls, .. } => {
                let (calls, failed) = self.seen.within(now);
                calls > 0 && calls >= u64::from(minimum_calls) && is_met(rate, strictly, failed, calls)
            }
        }
    }
}

/// Whether `failed` of `calls` meet a rate. In whole billionths, so that 10 of 100 are 10%.
fn is_met(rate: Share, strictly: bool, failed: u64, calls: u64) -> bool {
    const ONE: u64 = 1_000_000_000;
    let (is, limit) = (failed.saturating_mul(ONE), calls.saturating_mul(Span::from_secs_f64(rate.get()).0));
    if strictly { is > limit } else { is >= limit }
}

/// What has ended lately.
#[derive(Clone, Debug)]
enum Seen {
    InARow(u32),
    Calls(Ring),
    Window { slot: Span, slots: Box<[Slot; SLOTS]> },
}

/// Slots of a window of time.
const SLOTS: usize = 10;

/// What ended in one slot of time. A slot that has left the window is not looked at, and taken over by the next that shares its place.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    number: u64,
    calls: u32,
    failed: u32,
}

/// The last calls, a bit each.
#[derive(Clone, Debug)]
struct Ring {
    /// Where a call failed.
    failed: Box<[u64]>,
    size: u32,
    /// Where the next one goes.
    at: u32,
    calls: u32,
    failures: u32,
}

impl Seen {
    fn new(opens: &Opens) -> Self {
        match *opens {
            Opens::Failures(_) => Self::InARow(0),
            Opens::Rate { over: Over::Calls(size), .. } => Self::Calls(Ring::new(size)),
            Opens::Rate { over: Over::Window(window), .. } => {
                Self::Window { slot: Span((window / SLOTS as u64).0.max(1)), slots: Box::default() }
            }
        }
    }

    fn add(&mut self, now: Timestamp, failed: bool) {
        match self {
            Self::InARow(n) => *n = if failed { n.saturating_add(1) } else { 0 },
            Self::Calls(ring) => ring.add(failed),
            Self::Window { slot, slots } => {
                let number = now.0 / slot.0;
                let held = &mut slots[(number % SLOTS as u64) as usize];
                if held.number != number {
                    *held = Slot { number, ..Slot::default() };
                }
                held.calls = held.calls.saturating_add(1);
                held.failed = held.failed.saturating_add(u32::from(failed));
            }
        }
    }

    fn in_a_row(&self) -> u32 {
        if let Self::InARow(n) = self { *n } else { 0 }
    }

    /// How many ended, and how many of them failed.
    fn within(&self, now: Timestamp) -> (u64, u64) {
        match self {
            Self::InARow(_) => (0, 0),
            Self::Calls(ring) => (ring.calls.into(), ring.failures.into()),
            Self::Window { slot, slots } => {
                let number = now.0 / slot.0;
                let there = slots.iter().filter(|held| held.number + SLOTS as u64 > number);
                there.fold((0, 0), |(calls, failed), held| (calls + u64::from(held.calls), failed + u64::from(held.failed)))
            }
        }
    }
}

impl Ring {
    fn new(size: u32) -> Self {
        let words = size.max(1).div_ceil(64) as usize;
        Self { failed: vec![0; words].into(), size: size.max(1), at: 0, calls: 0, failures: 0 }
    }

    fn add(&mut self, failed: bool) {
        let (word, bit) = (&mut self.failed[self.at as usize / 64], 1u64 << (self.at % 64));
        self.failures -= u32::from(*word & bit != 0);
        *word = if failed { *word | bit } else { *word & !bit };
        self.failures += u32::from(failed);
        self.calls = (self.calls + 1).min(self.size);
        self.at = (self.at + 1) % self.size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};

    fn share(fraction: f64) -> Share {
        Share::new(fraction).unwrap()
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::ZERO + Span::from_millis(millis)
    }

    fn raw() -> RawBreaker {
        RawBreaker {
            failures: None,
            rate: None,
            above: None,
            calls: None,
            window: None,
            minimum_calls: None,
            open_for: Span::from_secs(60),
            probes: 10,
            suppresses: Suppresses::All,
            tier: SharedBy::Client,
        }
    }

    fn breaker(raw: &RawBreaker) -> Breaker {
        Breaker::new(&BreakerConfig { tier: raw.tier, rule: Arc::new(raw.rule().unwrap()) })
    }

    /// What a breaker is told and asked, at a moment in milliseconds.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// So many attempts end well.
        Good(u32),
        /// So many fail.
        Bad(u32),
        /// First attempts and retries: whether they are let through.
        Asks(bool, bool),
        Is(State),
    }
    use State::{Closed, HalfOpen, Open};
    use Step::{Asks, Bad, Good, Is};

    fn drive(name: &str, raw: &RawBreaker, steps: &[(u64, Step)]) {
        let mut b = breaker(raw);
        for &(ms, step) in steps {
            match step {
                Good(n) => (0..n).for_each(|_| b.ended(at(ms), false)),
                Bad(n) => (0..n).for_each(|_| b.ended(at(ms), true)),
                Asks(first, retry) => {
                    assert_eq!((b.admits(at(ms), false), b.admits(at(ms), true)), (first, retry), "{name}, {ms} ms")
                }
                Is(state) => assert_eq!(b.state(at(ms)), state, "{name}, {ms} ms"),
            }
        }
    }

    #[test]
    fn a_breaker_does_what_it_says() {
        let in_a_row = RawBreaker { failures: Some(3), probes: 2, ..raw() };
        drive(
            "in a row",
            &in_a_row,
            &[
                (0, Bad(2)),
                (0, Good(1)),
                (0, Bad(2)),
                (0, Is(Closed)),
                (0, Bad(1)),
                (0, Is(Open)),
                (0, Asks(false, false)),
                (59_999, Bad(9)),
                (59_999, Is(Open)),
                (60_000, Is(HalfOpen)),
                (60_000, Asks(true, true)),
                (60_000, Asks(false, false)),
                (60_001, Good(1)),
                (60_001, Is(HalfOpen)),
                (60_002, Bad(1)),
                (60_002, Is(Open)),
                (120_001, Asks(false, false)),
                (120_002, Asks(true, true)),
                (120_003, Good(2)),
                (120_003, Is(Closed)),
                (120_003, Bad(2)),
                (120_003, Is(Closed)),
            ],
        );
        let resilience4j = RawBreaker { rate: Some(share(0.5)), ..raw() };
        drive(
            "half of a hundred",
            &resilience4j,
            &[
                (0, Bad(99)),
                (0, Is(Closed)),
                (0, Good(1)),
                (0, Is(Open)),
                (60_000, Asks(true, true)),
                (60_000, Good(6)),
                (60_000, Bad(3)),
                (60_000, Is(HalfOpen)),
                (60_000, Bad(1)),
                (60_000, Is(Closed)),
                (60_000, Good(51)),
                (60_000, Bad(49)),
                (60_000, Is(Closed)),
                (60_000, Good(50)),
                (60_000, Bad(50)),
                (60_000, Is(Open)),
            ],
        );
        drive(
            "half of the probes",
            &resilience4j,
            &[(0, Bad(100)), (60_000, Good(5)), (60_000, Bad(5)), (60_000, Is(Open)), (120_000, Is(HalfOpen))],
        );
        let window = RawBreaker { rate: Some(share(0.5)), window: Some(Span::from_secs(10)), minimum_calls: Some(4), ..raw() };
        drive(
            "a window",
            &window,
            &[(0, Bad(3)), (0, Is(Closed)), (10_000, Bad(3)), (10_000, Is(Closed)), (10_000, Good(3)), (10_000, Is(Open))],
        );
        let retries = RawBreaker { failures: Some(1), suppresses: Suppresses::Retries, probes: 1, ..raw() };
        drive(
            "retries alone",
            &retries,
            &[(0, Bad(1)), (0, Asks(true, false)), (60_000, Asks(true, false)), (60_001, Good(1)), (60_001, Asks(true, true))],
        );
        drive(
            "probes that are never heard of",
            &RawBreaker { failures: Some(1), probes: 1, ..raw() },
            &[(0, Bad(1)), (60_000, Asks(true, false)), (119_999, Asks(false, false)), (120_000, Asks(true, false))],
        );
    }

    #[test]
    fn the_rule_without_state_is_open_while_more_than_a_tenth_failed() {
        let tenth = RawBreaker {
            above: Some(share(0.1)),
            calls: Some(100),
            minimum_calls: Some(0),
            open_for: Span::ZERO,
            suppresses: Suppresses::Retries,
            ..raw()
        };
        drive(
            "tenth",
            &tenth,
            &[
                (0, Asks(true, true)),
                (0, Bad(1)),
                (0, Asks(true, false)),
                (0, Is(Open)),
                (0, Good(8)),
                (0, Asks(true, false)),
                (0, Good(1)),
                (0, Asks(true, true)),
                (0, Bad(1)),
                (0, Is(Open)),
                (0, Good(10)),
                (0, Is(Closed)),
                (0, Good(100)),
                (0, Bad(10)),
                (0, Is(Closed)),
                (0, Bad(1)),
                (0, Is(Open)),
                (0, Good(89)),
                (0, Is(Open)),
                (0, Good(1)),
                (0, Is(Closed)),
            ],
        );
        assert_eq!(breaker(&tenth).reopens_at(), None);
    }

    #[test]
    fn the_ring_agrees_with_keeping_everything() {
        for size in [1u32, 7, 64, 65, 100] {
            let (mut ring, mut all) = (Ring::new(size), Vec::new());
            let mut stream = Key { operation: size.into(), ..Key::default() }.stream(Purpose::Arrival);
            for _ in 0..1_000 {
                let failed = stream.unit() < 0.3;
                ring.add(failed);
                all.push(failed);
                let last = &all[all.len().saturating_sub(size as usize)..];
                let failures = last.iter().filter(|failed| **failed).count();
                assert_eq!((ring.calls as usize, ring.failures as usize), (last.len(), failures));
            }
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let rate = || RawBreaker { rate: Some(share(0.5)), ..raw() };
        for (raw, want) in [
            (raw(), "exactly one of"),
            (RawBreaker { failures: Some(5), ..rate() }, "exactly one of"),
            (RawBreaker { failures: Some(0), ..raw() }, "open from the start"),
            (RawBreaker { failures: Some(5), calls: Some(5), ..raw() }, "`calls` goes with `rate`"),
            (RawBreaker { rate: Some(share(0.0)), ..raw() }, "`above: 0%`"),
            (RawBreaker { above: Some(share(1.0)), ..raw() }, "`rate: 100%`"),
            (RawBreaker { calls: Some(5), window: Some(Span::from_secs(1)), ..rate() }, "exclude each other"),
            (RawBreaker { calls: Some(0), ..rate() }, "expected 1 to"),
            (RawBreaker { minimum_calls: Some(101), ..rate() }, "never open"),
            (RawBreaker { window: Some(Span(1)), ..rate() }, "10ms to 24h"),
            (RawBreaker { probes: 0, ..rate() }, "`probes` is 0"),
            (RawBreaker { open_for: Span::ZERO, ..rate() }, "`open_for` is 0s"),
        ] {
            let message = raw.rule().unwrap_err();
            assert!(message.contains(want), "{message}");
        }
        let forgets = RawBreaker { open_for: Span::ZERO, window: Some(Span::from_secs(1)), ..rate() };
        assert!(forgets.rule().is_ok(), "failures leave the window");
    }

    #[test]
    fn a_breaker_is_small() {
        assert!(size_of::<Breaker>() <= 72, "{}", size_of::<Breaker>());
    }
}
