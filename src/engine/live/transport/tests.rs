use super::*;
use crate::config::{At, Place, Table};
use crate::engine::live::clock::LiveClock;
use crate::event::OperationId;
use crate::fleet::{FleetConfig, NO_DESTINATION};
use crate::load::{Closed, Load};
use crate::plan::{Fleet, Plan, StatusSet, Success, TargetConfig, TargetUrl};
use crate::policy::{Attempts, Hint, Policy};
use crate::time::{Span, Timestamp};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the peer of a test does with a request.
#[derive(Clone, Copy)]
enum Peer {
    /// Answers with these bytes and keeps the connection.
    Answers(&'static str),
    /// Answers with these bytes and closes.
    AnswersAndCloses(&'static str),
    /// Closes without an answer.
    Closes,
    /// Closes with RST.
    Resets,
    /// Never answers.
    Silent,
    /// Announces and sends two megabytes.
    Huge,
    /// Sends a head, and then the body a byte at a time, for ever.
    Drips,
}

/// Counts of what the peer saw.
#[derive(Default)]
struct Seen {
    connections: Cell<usize>,
    closed: Cell<usize>,
    requests: std::cell::RefCell<Vec<String>>,
}

async fn peer(behaviour: Peer) -> (SocketAddr, Rc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let seen = Rc::new(Seen::default());
    let book = seen.clone();
    tokio::task::spawn_local(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            book.connections.set(book.connections.get() + 1);
            let book = book.clone();
            tokio::task::spawn_local(async move {
                serve(stream, behaviour, &book).await;
                book.closed.set(book.closed.get() + 1);
            });
        }
    });
    (addr, seen)
}

async fn serve(mut stream: TcpStream, behaviour: Peer, book: &Seen) {
    let mut buffer = vec![0; 4096];
    loop {
        let n = stream.read(&mut buffer).await.unwrap_or(0);
        if n == 0 {
            return;
        }
        book.requests.borrow_mut().push(String::from_utf8_lossy(&buffer[..n]).into_owned());
        match behaviour {
            Peer::Answers(text) => drop(stream.write_all(text.as_bytes()).await),
            Peer::AnswersAndCloses(text) => return drop(stream.write_all(text.as_bytes()).await),
            Peer::Closes => return,
            Peer::Resets => return drop(socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))),
            Peer::Silent => {}
            Peer::Huge => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2000000\r\n\r\n").await;
                let _ = stream.write_all(&vec![b'x'; 2_000_000]).await;
            }
            Peer::Drips => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n").await;
                while stream.write_all(b"x").await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                return;
            }
        }
    }
}

pub fn plan(success: Success, connections: Connections) -> Plan {
    let nowhere = Place::default();
    let config = FleetConfig {
        clients: 4,
        load: Load::Closed(Closed { think: Span::ZERO }),
        connections,
        late_starts: crate::fleet::LateStarts::Queue(crate::fleet::config::Always {}),
        outbox: 10,
        priority: Some("u=1".into()),
        idempotency_key: crate::fleet::IdempotencyKey::Enqueue,
        regions: crate::fleet::Regions::default(),
        link: None,
        when_full: crate::fleet::WhenFull::Refuse,
        operations: crate::fleet::Operations::default(),
        drain_rate: None,
        defer: None,
    };
    let policy = Policy::new(Attempts::Limited(1), Span::from_secs(1));
    Plan {
        judged_at: None,
        proxies: Vec::new(),
        name: "test".into(),
        seed: 1,
        network: crate::network::Network::loopback(),
        target: TargetConfig {
            model: None,
            services: Table::default(),
            url: Some(At { value: TargetUrl::parse("http://127.0.0.1/x").unwrap(), place: nowhere }),
            service: None,
            method: At { value: "GET".into(), place: nowhere },
            headers: Table::default(),
            body: String::new(),
            routes: vec![],
            success,
            allow: vec![],
            max_attempts: None,
            ca_file: None,
        },
        fleets: vec![Fleet { name: "apps".into(), policy_name: "inline".into(), policy, config, workers: None, into: None }],
        steady_state: None,
        timeline: vec![],
        external: vec![],
        actions: Vec::new(),
        time_scale: None,
        recovery: None,
        gates: vec![],
        recovered: None,
        compare: None,
        stop_if: vec![],
        expect: None,
        length: Span::from_secs(1),
        timer_grain: Span::from_micros(250),
    }
}

fn any_2xx() -> Success {
    Success { status: vec![StatusSet::Class(2)], body_contains: None, within: None }
}

fn attempt(connection: u32, attempt: u32) -> Send {
    Send {
        connection,
        operation: OperationId { fleet: 0, client: connection, number: 7 },
        destination: NO_DESTINATION,
        attempt,
        route: 0,
        timeout_at: Timestamp::NEVER,
        idempotency_key: 0xabc,
        enqueued_at: Timestamp(5_000_000),
        priority: None,
        delay: Span::ZERO,
    }
}

fn transport(addr: SocketAddr, success: Success, connections: Connections) -> Transport {
    let requests = Arc::new(Requests::new(&plan(success, connections), "real.example:81", "/charge?x=1").unwrap());
    requests.start_at(1_000);
    let clock: Arc<dyn Clock> = LiveClock::starting_now();
    Transport::new(
        vec![FleetWires {
            fleet: 0,
            numbers: 0..4,
            doors: vec![Door { addr, on_refused: Box::new(|| {}) }],
            region_of: Box::new(|_| 0),
            connections,
            arrived: Box::new(|| 0),
            connected: Box::new(|| 0),
        }],
        &requests,
        &clock,
    )
}

async fn completion(transport: &Transport) -> Completion {
    let wait = async {
        loop {
            transport.ready().await;
            if let Some(completion) = transport.next() {
                return completion;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(5), wait).await.expect("an attempt ends")
}

fn local<F: std::future::Future<Output = ()>>(test: impl FnOnce() -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async { test().await });
}

/// Waits, for a bounded time, until something becomes true.
async fn until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..400 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never: {what}");
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[test]
fn every_kind_of_peer_has_its_outcome() {
    let within = Success { within: Some(Span::from_secs(9)), ..any_2xx() };
    let holds_ok = Success { body_contains: Some("ok".into()), ..any_2xx() };
    let nonsense = |kind: crate::fault::Nonsense| std::str::from_utf8(kind.bytes()).expect("plain text");
    let [line, length, chunk] = std::array::from_fn(|n| nonsense(crate::fault::Nonsense::ALL[n]));
    for (peer_does, success, outcome) in [
        (Peer::AnswersAndCloses(line), any_2xx(), AttemptOutcome::Malformed),
        (Peer::AnswersAndCloses(length), any_2xx(), AttemptOutcome::Malformed),
        (Peer::AnswersAndCloses(chunk), any_2xx(), AttemptOutcome::Malformed),
        (Peer::Answers(OK), any_2xx(), AttemptOutcome::Success),
        (Peer::Answers(OK), within, AttemptOutcome::Success),
        (Peer::Answers(OK), Success { within: Some(Span::ZERO), ..any_2xx() }, AttemptOutcome::Unexpected),
        (Peer::Answers(OK), holds_ok.clone(), AttemptOutcome::Success),
        (Peer::Answers(OK), Success { body_contains: Some("no".into()), ..any_2xx() }, AttemptOutcome::Unexpected),
        (Peer::Answers("HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n"), any_2xx(), AttemptOutcome::Status(503)),
        (Peer::Answers("HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n"), any_2xx(), AttemptOutcome::Status(302)),
        (
            Peer::Answers("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n"),
            holds_ok,
            AttemptOutcome::Success,
        ),
        (Peer::AnswersAndCloses("HTTP/1.1 200 OK\r\n\r\nto the end"), any_2xx(), AttemptOutcome::Success),
        (Peer::AnswersAndCloses("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort"), any_2xx(), AttemptOutcome::Reset),
        (Peer::AnswersAndCloses("HTTP/1.1 200 O"), any_2xx(), AttemptOutcome::Reset),
        (Peer::Answers("SSH-2.0-OpenSSH_9.9\r\n\r\n"), any_2xx(), AttemptOutcome::Malformed),
        (Peer::Answers("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"), any_2xx(), AttemptOutcome::Malformed),
        (
            Peer::AnswersAndCloses("HTTP/1.1 502 Bad Gateway\r\nx-stormwake-connect: failed\r\ncontent-length: 0\r\n\r\n"),
            any_2xx(),
            AttemptOutcome::Connect,
        ),
        (Peer::Answers("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n"), any_2xx(), AttemptOutcome::Status(502)),
        (Peer::Closes, any_2xx(), AttemptOutcome::Reset),
        (Peer::Resets, any_2xx(), AttemptOutcome::Reset),
        (Peer::Huge, any_2xx(), AttemptOutcome::Malformed),
    ] {
        local(|| async move {
            let (addr, seen) = peer(peer_does).await;
            let transport = transport(addr, success, Connections::KeepAlive);
            transport.send(attempt(2, 1));
            let got = completion(&transport).await;
            assert_eq!((got.fleet, got.connection, got.outcome), (0, 2, outcome), "{:?}", seen.requests.borrow());
            assert_eq!(seen.requests.borrow().len(), 1, "nothing is sent twice");
        });
    }
}

#[test]
fn nobody_there_is_a_connect_failure() {
    local(|| async {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let transport = transport(free, any_2xx(), Connections::KeepAlive);
        assert_eq!(transport.warm_up().await, 4);
        transport.send(attempt(0, 1));
        assert_eq!(completion(&transport).await.outcome, AttemptOutcome::Connect);
        assert_eq!(transport.counts(), WireCounts::default());
    });
}

#[test]
fn requests_carry_who_they_are() {
    local(|| async {
        let (addr, seen) = peer(Peer::Answers(OK)).await;
        let transport = transport(addr, any_2xx(), Connections::KeepAlive);
        transport.send(attempt(3, 2));
        completion(&transport).await;
        let request = seen.requests.borrow()[0].to_lowercase();
        assert!(request.starts_with("get /charge?x=1 http/1.1\r\n"), "{request}");
        for header in [
            "host: real.example:81",
            "idempotency-key: 0000000003e8-00000000000000000000000000000abc",
            "x-stormwake-attempt: 2",
            "x-stormwake-enqueued-at: 1005",
            "x-stormwake-fleet: apps",
            "priority: u=1",
        ] {
            assert!(request.contains(&format!("\r\n{header}\r\n")), "{header} in {request}");
        }
    });
}

#[test]
fn connections_live_as_long_as_the_plan_says() {
    for (connections, warm, after) in [(Connections::KeepAlive, 4, 4), (Connections::PerAttempt, 0, 6)] {
        local(|| async move {
            let (addr, seen) = peer(Peer::Answers(OK)).await;
            let transport = transport(addr, any_2xx(), connections);
            assert_eq!(transport.warm_up().await, 0);
            until("the peer has accepted", || seen.connections.get() == warm).await;
            for round in 0..3 {
                for client in [0, 1] {
                    transport.send(attempt(client, round + 1));
                }
                for _ in 0..2 {
                    assert_eq!(completion(&transport).await.outcome, AttemptOutcome::Success);
                }
            }
            assert_eq!(seen.connections.get(), after);
            if connections == Connections::PerAttempt {
                until("every connection is closed", || seen.closed.get() == after).await;
            }
        });
    }
}

#[test]
fn an_idle_close_costs_no_attempt() {
    local(|| async {
        let (addr, seen) = peer(Peer::AnswersAndCloses(OK)).await;
        let transport = transport(addr, any_2xx(), Connections::KeepAlive);
        for round in 1..=3 {
            transport.send(attempt(0, round));
            assert_eq!(completion(&transport).await.outcome, AttemptOutcome::Success);
            until("the close is noticed", || transport.counts().idle_closes == u64::from(round)).await;
        }
        assert_eq!((seen.connections.get(), seen.requests.borrow().len()), (3, 3));
    });
}

#[test]
fn a_cancelled_attempt_closes_its_connection_and_is_not_heard_of_again() {
    for behaviour in [Peer::Silent, Peer::Drips] {
        local(|| async move {
            let (addr, seen) = peer(behaviour).await;
            let transport = transport(addr, any_2xx(), Connections::KeepAlive);
            transport.send(attempt(0, 1));
            until("the request is there", || seen.requests.borrow().len() == 1).await;
            transport.cancel(0, 0);
            // The next attempt may follow at once, and finds a new connection.
            transport.send(attempt(0, 2));
            until("the connection is closed", || seen.closed.get() == 1).await;
            until("the next request is there", || seen.requests.borrow().len() == 2).await;
            assert_eq!(seen.connections.get(), 2);
            assert!(transport.next().is_none());
        });
    }
}

/// A poor link: the attempt is held that long, its time counts from the send, and what is given up meanwhile is never sent.
#[test]
fn what_a_link_holds_is_late_and_can_still_be_given_up() {
    local(|| async {
        let (addr, seen) = peer(Peer::Answers(OK)).await;
        let within = Success { within: Some(Span::from_millis(40)), ..any_2xx() };
        let transport = transport(addr, within, Connections::KeepAlive);
        transport.send(attempt(2, 1));
        assert_eq!(completion(&transport).await.outcome, AttemptOutcome::Success);
        transport.send(Send { delay: Span::from_millis(40), ..attempt(2, 2) });
        assert_eq!(completion(&transport).await.outcome, AttemptOutcome::Unexpected, "an answer after its time");
        transport.send(Send { delay: Span::from_secs(3600), ..attempt(2, 3) });
        tokio::task::yield_now().await;
        transport.cancel(0, 2);
        transport.send(attempt(2, 4));
        assert_eq!(completion(&transport).await.outcome, AttemptOutcome::Success);
        assert_eq!(seen.requests.borrow().len(), 3, "the third was never sent");
    });
}

#[test]
fn a_completion_that_crosses_its_cancel_is_ignored() {
    local(|| async {
        let (addr, _seen) = peer(Peer::Answers(OK)).await;
        let transport = transport(addr, any_2xx(), Connections::KeepAlive);
        transport.send(attempt(0, 1));
        transport.ready().await;
        transport.cancel(0, 0);
        transport.send(attempt(0, 2));
        let first = completion(&transport).await;
        assert_eq!((first.serial, first.outcome), (2, AttemptOutcome::Success));
        assert!(transport.next().is_none());
    });
}

#[test]
fn a_hint_is_read() {
    local(|| async {
        let (addr, _seen) = peer(Peer::Answers("HTTP/1.1 429 Slow\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n")).await;
        let transport = transport(addr, any_2xx(), Connections::KeepAlive);
        transport.send(attempt(0, 1));
        let got = completion(&transport).await;
        assert_eq!((got.outcome, got.hint), (AttemptOutcome::Status(429), Hint::retry_after(Span::from_secs(7))));
    });
}
