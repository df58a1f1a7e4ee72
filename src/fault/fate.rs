//! The fate of a request: who it is, the dice it rolls, what faults do to it.

use super::answer::Answer;
use super::malformed::Nonsense;
use super::truncate::{CutEnd, Keep};
use super::{CertificateKind, Stream};
use crate::keyword;
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
    /// Its connection, by a number that no other one of its proxy has.
    pub connection: u64,
    /// What names it where it waits for a place: no two requests that are under way at one proxy have the same.
    pub ticket: u64,
    /// Its client, by a number; that of its connection where nobody says.
    pub client: u64,
    /// The matchers that it fits, see [`Matchers::bits`](super::Matchers::bits).
    pub matched: u64,
    key: Key,
}

impl Request {
    /// A request of ours: its operation is known by the idempotency key that it carries, and that key is drawn from
    /// (seed, fleet, client, operation). So its dice do not depend on connections, shards or the order of events.
    pub fn ours(origin: impl Into<Origin>, idempotency_key: u128, attempt: u32) -> Self {
        let origin = origin.into();
        let client = (idempotency_key >> 96) as u32 ^ (idempotency_key >> 64) as u32;
        let key = Key { seed: 0, fleet: origin.fleet.into(), client, operation: idempotency_key as u64, attempt };
        Self { origin, destination: 0, connection: 0, ticket: 0, client: 0, matched: 0, key }
    }

    /// Somebody else's request: the n-th one on a connection, and the connection's number. Attempts of ours count
    /// from 1, so the two never share dice.
    pub fn foreign(origin: impl Into<Origin>, connection: u32, request: u64) -> Self {
        let origin = origin.into();
        let key = Key { seed: 0, fleet: origin.fleet.into(), client: connection, operation: request, attempt: 0 };
        Self { origin, destination: 0, connection: 0, ticket: 0, client: 0, matched: 0, key }.on(connection.into())
    }

    /// The same, bound for a destination. Its dice are the same.
    pub const fn bound_for(self, destination: u64) -> Self {
        Self { destination, ..self }
    }

    /// The same, on a connection, whose number is its ticket too, since one request at a time is on it; and its client's, until
    /// [`Request::of_client`] says more. Its dice are the same.
    pub const fn on(self, connection: u64) -> Self {
        Self { connection, ticket: connection, client: connection, ..self }
    }

    /// The same, with another ticket. Its dice are the same.
    pub const fn with_ticket(self, ticket: u64) -> Self {
        Self { ticket, ..self }
    }

    /// The same, of a client. Its dice are the same.
    pub const fn of_client(self, client: u64) -> Self {
        Self { client, ..self }
    }

    /// The same, which fits these matchers. Its dice are the same.
    pub const fn fitting(self, matched: u64) -> Self {
        Self { matched, ..self }
    }

    /// The dice that it rolls against the fault of one step.
    pub(super) fn dice(&self, seed: u64, step: usize) -> Dice {
        let mixed = seed ^ (step as u64 + 1).wrapping_mul(0xd1b5_4a32_d192_ed03);
        Dice { key: Key { seed: mixed, ..self.key }, level: 1.0 }
    }
}

/// What a destination is known by where requests meet faults: its name's hash (FNV-1a, 64 bits), so that a proxy needs no list of names. Of names
/// of up to 64 letters, a plan's few hundred never share one but by malice, and then share their faults. Never 0.
pub fn destination_key(name: &[u8]) -> u64 {
    crate::service::key::name_hash(name)
}

/// The draws of one request against one fault. Asked twice, they say the same.
#[derive(Clone, Copy, Debug)]
pub struct Dice {
    key: Key,
    /// How much of its harm the fault does now, from 0 to 1.
    level: f64,
}

impl Dice {
    /// Against a fault that does so much of its harm.
    pub const fn at_level(self, level: f64) -> Self {
        Self { level, ..self }
    }

    /// How much of its harm the fault does now, from 0 to 1.
    pub const fn level(self) -> f64 {
        self.level
    }

    /// Whether a fault that strikes this share of requests strikes this one, or the part of that share which a ramp has come to. 0% never
    /// does, 100% always.
    pub fn strikes(self, share: Share) -> bool {
        self.is_below(share.get() * self.level)
    }

    /// The same, whatever a ramp has come to.
    pub fn strikes_in_full(self, share: Share) -> bool {
        self.is_below(share.get())
    }

    fn is_below(self, share: f64) -> bool {
        share >= 1.0 || self.key.stream(Purpose::FaultShare).unit() < share
    }

    /// The stream that a delay is drawn from.
    pub(super) fn delay(self) -> rng::Stream {
        self.key.stream(Purpose::FaultJitter)
    }

    /// The stream of the n-th draw for one direction of a connection.
    pub(super) fn bytes(self, stream: Stream, n: u64) -> rng::Stream {
        let operation = n << 1 | u64::from(stream == Stream::Downstream);
        Key { operation, ..self.key }.stream(Purpose::Bytes)
    }

    /// `middle` + U(−spread, +spread), never below zero.
    pub fn around(self, middle: Span, spread: Span) -> Span {
        let widest = spread.scale(2.0 * self.key.stream(Purpose::FaultJitter).unit());
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
    /// It has a place among those that pass at once, until it ends.
    Enter,
    /// It waits for such a place, so long at most.
    Wait {
        /// How long.
        at_most: Span,
    },
    /// It is answered without the upstream.
    Answer(Answer),
    /// It is answered without the upstream, with what is no HTTP.
    Malformed(Nonsense),
    /// It goes to the upstream, and its answer comes to harm.
    Harm(Harm),
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

keyword! {
    /// On which side of the upstream's work a fault strikes.
    pub enum When {
        /// The upstream never sees the request.
        before => Before,
        /// The upstream does the work, and its answer is what the fault strikes.
        after => After,
    }
}

/// What comes to the answer of a request that was let through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Harm {
    /// Another answer takes its place.
    Replace(Answer),
    /// What is no HTTP takes its place, and the connection ends.
    Malformed(Nonsense),
    /// It is lost, and the connection reset.
    Reset,
    /// It is lost, and nothing is said of it.
    Lose,
    /// Its body is cut, and the connection ends; not where nothing is left to cut.
    Cut {
        /// How much of it passes.
        keep: Keep,
        /// How the connection ends.
        end: CutEnd,
    },
    /// Its body comes in drops.
    Drip {
        /// So many bytes.
        bytes: u32,
        /// Behind a pause each.
        every: Span,
    },
}

/// What the proxy does with one request, over all faults that act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes to the upstream after a delay.
    Forward {
        /// Zero where nothing delays it.
        delay: Span,
        /// What comes to its answer.
        harm: Option<Box<Harm>>,
    },
    /// It is answered after a delay; the upstream never sees it.
    Answer {
        /// Zero where nothing delays it.
        delay: Span,
        /// The answer.
        answer: Answer,
    },
    /// It is answered after a delay with what is no HTTP, and its connection ends; the upstream never sees it.
    Malformed {
        /// Zero where nothing delays it.
        delay: Span,
        /// What is wrong with it.
        kind: Nonsense,
    },
    /// It waits in the queue of `step` for a place among those that pass at once, and then goes on through the faults behind.
    Wait {
        /// The step that has the places.
        step: usize,
        /// How long at most; then it is refused.
        at_most: Span,
        /// What delayed it up to there; that time runs while it waits.
        delay: Span,
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

impl Fate {
    /// It goes to the upstream after a delay, and its answer comes to no harm.
    pub const fn forward(delay: Span) -> Self {
        Self::Forward { delay, harm: None }
    }
}

/// A fate, and the steps that had a hand in it, in the order of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What happens.
    pub fate: Fate,
    /// The indexes of the steps that touched the request.
    pub touched: Vec<usize>,
    /// The indexes of the steps among whose places it has one now, to be given back when it ends.
    pub entered: Vec<usize>,
    /// What is to come to the answer of a request that is held and may yet go on; its step has not touched it before that.
    pub pending: Option<Pending>,
}

/// What is to come to an answer, and by which step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The step.
    pub step: usize,
    /// What it does.
    pub harm: Box<Harm>,
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
