//! Carries out the fates that take more than a moment: a wait for a place, and an answer that comes to harm.

use super::answer;
use super::connection::{Connection, End, Flow};
use super::exchange::Exchange;
use super::http::{Method, RequestHead};
use super::places::Place;
use crate::fault::{Answer, Harm, Judgement, Nonsense, Request};
use crate::time::Span;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

impl Connection {
    /// Counts what touched a request, and keeps the places that it has from here on.
    pub(super) fn note(&mut self, request: &Request, judgement: &Judgement) {
        judgement.touched.iter().for_each(|&step| self.seen.touch(step));
        for &step in &judgement.entered {
            let rule = self.seen.rule(step).cloned();
            self.places.extend(rule.map(|rule| Place::new(rule, request.ticket, self.hub.control.clone())));
        }
    }

    /// Waits in a step's queue: until it has a place, the step has ended, or it has waited too long. Gives the refusal in that case.
    pub(super) async fn wait(&mut self, request: &Request, step: usize, at_most: Span) -> Flow<Option<Answer>> {
        let Some(rule) = self.seen.rule(step).cloned() else { return Ok(None) };
        let mut place = Place::new(rule.clone(), request.ticket, self.hub.control.clone());
        let mut too_long = pin!(tokio::time::sleep(at_most.to_std()));
        let refused = poll_fn(|cx| {
            let gate = self.poll_gate()?;
            self.fill_inbox(cx)?;
            let inside = place.poll_inside(cx);
            if inside {
                self.hold.leave(step);
            }
            // Another fault may hold it still, or have taken hold of it since.
            if gate.is_ready() || inside && !self.hold.is_held() {
                return Poll::Ready(Ok(false));
            }
            if !inside && too_long.as_mut().poll(cx).is_ready() { Poll::Ready(Ok(true)) } else { Poll::Pending }
        })
        .await?;
        if refused {
            self.hold.leave(step);
            return Ok(rule.refusal());
        }
        if rule.has_place(request.ticket) {
            self.places.push(place);
        }
        Ok(None)
    }

    /// Lets a request through to the upstream, and its answer come to harm.
    pub(super) async fn forward(&mut self, head: RequestHead, harm: Option<Box<Harm>>) -> Flow<()> {
        let dialled = self.dial().await;
        if dialled == Err(End::Unreachable) {
            return self.say_unreachable(head).await;
        }
        dialled?;
        let (method, closes) = (head.method, head.closes);
        Exchange::new(&mut self.inbox, head, harm.as_deref()).run(self).await?;
        // Where the upstream has gone with its answer, so does the client.
        let closes = closes || self.wire.is_none();
        match harm.as_deref() {
            None | Some(Harm::Cut { .. } | Harm::Drip { .. }) => Ok(()),
            Some(Harm::Replace(answer)) => self.say(answer, method, closes).await,
            Some(Harm::Malformed(kind)) => self.say_nonsense(*kind).await,
            Some(Harm::Reset) => Err(End::Reset),
            Some(Harm::Lose) => Err(End::Silent),
        }
    }

    /// Sends an answer of our own.
    pub(super) async fn say(&mut self, answer: &Answer, method: Method, closes: bool) -> Flow<()> {
        let mut bytes = answer::render(answer, self.hub.control.clock.wall_millis(), method, closes);
        poll_fn(|cx| self.poll_send(cx, &mut bytes)).await?;
        self.tap.answered(answer.status);
        if closes { Err(End::Answered) } else { Ok(()) }
    }

    /// Sends what is no HTTP. Nothing can follow it.
    pub(super) async fn say_nonsense(&mut self, kind: Nonsense) -> Flow<()> {
        let mut bytes = kind.bytes().to_vec();
        poll_fn(|cx| self.poll_send(cx, &mut bytes)).await?;
        Err(End::Answered)
    }
}
