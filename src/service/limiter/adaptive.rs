//! A concurrency limit that follows latency: the gradient controller of Envoy's adaptive concurrency filter
//! (envoyproxy.io, "Adaptive Concurrency"; `gradient_controller.cc`).
//!
//! From time to time it lets only `min` requests in, until so many of them have been answered: their mean latency is the
//! baseline, that of a service in which nothing waits. Then, at the end of each window of length `update_every` in which there was an answer,
//!
//! ```text
//! gradient = baseline x (1 + tolerance) / mean latency of the window, from 0.5 to 2
//! limit    = limit x gradient + sqrt(limit x gradient), from `min` to `max`, rounded down
//! ```
//!
//! so that under overload a service of c equal servers is left with about 1.25 c + sqrt(1.25 c) requests at the default
//! tolerance. After five windows in a row at `min` the baseline is measured anew, since it must be wrong by then. Two things differ
//! from Envoy: means stand for its medians, so that no sample is kept, and the measuring is not jittered, since there is one
//! service. A `baseline` that is given is never measured, as Envoy's `fixed_value`.

use super::concurrency::no_rejected;
use super::shared::Shared;
use crate::record;
use crate::time::{Share, Span, Timestamp};

/// After so many windows in a row at the smallest limit the baseline is measured anew.
const WINDOWS_AT_LEAST: u32 = 5;

record! {
    /// A limit on the requests in the service that follows their latency: Envoy's gradient controller.
    pub struct AdaptiveConcurrency {
        /// The limit at first, once there is a baseline.
        initial: u32 = Self::default().initial,
        /// The smallest limit, and the limit while the baseline is measured.
        min: u32 = Self::default().min,
        /// The largest limit.
        max: u32 = Self::default().max,
        /// How far latency may exceed the baseline without lowering the limit.
        tolerance: Share = Self::default().tolerance,
        /// How often the limit is set anew.
        update_every: Span = Self::default().update_every,
        /// The latency of a service in which nothing waits; measured where nothing is said.
        baseline: Option<Span>,
        /// How often the baseline is measured.
        baseline_every: Span = Self::default().baseline_every,
        /// How many answers it is measured by.
        baseline_answers: u32 = Self::default().baseline_answers;
        with
        /// What all limiters share.
        shared: Shared,
    } => AdaptiveConcurrency::check
}

impl Default for AdaptiveConcurrency {
    fn default() -> Self {
        Self {
            initial: 20,
            min: 3,
            max: 1000,
            tolerance: Share::new(0.25).expect("a quarter is a share"),
            update_every: Span::from_millis(100),
            baseline: None,
            baseline_every: Span::from_secs(60),
            baseline_answers: 50,
            shared: Shared::plain(),
        }
    }
}

impl AdaptiveConcurrency {
    fn check(&self) -> Result<(), String> {
        if self.min == 0 {
            return Err("`min` must be 1 or more: a service that nothing may enter has no latency to follow".to_string());
        }
        if !(self.min..=self.max).contains(&self.initial) {
            return Err(format!(
                "`initial` must lie between `min` ({}) and `max` ({}), not at {}",
                self.min, self.max, self.initial
            ));
        }
        for (name, span) in [
            ("update_every", Some(self.update_every)),
            ("baseline", self.baseline),
            ("baseline_every", Some(self.baseline_every)),
        ] {
            if span.is_some_and(Span::is_zero) {
                return Err(format!("`{name}` must be above zero: write such as `100ms`"));
            }
        }
        if self.baseline_answers == 0 {
            return Err("`baseline_answers` must be 1 or more: no answer says how long one takes".to_string());
        }
        no_rejected(&self.shared)
    }
}

/// What latencies were seen.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    sum: u128,
    n: u32,
}

impl Seen {
    fn add(&mut self, took: Span) {
        self.sum += u128::from(took.0);
        self.n = self.n.saturating_add(1);
    }

    /// In nanoseconds; at least one, so that it can be divided by.
    fn mean(self) -> Option<f64> {
        (self.n > 0).then(|| (self.sum as f64 / f64::from(self.n)).max(1.0))
    }
}

/// The state of an adaptive limit.
#[derive(Clone, Debug)]
pub struct Adaptive {
    min: u32,
    max: u32,
    factor: f64,
    update_every: Span,
    measures: Option<Measures>,
    limit: u32,
    inside: u64,
    /// In nanoseconds, once there is one.
    baseline: f64,
    /// Since when the baseline is measured, while it is.
    measuring: Option<Timestamp>,
    measure_at: Timestamp,
    update_at: Timestamp,
    windows_at_least: u32,
    seen: Seen,
}

/// How a baseline is measured.
#[derive(Clone, Copy, Debug)]
struct Measures {
    every: Span,
    answers: u32,
}

impl Adaptive {
    /// A limit that has seen nothing.
    pub fn new(config: &AdaptiveConcurrency) -> Self {
        let measures = Measures { every: config.baseline_every, answers: config.baseline_answers };
        Self {
            min: config.min,
            max: config.max,
            factor: 1.0 + config.tolerance.get(),
            update_every: config.update_every,
            measures: config.baseline.is_none().then_some(measures),
            limit: config.initial,
            inside: 0,
            baseline: config.baseline.map_or(0.0, |baseline| baseline.0 as f64),
            measuring: config.baseline.is_none().then_some(Timestamp::ZERO),
            measure_at: Timestamp::NEVER,
            update_at: Timestamp::ZERO + config.update_every,
            windows_at_least: 0,
            seen: Seen::default(),
        }
    }

    /// Whether a request passes, which is inside then; `inside` is how many there are where somebody else counts them.
    pub fn admit(&mut self, now: Timestamp, inside: Option<u64>) -> bool {
        self.roll(now);
        let passes = inside.unwrap_or(self.inside) < u64::from(self.limit());
        self.inside += u64::from(passes);
        passes
    }

    /// One that was inside is no more, so long after it was let in. Of one that was not answered (`ok`) is known only that it would have
    /// taken longer, so it counts where that is long.
    pub fn left(&mut self, now: Timestamp, took: Span, ok: bool) {
        self.leave();
        self.roll(now);
        match (self.measuring, self.measures) {
            // What came before the measuring began has met the others.
            (Some(since), Some(measures)) if ok && now - took >= since => {
                self.seen.add(took);
                if self.seen.n >= measures.answers {
                    self.measured(now, measures);
                }
            }
            (Some(_), _) => {}
            (None, _) if ok || took.0 as f64 > self.baseline => self.seen.add(took),
            (None, _) => {}
        }
    }

    /// One that was let in is turned away by somebody else.
    pub fn leave(&mut self) {
        self.inside = self.inside.saturating_sub(1);
    }

    /// How many it has let in that have not left.
    pub fn inside(&self) -> u64 {
        self.inside
    }

    /// The limit as it stands.
    pub fn limit(&self) -> u32 {
        if self.measuring.is_some() { self.min } else { self.limit }
    }

    /// Ends the window that is over.
    fn roll(&mut self, now: Timestamp) {
        if self.measuring.is_some() || now < self.update_at.min(self.measure_at) {
            return;
        }
        if let Some(latency) = self.seen.mean() {
            self.limit = self.follow(latency);
            self.windows_at_least = if self.limit == self.min { self.windows_at_least + 1 } else { 0 };
        }
        self.seen = Seen::default();
        self.update_at = now + self.update_every;
        if self.measures.is_some() && (now >= self.measure_at || self.windows_at_least >= WINDOWS_AT_LEAST) {
            self.measuring = Some(now);
        }
    }

    fn follow(&self, latency: f64) -> u32 {
        let gradient = (self.baseline * self.factor / latency).clamp(0.5, 2.0);
        let limit = f64::from(self.limit) * gradient;
        ((limit + limit.sqrt()) as u32).clamp(self.min, self.max)
    }

    fn measured(&mut self, now: Timestamp, measures: Measures) {
        self.baseline = self.seen.mean().unwrap_or(self.baseline);
        self.seen = Seen::default();
        self.measuring = None;
        self.measure_at = now + measures.every;
        self.update_at = now + self.update_every;
        self.windows_at_least = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    fn config() -> AdaptiveConcurrency {
        AdaptiveConcurrency { initial: 200, ..AdaptiveConcurrency::default() }
    }

    /// Equal servers that answer in the order of arrival, driven by hand.
    struct Loop {
        limit: Adaptive,
        /// When each server is free.
        free: VecDeque<Timestamp>,
        /// When each came and when each will be done, in that order.
        inside: VecDeque<(Timestamp, Timestamp)>,
        answered: u64,
    }

    impl Loop {
        fn new(config: &AdaptiveConcurrency, servers: usize) -> Self {
            let free = VecDeque::from(vec![Timestamp::ZERO; servers]);
            Self { limit: Adaptive::new(config), free, inside: VecDeque::new(), answered: 0 }
        }

        /// Three requests a millisecond from `from` for `seconds`, each served for `time`.
        fn run(&mut self, from: u64, seconds: u64, time: Span) {
            for step in 0..seconds * 3000 {
                let now = Timestamp::ZERO + Span::from_secs(from) + Span::from_micros(step * 1_000_000 / 3000);
                while let Some(&(since, done)) = self.inside.front().filter(|(_, done)| *done <= now) {
                    self.inside.pop_front();
                    self.answered += 1;
                    self.limit.left(done, done.since(since), true);
                }
                if self.limit.admit(now, Some(self.inside.len() as u64)) {
                    let done = self.free.pop_front().unwrap().max(now) + time;
                    self.free.push_back(done);
                    self.inside.push_back((now, done));
                }
            }
        }
    }

    #[test]
    fn under_overload_it_settles_a_little_above_the_servers_and_follows_them() {
        let ms = Span::from_millis;
        for pinned in [None, Some(ms(10))] {
            let mut service = Loop::new(&AdaptiveConcurrency { baseline: pinned, ..config() }, 10);
            service.run(0, 5, ms(10));
            // 1.25 x 10 + sqrt(12.5) = 16.03.
            assert!((14..=18).contains(&service.limit.limit()), "{:?}", service.limit);
            let before = service.answered;
            service.run(5, 5, ms(10));
            assert!(
                (4_950..=5_050).contains(&(service.answered - before)),
                "the servers are kept busy: {}",
                service.answered - before
            );
            service.run(10, 10, ms(50));
            let slow = service.limit.limit();
            match pinned {
                // The servers seem to be queues: nothing but the smallest limit is good enough.
                Some(_) => assert!(slow <= 5, "{slow}"),
                None => assert!((14..=18).contains(&slow), "five windows at the least, and it is measured anew: {slow}"),
            }
        }
    }

    #[test]
    fn it_grows_with_room_and_learns_from_those_that_were_never_answered() {
        let mut limit = Adaptive::new(&AdaptiveConcurrency { baseline: Some(Span(100)), initial: 4, ..config() });
        let mut window = |took: u64, ok: bool| {
            limit.left(Timestamp(limit.update_at.0 - 1), Span(took), ok);
            limit.roll(limit.update_at);
            limit.limit()
        };
        // 4 x 1.25 = 5, + sqrt(5); then 7 x 1.25 = 8.75, + 2.96; 11 x 0.5 = 5.5, + 2.3; a short one says nothing.
        assert_eq!([window(100, true), window(100, true), window(9_000, false), window(5, false)], [7, 11, 7, 7]);
    }

    #[test]
    fn while_it_measures_only_the_least_are_let_in_and_only_they_count() {
        let mut limit = Adaptive::new(&AdaptiveConcurrency { baseline_answers: 2, ..config() });
        let passed = (0..10).filter(|_| limit.admit(Timestamp(5), None)).count();
        assert_eq!((passed, limit.inside(), limit.limit()), (3, 3, 3));
        limit.left(Timestamp(20), Span(10), true);
        limit.left(Timestamp(21), Span(10), false);
        assert_eq!(limit.limit(), 3, "one that was not answered is no measure");
        limit.left(Timestamp(30), Span(30), true);
        assert_eq!((limit.baseline, limit.limit(), limit.inside()), (20.0, 200, 0));
        let minute = Timestamp(30) + Span::from_secs(60);
        limit.roll(minute);
        limit.left(minute + Span(1), Span(5), true);
        assert_eq!((limit.limit(), limit.seen.n), (3, 0), "it came before the measuring began");
    }
}
