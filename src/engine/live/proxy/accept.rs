//! A door: one listener of one shard, for a fleet in a region. Accepts and hands over, nothing else; closes while connects are refused.

use super::Protocol;
use super::client::Client;
use super::connection::Connection;
use super::control::{Control, Trouble};
use super::hub::Hub;
use super::link::Link;
use super::listen;
use super::relay::Relay;
use super::tls::ClientTls;
use super::upstream::Upstream;
use crate::fault::pipe::Course;
use crate::fault::{Origin, Request};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// Connections of one door at once.
const MAX_CONNECTIONS: usize = 20_000;
/// How long a door that could not accept waits before it tries again.
const PAUSE: Duration = Duration::from_millis(10);

pub(super) struct Door {
    pub(super) hub: Rc<Hub>,
    pub(super) upstream: Rc<Upstream>,
    pub(super) origin: Origin,
    /// How TLS is spoken to clients; none where it is not.
    pub(super) tls: Option<Arc<ClientTls>>,
    pub(super) protocol: Protocol,
    /// Its number over all shards and origins.
    pub(super) number: usize,
    pub(super) addr: SocketAddr,
    pub(super) backlog: u32,
    pub(super) connections: Rc<Cell<usize>>,
}

impl Door {
    /// Keeps the door until the shard ends. To be spawned as a task of its own.
    pub(super) async fn keep(self, listener: StdListener) {
        let _place = self.hub.register().await;
        let _leaving = Leaving { control: &self.hub.control, number: self.number };
        let mut listener = TcpListener::from_std(listener).ok();
        while !self.hub.is_closed() {
            let generation = self.hub.generation();
            if !self.hub.welcomes() || self.hub.active().refusing(self.origin).next().is_some() {
                listener = None;
                self.hub.control.door_at(self.number, generation);
                self.unless_changed(generation, std::future::pending::<()>()).await;
                continue;
            }
            if let Some(open) = listener.take().or_else(|| self.open()) {
                self.hub.control.door_at(self.number, generation);
                self.accept(&open, generation).await;
                listener = Some(open);
            } else {
                self.unless_changed(generation, tokio::time::sleep(PAUSE)).await;
            }
        }
    }

    /// Accepts until the faults change.
    async fn accept(&self, listener: &TcpListener, generation: u64) {
        loop {
            if self.connections.get() >= MAX_CONNECTIONS {
                Trouble::count(&self.hub.control.trouble.full);
                match self.unless_changed(generation, tokio::time::sleep(PAUSE)).await {
                    None => return,
                    Some(()) => continue,
                }
            }
            match self.unless_changed(generation, listener.accept()).await {
                None => return,
                Some(Ok((client, _))) => self.welcome(client),
                Some(Err(error)) => self.failed(&error, generation).await,
            }
        }
    }

    fn welcome(&self, client: TcpStream) {
        // It fails only where the client has gone already, which its own task will find out.
        let _ = client.set_nodelay(true);
        self.hub.control.tap.iter().for_each(|tap| tap.connected(&*self.hub.control.clock));
        let guest = Guest::new(self.connections.clone(), self.hub.clone());
        let (hub, upstream, origin) = (self.hub.clone(), self.upstream.clone(), self.origin);
        hub.control.take_in(hub.shard, origin.fleet);
        let number = hub.control.numbers[usize::from(origin.fleet)].fetch_add(1, Ordering::Relaxed);
        let http = self.protocol == Protocol::Http;
        let course = Course { connection: Request::foreign(origin, number, 0), judges_requests: http };
        let (link, tls) = (Link::new(client, hub.clone(), course), self.tls.clone());
        tokio::task::spawn_local(async move {
            let client = match &tls {
                None => Some(Client::Plain(link)),
                // Boxed, for a handshake is large and an idle connection should not keep room for it.
                Some(tls) => Box::pin(tls.greet(link, hub.clone(), origin, http)).await,
            };
            match client {
                Some(client) if http => Connection::serve(client, hub, upstream, origin, number, tls).await,
                Some(client) => Relay::serve(client, hub, upstream, course.connection).await,
                None => {}
            }
            drop(guest);
        });
    }

    /// A client that left before it was let in is no trouble; anything else may come again at once, so it waits.
    async fn failed(&self, error: &io::Error, generation: u64) {
        if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
            return;
        }
        if is_exhaustion(error) {
            Trouble::count(&self.hub.control.trouble.accepts);
        }
        self.unless_changed(generation, tokio::time::sleep(PAUSE)).await;
    }

    fn open(&self) -> Option<TcpListener> {
        match listen::open(self.addr, self.backlog).and_then(TcpListener::from_std) {
            Ok(listener) => Some(listener),
            Err(_) => {
                Trouble::count(&self.hub.control.trouble.reopens);
                None
            }
        }
    }

    /// Waits for something; none if the faults change, or the shard ends, first.
    async fn unless_changed<F: Future>(&self, generation: u64, subject: F) -> Option<F::Output> {
        let mut subject = pin!(subject);
        poll_fn(|cx| {
            if self.hub.is_closed() || self.hub.generation() != generation {
                return Poll::Ready(None);
            }
            subject.as_mut().poll(cx).map(Some)
        })
        .await
    }
}

/// Out of file descriptors or memory for sockets.
pub(super) fn is_exhaustion(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM].iter().any(|e| error.raw_os_error() == Some(e.raw_os_error()))
}

/// Counts one connection while it lives.
struct Guest {
    connections: Rc<Cell<usize>>,
    hub: Rc<Hub>,
}

impl Guest {
    fn new(connections: Rc<Cell<usize>>, hub: Rc<Hub>) -> Self {
        connections.set(connections.get() + 1);
        hub.control.live.fetch_add(1, Ordering::Relaxed);
        Self { connections, hub }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.connections.set(self.connections.get() - 1);
        self.hub.control.live.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Says that nobody keeps the door any more, however that came about.
struct Leaving<'a> {
    control: &'a Control,
    number: usize,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.control.door_left(self.number);
    }
}
