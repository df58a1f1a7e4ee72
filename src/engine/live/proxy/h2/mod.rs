//! HTTP/2 with a client: hyper keeps the protocol, and every stream is a request that is judged by itself.
//!
//! A connection comes here by the preface that a client with prior knowledge sends, or by what TLS agreed on. The streams of a client share
//! one connection to the upstream: HTTP/2 there too, or HTTP/1.1 with a connection for each stream where an upstream behind TLS, or behind a
//! client's TLS, speaks nothing else (`route`).
//!
//! Faults act as on HTTP/1.1, with the stream in the place of the connection: what is swallowed is a stream, and the others go on; a reset of a share is an
//! RST_STREAM. What strikes every connection (`refuse`, `reset` at 100%) resets the connection. Pings are answered whatever acts: a wire that is dead as a
//! whole is a fault of bytes. An answer of the proxy's own does not wait for the request's body, which may never end.
//!
//! Interim answers (1xx) are not relayed, CONNECT is refused with 501, and there is no push.
//!
//! Bounds: [`STREAMS`] streams, [`WINDOW`] bytes of each that wait on either side, [`MAX_HEAD`] bytes of header fields; and twice as many
//! streams while those that their client has reset are cleared away.

mod body;
mod fates;
mod io;
mod route;
mod stream;
mod tapped;

use super::answer;
use super::client::Client;
use super::connection::End;
use super::http::MAX_HEAD;
use super::hub::{Hub, Registration};
use super::tls::ClientTls;
use super::upstream::Upstream;
use crate::engine::live::transport::Io;
use crate::fault::pipe;
use crate::fault::{Active, Origin, Strike};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use io::{Lent, Local};
use route::Route;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// What a client that speaks HTTP/2 sends first (RFC 9113, section 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Streams of a connection at once, as the client is told.
const STREAMS: u32 = 200;
/// Bytes of a stream that may wait. A connection has room for those of all its streams, so that one that is held starves no other.
const WINDOW: u32 = 64 * 1024;
const ALL_WINDOWS: u32 = STREAMS * WINDOW;
const HEADER_LIST: u32 = MAX_HEAD as u32;

/// Whether a client's first bytes are the preface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preface {
    /// They are not.
    Not,
    /// They may become it.
    Part,
    /// They are.
    Whole,
}

/// Looks at a client's first bytes.
pub(super) fn preface(bytes: &[u8]) -> Preface {
    let known = bytes.len().min(PREFACE.len());
    match bytes[..known] == PREFACE[..known] {
        true if known == PREFACE.len() => Preface::Whole,
        true if known > 0 => Preface::Part,
        _ => Preface::Not,
    }
}

/// A client's connection, as it is handed over.
pub(super) struct Visit {
    pub(super) hub: Rc<Hub>,
    pub(super) place: Registration,
    pub(super) upstream: Rc<Upstream>,
    pub(super) origin: Origin,
    pub(super) tls: Option<Arc<ClientTls>>,
    pub(super) number: u32,
    pub(super) client: Client,
    pub(super) inbox: Vec<u8>,
    pub(super) seen: Active,
    pub(super) generation: u64,
}

/// Why a stream is reset.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    /// A fault resets it.
    #[error("a fault resets the stream")]
    Fault,
    /// There are too many.
    #[error("too many streams are under way")]
    TooMany,
    /// The shard, or the way to the upstream, is no more.
    #[error("the connection is over")]
    Over,
    /// One of the two sides broke it off; the reason is passed on.
    #[error(transparent)]
    Broken(#[from] hyper::Error),
}

/// How a session is to end, apart from its client's will.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finish {
    /// The client is told to open another connection, and what is under way is brought to its end.
    Gracefully,
    /// At once, with FIN: what the client sends is read on for a moment, as behind a last answer.
    Close,
    /// With RST.
    Reset,
}

/// What the streams of a client share.
struct Session {
    hub: Rc<Hub>,
    origin: Origin,
    number: u32,
    requests: Cell<u64>,
    /// Streams under way.
    streams: Cell<u32>,
    route: Route,
    finish: Cell<Option<Finish>>,
    /// The connection's own task.
    task: RefCell<Option<Waker>>,
}

impl Session {
    /// Ends the connection; a reset is not taken back.
    fn finish(&self, how: Finish) {
        if !matches!(self.finish.get(), Some(Finish::Reset | Finish::Close)) {
            self.finish.set(Some(how));
        }
        if let Some(task) = &*self.task.borrow() {
            task.wake_by_ref();
        }
    }
}

/// Serves a client until its connection ends. To be called in the connection's own task.
pub(super) async fn serve(visit: Visit) {
    let Visit { hub, place, upstream, origin, tls, number, client, inbox, seen, generation } = visit;
    let client = Rc::new(RefCell::new(client));
    let session = Rc::new_cyclic(|session| Session {
        route: Route::new(session.clone(), hub.clone(), upstream, tls),
        hub,
        origin,
        number,
        requests: Cell::new(0),
        streams: Cell::new(0),
        finish: Cell::new(None),
        task: RefCell::new(None),
    });
    let serving = session.clone();
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| stream::serve(serving.clone(), request));
    let io = Io(Lent::new(client.clone(), inbox));
    let mut seen = Seen { active: seen, generation };
    let end = {
        let mut connection = pin!(builder().serve_connection(io, service));
        let mut told = false;
        poll_fn(|cx| {
            *session.task.borrow_mut() = Some(cx.waker().clone());
            if let Err(end) = seen.meet_change(&session) {
                return Poll::Ready(end);
            }
            match session.finish.get() {
                Some(Finish::Reset) => return Poll::Ready(End::Reset),
                Some(Finish::Close) => return Poll::Ready(End::Answered),
                Some(Finish::Gracefully) if !told => {
                    told = true;
                    connection.as_mut().graceful_shutdown();
                }
                _ => {}
            }
            if connection.as_mut().poll(cx).is_ready() {
                return Poll::Ready(End::Closed);
            }
            over(&mut client.borrow_mut(), cx)
        })
        .await
    };
    match (end, Rc::into_inner(client).map(RefCell::into_inner)) {
        (End::Reset, Some(mut client)) => {
            // For the streams that end with it.
            session.finish.set(Some(Finish::Reset));
            client.reset_on_close();
        }
        (End::Answered, Some(mut client)) => answer::linger(&mut client).await,
        (_, Some(client)) => farewell(client).await,
        (_, None) => {}
    }
    drop(place);
}

/// Closes behind what a fault of bytes has ended.
async fn farewell(mut client: Client) {
    if client.link().over().is_some() {
        poll_fn(|cx| client.link().poll_close(cx)).await;
    }
}

/// Ready once a fault of bytes has ended the connection: who has no more to say does not look.
fn over(client: &mut Client, cx: &mut Context<'_>) -> Poll<End> {
    client.link().drive(cx);
    match client.link().over() {
        Some(pipe::End::Reset) => Poll::Ready(End::Reset),
        Some(_) => Poll::Ready(End::Closed),
        None => Poll::Pending,
    }
}

fn builder() -> http2::Builder<Local> {
    let mut builder = http2::Builder::new(Local);
    builder
        .auto_date_header(false)
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(ALL_WINDOWS)
        .max_send_buf_size(WINDOW as usize)
        .max_header_list_size(HEADER_LIST)
        // A client that resets its streams before they are even looked at is cut off.
        .max_pending_accept_reset_streams(STREAMS as usize);
    builder
}

/// The last snapshot that the connection has met, and its number.
struct Seen {
    active: Active,
    generation: u64,
}

impl Seen {
    /// Lets what begins strike the connection as such; its streams meet it by themselves.
    fn meet_change(&mut self, session: &Session) -> Result<(), End> {
        let hub = &session.hub;
        if hub.is_closed() {
            return Err(End::Closed);
        }
        if self.generation == hub.generation() {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.active, hub.active());
        self.generation = hub.generation();
        if !hub.is_open() {
            return Err(End::Closed);
        }
        match self.active.onset(&before, session.origin, None, hub.control.clock.now()) {
            Some((step, Strike::Reset)) => {
                self.active.touch(step);
                Err(End::Reset)
            }
            Some((step, Strike::Close)) => {
                self.active.touch(step);
                Err(End::Answered)
            }
            // There is no request that could be swallowed.
            Some((_, Strike::Swallow { .. })) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preface_is_known_by_its_every_byte() {
        assert_eq!(preface(b""), Preface::Not);
        for len in 1..PREFACE.len() {
            assert_eq!(preface(&PREFACE[..len]), Preface::Part, "{len}");
        }
        assert_eq!(preface(PREFACE), Preface::Whole);
        assert_eq!(preface(&[PREFACE, &b"more"[..]].concat()), Preface::Whole);
        for other in [&b"POST / HTTP/1.1\r\n"[..], b"PRI * HTTP/2.0\r\n\r\nXX", b"\x16\x03\x01", b"GET"] {
            assert_eq!(preface(other), Preface::Not);
        }
    }
}
