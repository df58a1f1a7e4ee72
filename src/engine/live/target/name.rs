//! What a request is called: by its headers where it is one of ours, else by its connection.

use crate::service::RequestKey;
use crate::service::key::idempotency_key;
use hyper::HeaderMap;

/// The name of a request, which decides what it draws.
pub fn request_key(headers: &HeaderMap, connection: u32, request: u64) -> RequestKey {
    ours(headers).unwrap_or(RequestKey::Foreign { connection, request })
}

fn ours(headers: &HeaderMap) -> Option<RequestKey> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let attempt = text("x-stormwake-attempt")?.parse().ok()?;
    Some(RequestKey::Ours { idempotency_key: idempotency_key(text("idempotency-key")?.as_bytes()), attempt })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(headers: &[(&'static str, &'static str)]) -> RequestKey {
        let mut map = HeaderMap::new();
        headers.iter().for_each(|(name, value)| drop(map.insert(*name, value.parse().unwrap())));
        request_key(&map, 4, 9)
    }

    #[test]
    fn our_requests_are_named_by_their_headers_and_others_by_their_connection() {
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
}
