//! A client's socket and the faults of its bytes: what stands between the network and whatever protocol is spoken on it.
//!
//! Reading gives what the client sent, once the faults let it through; writing takes what shall go to the client, and sends it when they let it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A socket to a client.
pub(super) struct Link {
    stream: TcpStream,
}

impl Link {
    /// A link without faults.
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream }
    }

    /// From here on a close is a reset. It fails only on what is no socket any more.
    pub(super) fn reset_on_close(&self) {
        drop(self.stream.set_zero_linger());
    }
}

impl AsyncRead for Link {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for Link {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
