//! Checks of the services of a target together: the names that calls have for them, and the policies of the calls.

use super::{Context, fleets, names, policy};
use crate::config::{At, Table};
use crate::plan::fleet::PolicyRef;
use crate::plan::service::{RawCall, RawService};
use crate::plan::{RawPlan, TargetConfig};
use crate::policy::budget::WhenSpent;
use crate::policy::{Attempts, Backoff, Policy};
use crate::service::change::FRONT;
use crate::service::system::{MAX_DEPTH, MAX_SERVICES};

/// The policies that calls name.
pub(super) fn named(raw: &RawPlan) -> impl Iterator<Item = &str> {
    let target = raw.target.0.iter().map(|target| &target.value);
    target.flat_map(services).filter_map(|(_, service)| match &service.calls.as_ref()?.policy.value {
        PolicyRef::Named(name) => Some(name.as_str()),
        PolicyRef::Inline(_) => None,
    })
}

/// All services, and where each stands.
fn services(target: &TargetConfig) -> impl Iterator<Item = (Vec<&str>, &RawService)> {
    let front = [("service", &target.service), ("model", &target.model)];
    let front = front.into_iter().filter_map(|(key, service)| Some((vec!["target", key], service.as_ref()?)));
    front.chain(target.services.0.iter().map(|entry| (vec!["target", "services", entry.name.as_str()], &entry.value)))
}

/// The target, the policies of its calls in place of their names; none where there is none. What is wrong with a call is reported.
pub(super) fn resolve(raw: &RawPlan, cx: &mut Context) -> Option<TargetConfig> {
    let At { value: target, .. } = raw.target.0.as_ref()?;
    let place = cx.at(&["target", "services"]);
    if target.services.0.len() > MAX_SERVICES {
        cx.error(place, format!("{} services: {MAX_SERVICES} at most", target.services.0.len()), "join some");
        return Some(target.clone());
    }
    let mut resolved = target.clone();
    for entry in &target.services.0 {
        if names::check("a service", &entry.name, entry.place, cx) && entry.name == FRONT {
            cx.error(entry.place, "`service` is what the front one is called in all counts", "give this one another name");
        }
    }
    let known: Vec<&str> = target.services.0.iter().map(|entry| entry.name.as_str()).collect();
    for (path, service) in services(target) {
        let Some(call) = &service.calls else { continue };
        let own = path.get(2).copied();
        callee(call, own, &known, &target.services, cx);
        let path = [&path[..], &["calls", "policy"]].concat();
        let (Some(policy), Some(slot)) = (policy_of(call, &path, raw, cx), slot(&mut resolved, &path)) else { continue };
        slot.policy.value = PolicyRef::Inline(Box::new(policy));
    }
    unused(raw, target, cx);
    Some(resolved)
}

/// The call that stands at a path.
fn slot<'a>(target: &'a mut TargetConfig, path: &[&str]) -> Option<&'a mut RawCall> {
    let service = match path[1] {
        "service" => target.service.as_mut(),
        "model" => target.model.as_mut(),
        _ => target.services.0.iter_mut().find(|entry| entry.name == path[2]).map(|entry| &mut entry.value),
    };
    service?.calls.as_mut()
}

/// Checks whom a service calls, `own` being its name.
fn callee(call: &RawCall, own: Option<&str>, known: &[&str], all: &Table<RawService>, cx: &mut Context) {
    let At { value: name, place } = &call.service;
    if own == Some(name) {
        return cx.error(*place, format!("`{name}` calls itself"), "name another of `services`, or leave `calls` out");
    }
    if !known.contains(&name.as_str()) {
        return names::unknown("service", name, *place, known, cx);
    }
    let mut chain: Vec<&str> = own.into_iter().collect();
    let mut next = Some(name.as_str());
    while let Some(name) = next {
        if let Some(from) = chain.iter().position(|passed| *passed == name) {
            // Told once: by the service of the cycle that stands first in the plan, and by nobody who only leads into it.
            let first = known.iter().find(|known| chain[from..].contains(known));
            if from == 0 && own == first.copied() {
                let round = [&chain[from..], &[name]].concat().join(" -> ");
                cx.error(
                    *place,
                    format!("calls go round: {round}"),
                    "a request would never be answered: take one of the calls out",
                );
            }
            return;
        }
        chain.push(name);
        next = all.get(name).and_then(|service| service.calls.as_ref()).map(|call| call.service.value.as_str());
    }
    let depth = chain.len() + usize::from(own.is_none());
    if own.is_none() && depth > MAX_DEPTH {
        cx.error(
            *place,
            format!("a request passes {depth} services, each called by the one before: {MAX_DEPTH} at most"),
            "join some",
        );
    } else if own.is_some() && depth > MAX_DEPTH {
        let message = format!("calls are {depth} services deep from here: {MAX_DEPTH} at most");
        cx.error(*place, message, "join some");
    }
}

/// The policy of a call, if it is one that calls can have.
fn policy_of(call: &RawCall, path: &[&str], raw: &RawPlan, cx: &mut Context) -> Option<Policy> {
    let found = match &call.policy.value {
        PolicyRef::Inline(inline) => {
            policy::check(inline, path, cx);
            (**inline).clone()
        }
        PolicyRef::Named(_) => fleets::resolve("", &call.policy, raw, cx)?.1,
    };
    let parks = found.budget.as_ref().is_some_and(|budget| budget.value.when_spent == WhenSpent::Park);
    let lane = found.on.iter().any(|(_, treatment)| treatment.lane.is_some());
    let parts = [
        (found.breaker.is_some(), "a `breaker`"),
        (found.throttle.is_some(), "a `throttle`"),
        (found.hedge.is_some(), "a `hedge`"),
        (parks, "a budget with `when_spent: park`"),
        (lane, "a `lane` for its retries"),
    ];
    for (_, part) in parts.into_iter().filter(|(there, _)| *there) {
        let message = format!("the policy of this call has {part}, which the calls of a service cannot have");
        let hint = "calls have attempts, timeout, deadline, backoff, hints and a budget: give them a policy of those";
        cx.error(call.policy.place, message, hint);
    }
    if found.attempts == Attempts::Unlimited && found.deadline.is_none() && matches!(found.backoff, Backoff::None(_)) {
        let message = "this call retries without an end and without a wait: once nobody waits for it, nothing would end it";
        cx.error(call.policy.place, message, "give its policy a number of `attempts`, a `deadline`, or a `backoff`");
    }
    Some(found)
}

/// Warns of a service that no request reaches.
fn unused(raw: &RawPlan, target: &TargetConfig, cx: &mut Context) {
    let called: Vec<&str> =
        services(target).filter_map(|(_, service)| Some(service.calls.as_ref()?.service.value.as_str())).collect();
    let destinations = super::workers::names(raw);
    for entry in &target.services.0 {
        if !called.contains(&entry.name.as_str()) && !destinations.contains(&entry.name.as_str()) {
            let message =
                format!("no request reaches the service `{}`: nothing calls it, and no destination has its name", entry.name);
            cx.warn(entry.place, message, "let a service call it, give it the name of a destination, or remove it");
        }
    }
}
