//! Which random stream a request draws from.

use crate::rng::Key;

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

#[cfg(test)]
mod tests {
    use super::*;

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
