//! From a response to an outcome: what counts as success, how much of a body is read, what the server hints.

use super::Broken;
use super::line::Line;
use crate::engine::live::clock::Clock;
use crate::engine::live::proxy::UNREACHABLE;
use crate::event::AttemptOutcome;
use crate::plan::Success;
use crate::policy::hint::{self, Hint};
use crate::time::Timestamp;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::HeaderValue;
use hyper::{Request, Response, StatusCode};

/// The most bytes of a body that are read; a longer one is malformed.
pub const BODY_LIMIT: u64 = 1024 * 1024;

/// How an attempt ended, and whether its connection can carry another.
pub struct Answer {
    pub outcome: AttemptOutcome,
    pub hint: Hint,
    pub reusable: bool,
}

impl Answer {
    pub fn broken(why: Broken) -> Self {
        Self { outcome: why.into(), hint: Hint::NONE, reusable: false }
    }
}

/// Sends the request, reads the whole response, judges it.
pub async fn read(
    line: &mut Line,
    request: Request<Full<Bytes>>,
    expected: &Success,
    clock: &dyn Clock,
    sent: Timestamp,
) -> Result<Answer, Broken> {
    let response = line.exchange(request).await?;
    let status = response.status().as_u16();
    if is_unreachable(&response) {
        return Err(Broken::Connect);
    }
    let hint = hint_of(&response, clock);
    let mut body = response.into_body();
    let mut search = expected.body_contains.as_deref().filter(|text| !text.is_empty()).map(Search::new);
    let mut bytes = 0u64;
    while let Some(piece) = line.piece(&mut body).await? {
        bytes += piece.len() as u64;
        if bytes > BODY_LIMIT {
            return Err(Broken::Malformed);
        }
        if let Some(search) = &mut search {
            search.feed(&piece);
        }
    }
    let contains = search.is_none_or(|search| search.found);
    let outcome = expected.outcome(status, clock.now().since(sent), contains);
    Ok(Answer { outcome, hint, reusable: true })
}

/// Whether this is the proxy, saying that it could not connect to the target.
fn is_unreachable<B>(response: &Response<B>) -> bool {
    let (name, value) = UNREACHABLE;
    response.status() == StatusCode::BAD_GATEWAY && response.headers().get(name).is_some_and(|found| found == value)
}

fn hint_of<B>(response: &Response<B>, clock: &dyn Clock) -> Hint {
    let headers = response.headers();
    hint::read(|name| headers.get(name).map(HeaderValue::as_bytes), clock.wall_millis())
}

/// Looks for a text in a stream, across the borders of its pieces.
struct Search<'a> {
    wanted: &'a [u8],
    tail: Vec<u8>,
    found: bool,
}

impl<'a> Search<'a> {
    fn new(wanted: &'a str) -> Self {
        Self { wanted: wanted.as_bytes(), tail: Vec::new(), found: false }
    }

    fn feed(&mut self, piece: &[u8]) {
        if self.found {
            return;
        }
        self.tail.extend_from_slice(piece);
        self.found = self.tail.windows(self.wanted.len()).any(|window| window == self.wanted);
        let keep = self.tail.len().min(self.wanted.len() - 1);
        self.tail.drain(..self.tail.len() - keep);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_across_pieces() {
        for (pieces, found) in [
            (vec!["needle"], true),
            (vec!["xxnee", "dlexx"], true),
            (vec!["n", "e", "e", "d", "l", "e"], true),
            (vec!["nee", "x", "dle"], false),
            (vec!["needl"], false),
            (vec![], false),
        ] {
            let mut search = Search::new("needle");
            pieces.iter().for_each(|piece| search.feed(piece.as_bytes()));
            assert_eq!(search.found, found, "{pieces:?}");
            assert!(search.tail.len() < 6);
        }
    }
}
