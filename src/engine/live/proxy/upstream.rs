//! The way to the upstream: where it is, whether it speaks TLS, and one connection to it.

use super::io::Wire;
use super::tls::{H2, HTTP_11};
use crate::engine::live::clock::Clock;
use crate::engine::live::tls::{self, TlsError};
use crate::plan::{Scheme, TargetUrl, TlsBack};
use crate::time::Span;
use rustls_pki_types::ServerName;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tracing::trace;

/// Gives the address to dial, or says why there is none. Called at every connect, on the connection's own task: it
/// must not block for long.
pub type Resolve = Arc<dyn Fn() -> Result<SocketAddr, String> + Send + Sync>;

/// The same with every address that there is, to be tried in this order.
pub type ResolveAll = Arc<dyn Fn() -> Result<Vec<SocketAddr>, String> + Send + Sync>;

/// Where requests go.
#[derive(Clone)]
pub struct Upstream {
    resolve: ResolveAll,
    tls: Option<Tls>,
}

/// How TLS is spoken to it.
#[derive(Clone)]
struct Tls {
    /// For HTTP/1.1 alone.
    config: Arc<rustls::ClientConfig>,
    /// For HTTP/2, or HTTP/1.1 where it does not speak that.
    h2: Arc<rustls::ClientConfig>,
    name: ServerName<'static>,
}

/// What an address of an upstream cannot be.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// It is no address.
    #[error("`{text}` is no upstream: {problem}; expected `host:port`, `http://host:port` or `https://host:port`")]
    Address {
        /// What was given.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// TLS cannot be spoken to it.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// What was agreed on with the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoken {
    /// HTTP/2, in TLS.
    Http2,
    /// HTTP/1.1, in TLS.
    Http11,
    /// There was nobody to ask: it is not TLS.
    Unsaid,
}

/// Why no connection came about.
#[derive(Debug)]
pub(super) enum DialError {
    /// The guard or the resolver said no.
    Denied(String),
    /// The network did, or TLS.
    Io(io::Error),
}

impl Upstream {
    /// An upstream at a fixed address.
    pub fn at(addr: SocketAddr) -> Self {
        Self::resolved_by(Arc::new(move || Ok(addr)))
    }

    /// An upstream whose address is asked for, and so can be checked, at every connect.
    pub fn resolved_by(resolve: Resolve) -> Self {
        Self::among(Arc::new(move || resolve().map(|addr| vec![addr])))
    }

    /// An upstream that is at the first of several addresses that accepts.
    pub fn among(resolve: ResolveAll) -> Self {
        Self { resolve, tls: None }
    }

    /// An upstream by its URL, of which only scheme, host and port mean anything; `resolve` gives its address. TLS is spoken where the scheme says
    /// so, as `back` has it.
    ///
    /// # Errors
    /// Certificates that cannot be read, or a host that none can name.
    pub fn from_url(url: &TargetUrl, resolve: Resolve, back: &TlsBack) -> Result<Self, TlsError> {
        let upstream = Self::resolved_by(resolve);
        match url.scheme {
            Scheme::Http => Ok(upstream),
            Scheme::Https => {
                let (config, name) = tls::client_for(&url.host, back)?;
                Ok(upstream.with_tls(config, name))
            }
        }
    }

    /// An upstream by what a user writes: `host:port`, `http://host:port` or `https://host:port`. A name is looked up at every connect, and nothing
    /// guards where that leads: for whoever runs a proxy, not for a plan.
    ///
    /// # Errors
    /// What is no such address; certificates that cannot be read, or a host that none can name.
    pub fn from_address(text: &str, back: &TlsBack) -> Result<Self, UpstreamError> {
        let wrong = |problem: &str| UpstreamError::Address { text: text.chars().take(100).collect(), problem: problem.into() };
        let (plain, with_scheme) = (!text.contains("://"), format!("http://{text}"));
        let url = TargetUrl::parse(if plain { &with_scheme } else { text }).map_err(|problem| wrong(&problem))?;
        if url.path != "/" {
            return Err(wrong("it has a path"));
        }
        // `http://` has a port of its own; a bare address has none, and guessing one helps nobody.
        if plain && !text.trim_end_matches('/').ends_with(&format!(":{}", url.port)) {
            return Err(wrong("it has no port"));
        }
        let (host, port) = (url.host.clone(), url.port);
        let resolve: Resolve = match host.parse() {
            Ok(ip) => Arc::new(move || Ok(SocketAddr::new(ip, port))),
            Err(_) => Arc::new(move || look_up(&host, port)),
        };
        Ok(Self::from_url(&url, resolve, back)?)
    }

    /// Speaks TLS to the upstream, which must prove this name. What it speaks to clients has nothing to do with that.
    pub fn with_tls(self, config: Arc<rustls::ClientConfig>, name: ServerName<'static>) -> Self {
        let mut h2 = (*config).clone();
        h2.alpn_protocols = vec![H2.to_vec(), HTTP_11.to_vec()];
        Self { tls: Some(Tls { config, h2: Arc::new(h2), name }), ..self }
    }

    /// Names no protocol in TLS: for who relays bytes, and cannot know what they are.
    #[must_use]
    pub fn of_bytes(mut self) -> Self {
        if let Some(tls) = &mut self.tls {
            Arc::make_mut(&mut tls.config).alpn_protocols.clear();
        }
        self
    }

    /// Connects, and says how long the TCP connect took, TLS apart. Takes as long as the kernel is willing to try.
    pub(super) async fn dial(&self, clock: &dyn Clock) -> Result<(Wire, Span), DialError> {
        let (stream, took) = self.connect(clock).await?;
        let Some(Tls { config, name, .. }) = &self.tls else { return Ok((Wire::Plain(stream), took)) };
        let connected = TlsConnector::from(config.clone()).connect(name.clone(), stream).await.map_err(DialError::Io)?;
        Ok((Wire::Tls(Box::new(connected)), took))
    }

    /// The same, and asks for HTTP/2 where there is TLS to ask in.
    pub(super) async fn dial_h2(&self, clock: &dyn Clock) -> Result<(Wire, Span, Spoken), DialError> {
        let (stream, took) = self.connect(clock).await?;
        let Some(Tls { h2, name, .. }) = &self.tls else { return Ok((Wire::Plain(stream), took, Spoken::Unsaid)) };
        let connected = TlsConnector::from(h2.clone()).connect(name.clone(), stream).await.map_err(DialError::Io)?;
        let agreed = connected.get_ref().1.alpn_protocol() == Some(H2);
        Ok((Wire::Tls(Box::new(connected)), took, if agreed { Spoken::Http2 } else { Spoken::Http11 }))
    }

    async fn connect(&self, clock: &dyn Clock) -> Result<(TcpStream, Span), DialError> {
        let addrs = (self.resolve)().map_err(DialError::Denied)?;
        let began = clock.now();
        let connected = TcpStream::connect(addrs.as_slice()).await;
        match &connected {
            Ok(_) => trace!(?addrs, "connected to an upstream"),
            Err(error) => trace!(?addrs, %error, "an upstream takes no connection"),
        }
        let stream = connected.map_err(DialError::Io)?;
        stream.set_nodelay(true).map_err(DialError::Io)?;
        Ok((stream, clock.now().since(began)))
    }
}

fn look_up(host: &str, port: u16) -> Result<SocketAddr, String> {
    let mut found = (host, port).to_socket_addrs().map_err(|error| format!("`{host}` cannot be resolved: {error}"))?;
    found.next().ok_or_else(|| format!("`{host}` has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(text: &str, server_name: Option<&str>) -> Result<Upstream, UpstreamError> {
        let server_name = server_name.map(ToString::to_string);
        Upstream::from_address(text, &TlsBack { ca_file: None, server_name, insecure_accept_any_certificate: true })
    }

    #[test]
    fn an_upstream_is_named_by_host_and_port_and_says_whether_it_speaks_tls() {
        for (text, addr, tls) in [
            ("127.0.0.1:9000", "127.0.0.1:9000", false),
            ("[::1]:9000", "[::1]:9000", false),
            ("http://127.0.0.1", "127.0.0.1:80", false),
            ("https://127.0.0.1:8443/", "127.0.0.1:8443", true),
            ("https://127.0.0.1", "127.0.0.1:443", true),
        ] {
            let upstream = from(text, None).expect(text);
            assert_eq!((upstream.resolve)(), Ok(vec![addr.parse().unwrap()]), "{text}");
            assert_eq!(upstream.tls.is_some(), tls, "{text}");
        }
        assert!((from("localhost:80", None).unwrap().resolve)().unwrap()[0].ip().is_loopback());
        let named = from("https://127.0.0.1:1", Some("provider.test")).unwrap();
        assert_eq!(named.tls.unwrap().name, ServerName::try_from("provider.test").unwrap());
        for text in ["", "127.0.0.1", "ftp://x:1", "127.0.0.1:0x1", "http://x/path", "x:1/path", "https://u@x"] {
            let Err(error) = from(text, None) else { panic!("{text:?} is no upstream") };
            assert!(error.to_string().contains("host:port"), "{error}");
        }
    }
}
