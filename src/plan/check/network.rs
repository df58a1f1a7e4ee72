//! Checks of the network of a simulated run: nothing absurd.

use super::{Context, MAX_LENGTH};
use crate::network::Network;
use crate::plan::{Fleet, arithmetic};
use crate::time::Span;

/// Checks the network.
pub(super) fn check(network: &Network, fleets: &[Fleet], cx: &mut Context) {
    let config = &network.config;
    let mut means = [0.0; 3];
    for (mean, (key, hop)) in
        means.iter_mut().zip([("latency", &config.latency), ("upstream", &config.upstream), ("connect", &config.connect)])
    {
        *mean = arithmetic::mean_service_time(hop);
        if *mean > MAX_LENGTH.as_secs_f64() {
            let place = cx.at(&["network", key]);
            cx.error(place, format!("a hop that takes longer than {MAX_LENGTH}"), format!("such as `{key}: 40ms`"));
            return;
        }
    }
    let [latency, upstream, connect] = means;
    let longer = if latency >= upstream { "latency" } else { "upstream" };
    in_time("a round trip through the network", 2.0 * (latency + upstream), longer, fleets, cx);
    in_time("opening a connection", connect, "connect", fleets, cx);
    if config.reset.get() >= 0.5 {
        let place = cx.at(&["network", "reset"]);
        let message = format!("the network resets {} of all attempts, the baseline's too", config.reset);
        cx.warn(place, message, "keep it small; for an outage use a `reset` fault in `timeline`");
    }
}

/// Warns where something takes as long as the fleet that waits least.
fn in_time(what: &str, seconds: f64, key: &str, fleets: &[Fleet], cx: &mut Context) {
    let Some(hasty) = fleets.iter().min_by_key(|fleet| fleet.policy.timeout) else { return };
    let timeout = hasty.policy.timeout;
    if seconds < timeout.as_secs_f64() {
        return;
    }
    let place = cx.at(&["network", key]);
    let mean = Span::from_micros((seconds * 1e6).round() as u64);
    let message = format!("{what} takes {mean} on average, and attempts of fleet `{}` time out after {timeout}", hasty.name);
    cx.warn(place, message, "make it shorter, or the timeout longer");
}
