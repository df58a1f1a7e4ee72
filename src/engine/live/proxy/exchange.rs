//! Relays one request and its response, byte for byte and in both directions at once, and knows where each ends.

use super::body::{Body, Malformed};
use super::connection::{Connection, End, Flow};
use super::harm::{Passage, end_of};
use super::http::{BadRequest, Follows, MAX_HEAD, Method, RequestHead, response_head};
use super::io::{poll_drain, with_buffer};
use crate::fault::Harm;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;

/// A request and its response on their way.
pub(super) struct Exchange {
    /// What is left of the request's body.
    body: Body,
    to_upstream: Vec<u8>,
    /// Whether the upstream still takes bytes.
    uploading: bool,
    response: Response,
    to_client: Vec<u8>,
    /// How the response passes.
    passage: Passage,
    /// Whether a byte of the response has come.
    begun: bool,
    /// How the upstream's side has ended, once it has.
    ended: Option<End>,
}

impl Exchange {
    /// An exchange whose request begins at the front of the inbox.
    pub(super) fn new(inbox: &mut Vec<u8>, head: RequestHead, harm: Option<&Harm>) -> Self {
        let to_upstream = inbox.drain(..head.len).collect();
        let passage = Passage::of(harm);
        // Of a response that does not pass, neither does the upstream's leave to send a body.
        let leave: &[u8] = if passage.is_hidden() && head.expects_continue { b"HTTP/1.1 100 Continue\r\n\r\n" } else { b"" };
        Self { passage, to_client: leave.to_vec(), ..Self::with(head.body, to_upstream, Response::new(head.method)) }
    }

    /// Both directions as they are, until one of them ends, behind a first byte for the client.
    pub(super) fn tunnel(first: u8) -> Self {
        let response = Response { at: At::Body(Body::UntilClose), ..Response::new(Method::Other) };
        Self { to_client: vec![first], ..Self::with(Body::UntilClose, Vec::new(), response) }
    }

    fn with(body: Body, to_upstream: Vec<u8>, response: Response) -> Self {
        let (to_client, passage) = (Vec::new(), Passage::Whole);
        Self { body, to_upstream, uploading: true, response, to_client, passage, begun: false, ended: None }
    }

    /// Relays until request and response are complete.
    pub(super) async fn run(mut self, on: &mut Connection) -> Flow<()> {
        poll_fn(|cx| self.poll(on, cx)).await
    }

    fn poll(&mut self, on: &mut Connection, cx: &mut Context<'_>) -> Poll<Flow<()>> {
        if on.poll_gate()?.is_pending() {
            // Nothing moves, but a client that gives up is noticed.
            on.fill_inbox(cx)?;
            return Poll::Pending;
        }
        loop {
            let up = self.upload(on, cx)?;
            let down = self.download(on, cx)?;
            if self.to_client.is_empty() {
                if let Some(end) = self.ended {
                    if self.passage.is_hidden() && end == End::Closed && self.response.ends_with_connection() {
                        on.wire = None;
                        return Poll::Ready(Ok(()));
                    }
                    self.response.status_at(end).into_iter().for_each(|status| on.tap.answered(status));
                    return Poll::Ready(Err(end));
                }
                if self.response.done() && self.body.done() && self.to_upstream.is_empty() {
                    if !self.passage.is_hidden() {
                        on.tap.answered(self.response.status);
                    }
                    return Poll::Ready(Ok(()));
                }
            }
            if !up && !down {
                return Poll::Pending;
            }
        }
    }

    /// Client to upstream; whether anything moved.
    fn upload(&mut self, on: &mut Connection, cx: &mut Context<'_>) -> Flow<bool> {
        let mut moved = on.fill_inbox(cx)?;
        if !self.body.done() && !on.inbox.is_empty() && self.to_upstream.len() < MAX_HEAD {
            let taken = self.body.take(&on.inbox).map_err(|Malformed| self.broken_body())?;
            on.tap.body(&on.inbox[..taken], self.body.done());
            self.to_upstream.extend(on.inbox.drain(..taken));
            moved |= taken > 0;
        }
        let Some(wire) = on.wire.as_mut().filter(|_| self.uploading) else {
            self.to_upstream.clear();
            return Ok(moved);
        };
        let sent = poll_drain(&mut self.to_upstream, cx, |cx, bytes| wire.poll_write(cx, bytes));
        let flushed = wire.poll_flush(cx);
        match (sent, flushed) {
            (Ok(sent), Poll::Pending | Poll::Ready(Ok(()))) => Ok(moved | sent),
            // The upstream takes no more. It may have answered before it closed, so reading says how this ends.
            _ => {
                self.uploading = false;
                Ok(true)
            }
        }
    }

    /// A request whose body breaks its framing can be told so only before a response has begun.
    fn broken_body(&self) -> End {
        if self.begun { End::Reset } else { End::BadRequest(BadRequest::Malformed) }
    }

    /// Upstream to client; whether anything moved. The next read waits until the client has taken the last one.
    fn download(&mut self, on: &mut Connection, cx: &mut Context<'_>) -> Flow<bool> {
        let client = &mut on.client;
        let mut write = |cx: &mut Context<'_>, bytes: &[u8]| Pin::new(&mut *client).poll_write(cx, bytes);
        let mut moved = drain(&mut self.to_client, &mut self.passage, cx, &mut write)?;
        let Some(wire) = on.wire.as_mut() else { return Ok(moved) };
        // A response that is complete while its request is not: the upstream is read on, for its end may come first.
        if !self.to_client.is_empty() || self.ended.is_some() {
            return Ok(moved);
        }
        with_buffer(|buffer| match wire.poll_read(cx, buffer) {
            Poll::Pending => Ok(moved),
            Poll::Ready(Ok(0)) => {
                self.ended = Some(End::Closed);
                Ok(true)
            }
            Poll::Ready(Err(error)) => {
                self.ended = Some(if is_reset(&error) { End::Reset } else { End::Closed });
                Ok(true)
            }
            Poll::Ready(Ok(n)) => {
                let n = self.pass(&buffer[..n]);
                // Straight from the shared buffer; what the client does not take now is kept.
                let straight = n > 0 && !matches!(self.passage, Passage::Drops(_));
                let sent = match if straight { write(cx, &buffer[..n]) } else { Poll::Pending } {
                    Poll::Ready(Ok(sent)) => sent,
                    Poll::Ready(Err(_)) => return Err(End::Closed),
                    Poll::Pending => 0,
                };
                self.to_client.extend_from_slice(&buffer[sent..n]);
                moved = true;
                Ok(moved)
            }
        })
    }

    /// Follows the response. From where it makes no sense, or goes on behind its end, both directions are passed on
    /// as they are until the upstream closes: the client shall see what it would see directly. Gives how many of the bytes pass.
    fn pass(&mut self, bytes: &[u8]) -> usize {
        self.begun = true;
        let before = self.response.body_bytes;
        match self.response.follow(bytes) {
            Ok(Followed::Within) => {}
            Ok(Followed::Tunnel) | Err(Malformed) => {
                self.body = Body::UntilClose;
                self.response.at = At::Body(Body::UntilClose);
                return self.pass_through(bytes.len());
            }
        }
        let (seen, all) = (self.response.body_bytes, bytes.len());
        match &mut self.passage {
            Passage::Whole => all,
            Passage::Hidden => 0,
            Passage::Drops(drops) => {
                drops.head(all - (seen - before) as usize);
                all
            }
            Passage::Cut(keep, end) => {
                let (keep, end) = (keep.of(self.response.length), end_of(*end));
                // Where more came than is kept, or more is to come.
                let more = seen > keep || seen == keep && !self.response.done();
                let is_cut = self.response.is_in_body() && more;
                if is_cut {
                    self.ended = Some(end);
                }
                all - if is_cut { (seen - keep) as usize } else { 0 }
            }
        }
    }

    /// What is no response any more comes to no harm; where nothing of it passes, that was all.
    fn pass_through(&mut self, bytes: usize) -> usize {
        if self.passage.is_hidden() {
            self.ended = Some(End::Closed);
            return 0;
        }
        self.passage = Passage::Whole;
        bytes
    }
}

/// Writes what waits for the client, as far as it may pass; whether anything went.
fn drain(
    pending: &mut Vec<u8>,
    passage: &mut Passage,
    cx: &mut Context<'_>,
    mut write: impl FnMut(&mut Context<'_>, &[u8]) -> Poll<io::Result<usize>>,
) -> Flow<bool> {
    let Passage::Drops(drops) = passage else { return poll_drain(pending, cx, write).map_err(|_| End::Closed) };
    let mut moved = false;
    loop {
        let free = drops.poll_free(cx, pending.len());
        match if free == 0 { Poll::Pending } else { write(cx, &pending[..free]) } {
            Poll::Pending => return Ok(moved),
            Poll::Ready(Ok(0) | Err(_)) => return Err(End::Closed),
            Poll::Ready(Ok(sent)) => {
                drops.passed(sent);
                pending.drain(..sent);
                moved = true;
            }
        }
    }
}

pub(super) fn is_reset(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe)
}

/// The place in a response.
struct Response {
    at: At,
    method: Method,
    /// That of the last head; 0 before it.
    status: u16,
    /// The length of the body, where the last head said it.
    length: Option<u64>,
    /// How many bytes behind the last head have come.
    body_bytes: u64,
}

enum At {
    /// In a head; the bytes of it that have come.
    Head(Vec<u8>),
    /// Behind the last head.
    Body(Body),
}

#[derive(Debug, PartialEq, Eq)]
enum Followed {
    /// In the response, or exactly at its end.
    Within,
    /// Behind a head that turns the connection into a tunnel.
    Tunnel,
}

impl Response {
    fn new(method: Method) -> Self {
        Self { at: At::Head(Vec::new()), method, status: 0, length: None, body_bytes: 0 }
    }

    fn is_in_body(&self) -> bool {
        matches!(self.at, At::Body(_))
    }

    /// Whether the end of the connection is its own.
    fn ends_with_connection(&self) -> bool {
        matches!(self.at, At::Body(Body::UntilClose))
    }

    fn done(&self) -> bool {
        matches!(&self.at, At::Body(body) if body.done())
    }

    /// The status of a response that is whole where the upstream's side ends like this.
    fn status_at(&self, end: End) -> Option<u16> {
        let until_close = end == End::Closed && matches!(self.at, At::Body(Body::UntilClose));
        (self.status > 0 && (self.done() || until_close)).then_some(self.status)
    }

    fn follow(&mut self, mut bytes: &[u8]) -> Result<Followed, Malformed> {
        while !bytes.is_empty() {
            let taken = match &mut self.at {
                At::Body(body) if body.done() => return Err(Malformed),
                At::Body(body) => {
                    let taken = body.take(bytes)?;
                    self.body_bytes += taken as u64;
                    taken
                }
                At::Head(before) => {
                    let kept = before.len();
                    let found = match kept {
                        0 => response_head(bytes, self.method)?,
                        _ => {
                            before.extend_from_slice(&bytes[..bytes.len().min(MAX_HEAD - kept)]);
                            if before.len() < MAX_HEAD && !super::http::head_ends(before, kept) {
                                return Ok(Followed::Within);
                            }
                            response_head(before, self.method)?
                        }
                    };
                    let Some((len, follows)) = found else {
                        if kept == 0 {
                            *before = bytes.to_vec();
                        }
                        return Ok(Followed::Within);
                    };
                    self.status = super::tap::status(if kept == 0 { bytes } else { before });
                    self.at = match follows {
                        Follows::Tunnel => return Ok(Followed::Tunnel),
                        Follows::AnotherHead => At::Head(Vec::new()),
                        Follows::Body(body) => {
                            self.length = if let Body::Length(length) = &body { Some(*length) } else { None };
                            At::Body(body)
                        }
                    };
                    len - kept
                }
            };
            bytes = &bytes[taken..];
        }
        Ok(Followed::Within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows a response in pieces; gives what the last piece led to, and whether it was complete.
    fn follow(text: &str, piece: usize, method: Method) -> (Result<Followed, Malformed>, bool) {
        let mut response = Response::new(method);
        for bytes in text.as_bytes().chunks(piece) {
            match response.follow(bytes) {
                Ok(Followed::Within) => {}
                other => return (other, response.done()),
            }
        }
        (Ok(Followed::Within), response.done())
    }

    #[test]
    fn a_response_is_followed_to_its_end_however_it_is_cut() {
        let whole = [
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\na: b\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            "HTTP/1.1 204 No Content\r\n\r\n",
        ];
        for text in whole {
            for piece in [1, 2, 5, 17, 1000] {
                assert_eq!(follow(text, piece, Method::Other), (Ok(Followed::Within), true), "{text:?} by {piece}");
                assert!(!follow(&text[..text.len() - 1], piece, Method::Other).1, "{text:?} by {piece}, cut short");
            }
            let more = format!("{text}?");
            assert_eq!(follow(&more, 1000, Method::Other).0, Err(Malformed), "{more:?}");
        }
        assert!(!follow("HTTP/1.1 200 OK\r\n\r\nuntil it closes", 4, Method::Other).1);
    }

    #[test]
    fn tunnels_and_nonsense() {
        for piece in [1, 1000] {
            assert_eq!(follow("HTTP/1.1 101 Switching\r\n\r\n..", piece, Method::Other).0, Ok(Followed::Tunnel));
            assert_eq!(follow("SSH-2.0-OpenSSH\r\n\r\n", piece, Method::Other).0, Err(Malformed));
            let endless = format!("HTTP/1.1 200 OK\r\na: {}", "b".repeat(2 * MAX_HEAD));
            assert_eq!(follow(&endless, piece * 100, Method::Other).0, Err(Malformed));
        }
    }
}
