//! One connection: hyper's sender and the future that moves its bytes, driven together by their client's task.

use super::{Broken, Io};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Connection, SendRequest};
use hyper::{Request, Response};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use tokio::net::TcpStream;

/// What moves a connection's bytes; none once it has ended, for a future must not be polled after that.
type Moving = Option<Pin<Box<Connection<Io<TcpStream>, Full<Bytes>>>>>;

/// A connection that is, or was, open.
pub struct Line {
    sender: SendRequest<Full<Bytes>>,
    moving: Moving,
}

impl Line {
    /// Connects.
    ///
    /// # Errors
    /// What the kernel says, unchanged.
    pub async fn open(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        let (sender, moving) = hyper::client::conn::http1::handshake(Io(stream)).await.map_err(io::Error::other)?;
        Ok(Self { sender, moving: Some(Box::pin(moving)) })
    }

    /// Ready once the connection has ended. To be polled while no attempt is on it: so an idle close is noticed.
    pub fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(moving) = &mut self.moving else { return Poll::Ready(()) };
        match moving.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(_) => {
                self.moving = None;
                Poll::Ready(())
            }
        }
    }

    /// Whether a request can be sent: false where the other side has closed the connection meanwhile.
    pub async fn usable(&mut self) -> bool {
        let Self { sender, moving } = self;
        matches!(drive(moving, sender.ready()).await, Some(Ok(())))
    }

    /// Sends a request and waits for the head of its response. Never sent twice: hyper retries nothing here.
    pub async fn exchange(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Broken> {
        let Self { sender, moving } = self;
        match drive(moving, sender.send_request(request)).await {
            Some(Ok(response)) => Ok(response),
            Some(Err(error)) => Err(classify(&error)),
            None => Err(Broken::Reset),
        }
    }

    /// The next piece of a response's body; none at its end.
    pub async fn piece(&mut self, body: &mut Incoming) -> Result<Option<Bytes>, Broken> {
        use http_body_util::BodyExt;
        loop {
            match drive(&mut self.moving, body.frame()).await {
                None => return Err(Broken::Reset),
                Some(None) => return Ok(None),
                Some(Some(Err(error))) => return Err(classify(&error)),
                // Trailers are no part of the body.
                Some(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }
}

/// Moves the connection's bytes until `wanted` is there; `None` where the connection ended without it.
async fn drive<F: Future>(moving: &mut Moving, wanted: F) -> Option<F::Output> {
    let mut wanted = pin!(wanted);
    std::future::poll_fn(|cx| {
        if let Some(connection) = moving
            && connection.as_mut().poll(cx).is_ready()
        {
            *moving = None;
        }
        match wanted.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            // What the connection still had for us it has handed over by now.
            Poll::Pending if moving.is_none() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// A broken exchange: either the bytes were wrong, or they stopped coming.
fn classify(error: &hyper::Error) -> Broken {
    if error.is_parse() || error.is_parse_too_large() || error.is_parse_status() {
        return Broken::Malformed;
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = cause {
        if let Some(io) = inner.downcast_ref::<io::Error>() {
            // hyper reports wrong chunk sizes as these kinds.
            return match io.kind() {
                io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => Broken::Malformed,
                _ => Broken::Reset,
            };
        }
        cause = inner.source();
    }
    Broken::Reset
}
