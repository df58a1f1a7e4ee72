//! Hedges, breakers and parked retries, told in milliseconds.

use super::books::{at_no_place, hedge, park};
use super::*;
use crate::policy::breaker::{Opens, Rule, SharedBy, Suppresses};
use crate::policy::budget::BucketConfig;
use crate::policy::{BreakerConfig, RetryOn};

/// One client; operations at 0, 100, 200 … ms.
fn one_client(policy: Policy, end: u64) -> Setup {
    Setup { end: at(end), ..setup(1, constant(10.0), policy) }
}

/// When which attempt ended how.
fn endings(wire: &Wire) -> Vec<(u64, u32, AttemptOutcome)> {
    let ended = |e: &Event| match *e {
        Event::Ended { at, attempt, outcome, .. } => Some((at.as_millis(), attempt, outcome)),
        _ => None,
    };
    wire.events.iter().filter_map(ended).collect()
}

fn finished(wire: &Wire) -> Vec<(u64, u32, OperationOutcome)> {
    let finished = |e: &Event| match *e {
        Event::Finished { at, attempts, outcome, .. } => Some((at.as_millis(), attempts, outcome)),
        _ => None,
    };
    wire.events.iter().filter_map(finished).collect()
}

#[test]
fn the_first_answer_wins_and_the_others_are_cancelled() {
    use AttemptOutcome::{Cancelled, Reset, Status, Success, Timeout};
    let policy = Policy { hedge: hedge(100, 2), timeout: ms(400), ..policy() };
    for (name, script, want_ends, want) in [
        (
            "a hedge is quicker",
            &(|send: &Send, _| (send.attempt == 2).then_some((ms(20), Success, Hint::NONE))) as Script,
            vec![(120, 2, Success), (120, 1, Cancelled)],
            (120, 2, OperationOutcome::Succeeded),
        ),
        (
            "one that fails brings the next at once",
            &|send: &Send, _| match send.attempt {
                1 => None,
                2 => Some((ms(30), Reset, Hint::NONE)),
                _ => Some((ms(5), Success, Hint::NONE)),
            },
            vec![(130, 2, Reset), (135, 3, Success), (135, 1, Cancelled)],
            (135, 3, OperationOutcome::Succeeded),
        ),
        (
            "what is not retried decides",
            &|send: &Send, _| (send.attempt == 2).then_some((ms(30), Status(404), Hint::NONE)),
            vec![(130, 2, Status(404)), (130, 1, Cancelled)],
            (130, 2, OperationOutcome::Failed),
        ),
        (
            "an answer in time brings none",
            &|_: &Send, _| Some((ms(99), Success, Hint::NONE)),
            vec![(99, 1, Success)],
            (99, 1, OperationOutcome::Succeeded),
        ),
        (
            "the last of all fails the try; limits on attempts bound them",
            &|_: &Send, _| None,
            vec![(400, 1, Timeout), (500, 2, Timeout), (600, 3, Timeout), (1000, 4, Timeout)],
            (1000, 4, OperationOutcome::Failed),
        ),
    ] {
        let wire = Wire::start(one_client(policy.clone(), 50), script).finish(at(5000));
        assert_eq!(endings(&wire), want_ends, "{name}");
        assert_eq!(finished(&wire), [want], "{name}");
        check_books(&wire, &policy);
    }
}

#[test]
fn an_open_breaker_refuses_and_a_probe_closes_it() {
    let rule = Rule { opens: Opens::Failures(2), open_for: ms(250), probes: 1, suppresses: Suppresses::All };
    let breaker = at_no_place(BreakerConfig { tier: SharedBy::Client, rule: Arc::new(rule) });
    let policy = Policy { breaker, attempts: Attempts::Limited(1), retry_on: vec![RetryOn::Reset], ..policy() };
    // The first two fail; the two while it is open are refused; the fifth probes.
    let script = |send: &Send, _| {
        let outcome = if send.operation.number < 2 { AttemptOutcome::Reset } else { AttemptOutcome::Success };
        Some((ms(1), outcome, Hint::NONE))
    };
    let wire = Wire::start(one_client(policy.clone(), 600), &script).finish(at(2000));
    assert_eq!(wire.sends.iter().map(|(at, _)| at.as_millis()).collect::<Vec<_>>(), [0, 100, 400, 500]);
    assert_eq!(wire.count(|e| matches!(e, Event::Throttled { .. })), 2);
    let failed = (2..4).map(|n| (n * 100, 0, OperationOutcome::Failed));
    assert!(failed.clone().all(|refused| finished(&wire).contains(&refused)), "{:?}", finished(&wire));
    check_books(&wire, &policy);
}

#[test]
fn parked_retries_go_when_first_attempts_have_earned_them() {
    let bucket = Kind::Bucket(BucketConfig { deposit: Share::new(0.5).unwrap(), burst: 1 });
    let config = BudgetConfig { kind: bucket, tier: Tier::Fleet, when_spent: WhenSpent::Park };
    let policy = Policy { budget: at_no_place(config), attempts: Attempts::Limited(2), ..policy() };
    // Everything fails once. The first retry is there from the start; each later one takes two first attempts.
    let script = |send: &Send, _| {
        let outcome = if send.attempt == 1 { AttemptOutcome::Reset } else { AttemptOutcome::Success };
        Some((ms(1), outcome, Hint::NONE))
    };
    let wire = Wire::start(one_client(policy.clone(), 600), &script).finish(at(700));
    let retries: Vec<_> = wire.sends.iter().filter(|(_, send)| send.attempt == 2).collect();
    let retries: Vec<_> = retries.iter().map(|(at, send)| (at.as_millis(), send.operation.number)).collect();
    assert_eq!(retries, [(1, 0), (201, 1), (401, 2)], "first come, first served, when the connection is free");
    assert_eq!(wire.count(|e| matches!(e, Event::BudgetRefused { .. })), 5);
    assert_eq!(wire.outcomes(OperationOutcome::Unresolved), 3, "nothing is lost");
    check_books(&wire, &policy);
}

#[test]
fn a_parked_retry_meets_its_deadline() {
    let policy = Policy { budget: park(Tier::Client), deadline: Some(ms(300)), ..policy() };
    let script = |_: &Send, _| Some((ms(1), AttemptOutcome::Reset, Hint::NONE));
    let wire = Wire::start(one_client(policy.clone(), 50), &script).finish(at(2000));
    assert_eq!(finished(&wire), [(300, 1, OperationOutcome::Failed)]);
}
