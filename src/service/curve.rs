//! How the capacity bends: with what is in service, with what the cache holds, and with the time since a restart.

use crate::record;
use crate::time::{Share, Span};

record! {
    /// A cache that is cold at first, and after a restart.
    pub struct ColdCache {
        /// How many served requests warm it.
        warms_after: u32,
        /// The share of requests that a warm cache answers from itself.
        hits: Share,
        /// How long a request is served that the cache answers, as a share of its service time.
        hit_costs: Share,
    }
}

record! {
    /// A start at less than full capacity.
    pub struct SlowStart {
        /// The share of the capacity that is there at once.
        from: Share,
        /// How long it takes to reach all of it.
        over: Span,
    }
}

record! {
    /// How the capacity bends.
    pub struct Curve {
        /// A request that enters while C others are served takes `1 + C x this` times its time.
        slows_with_concurrency: Share = Share::ZERO,
        /// A cache that warms with what is served.
        cold_cache: Option<ColdCache>,
        /// How the service comes back from a restart.
        slow_start: Option<SlowStart>,
    }
}

impl Curve {
    /// A capacity that does not bend.
    pub const fn flat() -> Self {
        Self { slows_with_concurrency: Share::ZERO, cold_cache: None, slow_start: None }
    }
}
