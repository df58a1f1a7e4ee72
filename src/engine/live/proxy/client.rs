//! The client's side of a connection: its link, and TLS on it where the proxy speaks that.

use super::link::Link;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a client speaks on.
pub(super) enum Client {
    /// As it is.
    Plain(Link),
}

impl Client {
    /// The link below.
    pub(super) fn link(&mut self) -> &mut Link {
        match self {
            Self::Plain(link) => link,
        }
    }

    /// From here on a close is a reset.
    pub(super) fn reset_on_close(&mut self) {
        self.link().reset_on_close();
    }
}

impl AsyncRead for Client {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(link) => Pin::new(link).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Client {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Plain(link) => Pin::new(link).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(link) => Pin::new(link).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(link) => Pin::new(link).poll_shutdown(cx),
        }
    }
}
