//! Checks of what a Toxiproxy is to carry out: that it can.

use super::Context;
use super::target::check_allowed;
use crate::config::{At, Place};
use crate::fault::external::{Demand, demand};
use crate::fault::{Fault, Step, TimeShape};
use crate::plan::external::External;
use crate::plan::raw::RawStep;
use crate::plan::url::{Scheme, TargetUrl};
use crate::plan::{NamedProxy, RawPlan, TargetConfig};
use crate::time::Span;

/// The longest name of a proxy.
const MAX_NAME: usize = 200;

/// A Toxiproxy as a plan names it, and where it does.
struct Given<'a> {
    external: External,
    /// The key of the plan, such as `proxies.provider`.
    key: String,
    url: &'a At<TargetUrl>,
    name: &'a At<String>,
    place: Place,
}

/// The Toxiproxies of a plan, each with the proxy of the plan whose faults it carries out.
pub(super) fn check(raw: &RawPlan, proxies: &[NamedProxy], steps: &[Step], cx: &mut Context) -> Vec<External> {
    let all = given(raw, proxies);
    for (index, given) in all.iter().enumerate() {
        url(given, raw.target.0.as_ref().map(|target| &target.value), cx);
        name(given.name, cx);
        let same =
            |other: &&Given| other.name.value == given.name.value && place_of(&other.external) == place_of(&given.external);
        if let Some(other) = all[..index].iter().find(same) {
            let message = format!("`{}` has `{}` of that Toxiproxy already", other.key, given.name.value);
            cx.error(given.name.place, message, "name each proxy once: all faults of one go to it together");
        }
        if raw.target.0.as_ref().is_some_and(|target| target.value.service.is_some()) {
            let message = "no Toxiproxy stands before or behind the built-in target: its faults would strike nothing";
            cx.error(given.place, message, format!("give the target as a `url`, or leave `{}` out", given.key));
        }
        faults(given, raw, steps, cx);
    }
    all.into_iter().map(|given| given.external).collect()
}

/// What the plan's `proxy` says, and those of its `proxies` that a Toxiproxy has.
fn given<'a>(raw: &'a RawPlan, proxies: &[NamedProxy]) -> Vec<Given<'a>> {
    let of = |on: u16, key: String, url: &'a At<TargetUrl>, name: &'a At<String>, place: Place| {
        let external = External { on, toxiproxy: url.value.clone(), name: name.value.clone() };
        Given { external, key, url, name, place }
    };
    let main = raw.proxy.as_ref().and_then(|proxy| proxy.0.as_ref());
    let main = main.map(|At { value, place }| of(0, "proxy".into(), &value.toxiproxy, &value.name, *place));
    let named = raw.proxies.0.iter().flat_map(|table| &table.0).filter_map(|entry| {
        let At { value, place } = entry.value.0.as_ref()?;
        let number = proxies.iter().position(|proxy| proxy.name == entry.name)? + 1;
        let (url, name) = (value.toxiproxy.as_ref()?, value.name.as_ref()?);
        Some(of(u16::try_from(number).ok()?, format!("proxies.{}", entry.name), url, name, *place))
    });
    main.into_iter().chain(named).collect()
}

/// Where the API is, however loopback is written.
fn place_of(external: &External) -> (&str, u16) {
    let TargetUrl { host, port, .. } = &external.toxiproxy;
    (if host == "localhost" { "127.0.0.1" } else { host }, *port)
}

/// Checks the faults that it is to carry out.
fn faults(given: &Given, raw: &RawPlan, steps: &[Step], cx: &mut Context) {
    let its: Vec<&Step> = steps.iter().filter(|step| given.external.carries_out(step)).collect();
    if its.is_empty() {
        cx.warn(given.place, "no fault of the timeline goes to the Toxiproxy", format!("add one, or leave `{}` out", given.key));
    }
    let written: Vec<&At<RawStep>> = raw.timeline.0.iter().flatten().filter_map(|step| step.0.as_ref()).collect();
    for step in its {
        let Some(fault) = &step.fault else { continue };
        let raw = written.iter().find(|raw| raw.place == step.place).map(|raw| &raw.value);
        let place = raw.and_then(|raw| raw.fault.as_ref()).map_or(step.place, |fault| fault.place);
        able(&given.key, step, fault, place, raw, cx);
    }
}

fn url(given: &Given, target: Option<&TargetConfig>, cx: &mut Context) {
    let At { value: url, place } = given.url;
    if url.scheme == Scheme::Https {
        cx.error(*place, "a Toxiproxy's control API speaks no TLS", format!("write `http://{}`", url.authority()));
    }
    if url.path != "/" {
        let message = format!("`{url}`: expected scheme, host and port, the paths of the API are known");
        cx.error(*place, message, format!("write `http://{}`", url.authority()));
    }
    if let Some(target) = target {
        check_allowed(url, *place, target, cx);
    }
}

fn name(At { value, place }: &At<String>, cx: &mut Context) {
    let sound = !value.is_empty() && value.len() <= MAX_NAME && !value.contains('/') && !value.chars().any(char::is_control);
    if !sound {
        let message = format!(
            "expected the name of a proxy of the Toxiproxy: up to {MAX_NAME} letters, and no `/`, which its API cannot find"
        );
        cx.error(*place, message, "`curl URL/proxies` lists them");
    }
}

/// Refuses what a Toxiproxy cannot do, and warns of what it does otherwise.
fn able(key: &str, step: &Step, fault: &Fault, place: Place, raw: Option<&RawStep>, cx: &mut Context) {
    if !step.which.is_all() || step.shape != TimeShape::FULL {
        let message = format!("the Toxiproxy of `{key}` knows of no requests to choose from, and of no `ramp` or `flap`");
        return cx.error(place, message, "put our own proxy in its place, which does it");
    }
    let demand = match demand(fault) {
        Ok(demand) => demand,
        Err(unable) => {
            let message = format!("the Toxiproxy of `{key}` cannot do `{}`: {}", fault.key(), unable.why);
            return cx.error(place, message, unable.remedy);
        }
    };
    // With `on`, each of them is refused as such.
    for (scope, place) in scopes(raw).into_iter().filter(|_| step.on == 0) {
        let message = format!("`{scope}` limits `{}` to some of the traffic, and a Toxiproxy cannot tell whose it is", step.name);
        cx.error(place, message, format!("leave `{scope}` out; or leave `{key}` out, and our own proxy does it"));
    }
    if matches!(&demand, Demand::Toxics(toxics) if toxics.iter().any(|toxic| toxic.toxicity < 1.0)) {
        let message = format!("a Toxiproxy draws the share of `{}` once for each connection, not for each request", step.name);
        cx.warn(place, message, "expect it to strike all requests of some connections, and none of others");
    }
    if let Fault::Latency(latency) = fault
        && [latency.add, latency.jitter].iter().any(|span| span.0 % Span::from_millis(1).0 != 0)
    {
        let message = format!("the delay of `{}` is rounded: a Toxiproxy counts whole milliseconds", step.name);
        cx.warn(place, message, "such as `add: 800ms`");
    }
}

/// What limits a step to a part of the traffic, and where.
fn scopes(raw: Option<&RawStep>) -> Vec<(&'static str, Place)> {
    let Some(raw) = raw else { return Vec::new() };
    let keys = [("fleets", &raw.fleets), ("regions", &raw.regions), ("destinations", &raw.destinations)];
    keys.into_iter().filter_map(|(key, given)| given.as_ref().map(|given| (key, given.place))).collect()
}
