//! Accepted and never answered.

use crate::record;

record! {
    /// Connections and requests are accepted and never answered.
    pub struct Hang {
        /// Whether what it has taken goes on to the upstream when the fault ends.
        release: bool = false,
    }
}
