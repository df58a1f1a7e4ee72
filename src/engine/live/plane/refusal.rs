//! Why a call is refused: a status and a sentence, as the API answers it.

use super::json::quoted;

/// A call that is refused, and has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// What is wrong; where the server that this stands in for has words for it, in those.
    pub error: String,
    /// Where in a proxy it is wrong: keys, and indexes from 0.
    pub at: Vec<String>,
    /// Whether the machine is to blame, and not what was asked for.
    pub environment: bool,
    /// How to mend it, where neither `error` nor `at` says so.
    pub remedy: Option<String>,
}

impl Refusal {
    /// A refusal with this status.
    pub fn new(status: u16, error: impl Into<String>) -> Self {
        Self { status, error: error.into(), at: Vec::new(), environment: false, remedy: None }
    }

    /// A body that is no JSON, or not of the right kind.
    pub fn body(error: &str) -> Self {
        Self::new(400, format!("bad request body: {error}"))
    }

    /// A field that is not there.
    pub fn missing(field: &str) -> Self {
        Self::new(400, format!("missing required field: {field}")).at(&[field])
    }

    /// There is no such proxy.
    pub fn no_proxy() -> Self {
        Self::new(404, "proxy not found")
    }

    /// There is no such toxic.
    pub fn no_toxic() -> Self {
        Self::new(404, "toxic not found")
    }

    /// There is no such fault.
    pub fn no_fault() -> Self {
        Self::new(404, "fault not found").with_remedy("GET /v1/proxies/{name}/faults lists them")
    }

    /// There is no such lease.
    pub fn no_lease(status: u16, id: &str) -> Self {
        let id: String = id.chars().take(80).collect();
        let error = format!("the lease {id} is not there: it has ended, or never began");
        Self::new(status, error).at(&["lease"]).with_remedy("POST /v1/leases begins one; renew it before its time is over")
    }

    /// The same with a remedy.
    pub fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// How to mend it, where it does not say so itself.
    pub fn hint(&self) -> Option<&str> {
        let last = self.at.last().map_or("", String::as_str);
        match (self.status, last) {
            _ if self.remedy.is_some() => self.remedy.as_deref(),
            (403, _) => None,
            _ if self.environment => Some("choose another port, or end what listens there"),
            (_, "listen") => Some("write it like `127.0.0.1:9001`; port 0 listens on any that is free"),
            (_, "upstream") => Some("write it like `127.0.0.1:5432` or `http://127.0.0.1:8080`"),
            (_, "type") => Some("expected latency, bandwidth, slow_close, timeout, reset_peer, slicer, limit_data or noop"),
            _ => None,
        }
    }

    /// The same, and it is this deep in the proxy.
    pub fn at(mut self, path: &[&str]) -> Self {
        self.at = path.iter().map(ToString::to_string).chain(self.at).collect();
        self
    }

    /// The body of the answer, without the line break behind it.
    pub fn json(&self) -> String {
        format!("{{\"error\":{},\"status\":{}}}", quoted(&self.error), self.status)
    }
}
