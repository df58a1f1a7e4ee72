//! Faults of bytes on real sockets, through the relay and under HTTP.

use super::*;
use crate::fault::{Active, Rule, Stream, Toxic, ToxicKind};
use crate::rng::{Key, Purpose};
use crate::time::Span;
use std::time::Duration;
use tokio::net::TcpListener;

/// A proxy before an upstream, and rules that are put together by hand.
struct Relayed {
    proxy: Arc<Proxy>,
    clock: Arc<LiveClock>,
}

impl Relayed {
    fn new(protocol: Protocol, upstream: Upstream) -> Self {
        let clock = LiveClock::starting_now();
        let timeline = Timeline::new(vec![], 7);
        let setup = ProxySetup { protocol, ..setup(&timeline, vec![0.into()], 1, upstream, clock.clone()) };
        let proxy = Arc::new(Proxy::bind(setup).expect("ports"));
        tokio::task::spawn_local(proxy.clone().serve(0));
        Self { proxy, clock }
    }

    /// Before an upstream that sends back what it gets, until the client has ended.
    async fn echo() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let upstream = Upstream::at(listener.local_addr().expect("an address"));
        tokio::task::spawn_local(echo(listener));
        Self::new(Protocol::Tcp, upstream)
    }

    fn apply(&self, rules: Vec<Rule>) {
        self.proxy.apply(Active::new(7, rules.into_iter().map(Arc::new).collect()));
    }

    fn toxics(&self, kinds: Vec<(Stream, ToxicKind)>) {
        self.apply(kinds.into_iter().enumerate().map(|(n, (stream, kind))| toxic(n, stream, 1.0, kind)).collect());
    }

    fn fault(&self, text: &str) {
        self.apply(vec![Rule::new(0, step(text, 0, 1, fault(text)))]);
    }

    async fn client(&self) -> Client {
        let client = TcpStream::connect(self.proxy.addr(0)).await.expect("the proxy listens");
        client.set_nodelay(true).expect("a socket");
        Client(client)
    }

    /// A client whose bytes have gone to the upstream and back.
    async fn used(&self) -> Client {
        let mut client = self.client().await;
        assert_eq!(client.echoed(b"hello").await, b"hello");
        client
    }

    fn now(&self) -> Timestamp {
        clock::Clock::now(&*self.clock)
    }

    /// What something takes, in milliseconds.
    async fn takes<T>(&self, what: impl Future<Output = T>) -> (T, u64) {
        let began = self.now();
        let done = tokio::time::timeout(LONG, what).await.expect("it ends");
        (done, self.now().since(began).0 / 1_000_000)
    }
}

async fn echo(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        tokio::task::spawn_local(async move {
            stream.set_nodelay(true).expect("a socket");
            let (mut from, mut to) = stream.split();
            let _ = tokio::io::copy(&mut from, &mut to).await;
            let _ = to.shutdown().await;
        });
    }
}

impl Client {
    /// Sends bytes and reads as many.
    async fn echoed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.send_bytes(bytes).await;
        let mut back = vec![0; bytes.len()];
        self.0.read_exact(&mut back).await.expect("as many bytes");
        back
    }
}

fn toxic(number: usize, stream: Stream, toxicity: f64, kind: ToxicKind) -> Rule {
    Rule::of_toxic(number, format!("toxic {number}"), Toxic { stream, toxicity, kind })
}

fn latency(millis: u64) -> ToxicKind {
    ToxicKind::Latency { latency: Span::from_millis(millis), jitter: Span::ZERO }
}

fn reset_peer(millis: u64) -> ToxicKind {
    ToxicKind::ResetPeer { timeout: Span::from_millis(millis) }
}

const UP: Stream = Stream::Upstream;
const DOWN: Stream = Stream::Downstream;
const BODY: usize = 1 << 20;

fn random(len: usize) -> Vec<u8> {
    let mut stream = Key { seed: 3, ..Key::default() }.stream(Purpose::Bytes);
    (0..len).map(|_| stream.bits() as u8).collect()
}

/// Sends all of it and closes this side, while reading all that comes back.
async fn there_and_back(client: Client, bytes: Vec<u8>) -> Vec<u8> {
    let (mut from, mut to) = client.0.into_split();
    let sending = tokio::task::spawn_local(async move {
        to.write_all(&bytes).await.expect("the proxy reads");
        to.shutdown().await.expect("a connection");
    });
    let mut back = Vec::new();
    tokio::time::timeout(LONG, from.read_to_end(&mut back)).await.expect("an end").expect("a good one");
    sending.await.expect("all is sent");
    back
}

#[test]
fn a_relay_passes_bytes_and_half_closes_in_both_directions() {
    run(async || {
        let bed = Relayed::echo().await;
        let bytes = random(BODY);
        assert!(there_and_back(bed.client().await, bytes.clone()).await == bytes);
        let mut used = bed.used().await;
        used.0.shutdown().await.expect("a connection");
        assert_eq!(used.rest().await, (vec![], None), "the upstream saw the end, and its own came back");
        let (upstream, _reading) = scripted(0, vec![b"banner".to_vec()], true).await;
        let greets = Relayed::new(Protocol::Tcp, upstream);
        assert_eq!(greets.client().await.rest().await, (b"banner".to_vec(), None));
        until("all are gone", || bed.proxy.connections() == 0).await;
    });
}

#[test]
fn an_upstream_that_refuses_resets_its_client_and_a_reset_is_passed_on() {
    run(async || {
        let nobody = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
        let bed = Relayed::new(Protocol::Tcp, Upstream::at(nobody));
        assert!(bed.client().await.is_reset().await);
        assert_eq!(bed.proxy.unreached().0, 1);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let bed = Relayed::new(Protocol::Tcp, Upstream::at(listener.local_addr().expect("an address")));
        let mut client = bed.client().await;
        let (stream, _) = listener.accept().await.expect("a connection");
        #[allow(deprecated, reason = "it does not block at zero")]
        stream.set_linger(Some(Duration::ZERO)).expect("a socket");
        drop(stream);
        assert!(client.is_reset().await);
    });
}

#[test]
fn each_toxic_does_on_real_sockets_what_it_says() {
    run(async || {
        let bed = Relayed::echo().await;
        for stream in [UP, DOWN] {
            bed.toxics(vec![(stream, latency(100))]);
            let mut client = bed.client().await;
            let (_, took) = bed.takes(client.echoed(b"x")).await;
            assert!((100..190).contains(&took), "{stream:?}: {took} ms");
            bed.toxics(vec![(stream, ToxicKind::Bandwidth { rate: 100 })]);
            let (_, took) = bed.takes(client.echoed(&random(20_000))).await;
            assert!((199..290).contains(&took), "{stream:?}: {took} ms for 20 KB at 100 KB/s");
            bed.toxics(vec![(stream, ToxicKind::SlowClose { delay: Span::from_millis(100) })]);
            client.0.shutdown().await.expect("a connection");
            let (rest, took) = bed.takes(client.rest()).await;
            assert!((100..190).contains(&took) && rest == (vec![], None), "{stream:?}: {took} ms");
            bed.toxics(vec![(stream, ToxicKind::Timeout { timeout: Span::from_millis(100) })]);
            let mut client = bed.client().await;
            client.send_bytes(b"lost").await;
            let (rest, took) = bed.takes(client.rest()).await;
            assert!((99..190).contains(&took) && rest == (vec![], None), "{stream:?}: {took} ms, {rest:?}");
            bed.toxics(vec![(stream, ToxicKind::LimitData { bytes: 10 })]);
            let mut client = bed.client().await;
            client.send_bytes(b"0123456789 and more").await;
            let (rest, end) = client.rest().await;
            assert!(end.is_none() && (stream == UP || rest == b"0123456789"), "{stream:?}: {rest:?}");
            bed.toxics(vec![(stream, reset_peer(50))]);
            let mut client = bed.client().await;
            let (reset, took) = bed.takes(client.is_reset()).await;
            assert!(reset && (49..140).contains(&took), "{stream:?}: {took} ms");
            bed.toxics(vec![(stream, ToxicKind::Noop)]);
            assert_eq!(bed.client().await.echoed(b"x").await, b"x");
        }
    });
}

#[test]
fn a_slicer_makes_writes_of_its_size() {
    run(async || {
        let bed = Relayed::echo().await;
        let slicer = ToxicKind::Slicer { average_size: 100, size_variation: 0, delay: Span::from_millis(5) };
        bed.toxics(vec![(DOWN, slicer)]);
        let mut client = bed.client().await;
        client.send_bytes(&[7; 1_000]).await;
        let mut sizes = Vec::new();
        while sizes.iter().sum::<usize>() < 1_000 {
            sizes.push(client.0.read(&mut [0; 4_096]).await.expect("bytes"));
        }
        // A reader that runs late may find several at once.
        assert!(sizes.len() >= 4 && sizes.iter().all(|size| size % 100 == 0), "{sizes:?}");
    });
}

#[test]
fn a_reset_reaches_new_old_and_idle_connections_and_a_toxicity_of_zero_none() {
    run(async || {
        for stream in [UP, DOWN] {
            let bed = Relayed::echo().await;
            let (mut idle, mut silent) = (bed.used().await, bed.client().await);
            bed.toxics(vec![(stream, reset_peer(0))]);
            assert!(idle.is_reset().await && silent.is_reset().await && bed.client().await.is_reset().await, "{stream:?}");
            bed.apply(vec![toxic(0, stream, 0.0, reset_peer(0))]);
            for n in 0..1_000 {
                let mut client = bed.used().await;
                client.0.shutdown().await.expect("a connection");
                assert_eq!(client.rest().await, (vec![], None), "close {n}");
            }
        }
    });
}

#[test]
fn a_body_is_exact_through_slicer_latency_and_bandwidth_in_both_directions() {
    run(async || {
        let bed = Relayed::echo().await;
        let slicer = ToxicKind::Slicer { average_size: 5_000, size_variation: 1_000, delay: Span::ZERO };
        let chain = |stream| [(stream, slicer.clone()), (stream, latency(20)), (stream, ToxicKind::Bandwidth { rate: 10_000 })];
        bed.toxics([chain(UP), chain(DOWN)].concat());
        let bytes = random(BODY);
        let client = bed.client().await;
        let (back, took) = bed.takes(there_and_back(client, bytes.clone())).await;
        assert!(back == bytes);
        assert!((100..2_000).contains(&took), "{took} ms for 1 MiB at 10 MB/s, and 40 ms on the way");
    });
}

#[test]
fn bytes_that_come_due_while_the_other_direction_is_looked_at_go_on() {
    run(async || {
        let bed = Relayed::echo().await;
        let (latency, jitter) = (Span::from_millis(3), Span::from_millis(2));
        let slicer = ToxicKind::Slicer { average_size: 500, size_variation: 100, delay: Span::from_micros(10) };
        let kinds = vec![
            (Stream::Downstream, slicer),
            (Stream::Upstream, ToxicKind::Latency { latency, jitter }),
            (Stream::Downstream, ToxicKind::Bandwidth { rate: 20_000 }),
        ];
        bed.toxics(kinds);
        let bytes = random(128 * 1024);
        let mut echoes = Vec::new();
        for _ in 0..12 {
            let (mut client, bytes) = (bed.client().await.0, bytes.clone());
            echoes.push(tokio::task::spawn_local(async move {
                let (mut reader, mut writer) = client.split();
                let mut back = vec![0; bytes.len()];
                // Nobody ends the stream, so nothing but the proxy's own timers moves the last of it.
                let (sent, came) = tokio::join!(writer.write_all(&bytes), reader.read_exact(&mut back));
                sent.and(came.map(drop)).map(|()| back == bytes)
            }));
        }
        for echo in echoes {
            let whole = tokio::time::timeout(LONG, echo).await.expect("nothing stays in the proxy").expect("nothing panics");
            assert!(whole.expect("no error"), "the bytes that were sent");
        }
    });
}

#[test]
fn what_a_limit_lets_through_reaches_an_upstream_that_is_still_being_dialled() {
    run(async || {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let bed = Relayed::new(Protocol::Tcp, Upstream::at(listener.local_addr().expect("an address")));
        bed.toxics(vec![(Stream::Upstream, ToxicKind::LimitData { bytes: 1_000 })]);
        for size in [1_000, 1_001, 5_000] {
            let mut client = bed.client().await;
            client.send_bytes(&random(size)).await;
            let (mut upstream, _) = tokio::time::timeout(LONG, listener.accept()).await.expect("a dial").expect("a socket");
            let mut came = Vec::new();
            tokio::time::timeout(LONG, upstream.read_to_end(&mut came)).await.expect("an end").expect("no reset");
            assert!(came == random(size)[..1_000], "{size}: {} bytes", came.len());
        }
    });
}

#[test]
fn a_change_reaches_what_waits_within_50_ms() {
    run(async || {
        let bed = Relayed::echo().await;
        for stream in [UP, DOWN] {
            bed.toxics(vec![(stream, latency(60_000))]);
            let mut client = bed.client().await;
            client.send_bytes(&random(10_000)).await;
            assert!(client.is_silent().await);
            bed.apply(vec![]);
            let (read, took) = bed.takes(client.0.read_exact(&mut [0; 10_000])).await;
            assert!(read.is_ok() && took < 50, "{took} ms");
            bed.toxics(vec![(stream, latency(120))]);
            let (_, took) = bed.takes(client.echoed(b"x")).await;
            assert!((120..210).contains(&took), "and a new fault acts on the old connection: {took} ms");
            // In the middle of a transfer that would take 100 s.
            bed.toxics(vec![(stream, ToxicKind::Bandwidth { rate: 1 })]);
            client.send_bytes(&random(100_000)).await;
            client.0.read_exact(&mut [0; 5]).await.expect("a trickle");
            bed.apply(vec![]);
            let (read, took) = bed.takes(client.0.read_exact(&mut vec![0; 99_995])).await;
            assert!(read.is_ok() && took < 50, "{stream:?}: {took} ms");
        }
    });
}

#[test]
fn a_thousand_connections_that_hang_or_do_not_read_hold_up_no_change() {
    run(async || {
        let bed = Relayed::echo().await;
        bed.toxics(vec![(UP, latency(600_000)), (DOWN, ToxicKind::Noop)]);
        let mut hanging = Vec::new();
        for _ in 0..500 {
            let mut client = bed.client().await;
            client.send_bytes(b"x").await;
            hanging.push(client);
        }
        bed.apply(vec![]);
        for client in &mut hanging {
            client.0.read_u8().await.expect("it comes at once");
        }
        let mut full = Vec::new();
        for _ in 0..500 {
            let client = bed.client().await;
            // As much as goes: they never read what comes back.
            while client.0.try_write(&[0; 65_536]).is_ok() {}
            full.push(client);
        }
        // A neighbour on the machine may take its time from a round; from two in three it does not.
        let (mut good, mut tries) = (0, Vec::new());
        while good < 5 {
            let (_, took) = bed.takes(async { bed.toxics(vec![(DOWN, latency(10)), (UP, latency(10))]) }).await;
            let mut client = bed.client().await;
            let (_, slow) = bed.takes(client.echoed(b"x")).await;
            bed.apply(vec![]);
            let (_, quick) = bed.takes(client.echoed(b"x")).await;
            good += usize::from(took < 50 && (20..120).contains(&slow) && quick < 50);
            tries.push((took, slow, quick));
            assert!(tries.len() <= 15, "within 50 ms in {good} of 15: {tries:?} ms");
        }
        bed.proxy.set_open(false);
        until("all are closed", || bed.proxy.connections() == 0).await;
    });
}

#[test]
fn faults_of_connections_strike_a_relay() {
    run(async || {
        let bed = Relayed::echo().await;
        for kind in ["hang", "blackhole"] {
            let (mut old, mut spared) = (bed.used().await, bed.used().await);
            bed.fault(kind);
            let mut new = bed.client().await;
            new.send_bytes(b"x").await;
            old.send_bytes(b"x").await;
            assert!(new.is_silent().await && old.is_silent().await, "{kind}");
            bed.fault(&format!("{kind}-release"));
            assert!(old.is_silent().await && spared.is_silent().await, "{kind}");
            bed.apply(vec![]);
            old.send_bytes(b"x").await;
            assert!(old.is_silent().await, "{kind}: what has lost bytes stays silent");
            assert_eq!(bed.client().await.echoed(b"x").await, b"x");
            drop((old, new, spared));
        }
        let (mut held, mut old) = (bed.used().await, bed.used().await);
        bed.fault("hang-release");
        held.send_bytes(b"held").await;
        assert!(held.is_silent().await);
        bed.apply(vec![]);
        let (back, took) = bed.takes(async { held.0.read_exact(&mut [0; 4]).await.is_ok() }).await;
        assert!(back && took < 50, "{took} ms");
        bed.fault("reset");
        assert!(old.is_reset().await && held.is_reset().await && bed.client().await.is_reset().await);
        bed.apply(vec![]);
        let mut old = bed.used().await;
        bed.fault("refuse");
        assert!(old.is_reset().await && bed.proxy.settled(SOON).await && TcpStream::connect(bed.proxy.addr(0)).await.is_err());
        bed.apply(vec![]);
        assert!(bed.proxy.settled(SOON).await);
        drop((bed.used().await, held));
    });
}

#[test]
fn close_ends_new_old_and_busy_connections_with_fin() {
    run(async || {
        let bed = Relayed::echo().await;
        let mut old = bed.used().await;
        bed.fault("close");
        let mut busy = bed.client().await;
        busy.send_bytes(b"x").await;
        for client in [&mut old, &mut busy, &mut bed.client().await] {
            assert_eq!(client.rest().await, (vec![], None));
        }
        let target = Target::start().await;
        let bed = Bed::new(&["close"], target.upstream());
        let (mut idle, mut busy) = (bed.idle().await, bed.waiting(&target).await);
        bed.on(0);
        let mut new = bed.client().await;
        new.send("/new").await;
        for client in [&mut idle, &mut busy, &mut new] {
            assert_eq!(client.rest().await, (vec![], None));
        }
        assert_eq!((bed.timeline.touched(0), target.requests()), (3, 2));
        bed.off().await;
        assert_eq!(bed.client().await.get("/back").await, "200 /back");
    });
}

#[test]
fn faults_of_bytes_act_under_http() {
    run(async || {
        let target = Target::start().await;
        let bed = Relayed::new(Protocol::Http, target.upstream());
        let mut client = bed.client().await;
        assert_eq!(client.get("/").await, "200 /");
        bed.toxics(vec![(UP, latency(50)), (DOWN, latency(50))]);
        let (answer, took) = bed.takes(client.get("/slow")).await;
        assert!(answer == "200 /slow" && (100..190).contains(&took), "{took} ms");
        bed.toxics(vec![(DOWN, ToxicKind::LimitData { bytes: 20 })]);
        client.send("/cut").await;
        assert_eq!(client.rest().await, (b"HTTP/1.1 200 OK\r\ncon".to_vec(), None));
        bed.apply(vec![]);
        let (mut idle, mut reset) = (bed.client().await, bed.client().await);
        assert_eq!(reset.get("/").await, "200 /");
        bed.toxics(vec![(UP, reset_peer(0))]);
        assert!(idle.is_reset().await && reset.is_reset().await);
        // An upstream that closes behind its answer: all of that is still on its way then.
        let (upstream, _reading) = scripted(18, vec![b"HTTP/1.1 200 OK\r\n\r\nto the end".to_vec()], true).await;
        let bed = Relayed::new(Protocol::Http, upstream);
        bed.toxics(vec![(DOWN, latency(100))]);
        let mut client = bed.client().await;
        client.send_bytes(b"GET / HTTP/1.1\r\n\r\n").await;
        assert_eq!(client.rest().await, (b"HTTP/1.1 200 OK\r\n\r\nto the end".to_vec(), None));
    });
}

#[test]
fn half_open_and_a_stall_tell_nobody() {
    run(async || {
        let bed = Relayed::echo().await;
        let half = crate::fault::HalfOpen { stream: crate::fault::pipe::Direction::Downstream };
        let mut old = bed.used().await;
        bed.apply(vec![Rule::new(0, step("half", 0, 1, crate::fault::Fault::HalfOpen(half)))]);
        old.send_bytes(b"x").await;
        assert!(old.is_silent().await);
        old.0.shutdown().await.expect("a connection");
        assert!(old.is_silent().await, "the upstream's end vanishes too");
        bed.toxics(vec![(DOWN, ToxicKind::Timeout { timeout: Span::ZERO })]);
        let mut stalled = bed.client().await;
        stalled.send_bytes(b"x").await;
        assert!(stalled.is_silent().await);
        bed.apply(vec![]);
        let (rest, took) = bed.takes(stalled.rest()).await;
        assert!(rest == (vec![], None) && took < 50, "what a stall has swallowed ends with it: {took} ms");
    });
}

#[test]
fn after_an_outage_that_dropped_syns_a_new_client_gets_through_within_50_ms() {
    run(async || {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port");
        socket.listen(1).expect("a listener");
        socket.set_nonblocking(true).expect("a socket");
        let listener = TcpListener::from_std(socket.into()).expect("a listener");
        let addr = listener.local_addr().expect("an address");
        let bed = Relayed::new(Protocol::Tcp, Upstream::at(addr));
        // Nobody accepts: the queue is full after two, and the kernel drops the SYNs of all others.
        let mut stuck = Vec::new();
        for _ in 0..100 {
            let mut client = bed.client().await;
            client.send_bytes(b"x").await;
            stuck.push(client);
        }
        until("the proxy has taken them all in", || bed.proxy.connections() == 100).await;
        assert!(stuck[99].is_silent().await);
        tokio::task::spawn_local(echo(listener));
        until("the queue is served", || bed.proxy.connects().is_some_and(|connects| connects.count >= 2)).await;
        let (echoed, took) = bed.takes(async { bed.client().await.echoed(b"new").await }).await;
        assert!(echoed == b"new" && took < 50, "{took} ms");
    });
}
