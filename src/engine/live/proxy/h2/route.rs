//! The way of a client's streams to the upstream: one connection of HTTP/2 for all of them, or one of HTTP/1.1 for each.
//!
//! It is dialled when the first stream is forwarded, in a task of its own, so that a fault that holds that stream holds up no other. When the
//! upstream closes it in good order, or says that it will, the client is told the same; streams that come meanwhile take a new one. When it breaks with a
//! reset, so does the client's connection.

use super::super::hub::Hub;
use super::super::tls::ClientTls;
use super::super::upstream::{DialError, Spoken, Upstream};
use super::body::Relayed;
use super::io::{Local, Upwards};
use super::{ALL_WINDOWS, Finish, HEADER_LIST, Refusal, Session, WINDOW};
use crate::engine::live::transport::Io;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::{COOKIE, HOST, HeaderValue, TE};
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{Request, Response, Uri, Version};
use std::cell::{Cell, RefCell};
use std::error::Error;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long an upstream may take to say what it speaks, where it has to be found out.
const PROBE: Duration = Duration::from_secs(2);

/// Why a request has no response.
pub(super) enum Unsent {
    /// There is no connection to the upstream.
    Unreachable,
    /// It names no host, or one that is none.
    Malformed,
    /// The stream is over.
    Refused(Refusal),
}

/// A way that has been found.
#[derive(Clone)]
enum Way {
    /// A connection of HTTP/2, and its number.
    Http2(http2::SendRequest<Relayed>, u64),
    /// The upstream speaks HTTP/1.1: a connection for each stream.
    Http11,
    /// There is none.
    None,
}

pub(super) struct Route {
    session: Weak<Session>,
    hub: Rc<Hub>,
    upstream: Rc<Upstream>,
    /// Whether the client came by TLS, and so may never have meant HTTP/2.
    tls: Option<Arc<ClientTls>>,
    /// The way, once it is found; as long as somebody looks for it, nothing.
    way: RefCell<Option<watch::Receiver<Option<Way>>>>,
    dials: Cell<u64>,
}

impl Route {
    pub(super) fn new(session: Weak<Session>, hub: Rc<Hub>, upstream: Rc<Upstream>, tls: Option<Arc<ClientTls>>) -> Self {
        Self { session, hub, upstream, tls, way: RefCell::new(None), dials: Cell::new(0) }
    }

    /// Sends a request, and gives the response once its head is there.
    pub(super) async fn send(&self, request: Request<Relayed>) -> Result<Response<Incoming>, Unsent> {
        let mut request = with_host(request)?;
        // An upstream may close between any two streams: one that was not sent takes the next connection, once.
        for last in [false, true] {
            match self.way().await {
                Way::None => return Err(Unsent::Unreachable),
                Way::Http11 => return self.send_http_11(request).await,
                Way::Http2(mut sender, number) => match sender.try_send_request(request).await {
                    Ok(response) => return Ok(response),
                    Err(mut error) => match error.take_message() {
                        Some(unsent) if !last => {
                            self.forget(number);
                            request = unsent;
                        }
                        _ => return Err(Unsent::Refused(error.into_error().into())),
                    },
                },
            }
        }
        Err(Unsent::Unreachable)
    }

    /// The way that all streams share; looked for where there is none.
    async fn way(&self) -> Way {
        let mut found = self.way.borrow_mut().get_or_insert_with(|| self.look()).clone();
        let way = found.wait_for(Option::is_some).await.ok().and_then(|way| way.clone()).unwrap_or(Way::None);
        if matches!(way, Way::None) {
            // The next stream tries again.
            self.way.borrow_mut().take_if(|known| known.same_channel(&found));
        }
        way
    }

    /// Looks for a way, in a task of its own.
    fn look(&self) -> watch::Receiver<Option<Way>> {
        let (tell, found) = watch::channel(None);
        let number = self.dials.replace(self.dials.get() + 1);
        let search = Search {
            session: self.session.clone(),
            hub: self.hub.clone(),
            upstream: self.upstream.clone(),
            tls: self.tls.clone(),
            number,
        };
        tokio::task::spawn_local(async move {
            tokio::select! {
                way = search.find() => drop(tell.send(Some(way))),
                // Nobody waits for it any more: the client has gone.
                () = tell.closed() => {}
            }
        });
        found
    }

    /// A connection is over.
    fn forget(&self, number: u64) {
        let is_that =
            |known: &mut watch::Receiver<Option<Way>>| matches!(&*known.borrow(), Some(Way::Http2(_, of)) if *of == number);
        self.way.borrow_mut().take_if(is_that);
    }

    /// Sends a request in HTTP/1.1, on a connection of its own.
    async fn send_http_11(&self, request: Request<Relayed>) -> Result<Response<Incoming>, Unsent> {
        let wire = match self.upstream.dial(&*self.hub.control.clock).await {
            Ok((wire, took)) => {
                self.hub.control.connected(took);
                wire
            }
            Err(error) => {
                self.hub.control.trouble.failed_dial(&error);
                return Err(Unsent::Unreachable);
            }
        };
        let refused = |error: hyper::Error| Unsent::Refused(error.into());
        let (mut sender, connection) = http1::handshake(Io(Upwards::new(wire))).await.map_err(refused)?;
        tokio::task::spawn_local(async move { drop(connection.await) });
        sender.send_request(as_http_11(request)).await.map_err(refused)
    }
}

/// Somebody who looks for a way.
struct Search {
    session: Weak<Session>,
    hub: Rc<Hub>,
    upstream: Rc<Upstream>,
    tls: Option<Arc<ClientTls>>,
    number: u64,
}

impl Search {
    async fn find(&self) -> Way {
        match self.dial().await {
            Ok(way) => way,
            Err(error) => {
                self.hub.control.trouble.failed_dial(&error);
                Way::None
            }
        }
    }

    async fn dial(&self) -> Result<Way, DialError> {
        let (wire, took, spoken) = self.upstream.dial_h2(&*self.hub.control.clock).await?;
        self.hub.control.connected(took);
        let mut wire = Upwards::new(wire);
        let speaks_h2 = match (spoken, &self.tls) {
            (Spoken::Http2, _) => Some(true),
            (Spoken::Http11, _) => Some(false),
            // The client knows that the upstream speaks it, or will see that it does not.
            (Spoken::Unsaid, None) => Some(true),
            // It is the proxy that has offered it.
            (Spoken::Unsaid, Some(_)) => {
                tokio::time::timeout(PROBE, wire.probe()).await.map_or(Ok(None), |probed| probed).unwrap_or(None)
            }
        };
        if let (Some(tls), Some(speaks_h2)) = (&self.tls, speaks_h2) {
            tls.learn(speaks_h2);
        }
        if speaks_h2 != Some(true) {
            return Ok(Way::Http11);
        }
        let mut builder = http2::Builder::new(Local);
        builder
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(ALL_WINDOWS)
            .max_send_buf_size(WINDOW as usize)
            .max_header_list_size(HEADER_LIST);
        let handshake = builder.handshake(Io(wire)).await;
        let (sender, connection) = handshake.map_err(|error| DialError::Io(std::io::Error::other(error)))?;
        let (session, number) = (self.session.clone(), self.number);
        tokio::task::spawn_local(async move {
            let ended = connection.await;
            if let Some(session) = session.upgrade() {
                session.route.forget(number);
                session.finish(if ended.is_err_and(|error| is_reset(&error)) { Finish::Reset } else { Finish::Gracefully });
            }
        });
        Ok(Way::Http2(sender, number))
    }
}

/// Whether a reset of the connection is behind an error.
fn is_reset(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset) {
            return true;
        }
        next = error.source();
    }
    false
}

/// The request with scheme and host in its address, as HTTP/2 wants them.
fn with_host(mut request: Request<Relayed>) -> Result<Request<Relayed>, Unsent> {
    if request.uri().authority().is_some() && request.uri().scheme().is_some() {
        return Ok(request);
    }
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    let named = || Authority::try_from(request.headers().get(HOST)?.as_bytes()).ok();
    parts.authority = Some(parts.authority.take().or_else(named).ok_or(Unsent::Malformed)?);
    parts.scheme = parts.scheme.or(Some(Scheme::HTTP));
    parts.path_and_query = parts.path_and_query.or(Some(PathAndQuery::from_static("/")));
    *request.uri_mut() = Uri::from_parts(parts).map_err(|_| Unsent::Malformed)?;
    Ok(request)
}

/// The request as HTTP/1.1 has it (RFC 9113, section 8.3): the host in a field, cookies in one, no word of what HTTP/2 does with trailers.
fn as_http_11(mut request: Request<Relayed>) -> Request<Relayed> {
    let uri = std::mem::take(request.uri_mut());
    if let Some(Ok(host)) = uri.authority().map(|authority| HeaderValue::from_str(authority.as_str())) {
        request.headers_mut().entry(HOST).or_insert(host);
    }
    let path = uri.into_parts().path_and_query.unwrap_or(PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from(path);
    *request.version_mut() = Version::HTTP_11;
    request.headers_mut().remove(TE);
    let crumbs: Vec<&[u8]> = request.headers().get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if crumbs.len() > 1
        && let Ok(whole) = HeaderValue::from_bytes(&crumbs.join(&b"; "[..]))
    {
        request.headers_mut().insert(COOKIE, whole);
    }
    request
}
