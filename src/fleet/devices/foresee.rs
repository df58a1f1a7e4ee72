//! What an engine may ask ahead, so that it waits for memory once and not for one thing after the other.

use super::Devices;
use crate::fleet::interface::{Reason, Token};

impl Devices {
    /// Reads the first of what a wake-up is going to read, and gives something of it. With [`Devices::foresee`] and [`Devices::foresee_client`]
    /// this is for an engine that knows many wake-ups ahead: each asked of all of them before the next, the waits for memory
    /// overlap. Nothing changes.
    pub fn foresee_token(&self, token: Token) -> u64 {
        match token.0 {
            Reason::Operation { slot, .. } => self.held.foresee_generation(slot),
            _ => 0,
        }
    }

    /// Reads the operation that a wake-up is for, and says which client has it; none where the wake-up has become pointless.
    pub fn foresee(&self, token: Token) -> Option<u32> {
        match token.0 {
            Reason::Arrival(client) | Reason::Throttle(client) | Reason::Restraint(client) => Some(client),
            Reason::Operation { slot, generation } if self.held.is_current(slot, generation) => Some(self.held.foresee(slot)),
            _ => None,
        }
    }

    /// Reads a client, by its place in the shard, and gives something of it.
    pub fn foresee_client(&self, client: u32) -> u64 {
        self.clients.get(client as usize).map_or(0, |client| client.number)
    }
}
