//! What a tap hears of requests on real sockets: each once, however its bytes are cut and however it ends.

use super::h2::{Asked, Fed, Peer, Target2, fed, piece};
use super::*;
use crate::fault::timeline::tests::step;
use crate::metrics::{TapRecord, TapWindow};
use crate::time::Span;

/// A bed whose proxy has a tap, with a window that is longer than any test.
fn tapped(faults: &[&str], upstream: Upstream, by_path: bool) -> Bed {
    let steps = (1..).zip(faults).map(|(n, text)| step(text, n, n + 1, fault(text))).collect();
    let (timeline, clock) = (Timeline::new(steps, 7), LiveClock::starting_now());
    let proxy = Proxy::bind(setup(&timeline, vec![Origin::from(0)], 1, upstream, clock.clone())).expect("ports");
    let tap = Tap::new(Span::from_secs(3600), Span::from_secs(60), by_path);
    let proxy = Arc::new(proxy.with_tap(tap));
    tokio::task::spawn_local(proxy.clone().serve(0));
    Bed { proxy, timeline, clock }
}

impl Bed {
    fn tap(&self) -> TapRecord {
        self.proxy.tap().expect("it has a tap").record("provider", self.now())
    }

    fn seen(&self) -> TapWindow {
        self.tap().windows.remove(0)
    }
}

fn post(fields: &str, body: &str) -> Vec<u8> {
    format!("POST /charge HTTP/1.1\r\nhost: x\r\n{fields}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

#[test]
fn repeats_are_told_by_key_or_body_however_the_bytes_come() {
    run(async || {
        let target = Target::start().await;
        let bed = tapped(&[], target.upstream(), false);
        let big = "x".repeat(crate::metrics::tap::MOST_BODY + 1);
        let key = |n: u32| format!("idempotency-key: k{n}\r\n");
        for (name, bytes, repeats, unknown) in [
            ("a key", post(&key(1), "one"), 0, 0),
            ("another", post(&key(2), "one"), 0, 0),
            ("the same again", post(&key(1), "two"), 1, 0),
            ("a body", post("", "one"), 1, 0),
            ("another body", post("", "two"), 1, 0),
            ("the same body", post("x-request-id: 7\r\n", "one"), 2, 0),
            ("chunks", b"POST /charge HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n".to_vec(), 2, 0),
            (
                "the same chunks",
                b"POST /charge HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n".to_vec(),
                3,
                0,
            ),
            ("neither", b"GET /charge HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(), 3, 1),
            ("too long a body", post("", &big), 3, 2),
            ("the same with a key", post(&key(3), &big), 3, 2),
        ] {
            // Each on a connection of its own: the target knows no chunks, and takes them for another request.
            let mut client = bed.client().await;
            for piece in bytes.chunks(if name.len() % 2 == 0 { bytes.len() } else { bytes.len() / 2 + 1 }) {
                client.send_bytes(piece).await;
                tokio::task::yield_now().await;
            }
            assert_eq!(client.response().await, "200 /charge", "{name}");
            // The target answers a head, which may be before the body has passed.
            until(name, || (bed.seen().repeats, bed.seen().unknown) == (repeats, unknown)).await;
        }
        assert_eq!((bed.seen().requests, bed.seen().connects), (11, 11));
    });
}

#[test]
fn where_the_plan_says_so_path_and_method_are_enough() {
    run(async || {
        let target = Target::start().await;
        let bed = tapped(&[], target.upstream(), true);
        let mut client = bed.client().await;
        for path in ["/order?1", "/order?2", "/order?1"] {
            assert_eq!(client.get(path).await, format!("200 {path}"));
        }
        let seen = bed.seen();
        assert_eq!((seen.requests, seen.repeats, seen.unknown, seen.connects), (3, 1, 0, 1));
        assert_eq!((seen.statuses[&200], seen.latency.count(), seen.in_flight), (3, 3, 0));
    });
}

#[test]
fn every_end_is_told_and_what_has_none_is_in_flight() {
    run(async || {
        let target = Target::start().await;
        let bed = tapped(&["status 503", "reset", "hang"], target.upstream(), true);
        let mut waiting = bed.waiting(&target).await;
        assert_eq!(bed.seen().in_flight, 1);
        bed.on(0);
        assert_eq!(bed.client().await.get("/a").await, "503 ");
        target.let_go.notify_one();
        assert_eq!(waiting.response().await, "200 /hold");
        bed.on(1);
        let mut struck = bed.client().await;
        struck.send("/a").await;
        assert!(struck.is_reset().await);
        bed.on(2);
        let mut hung = bed.client().await;
        hung.send("/a").await;
        assert!(hung.is_silent().await);
        assert_eq!((bed.seen().in_flight, bed.seen().unanswered), (1, 0), "it waits for as long as its client does");
        drop(hung);
        until("its client has gone", || bed.seen().unanswered == 1).await;
        let seen = bed.seen();
        assert_eq!((seen.requests, seen.repeats, seen.resets, seen.in_flight), (4, 2, 1, 0));
        assert_eq!(seen.statuses, [(200, 1), (503, 1)].into());
        assert_eq!([0, 1, 2].map(|step| bed.timeline.touched(step)), [1, 2, 1], "the reset met the idle connection too");
    });
}

#[test]
fn at_a_tap_nothing_in_a_request_makes_it_ours() {
    run(async || {
        let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
        let bed = tapped(&[], Upstream::at(nobody), false);
        let mut client = bed.client().await;
        client.send_ours(7).await;
        assert!(client.is_reset().await, "a client of ours would be told with a mark that only it reads");
        let seen = bed.seen();
        assert_eq!((seen.requests, seen.unreached, seen.resets, seen.unknown), (1, 1, 0, 0));
    });
}

#[test]
fn an_answer_is_one_once_it_is_whole() {
    for (pieces, close, answered) in [
        (vec![&b"HTTP/1.1 200 OK\r\ncontent-len"[..], b"gth: 4\r\n\r\nab", b"cd"], false, true),
        (vec![b"HTTP/1.1 200 OK\r\n\r\nuntil it closes"], true, true),
        (vec![b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\ncut"], true, false),
        (vec![], true, false),
    ] {
        run(async || {
            let request = post("idempotency-key: a\r\nconnection: close\r\n", "one");
            let pieces = pieces.iter().map(|piece| piece.to_vec()).collect();
            let (upstream, _reading) = scripted(request.len(), pieces, close).await;
            let bed = tapped(&[], upstream, false);
            let mut client = bed.client().await;
            client.send_bytes(&request).await;
            let ended = |seen: TapWindow| seen.statuses.values().sum::<u64>() + seen.unanswered + seen.resets;
            until("it has ended", || ended(bed.seen()) == 1).await;
            assert_eq!(bed.seen().statuses.get(&200) == Some(&1), answered, "{:?}", bed.seen());
        });
    }
}

/// A request on a stream, with a key or a body.
fn charge(peer: &Peer, key: Option<&str>, body: &str) -> Asked {
    let request = hyper::Request::builder().method("POST").uri("http://provider.test/echo");
    let request = key.iter().fold(request, |request, key| request.header("idempotency-key", *key));
    let (feed, rest) = fed();
    if !body.is_empty() {
        feed.send(piece(body)).expect("it is read");
    }
    peer.send(request.body(rest).expect("a request"))
}

#[test]
fn streams_are_heard_as_requests_are() {
    run(async || {
        let target = Target2::start().await;
        let bed = tapped(&["status 503"], target.upstream(), false);
        let peer = Peer::to(&bed).await;
        let big = "x".repeat(crate::metrics::tap::MOST_BODY + 1);
        for (name, key, body, repeats, unknown) in [
            ("a key", Some("1"), "one", 0, 0),
            ("the same again", Some("1"), "two", 1, 0),
            ("a body", None, "one", 1, 0),
            ("another body", None, "two", 1, 0),
            ("the same body", None, "one", 2, 0),
            ("too long a body", None, big.as_str(), 2, 1),
        ] {
            assert_eq!(charge(&peer, key, body).text().await, format!("200 {body}"), "{name}");
            until(name, || (bed.seen().repeats, bed.seen().unknown) == (repeats, unknown)).await;
        }
        bed.on(0);
        assert_eq!(charge(&peer, None, "two").text().await, "503 ", "answered before its body has come");
        until("it is heard all the same", || bed.seen().repeats == 3).await;
        assert_eq!(peer.send(hyper::Request::new(Fed::Nothing)).text().await, "503 ");
        until("all have ended", || bed.seen().in_flight == 0).await;
        let seen = bed.seen();
        assert_eq!((seen.requests, seen.unknown, seen.connects), (8, 2, 1));
        assert_eq!(seen.statuses, [(200, 6), (503, 2)].into());
    });
}

#[test]
fn every_end_of_a_stream_is_told_and_one_that_has_none_is_in_flight() {
    run(async || {
        let target = Target2::start().await;
        let bed = tapped(&["truncate 2", "malformed 0", "reset-half", "hang", "reset"], target.upstream(), false);
        let peer = Peer::to(&bed).await;
        let ends = |bed: &Bed| (bed.seen().resets, bed.seen().unanswered, bed.seen().in_flight);
        bed.on(0);
        assert_eq!(charge(&peer, Some("a"), "whole").text().await, "200 wh");
        until("it was cut", || ends(&bed) == (0, 1, 0)).await;
        bed.on(1);
        charge(&peer, Some("a"), "one").text().await;
        until("it is reset", || ends(&bed) == (1, 1, 0)).await;
        bed.on(2);
        for key in 0..20 {
            charge(&peer, Some(&key.to_string()), "one").text().await;
        }
        let resets = bed.timeline.touched(2);
        assert!((3..=17).contains(&resets), "{resets}");
        until("each of them is told", || ends(&bed) == (1 + resets, 1, 0)).await;
        bed.on(3);
        let mut hung = charge(&peer, None, "never answered");
        assert!(hung.is_silent().await);
        assert_eq!(ends(&bed), (1 + resets, 1, 1));
        drop(hung);
        until("its client has gone", || ends(&bed) == (1 + resets, 2, 0)).await;
        assert_eq!(bed.seen().unknown, 0, "its body was heard");
        bed.off().await;
        let waiting = peer.ask("/hold");
        until("it is under way", || bed.seen().in_flight == 1).await;
        bed.on(4);
        waiting.text().await;
        until("it went with its connection", || ends(&bed) == (2 + resets, 2, 0)).await;
    });
}
