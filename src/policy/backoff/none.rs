//! No backoff: a retry follows at once.

use crate::record;
use crate::time::Span;

record! {
    /// Retries at once.
    pub struct NoBackoff {}
}

impl NoBackoff {
    /// The wait before the next attempt: none.
    pub const fn wait(&self) -> Span {
        Span::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Read;

    #[test]
    fn it_may_stand_alone_as_a_word() {
        assert!(NoBackoff::shape().may_be_empty());
    }
}
