//! Checks of what a Toxiproxy or a `stormwake proxy` is to carry out: that it can.

use super::Context;
use super::target::check_allowed;
use crate::config::{At, Place, Value};
use crate::fault::external::{Demand, Server, demand};
use crate::fault::{Fault, Step, TimeShape};
use crate::plan::external::{External, json_of};
use crate::plan::raw::RawStep;
use crate::plan::url::{Scheme, TargetUrl};
use crate::plan::{NamedProxy, RawPlan, TargetConfig};
use crate::time::Span;
use std::collections::BTreeMap;

/// The longest name of a proxy.
const MAX_NAME: usize = 200;

/// A server as a plan names it, and where it does.
struct Given<'a> {
    external: External,
    /// The key of the plan, such as `proxies.provider`.
    key: String,
    url: &'a At<TargetUrl>,
    name: &'a At<String>,
    place: Place,
}

/// The servers of a plan, each with the proxy of the plan whose faults it carries out.
pub(super) fn check(raw: &RawPlan, proxies: &[NamedProxy], steps: &[Step], cx: &mut Context) -> Vec<External> {
    let mut all = given(raw, proxies);
    for index in 0..all.len() {
        let given = &all[index];
        let server = given.external.server;
        url(given, raw.target.0.as_ref().map(|target| &target.value), cx);
        named(server, given.name, cx);
        let same =
            |other: &&Given| other.name.value == given.name.value && place_of(&other.external) == place_of(&given.external);
        if let Some(other) = all[..index].iter().find(same) {
            let message = format!("`{}` has `{}` of that {server} already", other.key, given.name.value);
            cx.error(given.name.place, message, "name each proxy once: all faults of one go to it together");
        }
        if raw.target.0.as_ref().is_some_and(|target| target.value.service.is_some()) {
            let message = format!("no {server} stands before or behind the built-in target: its faults would strike nothing");
            cx.error(given.place, message, format!("give the target as a `url`, or leave `{}` out", given.key));
        }
        let texts = faults(given, raw, steps, cx);
        all[index].external.texts = texts;
    }
    all.into_iter().map(|given| given.external).collect()
}

/// What the plan's `proxy` says, and those of its `proxies` that a Toxiproxy has.
fn given<'a>(raw: &'a RawPlan, proxies: &[NamedProxy]) -> Vec<Given<'a>> {
    let of = |on: u16, key: String, (server, url): (Server, &'a At<TargetUrl>), name: &'a At<String>, place: Place| {
        let external = External { on, server, api: url.value.clone(), name: name.value.clone(), texts: BTreeMap::new() };
        Given { external, key, url, name, place }
    };
    let main = raw.proxy.as_ref().and_then(|proxy| proxy.0.as_ref());
    let main = main.and_then(|At { value, place }| Some(of(0, "proxy".into(), value.server()?, &value.name, *place)));
    let named = raw.proxies.0.iter().flat_map(|table| &table.0).filter_map(|entry| {
        let At { value, place } = entry.value.0.as_ref()?;
        let number = proxies.iter().position(|proxy| proxy.name == entry.name)? + 1;
        let (url, name) = (value.toxiproxy.as_ref()?, value.name.as_ref()?);
        let server = (Server::Toxiproxy, url);
        Some(of(u16::try_from(number).ok()?, format!("proxies.{}", entry.name), server, name, *place))
    });
    main.into_iter().chain(named).collect()
}

/// Where the API is, however loopback is written.
fn place_of(external: &External) -> (&str, u16) {
    let TargetUrl { host, port, .. } = &external.api;
    (if host == "localhost" { "127.0.0.1" } else { host }, *port)
}

/// Checks the faults that it is to carry out; gives those of a `stormwake proxy` as that takes them, by step.
fn faults(given: &Given, raw: &RawPlan, steps: &[Step], cx: &mut Context) -> BTreeMap<usize, String> {
    let (server, mut texts) = (given.external.server, BTreeMap::new());
    let its: Vec<(usize, &Step)> = steps.iter().enumerate().filter(|(_, step)| given.external.carries_out(step)).collect();
    if its.is_empty() {
        let message = format!("no fault of the timeline goes to the {server}");
        cx.warn(given.place, message, format!("add one, or leave `{}` out", given.key));
    }
    let written: Vec<&At<RawStep>> = raw.timeline.0.iter().flatten().filter_map(|step| step.0.as_ref()).collect();
    for (index, step) in its {
        let Some(fault) = &step.fault else { continue };
        let raw_step = written.iter().find(|raw| raw.place == step.place).map(|raw| &raw.value);
        let place = raw_step.and_then(|raw| raw.fault.as_ref()).map_or(step.place, |fault| fault.place);
        // With `on`, each of them is refused as such.
        scopes(given, step, raw_step.filter(|_| step.on == 0), cx);
        match server {
            Server::Toxiproxy => able(&given.key, step, fault, place, cx),
            Server::Stormwake => drop(texts.insert(index, text(step, raw, cx))),
        }
    }
    texts
}

/// The keys of a step that say when, where and what it is called; a fault's own are the others.
const NOT_OF_FAULTS: [&str; 8] = ["at", "for", "name", "on", "fleets", "regions", "destinations", "repeat"];

/// A step as `/v1` takes it. Its end is told only where its shape in time depends on that: else the run says when it is over.
fn text(step: &Step, raw: &RawPlan, cx: &Context) -> String {
    let list = cx.root.get("timeline").map(|node| &node.value);
    let Some(Value::List(items)) = list else { return String::new() };
    let Some(node) = items.iter().find(|item| item.place == step.place) else { return String::new() };
    let mut fault = json_of(node);
    let ramps = node.get("ramp").is_some();
    if let Some(entries) = fault.as_object_mut() {
        entries.retain(|key, _| !NOT_OF_FAULTS.contains(&key.as_str()) || (ramps && key == "for"));
        if let Some(scale) = raw.time_scale.as_ref().and_then(|scale| scale.0) {
            entries.insert("time_scale".into(), scale.to_string().into());
        }
    }
    fault.to_string()
}

fn url(given: &Given, target: Option<&TargetConfig>, cx: &mut Context) {
    let (At { value: url, place }, server) = (given.url, given.external.server);
    if url.scheme == Scheme::Https {
        let message = format!("a {server}'s control API speaks no TLS");
        cx.error(*place, message, format!("write `http://{}`", url.authority()));
    }
    if url.path != "/" {
        let message = format!("`{url}`: expected scheme, host and port, the paths of the API are known");
        cx.error(*place, message, format!("write `http://{}`", url.authority()));
    }
    if let Some(target) = target {
        check_allowed(url, *place, target, cx);
    }
}

fn named(server: Server, At { value, place }: &At<String>, cx: &mut Context) {
    let sound = !value.is_empty() && value.len() <= MAX_NAME && !value.contains('/') && !value.chars().any(char::is_control);
    if !sound {
        let message = format!(
            "expected the name of a proxy of the {server}: up to {MAX_NAME} letters, and no `/`, which its API cannot find"
        );
        cx.error(*place, message, "`curl URL/proxies` lists them");
    }
}

/// Refuses what limits a step to a part of the traffic: whose it is only the run's own proxy can tell.
fn scopes(given: &Given, step: &Step, raw: Option<&RawStep>, cx: &mut Context) {
    let Some(raw) = raw else { return };
    let (server, key_of) = (given.external.server, &given.key);
    let keys = [("fleets", &raw.fleets), ("regions", &raw.regions), ("destinations", &raw.destinations)];
    for (key, place) in keys.into_iter().filter_map(|(key, given)| given.as_ref().map(|given| (key, given.place))) {
        let message = format!("`{key}` limits `{}` to some of the traffic, and a {server} cannot tell whose it is", step.name);
        cx.error(place, message, format!("leave `{key}` out; or leave `{key_of}` out, and our own proxy does it"));
    }
}

/// Refuses what a Toxiproxy cannot do, and warns of what it does otherwise.
fn able(key: &str, step: &Step, fault: &Fault, place: Place, cx: &mut Context) {
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
