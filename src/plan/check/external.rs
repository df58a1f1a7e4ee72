//! Checks of what a Toxiproxy is to carry out: that it can.

use super::Context;
use super::target::check_allowed;
use crate::config::{At, Place};
use crate::fault::external::{Demand, demand};
use crate::fault::{Fault, Step, TimeShape};
use crate::plan::external::{External, ExternalProxy};
use crate::plan::raw::RawStep;
use crate::plan::url::Scheme;
use crate::plan::{RawPlan, TargetConfig};
use crate::time::Span;

/// The longest name of a proxy.
const MAX_NAME: usize = 200;

/// The Toxiproxies of a plan, each with the proxy of the plan whose faults it carries out.
pub(super) fn check(raw: &RawPlan, steps: &[Step], cx: &mut Context) -> Vec<External> {
    let given = raw.proxy.as_ref().and_then(|proxy| proxy.0.as_ref());
    let Some(At { value: proxy, place }) = given else { return Vec::new() };
    let external = External { on: 0, toxiproxy: proxy.toxiproxy.value.clone(), name: proxy.name.value.clone() };
    url(proxy, raw.target.0.as_ref().map(|target| &target.value), cx);
    name(&proxy.name, cx);
    if raw.target.0.as_ref().is_some_and(|target| target.value.service.is_some()) {
        let message = "no Toxiproxy stands before or behind the built-in target: its faults would strike nothing";
        cx.error(*place, message, "give the target as a `url`, or leave `proxy` out");
    }
    let its: Vec<&Step> = steps.iter().filter(|step| external.carries_out(step)).collect();
    if its.is_empty() {
        cx.warn(*place, "no fault of the timeline goes to the Toxiproxy", "add one, or leave `proxy` out");
    }
    let written: Vec<&At<RawStep>> = raw.timeline.0.iter().flatten().filter_map(|step| step.0.as_ref()).collect();
    for step in its {
        let Some(fault) = &step.fault else { continue };
        let raw = written.iter().find(|raw| raw.place == step.place).map(|raw| &raw.value);
        let place = raw.and_then(|raw| raw.fault.as_ref()).map_or(step.place, |fault| fault.place);
        able(step, fault, place, raw, cx);
    }
    vec![external]
}

fn url(proxy: &ExternalProxy, target: Option<&TargetConfig>, cx: &mut Context) {
    let At { value: url, place } = &proxy.toxiproxy;
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
fn able(step: &Step, fault: &Fault, place: Place, raw: Option<&RawStep>, cx: &mut Context) {
    if !step.which.is_all() || step.shape != TimeShape::FULL {
        let message = "the Toxiproxy of `proxy` knows of no requests to choose from, and of no `ramp` or `flap`";
        return cx.error(place, message, "leave `proxy` out, and our own proxy does it");
    }
    let demand = match demand(fault) {
        Ok(demand) => demand,
        Err(unable) => {
            let message = format!("the Toxiproxy of `proxy` cannot do `{}`: {}", fault.key(), unable.why);
            return cx.error(place, message, unable.remedy);
        }
    };
    for (key, place) in scopes(raw) {
        let message = format!("`{key}` limits `{}` to some of the traffic, and a Toxiproxy cannot tell whose it is", step.name);
        cx.error(place, message, format!("leave `{key}` out; or leave `proxy` out, and our own proxy does it"));
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
