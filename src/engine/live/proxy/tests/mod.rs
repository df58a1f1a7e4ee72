//! The proxy on real loopback sockets. The beds and peers of the tests are here; the tests are in the files below.
//! Waits are for events, or bounded silences: nothing is assumed about how fast the machine is, except where a bound
//! (50 ms) is the thing under test.

mod bytes;
mod faults;
mod h2;
mod relay;
mod requests;
mod scale;
mod tap;
mod tls;

use super::*;
use crate::engine::live::clock::LiveClock;
use crate::fault::timeline::tests::{at, fault, step};
use crate::fault::{Origin, Timeline};
use crate::time::Timestamp;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io::ErrorKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

/// As long as the proxy may take to carry out a change.
const SOON: Duration = Duration::from_millis(50);
/// Longer than anything takes that happens at all.
const LONG: Duration = Duration::from_secs(10);

/// Runs a test as a shard runs: one thread, tasks of its own.
fn run<F: Future>(test: impl FnOnce() -> F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async { tokio::time::timeout(4 * LONG, test()).await.expect("the test ends") })
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..5_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it never came to: {what}");
}

/// A proxy before an upstream. Fault n of the list acts while it is switched on.
struct Bed {
    proxy: Arc<Proxy>,
    timeline: Timeline,
    clock: Arc<LiveClock>,
}

/// An HTTP proxy for these origins.
fn setup(timeline: &Timeline, origins: Vec<Origin>, shards: usize, upstream: Upstream, clock: Arc<LiveClock>) -> ProxySetup {
    let (nothing, protocol) = (timeline.nothing(), Protocol::Http);
    let entrances = origins.into_iter().map(Entrance::from).collect();
    ProxySetup { nothing, entrances, protocol, shards, upstream, clock }
}

impl Bed {
    fn new(faults: &[&str], upstream: Upstream) -> Self {
        let steps = (1..).zip(faults).map(|(n, text)| step(text, n, n + 1, fault(text))).collect();
        Self::with(Timeline::new(steps, 7), 1, upstream)
    }

    fn with(timeline: Timeline, fleets: u16, upstream: Upstream) -> Self {
        Self::of(timeline, (0..fleets).map(Origin::from).collect(), upstream)
    }

    fn of(timeline: Timeline, origins: Vec<Origin>, upstream: Upstream) -> Self {
        let clock = LiveClock::starting_now();
        let setup = setup(&timeline, origins, 1, upstream, clock.clone());
        let proxy = Arc::new(Proxy::bind(setup).expect("ports"));
        tokio::task::spawn_local(proxy.clone().serve(0));
        Self { proxy, timeline, clock }
    }

    fn on(&self, fault: u64) {
        self.proxy.apply(self.timeline.active(at(fault + 1)));
    }

    async fn off(&self) {
        assert!(self.proxy.clear());
        assert!(self.proxy.settled(SOON).await, "the listeners are back within 50 ms");
    }

    async fn client(&self) -> Client {
        Client(TcpStream::connect(self.proxy.addr(0)).await.expect("the proxy listens"))
    }

    /// A client that has been served once, and is idle.
    async fn idle(&self) -> Client {
        let mut client = self.client().await;
        assert_eq!(client.get("/").await, "200 /");
        client
    }

    /// A client with a request in flight at the target.
    async fn waiting(&self, target: &Target) -> Client {
        let mut client = self.client().await;
        let before = target.requests();
        client.send("/hold").await;
        until("the target has the request", || target.requests() > before).await;
        client
    }

    fn now(&self) -> Timestamp {
        clock::Clock::now(&*self.clock)
    }
}

use crate::engine::live::clock;

struct Client(TcpStream);

impl Client {
    async fn send_bytes(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.expect("the proxy reads");
    }

    async fn send(&mut self, path: &str) {
        self.send_bytes(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await;
    }

    /// Sends attempt 1 of an operation of ours.
    async fn send_ours(&mut self, operation: u128) {
        let head = format!("GET / HTTP/1.1\r\nidempotency-key: {operation:032x}\r\nx-stormwake-attempt: 1\r\n\r\n");
        self.send_bytes(head.as_bytes()).await;
    }

    /// Status and body of the next response, or how the connection ended.
    async fn response(&mut self) -> String {
        match tokio::time::timeout(LONG, self.read_response()).await.expect("an answer, or an end") {
            Ok((head, body)) => format!("{} {body}", &head[9..12]),
            Err(error) => format!("{:?}", error.kind()),
        }
    }

    async fn get(&mut self, path: &str) -> String {
        self.send(path).await;
        self.response().await
    }

    async fn read_response(&mut self) -> std::io::Result<(String, String)> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await?);
        }
        let head = String::from_utf8(head).expect("text");
        let mut body = vec![0; content_length(&head)];
        self.0.read_exact(&mut body).await?;
        Ok((head, String::from_utf8(body).expect("text")))
    }

    /// Everything until the connection ends, and how it ended.
    async fn rest(&mut self) -> (Vec<u8>, Option<ErrorKind>) {
        let mut all = Vec::new();
        let end = tokio::time::timeout(LONG, self.0.read_to_end(&mut all)).await.expect("an end");
        (all, end.err().map(|error| error.kind()))
    }

    async fn is_reset(&mut self) -> bool {
        self.rest().await == (vec![], Some(ErrorKind::ConnectionReset))
    }

    /// Whether nothing comes, not even an end, for a while.
    async fn is_silent(&mut self) -> bool {
        tokio::time::timeout(Duration::from_millis(60), self.0.read_u8()).await.is_err()
    }
}

fn content_length(head: &str) -> usize {
    let field = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    field.map_or(0, |n| n.parse().expect("a number"))
}

/// An HTTP target that keeps connections alive: it answers every request with its path, and `/hold` only once let go.
#[derive(Clone)]
struct Target {
    addr: SocketAddr,
    seen: Rc<RefCell<Vec<String>>>,
    open: Rc<Cell<usize>>,
    let_go: Rc<tokio::sync::Notify>,
}

impl Target {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let target = Self { addr, seen: Rc::default(), open: Rc::default(), let_go: Rc::default() };
        let serving = target.clone();
        tokio::task::spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let target = serving.clone();
                tokio::task::spawn_local(async move {
                    target.open.set(target.open.get() + 1);
                    let _ = target.serve(stream).await;
                    target.open.set(target.open.get() - 1);
                });
            }
        });
        target
    }

    fn upstream(&self) -> Upstream {
        Upstream::at(self.addr)
    }

    fn requests(&self) -> usize {
        self.seen.borrow().len()
    }

    async fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut stream = tokio::io::BufReader::new(stream);
        loop {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await?);
            }
            let head = String::from_utf8(head).expect("text");
            let mut body = vec![0; content_length(&head)];
            stream.read_exact(&mut body).await?;
            let path = head.split(' ').nth(1).unwrap_or_default().to_string();
            self.seen.borrow_mut().push(path.clone());
            if path == "/hold" {
                self.hold(&mut stream).await?;
            }
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{path}", path.len());
            stream.write_all(answer.as_bytes()).await?;
        }
    }

    /// Waits to be let go, or for the client to give up.
    async fn hold(&self, stream: &mut (impl AsyncReadExt + Unpin)) -> std::io::Result<()> {
        tokio::select! {
            () = self.let_go.notified() => Ok(()),
            read = stream.read_u8() => read.map(drop),
        }
    }
}

/// A target for one connection: reads this many bytes, then sends these pieces, each in its own write, then closes
/// (or waits for the other side to). Gives what it read.
async fn scripted(expect: usize, pieces: Vec<Vec<u8>>, close: bool) -> (Upstream, tokio::task::JoinHandle<Vec<u8>>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let upstream = Upstream::at(listener.local_addr().expect("an address"));
    let reading = tokio::task::spawn_local(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        let mut read = vec![0; expect];
        stream.read_exact(&mut read).await.expect("as much as was promised");
        for piece in pieces {
            stream.write_all(&piece).await.expect("a reader");
            tokio::task::yield_now().await;
        }
        if !close {
            let _ = stream.read_u8().await;
        }
        read
    });
    (upstream, reading)
}
