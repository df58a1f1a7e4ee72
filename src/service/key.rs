//! Which random stream a request draws from.

use crate::rng::Key;
use std::num::NonZeroU64;

/// What names a request to the service, whichever engine brings it: so that a simulated request and the same
/// request on a real socket are served for the same time (invariant 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKey {
    /// An attempt of ours, named by its headers.
    Ours {
        /// The idempotency key of the operation. No two fleets share one, so the fleet need not be named, and
        /// the service need not know the plan's fleets.
        idempotency_key: u128,
        /// The attempt of the operation, from 1.
        attempt: u32,
    },
    /// A request of somebody else's.
    Foreign {
        /// The number of its connection.
        connection: u32,
        /// The number of the request on it.
        request: u64,
    },
}

impl RequestKey {
    /// The key of its draws in a run with this seed.
    pub fn key(self, seed: u64) -> Key {
        match self {
            Self::Ours { idempotency_key, attempt } => {
                let folded = (idempotency_key >> 64) as u64 ^ idempotency_key as u64;
                Key { seed, fleet: 0, client: 0, operation: folded, attempt }
            }
            // No fleet has this number: foreign draws meet none of ours.
            Self::Foreign { connection, request } => {
                Key { seed, fleet: u32::MAX, client: connection, operation: request, attempt: 0 }
            }
        }
    }
}

/// What names what is to be done once: an idempotency key, folded to 64 bits. Two keys of a run meet in one only by chance, at 2^-64 a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(NonZeroU64);

impl KeyHash {
    /// Of an idempotency key as a number, see [`idempotency_key`].
    pub fn new(key: u128) -> Self {
        let folded = (key >> 64) as u64 ^ key as u64;
        Self(NonZeroU64::new(folded).unwrap_or(NonZeroU64::MAX))
    }

    /// As a number.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

/// A name as a number (FNV-1a, 64 bits): of a fleet, a destination, a client's API key. Never 0, which stands for no name.
pub fn name_hash(name: &[u8]) -> u64 {
    fnv(FNV_BASIS, name) | 1
}

/// A fleet, and through it its clients, as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetKey {
    fleet: u64,
    /// The hash of `fleet/`, to go on from.
    prefix: u64,
}

impl FleetKey {
    /// The fleet of a name.
    pub fn new(name: &str) -> Self {
        let prefix = fnv(fnv(FNV_BASIS, name.as_bytes()), b"/");
        Self { fleet: name_hash(name.as_bytes()), prefix }
    }

    /// What its requests say that their fleet is.
    pub const fn fleet(self) -> u64 {
        self.fleet
    }

    /// What those of one of its clients say that their client is: what [`name_hash`] makes of `fleet/number`.
    pub fn client(self, number: u32) -> u64 {
        let mut digits = [0u8; 10];
        let (mut at, mut left) = (digits.len(), number);
        loop {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        fnv(self.prefix, &digits[at..]) | 1
    }
}

const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv(from: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(from, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// An idempotency key as a number: its last 32 hexadecimal digits, with or without the dashes of a UUID and the quotes of
/// a structured field, so that what stands before them, which tells one run's keys from another's, draws nothing;
/// anything else by its hash (FNV-1a, 128 bits).
pub fn idempotency_key(value: &[u8]) -> u128 {
    let (mut digits, mut key, mut hash) = (0usize, 0u128, 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128);
    let mut is_number = true;
    for &byte in value {
        hash = (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        match (byte as char).to_digit(16) {
            Some(digit) => {
                key = key << 4 | u128::from(digit);
                digits += 1;
            }
            None => is_number &= byte == b'-' || byte == b'"',
        }
    }
    if is_number && digits >= 32 { key } else { hash }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_numbers_or_hashes() {
        let key = |text: &str| idempotency_key(text.as_bytes());
        let number = 42 << 96 | 7;
        for text in [
            "0000002a000000000000000000000007",
            "\"0000002A000000000000000000000007\"",
            "0000002a-0000-0000-0000-000000000007",
            "0193a2b3c4d5-0000002a000000000000000000000007",
        ] {
            assert_eq!(key(text), number, "{text}");
        }
        assert_ne!(key("0193a2b3c4d5/0000002a000000000000000000000007"), number);
        assert_ne!(key("a"), key("b"));
        assert_ne!(key(""), 0);
        assert!(key("2a") > 42, "too short for a number of ours");
    }

    #[test]
    fn a_client_is_the_hash_of_its_name() {
        let fleet = FleetKey::new("relay");
        assert_eq!(fleet.fleet(), name_hash(b"relay"));
        for number in [0, 7, 10, 4_294_967_295u32] {
            assert_eq!(fleet.client(number), name_hash(format!("relay/{number}").as_bytes()), "{number}");
        }
    }

    #[test]
    fn every_part_of_a_name_counts() {
        let ours = |idempotency_key, attempt| RequestKey::Ours { idempotency_key, attempt }.key(1);
        let base = ours(7 << 64 | 9, 1);
        for other in [ours(7 << 64 | 8, 1), ours(6 << 64 | 9, 1), ours(7 << 64 | 9, 2)] {
            assert_ne!(base, other);
        }
        let foreign = |connection, request| RequestKey::Foreign { connection, request }.key(1);
        assert_ne!(foreign(1, 2), foreign(2, 1));
        assert_ne!(foreign(1, 2), ours(2, 1));
    }
}
