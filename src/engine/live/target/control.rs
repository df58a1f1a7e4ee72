//! The control API: `POST /stormwake/service` changes the service while it runs.

use super::page::{self, page};
use super::server::Handle;
use crate::plan;
use crate::service::limiter::{LimiterConfig, LimitersConfig};
use crate::service::{ServiceChange, ServiceConfig, SystemConfig};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONNECTION, HeaderValue, ORIGIN};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;
use std::net::IpAddr;

/// The largest change, in bytes.
const MAX_CHANGE: usize = 64 << 10;

/// What of a service can be changed for good, as it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Holding {
    /// Which of several services it is; the front one where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Its capacity as a share of what the plan gives it, once it has got there.
    pub capacity: f64,
    /// The kinds of its limiters.
    pub limiter: Vec<&'static str>,
    /// How many leave the queue in a second at most; none where nothing says.
    pub drain: Option<f64>,
    /// How often it was changed.
    pub changes: u64,
}

impl Holding {
    /// Of every service, as the plan says; the front one first.
    pub fn of_all(config: &SystemConfig) -> Vec<Self> {
        let others = config.services.iter().map(|(name, member)| Self::new(Some(name.clone()), &member.service));
        std::iter::once(Self::new(None, &config.front.service)).chain(others).collect()
    }

    /// Of a service, as the plan says.
    pub fn new(of: Option<String>, config: &ServiceConfig) -> Self {
        let limiter = config.limiter.as_ref().map(kinds).unwrap_or_default();
        Self { of, capacity: 1.0, limiter, drain: config.drain.map(|rate| rate.get()), changes: 0 }
    }

    /// After a change; one of another service than the front one is only counted.
    pub fn change(&mut self, change: &ServiceChange) {
        self.changes += 1;
        if change.of.is_some() {
            return;
        }
        if let Some(share) = change.capacity {
            self.capacity = share.get();
        }
        if let Some(limiter) = &change.limiter {
            self.limiter = limiter.get().map(kinds).unwrap_or_default();
        }
        if let Some(drain) = &change.drain {
            self.drain = drain.get().map(|rate| rate.get());
        }
    }
}

fn kinds(LimitersConfig(all): &LimitersConfig) -> Vec<&'static str> {
    all.iter().map(LimiterConfig::key).collect()
}

/// Answers a request to the control API: 200 with what now holds; 400 with everything that is wrong with the change; 403 to other machines
/// and to web pages; 405; 413.
pub async fn answer(request: Request<Incoming>, peer: IpAddr, service: &Handle) -> Response<Full<Bytes>> {
    if !peer.to_canonical().is_loopback() || request.headers().contains_key(ORIGIN) {
        let text = "the service is changed from this machine only, and not by a web page: send it from a shell here\n";
        return closing(page(StatusCode::FORBIDDEN, text));
    }
    if request.method() != Method::POST {
        let mut refused = page(StatusCode::METHOD_NOT_ALLOWED, "POST a change of the service, such as `capacity: 20%`\n");
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        return closing(refused);
    }
    let Ok(body) = Limited::new(request.into_body(), MAX_CHANGE).collect().await else {
        return closing(page(StatusCode::PAYLOAD_TOO_LARGE, "a change of the service is 64 KiB at most\n"));
    };
    let change = plan::decode(body.to_bytes().into(), "body").and_then(|text| plan::service_change("body", &text));
    match change {
        Ok(ServiceChange { of: Some(of), .. }) if !service.has(&of) => {
            page(StatusCode::BAD_REQUEST, format!("body: no service is called `{of}`: name one of the target's `services`\n"))
        }
        Ok(change) => {
            service.change(&change);
            let all = service.holding();
            match all.iter().find(|holding| holding.of == change.of) {
                Some(holding) => page::json(holding),
                None => page(StatusCode::BAD_REQUEST, unknown(change.of.as_deref().unwrap_or_default(), &all)),
            }
        }
        Err(error) => page(StatusCode::BAD_REQUEST, format!("{error}\n")),
    }
}

fn unknown(name: &str, all: &[Holding]) -> String {
    let known: Vec<&str> = all.iter().filter_map(|holding| holding.of.as_deref()).collect();
    let known = if known.is_empty() {
        "leave `of` out: there is one service".into()
    } else {
        format!("expected one of: {}", known.join(", "))
    };
    format!("body: error: no service is called `{}`\n = help: {known}\n", name.chars().take(60).collect::<String>())
}

/// What is left of the body is not read.
fn closing(mut response: Response<Full<Bytes>>) -> Response<Full<Bytes>> {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
