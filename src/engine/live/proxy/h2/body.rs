//! Bodies on their way: piece by piece as they come, trailers too, and not a piece further while a fault holds their stream.

use super::super::harm::Drops;
use super::Refusal;
use super::fates::end_of;
use super::stream::{Side, Stream};
use crate::fault::CutEnd;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// A body that is relayed.
pub(super) struct Relayed {
    stream: Rc<Stream>,
    side: Side,
    body: Incoming,
}

impl Relayed {
    pub(super) fn new(stream: Rc<Stream>, side: Side, body: Incoming) -> Self {
        Self { stream, side, body }
    }
}

impl Body for Relayed {
    type Data = Bytes;
    type Error = Refusal;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Refusal>>> {
        match self.stream.poll_gate(self.side, cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(refusal)) => Poll::Ready(Some(Err(refusal))),
            Poll::Ready(Ok(())) => Pin::new(&mut self.body).poll_frame(cx).map_err(Refusal::Broken),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer whose body comes to harm on its way.
pub(super) struct Harmed {
    body: Answer,
    how: How,
    /// What has come and may not pass yet.
    kept: Bytes,
    /// Whether what passed in front of the cut has had its turn to be sent.
    sent: bool,
}

enum How {
    /// So many bytes more, and how it ends then.
    Cut(u64, CutEnd),
    Drops(Drops),
}

impl Harmed {
    /// Cut behind so many bytes of the body.
    pub(super) fn cut(body: Answer, left: u64, end: CutEnd) -> Self {
        Self { body, how: How::Cut(left, end), kept: Bytes::new(), sent: false }
    }

    /// In drops.
    pub(super) fn drip(body: Answer, drops: Drops) -> Self {
        Self { body, how: How::Drops(drops), kept: Bytes::new(), sent: false }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Refusal>>> {
        while self.kept.is_empty() {
            let frame = match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => frame,
                other => return other,
            };
            match frame.into_data() {
                Ok(data) => self.kept = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        match &mut self.how {
            // A reset overtakes what has not been sent yet, so the connection gets a turn to send it.
            How::Cut(0, CutEnd::Rst) if !std::mem::replace(&mut self.sent, true) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            How::Cut(0, end) => Poll::Ready(end_of(*end)),
            How::Cut(left, _) => {
                let passes = self.kept.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= passes as u64;
                Poll::Ready(Some(Ok(Frame::data(self.kept.split_to(passes)))))
            }
            How::Drops(drops) => {
                let passes = drops.poll_free(cx, self.kept.len());
                if passes == 0 {
                    return Poll::Pending;
                }
                drops.passed(passes);
                Poll::Ready(Some(Ok(Frame::data(self.kept.split_to(passes)))))
            }
        }
    }
}

/// The body of an answer: the upstream's, as it is or harmed, or a text of the proxy's own.
pub(super) enum Answer {
    Relayed(Relayed),
    Harmed(Box<Harmed>),
    Text(Option<Bytes>),
}

impl Answer {
    /// A text; nothing where it is empty.
    pub(super) fn text(text: &str) -> Self {
        Self::Text((!text.is_empty()).then(|| Bytes::copy_from_slice(text.as_bytes())))
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Refusal;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Refusal>>> {
        match &mut *self {
            Self::Relayed(body) => Pin::new(body).poll_frame(cx),
            Self::Harmed(harmed) => harmed.poll_frame(cx),
            Self::Text(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Relayed(body) => body.is_end_stream(),
            Self::Harmed(harmed) => harmed.kept.is_empty() && harmed.body.is_end_stream(),
            Self::Text(text) => text.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Relayed(body) => body.size_hint(),
            Self::Harmed(_) => SizeHint::default(),
            Self::Text(text) => SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64)),
        }
    }
}
