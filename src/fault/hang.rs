//! Accepted and never answered.

use super::{Effect, Strike};
use crate::record;

record! {
    /// Connections and requests are accepted and never answered.
    pub struct Hang {
        /// Whether what it has taken goes on to the upstream when the fault ends.
        release: bool = false,
    }
}

impl Hang {
    pub(super) fn effect(&self) -> Effect {
        Effect::Swallow { release: self.release }
    }

    /// Requests in flight hang too: a process that stops does not answer what it had begun.
    pub(super) fn onset(&self) -> Strike {
        Strike::Swallow { release: self.release }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_every_request_new_and_in_flight() {
        for release in [false, true] {
            assert_eq!(Hang { release }.effect(), Effect::Swallow { release });
            assert_eq!(Hang { release }.onset(), Strike::Swallow { release });
        }
    }
}
