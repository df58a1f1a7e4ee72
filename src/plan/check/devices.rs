//! Checks of what devices have beside their load: regions, links, outboxes.

use super::{Context, MAX_LENGTH, names};
use crate::fleet::{FleetConfig, LinkConfig};

/// Checks what a fleet says of where its clients are, of their links and of their outboxes.
pub(super) fn check(name: &str, config: &FleetConfig, cx: &mut Context) {
    for (region, place) in config.regions.places() {
        names::check("a region", region, place, cx);
    }
    if let Some(poor) = &config.link {
        link(name, poor, cx);
    }
    operations(name, config, cx);
    if config.drain_rate.is_some_and(|rate| rate.get() <= 0.0) {
        let place = cx.at(&["fleets", name, "drain_rate"]);
        cx.error(place, "a client that drains at a rate of 0 never sends", "raise it, or leave it out for no limit");
    }
}

fn operations(name: &str, config: &FleetConfig, cx: &mut Context) {
    for (kind, place, settings) in config.operations.kinds() {
        names::check("an operation", kind, place, cx);
        if settings.replaces.is_none() && settings.keys > 1 {
            let place = cx.at(&["fleets", name, "operations", kind, "keys"]);
            cx.warn(place, "`keys` does nothing without `replaces`", "add `replaces: key`, or remove it");
        }
    }
    if config.priority.is_some() && !config.operations.is_empty() {
        let place = cx.at(&["fleets", name, "priority"]);
        cx.error(place, "each kind of operation has a priority of its own", "remove it, or give it to the kinds in `operations`");
    }
}

fn link(name: &str, link: &LinkConfig, cx: &mut Context) {
    let at = |cx: &Context, key: &str| cx.at(&["fleets", name, "link", key]);
    if link.latency.mean() > MAX_LENGTH {
        let place = at(cx, "latency");
        cx.error(place, format!("a link that takes longer than {MAX_LENGTH}"), "such as `latency: 150ms`");
    } else if link.mean(false).is_zero() && link.loss.get() == 0.0 {
        let place = cx.at(&["fleets", name, "link"]);
        cx.warn(place, "a link without latency and loss is as good as none", "such as `link: { latency: 150ms, loss: 5% }`");
    }
    if link.share.get() == 0.0 {
        let place = at(cx, "share");
        cx.error(place, "a link that no client has", "raise the share, or remove the link");
    }
}
