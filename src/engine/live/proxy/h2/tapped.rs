//! What a stream tells its proxy's tap. Without a tap nothing here does anything.

use super::super::connection::End;
use super::stream::Stream;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::header::HeaderMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

/// The key of a request.
pub(super) fn key(headers: &HeaderMap) -> Option<&[u8]> {
    headers.get("idempotency-key").map(|key| key.as_bytes())
}

impl Stream {
    /// A piece of the request's body has come; whether it was the last.
    pub(super) fn heard(&self, frame: &Frame<Bytes>, done: bool) {
        let data = frame.data_ref().map_or(&[][..], |data| data);
        self.tap.borrow_mut().body(data, done);
    }

    /// The request's body has come to its end.
    pub(super) fn heard_all(&self) {
        self.tap.borrow_mut().body(&[], true);
    }

    /// The answer has been passed on to its end.
    pub(super) fn answered(&self) {
        self.tap.borrow_mut().answered(self.status.get());
    }

    /// A part of the answer, or all of it, does not pass.
    pub(super) fn was_cut(&self) {
        self.tap.borrow_mut().cut();
    }

    /// It is reset.
    pub(super) fn was_reset(&self) {
        self.tap.borrow_mut().ended(&Err(End::Reset));
    }

    /// Hears what has come by now of the body of a request that goes no further.
    pub(super) async fn hear(&self, body: &mut Incoming) {
        poll_fn(|cx| {
            while self.tap.borrow().is_listening() {
                match Pin::new(&mut *body).poll_frame(cx) {
                    Poll::Ready(Some(Ok(frame))) => self.heard(&frame, body.is_end_stream()),
                    Poll::Ready(None) => self.heard_all(),
                    Poll::Ready(Some(Err(_))) | Poll::Pending => break,
                }
            }
            Poll::Ready(())
        })
        .await;
    }

    /// Hears the rest of it as it comes, for as long as that says anything, and with the connection at the longest. Nobody waits for that.
    pub(super) fn listen(self: &Rc<Self>, mut body: Incoming) {
        if !self.tap.borrow().is_listening() {
            return;
        }
        let stream = self.clone();
        tokio::task::spawn_local(async move {
            while stream.tap.borrow().is_listening() {
                match body.frame().await {
                    Some(Ok(frame)) => stream.heard(&frame, body.is_end_stream()),
                    None => stream.heard_all(),
                    Some(Err(_)) => return,
                }
            }
        });
    }
}
