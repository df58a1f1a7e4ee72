//! What a proxy of a plan tells its tap: the requests on its connections, or on their streams, what each is told by, and how it ends.
//!
//! Counting is [`metrics::tap`](crate::metrics::tap)'s. A connection keeps no more here than the request that it serves; the body that a request without
//! a key is told by is hashed as it passes, or, where a fault ends the request at once, as far as it has come with the head.

use super::connection::{End, Flow};
use super::control::Control;
use super::http::RequestHead;
use crate::engine::live::clock::Clock;
use crate::metrics::tap::MOST_BODY;
use crate::metrics::{Fingerprint, Tap as Counting, TapEnd, TapRecord};
use crate::time::{Span, Timestamp};
use std::sync::{Arc, Mutex, PoisonError};

/// More fields than that, and the head has been refused already.
const MAX_HEADERS: usize = 100;

/// The tap of a proxy, shared by its threads.
pub struct Tap {
    counting: Mutex<Counting>,
    by_path: bool,
}

impl Tap {
    /// A tap whose windows are so long, and whose repeats come `within` so long. `by_path`: whether a request without key and without body is
    /// told by its method and path, or by nothing.
    pub fn new(window: Span, within: Span, by_path: bool) -> Self {
        Self { counting: Mutex::new(Counting::new(window, within)), by_path }
    }

    /// What it has counted up to the end of a run.
    pub fn record(&self, name: &str, ended: Timestamp) -> TapRecord {
        self.count(|counting| counting.record(name, ended))
    }

    /// Counts a client that was let in.
    pub(super) fn connected(&self, clock: &dyn Clock) {
        self.count(|counting| counting.connected(clock.now()));
    }

    fn count<R>(&self, count: impl FnOnce(&mut Counting) -> R) -> R {
        count(&mut self.counting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A connection's part of the tap; nothing where its proxy has none.
pub(super) struct Tapping {
    control: Arc<Control>,
    open: Option<Open>,
}

/// The request that is being served.
struct Open {
    came: Timestamp,
    /// What it is told by so far, and how many bytes of its body are in that; none once that was said.
    telling: Option<(Fingerprint, usize)>,
    /// The answer that was passed on whole.
    answered: Option<u16>,
    unreached: bool,
}

impl Tapping {
    pub(super) fn new(control: &Arc<Control>) -> Self {
        Self { control: control.clone(), open: None }
    }

    /// Whether there is a tap: then all that comes is somebody's own traffic, whatever its headers say.
    pub(super) fn is_there(&self) -> bool {
        self.control.tap.is_some()
    }

    /// A request has come: its head is at the front of the inbox.
    pub(super) fn request(&mut self, inbox: &[u8], head: &RequestHead) {
        if !self.is_there() {
            return;
        }
        let (fingerprint, by_key) = told_by(&inbox[..head.len]);
        self.open(fingerprint, by_key, head.body.done());
        let mut body = head.body.clone();
        if let Ok(taken) = body.take(&inbox[head.len..])
            && body.done()
        {
            self.body(&inbox[head.len..head.len + taken], true);
        }
    }

    /// A request has come on a stream of its own. `bare`: nothing follows its head.
    pub(super) fn stream(&mut self, method: &str, path: &str, key: Option<&[u8]>, bare: bool) {
        if self.is_there() {
            self.open(fingerprint(method, path, key), key.is_some(), bare);
        }
    }

    /// Whether more of the request's body would say what it is told by.
    pub(super) fn is_listening(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.telling.is_some())
    }

    fn open(&mut self, fingerprint: Fingerprint, by_key: bool, bare: bool) {
        let Some(tap) = &self.control.tap else { return };
        let came = self.control.clock.now();
        tap.count(|counting| counting.requested(came));
        let known = by_key || bare && tap.by_path;
        self.open = Some(Open { came, telling: Some((fingerprint, 0)), answered: None, unreached: false });
        if known || bare {
            self.identify(known);
        }
    }

    /// So much more of the request's body has come; whether that was all of it.
    pub(super) fn body(&mut self, bytes: &[u8], done: bool) {
        let Some((fingerprint, len)) = self.open.as_mut().and_then(|open| open.telling.as_mut()) else { return };
        *len += bytes.len();
        if *len > MOST_BODY {
            return self.identify(false);
        }
        fingerprint.add(bytes);
        if done {
            self.identify(true);
        }
    }

    /// An answer has been passed on to its end.
    pub(super) fn answered(&mut self, status: u16) {
        self.open.iter_mut().for_each(|open| open.answered = Some(status));
    }

    /// An answer that came has not passed whole after all.
    pub(super) fn cut(&mut self) {
        self.open.iter_mut().for_each(|open| open.answered = None);
    }

    /// The upstream could not be connected to.
    pub(super) fn unreached(&mut self) {
        self.open.iter_mut().for_each(|open| open.unreached = true);
    }

    /// The request has been served, or its connection ends. One that is left without an answer waits on until its client goes.
    pub(super) fn ended(&mut self, how: &Flow<()>) {
        if *how == Err(End::Silent) {
            return;
        }
        self.identify(false);
        let Some((open, tap)) = self.open.take().zip(self.control.tap.as_ref()) else { return };
        let end = match (open.answered, open.unreached, how) {
            (Some(status), ..) => TapEnd::Answered(status),
            (None, true, _) => TapEnd::Unreached,
            (None, false, Err(End::Reset)) => TapEnd::Reset,
            (None, false, Err(End::BadRequest(why))) => TapEnd::Answered(why.status()),
            (None, false, _) => TapEnd::Unanswered,
        };
        let now = self.control.clock.now();
        tap.count(|counting| counting.ended(now, end, now.since(open.came)));
    }

    /// Says, if that has not been said, what the request is told by; or that nobody will know.
    fn identify(&mut self, known: bool) {
        let telling = self.open.as_mut().and_then(|open| open.telling.take());
        if let Some(((fingerprint, _), tap)) = telling.zip(self.control.tap.as_ref()) {
            let now = self.control.clock.now();
            tap.count(|counting| counting.identified(now, known.then(|| fingerprint.identity())));
        }
    }
}

impl Drop for Tapping {
    fn drop(&mut self) {
        self.ended(&Err(End::Closed));
    }
}

/// Method, path and key of a request; whether it has a key.
fn told_by(head: &[u8]) -> (Fingerprint, bool) {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    // It was parsed before, so it can be.
    let _ = request.parse(head);
    let (method, path) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
    let key = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("idempotency-key"));
    let key = key.map(|key| key.value);
    (fingerprint(method, path, key), key.is_some())
}

/// What a request is told by, but for its body, which belongs to it where it has no key.
fn fingerprint(method: &str, path: &str, key: Option<&[u8]>) -> Fingerprint {
    let (method, path) = (method.as_bytes(), path.as_bytes());
    match key.map(<[u8]>::trim_ascii) {
        Some(key) => Fingerprint::of(&[method, path, b"key", key]),
        None => Fingerprint::of(&[method, path, b"body"]),
    }
}

/// The status of a response's head that has been read already; 0 of what is none.
pub(super) fn status(head: &[u8]) -> u16 {
    let mut headers = [];
    let mut response = httparse::Response::new(&mut headers);
    // There is no room for its fields, but the line before them has been read by then.
    let _ = response.parse(head);
    response.code.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_told_by_method_path_and_key() {
        let of = |method: &str, path: &str, fields: &str| told_by(format!("{method} {path} HTTP/1.1\r\n{fields}\r\n").as_bytes());
        let key = "Idempotency-Key: abc \r\n";
        assert!(of("POST", "/a", key).1 && !of("POST", "/a", "x: y\r\n").1);
        assert_eq!(of("POST", "/a", key), of("POST", "/a", "x-request-id: 7\r\nidempotency-key: abc\r\n"));
        for other in
            [of("PUT", "/a", key), of("POST", "/a?b", key), of("POST", "/a", "idempotency-key: abd\r\n"), of("POST", "/a", "")]
        {
            assert_ne!(of("POST", "/a", key).0, other.0);
        }
    }

    #[test]
    fn a_status_is_read_off_a_head() {
        assert_eq!(status(b"HTTP/1.1 503 Service Unavailable\r\na: b\r\nc: d\r\n\r\n"), 503);
        assert_eq!(status(b"\r\nHTTP/1.1 204\r\n\r\n"), 204);
        assert_eq!(status(b"SSH-2.0-x\r\n\r\n"), 0);
    }
}
