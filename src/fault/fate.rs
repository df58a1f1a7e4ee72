//! The fate of a request: who it is, the dice it rolls, what faults do to it.

use super::{CertificateKind, Stream};
use crate::policy::hint::Said;
use crate::rng::{self, Key, Purpose};
use crate::time::{Share, Span};

/// Where traffic comes from, as far as a fault's scope can name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The fleet's number in the plan.
    pub fleet: u16,
    /// The region's number in the fleet; 0 where the fleet has none.
    pub region: u16,
}

impl From<u16> for Origin {
    /// A fleet without regions.
    fn from(fleet: u16) -> Self {
        Self { fleet, region: 0 }
    }
}

/// A request, as far as a fault's decision can depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Where it comes from.
    pub origin: Origin,
    /// Where it goes, as [`destination_key`] says; 0 where nobody says.
    pub destination: u64,
    key: Key,
}

impl Request {
    /// A request of ours: its operation is known by the idempotency key that it carries, and that key is drawn from
    /// (seed, fleet, client, operation). So its dice do not depend on connections, shards or the order of events.
    pub fn ours(origin: impl Into<Origin>, idempotency_key: u128, attempt: u32) -> Self {
        let origin = origin.into();
        let client = (idempotency_key >> 96) as u32 ^ (idempotency_key >> 64) as u32;
        let key = Key { seed: 0, fleet: origin.fleet.into(), client, operation: idempotency_key as u64, attempt };
        Self { origin, destination: 0, key }
    }

    /// Somebody else's request: the n-th one on a connection, and the connection's number. Attempts of ours count
    /// from 1, so the two never share dice.
    pub fn foreign(origin: impl Into<Origin>, connection: u32, request: u64) -> Self {
        let origin = origin.into();
        let key = Key { seed: 0, fleet: origin.fleet.into(), client: connection, operation: request, attempt: 0 };
        Self { origin, destination: 0, key }
    }

    /// The same, bound for a destination. Its dice are the same.
    pub const fn bound_for(self, destination: u64) -> Self {
        Self { destination, ..self }
    }

    /// The dice that it rolls against the fault of one step.
    pub(super) fn dice(&self, seed: u64, step: usize) -> Dice {
        let mixed = seed ^ (step as u64 + 1).wrapping_mul(0xd1b5_4a32_d192_ed03);
        Dice(Key { seed: mixed, ..self.key })
    }
}

/// What a destination is known by where requests meet faults: its name's hash (FNV-1a, 64 bits), so that a proxy needs no list of names. Of names
/// of up to 64 letters, a plan's few hundred never share one but by malice, and then share their faults. Never 0.
pub fn destination_key(name: &[u8]) -> u64 {
    crate::service::key::name_hash(name)
}

/// The draws of one request against one fault. Asked twice, they say the same.
#[derive(Clone, Copy, Debug)]
pub struct Dice(Key);

impl Dice {
    /// Whether a fault that strikes this share of requests strikes this one. 0% never does, 100% always.
    pub fn strikes(self, share: Share) -> bool {
        self.0.stream(Purpose::FaultShare).unit() < share.get()
    }

    /// The stream that a delay is drawn from.
    pub(super) fn delay(self) -> rng::Stream {
        self.0.stream(Purpose::FaultJitter)
    }

    /// The stream of the n-th draw for one direction of a connection.
    pub(super) fn bytes(self, stream: Stream, n: u64) -> rng::Stream {
        let operation = n << 1 | u64::from(stream == Stream::Downstream);
        Key { operation, ..self.0 }.stream(Purpose::Bytes)
    }

    /// `middle` + U(−spread, +spread), never below zero.
    pub fn around(self, middle: Span, spread: Span) -> Span {
        let widest = spread.scale(2.0 * self.0.stream(Purpose::FaultJitter).unit());
        middle + widest - spread
    }
}

/// What one fault does to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Pass,
    /// Nothing to itself: what it is on its way to has changed.
    Witness,
    /// It is held up on its way to the upstream.
    Delay(Span),
    /// It is answered without the upstream.
    Answer {
        /// The status.
        status: u16,
        /// The hint, if there is one.
        hint: Option<Said>,
        /// The body.
        body: String,
    },
    /// It is never answered, or not before the fault ends.
    Swallow {
        /// Whether it goes on when the fault ends.
        release: bool,
    },
    /// Its connection is closed (FIN).
    Close,
    /// Its connection is reset.
    Reset,
}

/// What the proxy does with one request, over all faults that act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes to the upstream after a delay.
    Forward {
        /// Zero where nothing delays it.
        delay: Span,
    },
    /// It is answered after a delay; the upstream never sees it.
    Answer {
        /// Zero where nothing delays it.
        delay: Span,
        /// The status.
        status: u16,
        /// The hint, if there is one.
        hint: Option<Said>,
        /// The body.
        body: String,
    },
    /// It is never answered; with `release`, it goes on once `step` no longer acts.
    Swallow {
        /// The step that took it.
        step: usize,
        /// Whether it goes on after that step's end.
        release: bool,
    },
    /// Its connection is closed (FIN) after a delay.
    Close {
        /// Zero where nothing delays it.
        delay: Span,
    },
    /// Its connection is reset after a delay.
    Reset {
        /// Zero where nothing delays it.
        delay: Span,
    },
}

/// A fate, and the steps that had a hand in it, in the order of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What happens.
    pub fate: Fate,
    /// The indexes of the steps that touched the request.
    pub touched: Vec<usize>,
}

/// What a fault does to a live connection as it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strike {
    /// The connection is closed (FIN).
    Close,
    /// The connection is reset.
    Reset,
    /// The request in flight is swallowed, and its answer with it.
    Swallow {
        /// Whether it goes on when the fault ends.
        release: bool,
    },
}

/// What becomes of a TLS handshake that a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// It goes on with a bad certificate.
    Show(CertificateKind),
    /// It is never answered, or not before the fault ends.
    Hold {
        /// Whether it goes on when the fault ends.
        release: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn struck(share: f64, step: usize) -> Vec<bool> {
        let share = Share::new(share).unwrap();
        (0..20_000).map(|n| Request::ours(0, n << 64 | n, 1).dice(7, step).strikes(share)).collect()
    }

    #[test]
    fn a_share_strikes_its_share_and_the_ends_are_exact() {
        assert!(struck(0.0, 0).iter().all(|s| !s));
        assert!(struck(1.0, 0).iter().all(|s| *s));
        let third = struck(0.3, 0).iter().filter(|s| **s).count();
        assert!((5_750..6_250).contains(&third), "{third}");
    }

    #[test]
    fn two_faults_and_two_attempts_do_not_share_dice() {
        let both = struck(0.5, 0).iter().zip(struck(0.5, 1)).filter(|(a, b)| **a && *b).count();
        assert!((4_700..5_300).contains(&both), "{both} of 20000 are struck by both; 5000 if independent");
        let half = Share::new(0.5).unwrap();
        let differ = (0..20_000u128)
            .filter(|&n| {
                let strikes = |attempt| Request::ours(0, n, attempt).dice(7, 0).strikes(half);
                strikes(1) != strikes(2)
            })
            .count();
        assert!((9_600..10_400).contains(&differ), "{differ}");
    }

    #[test]
    fn foreign_requests_are_told_apart_by_connection_and_number() {
        let half = Share::new(0.5).unwrap();
        let roll = |c, r| Request::foreign(0, c, r).dice(7, 0).strikes(half);
        assert!((0..64).any(|r| roll(0, r) != roll(1, r)));
        assert!((0..64).any(|r| roll(0, r) != roll(0, r + 1)));
        assert!((0..64).all(|r| roll(3, r) == roll(3, r)));
    }

    #[test]
    fn a_draw_around_a_middle_stays_within_and_never_below_zero() {
        let ms = Span::from_millis;
        let draws: Vec<Span> = (0..10_000).map(|n| Request::ours(0, n, 1).dice(7, 0).around(ms(100), ms(20))).collect();
        assert!(draws.iter().all(|d| (ms(80)..=ms(120)).contains(d)));
        let mean = draws.iter().map(|d| d.as_secs_f64()).sum::<f64>() / 10_000.0;
        assert!((mean - 0.1).abs() < 0.0005, "{mean}");
        let low = (0..100).map(|n| Request::ours(0, n, 1).dice(7, 0).around(ms(1), ms(50))).filter(|d| d.is_zero()).count();
        assert!((30..70).contains(&low), "half of the draws lie below zero and are cut: {low}");
    }
}
