//! One stream: a request, its fate, and the faults that reach it while it is under way.

use super::super::answer::UNREACHABLE;
use super::super::control::{Control, Trouble};
use super::super::http::ours;
use super::super::hub::Registration;
use super::super::places::Place;
use super::body::{Answer, Relayed};
use super::fates::answer;
use super::route::Unsent;
use super::{Finish, Refusal, STREAMS, Session};
use crate::fault::{Active, Fate, Hold, Judgement, Request, Strike};
use crate::time::{Span, Timestamp};
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Response, StatusCode};
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

/// What a stream is waited on by: each has a task of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The way of the request's body.
    Up,
    /// Everything else.
    Down,
}

/// A stream under way.
pub(super) struct Stream {
    session: Rc<Session>,
    pub(super) request: Request,
    /// Whether it is one of our own.
    ours: bool,
    /// The places that it has among those that pass at once.
    pub(super) places: RefCell<Vec<Place>>,
    state: RefCell<State>,
}

struct State {
    /// The last snapshot that it has met, and its number.
    seen: Active,
    generation: u64,
    /// What holds it until it ends.
    hold: Hold,
    /// It is never answered.
    lost: bool,
    up: Option<Registration>,
    down: Option<Registration>,
}

/// Serves one stream.
pub(super) async fn serve(session: Rc<Session>, request: hyper::Request<Incoming>) -> Result<Response<Answer>, Refusal> {
    if request.method() == Method::CONNECT {
        return Ok(answer(StatusCode::NOT_IMPLEMENTED, "", false));
    }
    let (stream, is_head) = (Stream::begin(session, &request)?, request.method() == Method::HEAD);
    let mut judgement = stream.seen().judge(&stream.request, stream.now());
    loop {
        stream.note(&judgement);
        let pending = judgement.pending.take();
        // Every fate is carried out here, and nowhere else.
        match judgement.fate {
            Fate::Swallow { release: false, .. } => return stream.lose().await,
            Fate::Swallow { step, release: true } => {
                stream.hold(|hold, seen| hold.take(step, seen, pending));
                stream.pass().await?;
            }
            Fate::Wait { step, at_most, delay } => {
                let to = stream.now() + delay;
                stream.hold(|hold, seen| hold.queue(step, seen, pending, to));
                if let Some(refusal) = stream.wait(step, at_most).await? {
                    return Ok(stream.own(&refusal, is_head));
                }
            }
            Fate::Close { delay } => {
                stream.pause(delay).await?;
                stream.session.finish(Finish::Close);
                return Err(Refusal::Over);
            }
            Fate::Reset { delay } => {
                stream.pause(delay).await?;
                return stream.reset().await;
            }
            Fate::Answer { delay, answer } => {
                stream.pause(delay).await?;
                return Ok(stream.own(&answer, is_head));
            }
            // What is no HTTP cannot be said in frames.
            Fate::Malformed { delay, .. } => {
                stream.pause(delay).await?;
                return Err(Refusal::Fault);
            }
            Fate::Forward { delay, harm } => {
                stream.pause(delay).await?;
                let response = stream.clone().forward(request).await?;
                return stream.harmed(response, harm, is_head).await;
            }
        }
        judgement = stream.judge_again();
    }
}

/// A request as matchers look at it.
struct Looked<'a>(&'a hyper::Request<Incoming>);

impl crate::fault::Head for Looked<'_> {
    fn method(&self) -> &[u8] {
        self.0.method().as_str().as_bytes()
    }

    fn path(&self) -> &[u8] {
        self.0.uri().path_and_query().map_or(&[], |path| path.as_str().as_bytes())
    }

    fn header(&self, name: &str, fits: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.0.headers().get_all(name).iter().any(|value| fits(value.as_bytes().trim_ascii()))
    }
}

impl Stream {
    fn begin(session: Rc<Session>, request: &hyper::Request<Incoming>) -> Result<Rc<Self>, Refusal> {
        if session.streams.get() >= 2 * STREAMS {
            Trouble::count(&session.hub.control.trouble.streams);
            return Err(Refusal::TooMany);
        }
        session.streams.set(session.streams.get() + 1);
        let fields = request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let (key, destination, client) = ours(fields);
        let number = session.requests.replace(session.requests.get() + 1);
        let of = match key {
            Some((key, attempt)) => Request::ours(session.origin, key, attempt).bound_for(destination),
            None => Request::foreign(session.origin, session.number, number),
        };
        // Numbers are given by fleet; several requests at once are on a connection, so each has a ticket of its own.
        let of =
            of.on(u64::from(session.origin.fleet) << 32 | u64::from(session.number)).with_ticket(session.hub.control.ticket());
        let of = if client == 0 { of } else { of.of_client(client) };
        session.hub.control.arrive(session.hub.shard, session.origin.fleet);
        // What is installed counts from this moment, even if the shard has not woken up to it yet.
        session.hub.refresh();
        let (seen, generation) = (session.hub.active(), session.hub.generation());
        let matchers = seen.matchers();
        let request = if matchers.is_empty() { of } else { of.fitting(matchers.bits(&Looked(request))) };
        let state = State { seen, generation, hold: Hold::default(), lost: false, up: None, down: None };
        let (state, places) = (RefCell::new(state), RefCell::default());
        Ok(Rc::new(Self { session, request, ours: key.is_some(), places, state }))
    }

    /// The last snapshot that it has met.
    pub(super) fn seen(&self) -> Active {
        self.state.borrow().seen.clone()
    }

    /// What it shares with all that passes the proxy.
    pub(super) fn control(&self) -> Arc<Control> {
        self.session.hub.control.clone()
    }

    fn now(&self) -> Timestamp {
        self.session.hub.control.clock.now()
    }

    fn hold(&self, change: impl FnOnce(&mut Hold, &Active)) {
        let State { hold, seen, .. } = &mut *self.state.borrow_mut();
        change(hold, seen);
    }

    /// A step's queue lets it in, or sends it away.
    pub(super) fn leave(&self, step: usize) {
        self.state.borrow_mut().hold.leave(step);
    }

    /// Whether anything held it when that was last asked.
    pub(super) fn is_held(&self) -> bool {
        self.state.borrow().hold.is_held()
    }

    fn judge_again(&self) -> Judgement {
        let state = self.state.borrow();
        state.hold.judge_again(&state.seen, &self.request, self.now())
    }

    /// Is never answered, until something else ends it.
    pub(super) async fn lose(&self) -> Result<Response<Answer>, Refusal> {
        self.state.borrow_mut().lost = true;
        let Err(refusal) = self.race(std::future::pending::<std::convert::Infallible>()).await;
        Err(refusal)
    }

    /// Sends the request on, and relays the answer.
    async fn forward(self: Rc<Self>, request: hyper::Request<Incoming>) -> Result<Response<Answer>, Refusal> {
        let upwards = request.map(|body| Relayed::new(self.clone(), Side::Up, body));
        match self.race(self.session.route.send(upwards)).await? {
            Ok(response) => Ok(response.map(|body| Answer::Relayed(Relayed::new(self, Side::Down, body)))),
            Err(Unsent::Unreachable) if self.ours => {
                // As on HTTP/1.1: a client of ours is told by a mark that only it reads.
                let mut response = answer(StatusCode::BAD_GATEWAY, "", false);
                let (name, value) = UNREACHABLE;
                response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
                Ok(response)
            }
            Err(Unsent::Unreachable) => {
                self.session.finish(Finish::Reset);
                Err(Refusal::Over)
            }
            Err(Unsent::Malformed) => Ok(answer(StatusCode::BAD_REQUEST, "", false)),
            Err(Unsent::Refused(refusal)) => Err(refusal),
        }
    }

    /// Resets the stream; the connection, where what resets it strikes all of them.
    async fn reset(&self) -> Result<Response<Answer>, Refusal> {
        let nothing = Active::new(0, Vec::new());
        let whole = self.state.borrow().seen.onset(&nothing, self.session.origin, None, self.now());
        if matches!(whole, Some((_, Strike::Reset))) {
            self.session.finish(Finish::Reset);
        }
        Err(Refusal::Fault)
    }

    /// Goes on when no fault holds it.
    async fn pass(&self) -> Result<(), Refusal> {
        self.race(std::future::ready(())).await
    }

    async fn pause(&self, delay: Span) -> Result<(), Refusal> {
        if delay.is_zero() {
            return Ok(());
        }
        self.race(tokio::time::sleep(delay.to_std())).await
    }

    /// Waits for something else while watching the faults; while one holds the stream, the other thing is not even looked at.
    pub(super) async fn race<F: Future>(&self, subject: F) -> Result<F::Output, Refusal> {
        let mut subject = pin!(subject);
        poll_fn(|cx| match self.poll_gate(Side::Down, cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(refusal)) => Poll::Ready(Err(refusal)),
            Poll::Ready(Ok(())) => subject.as_mut().poll(cx).map(Ok),
        })
        .await
    }

    /// Every wait begins here: pending while a fault holds the stream, an error where one has ended it.
    pub(super) fn poll_gate(&self, side: Side, cx: &Context<'_>) -> Poll<Result<(), Refusal>> {
        let state = &mut *self.state.borrow_mut();
        state.watch(side, &self.session, cx);
        self.meet_change(state)?;
        if state.lost {
            return Poll::Pending;
        }
        if state.hold.holds(&state.seen) { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    /// Lets the steps that began since it last looked strike this stream.
    fn meet_change(&self, state: &mut State) -> Result<(), Refusal> {
        let hub = &self.session.hub;
        if hub.is_closed() || !hub.is_open() {
            return Err(Refusal::Over);
        }
        if state.generation == hub.generation() {
            return Ok(());
        }
        let before = std::mem::replace(&mut state.seen, hub.active());
        state.generation = hub.generation();
        let (origin, now) = (self.session.origin, self.now());
        let Some((step, strike)) = state.seen.onset(&before, origin, Some(&self.request), now) else { return Ok(()) };
        // What strikes the connection as such has touched it there.
        if state.seen.onset(&before, origin, None, now).is_none_or(|(whole, _)| whole != step) {
            state.seen.touch(step);
        }
        match strike {
            Strike::Reset => return Err(Refusal::Fault),
            Strike::Close => return Err(Refusal::Over),
            Strike::Swallow { release: false } => state.lost = true,
            Strike::Swallow { release: true } => state.hold.strike(step),
        }
        Ok(())
    }
}

impl State {
    /// Has the current task woken when the faults change.
    fn watch(&mut self, side: Side, session: &Session, cx: &Context<'_>) {
        let place = match side {
            Side::Up => &mut self.up,
            Side::Down => &mut self.down,
        };
        match place {
            Some(place) => place.follow(cx.waker()),
            None => *place = Some(session.hub.register_waker(cx.waker().clone())),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.session.streams.set(self.session.streams.get() - 1);
    }
}
