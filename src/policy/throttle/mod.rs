//! Throttles: what a client does to send less, beside retrying less. One kind, one file.
//!
//! A throttle is asked before an attempt goes on the wire ([`Throttle::admit`]; first attempts too) and told how each that went
//! has ended. It refuses locally (SRE), makes attempts wait for a token (AWS adaptive), or bounds how many
//! may be on the wire at once (AIMD).

pub mod adaptive;
pub mod aimd;
pub mod sre;

use super::breaker::SharedBy;
use crate::choice;
use crate::event::AttemptOutcome;
use crate::time::{Span, Timestamp};

pub use adaptive::{Adaptive, AdaptiveConfig};
pub use aimd::{Aimd, AimdConfig};
pub use sre::{Sre, SreConfig};

choice! {
    /// What a client does to send less.
    pub enum ThrottleConfig {
        /// Refuses locally by the share of attempts that the service accepts: Google SRE's adaptive throttling.
        sre => Sre(SreConfig),
        /// Waits for tokens, at a rate that CUBIC sets from the first throttling answer on: AWS's adaptive mode.
        adaptive => Adaptive(AdaptiveConfig),
        /// Bounds attempts at one time, more while answers are quick, less when they are slow.
        aimd => Aimd(AimdConfig),
    }
}

impl ThrottleConfig {
    /// Who shares it.
    pub const fn tier(&self) -> SharedBy {
        match self {
            Self::Sre(sre) => sre.tier,
            Self::Adaptive(adaptive) => adaptive.tier,
            Self::Aimd(_) => SharedBy::Client,
        }
    }

    /// The most attempts that it ever lets one client have on the wire at once.
    pub fn most_at_once(&self) -> u32 {
        match self {
            Self::Sre(_) | Self::Adaptive(_) => 1,
            Self::Aimd(aimd) => aimd.max as u32,
        }
    }
}

/// Whether an attempt may go on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may, and counts as sent.
    Now,
    /// It is refused, and the service never hears of it.
    Refused,
    /// Ask again at this moment, which is later than now.
    WaitUntil(Timestamp),
}

/// The state of a throttle. `now` must not run backwards. Boxed: a fleet may have one per client, and most have none.
#[derive(Clone, Debug)]
pub enum Throttle {
    /// Refuses locally.
    Sre(Box<Sre>),
    /// Waits for tokens.
    Adaptive(Box<Adaptive>),
    /// Bounds attempts at one time.
    Aimd(Box<Aimd>),
}

impl Throttle {
    /// A throttle that has seen nothing.
    pub fn new(config: &ThrottleConfig) -> Self {
        match config {
            ThrottleConfig::Sre(config) => Self::Sre(Box::new(Sre::new(config))),
            ThrottleConfig::Adaptive(config) => Self::Adaptive(Box::new(Adaptive::new(config))),
            ThrottleConfig::Aimd(config) => Self::Aimd(Box::new(Aimd::new(config))),
        }
    }

    /// Whether an attempt may be sent now. `draw` is uniform in [0, 1). First attempts and retries are treated alike, as their
    /// sources do.
    pub fn admit(&mut self, now: Timestamp, _retry: bool, draw: f64) -> Admission {
        match self {
            Self::Sre(sre) => sre.admit(now, draw),
            Self::Adaptive(adaptive) => adaptive.admit(now),
            Self::Aimd(aimd) => aimd.admit(now),
        }
    }

    /// An attempt that was on the wire ended at `now`, `took` after it was sent.
    pub fn ended(&mut self, now: Timestamp, outcome: AttemptOutcome, took: Span) {
        match self {
            Self::Sre(sre) => sre.ended(now, outcome),
            Self::Adaptive(adaptive) => adaptive.ended(now, outcome),
            Self::Aimd(aimd) => aimd.ended(now, outcome, took),
        }
    }

    /// How many attempts may be on the wire at once; [`u32::MAX`] where this throttle does not say.
    pub fn concurrency(&self) -> u32 {
        match self {
            Self::Sre(_) | Self::Adaptive(_) => u32::MAX,
            Self::Aimd(aimd) => aimd.concurrency(),
        }
    }
}

/// Whether an outcome says that the service did not take the request on: no answer, or an answer of overload (429, 502, 503,
/// 504). Another error is a request that was accepted and failed.
fn is_overload(outcome: AttemptOutcome) -> bool {
    match outcome {
        AttemptOutcome::Status(code) => matches!(code, 429 | 502..=504),
        AttemptOutcome::Connect | AttemptOutcome::Reset | AttemptOutcome::Timeout | AttemptOutcome::Malformed => true,
        AttemptOutcome::Success | AttemptOutcome::Unexpected | AttemptOutcome::Cancelled | AttemptOutcome::Refused => false,
    }
}
