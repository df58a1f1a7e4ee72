//! What hyper needs of a connection: a client that can be taken back, an upstream's wire whose first bytes are known, tasks on this thread.

use super::super::client::Client;
use super::super::io::Wire;
use super::PREFACE;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Runs hyper's tasks on the shard's own thread.
#[derive(Clone, Copy)]
pub(super) struct Local;

impl<F: Future + 'static> hyper::rt::Executor<F> for Local {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(async move { drop(future.await) });
    }
}

/// A client whose first bytes have been read. It stays in the hands of who lends it, for hyper gives nothing back.
pub(super) struct Lent {
    client: Rc<RefCell<Client>>,
    read: Vec<u8>,
}

impl Lent {
    pub(super) fn new(client: Rc<RefCell<Client>>, read: Vec<u8>) -> Self {
        Self { client, read }
    }
}

/// Gives bytes that have been read before; whether there were any.
fn again(read: &mut Vec<u8>, into: &mut ReadBuf<'_>) -> bool {
    let some = read.len().min(into.remaining());
    into.put_slice(&read[..some]);
    read.drain(..some);
    if read.is_empty() {
        *read = Vec::new();
    }
    some > 0
}

impl AsyncRead for Lent {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if again(&mut self.read, into) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut *self.client.borrow_mut()).poll_read(cx, into)
    }
}

impl AsyncWrite for Lent {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.client.borrow_mut()).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.client.borrow_mut()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.client.borrow_mut()).poll_shutdown(cx)
    }
}

/// A wire to the upstream.
pub(super) struct Upwards {
    wire: Wire,
    read: Vec<u8>,
    /// How many bytes of the preface were sent before hyper came to send it.
    sent: usize,
}

impl Upwards {
    /// A wire on which nothing has been said.
    pub(super) fn new(wire: Wire) -> Self {
        Self { wire, read: Vec::new(), sent: 0 }
    }

    /// Sends the preface and looks at how the answer begins: whether that is HTTP/2; none where it closes. An upstream that speaks it begins
    /// with its settings (RFC 9113, section 3.4).
    pub(super) async fn probe(&mut self) -> io::Result<Option<bool>> {
        while self.sent < PREFACE.len() {
            self.sent += match poll_fn(|cx| self.wire.poll_write(cx, &PREFACE[self.sent..])).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                n => n,
            };
        }
        poll_fn(|cx| self.wire.poll_flush(cx)).await?;
        let mut head = [0; FRAME_HEAD];
        while self.read.len() < FRAME_HEAD {
            let left = FRAME_HEAD - self.read.len();
            match poll_fn(|cx| self.wire.poll_read(cx, &mut head[..left])).await? {
                0 => return Ok(None),
                n => self.read.extend_from_slice(&head[..n]),
            }
        }
        Ok(Some(self.read[FRAME_TYPE] == SETTINGS && self.read[FRAME_TYPE + 1..] == [0; 5]))
    }
}

/// Length, type, flags, and the number of the stream.
const FRAME_HEAD: usize = 9;
const FRAME_TYPE: usize = 3;
const SETTINGS: u8 = 4;

impl AsyncRead for Upwards {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if again(&mut self.read, into) {
            return Poll::Ready(Ok(()));
        }
        let read = self.wire.poll_read(cx, into.initialize_unfilled());
        read.map_ok(|n| into.advance(n))
    }
}

impl AsyncWrite for Upwards {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.sent > 0 {
            let known = self.sent.min(bytes.len());
            self.sent -= known;
            return Poll::Ready(Ok(known));
        }
        self.wire.poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire.poll_shutdown(cx)
    }
}
