//! The API at its sockets: what comes before a call is looked at.

use super::{Asked, answer, browser, refused_at};
use crate::engine::live::plane::{Plane, Refusal};
use crate::engine::live::small_server::{Answers, ServeError, SmallServer, Unreadable};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use hyper::header::USER_AGENT;
use hyper::http::request::Parts;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// The header that names the lease under which something is changed.
const LEASE: &str = "stormwake-lease";
/// Connections at once.
const MAX_CONNECTIONS: usize = 256;

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
pub struct Api(SmallServer);

impl Api {
    /// Listens, and answers on a thread of its own.
    ///
    /// # Errors
    /// Where the address cannot be had.
    pub fn start(addr: SocketAddr, plane: Arc<Plane>) -> Result<Self, ApiError> {
        let started = SmallServer::start("proxy-api", addr, MAX_CONNECTIONS, plane);
        started.map(Self).map_err(|error| match error {
            ServeError::Bind { addr, source } => ApiError::Bind { addr, source },
            ServeError::Thread(source) => ApiError::Thread(source),
        })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.0.addr()
    }
}

impl Answers for Arc<Plane> {
    async fn answer(&self, head: &Parts, body: Result<Bytes, Unreadable>) -> Response<Full<Bytes>> {
        let agent = head.headers.get(USER_AGENT);
        if agent.is_some_and(|agent| agent.as_bytes().starts_with(b"Mozilla/")) {
            return browser();
        }
        let body = match body.map_err(refusal) {
            Ok(body) => body,
            Err(refusal) => return refused_at(head.uri.path(), &refusal),
        };
        // One that is no text names no lease that there is.
        let lease = head.headers.get(LEASE).map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned());
        answer(self, Asked { method: &head.method, path: head.uri.path(), lease: lease.as_deref(), body: &body }).await
    }
}

fn refusal(unreadable: Unreadable) -> Refusal {
    match unreadable {
        Unreadable::TooLarge => Refusal::new(413, "the body is larger than 1 MiB"),
        Unreadable::TooSlow => Refusal::new(408, "the body took longer than 5 s"),
        Unreadable::Broken => Refusal::body("unexpected EOF"),
    }
}
