//! What the server shows of itself: its counts as JSON, and for Prometheus.

use super::wire::{CallStats, Stats, TargetStats};
use crate::exposition::{Family, Kind, MEDIA_TYPE, Sample, text};
use crate::service::Holding;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use std::collections::BTreeMap;

/// A page of plain text.
pub fn page(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    typed(status, "text/plain", body)
}

/// Something as JSON.
pub fn json(what: &impl Serialize) -> Response<Full<Bytes>> {
    typed(StatusCode::OK, "application/json", serde_json::to_vec(what).expect("numbers and words become JSON"))
}

/// The counts as Prometheus reads them.
pub fn metrics(stats: &TargetStats, holding: &[(String, Holding)]) -> Response<Full<Bytes>> {
    typed(StatusCode::OK, MEDIA_TYPE, exposition(stats, holding))
}

fn typed(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn exposition(stats: &TargetStats, holding: &[(String, Holding)]) -> String {
    let all = families(&stats.front, holding).into_iter();
    let all: Vec<Family> = all.chain(of_services(&stats.services, holding)).chain(of_calls(&stats.calls)).collect();
    text(&all)
}

fn family(name: &str, kind: Kind, help: &'static str, samples: Vec<Sample>) -> Family {
    Family::new(format!("stormwake_target_{name}"), kind, help, samples)
}

/// What each of several services counted.
fn of_services(services: &BTreeMap<String, Stats>, holding: &[(String, Holding)]) -> Vec<Family> {
    let label = |name: &String| vec![("service", name.clone())];
    let of = |value: fn(&Stats) -> u64| -> Vec<Sample> {
        services.iter().map(|(name, stats)| Sample::count(label(name), value(stats))).collect()
    };
    let refused = |stats: &Stats| stats.refused().iter().map(|(_, count)| count).sum();
    let holds = |value: fn(&Holding) -> f64| -> Vec<Sample> {
        // One service alone has no name.
        let named = holding.iter().filter(|_| !services.is_empty());
        named.map(|(name, holding)| Sample::level(label(name), value(holding))).collect()
    };
    vec![
        family("service_requests_total", Kind::Counter, "Requests that came, by service.", of(|s| s.arrived)),
        family("service_served_total", Kind::Counter, "Requests served to the end, by service.", of(|s| s.served)),
        family("service_refused_total", Kind::Counter, "Requests refused, dropped or lost, by service.", of(refused)),
        family("service_queued", Kind::Gauge, "Requests that wait, by service.", of(|s| s.queued)),
        family("service_in_service", Kind::Gauge, "Requests in service, by service.", of(|s| s.in_service)),
        family(
            "service_capacity_ratio",
            Kind::Gauge,
            "The capacity by now as a share of what the plan gives, by service.",
            holds(|h| h.capacity),
        ),
        family("service_down", Kind::Gauge, "1 while it is down for a restart, by service.", holds(|h| f64::from(h.is_down))),
    ]
}

/// What came of the calls between services.
fn of_calls(calls: &[CallStats]) -> Vec<Family> {
    let of = |value: fn(&CallStats) -> u64| -> Vec<Sample> {
        let label = |call: &CallStats| vec![("from", call.from.clone()), ("to", call.to.clone())];
        calls.iter().map(|call| Sample::count(label(call), value(call))).collect()
    };
    vec![
        family("calls_total", Kind::Counter, "Calls of another service.", of(|c| c.calls)),
        family("call_attempts_total", Kind::Counter, "Attempts of calls.", of(|c| c.attempts)),
        family("calls_failed_total", Kind::Counter, "Calls that were given up by their policy.", of(|c| c.failed)),
    ]
}

fn families(s: &Stats, holding: &[(String, Holding)]) -> Vec<Family> {
    let front = holding.first().map(|(_, holding)| holding);
    let one = |value: f64| vec![Sample::level(Vec::new(), value)];
    let count = |value: u64| vec![Sample::count(Vec::new(), value)];
    let by = |label: &'static str, values: &[(&str, f64)]| -> Vec<Sample> {
        values.iter().map(|(word, value)| Sample::level(vec![(label, (*word).into())], *value)).collect()
    };
    let refused: Vec<(&str, f64)> = s.refused().iter().map(|(cause, count)| (*cause, *count as f64)).collect();
    let work = [("useful", s.useful_seconds), ("wasted", s.wasted_seconds), ("refusing", s.refusing_seconds)];
    let duplicates = [("executed", s.duplicates_executed as f64), ("suppressed", s.duplicates_suppressed as f64)];
    let changes = holding.iter().map(|(_, of)| of.changes).sum();
    let counter = |name, help, samples| family(name, Kind::Counter, help, samples);
    let gauge = |name, help, samples| family(name, Kind::Gauge, help, samples);
    vec![
        counter("requests_total", "Requests that came.", count(s.arrived)),
        counter("served_total", "Requests served to the end, for clients there or gone.", count(s.served)),
        counter("served_for_nobody_total", "Of them, those whose client had gone.", count(s.served_for_nobody)),
        counter("refused_total", "Requests refused, dropped or lost, by cause.", by("cause", &refused)),
        counter("cancelled_total", "Requests whose client went before the answer.", count(s.cancelled)),
        counter("given_up_total", "Of them, those whose work was given up.", count(s.given_up)),
        counter(
            "duplicates_total",
            "Repeated operations, served again or answered from what was there.",
            by("outcome", &duplicates),
        ),
        counter("work_seconds_total", "Service, by what it was for.", by("kind", &work)),
        counter("accept_errors_total", "Connections that could not be accepted at once.", count(s.accept_errors)),
        counter("changes_total", "Changes made to the service while it ran.", count(changes)),
        gauge("queued", "Requests that wait.", count(s.queued)),
        gauge("in_service", "Requests in service.", count(s.in_service)),
        gauge("connections", "Open connections.", count(s.connections)),
        gauge(
            "capacity_ratio",
            "The capacity by now as a share of what the plan gives.",
            one(front.map_or(1.0, |of| of.capacity)),
        ),
        gauge("down", "1 while the service is down for a restart.", one(front.map_or(0.0, |of| f64::from(of.is_down)))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::Counts;
    use crate::service::config::Servers;
    use crate::service::system::CallCounts;
    use crate::service::{Service, ServiceConfig, ServiceTime};
    use crate::time::Span;

    /// Reads the text format as its grammar has it: every sample after its HELP and TYPE, once; names, labels and values of their forms.
    fn parse(text: &str) -> BTreeMap<String, f64> {
        let (mut samples, mut family, mut seen) = (BTreeMap::new(), ("", ""), Vec::new());
        assert!(text.ends_with('\n'));
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, words) = help.split_once(' ').expect("a name and its help");
                assert!(!words.is_empty() && !seen.contains(&name), "{name} comes once");
                seen.push(name);
                family = (name, "");
            } else if let Some(of) = line.strip_prefix("# TYPE ") {
                let (name, kind) = of.split_once(' ').expect("a name and its type");
                assert_eq!(name, family.0, "TYPE follows HELP");
                assert!(["counter", "gauge"].contains(&kind) && (kind == "counter") == name.ends_with("_total"), "{line}");
                family.1 = kind;
            } else {
                let (series, value) = line.rsplit_once(' ').expect("a series and its value");
                let (name, labels) = series.split_once('{').unwrap_or((series, ""));
                assert!(name == family.0 && !family.1.is_empty(), "{line} stands in its family");
                assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
                let label = |part: &str| part.strip_suffix("\"}").and_then(|part| part.split_once("=\"")).is_some();
                assert!(labels.is_empty() || label(labels), "{line}");
                assert_eq!(samples.insert(series.to_string(), value.parse().expect("a number")), None, "{series} comes once");
            }
        }
        samples
    }

    #[test]
    fn prometheus_reads_every_count() {
        let counts = Counts {
            arrived: 12,
            served: 3,
            limited: 2,
            expired: 4,
            queue_full: 1,
            duplicates_executed: 5,
            wasted: Span::from_millis(1_500),
            refusing: Span::from_millis(20),
            queued: 6,
            ..Counts::default()
        };
        let holding =
            Service::new(&ServiceConfig::new(Servers::Limited(1), ServiceTime::Constant(Span::from_millis(1)))).holding();
        let slow = Holding { capacity: 0.2, capacity_goal: 0.1, ..holding.clone() };
        let holding = [("service".to_string(), slow), ("db".to_string(), Holding { is_down: true, ..holding })];
        let other = Counts { arrived: 2, ..Counts::default() };
        let services =
            [("service", counts), ("pay\"1\"", other)].map(|(name, counts)| (name.to_string(), Stats::new(&counts, 0, 0))).into();
        let calls = vec![CallStats::new("service", "pay\"1\"", &CallCounts { calls: 2, attempts: 6, ..CallCounts::default() })];
        let stats = TargetStats { front: Stats::new(&counts, 9, 8), services, calls };
        let read = parse(&exposition(&stats, &holding));
        let get = |series: &str| *read.get(&format!("stormwake_target_{series}")).unwrap_or_else(|| panic!("{series}: {read:?}"));
        assert_eq!((get("requests_total"), get("served_total"), get("queued"), get("connections")), (12.0, 3.0, 6.0, 9.0));
        assert_eq!((get("refused_total{cause=\"limited\"}"), get("refused_total{cause=\"expired\"}")), (2.0, 4.0));
        assert_eq!((get("work_seconds_total{kind=\"wasted\"}"), get("work_seconds_total{kind=\"refusing\"}")), (1.5, 0.02));
        assert_eq!(
            (get("service_requests_total{service=\"service\"}"), get("service_refused_total{service=\"service\"}")),
            (12.0, 7.0)
        );
        assert_eq!(get("service_requests_total{service=\"pay\\\"1\\\"\"}"), 2.0);
        assert_eq!((get("duplicates_total{outcome=\"executed\"}"), get("capacity_ratio")), (5.0, 0.2));
        assert_eq!(["service", "db"].map(|of| get(&format!("service_capacity_ratio{{service=\"{of}\"}}"))), [0.2, 1.0]);
        assert_eq!(["down", "service_down{service=\"db\"}"].map(get), [0.0, 1.0]);
        let alone = exposition(&TargetStats::default(), &holding[..1]);
        assert!(!alone.contains("service_capacity_ratio"), "{alone}");
    }
}
