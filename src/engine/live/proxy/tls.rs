//! TLS from clients: what the proxy shows them, and the handshake. It runs in the connection's own task and within [`PATIENCE`], so that
//! one that lingers holds up nobody else.
//!
//! Which certificate is shown is decided when the client has spoken, by the faults that act then. A connection that is established is not asked
//! again. Each certificate has a memory of sessions of its own, so a client that resumes one meets a bad certificate all the same.

use super::client::Client;
use super::connection::End;
use super::control::Trouble;
use super::hub::{Hub, Registration};
use super::link::Link;
use crate::engine::live::certificates::{CertificateError, Certificates};
use crate::fault::{Active, CertificateKind, Handshake, Origin, Request, Strike};
use rustls::ServerConfig;
use rustls::server::{Acceptor, ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a client may take for its part of a handshake. What a fault holds is not counted.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The protocols by their names in a handshake (ALPN).
pub(super) const H2: &[u8] = b"h2";
pub(super) const HTTP_11: &[u8] = b"http/1.1";

/// How a proxy speaks TLS to its clients.
pub struct ClientTls {
    good: ServerConfig,
    bad: Vec<(CertificateKind, ServerConfig)>,
    /// The number of the next handshake, for its dice.
    handshakes: AtomicU32,
    upstream: AtomicU8,
}

/// Whether the upstream is known to speak HTTP/2.
const UNKNOWN: u8 = 0;
const SPEAKS_H2: u8 = 1;
const SPEAKS_HTTP_11: u8 = 2;

impl ClientTls {
    /// Shows these certificates.
    ///
    /// # Errors
    /// When the library refuses its own settings.
    pub fn new(certificates: &Certificates) -> Result<Self, CertificateError> {
        let bad = |&kind: &CertificateKind| Ok((kind, config(certificates.bad(kind))?));
        let bad: Result<_, CertificateError> = CertificateKind::ALL.iter().map(bad).collect();
        let (handshakes, upstream) = (AtomicU32::new(0), AtomicU8::new(UNKNOWN));
        Ok(Self { good: config(&certificates.good)?, bad: bad?, handshakes, upstream })
    }

    /// What was found out of the upstream: clients are offered HTTP/2 from here on only if it speaks that.
    pub(super) fn learn(&self, speaks_h2: bool) {
        self.upstream.store(if speaks_h2 { SPEAKS_H2 } else { SPEAKS_HTTP_11 }, Ordering::Relaxed);
    }

    /// What is shown; `http` where the proxy understands HTTP, so that there is a protocol to agree on.
    fn config(&self, bad: Option<CertificateKind>, http: bool) -> Arc<ServerConfig> {
        let of_kind = |kind| self.bad.iter().find(|(of, _)| *of == kind).map(|(_, config)| config);
        let mut config = bad.and_then(of_kind).unwrap_or(&self.good).clone();
        if http {
            let h2 = self.upstream.load(Ordering::Relaxed) != SPEAKS_HTTP_11;
            config.alpn_protocols = h2.then(|| H2.to_vec()).into_iter().chain([HTTP_11.to_vec()]).collect();
        }
        Arc::new(config)
    }

    /// Brings a client's handshake to its end; none where it has failed, or a fault has ended the connection. To be called in the
    /// connection's own task.
    pub(super) async fn greet(&self, link: Link, hub: Rc<Hub>, origin: Origin, http: bool) -> Option<Client> {
        let connection = Request::foreign(origin, self.handshakes.fetch_add(1, Ordering::Relaxed), 0);
        let (place, seen, generation) = (hub.register().await, hub.active(), hub.generation());
        let mut guard = Guard { hub, _place: place, connection, seen, generation, met: Vec::new() };
        match guard.shake(self, link, http).await {
            Ok(stream) => Some(Client::Tls(Box::new(stream))),
            Err(Some(error)) if guard.met.is_empty() => {
                guard.hub.control.trouble.failed_handshake(&error);
                None
            }
            Err(_) => None,
        }
    }
}

fn config(shown: &Arc<CertifiedKey>) -> Result<ServerConfig, CertificateError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_no_client_auth().with_cert_resolver(Arc::new(Shown(shown.clone()))))
}

/// The one certificate, whatever name the client asks for.
#[derive(Debug)]
struct Shown(Arc<CertifiedKey>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

/// A handshake that is under way, and the faults that it meets.
struct Guard {
    hub: Rc<Hub>,
    _place: Registration,
    connection: Request,
    seen: Active,
    generation: u64,
    /// The steps that have struck it.
    met: Vec<usize>,
}

/// Why there is no stream; nothing to say where a fault or the client's leave has ended it.
type Failed = Option<io::Error>;

impl Guard {
    async fn shake(&mut self, tls: &ClientTls, link: Link, http: bool) -> Result<TlsStream<Link>, Failed> {
        let mut hello = LazyConfigAcceptor::new(Acceptor::default(), link);
        let start = match self.within(&mut hello).await {
            Ok(Ok(start)) => start,
            Ok(Err(error)) => return Err(said(hello.take_io(), error).await),
            Err(end) => return Err(reset(hello.take_io().as_mut(), end)),
        };
        let (accepted, mut link) = (start.accepted, start.io);
        let shown = match self.judge(&mut link).await {
            Ok(shown) => shown,
            Err(end) => return Err(reset(Some(&mut link), end)),
        };
        let start = tokio_rustls::StartHandshake::from_parts(accepted, link);
        let mut finish = start.into_stream(tls.config(shown, http));
        match self.within(&mut finish).await {
            Ok(finished) => finished.map_err(Some),
            Err(end) => Err(reset(finish.get_mut(), end)),
        }
    }

    /// What the client is shown: nothing special where no fault has a say. Waits as long as one holds the handshake.
    async fn judge(&mut self, link: &mut Link) -> Result<Option<CertificateKind>, End> {
        loop {
            self.hub.refresh();
            self.meet_change()?;
            let Some((step, handshake)) = self.seen.handshake(&self.connection, &self.met) else { return Ok(None) };
            self.seen.touch(step);
            self.met.push(step);
            match handshake {
                Handshake::Show(kind) => return Ok(Some(kind)),
                Handshake::Hold { release } => poll_fn(|cx| self.poll_held(link, cx, release.then_some(step))).await?,
            }
        }
    }

    /// Ready when the step that holds the handshake has ended, if it lets go of it then. A client that has said its hello has nothing more
    /// to say.
    fn poll_held(&mut self, link: &mut Link, cx: &mut Context<'_>, until: Option<usize>) -> Poll<Result<(), End>> {
        self.meet_change()?;
        if until.is_some_and(|step| !self.seen.contains(step)) {
            return Poll::Ready(Ok(()));
        }
        let mut bytes = [0; 64];
        loop {
            match super::io::poll_read(link, cx, &mut bytes) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(End::Closed)),
            }
        }
    }

    /// Waits for a part of the handshake, while the faults let it be.
    async fn within<T>(&mut self, part: impl Future<Output = io::Result<T>>) -> Result<io::Result<T>, End> {
        let mut part = pin!(tokio::time::timeout(PATIENCE, part));
        let done = poll_fn(|cx| {
            self.meet_change()?;
            part.as_mut().poll(cx).map(Ok)
        });
        Ok(done.await?.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())))
    }

    fn meet_change(&mut self) -> Result<(), End> {
        if self.hub.is_closed() || !self.hub.is_open() {
            return Err(End::Closed);
        }
        if self.generation == self.hub.generation() {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.seen, self.hub.active());
        self.generation = self.hub.generation();
        match self.seen.onset(&before, self.connection.origin, None, self.hub.control.clock.now()) {
            Some((step, Strike::Reset)) => {
                self.seen.touch(step);
                Err(End::Reset)
            }
            Some((step, Strike::Close)) => {
                self.seen.touch(step);
                Err(End::Closed)
            }
            // There is no request that could be swallowed.
            Some((_, Strike::Swallow { .. })) | None => Ok(()),
        }
    }
}

/// Why a client's first words were no greeting. The alert that says so has been written; a client that only came and went has said nothing.
async fn said(link: Option<Link>, error: io::Error) -> Failed {
    if let Some(mut link) = link {
        let _ = link.shutdown().await;
    }
    let gone = matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset);
    (!gone).then_some(error)
}

fn reset(link: Option<&mut Link>, end: End) -> Failed {
    if let (Some(link), End::Reset) = (link, end) {
        link.reset_on_close();
    }
    None
}

impl Trouble {
    fn failed_handshake(&self, error: &io::Error) {
        Self::count(&self.handshakes);
        let why = match error.kind() {
            io::ErrorKind::TimedOut => format!("it took longer than {} s", PATIENCE.as_secs()),
            _ => error.to_string(),
        };
        *self.handshakes_why.lock().expect("nobody panics while holding it") = why;
    }
}
