//! Requests: everything that does not change is built once, per fleet and route.

use crate::config::Table;
use crate::engine::live::file;
use crate::fleet::Send;
use crate::plan::target::SecretSource;
use crate::plan::{Fleet, HeaderValue as PlanValue, Plan, Route, Success, TargetConfig};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Uri};

const ATTEMPT: HeaderName = HeaderName::from_static("x-stormwake-attempt");
const CLIENT: HeaderName = HeaderName::from_static("x-stormwake-client");
const DESTINATION: HeaderName = HeaderName::from_static("x-stormwake-destination");
const ENQUEUED_AT: HeaderName = HeaderName::from_static("x-stormwake-enqueued-at");
const FLEET: HeaderName = HeaderName::from_static("x-stormwake-fleet");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const PRIORITY: HeaderName = HeaderName::from_static("priority");

/// The largest file that is read for a secret, in bytes.
const SECRET_LIMIT: u64 = 64 << 10;
/// The longest value of a header, in characters, as for one that the plan holds itself.
const VALUE_LIMIT: usize = 8192;

/// Why the plan's requests cannot be built. Never holds a header's value.
#[derive(Debug, thiserror::Error)]
pub enum HeaderError {
    /// A secret that is not there.
    #[error("header `{header}`: {problem}")]
    Secret {
        /// The header.
        header: String,
        /// Which source, and what is wrong with it.
        problem: String,
    },
    /// A name or value that HTTP does not allow.
    #[error("`{what}` cannot be sent: it holds characters that HTTP does not allow there")]
    Illegal {
        /// The header, method or path.
        what: String,
    },
}

/// The requests of a run.
///
/// Beside the plan's own headers each carries: `Host` of the real target; `Idempotency-Key` (12 hexadecimal digits
/// of when the run began, so that a target that remembers keys takes no run for the one before it; a dash; and 32 that also
/// key the dice of proxy and built-in target); `X-Stormwake-Attempt` (1 for the first attempt);
/// `X-Stormwake-Enqueued-At` (when the operation was enqueued, in milliseconds since 1970 UTC, so that a service with
/// another clock can judge its age); `X-Stormwake-Fleet`; `X-Stormwake-Client` (the fleet, a slash, the client's number in it);
/// `X-Stormwake-Destination` where a fleet of workers has several; and
/// `Priority` where the fleet or the operation has one.
pub struct Requests {
    /// By fleet, then by route.
    templates: Vec<Vec<Template>>,
    /// By fleet, its name.
    fleets: Vec<String>,
    /// By fleet, the names of its destinations.
    destinations: Vec<Vec<HeaderValue>>,
    success: Success,
    /// The wall clock at the run's start, in milliseconds since 1970. Set when it starts.
    start_millis: std::sync::atomic::AtomicI64,
}

struct Template {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

impl Requests {
    /// Builds what does not change. Reads secrets from the environment and from files, once. `host` is the real
    /// target's, with its port where that is not the scheme's; `path` is the URL's path and query.
    ///
    /// # Errors
    /// A secret that is not there; a text that HTTP does not allow.
    pub fn new(plan: &Plan, host: &str, path: &str) -> Result<Self, HeaderError> {
        let target = &plan.target;
        let common = headers_of(&target.headers)?;
        let templates = plan.fleets.iter().map(|fleet| {
            let own = fleet_headers(&fleet.name, fleet.config.priority.as_deref())?;
            if target.routes.is_empty() {
                return Ok(vec![Template::new(target, None, path, host, &common, &own)?]);
            }
            target.routes.iter().map(|route| Template::new(target, Some(route), path, host, &common, &own)).collect()
        });
        Ok(Self {
            templates: templates.collect::<Result<_, HeaderError>>()?,
            fleets: plan.fleets.iter().map(|fleet| fleet.name.clone()).collect(),
            destinations: plan.fleets.iter().map(destinations).collect::<Result<_, HeaderError>>()?,
            success: target.success.clone(),
            start_millis: std::sync::atomic::AtomicI64::new(0),
        })
    }

    /// Sets the wall clock at the run's start, in milliseconds since 1970 UTC.
    pub fn start_at(&self, millis: i64) {
        self.start_millis.store(millis, std::sync::atomic::Ordering::Relaxed);
    }

    /// What counts as success.
    pub fn success(&self) -> &Success {
        &self.success
    }

    /// The request of one attempt.
    pub fn build(&self, send: &Send) -> Request<Full<Bytes>> {
        let routes = &self.templates[usize::from(send.operation.fleet)];
        let template = &routes[usize::from(send.route).min(routes.len() - 1)];
        let mut request = Request::new(Full::new(template.body.clone()));
        *request.method_mut() = template.method.clone();
        *request.uri_mut() = template.uri.clone();
        let headers = request.headers_mut();
        headers.clone_from(&template.headers);
        let start = self.start_millis.load(std::sync::atomic::Ordering::Relaxed);
        let enqueued = start.saturating_add_unsigned(send.enqueued_at.as_millis());
        headers.insert(IDEMPOTENCY_KEY, idempotency_key(start, send.idempotency_key));
        headers.insert(ATTEMPT, HeaderValue::from(send.attempt));
        let client = format!("{}/{}", self.fleets[usize::from(send.operation.fleet)], send.operation.client);
        headers.insert(CLIENT, HeaderValue::try_from(client).expect("the fleet's name is a header's value already"));
        headers.insert(ENQUEUED_AT, HeaderValue::from(enqueued));
        let destinations = self.destinations.get(usize::from(send.operation.fleet));
        if let Some(name) = destinations.and_then(|names| names.get(usize::from(send.destination))) {
            headers.insert(DESTINATION, name.clone());
        }
        if let Some(priority) = send.priority {
            headers.insert(PRIORITY, HeaderValue::from_static(priority.header()));
        }
        request
    }
}

/// The names of a fleet's destinations, as headers say them.
fn destinations(fleet: &Fleet) -> Result<Vec<HeaderValue>, HeaderError> {
    fleet.destinations().iter().map(|name| HeaderValue::from_str(name).map_err(|_| illegal(name))).collect()
}

impl Template {
    fn new(
        target: &TargetConfig,
        route: Option<&Route>,
        path: &str,
        host: &str,
        common: &HeaderMap,
        own: &HeaderMap,
    ) -> Result<Self, HeaderError> {
        let method = route.and_then(|r| r.method.as_ref()).unwrap_or(&target.method);
        let path = route.map_or(path, |r| r.path.value.as_str());
        let path = if path.starts_with('/') { path.to_string() } else { format!("/{path}") };
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).map_err(|_| illegal(host))?);
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("stormwake/", env!("CARGO_PKG_VERSION"))));
        headers.extend(common.clone());
        if let Some(route) = route {
            headers.extend(headers_of(&route.headers)?);
        }
        headers.extend(own.clone());
        let body = route.and_then(|r| r.body.as_ref()).unwrap_or(&target.body);
        Ok(Self {
            method: Method::from_bytes(method.value.as_bytes()).map_err(|_| illegal(&method.value))?,
            uri: path.parse().map_err(|_| illegal(&path))?,
            headers,
            body: Bytes::from(body.clone()),
        })
    }
}

/// The run's 12 digits, a dash, and the operation's 32.
fn idempotency_key(start_millis: i64, key: u128) -> HeaderValue {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits: [u8; 45] = std::array::from_fn(|i| match i {
        0..12 => DIGITS[(start_millis >> (44 - 4 * i)) as usize & 15],
        12 => b'-',
        _ => DIGITS[(key >> (124 - 4 * (i - 13))) as usize & 15],
    });
    HeaderValue::from_bytes(&digits).expect("digits are legal")
}

fn illegal(what: &str) -> HeaderError {
    HeaderError::Illegal { what: what.to_string() }
}

fn fleet_headers(name: &str, priority: Option<&str>) -> Result<HeaderMap, HeaderError> {
    let mut headers = HeaderMap::new();
    headers.insert(FLEET, HeaderValue::from_str(name).map_err(|_| illegal(name))?);
    if let Some(priority) = priority {
        headers.insert(PRIORITY, HeaderValue::from_str(priority).map_err(|_| illegal(priority))?);
    }
    Ok(headers)
}

/// The headers of a table, secrets read.
///
/// # Errors
/// A secret that is not there, a name or value that HTTP does not allow.
pub fn headers_of(table: &Table<PlanValue>) -> Result<HeaderMap, HeaderError> {
    let mut headers = HeaderMap::new();
    for entry in &table.0 {
        let name = HeaderName::from_bytes(entry.name.as_bytes()).map_err(|_| illegal(&entry.name))?;
        let (text, secret) = match &entry.value {
            PlanValue::Plain(text) => (text.clone(), false),
            PlanValue::Secret(source) => (read_secret(&entry.name, source)?, true),
        };
        // The name, not the value: that may be a secret.
        let mut value = HeaderValue::from_str(&text).map_err(|_| illegal(&entry.name))?;
        value.set_sensitive(secret);
        headers.append(name, value);
    }
    Ok(headers)
}

fn read_secret(header: &str, source: &SecretSource) -> Result<String, HeaderError> {
    let wrong = |problem| HeaderError::Secret { header: header.to_string(), problem };
    let (text, shown) = match &source.from_env {
        Some(name) => {
            let shown = format!("the environment variable `{name}`");
            (std::env::var(name).map_err(|_| wrong(format!("{shown} is not set (or not text)")))?, shown)
        }
        None => {
            let path = source.from_file.as_deref().unwrap_or_default();
            let cannot = |why: &dyn std::fmt::Display| wrong(format!("`{path}` cannot be read: {why}"));
            let bytes = file::read(path, SECRET_LIMIT).map_err(|error| cannot(&error))?;
            let mut text = String::from_utf8(bytes).map_err(|_| cannot(&"it is not text"))?;
            text.truncate(text.strip_suffix('\n').map_or(text.len(), |t| t.strip_suffix('\r').unwrap_or(t).len()));
            (text, format!("`{path}`"))
        }
    };
    match text.chars().count() {
        0 => Err(wrong(format!("{shown} is empty"))),
        count if count > VALUE_LIMIT => Err(wrong(format!("{shown} holds {count} characters, and {VALUE_LIMIT} is the most"))),
        _ => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_small_regular_files_or_variables() {
        let path = std::env::temp_dir().join(format!("stormwake-secret-{}", std::process::id()));
        let shown = path.display().to_string();
        let read = |from_file: &str| {
            let source = SecretSource { from_env: None, from_file: Some(from_file.to_string()) };
            read_secret("token", &source).map_err(|error| error.to_string())
        };
        for (text, want) in [
            ("s3cret\r\n".to_string(), Ok("s3cret")),
            ("two\nlines".to_string(), Ok("two\nlines")),
            ("\n".to_string(), Err("is empty")),
            (String::new(), Err("is empty")),
            ("x".repeat(8_193), Err("8193 characters, and 8192")),
            ("x".repeat(65_537), Err("larger than 64 KiB")),
        ] {
            std::fs::write(&path, &text).unwrap();
            match (read(&shown), want) {
                (Ok(got), Ok(want)) => assert_eq!(got, want),
                (Err(got), Err(want)) => assert!(got.contains(want) && got.contains(&shown), "{got}"),
                (got, _) => panic!("{got:?}, not {want:?}"),
            }
        }
        let _ = std::fs::remove_file(&path);
        for special in ["/dev/zero", "/dev", "/proc/self/fd/0x"] {
            assert!(read(special).is_err(), "{special}");
        }
        assert!(read("/dev/zero").unwrap_err().contains("regular file"));
    }

    #[test]
    fn a_key_names_its_run_and_its_operation() {
        let key = |start, key| idempotency_key(start, key).to_str().unwrap().to_string();
        assert_eq!(key(0x0193_a2b3_c4d5, 0xabc), format!("0193a2b3c4d5-{:032x}", 0xabc));
        assert_eq!(crate::service::key::idempotency_key(key(-1, u128::MAX - 5).as_bytes()), u128::MAX - 5);
    }
}
