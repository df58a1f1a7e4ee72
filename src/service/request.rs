//! A request as a service sees it, and what it is answered with.

use super::job::Slot;
use super::key::KeyHash;
use crate::policy::hint::Said;
use crate::priority::Priority;
use crate::rng::Key;
use crate::time::Timestamp;

/// What a request says of itself, so that a service can decide whom to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// What deduplication goes by; none where it carries no idempotency key.
    pub idempotency_key: Option<KeyHash>,
    /// When its operation was enqueued; when it came, where it does not say.
    pub enqueued: Timestamp,
    /// Whom limits for each client count it to.
    pub client: u64,
    /// Its fleet, by [`name_hash`](super::key::name_hash); 0 where it names none.
    pub fleet: u64,
    /// Its attempt of its operation, from 1, which is also what says nothing.
    pub attempt: u32,
    /// What goes first; normal where it does not say.
    pub priority: Priority,
}

/// A request that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The caller's name for it; no two requests that wait for an answer may share one.
    pub id: u64,
    /// Which random stream its service time is drawn from.
    pub key: Key,
    /// Which of several services it is for, by [`name_hash`](super::key::name_hash); 0 where it names none.
    pub destination: u64,
    /// The job that was to answer an earlier request of its operation, where the caller knows: it saves a search, and changes nothing.
    pub before: Slot,
    /// What it says of itself.
    pub of: Metadata,
}

/// In the place of a status: no answer, the connection breaks.
pub const BROKEN: u16 = 0;

/// What a request is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The caller's name for the request.
    pub id: u64,
    /// When the service had the answer; never later than the `now` of the call that gave it.
    pub at: Timestamp,
    /// The status; [`BROKEN`] where there is none, and the connection breaks.
    pub status: u16,
    /// How long it asks its client to wait.
    pub hint: Option<Said>,
}

impl Metadata {
    /// Of a request that says nothing of itself and comes at this moment.
    pub const fn nothing(now: Timestamp) -> Self {
        Self { idempotency_key: None, enqueued: now, client: 0, fleet: 0, attempt: 1, priority: Priority::Normal }
    }
}

/// The body of an answer of the built-in target.
pub const fn answer_body(status: u16) -> &'static str {
    if status >= 200 && status < 300 { "ok\n" } else { "refused\n" }
}
