//! What comes to an answer on its way through an exchange: how much of it passes, and when.

use super::connection::End;
use crate::fault::{CutEnd, Harm, Keep};
use crate::time::Span;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::time::Sleep;

/// How an answer passes.
pub(super) enum Passage {
    /// As it is.
    Whole,
    /// Not at all: it is read to its end, and something else comes of it.
    Hidden,
    /// Cut behind so much of its body.
    Cut(Keep, CutEnd),
    /// Its body in drops.
    Drops(Box<Drops>),
}

impl Passage {
    /// The passage of an answer to which this comes.
    pub(super) fn of(harm: Option<&Harm>) -> Self {
        match harm {
            None => Self::Whole,
            Some(Harm::Replace(_) | Harm::Malformed(_) | Harm::Reset | Harm::Lose) => Self::Hidden,
            Some(Harm::Cut { keep, end }) => Self::Cut(*keep, *end),
            Some(Harm::Drip { bytes, every }) => Self::Drops(Box::new(Drops::new(*bytes, *every))),
        }
    }

    pub(super) fn is_hidden(&self) -> bool {
        matches!(self, Self::Hidden)
    }
}

/// A cut connection's end.
pub(super) fn end_of(cut: CutEnd) -> End {
    match cut {
        CutEnd::Fin => End::Answered,
        CutEnd::Rst => End::Reset,
    }
}

/// A body that comes in drops.
pub(super) struct Drops {
    bytes: usize,
    every: Span,
    /// What may pass now: heads, and what is left of the last drop.
    free: usize,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Drops {
    pub(super) fn new(bytes: u32, every: Span) -> Self {
        Self { bytes: bytes as usize, every, free: 0, pause: None }
    }

    /// So many bytes of heads have come, in front of which nothing waits.
    pub(super) fn head(&mut self, bytes: usize) {
        self.free += bytes;
    }

    /// How many of the bytes that wait may pass; asks to be called when there are more.
    pub(super) fn poll_free(&mut self, cx: &mut Context<'_>, waiting: usize) -> usize {
        if self.free == 0 && waiting > 0 {
            let pause = self.pause.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.every.to_std())));
            if let Poll::Ready(()) = pause.as_mut().poll(cx) {
                self.pause = None;
                self.free = self.bytes;
            }
        }
        self.free.min(waiting)
    }

    /// So many have passed.
    pub(super) fn passed(&mut self, bytes: usize) {
        self.free -= bytes.min(self.free);
    }
}
