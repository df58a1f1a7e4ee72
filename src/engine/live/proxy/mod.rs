//! The fault proxy between clients and target.
//!
//! Owns the sockets and carries out what [`crate::fault`] decides; leaves to others when which fault acts (the engine
//! calls [`Proxy::apply`]) and what harm that is (`fault`). It relays HTTP/1.1 byte for byte and understands only where
//! a message ends. One port per fleet and region, so that a fault's scope needs no header; on it one listener per shard
//! (SO_REUSEPORT), so that a client and its proxy connection mostly share nothing with other threads.
//!
//! Nothing here blocks on a connection: a snapshot is swapped atomically, every new request is judged by it from that
//! moment, and every live connection is woken to meet it. What a client sees of the upstream is what it would see
//! directly, with one exception: where the upstream refuses or cannot be reached, the client is connected already,
//! and its connection is reset.
//!
//! A client that speaks HTTP/2 is served stream by stream (`h2`); one that speaks TLS is served as any other once its handshake is over (`tls`).

mod accept;
mod answer;
mod body;
mod client;
mod connection;
mod control;
mod exchange;
mod fates;
mod h2;
mod harm;
mod http;
mod hub;
mod io;
mod link;
mod listen;
mod places;
mod relay;
mod tap;
#[cfg(test)]
mod tests;
mod tls;
mod upstream;

pub use answer::UNREACHABLE;
pub use listen::Port;
pub use tap::Tap;
pub use tls::ClientTls;
pub use upstream::{Resolve, ResolveAll, Upstream, UpstreamError};

use super::clock::Clock;
use crate::fault::{Active, Origin};
use crate::metrics::Connects;
use accept::Door;
use control::Control;
use hub::Hub;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Why there is no proxy.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// No port, or no listener on it.
    #[error("the proxy cannot listen on a loopback port: {0}. Is `ulimit -n` large enough, and may this user open sockets?")]
    Listen(#[source] std::io::Error),
}

/// What a proxy understands of what it relays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP: every request is judged by itself.
    #[default]
    Http,
    /// Bytes: faults of connections and of bytes alone.
    Tcp,
}

/// A port of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entrance {
    /// Where its traffic comes from.
    pub origin: Origin,
    /// Where it listens; any free port of the loopback address where nothing is said.
    pub listen: Option<SocketAddr>,
}

impl From<Origin> for Entrance {
    fn from(origin: Origin) -> Self {
        Self { origin, listen: None }
    }
}

/// What a proxy is made from.
pub struct ProxySetup {
    /// The snapshot in which nothing acts.
    pub nothing: Active,
    /// Where traffic comes from, in order of origin: each has a port of its own.
    pub entrances: Vec<Entrance>,
    /// What is spoken on its connections.
    pub protocol: Protocol,
    /// How many shards will call [`Proxy::serve`].
    pub shards: usize,
    /// Where requests go.
    pub upstream: Upstream,
    /// The run's clock, for rate limits.
    pub clock: Arc<dyn Clock>,
}

/// The proxy. Shared by all threads through an `Arc`.
pub struct Proxy {
    control: Arc<Control>,
    nothing: Active,
    upstream: Upstream,
    entrances: Vec<Entrance>,
    protocol: Protocol,
    tls: Option<Arc<ClientTls>>,
    /// By entrance.
    ports: Vec<Arc<Port>>,
    backlog: u32,
    backlog_notice: Option<String>,
    /// By shard and origin: listeners that wait for their shard to serve.
    waiting: Mutex<Vec<Vec<TcpListener>>>,
}

impl Proxy {
    /// Reserves a loopback port for each origin and opens its listeners. Clients may connect from here on; they are
    /// served once their shard is.
    ///
    /// # Errors
    /// When the kernel gives no socket.
    pub fn bind(setup: ProxySetup) -> Result<Self, ProxyError> {
        Self::bind_over(setup, &[])
    }

    /// The same, on ports that other proxies hold already where these are asked for. Both listen until the other one is
    /// dropped, so that what takes another's place can be ready before that goes.
    ///
    /// # Errors
    /// When the kernel gives no socket.
    pub fn bind_over(setup: ProxySetup, held: &[Arc<Port>]) -> Result<Self, ProxyError> {
        let ProxySetup { nothing, entrances, protocol, shards, upstream, clock } = setup;
        let (backlog, backlog_notice) = listen::backlog();
        let port = |entrance: &Entrance| match held.iter().find(|port| Some(port.addr) == entrance.listen) {
            Some(port) => Ok(port.clone()),
            None => Port::reserve(entrance.listen).map(Arc::new),
        };
        let ports: Vec<_> = entrances.iter().map(port).collect::<Result<_, _>>().map_err(ProxyError::Listen)?;
        let listeners = || ports.iter().map(|port| listen::open(port.addr, backlog)).collect::<Result<_, _>>();
        let waiting: Vec<_> = (0..shards).map(|_| listeners()).collect::<Result<_, _>>().map_err(ProxyError::Listen)?;
        let control = Control::new(clock, nothing.clone(), ports.len(), shards);
        let (control, waiting) = (Arc::new(control), Mutex::new(waiting));
        let tls = None;
        Ok(Self { control, nothing, upstream, entrances, protocol, tls, ports, backlog, backlog_notice, waiting })
    }

    /// Speaks TLS to clients, on every port.
    pub fn with_tls(self, tls: ClientTls) -> Self {
        Self { tls: Some(Arc::new(tls)), ..self }
    }

    /// The same with a tap, which counts what passes. Its traffic then is a service's own: nothing in a request's headers makes it one of our clients'.
    ///
    /// # Panics
    /// Once a shard serves it.
    #[must_use]
    pub fn with_tap(mut self, tap: Tap) -> Self {
        Arc::get_mut(&mut self.control).expect("no shard serves it yet").tap = Some(tap);
        self
    }

    /// Its tap, if it has one.
    pub fn tap(&self) -> Option<&Tap> {
        self.control.tap.as_ref()
    }

    /// Where the clients of a fleet, in a region, connect.
    ///
    /// # Panics
    /// For an origin that the proxy was not bound for.
    pub fn addr(&self, origin: impl Into<Origin>) -> SocketAddr {
        let origin = origin.into();
        let place = self.entrances.binary_search_by_key(&origin, |entrance| entrance.origin).expect("the proxy was bound for it");
        self.ports[place].addr
    }

    /// The ports that it holds, by entrance.
    pub fn ports(&self) -> &[Arc<Port>] {
        &self.ports
    }

    /// Serves one shard's listeners and connections, until it is dropped; that closes them all. To run inside a
    /// `LocalSet` on the shard's current_thread runtime, once per shard; a second call for a shard serves nothing.
    pub async fn serve(self: Arc<Self>, shard: usize) {
        let hub = Rc::new(Hub::new(self.control.clone(), shard));
        let _closing = Closing(hub.clone());
        self.open_doors(shard, &hub);
        let mut changes = self.control.installed.subscribe();
        loop {
            hub.refresh();
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Puts a snapshot in force: every request that comes from now on is judged by it, and live connections meet what
    /// it begins as soon as their threads run. Never waits; from any thread.
    pub fn apply(&self, active: Active) {
        self.control.install(active);
    }

    /// Removes every fault. True when nothing is in force any more, which only another `apply` at the same time can
    /// prevent. Listeners that were closed open within a moment: see [`Proxy::settled`].
    pub fn clear(&self) -> bool {
        self.apply(self.nothing.clone());
        self.control.installed.borrow().active.is_empty()
    }

    /// Waits until every listener has carried out what is in force: closed, or open again. False if that took longer
    /// than `within`.
    pub async fn settled(&self, within: Duration) -> bool {
        tokio::time::timeout(within, self.control.settled()).await.is_ok()
    }

    /// Lets clients in; or closes every listener and connection, until it is told to let them in again. Never waits.
    pub fn set_open(&self, open: bool) {
        self.control.set_open(open);
    }

    /// Lets no more clients in, and those that are in finish. Never waits.
    pub fn drain(&self) {
        self.control.drain();
    }

    /// How many requests of a fleet have reached a shard's listeners.
    pub fn arrived(&self, shard: usize, fleet: u16) -> u64 {
        self.control.arrived(shard, fleet)
    }

    /// How many connections of a fleet a shard's listeners have taken in.
    pub fn connected(&self, shard: usize, fleet: u16) -> u64 {
        self.control.taken_in(shard, fleet)
    }

    /// Counts a connect that the kernel refused to a client there. The proxy cannot see those itself, since
    /// its listener is closed; whoever dials it tells.
    pub fn refused(&self, origin: impl Into<Origin>) {
        let installed = self.control.installed.borrow();
        installed.active.refusing(origin).for_each(|step| installed.active.touch(step));
    }

    /// How many clients are connected.
    pub fn connections(&self) -> usize {
        self.control.live.load(Ordering::Relaxed)
    }

    /// How many clients are connected, how many have connected in all, and how many requests have come: of all origins.
    pub fn counted(&self) -> (u64, u64, u64) {
        let (connected, requests) = self.control.counted();
        (self.connections() as u64, connected, requests)
    }

    /// How many connects may wait to be accepted, at each listener; and what to say where the
    /// machine grants less than we asked for.
    pub fn backlog(&self) -> (u32, Option<&str>) {
        (self.backlog, self.backlog_notice.as_deref())
    }

    /// The bounds of the proxy by name, and how often each was reached.
    pub fn limits(&self) -> [(&'static str, u64); 8] {
        self.control.trouble.limits()
    }

    /// The connects to the target that came about; none where there was none.
    pub fn connects(&self) -> Option<Connects> {
        self.control.connects().map(|(count, fastest)| Connects { count, fastest })
    }

    /// How many connects to the target failed, and why the last one did.
    pub fn unreached(&self) -> (u64, String) {
        self.control.trouble.unreached()
    }

    /// Bounds that the proxy has reached, each as a sentence.
    pub fn notices(&self) -> Vec<String> {
        self.control.trouble.notices()
    }

    fn open_doors(&self, shard: usize, hub: &Rc<Hub>) {
        let listeners = {
            let mut waiting = self.waiting.lock().expect("nobody panics while holding it");
            waiting.get_mut(shard).map(std::mem::take).unwrap_or_default()
        };
        let upstream = Rc::new(self.upstream.clone());
        for (place, (entrance, listener)) in self.entrances.iter().zip(listeners).enumerate() {
            let number = shard * self.ports.len() + place;
            self.control.door_at(number, 0);
            let door = Door {
                hub: hub.clone(),
                upstream: upstream.clone(),
                origin: entrance.origin,
                protocol: self.protocol,
                tls: self.tls.clone(),
                number,
                addr: self.ports[place].addr,
                backlog: self.backlog,
                connections: Rc::default(),
            };
            tokio::task::spawn_local(door.keep(listener));
        }
    }
}

/// Ends a shard's tasks when nobody serves it any more.
struct Closing(Rc<Hub>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}
