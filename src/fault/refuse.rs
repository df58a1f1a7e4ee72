//! Connects are refused.

use crate::record;

record! {
    /// Connects are refused and live connections are closed, as if the process were gone.
    pub struct Refuse {}
}
