//! Figures of a run sent to a collector of OpenTelemetry, every few seconds and at the end.
//!
//! A thread of its own sends them: a collector that is slow or down holds up nobody. What fails is counted, and sent again with the next,
//! since each holds everything so far. Where a collector may be is what the plan's `allow` and `--approve` say of any host that is dialled.

use super::clock::{Clock, LiveClock};
use super::guard::Allowed;
use super::webhook::{Webhook, WebhookError};
use crate::config::{At, Entry, Place, Table};
use crate::plan::{Call, HeaderValue, StatusSet};
use crate::time::Span;
use bytes::Bytes;
use std::thread::JoinHandle;
use tokio::sync::oneshot;
use tracing::{debug, warn};

/// How often they are sent.
const EVERY: Span = Span::from_secs(5);
/// How long a collector may take.
const WITHIN: Span = Span::from_secs(2);
/// Where a collector takes figures (OTLP/HTTP).
const PATH: &str = "/v1/metrics";

/// Sends the figures until it is ended.
pub struct Pusher {
    end: oneshot::Sender<()>,
    thread: JoinHandle<Sent>,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// How often they were taken.
    pub taken: u64,
    /// How often they were not.
    pub failed: u64,
    /// Why, the first time.
    pub why: Option<String>,
}

/// A collector at a URL, with headers as `OTEL_EXPORTER_OTLP_HEADERS` has them: `name=value,name=value`, percent-encoded.
///
/// # Errors
/// A host that must not be dialled, TLS that cannot be spoken, a header that cannot be sent.
pub fn collector(url: &str, headers: &str, allowed: &Allowed) -> Result<Webhook, WebhookError> {
    let at = |value: String| At { value, place: Place::default() };
    let entry = |name: String, value| Entry { name, place: Place::default(), value: HeaderValue::Plain(value) };
    let given = headers.split(',').filter_map(|pair| pair.split_once('='));
    let mut all = vec![entry("content-type".into(), "application/x-protobuf".into())];
    all.extend(given.map(|(name, value)| entry(name.trim().to_string(), decoded(value.trim()))));
    let base = url.trim_end_matches('/');
    let url = if base.ends_with(PATH) { base.to_string() } else { format!("{base}{PATH}") };
    let (body, expect) = (String::new(), vec![StatusSet::Class(2)]);
    Webhook::new(&Call { url: at(url), method: at("POST".into()), headers: Table(all), body, expect }, allowed, None)
}

/// Without its percent signs.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok()).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let (byte, left) = match code {
            Some(byte) if first == b'%' => (byte, &after[2..]),
            _ => (first, after),
        };
        bytes.push(byte);
        rest = left;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Nanoseconds since the Unix epoch.
pub fn unix_nanos() -> u64 {
    u64::try_from(LiveClock::waiting().wall_millis()).unwrap_or_default().saturating_mul(1_000_000)
}

impl Pusher {
    /// Begins to send what `body` makes, each time anew.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(collector: Webhook, body: impl Fn() -> Vec<u8> + Send + 'static) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (end, ended) = oneshot::channel();
        let work = move || {
            let sent = runtime.block_on(push(&collector, &body, ended));
            // A resolver that hangs must not hold the process up.
            runtime.shutdown_background();
            sent
        };
        let thread = std::thread::Builder::new().name("otlp".into()).spawn(work)?;
        Ok(Self { end, thread })
    }

    /// Sends them once more, and ends. Takes 4 s at most.
    pub fn end(self) -> Sent {
        drop(self.end);
        self.thread.join().unwrap_or_default()
    }
}

async fn push(collector: &Webhook, body: &impl Fn() -> Vec<u8>, mut ended: oneshot::Receiver<()>) -> Sent {
    let mut sent = Sent::default();
    loop {
        let over = tokio::time::timeout(EVERY.to_std(), &mut ended).await.is_ok();
        let answer = tokio::time::timeout(WITHIN.to_std(), collector.send_body(Bytes::from(body()))).await;
        match answer.unwrap_or_else(|_| Err(format!("no answer within {WITHIN}"))) {
            Ok(_) => {
                sent.taken += 1;
                debug!(collector = %collector.name(), "the figures were sent");
            }
            Err(why) => {
                if sent.why.is_none() {
                    warn!(collector = %collector.name(), ?why, "the figures were not taken");
                }
                sent.failed += 1;
                sent.why.get_or_insert(why);
            }
        }
        if over {
            return sent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exposition::{Buckets, Family, Kind, Sample, Value};
    use crate::report::otlp::{Taken, request};
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
    use opentelemetry_proto::tonic::metrics::v1::metric::Data;
    use prost::Message;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    fn families() -> Vec<Family> {
        let of = |value| Sample { labels: vec![("fleet", "app".into())], value };
        let buckets = Buckets { bounds: &[0.1, 1.0], counts: vec![1, 2, 3], sum: 9.5 };
        vec![
            Family::new("stormwake_attempts_total", Kind::Counter, "Attempts.", vec![of(Value::Count(7))]),
            Family::new("stormwake_backlog", Kind::Gauge, "Backlog.", vec![of(Value::Level(2.5))]),
            Family::new("stormwake_operation_latency_seconds", Kind::Histogram, "Latency.", vec![of(Value::Buckets(buckets))]),
        ]
    }

    /// One request, its head in lower case and its body, answered with this status.
    fn hear(listener: &TcpListener, status: &str) -> (String, Vec<u8>) {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
        let mut all = Vec::new();
        let mut part = [0; 4096];
        loop {
            let n = stream.read(&mut part).unwrap();
            assert!(n > 0, "the request breaks off");
            all.extend_from_slice(&part[..n]);
            let Some(end) = all.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let head = String::from_utf8_lossy(&all[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok()).unwrap();
            if all.len() >= end + 4 + length {
                write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").unwrap();
                return (head, all.split_off(end + 4));
            }
        }
    }

    #[test]
    fn a_collector_gets_every_family_and_the_headers() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let to = collector(&url, "authorization=Bearer%20x, x-key=a=b", &Allowed::default()).unwrap();
        let heard = std::thread::spawn(move || hear(&listener, "200 OK"));
        let pusher = Pusher::start(to, || request(&families(), Taken { began: 5, at: 9 })).unwrap();
        assert_eq!(pusher.end(), Sent { taken: 1, failed: 0, why: None });
        let (head, body) = heard.join().unwrap();
        for line in ["post /v1/metrics http/1.1", "content-type: application/x-protobuf", "authorization: bearer x", "x-key: a=b"]
        {
            assert!(head.contains(line), "{line}: {head}");
        }
        let read = ExportMetricsServiceRequest::decode(&body[..]).unwrap();
        let metrics = &read.resource_metrics[0].scope_metrics[0].metrics;
        let names: Vec<(&str, &str)> = metrics.iter().map(|metric| (metric.name.as_str(), metric.unit.as_str())).collect();
        let wanted = [("stormwake_attempts", "1"), ("stormwake_backlog", "1"), ("stormwake_operation_latency_seconds", "s")];
        assert_eq!(names, wanted);
        let Some(Data::Sum(sum)) = &metrics[0].data else { panic!("{:?}", metrics[0]) };
        assert!(sum.is_monotonic && sum.aggregation_temporality == 2, "cumulative");
        let point = &sum.data_points[0];
        assert_eq!((point.start_time_unix_nano, point.time_unix_nano, point.attributes[0].key.as_str()), (5, 9, "fleet"));
        let Some(Data::Histogram(histogram)) = &metrics[2].data else { panic!("{:?}", metrics[2]) };
        let point = &histogram.data_points[0];
        assert_eq!((point.count, point.sum, &point.bucket_counts), (6, Some(9.5), &vec![1, 2, 3]));
        assert_eq!(point.explicit_bounds, [0.1, 1.0]);
    }

    #[test]
    fn a_collector_that_is_down_or_says_no_is_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1/metrics", listener.local_addr().unwrap());
        let push = |url: &str| Pusher::start(collector(url, "", &Allowed::default()).unwrap(), Vec::new).unwrap().end();
        let heard = std::thread::spawn(move || hear(&listener, "503 No"));
        let sent = push(&url);
        assert!(sent.failed == 1 && sent.why.unwrap().contains("503"));
        assert!(heard.join().unwrap().0.starts_with("post /v1/metrics http"), "a path that is whole is taken as it is");
        let sent = push(&url);
        assert!((sent.taken, sent.failed) == (0, 1) && sent.why.is_some());
    }

    #[test]
    fn a_collector_elsewhere_needs_the_plan_and_the_user() {
        let allowed = |approved| Allowed::new(["192.0.2.7".to_string()], approved);
        assert!(collector("http://192.0.2.7:4318", "", &Allowed::default()).err().unwrap().to_string().starts_with("refused"));
        assert!(collector("http://192.0.2.7:4318", "", &allowed(false)).is_err());
        assert!(collector("http://192.0.2.7:4318", "", &allowed(true)).is_ok());
        assert!(collector("http://127.0.0.1:4318", "x\ny=z", &Allowed::default()).is_err(), "a header that cannot be sent");
    }
}
