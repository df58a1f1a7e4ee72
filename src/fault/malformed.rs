//! Answers that are no HTTP.

use super::{Dice, Effect, Harm, When};
use crate::time::Share;
use crate::{keyword, record};

keyword! {
    /// What is wrong with an answer.
    pub enum Nonsense {
        /// It begins with something that is no status line.
        status_line => StatusLine,
        /// It says two lengths that contradict each other.
        content_length => ContentLength,
        /// It comes in chunks, and the size of the first one is no number.
        chunk_size => ChunkSize,
    }
}

record! {
    /// Requests are answered with what is no HTTP; then the connection ends.
    pub struct Malformed {
        /// What is wrong with it.
        kind: Nonsense = Nonsense::StatusLine,
        /// Before the upstream sees the request, or after it has answered it.
        when: When = When::Before,
        /// The share of requests that it strikes.
        share: Share = Share::ALL,
    }
}

impl Malformed {
    pub(super) fn effect(&self, dice: Dice) -> Effect {
        match (dice.strikes(self.share), self.when) {
            (false, _) => Effect::Pass,
            (true, When::Before) => Effect::Malformed(self.kind),
            (true, When::After) => Effect::Harm(Harm::Malformed(self.kind)),
        }
    }
}

impl Nonsense {
    /// The bytes of such an answer.
    pub const fn bytes(self) -> &'static [u8] {
        match self {
            Self::StatusLine => b"\x00\x01garbage, and no status line\r\n\r\n",
            Self::ContentLength => b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 7\r\n\r\nhello",
            Self::ChunkSize => b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Request;
    use super::*;

    #[test]
    fn it_answers_before_or_after_the_work() {
        let dice = Request::ours(0, 1, 1).dice(1, 0);
        let kind = Nonsense::ChunkSize;
        let with = |when, share| Malformed { kind, when, share }.effect(dice);
        assert_eq!(with(When::Before, Share::ALL), Effect::Malformed(kind));
        assert_eq!(with(When::After, Share::ALL), Effect::Harm(Harm::Malformed(kind)));
        assert_eq!(with(When::After, Share::default()), Effect::Pass);
    }
}
