//! What a server asks its clients to wait, in whatever header it says so, and what that is worth to a client.
//!
//! A server says it in one of several headers, [`HintKind`]; a response may hold more than one, so a [`Hint`] keeps each kind apart and
//! a policy says which it reads. Moments (an HTTP-date, seconds since 1970) need the wall clock, and so are turned into a length of
//! time where the header is read.
//!
//! RFC 9110 gives Retry-After two forms, seconds from now and an HTTP-date, and a date three spellings, all of which
//! a recipient must read. A moment that has passed means now.

mod read;
mod said;

use crate::config::{Node, Problems, Read, Shape, TimeScale, Value};
use crate::time::{Share, Span};
use crate::{choice, keyword, record};

pub use read::{parse_retry_after, read};
pub use said::{HintForm, Said, Told};

keyword! {
    /// A header in which a server says how long to wait.
    pub enum HintKind {
        /// `Retry-After`: seconds, or an HTTP-date.
        retry_after => RetryAfter,
        /// `retry-after-ms`: milliseconds; `x-ms-retry-after-ms` and `x-amz-retry-after` too.
        retry_after_ms => RetryAfterMs,
        /// `RateLimit` with `t=` or `reset=`, or `RateLimit-Reset`: seconds until there is room again.
        ratelimit => RateLimit,
        /// `x-ratelimit-reset`: seconds, or a moment in seconds since 1970.
        x_ratelimit_reset => XRateLimitReset,
        /// `grpc-retry-pushback-ms`: milliseconds, obeyed exactly; negative: no retry.
        grpc_pushback => GrpcPushback,
    }
}

/// What a response asks for, each kind in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint([u32; HintKind::ALL.len()]);

/// No such header.
const ABSENT: u32 = u32::MAX;
/// Not to be retried.
const STOP: u32 = u32::MAX - 1;
/// Seven weeks: longer than anybody waits.
const LONGEST: u32 = u32::MAX - 2;

impl Hint {
    /// It asks for nothing.
    pub const NONE: Self = Self([ABSENT; HintKind::ALL.len()]);

    /// A Retry-After of so long.
    pub fn retry_after(wait: Span) -> Self {
        Self::NONE.with(HintKind::RetryAfter, wait)
    }

    /// This, and that kind says so long; to the millisecond, rounded up.
    #[must_use]
    pub fn with(mut self, kind: HintKind, wait: Span) -> Self {
        let millis = wait.0.div_ceil(1_000_000);
        self.0[kind as usize] = u32::try_from(millis).map_or(LONGEST, |millis| millis.min(LONGEST));
        self
    }

    /// This, and gRPC's pushback says not to retry.
    #[must_use]
    pub fn with_stop(mut self) -> Self {
        self.0[HintKind::GrpcPushback as usize] = STOP;
        self
    }

    /// What one kind says; none where that header is not there.
    pub fn get(&self, kind: HintKind) -> Option<Asked> {
        match self.0[kind as usize] {
            ABSENT => None,
            STOP => Some(Asked::Stop),
            millis => Some(Asked::Wait(Span::from_millis(millis.into()))),
        }
    }

    /// Whether it asks for nothing.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }
}

impl Default for Hint {
    fn default() -> Self {
        Self::NONE
    }
}

/// What follows a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A retry after so long.
    Wait(Span),
    /// No retry.
    Stop,
}

record! {
    /// The hint is not read.
    pub struct Ignore {}
}

record! {
    /// The wait is the larger of hint and backoff, plus the spread.
    pub struct Honor {
        /// A longer hint counts as this long.
        cap: Span = Span::from_secs(300),
        /// What is drawn, so that one hint does not bring everybody back together: `50%` adds U(0, 50%) of the hint, `{ factor: [0.5, 1.5] }`
        /// multiplies it.
        spread: Option<Spread>,
        /// Which headers are read; the first of them that is there counts.
        reads: Vec<HintKind> = vec![HintKind::RetryAfter],
        /// The hint lengthens the backoff by this much at most, as AWS's SDKs have it.
        at_most_over: Option<Span>,
        /// The hint takes the place of the backoff, also where it is shorter; gRPC's pushback always does.
        exact: bool = false,
    } => Honor::check
}

impl Honor {
    /// The larger of Retry-After and backoff.
    pub fn plain() -> Self {
        let cap = Span::from_secs(300);
        Self { cap, spread: None, reads: vec![HintKind::RetryAfter], at_most_over: None, exact: false }
    }

    fn check(&self) -> Result<(), String> {
        if self.reads.is_empty() {
            return Err("`reads` is empty: write `retry_after: ignore` to read no hint".into());
        }
        if (1..self.reads.len()).any(|at| self.reads[..at].contains(&self.reads[at])) {
            return Err("`reads` names a header twice: the first that is there counts".into());
        }
        if self.exact && (self.spread.is_some() || self.at_most_over.is_some()) {
            let other = if self.spread.is_some() { "spread" } else { "at_most_over" };
            return Err(format!("`exact` and `{other}` exclude each other: exactly is neither more nor less"));
        }
        Ok(())
    }

    /// The wait that a hint makes of a backoff. gRPC's pushback and `exact` leave nothing to the backoff.
    fn wait(&self, kind: HintKind, hint: Span, backoff: Span, draw: f64) -> Span {
        let hint = hint.min(self.cap);
        if self.exact || kind == HintKind::GrpcPushback {
            return hint;
        }
        let hint = self.at_most_over.map_or(hint, |over| hint.min(backoff + over));
        match self.spread {
            None => hint.max(backoff),
            Some(Spread::Over(share)) => hint.max(backoff) + hint.scale(share.get() * draw),
            Some(Spread::Factor { low, high }) => hint.scale(low + (high - low) * draw).max(backoff),
        }
    }
}

choice! {
    /// What a server's hint is worth.
    pub enum RetryAfter {
        /// It is not read.
        ignore => Ignore(Ignore),
        /// It is waited for.
        honor => Honor(Honor),
    }
}

impl RetryAfter {
    /// The hint is not read.
    pub const fn ignore() -> Self {
        Self::Ignore(Ignore {})
    }

    /// The wait before a retry: the backoff, or what the hint makes of it. `draw` is uniform in [0, 1].
    pub fn wait(&self, backoff: Span, hint: Hint, draw: f64) -> Asked {
        let Self::Honor(honor) = self else { return Asked::Wait(backoff) };
        if hint.is_none() {
            return Asked::Wait(backoff);
        }
        match honor.reads.iter().find_map(|kind| hint.get(*kind).map(|asked| (*kind, asked))) {
            None => Asked::Wait(backoff),
            Some((_, Asked::Stop)) => Asked::Stop,
            Some((kind, Asked::Wait(hint))) => Asked::Wait(honor.wait(kind, hint, backoff, draw)),
        }
    }
}

/// How hints are spread, so that clients that were refused together do not come back together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// Adds U(0, share · hint): never below the hint.
    Over(Share),
    /// Multiplies the hint by U(low, high), which may go below it.
    Factor {
        /// The least factor.
        low: f64,
        /// The greatest.
        high: f64,
    },
}

impl Spread {
    /// Whether it spreads nothing.
    pub fn is_nothing(&self) -> bool {
        match *self {
            Self::Over(share) => share.get() == 0.0,
            Self::Factor { low, high } => low == high,
        }
    }
}

record! {
    /// Multiplies the hint by a factor that is drawn.
    struct RawFactor {
        /// The least and the greatest factor.
        factor: Vec<f64>,
    } => |raw: &RawFactor| raw.spread().map(|_| ())
}

/// The largest factor.
const MAX_FACTOR: f64 = 100.0;

impl RawFactor {
    fn spread(&self) -> Result<Spread, String> {
        match self.factor[..] {
            [low, high] if (0.0..=MAX_FACTOR).contains(&low) && (low..=MAX_FACTOR).contains(&high) => {
                Ok(Spread::Factor { low, high })
            }
            [low, high] => {
                Err(format!("`factor` is [{low}, {high}]: expected the lesser first, and both from 0 to {MAX_FACTOR}"))
            }
            _ => Err("`factor` needs two numbers: write `[0.5, 1.5]`".into()),
        }
    }
}

impl Read for Spread {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        if matches!(node.value, Value::Map(_)) {
            return RawFactor::read(node, problems)?.spread().ok();
        }
        Share::read(node, problems).map(Self::Over)
    }

    fn shape() -> Shape {
        Shape::OneOf(vec![Share::shape(), RawFactor::shape()])
    }

    fn rescale(&mut self, _by: TimeScale) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECS: fn(u64) -> Span = Span::from_secs;

    #[test]
    fn a_hint_is_small_and_keeps_kinds_apart() {
        assert!(size_of::<Hint>() <= 24);
        let hint = Hint::retry_after(SECS(3)).with(HintKind::RateLimit, Span(1)).with_stop();
        for (kind, want) in [
            (HintKind::RetryAfter, Some(Asked::Wait(SECS(3)))),
            (HintKind::RetryAfterMs, None),
            (HintKind::RateLimit, Some(Asked::Wait(Span::from_millis(1)))),
            (HintKind::GrpcPushback, Some(Asked::Stop)),
        ] {
            assert_eq!(hint.get(kind), want, "{kind:?}");
        }
        let Some(Asked::Wait(longest)) = Hint::retry_after(Span::MAX).get(HintKind::RetryAfter) else { panic!("it waits") };
        assert!(longest > SECS(4_000_000), "it saturates, and neither vanishes nor stops");
    }

    #[test]
    fn a_hint_is_a_floor_with_a_spread_above() {
        let plain = || Honor { cap: SECS(60), ..Honor::plain() };
        let honor = |spread| RetryAfter::Honor(Honor { spread, ..plain() });
        let half = Some(Spread::Over(Share::new(0.5).unwrap()));
        let factor = Some(Spread::Factor { low: 0.5, high: 1.5 });
        let aws = RetryAfter::Honor(Honor { at_most_over: Some(SECS(5)), ..plain() });
        let exact = RetryAfter::Honor(Honor { exact: true, ..plain() });
        for (retry_after, backoff, hint, draw, want) in [
            (RetryAfter::ignore(), 2, Some(30), 1.0, 2),
            (honor(None), 2, None, 1.0, 2),
            (honor(None), 2, Some(30), 1.0, 30),
            (honor(None), 40, Some(30), 1.0, 40),
            (honor(half), 2, Some(30), 0.0, 30),
            (honor(half), 2, Some(30), 1.0, 45),
            (honor(half), 40, Some(30), 1.0, 55),
            (honor(None), 2, Some(1_000_000), 1.0, 60),
            (honor(half), 2, Some(0), 1.0, 2),
            (honor(factor), 2, Some(30), 0.0, 15),
            (honor(factor), 2, Some(30), 0.5, 30),
            (honor(factor), 2, Some(30), 1.0, 45),
            (honor(factor), 20, Some(30), 0.0, 20),
            (aws.clone(), 2, Some(4), 1.0, 4),
            (aws.clone(), 2, Some(30), 1.0, 7),
            (aws.clone(), 20, Some(4), 1.0, 20),
            (aws, 2, None, 1.0, 2),
            (exact.clone(), 20, Some(4), 1.0, 4),
            (exact.clone(), 2, Some(1_000), 1.0, 60),
            (exact, 20, None, 1.0, 20),
        ] {
            let hint = hint.map_or(Hint::NONE, |secs| Hint::retry_after(SECS(secs)));
            let wait = retry_after.wait(SECS(backoff), hint, draw);
            assert_eq!(wait, Asked::Wait(SECS(want)), "{retry_after:?} {backoff} {hint:?} {draw}");
        }
    }

    #[test]
    fn the_first_that_is_there_counts_and_a_pushback_is_obeyed() {
        use HintKind::{GrpcPushback, RateLimit, RetryAfter as After, RetryAfterMs, XRateLimitReset};
        let all = Hint::retry_after(SECS(10)).with(RetryAfterMs, SECS(20)).with(XRateLimitReset, SECS(30));
        for (reads, hint, want) in [
            (vec![After], all, Asked::Wait(SECS(10))),
            (vec![RetryAfterMs, After], all, Asked::Wait(SECS(20))),
            (vec![RateLimit, XRateLimitReset, After], all, Asked::Wait(SECS(30))),
            (vec![RateLimit], all, Asked::Wait(SECS(5))),
            (vec![GrpcPushback], Hint::NONE.with(GrpcPushback, SECS(1)), Asked::Wait(SECS(1))),
            (vec![GrpcPushback], Hint::NONE.with(GrpcPushback, Span::ZERO), Asked::Wait(Span::ZERO)),
            (vec![GrpcPushback], Hint::NONE.with_stop(), Asked::Stop),
            (vec![After], Hint::NONE.with_stop(), Asked::Wait(SECS(5))),
        ] {
            let honor = RetryAfter::Honor(Honor { reads: reads.clone(), ..Honor::plain() });
            assert_eq!(honor.wait(SECS(5), hint, 0.5), want, "{reads:?} {hint:?}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let plain = Honor::plain;
        for (honor, want) in [
            (Honor { reads: Vec::new(), ..plain() }, "`reads` is empty"),
            (Honor { reads: vec![HintKind::RateLimit; 2], ..plain() }, "twice"),
            (Honor { exact: true, at_most_over: Some(Span::ZERO), ..plain() }, "exclude each other"),
        ] {
            let message = honor.check().unwrap_err();
            assert!(message.contains(want), "{message}");
        }
        for (factor, want) in [
            (vec![0.5, 1.5], None),
            (vec![1.5, 0.5], Some("the lesser first")),
            (vec![-1.0, 1.0], Some("from 0")),
            (vec![1.0], Some("two numbers")),
        ] {
            let message = RawFactor { factor }.spread().err();
            assert_eq!(message.is_some(), want.is_some());
            assert!(message.unwrap_or_default().contains(want.unwrap_or_default()));
        }
    }
}
