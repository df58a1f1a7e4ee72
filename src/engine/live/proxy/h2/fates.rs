//! The fates of a stream that take more than a moment: a wait for a place, and an answer that comes to harm.

use super::super::harm::Drops;
use super::super::places::Place;
use super::Refusal;
use super::body::{Answer, Harmed};
use super::stream::{Side, Stream};
use crate::fault::{Answer as Ours, CutEnd, Harm, Judgement};
use crate::time::Span;
use hyper::body::Body;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

impl Stream {
    /// Counts what touched the request, and keeps the places that it has from here on.
    pub(super) fn note(&self, judgement: &Judgement) {
        let seen = self.seen();
        judgement.touched.iter().for_each(|&step| seen.touch(step));
        for &step in &judgement.entered {
            let rule = seen.rule(step).cloned();
            self.places.borrow_mut().extend(rule.map(|rule| Place::new(rule, self.request.ticket, self.control())));
        }
    }

    /// Waits in a step's queue: until it has a place, the step has ended, or it has waited too long. Gives the refusal in that case.
    pub(super) async fn wait(&self, step: usize, at_most: Span) -> Result<Option<Ours>, Refusal> {
        let Some(rule) = self.seen().rule(step).cloned() else { return Ok(None) };
        let mut place = Place::new(rule.clone(), self.request.ticket, self.control());
        let mut too_long = pin!(tokio::time::sleep(at_most.to_std()));
        let refused = poll_fn(|cx| {
            let gate = self.poll_gate(Side::Down, cx)?;
            let inside = place.poll_inside(cx);
            if inside {
                self.leave(step);
            }
            // Another fault may hold it still, or have taken hold of it since.
            if gate.is_ready() || inside && !self.is_held() {
                return Poll::Ready(Ok::<bool, Refusal>(false));
            }
            if !inside && too_long.as_mut().poll(cx).is_ready() { Poll::Ready(Ok(true)) } else { Poll::Pending }
        })
        .await?;
        if refused {
            self.leave(step);
            return Ok(rule.refusal());
        }
        if rule.has_place(self.request.ticket) {
            self.places.borrow_mut().push(place);
        }
        Ok(None)
    }

    /// What the client sees of the upstream's answer. What takes its place comes when the upstream has answered in full; what is no HTTP cannot be
    /// said in frames, so the stream is reset.
    pub(super) async fn harmed(
        self: Rc<Self>,
        response: Response<Answer>,
        harm: Option<Box<Harm>>,
        is_head: bool,
    ) -> Result<Response<Answer>, Refusal> {
        let Some(harm) = harm else { return Ok(response) };
        match *harm {
            Harm::Cut { keep, end } => {
                let left = keep.of(response.body().size_hint().exact());
                Ok(response.map(|body| Answer::Harmed(Box::new(Harmed::cut(body, left, end)))))
            }
            Harm::Drip { bytes, every } => {
                let drops = Drops::new(bytes, every);
                Ok(response.map(|body| Answer::Harmed(Box::new(Harmed::drip(body, drops)))))
            }
            Harm::Replace(answer) => {
                self.drain(response).await?;
                Ok(self.own(&answer, is_head))
            }
            Harm::Malformed(_) | Harm::Reset => {
                self.drain(response).await?;
                Err(Refusal::Fault)
            }
            Harm::Lose => {
                self.drain(response).await?;
                self.lose().await
            }
        }
    }

    /// Reads an answer to its end. One that breaks off has come as far as it will.
    async fn drain(&self, response: Response<Answer>) -> Result<(), Refusal> {
        let mut body = response.into_body();
        self.race(poll_fn(|cx| {
            loop {
                match Pin::new(&mut body).poll_frame(cx) {
                    Poll::Ready(Some(Ok(_))) => {}
                    Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
        }))
        .await
    }

    /// An answer that a fault gives.
    pub(super) fn own(&self, ours: &Ours, is_head: bool) -> Response<Answer> {
        let status = StatusCode::from_u16(ours.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = answer(status, &ours.body, is_head);
        let headers = response.headers_mut();
        for (name, value) in &ours.headers {
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
                headers.insert(name, value);
            }
        }
        let hint = ours.hint.map(|said| said.header(self.control().clock.wall_millis()));
        if let Some((name, Ok(value))) = hint.map(|(name, value)| (name, HeaderValue::from_str(&value))) {
            headers.insert(HeaderName::from_static(name), value);
        }
        response
    }
}

/// An answer of the proxy's own; without its body, but with its length, for a HEAD.
pub(super) fn answer(status: StatusCode, body: &str, is_head: bool) -> Response<Answer> {
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
    response
}

/// How a cut stream ends: as if that were all, or with a reset.
pub(super) fn end_of<T>(end: CutEnd) -> Option<Result<T, Refusal>> {
    match end {
        CutEnd::Fin => None,
        CutEnd::Rst => Some(Err(Refusal::Fault)),
    }
}
