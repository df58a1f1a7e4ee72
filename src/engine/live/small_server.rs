//! A small HTTP server beside the load: a thread of its own, so that neither waits for the other; bounded in everything.
//!
//! Owns the sockets. Leaves to others what is answered.

use super::target::Io;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::http::request::Parts;
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
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};

/// The largest body of a call, in bytes.
const MAX_BODY: usize = 1 << 20;
/// How long a body may take.
const BODY_WITHIN: Duration = Duration::from_secs(5);
/// How long a head may take, and how long a connection may be idle before it.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
/// The largest head, in bytes.
const MAX_HEAD: usize = 16 << 10;
/// How long the accept loop rests when file descriptors have run out.
const REST: Duration = Duration::from_millis(20);
/// How long calls may still be answered at the end.
const GRACE: Duration = Duration::from_millis(250);

/// Who answers the calls.
pub trait Answers: Clone + Send + 'static {
    /// The answer to a call: its head, and its body, as far as that could be read.
    fn answer(&self, head: &Parts, body: Result<Bytes, Unreadable>) -> impl Future<Output = Response<Full<Bytes>>>;
}

/// Why a call has no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is larger than 1 MiB.
    TooLarge,
    /// It took longer than 5 s.
    TooSlow,
    /// It broke off.
    Broken,
}

/// Why nobody answers.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be had.
    #[error("cannot listen on {addr}: {source}")]
    Bind {
        /// Where it was to listen.
        addr: SocketAddr,
        /// Why it cannot.
        source: io::Error,
    },
    /// The system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
}

/// A server. Ends with the value.
pub struct SmallServer {
    addr: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SmallServer {
    /// Listens, and answers on a thread of this name. Where one more connection comes than there may be at once, the one that has been
    /// idle or slow for longest makes room.
    ///
    /// # Errors
    /// Where the address cannot be had.
    pub fn start(name: &str, addr: SocketAddr, connections: usize, answers: impl Answers) -> Result<Self, ServeError> {
        let bind = || {
            let listener = StdListener::bind(addr)?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        };
        let (addr, listener) = bind().map_err(|source| ServeError::Bind { addr, source })?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ServeError::Thread)?;
        let (end, ended) = oneshot::channel();
        let serve = move || tokio::task::LocalSet::new().block_on(&runtime, serve(listener, connections, answers, ended));
        let thread = std::thread::Builder::new().name(name.into()).spawn(serve).map_err(ServeError::Thread)?;
        Ok(Self { addr, end: Some(end), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for SmallServer {
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

async fn serve(listener: StdListener, connections: usize, answers: impl Answers, mut ended: oneshot::Receiver<()>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let guests = Rc::<Guests>::default();
    loop {
        let accepted = tokio::select! {
            _ = &mut ended => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                if guests.count.get() >= connections && !guests.make_room() {
                    continue;
                }
                tokio::task::spawn_local(connection(stream, answers.clone(), Guest::new(guests.clone())));
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

async fn connection(stream: TcpStream, answers: impl Answers, guest: Guest) {
    // Without it answers still arrive, only later.
    let _ = stream.set_nodelay(true);
    let guest = Rc::new(guest);
    let leave = guest.leave.clone();
    let service = service_fn(move |request| call(request, answers.clone(), guest.clone()));
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

async fn call(request: Request<Incoming>, answers: impl Answers, guest: Rc<Guest>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = read(body).await;
    let whole = body.is_ok();
    guest.is_answered();
    let mut answer = answers.answer(&head, body).await;
    if !whole {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    guest.rests();
    Ok(answer)
}

async fn read(body: Incoming) -> Result<Bytes, Unreadable> {
    match tokio::time::timeout(BODY_WITHIN, Limited::new(body, MAX_BODY).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Unreadable::TooLarge),
        Ok(Err(_)) => Err(Unreadable::Broken),
        Err(_) => Err(Unreadable::TooSlow),
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
