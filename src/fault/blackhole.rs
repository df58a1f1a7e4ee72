//! Data vanishes.

use crate::record;
use crate::time::Share;

record! {
    /// Data vanishes in both directions, on live connections too; nothing is closed.
    pub struct Blackhole {
        /// The share of requests that it strikes.
        share: Share = Share::ALL,
        /// Whether what it has taken goes on to the upstream when the fault ends.
        release: bool = false,
    }
}
