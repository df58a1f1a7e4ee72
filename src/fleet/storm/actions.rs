//! What the timeline does to clients, told in milliseconds.

use super::*;

/// What becomes of an attempt.
type Answer = fn(&Send, Timestamp) -> Option<(Span, AttemptOutcome, Hint)>;

const OK: Answer = |_, _| Some((ms(1), AttemptOutcome::Success, Hint::NONE));
const SILENT: Answer = |_, _| None;

/// `clients` that offer 10/s together for two seconds, and what is done to them.
fn run<'a>(clients: u32, policy: Policy, script: Script<'a>, actions: Vec<(u64, FleetAction)>) -> Wire<'a> {
    let actions = actions.into_iter().map(|(millis, action)| (at(millis), action)).collect();
    Wire::start(Setup { end: at(2_000), actions, ..setup(clients, constant(10.0), policy) }, script).finish(at(3_000))
}

fn sent(wire: &Wire) -> Vec<u64> {
    wire.sends.iter().map(|(at, _)| at.as_millis()).collect()
}

fn acted(wire: &Wire) -> Vec<(u64, u16, u64)> {
    let acted = |event: &Event| match *event {
        Event::Acted { action, at, affected, .. } => Some((at.as_millis(), action, affected)),
        _ => None,
    };
    wire.events.iter().filter_map(acted).collect()
}

fn pause(scope: PauseScope) -> FleetAction {
    FleetAction::Pause { destination: None, scope }
}

const RESUME: FleetAction = FleetAction::Resume { destination: None };

#[test]
fn a_pause_at_ingress_refuses_and_one_of_all_holds() {
    let between = |wire: &Wire, from: u64, to: u64| sent(wire).iter().filter(|at| (from..to).contains(at)).count();
    let paused = run(4, policy(), &OK, vec![(450, pause(PauseScope::Ingress)), (950, RESUME)]);
    assert_eq!(paused.outcomes(OperationOutcome::Refused), 5);
    assert_eq!((between(&paused, 450, 950), between(&paused, 0, 2_001)), (0, 15));
    assert_eq!(acted(&paused), [(450, 0, 4), (950, 1, 4)]);

    let held = run(4, policy(), &OK, vec![(450, pause(PauseScope::All)), (950, RESUME)]);
    assert_eq!((between(&held, 450, 950), between(&held, 950, 960), between(&held, 0, 2_001)), (0, 5, 20));
    assert_eq!(held.outcomes(OperationOutcome::Succeeded), 20);
    assert!(held.lags().iter().flatten().all(|lag| lag.is_zero()), "what is held back is no lag of the generator");
}

#[test]
fn retries_go_on_through_a_pause_at_ingress_and_not_through_one_of_all() {
    let steady = fixed(100);
    let failing = |_: &Send, _| Some((ms(1), AttemptOutcome::Reset, Hint::NONE));
    for (scope, some) in [(PauseScope::Ingress, true), (PauseScope::All, false)] {
        let policy = Policy { attempts: Attempts::Limited(100), timeout: ms(500), backoff: steady.clone(), ..policy() };
        let wire = run(4, policy, &failing, vec![(450, pause(scope)), (950, RESUME)]);
        assert_eq!(sent(&wire).iter().any(|at| (460..940).contains(at)), some, "{scope:?}");
    }
}

#[test]
fn a_restart_takes_back_what_is_out_and_brings_the_clients_back_one_after_the_other() {
    let (quiet, quick) = (Policy { timeout: ms(5_000), ..policy() }, Arc::new(Policy { timeout: ms(77), ..policy() }));
    let restart = FleetAction::Restart { policy: Some(quick), stagger: ms(400) };
    let wire = run(4, quiet, &SILENT, vec![(450, restart)]);
    assert_eq!((wire.cancels >= 4, &acted(&wire)[..]), (true, &[(450, 0, 4)][..]));
    let cancelled = wire.events.iter().filter(|event| matches!(event, Event::Ended { outcome: AttemptOutcome::Cancelled, .. }));
    assert_eq!(cancelled.count(), 4, "one on each wire");
    let again: Vec<&(Timestamp, Send)> = wire.sends.iter().filter(|(_, send)| send.attempt == 2).collect();
    let first = |client: u32| again.iter().find(|(_, send)| send.operation.client == client).expect("it comes back");
    let back: Vec<u64> = (0..4).map(|client| first(client).0.as_millis()).collect();
    assert_eq!(back, [450, 550, 650, 750]);
    let by_the_new_policy = |(at, send): &(Timestamp, Send)| send.timeout_at.since(*at) == ms(77);
    assert!((0..4).all(|client| by_the_new_policy(first(client))), "by the policy that they come back with");
    let retry = wire.events.iter().find(|event| matches!(event, Event::Sent { attempt: 2, .. }));
    assert!(matches!(retry, Some(Event::Sent { retry: false, .. })), "a new pass begins with a first attempt: {retry:?}");
}

#[test]
fn another_rate_keeps_the_operations_and_moves_them() {
    let plain = run(3, policy(), &OK, Vec::new());
    let faster = run(
        3,
        policy(),
        &OK,
        vec![(950, FleetAction::SetArrivals { factor: 4.0 }), (1_450, FleetAction::SetArrivals { factor: 1.0 })],
    );
    let count =
        |wire: &Wire, from: u64, to: u64| wire.arrivals().iter().filter(|(at, _)| (from..to).contains(&at.as_millis())).count();
    assert_eq!((count(&plain, 0, 950), count(&plain, 950, 1_450), count(&plain, 1_450, 2_000)), (10, 5, 5));
    assert_eq!((count(&faster, 0, 950), count(&faster, 1_450, 2_000)), (10, 5));
    assert!((19..=21).contains(&count(&faster, 950, 1_450)), "{}", count(&faster, 950, 1_450));
    let mut sorted: Vec<_> = faster.arrivals().iter().map(|(_, operation)| *operation).collect();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), faster.arrivals().len(), "each once");
}

#[test]
fn a_scaled_fleet_offers_with_those_that_are_left() {
    let to = |to| FleetAction::Scale { to };
    let wire = run(4, policy(), &OK, vec![(0, to(2)), (950, to(4)), (1_450, to(0))]);
    assert_eq!(acted(&wire), [(0, 0, 2), (950, 1, 2), (1_450, 2, 4)]);
    let clients = |from: u64, to: u64| {
        let offered: Vec<_> = wire.arrivals().into_iter().filter(|(at, _)| (from..to).contains(&at.as_millis())).collect();
        offered.iter().map(|(_, operation)| operation.client).collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!((clients(0, 950), clients(950, 1_450), clients(1_450, 2_000)), (2, 4, 0));
}

#[test]
fn closed_load_stands_still_where_nothing_is_taken_in() {
    let closed = Load::Closed(Closed { think: ms(50) });
    for action in [pause(PauseScope::Ingress), FleetAction::Scale { to: 0 }] {
        let back = if matches!(action, FleetAction::Scale { .. }) { FleetAction::Scale { to: 2 } } else { RESUME };
        let actions = vec![(at(300), action), (at(700), back)];
        let wire = Wire::start(Setup { end: at(1_000), actions, ..setup(2, closed.clone(), policy()) }, &OK).finish(at(2_000));
        let offered: Vec<u64> = wire.arrivals().iter().map(|(at, _)| at.as_millis()).collect();
        assert!(offered.iter().all(|at| !(301..700).contains(at)) && offered.contains(&700), "{offered:?}");
        assert_eq!(wire.outcomes(OperationOutcome::Refused), 0);
    }
}

#[test]
fn a_backlog_that_is_dropped_is_in_the_books() {
    let wire =
        run(2, Policy { timeout: ms(10_000), ..policy() }, &SILENT, vec![(950, FleetAction::DropBacklog { destination: None })]);
    assert_eq!(wire.outcomes(OperationOutcome::Dropped), 8, "all but the two on the wires");
    assert_eq!(acted(&wire), [(950, 0, 8)]);
    assert_eq!(wire.outcomes(OperationOutcome::Unresolved), 12);
}
