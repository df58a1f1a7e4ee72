//! What a request is called: by its headers where it is one of ours, else by its connection.

use crate::service::RequestKey;
use hyper::HeaderMap;

/// The name of a request, which decides what it draws.
pub fn request_key(headers: &HeaderMap, connection: u32, request: u64) -> RequestKey {
    ours(headers).unwrap_or(RequestKey::Foreign { connection, request })
}

fn ours(headers: &HeaderMap) -> Option<RequestKey> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let attempt = text("x-stormwake-attempt")?.parse().ok()?;
    Some(RequestKey::Ours { idempotency_key: idempotency_key(text("idempotency-key")?), attempt })
}

/// An idempotency key: 32 hexadecimal digits, with or without the dashes of a UUID and the quotes of a structured
/// header; anything else by its hash.
fn idempotency_key(text: &str) -> u128 {
    let digits: String = text.trim_matches('"').chars().filter(|c| *c != '-').take(33).collect();
    let hex = digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    if hex { u128::from_str_radix(&digits, 16).unwrap_or_else(|_| hash(text)) } else { hash(text) }
}

/// FNV-1a in 128 bits.
fn hash(text: &str) -> u128 {
    let step = |h: u128, b: u8| (h ^ u128::from(b)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    text.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, step)
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
