//! What the proxy promises, measured from outside on `stormwake proxy` itself.

mod peers;

use crate::plane::Plane;
use peers::{Cut, Listener, Upstream, alone, note, on_runtime, ping, serves, tries};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How soon something is over once its cause is, and how long a call may take.
const SOON: Duration = Duration::from_millis(50);
/// Longer than anything takes that happens at all.
const LONG: Duration = Duration::from_secs(10);
/// How long the outage takes: the kernel sends SYN again 1, 3, 7 and 15 seconds after the first.
const OUTAGE: Duration = Duration::from_secs(12);
/// A fault that lets nothing through and never ends.
const SILENCE: &str = r#"{"name":"silence","type":"timeout","attributes":{"timeout":0}}"#;

#[test]
fn an_outage_is_over_for_new_clients_when_it_is_over() {
    let _machine = alone();
    // Only what comes behind the end of the outage is measured, and that can be measured again.
    tries(2, || on_runtime(outage()));
}

/// Three outages at once: an upstream that drops SYNs, one that takes connections and says nothing, and a fault that swallows every byte.
async fn outage() -> Result<(), String> {
    let (full, hanging, fine) = (Listener::full(), Upstream::hanging(), Upstream::start());
    let plane = Plane::start(&[]);
    let [dropped, hung, struck] =
        [("dropped", full.addr), ("hung", hanging.addr), ("struck", fine.addr)].map(|(name, at)| plane.proxy(name, at));
    plane.does("POST", "/proxies/struck/toxics", SILENCE);
    let mut waiting = JoinSet::new();
    for addr in [dropped, hung, struck] {
        for _ in 0..20 {
            waiting.spawn(async move { (addr, ping(addr).await, Instant::now()) });
        }
    }
    sleep(OUTAGE).await;
    for addr in [full.addr, dropped, hung, struck] {
        assert!(timeout(SOON, ping(addr)).await.is_err(), "there is no outage at {addr}");
    }
    assert!(waiting.try_join_next().is_none(), "nobody was served");

    let accepting = full.accept().await;
    hanging.go_on();
    plane.does("DELETE", "/proxies/struck/toxics/silence", "");
    let over = Instant::now();
    for (name, addr) in [("directly", accepting.addr), ("dropped", dropped), ("hung", hung), ("struck", struck)] {
        let lag = serves(addr, over).await?;
        note(&format!("lag after an outage of {OUTAGE:?}, {name}: {lag:?}"));
        if lag > SOON {
            return Err(format!("{name}: served {lag:?} after the outage"));
        }
    }
    // Who waited for the upstream that hung has its answer too.
    for _ in 0..60 {
        let next = timeout(SOON, waiting.join_next()).await;
        let Ok(Some(Ok((addr, served, at)))) = next else { break };
        if addr == hung && (served.is_err() || at.duration_since(over) > 2 * SOON) {
            return Err(format!("one that waited: {served:?} {:?} after the outage", at.duration_since(over)));
        }
    }
    Ok(())
}

#[test]
fn no_call_waits_for_a_thousand_connections_that_hang() {
    let _machine = alone();
    tries(4, || on_runtime(calls()));
}

async fn calls() -> Result<(), String> {
    let (fine, flood) = (Upstream::start(), Upstream::flooding());
    let plane = Plane::start(&[]);
    let (hung, unread) = (plane.proxy("hung", fine.addr), plane.proxy("unread", flood.addr));
    plane.does("POST", "/proxies/hung/toxics", SILENCE);
    let mut held = Vec::new();
    for addr in [hung, unread] {
        for _ in 0..500 {
            let mut stream = TcpStream::connect(addr).await.expect("it listens");
            stream.write_all(b"ping").await.expect("it takes a few bytes");
            held.push(stream);
        }
    }
    // Until nothing moves any more: every buffer between the flood and its clients is full.
    while flood.moves().await {}
    let mut took = Vec::new();
    let mut call = |method: &'static str, path: &'static str, body: &str| {
        let began = Instant::now();
        let (status, ..) = plane.ask(method, path, body);
        took.push((began.elapsed(), path));
        status
    };
    for _ in 0..25 {
        for (method, path, body, wanted) in [
            ("GET", "/version", "", 200),
            ("GET", "/proxies", "", 200),
            ("GET", "/metrics", "", 200),
            ("POST", "/proxies/hung/toxics", r#"{"name":"late","type":"latency","attributes":{"latency":9}}"#, 200),
            ("POST", "/proxies/hung/toxics/late", r#"{"attributes":{"latency":10}}"#, 200),
            ("POST", "/proxies/unread/toxics", r#"{"name":"slow","type":"bandwidth","attributes":{"rate":1}}"#, 200),
            ("POST", "/proxies/unread/toxics/slow", r#"{"attributes":{"rate":2}}"#, 200),
            ("DELETE", "/proxies/unread/toxics/slow", "", 204),
            ("DELETE", "/proxies/hung/toxics/late", "", 204),
            ("POST", "/proxies", r#"{"name":"new","listen":"127.0.0.1:0","upstream":"127.0.0.1:1"}"#, 201),
            ("DELETE", "/proxies/new", "", 204),
            ("POST", "/populate", "{}", 400),
        ] {
            assert_eq!(call(method, path, body), wanted, "{method} {path}");
        }
    }
    assert_eq!(held.len(), 1_000);
    assert!(plane.descriptors() > 2_000, "they are all there");
    // What ends all of them at once.
    for (method, path, body, wanted) in [
        ("DELETE", "/proxies/hung/toxics/silence", "", 204),
        ("POST", "/proxies/unread", r#"{"enabled":false}"#, 200),
        ("POST", "/reset", "", 204),
        ("DELETE", "/proxies/hung", "", 204),
        ("DELETE", "/proxies/unread", "", 204),
    ] {
        assert_eq!(call(method, path, body), wanted, "{method} {path}");
    }
    took.sort();
    let slowest = took[took.len() - 1];
    note(&format!(
        "{} calls: median {:?}, p99 {:?}, slowest {slowest:?}",
        took.len(),
        took[took.len() / 2].0,
        took[took.len() * 99 / 100].0
    ));
    if slowest.0 > SOON { Err(format!("{} took {:?}", slowest.1, slowest.0)) } else { Ok(()) }
}

#[test]
fn a_reset_of_nobody_resets_nobody_and_one_of_all_resets_all() {
    let _machine = alone();
    on_runtime(async {
        for (toxicity, count) in [("0", 1_000), ("1", 100)] {
            let (upstream, plane) = (Upstream::start(), Plane::start(&[]));
            let addr = plane.proxy("p", upstream.addr);
            let toxic = format!(r#"{{"type":"reset_peer","toxicity":{toxicity},"attributes":{{"timeout":0}}}}"#);
            plane.does("POST", "/proxies/p/toxics", &toxic);
            let mut cut = 0;
            for n in 0..count {
                // The client closes first, or the upstream does.
                let end = if n % 2 == 0 { Cut::by_client(addr).await } else { Cut::by_upstream(addr).await };
                cut += u32::from(end == Cut::Reset);
            }
            let wanted = if toxicity == "0" { (0, 0) } else { (count, count) };
            assert_eq!(cut, wanted.0, "clients that saw a reset of {toxicity}");
            if toxicity == "0" {
                assert_eq!(upstream.resets(), 0, "and the upstream");
            }
        }
    });
}

#[test]
fn a_reset_reaches_old_and_idle_connections() {
    let _machine = alone();
    on_runtime(async {
        let (upstream, plane) = (Upstream::start(), Plane::start(&[]));
        let addr = plane.proxy("p", upstream.addr);
        let mut streams = Vec::new();
        for n in 0..200 {
            let mut stream = TcpStream::connect(addr).await.expect("it listens");
            if n % 2 == 0 {
                peers::exchange(&mut stream).await.expect("an answer");
            }
            streams.push(stream);
        }
        sleep(Duration::from_secs(2)).await;
        plane.does("POST", "/proxies/p/toxics", r#"{"type":"reset_peer","attributes":{"timeout":0}}"#);
        for (n, stream) in streams.iter_mut().enumerate() {
            let end = timeout(LONG, stream.read(&mut [0])).await.unwrap_or_else(|_| panic!("connection {n} heard nothing"));
            assert_eq!(end.map_err(|error| error.kind()), Err(std::io::ErrorKind::ConnectionReset), "connection {n}");
        }
    });
}

#[test]
fn four_thousand_connects_at_once_lose_no_syn() {
    let _machine = alone();
    stormwake::engine::live::target::raise_file_limit();
    // The kernel counts for all that run here, so somebody else may spoil it.
    tries(3, || on_runtime(connects()));
}

async fn connects() -> Result<(), String> {
    let (upstream, plane) = (Upstream::start(), Plane::start(&[]));
    let addr = plane.proxy("p", upstream.addr);
    let lost_before = peers::lost_connects();
    let mut clients = JoinSet::new();
    for _ in 0..4_000 {
        clients.spawn(async move {
            let began = Instant::now();
            let mut stream = TcpStream::connect(addr).await.expect("it listens");
            let connected = began.elapsed();
            peers::exchange(&mut stream).await.expect("an answer");
            (connected, stream)
        });
    }
    let all = timeout(3 * LONG, clients.join_all()).await.expect("they are all served");
    let slowest = all.iter().map(|(connected, _)| *connected).max().unwrap_or_default();
    let lost = peers::lost_connects() - lost_before;
    note(&format!("4,000 connects: {lost} lost, the slowest took {slowest:?}"));
    assert!(plane.descriptors() > 8_000, "they are all there at once");
    if lost > 0 || slowest > Duration::from_secs(1) {
        return Err(format!("{lost} connects were lost, and the slowest took {slowest:?}"));
    }
    Ok(())
}

#[test]
fn a_hundred_thousand_connections_leave_nothing_behind() {
    let _machine = alone();
    on_runtime(async {
        let (upstream, plane) = (Upstream::start(), Plane::start(&[]));
        let addr = plane.proxy("p", upstream.addr);
        plane.does("POST", "/proxies/p/toxics", r#"{"type":"latency","attributes":{"latency":0}}"#);
        let nobody = plane.descriptors();
        // Until the allocator has what it needs for as many at once.
        peers::many_connections(addr, 5_000).await;
        peers::until(|| plane.descriptors() <= nobody).await;
        let before = plane.resident();
        peers::many_connections(addr, 100_000).await;
        peers::until(|| plane.descriptors() <= nobody).await;
        let after = plane.resident();
        note(&format!("100,000 connections: {before} KiB before, {after} KiB after, {nobody} descriptors"));
        // Ten bytes of each would be a thousand.
        assert!(after < before + 1_000, "memory grew from {before} to {after} KiB");
        let metrics = plane.does("GET", "/metrics", "");
        assert!(metrics.contains("stormwake_proxy_connects_total{proxy=\"p\"} 105000\n"), "all of them came through: {metrics}");
    });
}
