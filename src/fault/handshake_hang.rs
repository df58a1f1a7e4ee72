//! TLS that never comes about.

use super::{Dice, Handshake};
use crate::record;
use crate::time::Share;

record! {
    /// New connections are accepted and their TLS handshake is never answered. Those that are established stay as they are.
    pub struct HandshakeHang {
        /// The share of new connections that it strikes.
        share: Share = Share::ALL,
        /// Whether the handshakes that it has taken go on when the fault ends.
        release: bool = false,
    }
}

impl HandshakeHang {
    /// What becomes of a handshake that rolls these dice.
    pub(super) fn handshake(&self, dice: Dice) -> Option<Handshake> {
        dice.strikes(self.share).then_some(Handshake::Hold { release: self.release })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Request;
    use super::*;

    #[test]
    fn it_holds_its_share_of_handshakes() {
        for release in [false, true] {
            let third = HandshakeHang { share: Share::new(0.3).unwrap(), release };
            let held = |n| third.handshake(Request::foreign(0, n, 0).dice(1, 0));
            let count = (0..1_000).filter(|&n| held(n) == Some(Handshake::Hold { release })).count();
            assert!((250..350).contains(&count), "{count}");
            assert!((0..1_000).all(|n| matches!(held(n), None | Some(Handshake::Hold { .. }))));
        }
    }
}
