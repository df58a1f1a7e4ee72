//! The heads of HTTP/1 messages, as far as a relay must understand them: where a message ends, and whose it is.

use super::body::{Body, Malformed};
use crate::fault::{Matchers, destination_key};
use crate::service::key::{idempotency_key, name_hash};

/// The largest head of a request that is read, and the most of a response's head that is looked at.
pub(super) const MAX_HEAD: usize = 64 * 1024;
const MAX_HEADERS: usize = 100;

/// The head of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestHead {
    /// Its length in bytes.
    pub(super) len: usize,
    /// The body behind it.
    pub(super) body: Body,
    /// Its method, as far as that changes what a response looks like.
    pub(super) method: Method,
    /// Whether the client wants the connection closed after the answer.
    pub(super) closes: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub(super) expects_continue: bool,
    /// The idempotency key and the attempt of a request of ours.
    pub(super) ours: Option<(u128, u32)>,
    /// Where a request of ours goes, as faults know it; 0 where it does not say.
    pub(super) destination: u64,
    /// The client of a request of ours, as faults know it; 0 where it does not say.
    pub(super) client: u64,
}

/// Methods whose responses are framed in their own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// Its response has no body, whatever its head says.
    Head,
    /// A good response makes the connection a tunnel.
    Connect,
    /// All others.
    Other,
}

/// Why a request cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadRequest {
    /// It is not HTTP/1, or its framing is ambiguous.
    Malformed,
    /// Its head has too many bytes or fields.
    TooLarge,
}

impl BadRequest {
    /// The status that says so.
    pub(super) fn status(self) -> u16 {
        match self {
            Self::Malformed => 400,
            Self::TooLarge => 431,
        }
    }
}

impl From<httparse::Error> for BadRequest {
    fn from(error: httparse::Error) -> Self {
        if error == httparse::Error::TooManyHeaders { Self::TooLarge } else { Self::Malformed }
    }
}

/// Reads the head of a request from the front of `bytes`; nothing while it is incomplete.
pub(super) fn request_head(bytes: &[u8]) -> Result<Option<RequestHead>, BadRequest> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(len) = request.parse(bytes)? else {
        return if bytes.len() < MAX_HEAD { Ok(None) } else { Err(BadRequest::TooLarge) };
    };
    let fields = Fields::read(request.headers).map_err(|Malformed| BadRequest::Malformed)?;
    let http_10 = request.version == Some(0);
    let body = match (fields.chunked, fields.coded, fields.length) {
        (true, _, None) => Body::chunked(),
        (false, false, length) => Body::Length(length.unwrap_or(0)),
        // Both framings, or a coding that does not end in `chunked`: nobody can say where the body ends.
        _ => return Err(BadRequest::Malformed),
    };
    Ok(Some(RequestHead {
        len,
        body,
        method: match request.method {
            Some("HEAD") => Method::Head,
            Some("CONNECT") => Method::Connect,
            _ => Method::Other,
        },
        closes: fields.close || (http_10 && !fields.keep_alive),
        expects_continue: fields.expects_continue,
        ours: fields.idempotency_key.zip(fields.attempt),
        destination: fields.destination,
        client: fields.client,
    }))
}

/// Whose request it is, by its fields: the idempotency key and the attempt of one of ours, where it goes, and its client.
pub(super) fn ours<'a>(all: impl Iterator<Item = (&'a str, &'a [u8])>) -> (Option<(u128, u32)>, u64, u64) {
    let mut fields = Fields::default();
    for (name, value) in all {
        // What breaks HTTP/1's framing is nothing here.
        let _ = fields.take(name, value.trim_ascii());
    }
    (fields.idempotency_key.zip(fields.attempt), fields.destination, fields.client)
}

/// Which of a plan's matchers a request with this head fits, a bit each. Only where there are any is a head read for it.
pub(super) fn matched(head: &[u8], by: &Matchers) -> u64 {
    if by.is_empty() {
        return 0;
    }
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => by.bits(&Looked(&request)),
        _ => 0,
    }
}

/// A head as matchers look at it.
struct Looked<'a>(&'a httparse::Request<'a, 'a>);

impl crate::fault::Head for Looked<'_> {
    fn method(&self) -> &[u8] {
        self.0.method.unwrap_or_default().as_bytes()
    }

    fn path(&self) -> &[u8] {
        self.0.path.unwrap_or_default().as_bytes()
    }

    fn header(&self, name: &str, fits: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.0.headers.iter().any(|header| header.name.eq_ignore_ascii_case(name) && fits(header.value.trim_ascii()))
    }
}

/// Whether a head ends in `bytes`, if none did in the first `seen` of them.
pub(super) fn head_ends(bytes: &[u8], seen: usize) -> bool {
    let tail = &bytes[seen.saturating_sub(3).min(bytes.len())..];
    tail.windows(2).any(|pair| pair == b"\n\n") || tail.windows(3).any(|three| three == b"\n\r\n")
}

/// What follows the head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Follows {
    /// Another head: this one was interim (1xx).
    AnotherHead,
    /// A body.
    Body(Body),
    /// Whatever both sides make of the connection from here on.
    Tunnel,
}

/// Reads the head of a response to `method` from the front of `bytes`: its length and what follows it; nothing
/// while it is incomplete.
pub(super) fn response_head(bytes: &[u8], method: Method) -> Result<Option<(usize, Follows)>, Malformed> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(len) = response.parse(bytes).map_err(|_| Malformed)? else {
        return if bytes.len() < MAX_HEAD { Ok(None) } else { Err(Malformed) };
    };
    let status = response.code.ok_or(Malformed)?;
    let fields = Fields::read(response.headers)?;
    let follows = match (status, method) {
        (101, _) | (200..=299, Method::Connect) => Follows::Tunnel,
        (100..=199, _) => Follows::AnotherHead,
        (204 | 304, _) | (_, Method::Head) => Follows::Body(Body::NONE),
        _ if fields.chunked => Follows::Body(Body::chunked()),
        _ if fields.coded => Follows::Body(Body::UntilClose),
        _ => Follows::Body(fields.length.map_or(Body::UntilClose, Body::Length)),
    };
    Ok(Some((len, follows)))
}

/// The header fields that matter to a relay.
#[derive(Default)]
struct Fields {
    length: Option<u64>,
    chunked: bool,
    coded: bool,
    close: bool,
    keep_alive: bool,
    expects_continue: bool,
    idempotency_key: Option<u128>,
    attempt: Option<u32>,
    destination: u64,
    client: u64,
}

impl Fields {
    fn read(headers: &[httparse::Header]) -> Result<Self, Malformed> {
        let mut fields = Self::default();
        for header in headers {
            fields.take(header.name, header.value.trim_ascii())?;
        }
        Ok(fields)
    }

    fn take(&mut self, name: &str, value: &[u8]) -> Result<(), Malformed> {
        // Most fields are not ours to read; the length tells them apart without a comparison.
        match name.len() {
            6 if name.eq_ignore_ascii_case("expect") => self.expects_continue = value.eq_ignore_ascii_case(b"100-continue"),
            10 if name.eq_ignore_ascii_case("connection") => {
                self.close |= has_word(value, "close");
                self.keep_alive |= has_word(value, "keep-alive");
            }
            14 if name.eq_ignore_ascii_case("content-length") => {
                let length = number(value).ok_or(Malformed)?;
                if self.length.is_some_and(|before| before != length) {
                    return Err(Malformed);
                }
                self.length = Some(length);
            }
            15 if name.eq_ignore_ascii_case("idempotency-key") => self.idempotency_key = Some(idempotency_key(value)),
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                self.coded = true;
                let last = value.rsplit(|&b| b == b',').next().unwrap_or_default();
                self.chunked = last.trim_ascii().eq_ignore_ascii_case(b"chunked");
            }
            19 if name.eq_ignore_ascii_case("x-stormwake-attempt") => {
                self.attempt = number(value).and_then(|n| u32::try_from(n).ok());
            }
            18 if name.eq_ignore_ascii_case("x-stormwake-client") => self.client = name_hash(value),
            23 if name.eq_ignore_ascii_case("x-stormwake-destination") => self.destination = destination_key(value),
            _ => {}
        }
        Ok(())
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    // `parse` would also take a sign.
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn has_word(list: &[u8], word: &str) -> bool {
    list.split(|&b| b == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Result<Option<RequestHead>, BadRequest> {
        request_head(text.as_bytes())
    }

    fn body_of(fields: &str) -> Result<Body, BadRequest> {
        request(&format!("POST / HTTP/1.1\r\n{fields}\r\n")).map(|head| head.expect("it is complete").body)
    }

    #[test]
    fn the_body_of_a_request() {
        assert_eq!(body_of(""), Ok(Body::NONE));
        assert_eq!(body_of("content-length: 7\r\n"), Ok(Body::Length(7)));
        assert_eq!(body_of("Content-Length: 7\r\ncontent-length: 7\r\n"), Ok(Body::Length(7)));
        assert_eq!(body_of("Transfer-Encoding: gzip, Chunked\r\n"), Ok(Body::chunked()));
        for ambiguous in [
            "content-length: 7\r\ncontent-length: 8\r\n",
            "content-length: 7\r\ntransfer-encoding: chunked\r\n",
            "transfer-encoding: chunked, gzip\r\n",
            "content-length: -7\r\n",
            "content-length: +7\r\n",
            "content-length: \r\n",
            "content-length: 99999999999999999999\r\n",
        ] {
            assert_eq!(body_of(ambiguous), Err(BadRequest::Malformed), "{ambiguous:?}");
        }
    }

    #[test]
    fn what_cannot_be_read() {
        assert_eq!(request("GET / HTTP/1.1\r\nHost: x"), Ok(None));
        assert_eq!(request("\x16\x03\x01\x02hello"), Err(BadRequest::Malformed));
        assert_eq!(request("GET / HTTP/2.0\r\n\r\n"), Err(BadRequest::Malformed));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(101));
        assert_eq!(request(&many), Err(BadRequest::TooLarge));
        let long = format!("GET / HTTP/1.1\r\na: {}", "b".repeat(MAX_HEAD));
        assert_eq!(request(&long), Err(BadRequest::TooLarge));
        assert_eq!((BadRequest::Malformed.status(), BadRequest::TooLarge.status()), (400, 431));
    }

    #[test]
    fn who_closes_and_who_waits() {
        let head = |text: &str| request(text).unwrap().unwrap();
        assert!(!head("GET / HTTP/1.1\r\n\r\n").closes);
        assert!(head("GET / HTTP/1.1\r\nConnection: x, Close\r\n\r\n").closes);
        assert!(head("GET / HTTP/1.0\r\n\r\n").closes);
        assert!(!head("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n").closes);
        assert!(head("PUT / HTTP/1.1\r\nExpect: 100-continue\r\n\r\n").expects_continue);
        assert_eq!(head("HEAD / HTTP/1.1\r\n\r\n").method, Method::Head);
    }

    #[test]
    fn whose_request_it_is() {
        let ours = |fields: &str| request(&format!("GET / HTTP/1.1\r\n{fields}\r\n")).unwrap().unwrap().ours;
        assert_eq!(ours(""), None);
        assert_eq!(ours("Idempotency-Key: abc\r\n"), None, "other clients send that too");
        let uuid = "idempotency-key: \"0000002a-0000-0000-0000-000000000007\"\r\nx-stormwake-attempt: 3\r\n";
        assert_eq!(ours(uuid), Some((42 << 96 | 7, 3)));
        assert_eq!(ours("Idempotency-Key: 0000002a000000000000000000000007\r\nX-Stormwake-Attempt: 3\r\n"), ours(uuid));
        let of_a_run = "idempotency-key: 0193a2b3c4d5-0000002a000000000000000000000007\r\nx-stormwake-attempt: 3\r\n";
        assert_eq!(ours(of_a_run), ours(uuid), "the run's number draws nothing");
        let (a, b) = ("idempotency-key: a\r\nx-stormwake-attempt: 1\r\n", "idempotency-key: b\r\nx-stormwake-attempt: 1\r\n");
        assert_ne!(ours(a), ours(b));
    }

    #[test]
    fn the_end_of_a_head_is_found_once_it_is_there() {
        let head = b"GET / HTTP/1.1\r\na: b\r\n\r\n";
        for seen in 0..head.len() {
            assert!(head_ends(head, seen), "{seen}");
            assert!(!head_ends(&head[..seen], 0), "{seen}");
        }
        assert!(head_ends(b"GET / HTTP/1.1\n\nrest", 0));
    }

    #[test]
    fn what_follows_a_response() {
        let follows = |text: &str, method| response_head(text.as_bytes(), method).unwrap().map(|(_, follows)| follows);
        let cases = [
            ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", Method::Other, Follows::Body(Body::Length(5))),
            ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", Method::Head, Follows::Body(Body::NONE)),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", Method::Other, Follows::Body(Body::chunked())),
            ("HTTP/1.1 200 OK\r\n\r\n", Method::Other, Follows::Body(Body::UntilClose)),
            ("HTTP/1.1 200\r\n\r\n", Method::Other, Follows::Body(Body::UntilClose)),
            ("HTTP/1.1 204 No Content\r\n\r\n", Method::Other, Follows::Body(Body::NONE)),
            ("HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", Method::Other, Follows::Body(Body::NONE)),
            ("HTTP/1.1 100 Continue\r\n\r\n", Method::Other, Follows::AnotherHead),
            ("HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", Method::Other, Follows::AnotherHead),
            ("HTTP/1.1 101 Switching\r\n\r\n", Method::Other, Follows::Tunnel),
            ("HTTP/1.1 200 OK\r\n\r\n", Method::Connect, Follows::Tunnel),
        ];
        for (text, method, want) in cases {
            assert_eq!(follows(text, method), Some(want), "{text:?}");
        }
        assert_eq!(follows("HTTP/1.1 200 OK\r\n", Method::Other), None);
        assert_eq!(response_head(b"SSH-2.0-x\r\n\r\n", Method::Other), Err(Malformed));
    }
}
