//! Single cases, told in milliseconds.

use super::*;

/// When, after how many attempts and after what the operations failed that did.
fn failures(wire: &Wire) -> Vec<(u64, u32, Option<AttemptOutcome>)> {
    let failed = |e: &Event| match *e {
        Event::Finished { at, attempts, outcome: OperationOutcome::Failed, last, .. } => Some((at.as_millis(), attempts, last)),
        _ => None,
    };
    wire.events.iter().filter_map(failed).collect()
}

/// One client; operations at 0, 100, 200 … ms.
fn one_client(policy: Policy, end: u64) -> Setup {
    Setup { end: at(end), ..setup(1, constant(10.0), policy) }
}

#[test]
fn a_busy_client_has_backlog_and_no_lag() {
    let slow = |_: &Send, _| Some((ms(250), AttemptOutcome::Success, Hint::NONE));
    let mut wire = Wire::start(one_client(policy(), 300), &slow);
    wire.run_until(at(220));
    let gauges = wire.devices.gauges(at(220));
    assert_eq!((gauges.in_flight, gauges.backlog, gauges.oldest_age), (1, 3, ms(220)));
    wire.run_until(at(2000));
    assert_eq!([0, 1, 2].map(|n| wire.sent_at(n)), [[0], [250], [500]]);
    assert_eq!(wire.lags(), [Some(Span::ZERO), None, None]);
    let late: Vec<_> = wire
        .events
        .iter()
        .filter_map(|e| if let Event::LateStart { late, by, .. } = e { Some((late.as_millis(), *by)) } else { None })
        .collect();
    assert_eq!(late, [(150, LateBy::Plan), (300, LateBy::Plan)]);
}

#[test]
fn backoff_does_not_hold_the_connection_and_the_ready_go_in_order() {
    // The first fails at 10 ms and wants to be back at 210; its client has sent two others by then.
    let script = |send: &Send, _| match (send.operation.number, send.attempt) {
        (0, 1) => Some((ms(10), AttemptOutcome::Reset, Hint::NONE)),
        (1, _) => Some((ms(130), AttemptOutcome::Success, Hint::NONE)),
        _ => Some((ms(10), AttemptOutcome::Success, Hint::NONE)),
    };
    let policy = Policy { backoff: fixed(200), ..policy() };
    let wire = Wire::start(one_client(policy, 300), &script).finish(at(2000));
    // The second holds the wire until 230; the third was ready at 200, the retry at 210.
    assert_eq!([0, 1, 2].map(|n| wire.sent_at(n)), [vec![0, 240], vec![100], vec![230]]);
    assert_eq!(wire.lags(), [Some(Span::ZERO), Some(Span::ZERO), None, None]);
}

#[test]
fn a_timeout_cancels_and_frees_the_connection() {
    let script = |send: &Send, _| (send.attempt > 1).then_some((ms(5), AttemptOutcome::Success, Hint::NONE));
    let policy = Policy { timeout: ms(50), ..policy() };
    let wire = Wire::start(one_client(policy, 100), &script).finish(at(2000));
    assert_eq!((wire.sent_at(0), wire.cancels), (vec![0, 50], 1));
    assert_eq!(wire.outcomes(OperationOutcome::Succeeded), 1);
    // The answer to an attempt that was given up, should an engine hand one in, is not taken for another's.
    let mut wire = wire;
    wire.devices.ended(at(2001), 0, AttemptOutcome::Success, Hint::NONE, &mut wire.out);
    wire.devices.ended(at(2001), 77, AttemptOutcome::Success, Hint::NONE, &mut wire.out);
    assert!(wire.out.events.is_empty() && wire.out.commands.is_empty());
}

#[test]
fn an_operation_that_waits_fails_at_its_deadline() {
    // The first fails at 10 ms and is ready again at 210, but the second holds the wire until its timeout at 1000.
    let script = |send: &Send, _| (send.operation.number == 0).then_some((ms(10), AttemptOutcome::Reset, Hint::NONE));
    let policy = Policy { timeout: ms(900), deadline: Some(ms(800)), backoff: fixed(200), ..policy() };
    let wire = Wire::start(one_client(policy, 200), &script).finish(at(2000));
    assert_eq!(failures(&wire), [(800, 1, Some(AttemptOutcome::Reset)), (900, 1, Some(AttemptOutcome::Timeout))]);
    let policy = Policy { timeout: ms(900), max_elapsed: Some(ms(500)), backoff: fixed(200), ..self::policy() };
    let wire = Wire::start(one_client(policy, 200), &script).finish(at(2000));
    assert_eq!(failures(&wire), [(500, 1, Some(AttemptOutcome::Reset)), (1000, 1, Some(AttemptOutcome::Timeout))]);
}

#[test]
fn what_was_never_sent_fails_at_its_deadline_too() {
    let silence = |_: &Send, _| None;
    let policy = Policy { timeout: ms(10_000), deadline: Some(ms(300)), ..policy() };
    let mut hold = one_client(policy, 200);
    // A ceiling of one attempt per ten seconds lets the first through and holds the second.
    hold.shared.ceiling = Some(Arc::new(Pacer::new(Rate::per_second(0.1).unwrap(), 1)));
    let wire = Wire::start(hold, &silence).finish(at(2000));
    assert_eq!(failures(&wire), [(300, 1, Some(AttemptOutcome::Timeout)), (400, 0, None)]);
}

#[test]
fn late_starts_are_queued_dropped_or_caught_up() {
    let slow = |_: &Send, _| Some((ms(250), AttemptOutcome::Success, Hint::NONE));
    for (late_starts, sent, dropped_at) in [
        (LateStarts::Queue(Always {}), vec![0, 250, 500, 750, 1000], vec![]),
        (LateStarts::Drop(Always {}), vec![0, 300], vec![100, 200, 400]),
        (LateStarts::BoundedCatchup(CatchUp { within: ms(160) }), vec![0, 250, 500], vec![360, 460]),
    ] {
        let mut setup = one_client(policy(), 500);
        setup.config.late_starts = late_starts.clone();
        let wire = Wire::start(setup, &slow).finish(at(5000));
        assert_eq!(wire.sends.iter().map(|(at, _)| at.as_millis()).collect::<Vec<_>>(), sent, "{late_starts:?}");
        let dropped: Vec<_> = wire
            .events
            .iter()
            .filter_map(|e| match e {
                Event::Finished { at, outcome: OperationOutcome::Dropped, .. } => Some(at.as_millis()),
                _ => None,
            })
            .collect();
        assert_eq!(dropped, dropped_at, "{late_starts:?}");
        let late = wire.count(|e| matches!(e, Event::LateStart { .. }));
        let on_time = if matches!(late_starts, LateStarts::Drop(_)) { 2 } else { 1 };
        assert_eq!(late, 5 - on_time, "each late one is counted once");
    }
}

#[test]
fn a_late_generator_has_lag_and_its_late_starts_are_counted() {
    let quick = |_: &Send, _| Some((ms(1), AttemptOutcome::Success, Hint::NONE));
    for (lateness, late_starts) in [(ms(4), 0), (ms(30), 4)] {
        let mut wire = Wire::start(one_client(policy(), 500), &quick);
        // The first wake-up was asked for before the generator became late.
        wire.lateness = lateness;
        let wire = wire.finish(at(5000));
        assert_eq!(wire.lags()[1..], [Some(lateness); 4]);
        assert_eq!(wire.count(|e| matches!(e, Event::LateStart { by: LateBy::Generator, .. })), late_starts);
        assert_eq!(wire.count(|e| matches!(e, Event::LateStart { by: LateBy::Plan, .. })), 0);
    }
}

#[test]
fn a_late_timeout_is_lag_of_the_retry_and_no_longer_timeout() {
    let silence = |_: &Send, _| None;
    for (backoff, sent) in [(Backoff::none(), [0, 80, 160]), (fixed(100), [0, 180, 360])] {
        let policy = Policy { timeout: ms(50), attempts: Attempts::Limited(3), backoff, ..policy() };
        let mut wire = Wire::start(one_client(policy, 50), &silence);
        wire.lateness = ms(30);
        let wire = wire.finish(at(2000));
        assert_eq!(wire.sent_at(0), sent);
        assert_eq!(wire.lags(), [Some(Span::ZERO), Some(ms(30)), Some(ms(30))]);
        let took = |e: &Event| if let Event::Ended { sent, at, .. } = e { Some(at.since(*sent)) } else { None };
        assert_eq!(wire.events.iter().filter_map(took).collect::<Vec<_>>(), [ms(50); 3]);
        assert_eq!(failures(&wire), [(sent[2] + 50, 3, Some(AttemptOutcome::Timeout))]);
    }
}

#[test]
fn a_retry_at_once_after_an_answer_has_no_lag_to_measure() {
    let failing = |_: &Send, _| Some((ms(5), AttemptOutcome::Reset, Hint::NONE));
    let policy = Policy { attempts: Attempts::Limited(3), ..policy() };
    let wire = Wire::start(one_client(policy, 50), &failing).finish(at(2000));
    assert_eq!((wire.sent_at(0), wire.lags()), (vec![0, 5, 10], vec![Some(Span::ZERO), None, None]));
}

#[test]
fn an_answer_that_a_late_engine_hands_in_after_the_timeout_is_a_timeout() {
    let slow = |_: &Send, _| Some((ms(60), AttemptOutcome::Success, Hint::NONE));
    let policy = Policy { timeout: ms(50), attempts: Attempts::Limited(1), ..policy() };
    let mut wire = Wire::start(one_client(policy, 50), &slow);
    wire.lateness = ms(30);
    let wire = wire.finish(at(2000));
    assert_eq!(failures(&wire), [(50, 1, Some(AttemptOutcome::Timeout))]);
    assert_eq!(wire.outcomes(OperationOutcome::Succeeded), 0);
}

#[test]
fn under_closed_load_a_late_timeout_is_lag_of_the_next_operation() {
    let silence = |_: &Send, _| None;
    let policy = Policy { timeout: ms(50), attempts: Attempts::Limited(1), ..policy() };
    let mut wire = Wire::start(Setup { end: at(75), ..setup(1, Load::Closed(Closed { think: ms(10) }), policy) }, &silence);
    wire.lateness = ms(30);
    let wire = wire.finish(at(2000));
    // The timeout is noticed 30 ms late, when the operation meant for 10 ms after it is overdue by 20.
    let ended = wire.events.iter().find_map(|e| if let Event::Ended { at, .. } = e { Some(*at) } else { None }).unwrap();
    assert_eq!(ended.since(wire.sends[0].0), ms(50));
    assert_eq!(wire.arrivals()[1].0.since(ended), ms(10));
    assert_eq!(wire.lags().get(1), Some(&Some(ms(20))));
}

#[test]
fn a_full_outbox_refuses() {
    let silence = |_: &Send, _| None;
    let mut setup = one_client(Policy { timeout: Span::from_secs(60), ..policy() }, 500);
    setup.config.outbox = 2;
    let wire = Wire::start(setup, &silence).finish(at(1000));
    assert_eq!(wire.outcomes(OperationOutcome::Refused), 3);
    assert_eq!(wire.outcomes(OperationOutcome::Unresolved), 2);
}

#[test]
fn the_ceiling_spreads_sends_and_keeps_each_clients_order() {
    let quick = |_: &Send, _| Some((Span::from_micros(100), AttemptOutcome::Success, Hint::NONE));
    let mut setup = setup(50, Load::Constant(Constant { rate: rate(4000.0), each: None }), policy());
    setup.end = at(1000);
    setup.shared.ceiling = Some(Arc::new(Pacer::new(Rate::per_second(3000.0).unwrap(), 1)));
    let wire = Wire::start(setup, &quick).finish(at(1300));
    check_books(&wire, &policy());
    // 3000/s is finer than the grain of 250 µs, and still it is kept.
    let in_first_second = wire.sends.iter().filter(|(now, _)| *now < at(1000)).count();
    assert!((2990..=3001).contains(&in_first_second), "{in_first_second}");
    assert!(wire.devices.ceiling_holds() > 900);
    let mut next = [0; 50];
    for (_, send) in &wire.sends {
        let expected = &mut next[send.operation.client as usize];
        assert_eq!(send.operation.number, *expected);
        *expected += 1;
    }
}

#[test]
fn a_deadline_shorter_than_the_line_does_not_waste_the_ceiling() {
    let quick = |_: &Send, _| Some((ms(1), AttemptOutcome::Success, Hint::NONE));
    let policy = Policy { deadline: Some(ms(200)), ..policy() };
    let mut setup = setup(500, constant(500.0), policy.clone());
    setup.end = at(10_000);
    setup.shared.ceiling = Some(Arc::new(Pacer::new(Rate::per_second(100.0).unwrap(), 1)));
    let wire = Wire::start(setup, &quick).finish(at(11_000));
    check_books(&wire, &policy);
    let sent = wire.sends.len();
    assert!((990..=1030).contains(&sent), "{sent} of 1000 that the ceiling allows");
}

#[test]
fn closed_load_has_one_operation_per_client_and_pauses_between() {
    let quick = |_: &Send, _| Some((ms(30), AttemptOutcome::Success, Hint::NONE));
    let mut setup = setup(4, Load::Closed(Closed { think: ms(70) }), policy());
    setup.end = at(10_000);
    let wire = Wire::start(setup, &quick).finish(at(11_000));
    let per_client = wire.sends.iter().filter(|(_, s)| s.operation.client == 2).count();
    assert!((99..=101).contains(&per_client), "{per_client}");
    assert!(wire.lags().iter().all(|lag| lag.is_some_and(|lag| lag <= GRAIN)));
}

#[test]
fn keys_and_routes_belong_to_the_operation() {
    let failing = |_: &Send, _| Some((ms(1), AttemptOutcome::Reset, Hint::NONE));
    for (kind, distinct) in [(IdempotencyKey::Enqueue, 1), (IdempotencyKey::Attempt, 4)] {
        let mut setup = one_client(policy(), 1000);
        setup.config.idempotency_key = kind;
        setup.route_weights = vec![1.0; 3];
        let wire = Wire::start(setup, &failing).finish(at(2000));
        assert_eq!(wire.sends.len(), 40);
        for number in 0..10 {
            let of_one: Vec<_> = wire.sends.iter().map(|(_, s)| s).filter(|s| s.operation.number == number).collect();
            let keys: std::collections::BTreeSet<_> = of_one.iter().map(|s| s.idempotency_key).collect();
            assert_eq!(keys.len(), distinct);
            assert!(of_one.iter().all(|s| s.route == of_one[0].route && s.enqueued_at == at(number * 100)));
        }
        let all: std::collections::BTreeSet<_> = wire.sends.iter().map(|(_, s)| s.idempotency_key).collect();
        assert_eq!(all.len(), 10 * distinct);
    }
}

#[test]
fn gauges_count_deep_retries() {
    let failing = |_: &Send, _| Some((ms(1), AttemptOutcome::Reset, Hint::NONE));
    let policy = Policy { attempts: Attempts::Limited(6), backoff: fixed(20), ..policy() };
    let mut wire = Wire::start(Setup { end: at(1), ..one_client(policy, 1) }, &failing);
    let mut deep = Vec::new();
    for step in 0..7 {
        wire.run_until(at(step * 21));
        deep.push(wire.devices.gauges(at(step * 21)).deep_retries);
    }
    assert_eq!(deep, [0, 0, 0, 1, 1, 1, 0]);
}

#[test]
fn a_million_arrivals_behind_are_offered_in_bounded_steps() {
    let silence = |_: &Send, _| None;
    let mut setup = one_client(Policy { timeout: Span::from_secs(3600), ..policy() }, 1000);
    setup.config.load = constant(1_000_000.0);
    setup.config.outbox = 1;
    let mut devices = Wire::start(setup, &silence).devices;
    let mut out = Output::default();
    devices.wake(at(0), Token(interface::Reason::Arrival(0)), &mut out);
    out.commands.clear();
    out.events.clear();
    devices.wake(at(1000), Token(interface::Reason::Arrival(0)), &mut out);
    assert!(out.events.len() <= 2 * 256, "{}", out.events.len());
    assert!(matches!(out.commands[..], [Command::Wake { at, .. }] if at == self::at(1000)), "{:?}", out.commands);
}
