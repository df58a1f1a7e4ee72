//! Toxiproxy's JSON: what it says of a proxy, and what it is told. Fields that we do not know are passed over; those that we need must be
//! there, and be what they should.

use crate::fault::external::{Harm, Held, HeldHarm};
use crate::fault::{Stream, Toxic, ToxicKind};
use crate::time::Span;
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize)]
struct ProxyBody {
    name: String,
    listen: String,
    enabled: bool,
    toxics: Option<Vec<ToxicBody>>,
}

#[derive(Deserialize)]
struct ToxicBody {
    name: String,
    r#type: String,
    stream: String,
    toxicity: f64,
    #[serde(default)]
    attributes: Map<String, Value>,
}

/// Reads what a server says of the proxy of this name.
///
/// # Errors
/// What is wrong with it, in words.
pub(super) fn proxy(body: &[u8], name: &str) -> Result<Held, String> {
    let read: ProxyBody = serde_json::from_slice(body).map_err(|error| format!("its answer is no proxy: {error}"))?;
    if read.name != name {
        let shown: String = read.name.chars().take(100).collect();
        return Err(format!("it answered with the proxy `{shown}`"));
    }
    let harms = read.toxics.unwrap_or_default().into_iter().map(held).collect();
    Ok(Held { enabled: read.enabled, listen: read.listen, of_bytes: false, harms })
}

/// Reads the toxic that a server says it has now.
///
/// # Errors
/// What is wrong with it, in words.
pub(super) fn toxic(body: &[u8]) -> Result<HeldHarm, String> {
    serde_json::from_slice(body).map(held).map_err(|error| format!("its answer is no toxic: {error}"))
}

fn held(body: ToxicBody) -> HeldHarm {
    let harm = known(&body).map(Harm::Toxic);
    HeldHarm { name: body.name, kind: body.r#type, harm, touched: None }
}

fn known(body: &ToxicBody) -> Option<Toxic> {
    let stream = match body.stream.to_ascii_lowercase().as_str() {
        "upstream" => Stream::Upstream,
        "downstream" => Stream::Downstream,
        _ => return None,
    };
    let number = |key: &str| body.attributes.get(key).and_then(Value::as_u64);
    let millis = |key: &str| number(key).map(Span::from_millis);
    let kind = match body.r#type.as_str() {
        "latency" => ToxicKind::Latency { latency: millis("latency")?, jitter: millis("jitter")? },
        "bandwidth" => ToxicKind::Bandwidth { rate: number("rate")? },
        "slow_close" => ToxicKind::SlowClose { delay: millis("delay")? },
        "timeout" => ToxicKind::Timeout { timeout: millis("timeout")? },
        "reset_peer" => ToxicKind::ResetPeer { timeout: millis("timeout")? },
        "slicer" => ToxicKind::Slicer {
            average_size: number("average_size")?,
            size_variation: number("size_variation")?,
            delay: number("delay").map(Span::from_micros)?,
        },
        "limit_data" => ToxicKind::LimitData { bytes: number("bytes")? },
        "noop" => ToxicKind::Noop,
        _ => return None,
    };
    Some(Toxic { stream, toxicity: body.toxicity, kind })
}

/// What adds a toxic.
pub(super) fn add(name: &str, toxic: &Toxic) -> Value {
    let Toxic { stream, toxicity, kind } = toxic;
    let stream = match stream {
        Stream::Upstream => "upstream",
        Stream::Downstream => "downstream",
    };
    let (kind, attributes) = match kind {
        ToxicKind::Latency { latency, jitter } => {
            ("latency", json!({ "latency": latency.as_millis(), "jitter": jitter.as_millis() }))
        }
        ToxicKind::Bandwidth { rate } => ("bandwidth", json!({ "rate": rate })),
        ToxicKind::SlowClose { delay } => ("slow_close", json!({ "delay": delay.as_millis() })),
        ToxicKind::Timeout { timeout } => ("timeout", json!({ "timeout": timeout.as_millis() })),
        ToxicKind::ResetPeer { timeout } => ("reset_peer", json!({ "timeout": timeout.as_millis() })),
        ToxicKind::Slicer { average_size, size_variation, delay } => {
            let delay = delay.as_micros();
            ("slicer", json!({ "average_size": average_size, "size_variation": size_variation, "delay": delay }))
        }
        ToxicKind::LimitData { bytes } => ("limit_data", json!({ "bytes": bytes })),
        ToxicKind::Noop => ("noop", json!({})),
    };
    json!({ "name": name, "type": kind, "stream": stream, "toxicity": toxicity, "attributes": attributes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_what_is_read() {
        let (ms, some) = (Span::from_millis, Span::from_millis(40));
        for kind in [
            ToxicKind::Latency { latency: ms(800), jitter: ms(3) },
            ToxicKind::Bandwidth { rate: 9 },
            ToxicKind::SlowClose { delay: some },
            ToxicKind::Timeout { timeout: Span::ZERO },
            ToxicKind::ResetPeer { timeout: some },
            ToxicKind::Slicer { average_size: 10, size_variation: 3, delay: Span::from_micros(7) },
            ToxicKind::LimitData { bytes: 1 << 40 },
            ToxicKind::Noop,
        ] {
            for stream in [Stream::Upstream, Stream::Downstream] {
                let ours = Toxic { stream, toxicity: 0.25, kind: kind.clone() };
                let read = toxic(add("x", &ours).to_string().as_bytes()).unwrap();
                assert_eq!((read.name.as_str(), read.harm), ("x", Some(Harm::Toxic(ours))));
            }
        }
    }

    /// As a real server answers, with what other versions add.
    #[test]
    fn a_real_answer_is_read_and_what_is_unknown_passed_over() {
        let text = r#"{"name":"b","listen":"127.0.0.1:21002","upstream":"127.0.0.1:19080","enabled":true,"Logger":{},"toxics":[
            {"attributes":{"latency":7,"jitter":0},"name":"up","type":"latency","stream":"UPSTREAM","toxicity":0.25},
            {"attributes":{"rate":-3},"name":"bw","type":"bandwidth","stream":"downstream","toxicity":7},
            {"name":"new","type":"teleport","stream":"downstream","toxicity":1,"since":2030}]}"#;
        let held = proxy(text.as_bytes(), "b").unwrap();
        assert_eq!((held.enabled, held.listen.as_str()), (true, "127.0.0.1:21002"));
        let known: Vec<_> = held.harms.iter().map(|toxic| (toxic.name.as_str(), toxic.harm.is_some())).collect();
        assert_eq!(known, [("up", true), ("bw", false), ("new", false)]);
        let empty = r#"{"name":"b","listen":"l","upstream":"u","enabled":false,"toxics":null}"#;
        assert_eq!(proxy(empty.as_bytes(), "b").unwrap().harms, []);
    }

    #[test]
    fn what_is_no_answer_is_said_to_be_none() {
        for (text, words) in [
            ("", "no proxy"),
            ("[]", "no proxy"),
            (r#"{"name":"b"}"#, "missing field"),
            (r#"{"name":"b","listen":"l","enabled":"yes","toxics":[]}"#, "invalid type"),
            (r#"{"name":"c","listen":"l","enabled":true,"toxics":[]}"#, "the proxy `c`"),
        ] {
            let problem = proxy(text.as_bytes(), "b").unwrap_err();
            assert!(problem.contains(words), "{problem}");
        }
    }
}
