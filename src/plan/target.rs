//! Where the load goes: somebody's URL, or the built-in target.

use super::service::RawService;
use super::url::TargetUrl;
use crate::config::{At, Node, Problems, Read, Shape, Table, TimeScale, Value, read_text};
use crate::event::AttemptOutcome;
use crate::record;
use crate::service::{ServiceConfig, SystemConfig};
use crate::time::{Rate, Span};
use std::net::IpAddr;

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

    fn rescale(&mut self, _by: TimeScale) {}
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

/// Statuses that count as success: one, or a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusSet {
    /// One status.
    One(u16),
    /// A class, by its first digit.
    Class(u8),
}

impl StatusSet {
    /// Whether a status belongs to it.
    pub fn contains(self, status: u16) -> bool {
        match self {
            Self::One(one) => status == one,
            Self::Class(class) => status / 100 == u16::from(class),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let class = text.strip_suffix("xx").and_then(|digit| digit.parse::<u8>().ok()).filter(|n| (1..=5).contains(n));
        let one = text.parse::<u16>().ok().filter(|code| (100..=599).contains(code));
        match (class, one) {
            (Some(class), _) => Ok(Self::Class(class)),
            (_, Some(one)) => Ok(Self::One(one)),
            _ => Err(format!("`{text}` is not a status: expected one such as 204, or a class such as 2xx")),
        }
    }
}

impl Read for StatusSet {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, Self::parse)
    }
    fn shape() -> Shape {
        Shape::OneOf(vec![
            Shape::Integer { min: 100, max: 599 },
            Shape::Text { what: "a class of statuses", pattern: "^([1-5]xx|[1-5][0-9][0-9])$", examples: &["2xx"] },
        ])
    }

    fn rescale(&mut self, _by: TimeScale) {}
}

record! {
    /// What counts as success.
    pub struct Success {
        /// Statuses (`200`) or classes (`2xx`); 2xx where nothing is said.
        status: Vec<StatusSet> = vec![StatusSet::Class(2)],
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
        url: Option<At<TargetUrl>>,
        /// The built-in target, with these limits; or, in its place, `url`.
        service: Option<RawService>,
        /// With `url`: what stands in for the target where the plan is simulated, in the terms of `service`.
        model: Option<RawService>,
        /// Services beside `service` or `model`, by name: a request goes to the one that its destination names, and a service may call another one.
        services: Table<RawService> = Table::default(),
        /// The method of a request.
        method: At<String> = At { value: "GET".to_string(), place: Default::default() },
        /// Headers of every request.
        headers: Table<HeaderValue> = Table::default(),
        /// The body of every request.
        body: String = String::new(),
        /// Several kinds of request with weights; one, of the URL's path, where nothing is said.
        routes: Vec<Route> = Vec::new(),
        /// What counts as success.
        success: Success = Success { status: vec![StatusSet::Class(2)], body_contains: None, within: None },
        /// Hosts that may be dialled beside loopback (`*.staging.internal` for all below), given `--approve`.
        allow: Vec<At<String>> = Vec::new(),
        /// A ceiling on attempts per second, retries included; a tenth of a second's worth may go at once.
        max_attempts: Option<Rate>,
        /// A file of PEM certificates to trust beside the system's, for `https`.
        ca_file: Option<String>,
    } => |t: &TargetConfig| match (&t.url, &t.service) {
        (None, Some(_)) if t.model.is_some() => {
            Err("`model` stands in for a `url`: the built-in target is its own model, so leave it out".to_string())
        }
        (Some(_), None) if t.model.is_none() && !t.services.0.is_empty() => {
            Err("`services` stand beside a `model`, which the plan is simulated with: add it, or leave them out".to_string())
        }
        (Some(_), None) | (None, Some(_)) => Ok(()),
        (None, None) => Err("the target is missing: give `url`, or `service` for the built-in one".to_string()),
        (Some(_), Some(_)) => Err("`url` and `service` exclude each other: keep one".to_string()),
    }
}

impl TargetConfig {
    /// How the target behaves, as far as the plan says: the built-in one, or the model of somebody's URL.
    pub fn behaviour(&self) -> Option<&ServiceConfig> {
        self.front().map(|front| &front.service)
    }

    /// The service that all requests go to which are for none of the others.
    pub fn front(&self) -> Option<&RawService> {
        self.service.as_ref().or(self.model.as_ref())
    }

    /// The services behind it, or those that stand in for somebody's URL; none where the plan says nothing of them. Of a checked plan, whose
    /// names are resolved.
    pub fn system(&self) -> Option<SystemConfig> {
        let place_of = |name: &str| self.services.0.iter().position(|entry| entry.name == name);
        let front = self.front()?.member(place_of)?;
        let others = self.services.0.iter().map(|entry| Some((entry.name.clone(), entry.value.member(place_of)?)));
        Some(SystemConfig { front, services: others.collect::<Option<_>>()? })
    }
}

impl Success {
    /// Whether a status counts as success.
    pub fn accepts(&self, status: u16) -> bool {
        self.status.iter().any(|set| set.contains(status))
    }

    /// What a whole response is to the plan: its status, how long its attempt took, and whether its body holds what it must.
    pub fn outcome(&self, status: u16, took: Span, body_ok: bool) -> AttemptOutcome {
        if !self.accepts(status) {
            AttemptOutcome::Status(status)
        } else if !body_ok || self.within.is_some_and(|within| took > within) {
            AttemptOutcome::Unexpected
        } else {
            AttemptOutcome::Success
        }
    }
}

/// Whether a pattern of `allow` names a host: exactly, by `*.suffix`, or by an address that it is or resolves to.
/// The one rule, for `check` and for the guard at every connect.
pub fn allows(pattern: &str, host: &str, address: Option<IpAddr>) -> bool {
    let (pattern, host) = (pattern.to_ascii_lowercase(), host.to_ascii_lowercase());
    match pattern.strip_prefix("*.") {
        Some(suffix) => host.strip_suffix(suffix).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        None => {
            let pattern = pattern.trim_start_matches('[').trim_end_matches(']');
            let named = pattern.parse::<IpAddr>().ok().map(|ip| ip.to_canonical());
            pattern == host || named.is_some() && named == address.map(|ip| ip.to_canonical())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_bodies_and_times_are_judged_in_that_order() {
        let success = Success {
            status: vec![StatusSet::Class(2), StatusSet::One(304)],
            body_contains: Some("ok".into()),
            within: Some(Span::from_millis(10)),
        };
        let outcome = |status, body_ok, millis| success.outcome(status, Span::from_millis(millis), body_ok);
        assert_eq!(outcome(204, true, 10), AttemptOutcome::Success);
        assert_eq!(outcome(304, true, 1), AttemptOutcome::Success);
        assert_eq!(outcome(301, true, 1), AttemptOutcome::Status(301));
        assert_eq!(outcome(503, false, 99), AttemptOutcome::Status(503));
        assert_eq!(outcome(200, false, 1), AttemptOutcome::Unexpected);
        assert_eq!(outcome(200, true, 11), AttemptOutcome::Unexpected);
    }

    #[test]
    fn a_pattern_names_a_host_or_an_address() {
        let ip = |text: &str| text.parse::<IpAddr>().ok();
        for (pattern, host, address, wanted) in [
            ("a.internal", "A.Internal", None, true),
            ("*.internal", "a.internal", None, true),
            ("*.internal", "internal", None, false),
            ("*.internal", "a.internal.example", None, false),
            ("[2001:db8::1]", "2001:db8::1", ip("2001:db8::1"), true),
            ("2001:db8:0::1", "2001:db8::1", ip("2001:db8::1"), true),
            ("192.0.2.7", "a.internal", ip("192.0.2.7"), true),
            ("192.0.2.7", "a.internal", ip("::ffff:192.0.2.7"), true),
            ("192.0.2.7", "a.internal", ip("192.0.2.8"), false),
            ("192.0.2.7", "a.internal", None, false),
        ] {
            assert_eq!(allows(pattern, host, address), wanted, "{pattern} {host} {address:?}");
        }
    }
}
