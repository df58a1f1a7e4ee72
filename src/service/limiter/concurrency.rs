//! A concurrency limit: at most so many requests in the service, waiting and served. Where there is one limit for all the service
//! itself says how many there are; a limit for each client or fleet counts its own.

use super::shared::Shared;
use crate::record;

record! {
    /// At most so many requests in the service, waiting and served.
    pub struct Concurrency {
        /// How many requests.
        limit: u32;
        with
        /// What all limiters share.
        shared: Shared,
    } => |c: &Concurrency| {
        if c.limit == 0 {
            return Err("`limit` must be 1 or more: a service that nothing may enter serves nothing".to_string());
        }
        no_rejected(&c.shared)
    }
}

/// A limit on what is in the service cannot count what never enters it.
///
/// # Errors
/// A sentence that says so.
pub(super) fn no_rejected(shared: &Shared) -> Result<(), String> {
    if shared.count_rejected {
        return Err("`count_rejected` goes with limits on a rate: a rejected request is not in the service, so this limit \
                    has nothing to count; leave it out, or ban who goes on with `penalty_box: { ban: 5s }`"
            .to_string());
    }
    Ok(())
}

/// The state of a concurrency limit.
#[derive(Clone, Debug)]
pub struct Slots {
    limit: u64,
    inside: u64,
}

impl Slots {
    /// A limit with nothing inside.
    pub fn new(config: &Concurrency) -> Self {
        Self { limit: config.limit.into(), inside: 0 }
    }

    /// Whether a request passes, which is inside then; `inside` is how many there are where somebody else counts them.
    pub fn admit(&mut self, inside: Option<u64>) -> bool {
        let passes = inside.unwrap_or(self.inside) < self.limit;
        self.inside += u64::from(passes);
        passes
    }

    /// One that was inside is no more.
    pub fn leave(&mut self) {
        self.inside = self.inside.saturating_sub(1);
    }

    /// How many it has let in that have not left.
    pub fn inside(&self) -> u64 {
        self.inside
    }
}
