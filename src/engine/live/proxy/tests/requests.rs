//! Faults of single requests and of their answers, and which requests they strike: what a client sees, what the target sees, and what
//! the connection is good for afterwards.

use super::*;
use crate::fault::{Match, Per, Step, TimeShape, Which, matching};
use crate::time::Span;

/// A bed whose faults are these, with these targets.
fn bed_of(target: &Target, steps: Vec<Step>) -> Bed {
    Bed::with(Timeline::new(steps, 7), 1, target.upstream())
}

fn which(text: &str, which: Which) -> Step {
    Step { which, ..step(text, 1, 2, fault(text)) }
}

#[test]
fn what_comes_after_the_work_lets_the_target_do_it() {
    run(async || {
        let target = Target::start().await;
        let bed = Bed::new(&["status-after 503", "reset-after", "lose", "malformed-after"], target.upstream());
        let mut client = bed.idle().await;
        bed.on(0);
        assert_eq!(client.get("/a").await, "503 ");
        client.send_bytes(b"POST /b HTTP/1.1\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\n").await;
        assert_eq!(client.response().await, "100 ", "leave to send a body does come");
        client.send_bytes(b"abc").await;
        assert_eq!((client.response().await, target.requests()), ("503 ".to_string(), 3));
        bed.on(1);
        client.send("/c").await;
        assert!(client.is_reset().await);
        let (mut lost, mut broken) = (bed.client().await, bed.client().await);
        bed.on(2);
        lost.send("/d").await;
        until("the target has done the work", || target.requests() == 5).await;
        assert!(lost.is_silent().await);
        bed.on(3);
        broken.send("/e").await;
        let (bytes, end) = broken.rest().await;
        assert!(!bytes.starts_with(b"HTTP") && !bytes.is_empty() && end.is_none(), "{bytes:?} {end:?}");
        assert_eq!(*target.seen.borrow(), ["/", "/a", "/b", "/c", "/d", "/e"]);
        assert_eq!((0..4).map(|step| bed.timeline.touched(step)).collect::<Vec<_>>(), [2, 1, 1, 1]);
    });
}

#[test]
fn a_replaced_answer_leaves_the_connection_good_for_more() {
    run(async || {
        let target = Target::start().await;
        let steps = vec![which("status-after 500", Which { every: Some(2), ..Which::ALL })];
        let bed = bed_of(&target, steps);
        bed.on(0);
        let mut client = bed.client().await;
        let mut said = Vec::new();
        for _ in 0..6 {
            said.push(client.get("/x").await);
        }
        assert_eq!(said, ["200 /x", "500 ", "200 /x", "500 ", "200 /x", "500 "]);
        assert_eq!((target.requests(), target.open.get(), bed.timeline.touched(0)), (6, 1, 3));
    });
}

#[test]
fn a_response_that_ends_with_its_connection_is_replaced_too() {
    run(async || {
        let (upstream, _) = scripted(18, vec![b"HTTP/1.1 200 OK\r\n\r\nuntil".to_vec(), b" the end".to_vec()], true).await;
        let bed = Bed::new(&["status-after 503"], upstream);
        bed.on(0);
        let mut client = bed.client().await;
        client.send_bytes(b"GET / HTTP/1.1\r\n\r\n").await;
        let (bytes, end) = client.rest().await;
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("HTTP/1.1 503 ") && text.contains("connection: close\r\n") && end.is_none(), "{text}");
    });
}

#[test]
fn nonsense_before_the_work_keeps_the_request_from_the_target() {
    run(async || {
        let target = Target::start().await;
        let bed = Bed::new(&["malformed 0", "malformed 1", "malformed 2"], target.upstream());
        for kind in 0..3 {
            bed.on(kind);
            let mut client = bed.client().await;
            client.send("/x").await;
            let (bytes, end) = client.rest().await;
            assert_eq!((bytes.as_slice(), end), (crate::fault::Nonsense::ALL[kind as usize].bytes(), None));
        }
        assert_eq!((target.requests(), bed.timeline.touched(1)), (0, 1));
    });
}

#[test]
fn a_body_is_cut_where_it_is_longer_than_what_is_kept() {
    run(async || {
        let target = Target::start().await;
        let bed = Bed::new(&["truncate 3", "truncate-half", "truncate-rst 2"], target.upstream());
        for (fault, path, kept, ends_in_order) in
            [(0, "/abcdef", "/ab", true), (1, "/abcdef", "/ab", true), (1, "/abcdefg", "/abc", true), (2, "/abcdef", "/a", false)]
        {
            bed.on(fault);
            let mut client = bed.client().await;
            client.send(path).await;
            let (bytes, end) = client.rest().await;
            let text = String::from_utf8(bytes).unwrap();
            if ends_in_order {
                assert!(text.contains(&format!("content-length: {}\r\n", path.len())) && text.ends_with(kept), "{text:?}");
                assert_eq!((text.split_once("\r\n\r\n").unwrap().1, end), (kept, None));
            } else {
                assert_eq!(end, Some(ErrorKind::ConnectionReset));
            }
        }
        bed.on(0);
        let mut client = bed.idle().await;
        assert_eq!(client.get("/ab").await, "200 /ab", "nothing is left to cut, and the connection lives on");
        assert_eq!(client.get("/a").await, "200 /a");
        until("the cut connections are gone at the target too", || target.open.get() == 1).await;
    });
}

#[test]
fn a_body_in_chunks_or_without_a_length_is_cut_by_bytes_and_not_by_share() {
    run(async || {
        for (head, body) in [("transfer-encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"), ("", "hello, until the end")] {
            for (fault, kept) in [("truncate 4", 4), ("truncate-half", 0)] {
                let answer = format!("HTTP/1.1 200 OK\r\n{head}\r\n{body}").into_bytes();
                let (upstream, _) = scripted(18, vec![answer], false).await;
                let bed = Bed::new(&[fault], upstream);
                bed.on(0);
                let mut client = bed.client().await;
                client.send_bytes(b"GET / HTTP/1.1\r\n\r\n").await;
                let text = String::from_utf8(client.rest().await.0).unwrap();
                assert_eq!(text.split_once("\r\n\r\n").unwrap().1, &body[..kept], "{fault}");
            }
        }
    });
}

#[test]
fn a_slow_body_drips_and_loses_nothing() {
    run(async || {
        let target = Target::start().await;
        let bed = Bed::new(&["slow 20"], target.upstream());
        let mut client = bed.idle().await;
        bed.on(0);
        let begun = bed.now();
        assert_eq!(client.get("/abcdefgh").await, "200 /abcdefgh");
        let took = bed.now().since(begun);
        assert!(took >= Span::from_millis(5 * 20), "nine bytes are five drops: {took}");
        bed.off().await;
        assert_eq!(client.get("/abc").await, "200 /abc");
        assert_eq!(bed.timeline.touched(0), 1);
    });
}

#[test]
fn a_client_that_gives_up_on_a_slow_body_is_noticed() {
    run(async || {
        let target = Target::start().await;
        let bed = Bed::new(&["slow 60000"], target.upstream());
        let mut client = bed.idle().await;
        bed.on(0);
        client.send("/abc").await;
        until("it drips", || bed.timeline.touched(0) == 1).await;
        drop(client);
        until("both sides are closed", || bed.proxy.connections() == 0 && target.open.get() == 0).await;
    });
}

#[test]
fn so_many_pass_at_once_and_the_next_waits_and_those_beyond_are_refused() {
    run(async || {
        let target = Target::start().await;
        let bed = Bed::new(&["at-once 60000"], target.upstream());
        bed.on(0);
        let mut first = bed.waiting(&target).await;
        let (mut second, mut third) = (bed.client().await, bed.client().await);
        second.send("/second").await;
        until("the second waits", || bed.timeline.touched(0) == 1).await;
        assert_eq!(third.get("/third").await, "503 ");
        assert!(second.is_silent().await);
        target.let_go.notify_one();
        assert_eq!((first.response().await, second.response().await), ("200 /hold".into(), "200 /second".into()));
        assert_eq!(third.get("/again").await, "200 /again", "there is room again");
        assert_eq!((*target.seen.borrow()).join(" "), "/hold /second /again");
        assert_eq!(bed.timeline.touched(0), 2);
    });
}

#[test]
fn a_place_is_free_again_however_its_request_ended() {
    run(async || {
        let target = Target::start().await;
        let bed = Bed::new(&["at-once 60000"], target.upstream());
        bed.on(0);
        let inside = bed.waiting(&target).await;
        let mut gives_up = bed.client().await;
        gives_up.send("/gives-up").await;
        until("it waits", || bed.timeline.touched(0) == 1).await;
        drop(gives_up);
        until("it has left", || bed.proxy.connections() == 1).await;
        let mut next = bed.client().await;
        next.send("/next").await;
        until("the next one waits in its place", || bed.timeline.touched(0) == 2).await;
        drop(inside);
        assert_eq!(next.response().await, "200 /next");
        assert_eq!(*target.seen.borrow(), ["/hold", "/next"]);
    });
}

#[test]
fn who_waits_too_long_is_refused_and_who_waits_at_its_end_goes_on() {
    run(async || {
        let target = Target::start().await;
        let bed = Bed::new(&["at-once 30", "at-once 60000"], target.upstream());
        bed.on(0);
        let _inside = bed.waiting(&target).await;
        assert_eq!(bed.client().await.get("/late").await, "503 ");
        bed.on(1);
        let _other = bed.waiting(&target).await;
        let mut waits = bed.client().await;
        waits.send("/waits").await;
        until("it waits", || bed.timeline.touched(1) == 1).await;
        bed.off().await;
        assert_eq!(waits.response().await, "200 /waits");
    });
}

#[test]
fn what_waits_for_a_place_meets_what_begins_meanwhile() {
    run(async || {
        let target = Target::start().await;
        let limit = step("limit", 1, 4, fault("at-once 60000"));
        let bed = bed_of(&target, vec![limit, step("no", 2, 3, fault("status 418")), step("cut", 3, 4, fault("reset"))]);
        bed.on(0);
        let mut inside = bed.waiting(&target).await;
        let mut waits = bed.client().await;
        waits.send("/waits").await;
        until("it waits", || bed.timeline.touched(0) == 1).await;
        bed.on(1);
        target.let_go.notify_one();
        assert_eq!((inside.response().await, waits.response().await), ("200 /hold".into(), "418 ".into()));
        inside.send("/again").await;
        assert_eq!(inside.response().await, "418 ");
        bed.on(0);
        let _inside = bed.waiting(&target).await;
        waits.send("/waits").await;
        until("it waits again", || bed.timeline.touched(0) == 2).await;
        bed.on(2);
        assert!(waits.is_reset().await, "a reset strikes who waits, too");
    });
}

#[test]
fn requests_are_told_apart_by_their_heads() {
    run(async || {
        let target = Target::start().await;
        let of = |path: Option<&str>, method: Option<&str>| Match {
            method: method.map(Into::into),
            path: path.map(Into::into),
            header: Default::default(),
        };
        let by = |text, of| which(text, Which { r#match: Some(of), ..Which::ALL });
        let bed = bed_of(&target, vec![by("status 418", of(Some("/pay*"), None)), by("status 503", of(None, Some("POST")))]);
        bed.on(0);
        let mut client = bed.client().await;
        for (path, said) in [("/pay", "418 "), ("/payments?x=1", "418 "), ("/", "200 /"), ("/x/pay", "200 /x/pay")] {
            assert_eq!(client.get(path).await, said);
        }
        client.send_bytes(b"POST /x HTTP/1.1\r\ncontent-length: 0\r\n\r\n").await;
        assert_eq!(client.response().await, "503 ");
        assert_eq!(target.requests(), 2);
    });
}

#[test]
fn a_fault_that_looks_at_requests_spares_idle_connections_and_strikes_what_is_in_flight() {
    run(async || {
        let target = Target::start().await;
        let held = matching::Match { method: None, path: Some("/hold".into()), header: Default::default() };
        let bed = bed_of(&target, vec![which("reset", Which { r#match: Some(held), ..Which::ALL })]);
        let (mut idle, mut busy) = (bed.idle().await, bed.waiting(&target).await);
        bed.on(0);
        assert!(busy.is_reset().await);
        assert_eq!(idle.get("/other").await, "200 /other");
        idle.send("/hold").await;
        assert!(idle.is_reset().await);
        assert_eq!((bed.timeline.touched(0), target.requests()), (2, 3));
    });
}

#[test]
fn the_first_few_of_each_connection_or_client_fail() {
    run(async || {
        let target = Target::start().await;
        let first = |per| which("status 503", Which { first: Some(2), per: Some(per), ..Which::ALL });
        for (per, wanted) in [(Per::Run, "503 503 200 200 200 200"), (Per::Connection, "503 503 200 503 503 200")] {
            let bed = bed_of(&target, vec![first(per)]);
            bed.on(0);
            let mut said = Vec::new();
            for _ in 0..2 {
                let mut client = bed.client().await;
                for _ in 0..3 {
                    said.push(client.get("/").await[..3].to_string());
                }
            }
            assert_eq!(said.join(" "), wanted);
        }
        let bed = bed_of(&target, vec![first(Per::Client)]);
        bed.on(0);
        let mut said = Vec::new();
        for name in ["a/1", "a/2", "a/1", "a/1", "a/2"] {
            let head = format!("GET / HTTP/1.1\r\nx-stormwake-client: {name}\r\n\r\n");
            let mut client = bed.client().await;
            client.send_bytes(head.as_bytes()).await;
            said.push(client.response().await[..3].to_string());
        }
        assert_eq!(said.join(" "), "503 503 503 200 503", "of a client by its name, on whichever connection");
    });
}

#[test]
fn a_flap_lets_go_in_its_rest_and_a_ramp_begins_with_nobody() {
    run(async || {
        let target = Target::start().await;
        let flap = crate::fault::Flap { on: Span::from_secs(1), off: Span::from_secs(1) };
        let flaps = TimeShape { flap: Some(flap), ..TimeShape::FULL };
        let hang = Step { shape: flaps, ..step("hang", 1, 9, fault("hang-release")) };
        let ramp = crate::fault::Ramp { r#in: Span::from_secs(3600), out: Span::ZERO };
        let ramps = TimeShape { ramp: Some(ramp), ..TimeShape::FULL };
        let none = Step { shape: ramps, from: Timestamp::ZERO, to: at(7_200), ..step("none", 0, 1, fault("status 503")) };
        let bed = bed_of(&target, vec![hang, none]);
        bed.on(0);
        let mut client = bed.client().await;
        client.send("/held").await;
        assert!(client.is_silent().await);
        bed.on(1);
        assert_eq!(client.response().await, "200 /held", "it rests");
        bed.on(2);
        client.send("/again").await;
        assert!(client.is_silent().await);
        bed.on(3);
        assert_eq!((client.response().await, bed.timeline.touched(0)), ("200 /again".into(), 2));
        assert_eq!(
            bed.timeline.touched(1),
            0,
            "the first seconds of an hour's ramp strike nobody whose dice are no lower than that"
        );
    });
}
