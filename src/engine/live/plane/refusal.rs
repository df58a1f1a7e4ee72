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
}

impl Refusal {
    /// A refusal with this status.
    pub fn new(status: u16, error: impl Into<String>) -> Self {
        Self { status, error: error.into(), at: Vec::new(), environment: false }
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
