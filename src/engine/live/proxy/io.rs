//! Bytes in and out: the two kinds of wire to an upstream, and the buffer that all connections of a thread share.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// What one read takes at most.
const BUFFER: usize = 32 * 1024;

thread_local! {
    // A connection needs a buffer only while it moves bytes, never while it waits. So one per thread is enough, stays
    // in the cache, and an idle connection costs nothing.
    static SHARED: RefCell<Box<[u8]>> = RefCell::new(vec![0; BUFFER].into_boxed_slice());
}

/// Lends the thread's buffer. Not to be nested.
pub(super) fn with_buffer<R>(use_it: impl FnOnce(&mut [u8]) -> R) -> R {
    SHARED.with(|buffer| use_it(&mut buffer.borrow_mut()))
}

/// A connection to the upstream.
pub(super) enum Wire {
    /// As it is.
    Plain(TcpStream),
    /// Inside TLS.
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

impl Wire {
    /// Reads into the buffer; 0 at the end.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(stream) => poll_read(stream, cx, buffer),
            Self::Tls(stream) => match poll_read(&mut **stream, cx, buffer) {
                // Many servers close without saying so in TLS; to a relay that is an end like any other.
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(0)),
                read => read,
            },
        }
    }

    /// Writes as much as goes.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    /// Ends what goes to the upstream; what comes from it goes on.
    pub(super) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    /// From here on a close is a reset. It fails only on what is no socket any more.
    pub(super) fn reset_on_close(&self) {
        let stream = match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.get_ref().0,
        };
        drop(stream.set_zero_linger());
    }

    /// Sends what TLS still holds.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(_) => Poll::Ready(Ok(())),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }
}

/// Reads into the buffer; 0 at the end.
pub(super) fn poll_read<S: AsyncRead + Unpin>(
    stream: &mut S,
    cx: &mut Context<'_>,
    buffer: &mut [u8],
) -> Poll<io::Result<usize>> {
    let mut into = ReadBuf::new(buffer);
    match Pin::new(stream).poll_read(cx, &mut into) {
        Poll::Ready(Ok(())) => Poll::Ready(Ok(into.filled().len())),
        Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        Poll::Pending => Poll::Pending,
    }
}

/// Writes from the front of `pending` and removes what was written; whether anything was.
pub(super) fn poll_drain(
    pending: &mut Vec<u8>,
    cx: &mut Context<'_>,
    mut write: impl FnMut(&mut Context<'_>, &[u8]) -> Poll<io::Result<usize>>,
) -> io::Result<bool> {
    let mut sent = 0;
    while sent < pending.len() {
        match write(cx, &pending[sent..]) {
            Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
            Poll::Ready(Ok(n)) => sent += n,
            Poll::Ready(Err(error)) => return Err(error),
            Poll::Pending => break,
        }
    }
    pending.drain(..sent);
    Ok(sent > 0)
}
