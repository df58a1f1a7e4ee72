//! What a request is called, and what it says of itself: by its headers, else by its connection.

use crate::priority::Priority;
use crate::service::key::{idempotency_key, name_hash};
use crate::service::{KeyHash, Metadata, RequestKey};
use crate::time::{Span, Timestamp};
use hyper::HeaderMap;
use std::net::IpAddr;

/// Where a request comes from, and when.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// The number of its connection.
    pub connection: u32,
    /// Its number on the connection.
    pub request: u64,
    /// The other end of it.
    pub peer: IpAddr,
    /// The service's time.
    pub now: Timestamp,
    /// Milliseconds since 1970 UTC, at the same moment.
    pub wall_millis: i64,
}

/// A request as the service sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its name, which decides what it draws.
    pub key: RequestKey,
    /// Which of several services it is for; 0 where it names none.
    pub destination: u64,
    /// What it says of itself.
    pub of: Metadata,
}

/// Reads what a request says of itself. What cannot be read says nothing.
pub fn named(headers: &HeaderMap, caller: Caller) -> Named {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let hash = |name: &str| headers.get(name).map_or(0, |value| name_hash(value.as_bytes().trim_ascii()));
    let idempotency = headers.get("idempotency-key").map(|value| idempotency_key(value.as_bytes().trim_ascii()));
    let attempt = text("x-stormwake-attempt").and_then(|attempt| attempt.parse().ok());
    let Caller { connection, request, .. } = caller;
    let key = match (idempotency, attempt) {
        (Some(idempotency_key), Some(attempt)) => RequestKey::Ours { idempotency_key, attempt },
        _ => RequestKey::Foreign { connection, request },
    };
    let of = Metadata {
        idempotency_key: idempotency.map(KeyHash::new),
        enqueued: enqueued(text("x-stormwake-enqueued-at"), caller),
        client: client(headers, caller.peer),
        fleet: hash("x-stormwake-fleet"),
        attempt: attempt.unwrap_or(1).max(1),
        priority: text("priority").map_or(Priority::Normal, Priority::of_header),
    };
    Named { key, destination: hash("x-stormwake-destination"), of }
}

/// When its operation was enqueued, by the service's time: as long ago as the two walls say. What was before the service began, or is to come,
/// is cut to that.
fn enqueued(millis: Option<&str>, caller: Caller) -> Timestamp {
    let Some(at) = millis.and_then(|text| text.parse::<i64>().ok()) else { return caller.now };
    let age = caller.wall_millis.saturating_sub(at).max(0);
    caller.now - Span::from_millis(age.unsigned_abs())
}

/// Whom limits for each client count it to: a client of ours, an API key, credentials, or an address.
fn client(headers: &HeaderMap, peer: IpAddr) -> u64 {
    let said = ["x-stormwake-client", "x-api-key", "authorization"].into_iter().find_map(|name| headers.get(name));
    match (said, peer.to_canonical()) {
        (Some(value), _) => name_hash(value.as_bytes().trim_ascii()),
        (None, IpAddr::V4(addr)) => name_hash(&addr.octets()),
        (None, IpAddr::V6(addr)) => name_hash(&addr.octets()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::key::FleetKey;
    use std::net::Ipv4Addr;

    fn read(headers: &[(&'static str, &'static str)]) -> Named {
        let mut map = HeaderMap::new();
        headers.iter().for_each(|(name, value)| drop(map.insert(*name, value.parse().unwrap())));
        let now = Timestamp::ZERO + Span::from_secs(60);
        named(&map, Caller { connection: 4, request: 9, peer: Ipv4Addr::LOCALHOST.into(), now, wall_millis: 1_000_000 })
    }

    #[test]
    fn our_requests_are_named_by_their_headers_and_others_by_their_connection() {
        let key = |headers: &[(&'static str, &'static str)]| read(headers).key;
        let foreign = RequestKey::Foreign { connection: 4, request: 9 };
        assert_eq!(key(&[]), foreign);
        assert_eq!(key(&[("idempotency-key", "abc")]), foreign, "other clients send that too");
        assert_eq!(key(&[("x-stormwake-attempt", "many"), ("idempotency-key", "abc")]), foreign);
        let named = |id| key(&[("x-stormwake-attempt", "2"), ("idempotency-key", id)]);
        let ours = RequestKey::Ours { idempotency_key: 42 << 96 | 7, attempt: 2 };
        assert_eq!(named("0000002a-0000-0000-0000-000000000007"), ours);
        assert_eq!(named("\"0000002A000000000000000000000007\""), ours);
        assert_ne!(named("a"), named("b"));
    }

    #[test]
    fn what_a_request_says_of_itself_is_read_and_the_rest_is_what_says_nothing() {
        let nothing = read(&[]);
        let now = Timestamp::ZERO + Span::from_secs(60);
        let client = nothing.of.client;
        assert_eq!((nothing.of, nothing.destination), (Metadata { client, ..Metadata::nothing(now) }, 0));
        assert_ne!(client, 0, "it has an address");

        let said = read(&[
            ("idempotency-key", "0193a2b3c4d5-0000002a000000000000000000000007"),
            ("x-stormwake-attempt", "3"),
            ("x-stormwake-enqueued-at", "999500"),
            ("x-stormwake-fleet", "relay"),
            ("x-stormwake-client", "relay/17"),
            ("x-stormwake-destination", "big"),
            ("priority", "u=7"),
            ("x-api-key", "one for all"),
        ]);
        let relay = FleetKey::new("relay");
        let of = Metadata {
            idempotency_key: Some(KeyHash::new(42 << 96 | 7)),
            enqueued: now - Span::from_millis(500),
            client: relay.client(17),
            fleet: relay.fleet(),
            attempt: 3,
            priority: Priority::BestEffort,
        };
        assert_eq!((said.of, said.destination), (of, name_hash(b"big")));
    }

    #[test]
    fn foreign_clients_are_told_apart_and_hostile_values_are_cut() {
        let client = |headers: &[(&'static str, &'static str)]| read(headers).of.client;
        assert_ne!(client(&[("x-api-key", "a")]), client(&[("x-api-key", "b")]));
        assert_eq!(client(&[("x-api-key", "a"), ("authorization", "x")]), client(&[("x-api-key", "a")]));
        assert_ne!(client(&[("authorization", "x")]), client(&[]));
        let enqueued = |text| read(&[("x-stormwake-enqueued-at", text)]).of.enqueued;
        let now = Timestamp::ZERO + Span::from_secs(60);
        assert_eq!([enqueued("2000000"), enqueued("soon"), enqueued("")], [now; 3]);
        assert_eq!([enqueued("0"), enqueued("-9223372036854775808")], [Timestamp::ZERO; 2]);
        assert_eq!(read(&[("x-stormwake-attempt", "0")]).of.attempt, 1);
        let key = |text| read(&[("idempotency-key", text)]).of.idempotency_key;
        assert!(key("order 7").is_some() && key("order 7") != key("order 8"));
    }
}
