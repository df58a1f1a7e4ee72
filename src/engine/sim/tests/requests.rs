//! Faults of requests and answers in virtual time, and which requests they strike.

use super::*;

/// A plan of ten clients that send ten operations a second each, with this step from second 1 to second 2.
fn struck(step: &str) -> Plan {
    plan(&format!("timeline: [ {{ at: 1s, for: 1s, name: f, {step} }} ]\nlength: 3s\n"))
}

/// The same, whose target is served at `/b` every other time.
fn routed(step: &str) -> Plan {
    let target = "target: { service: { servers: 100, service_time: 10ms }, headers: { X-Tenant: big }, \
         routes: [{ path: /a }, { path: /b?x=1, method: POST, headers: { x-tenant: small } }] }\n";
    plan(&format!("{target}timeline: [ {{ at: 1s, for: 1s, name: f, {step} }} ]\nlength: 3s\n"))
}

#[test]
fn each_fault_of_answers_shows_as_it_does_at_a_socket() {
    use AttemptOutcome::{Malformed, Reset, Status, Success, Timeout};
    for (fault, outcomes, works) in [
        ("status: { code: 503, when: after }", vec![Status(503)], true),
        ("status: { code: 503, when: before }", vec![Status(503)], false),
        ("reset: { when: after }", vec![Reset], true),
        ("blackhole: { when: after }", vec![Timeout], true),
        ("malformed: { when: after, kind: chunk_size }", vec![Malformed], true),
        ("malformed: {}", vec![Malformed], false),
        ("truncate: {}", vec![Reset], true),
        ("truncate: { bytes: 2, share: 50% }", vec![Success, Reset], true),
        // The built-in target answers with three bytes.
        ("truncate: { bytes: 3 }", vec![Success], true),
    ] {
        let (record, events) = simulate(&struck(&format!("fault: {{ {fault} }}")));
        let during: Vec<AttemptOutcome> = ends(&events, 1_020, 1_400).into_keys().collect();
        assert_eq!(during, outcomes, "{fault}");
        assert_eq!(ends(&events, 2_600, 2_900).into_keys().collect::<Vec<_>>(), [Success], "{fault}: healed");
        let served = record.service.unwrap().of.served;
        // Clients that wait for an answer in vain send less in that second.
        assert_eq!(served > 215, works, "{fault}: the target served {served}");
        assert!(record.faults[0].touched >= 19, "{fault}: {:?}", record.faults);
    }
}

#[test]
fn a_slow_body_takes_a_pause_for_each_drop() {
    let slow = |fault: &str| ends(&simulate(&struck(fault)).1, 1_010, 1_900)[&AttemptOutcome::Success];
    let (_, least, most) = slow("fault: { slow_body: { bytes: 2, every: 5ms } }");
    assert_eq!((least, most), (us(20_240), us(20_240)), "three bytes are two drops");
    let (_, least, _) = slow("fault: { slow_body: { bytes: 3, every: 5ms } }");
    assert_eq!(least, us(15_240));
}

#[test]
fn what_nobody_knows_the_size_of_is_not_simulated() {
    let text = "target: { url: 'http://127.0.0.1:9/', model: { servers: 9, service_time: 1ms } }\n\
         timeline: [ { at: 1s, for: 1s, name: drip, fault: { slow_body: { every: 5ms } } } ]\nlength: 3s\n";
    let error = run(&plan(text), &mut Unobserved, &AtomicI32::new(0)).expect_err("it says too little").to_string();
    assert!(error.contains("`drip`") && error.contains("http://127.0.0.1:9/") && error.contains("`service:`"), "{error}");
}

#[test]
fn so_many_pass_at_once_and_the_others_wait_or_are_refused() {
    let crowd = |limit: &str| {
        plan(&format!(
            "fleets: {{ app: {{ clients: 30, policy: {{ attempts: 1, timeout: 500ms }}, load: {{ trigger: {{ at: 1500ms }} }} }} }}
timeline: [ {{ at: 1s, for: 1s, name: f, fault: {{ limit_concurrency: {{ {limit} }} }} }} ]
length: 3s\n"
        ))
    };
    let of = |limit: &str| {
        let (record, events) = simulate(&crowd(limit));
        (ends(&events, 1_000, 2_000), record.faults[0].touched)
    };
    let (seen, touched) = of("limit: 10");
    assert_eq!((seen[&AttemptOutcome::Success].0, seen[&AttemptOutcome::Status(503)].0, touched), (10, 20, 20));
    let (seen, touched) = of("limit: 10, queue: 15, status: 429");
    assert_eq!((seen[&AttemptOutcome::Success].0, seen[&AttemptOutcome::Status(429)].0, touched), (25, 5, 20));
    let (_, _, most) = seen[&AttemptOutcome::Success];
    assert!((Span::from_millis(30)..Span::from_millis(32)).contains(&most), "the last ten wait for two rounds: {most}");
    let (seen, _) = of("limit: 10, queue: 20, wait: 15ms");
    assert_eq!((seen[&AttemptOutcome::Success].0, seen[&AttemptOutcome::Status(503)].0), (20, 10), "the third ten wait too long");
    let (_, least, _) = seen[&AttemptOutcome::Status(503)];
    assert_eq!(least, us(15_120));
}

#[test]
fn a_limit_that_ends_lets_all_go_and_clients_that_give_up_make_room() {
    let text = |more: &str| {
        format!(
            "target: {{ service: {{ servers: 100, service_time: 400ms, notices_cancel: true }} }}
fleets: {{ app: {{ clients: 4, policy: {{ attempts: 1, timeout: {more} }}, load: {{ trigger: {{ at: 1500ms }} }} }} }}
timeline: [ {{ at: 1s, for: 1s, name: f, fault: {{ limit_concurrency: {{ limit: 1, queue: 9, wait: 9s }} }} }} ]
length: 4s\n"
        )
    };
    let (_, events) = simulate(&plan(&text("5s")));
    let (n, _, most) = ends(&events, 1_000, 2_000)[&AttemptOutcome::Success];
    // One after the other until second 2, then the rest at once.
    assert!(n == 4 && (Span::from_millis(899)..Span::from_millis(902)).contains(&most), "{n} {most}");
    let (record, events) = simulate(&plan(&text("300ms")));
    assert_eq!(ends(&events, 1_000, 2_000)[&AttemptOutcome::Timeout].0, 4);
    assert_eq!(record.service.unwrap().of.arrived, 1, "the others gave up in the queue, at the same moment");
}

#[test]
fn requests_are_told_apart_by_their_routes() {
    let share = |step: &str| {
        let ends = ends(&simulate(&routed(step)).1, 1_020, 1_900);
        let of = |outcome| ends.get(&outcome).map_or(0, |(n, ..)| *n);
        (of(AttemptOutcome::Status(503)), of(AttemptOutcome::Success))
    };
    let all = share("fault: { status: { code: 503 } }").0;
    assert!(all > 80);
    let (a, others) = share("match: { path: /a }, fault: { status: { code: 503 } }");
    let (b, _) = share("match: { path: /b*, method: POST }, fault: { status: { code: 503 } }");
    assert!(a + others == all && a + b == all && a > 20 && b > 20, "{a} and {b} of {all}");
    for (step, wanted) in [
        ("match: { header: { x-tenant: big } }", a),
        ("match: { header: { X-Tenant: small } }", b),
        ("match: { header: { x-tenant: '*', x-stormwake-fleet: app } }", all),
        ("match: { header: { x-stormwake-attempt: '2' } }", 0),
        ("match: { header: { idempotency-key: '*' } }", all),
        ("match: { path: /nowhere }", 0),
    ] {
        assert_eq!(share(&format!("{step}, fault: {{ status: {{ code: 503 }} }}")).0, wanted, "{step}");
    }
}

#[test]
fn every_and_first_count_requests_clients_and_connections() {
    let failed = |more: &str, fleet: &str| {
        let text = format!(
            "fleets: {{ app: {{ clients: 10, policy: {{ attempts: 1, timeout: 500ms }}, load: {{ constant: {{ rate: 100/s }} }}{fleet} }} }}
timeline: [ {{ at: 1s, for: 1s, name: f, {more}, fault: {{ status: {{ code: 503 }} }} }} ]\nlength: 3s\n"
        );
        let (record, events) = simulate(&plan(&text));
        (ends(&events, 0, 3_000).get(&AttemptOutcome::Status(503)).map_or(0, |(n, ..)| *n), record.faults[0].touched)
    };
    assert_eq!(failed("every: 4", ""), (25, 25));
    assert_eq!(failed("first: 7, per: run", ""), (7, 7));
    assert_eq!(failed("first: 2, per: client", ""), (20, 20));
    assert_eq!(failed("every: 5, per: client", ""), (20, 20));
    assert_eq!(failed("first: 2, per: connection", ""), (20, 20));
    assert_eq!(failed("first: 2, per: connection", ", connections: per_attempt"), (100, 100), "each has a connection of its own");
    assert_eq!(failed("first: 2, per: client", ", connections: per_attempt"), (20, 20));
}

#[test]
fn a_flap_rests_and_a_ramp_grows() {
    let (record, events) = simulate(&plan(
        "timeline: [ { at: 1s, for: 1s, name: f, flap: { on: 200ms, off: 300ms }, fault: { status: { code: 503 } } } ]\nlength: 3s\n",
    ));
    let failed = |from, to| ends(&events, from, to).get(&AttemptOutcome::Status(503)).map_or(0, |(n, ..)| *n);
    assert_eq!((failed(1_000, 1_200), failed(1_200, 1_500), failed(1_500, 1_700), failed(1_700, 2_000)), (20, 0, 20, 0));
    assert_eq!((record.faults.len(), record.faults[0].touched), (1, 40));
    assert_eq!(record.faults[0].to, Timestamp(2_000_000_000), "a rest is no end");
    assert_eq!(record.phases.iter().map(|phase| phase.name.as_str()).collect::<Vec<_>>(), ["steady", "f", "after f"]);

    let (_, events) = simulate(&struck("ramp: { in: 1s }, fault: { status: { code: 503 } }"));
    let failed = |from, to| ends(&events, from, to).get(&AttemptOutcome::Status(503)).map_or(0, |(n, ..)| *n);
    let (first, last) = (failed(1_000, 1_300), failed(1_700, 2_000));
    assert!(first < 12 && last > 18, "{first} and {last} of 30");
    let (_, events) = simulate(&struck("ramp: { in: 1s }, fault: { latency: { add: 40ms } }"));
    let took = |from| ends(&events, from, from + 5)[&AttemptOutcome::Success].1;
    assert!(took(1_250) > us(10_240 + 9_900) && took(1_250) < us(10_240 + 10_200), "{}", took(1_250));
    assert!(took(1_750) > us(10_240 + 29_900) && took(1_750) < us(10_240 + 30_200), "{}", took(1_750));
}

#[test]
fn a_fault_that_repeats_is_several_steps() {
    let plan = plan(
        "timeline: [ { at: 1s, for: 200ms, name: f, repeat: { every: 500ms, times: 3 }, fault: { refuse: {} } } ]\nlength: 3s\n",
    );
    let told: Vec<String> = plan.timeline.iter().map(|step| format!("{} {} {}", step.name, step.from, step.to)).collect();
    assert_eq!(told, ["f-1 1s 1s200ms", "f-2 1s500ms 1s700ms", "f-3 2s 2s200ms"]);
    assert_eq!(simulate(&plan).0.faults.len(), 3);
}

#[test]
fn what_comes_to_an_answer_survives_a_wait() {
    // The answer is to be replaced, and the request is held by a hang that lets go, and by a queue.
    let text = "fleets: { app: { clients: 2, policy: { attempts: 1, timeout: 900ms }, load: { trigger: { at: 1100ms } } } }
timeline:
  - { at: 1s, for: 1s, name: after, fault: { status: { code: 418, when: after } } }
  - { at: 1s, for: 200ms, name: hold, fault: { hang: { release: true } } }
  - { at: 1s, for: 1s, name: limit, fault: { limit_concurrency: { limit: 1, queue: 5 } } }
length: 3s\n";
    let (record, events) = simulate(&plan(text));
    assert_eq!(ends(&events, 1_000, 2_000)[&AttemptOutcome::Status(418)].0, 2);
    let touched: Vec<u64> = record.faults.iter().map(|fault| fault.touched).collect();
    assert_eq!((touched, record.service.unwrap().of.served), (vec![2, 2, 1], 2));
}
