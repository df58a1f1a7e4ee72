//! What passed the plan's proxies, where a real service calls what it depends on.

use super::build::{fine, ratio, sketch_ms};
use super::timeline::{WaveResult, wave_result};
use crate::metrics::{RunRecord, Sketch, Tally, TapRecord, TapWindow};
use crate::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One proxy over the whole run. A repeat is a request with the method, path and Idempotency-Key (or body) of one that came before: a retry of the service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProxyResult {
    /// Its name in the plan.
    pub name: String,
    /// Connections that it let in.
    pub connects: u64,
    /// Requests that came.
    pub requests: u64,
    /// Of them, repeats.
    pub repeats: u64,
    /// Of them, those of which nobody can say: neither key nor body, or too long a one, or one that never came.
    pub unknown: u64,
    /// Requests / requests that are no repeats; null where repeats cannot be told, or nothing came.
    pub amplification: Option<f64>,
    /// Repeats / requests, 0 to 1; null where repeats cannot be told, or nothing came.
    pub retry_share: Option<f64>,
    /// Requests per second in the window with the most; null without windows.
    pub peak_requests: Option<f64>,
    /// Answers by class of their status, such as `2xx`.
    pub classes: BTreeMap<String, u64>,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests whose connection was reset.
    pub resets: u64,
    /// Requests whose connection ended without a whole answer: the service waited no longer, or the upstream hung up.
    pub unanswered: u64,
    /// Requests for which the upstream could not be connected to.
    pub unreached: u64,
    /// Median time from a request's head to the end of its answer, in milliseconds.
    pub p50_ms: Option<f64>,
    /// 99th percentile of the same.
    pub p99_ms: Option<f64>,
    /// The most requests in flight at the end of a window.
    pub peak_in_flight: u64,
    /// The strongest period of what came, from the first fault on; null where there is too little to see.
    pub wave: Option<WaveResult>,
    /// The series: fixed slices of the run, gapless from its start.
    pub windows: Vec<ProxyWindow>,
}

/// One proxy in one window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProxyWindow {
    /// When it begins, in milliseconds since the run began.
    pub from_ms: u64,
    /// Connections that it let in.
    pub connects: u64,
    /// Requests that came.
    pub requests: u64,
    /// Of them, repeats.
    pub repeats: u64,
    /// Of them, those of which nobody can say.
    pub unknown: u64,
    /// Answers by status, booked when they end.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests whose connection was reset.
    pub resets: u64,
    /// Requests whose connection ended without a whole answer.
    pub unanswered: u64,
    /// Requests for which the upstream could not be connected to.
    pub unreached: u64,
    /// 99th percentile of the time from a request's head to the end of its answer, in milliseconds.
    pub p99_ms: Option<f64>,
    /// Requests that have not ended, at the end of the window.
    pub in_flight: u64,
}

/// Every proxy of the plan, in its order.
pub(super) fn proxies(record: &RunRecord) -> Vec<ProxyResult> {
    record.taps.iter().map(|tap| proxy(tap, record.window)).collect()
}

fn proxy(tap: &TapRecord, window: Span) -> ProxyResult {
    let sum = |of: fn(&TapWindow) -> u64| tap.windows.iter().map(of).sum::<u64>();
    let most = |of: fn(&TapWindow) -> u64| tap.windows.iter().map(of).max();
    let (requests, repeats) = (sum(|w| w.requests), sum(|w| w.repeats));
    let told = tap.doubt().is_none();
    let mut statuses: BTreeMap<u16, u64> = BTreeMap::new();
    tap.windows.iter().flat_map(|w| &w.statuses).for_each(|(status, n)| *statuses.entry(*status).or_default() += n);
    let mut classes: BTreeMap<String, u64> = BTreeMap::new();
    statuses.iter().for_each(|(status, n)| *classes.entry(format!("{}xx", status / 100)).or_default() += n);
    let mut all = Tally::default();
    tap.windows.iter().for_each(|w| all.merge(&w.latency));
    let latency: Sketch = all.take();
    ProxyResult {
        name: tap.name.clone(),
        connects: sum(|w| w.connects),
        requests,
        repeats,
        unknown: sum(|w| w.unknown),
        amplification: ratio(requests, requests.saturating_sub(repeats)).filter(|_| told).and_then(fine),
        retry_share: ratio(repeats, requests).filter(|_| told).and_then(fine),
        peak_requests: most(|w| w.requests).and_then(|most| fine(most as f64 / window.as_secs_f64())),
        classes,
        statuses,
        resets: sum(|w| w.resets),
        unanswered: sum(|w| w.unanswered),
        unreached: sum(|w| w.unreached),
        p50_ms: sketch_ms(&latency, 500),
        p99_ms: sketch_ms(&latency, 990),
        peak_in_flight: most(|w| w.in_flight).unwrap_or(0),
        wave: tap.waves.as_ref().and_then(|waves| waves.all.arrived.as_ref()).map(wave_result),
        windows: tap.windows.iter().map(in_window).collect(),
    }
}

fn in_window(window: &TapWindow) -> ProxyWindow {
    ProxyWindow {
        from_ms: window.start.as_millis(),
        connects: window.connects,
        requests: window.requests,
        repeats: window.repeats,
        unknown: window.unknown,
        statuses: window.statuses.clone(),
        resets: window.resets,
        unanswered: window.unanswered,
        unreached: window.unreached,
        p99_ms: sketch_ms(&window.latency, 990),
        in_flight: window.in_flight,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_told_in_figures_and_what_is_not_known_is_null() {
        let window = |requests, repeats, unknown| TapWindow {
            requests,
            repeats,
            unknown,
            statuses: [(200, 3), (201, 1), (503, 2)].into(),
            latency: [10, 20].map(Span::from_millis).into_iter().collect(),
            in_flight: repeats,
            ..TapWindow::default()
        };
        let tap = |unknown| TapRecord {
            name: "provider".into(),
            windows: vec![window(100, 0, 0), window(300, 200, unknown)],
            ..TapRecord::default()
        };
        let record = |unknown| RunRecord { window: Span::from_secs(1), taps: vec![tap(unknown)], ..RunRecord::default() };
        let told = proxies(&record(0)).remove(0);
        assert_eq!((told.amplification, told.retry_share, told.peak_requests), (Some(2.0), Some(0.5), Some(300.0)));
        assert_eq!((told.classes["2xx"], told.classes["5xx"], told.statuses[&201]), (8, 4, 2));
        assert_eq!((told.peak_in_flight, told.windows.len()), (200, 2));
        let unclear = proxies(&record(100)).remove(0);
        assert_eq!((unclear.amplification, unclear.retry_share, unclear.unknown), (None, None, 100));
    }
}
