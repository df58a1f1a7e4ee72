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
use crate::policy::budget::{self, WhenSpent};
use crate::policy::{Budget, Failure, Hint, NoWait, Policy};
use crate::rng::Key;
use crate::time::{Span, Timestamp};

/// A moment to wait for, rounded up to the run's timer grain (invariant 4).
pub fn on_grid(at: Timestamp, grain: Span) -> Timestamp {
    at.round_up(grain)
}

/// The least wait after a try that was refused locally: it took no time, and a client that tries again at once would
/// do so without end.
pub const LEAST_AFTER_REFUSAL: Span = Span::from_millis(1);

/// Marks, in [`Operation::grant`], a retry that is paid for and not sent yet.
const UNSENT: u16 = 1 << 15;

/// What an operation is run by: borrowed for one call, so that it costs an operation no memory.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// The budget that its retries are spent from.
    pub budget: Option<&'a Budget>,
    /// What moments are rounded up to.
    pub grain: Span,
    /// The least wait before a retry: more than nothing where attempts take no time, or one that fails and is retried at once would
    /// be so without end.
    pub least_wait: Span,
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
    /// Tries of this pass: attempts, and those that were refused locally.
    in_pass: u32,
    last: Option<AttemptOutcome>,
    /// What the latest retry cost, and whether it is still to be sent.
    grant: u16,
    /// What its retries have cost in all, across passes.
    spent: u16,
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
    /// What it cost the budget.
    pub cost: u16,
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
    /// Another attempt after a wait, and not before the budget has earned it: [`Operation::unpark`] asks.
    Park {
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
    /// The pass has used its attempts, or its schedule of waits.
    Attempts,
    /// A retry would start after `max_elapsed`.
    Elapsed,
    /// The deadline passed, or would pass before a retry could start.
    Deadline,
    /// The server asked for no retry.
    Stopped,
    /// The budget refused the retry.
    Budget,
}

impl End {
    /// What this makes of the operation.
    pub const fn outcome(self) -> OperationOutcome {
        match self {
            Self::Succeeded => OperationOutcome::Succeeded,
            Self::NotRetried | Self::Attempts | Self::Elapsed | Self::Deadline | Self::Stopped | Self::Budget => {
                OperationOutcome::Failed
            }
        }
    }
}

impl Operation {
    /// An operation that was meant to start at `intended`. Its deadline counts from there.
    pub const fn new(intended: Timestamp) -> Self {
        Self {
            intended,
            pass_began: Timestamp::ZERO,
            previous: Span::ZERO,
            attempts: 0,
            in_pass: 0,
            last: None,
            grant: 0,
            spent: 0,
        }
    }

    /// Its intended start.
    pub const fn intended(&self) -> Timestamp {
        self.intended
    }

    /// Attempts sent so far, across passes.
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Whether its next attempt would be a retry.
    pub const fn retries_next(&self) -> bool {
        self.in_pass > 0 && self.attempts > 0
    }

    /// How its latest attempt ended, or that it was refused locally.
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

    /// Begins a new pass: attempts within it, backoff and `max_elapsed` start anew; the deadline stays, and so does what
    /// its retries have cost.
    pub fn next_pass(&mut self) {
        self.in_pass = 0;
    }

    /// An attempt goes on the wire now. A first attempt earns for the budget.
    pub fn begin(&mut self, now: Timestamp, terms: &Terms) -> Attempt {
        let retry = self.retries_next();
        self.grant = if retry { self.grant & !UNSENT } else { 0 };
        self.another(now, terms, retry)
    }

    /// Another attempt beside those on the wire (`policy::hedge`), if limits and budget allow it.
    pub fn hedge(&mut self, now: Timestamp, terms: &Terms) -> Option<Attempt> {
        let late = self.expires(terms).is_some_and(|limit| now >= limit);
        if late || !terms.policy.attempts.allow(self.in_pass) || !self.pay(now, None, terms) {
            return None;
        }
        self.grant &= !UNSENT;
        Some(self.another(now, terms, true))
    }

    fn another(&mut self, now: Timestamp, terms: &Terms, retry: bool) -> Attempt {
        self.attempts = self.attempts.saturating_add(1);
        self.tries(now);
        if let Some(budget) = terms.budget {
            budget.sent(now, retry);
        }
        Attempt { number: self.attempts, retry, timeout_at: self.timeout_at(now, terms), cost: self.grant }
    }

    /// How the attempt that was sent at `sent` ended, and when, given that an engine says `outcome` at `now`. An attempt
    /// whose time has passed ended at that moment by its timeout, however late the engine is with whatever it
    /// has to say: a driver that is behind must neither stretch a timeout nor turn one into a success.
    pub fn ending(&self, sent: Timestamp, now: Timestamp, outcome: AttemptOutcome, terms: &Terms) -> (Timestamp, AttemptOutcome) {
        let timeout_at = self.timeout_at(sent, terms);
        // An answer at that very moment still counts.
        if now > timeout_at { (timeout_at, AttemptOutcome::Timeout) } else { (now, outcome) }
    }

    /// The only attempt on the wire has ended at `now`, as [`Operation::ending`] says. `hint` is what the server asked for.
    pub fn ended(&mut self, now: Timestamp, outcome: AttemptOutcome, hint: Hint, terms: &Terms) -> Next {
        let retry = self.in_pass > 1 && self.attempts > 1;
        self.close(now, outcome, retry, self.grant, terms);
        self.follows(now, outcome, hint, terms)
    }

    /// The only attempt on the wire is given up from outside: the budget hears of it, and nothing follows.
    pub fn close_only(&self, now: Timestamp, outcome: AttemptOutcome, terms: &Terms) {
        self.close(now, outcome, self.in_pass > 1 && self.attempts > 1, self.grant, terms);
    }

    /// Tells the budget how an attempt ended that may not be the only one on the wire; what follows,
    /// [`Operation::follows`] says once, for the one that decides.
    pub fn close(&self, now: Timestamp, outcome: AttemptOutcome, retry: bool, cost: u16, terms: &Terms) {
        if let Some(budget) = terms.budget {
            let (success, retryable) = (outcome == AttemptOutcome::Success, terms.retries(outcome));
            budget.ended(now, budget::End { success, retryable, retry, cost });
        }
    }

    /// What follows an outcome that decides for the operation.
    pub fn follows(&mut self, now: Timestamp, outcome: AttemptOutcome, hint: Hint, terms: &Terms) -> Next {
        self.last = Some(outcome);
        let deadline = self.deadline(terms).unwrap_or(Timestamp::NEVER);
        if outcome == AttemptOutcome::Success {
            return Next::Finished(if now <= deadline { End::Succeeded } else { End::Deadline });
        }
        let (until, wait) = match self.wait(now, outcome, deadline, hint, terms) {
            Ok(wait) => wait,
            Err(end) => return Next::Finished(end),
        };
        let wanted = now + wait;
        // The budget is asked last, so that nothing is spent on a retry that something else refuses; and not for what will be a first
        // attempt, because none has gone on the wire yet.
        if self.retries_next() && !self.pay(now, Some(outcome), terms) {
            return if terms.parks() { Next::Park { wanted, until } } else { Next::Finished(End::Budget) };
        }
        if wait.is_zero() { Next::Send } else { Next::Wait { wanted, until } }
    }

    /// A try is refused locally, by a breaker or a throttle: nothing goes on the wire, and it counts for the pass.
    pub fn refused(&mut self, now: Timestamp, terms: &Terms) -> Next {
        self.leave(terms);
        self.tries(now);
        self.follows(now, AttemptOutcome::Refused, Hint::NONE, terms)
    }

    /// Asks the budget again for a retry that is parked. Whether it may be sent now.
    pub fn unpark(&mut self, now: Timestamp, terms: &Terms) -> bool {
        self.pay(now, self.last, terms)
    }

    /// It leaves, or its pass does: a retry that was paid for and not sent is given back.
    pub fn leave(&mut self, terms: &Terms) {
        if let Some(budget) = terms.budget.filter(|_| self.grant & UNSENT != 0) {
            budget.forgone(self.grant & !UNSENT);
        }
        self.grant = 0;
    }

    fn tries(&mut self, now: Timestamp) {
        if self.in_pass == 0 {
            self.pass_began = now;
        }
        self.in_pass = self.in_pass.saturating_add(1);
    }

    fn timeout_at(&self, sent: Timestamp, terms: &Terms) -> Timestamp {
        let timeout_at = on_grid(sent + terms.policy.timeout, terms.grain);
        self.deadline(terms).map_or(timeout_at, |deadline| deadline.min(timeout_at))
    }

    /// After a failure: when a retry may start and after which wait, or what refuses it, the budget aside.
    fn wait(
        &mut self,
        now: Timestamp,
        outcome: AttemptOutcome,
        deadline: Timestamp,
        hint: Hint,
        terms: &Terms,
    ) -> Result<(Timestamp, Span), End> {
        if !terms.retries(outcome) {
            return Err(if now >= deadline { End::Deadline } else { End::NotRetried });
        }
        let failed_attempt = self.in_pass;
        let previous = (failed_attempt > 1).then_some(self.previous);
        let failure = Failure { outcome, failed_attempt, previous, hint };
        let wait = terms.policy.wait(failure, Key { attempt: self.draws(outcome), ..terms.key });
        let wait = wait.map_err(|why| match why {
            NoWait::Used if now >= deadline => End::Deadline,
            NoWait::Used => End::Attempts,
            NoWait::Stopped => End::Stopped,
        })?;
        self.previous = wait.backoff;
        let least = if outcome == AttemptOutcome::Refused { LEAST_AFTER_REFUSAL } else { terms.least_wait };
        let total = wait.total.max(least);
        let until = if total.is_zero() { now } else { on_grid(now + total, terms.grain) };
        if until >= deadline {
            return Err(End::Deadline);
        }
        if !terms.policy.attempts.allow(failed_attempt) {
            return Err(End::Attempts);
        }
        if self.last_start(terms).is_some_and(|limit| until > limit) {
            return Err(End::Elapsed);
        }
        Ok((until, total))
    }

    /// The attempt that the draws for a wait are keyed by; a try that was refused has none of its own.
    fn draws(&self, outcome: AttemptOutcome) -> u32 {
        match outcome {
            AttemptOutcome::Refused => self.attempts ^ self.in_pass.reverse_bits(),
            _ => self.attempts,
        }
    }

    /// Pays for a retry after an outcome, or for a hedge, where there is a budget.
    fn pay(&mut self, now: Timestamp, after: Option<AttemptOutcome>, terms: &Terms) -> bool {
        let treatment = after.and_then(|outcome| terms.policy.on.of(outcome));
        let cost = |usual| treatment.and_then(|treatment| treatment.cost).unwrap_or(usual);
        let cost = match (terms.budget, terms.own_budget()) {
            (Some(budget), _) => {
                let cost = cost(budget.usual_cost());
                if !budget.spend(now, cost) {
                    return false;
                }
                cost
            }
            (None, Some((usual, cap))) => {
                let cost = cost(usual);
                if u32::from(self.spent) + u32::from(cost) > cap {
                    return false;
                }
                cost
            }
            (None, None) => 0,
        };
        self.spent = self.spent.saturating_add(cost);
        self.grant = cost.min(!UNSENT) | UNSENT;
        true
    }

    /// The last moment at which a retry of this pass may start.
    fn last_start(&self, terms: &Terms) -> Option<Timestamp> {
        terms.policy.max_elapsed.map(|length| on_grid(self.pass_began + length, terms.grain))
    }
}

impl Terms<'_> {
    /// Whether an outcome is a failure of a class that is retried, limits aside.
    pub fn retries(&self, outcome: AttemptOutcome) -> bool {
        outcome != AttemptOutcome::Success && self.policy.retries(outcome)
    }

    /// Whether a retry that the budget refuses waits until it is earned.
    fn parks(&self) -> bool {
        self.policy.budget.as_ref().is_some_and(|budget| budget.value.when_spent == WhenSpent::Park)
    }

    /// What a retry usually costs, and what all of an operation's may cost, where each operation has a budget of its own.
    fn own_budget(&self) -> Option<(u16, u32)> {
        let budget = &self.policy.budget.as_ref()?.value;
        Some((budget.usual_cost(), budget.per_operation()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{At, Place};
    use crate::policy::backoff::{AfterLast, Exponential, Fixed, Jitter, Schedule, jitter::Plain};
    use crate::policy::budget::{BucketConfig, BudgetConfig, Kind, QuotaConfig, Tier, WhenSpent, WindowConfig};
    use crate::policy::hint::Honor;
    use crate::policy::{Attempts, Backoff, RetryAfter, RetryOn, Treatment, Treatments};
    use crate::time::Share;

    const GRAIN: Span = Span::from_millis(1);

    fn policy() -> Policy {
        Policy::new(Attempts::Limited(4), Span::from_secs(1))
    }

    fn terms(policy: &Policy) -> Terms<'_> {
        Terms { policy, budget: None, grain: GRAIN, least_wait: Span::ZERO, key: Key::default() }
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::ZERO + Span::from_millis(millis)
    }

    fn fixed(millis: u64) -> Backoff {
        Backoff::Fixed(Fixed::new(Span::from_millis(millis)))
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
            let next = operation.ended(at(end), outcome, Hint::NONE, terms);
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
    fn a_schedule_that_ends_ends_the_pass() {
        let waits = vec![Span::ZERO, Span::from_millis(5)];
        let (after_last, jitter) = (AfterLast::End, Jitter::none());
        let backoff = Backoff::Schedule(Schedule { waits, after_last, jitter, floor: Span::ZERO });
        let p = Policy { attempts: Attempts::Limited(9), backoff, ..policy() };
        let next = drive(&terms(&p), AttemptOutcome::Reset, &[1, 2, 8]);
        assert_eq!(next, [Next::Send, wait(7), Next::Finished(End::Attempts)]);
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
        assert_eq!(first, Attempt { number: 1, retry: false, timeout_at: at(1002), cost: 0 });
        operation.ended(at(1002), AttemptOutcome::Timeout, Hint::NONE, &t);
        operation.begin(at(1002), &t);
        operation.ended(at(2002), AttemptOutcome::Timeout, Hint::NONE, &t);
        let third = operation.begin(at(2002), &t);
        assert_eq!(third, Attempt { number: 3, retry: true, timeout_at: at(2501), cost: 0 });
        assert_eq!(operation.ended(at(2501), AttemptOutcome::Timeout, Hint::NONE, &t), Next::Finished(End::Deadline));
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
        assert_eq!(operation.ended(at(560), AttemptOutcome::Reset, Hint::NONE, &terms(&p)), wait(590));
        assert_eq!(operation.expires(&terms(&p)), Some(at(600)));
    }

    #[test]
    fn the_wish_is_exact_and_the_wake_up_rounded() {
        let p = Policy { backoff: fixed(10), ..policy() };
        let mut operation = Operation::new(at(0));
        operation.begin(at(0), &terms(&p));
        let next = operation.ended(Timestamp(5_000_001), AttemptOutcome::Reset, Hint::NONE, &terms(&p));
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
        let jitter = Jitter::Decorrelated(Plain {});
        let decorrelated = Backoff::Exponential(Exponential { jitter, ..Exponential::new(Span::from_millis(10)) });
        let honor = RetryAfter::Honor(Honor::plain());
        let p = Policy { backoff: decorrelated, retry_after: honor, ..policy() };
        let mut operation = Operation::new(at(0));
        operation.begin(at(0), &terms(&p));
        let next = operation.ended(at(1), AttemptOutcome::Status(429), Hint::retry_after(Span::from_secs(60)), &terms(&p));
        assert_eq!(next, wait(60_001));
        operation.begin(at(60_001), &terms(&p));
        let Next::Wait { wanted, .. } = operation.ended(at(60_002), AttemptOutcome::Reset, Hint::NONE, &terms(&p)) else {
            panic!("it waits")
        };
        assert!(wanted < at(60_002 + 90), "at most 3 · 3 · base: {wanted}");
    }

    #[test]
    fn a_new_pass_starts_attempts_and_not_amplification() {
        let p = Policy { attempts: Attempts::Limited(1), ..policy() };
        let mut operation = Operation::new(at(0));
        operation.begin(at(0), &terms(&p));
        assert_eq!(operation.ended(at(1), AttemptOutcome::Reset, Hint::NONE, &terms(&p)), Next::Finished(End::Attempts));
        operation.next_pass();
        let attempt = operation.begin(at(9), &terms(&p));
        assert_eq!((attempt.number, attempt.retry), (2, false));
    }

    #[test]
    fn a_try_that_is_refused_counts_for_the_pass_and_is_no_attempt() {
        let p = Policy { retry_on: vec![RetryOn::Refused, RetryOn::Reset], ..policy() };
        let t = terms(&p);
        let mut operation = Operation::new(at(0));
        assert_eq!(operation.refused(at(0), &t), wait(1), "even without a backoff, time has to pass");
        assert_eq!((operation.attempts(), operation.last()), (0, Some(AttemptOutcome::Refused)));
        assert!(!operation.retries_next());
        let first = operation.begin(at(1), &t);
        assert_eq!((first.number, first.retry), (1, false));
        assert_eq!(operation.ended(at(2), AttemptOutcome::Reset, Hint::NONE, &t), Next::Send);
        assert_eq!(operation.refused(at(2), &t), wait(3));
        assert_eq!(operation.refused(at(3), &t), Next::Finished(End::Attempts), "four tries");
        let p = policy();
        assert_eq!(Operation::new(at(0)).refused(at(0), &terms(&p)), Next::Finished(End::NotRetried));
    }

    fn budget(kind: Kind, tier: Tier, when_spent: WhenSpent) -> BudgetConfig {
        BudgetConfig { kind, tier, when_spent }
    }

    #[test]
    fn a_parked_retry_asks_again_until_it_is_earned() {
        let bucket = Kind::Bucket(BucketConfig { deposit: Share::new(0.5).unwrap(), burst: 1 });
        let config = budget(bucket, Tier::Fleet, WhenSpent::Park);
        let shared = Budget::new(&config);
        let p = Policy { budget: Some(At { value: config, place: Place::default() }), backoff: fixed(10), ..policy() };
        let t = Terms { budget: Some(&shared), ..terms(&p) };
        let mut operation = Operation::new(at(0));
        operation.begin(at(0), &t);
        assert_eq!(operation.ended(at(1), AttemptOutcome::Reset, Hint::NONE, &t), wait(11));
        operation.begin(at(11), &t);
        let parked = operation.ended(at(12), AttemptOutcome::Reset, Hint::NONE, &t);
        assert_eq!(parked, Next::Park { wanted: at(22), until: at(22) });
        assert!(!operation.unpark(at(22), &t));
        (0..2).for_each(|_| shared.sent(at(23), false));
        assert!(operation.unpark(at(23), &t));
        let attempt = operation.begin(at(23), &t);
        assert_eq!((attempt.number, attempt.retry, attempt.cost), (3, true, 1), "in the same pass");
    }

    #[test]
    fn an_operation_can_have_a_budget_of_its_own_across_passes() {
        let quota = QuotaConfig { capacity: 12, cost: 5, first_success: 1 };
        let config = budget(Kind::Quota(quota), Tier::Operation, WhenSpent::GiveUp);
        let timeout = Treatment { retry: true, backoff: None, retry_after: None, cost: Some(7), lane: None };
        let p = Policy {
            budget: Some(At { value: config, place: Place::default() }),
            on: Treatments::new(vec![(RetryOn::Timeout, timeout)]),
            ..policy()
        };
        let t = terms(&p);
        let mut operation = Operation::new(at(0));
        for (outcome, want) in [
            (AttemptOutcome::Timeout, Next::Send),
            (AttemptOutcome::Reset, Next::Send),
            (AttemptOutcome::Reset, Next::Finished(End::Budget)),
        ] {
            operation.begin(at(0), &t);
            assert_eq!(operation.ended(at(1), outcome, Hint::NONE, &t), want, "7 and 5 are 12");
        }
        operation.next_pass();
        operation.begin(at(2), &t);
        assert_eq!(operation.ended(at(3), AttemptOutcome::Reset, Hint::NONE, &t), Next::Finished(End::Budget));
    }

    #[test]
    fn a_first_attempt_after_a_refused_try_costs_nothing() {
        let config = budget(Kind::Bucket(BucketConfig { deposit: Share::default(), burst: 1 }), Tier::Fleet, WhenSpent::GiveUp);
        let shared = Budget::new(&config);
        let p = Policy { retry_on: vec![RetryOn::Refused, RetryOn::Reset], ..policy() };
        let t = Terms { budget: Some(&shared), ..terms(&p) };
        let mut operation = Operation::new(at(0));
        assert_eq!(operation.refused(at(0), &t), wait(1));
        assert_eq!(operation.refused(at(1), &t), wait(2));
        assert_eq!(shared.balance(at(2)), 1.0);
        assert!(!operation.begin(at(2), &t).retry);
        assert_eq!(operation.ended(at(3), AttemptOutcome::Reset, Hint::NONE, &t), Next::Send);
        assert_eq!(shared.balance(at(3)), 0.0, "the retry is paid for");
    }

    #[test]
    fn a_hedge_is_a_retry_and_counts() {
        let p = Policy { attempts: Attempts::Limited(2), ..policy() };
        let t = terms(&p);
        let mut operation = Operation::new(at(0));
        operation.begin(at(0), &t);
        let hedge = operation.hedge(at(5), &t).expect("two attempts are allowed");
        assert_eq!((hedge.number, hedge.retry, hedge.timeout_at), (2, true, at(1005)));
        assert_eq!(operation.hedge(at(10), &t), None, "and not three");
        assert_eq!(operation.follows(at(11), AttemptOutcome::Success, Hint::NONE, &t), Next::Finished(End::Succeeded));
    }

    #[test]
    fn a_retry_that_is_paid_for_and_not_sent_is_given_back() {
        let config = budget(Kind::Bucket(BucketConfig { deposit: Share::default(), burst: 1 }), Tier::Fleet, WhenSpent::GiveUp);
        let shared = Budget::new(&config);
        let p = Policy { backoff: fixed(10), ..policy() };
        let t = Terms { budget: Some(&shared), ..terms(&p) };
        let mut operation = Operation::new(at(0));
        operation.begin(at(0), &t);
        operation.ended(at(1), AttemptOutcome::Reset, Hint::NONE, &t);
        assert_eq!(shared.balance(at(1)), 0.0);
        operation.leave(&t);
        operation.leave(&t);
        assert_eq!(shared.balance(at(1)), 1.0);
    }
}
