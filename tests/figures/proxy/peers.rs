//! Who stands in front of the proxy and behind it.

use socket2::{Domain, Socket, Type};
use std::future::Future;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// Longer than anything takes that happens at all.
const LONG: Duration = Duration::from_secs(10);

static MACHINE: Mutex<()> = Mutex::new(());

/// One measurement of these at a time.
pub fn alone() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Measures until it holds, a few times at most: what else a shared machine does for a moment must not decide.
pub fn tries(most: u32, mut measure: impl FnMut() -> Result<(), String>) {
    let mut missed = Vec::new();
    for _ in 0..most {
        match measure() {
            Ok(()) => return,
            Err(why) => missed.push(why),
        }
    }
    panic!("missed every time: {missed:?}");
}

/// Says what was measured, to whoever runs the tests with `--nocapture`.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

pub fn on_runtime<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}

/// Waits until something holds.
pub async fn until(mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LONG, "it never holds");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Sends four bytes, and waits for them to come back.
pub async fn exchange(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(b"ping").await?;
    let mut back = [0; 4];
    stream.read_exact(&mut back).await?;
    Ok(())
}

/// The same on a connection of its own.
pub async fn ping(addr: SocketAddr) -> io::Result<()> {
    exchange(&mut TcpStream::connect(addr).await?).await
}

/// How long after a moment a new client is served.
pub async fn serves(addr: SocketAddr, since: Instant) -> Result<Duration, String> {
    timeout(LONG, ping(addr)).await.map_err(|_| format!("{addr} serves nobody"))?.map_err(|error| format!("{addr}: {error}"))?;
    Ok(since.elapsed())
}

/// A listener whose queue is full, so that the kernel drops every SYN.
pub struct Listener {
    socket: Socket,
    pub addr: SocketAddr,
    /// Those who fill it.
    _inside: Vec<Socket>,
}

impl Listener {
    pub fn full() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a port");
        socket.listen(1).expect("it listens");
        let addr = socket.local_addr().ok().and_then(|addr| addr.as_socket()).expect("an address");
        let mut inside = Vec::new();
        loop {
            let client = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
            if client.connect_timeout(&addr.into(), Duration::from_millis(100)).is_err() {
                break;
            }
            inside.push(client);
            assert!(inside.len() < 100, "it has no end");
        }
        Self { socket, addr, _inside: inside }
    }

    /// Ends the outage: from now on everybody is let in.
    pub async fn accept(self) -> Upstream {
        let Self { socket, _inside, .. } = self;
        socket.listen(4_096).expect("it listens");
        let upstream = Upstream::on(socket.into(), Kind::Echo);
        // Until those are in who filled the queue, SYNs are dropped.
        timeout(LONG, ping(upstream.addr)).await.expect("it serves").expect("an answer");
        upstream
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Sends back what comes; closes behind `bye!`.
    Echo,
    /// The same, once it is told to go on.
    Hang,
    /// Sends without end.
    Flood,
}

#[derive(Default)]
struct Shared {
    resets: AtomicU64,
    sent: AtomicU64,
    goes_on: AtomicBool,
    told: Notify,
}

/// A service on a thread of its own, ended with the value.
pub struct Upstream {
    pub addr: SocketAddr,
    shared: Arc<Shared>,
    _end: tokio::sync::oneshot::Sender<()>,
}

impl Upstream {
    pub fn start() -> Self {
        Self::of(Kind::Echo)
    }

    pub fn hanging() -> Self {
        Self::of(Kind::Hang)
    }

    pub fn flooding() -> Self {
        Self::of(Kind::Flood)
    }

    fn of(kind: Kind) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a port");
        socket.listen(8_192).expect("it listens");
        Self::on(socket.into(), kind)
    }

    fn on(listener: StdListener, kind: Kind) -> Self {
        let addr = listener.local_addr().expect("an address");
        listener.set_nonblocking(true).expect("a socket");
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let shared = Arc::<Shared>::default();
        let inside = shared.clone();
        std::thread::spawn(move || {
            let accept = async {
                let listener = TcpListener::from_std(listener).expect("a listener");
                loop {
                    if let Ok((stream, _)) = listener.accept().await {
                        tokio::spawn(serve(stream, kind, inside.clone()));
                    }
                }
            };
            on_runtime(async {
                tokio::select! {
                    () = accept => {}
                    _ = ended => {}
                }
            });
        });
        Self { addr, shared, _end: end }
    }

    /// Answers everybody from now on.
    pub fn go_on(&self) {
        self.shared.goes_on.store(true, Ordering::SeqCst);
        self.shared.told.notify_waiters();
    }

    /// How many connections ended with a reset.
    pub fn resets(&self) -> u64 {
        self.shared.resets.load(Ordering::SeqCst)
    }

    /// Whether it has sent anything within a moment.
    pub async fn moves(&self) -> bool {
        let before = self.shared.sent.load(Ordering::SeqCst);
        sleep(Duration::from_millis(200)).await;
        before != self.shared.sent.load(Ordering::SeqCst)
    }
}

async fn serve(mut stream: TcpStream, kind: Kind, shared: Arc<Shared>) {
    let mut buffer = [0; 1024];
    let served: io::Result<()> = async {
        if kind == Kind::Hang {
            let told = shared.told.notified();
            if !shared.goes_on.load(Ordering::SeqCst) {
                told.await;
            }
        }
        while kind == Kind::Flood {
            let sent = stream.write(&buffer).await?;
            shared.sent.fetch_add(sent as u64, Ordering::SeqCst);
        }
        loop {
            let n = stream.read(&mut buffer).await?;
            if n == 0 {
                return Ok(());
            }
            stream.write_all(&buffer[..n]).await?;
            if buffer.starts_with(b"bye!") {
                return Ok(());
            }
        }
    }
    .await;
    if served.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset) {
        shared.resets.fetch_add(1, Ordering::SeqCst);
    }
}

/// How a connection ended for its client.
#[derive(Debug, PartialEq)]
pub enum Cut {
    Orderly,
    Reset,
}

impl Cut {
    /// On a connection whose client has all it wants and closes.
    pub async fn by_client(addr: SocketAddr) -> Self {
        Self::of(async {
            let mut stream = TcpStream::connect(addr).await?;
            exchange(&mut stream).await?;
            stream.shutdown().await?;
            stream.read(&mut [0]).await
        })
        .await
    }

    /// On one that the upstream closes.
    pub async fn by_upstream(addr: SocketAddr) -> Self {
        Self::of(async {
            let mut stream = TcpStream::connect(addr).await?;
            stream.write_all(b"bye!").await?;
            stream.read_exact(&mut [0; 4]).await?;
            stream.read(&mut [0]).await
        })
        .await
    }

    async fn of(connection: impl Future<Output = io::Result<usize>>) -> Self {
        match timeout(LONG, connection).await.expect("it ends") {
            Ok(0) => Self::Orderly,
            Ok(_) => panic!("it was sent more than it asked for"),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Self::Reset,
            Err(error) => panic!("it broke otherwise: {error}"),
        }
    }
}

/// Opens so many connections, 32 at a time, and asks for something on each. Most end with a reset, so that ports do not run out; one in
/// twenty in order.
pub async fn many_connections(addr: SocketAddr, count: usize) {
    let mut workers = tokio::task::JoinSet::new();
    for first in 0..32 {
        workers.spawn(async move {
            for n in (first..count).step_by(32) {
                if n % 20 == 0 {
                    assert_eq!(Cut::by_client(addr).await, Cut::Orderly);
                    continue;
                }
                let mut stream = TcpStream::connect(addr).await.expect("it listens");
                exchange(&mut stream).await.expect("an answer");
                stream.set_zero_linger().expect("a socket");
            }
        });
    }
    workers.join_all().await;
}

/// How many connects the kernel has lost because a listener's queue was full.
pub fn lost_connects() -> u64 {
    let text = std::fs::read_to_string("/proc/net/netstat").expect("Linux");
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let of = |wanted: &str| {
        let mut pairs = names.split_whitespace().zip(values.split_whitespace());
        pairs.find(|(name, _)| *name == wanted).and_then(|(_, value)| value.parse::<u64>().ok()).expect(wanted)
    };
    of("ListenOverflows") + of("ListenDrops")
}
