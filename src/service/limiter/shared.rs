//! What all limiters share: whose limit it is, what a refusal counts for, and what it says.

use super::penalty_box::PenaltyBox;
use crate::keyword;
use crate::policy::hint::Said;
use crate::record;
use crate::service::refusal::Refusing;
use crate::service::request::Metadata;

keyword! {
    /// Whose limit it is.
    pub enum Per {
        /// One for all.
        global => Global,
        /// One for each client; those that name none share one.
        client => Client,
        /// One for each fleet; those that name none share one.
        fleet => Fleet,
    }
}

impl Per {
    /// What a request is counted to; 0 where there is one limit for all.
    pub const fn key(self, of: &Metadata) -> u64 {
        match self {
            Self::Global => 0,
            Self::Client => of.client,
            Self::Fleet => of.fleet,
        }
    }
}

record! {
    /// What all limiters share.
    pub struct Shared {
        /// Whether rejected requests count against the limit too: then a storm keeps itself locked out.
        count_rejected: bool = false,
        /// Whose limit it is: one for all, one for each client, or one for each fleet.
        per: Per = Per::Global,
        /// Each violation bans its client (or fleet, or everybody) for a while.
        penalty_box: Option<PenaltyBox>;
        with
        /// What a refusal says; its status is 429 where nothing is said.
        refusing: Refusing,
    }
}

impl Shared {
    /// One limit for all, that says nothing but 429.
    pub const fn plain() -> Self {
        Self { count_rejected: false, per: Per::Global, penalty_box: None, refusing: Refusing::plain() }
    }

    /// What a refusal says, where it always says the same.
    pub fn hint(&self) -> Option<Said> {
        self.refusing.constant()
    }
}
