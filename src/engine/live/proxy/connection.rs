//! One client's connection and its way to the upstream: takes one request after another, asks for its fate and
//! carries that out. A change of the faults reaches it wherever it waits.
//!
//! The upstream is dialled here, in the connection's own task, when the first request is forwarded: a slow connect
//! holds up nobody else, and a request that a fault takes never reaches the upstream at all. From then on the two
//! connections live and die together, so that the client sees of the upstream's what it would see directly.
//!
//! Bounds: 64 KiB of the client's bytes, and what one read of the upstream gave. A client that closes its side, even
//! if only for writing, is taken as gone.

use super::answer;
use super::client::Client;
use super::control::Trouble;
use super::exchange::Exchange;
use super::h2::{self, Preface, Visit};
use super::http::{BadRequest, MAX_HEAD, RequestHead, head_ends, matched, request_head};
use super::hub::{Hub, Registration};
use super::io::{Wire, poll_drain, poll_read, with_buffer};
use super::places::Place;
use super::tap::Tapping;
use super::tls::ClientTls;
use super::upstream::{DialError, Upstream};
use crate::fault::{Active, Answer, Fate, Hold, Origin, Request, Strike};
use crate::time::Span;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// In good order, or because the client has gone.
    Closed,
    /// With RST.
    Reset,
    /// The upstream cannot be connected to.
    Unreachable,
    /// Not at all, for the client: it gets no byte more until it closes.
    Silent,
    /// After an answer that is the last one.
    Answered,
    /// With an answer that says what was wrong with the request.
    BadRequest(BadRequest),
    /// It goes on in HTTP/2.
    Http2,
}

/// Goes on, or ends the connection.
pub(super) type Flow<T> = Result<T, End>;

/// What an idle connection wakes up to.
enum Next {
    /// A request.
    Request(RequestHead),
    /// The first byte of something that the upstream said unasked. What the two make of it is theirs to see.
    Unasked(u8),
}

pub(super) struct Connection {
    pub(super) hub: Rc<Hub>,
    place: Registration,
    upstream: Rc<Upstream>,
    origin: Origin,
    tls: Option<Arc<ClientTls>>,
    number: u32,
    requests: u64,
    pub(super) client: Client,
    /// Bytes of the client that nobody has consumed: a head that is not complete, a body, or pipelined requests.
    pub(super) inbox: Vec<u8>,
    pub(super) wire: Option<Wire>,
    pub(super) tap: Tapping,
    /// The last snapshot that this connection has met, and its number.
    pub(super) seen: Active,
    generation: u64,
    /// The request being served.
    request: Option<Request>,
    /// What holds it.
    pub(super) hold: Hold,
    /// Its places among requests that pass at once.
    pub(super) places: Vec<Place>,
}

impl Connection {
    /// Serves a client until its connection ends. To be spawned as a task of its own.
    pub(super) async fn serve(
        client: Client,
        hub: Rc<Hub>,
        upstream: Rc<Upstream>,
        origin: Origin,
        number: u32,
        tls: Option<Arc<ClientTls>>,
    ) {
        let place = hub.register().await;
        let (seen, generation) = (hub.active(), hub.generation());
        let tap = Tapping::new(&hub.control);
        let connection = Self {
            hub,
            place,
            upstream,
            origin,
            tls,
            number,
            requests: 0,
            client,
            inbox: Vec::new(),
            wire: None,
            tap,
            seen,
            generation,
            request: None,
            hold: Hold::default(),
            places: Vec::new(),
        };
        connection.run().await;
    }

    async fn run(mut self) {
        let mut end = match () {
            () if self.closes_at_once() => End::Answered,
            () if self.client.agreed_on_h2() => End::Http2,
            () => self.requests().await,
        };
        if end == End::Silent {
            end = self.stay_silent().await;
        }
        self.places.clear();
        match end {
            // Without a linger time to wait in, the kernel sends RST. It fails only on what is no socket any more.
            End::Reset | End::Unreachable => self.client.reset_on_close(),
            End::BadRequest(why) => self.refuse(why).await,
            End::Answered => answer::linger(&mut self.client).await,
            End::Closed | End::Silent => {
                self.client.say_goodbye().await;
                self.farewell().await;
            }
            End::Http2 => Box::pin(h2::serve(self.hand_over())).await,
        }
    }

    /// What HTTP/2 needs of it to go on.
    fn hand_over(self) -> Visit {
        let Self { hub, place, upstream, origin, tls, number, client, inbox, seen, generation, .. } = self;
        Visit { hub, place, upstream, origin, tls, number, client, inbox, seen, generation }
    }

    /// Whether a fault closes connections as soon as they are accepted.
    fn closes_at_once(&self) -> bool {
        let step = self.seen.closing(self.origin).next();
        step.into_iter().for_each(|step| self.seen.touch(step));
        step.is_some()
    }

    /// Sends what faults of bytes have held back, and closes.
    async fn farewell(&mut self) {
        poll_fn(|cx| {
            let cut = self.hub.is_closed() || !self.hub.is_open();
            if cut { Poll::Ready(()) } else { self.client.link().poll_close(cx) }
        })
        .await;
    }

    /// One request after another, until something ends the connection.
    async fn requests(&mut self) -> End {
        let served: Flow<Infallible> = async {
            loop {
                match self.next_head().await? {
                    Next::Request(head) => {
                        self.tap.request(&self.inbox, &head);
                        let served = self.request(head).await;
                        self.tap.ended(&served);
                        served?;
                    }
                    Next::Unasked(byte) => Exchange::tunnel(byte).run(self).await?,
                }
                self.request = None;
                self.places.clear();
            }
        }
        .await;
        match served {
            Err(end) => end,
        }
    }

    /// Waits for the head of the next request.
    async fn next_head(&mut self) -> Flow<Next> {
        let mut seen = 0;
        loop {
            // Parsed at the first bytes, so that what is no HTTP is refused soon, and then not before its end has
            // come: a head that drips in byte by byte is not read over and over.
            let len = self.inbox.len();
            let preface = if self.requests == 0 { h2::preface(&self.inbox) } else { Preface::Not };
            if preface == Preface::Whole {
                return Err(End::Http2);
            }
            let worth_reading =
                len > 0 && preface == Preface::Not && (seen == 0 || len >= MAX_HEAD || head_ends(&self.inbox, seen));
            if worth_reading && let Some(head) = request_head(&self.inbox).map_err(End::BadRequest)? {
                return Ok(Next::Request(head));
            }
            seen = len;
            if let Some(byte) = poll_fn(|cx| self.poll_idle(cx)).await? {
                return Ok(Next::Unasked(byte));
            }
        }
    }

    /// Ready once the client has sent more, or with the first byte of what the upstream said unasked.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Flow<Option<u8>>> {
        if self.poll_gate()?.is_pending() {
            return Poll::Pending;
        }
        if self.fill_inbox(cx)? {
            return Poll::Ready(Ok(None));
        }
        let Some(wire) = &mut self.wire else { return Poll::Pending };
        let mut byte = [0];
        match wire.poll_read(cx, &mut byte) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(0)) => Poll::Ready(Err(End::Closed)),
            Poll::Ready(Ok(_)) => Poll::Ready(Ok(Some(byte[0]))),
            Poll::Ready(Err(_)) => Poll::Ready(Err(End::Reset)),
        }
    }

    /// Carries out the fate of a request.
    async fn request(&mut self, mut head: RequestHead) -> Flow<()> {
        head.ours = head.ours.filter(|_| !self.tap.is_there());
        let request = match head.ours {
            Some((key, attempt)) => Request::ours(self.origin, key, attempt).bound_for(head.destination),
            None => Request::foreign(self.origin, self.number, self.requests),
        };
        let request = self.known(request, &head);
        self.requests += 1;
        self.hub.control.arrive(self.hub.shard, self.origin.fleet);
        // What is installed counts from this moment, even if the shard has not woken up to it yet.
        self.hub.refresh();
        self.meet_change()?;
        let request = request.fitting(matched(&self.inbox[..head.len], self.seen.matchers()));
        (self.request, self.hold) = (Some(request), Hold::default());
        let mut judgement = self.seen.judge(&request, self.hub.control.clock.now());
        loop {
            self.note(&request, &judgement);
            let pending = judgement.pending.take();
            match judgement.fate {
                Fate::Swallow { release: false, .. } => return Err(End::Silent),
                Fate::Swallow { step, release: true } => {
                    self.hold.take(step, &self.seen, pending);
                    self.race(std::future::ready(())).await?;
                }
                Fate::Wait { step, at_most, delay } => {
                    self.hold.queue(step, &self.seen, pending, self.hub.control.clock.now() + delay);
                    if let Some(refusal) = self.wait(&request, step, at_most).await? {
                        return self.answer(head, &refusal).await;
                    }
                }
                Fate::Close { delay } => {
                    self.pause(delay).await?;
                    return Err(End::Answered);
                }
                Fate::Reset { delay } => {
                    self.pause(delay).await?;
                    return Err(End::Reset);
                }
                Fate::Answer { delay, answer } => {
                    self.pause(delay).await?;
                    return self.answer(head, &answer).await;
                }
                Fate::Malformed { delay, kind } => {
                    self.pause(delay).await?;
                    self.read_body(head).await?;
                    return self.say_nonsense(kind).await;
                }
                Fate::Forward { delay, harm } => {
                    self.pause(delay).await?;
                    return self.forward(head, harm).await;
                }
            }
            judgement = self.hold.judge_again(&self.seen, &request, self.hub.control.clock.now());
        }
    }

    /// The same request, with its connection and its client.
    fn known(&self, request: Request, head: &RequestHead) -> Request {
        // Numbers are given by fleet.
        let request = request.on(u64::from(self.origin.fleet) << 32 | u64::from(self.number));
        if head.client == 0 { request } else { request.of_client(head.client) }
    }

    async fn pause(&mut self, delay: Span) -> Flow<()> {
        if delay.is_zero() {
            return Ok(());
        }
        self.race(tokio::time::sleep(delay.to_std())).await
    }

    /// Connects to the upstream, if that has not been done.
    pub(super) async fn dial(&mut self) -> Flow<()> {
        if self.wire.is_some() {
            return Ok(());
        }
        let (upstream, hub) = (self.upstream.clone(), self.hub.clone());
        // Boxed, for the handshake's state is large and an idle connection should not keep room for it.
        match self.race(Box::pin(async move { upstream.dial(&*hub.control.clock).await })).await? {
            Ok((wire, took)) => {
                self.hub.control.connected(took);
                self.wire = Some(wire);
                Ok(())
            }
            Err(error) => {
                self.hub.control.trouble.failed_dial(&error);
                self.tap.unreached();
                Err(End::Unreachable)
            }
        }
    }

    /// Tells the client that there is no upstream. It is connected already, so it cannot be refused any more: a client of
    /// ours is told by a mark that only it reads, and any other is reset, which is the nearest thing to a refusal.
    pub(super) async fn say_unreachable(&mut self, head: RequestHead) -> Flow<()> {
        if head.ours.is_none() {
            return Err(End::Reset);
        }
        self.inbox.clear();
        let mut bytes = answer::unreachable();
        poll_fn(|cx| self.poll_send(cx, &mut bytes)).await?;
        Err(End::Answered)
    }

    /// Answers in the upstream's place, behind the request's body.
    async fn answer(&mut self, head: RequestHead, answer: &Answer) -> Flow<()> {
        let method = head.method;
        let closes = self.read_body(head).await?;
        self.say(answer, method, closes).await
    }

    /// Reads a request's body and drops it; whether nothing can follow on this connection.
    async fn read_body(&mut self, mut head: RequestHead) -> Flow<bool> {
        self.inbox.drain(..head.len);
        // A client that waits for leave to send its body is told the end of it at once; whether the body comes all
        // the same is its choice, so nothing can follow on this connection.
        let closes = head.closes || (head.expects_continue && !head.body.done());
        while !head.body.done() && !head.expects_continue {
            let taken = head.body.take(&self.inbox).map_err(|_| End::BadRequest(BadRequest::Malformed))?;
            self.tap.body(&self.inbox[..taken], head.body.done());
            self.inbox.drain(..taken);
            if taken == 0 {
                poll_fn(|cx| self.poll_more(cx)).await?;
            }
        }
        Ok(closes)
    }

    async fn refuse(&mut self, why: BadRequest) {
        if why == BadRequest::TooLarge {
            Trouble::count(&self.hub.control.trouble.oversized);
        }
        self.request = None;
        let answer = Answer::bare(why.status(), None);
        let mut bytes = answer::render(&answer, 0, super::http::Method::Other, true);
        if poll_fn(|cx| self.poll_send(cx, &mut bytes)).await.is_ok() {
            answer::linger(&mut self.client).await;
        }
    }

    /// Reads and drops what comes from both sides until the client has closed or a fault resets it. The upstream may
    /// do what it likes meanwhile; the client does not hear of it.
    async fn stay_silent(&mut self) -> End {
        self.request = None;
        self.hold = Hold::default();
        self.inbox = Vec::new();
        poll_fn(|cx| match self.poll_silent(cx) {
            Err(end) => Poll::Ready(end),
            Ok(()) => Poll::Pending,
        })
        .await
    }

    fn poll_silent(&mut self, cx: &mut Context<'_>) -> Flow<()> {
        // No request is in flight here, so nothing but a reset can come of it.
        let _ = self.poll_gate()?;
        while self.fill_inbox(cx)? {
            self.inbox.clear();
        }
        while let Some(wire) = &mut self.wire {
            match with_buffer(|buffer| wire.poll_read(cx, buffer)) {
                Poll::Pending => break,
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(Ok(0) | Err(_)) => self.wire = None,
            }
        }
        Ok(())
    }

    /// Waits for something else while watching the client and the faults; while a fault holds the request, the
    /// other thing is not even looked at.
    async fn race<F: Future>(&mut self, subject: F) -> Flow<F::Output> {
        let mut subject = pin!(subject);
        poll_fn(|cx| {
            let gate = self.poll_gate()?;
            self.fill_inbox(cx)?;
            if gate.is_pending() { Poll::Pending } else { subject.as_mut().poll(cx).map(Ok) }
        })
        .await
    }

    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Flow<()>> {
        if self.poll_gate()?.is_ready() && self.fill_inbox(cx)? { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    pub(super) fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &mut Vec<u8>) -> Poll<Flow<()>> {
        if self.poll_gate()?.is_pending() {
            return Poll::Pending;
        }
        let client = &mut self.client;
        poll_drain(bytes, cx, |cx, bytes| Pin::new(&mut *client).poll_write(cx, bytes)).map_err(|_| End::Closed)?;
        if bytes.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Every wait begins here: pending while a fault holds the request, an error where one has ended the connection.
    pub(super) fn poll_gate(&mut self) -> Poll<Flow<()>> {
        self.meet_change()?;
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
        let struck = self.seen.onset(&before, self.origin, self.request.as_ref(), now);
        let Some((step, strike)) = struck else { return Ok(()) };
        self.seen.touch(step);
        match strike {
            // Its bytes are read on for a moment, as behind a last answer, so that the client sees FIN.
            Strike::Close => Err(End::Answered),
            Strike::Reset => Err(End::Reset),
            Strike::Swallow { release: false } => Err(End::Silent),
            Strike::Swallow { release: true } => {
                self.hold.strike(step);
                Ok(())
            }
        }
    }

    /// Reads what the client has sent, as far as there is room; whether there was anything. An error once it has gone.
    pub(super) fn fill_inbox(&mut self, cx: &mut Context<'_>) -> Flow<bool> {
        let room = MAX_HEAD.saturating_sub(self.inbox.len());
        if room == 0 {
            self.client.link().drive(cx);
            return Ok(false);
        }
        with_buffer(|buffer| {
            let room = room.min(buffer.len());
            match poll_read(&mut self.client, cx, &mut buffer[..room]) {
                Poll::Pending => Ok(false),
                Poll::Ready(Ok(n @ 1..)) => {
                    self.inbox.extend_from_slice(&buffer[..n]);
                    Ok(true)
                }
                Poll::Ready(Ok(0) | Err(_)) => Err(End::Closed),
            }
        })
    }
}

impl Trouble {
    pub(super) fn failed_dial(&self, error: &DialError) {
        match error {
            DialError::Denied(why) => {
                self.unreachable(why.clone());
                Self::count(&self.denied);
                *self.denied_why.lock().expect("nobody panics while holding it") = why.clone();
            }
            DialError::Io(error)
                if super::accept::is_exhaustion(error) || error.kind() == std::io::ErrorKind::AddrNotAvailable =>
            {
                Self::count(&self.dials);
            }
            DialError::Io(error) => self.unreachable(error.to_string()),
        }
    }
}
