//! Checks of fleets of workers, of their queues, and of the producers that fill them.

use super::{Context, loads, names};
use crate::config::{At, Place};
use crate::fleet::WorkersConfig;
use crate::fleet::workers::WorkerCount;
use crate::fleet::workers::config::DispatchRate;
use crate::load::Load;
use crate::plan::arithmetic::offered_by;
use crate::plan::fleet::{RawFleet, steady};
use crate::plan::{Fleet, Into, RawPlan};
use crate::policy::Policy;
use crate::policy::breaker::SharedBy;
use crate::policy::budget::WhenSpent;
use crate::time::Span;

/// The most destinations of a queue.
const MAX_DESTINATIONS: usize = 256;

/// Checks a queue.
pub(super) fn check(fleet: &str, workers: &WorkersConfig, length: Option<Span>, cx: &mut Context) {
    let queue = &workers.queue;
    let path = ["fleets", fleet, "queue"];
    let at = |cx: &Context, key: &[&str]| cx.at(&[&path[..], key].concat());
    let named = !queue.destinations.0.is_empty();
    if named && queue.arrivals.is_some() {
        let place = at(cx, &["arrivals"]);
        cx.error(place, "`arrivals` of the queue and of its `destinations` exclude each other", "give each destination its own");
    }
    if queue.destinations.0.len() > MAX_DESTINATIONS {
        let place = at(cx, &["destinations"]);
        cx.error(place, format!("{} destinations: {MAX_DESTINATIONS} at most", queue.destinations.0.len()), "make them fewer");
    }
    if let Some(load) = &queue.arrivals {
        stream(load, &[&path[..], &["arrivals"]].concat(), length, cx);
    }
    rate(&queue.rate, at(cx, &["rate"]), cx);
    for entry in &queue.destinations.0 {
        names::check("a destination", &entry.name, entry.place, cx);
        let own = [&path[..], &["destinations", &entry.name]].concat();
        if let Some(load) = &entry.value.arrivals {
            stream(load, &[&own[..], &["arrivals"]].concat(), length, cx);
        }
        let place = cx.at(&[&own[..], &["rate"]].concat());
        rate(&entry.value.rate, place, cx);
    }
    let standing: u64 = queue.streams().iter().map(|(_, stream)| u64::from(stream.backlog)).sum();
    if standing > u64::from(queue.bound) {
        let place = at(cx, &["bound"]);
        let message = format!("{standing} operations stand in the queue at the start, and it holds {} at most", queue.bound);
        cx.error(place, message, "raise `bound`, or make `backlog` smaller");
    }
    for entry in &queue.lanes.0 {
        names::check("a lane", &entry.name, entry.place, cx);
    }
}

/// Checks that a policy is one for workers: what it asks for is there.
pub(super) fn policy_fits(fleet: &str, workers: &WorkersConfig, policy: &Policy, place: Place, cx: &mut Context) {
    if policy.concurrency() > 1 {
        let message = format!(
            "a worker of `{fleet}` makes one attempt at a time: its policy cannot hedge, nor set how many are out at once"
        );
        cx.error(place, message, "leave out `hedge` and `aimd`; `workers` says how many there are");
    }
    let own_breaker = policy.breaker.as_ref().is_some_and(|breaker| breaker.value.tier == SharedBy::Client);
    let own_throttle = policy.throttle.as_ref().is_some_and(|throttle| throttle.value.tier() == SharedBy::Client);
    if workers.workers == WorkerCount::Unlimited && (own_breaker || own_throttle) {
        let message = format!(
            "`{fleet}` has as many workers as there is work for: each would have a breaker or throttle that knows nothing yet"
        );
        cx.error(place, message, "use `tier: fleet`, or give a number of workers");
    }
}

/// Checks that the lanes which a policy sends retries to are there, in the queue of a fleet that has it.
pub(super) fn lanes(fleet: &Fleet, policy: &Policy, place: Place, cx: &mut Context) {
    let mut named = policy.on.iter().filter_map(|(_, treatment)| treatment.lane.as_deref()).peekable();
    let Some(first) = named.peek() else { return };
    let Some(workers) = &fleet.workers else {
        let message = format!(
            "this policy sends retries to the lane `{first}`, and fleet `{}` has clients, and no queue with lanes",
            fleet.name
        );
        return cx.error(place, message, "give this fleet a policy without `lane`");
    };
    let parks = policy.budget.as_ref().is_some_and(|budget| budget.value.when_spent == WhenSpent::Park);
    if workers.queue.hold_while_waiting && !parks {
        let message = format!(
            "a worker of `{}` holds its operation through its waits (`hold_while_waiting`): no retry goes to the lane `{first}`",
            fleet.name
        );
        cx.warn(place, message, "use `hold_while_waiting: false`, or leave `lane` out");
    }
    let known: Vec<&str> = workers.queue.lanes.0.iter().map(|lane| lane.name.as_str()).collect();
    for lane in named.filter(|lane| !known.contains(lane)) {
        names::unknown("lane", lane, place, &known, cx);
    }
}

/// The names of all destinations of a plan.
pub(super) fn names(raw: &RawPlan) -> Vec<&str> {
    let fleets = raw.fleets.0.iter().flat_map(|table| &table.value.0).filter_map(|entry| entry.value.0.as_ref());
    let queues = fleets.filter_map(|fleet| fleet.value.workers.as_ref());
    queues.flat_map(|workers| &workers.queue.destinations.0).map(|entry| entry.name.as_str()).collect()
}

/// A stream is what one client offers, and nobody waits for an end.
fn stream(load: &Load, path: &[&str], length: Option<Span>, cx: &mut Context) {
    match load {
        Load::Closed(_) | Load::Trigger(_) | Load::Schedule(_) | Load::Foreground(_) | Load::OnReconnect(_) => {
            let place = cx.at(path);
            let message = format!("`{}` is no stream of operations: its clients are not there", load.key());
            cx.error(
                place,
                message,
                "use `constant`, `poisson`, `ramp`, `spike` or `day_curve`; `backlog: N` for many at the start",
            );
        }
        Load::Constant(_) | Load::Poisson(_) | Load::Ramp(_) | Load::Spike(_) | Load::DayCurve(_) => {
            loads::check(path, load, 1, length, cx);
        }
    }
}

fn rate(rate: &Option<DispatchRate>, place: Place, cx: &mut Context) {
    if rate.as_ref().is_some_and(|rate| rate.rate.get() <= 0.0) {
        cx.error(place, "at a rate of 0 nothing is ever dispatched", "raise it, or leave `rate` out");
    }
}

/// Resolves where producers put their operations, and adds what they offer to the load of the fleet that sends it on.
pub(super) fn producers(raw: &RawPlan, fleets: &mut [Fleet], cx: &mut Context) {
    let Some(At { value: table, .. }) = &raw.fleets.0 else { return };
    for entry in &table.0 {
        let Some(At { value: written, .. }) = &entry.value.0 else { continue };
        let Some(into) = into(&entry.name, written, raw, cx) else { continue };
        let Some(producer) = fleets.iter_mut().find(|fleet| fleet.name == entry.name) else { continue };
        producer.into = Some(into);
        let more = offered_by(&producer.config.load, producer.config.clients).peak();
        if let Some(workers) = fleets.get_mut(usize::from(into.fleet)) {
            let own = offered_by(&workers.config.load, 1).peak();
            workers.config.load = steady(own + more);
        }
    }
    for (fleet, entry) in fleets.iter().zip(&table.0) {
        nothing_comes(fleet, entry.place, cx);
    }
}

/// Where a fleet's operations go, if they go into a queue.
fn into(name: &str, written: &RawFleet, raw: &RawPlan, cx: &mut Context) -> Option<Into> {
    let Some(At { value: wanted, place }) = &written.into else {
        if let Some(At { place, .. }) = &written.destination {
            cx.error(*place, "`destination` is for producers: it says nothing without `into`", "add `into: FLEET`, or remove it");
        }
        return None;
    };
    let all = &raw.fleets.0.as_ref()?.value.0;
    let queues: Vec<&str> = all
        .iter()
        .filter(|entry| entry.value.0.as_ref().is_some_and(|fleet| fleet.value.workers.is_some()))
        .map(|entry| entry.name.as_str())
        .collect();
    let Some(number) = all.iter().position(|entry| entry.name == *wanted && queues.contains(&wanted.as_str())) else {
        names::unknown("fleet of workers", wanted, *place, &queues, cx);
        return None;
    };
    let streams = all[number].value.0.as_ref()?.value.workers.as_ref()?.queue.streams();
    let known: Vec<&str> = streams.iter().map(|(name, _)| *name).collect();
    let destination = match (&written.destination, &known[..]) {
        (None, [_]) => 0,
        (None, _) => {
            let message = format!("`{wanted}` has several destinations: to which do the operations of `{name}` go?");
            cx.error(*place, message, format!("add `destination: {}`", known[0]));
            return None;
        }
        (Some(At { value, place }), _) => match known.iter().position(|known| known == value && !value.is_empty()) {
            Some(destination) => destination,
            None => {
                names::unknown("destination", value, *place, &known, cx);
                return None;
            }
        },
    };
    Some(Into { fleet: u16::try_from(number).ok()?, destination: u16::try_from(destination).ok()? })
}

fn nothing_comes(fleet: &Fleet, place: Place, cx: &mut Context) {
    let Some(workers) = &fleet.workers else { return };
    let standing = workers.queue.streams().iter().any(|(_, stream)| stream.backlog > 0);
    if !standing && offered_by(&fleet.config.load, 1).peak() <= 0.0 {
        let message = format!("nothing comes into the queue of `{}`", fleet.name);
        cx.error(
            place,
            message,
            "such as `queue: { arrivals: { poisson: { rate: 20/s } } }`, or a fleet of producers with `into:`",
        );
    }
}
