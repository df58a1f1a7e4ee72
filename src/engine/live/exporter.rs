//! `/metrics` while a run goes on: what is read there is made by whoever starts it.

use super::small_server::{Answers, ServeError, SmallServer, Unreadable};
use crate::exposition::MEDIA_TYPE;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use std::net::SocketAddr;
use std::sync::Arc;

/// Where they are.
pub const PATH: &str = "/metrics";
/// Connections at once: some scrapers, and somebody who looks.
const MAX_CONNECTIONS: usize = 16;
/// The media type of what is no figure.
const PLAIN: &str = "text/plain; charset=utf-8";

/// Makes the text, each time that it is asked for.
#[derive(Clone)]
struct Page(Arc<dyn Fn() -> String + Send + Sync>);

/// Serves the text at [`PATH`], on a thread of its own. Ends with the value.
///
/// # Errors
/// Where the address cannot be had.
pub fn start(addr: SocketAddr, text: impl Fn() -> String + Send + Sync + 'static) -> Result<SmallServer, ServeError> {
    SmallServer::start("metrics", addr, MAX_CONNECTIONS, Page(Arc::new(text)))
}

impl Answers for Page {
    async fn answer(&self, head: &Parts, _body: Result<Bytes, Unreadable>) -> Response<Full<Bytes>> {
        // hyper leaves the body of an answer to HEAD out.
        match (head.uri.path(), &head.method) {
            (PATH | "/", method) if ![Method::GET, Method::HEAD].contains(method) => {
                let mut refused = page(StatusCode::METHOD_NOT_ALLOWED, PLAIN, "only GET and HEAD\n".into());
                refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
                refused
            }
            (PATH, _) => page(StatusCode::OK, MEDIA_TYPE, (self.0)()),
            ("/", _) => page(StatusCode::OK, PLAIN, format!("A run of stormwake. Its figures are at {PATH}.\n")),
            _ => page(StatusCode::NOT_FOUND, PLAIN, format!("not found: the figures are at {PATH}\n")),
        }
    }
}

fn page(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Duration;

    fn connect(server: &SmallServer) -> TcpStream {
        let stream = TcpStream::connect(server.addr()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    fn ask(server: &SmallServer, request: &str) -> String {
        let mut stream = connect(server);
        write!(stream, "{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn server() -> SmallServer {
        start("127.0.0.1:0".parse().unwrap(), || "a 1\n".into()).unwrap()
    }

    #[test]
    fn only_the_figures_are_there_and_only_to_be_read() {
        let server = server();
        for (request, status, body) in [
            ("GET /metrics", "200 OK", "\r\n\r\na 1\n"),
            ("GET /metrics?x=y", "200 OK", "\r\n\r\na 1\n"),
            ("HEAD /metrics", "200 OK", "content-length: 4\r\n"),
            ("GET /", "200 OK", "at /metrics."),
            ("GET /metrics/", "404 Not Found", "at /metrics"),
            ("GET /../etc/passwd", "404 Not Found", "at /metrics"),
            ("POST /metrics", "405 Method Not Allowed", "allow: GET, HEAD\r\n"),
            ("DELETE /", "405 Method Not Allowed", "allow: GET, HEAD\r\n"),
        ] {
            let answer = ask(&server, request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")) && answer.contains(body), "{request}: {answer}");
        }
        assert!(ask(&server, "GET /metrics").contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"));
        assert!(ask(&server, "HEAD /metrics").ends_with("\r\n\r\n"));
    }

    #[test]
    fn clients_that_say_nothing_or_too_much_keep_nobody_away() {
        let server = server();
        let silent: Vec<TcpStream> = (0..3 * MAX_CONNECTIONS).map(|_| connect(&server)).collect();
        assert!(ask(&server, "GET /metrics").ends_with("a 1\n"));
        let mut endless = connect(&server);
        // It is cut off before that: then no more can be written.
        let _ = write!(endless, "GET /metrics HTTP/1.1\r\nx: {}", "y".repeat(64 << 10));
        let mut answer = Vec::new();
        let _ = endless.read_to_end(&mut answer);
        assert!(!String::from_utf8_lossy(&answer).contains("a 1"), "{answer:?}");
        assert!(ask(&server, "GET /metrics").ends_with("a 1\n"));
        drop(silent);
    }

    #[test]
    fn an_address_in_use_is_said_at_once_and_the_end_frees_it() {
        let first = server();
        let addr = first.addr();
        let error = start(addr, String::new).err().unwrap().to_string();
        assert!(error.starts_with(&format!("cannot listen on {addr}: ")), "{error}");
        drop(first);
        assert!(TcpStream::connect(addr).is_err());
    }
}
