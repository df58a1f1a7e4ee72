//! Answers that the proxy gives itself.

use super::client::Client;
use super::http::Method;
use super::io::{poll_read, with_buffer};
use crate::fault::Answer;
use std::fmt::Write as _;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// A whole response to `method`, said at so many milliseconds since 1970.
pub(super) fn render(answer: &Answer, wall_millis: i64, method: Method, closes: bool) -> Vec<u8> {
    let Answer { status, hint, headers, body } = answer;
    let status = *status;
    let mut text = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    let bodiless = matches!(status, 204 | 304);
    // Writing to a String cannot fail.
    if !bodiless {
        let _ = write!(text, "content-length: {}\r\n", body.len());
        let typed = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        if !body.is_empty() && !typed {
            text.push_str("content-type: text/plain; charset=utf-8\r\n");
        }
    }
    for (name, value) in headers {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    if let Some((name, value)) = hint.map(|said| said.header(wall_millis)) {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    if closes {
        text.push_str("connection: close\r\n");
    }
    text.push_str("\r\n");
    if !bodiless && method != Method::Head {
        text.push_str(body);
    }
    text.into_bytes()
}

/// The header that tells a client of ours that the proxy could not connect to the target. Never relayed traffic of a
/// target, which does not know it.
pub const UNREACHABLE: (&str, &str) = ("x-stormwake-connect", "failed");

/// What a client of ours is told where there is no upstream: the last answer on its connection.
pub(super) fn unreachable() -> Vec<u8> {
    let (name, value) = UNREACHABLE;
    format!("HTTP/1.1 502 Bad Gateway\r\n{name}: {value}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").into_bytes()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        408 => "Request Timeout",
        409 => "Conflict",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}

/// How long, and for how many bytes, a last answer waits for its reader.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 256 * 1024;

/// Closes behind a last answer. Bytes that the client sent and nobody reads would turn the close into a reset, which
/// can overtake the answer; so they are read, for a bounded time, until the client closes too.
pub(super) async fn linger(client: &mut Client) {
    if client.shutdown().await.is_err() {
        return;
    }
    let mut left = LINGER_BYTES;
    let rest = poll_fn(|cx| {
        with_buffer(|buffer| {
            while left > 0 {
                match poll_read(client, cx, buffer) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(n @ 1..)) => left = left.saturating_sub(n),
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(()),
                }
            }
            Poll::Ready(())
        })
    });
    let _ = tokio::time::timeout(LINGER, rest).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::hint::Said;
    use crate::time::Span;

    #[test]
    fn an_answer_says_what_it_should() {
        let text = |status, wait: Option<u64>, body: &str, method, closes| {
            let answer = Answer { body: body.into(), ..Answer::bare(status, Said::new(wait.map(Span::from_secs), None)) };
            String::from_utf8(render(&answer, 0, method, closes)).unwrap()
        };
        assert_eq!(
            text(429, Some(2), "", Method::Other, false),
            "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\nretry-after: 2\r\n\r\n"
        );
        assert_eq!(
            text(503, None, "down", Method::Other, true),
            "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\ncontent-type: text/plain; charset=utf-8\r\n\
             connection: close\r\n\r\ndown"
        );
        assert!(text(503, None, "down", Method::Head, false).ends_with("\r\n\r\n"), "a HEAD is told the length alone");
        assert_eq!(text(204, None, "down", Method::Other, false), "HTTP/1.1 204 No Content\r\n\r\n");
        let headers = vec![("Content-Type".to_string(), "a/b".to_string()), ("x-cause".to_string(), "full".to_string())];
        let answer = Answer { headers, body: "{}".into(), ..Answer::bare(500, None) };
        let wanted = "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 2\r\nContent-Type: a/b\r\nx-cause: full\r\n\r\n{}";
        assert_eq!(String::from_utf8(render(&answer, 0, Method::Other, false)).unwrap(), wanted, "its own type, once");
    }
}
