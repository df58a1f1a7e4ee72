//! Storms of every policy, load and accident: what must hold whatever happens.

use super::*;
use crate::policy::breaker::{Opens, Rule, SharedBy, Suppresses};
use crate::policy::budget::BucketConfig;
use crate::policy::{BreakerConfig, HedgeConfig, RetryOn};

/// Random answers, by the attempt: successes, failures of all kinds, silence.
pub(super) fn dice(seed: u64) -> impl Fn(&Send, Timestamp) -> Option<(Span, AttemptOutcome, Hint)> {
    move |send, _| {
        let OperationId { fleet, client, number } = send.operation;
        let key = Key { seed, fleet: u32::from(fleet), client, operation: number, attempt: send.attempt };
        let mut draws = key.stream(Purpose::ServiceTime);
        let after = ms(1500).scale(draws.unit() * draws.unit());
        let outcome = match (draws.unit() * 10.0) as u32 {
            0..4 => AttemptOutcome::Success,
            4 => AttemptOutcome::Reset,
            5 => AttemptOutcome::Connect,
            6 => AttemptOutcome::Status(503),
            7 => return Some((after, AttemptOutcome::Status(429), Hint::retry_after(Span::from_secs(3)))),
            8 => AttemptOutcome::Status(404),
            _ => return None,
        };
        Some((after, outcome, Hint::NONE))
    }
}

fn policies() -> Vec<Policy> {
    let honor = RetryAfter::Honor(Honor {
        cap: Span::from_secs(2),
        spread: Some(Spread::Over(Share::new(0.5).unwrap())),
        ..Honor::plain()
    });
    let base = policy();
    vec![
        base.clone(),
        Policy { attempts: Attempts::Limited(1), ..base.clone() },
        Policy { deadline: Some(ms(1800)), backoff: fixed(200), ..base.clone() },
        Policy {
            attempts: Attempts::Unlimited,
            max_elapsed: Some(ms(3000)),
            backoff: exponential(100, 800, Jitter::Full(Plain {})),
            ..base.clone()
        },
        Policy { retry_after: honor, backoff: exponential(50, 900, Jitter::Decorrelated(Plain {})), ..base.clone() },
        Policy { budget: budget(Tier::Fleet), ..base.clone() },
        Policy { budget: budget(Tier::Client), deadline: Some(ms(700)), ..base.clone() },
        Policy { budget: park(Tier::Fleet), backoff: fixed(30), max_elapsed: Some(ms(4000)), ..base.clone() },
        Policy { budget: park(Tier::Client), ..base.clone() },
        Policy { hedge: hedge(120, 2), attempts: Attempts::Limited(6), budget: bucket(), ..base.clone() },
        Policy { breaker: breaker(), retry_on: vec![RetryOn::Refused, RetryOn::StatusClass(5), RetryOn::Timeout], ..base },
    ]
}

pub(super) fn at_no_place<T>(value: T) -> Option<At<T>> {
    Some(At { value, place: Place::default() })
}

pub(super) fn park(tier: Tier) -> Option<At<BudgetConfig>> {
    budget(tier).map(|at| At { value: BudgetConfig { when_spent: WhenSpent::Park, ..at.value }, ..at })
}

fn bucket() -> Option<At<BudgetConfig>> {
    let kind = Kind::Bucket(BucketConfig { deposit: Share::new(0.5).unwrap(), burst: 3 });
    at_no_place(BudgetConfig { kind, tier: Tier::Fleet, when_spent: WhenSpent::GiveUp })
}

pub(super) fn hedge(after: u64, at_most: u32) -> Option<At<HedgeConfig>> {
    at_no_place(HedgeConfig { after: ms(after), at_most })
}

fn breaker() -> Option<At<BreakerConfig>> {
    let rule = Rule { opens: Opens::Failures(3), open_for: ms(700), probes: 1, suppresses: Suppresses::All };
    at_no_place(BreakerConfig { tier: SharedBy::Client, rule: Arc::new(rule) })
}

fn loads() -> Vec<Load> {
    let rate_of = |r| Rate::per_second(r).unwrap();
    vec![
        constant(40.0),
        Load::Poisson(Poisson { rate: None, each: rate(3.0) }),
        Load::Ramp(Ramp { from: rate_of(0.0), to: rate_of(60.0), over: Span::from_secs(10) }),
        Load::Closed(Closed { think: ms(120) }),
        Load::Closed(Closed { think: Span::ZERO }),
        Load::Trigger(Trigger { at: Span::from_secs(1), spread: ms(50) }),
    ]
}

fn late_policies() -> [LateStarts; 3] {
    [LateStarts::Queue(Always {}), LateStarts::Drop(Always {}), LateStarts::BoundedCatchup(CatchUp { within: ms(400) })]
}

#[test]
fn the_books_balance_whatever_happens() {
    let mut case = 0u64;
    let mut seen = BTreeMap::new();
    for policy in policies() {
        for load in loads() {
            for late_starts in late_policies() {
                for ceiling in [None, Some(Pacer::new(Rate::per_second(30.0).unwrap(), 2))] {
                    case += 1;
                    let mut setup = setup(8, load.clone(), policy.clone());
                    setup.seed = case;
                    setup.config.outbox = 1 + (case % 7) as u32;
                    setup.config.late_starts = late_starts.clone();
                    setup.shared.ceiling = ceiling.map(Arc::new);
                    setup.route_weights = vec![1.0, 2.0];
                    let script = dice(case);
                    let mut wire = Wire::start(setup, &script);
                    wire.lateness = if case.is_multiple_of(5) { ms(7) } else { Span::ZERO };
                    let wire = wire.finish(at(25_000));
                    check_books(&wire, &policy);
                    for event in &wire.events {
                        if let Event::Finished { outcome, .. } = event {
                            *seen.entry(*outcome).or_insert(0u64) += 1;
                        }
                    }
                }
            }
        }
    }
    assert_eq!(case, 396);
    assert!(seen.len() == 5 && seen.values().all(|&n| n > 20), "every outcome was met: {seen:?}");
}

#[test]
fn a_run_repeats_to_the_byte_and_arrivals_do_not_depend_on_the_policy() {
    for load in loads() {
        let script = dice(5);
        let run = |policy: &Policy| Wire::start(setup(20, load.clone(), policy.clone()), &script).finish(at(25_000));
        let all = policies();
        let (one, again) = (run(&all[3]), run(&all[3]));
        assert_eq!(format!("{:?}", one.events), format!("{:?}", again.events));
        assert_eq!(one.sends, again.sends);
        if !load.is_closed() {
            assert_eq!(one.arrivals(), run(&all[5]).arrivals(), "{load:?}");
        }
    }
}

#[test]
fn two_shards_offer_what_one_offers() {
    for load in loads().into_iter().filter(|l| !l.is_closed()) {
        let script = dice(5);
        let run = |clients: std::ops::Range<u32>| {
            Wire::start(Setup { clients, ..setup(21, load.clone(), policy()) }, &script).finish(at(25_000)).arrivals()
        };
        let mut both = [run(0..8), run(8..21)].concat();
        both.sort_unstable();
        assert!(!both.is_empty());
        assert_eq!(run(0..21), both, "{load:?}");
        assert!(both.iter().all(|(at, _)| *at < self::at(20_000)));
    }
}

#[test]
fn a_fleets_budget_caps_the_retries_of_all_its_shards() {
    let config = budget(Tier::Fleet).unwrap().value;
    let shared = Shared { budget: Some(Arc::new(Budget::new(&config))), ..Shared::default() };
    let failing = |_: &Send, _| Some((ms(1), AttemptOutcome::Reset, Hint::NONE));
    let (mut firsts, mut retries, mut refused) = (0, 0, 0);
    let policy = Policy { budget: budget(Tier::Fleet), ..policy() };
    let shard =
        |clients| Setup { clients, shared: shared.clone(), end: at(9_000), ..setup(100, constant(200.0), policy.clone()) };
    let mut wires = [Wire::start(shard(0..50), &failing), Wire::start(shard(50..100), &failing)];
    for step in 1..=90 {
        wires.iter_mut().for_each(|w| w.run_until(at(step * 100)));
    }
    for wire in &wires {
        firsts += wire.count(|e| matches!(e, Event::Sent { retry: false, .. }));
        retries += wire.count(|e| matches!(e, Event::Sent { retry: true, .. }));
        refused += wire.count(|e| matches!(e, Event::BudgetRefused { .. }));
    }
    assert_eq!((firsts, retries), (1800, 180));
    assert_eq!(refused, 1800, "each operation ends at a refusal");
}

#[test]
fn a_budget_per_client_dilutes() {
    // 0.2 operations per second and client earn 0.2 retries in ten seconds: never one.
    let policy = Policy { budget: budget(Tier::Client), ..policy() };
    let failing = |_: &Send, _| Some((ms(1), AttemptOutcome::Reset, Hint::NONE));
    let load = Load::Constant(Constant { rate: None, each: rate(0.2) });
    let wire = Wire::start(setup(100, load, policy), &failing).finish(at(20_000));
    assert_eq!(wire.count(|e| matches!(e, Event::Sent { retry: true, .. })), 0);
}
