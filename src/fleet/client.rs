//! What a shard remembers of one client, beside its operations: where it stands in its load, its outbox, its wire.

use super::slab::{List, NONE};
use crate::time::Timestamp;

/// One virtual client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    /// The number of its next operation.
    pub(super) number: u64,
    /// The intended start of that; [`Timestamp::NEVER`] where there is none, or none yet.
    pub(super) next: Timestamp,
    /// Its operations that are ready to be sent.
    pub(super) outbox: List,
    /// The operation on its first wire, or [`NONE`].
    pub(super) on_wire: u32,
    /// How many operations it holds, wherever they are.
    pub(super) held: u32,
    /// Whether the wake-up for its next operation was asked for.
    pub(super) armed: bool,
    /// Whether it stands in line before the ceiling, or waits for its throttle.
    pub(super) in_line: bool,
}

impl Client {
    pub(super) const NEW: Self =
        Self { number: 0, next: Timestamp::NEVER, outbox: List::EMPTY, on_wire: NONE, held: 0, armed: false, in_line: false };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_small() {
        assert!(size_of::<Client>() <= 40, "{}", size_of::<Client>());
    }
}
