//! The client's side of a connection: its link, and TLS on it where the proxy speaks that.

use super::link::Link;
use super::tls::H2;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

/// What a client speaks on.
pub(super) enum Client {
    /// As it is.
    Plain(Link),
    /// Inside TLS.
    Tls(Box<TlsStream<Link>>),
}

impl Client {
    /// The link below.
    pub(super) fn link(&mut self) -> &mut Link {
        match self {
            Self::Plain(link) => link,
            Self::Tls(stream) => stream.get_mut().0,
        }
    }

    /// From here on a close is a reset.
    pub(super) fn reset_on_close(&mut self) {
        self.link().reset_on_close();
    }

    /// Whether HTTP/2 was agreed on in the handshake.
    pub(super) fn agreed_on_h2(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(H2),
        }
    }

    /// Sends what TLS and the faults of bytes have held back, in TLS the word that nothing more comes, without which an end is one that somebody cut,
    /// and closes. Ready when that is done, or nobody is there any more.
    pub(super) fn poll_goodbye(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self::Tls(stream) = self else { return self.link().poll_close(cx) };
        let said = Pin::new(&mut **stream).poll_shutdown(cx);
        let (link, session) = stream.get_mut();
        match said {
            Poll::Ready(Err(_)) => Poll::Ready(()),
            // Not before all of it is with the link, which sends no more once it closes.
            Poll::Pending if session.wants_write() => link.poll_gone(cx),
            Poll::Ready(Ok(())) | Poll::Pending => link.poll_close(cx),
        }
    }
}

impl AsyncRead for Client {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(link) => Pin::new(link).poll_read(cx, into),
            Self::Tls(stream) => {
                // What was written may still be here, encrypted: a write tells of it no more. Whoever writes to a client reads from
                // it too, so it goes on from here. A failure shows as one of reading.
                let _ = Pin::new(&mut **stream).poll_flush(cx);
                match Pin::new(&mut **stream).poll_read(cx, into) {
                    // Many clients close without saying so in TLS; to a relay that is an end like any other.
                    Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
                    read => read,
                }
            }
        }
    }
}

impl AsyncWrite for Client {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Plain(link) => Pin::new(link).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(link) => Pin::new(link).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(link) => Pin::new(link).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
