//! Outboxes with priorities, compaction, bounds, a pace and a sense of outages.

use super::*;
use crate::fleet::kinds::tests::operations;
use crate::fleet::{Defer, Operations, Priority, WhenFull};

/// Nothing answers before this moment, everything from there on, after 20 ms.
fn back_at(moment: u64) -> impl Fn(&Send, Timestamp) -> Option<(Span, AttemptOutcome, Hint)> {
    move |_, now| (now >= at(moment)).then_some((ms(20), AttemptOutcome::Success, Hint::NONE))
}

fn unlimited() -> Policy {
    Policy { attempts: Attempts::Unlimited, timeout: ms(100), backoff: fixed(50), ..policy() }
}

/// One client; an operation each 100 ms until `end`.
fn client_of(kinds: Operations, end: u64) -> Setup {
    let mut setup = Setup { end: at(end), ..setup(1, constant(10.0), unlimited()) };
    setup.config.operations = kinds;
    setup
}

fn kinds() -> Operations {
    operations(&[(0.3, Priority::BestEffort, 2), (0.4, Priority::Normal, 0), (0.3, Priority::Critical, 0)])
}

/// What was sent from a moment on, in order: its priority and its operation's number.
fn order(wire: &Wire, from: u64) -> Vec<(Priority, u64)> {
    let sends = wire.sends.iter().filter(|(now, _)| *now >= at(from));
    sends.map(|(_, send)| (send.priority.expect("there are kinds"), send.operation.number)).collect()
}

#[test]
fn a_backlog_drains_by_priority_then_by_age() {
    let script = back_at(5_000);
    let wire = Wire::start(client_of(kinds(), 4_000), &script).finish(at(20_000));
    check_books(&wire, &unlimited());
    // By then every wait that had begun is over, and all that is left stands ready.
    let drained = order(&wire, 5_060);
    let critical = drained.iter().take_while(|(priority, _)| *priority == Priority::Critical).count();
    assert!(critical >= 5 && drained[critical..].iter().all(|(priority, _)| *priority != Priority::Critical), "{drained:?}");
    assert!(drained.is_sorted(), "by priority, then by number: {drained:?}");
    let left = wire.outcomes(OperationOutcome::Succeeded) + wire.outcomes(OperationOutcome::Superseded);
    assert_eq!(left, 40, "nothing is lost");
}

#[test]
fn the_newest_about_an_object_makes_the_older_pointless() {
    let script = back_at(3_050);
    let one_object = operations(&[(1.0, Priority::Normal, 1)]);
    let wire = Wire::start(client_of(one_object, 3_000), &script).finish(at(20_000));
    check_books(&wire, &unlimited());
    let superseded = |e: &Event| matches!(e, Event::Finished { outcome: OperationOutcome::Superseded, .. });
    assert_eq!((wire.count(superseded), wire.outcomes(OperationOutcome::Succeeded)), (29, 1));
    assert_eq!(order(&wire, 3_050).last(), Some(&(Priority::Normal, 29)), "the newest is what arrives");
    let three_objects = operations(&[(1.0, Priority::Normal, 3)]);
    let wire = Wire::start(client_of(three_objects, 3_000), &script).finish(at(20_000));
    assert_eq!(wire.outcomes(OperationOutcome::Succeeded), 3, "one of each object");
}

#[test]
fn a_full_outbox_refuses_the_newest_or_throws_out_the_least() {
    let run = |when_full| {
        let script = back_at(5_000);
        let mut setup = client_of(operations(&[(0.5, Priority::Background, 0), (0.5, Priority::Critical, 0)]), 4_000);
        (setup.config.outbox, setup.config.when_full) = (6, when_full);
        let wire = Wire::start(setup, &script).finish(at(20_000));
        check_books(&wire, &unlimited());
        assert_eq!(wire.outcomes(OperationOutcome::Succeeded), 6);
        let mut arrived = order(&wire, 5_000);
        arrived.sort_unstable();
        arrived
    };
    let refusing = run(WhenFull::Refuse);
    assert_eq!(refusing.iter().map(|(_, number)| *number).max(), Some(5), "the oldest six");
    let evicting = run(WhenFull::Evict);
    let critical = evicting.iter().filter(|(priority, _)| *priority == Priority::Critical).count();
    assert!(critical >= 5, "all that are critical but for the one on the wire: {evicting:?}");
    let newest = evicting.iter().map(|(_, number)| *number).max();
    assert!(newest > Some(30), "among equals the oldest goes: {evicting:?}");
}

#[test]
fn a_backlog_drains_at_its_pace() {
    let script = back_at(2_000);
    let mut setup = client_of(Operations::default(), 2_000);
    setup.config.drain_rate = rate(4.0);
    let wire = Wire::start(setup, &script).finish(at(20_000));
    check_books(&wire, &unlimited());
    let times: Vec<u64> = wire.sends.iter().map(|(now, _)| now.as_millis()).collect();
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 250), "{times:?}");
    assert_eq!(wire.outcomes(OperationOutcome::Succeeded), 20);
    let last = *times.last().expect("it sends");
    assert!((6_750..=7_250).contains(&last), "20 operations and those on the wire before at 4/s: {last}");
    assert!(wire.lags().iter().skip(1).all(Option::is_none), "what the plan holds back is no lag");
}

#[test]
fn a_client_that_notices_an_outage_probes_and_loses_nothing() {
    let script = back_at(10_000);
    let run = |defer| {
        let mut setup = client_of(kinds(), 9_000);
        setup.config.defer = defer;
        let wire = Wire::start(setup, &script).finish(at(20_000));
        check_books(&wire, &unlimited());
        let left = wire.outcomes(OperationOutcome::Succeeded) + wire.outcomes(OperationOutcome::Superseded);
        assert_eq!(left, 90, "nothing is lost");
        let during: Vec<u64> = wire.sends.iter().map(|(now, _)| now.as_millis()).filter(|now| *now < 10_000).collect();
        (during, wire)
    };
    assert!(run(None).0.len() > 80);
    let (during, wire) = run(Some(Defer { after: 3, probe_every: ms(2_000) }));
    // Three failures of 100 ms each, and from there a probe each 2.1 s.
    assert_eq!(during, [0, 100, 200, 2_300, 4_400, 6_500, 8_600], "{during:?}");
    let drained: Vec<_> = order(&wire, 10_700);
    assert_eq!(wire.sends.iter().find(|(now, _)| *now >= at(10_000)).map(|(now, _)| now.as_millis()), Some(10_700));
    assert!(drained.len() > 40 && drained.is_sorted(), "{drained:?}");
}

/// Everything at once, under random answers: the books balance, and a run repeats.
#[test]
fn the_books_of_rich_outboxes_balance() {
    let mut seen = BTreeMap::new();
    for case in 0..40u64 {
        let policy = match case % 3 {
            0 => Policy { deadline: Some(ms(1_800)), backoff: fixed(200), ..policy() },
            1 => unlimited(),
            _ => Policy { budget: budget(Tier::Fleet), ..policy() },
        };
        let load = if case % 4 == 0 { Load::Closed(Closed { think: ms(20) }) } else { constant(60.0) };
        let mut setup = Setup { seed: case, ..setup(6, load, policy.clone()) };
        setup.config.operations = kinds();
        setup.config.outbox = 1 + (case % 9) as u32;
        setup.config.when_full = if case % 2 == 0 { WhenFull::Evict } else { WhenFull::Refuse };
        setup.config.drain_rate = if case % 5 == 0 { rate(3.0) } else { None };
        setup.config.defer = (case % 3 == 1).then_some(Defer { after: 2, probe_every: ms(700) });
        let script = books::dice(case);
        let run = || {
            let mut setup = setup.clone();
            setup.shared.ceiling = (case % 7 == 0).then(|| Arc::new(Pacer::new(Rate::per_second(30.0).unwrap(), 2)));
            Wire::start(setup, &script).finish(at(25_000))
        };
        let wire = run();
        check_books(&wire, &policy);
        assert!(wire.events == run().events, "case {case} repeats");
        for event in &wire.events {
            if let Event::Finished { outcome, .. } = event {
                *seen.entry(*outcome).or_insert(0u64) += 1;
            }
        }
    }
    for outcome in [OperationOutcome::Superseded, OperationOutcome::Refused, OperationOutcome::Failed] {
        assert!(seen.get(&outcome).is_some_and(|&n| n > 20), "{seen:?}");
    }
}
