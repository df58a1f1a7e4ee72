//! Counter-based randomness: a draw is a function of its key, and of nothing else.
//!
//! A key names (seed, fleet, client, operation, attempt, purpose). So a draw does not depend on the order of
//! events, on the number of threads, or on which policy is under test (invariant 3). Distributions use
//! `libm`'s software `log`, `exp` and the like, never the platform's, so that every machine draws the same.

use std::convert::Infallible;

/// What a draw is for. One purpose, one stream: two uses of one key must never share a purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum Purpose {
    /// When a client's next operation is offered.
    Arrival = 1,
    /// The jitter of a backoff.
    Backoff = 2,
    /// The spread that is added to a server's hint.
    HintSpread = 3,
    /// Which route of the target an operation takes.
    Route = 4,
    /// Whether a fault strikes a request.
    FaultShare = 5,
    /// How much latency a fault adds.
    FaultJitter = 6,
    /// The service time of a request.
    ServiceTime = 7,
    /// The idempotency key of an operation.
    IdempotencyKey = 8,
    /// What the network does to an attempt on its way.
    Network = 9,
    /// Whether a throttle refuses an attempt.
    Throttle = 10,
    /// What a poor link does to an attempt.
    Link = 20,
    /// Which kind of operation a client's next one is, and which object it is about.
    Kind = 21,
    /// Whether a service's cache answers a request.
    Cache = 30,
    /// The call that a service makes for a request.
    Call = 31,
    /// Whether a service fails a request.
    Failure = 32,
    /// What a fault of bytes does to a piece of a stream.
    Bytes = 40,
}

/// The key of a stream of draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Key {
    /// The run's seed.
    pub seed: u64,
    /// The fleet's number in the plan.
    pub fleet: u32,
    /// The client's number in its fleet.
    pub client: u32,
    /// The operation's number at its client.
    pub operation: u64,
    /// The attempt's number in its operation, from 1; 0 where the draw belongs to the operation.
    pub attempt: u32,
}

impl Key {
    /// The stream of this key for one purpose.
    pub fn stream(self, purpose: Purpose) -> Stream {
        let mut h = mix(self.seed ^ 0x9e37_79b9_7f4a_7c15);
        for part in
            [u64::from(self.fleet) << 32 | u64::from(self.client), self.operation, u64::from(self.attempt) << 8 | purpose as u64]
        {
            h = mix(h ^ part.wrapping_mul(0xff51_afd7_ed55_8ccd)).wrapping_add(0x9e37_79b9_7f4a_7c15);
        }
        Stream { state: h }
    }
}

/// The draws of one key: Steele, Lea and Flood's SplitMix64 started at the key's hash. Short streams from
/// many keys is what it is good at; each is read a few times at most.
#[derive(Clone, Debug)]
pub struct Stream {
    state: u64,
}

impl Stream {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Uniform in [0, 1), a multiple of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Exponential with mean 1, by inversion.
    pub fn exponential(&mut self) -> f64 {
        -libm::log1p(-self.unit())
    }

    /// Standard normal: one of the two that Box and Muller's transform gives.
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log1p(-self.unit()));
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }
}

/// Lets rand's own distributions read from a keyed stream.
impl rand::TryRng for Stream {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.bits() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.bits())
    }

    fn try_fill_bytes(&mut self, dst: &mut [u8]) -> Result<(), Infallible> {
        for chunk in dst.chunks_mut(8) {
            let bytes = self.bits().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
        Ok(())
    }
}

/// The finaliser of SplitMix64 (Stafford's variant 13): a bijection in which every input bit moves every output bit.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(client: u32, operation: u64) -> Key {
        Key { seed: 7, fleet: 1, client, operation, attempt: 1 }
    }

    #[test]
    fn a_draw_is_a_function_of_its_key() {
        let draw = || key(3, 9).stream(Purpose::Backoff).bits();
        assert_eq!(draw(), draw());
        assert_ne!(draw(), key(3, 9).stream(Purpose::Arrival).bits());
        assert_ne!(draw(), key(9, 3).stream(Purpose::Backoff).bits());
        assert_ne!(draw(), Key { seed: 8, ..key(3, 9) }.stream(Purpose::Backoff).bits());
    }

    #[test]
    fn first_draws_of_neighbouring_keys_are_uniform_and_independent() {
        let n = 100_000u32;
        let draws: Vec<f64> = (0..n).map(|i| key(i % 317, u64::from(i / 317)).stream(Purpose::Backoff).unit()).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let lagged: f64 = draws.windows(2).map(|w| (w[0] - 0.5) * (w[1] - 0.5)).sum::<f64>() / f64::from(n) * 12.0;
        assert!((mean - 0.5).abs() < 0.004, "{mean}");
        assert!(lagged.abs() < 0.013, "{lagged}");
        let mut tenths = [0u32; 10];
        draws.iter().for_each(|d| tenths[(d * 10.0) as usize] += 1);
        assert!(tenths.iter().all(|&t| (9_600..10_400).contains(&t)), "{tenths:?}");
    }

    #[test]
    fn shaped_draws_have_their_moments() {
        let n = 50_000u32;
        let mean = |f: fn(&mut Stream) -> f64| {
            (0..n).map(|i| f(&mut key(i, 0).stream(Purpose::ServiceTime))).sum::<f64>() / f64::from(n)
        };
        assert!((mean(Stream::exponential) - 1.0).abs() < 0.02);
        assert!(mean(Stream::normal).abs() < 0.02);
        assert!(
            (mean(|s| {
                let n = s.normal();
                n * n
            }) - 1.0)
                .abs()
                < 0.03
        );
    }
}
