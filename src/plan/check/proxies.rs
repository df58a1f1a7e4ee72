//! Checks of the plan's `proxies`, and of who names one: `on` of a step, `at` of a recovery and of gates.

use super::target::check_allowed;
use super::{Context, MAX_LENGTH, names};
use crate::config::{At, Lenient, Place};
use crate::fault::Fault;
use crate::gate::{GateConfig, RecoveryConfig};
use crate::metrics::Figure;
use crate::plan::RawPlan;
use crate::plan::proxy::{MAIN, NamedProxy, ProxyConfig};
use crate::plan::raw::RawStep;
use crate::plan::url::Scheme;
use crate::time::Span;

/// The most proxies of a plan: each listens once for every shard.
const MAX_PROXIES: usize = 16;

/// Checks every proxy; gives those that could be read.
pub(super) fn check(raw: &RawPlan, cx: &mut Context) -> Vec<NamedProxy> {
    let Some(table) = &raw.proxies.0 else { return Vec::new() };
    if table.0.len() > MAX_PROXIES {
        let place = cx.at(&["proxies"]);
        cx.error(place, format!("{} proxies: {MAX_PROXIES} at most", table.0.len()), "split the plan");
    }
    let mut checked: Vec<NamedProxy> = Vec::new();
    for entry in &table.0 {
        if names::check("a proxy", &entry.name, entry.place, cx) && entry.name == MAIN {
            let message = format!("`{MAIN}` cannot name a proxy: it is the one between clients and target");
            cx.error(entry.place, message, "such as `provider`");
        }
        let Lenient(Some(At { value, .. })) = &entry.value else { continue };
        let proxy = NamedProxy { name: entry.name.clone(), config: value.ours() };
        if let Some(config) = &proxy.config {
            addresses(&proxy.name, config, &checked, raw, cx);
            encryption(&proxy.name, config, cx);
            remembered(&proxy.name, config.repeats.within, cx);
        }
        checked.push(proxy);
    }
    checked
}

fn remembered(name: &str, within: Span, cx: &mut Context) {
    let place = cx.at(&["proxies", name, "repeats", "within"]);
    if within.is_zero() || within > MAX_LENGTH {
        let message = format!("repeats within {within}: expected more than nothing, and {MAX_LENGTH} at most");
        cx.error(place, message, "60s is usual");
    } else if within > Span::from_secs(600) {
        cx.warn(place, format!("repeats within {within}: 200,000 requests are remembered at most"), "make it shorter");
    }
}

/// Whether TLS is spoken where it is spoken of, and somebody can trust it.
fn encryption(name: &str, config: &ProxyConfig, cx: &mut Context) {
    if let Some(At { value: back, place }) = &config.upstream_tls {
        let url = &config.upstream.value.0;
        if url.scheme == Scheme::Http {
            let message = format!("`upstream_tls` says how TLS is spoken, and `{}` is spoken to without", url.authority());
            cx.error(*place, message, format!("write `upstream: https://{}`, or leave `upstream_tls` out", url.authority()));
        } else if back.insecure_accept_any_certificate {
            let place = cx.at(&["proxies", name, "upstream_tls", "insecure_accept_any_certificate"]);
            let message = format!("anybody can pass for the upstream of `{name}`, and read and change what is sent there");
            cx.warn(place, message, "give the certificate that it is to be trusted by as `ca_file`");
        }
    }
    if config.tls.as_ref().is_some_and(|front| front.ca_file.is_none()) {
        let message = format!("nobody can trust `{name}`: the authority of its certificate is written nowhere");
        cx.warn(
            cx.at(&["proxies", name, "tls"]),
            message,
            "write `tls: { ca_file: ca.pem }`, and have your service trust that file",
        );
    }
}

/// Whether a proxy listens where nobody else does, and leads elsewhere.
fn addresses(name: &str, config: &ProxyConfig, before: &[NamedProxy], raw: &RawPlan, cx: &mut Context) {
    let (listen, upstream) = (config.listen.value.0, &config.upstream.value.0);
    let port_of = |other: &NamedProxy| other.config.as_ref().map(|config| config.listen.value.0.port());
    if let Some(other) = before.iter().find(|other| port_of(other) == Some(listen.port())) {
        let message = format!("`{}` listens on port {} already", other.name, listen.port());
        cx.error(config.listen.place, message, "give each proxy a port of its own");
    }
    let here = |host: &str, port: u16| port == listen.port() && (host == "localhost" || host.parse() == Ok(listen.ip()));
    if here(&upstream.host, upstream.port) {
        let message = format!("`{name}` would call itself: it listens where its upstream is");
        cx.error(config.upstream.place, message, "name the address of what the service really calls");
    }
    let Some(At { value: target, .. }) = &raw.target.0 else { return };
    if let Some(url) = target.url.as_ref().filter(|url| here(&url.value.host, url.value.port)) {
        let message = format!("the target is where `{name}` listens: the load would pass by the service");
        cx.error(url.place, message, "the target is your service, and the proxy stands behind it");
    }
    if target.url.is_none() {
        let message = format!("`{name}` stands behind a service of yours, and the built-in target calls nobody");
        cx.warn(config.listen.place, message, "name your service: `target: { url: http://127.0.0.1:8080/ }`");
    }
    check_allowed(upstream, config.upstream.place, target, cx);
}

/// The number of the proxy at which a step acts: 0 for the one between clients and target.
pub(super) fn on(step: &RawStep, proxies: &[NamedProxy], raw: &RawPlan, cx: &mut Context) -> u16 {
    let Some(At { value: name, place }) = &step.on else { return 0 };
    let Some(fault) = &step.fault else {
        cx.error(*place, "only a fault acts at a proxy", "remove `on`");
        return 0;
    };
    if name == MAIN {
        return 0;
    }
    let Some(number) = number(name, *place, proxies, raw, cx) else { return 0 };
    let scopes = [
        ("fleets", place_of(&step.fleets)),
        ("regions", place_of(&step.regions)),
        ("destinations", place_of(&step.destinations)),
    ];
    for (key, scope) in scopes {
        if let Some(place) = scope {
            let message = format!("`{key}` with `on: {name}`: the requests there are your service's, and belong to no fleet");
            cx.error(place, message, format!("remove `{key}`, or `on`"));
        }
    }
    // What a Toxiproxy can do is checked where all of its faults are.
    let Some(config) = proxies.get(usize::from(number) - 1).and_then(|proxy| proxy.config.as_ref()) else { return number };
    let of_requests = fault.value.of_requests().then(|| fault.value.key()).or(step.which.r#match.is_some().then_some("match"));
    if let Some(what) = of_requests.filter(|_| !config.sees_requests()) {
        let message = format!("`{what}` needs to know requests, and `{name}` sees bytes");
        cx.error(*place, message, format!("write `protocol: http` at `proxies.{name}`, or use `reset`, `hang` or `blackhole`"));
    }
    if matches!(fault.value, Fault::Refuse(_)) {
        let message = format!(
            "connects that `{name}` refuses are your service's, and nobody counts them: only live connections that it ends are"
        );
        cx.warn(fault.place, message, "use `reset`, which meets every request, where the service makes a connection for each");
    }
    number
}

fn place_of<T>(given: &Option<At<T>>) -> Option<Place> {
    given.as_ref().map(|at| at.place)
}

/// Whether the proxy at which a step acts speaks TLS to its clients: ours between clients and target does not, and a Toxiproxy moves bytes.
pub(super) fn speaks_tls(on: u16, proxies: &[NamedProxy]) -> bool {
    let proxy = usize::from(on).checked_sub(1).and_then(|index| proxies.get(index));
    proxy.and_then(|proxy| proxy.config.as_ref()).is_some_and(|config| config.tls.is_some())
}

/// The number of a proxy, from 1; none, and said so, where there is none of that name.
fn number(name: &str, place: Place, proxies: &[NamedProxy], raw: &RawPlan, cx: &mut Context) -> Option<u16> {
    let found = proxies.iter().position(|proxy| proxy.name == name).and_then(|index| u16::try_from(index + 1).ok());
    // One that could not be read is there all the same.
    let given: Vec<&str> = raw.proxies.0.iter().flat_map(|table| &table.0).map(|entry| entry.name.as_str()).collect();
    if found.is_none() && !given.contains(&name) {
        names::unknown("proxy", name, place, &given, cx);
    }
    found
}

/// A tap that is judged by has to see requests.
fn tap(name: &str, place: Place, proxies: &[NamedProxy], raw: &RawPlan, cx: &mut Context) {
    if name == MAIN {
        cx.error(place, "what our own clients see is judged where nothing is said", "remove `at`");
        return;
    }
    let Some(number) = number(name, place, proxies, raw, cx) else { return };
    match &proxies[usize::from(number) - 1].config {
        None => {
            let message = format!("`{name}` is a Toxiproxy's, which counts nothing: nothing can be judged there");
            let hint =
                format!("put a proxy of ours in its place, with `listen` and `upstream` at `proxies.{name}`; or remove `at`");
            cx.error(place, message, hint);
        }
        Some(config) if !config.sees_requests() => {
            let hint = format!("write `protocol: http` at `proxies.{name}`");
            cx.error(place, format!("`{name}` sees bytes and no requests"), hint);
        }
        Some(_) => {}
    }
}

/// Checks where a recovery is judged.
pub(super) fn recovery(recovery: &RecoveryConfig, proxies: &[NamedProxy], raw: &RawPlan, cx: &mut Context) {
    let Some(At { value: name, place }) = &recovery.at else { return };
    tap(name, *place, proxies, raw, cx);
    for condition in &recovery.require.0 {
        let place = cx.at(&["recovery", "require", condition.figure.word()]);
        known(condition.figure, name, place, cx);
    }
}

/// Checks where a gate looks.
pub(super) fn gate(gate: &GateConfig, index: &str, proxies: &[NamedProxy], raw: &RawPlan, cx: &mut Context) {
    let Some(name) = &gate.at else { return };
    let place = cx.at(&["gates", index, "at"]);
    tap(name, place, proxies, raw, cx);
    let figure = gate.condition.figure;
    known(figure, name, cx.at(&["gates", index, figure.word()]), cx);
    if gate.fleet.is_some() {
        let place = cx.at(&["gates", index, "fleet"]);
        cx.error(
            place,
            format!("the requests at `{name}` are your service's, and belong to no fleet"),
            "remove `fleet`, or `at`",
        );
    }
    let judged = raw.recovery.as_ref().and_then(|recovery| recovery.0.as_ref()).and_then(|recovery| recovery.value.at.as_ref());
    let of_recovery = matches!(figure, Figure::RecoveryTime | Figure::ErrorWindow | Figure::Relapses);
    if of_recovery && judged.is_none_or(|at| at.value != *name) {
        let message = format!("`{}` is what `recovery` finds, which is not judged at `{name}`", figure.word());
        cx.error(place, message, format!("write `recovery: {{ at: {name}, … }}`, or remove `at`"));
    }
}

fn known(figure: Figure, at: &str, place: Place, cx: &mut Context) {
    if !figure.known_at_taps() {
        let message =
            format!("`{}` is not known at `{at}`, where requests pass and no client tells what it holds", figure.word());
        cx.error(place, message, "such as `retry_share`, `amplification`, `errors`, `attempts`, `p99` or `in_flight`");
    }
}
