//! The API's sockets: a thread of its own, so that no proxy's load keeps a call waiting; bounded in everything.

use super::{Asked, answer, browser, refused_at};
use crate::engine::live::plane::{Plane, Refusal};
use crate::engine::live::target::Io;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue, USER_AGENT};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};

/// The header that names the lease under which something is changed.
const LEASE: &str = "stormwake-lease";
/// The largest body of a call, in bytes.
const MAX_BODY: usize = 1 << 20;
/// How long a body may take.
const BODY_WITHIN: Duration = Duration::from_secs(5);
/// How long a head may take, and how long a connection may be idle before it.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
/// The largest head, in bytes.
const MAX_HEAD: usize = 16 << 10;
/// Connections at once. Where one more comes, the one that has been idle or slow for longest makes room.
const MAX_CONNECTIONS: usize = 256;
/// How long the accept loop rests when file descriptors have run out.
const REST: Duration = Duration::from_millis(20);
/// How long calls may still be answered at the end.
const GRACE: Duration = Duration::from_millis(250);

/// Why there is no API.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The address cannot be had.
    #[error("cannot listen on {addr} for the API: {source}; choose another with --api, or end what listens there")]
    Bind {
        /// Where it was to listen.
        addr: SocketAddr,
        /// Why it cannot.
        source: io::Error,
    },
    /// The system gives no thread.
    #[error("cannot start a thread for the API: {0}")]
    Thread(#[source] io::Error),
}

/// The API of a plane. Ends with the value.
pub struct Api {
    addr: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Api {
    /// Listens, and answers on a thread of its own.
    ///
    /// # Errors
    /// Where the address cannot be had.
    pub fn start(addr: SocketAddr, plane: Arc<Plane>) -> Result<Self, ApiError> {
        let bind = || {
            let listener = StdListener::bind(addr)?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        };
        let (addr, listener) = bind().map_err(|source| ApiError::Bind { addr, source })?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ApiError::Thread)?;
        let (end, ended) = oneshot::channel();
        let serve = move || tokio::task::LocalSet::new().block_on(&runtime, serve(listener, plane, ended));
        let thread = std::thread::Builder::new().name("proxy-api".into()).spawn(serve).map_err(ApiError::Thread)?;
        Ok(Self { addr, end: Some(end), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic there has closed what it served.
            let _ = thread.join();
        }
    }
}

/// The connections by the order in which they were last heard of, those answering apart.
#[derive(Default)]
struct Guests {
    idle: RefCell<BTreeMap<u64, Rc<Notify>>>,
    count: Cell<usize>,
    next: Cell<u64>,
    /// Told when the last has gone.
    gone: Notify,
}

impl Guests {
    /// Sends the one away that has said nothing for longest; false where all are being answered.
    fn make_room(&self) -> bool {
        let first = self.idle.borrow_mut().pop_first();
        first.inspect(|(_, leave)| leave.notify_one()).is_some()
    }
}

/// One connection's place among them.
struct Guest {
    guests: Rc<Guests>,
    leave: Rc<Notify>,
    number: Cell<u64>,
}

impl Guest {
    fn new(guests: Rc<Guests>) -> Self {
        guests.count.set(guests.count.get() + 1);
        let guest = Self { guests, leave: Rc::default(), number: Cell::new(0) };
        guest.rests();
        guest
    }

    /// It waits for a call, or sends one.
    fn rests(&self) {
        self.number.set(self.guests.next.replace(self.guests.next.get() + 1));
        self.guests.idle.borrow_mut().insert(self.number.get(), self.leave.clone());
    }

    /// Its call is complete, and being answered.
    fn is_answered(&self) {
        self.guests.idle.borrow_mut().remove(&self.number.get());
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.is_answered();
        self.guests.count.set(self.guests.count.get() - 1);
        if self.guests.count.get() == 0 {
            self.guests.gone.notify_one();
        }
    }
}

async fn serve(listener: StdListener, plane: Arc<Plane>, mut ended: oneshot::Receiver<()>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let guests = Rc::<Guests>::default();
    loop {
        let accepted = tokio::select! {
            _ = &mut ended => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                if guests.count.get() >= MAX_CONNECTIONS && !guests.make_room() {
                    continue;
                }
                tokio::task::spawn_local(connection(stream, plane.clone(), Guest::new(guests.clone())));
            }
            // The client left between the handshake and the accept: nothing of ours.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(_) => tokio::time::sleep(REST).await,
        }
    }
    drop(listener);
    while guests.make_room() {}
    if guests.count.get() > 0 {
        let _ = tokio::time::timeout(GRACE, guests.gone.notified()).await;
    }
}

async fn connection(stream: TcpStream, plane: Arc<Plane>, guest: Guest) {
    // Without it answers still arrive, only later.
    let _ = stream.set_nodelay(true);
    let guest = Rc::new(guest);
    let leave = guest.leave.clone();
    let service = service_fn(move |request| call(request, plane.clone(), guest.clone()));
    let mut builder = http1::Builder::new();
    // A client that has said all may close its side, and gets its answer to the end.
    builder.timer(Timer).header_read_timeout(HEAD_WITHIN).max_buf_size(MAX_HEAD).half_close(true);
    let serving = pin!(builder.serve_connection(Io(stream), service));
    tokio::select! {
        // How a connection ended is its client's affair.
        _ = serving => {}
        () = leave.notified() => {}
    }
}

async fn call(request: Request<Incoming>, plane: Arc<Plane>, guest: Rc<Guest>) -> Result<Response<Full<Bytes>>, Infallible> {
    let agent = request.headers().get(USER_AGENT);
    if agent.is_some_and(|agent| agent.as_bytes().starts_with(b"Mozilla/")) {
        return Ok(browser());
    }
    let (head, body) = request.into_parts();
    let body = match read(body).await {
        Ok(body) => body,
        Err(refusal) => {
            let mut answer = refused_at(head.uri.path(), &refusal);
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            return Ok(answer);
        }
    };
    guest.is_answered();
    // One that is no text names no lease that there is.
    let lease = head.headers.get(LEASE).map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned());
    let asked = Asked { method: &head.method, path: head.uri.path(), lease: lease.as_deref(), body: &body };
    let answer = answer(&plane, asked).await;
    guest.rests();
    Ok(answer)
}

async fn read(body: Incoming) -> Result<Bytes, Refusal> {
    match tokio::time::timeout(BODY_WITHIN, Limited::new(body, MAX_BODY).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Refusal::new(413, "the body is larger than 1 MiB")),
        Ok(Err(_)) => Err(Refusal::body("unexpected EOF")),
        Err(_) => Err(Refusal::new(408, "the body took longer than 5 s")),
    }
}

/// tokio's clock as hyper wants it.
#[derive(Clone, Copy)]
struct Timer;

impl hyper::rt::Timer for Timer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(Sleeping(Box::pin(tokio::time::sleep(duration))))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(Sleeping(Box::pin(tokio::time::sleep_until(deadline.into()))))
    }
}

struct Sleeping(Pin<Box<tokio::time::Sleep>>);

impl Future for Sleeping {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

impl hyper::rt::Sleep for Sleeping {}
