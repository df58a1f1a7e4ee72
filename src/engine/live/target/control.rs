//! The control API: `POST /stormwake/service` changes the service while it runs.

use super::page::{self, page};
use super::server::Handle;
use crate::plan::{self, Changeable, PlanError};
use crate::service::{Holding, ServiceChange};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONNECTION, HeaderValue, ORIGIN};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;
use std::net::IpAddr;

/// The largest change, in bytes.
const MAX_CHANGE: usize = 64 << 10;

/// What now holds of the service that was changed.
#[derive(Debug, Serialize)]
struct Holds<'a> {
    /// Which of several services it is, as it was called; left out for the front one without a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<&'a str>,
    capacity: f64,
    capacity_goal: f64,
    limiter: &'a [&'static str],
    drain: Option<f64>,
    /// Left out where there is no cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_hits: Option<f64>,
    down: bool,
    changes: u64,
}

impl<'a> Holds<'a> {
    fn new(of: Option<&'a str>, holding: &'a Holding) -> Self {
        let Holding { capacity, capacity_goal, limiters, drain, cache_hits, is_down, changes } = holding;
        let (down, limiter) = (*is_down, limiters.as_slice());
        let (capacity, capacity_goal) = (*capacity, *capacity_goal);
        Self { of, capacity, capacity_goal, limiter, drain: *drain, cache_hits: *cache_hits, down, changes: *changes }
    }
}

/// Answers a request to the control API: 200 with what now holds; 400 with everything that is wrong with the change; 403 to other machines
/// and to web pages; 405; 413.
pub async fn answer(request: Request<Incoming>, peer: IpAddr, service: &Handle) -> Response<Full<Bytes>> {
    if !peer.to_canonical().is_loopback() || request.headers().contains_key(ORIGIN) {
        let text = "the service is changed from this machine only, and not by a web page: send it from a shell here\n";
        return closing(page(StatusCode::FORBIDDEN, text));
    }
    if request.method() != Method::POST {
        return not_allowed("POST", "POST a change of the service, such as `capacity: 20%`\n");
    }
    let Ok(body) = Limited::new(request.into_body(), MAX_CHANGE).collect().await else {
        return closing(page(StatusCode::PAYLOAD_TOO_LARGE, "a change of the service is 64 KiB at most\n"));
    };
    match plan::decode(body.to_bytes().into(), "body").and_then(|text| read(&text, service)) {
        Ok(change) => changed(&change, service),
        Err(error) => page(StatusCode::BAD_REQUEST, format!("{}\n", error.to_string().trim_end())),
    }
}

/// Reads a change, which has to be one that does something to a service that is there.
fn read(text: &str, service: &Handle) -> Result<ServiceChange, PlanError> {
    let all = service.holding();
    let known: Vec<_> = all.iter().map(|(name, holding)| Changeable { name, has_cache: holding.cache_hits.is_some() }).collect();
    plan::service_change("body", text, &known)
}

/// Makes a change, and answers with what now holds.
fn changed(change: &ServiceChange, service: &Handle) -> Response<Full<Bytes>> {
    service.change(change);
    let all = service.holding();
    let (_, holding) = all.iter().find(|(name, _)| name == change.whose()).expect("a change of an unknown service is not read");
    page::json(&Holds::new(change.of.as_deref(), holding))
}

/// What is said to another method than the one that is allowed.
pub fn not_allowed(allowed: &'static str, text: &'static str) -> Response<Full<Bytes>> {
    let mut refused = page(StatusCode::METHOD_NOT_ALLOWED, text);
    refused.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    closing(refused)
}

/// What is said to a path that would be the target's own, and is none.
pub fn unknown() -> Response<Full<Bytes>> {
    let text = "there is no such page; there are:\n\
        GET /stormwake/stats     what the target has counted, as JSON\n\
        GET /metrics             the same, as Prometheus reads it\n\
        POST /stormwake/service  changes the service while it runs: such as `capacity: 20%`\n\
        every other path that does not begin with /stormwake is served as load\n";
    closing(page(StatusCode::NOT_FOUND, text))
}

/// What is left of the body is not read.
fn closing(mut response: Response<Full<Bytes>>) -> Response<Full<Bytes>> {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
