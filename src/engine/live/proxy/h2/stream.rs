//! One stream: a request, its fate, and the faults that reach it while it is under way.

use super::super::answer::UNREACHABLE;
use super::super::connection::End;
use super::super::control::Trouble;
use super::super::http::ours;
use super::super::hub::Registration;
use super::super::tap::Tapping;
use super::body::{Answer, Relayed};
use super::route::Unsent;
use super::{Finish, Refusal, STREAMS, Session, tapped};
use crate::fault::{Active, Fate, Request, Strike};
use crate::policy::hint::Said;
use crate::time::Span;
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Method, Response, StatusCode};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
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
    request: Request,
    /// Whether it is one of our own.
    ours: bool,
    state: RefCell<State>,
    pub(super) tap: RefCell<Tapping>,
    /// That of the upstream's answer, once it is there.
    pub(super) status: Cell<u16>,
}

struct State {
    /// The last snapshot that it has met, and its number.
    seen: Active,
    generation: u64,
    /// Steps that hold it until they end.
    held_by: Vec<usize>,
    /// It is never answered.
    lost: bool,
    up: Option<Registration>,
    down: Option<Registration>,
}

/// Serves one stream.
pub(super) async fn serve(session: Rc<Session>, request: hyper::Request<Incoming>) -> Result<Response<Answer>, Refusal> {
    let stream = Stream::begin(session, &request)?;
    if request.method() == Method::CONNECT {
        return Ok(stream.answer(StatusCode::NOT_IMPLEMENTED, None, "", request));
    }
    let judged = stream.state.borrow().seen.clone();
    let mut judgement = judged.judge(&stream.request, stream.session.hub.control.clock.now());
    loop {
        judgement.touched.iter().for_each(|&step| stream.state.borrow().seen.touch(step));
        // Every fate is carried out here, and nowhere else.
        match judgement.fate {
            Fate::Swallow { release: false, .. } => {
                stream.state.borrow_mut().lost = true;
                stream.listen(request.into_body());
                // It never passes: a fault, or its client, ends it.
                stream.pass().await?;
                return Err(Refusal::Over);
            }
            Fate::Swallow { step, release: true } => {
                stream.state.borrow_mut().held_by.push(step);
                stream.pass().await?;
                let seen = stream.state.borrow().seen.clone();
                let now = stream.session.hub.control.clock.now();
                judgement = seen.judge_released(&stream.request, now, step, &judged);
            }
            Fate::Reset { delay } => {
                stream.pause(delay).await?;
                stream.hear(&mut request.into_body()).await;
                return stream.reset();
            }
            Fate::Close { delay } => {
                stream.pause(delay).await?;
                stream.hear(&mut request.into_body()).await;
                stream.session.finish(Finish::Close);
                return Err(Refusal::Over);
            }
            Fate::Answer { delay, status, hint, body } => {
                stream.pause(delay).await?;
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                let hint = hint.map(|said: Said| said.header(stream.session.hub.control.clock.wall_millis()));
                return Ok(stream.answer(status, hint, &body, request));
            }
            Fate::Forward { delay } => {
                stream.pause(delay).await?;
                return stream.forward(request).await;
            }
        }
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
        let (key, destination) = ours(fields);
        let mut tap = Tapping::new(&session.hub.control);
        // What passes a tap is somebody else's, whatever its headers say.
        let key = key.filter(|_| !tap.is_there());
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        tap.stream(request.method().as_str(), path, tapped::key(request.headers()), request.body().is_end_stream());
        let number = session.requests.replace(session.requests.get() + 1);
        let request = match key {
            Some((key, attempt)) => Request::ours(session.origin, key, attempt).bound_for(destination),
            None => Request::foreign(session.origin, session.number, number),
        };
        session.hub.control.arrive(session.hub.shard, session.origin.fleet);
        // What is installed counts from this moment, even if the shard has not woken up to it yet.
        session.hub.refresh();
        let (seen, generation) = (session.hub.active(), session.hub.generation());
        let state = State { seen, generation, held_by: Vec::new(), lost: false, up: None, down: None };
        let (ours, state, tap, status) = (key.is_some(), RefCell::new(state), RefCell::new(tap), Cell::new(0));
        Ok(Rc::new(Self { session, request, ours, state, tap, status }))
    }

    /// Sends the request on, and relays the answer.
    async fn forward(self: Rc<Self>, request: hyper::Request<Incoming>) -> Result<Response<Answer>, Refusal> {
        let upwards = request.map(|body| Relayed::new(self.clone(), Side::Up, body));
        match self.race(self.session.route.send(upwards)).await? {
            Ok(response) => {
                self.status.set(response.status().as_u16());
                Ok(response.map(|body| Answer::Relayed(Relayed::new(self, Side::Down, body))))
            }
            Err(Unsent::Unreachable) if self.ours => {
                // As on HTTP/1.1: a client of ours is told by a mark that only it reads.
                let mut response = answer(StatusCode::BAD_GATEWAY, None, "", false);
                let (name, value) = UNREACHABLE;
                response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
                Ok(response)
            }
            Err(Unsent::Unreachable) => {
                self.tap.borrow_mut().unreached();
                self.tap.borrow_mut().ended(&Err(End::Unreachable));
                self.session.finish(Finish::Reset);
                Err(Refusal::Over)
            }
            Err(Unsent::Malformed) => {
                self.tap.borrow_mut().answered(StatusCode::BAD_REQUEST.as_u16());
                Ok(answer(StatusCode::BAD_REQUEST, None, "", false))
            }
            Err(Unsent::Refused(refusal)) => {
                self.was_reset();
                Err(refusal)
            }
        }
    }

    /// Answers in the upstream's place. The tap hears the body all the same.
    fn answer(
        self: &Rc<Self>,
        status: StatusCode,
        hint: Option<(&'static str, String)>,
        body: &str,
        request: hyper::Request<Incoming>,
    ) -> Response<Answer> {
        let is_head = request.method() == Method::HEAD;
        self.listen(request.into_body());
        self.tap.borrow_mut().answered(status.as_u16());
        answer(status, hint, body, is_head)
    }

    /// Resets the stream; the connection, where what resets it strikes all of them.
    fn reset(&self) -> Result<Response<Answer>, Refusal> {
        self.was_reset();
        let nothing = Active::new(0, Vec::new());
        let whole = self.state.borrow().seen.onset(&nothing, self.session.origin, None);
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
    async fn race<F: Future>(&self, subject: F) -> Result<F::Output, Refusal> {
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
        if !state.held_by.is_empty() {
            state.held_by.retain(|&step| state.seen.contains(step));
        }
        if state.held_by.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
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
        let origin = self.session.origin;
        let Some((step, strike)) = state.seen.onset(&before, origin, Some(&self.request)) else { return Ok(()) };
        // What strikes the connection as such has touched it there.
        if state.seen.onset(&before, origin, None).is_none_or(|(whole, _)| whole != step) {
            state.seen.touch(step);
        }
        match strike {
            Strike::Reset => {
                self.was_reset();
                return Err(Refusal::Fault);
            }
            Strike::Close => return Err(Refusal::Over),
            Strike::Swallow { release: false } => state.lost = true,
            Strike::Swallow { release: true } => state.held_by.push(step),
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
        if self.session.finish.get() == Some(Finish::Reset) {
            self.was_reset();
        }
        self.session.streams.set(self.session.streams.get() - 1);
    }
}

/// An answer of the proxy's own; without its body, but with its length, for a HEAD.
fn answer(status: StatusCode, hint: Option<(&'static str, String)>, body: &str, is_head: bool) -> Response<Answer> {
    let bodiless = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let mut response = Response::new(Answer::text(if bodiless || is_head { "" } else { body }));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if !bodiless {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        if !body.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        }
    }
    if let Some((name, Ok(value))) = hint.map(|(name, value)| (name, HeaderValue::from_str(&value))) {
        headers.insert(HeaderName::from_static(name), value);
    }
    response
}
