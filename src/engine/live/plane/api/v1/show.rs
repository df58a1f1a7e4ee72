//! Answers: what there is, as JSON.

use super::super::super::registry::Entry;
use super::super::super::{Counters, Lease, Placed, View};
use super::body::{Refused, Wrong};
use crate::engine::live::proxy::Protocol;
use crate::time::Timestamp;
use serde_json::{Map, Value, json};

/// A proxy with what it has counted.
pub fn proxy(view: &View) -> Value {
    let View { entry, counters, toxics, .. } = view;
    let Counters { connections, connected, requests, upstream_connects, upstream_failures, bounds } = counters;
    json!({
        "name": entry.name,
        "listen": entry.listen.to_string(),
        "upstream": entry.upstream,
        "protocol": if entry.protocol == Protocol::Http { "http" } else { "tcp" },
        "enabled": entry.enabled,
        "lease": entry.hold.as_ref().map(|hold| &*hold.lease).or(entry.made_under.as_deref()),
        "counters": {
            "connections": connections,
            "connected": connected,
            "requests": requests,
            "upstream_connects": upstream_connects,
            "upstream_failures": upstream_failures,
            "bounds_reached": bounds,
        },
        "toxics": toxics.iter().map(|(name, touched)| (name.clone(), json!({ "touched": touched }))).collect::<Map<_, _>>(),
        "faults": faults(view),
    })
}

/// The faults of a proxy by name, in the order in which they act.
pub fn faults(view: &View) -> Value {
    let one = |placed: &Placed| (placed.name.clone(), fault_of(view, placed));
    Value::Object(view.entry.faults.iter().map(one).collect())
}

/// One of them.
pub fn fault_of(view: &View, placed: &Placed) -> Value {
    fault(&view.entry, placed, view.faults.get(&placed.name).copied().unwrap_or(0), Some(view.now))
}

/// A fault; one that has gone ends no more.
pub fn fault(entry: &Entry, placed: &Placed, touched: u64, now: Option<Timestamp>) -> Value {
    let step: Value = serde_json::from_str(&placed.input.text).unwrap_or_default();
    json!({
        "name": placed.name,
        "proxy": entry.name,
        "step": step,
        "touched": touched,
        "ends_in_ms": placed.ends().zip(now).map(|(ends, now)| ends.since(now).as_millis()),
        "lease": placed.lease().map(|lease| &**lease),
    })
}

/// A lease and what it holds.
pub fn lease(lease: &Lease, holds: &[String], now: Timestamp) -> Value {
    json!({
        "id": &*lease.id,
        "ttl": lease.ttl.to_string(),
        "ttl_ms": lease.ttl.as_millis(),
        "expires_in_ms": lease.ends.since(now).as_millis(),
        "holds": holds,
    })
}

/// What a call is refused with.
pub fn refused(refused: &Refused) -> Value {
    let one = |wrong: &Wrong| json!({ "place": wrong.place, "message": wrong.message, "remedy": wrong.remedy });
    let mut wrongs = refused.wrongs.iter().map(one);
    let first = wrongs.next();
    let also: Vec<Value> = wrongs.collect();
    if also.is_empty() { json!({ "error": first }) } else { json!({ "error": first, "also": also }) }
}
