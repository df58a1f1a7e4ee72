//! Our own client of the API of a Toxiproxy or a `stormwake proxy`: a connection for each call, two seconds for each, every status looked at.

use super::lease::Leased;
use super::{v1, wire};
use crate::engine::live::clock::{Clock, LiveClock};
use crate::engine::live::transport::Io;
use crate::fault::external::{Call, Hand, Harm, Held, Server, Wish};
use crate::time::Span;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Method, Request, StatusCode};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tracing::debug;

/// How long a call may take.
const CALL: Span = Span::from_secs(2);
/// The largest answer that is read, in bytes.
const MAX_BODY: usize = 1 << 20;
/// The header that names the lease of a call.
const LEASE: &str = "stormwake-lease";
/// So much of an answer is shown.
const SHOWN: usize = 200;

/// One proxy of one server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Where the control API is; each address was allowed.
    pub addresses: Vec<SocketAddr>,
    /// Host and port as a URL has them.
    pub authority: String,
    /// The name of the proxy.
    pub proxy: String,
    /// What the server is; only of a Toxiproxy other processes hear.
    #[serde(skip, default = "toxiproxy")]
    pub server: Server,
    /// The lease under which everything is done, of a `stormwake proxy`.
    #[serde(skip)]
    pub lease: Leased,
}

const fn toxiproxy() -> Server {
    Server::Toxiproxy
}

/// Why a call did not work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// Nothing answers.
    #[error("{call}: {problem}")]
    Io {
        /// What was called.
        call: String,
        /// What happened.
        problem: String,
    },
    /// There is no such proxy.
    #[error("{call}: there is no such proxy")]
    NoProxy {
        /// What was called.
        call: String,
    },
    /// An answer that means no.
    #[error("{call}: {status}{said}")]
    Status {
        /// What was called.
        call: String,
        /// The status.
        status: StatusCode,
        /// The start of its body.
        said: String,
    },
    /// It worked, and the server has something else than it should.
    #[error("{0}")]
    Differs(String),
}

impl Endpoint {
    /// What the proxy is and has.
    ///
    /// # Errors
    /// Whatever keeps that from being known.
    pub async fn held(&self) -> Result<Held, ApiError> {
        let path = self.path("");
        let call = format!("GET {path}");
        let (status, body) = self.ask(&Method::GET, &path, None).await?;
        match status {
            StatusCode::OK => self.read(&body).map_err(|problem| ApiError::Io { call, problem }),
            StatusCode::NOT_FOUND if is_no_proxy(&body) => Err(ApiError::NoProxy { call }),
            status => Err(ApiError::Status { call, status, said: shown(&body) }),
        }
    }

    fn read(&self, body: &[u8]) -> Result<Held, String> {
        match self.server {
            Server::Toxiproxy => wire::proxy(body, &self.proxy),
            Server::Stormwake => v1::proxy(body, &self.proxy),
        }
    }

    /// Makes a call. What a fault has touched that was removed, where the server counts that.
    ///
    /// # Errors
    /// Whatever keeps it from having worked, as far as the answer tells.
    pub async fn call(&self, call: &Call) -> Result<Option<u64>, ApiError> {
        let (method, path, body) = self.request(call);
        let name = format!("{method} {path}");
        let (status, answer) = self.ask(&method, &path, body).await?;
        let garbled = |problem| ApiError::Io { call: name.clone(), problem };
        match (call, status) {
            (Call::Enable(_), StatusCode::OK) => self.read(&answer).map(|_| None).map_err(garbled),
            (Call::Add(_), StatusCode::OK | StatusCode::CREATED) if self.counts() => {
                v1::fault(&answer).map(|_| None).map_err(garbled)
            }
            (Call::Add(_), StatusCode::OK) => wire::toxic(&answer).map(|_| None).map_err(garbled),
            (Call::Remove(_), StatusCode::OK) if self.counts() => v1::fault(&answer).map(|gone| gone.touched).map_err(garbled),
            (Call::Remove(_), StatusCode::NO_CONTENT) => Ok(None),
            (_, StatusCode::NOT_FOUND) if is_no_proxy(&answer) => Err(ApiError::NoProxy { call: name }),
            // It is gone already, which is what was wanted.
            (Call::Remove(_), StatusCode::NOT_FOUND) => Ok(None),
            (_, status) => Err(ApiError::Status { call: name, status, said: shown(&answer) }),
        }
    }

    /// Whether it is a `stormwake proxy`, which has faults and counts what they touch.
    fn counts(&self) -> bool {
        self.server == Server::Stormwake
    }

    /// Begins a lease; its name.
    ///
    /// # Errors
    /// Whatever keeps it from being had.
    pub async fn begin_lease(&self, ttl: Span) -> Result<String, ApiError> {
        let call = "POST /v1/leases".to_string();
        let body = serde_json::json!({ "ttl": ttl.to_string() }).to_string();
        match self.ask(&Method::POST, "/v1/leases", Some(body)).await? {
            (StatusCode::CREATED, body) => v1::lease(&body).map_err(|problem| ApiError::Io { call, problem }),
            (status, body) => Err(ApiError::Status { call, status, said: shown(&body) }),
        }
    }

    /// Renews one; whether the server still has it.
    ///
    /// # Errors
    /// Whatever keeps that from being known.
    pub async fn renew_lease(&self, id: &str) -> Result<bool, ApiError> {
        let path = format!("/v1/leases/{id}");
        match self.ask(&Method::PUT, &path, None).await? {
            (StatusCode::OK, _) => Ok(true),
            (StatusCode::NOT_FOUND, _) => Ok(false),
            (status, body) => Err(ApiError::Status { call: format!("PUT {path}"), status, said: shown(&body) }),
        }
    }

    /// Ends one.
    ///
    /// # Errors
    /// Where the server could not be asked.
    pub async fn end_lease(&self, id: &str) -> Result<(), ApiError> {
        self.ask(&Method::DELETE, &format!("/v1/leases/{id}"), None).await.map(drop)
    }

    fn request(&self, call: &Call) -> (Method, String, Option<String>) {
        match call {
            Call::Enable(enabled) => {
                let method = if self.counts() { Method::PATCH } else { Method::POST };
                (method, self.path(""), Some(serde_json::json!({ "enabled": enabled }).to_string()))
            }
            Call::Add(ours) => match &ours.harm {
                Harm::Toxic(toxic) => (Method::POST, self.path("/toxics"), Some(wire::add(&ours.name, toxic).to_string())),
                Harm::Fault(text) => (Method::PUT, self.path(&format!("/faults/{}", escaped(&ours.name))), Some(text.clone())),
            },
            Call::Remove(name) => {
                let kind = if self.counts() { "faults" } else { "toxics" };
                (Method::DELETE, self.path(&format!("/{kind}/{}", escaped(name))), None)
            }
        }
    }

    /// The command that makes a call by hand.
    pub fn by_hand(&self, call: &Call) -> String {
        let (method, path, body) = self.request(call);
        let body = body.map(|body| format!(" -d {}", quoted(&body))).unwrap_or_default();
        format!("curl -X {method}{body} {}", quoted(&format!("http://{}{path}", self.authority)))
    }

    /// The command that shows the proxy.
    pub fn by_hand_shown(&self) -> String {
        format!("curl {}", quoted(&format!("http://{}{}", self.authority, self.path(""))))
    }

    /// Gets the proxy to be what is wished for, and sees that it is. `before` is asked before each call. What the server has then, and
    /// had before.
    ///
    /// # Errors
    /// What failed, or differs. Some of it may have been done.
    pub async fn reach(
        &self,
        hand: &mut Hand,
        wish: &Wish,
        mut before: impl FnMut(&Call) -> Result<(), String>,
        mut found: impl FnMut(&Hand, &Held),
    ) -> Result<Held, ApiError> {
        let held = self.held().await?;
        hand.saw(&held);
        found(hand, &held);
        for call in hand.calls(&held, wish) {
            before(&call).map_err(ApiError::Differs)?;
            hand.calls_now(&call);
            let touched = self.call(&call).await?;
            if let (Call::Remove(name), Some(touched)) = (&call, touched) {
                hand.counted(name, touched);
            }
        }
        let held = self.held().await?;
        hand.saw(&held);
        hand.verify(&held, wish).map_err(|why| ApiError::Differs(format!("the server said yes, but {why}")))?;
        Ok(held)
    }

    fn path(&self, rest: &str) -> String {
        let version = if self.counts() { "/v1" } else { "" };
        format!("{version}/proxies/{}{rest}", escaped(&self.proxy))
    }

    async fn ask(&self, method: &Method, path: &str, body: Option<String>) -> Result<(StatusCode, Bytes), ApiError> {
        let error = |problem: String| ApiError::Io { call: format!("{method} {path}"), problem };
        let began = LiveClock::starting_now();
        let answer = match tokio::time::timeout(CALL.to_std(), self.exchange(method, path, body)).await {
            Ok(answer) => answer.map_err(error),
            Err(_) => Err(error(format!("no answer within {CALL}"))),
        };
        let (server, ms) = (&self.authority, began.now().0 / 1_000_000);
        match &answer {
            Ok((status, _)) => debug!(%server, %method, path, status = status.as_u16(), ms, "a server of faults was called"),
            Err(problem) => debug!(%server, %problem, ms, "a server of faults did not answer"),
        }
        answer
    }

    async fn exchange(&self, method: &Method, path: &str, body: Option<String>) -> Result<(StatusCode, Bytes), String> {
        let stream = TcpStream::connect(&self.addresses[..]).await.map_err(|error| error.to_string())?;
        let handshake = hyper::client::conn::http1::handshake(Io(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| error.to_string())?;
        let mut moving = JoinSet::new();
        moving.spawn(connection);
        let mut request = Request::builder().method(method).uri(path).header(HOST, &self.authority);
        if let Some(id) = self.lease.id() {
            request = request.header(LEASE, id);
        }
        let request = request.header(USER_AGENT, concat!("stormwake/", env!("CARGO_PKG_VERSION")));
        let request = request.header(CONTENT_TYPE, "application/json").body(Full::new(Bytes::from(body.unwrap_or_default())));
        let response =
            sender.send_request(request.map_err(|error| error.to_string())?).await.map_err(|error| error.to_string())?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_BODY).collect().await;
        Ok((status, body.map_err(|error| format!("its answer breaks off: {error}"))?.to_bytes()))
    }
}

/// Whether a 404 is the API's own: of some other server nothing follows.
fn is_no_proxy(body: &[u8]) -> bool {
    let said: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    said.is_some_and(|said| {
        let error = &said["error"];
        error.as_str().or(error["message"].as_str()) == Some("proxy not found")
    })
}

fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text: String = text.trim().chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.is_empty() { text } else { format!(": {text}") }
}

/// A part of a path: everything but letters, digits and `-._~` as `%XX`.
fn escaped(part: &str) -> String {
    let one = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    part.bytes().map(one).collect()
}

/// A word of a shell.
fn quoted(text: &str) -> String {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "-._~:/%".contains(c));
    if plain { text.to_string() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_does_by_hand_is_what_is_called() {
        let endpoint = |proxy: &str| Endpoint {
            addresses: vec![],
            authority: "127.0.0.1:8474".into(),
            proxy: proxy.into(),
            server: Server::Toxiproxy,
            lease: Leased::default(),
        };
        for (proxy, call, wanted) in [
            ("pay", Call::Enable(true), r#"curl -X POST -d '{"enabled":true}' http://127.0.0.1:8474/proxies/pay"#),
            (
                "pay",
                Call::Remove("stormwake-r-out-upstream".into()),
                "curl -X DELETE http://127.0.0.1:8474/proxies/pay/toxics/stormwake-r-out-upstream",
            ),
            ("a b'?", Call::Remove("x".into()), "curl -X DELETE http://127.0.0.1:8474/proxies/a%20b%27%3F/toxics/x"),
        ] {
            assert_eq!(endpoint(proxy).by_hand(&call), wanted);
        }
        let ours = Endpoint { server: Server::Stormwake, ..endpoint("pay") };
        let by_hand = "curl -X DELETE http://127.0.0.1:8474/v1/proxies/pay/faults/stormwake-r-out";
        assert_eq!(ours.by_hand(&Call::Remove("stormwake-r-out".into())), by_hand);
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
