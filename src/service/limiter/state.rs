//! The state of a service's limiters: a request has to pass each, in their order.

use super::config::{LimiterConfig, LimitersConfig};
use super::keyed::{Keyed, MAX_KEYS};
use super::meter::State;
use super::penalty_box::PenaltyBox;
use super::shared::{Per, Shared};
use crate::service::refusal::{Refusal, Refusing};
use crate::service::request::Metadata;
use crate::time::{Span, Timestamp};

/// The status of a refusal whose plan names none.
const STATUS: u16 = 429;

/// What a service holds when a request comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// How many wait.
    pub backlog: u64,
    /// How many are served.
    pub in_service: u64,
    /// How long what is ahead of the request takes: what a refusal says whose `retry_after` is `backlog`.
    pub ahead: Span,
}

/// The limiters of a service. `now` must not run backwards.
///
/// What counts a rate counts a request that passes it also where a later limiter refuses it; a place in the service is given back.
#[derive(Clone, Debug, Default)]
pub struct Limiters {
    all: Vec<Limiter>,
    /// When the first request came: what leaves that came before it was let in by others.
    since: Option<Timestamp>,
}

/// One limiter.
#[derive(Clone, Debug)]
struct Limiter {
    /// Its key in a plan.
    kind: &'static str,
    states: States,
    per: Per,
    count_rejected: bool,
    penalty_box: Option<PenaltyBox>,
    refusing: Refusing,
    asks_who_is_inside: bool,
}

/// Whose states it has.
#[derive(Clone, Debug)]
enum States {
    One(State),
    Each(Box<Keyed>),
}

impl Limiters {
    /// Limiters that have seen nothing.
    pub fn new(config: &LimitersConfig) -> Self {
        Self { all: config.0.iter().map(Limiter::new).collect(), since: None }
    }

    /// Whether there are none: everybody passes.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Their kinds, by their keys in a plan.
    pub fn kinds(&self) -> impl Iterator<Item = &'static str> {
        self.all.iter().map(|limiter| limiter.kind)
    }

    /// Whether a request at this moment passes all of them, and what it is told where not. One that passes must be
    /// reported to [`Limiters::left`].
    ///
    /// # Errors
    /// The refusal of the first that refuses.
    pub fn admit(&mut self, now: Timestamp, of: &Metadata, load: Load) -> Result<(), Refusal> {
        self.since.get_or_insert(now);
        for at in 0..self.all.len() {
            if let Err(refusal) = self.all[at].admit(now, of, load) {
                self.all[..at].iter_mut().for_each(|earlier| earlier.give_back(of));
                return Err(refusal);
            }
        }
        Ok(())
    }

    /// A request that passed has left the service, so long after it passed: it was answered (`ok`), or expired, was shed or given up. One
    /// that came before these limiters did (see [`ServiceChange`](crate::service::ServiceChange)) is none of theirs, and ignored.
    pub fn left(&mut self, now: Timestamp, of: &Metadata, took: Span, ok: bool) {
        if self.since.is_some_and(|since| now - took >= since) {
            self.all.iter_mut().filter(|limiter| limiter.asks_who_is_inside).for_each(|limiter| limiter.left(now, of, took, ok));
        }
    }

    /// How many times a request met a state that it shares with others, because there were more than [`MAX_KEYS`] clients.
    pub fn overflowed(&self) -> u64 {
        let of = |limiter: &Limiter| match &limiter.states {
            States::One(_) => 0,
            States::Each(keyed) => keyed.overflowed(),
        };
        self.all.iter().map(of).sum()
    }
}

impl Limiter {
    fn new(config: &LimiterConfig) -> Self {
        let Shared { count_rejected, per, penalty_box, refusing } = config.shared().clone();
        let state = State::new(config);
        let states = match per {
            Per::Global => States::One(state),
            Per::Client | Per::Fleet => States::Each(Box::new(Keyed::new(state, MAX_KEYS))),
        };
        let asks_who_is_inside = matches!(config, LimiterConfig::Concurrency(_) | LimiterConfig::AdaptiveConcurrency(_));
        Self { kind: config.key(), states, per, count_rejected, penalty_box, refusing, asks_who_is_inside }
    }

    fn admit(&mut self, now: Timestamp, of: &Metadata, load: Load) -> Result<(), Refusal> {
        let (state, inside) = match &mut self.states {
            States::One(state) => (state, Some(load.backlog + load.in_service)),
            States::Each(keyed) => (keyed.of(self.per.key(of), now), None),
        };
        let passes = match &self.penalty_box {
            None => state.meter.admit(now, inside),
            Some(penalty) => state.admit(now, inside, penalty, self.count_rejected),
        };
        if passes { Ok(()) } else { Err(self.refusing.refuse(STATUS, load.ahead)) }
    }

    fn left(&mut self, now: Timestamp, of: &Metadata, took: Span, ok: bool) {
        self.state_of(of).meter.left(now, took, ok);
    }

    fn give_back(&mut self, of: &Metadata) {
        if self.asks_who_is_inside {
            self.state_of(of).meter.give_back();
        }
    }

    fn state_of(&mut self, of: &Metadata) -> &mut State {
        match &mut self.states {
            States::One(state) => state,
            States::Each(keyed) => keyed.of_admitted(self.per.key(of)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Concurrency, SlidingLog, TokenBucket};
    use super::*;
    use crate::policy::hint::Said;
    use crate::service::refusal::RetryAfter;
    use crate::time::Rate;

    const NO_LOAD: Load = Load { backlog: 0, in_service: 0, ahead: Span::ZERO };

    fn log(limit: u32, window: Span, shared: Shared) -> LimiterConfig {
        LimiterConfig::SlidingLog(SlidingLog { limit, window, shared })
    }

    fn concurrency(limit: u32, per: Per) -> LimiterConfig {
        LimiterConfig::Concurrency(Concurrency { limit, shared: Shared { per, ..Shared::plain() } })
    }

    fn of(client: u64, fleet: u64) -> Metadata {
        Metadata { client, fleet, ..Metadata::nothing(Timestamp::ZERO) }
    }

    fn passes(limiters: &mut Limiters, at: u64, client: u64, fleet: u64) -> bool {
        limiters.admit(Timestamp(at), &of(client, fleet), NO_LOAD).is_ok()
    }

    #[test]
    fn a_limit_is_for_all_or_for_each() {
        // Two requests each of four clients, of which two are of a fleet: how many pass a limit of 1.
        for (per, passed) in [(Per::Global, 1), (Per::Client, 4), (Per::Fleet, 3)] {
            let mut limiters = Limiters::new(&LimitersConfig(vec![log(1, Span(10), Shared { per, ..Shared::plain() })]));
            let requests = (0..8).map(|n| (n % 4, (n % 4).min(2)));
            assert_eq!(requests.filter(|(client, fleet)| passes(&mut limiters, 0, *client, *fleet)).count(), passed, "{per:?}");
            assert_eq!(limiters.overflowed(), 0);
        }
    }

    #[test]
    fn who_storms_is_locked_out_alone() {
        let shared = Shared { per: Per::Client, count_rejected: true, ..Shared::plain() };
        let mut limiters = Limiters::new(&LimitersConfig(vec![log(10, Span(1000), shared)]));
        // Client 1 comes 40 times a window, client 2 eight times.
        let passed: Vec<u64> = (0..4000).step_by(25).filter(|at| passes(&mut limiters, *at, 1, 0)).collect();
        let calm = (4000..8000).step_by(125).filter(|at| passes(&mut limiters, *at, 2, 0)).count();
        assert_eq!((passed.len(), passed.last(), calm), (10, Some(&225), 32));
    }

    #[test]
    fn a_ban_holds_while_requests_come_and_a_pause_ends_it() {
        let penalty_box = Some(PenaltyBox { ban: Span(100), cap: Some(Span(250)) });
        let shared = Shared { per: Per::Client, penalty_box, ..Shared::plain() };
        let mut limiters = Limiters::new(&LimitersConfig(vec![log(2, Span(10), shared)]));
        let table = [
            (0, true),
            (1, true),
            // Violations: until 102, 202, 300 (the cap), 349.
            (2, false),
            (15, false),
            (50, false),
            (99, false),
            // The window has long been free.
            (348, false),
            // Until 448 by that, and then it is over.
            (449, true),
        ];
        for (at, expected) in table {
            assert_eq!(passes(&mut limiters, at, 1, 0), expected, "at {at}");
            assert!(passes(&mut limiters, at, 1000 + at, 0), "others are not banned");
        }
    }

    #[test]
    fn what_a_ban_refuses_counts_where_the_rejected_do() {
        for (count_rejected, free_at_once) in [(false, true), (true, false)] {
            let penalty_box = Some(PenaltyBox { ban: Span(10), cap: None });
            let shared = Shared { penalty_box, count_rejected, ..Shared::plain() };
            let mut limiters = Limiters::new(&LimitersConfig(vec![log(1, Span(50), shared)]));
            assert_eq!([0, 1, 5].map(|at| passes(&mut limiters, at, 0, 0)), [true, false, false]);
            assert_eq!(passes(&mut limiters, 52, 0, 0), free_at_once, "counting {count_rejected}");
        }
    }

    #[test]
    fn a_place_is_given_back_when_a_later_limiter_refuses_and_a_token_is_not() {
        let second = || concurrency(1, Per::Client);
        let token = TokenBucket { rate: Rate::default(), burst: 3, shared: Shared::plain() };
        let mut limiters = Limiters::new(&LimitersConfig(vec![second(), log(1, Span(100), Shared::plain())]));
        assert_eq!(
            [passes(&mut limiters, 0, 1, 0), passes(&mut limiters, 0, 2, 0), passes(&mut limiters, 0, 3, 0)],
            [true, false, false]
        );
        assert!(passes(&mut limiters, 100, 2, 0), "2 is not inside, though the first limiter let it in");
        assert!(!passes(&mut limiters, 200, 2, 0) && !passes(&mut limiters, 200, 1, 0), "both are");
        limiters.left(Timestamp(300), &of(1, 0), Span(300), true);
        assert!(passes(&mut limiters, 300, 1, 0));

        let mut limiters = Limiters::new(&LimitersConfig(vec![LimiterConfig::TokenBucket(token), second()]));
        assert_eq!([0; 4].map(|at| passes(&mut limiters, at, 1, 0)), [true, false, false, false]);
        limiters.left(Timestamp(9), &of(1, 0), Span(9), true);
        assert!(!passes(&mut limiters, 9, 1, 0), "its three tokens are gone");
    }

    #[test]
    fn one_limit_for_all_goes_by_what_the_service_holds() {
        let mut limiters = Limiters::new(&LimitersConfig(vec![concurrency(5, Per::Global)]));
        for (backlog, in_service, expected) in [(0, 4, true), (2, 2, true), (2, 3, false), (9, 0, false), (0, 0, true)] {
            let load = Load { backlog, in_service, ahead: Span::ZERO };
            assert_eq!(limiters.admit(Timestamp::ZERO, &of(0, 0), load).is_ok(), expected, "{load:?}");
        }
    }

    #[test]
    fn who_came_before_the_limiters_did_frees_no_place_of_theirs() {
        let mut limiters = Limiters::new(&LimitersConfig(vec![concurrency(1, Per::Fleet)]));
        limiters.left(Timestamp(90), &of(0, 7), Span(20), true);
        assert!(passes(&mut limiters, 100, 0, 7));
        limiters.left(Timestamp(110), &of(0, 7), Span(50), true);
        assert!(!passes(&mut limiters, 120, 0, 7), "who left had come at 60");
        limiters.left(Timestamp(130), &of(0, 7), Span(30), false);
        assert!(passes(&mut limiters, 140, 0, 7));
    }

    #[test]
    fn a_refusal_says_what_the_plan_says_or_what_the_backlog_takes() {
        let seconds = Span::from_secs;
        for (retry_after, said) in [
            (None, None),
            (Some(RetryAfter::Constant(seconds(2))), Some(seconds(2))),
            (Some(RetryAfter::Backlog), Some(seconds(7))),
        ] {
            let refusing = Refusing { retry_after, reject: Some(503), hint: None };
            let config = log(1, seconds(60), Shared { refusing, ..Shared::plain() });
            assert_eq!(config.hint().map(|said| said.wait), said.filter(|_| retry_after != Some(RetryAfter::Backlog)));
            let mut limiters = Limiters::new(&LimitersConfig(vec![config]));
            let load = Load { ahead: seconds(7), ..NO_LOAD };
            let answers: Vec<_> = (0..2).map(|_| limiters.admit(Timestamp::ZERO, &of(0, 0), load)).collect();
            assert_eq!(answers, [Ok(()), Err(Refusal { status: 503, hint: Said::new(said, None) })]);
        }
    }
}
