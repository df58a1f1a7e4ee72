//! Connections are closed.

use super::{Effect, Strike};
use crate::record;

record! {
    /// Connections are accepted and closed (FIN) at once, and live ones when the fault begins. In a simulation, and to a client that has
    /// sent its request, that is the end of a connection before the answer, as a reset is.
    pub struct Close {}
}

impl Close {
    pub(super) const fn effect(&self) -> Effect {
        Effect::Close
    }

    pub(super) const fn onset(&self) -> Strike {
        Strike::Close
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_closes_whatever_comes_and_whatever_is_there() {
        assert_eq!((Close {}.effect(), Close {}.onset()), (Effect::Close, Strike::Close));
    }
}
