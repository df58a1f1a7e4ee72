//! Checks of the fleets, and the policies that they name.

use super::{Context, guards, names, policy, workers};
use crate::config::{At, Place};
use crate::fleet::workers::WorkerCount;
use crate::plan::fleet::{PolicyRef, RawFleet};
use crate::plan::presets::PolicySpec;
use crate::plan::{Fleet, RawPlan, arithmetic};
use crate::policy::Policy;
use crate::time::Span;
use std::collections::BTreeSet;

/// The most fleets of a plan.
const MAX_FLEETS: usize = 256;
/// The most virtual clients of a plan.
const MAX_CLIENTS: u64 = 10_000_000;
/// The most pairs of fleet and region of a plan: the proxy listens for each.
const MAX_ORIGINS: usize = 1_024;

/// The fleets that could be read, their policies resolved.
pub(super) fn check(raw: &RawPlan, length: Option<Span>, cx: &mut Context) -> Vec<Fleet> {
    let mut used = BTreeSet::new();
    used.extend(super::compare::named(raw));
    used.extend(super::actions::named(raw));
    used.extend(super::calls::named(raw));
    let mut fleets = read_fleets(raw, length, &mut used, cx);
    // A number would name another fleet where one could not be read.
    if raw.fleets.0.as_ref().is_some_and(|table| table.value.0.len() == fleets.len()) {
        workers::producers(raw, &mut fleets, cx);
    }
    let Some(policies) = &raw.policies.0 else { return fleets };
    for entry in &policies.0 {
        names::check_policy(&entry.name, entry.place, cx);
        if let Some(PolicySpec(policy)) = &entry.value.0 {
            policy::check(policy, &["policies", &entry.name], cx);
        }
        if !used.contains(entry.name.as_str()) {
            let message = format!("no fleet uses the policy `{}`", short(&entry.name));
            cx.warn(entry.place, message, "name it in a fleet, an action, a service's `calls` or in `compare`, or remove it");
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
        // Unlimited workers are as many as there is work for.
        let unlimited = fleet.workers.as_ref().is_some_and(|workers| workers.workers == WorkerCount::Unlimited);
        clients += if unlimited { 0 } else { u64::from(fleet.config.clients) };
        if let PolicyRef::Named(name) = &fleet.policy.value {
            used.insert(name);
        }
        settings(&entry.name, fleet, length, cx);
        if let Some((policy_name, policy)) = resolve(&entry.name, &fleet.policy, raw, cx) {
            let offered = arithmetic::offered(&fleet.config);
            guards::check(&policy, fleet.config.clients, offered, &entry.name, cx);
            if let Some(workers) = &fleet.workers {
                workers::policy_fits(&entry.name, workers, &policy, fleet.policy.place, cx);
            }
            let (name, config, workers) = (entry.name.clone(), fleet.config.clone(), fleet.workers.clone());
            let resolved = Fleet { name, policy_name, policy, config, workers, into: None };
            workers::lanes(&resolved, &resolved.policy, fleet.policy.place, cx);
            fleets.push(resolved);
        }
    }
    let origins: usize = fleets.iter().map(|fleet| usize::from(fleet.config.regions.count())).sum();
    if origins > MAX_ORIGINS {
        cx.error(*place, format!("{origins} regions over all fleets: {MAX_ORIGINS} at most"), "use fewer regions");
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

/// The policy that is named, or spelled out in the fleet, and its name.
pub(super) fn resolve(fleet: &str, policy: &At<PolicyRef>, raw: &RawPlan, cx: &mut Context) -> Option<(String, Policy)> {
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
    if let Some(priority) = &config.priority {
        let place = at(cx, "priority");
        check_header_value("priority", priority, place, cx);
    }
    if let Some(workers) = &fleet.workers {
        return workers::check(name, workers, length, cx);
    }
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
    super::loads::check(&["fleets", name, "load"], &config.load, config.clients, length, cx);
    super::devices::check(name, config, cx);
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
