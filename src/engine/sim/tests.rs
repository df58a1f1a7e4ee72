mod requests;

use super::*;
use crate::engine::Unobserved;
use crate::event::{AttemptOutcome, Event};
use crate::fleet::Connections;
use crate::metrics::{Counts, RunEvent, StopReason, Window};
use crate::plan::{Source, load};
use crate::time::{Span, Timestamp};
use std::collections::BTreeMap;

/// A plan of ten clients that send ten operations a second each, answered after 10 ms, with one attempt each.
fn plan(more: &str) -> Plan {
    let head = "version: 1\nname: test\nseed: 5\n";
    let target = if more.contains("target:") { "" } else { "target: { service: { servers: 100, service_time: 10ms } }\n" };
    let fleets = if more.contains("fleets:") {
        ""
    } else {
        "fleets: { app: { clients: 10, policy: { attempts: 1, timeout: 500ms }, load: { constant: { rate: 100/s } } } }\n"
    };
    let text = format!("{head}{target}{fleets}{more}");
    load(&Source { file: "test.yaml", text: &text, overrides: &[], env: &|_| None })
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
        .plan
}

fn simulate(plan: &Plan) -> (RunRecord, Vec<Event>) {
    let (record, _, EventList(events)) =
        run_on::<Buckets, _>(plan, &mut Unobserved, &AtomicI32::new(0), EventList::default()).unwrap();
    (record, events)
}

fn sum(record: &RunRecord, of: impl Fn(&Counts) -> u64) -> u64 {
    record.windows.iter().map(|window| of(&window.all)).sum()
}

/// Ended attempts that were sent in a stretch of milliseconds, by outcome, with the shortest and longest that one took.
fn ends(events: &[Event], from: u64, to: u64) -> BTreeMap<AttemptOutcome, (u64, Span, Span)> {
    let mut seen = BTreeMap::new();
    for event in events {
        let Event::Ended { sent, at, outcome, .. } = event else { continue };
        if (from..to).contains(&sent.as_millis()) {
            let took = at.since(*sent);
            let (n, least, most) = seen.entry(*outcome).or_insert((0, took, took));
            (*n, *least, *most) = (*n + 1, took.min(*least), took.max(*most));
        }
    }
    seen
}

fn us(micros: u64) -> Span {
    Span::from_micros(micros)
}

#[test]
fn an_attempt_crosses_each_hop_twice_and_the_first_one_opens_the_way_to_the_target() {
    let (record, events) = simulate(&plan("length: 2s\n"));
    // 2 × 60 µs on either hop and 10 ms; the first of each client opens a connection to the target, there and back.
    assert_eq!(ends(&events, 0, 100)[&AttemptOutcome::Success], (10, us(10_360), us(10_360)));
    assert_eq!(ends(&events, 100, 1_900)[&AttemptOutcome::Success], (180, us(10_240), us(10_240)));
    // The last one is on its way back at the end.
    let service = record.service.clone().unwrap();
    assert_eq!((sum(&record, |c| c.offered), service.of.arrived, service.of.served), (200, 200, 199));
}

#[test]
fn connections_that_are_kept_are_made_again_only_where_they_were_lost() {
    let connects = |more: &str| {
        let (record, _) = simulate(&plan(more));
        let each: Vec<u64> = record.windows.iter().map(|window| window.all.connects).collect();
        (each, sum(&record, |c| c.attempts))
    };
    assert_eq!(connects("length: 3s\n"), (vec![0, 0, 0], 300));
    // One that is refused comes to no connection, and the ten clients connect again when they can.
    let refused = "timeline: [ { at: 1s, for: 1s, name: f, fault: { refuse: {} } } ]\nlength: 3s\n";
    assert_eq!(connects(refused).0, [0, 0, 10]);
    // A client that gives an attempt up closes its connection, and makes another one for the next.
    let timed_out = "timeline: [ { at: 1s, for: 1s, name: f, fault: { blackhole: {} } } ]\nlength: 4s\n";
    let (each, _) = connects(timed_out);
    assert!(each[0] == 0 && each[1] + each[2] >= 10 && each[3] == 0, "{each:?}");
    let mut plan = plan("length: 2s\n");
    plan.fleets[0].config.connections = Connections::PerAttempt;
    let (record, _) = simulate(&plan);
    assert_eq!(sum(&record, |c| c.connects), sum(&record, |c| c.attempts));
}

#[test]
fn each_fault_shows_as_it_does_at_a_socket() {
    use AttemptOutcome::{Connect, Reset, Status, Success, Timeout};
    for (fault, outcomes) in [
        ("refuse: {}", vec![Connect]),
        ("reset: {}", vec![Reset]),
        ("close: {}", vec![Reset]),
        ("hang: {}", vec![Timeout]),
        ("blackhole: {}", vec![Timeout]),
        ("blackhole: { share: 50% }", vec![Success, Timeout]),
        ("status: { code: 503 }", vec![Status(503)]),
        ("latency: { add: 100ms }", vec![Success]),
        ("latency: { add: 50ms, jitter: 20ms, distribution: lognormal }", vec![Success]),
        ("rate_limit: { rate: 20/s, burst: 1 }", vec![Success, Status(429)]),
    ] {
        let faulty = plan(&format!("timeline: [ {{ at: 1s, for: 1s, name: f, fault: {{ {fault} }} }} ]\nlength: 3s\n"));
        let (record, events) = simulate(&faulty);
        let during: Vec<AttemptOutcome> = ends(&events, 1_020, 1_400).into_keys().collect();
        assert_eq!(during, outcomes, "{fault}");
        assert_eq!(ends(&events, 2_600, 2_900).into_keys().collect::<Vec<_>>(), [Success], "{fault}: healed");
        assert!(record.faults[0].touched >= 19, "{fault}: {:?}", record.faults);
        assert_eq!((record.faults[0].from, record.faults[0].to), (Timestamp(1_000_000_000), Timestamp(2_000_000_000)));
    }
}

#[test]
fn what_a_hang_releases_goes_on_when_it_ends() {
    let held = plan("timeline: [ { at: 1s, for: 300ms, name: f, fault: { hang: { release: true } } } ]\nlength: 3s\n");
    let (_, events) = simulate(&held);
    let (n, least, most) = ends(&events, 1_000, 1_300)[&AttemptOutcome::Success];
    // The first of each client; the others wait for it.
    let ms = Span::from_millis;
    assert!(n >= 9 && least > ms(200) && (ms(300)..ms(315)).contains(&most), "{n} {least} {most}");
    // In flight when it began: the answer waits at the proxy.
    let (_, _, most) = ends(&events, 985, 1_000)[&AttemptOutcome::Success];
    assert!(most >= Span::from_millis(300), "{most}");
}

#[test]
fn a_reset_that_begins_ends_what_is_in_flight_and_what_is_idle() {
    let (record, events) = simulate(&plan("timeline: [ { at: 1s, for: 100us, name: f, fault: { reset: {} } } ]\nlength: 2s\n"));
    assert_eq!(ends(&events, 985, 1_000)[&AttemptOutcome::Reset].0, 1);
    assert_eq!(record.faults[0].touched, 10, "every connection");
    // Each client opens another connection, 120 µs, and the proxy with it.
    assert_eq!(ends(&events, 1_005, 1_095)[&AttemptOutcome::Success].1, us(10_480));
}

#[test]
fn a_target_that_notices_hears_of_clients_that_have_gone() {
    let counts = |notices: bool| {
        let more = format!(
            "target: {{ service: {{ servers: 1, service_time: 300ms, notices_cancel: {notices} }} }}
fleets: {{ app: {{ clients: 10, policy: {{ attempts: 1, timeout: 100ms }}, load: {{ constant: {{ rate: 100/s }} }} }} }}
length: 2s\n"
        );
        simulate(&plan(&more)).0.service.unwrap()
    };
    assert!(counts(true).of.cancelled > 90 && counts(true).of.wasted.as_secs_f64() > 1.8, "{:?}", counts(true));
    assert!(counts(false).of.served >= 6, "{:?}", counts(false));
}

#[test]
fn both_queues_make_the_same_run_and_a_run_repeats() {
    let storm = plan(
        "target: { service: { servers: 2, service_time: { exponential: { mean: 10ms } }, queue: 50 } }
fleets:
  app: { clients: 200, policy: { attempts: 4, timeout: 300ms, backoff: { exponential: { base: 50ms, cap: 1s, jitter: full } } }, load: { poisson: { rate: 150/s } } }
  old: { clients: 20, policy: { attempts: 2, timeout: 300ms }, load: { closed: { think: 500ms } }, connections: per_attempt }
network: { latency: { p50: 1ms, p99: 20ms }, reset: 1% }
timeline: [ { at: 2s, for: 1s, name: f, fault: { blackhole: { share: 80% } } } ]
length: 5s\n",
    );
    for seed in 0..5 {
        let storm = Plan { seed, ..storm.clone() };
        fn hash<Q: Queues>(plan: &Plan) -> (u64, Effort) {
            let ran = run_on::<Q, _>(plan, &mut Unobserved, &AtomicI32::new(0), EventHash::default()).unwrap();
            (ran.2.value(), ran.1)
        }
        assert_eq!(hash::<Buckets>(&storm), hash::<Heaps>(&storm), "seed {seed}");
        assert_eq!(hash::<Buckets>(&storm), hash::<Buckets>(&storm), "seed {seed}");
        assert_ne!(hash::<Buckets>(&storm).0, hash::<Buckets>(&Plan { seed: seed + 1, ..storm.clone() }).0);
    }
}

#[test]
fn another_policy_meets_the_same_arrivals() {
    let offered = |policy: &str| {
        let storm = plan(&format!(
            "fleets: {{ app: {{ clients: 30, policy: {{ timeout: 100ms, {policy} }}, load: {{ poisson: {{ rate: 100/s }} }} }} }}
timeline: [ {{ at: 1s, for: 1s, name: f, fault: {{ status: {{ code: 503, share: 50% }} }} }} ]
length: 3s\n"
        ));
        let (_, events) = simulate(&storm);
        let offered: Vec<_> = events.iter().filter(|event| matches!(event, Event::Offered { .. })).copied().collect();
        let first: BTreeMap<_, _> = events
            .iter()
            .filter_map(|event| match event {
                Event::Ended { operation, attempt: 1, outcome, .. } => Some((*operation, *outcome)),
                _ => None,
            })
            .collect();
        let mut offered: Vec<_> = offered
            .into_iter()
            .filter_map(|event| if let Event::Offered { operation, at } = event { Some((operation, at)) } else { None })
            .collect();
        offered.sort_unstable();
        (offered, first)
    };
    let (none, many) = (offered("attempts: 1"), offered("attempts: 5, backoff: { fixed: { delay: 20ms } }"));
    assert_eq!(none.0, many.0, "arrivals");
    let differ = none.1.iter().filter(|(operation, outcome)| many.1.get(operation) != Some(outcome)).count();
    assert!(differ * 50 < none.1.len(), "first attempts roll the same dice, but for those at the border of a change: {differ}");
}

#[test]
fn nothing_is_simulated_without_a_model() {
    let url = |more: &str| {
        let text = format!(
            "version: 1\nname: t\ntarget: {{ url: 'http://127.0.0.1:9/'{more} }}
fleets: {{ a: {{ clients: 1, policy: {{ attempts: 1, timeout: 1s }}, load: {{ constant: {{ rate: 5/s }} }} }} }}\nlength: 2s\n"
        );
        let plan =
            load(&Source { file: "t.yaml", text: &text, overrides: &[], env: &|_| None }).unwrap_or_else(|e| panic!("{e}")).plan;
        run(&plan, &mut Unobserved, &AtomicI32::new(0))
    };
    let error = url("").unwrap_err().to_string();
    assert!(error.contains("http://127.0.0.1:9/") && error.contains("`model:`") && error.contains("calibrate"), "{error}");
    let record = url(", model: { servers: 1, service_time: 5ms }").unwrap();
    assert_eq!(sum(&record, |c| c.succeeded), 10);
}

#[test]
fn faults_of_bytes_are_not_simulated() {
    for fault in
        ["bandwidth: { rate: 1KB/s }", "slicer: { size: 1KB }", "limit_data: { bytes: 1KB }", "slow_close: { delay: 1s }"]
            .into_iter()
            .chain(["loss: { share: 1% }", "half_open: {}", "stall: {}"])
    {
        let harmed = plan(&format!("timeline: [ {{ at: 1s, for: 1s, name: thin, fault: {{ {fault} }} }} ]\nlength: 3s\n"));
        let error = run(&harmed, &mut Unobserved, &AtomicI32::new(0)).unwrap_err().to_string();
        let kind = fault.split(':').next().unwrap();
        assert!(error.contains("`thin`") && error.contains(&format!("`{kind}`")) && error.contains("`stormwake run`"), "{error}");
    }
}

/// What an observer heard.
#[derive(Default)]
struct Heard(Vec<(Timestamp, RunEvent)>, usize);

impl Observer for Heard {
    fn event(&mut self, at: Timestamp, event: &RunEvent) {
        self.0.push((at, event.clone()));
    }
    fn window(&mut self, _: &Window, _: &str) {
        self.1 += 1;
    }
}

#[test]
fn an_observer_hears_every_window_and_change_once() {
    let mut heard = Heard::default();
    let plan = plan("timeline: [ { at: 1s, for: 1s, name: f, fault: { hang: {} } } ]\nlength: 4s\n");
    run(&plan, &mut heard, &AtomicI32::new(0)).unwrap();
    let told: Vec<(u64, &str)> = heard
        .0
        .iter()
        .map(|(at, event)| {
            let what = match event {
                RunEvent::Started => "started",
                RunEvent::Ended => "ended",
                RunEvent::PhaseStarted { .. } => "phase",
                RunEvent::FaultStarted { .. } => "fault on",
                RunEvent::FaultEnded { touched, .. } => {
                    assert!(*touched >= 19);
                    "fault off"
                }
                other => panic!("{other:?}"),
            };
            (at.as_millis(), what)
        })
        .collect();
    let wanted = [
        (0, "started"),
        (0, "phase"),
        (1000, "fault on"),
        (1000, "phase"),
        (2000, "fault off"),
        (2000, "phase"),
        (4000, "ended"),
    ];
    assert_eq!((told, heard.1), (wanted.to_vec(), 4));
}

#[test]
fn a_stop_condition_and_a_signal_end_a_run_with_a_whole_record() {
    let stopping = plan("stop_if: [ { attempts: \"> 50/s\", for: 2s } ]\nlength: 60s\n");
    let (record, _) = simulate(&stopping);
    assert!(matches!(record.stopped, Some(StopReason::StopCondition(_))), "{:?}", record.stopped);
    assert_eq!((record.ended.as_millis(), record.windows.len()), (2_000, 2));
    let ended = sum(&record, |c| c.succeeded + c.failed + c.unresolved);
    assert_eq!(sum(&record, |c| c.offered), ended);
    let record = run(&plan("length: 60s\n"), &mut Unobserved, &AtomicI32::new(2)).unwrap();
    assert_eq!((record.stopped, record.ended.as_millis()), (Some(StopReason::Signal(2)), 0));
}

#[test]
fn time_that_stands_still_and_a_signal_within_a_window_end_a_run() {
    let still = plan(
        "network: { connect: 0s }
fleets: { app: { clients: 1, policy: { attempts: unlimited, deadline: 10s, timeout: 1s }, load: { constant: { rate: 1/s } } } }
timeline: [ { at: 1s, for: 2s, name: f, fault: { refuse: {} } } ]
length: 4s\n",
    );
    let mut slow = still.clone();
    slow.network.config.connect = crate::service::ServiceTime::Constant(us(100));
    let (record, effort, ()) = run_on::<Buckets, _>(&slow, &mut Unobserved, &AtomicI32::new(0), ()).unwrap();
    // Ten thousand refusals a second: within the bound.
    assert!(effort.live_events > 15_000 && record.stopped.is_none(), "{effort:?} {:?}", record.stopped);
    let mut crowd = still;
    crowd.fleets[0].config.clients = 8;
    crowd.fleets[0].config.load = crate::load::Load::Constant(crate::load::Constant {
        rate: Some(crate::time::Rate::per_second(8.0).unwrap()),
        each: None,
    });
    let (record, ..) = run_on::<Buckets, _>(&crowd, &mut Unobserved, &AtomicI32::new(0), ()).unwrap();
    let Some(StopReason::Internal(why)) = &record.stopped else { panic!("{:?}", record.stopped) };
    assert!(why.contains("virtual time hardly moves") && why.contains("8 clients"), "{why}");
    assert!(record.ended < Timestamp(4_000_000_000) && !record.windows.is_empty());
}

#[test]
fn the_service_changes_at_its_moments_and_what_comes_meanwhile_bears_witness() {
    let changing = plan(
        "timeline:
  - { at: 2s, for: 1s, name: next, service: { limiter: { token_bucket: { rate: 50/s } } } }
  - { at: 1s, for: 1s, name: weak, service: { limiter: { sliding_log: { limit: 20, window: 1s } } } }
  - { at: 4s, name: lasting, service: { limiter: { sliding_log: { limit: 10, window: 1s } } } }
length: 5s\n",
    );
    let mut heard = Heard::default();
    let (record, _, EventList(events)) =
        run_on::<Buckets, _>(&changing, &mut heard, &AtomicI32::new(0), EventList::default()).unwrap();
    let limited = |second: u64| {
        ends(&events, second * 1000, second * 1000 + 900).get(&AttemptOutcome::Status(429)).map_or(0, |seen| seen.0)
    };
    let by_second: Vec<u64> = (0..5).map(limited).collect();
    assert!(
        by_second[0] == 0 && by_second[1] >= 70 && (35..60).contains(&by_second[2]) && by_second[3] == 0 && by_second[4] >= 75,
        "{by_second:?}"
    );
    let faults: Vec<_> = record.faults.iter().map(|fault| (fault.name.as_str(), fault.kind, fault.touched)).collect();
    assert_eq!(faults, [("next", "service", 100), ("weak", "service", 100)]);
    let told = heard.0.iter().filter_map(|(at, event)| match event {
        RunEvent::Acted { action } => Some((at.as_millis(), action.name.as_str(), action.detail.as_str())),
        _ => None,
    });
    let wanted = [
        (1000, "weak", "limiter sliding_log"),
        (2000, "weak-end", "limiter off"),
        (2000, "next", "limiter token_bucket"),
        (3000, "next-end", "limiter off"),
        (4000, "lasting", "limiter sliding_log"),
    ];
    assert_eq!(told.collect::<Vec<_>>(), wanted);
    let phases: Vec<&str> = record.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(phases, ["steady", "weak", "next", "after next"]);
}
