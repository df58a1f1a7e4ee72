//! A request to a webhook, ready to be sent: built, its host checked, before the run begins.

use super::guard::{Allowed, GuardError, Whereabouts};
use super::redacted::Redacted;
use super::tls::{self, TlsError};
use super::transport::{HeaderError, Io, headers_of};
use crate::plan::{Call, Scheme, StatusSet, TargetUrl};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

/// So much of an answer's body is kept.
const KEPT: usize = 300;

/// Why a webhook cannot be called at all.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// Its host must not be dialled.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// TLS that cannot be spoken.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A header that cannot be sent.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// A URL or a method that cannot be used.
    #[error("{0}")]
    Call(String),
}

/// A request that can be sent any number of times.
#[derive(Clone)]
pub struct Webhook {
    to: TargetUrl,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
    expect: Vec<StatusSet>,
    at: Whereabouts,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Webhook {
    /// Makes it ready. Blocks while a name is resolved that the plan does not allow.
    ///
    /// # Errors
    /// A host that must not be dialled, TLS that cannot be spoken, a header that cannot be sent.
    pub fn new(call: &Call, allowed: &Allowed, ca_file: Option<&str>) -> Result<Self, WebhookError> {
        let to = TargetUrl::parse(&call.url.value).map_err(WebhookError::Call)?;
        let at = allowed.admit(&to.host, to.port)?;
        let tls = match to.scheme {
            Scheme::Http => None,
            Scheme::Https => {
                let (config, name) = tls::client(&to.host, ca_file)?;
                Some((TlsConnector::from(config), name))
            }
        };
        let method = Method::from_bytes(call.method.value.as_bytes());
        let method = method.map_err(|_| WebhookError::Call(format!("`{}` is no method", call.method.value)))?;
        let (headers, body) = (headers_of(&call.headers)?, Bytes::from(call.body.clone()));
        Ok(Self { to, method, headers, body, expect: call.expect.clone(), at, tls })
    }

    /// What it is, for a message: a query may hold a secret, and is left out.
    pub fn name(&self) -> String {
        format!("{} {}{}", self.method, self.to.authority(), Redacted::Url(&self.to.path))
    }

    /// Sends it: what was answered, as an error where that is not what is expected. Never ends by itself where nobody answers.
    ///
    /// # Errors
    /// Whatever keeps it from being answered as expected, in words.
    pub async fn send(&self) -> Result<String, String> {
        self.send_body(self.body.clone()).await
    }

    /// [`Webhook::send`] with another body.
    ///
    /// # Errors
    /// As there.
    pub async fn send_body(&self, body: Bytes) -> Result<String, String> {
        let at = self.at.clone();
        // Checked each time: a name may move to where it must not be followed.
        let resolved = tokio::task::spawn_blocking(move || at.find()).await;
        let addresses = resolved.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        let stream = TcpStream::connect(&addresses[..]).await.map_err(|error| error.to_string())?;
        match &self.tls {
            None => self.exchange(stream, body).await,
            Some((connector, name)) => {
                let stream = connector.connect(name.clone(), stream).await.map_err(|error| error.to_string())?;
                self.exchange(stream, body).await
            }
        }
    }

    async fn exchange<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        stream: S,
        body: Bytes,
    ) -> Result<String, String> {
        let handshake = hyper::client::conn::http1::handshake(Io(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| error.to_string())?;
        let mut request = Request::builder().method(self.method.clone()).uri(&self.to.path).header(HOST, self.to.authority());
        if let Some(headers) = request.headers_mut() {
            headers.extend(self.headers.clone());
            // RFC 9110, 8.6: a method that is meant to carry a body says so where there is none.
            if body.is_empty() && [Method::POST, Method::PUT, Method::PATCH].contains(&self.method) {
                headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
            }
        }
        let request = request.body(Full::new(body)).map_err(|error| error.to_string())?;
        let mut moving = JoinSet::new();
        moving.spawn(connection);
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let status = response.status();
        let said = start_of(response.into_body()).await;
        let text = if said.is_empty() { status.to_string() } else { format!("{status}: {said}") };
        if self.expect.iter().any(|set| set.contains(status.as_u16())) { Ok(text) } else { Err(text) }
    }
}

/// The start of a body, as text.
async fn start_of(mut body: hyper::body::Incoming) -> String {
    let mut kept = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        if let Some(data) = frame.data_ref() {
            kept.extend_from_slice(&data[..data.len().min(KEPT - kept.len())]);
        }
        if kept.len() >= KEPT {
            break;
        }
    }
    String::from_utf8_lossy(&kept).trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{At, Entry, Place, Table};
    use crate::plan::HeaderValue;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// What is on the wire for a call without a body.
    async fn head(method: &str, headers: Vec<Entry<HeaderValue>>) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = |value: String| At { value, place: Place::default() };
        let call = Call {
            url: at(format!("http://{}/hook", listener.local_addr().unwrap())),
            method: at(method.to_string()),
            headers: Table(headers),
            body: String::new(),
            expect: vec![StatusSet::Class(2)],
        };
        let webhook = Webhook::new(&call, &Allowed::default(), None).unwrap();
        let heard = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut head, mut part) = (Vec::new(), [0; 1024]);
            while !head.ends_with(b"\r\n\r\n") {
                let n = stream.read(&mut part).await.unwrap();
                head.extend_from_slice(&part[..n]);
            }
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            String::from_utf8(head).unwrap().to_ascii_lowercase()
        };
        let (sent, head) = tokio::join!(webhook.send(), heard);
        assert!(sent.is_ok(), "{sent:?}");
        head
    }

    #[tokio::test]
    async fn a_call_without_a_body_says_so_where_its_method_could_have_one() {
        for (method, says) in [("POST", true), ("PUT", true), ("GET", false), ("DELETE", false)] {
            let head = head(method, Vec::new()).await;
            assert_eq!(head.contains("\r\ncontent-length: 0\r\n"), says, "{head}");
            assert!(!head.contains("transfer-encoding"), "{head}");
        }
    }

    #[tokio::test]
    async fn a_host_of_the_plan_takes_the_place_of_ours() {
        let host = Entry { name: "Host".into(), place: Place::default(), value: HeaderValue::Plain("hook.example".into()) };
        let head = head("POST", vec![host]).await;
        assert_eq!(head.matches("\r\nhost: ").count(), 1, "{head}");
        assert!(head.contains("\r\nhost: hook.example\r\n"), "{head}");
    }
}
