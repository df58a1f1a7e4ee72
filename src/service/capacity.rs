//! The clock of the work: how much work a server has done by a moment, where the capacity is not always whole.
//!
//! It runs at the share of the capacity that is there: at 20% what takes a second of work takes five seconds, whatever is
//! in service included. Who starts at work w and takes s is done at work w + s, however the share changes on the way, so
//! nothing that is in service has to be touched when it does. As long as all of the capacity is there, it is the real time.
//!
//! Owns how the share changes: set by a script, at once or in steps, and by a slow start after a restart. Leaves to others
//! what a request's work is (`curve`), and who is in service (`servers`).

use super::curve::{Curve, SlowStart};
use crate::time::{Share, Span, Timestamp};

/// In how many equal steps a ramp goes. Each has the share of its middle, so that the work over a step is that of a straight line.
const STEPS: u32 = 100;

/// A share in millionths: 1 where it is less, and not nothing.
const WHOLE: u32 = 1_000_000;

/// The pace of the clock at full capacity: a product of two shares, in millionths of millionths.
const FULL: u64 = WHOLE as u64 * WHOLE as u64;

/// How much work each server has done. Exact: whatever is less than a nanosecond of work is carried on.
///
/// Whoever drives it lets no change be passed unseen: work that ends by [`Capacity::next_change`] is ended first, with the moments that
/// [`Capacity::when`] gives, then [`Capacity::pass`] is called.
#[derive(Clone, Debug)]
pub struct Capacity {
    /// Where the pace last changed: the moment, the work done by then, and what of a nanosecond of work was left over, in parts of [`FULL`].
    since: u64,
    done: u64,
    rest: u64,
    pace: u64,
    scripted: Ramp,
    slow: Ramp,
    slow_start: Option<SlowStart>,
}

impl Capacity {
    /// All of it, at the start of a run.
    pub fn new(curve: &Curve) -> Self {
        Self {
            since: 0,
            done: 0,
            rest: 0,
            pace: FULL,
            scripted: Ramp::level(WHOLE),
            slow: Ramp::level(WHOLE),
            slow_start: curve.slow_start.clone(),
        }
    }

    /// The work done by a moment, in nanoseconds at full capacity. Not for moments beyond the next change.
    pub fn work(&self, at: Timestamp) -> u64 {
        let passed = at.0.saturating_sub(self.since);
        match self.pace {
            FULL => self.done + passed,
            _ => self.done + self.advance(passed).0,
        }
    }

    /// The first moment at which so much work is done, or the next change if that comes first: ask again then. None where there
    /// is no capacity, and no change to come. Work that was done before the last change counts as done at it.
    pub fn when(&self, work: u64) -> Option<Timestamp> {
        let change = self.next_change();
        let lacking = work.saturating_sub(self.done);
        let passed = match self.pace {
            _ if lacking == 0 => 0,
            FULL => lacking,
            0 => return change,
            pace => {
                let passed = (u128::from(lacking) * u128::from(FULL) - u128::from(self.rest)).div_ceil(pace.into());
                u64::try_from(passed).unwrap_or(u64::MAX)
            }
        };
        let when = Timestamp(self.since.saturating_add(passed));
        Some(change.map_or(when, |change| when.min(change)))
    }

    /// When the share next changes by itself: the next step of a ramp, or of a slow start.
    pub fn next_change(&self) -> Option<Timestamp> {
        self.scripted.next().into_iter().chain(self.slow.next()).min().map(Timestamp)
    }

    /// Makes every change that is due by a moment, each at its own.
    pub fn pass(&mut self, at: Timestamp) {
        while let Some(change) = self.next_change().filter(|change| *change <= at) {
            self.scripted.pass(change.0);
            self.slow.pass(change.0);
            self.turn(change);
        }
    }

    /// Goes to another share, at once or evenly over a time. A ramp that is under way ends here.
    pub fn set(&mut self, at: Timestamp, share: Share, over: Span) {
        self.pass(at);
        self.scripted = Ramp::new(self.scripted.share(), millionths(share), at.0, over.0);
        self.turn(at);
    }

    /// Comes back from a restart: a slow start begins, where there is one. The moment may lie ahead, if nothing is in service until then.
    pub fn restarted(&mut self, at: Timestamp) {
        self.pass(at);
        if let Some(SlowStart { from, over }) = &self.slow_start {
            self.slow = Ramp::new(millionths(*from), WHOLE, at.0, over.0);
            self.turn(at);
        }
    }

    /// The share of the capacity that is there: the scripted one times that of a slow start.
    pub fn share(&self) -> f64 {
        self.pace as f64 / FULL as f64
    }

    /// The share that a ramp leads to, and a slow start; what is there already where neither is under way.
    pub fn goal(&self) -> f64 {
        f64::from(self.scripted.to) / f64::from(WHOLE)
    }

    /// The pace changes at a moment.
    fn turn(&mut self, at: Timestamp) {
        let (work, rest) = self.advance(at.0.saturating_sub(self.since));
        self.since = self.since.max(at.0);
        self.done += work;
        self.rest = rest;
        self.pace = u64::from(self.scripted.share()) * u64::from(self.slow.share());
    }

    /// The work done in so much time since the last change, and what is left over. Never more than the time, so nothing overflows.
    fn advance(&self, passed: u64) -> (u64, u64) {
        let parts = u128::from(passed) * u128::from(self.pace) + u128::from(self.rest);
        ((parts / u128::from(FULL)) as u64, (parts % u128::from(FULL)) as u64)
    }
}

/// A share in millionths; never nothing where it is something.
fn millionths(share: Share) -> u32 {
    let parts = (share.get() * f64::from(WHOLE) + 0.5) as u32;
    if share.get() > 0.0 { parts.clamp(1, WHOLE) } else { 0 }
}

/// A share on its way, in millionths.
#[derive(Clone, Copy, Debug)]
struct Ramp {
    from: u32,
    to: u32,
    begin: u64,
    over: u64,
    /// How many steps are over.
    step: u32,
}

impl Ramp {
    const fn level(share: u32) -> Self {
        Self { from: share, to: share, begin: 0, over: 0, step: STEPS }
    }

    const fn new(from: u32, to: u32, begin: u64, over: u64) -> Self {
        let step = if over == 0 { STEPS } else { 0 };
        Self { from, to, begin, over, step }
    }

    fn share(&self) -> u32 {
        if self.step >= STEPS {
            return self.to;
        }
        let (from, to) = (i64::from(self.from), i64::from(self.to));
        let middle = from + ((to - from) * i64::from(2 * self.step + 1)).div_euclid(2 * i64::from(STEPS));
        middle as u32
    }

    fn next(&self) -> Option<u64> {
        let passed = u128::from(self.over) * u128::from(self.step + 1) / u128::from(STEPS);
        (self.step < STEPS).then(|| self.begin.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX)))
    }

    fn pass(&mut self, at: u64) {
        while self.next().is_some_and(|next| next <= at) {
            self.step += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose, Stream};

    const SEC: u64 = 1_000_000_000;

    fn share(percent: f64) -> Share {
        Share::new(percent / 100.0).unwrap()
    }

    fn at(secs: u64) -> Timestamp {
        Timestamp(secs * SEC)
    }

    fn slow(from: f64, over: u64) -> Capacity {
        let slow_start = Some(SlowStart { from: share(from), over: Span::from_secs(over) });
        Capacity::new(&Curve { slow_start, ..Curve::flat() })
    }

    fn flat() -> Capacity {
        Capacity::new(&Curve::flat())
    }

    #[test]
    fn whole_capacity_is_the_real_time() {
        let capacity = flat();
        for nanos in [0, 1, 999_999_999, 123_456_789_012_345, u64::MAX] {
            assert_eq!((capacity.work(Timestamp(nanos)), capacity.when(nanos)), (nanos, Some(Timestamp(nanos))));
        }
        assert_eq!((capacity.next_change(), capacity.share()), (None, 1.0));
    }

    #[test]
    fn at_a_fifth_everything_takes_five_times_as_long() {
        let mut capacity = flat();
        // In service from second 9, with two seconds of work: the second of them takes five.
        capacity.set(at(10), share(20.0), Span::ZERO);
        assert_eq!((capacity.when(11 * SEC), capacity.work(at(15)), capacity.share()), (Some(at(15)), 11 * SEC, 0.2));
        assert_eq!(capacity.goal(), 0.2);
        capacity.set(at(20), share(0.0), Span::ZERO);
        assert_eq!(
            (capacity.work(at(500)), capacity.when(12 * SEC), capacity.when(12 * SEC + 1)),
            (12 * SEC, Some(at(20)), None)
        );
        capacity.set(at(30), Share::ALL, Span::ZERO);
        assert_eq!((capacity.when(13 * SEC), capacity.work(at(40))), (Some(at(31)), 22 * SEC));
    }

    /// Drives to a moment as the machine does: change by change.
    fn drive(capacity: &mut Capacity, to: Timestamp) -> u64 {
        while let Some(change) = capacity.next_change().filter(|change| *change <= to) {
            capacity.pass(change);
        }
        capacity.work(to)
    }

    #[test]
    fn a_ramp_does_the_work_of_a_straight_line() {
        for (from, to, over) in [(100.0, 20.0, 10), (0.0, 100.0, 7), (100.0, 0.0, 3), (35.0, 36.0, 60)] {
            let mut capacity = flat();
            capacity.set(at(0), share(from), Span::ZERO);
            capacity.set(at(0), share(to), Span::from_secs(over));
            let work = drive(&mut capacity, at(over)) as f64 / SEC as f64;
            let line = (from + to) / 200.0 * over as f64;
            assert!((work - line).abs() < 1e-5 * over as f64, "{from}% to {to}%: {work}, not {line}");
            assert_eq!((capacity.share(), capacity.next_change()), (share(to).get(), None));
        }
        // In one call, and in as many as there are steps: the same.
        let mut once = flat();
        once.set(at(1), share(10.0), Span(1_234_567_891));
        let mut stepped = once.clone();
        once.pass(at(9));
        assert_eq!(once.work(at(9)), drive(&mut stepped, at(9)));
    }

    #[test]
    fn a_slow_start_multiplies_with_the_script_and_ends() {
        let mut capacity = slow(10.0, 20);
        assert_eq!(capacity.share(), 1.0, "a run begins with all of it");
        capacity.set(at(5), share(50.0), Span::ZERO);
        capacity.restarted(at(10));
        assert!((capacity.share() - 0.5 * 0.1045).abs() < 1e-9, "{}", capacity.share());
        let done = drive(&mut capacity, at(30)) as f64 / SEC as f64;
        assert!((done - (5.0 + 2.5 + 20.0 * 0.55 * 0.5)).abs() < 1e-5, "{done}");
        assert_eq!((capacity.share(), capacity.next_change()), (0.5, None));
        let mut none = flat();
        none.restarted(at(3));
        assert_eq!((none.share(), none.next_change()), (1.0, None));
    }

    #[test]
    fn a_ramp_that_is_too_short_for_its_steps_and_one_without_end_are_taken() {
        let mut capacity = flat();
        capacity.set(at(1), share(40.0), Span(3));
        capacity.pass(at(2));
        assert_eq!(capacity.share(), 0.4);
        capacity.set(at(3), Share::ALL, Span::MAX);
        assert!(capacity.next_change().is_some_and(|change| change > at(1_000_000)));
        capacity.pass(Timestamp::NEVER);
        assert!(capacity.share() > 0.4 && capacity.when(u64::MAX).is_some());
        assert!(millionths(Share::new(1e-12).unwrap()) == 1 && millionths(Share::ALL) == WHOLE);
    }

    fn below(stream: &mut Stream, bound: u64) -> u64 {
        stream.bits() % bound
    }

    /// Whatever the script: the clock never goes back, is never quicker than the time, and `when` gives the first moment, or the next change.
    #[test]
    fn work_and_moments_are_inverse_to_the_nanosecond() {
        for case in 0..300 {
            let mut stream = Key { seed: case, ..Key::default() }.stream(Purpose::Arrival);
            let mut capacity = slow(stream.unit() * 100.0, below(&mut stream, 3));
            let (mut now, mut last) = (0, 0);
            for _ in 0..40 {
                now += below(&mut stream, SEC);
                let moment = Timestamp(now);
                let work = drive(&mut capacity, moment);
                assert!(last <= work && work <= now && work - last <= now, "case {case}: {last}, then {work}");
                last = work;
                match below(&mut stream, 6) {
                    0 => capacity.set(
                        moment,
                        share([0.0, 0.0003, 20.0, 33.3333, 100.0][below(&mut stream, 5) as usize]),
                        Span::ZERO,
                    ),
                    1 => capacity.set(moment, share(stream.unit() * 100.0), Span(below(&mut stream, 3 * SEC))),
                    2 => capacity.restarted(moment),
                    _ => inverse(&capacity, work + 1 + below(&mut stream, SEC)),
                }
                assert_eq!(capacity.work(moment), work, "case {case}: a change of the pace changes no work that is done");
            }
        }
    }

    fn inverse(capacity: &Capacity, work: u64) {
        let Some(when) = capacity.when(work) else {
            assert!(capacity.share() == 0.0 && capacity.next_change().is_none());
            return;
        };
        let change = capacity.next_change().unwrap_or(Timestamp::NEVER);
        assert!(when <= change);
        assert!(capacity.work(Timestamp(when.0 - 1)) < work, "a nanosecond before, it was not done");
        assert!(when == change || capacity.work(when) >= work);
    }
}
