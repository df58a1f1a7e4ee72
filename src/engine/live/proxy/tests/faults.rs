//! Each fault on new, idle and busy connections, and what is left of it when it has ended.

use super::*;
use crate::fault::{Origin, Request, Step};
use crate::time::Span;

#[test]
fn refuse_closes_the_port_and_live_connections_and_opens_it_again() {
    run(async || {
        let target = Target::start().await;
        let bed = Bed::new(&["refuse"], target.upstream());
        let (mut idle, mut busy) = (bed.idle().await, bed.waiting(&target).await);
        bed.on(0);
        assert!(bed.proxy.settled(SOON).await);
        assert!(idle.is_reset().await && busy.is_reset().await);
        for _ in 0..3 {
            let refused = TcpStream::connect(bed.proxy.addr(0)).await.expect_err("the port is closed");
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
            bed.proxy.refused(0);
        }
        assert_eq!(bed.timeline.touched(0), 5, "two connections, and three connects that their dialler counted");
        bed.off().await;
        assert_eq!(bed.client().await.get("/back").await, "200 /back");
    });
}

#[test]
fn hang_and_blackhole_answer_nothing_and_spare_what_they_did_not_take() {
    for kind in ["hang", "blackhole"] {
        run(async || {
            let target = Target::start().await;
            let bed = Bed::new(&[kind], target.upstream());
            let (mut spared, mut idle, mut busy) = (bed.idle().await, bed.idle().await, bed.waiting(&target).await);
            bed.on(0);
            let mut new = bed.client().await;
            new.send("/new").await;
            idle.send("/idle").await;
            target.let_go.notify_one();
            assert!(new.is_silent().await && idle.is_silent().await && busy.is_silent().await, "{kind}");
            assert_eq!(target.requests(), 3, "{kind}: the upstream saw only what came before");
            assert_eq!(bed.timeline.touched(0), 3, "{kind}");
            bed.off().await;
            let ended = bed.now();
            assert_eq!(spared.get("/spared").await, "200 /spared");
            assert_eq!(bed.client().await.get("/after").await, "200 /after");
            assert!(bed.now().since(ended) < Span::from_std(SOON), "{kind}: old and new are served within 50 ms");
            // Whoever asks again on a connection that lost its request must not take the next answer for it.
            for lost in [&mut new, &mut idle, &mut busy] {
                lost.send("/again").await;
                assert!(lost.is_silent().await, "{kind}");
            }
            drop((new, idle, busy));
            until("only the spared one is left", || bed.proxy.connections() == 1 && target.open.get() == 1).await;
        });
    }
}

#[test]
fn what_is_released_goes_on_and_loses_nothing() {
    for kind in ["hang-release", "blackhole-release"] {
        run(async || {
            let target = Target::start().await;
            let bed = Bed::new(&[kind], target.upstream());
            let (mut idle, mut busy, mut gone) = (bed.idle().await, bed.waiting(&target).await, bed.client().await);
            bed.on(0);
            idle.send("/idle").await;
            gone.send("/gone").await;
            target.let_go.notify_one();
            assert!(idle.is_silent().await && busy.is_silent().await, "{kind}");
            drop(gone);
            until("a client that gave up is dropped while the fault acts", || bed.proxy.connections() == 2).await;
            assert_eq!(target.requests(), 2, "{kind}");
            bed.off().await;
            assert_eq!(idle.response().await, "200 /idle");
            assert_eq!(busy.response().await, "200 /hold");
            assert_eq!(idle.get("/more").await, "200 /more");
            assert_eq!(bed.timeline.touched(0), 3, "{kind}");
        });
    }
}

#[test]
fn what_one_fault_releases_another_may_take() {
    run(async || {
        let target = Target::start().await;
        let steps = vec![step("hold", 1, 3, fault("hang-release")), step("drop", 2, 4, fault("status 503"))];
        let bed = Bed::with(Timeline::new(steps, 7), 1, target.upstream());
        let mut client = bed.client().await;
        bed.on(0);
        client.send("/").await;
        until("it is held", || bed.timeline.touched(0) == 1).await;
        bed.on(1);
        bed.on(2);
        assert_eq!(client.response().await, "503 ");
        assert_eq!((target.requests(), bed.timeline.touched(0), bed.timeline.touched(1)), (0, 1, 1));
    });
}

#[test]
fn reset_strikes_idle_busy_and_new_connections() {
    run(async || {
        let target = Target::start().await;
        let bed = Bed::new(&["hang", "reset"], target.upstream());
        let (mut idle, mut busy, mut swallowed) = (bed.idle().await, bed.waiting(&target).await, bed.client().await);
        bed.on(0);
        swallowed.send("/swallowed").await;
        until("it is swallowed, and so is the busy one", || bed.timeline.touched(0) == 2).await;
        bed.on(1);
        assert!(idle.is_reset().await && busy.is_reset().await && swallowed.is_reset().await);
        let mut new = bed.client().await;
        new.send("/new").await;
        assert!(new.is_reset().await);
        assert_eq!(bed.timeline.touched(1), 4);
        bed.off().await;
        assert_eq!(bed.client().await.get("/back").await, "200 /back");
    });
}

/// Sends 60 operations of ours, each on a connection of its own; gives which of them came through.
async fn struck(bed: &Bed, passes: impl AsyncFn(&mut Client) -> bool) -> Vec<bool> {
    let mut clients = Vec::new();
    for operation in 0..60 {
        let mut client = bed.client().await;
        client.send_ours(operation).await;
        clients.push(client);
    }
    let mut through = Vec::new();
    for client in &mut clients {
        through.push(passes(client).await);
    }
    through
}

#[test]
fn a_share_strikes_the_same_operations_wherever_they_come_from() {
    run(async || {
        let target = Target::start().await;
        let bed = Bed::new(&["reset-half", "blackhole-half"], target.upstream());
        let expected = |fault: u64| -> Vec<bool> {
            let active = bed.timeline.active(at(fault + 1));
            (0..60).map(|n| active.judge(&Request::ours(0, n, 1), at(0)).touched.is_empty()).collect()
        };
        let mut idle = bed.idle().await;
        bed.on(0);
        let through = struck(&bed, async |client| client.response().await == "200 /").await;
        assert_eq!(through, expected(0));
        assert_eq!(bed.timeline.touched(0), through.iter().filter(|t| !**t).count() as u64);
        bed.off().await;
        assert_eq!(idle.get("/").await, "200 /", "a part of the requests is no part of the idle connections");
        bed.on(1);
        let through = struck(&bed, async |client| {
            tokio::time::timeout(Duration::from_millis(5), client.response()).await == Ok("200 /".to_string())
        });
        let through = through.await;
        assert_eq!(through, expected(1));
        assert!((15..45).contains(&through.iter().filter(|t| **t).count()));
    });
}

#[test]
fn latency_delays_each_request_and_ends_with_its_fault() {
    run(async || {
        let target = Target::start().await;
        let bed = Bed::new(&["latency 40"], target.upstream());
        let mut client = bed.idle().await;
        bed.on(0);
        for _ in 0..3 {
            let sent = bed.now();
            assert_eq!(client.get("/late").await, "200 /late");
            assert!(bed.now().since(sent) >= Span::from_millis(40));
        }
        assert_eq!(bed.timeline.touched(0), 3);
        bed.off().await;
        let sent = bed.now();
        assert_eq!(client.get("/").await, "200 /");
        assert!(bed.now().since(sent) < Span::from_millis(40));
    });
}

#[test]
fn a_fault_reaches_requests_that_another_delays() {
    run(async || {
        let target = Target::start().await;
        let bed = Bed::new(&["latency 30000", "reset"], target.upstream());
        let mut client = bed.client().await;
        bed.on(0);
        client.send("/").await;
        until("it is delayed", || bed.timeline.touched(0) == 1).await;
        bed.on(1);
        assert!(client.is_reset().await);
        assert_eq!(target.requests(), 0);
    });
}

#[test]
fn status_answers_before_the_upstream_sees_the_request() {
    run(async || {
        let target = Target::start().await;
        let bed = Bed::new(&["status 503"], target.upstream());
        let mut client = bed.idle().await;
        bed.on(0);
        let body = "x".repeat(200_000);
        let post = format!("POST / HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        client.send_bytes(post.as_bytes()).await;
        assert_eq!(client.response().await, "503 ");
        assert_eq!(client.get("/").await, "503 ", "the body was read, the connection goes on");
        client.send_bytes(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n").await;
        assert_eq!(client.response().await, "503 ");
        assert_eq!((target.requests(), bed.timeline.touched(0)), (1, 3));
        bed.off().await;
        assert_eq!(client.get("/back").await, "200 /back");
        bed.on(0);
        client.send_bytes(b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n").await;
        assert_eq!(client.response().await, "503 ");
        assert_eq!(client.rest().await, (vec![], None));
    });
}

#[test]
fn rate_limit_refuses_what_is_too_much_with_a_hint() {
    run(async || {
        let target = Target::start().await;
        let bed = Bed::new(&["limit 1"], target.upstream());
        let mut client = bed.client().await;
        bed.on(0);
        assert_eq!(client.get("/").await, "200 /");
        client.send("/").await;
        let (head, _) = client.read_response().await.expect("an answer");
        assert!(head.starts_with("HTTP/1.1 429 ") && head.contains("\r\nretry-after: 2\r\n"), "{head}");
        assert_eq!((target.requests(), bed.timeline.touched(0)), (1, 1));
    });
}

#[test]
fn a_fault_for_one_region_leaves_the_other_alone() {
    run(async || {
        let target = Target::start().await;
        let [eu, us] = [Origin { fleet: 0, region: 0 }, Origin { fleet: 0, region: 1 }];
        let step = Step { regions: Some(vec![us]), ..step("out", 1, 2, fault("refuse")) };
        let bed = Bed::of(Timeline::new(vec![step], 7), vec![eu, us], target.upstream());
        let mut spared = Client(TcpStream::connect(bed.proxy.addr(eu)).await.expect("it listens"));
        let mut struck = Client(TcpStream::connect(bed.proxy.addr(us)).await.expect("it listens"));
        assert_eq!((spared.get("/").await, struck.get("/").await), ("200 /".into(), "200 /".into()));
        bed.on(0);
        assert!(bed.proxy.settled(SOON).await);
        assert!(struck.is_reset().await);
        assert!(TcpStream::connect(bed.proxy.addr(us)).await.is_err());
        assert_eq!(spared.get("/").await, "200 /");
        bed.proxy.refused(eu);
        bed.proxy.refused(us);
        assert_eq!(bed.timeline.touched(0), 2, "the connection, and the connect that was told of");
    });
}

#[test]
fn a_fault_for_one_fleet_leaves_the_other_alone() {
    run(async || {
        let target = Target::start().await;
        let scoped = |name, from, text| Step { fleets: Some(vec![1]), ..step(name, from, from + 1, fault(text)) };
        let timeline = Timeline::new(vec![scoped("refuse", 1, "refuse"), scoped("reset", 2, "reset")], 7);
        let bed = Bed::with(timeline, 2, target.upstream());
        assert_ne!(bed.proxy.addr(0), bed.proxy.addr(1));
        let mut spared = bed.idle().await;
        let mut struck = Client(TcpStream::connect(bed.proxy.addr(1)).await.expect("it listens"));
        assert_eq!(struck.get("/").await, "200 /");
        bed.on(0);
        assert!(bed.proxy.settled(SOON).await);
        assert!(struck.is_reset().await);
        assert!(TcpStream::connect(bed.proxy.addr(1)).await.is_err());
        assert_eq!(spared.get("/").await, "200 /");
        bed.on(1);
        assert!(bed.proxy.settled(SOON).await);
        let mut struck = Client(TcpStream::connect(bed.proxy.addr(1)).await.expect("it listens again"));
        struck.send("/").await;
        assert!(struck.is_reset().await);
        assert_eq!(spared.get("/").await, "200 /");
        assert_eq!((bed.timeline.touched(0), bed.timeline.touched(1)), (1, 1));
    });
}

#[test]
fn a_shard_that_nobody_serves_any_more_closes_everything() {
    run(async || {
        let target = Target::start().await;
        let setup = setup(&Timeline::new(vec![], 7), vec![0.into()], 1, target.upstream(), LiveClock::starting_now());
        let proxy = Arc::new(Proxy::bind(setup).expect("ports"));
        let serving = tokio::task::spawn_local(proxy.clone().serve(0));
        let mut client = Client(TcpStream::connect(proxy.addr(0)).await.expect("it listens"));
        assert_eq!(client.get("/").await, "200 /");
        serving.abort();
        assert_eq!(client.rest().await, (vec![], None));
        until("the port is closed", || proxy.connections() == 0).await;
        assert!(TcpStream::connect(proxy.addr(0)).await.is_err());
        assert!(proxy.clear() && proxy.settled(SOON).await, "what is not served has nothing to remove");
    });
}
