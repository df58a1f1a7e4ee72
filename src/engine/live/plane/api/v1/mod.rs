//! `/v1`: what Toxiproxy's API lacks. Proxies with what they count, faults as a plan's, all of them at once, and leases. What may be sent and what
//! is answered says the OpenAPI file, which is served too.

mod body;
mod show;

use super::super::faults::{FaultInput, FaultSet, MAX_TEXT};
use super::super::{Plane, ProxyInput, Refusal};
use super::{empty, page};
use crate::config::{Node, Problems, Value as Tree};
use crate::engine::live::proxy::Protocol;
use crate::plan::external::json_of;
use crate::plan::{ProxyFault, Sees, Spoken};
use crate::record;
use crate::time::Span;
use body::{Body, Refused, Wrong};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, Response, StatusCode};
use serde_json::{Map, Value};

/// What the API is, for machines.
pub const OPENAPI: &str = include_str!("../../openapi.json");

/// Every path, and the methods that it takes.
pub const ROUTES: &[(&str, &[&str])] = &[
    ("/v1/proxies", &["GET", "POST"]),
    ("/v1/proxies/{proxy}", &["GET", "PATCH", "DELETE"]),
    ("/v1/proxies/{proxy}/faults", &["GET"]),
    ("/v1/proxies/{proxy}/faults/{fault}", &["GET", "PUT", "DELETE"]),
    ("/v1/faults", &["GET", "PUT"]),
    ("/v1/leases", &["GET", "POST"]),
    ("/v1/leases/{lease}", &["GET", "PUT", "DELETE"]),
    ("/v1/openapi.json", &["GET"]),
];

record! {
    /// A new proxy.
    struct NewProxy {
        /// Its name.
        name: String,
        /// Where it listens; any free port of loopback where nothing is said.
        listen: Option<String>,
        /// Where it sends what it gets.
        upstream: String,
        /// What it understands, where the upstream does not say.
        protocol: Option<Spoken>,
        /// Whether it lets clients in.
        enabled: Option<bool>,
    }
}

record! {
    /// What changes of a proxy.
    struct ProxyChange {
        /// Where it listens.
        listen: Option<String>,
        /// Where it sends what it gets.
        upstream: Option<String>,
        /// What it understands.
        protocol: Option<Spoken>,
        /// Whether it lets clients in.
        enabled: Option<bool>,
    }
}

record! {
    /// How long a lease lasts.
    struct LeaseBody {
        /// From now on.
        ttl: Option<Span>,
    }
}

/// A call under `/v1`.
struct Call<'a> {
    plane: &'a Plane,
    method: &'a Method,
    body: &'a [u8],
    lease: Option<&'a str>,
}

type Answer = Result<Response<Full<Bytes>>, Refused>;

/// Answers a call whose path begins with `/v1`; the rest of it is given without percent signs.
pub(super) async fn answer(
    plane: &Plane,
    method: &Method,
    path: &[String],
    lease: Option<&str>,
    body: &[u8],
) -> Response<Full<Bytes>> {
    let Some((_, methods)) = ROUTES.iter().find(|(route, _)| fits(route, path)) else {
        return refused(&only(404, "there is nothing at this path", "GET /v1/openapi.json lists what there is"));
    };
    if !methods.contains(&method.as_str()) {
        let allowed = methods.join(", ");
        let mut answer = refused(&only(405, &format!("expected {allowed}, found {method}"), "see GET /v1/openapi.json"));
        if let Ok(allowed) = HeaderValue::from_str(&allowed) {
            answer.headers_mut().insert(ALLOW, allowed);
        }
        return answer;
    }
    let call = Call { plane, method, body, lease };
    let path: Vec<&str> = path.iter().skip(1).map(String::as_str).collect();
    let answered = match path[..] {
        ["proxies"] => call.proxies().await,
        ["proxies", proxy] => call.proxy(proxy).await,
        ["proxies", proxy, "faults"] => plane.view(proxy).map(|view| json(200, &show::faults(&view))).map_err(Refused::from),
        ["proxies", proxy, "faults", fault] => call.fault(proxy, fault).await,
        ["faults"] => call.faults().await,
        ["leases"] => call.leases(),
        ["leases", id] => call.lease(id).await,
        _ => Ok(page(200, "application/json", OPENAPI)),
    };
    answered.unwrap_or_else(|wrong| refused(&wrong))
}

/// A call that is refused before anything of it was looked at.
pub(super) fn refusal(refusal: &Refusal) -> Response<Full<Bytes>> {
    refused(&Refused::from(refusal.clone()))
}

impl Call<'_> {
    fn gets(&self) -> bool {
        self.method == Method::GET
    }

    async fn proxies(&self) -> Answer {
        if self.gets() {
            let proxies: Value = self.plane.views().iter().map(show::proxy).collect();
            return Ok(json(200, &proxies));
        }
        let NewProxy { name, listen, upstream, protocol, enabled } = Body::parse(self.body)?.read()?;
        let (protocol, upstream) = (protocol.map(spoken), Some(upstream));
        let input = ProxyInput { name: Some(name.clone()), listen, upstream, enabled, protocol, ..ProxyInput::default() };
        self.plane.create(&input, self.lease).await?;
        Ok(json(201, &show::proxy(&self.plane.view(&name)?)))
    }

    async fn proxy(&self, name: &str) -> Answer {
        let there = self.plane.view(name)?;
        match *self.method {
            Method::GET => return Ok(json(200, &show::proxy(&there))),
            Method::DELETE => {
                self.plane.remove(name, self.lease).await?;
                return Ok(empty(StatusCode::NO_CONTENT));
            }
            _ => {}
        }
        let ProxyChange { listen, upstream, protocol, enabled } = Body::parse(self.body)?.read()?;
        let input = ProxyInput { listen, upstream, enabled, protocol: protocol.map(spoken), ..ProxyInput::default() };
        self.plane.update(name, &input, self.lease).await?;
        Ok(json(200, &show::proxy(&self.plane.view(name)?)))
    }

    async fn fault(&self, proxy: &str, name: &str) -> Answer {
        let there = self.plane.view(proxy)?;
        match *self.method {
            Method::GET => Ok(json(200, &show::fault_of(&there, there.entry.fault(name)?))),
            Method::DELETE => {
                let (placed, touched) = self.plane.remove_fault(proxy, name, self.lease).await?;
                Ok(json(200, &show::fault(&there.entry, &placed, touched, None)))
            }
            _ => {
                let is_new = there.entry.fault(name).is_err();
                let body = Body::parse(self.body)?;
                let input = body.read_by(|problems| fault(&body.root, there.entry.sees(), problems))?;
                let view = self.plane.put_fault(proxy, name, &input, self.lease).await?;
                Ok(json(if is_new { 201 } else { 200 }, &show::fault_of(&view, view.entry.fault(name)?)))
            }
        }
    }

    async fn faults(&self) -> Answer {
        let views = if self.gets() {
            self.plane.views()
        } else {
            let body = Body::parse(self.body)?;
            // What is for a proxy that there is not is refused as that.
            let all = Sees { requests: true, handshakes: true };
            let sees = |proxy: &str| self.plane.entry(proxy).map_or(all, |entry| entry.sees());
            let set = body.read_by(|problems| fault_set(&body.root, sees, problems))?;
            self.plane.put_faults(&set, self.lease).await?
        };
        let all: Map<String, Value> = views.iter().map(|view| (view.entry.name.clone(), show::faults(view))).collect();
        Ok(json(200, &Value::Object(all)))
    }

    fn leases(&self) -> Answer {
        if self.gets() {
            let (leases, now) = self.plane.leases();
            let leases: Value = leases.iter().map(|(lease, holds)| show::lease(lease, holds, now)).collect();
            return Ok(json(200, &leases));
        }
        let LeaseBody { ttl } = Body::parse(self.body)?.read()?;
        let lease = self.plane.begin_lease(ttl)?;
        self.shown(201, &lease.id)
    }

    async fn lease(&self, id: &str) -> Answer {
        match *self.method {
            Method::GET => self.shown(200, id),
            Method::DELETE => {
                self.plane.end_lease(id).await?;
                Ok(empty(StatusCode::NO_CONTENT))
            }
            _ => {
                let LeaseBody { ttl } = Body::parse(self.body)?.read()?;
                self.plane.renew_lease(id, ttl)?;
                self.shown(200, id)
            }
        }
    }

    fn shown(&self, status: u16, id: &str) -> Answer {
        let (lease, holds, now) = self.plane.lease(id)?;
        Ok(json(status, &show::lease(&lease, &holds, now)))
    }
}

/// Whether a path is one of a route; a name in it is not empty.
fn fits(route: &str, path: &[String]) -> bool {
    let parts: Vec<&str> = route.trim_start_matches('/').split('/').collect();
    let fits = |(part, there): (&&str, &String)| if part.starts_with('{') { !there.is_empty() } else { part == there };
    parts.len() == path.len() && parts.iter().zip(path).all(fits)
}

fn fault(node: &Node, sees: Sees, problems: &mut Problems) -> Option<FaultInput> {
    let fault = ProxyFault::sound(node, sees, problems)?;
    let text = json_of(node).to_string();
    if text.len() > MAX_TEXT {
        let message = format!("a fault of {} bytes: {MAX_TEXT} at most", text.len());
        problems.error_with_hint(node.place, message, "make its body shorter");
        return None;
    }
    Some(FaultInput { fault, text: text.into() })
}

/// By proxy, its faults by name.
fn fault_set(root: &Node, sees: impl Fn(&str) -> Sees, problems: &mut Problems) -> Option<FaultSet> {
    let mut set = FaultSet::new();
    for (proxy, faults) in entries(root, "a map of proxies by name", problems)? {
        let Some(faults) = entries(faults, "a map of faults by name", problems) else { continue };
        let all = faults.iter().filter_map(|(name, node)| Some((name.to_string(), fault(node, sees(proxy), problems)?)));
        let all = all.collect();
        set.insert(proxy.to_string(), all);
    }
    Some(set)
}

fn entries<'a>(node: &'a Node, expected: &str, problems: &mut Problems) -> Option<Vec<(&'a str, &'a Node)>> {
    match &node.value {
        Tree::Map(entries) => Some(entries.iter().map(|(key, node)| (key.name.as_str(), node)).collect()),
        _ => {
            let remedy = r#"such as {"payments":{"outage":{"fault":{"hang":{}}}}}"#;
            problems.error_with_hint(node.place, format!("expected {expected}, found {}", node.kind()), remedy);
            None
        }
    }
}

fn spoken(said: Spoken) -> Protocol {
    match said {
        Spoken::Http => Protocol::Http,
        Spoken::Tcp => Protocol::Tcp,
    }
}

fn only(status: u16, message: &str, remedy: &str) -> Refused {
    Refused { status, wrongs: vec![Wrong { place: String::new(), message: message.into(), remedy: remedy.into() }] }
}

fn refused(wrong: &Refused) -> Response<Full<Bytes>> {
    json(wrong.status, &show::refused(wrong))
}

fn json(status: u16, body: &Value) -> Response<Full<Bytes>> {
    page(status, "application/json", format!("{body}\n"))
}
