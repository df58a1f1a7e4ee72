//! scaffold
#![allow(missing_docs)]
use crate::engine::live::clock::Clock;
use crate::fault::{Active, Timeline};
use std::net::SocketAddr;
use std::sync::Arc;
pub struct Upstream { pub dial: Arc<dyn Fn() -> Result<SocketAddr, String> + Send + Sync>, pub tls: Option<(Arc<rustls::ClientConfig>, rustls_pki_types::ServerName<'static>)> }
pub struct Proxy { upstream: Upstream }
#[derive(Debug, thiserror::Error)]
#[error("the proxy cannot listen: {0}")]
pub struct ProxyError(String);
impl Proxy {
    pub fn bind(_timeline: Arc<Timeline>, _fleets: usize, _shards: usize, upstream: Upstream, _clock: Arc<dyn Clock>) -> Result<Proxy, ProxyError> { Ok(Self { upstream }) }
    pub fn addr(&self, _fleet: u16) -> SocketAddr { (self.upstream.dial)().expect("scaffold") }
    pub async fn serve(self: Arc<Self>, _shard: usize) {}
    pub fn apply(&self, _active: Active) {}
    pub fn touched(&self, _step: usize) -> u64 { 0 }
    pub fn clear(&self) -> bool { true }
    pub fn notices(&self) -> Vec<String> { vec![] }
}
