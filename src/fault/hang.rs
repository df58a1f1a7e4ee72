//! Accepted and never answered.

use super::{Dice, Effect, Strike};
use crate::record;
use crate::time::Share;

record! {
    /// Connections and requests are accepted and never answered.
    pub struct Hang {
        /// Whether what it has taken goes on to the upstream when the fault ends.
        release: bool = false,
    }
}

impl Hang {
    pub(super) fn effect(&self, dice: Dice) -> Effect {
        if dice.strikes(Share::ALL) { Effect::Swallow { release: self.release } } else { Effect::Pass }
    }

    /// Requests in flight hang too: a process that stops does not answer what it had begun.
    pub(super) fn onset(&self, in_flight: Dice) -> Option<Strike> {
        in_flight.strikes(Share::ALL).then_some(Strike::Swallow { release: self.release })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Request;
    use super::*;

    #[test]
    fn it_takes_every_request_new_and_in_flight() {
        for release in [false, true] {
            let dice = Request::ours(0, 1, 1).dice(1, 0);
            assert_eq!(Hang { release }.effect(dice), Effect::Swallow { release });
            assert_eq!(Hang { release }.onset(dice), Some(Strike::Swallow { release }));
            assert_eq!(Hang { release }.effect(dice.at_level(0.0)), Effect::Pass, "a ramp begins with nobody");
        }
    }
}
