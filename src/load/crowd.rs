//! What a load shape knows of the fleet that it loads: how many clients, and where each stands among them.

use crate::rng::{Key, Purpose, Stream};

/// The clients of a fleet, over all shards.
#[derive(Clone, Debug)]
pub struct Crowd {
    seed: u64,
    fleet: u16,
    clients: u32,
    stride: u64,
}

impl Crowd {
    /// A fleet of `clients` (at least one).
    pub fn new(seed: u64, fleet: u16, clients: u32) -> Self {
        let clients = clients.max(1);
        Self { seed, fleet, clients, stride: stride(u64::from(clients)) }
    }

    /// How many clients.
    pub fn clients(&self) -> f64 {
        f64::from(self.clients)
    }

    /// The position, in the order of the whole fleet, of a client's operation, where clients take turns. Shards
    /// hold neighbouring clients; a turn by number would load one shard after the other, so the turns stride
    /// through the fleet and any run of neighbours is spread evenly over a round.
    pub fn position(&self, client: u32, number: u64) -> f64 {
        let turn = u64::from(self.turn(client));
        number.saturating_mul(u64::from(self.clients)).saturating_add(turn) as f64
    }

    /// A client's turn in a round, from 0: each client has one of its own, and any run of neighbours is spread evenly.
    pub fn turn(&self, client: u32) -> u32 {
        (u64::from(client) * self.stride % u64::from(self.clients)) as u32
    }

    /// The draws for an operation's start.
    pub fn draws(&self, client: u32, number: u64) -> Stream {
        let key = Key { seed: self.seed, fleet: u32::from(self.fleet), client, operation: number, attempt: 0 };
        key.stream(Purpose::Arrival)
    }
}

/// The stride nearest above the golden section of `n` that shares no factor with it, so that every turn is taken once.
fn stride(n: u64) -> u64 {
    let golden = (n as f64 * 0.618_033_988_749_894_8) as u64;
    (golden.max(1)..).find(|&s| gcd(s, n) == 1).unwrap_or(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_turn_is_taken_once_and_neighbours_are_spread() {
        for clients in [1u32, 2, 3, 4, 6, 7, 10, 97, 1000, 2000, 4096] {
            let crowd = Crowd::new(1, 0, clients);
            let mut turns: Vec<u64> = (0..clients).map(|c| crowd.position(c, 0) as u64).collect();
            let half = &turns[..clients as usize / 2];
            let early = half.iter().filter(|&&t| t < u64::from(clients) / 2).count();
            assert!(early.abs_diff(half.len() / 2) <= 2 + half.len() / 32, "{clients}: {early} of {}", half.len());
            turns.sort_unstable();
            assert!(turns.iter().enumerate().all(|(i, &t)| i as u64 == t), "{clients}");
        }
    }

    #[test]
    fn positions_go_on_from_round_to_round() {
        let crowd = Crowd::new(1, 0, 7);
        assert_eq!(crowd.position(3, 2), crowd.position(3, 0) + 14.0);
        assert!(crowd.position(u32::MAX, u64::MAX).is_finite());
    }
}
