//! The way to the upstream: where it is, whether it speaks TLS, and one connection to it.

use super::io::Wire;
use crate::engine::live::clock::Clock;
use crate::time::Span;
use rustls_pki_types::ServerName;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Gives the address to dial, or says why there is none. Called at every connect, on the connection's own task: it
/// must not block for long.
pub type Resolve = Arc<dyn Fn() -> Result<SocketAddr, String> + Send + Sync>;

/// The same with every address that there is, to be tried in this order.
pub type ResolveAll = Arc<dyn Fn() -> Result<Vec<SocketAddr>, String> + Send + Sync>;

/// Where requests go.
#[derive(Clone)]
pub struct Upstream {
    resolve: ResolveAll,
    tls: Option<(Arc<rustls::ClientConfig>, ServerName<'static>)>,
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

    /// Speaks TLS to the upstream, which must prove this name. Clients still speak plain HTTP to the proxy.
    pub fn with_tls(self, config: Arc<rustls::ClientConfig>, name: ServerName<'static>) -> Self {
        Self { tls: Some((config, name)), ..self }
    }

    /// Connects, and says how long the TCP connect took, TLS apart. Takes as long as the kernel is willing to try.
    pub(super) async fn dial(&self, clock: &dyn Clock) -> Result<(Wire, Span), DialError> {
        let addrs = (self.resolve)().map_err(DialError::Denied)?;
        let began = clock.now();
        let stream = TcpStream::connect(addrs.as_slice()).await.map_err(DialError::Io)?;
        stream.set_nodelay(true).map_err(DialError::Io)?;
        let took = clock.now().since(began);
        let Some((config, name)) = &self.tls else { return Ok((Wire::Plain(stream), took)) };
        let connected = TlsConnector::from(config.clone()).connect(name.clone(), stream).await.map_err(DialError::Io)?;
        Ok((Wire::Tls(Box::new(connected)), took))
    }
}
