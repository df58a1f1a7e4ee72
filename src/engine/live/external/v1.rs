//! The `/v1` of a `stormwake proxy`: what it says of a proxy, of a fault and of a lease. Fields that we do not know are passed over; those that
//! we need must be there, and be what they should.

use crate::fault::external::{Harm, Held, HeldHarm};
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize)]
struct ProxyBody {
    name: String,
    listen: String,
    enabled: bool,
    protocol: String,
    toxics: Map<String, Value>,
    faults: Map<String, Value>,
}

#[derive(Deserialize)]
struct FaultBody {
    name: String,
    step: Value,
    touched: u64,
}

#[derive(Deserialize)]
struct LeaseBody {
    id: String,
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
    let toxic = |(name, _): (String, Value)| HeldHarm { name, kind: "toxic".into(), harm: None, touched: None };
    let faults = read.faults.into_iter().map(|(_, fault)| serde_json::from_value(fault).map(held));
    let faults: Vec<HeldHarm> =
        faults.collect::<Result<_, _>>().map_err(|error| format!("its answer holds no fault: {error}"))?;
    let harms = read.toxics.into_iter().map(toxic).chain(faults).collect();
    Ok(Held { enabled: read.enabled, listen: read.listen, of_bytes: read.protocol == "tcp", harms })
}

/// Reads a fault that a server says it has, or had.
///
/// # Errors
/// What is wrong with it, in words.
pub(super) fn fault(body: &[u8]) -> Result<HeldHarm, String> {
    serde_json::from_slice(body).map(held).map_err(|error| format!("its answer is no fault: {error}"))
}

/// Reads the name of a lease.
///
/// # Errors
/// What is wrong with it, in words.
pub(super) fn lease(body: &[u8]) -> Result<String, String> {
    let lease: Result<LeaseBody, _> = serde_json::from_slice(body);
    let id = lease.map(|lease| lease.id).map_err(|error| format!("its answer is no lease: {error}"))?;
    let sound = !id.is_empty() && id.len() <= 200 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if sound { Ok(id) } else { Err("its answer names no lease".into()) }
}

fn held(body: FaultBody) -> HeldHarm {
    let kind = match &body.step["fault"] {
        Value::Object(entries) => entries.keys().next().cloned().unwrap_or_default(),
        word => word.as_str().unwrap_or("fault").to_string(),
    };
    HeldHarm { name: body.name, kind, harm: Some(Harm::Fault(body.step.to_string())), touched: Some(body.touched) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read_and_what_is_no_answer_is_said_to_be_none() {
        let text = r#"{"name":"b","listen":"127.0.0.1:1","upstream":"u","protocol":"tcp","enabled":true,"counters":{},"new":1,
            "toxics":{"slow":{"touched":0}},
            "faults":{"out":{"name":"out","proxy":"b","step":{"fault":{"status":{"code":"503"}}},"touched":4},
                      "off":{"name":"off","step":{"fault":"hang"},"touched":0}}}"#;
        let held = proxy(text.as_bytes(), "b").unwrap();
        let told: Vec<_> = held.harms.iter().map(|harm| (harm.name.as_str(), harm.kind.as_str(), harm.touched)).collect();
        assert_eq!(told, [("slow", "toxic", None), ("out", "status", Some(4)), ("off", "hang", Some(0))]);
        assert_eq!(held.harms[1].harm, Some(Harm::Fault(r#"{"fault":{"status":{"code":"503"}}}"#.into())));
        assert!(held.of_bytes && held.enabled);
        assert!(proxy(text.as_bytes(), "c").unwrap_err().contains("the proxy `b`"));
        assert!(proxy(br#"{"name":"b"}"#, "b").unwrap_err().contains("missing field"));
        assert!(fault(b"[]").unwrap_err().contains("no fault"));
        assert_eq!(lease(br#"{"id":"1a-7","ttl":"5s"}"#), Ok("1a-7".into()));
        assert!(lease(br#"{"id":"a\r\nb"}"#).is_err() && lease(b"{}").is_err());
    }
}
