//! What the plane counts, as Prometheus reads it (text format 0.0.4). Read while it is counted: nothing waits for a connection to end.

use super::registry::Entry;
use super::{Acting, Running};
use std::fmt::Write;

type Sample = (String, u64);

/// One sample per proxy, or per toxic of each.
pub(super) fn exposition<'a>(all: impl Iterator<Item = (&'a Entry, &'a Running)>) -> String {
    let all: Vec<_> = all.collect();
    let label = |entry: &Entry| format!("{{proxy=\"{}\"}}", escaped(&entry.name));
    let of = |value: fn(&Entry, &Running) -> u64| -> Vec<Sample> {
        all.iter().map(|(entry, running)| (label(entry), value(entry, running))).collect()
    };
    let of_kind = |faults: bool| -> Vec<Sample> {
        let each = all.iter().flat_map(|(entry, running)| running.rules.iter().map(move |acting| (entry, acting)));
        each.filter(|(_, acting)| acting.is_fault == faults).map(|(entry, acting)| touched(entry, acting)).collect()
    };
    let families: [(&str, &str, &str, Vec<Sample>); 7] = [
        ("proxy_enabled", "gauge", "1 while the proxy lets clients in.", of(|entry, _| entry.enabled.into())),
        ("proxy_connections", "gauge", "Clients that are connected.", of(|_, of| of.proxy.connections() as u64)),
        ("proxy_connects_total", "counter", "Connects to the upstream.", of(|_, of| of.proxy.connects().map_or(0, |c| c.count))),
        ("proxy_connects_failed_total", "counter", "Connects to the upstream that failed.", of(|_, of| of.proxy.unreached().0)),
        ("proxy_bounds_total", "counter", "Times that a bound of the proxy was reached.", of(|_, of| bounds(of))),
        ("toxic_touched_total", "counter", "Requests and connections that a toxic has touched.", of_kind(false)),
        ("fault_touched_total", "counter", "Requests and connections that a fault has touched.", of_kind(true)),
    ];
    let mut text = String::new();
    for (name, kind, help, samples) in families {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# HELP stormwake_{name} {help}\n# TYPE stormwake_{name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(text, "stormwake_{name}{labels} {value}");
        }
    }
    text
}

fn bounds(running: &Running) -> u64 {
    running.proxy.limits().iter().map(|(_, count)| count).sum()
}

fn touched(entry: &Entry, acting: &Acting) -> Sample {
    let (word, kind) = match acting.is_fault {
        true => ("fault", acting.rule.step.kind()),
        false => ("toxic", entry.toxic(&acting.name).map_or("", |harm| harm.kind())),
    };
    let (proxy, name) = (escaped(&entry.name), escaped(&acting.name));
    (format!("{{proxy=\"{proxy}\",{word}=\"{name}\",type=\"{kind}\"}}"), acting.touched())
}

/// A name as a label's value.
fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
