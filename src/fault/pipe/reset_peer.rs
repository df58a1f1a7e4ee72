//! The connection is reset (RST) after a while, whether or not anything is sent on it; nothing passes meanwhile.

use crate::time::Timestamp;

#[derive(Debug)]
pub(super) struct Stage {
    /// When.
    pub(super) due: Timestamp,
}

impl Stage {
    pub(super) const fn new(due: Timestamp) -> Self {
        Self { due }
    }
}
