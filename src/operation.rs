//! The retry loop: one operation, its attempts, its deadline.
//!
//! Owns what an operation remembers between attempts, and every decision on what comes next. It is the only retry loop
//! there is: an engine sends an attempt when told to, reports how it ended, and is told what follows. What a
//! policy says is data behind [`Terms`], so the loop does not grow with the kinds of backoff, jitter or hint.
//! Attempts count twice, over the operation and within the pass, because limits and backoff start anew with a
//! pass while amplification does not.
//!
//! Leaves to others: when the connection is free, timers, and who holds the operation (`fleet`).
//!
//! Every moment that somebody may wait for is rounded up here, by [`on_grid`], and nowhere else. So both engines
//! wait for the same moments, and a comparison between a wake-up and a deadline is one between rounded values.
//! The struct is small because a simulation holds millions of them.

use crate::event::{AttemptOutcome, OperationOutcome};
use crate::policy::{Budget, Failure, Policy};
use crate::rng::Key;
use crate::time::{Span, Timestamp};

/// A moment to wait for, rounded up to the run's timer grain (invariant 4).
pub fn on_grid(at: Timestamp, grain: Span) -> Timestamp {
    at.round_up(grain)
}

/// What an operation is run by: borrowed for one call, so that it costs an operation no memory.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// The budget that its retries are spent from.
    pub budget: Option<&'a Budget>,
    /// What moments are rounded up to.
    pub grain: Span,
    /// Names the operation to the draws; its attempt is filled in here.
    pub key: Key,
}

/// An operation between its offer and its end.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    intended: Timestamp,
    /// When the first attempt of this pass was sent; `max_elapsed` counts from it.
    pass_began: Timestamp,
    /// The backoff before the latest attempt, for the decorrelated form.
    previous: Span,
    attempts: u32,
    in_pass: u32,
    last: Option<AttemptOutcome>,
}

/// An attempt that goes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Its number in the operation, from 1, across passes.
    pub number: u32,
    /// Whether it is a retry: attempt 2 or later of its pass.
    pub retry: bool,
    /// When it is given up: its timeout or the operation's deadline, whichever is first.
    pub timeout_at: Timestamp,
}

/// What follows the end of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another attempt, at once.
    Send,
    /// Another attempt after a wait.
    Wait {
        /// The moment that the policy wants.
        wanted: Timestamp,
        /// The moment to wait for.
        until: Timestamp,
    },
    /// Nothing more.
    Finished(End),
}

/// Why an operation, or its pass, is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It succeeded within its deadline.
    Succeeded,
    /// Its outcome is of a class that the policy does not retry.
    NotRetried,
    /// The pass has used its attempts.
    Attempts,
    /// A retry would start after `max_elapsed`.
    Elapsed,
    /// The deadline passed, or would pass before a retry could start.
    Deadline,
    /// The budget refused the retry.
    Budget,
}

impl End {
    /// What this makes of the operation.
    pub const fn outcome(self) -> OperationOutcome {
        match self {
            Self::Succeeded => OperationOutcome::Succeeded,
            Self::NotRetried | Self::Attempts | Self::Elapsed | Self::Deadline | Self::Budget => OperationOutcome::Failed,
        }
    }
}

impl Operation {
    /// An operation that was meant to start at `intended`. Its deadline counts from there.
    pub const fn new(intended: Timestamp) -> Self {
        Self { intended, pass_began: Timestamp::ZERO, previous: Span::ZERO, attempts: 0, in_pass: 0, last: None }
    }

    /// Its intended start.
    pub const fn intended(&self) -> Timestamp {
        self.intended
    }

    /// Attempts sent so far, across passes.
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// How its latest attempt ended.
    pub const fn last(&self) -> Option<AttemptOutcome> {
        self.last
    }

    /// Its deadline.
    pub fn deadline(&self, terms: &Terms) -> Option<Timestamp> {
        terms.policy.deadline.map(|length| on_grid(self.intended + length, terms.grain))
    }

    /// When it is given up if it cannot be sent before: it waits for its client's connection.
    pub fn expires(&self, terms: &Terms) -> Option<Timestamp> {
        let elapsed = if self.in_pass > 0 { self.last_start(terms) } else { None };
        match (self.deadline(terms), elapsed) {
            (Some(deadline), Some(elapsed)) => Some(deadline.min(elapsed)),
            (deadline, elapsed) => deadline.or(elapsed),
        }
    }

    /// Begins a new pass: attempts within it, backoff and `max_elapsed` start anew; the deadline stays.
    pub fn next_pass(&mut self) {
        self.in_pass = 0;
    }

    /// An attempt goes on the wire now. A first attempt earns for the budget.
    pub fn begin(&mut self, now: Timestamp, terms: &Terms) -> Attempt {
        self.attempts = self.attempts.saturating_add(1);
        self.in_pass = self.in_pass.saturating_add(1);
        let retry = self.in_pass > 1;
        if !retry {
            self.pass_began = now;
        }
        if let Some(budget) = terms.budget {
            budget.sent(now, retry);
        }
        Attempt { number: self.attempts, retry, timeout_at: self.timeout_at(now, terms) }
    }

    /// How the attempt that was sent at `sent` ended, and when, given that an engine says `outcome` at `now`. An attempt
    /// whose time has passed ended at that moment by its timeout, however late the engine is with whatever it
    /// has to say: a driver that is behind must neither stretch a timeout nor turn one into a success.
    pub fn ending(&self, sent: Timestamp, now: Timestamp, outcome: AttemptOutcome, terms: &Terms) -> (Timestamp, AttemptOutcome) {
        let timeout_at = self.timeout_at(sent, terms);
        // An answer at that very moment still counts.
        if now > timeout_at { (timeout_at, AttemptOutcome::Timeout) } else { (now, outcome) }
    }

    /// The attempt on the wire has ended at `now`, as [`Operation::ending`] says. `hint` is what the server asked for.
    pub fn ended(&mut self, now: Timestamp, outcome: AttemptOutcome, hint: Option<Span>, terms: &Terms) -> Next {
        self.last = Some(outcome);
        let deadline = self.deadline(terms).unwrap_or(Timestamp::NEVER);
        if outcome == AttemptOutcome::Success {
            return Next::Finished(if now <= deadline { End::Succeeded } else { End::Deadline });
        }
        match self.refusal(now, deadline, hint, terms) {
            Ok((_, wait)) if wait.is_zero() => Next::Send,
            Ok((until, wait)) => Next::Wait { wanted: now + wait, until },
            Err(end) => Next::Finished(end),
        }
    }

    fn timeout_at(&self, sent: Timestamp, terms: &Terms) -> Timestamp {
        let timeout_at = on_grid(sent + terms.policy.timeout, terms.grain);
        self.deadline(terms).map_or(timeout_at, |deadline| deadline.min(timeout_at))
    }

    /// After a failure: when a retry may start and after which wait, or what refuses it. The budget is asked last,
    /// so that nothing is spent on a retry that something else refuses.
    fn refusal(
        &mut self,
        now: Timestamp,
        deadline: Timestamp,
        hint: Option<Span>,
        terms: &Terms,
    ) -> Result<(Timestamp, Span), End> {
        let Self { in_pass: failed_attempt, last: Some(outcome), .. } = *self else { return Err(End::NotRetried) };
        if !terms.policy.retries(outcome) {
            return Err(if now >= deadline { End::Deadline } else { End::NotRetried });
        }
        let previous = (failed_attempt > 1).then_some(self.previous);
        let key = Key { attempt: self.attempts, ..terms.key };
        let wait = terms.policy.wait(Failure { failed_attempt, previous, hint }, key);
        self.previous = wait.backoff;
        let until = if wait.total.is_zero() { now } else { on_grid(now + wait.total, terms.grain) };
        if until >= deadline {
            return Err(End::Deadline);
        }
        if !terms.policy.attempts.allow(failed_attempt) {
            return Err(End::Attempts);
        }
        if self.last_start(terms).is_some_and(|limit| until > limit) {
            return Err(End::Elapsed);
        }
        match terms.budget {
            Some(budget) if !budget.spend(now, budget.usual_cost()) => Err(End::Budget),
            _ => Ok((until, wait.total)),
        }
    }

    /// The last moment at which a retry of this pass may start.
    fn last_start(&self, terms: &Terms) -> Option<Timestamp> {
        terms.policy.max_elapsed.map(|length| on_grid(self.pass_began + length, terms.grain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::backoff::{Exponential, Fixed, Jitter, exponential::Clamp, jitter::Plain};
    use crate::policy::budget::{BudgetConfig, Kind, Tier, WhenSpent, WindowConfig};
    use crate::policy::hint::Honor;
    use crate::policy::{Attempts, Backoff, RetryAfter, RetryOn, classify};
    use crate::time::Share;

    const GRAIN: Span = Span::from_millis(1);

    fn policy() -> Policy {
        Policy {
            attempts: Attempts::Limited(4),
            timeout: Span::from_secs(1),
            deadline: None,
            max_elapsed: None,
            retry_on: classify::default_classes(),
            backoff: Backoff::none(),
            retry_after: RetryAfter::ignore(),
            budget: None,
        }
    }

    fn terms(policy: &Policy) -> Terms<'_> {
        Terms { policy, budget: None, grain: GRAIN, key: Key::default() }
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::ZERO + Span::from_millis(millis)
    }

    fn fixed(millis: u64) -> Backoff {
        Backoff::Fixed(Fixed { delay: Span::from_millis(millis), jitter: Jitter::none() })
    }

    fn wait(millis: u64) -> Next {
        Next::Wait { wanted: at(millis), until: at(millis) }
    }

    /// Drives one operation through failures that end at the given milliseconds, each retry sent when it may be.
    fn drive(terms: &Terms, outcome: AttemptOutcome, ends: &[u64]) -> Vec<Next> {
        let mut operation = Operation::new(at(0));
        let mut start = at(0);
        let mut all = Vec::new();
        for &end in ends {
            operation.begin(start, terms);
            let next = operation.ended(at(end), outcome, None, terms);
            start = if let Next::Wait { until, .. } = next { until } else { at(end) };
            all.push(next);
        }
        all
    }

    #[test]
    fn it_is_small() {
        assert!(size_of::<Operation>() <= 40, "{}", size_of::<Operation>());
    }

    #[test]
    fn attempts_run_out() {
        let p = policy();
        let next = drive(&terms(&p), AttemptOutcome::Reset, &[1, 2, 3, 4]);
        assert_eq!(next, [Next::Send, Next::Send, Next::Send, Next::Finished(End::Attempts)]);
        let p = Policy { attempts: Attempts::Limited(1), ..policy() };
        assert_eq!(drive(&terms(&p), AttemptOutcome::Reset, &[1]), [Next::Finished(End::Attempts)]);
    }

    #[test]
    fn only_the_named_classes_are_retried() {
        let p = Policy { retry_on: vec![RetryOn::Status(429), RetryOn::StatusClass(5), RetryOn::Timeout], ..policy() };
        for (outcome, want) in [
            (AttemptOutcome::Status(429), Next::Send),
            (AttemptOutcome::Status(503), Next::Send),
            (AttemptOutcome::Timeout, Next::Send),
            (AttemptOutcome::Status(404), Next::Finished(End::NotRetried)),
            (AttemptOutcome::Reset, Next::Finished(End::NotRetried)),
            (AttemptOutcome::Connect, Next::Finished(End::NotRetried)),
            (AttemptOutcome::Success, Next::Finished(End::Succeeded)),
        ] {
            assert_eq!(drive(&terms(&p), outcome, &[5]), [want], "{outcome:?}");
        }
    }

    #[test]
    fn the_timeout_is_cut_by_the_deadline_and_rounded_up() {
        let p = Policy { deadline: Some(Span::from_micros(2_500_100)), ..policy() };
        let t = terms(&p);
        let mut operation = Operation::new(Timestamp(300));
        let first = operation.begin(Timestamp(1_000_001), &t);
        assert_eq!(first, Attempt { number: 1, retry: false, timeout_at: at(1002) });
        operation.ended(at(1002), AttemptOutcome::Timeout, None, &t);
        operation.begin(at(1002), &t);
        operation.ended(at(2002), AttemptOutcome::Timeout, None, &t);
        let third = operation.begin(at(2002), &t);
        assert_eq!(third, Attempt { number: 3, retry: true, timeout_at: at(2501) });
        assert_eq!(operation.ended(at(2501), AttemptOutcome::Timeout, None, &t), Next::Finished(End::Deadline));
    }

    #[test]
    fn what_is_said_after_an_attempts_time_is_its_timeout() {
        use AttemptOutcome::{Reset, Success, Timeout};
        let p = Policy { deadline: Some(Span::from_millis(1_500)), ..policy() };
        let t = terms(&p);
        let operation = Operation::new(at(0));
        for (sent, now, said, want) in [
            (0, 999, Success, (999, Success)),
            (0, 1_000, Success, (1_000, Success)),
            (0, 1_001, Success, (1_000, Timeout)),
            (0, 1_400, Reset, (1_000, Timeout)),
            (0, 1_400, Timeout, (1_000, Timeout)),
            (900, 1_400, Success, (1_400, Success)),
            (900, 1_700, Success, (1_500, Timeout)),
        ] {
            let (ended, outcome) = operation.ending(at(sent), at(now), said, &t);
            assert_eq!((ended.as_millis(), outcome), want, "sent {sent}, {said:?} at {now}");
        }
    }

    #[test]
    fn a_success_after_the_deadline_does_not_count() {
        let p = Policy { deadline: Some(Span::from_millis(10)), ..policy() };
        for (end, want) in [(10, End::Succeeded), (11, End::Deadline)] {
            assert_eq!(drive(&terms(&p), AttemptOutcome::Success, &[end]), [Next::Finished(want)]);
        }
    }

    #[test]
    fn a_retry_at_or_after_the_deadline_is_not_waited_for() {
        let p = Policy { deadline: Some(Span::from_millis(100)), backoff: fixed(50), ..policy() };
        assert_eq!(drive(&terms(&p), AttemptOutcome::Reset, &[49]), [wait(99)]);
        assert_eq!(drive(&terms(&p), AttemptOutcome::Reset, &[50]), [Next::Finished(End::Deadline)]);
    }

    #[test]
    fn max_elapsed_counts_from_the_first_attempt() {
        let p =
            Policy { attempts: Attempts::Unlimited, max_elapsed: Some(Span::from_millis(100)), backoff: fixed(30), ..policy() };
        let next = drive(&terms(&p), AttemptOutcome::Reset, &[10, 70, 101]);
        assert_eq!(next, [wait(40), wait(100), Next::Finished(End::Elapsed)]);
        let mut operation = Operation::new(at(0));
        assert_eq!(operation.expires(&terms(&p)), None, "a first attempt has all the time");
        operation.begin(at(500), &terms(&p));
        assert_eq!(operation.ended(at(560), AttemptOutcome::Reset, None, &terms(&p)), wait(590));
        assert_eq!(operation.expires(&terms(&p)), Some(at(600)));
    }

    #[test]
    fn the_wish_is_exact_and_the_wake_up_rounded() {
        let p = Policy { backoff: fixed(10), ..policy() };
        let mut operation = Operation::new(at(0));
        operation.begin(at(0), &terms(&p));
        let next = operation.ended(Timestamp(5_000_001), AttemptOutcome::Reset, None, &terms(&p));
        assert_eq!(next, Next::Wait { wanted: Timestamp(15_000_001), until: at(16) });
    }

    #[test]
    fn the_budget_is_asked_last() {
        let window = WindowConfig { ratio: Share::ALL, window: Span::from_secs(10), min_per_second: 0.0 };
        let config = BudgetConfig { kind: Kind::Window(window), tier: Tier::Fleet, when_spent: WhenSpent::GiveUp };
        let budget = Budget::new(&config);
        let p = Policy { deadline: Some(Span::from_millis(100)), ..policy() };
        let t = Terms { budget: Some(&budget), ..terms(&p) };
        assert_eq!(drive(&t, AttemptOutcome::Reset, &[100]), [Next::Finished(End::Deadline)]);
        assert_eq!(drive(&t, AttemptOutcome::Status(404), &[1]), [Next::Finished(End::NotRetried)]);
        assert_eq!(budget.balance(at(100)), 2.0, "two first attempts earned, and nothing was spent");
        let next = drive(&t, AttemptOutcome::Reset, &[1, 2, 3, 4]);
        assert_eq!(next[..4], [Next::Send, Next::Send, Next::Send, Next::Finished(End::Attempts)]);
        assert_eq!(drive(&t, AttemptOutcome::Reset, &[5, 6]), [Next::Send, Next::Finished(End::Budget)]);
    }

    #[test]
    fn a_hint_raises_the_wait_and_does_not_feed_the_jitter() {
        let decorrelated = Backoff::Exponential(Exponential {
            base: Span::from_millis(10),
            cap: None,
            multiplier: 2.0,
            jitter: Jitter::Decorrelated(Plain {}),
            first_exponent: 0,
            clamp: Clamp::BeforeJitter,
        });
        let honor = RetryAfter::Honor(Honor::plain());
        let p = Policy { backoff: decorrelated, retry_after: honor, ..policy() };
        let mut operation = Operation::new(at(0));
        operation.begin(at(0), &terms(&p));
        let next = operation.ended(at(1), AttemptOutcome::Status(429), Some(Span::from_secs(60)), &terms(&p));
        assert_eq!(next, wait(60_001));
        operation.begin(at(60_001), &terms(&p));
        let Next::Wait { wanted, .. } = operation.ended(at(60_002), AttemptOutcome::Reset, None, &terms(&p)) else {
            panic!("it waits")
        };
        assert!(wanted < at(60_002 + 90), "at most 3 · 3 · base: {wanted}");
    }

    #[test]
    fn a_new_pass_starts_attempts_and_not_amplification() {
        let p = Policy { attempts: Attempts::Limited(1), ..policy() };
        let mut operation = Operation::new(at(0));
        operation.begin(at(0), &terms(&p));
        assert_eq!(operation.ended(at(1), AttemptOutcome::Reset, None, &terms(&p)), Next::Finished(End::Attempts));
        operation.next_pass();
        let attempt = operation.begin(at(9), &terms(&p));
        assert_eq!((attempt.number, attempt.retry), (2, false));
    }
}
