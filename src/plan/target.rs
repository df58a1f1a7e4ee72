//! Where the load goes: somebody's URL, or the built-in target.

use crate::config::{At, Node, Problems, Read, Shape, Table, Value};
use crate::record;
use crate::service::ServiceConfig;
use crate::time::{Rate, Span};

record! {
    /// A header value that is read when the run starts, and never printed.
    pub struct SecretSource {
        /// The environment variable that holds it.
        from_env: Option<String>,
        /// The file that holds it; a line break at its end is dropped.
        from_file: Option<String>,
    } => |s: &SecretSource| match (&s.from_env, &s.from_file) {
        (Some(_), None) | (None, Some(_)) => Ok(()),
        _ => Err("expected exactly one of `from_env` and `from_file`".to_string()),
    }
}

/// A header's value: spelled out, or from the environment or a file.
#[derive(Clone, Debug, PartialEq)]
pub enum HeaderValue {
    /// Spelled out.
    Plain(String),
    /// Read when the run starts, and never printed.
    Secret(SecretSource),
}

impl Read for HeaderValue {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        match &node.value {
            Value::Map(_) => SecretSource::read(node, problems).map(Self::Secret),
            _ => String::read(node, problems).map(Self::Plain),
        }
    }
    fn shape() -> Shape {
        Shape::OneOf(vec![String::shape(), SecretSource::shape()])
    }
}

record! {
    /// One of several kinds of request.
    pub struct Route {
        /// Its path and query.
        path: At<String>,
        /// Its method; the target's where nothing is said.
        method: Option<At<String>>,
        /// How often it is taken, against the other routes.
        weight: f64 = 1.0,
        /// Headers beside the target's.
        headers: Table<HeaderValue> = Table::default(),
        /// Its body; the target's where nothing is said.
        body: Option<String>,
    }
}

record! {
    /// What counts as success.
    pub struct Success {
        /// Statuses (`200`) or classes (`2xx`); 2xx where nothing is said.
        status: Vec<String> = vec!["2xx".to_string()],
        /// A text that the body must hold.
        body_contains: Option<String>,
        /// How long an attempt may take to count as success.
        within: Option<Span>,
    }
}

record! {
    /// Where the load goes.
    pub struct TargetConfig {
        /// An `http://` or `https://` URL; or, in its place, `service`.
        url: Option<At<String>>,
        /// The built-in target, with these limits; or, in its place, `url`.
        service: Option<ServiceConfig>,
        /// The method of a request.
        method: At<String> = At { value: "GET".to_string(), place: Default::default() },
        /// Headers of every request.
        headers: Table<HeaderValue> = Table::default(),
        /// The body of every request.
        body: String = String::new(),
        /// Several kinds of request with weights; one, of the URL's path, where nothing is said.
        routes: Vec<Route> = Vec::new(),
        /// What counts as success.
        success: Success = Success { status: vec!["2xx".to_string()], body_contains: None, within: None },
        /// Hosts that may be dialled beside loopback (`*.staging.internal` for all below), given `--approve`.
        allow: Vec<At<String>> = Vec::new(),
        /// A ceiling on attempts per second, retries included.
        max_attempts: Option<Rate>,
        /// A file of PEM certificates to trust beside the system's, for `https`.
        ca_file: Option<String>,
    } => |t: &TargetConfig| match (&t.url, &t.service) {
        (Some(_), None) | (None, Some(_)) => Ok(()),
        (None, None) => Err("the target is missing: give `url`, or `service` for the built-in one".to_string()),
        (Some(_), Some(_)) => Err("`url` and `service` exclude each other: keep one".to_string()),
    }
}
