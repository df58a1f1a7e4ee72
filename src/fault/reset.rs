//! Connections are reset.

use crate::record;
use crate::time::Share;

record! {
    /// Connections are reset (RST): live ones when the fault begins, and each request that it strikes.
    pub struct Reset {
        /// The share of requests that it strikes; live and idle connections are reset at its start only at 100%.
        share: Share = Share::ALL,
    }
}
