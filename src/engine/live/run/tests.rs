use super::*;
use crate::event::AttemptOutcome;
use crate::fault::{Blackhole, Fault, Refuse, Step, TimeShape, Which};
use crate::fleet::Connections;
use crate::gate::config::{Probe, StopConfig, StopTrigger};
use crate::metrics::{Figure, RunEvent, StopReason, Window, figure};
use crate::plan::{Source, load};
use crate::time::{Span, Timestamp};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What an observer heard.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<(Vec<RunEvent>, usize)>>);

impl Observer for Heard {
    fn event(&mut self, _at: Timestamp, event: &RunEvent) {
        self.0.lock().unwrap().0.push(event.clone());
    }
    fn window(&mut self, _window: &Window, _phase: &str) {
        self.0.lock().unwrap().1 += 1;
    }
}

/// A server that answers every request with `answer` for as long as the process lives, one thread a connection.
fn server(answer: &'static [u8], pause: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream, answer, pause));
        }
    });
    addr
}

fn serve(mut stream: TcpStream, answer: &[u8], pause: Duration) {
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer).is_ok_and(|n| n > 0) {
        if !pause.is_zero() {
            // A slow server cannot be shown without time that passes.
            std::thread::park_timeout(pause);
        }
        if stream.write_all(answer).is_err() {
            return;
        }
    }
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A plan against a server, as the plan's own loader reads it.
fn plan(addr: SocketAddr, more: &str) -> Plan {
    let text = format!(
        "version: 1\nname: test\ntarget: {{ url: 'http://{addr}/' }}\n\
         fleets:\n  apps: {{ clients: 20, policy: {{ attempts: 2, timeout: 150ms, retry_on: [connect, reset, timeout, 5xx] }}, load: {{ constant: {{ rate: 200/s }} }} }}\n\
         length: 2s\n{more}"
    );
    let env = |_: &str| None;
    load(&Source { file: "test.yaml", text: &text, overrides: &[], env: &env }).unwrap_or_else(|e| panic!("{e}")).plan
}

fn carry_out(plan: Plan, shards: usize) -> (RunRecord, Vec<RunEvent>, usize) {
    let heard = Heard::default();
    let setup = RunSetup {
        plan,
        effective_yaml: String::new(),
        program: PathBuf::from("/nonexistent"),
        approve: false,
        shards: Some(shards),
        observer: Box::new(heard.clone()),
    };
    let record = run(setup).unwrap_or_else(|error| panic!("{error}"));
    let (events, windows) = heard.0.lock().unwrap().clone();
    (record, events, windows)
}

/// Every operation ends exactly once, every attempt at most once.
fn check_books(record: &RunRecord) {
    let sum = |f: &dyn Fn(&crate::metrics::Counts) -> u64| record.windows.iter().map(|w| f(&w.all)).sum::<u64>();
    let offered = sum(&|c| c.offered);
    let ended = sum(&|c| c.ended() + c.unresolved);
    assert_eq!(offered, ended, "the books");
    assert!(offered > 0, "nothing was offered");
    let attempts = sum(&|c| c.attempts);
    assert!(sum(&|c| c.by_outcome.values().sum()) <= attempts);
    assert!(sum(&|c| c.retries) <= attempts);
}

fn outcomes(record: &RunRecord, outcome: AttemptOutcome) -> u64 {
    record.windows.iter().filter_map(|w| w.all.by_outcome.get(&outcome)).sum()
}

#[test]
fn a_healthy_run_balances_its_books_whatever_the_connections_and_shards() {
    for (connections, shards) in [(Connections::KeepAlive, 1), (Connections::PerAttempt, 2)] {
        let mut plan = plan(server(OK, Duration::ZERO), "");
        plan.fleets[0].config.connections = connections;
        let (record, events, windows) = carry_out(plan, shards);
        check_books(&record);
        let offered: u64 = record.windows.iter().map(|w| w.all.offered).sum();
        assert!((390..=400).contains(&offered), "{offered}");
        assert!(outcomes(&record, AttemptOutcome::Success) + 5 >= offered, "{:?}", record.windows);
        assert_eq!((windows, record.windows.len()), (2, 2));
        let connects: u64 = record.windows.iter().map(|w| w.all.connects).sum();
        let made = if connections == Connections::KeepAlive { 0..=0 } else { offered - 5..=offered };
        assert!(made.contains(&connects), "{connections:?}: {connects}, the warm-up's apart");
        assert!(record.cleanup_confirmed && record.stopped.is_none() && record.limits_reached.is_empty(), "{record:?}");
        assert_eq!((events.first(), events.last()), (Some(&RunEvent::Started), Some(&RunEvent::Ended)));
    }
}

#[test]
fn a_slow_target_shows_in_the_latency_and_never_in_the_lag() {
    let mut plan = plan(server(OK, Duration::from_millis(60)), "");
    // 20 clients at 60 ms carry 333/s, so 200/s waits at times for a busy client.
    plan.fleets[0].policy.timeout = Span::from_secs(5);
    let (record, ..) = carry_out(plan, 2);
    check_books(&record);
    let read = |what| figure(what, &record.windows, None, record.window).expect("evidence");
    assert!(read(Figure::P50) >= 0.06, "{}", read(Figure::P50));
    assert!(read(Figure::LagP99) < 0.05, "{}", read(Figure::LagP99));
}

#[test]
fn what_an_outbox_refuses_is_a_bound_reached() {
    let mut plan = plan(server(OK, Duration::from_secs(2)), "");
    plan.fleets[0].config.outbox = 1;
    let (record, ..) = carry_out(plan, 2);
    check_books(&record);
    let refused: u64 = record.windows.iter().map(|w| w.all.refused).sum();
    let told = record.limits_reached.iter().find(|reached| reached.limit == "outbox or queue");
    assert!(refused > 0 && told.is_some_and(|told| told.count == refused), "{refused} {told:?}");
}

#[test]
fn a_timeout_cancels_retries_and_balances() {
    let (record, ..) = carry_out(plan(server(OK, Duration::from_secs(2)), ""), 2);
    check_books(&record);
    assert_eq!(outcomes(&record, AttemptOutcome::Success), 0);
    let timeouts = outcomes(&record, AttemptOutcome::Timeout);
    assert!(timeouts > 100, "{timeouts}");
    assert!(record.windows.iter().map(|w| w.all.retries).sum::<u64>() > 50);
}

#[test]
fn faults_come_and_go_at_their_time_and_are_booked() {
    let mut plan = plan(server(OK, Duration::ZERO), "");
    let step = |name: &str, from: u64, to: u64, fault| Step {
        regions: None,
        on: 0,
        name: name.into(),
        from: Timestamp(from * 1_000_000),
        to: Timestamp(to * 1_000_000),
        fault,
        fleets: None,
        destinations: None,
        which: Which::ALL,
        shape: TimeShape::FULL,
        place: Default::default(),
    };
    plan.timeline = vec![
        step("refuse", 500, 1000, Some(Fault::Refuse(Refuse {}))),
        step("hole", 1500, 9000, Some(Fault::Blackhole(Blackhole { ..blackhole() }))),
    ];
    let (record, events, _) = carry_out(plan, 2);
    check_books(&record);
    assert!(outcomes(&record, AttemptOutcome::Connect) > 20, "{:?}", record.windows);
    assert!(outcomes(&record, AttemptOutcome::Timeout) > 20, "{:?}", record.windows);
    assert_eq!(record.faults.len(), 2);
    for (fault, (from, to)) in record.faults.iter().zip([(500, 1000), (1500, 2000)]) {
        assert!(fault.from.as_millis().abs_diff(from) < 100 && fault.to.as_millis().abs_diff(to) < 100, "{fault:?}");
        assert!(fault.touched > 20, "{fault:?}");
    }
    let of = |wanted: &dyn Fn(&RunEvent) -> bool| events.iter().filter(|event| wanted(event)).count();
    assert_eq!(of(&|e| matches!(e, RunEvent::FaultStarted { .. })), 2);
    assert_eq!(of(&|e| matches!(e, RunEvent::FaultEnded { .. })), 2);
    assert!(record.cleanup_confirmed);
}

fn blackhole() -> Blackhole {
    let text = "version: 1\nname: x\ntarget: { url: 'http://127.0.0.1:1/' }\n\
         fleets: { a: { clients: 1, policy: { attempts: 1, timeout: 1s }, load: { constant: { rate: 1/s } } } }\n\
         timeline: [ { at: 1s, for: 1s, name: hole, fault: { blackhole: {} } } ]\nlength: 9s\n";
    let env = |_: &str| None;
    let plan = load(&Source { file: "x.yaml", text, overrides: &[], env: &env }).unwrap_or_else(|e| panic!("{e}")).plan;
    match &plan.timeline[0].fault {
        Some(Fault::Blackhole(hole)) => hole.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_target_that_is_down_is_a_failed_connect_and_is_named() {
    let down = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (record, events, _) = carry_out(plan(down, ""), 2);
    check_books(&record);
    assert!(outcomes(&record, AttemptOutcome::Connect) > 100, "{:?}", record.windows);
    assert_eq!(outcomes(&record, AttemptOutcome::Reset), 0);
    let named =
        |event: &&RunEvent| matches!(event, RunEvent::Warning { text } if text.contains(&format!("{down} refuses connections")));
    assert_eq!(events.iter().filter(named).count(), 1, "{events:?}");
}

#[test]
fn a_stop_condition_stops_early_and_leaves_a_whole_record() {
    let mut plan = plan(server(OK, Duration::ZERO), "");
    plan.length = Span::from_secs(60);
    plan.stop_if = vec![StopConfig {
        trigger: StopTrigger::Check { probe: Probe::Command(vec!["false".into()]), every: Span::from_millis(100) },
        lasting: Span::from_millis(300),
        place: Default::default(),
    }];
    let (record, events, _) = carry_out(plan, 2);
    check_books(&record);
    assert!(matches!(record.stopped, Some(StopReason::StopCondition(_))), "{:?}", record.stopped);
    assert!(record.ended < Timestamp(10_000_000_000) && record.cleanup_confirmed);
    assert!(events.iter().any(|event| matches!(event, RunEvent::Stopping { .. })));
    assert!(events.iter().any(|event| matches!(event, RunEvent::Check { passed: false, .. })));
}

#[test]
fn what_keeps_a_run_from_beginning_is_told() {
    let far = "192.0.2.1:80".parse().unwrap();
    let setup = |plan| RunSetup {
        plan,
        effective_yaml: String::new(),
        program: PathBuf::from("/nonexistent"),
        approve: false,
        shards: None,
        observer: Box::new(Heard::default()),
    };
    assert!(matches!(run(setup(plan(far, ""))), Err(RunError::Guard(error)) if error.is_refusal()));
    let near = server(OK, Duration::ZERO);
    let mut asking = plan(near, "");
    asking.stop_if = vec![StopConfig {
        trigger: StopTrigger::Check { probe: Probe::Http("http://192.0.2.1/alerts".into()), every: Span::from_secs(1) },
        lasting: Span::ZERO,
        place: Default::default(),
    }];
    assert!(matches!(run(setup(asking)), Err(error @ RunError::Check(_)) if error.is_refusal()));
    let mut crowd = plan(near, "");
    crowd.fleets[0].config.clients = 10_000_000;
    assert!(matches!(run(setup(crowd)), Err(RunError::Sockets(_))));
    let mut built_in = plan(near, "");
    built_in.target.url = None;
    assert!(matches!(run(setup(built_in)), Err(RunError::Target(_))));
}
