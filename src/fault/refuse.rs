//! Connects are refused.

use super::{Effect, Strike};
use crate::record;

record! {
    /// Connects are refused and live connections are closed, as if the process were gone.
    pub struct Refuse {}
}

impl Refuse {
    /// A request can only come through a connection that slipped in as the fault began.
    pub(super) fn effect(&self) -> Effect {
        Effect::Reset
    }

    /// Live connections die with the process.
    pub(super) fn onset(&self) -> Strike {
        Strike::Reset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_survives_it() {
        assert_eq!(Refuse {}.effect(), Effect::Reset);
        assert_eq!(Refuse {}.onset(), Strike::Reset);
    }
}
