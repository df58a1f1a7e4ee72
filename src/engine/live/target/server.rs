//! Sockets around the machine: every request is brought to it and answered as it says.

use super::control;
use super::desk::Desk;
use super::error::TargetError;
use super::io::Io;
use super::name::{Caller, named};
use super::page::{self, page};
use super::wire::{Stats, TargetStats};
use crate::engine::live::clock::Clock;
use crate::engine::live::timer::Timer;
use crate::service::{Answer, BROKEN, Holding, ServiceChange, SystemConfig, answer_body};
use crate::time::Span;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, watch};
use tracing::{debug, info};

/// How many connections may wait to be accepted; the kernel takes the smaller of this and `somaxconn`.
const BACKLOG: u32 = 8192;
/// The largest body that is read and discarded, in bytes; a larger one is answered with 413.
const MAX_BODY: u64 = 16 << 20;
/// The largest head of a request, in bytes, and with it the memory of a connection.
const MAX_HEAD: usize = 64 << 10;
/// How long the accept loop rests when file descriptors have run out.
const REST: Span = Span::from_millis(50);
/// How long requests may still be answered when the server ends.
const GRACE: Span = Span::from_millis(250);
/// What stands under this path is the target's own, and never load.
const OWN: &str = "/stormwake";
/// Where the counts are had.
const STATS_PATH: &str = "/stormwake/stats";
/// Where they are had as Prometheus reads them.
const METRICS_PATH: &str = "/metrics";
/// Where the service is changed.
const SERVICE_PATH: &str = "/stormwake/service";

/// A listening server. It lives on one thread.
pub struct Server {
    listener: TcpListener,
    addr: SocketAddr,
    timer: Timer,
    shared: Rc<Shared>,
}

/// Reads the counts of a server, and changes its service, while it serves; reads them after it too.
#[derive(Clone)]
pub struct Handle(Rc<Shared>);

struct Shared {
    desk: Rc<Desk>,
    seed: u64,
    connections: Cell<u64>,
    accept_errors: Cell<u64>,
    /// Told when the last connection has closed.
    all_closed: Notify,
}

impl Server {
    /// Listens on an address; must be called within a current_thread runtime with IO enabled.
    ///
    /// # Errors
    /// Where the address cannot be had (in use, not of this machine), or the kernel gives no timer.
    pub fn bind(addr: SocketAddr, config: &SystemConfig, seed: u64, clock: Arc<dyn Clock>) -> Result<Self, TargetError> {
        let listener = listen(addr).map_err(|source| TargetError::Bind { addr, source })?;
        let addr = listener.local_addr().map_err(|source| TargetError::Bind { addr, source })?;
        let timer = Timer::new().map_err(TargetError::Timer)?;
        let shared = Shared {
            desk: Desk::new(config, clock),
            seed,
            connections: Cell::new(0),
            accept_errors: Cell::new(0),
            all_closed: Notify::new(),
        };
        Ok(Self { listener, addr, timer, shared: Rc::new(shared) })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Reads its counts, and changes its service.
    pub fn handle(&self) -> Handle {
        Handle(self.shared.clone())
    }

    /// Serves until `stop` is ready; then accepts nothing more, lets what is in service be answered for a quarter
    /// of a second, and returns. Must run inside a `LocalSet`, for it spawns a task for each connection.
    ///
    /// # Errors
    /// When the timer fails, which the kernel documents only for misuse.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<(), TargetError> {
        let Self { listener, timer, shared, .. } = self;
        let (close, closing) = watch::channel(());
        let work = async {
            tokio::select! {
                () = stop => {}
                () = accept(&listener, &shared, &closing) => {}
            }
            drop(listener);
            // The receivers see the sender gone.
            drop(close);
            let _ = tokio::time::timeout(GRACE.to_std() * 2, shared.all_closed()).await;
        };
        tokio::select! {
            error = shared.desk.keep_time(timer) => Err(TargetError::Timer(error)),
            () = work => Ok(()),
        }
    }
}

impl Handle {
    /// The counts by now.
    pub fn read(&self) -> Stats {
        Stats::new(&self.0.desk.counts(), self.0.connections.get(), self.0.accept_errors.get())
    }

    /// Changes the service at once.
    pub fn change(&self, change: &ServiceChange) {
        info!("the service is changed");
        debug!(?change, "what is changed of it");
        self.0.desk.change(change);
    }

    /// By service, what of it can be changed, as it is by now; the front one first.
    pub fn holding(&self) -> Vec<(String, Holding)> {
        self.0.desk.holding()
    }

    /// The same, with those of each service and of their calls, where there are several.
    pub fn read_all(&self) -> TargetStats {
        let (each, calls) = self.0.desk.each();
        let services = each.into_iter().map(|(name, counts)| (name, Stats::new(&counts, 0, 0))).collect();
        TargetStats { front: self.read(), services, calls }
    }
}

impl Shared {
    async fn all_closed(&self) {
        while self.connections.get() > 0 {
            self.all_closed.notified().await;
        }
    }
}

/// Raises this process's limit of open files as far as it may without privileges; gives the limit, none where
/// there is none. Elsewhere than in its own process the target leaves that to the engine.
pub fn raise_file_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Where raising fails the old limit stands, and is what the caller hears of.
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    if raised.is_ok() { limit.maximum } else { limit.current }
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

/// Accepts for ever. Where file descriptors or memory have run out it rests before it tries again: the
/// connection stays in the backlog, and a loop would only burn the core that could free one.
async fn accept(listener: &TcpListener, shared: &Rc<Shared>, closing: &watch::Receiver<()>) {
    let mut number = 0u32;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let open = Open::new(shared.clone());
                tokio::task::spawn_local(connection(stream, (number, peer.ip()), open, closing.clone()));
                number = number.wrapping_add(1);
            }
            // The client left between the handshake and the accept: nothing of ours.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(_) => {
                shared.accept_errors.set(shared.accept_errors.get() + 1);
                tokio::time::sleep(REST.to_std()).await;
            }
        }
    }
}

/// Counts a connection while it is open.
struct Open(Rc<Shared>);

impl Open {
    fn new(shared: Rc<Shared>) -> Self {
        shared.connections.set(shared.connections.get() + 1);
        Self(shared)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let left = self.0.connections.get().saturating_sub(1);
        self.0.connections.set(left);
        if left == 0 {
            self.0.all_closed.notify_one();
        }
    }
}

/// Serves one connection until either side ends it. hyper drops the answer in the making when the client goes,
/// which is how the machine hears of it.
async fn connection(stream: TcpStream, whose: (u32, IpAddr), open: Open, mut closing: watch::Receiver<()>) {
    // Without it answers still arrive, only later.
    let _ = stream.set_nodelay(true);
    let requests = Cell::new(0u64);
    let service = service_fn(|request| {
        let count = requests.replace(requests.get() + 1);
        answer(request, whose, count, open.0.clone())
    });
    let mut serving = pin!(http1::Builder::new().max_buf_size(MAX_HEAD).serve_connection(Io(stream), service));
    tokio::select! {
        // How a connection ended is the client's affair, and counted where a request was lost with it.
        _ = serving.as_mut() => return,
        _ = closing.changed() => {}
    }
    serving.as_mut().graceful_shutdown();
    let _ = tokio::time::timeout(GRACE.to_std(), serving).await;
}

/// The service gave no answer, and wants the connection broken.
#[derive(Debug, thiserror::Error)]
#[error("the service broke the connection")]
struct Broken;

async fn answer(
    request: Request<Incoming>,
    (connection, peer): (u32, IpAddr),
    count: u64,
    shared: Rc<Shared>,
) -> Result<Response<Full<Bytes>>, Broken> {
    let handle = || Handle(shared.clone());
    match (request.uri().path(), request.method()) {
        (STATS_PATH, &Method::GET | &Method::HEAD) => return Ok(page::json(&handle().read_all())),
        (METRICS_PATH, &Method::GET) => return Ok(page::metrics(&handle().read_all(), &handle().holding())),
        (SERVICE_PATH, _) => return Ok(control::answer(request, peer, &handle()).await),
        (STATS_PATH, _) => return Ok(control::not_allowed("GET", "the counts are read: GET them\n")),
        (path, _) if path == OWN || path.strip_prefix(OWN).is_some_and(|rest| rest.starts_with('/')) => {
            return Ok(control::unknown());
        }
        _ => {}
    }
    let (head, body) = request.into_parts();
    if !discard(body).await {
        let mut refused = page(StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than 16 MiB\n");
        refused.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        return Ok(refused);
    }
    let (now, wall_millis) = (shared.desk.now(), shared.desk.wall_millis());
    let named = named(&head.headers, Caller { connection, request: count, peer, now, wall_millis });
    match shared.desk.request(named.key.key(shared.seed), named.destination, named.of).await {
        // An error ends the connection without a word.
        Answer { status: BROKEN, .. } => Err(Broken),
        answer => Ok(speak(answer, shared.desk.wall_millis())),
    }
}

/// Reads a body to its end and forgets it; false where it is too large or breaks off.
async fn discard(mut body: Incoming) -> bool {
    let mut left = MAX_BODY;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        let size = frame.data_ref().map_or(0, |data| data.len() as u64);
        match left.checked_sub(size) {
            Some(rest) => left = rest,
            None => return false,
        }
    }
    true
}

/// The machine's answer as HTTP.
fn speak(answer: Answer, wall_millis: i64) -> Response<Full<Bytes>> {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let mut response = page(status, answer_body(answer.status));
    if let Some((name, value)) = answer.hint.map(|said| said.header(wall_millis)) {
        let value = HeaderValue::from_str(&value).expect("numbers, dates and plain words are a header's value");
        response.headers_mut().insert(name, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::live::clock::LiveClock;
    use crate::policy::hint::HintForm;
    use crate::service::ServiceConfig;
    use crate::service::config::Servers;
    use crate::service::limiter::{LimiterConfig, LimitersConfig, Shared, SlidingLog};
    use crate::service::queue::{Bound, QueueConfig};
    use crate::service::refusal::{Refusing, RetryAfter};
    use crate::service::system::Member;
    use crate::service::time::ServiceTime;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const MS: fn(u64) -> Span = Span::from_millis;

    fn config(servers: u32, millis: u64, queue: u32, notices_cancel: bool) -> ServiceConfig {
        let service_time = ServiceTime::Constant(MS(millis));
        let queue = QueueConfig::of(Bound::Limited(queue));
        ServiceConfig { queue, notices_cancel, ..ServiceConfig::new(Servers::Limited(servers), service_time) }
    }

    /// Runs a client against a server; gives what the client gave and the server's last counts.
    fn with_server<T>(config: &ServiceConfig, client: impl AsyncFnOnce(SocketAddr, Handle) -> T) -> (T, Stats) {
        with_system(&SystemConfig::of(config.clone()), client)
    }

    /// The same with several services.
    fn with_system<T>(config: &SystemConfig, client: impl AsyncFnOnce(SocketAddr, Handle) -> T) -> (T, Stats) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            let server = Server::bind(any, config, 1, LiveClock::starting_now()).unwrap();
            let (addr, stats) = (server.addr(), server.handle());
            let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
            let reader = stats.clone();
            let (served, gave) = tokio::join!(server.serve(async { drop(stopped.await) }), async {
                let gave = client(addr, reader).await;
                drop(stop);
                gave
            });
            served.unwrap();
            assert_eq!(stats.read().connections, 0, "the end leaves no connection");
            (gave, stats.read())
        })
    }

    async fn connect(addr: SocketAddr) -> TcpStream {
        TcpStream::connect(addr).await.unwrap()
    }

    async fn send(stream: &mut TcpStream, text: &str) {
        stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads one response with a Content-Length: its head and body.
    async fn receive(stream: &mut TcpStream) -> String {
        let mut text = String::new();
        while !complete(&text) {
            let mut chunk = [0; 4096];
            let read =
                tokio::time::timeout(MS(5_000).to_std(), stream.read(&mut chunk)).await.expect("an answer in time").unwrap();
            assert!(read > 0, "closed after {text:?}");
            text.push_str(std::str::from_utf8(&chunk[..read]).unwrap());
        }
        text
    }

    fn complete(text: &str) -> bool {
        let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
        let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_string));
        body.len() >= length.map_or(0, |n| n.parse().unwrap())
    }

    async fn ask(stream: &mut TcpStream, head: &str) -> String {
        send(stream, &format!("{head}\r\nHost: t\r\n\r\n")).await;
        receive(stream).await
    }

    /// Waits, within bounds, until the server's counts are as wanted.
    async fn until(stats: &Handle, wanted: impl Fn(&Stats) -> bool) {
        for _ in 0..2_000 {
            if wanted(&stats.read()) {
                return;
            }
            tokio::time::sleep(MS(1).to_std()).await;
        }
        panic!("not within 2 s: {:?}", stats.read());
    }

    #[test]
    fn any_path_and_method_is_answered_on_one_connection_after_its_service_time() {
        let clock = LiveClock::starting_now();
        let (took, stats) = with_server(&config(1, 20, 10, false), async |addr, _| {
            let mut stream = connect(addr).await;
            let before = clock.now();
            let answer = ask(&mut stream, "GET / HTTP/1.1").await;
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nok\n"), "{answer}");
            let took = clock.now().since(before);
            send(&mut stream, "POST /deep/path?q=1 HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello").await;
            assert!(receive(&mut stream).await.starts_with("HTTP/1.1 200"));
            assert!(ask(&mut stream, "DELETE /x HTTP/1.1").await.starts_with("HTTP/1.1 200"));
            took
        });
        assert!(took >= MS(20), "{took}");
        assert_eq!((stats.arrived, stats.served), (3, 3));
        assert!((stats.useful_seconds - 0.06).abs() < 1e-9);
    }

    #[test]
    fn a_full_queue_is_refused_at_once_and_the_others_are_served_in_order() {
        let (_, stats) = with_server(&config(1, 50, 1, false), async |addr, stats| {
            let (mut first, mut second, mut third) = (connect(addr).await, connect(addr).await, connect(addr).await);
            send(&mut first, "GET / HTTP/1.1\r\nHost: t\r\n\r\n").await;
            until(&stats, |s| s.in_service == 1).await;
            send(&mut second, "GET / HTTP/1.1\r\nHost: t\r\n\r\n").await;
            until(&stats, |s| s.queued == 1).await;
            assert!(ask(&mut third, "GET / HTTP/1.1").await.starts_with("HTTP/1.1 503"));
            assert!(receive(&mut first).await.starts_with("HTTP/1.1 200"));
            assert!(receive(&mut second).await.starts_with("HTTP/1.1 200"));
        });
        assert_eq!((stats.served, stats.queue_full), (2, 1));
    }

    #[test]
    fn a_limiter_answers_with_its_status_and_hint() {
        for (hint, header) in [
            (None, "retry-after: 2\r\n"),
            (Some(HintForm::RetryAfterMs), "retry-after-ms: 1500\r\n"),
            (Some(HintForm::HttpDate), " GMT\r\n"),
            (Some(HintForm::RateLimit), "ratelimit: \"default\";r=0;t=2\r\n"),
        ] {
            let refusing = Refusing { retry_after: Some(RetryAfter::Constant(MS(1_500))), hint, ..Refusing::plain() };
            let shared = Shared { count_rejected: true, refusing, ..Shared::plain() };
            let limiter = SlidingLog { limit: 1, window: MS(60_000), shared };
            let limited = ServiceConfig {
                limiter: Some(LimitersConfig(vec![LimiterConfig::SlidingLog(limiter)])),
                ..config(1, 1, 1, false)
            };
            let (_, stats) = with_server(&limited, async |addr, _| {
                let mut stream = connect(addr).await;
                assert!(ask(&mut stream, "GET / HTTP/1.1").await.starts_with("HTTP/1.1 200"));
                let refused = ask(&mut stream, "GET / HTTP/1.1").await;
                assert!(refused.starts_with("HTTP/1.1 429") && refused.contains(header), "{refused}");
            });
            assert_eq!((stats.served, stats.limited), (1, 1));
        }
    }

    #[test]
    fn a_client_that_goes_is_noticed_and_its_work_given_up_or_done_in_vain() {
        for notices in [true, false] {
            let (_, stats) = with_server(&config(1, 100, 5, notices), async |addr, stats| {
                let mut going = connect(addr).await;
                send(&mut going, "GET / HTTP/1.1\r\nHost: t\r\n\r\n").await;
                until(&stats, |s| s.in_service == 1).await;
                drop(going);
                until(&stats, |s| s.cancelled == 1).await;
                let mut staying = connect(addr).await;
                assert!(ask(&mut staying, "GET / HTTP/1.1").await.starts_with("HTTP/1.1 200"));
            });
            let served = if notices { 1 } else { 2 };
            assert_eq!((stats.served, stats.cancelled, stats.given_up), (served, 1, u64::from(notices)), "notices: {notices}");
            assert_eq!(stats.wasted_seconds < 0.099, notices, "{stats:?}");
        }
    }

    #[test]
    fn the_counts_are_a_page_that_is_not_counted() {
        let (page, stats) = with_server(&config(1, 1, 5, false), async |addr, _| {
            let mut stream = connect(addr).await;
            ask(&mut stream, "GET / HTTP/1.1").await;
            ask(&mut stream, "GET /stormwake/stats HTTP/1.1").await
        });
        let (_, body) = page.split_once("\r\n\r\n").unwrap();
        let read: Stats = serde_json::from_str(body).unwrap();
        assert_eq!((read.arrived, read.served, read.connections, stats.arrived), (1, 1, 1, 1));
    }

    #[test]
    fn a_body_without_end_is_refused_and_its_connection_closed() {
        let (answer, stats) = with_server(&config(1, 1, 5, false), async |addr, _| {
            let mut stream = connect(addr).await;
            send(&mut stream, "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 99999999999\r\n\r\n").await;
            let (mut read, mut write) = stream.split();
            let chunk = vec![b'x'; 1 << 20];
            // The server stops reading past its bound, so the writes end in an error or stall; the answer ends the test.
            tokio::select! {
                () = async { while write.write_all(&chunk).await.is_ok() {} std::future::pending().await } => unreachable!("it never ends"),
                answer = async { let mut text = vec![0; 12]; read.read_exact(&mut text).await.map(|_| text) } => answer,
            }
        });
        assert_eq!(answer.unwrap(), b"HTTP/1.1 413");
        assert_eq!(stats.arrived, 0);
    }

    #[test]
    fn what_is_in_service_is_still_answered_when_the_server_ends_and_the_queue_is_cut() {
        // The second of the two would take until 300 ms after the end, which is past the grace.
        let (streams, stats) = with_server(&config(1, 150, 5, false), async |addr, stats| {
            let mut streams = [connect(addr).await, connect(addr).await];
            for (n, stream) in streams.iter_mut().enumerate() {
                send(stream, "GET / HTTP/1.1\r\nHost: t\r\n\r\n").await;
                until(&stats, |s| s.arrived == n as u64 + 1).await;
            }
            streams.map(|stream| stream.into_std().unwrap())
        });
        assert_eq!((stats.served, stats.connections), (1, 0));
        let [first, second] = streams.map(|mut stream| {
            stream.set_nonblocking(false).unwrap();
            let mut text = String::new();
            let _ = io::Read::read_to_string(&mut stream, &mut text);
            text
        });
        assert!(first.starts_with("HTTP/1.1 200"), "{first}");
        assert_eq!(second, "");
    }

    #[test]
    fn a_port_in_use_is_said_with_a_remedy() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let bound = runtime.block_on(async {
            Server::bind(taken.local_addr().unwrap(), &SystemConfig::of(config(1, 1, 1, false)), 1, LiveClock::starting_now())
                .err()
        });
        let message = bound.expect("it is taken").to_string();
        assert!(message.contains("cannot listen on 127.0.0.1:") && message.contains("choose another port"), "{message}");
    }

    /// Sends a request with a body on a connection of its own; the whole answer.
    async fn post(addr: SocketAddr, head: &str, body: &str) -> String {
        let mut stream = connect(addr).await;
        send(&mut stream, &format!("{head}\r\nHost: t\r\nContent-Length: {}\r\n\r\n{body}", body.len())).await;
        receive(&mut stream).await
    }

    #[test]
    fn the_service_is_changed_while_it_runs_and_what_is_wrong_is_said() {
        const POST: &str = "POST /stormwake/service HTTP/1.1";
        let ((), stats) = with_server(&config(1, 1, 5, false), async |addr, handle| {
            let yaml = post(addr, POST, "limiter: { sliding_log: { limit: 1, window: 1m } }\n").await;
            assert!(yaml.starts_with("HTTP/1.1 200") && yaml.contains(r#""limiter":["sliding_log"]"#), "{yaml}");
            let mut stream = connect(addr).await;
            assert!(ask(&mut stream, "GET / HTTP/1.1").await.starts_with("HTTP/1.1 200"));
            assert!(ask(&mut stream, "GET / HTTP/1.1").await.starts_with("HTTP/1.1 429"));
            let json = post(addr, POST, r#"{"limiter": "off", "drain": "50/s"}"#).await;
            assert!(
                json.contains(r#"{"capacity":1.0,"capacity_goal":1.0,"limiter":[],"drain":50.0,"down":false,"changes":2}"#),
                "{json}"
            );
            assert!(ask(&mut stream, "GET / HTTP/1.1").await.starts_with("HTTP/1.1 200"));

            let wrong = post(addr, POST, "capacity: 20\nlimitr: off\n").await;
            let parts = [
                "HTTP/1.1 400",
                "body:1:11: error: a share needs a unit",
                "body:2:1: error: unknown key `limitr`",
                "did you mean `limiter`?",
            ];
            assert!(parts.iter().all(|part| wrong.contains(part)), "{wrong}");
            for (head, body, status) in [
                (POST, "cache: cold".into(), "400"),
                ("GET /stormwake/nope HTTP/1.1", String::new(), "404"),
                ("POST /stormwake HTTP/1.1", "x".into(), "404"),
                ("POST /stormwake/stats HTTP/1.1", String::new(), "405"),
                ("GET /stormwake/service HTTP/1.1", String::new(), "405"),
                ("DELETE /stormwake/service HTTP/1.1", String::new(), "405"),
                ("POST /stormwake/service HTTP/1.1\r\nOrigin: http://elsewhere", "cache: cold".into(), "403"),
                (POST, "#".repeat((64 << 10) + 1), "413"),
                (POST, "\u{0}".into(), "400"),
            ] {
                let answer = post(addr, head, &body).await;
                assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{head}: {answer}");
            }
            assert_eq!(handle.holding()[0].1.changes, 2, "what is wrong changes nothing");
            let metrics = ask(&mut connect(addr).await, "GET /metrics HTTP/1.1").await;
            assert!(
                metrics.contains("content-type: text/plain; version=0.0.4")
                    && metrics.contains("\nstormwake_target_changes_total 2\n")
            );
        });
        assert_eq!((stats.arrived, stats.served, stats.limited), (3, 2, 1), "none of those count");
    }

    #[test]
    fn a_change_is_answered_with_what_holds_now_of_the_service_that_it_names() {
        let others = [("db".to_string(), Member::of(config(1, 1, 5, false)))].into();
        let system = SystemConfig { services: others, ..SystemConfig::of(config(1, 1, 5, false)) };
        with_system(&system, async |addr, _| {
            const REST: &str = r#""limiter":[],"drain":null,"#;
            for (body, said) in [
                ("capacity: 50%\nof: db", r#"{"of":"db","capacity":0.5,"capacity_goal":0.5,"#),
                // The ramp has gone the middle of the first of its hundred steps.
                ("{ capacity: 10%, over: 1h, of: service }", r#"{"of":"service","capacity":0.9955,"capacity_goal":0.1,"#),
            ] {
                let answer = post(addr, "POST /stormwake/service HTTP/1.1", body).await;
                assert!(answer.contains(&format!(r#"{said}{REST}"down":false,"changes":1}}"#)), "{body}: {answer}");
            }
            let unknown = post(addr, "POST /stormwake/service HTTP/1.1", "{ capacity: 10%, of: dv }").await;
            assert!(unknown.starts_with("HTTP/1.1 400") && unknown.contains("did you mean `db`?"), "{unknown}");
            let restart = post(addr, "POST /stormwake/service HTTP/1.1", "restart: { down_for: 1h }").await;
            assert!(restart.contains(r#""down":true,"changes":2}"#), "{restart}");
            let metrics = ask(&mut connect(addr).await, "GET /metrics HTTP/1.1").await;
            for line in ["capacity_ratio 0.9955", r#"service_capacity_ratio{service="db"} 0.5"#, "down 1", "changes_total 3"] {
                assert!(metrics.contains(&format!("\nstormwake_target_{line}\n")), "{line}: {metrics}");
            }
        });
    }
}
