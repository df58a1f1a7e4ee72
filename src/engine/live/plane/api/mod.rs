//! Toxiproxy's HTTP API: calls to the plane and back. [`v1`] is what is beside it, `server` owns the sockets of both.

mod server;
pub mod v1;

pub use server::{Api, ApiError};

use super::Plane;
use super::decode;
use super::refusal::Refusal;
use super::registry::Entry;
use crate::exposition::MEDIA_TYPE;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};

/// The release of Toxiproxy that is spoken: clients ask for it.
const VERSION: &str = "{\"version\": \"2.12.0\"}\n";

/// What a call is about.
#[derive(Debug, PartialEq, Eq)]
enum Call<'a> {
    Version,
    Metrics,
    Proxies,
    Proxy(&'a str),
    Toxics(&'a str),
    Toxic(&'a str, &'a str),
    Populate,
    Reset,
}

impl<'a> Call<'a> {
    /// By path; none where there is nothing.
    fn read(path: &'a [String]) -> Option<Self> {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let call = match path[..] {
            ["version"] => Self::Version,
            ["metrics"] => Self::Metrics,
            ["proxies"] => Self::Proxies,
            ["proxies", proxy] => Self::Proxy(proxy),
            ["proxies", proxy, "toxics"] => Self::Toxics(proxy),
            ["proxies", proxy, "toxics", toxic] => Self::Toxic(proxy, toxic),
            ["populate"] => Self::Populate,
            ["reset"] => Self::Reset,
            _ => return None,
        };
        let named = match call {
            Self::Proxy(name) | Self::Toxics(name) => !name.is_empty(),
            Self::Toxic(proxy, toxic) => !proxy.is_empty() && !toxic.is_empty(),
            _ => true,
        };
        named.then_some(call)
    }

    /// The methods that it takes, as the `Allow` header has them.
    fn methods(&self) -> &'static str {
        match self {
            Self::Version | Self::Metrics => "GET",
            Self::Proxies | Self::Toxics(_) => "GET, POST",
            Self::Proxy(_) | Self::Toxic(..) => "GET, POST, PATCH, DELETE",
            Self::Populate | Self::Reset => "POST",
        }
    }

    fn takes(&self, method: &Method) -> bool {
        self.methods().split(", ").any(|known| known == method.as_str())
    }
}

/// A call, read to its end.
struct Asked<'a> {
    method: &'a Method,
    path: &'a str,
    /// The lease under which it is made, by the header `Stormwake-Lease`.
    lease: Option<&'a str>,
    body: &'a [u8],
}

/// Answers a call.
async fn answer(plane: &Plane, asked: Asked<'_>) -> Response<Full<Bytes>> {
    let Asked { method, path, lease, body } = asked;
    let path: Vec<String> = path.trim_start_matches('/').split('/').map(decoded).collect();
    if path[0] == "v1" {
        return v1::answer(plane, method, &path, lease, body).await;
    }
    let Some(call) = Call::read(&path) else { return missing() };
    if !call.takes(method) {
        let mut refused = empty(StatusCode::METHOD_NOT_ALLOWED);
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static(call.methods()));
        return refused;
    }
    let answered = match call {
        Call::Version => Ok(page(200, "application/json;charset=utf-8", VERSION)),
        Call::Metrics => Ok(page(200, MEDIA_TYPE, plane.metrics())),
        Call::Proxies if method == Method::GET => Ok(json(200, proxies_json(&plane.entries()))),
        Call::Proxies => create(plane, &asked).await,
        Call::Proxy(name) => proxy(plane, &asked, name).await,
        Call::Toxics(name) if method == Method::GET => plane.entry(name).map(|entry| json(200, entry.toxics_json())),
        Call::Toxics(name) => add_toxic(plane, &asked, name).await,
        Call::Toxic(name, toxic) => one_toxic(plane, &asked, (name, toxic)).await,
        Call::Populate => Ok(populate(plane, &asked).await),
        Call::Reset => plane.reset(lease).await.map(|()| empty(StatusCode::NO_CONTENT)),
    };
    answered.unwrap_or_else(|refusal| refused(&refusal))
}

async fn create(plane: &Plane, asked: &Asked<'_>) -> Result<Response<Full<Bytes>>, Refusal> {
    let entry = plane.create(&decode::proxy(asked.body)?, asked.lease).await?;
    Ok(json(201, entry.json()))
}

async fn proxy(plane: &Plane, asked: &Asked<'_>, name: &str) -> Result<Response<Full<Bytes>>, Refusal> {
    let there = plane.entry(name)?;
    match *asked.method {
        Method::GET => Ok(json(200, there.json())),
        Method::DELETE => plane.remove(name, asked.lease).await.map(|()| empty(StatusCode::NO_CONTENT)),
        _ => Ok(json(200, plane.update(name, &decode::proxy(asked.body)?, asked.lease).await?.json())),
    }
}

async fn add_toxic(plane: &Plane, asked: &Asked<'_>, proxy: &str) -> Result<Response<Full<Bytes>>, Refusal> {
    plane.entry(proxy)?;
    let entry = plane.add_toxic(proxy, &decode::toxic(asked.body)?, asked.lease).await?;
    Ok(json(200, entry.toxics.last().expect("it was added").json()))
}

async fn one_toxic(plane: &Plane, asked: &Asked<'_>, (proxy, toxic): (&str, &str)) -> Result<Response<Full<Bytes>>, Refusal> {
    let entry = plane.entry(proxy)?;
    let there = entry.toxic(toxic)?;
    match *asked.method {
        Method::GET => Ok(json(200, there.json())),
        Method::DELETE => plane.remove_toxic(proxy, toxic, asked.lease).await.map(|_| empty(StatusCode::NO_CONTENT)),
        _ => {
            let entry = plane.update_toxic(proxy, toxic, &decode::toxic_change(asked.body)?, asked.lease).await?;
            Ok(json(200, entry.toxic(toxic)?.json()))
        }
    }
}

async fn populate(plane: &Plane, asked: &Asked<'_>) -> Response<Full<Bytes>> {
    let populated = match decode::proxies(asked.body) {
        Ok(inputs) => plane.populate(&inputs, asked.lease).await,
        Err(refusal) => Err(refusal),
    };
    match populated {
        Ok(entries) if entries.is_empty() => json(201, "{\"proxies\":null}".into()),
        Ok(entries) => {
            let all: Vec<String> = entries.iter().map(Entry::json).collect();
            json(201, format!("{{\"proxies\":[{}]}}", all.join(",")))
        }
        Err(refusal) => {
            let said = refusal.json();
            json(refusal.status, format!("{},\"proxies\":null}}", said.trim_end_matches('}')))
        }
    }
}

fn proxies_json(entries: &[Entry]) -> String {
    let all: Vec<String> = entries.iter().map(|entry| format!("{}:{}", super::json::quoted(&entry.name), entry.json())).collect();
    format!("{{{}}}", all.join(","))
}

/// A part of a path without its percent signs.
fn decoded(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high << 4 | low) as u8);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A call that is refused before it was looked at.
fn refused_at(path: &str, refusal: &Refusal) -> Response<Full<Bytes>> {
    if path.starts_with("/v1/") { v1::refusal(refusal) } else { refused(refusal) }
}

/// A call that is refused, whatever it was about.
fn refused(refusal: &Refusal) -> Response<Full<Bytes>> {
    page(refusal.status, "text/plain; charset=utf-8", refusal.json() + "\n")
}

fn missing() -> Response<Full<Bytes>> {
    page(404, "text/plain; charset=utf-8", "404 page not found\n")
}

/// A browser is not answered: a page that one looks at must not change proxies on the same machine.
fn browser() -> Response<Full<Bytes>> {
    page(403, "text/plain; charset=utf-8", "User agent not allowed\n")
}

fn json(status: u16, body: String) -> Response<Full<Bytes>> {
    page(status, "application/json", body)
}

fn page(status: u16, kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::super::json::Json;
    use super::*;

    #[test]
    fn paths_are_calls() {
        let parts = |path: &str| path.trim_start_matches('/').split('/').map(decoded).collect::<Vec<_>>();
        for (path, wanted) in [
            ("/version", Some(Call::Version)),
            ("/proxies", Some(Call::Proxies)),
            ("/proxies/", None),
            ("/proxies/sla%2Fsh", Some(Call::Proxy("sla/sh"))),
            ("/proxies/a%2", Some(Call::Proxy("a%2"))),
            ("/proxies/a/toxics", Some(Call::Toxics("a"))),
            ("/proxies/a/toxics/", None),
            ("/proxies/%C3%A4/toxics/b%20c", Some(Call::Toxic("ä", "b c"))),
            ("/proxies/a/toxic/b", None),
            ("/populate/x", None),
            ("/", None),
        ] {
            assert_eq!(Call::read(&parts(path)), wanted, "{path}");
        }
        assert!(Call::Reset.takes(&Method::POST) && !Call::Reset.takes(&Method::GET) && !Call::Version.takes(&Method::HEAD));
    }

    #[test]
    fn json_is_shown_where_a_list_is_refused() {
        let parsed = Json::parse(Refusal::missing("name").json().as_bytes()).unwrap();
        assert!(matches!(parsed, Json::Map(entries) if entries.len() == 2));
    }
}
