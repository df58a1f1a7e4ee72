//! A certificate that its client should not accept.

use super::{Dice, Handshake};
use crate::record;
use crate::time::Share;

crate::keyword! {
    /// What is wrong with a certificate. Nothing else is: only a client that checks this very thing refuses it.
    pub enum CertificateKind {
        /// Its time has passed.
        expired => Expired,
        /// Its time has not come.
        not_yet_valid => NotYetValid,
        /// It names another host.
        wrong_name => WrongName,
        /// Nobody whom the client trusts has signed it.
        untrusted => Untrusted,
    }
}

record! {
    /// New TLS connections are shown a certificate that is no good. Those that are established stay as they are: a certificate is
    /// looked at once, in the handshake.
    pub struct Certificate {
        /// What is wrong with it.
        kind: CertificateKind,
        /// The share of new connections that it strikes, as if so many of a service's instances had it.
        share: Share = Share::ALL,
    }
}

impl Certificate {
    /// What becomes of a handshake that rolls these dice.
    pub(super) fn handshake(&self, dice: Dice) -> Option<Handshake> {
        dice.strikes(self.share).then_some(Handshake::Show(self.kind))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Request;
    use super::*;

    #[test]
    fn it_strikes_its_share_of_connections() {
        let half = Certificate { kind: CertificateKind::Expired, share: Share::new(0.5).unwrap() };
        let struck = (0..1_000).filter(|&n| half.handshake(Request::foreign(0, n, 0).dice(1, 0)).is_some()).count();
        assert!((440..560).contains(&struck), "{struck}");
        let all = Certificate { kind: CertificateKind::WrongName, share: Share::ALL };
        let seen = all.handshake(Request::foreign(0, 1, 0).dice(1, 0));
        assert_eq!(seen, Some(Handshake::Show(CertificateKind::WrongName)));
    }
}
