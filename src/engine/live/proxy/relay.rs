//! Relays bytes between a client and the upstream, both directions at once, whatever they speak.
//!
//! One task per pair of connections. The upstream is dialled here, as soon as the client is let in: a slow connect holds up nobody else, and
//! each client dials anew. An end of one direction is passed on and the other direction goes on; a reset is passed on as a reset. Faults of
//! bytes act in the client's [link](super::link); those of connections strike here, with dice by the connection's number.
//!
//! Bounds: what one read gave, in each direction, beside what the link holds. An idle pair holds no buffer.

use super::client::Client;
use super::connection::{End, Flow};
use super::exchange::is_reset;
use super::hub::{Hub, Registration};
use super::io::{Wire, poll_drain, poll_read, with_buffer};
use super::upstream::Upstream;
use crate::fault::pipe;
use crate::fault::{Active, Fate, Hold, Request, Strike};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncWrite;

/// How long the upstream may take for what came before a fault's close.
const DELIVERY: Duration = Duration::from_secs(1);

/// How far one direction has come.
#[derive(Default)]
struct Way {
    /// What has been read and not been written.
    rest: Vec<u8>,
    /// Whether its source has ended.
    ended: bool,
    /// Whether the other side knows.
    passed_on: bool,
}

pub(super) struct Relay {
    hub: Rc<Hub>,
    _place: Registration,
    upstream: Rc<Upstream>,
    /// The connection, as a request is known.
    request: Request,
    client: Client,
    wire: Option<Wire>,
    /// Client to upstream, and back.
    up: Way,
    down: Way,
    /// The last snapshot that it has met, and its number.
    seen: Active,
    generation: u64,
    /// What holds it until it ends.
    hold: Hold,
}

impl Relay {
    /// Serves a client until its connection ends. To be spawned as a task of its own.
    pub(super) async fn serve(client: Client, hub: Rc<Hub>, upstream: Rc<Upstream>, request: Request) {
        let place = hub.register().await;
        let (seen, generation) = (hub.active(), hub.generation());
        let (wire, hold) = (None, Hold::default());
        let (up, down) = (Way::default(), Way::default());
        let mut relay = Self { hub, _place: place, upstream, request, client, wire, up, down, seen, generation, hold };
        let Err(mut end) = relay.run().await else { return };
        if end == End::Silent {
            end = relay.stay_silent().await;
        }
        match end {
            End::Reset | End::Unreachable => {
                relay.client.reset_on_close();
                relay.wire.iter().for_each(Wire::reset_on_close);
            }
            _ => {
                relay.deliver().await;
                relay.farewell().await;
            }
        }
    }

    /// Whether the upstream is still to get what came before a fault closed the connection.
    fn owes(&mut self) -> bool {
        let is_closed = matches!(self.client.link().over(), Some(pipe::End::Close | pipe::End::Fin));
        is_closed && !self.up.rest.is_empty() && !self.hub.is_closed() && self.hub.is_open()
    }

    /// Sends on what a fault had let through before it closed the connection, which may be before there is a connection to the upstream.
    async fn deliver(&mut self) {
        if !self.owes() {
            return;
        }
        let (upstream, hub) = (self.upstream.clone(), self.hub.clone());
        let (wire, rest) = (self.wire.take(), std::mem::take(&mut self.up.rest));
        let sent = async move {
            let mut wire = match wire {
                Some(wire) => wire,
                None => upstream.dial(&*hub.control.clock).await.ok()?.0,
            };
            let mut rest = rest;
            poll_fn(|cx| match poll_drain(&mut rest, cx, |cx, bytes| wire.poll_write(cx, bytes)) {
                Ok(_) if !rest.is_empty() => Poll::Pending,
                _ => wire.poll_flush(cx).map(|_| ()),
            })
            .await;
            poll_fn(|cx| wire.poll_shutdown(cx)).await.ok()
        };
        let _ = tokio::time::timeout(DELIVERY, Box::pin(sent)).await;
    }

    async fn run(&mut self) -> Flow<()> {
        self.begin()?;
        self.dial().await?;
        poll_fn(|cx| self.poll(cx)).await
    }

    /// Meets the faults that act as the connection begins. None answers a connection, and what delays bytes does so in the link.
    fn begin(&mut self) -> Flow<()> {
        let judgement = self.seen.judge(&self.request, self.hub.control.clock.now());
        // Places are for requests, of which there are none here.
        for rule in self.seen.rules() {
            let _ = rule.leave(self.request.ticket);
        }
        let end = match judgement.fate {
            Fate::Swallow { step, release: true } => {
                self.hold.strike(step);
                Ok(())
            }
            Fate::Swallow { release: false, .. } => Err(End::Silent),
            Fate::Close { .. } => Err(self.close()),
            Fate::Reset { .. } => Err(End::Reset),
            Fate::Forward { .. } | Fate::Answer { .. } | Fate::Malformed { .. } | Fate::Wait { .. } => return Ok(()),
        };
        judgement.touched.last().into_iter().for_each(|&step| self.seen.touch(step));
        end
    }

    /// Connects to the upstream while watching the faults and the client.
    async fn dial(&mut self) -> Flow<()> {
        let (upstream, hub) = (self.upstream.clone(), self.hub.clone());
        // Boxed, for an idle connection should not keep room for it.
        match self.race(Box::pin(async move { upstream.dial(&*hub.control.clock).await })).await? {
            Ok((wire, took)) => {
                self.hub.control.connected(took);
                self.wire = Some(wire);
                Ok(())
            }
            Err(error) => {
                self.hub.control.trouble.failed_dial(&error);
                Err(End::Unreachable)
            }
        }
    }

    /// Waits for something else; not while a fault holds the connection. A client that goes without having said anything has no use for an
    /// upstream.
    async fn race<F: Future>(&mut self, subject: F) -> Flow<F::Output> {
        let mut subject = pin!(subject);
        poll_fn(|cx| {
            let gate = match self.poll_gate(cx) {
                // What a fault had let through before it closed the connection is still to be sent.
                Poll::Ready(Err(End::Closed)) if self.owes() => Poll::Ready(()),
                gate => gate?,
            };
            let Self { client, up, .. } = &mut *self;
            if !up.ended && up.rest.is_empty() {
                let unsent = |_: &mut Context<'_>, _: &[u8]| Poll::Pending;
                let came = up.carry(cx, |cx, buffer| poll_read(client, cx, buffer), unsent);
                match self.unless_broken(came) {
                    Err(End::Closed) if self.owes() => {}
                    came => drop(came?),
                }
                if self.up.ended {
                    return Poll::Ready(Err(End::Closed));
                }
            }
            if gate.is_pending() { Poll::Pending } else { subject.as_mut().poll(cx).map(Ok) }
        })
        .await
    }

    /// Ready once both directions have ended.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Flow<()>> {
        if self.poll_gate(cx)?.is_pending() {
            return Poll::Pending;
        }
        loop {
            let (up, down) = (self.upload(cx)?, self.download(cx)?);
            if self.up.passed_on && self.down.passed_on {
                return Poll::Ready(Err(End::Closed));
            }
            if !up && !down {
                return Poll::Pending;
            }
        }
    }

    /// Client to upstream; whether anything moved.
    fn upload(&mut self, cx: &mut Context<'_>) -> Flow<bool> {
        let Self { client, wire: Some(wire), up, .. } = &mut *self else { return Ok(false) };
        let mut moved = up.carry(cx, |cx, buffer| poll_read(client, cx, buffer), |cx, bytes| wire.poll_write(cx, bytes));
        let _ = wire.poll_flush(cx);
        if up.is_at_its_end() && client.link().over().is_none() && wire.poll_shutdown(cx).is_ready() {
            (up.passed_on, moved) = (true, moved.map(|_| true));
        }
        if matches!(moved, Err(Broken::Sink)) {
            // The upstream takes no more. It may have answered before it closed, so reading says how this ends.
            *up = Way { ended: true, passed_on: true, ..Way::default() };
            moved = Ok(true);
        }
        self.unless_broken(moved)
    }

    /// Upstream to client; whether anything moved.
    fn download(&mut self, cx: &mut Context<'_>) -> Flow<bool> {
        let Self { client, wire: Some(wire), down, .. } = &mut *self else { return Ok(false) };
        let mut write = |cx: &mut Context<'_>, bytes: &[u8]| Pin::new(&mut *client).poll_write(cx, bytes);
        let mut moved = down.carry(cx, |cx, buffer| wire.poll_read(cx, buffer), &mut write);
        if down.is_at_its_end() && Pin::new(client).poll_shutdown(cx).is_ready() {
            (down.passed_on, moved) = (true, moved.map(|_| true));
        }
        self.unless_broken(moved)
    }

    /// What moved, unless something broke or a fault of bytes has ended the connection.
    fn unless_broken(&mut self, moved: Result<bool, Broken>) -> Flow<bool> {
        match (self.client.link().over(), moved) {
            (Some(pipe::End::Reset), _) => Err(End::Reset),
            (Some(_), _) => Err(End::Closed),
            (None, Ok(moved)) => Ok(moved),
            (None, Err(Broken::Source { reset: false })) => Err(End::Closed),
            (None, Err(Broken::Source { reset: true } | Broken::Sink)) => Err(End::Reset),
        }
    }

    /// Every wait begins here: pending while a fault holds the connection, an error where one has ended it.
    fn poll_gate(&mut self, cx: &mut Context<'_>) -> Poll<Flow<()>> {
        self.meet_change()?;
        self.client.link().drive(cx);
        self.unless_broken(Ok(false))?;
        if self.hold.holds(&self.seen) { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    /// Lets the steps that began since it last looked strike this connection.
    fn meet_change(&mut self) -> Flow<()> {
        if self.hub.is_closed() {
            return Err(End::Closed);
        }
        if self.generation == self.hub.generation() {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.seen, self.hub.active());
        self.generation = self.hub.generation();
        if !self.hub.is_open() {
            return Err(End::Closed);
        }
        let now = self.hub.control.clock.now();
        let struck = self.seen.onset(&before, self.request.origin, Some(&self.request), now);
        let Some((step, strike)) = struck else { return Ok(()) };
        self.seen.touch(step);
        match strike {
            Strike::Close => Err(self.close()),
            Strike::Reset => Err(End::Reset),
            Strike::Swallow { release: false } => Err(End::Silent),
            Strike::Swallow { release: true } => {
                self.hold.strike(step);
                Ok(())
            }
        }
    }

    fn close(&mut self) -> End {
        self.client.link().close(self.hub.control.clock.now());
        End::Closed
    }

    /// Reads and drops what comes from both sides until the client has closed or a fault resets it.
    async fn stay_silent(&mut self) -> End {
        (self.up, self.down) = (Way::default(), Way::default());
        self.hold = Hold::default();
        poll_fn(|cx| match self.poll_silent(cx) {
            Err(End::Silent) | Ok(()) => Poll::Pending,
            Err(end) => Poll::Ready(end),
        })
        .await
    }

    fn poll_silent(&mut self, cx: &mut Context<'_>) -> Flow<()> {
        let _ = self.poll_gate(cx)?;
        let Self { client, wire, up, down, .. } = &mut *self;
        let drop_it = |_: &mut Context<'_>, bytes: &[u8]| Poll::Ready(Ok(bytes.len()));
        while let Some(wire) = wire.as_mut().filter(|_| !down.ended) {
            match down.carry(cx, |cx, buffer| wire.poll_read(cx, buffer), drop_it) {
                Ok(false) => break,
                Ok(true) => {}
                Err(_) => down.ended = true,
            }
        }
        loop {
            let came = up.carry(cx, |cx, buffer| poll_read(client, cx, buffer), drop_it);
            match came {
                Ok(true) if !up.ended => {}
                Ok(true) | Err(_) => return Err(End::Closed),
                Ok(false) => return Ok(()),
            }
        }
    }

    /// Sends what the faults have held back, and closes.
    async fn farewell(&mut self) {
        poll_fn(|cx| {
            let cut = self.hub.is_closed() || !self.hub.is_open();
            if cut { Poll::Ready(()) } else { self.client.link().poll_close(cx) }
        })
        .await;
    }
}

/// What is wrong with one of the two sides.
enum Broken {
    /// Where bytes come from.
    Source { reset: bool },
    /// Where they go.
    Sink,
}

impl Way {
    /// Moves what goes without waiting, by way of the thread's buffer; whether anything moved.
    fn carry(
        &mut self,
        cx: &mut Context<'_>,
        read: impl FnOnce(&mut Context<'_>, &mut [u8]) -> Poll<io::Result<usize>>,
        mut write: impl FnMut(&mut Context<'_>, &[u8]) -> Poll<io::Result<usize>>,
    ) -> Result<bool, Broken> {
        if !self.rest.is_empty() {
            poll_drain(&mut self.rest, cx, &mut write).map_err(|_| Broken::Sink)?;
            if !self.rest.is_empty() {
                return Ok(false);
            }
            // An idle pair shall hold no buffer.
            self.rest = Vec::new();
        }
        if self.ended {
            return Ok(false);
        }
        with_buffer(|buffer| match read(cx, buffer) {
            Poll::Pending => Ok(false),
            Poll::Ready(Err(error)) => Err(Broken::Source { reset: is_reset(&error) }),
            Poll::Ready(Ok(0)) => {
                self.ended = true;
                Ok(true)
            }
            Poll::Ready(Ok(n)) => {
                // Straight from the shared buffer; what does not go now is kept.
                let sent = match write(cx, &buffer[..n]) {
                    Poll::Ready(sent) => sent.map_err(|_| Broken::Sink)?,
                    Poll::Pending => 0,
                };
                self.rest.extend_from_slice(&buffer[sent..n]);
                Ok(true)
            }
        })
    }

    /// Whether all of it is written, and only the end is left to be passed on.
    fn is_at_its_end(&self) -> bool {
        self.ended && self.rest.is_empty() && !self.passed_on
    }
}
