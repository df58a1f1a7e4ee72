//! gRPC's retry throttling: failures take tokens, successes give back a part of one, retries go while more than half are there.
//!
//! A retry itself takes nothing. What fails without a retry takes too, so the tokens tell how well a server does, and all
//! retries stop together. Kept in thousandths, as gRPC does. Source: gRPC proposal A6, `retryThrottling` (`maxTokens` 10, `tokenRatio` 0.1).

use super::End;
use crate::record;
use std::sync::atomic::{AtomicU32, Ordering};

record! {
    /// gRPC's retry throttling: a failure that may be retried takes a token, a success gives back a part; retries go while more than half are there.
    pub struct GrpcConfig {
        /// How many tokens there are at first, and at most.
        tokens: u32 = 10,
        /// What a success gives, in tokens; to the thousandth.
        token_ratio: f64 = 0.1,
    } => GrpcConfig::check
}

impl GrpcConfig {
    fn check(&self) -> Result<(), String> {
        if !(1..=1000).contains(&self.tokens) {
            return Err(format!("`tokens` is {}: expected 1 to 1000", self.tokens));
        }
        if !(0.001..=1000.0).contains(&self.token_ratio) {
            return Err(format!("`token_ratio` is {}: expected 0.001 to 1000", self.token_ratio));
        }
        Ok(())
    }
}

/// A token, in thousandths.
const TOKEN: u32 = 1000;

/// The tokens that are there. Lock-free.
#[derive(Debug)]
pub struct Grpc {
    most: u32,
    ratio: u32,
    /// In thousandths.
    tokens: AtomicU32,
}

impl Grpc {
    /// With all its tokens.
    pub fn new(config: &GrpcConfig) -> Self {
        let most = config.tokens.saturating_mul(TOKEN);
        // What it says beyond a thousandth is dropped, as gRPC drops it; 0.1 must not become 99.
        let ratio = (config.token_ratio * f64::from(TOKEN) + 1e-6) as u32;
        Self { most, ratio, tokens: AtomicU32::new(most) }
    }

    /// Whether a retry may go.
    pub fn permits(&self) -> bool {
        self.tokens.load(Ordering::Relaxed) > self.most / 2
    }

    /// Books the end of an attempt.
    pub fn ended(&self, end: End) {
        let to = |tokens: u32| match end {
            End { success: true, .. } => Some(tokens.saturating_add(self.ratio).min(self.most)),
            End { retryable: true, .. } => Some(tokens.saturating_sub(TOKEN)),
            End { .. } => None,
        };
        // An error says that this end changes nothing.
        let _ = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, to);
    }

    /// The tokens that are there.
    pub fn balance(&self) -> f64 {
        f64::from(self.tokens.load(Ordering::Relaxed)) / f64::from(TOKEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grpc(tokens: u32, token_ratio: f64) -> Grpc {
        let config = GrpcConfig { tokens, token_ratio };
        config.check().unwrap();
        Grpc::new(&config)
    }

    const GOOD: End = End { success: true, retryable: false, retry: false, cost: 0 };
    const BAD: End = End { success: false, retryable: true, retry: false, cost: 0 };
    const FINAL: End = End { success: false, retryable: false, retry: false, cost: 0 };

    #[test]
    fn retries_stop_at_half_and_come_back_above_it() {
        let g = grpc(10, 0.1);
        for left in [9.0, 8.0, 7.0, 6.0] {
            g.ended(BAD);
            assert!(g.permits() && g.balance() == left, "{left}");
        }
        g.ended(BAD);
        assert!(!g.permits(), "five of ten is not above half");
        g.ended(FINAL);
        assert_eq!(g.balance(), 5.0, "what is not retried takes nothing");
        g.ended(GOOD);
        assert!(g.permits() && g.balance() == 5.1);
    }

    #[test]
    fn tokens_end_at_nothing_and_at_all() {
        let g = grpc(3, 2.5);
        (0..9).for_each(|_| g.ended(BAD));
        assert_eq!(g.balance(), 0.0);
        g.ended(GOOD);
        assert_eq!((g.balance(), g.permits()), (2.5, true));
        g.ended(GOOD);
        assert_eq!(g.balance(), 3.0);
        let exact = grpc(1000, 0.001);
        exact.ended(BAD);
        (0..1000).for_each(|_| exact.ended(GOOD));
        assert_eq!(exact.balance(), 1000.0);
    }
}
