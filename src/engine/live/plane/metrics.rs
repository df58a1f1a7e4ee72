//! What the plane counts, for Prometheus. Read while it is counted: nothing waits for a connection to end.

use super::registry::Entry;
use super::{Acting, Running};
use crate::exposition::{Family, Kind, Sample, text};

/// One sample per proxy, or per toxic of each.
pub(super) fn exposition<'a>(all: impl Iterator<Item = (&'a Entry, &'a Running)>) -> String {
    let all: Vec<_> = all.collect();
    let of = |value: fn(&Entry, &Running) -> u64| -> Vec<Sample> {
        all.iter().map(|(entry, of)| Sample::count(vec![("proxy", entry.name.clone())], value(entry, of))).collect()
    };
    let of_kind = |faults: bool| -> Vec<Sample> {
        let each = all.iter().flat_map(|(entry, running)| running.rules.iter().map(move |acting| (entry, acting)));
        each.filter(|(_, acting)| acting.is_fault == faults).map(|(entry, acting)| touched(entry, acting)).collect()
    };
    let families: [(&str, Kind, &'static str, Vec<Sample>); 7] = [
        ("proxy_enabled", Kind::Gauge, "1 while the proxy lets clients in.", of(|entry, _| entry.enabled.into())),
        ("proxy_connections", Kind::Gauge, "Clients that are connected.", of(|_, of| of.proxy.connections() as u64)),
        (
            "proxy_connects_total",
            Kind::Counter,
            "Connects to the upstream.",
            of(|_, of| of.proxy.connects().map_or(0, |c| c.count)),
        ),
        (
            "proxy_connects_failed_total",
            Kind::Counter,
            "Connects to the upstream that failed.",
            of(|_, of| of.proxy.unreached().0),
        ),
        ("proxy_bounds_total", Kind::Counter, "Times that a bound of the proxy was reached.", of(|_, of| bounds(of))),
        ("toxic_touched_total", Kind::Counter, "Requests and connections that a toxic has touched.", of_kind(false)),
        ("fault_touched_total", Kind::Counter, "Requests and connections that a fault has touched.", of_kind(true)),
    ];
    let named = |(name, kind, help, samples)| Family::new(format!("stormwake_{name}"), kind, help, samples);
    text(&families.map(named))
}

fn bounds(running: &Running) -> u64 {
    running.proxy.limits().iter().map(|(_, count)| count).sum()
}

fn touched(entry: &Entry, acting: &Acting) -> Sample {
    let (word, kind) = match acting.is_fault {
        true => ("fault", acting.rule.step.kind()),
        false => ("toxic", entry.toxic(&acting.name).map_or("", |harm| harm.kind())),
    };
    Sample::count(vec![("proxy", entry.name.clone()), (word, acting.name.clone()), ("type", kind.into())], acting.touched())
}
