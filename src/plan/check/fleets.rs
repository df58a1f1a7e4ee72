//! Checks of the fleets, and the policies that they name.

use super::{Context, names, policy};
use crate::config::{At, Place};
use crate::load::Load;
use crate::plan::fleet::{PolicyRef, RawFleet};
use crate::plan::presets::PolicySpec;
use crate::plan::{Fleet, RawPlan, arithmetic};
use crate::policy::Policy;
use crate::time::{Rate, Span};
use std::collections::BTreeSet;

/// The most fleets of a plan.
const MAX_FLEETS: usize = 256;
/// The most virtual clients of a plan.
const MAX_CLIENTS: u64 = 10_000_000;
/// The highest rate that a plan may ask for, per second.
const MAX_RATE: f64 = 10_000_000.0;

/// The fleets that could be read, their policies resolved.
pub(super) fn check(raw: &RawPlan, length: Option<Span>, cx: &mut Context) -> Vec<Fleet> {
    let mut used = BTreeSet::new();
    used.extend(super::compare::named(raw));
    let fleets = read_fleets(raw, length, &mut used, cx);
    let Some(policies) = &raw.policies.0 else { return fleets };
    for entry in &policies.0 {
        names::check_policy(&entry.name, entry.place, cx);
        if let Some(PolicySpec(policy)) = &entry.value.0 {
            policy::check(policy, &["policies", &entry.name], cx);
        }
        if !used.contains(entry.name.as_str()) {
            let message = format!("no fleet uses the policy `{}`", short(&entry.name));
            cx.warn(entry.place, message, "name it in a fleet or in `compare`, or remove it");
        }
    }
    fleets
}

fn read_fleets<'a>(raw: &'a RawPlan, length: Option<Span>, used: &mut BTreeSet<&'a str>, cx: &mut Context) -> Vec<Fleet> {
    let Some(At { value: table, place }) = &raw.fleets.0 else { return Vec::new() };
    if table.0.is_empty() || table.0.len() > MAX_FLEETS {
        let message = format!("{} fleets: expected 1 to {MAX_FLEETS}", table.0.len());
        cx.error(
            *place,
            message,
            "such as `fleets: { phones: { clients: 100, policy: …, load: { poisson: { each: 0.2/s } } } }`",
        );
    }
    let mut fleets = Vec::new();
    let mut clients = 0u64;
    for entry in table.0.iter().take(MAX_FLEETS) {
        names::check("a fleet", &entry.name, entry.place, cx);
        let Some(At { value: fleet, .. }) = &entry.value.0 else {
            used.extend(named_by_node(&entry.name, raw, cx));
            continue;
        };
        clients += u64::from(fleet.config.clients);
        if let PolicyRef::Named(name) = &fleet.policy.value {
            used.insert(name);
        }
        settings(&entry.name, fleet, length, cx);
        if let Some((policy_name, policy)) = resolve(&entry.name, &fleet.policy, raw, cx) {
            let offered = arithmetic::offered(&fleet.config);
            policy::budget_permits(&policy, fleet.config.clients, offered, &entry.name, cx);
            fleets.push(Fleet { name: entry.name.clone(), policy_name, policy, config: fleet.config.clone() });
        }
    }
    if clients > MAX_CLIENTS {
        cx.error(*place, format!("{clients} virtual clients: {MAX_CLIENTS} at most"), "make the fleets smaller");
    }
    fleets
}

/// The policy that a fleet names which could not be read otherwise: it is used all the same.
fn named_by_node<'a>(fleet: &str, raw: &'a RawPlan, cx: &Context) -> Option<&'a str> {
    let node = cx.root.get("fleets")?.get(fleet)?.get("policy")?;
    let crate::config::Value::Text(name) = &node.value else { return None };
    raw.policies.0.as_ref()?.0.iter().map(|entry| entry.name.as_str()).find(|known| known == name)
}

fn resolve(fleet: &str, policy: &At<PolicyRef>, raw: &RawPlan, cx: &mut Context) -> Option<(String, Policy)> {
    match &policy.value {
        PolicyRef::Inline(inline) => {
            policy::check(inline, &["fleets", fleet, "policy"], cx);
            Some(("inline".into(), (**inline).clone()))
        }
        PolicyRef::Named(name) => {
            let entry = raw.policies.0.as_ref()?.0.iter().find(|entry| entry.name == *name);
            match entry {
                Some(entry) => entry.value.0.clone().map(|policy| (name.clone(), policy.0)),
                None => {
                    names::unknown_policy(name, policy.place, cx);
                    None
                }
            }
        }
    }
}

fn settings(name: &str, fleet: &RawFleet, length: Option<Span>, cx: &mut Context) {
    let config = &fleet.config;
    let at = |cx: &Context, key: &str| cx.at(&["fleets", name, key]);
    if config.outbox == 0 || config.outbox > 1_000_000 {
        let place = at(cx, "outbox");
        cx.error(
            place,
            format!("an outbox of {}: expected 1 to 1000000", config.outbox),
            "1 means: one at a time, the rest refused",
        );
    }
    if let Some(priority) = &config.priority {
        let place = at(cx, "priority");
        check_header_value("priority", priority, place, cx);
    }
    load(name, &config.load, config.clients, length, cx);
}

fn load(fleet: &str, load: &Load, clients: u32, length: Option<Span>, cx: &mut Context) {
    let path = ["fleets", fleet, "load", load.key()];
    let at = |cx: &Context, key: &str| cx.at(&[&path[..], &[key]].concat());
    match load {
        Load::Constant(crate::load::Constant { rate, each }) | Load::Poisson(crate::load::Poisson { rate, each }) => {
            for (key, value, factor) in [("rate", rate, 1.0), ("each", each, f64::from(clients))] {
                if let Some(value) = value {
                    let place = at(cx, key);
                    rate_bounds(*value, factor, place, cx);
                }
            }
        }
        Load::Ramp(ramp) => {
            let place = at(cx, "to");
            rate_bounds(if ramp.to > ramp.from { ramp.to } else { ramp.from }, 1.0, place, cx);
            if length.is_some_and(|length| ramp.over > length) {
                let place = at(cx, "over");
                cx.warn(place, format!("the ramp of {} is longer than the run", ramp.over), "make it shorter, or the run longer");
            }
        }
        Load::Spike(spike) => {
            let (higher, key) = if spike.peak > spike.rate { (spike.peak, "peak") } else { (spike.rate, "rate") };
            let place = at(cx, key);
            rate_bounds(higher, 1.0, place, cx);
            if spike.peak <= spike.rate {
                let place = at(cx, "peak");
                let message = format!("the peak of {} is not above the rate of {}: this is no spike", spike.peak, spike.rate);
                cx.warn(place, message, "raise it, or use `poisson`");
            }
            spike_fits(spike, length, [at(cx, "at"), at(cx, "for")], cx);
        }
        Load::Closed(closed) => {
            if length.is_some_and(|length| closed.think >= length) {
                let place = at(cx, "think");
                cx.warn(place, format!("a pause of {} is longer than the run", closed.think), "each client does one operation");
            }
        }
        Load::Trigger(trigger) => {
            if length.is_some_and(|length| trigger.at >= length) {
                let place = at(cx, "at");
                cx.error(
                    place,
                    format!("the moment {} is not within the run", trigger.at),
                    "bring it forward, or make `length` longer",
                );
            } else if length.is_some_and(|length| trigger.at + trigger.spread > length) {
                let place = at(cx, "spread");
                cx.warn(place, "some clients come only after the end of the run", "make the spread shorter, or `length` longer");
            }
        }
    }
}

fn spike_fits(spike: &crate::load::Spike, length: Option<Span>, [at, lasting]: [Place; 2], cx: &mut Context) {
    let Some(length) = length else { return };
    if spike.at >= length {
        cx.error(at, format!("the moment {} is not within the run", spike.at), "bring it forward, or make `length` longer");
    } else if spike.at + spike.r#for > length {
        cx.warn(lasting, "the spike lasts beyond the end of the run", "make it shorter, or `length` longer");
    }
}

fn rate_bounds(rate: Rate, factor: f64, place: Place, cx: &mut Context) {
    if rate.get() <= 0.0 {
        cx.error(place, "a rate of 0 offers nothing", "remove the fleet, or raise the rate");
    } else if rate.get() * factor > MAX_RATE {
        let message = format!("{}/s over the fleet: {MAX_RATE}/s at most", rate.get() * factor);
        cx.error(place, message, "lower the rate, or the number of clients");
    }
}

/// A header's value: visible ASCII, spaces and tabs inside.
pub(super) fn check_header_value(name: &str, value: &str, place: Place, cx: &mut Context) {
    let sound = value.chars().all(|c| c.is_ascii_graphic() || c == ' ' || c == '\t') && value.trim() == value;
    if !sound || value.len() > 8192 {
        let message = format!("the value of `{}` cannot be sent: expected up to 8192 visible ASCII characters", short(name));
        cx.error(place, message, "remove line breaks and spaces at its ends; encode the rest");
    }
}

fn short(text: &str) -> String {
    text.chars().take(80).collect()
}
