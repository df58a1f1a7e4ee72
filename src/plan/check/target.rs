//! Checks of the target: what is sent where, and the built-in target's limits.

use super::fleets::check_header_value;
use super::{Context, MAX_LENGTH};
use crate::config::{At, Place, Table};
use crate::plan::arithmetic;
use crate::plan::target::allows;
use crate::plan::url::{Scheme, TargetUrl, check_host};
use crate::plan::{Fleet, HeaderValue, TargetConfig};
use crate::policy::hint::HintForm;
use crate::time::Span;

/// Headers that frame the message.
const FRAMING: [&str; 6] = ["content-length", "transfer-encoding", "connection", "upgrade", "expect", "te"];

/// Checks the target. `calls`: whether something beside the load is dialled, which `allow` is for as well.
pub(super) fn check(target: &TargetConfig, fleets: &[Fleet], calls: bool, cx: &mut Context) {
    if let Some(url) = &target.url {
        check_url(url, target, cx);
    }
    method(&target.method, cx);
    headers(&target.headers, &["target", "headers"], cx);
    routes(target, cx);
    success(target, fleets, cx);
    allow(target, calls, cx);
    if let Some(max) = target.max_attempts {
        let place = cx.at(&["target", "max_attempts"]);
        let offered: f64 =
            fleets.iter().filter(|fleet| fleet.into.is_none()).map(|fleet| arithmetic::offered(&fleet.config).rate()).sum();
        if max.get() <= 0.0 {
            cx.error(place, "a ceiling of 0 attempts sends nothing", "raise it, or remove it");
        } else if max.get() < offered {
            let message = format!(
                "the ceiling of {max} is below the offered load of {}/s: the backlog grows from the start",
                whole(offered)
            );
            cx.warn(place, message, "raise it above the offered load, retries included");
        }
    }
    for (key, service) in [("service", &target.service), ("model", &target.model)] {
        if let Some(service) = service {
            super::service::check(&service.service, &["target", key], cx);
        }
    }
    for entry in &target.services.0 {
        super::service::check(&entry.value.service, &["target", "services", &entry.name], cx);
    }
}

/// Warns of a host that is neither this machine by its spelling nor in `allow`.
pub(super) fn check_allowed(url: &TargetUrl, place: Place, target: &TargetConfig, cx: &mut Context) {
    let host = &url.host;
    let allowed = target.allow.iter().any(|pattern| allows(&pattern.value, host, host.parse().ok()));
    if !url.is_loopback() && !allowed {
        let message = format!("`{host}` is not in `allow`: the run will be refused, unless it resolves to loopback");
        cx.warn(place, message, format!("add `allow: [{host}]`, and run with `--approve`"));
    }
}

fn check_url(url: &At<TargetUrl>, target: &TargetConfig, cx: &mut Context) {
    check_allowed(&url.value, url.place, target, cx);
    if target.ca_file.is_some() && url.value.scheme == Scheme::Http {
        let place = cx.at(&["target", "ca_file"]);
        cx.warn(place, "`ca_file` does nothing for an http:// target", "remove it, or write https://");
    }
}

fn allow(target: &TargetConfig, calls: bool, cx: &mut Context) {
    if target.service.is_some() && !target.allow.is_empty() && !calls {
        let place = cx.at(&["target", "allow"]);
        cx.warn(place, "`allow` does nothing for the built-in target: it is always local", "remove it");
    }
    for At { value, place } in &target.allow {
        let host = value.strip_prefix("*.").unwrap_or(value);
        let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
        let problem = if value == "*" || host.contains('*') {
            Some("expected `*.` and a suffix: everything at once is never allowed".to_string())
        } else if host.contains("://") || host.contains('/') {
            Some("expected a host, without scheme and path".to_string())
        } else if address {
            None
        } else if host.contains(':') {
            Some("expected a host, without its port".to_string())
        } else {
            check_host(host).err()
        };
        if let Some(problem) = problem {
            let shown: String = value.chars().take(80).collect();
            cx.error(
                *place,
                format!("`{shown}`: {problem}"),
                "such as `10.0.0.7`, `api.staging.internal` or `\"*.staging.internal\"`",
            );
        }
    }
}

fn method(method: &At<String>, cx: &mut Context) {
    let text = &method.value;
    if !is_token(text) || text.len() > 32 {
        let shown: String = text.chars().take(40).collect();
        cx.error(method.place, format!("`{shown}` is not a method: expected one word"), "such as `GET` or `POST`");
    } else if ["get", "post", "put", "patch", "delete", "head", "options"].contains(&text.to_ascii_lowercase().as_str())
        && *text != text.to_ascii_uppercase()
    {
        let message = format!("methods are spelled in capitals: `{text}` is another one than `{}`", text.to_ascii_uppercase());
        cx.error(method.place, message, format!("write `{}`", text.to_ascii_uppercase()));
    } else if text == "CONNECT" {
        cx.error(method.place, "CONNECT opens a tunnel and cannot be sent as an operation", "such as `GET` or `POST`");
    }
}

/// What HTTP allows in a method or the name of a header.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c))
}

fn headers(table: &Table<HeaderValue>, path: &[&str], cx: &mut Context) {
    for entry in &table.0 {
        let lower = entry.name.to_ascii_lowercase();
        if lower == "idempotency-key" || lower.starts_with("x-stormwake-") {
            ours(&entry.name, entry.place, cx);
        }
    }
    check_headers(table, path, cx);
}

fn ours(name: &str, place: Place, cx: &mut Context) {
    let shown: String = name.chars().take(80).collect();
    cx.error(place, format!("the header `{shown}` is set by stormwake"), "remove it");
}

/// Checks the headers at a path of the plan by what HTTP allows, and where their values come from.
pub(super) fn check_headers(table: &Table<HeaderValue>, path: &[&str], cx: &mut Context) {
    for entry in &table.0 {
        header_name(&entry.name, entry.place, table, cx);
        let place = cx.at(&[path, &[&entry.name]].concat());
        match &entry.value {
            HeaderValue::Plain(value) => check_header_value(&entry.name, value, place, cx),
            HeaderValue::Secret(source) => {
                if let Some(name) = &source.from_env
                    && (name.is_empty() || name.contains(['=', '\0', '$', ' ']))
                {
                    cx.error(place, "`from_env` names no variable", "write the bare name, such as `from_env: API_TOKEN`");
                }
                if source.from_file.as_ref().is_some_and(|path| path.is_empty() || path.contains('\0')) {
                    cx.error(place, "`from_file` names no file", "write its path");
                }
            }
        }
    }
}

fn header_name(name: &str, place: Place, table: &Table<HeaderValue>, cx: &mut Context) {
    let shown: String = name.chars().take(80).collect();
    if !is_token(name) || name.len() > 256 {
        cx.error(place, format!("`{shown}` is not the name of a header"), "such as `content-type`");
    } else if FRAMING.contains(&name.to_ascii_lowercase().as_str()) {
        ours(name, place, cx);
    } else if table.0.iter().take_while(|entry| entry.place != place).any(|entry| entry.name.eq_ignore_ascii_case(name)) {
        cx.error(place, format!("the header `{shown}` is there twice, in another spelling"), "keep one");
    }
}

fn routes(target: &TargetConfig, cx: &mut Context) {
    if target.routes.len() > 1000 {
        let place = cx.at(&["target", "routes"]);
        cx.error(place, format!("{} routes: 1000 at most", target.routes.len()), "join some");
    }
    let mut weights = 0.0;
    for (index, route) in target.routes.iter().enumerate().take(1000) {
        let index = index.to_string();
        let sound = route.path.value.starts_with('/') && route.path.value.chars().all(|c| c.is_ascii_graphic() && c != '#');
        if !sound {
            let shown: String = route.path.value.chars().take(80).collect();
            let message = format!("`{shown}` is not a path: expected `/` and visible ASCII characters without `#`");
            cx.error(route.path.place, message, "such as `/items?page=2`; the host stands in `url`");
        }
        if let Some(own) = &route.method {
            method(own, cx);
        }
        if !(0.0..=1e9).contains(&route.weight) {
            let place = cx.at(&["target", "routes", &index, "weight"]);
            cx.error(
                place,
                format!("a weight of {}: expected 0 to 1000000000", route.weight),
                "weights count against each other",
            );
        }
        weights += route.weight;
        headers(&route.headers, &["target", "routes", &index, "headers"], cx);
    }
    if !target.routes.is_empty() && weights <= 0.0 {
        let place = cx.at(&["target", "routes"]);
        cx.error(place, "every route has weight 0: none would be taken", "give one a weight above 0");
    }
}

fn success(target: &TargetConfig, fleets: &[Fleet], cx: &mut Context) {
    let at = |cx: &Context, key: &str| cx.at(&["target", "success", key]);
    if target.success.status.is_empty() {
        let place = at(cx, "status");
        cx.error(place, "no status counts as success", "such as `status: [2xx]`");
    }
    if target.success.body_contains.as_ref().is_some_and(String::is_empty) {
        let place = at(cx, "body_contains");
        cx.warn(place, "every body holds an empty text", "name what must be in it, or remove `body_contains`");
    }
    if let Some(within) = target.success.within {
        let place = at(cx, "within");
        if within.is_zero() {
            cx.error(place, "no attempt succeeds within nothing", "such as `within: 400ms`");
        } else if let Some(fleet) = fleets.iter().find(|fleet| within >= fleet.policy.timeout) {
            let message = format!(
                "attempts of fleet `{}` time out after {}: `within: {within}` adds nothing",
                fleet.name, fleet.policy.timeout
            );
            cx.warn(place, message, "make it shorter, or remove it");
        }
    }
}

/// Most forms of a hint are sent in whole seconds.
pub(super) fn whole_seconds(hint: Option<Span>, form: Option<HintForm>, place: Place, cx: &mut Context) {
    let Some(hint) = hint else { return };
    let form = form.unwrap_or(HintForm::RetryAfter);
    if form.has_whole_seconds() && !hint.0.is_multiple_of(1_000_000_000) {
        let up = Span(hint.0.div_ceil(1_000_000_000).saturating_mul(1_000_000_000));
        cx.error(
            place,
            format!("Retry-After is sent in whole seconds, not as {hint}"),
            format!("such as `retry_after: {up}`, or `hint: retry_after_ms`"),
        );
    } else if hint > MAX_LENGTH {
        cx.error(place, format!("a Retry-After of {hint}: {MAX_LENGTH} at most"), "such as `retry_after: 2s`");
    }
}

fn whole(n: f64) -> String {
    if n >= 10.0 { format!("{n:.0}") } else { format!("{n:.2}") }
}
