//! What a run emits: plain data that machines produce, engines carry and the recorder reads.

use crate::time::{Span, Timestamp};

/// Names an operation of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId {
    /// The fleet's number in the plan.
    pub fleet: u16,
    /// The client's number in its fleet, over all shards.
    pub client: u32,
    /// The operation's number at its client, from 0.
    pub number: u64,
}

/// How one attempt ended, as its client saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttemptOutcome {
    /// A response that the plan counts as success.
    Success,
    /// A response whose status the plan does not count as success.
    Status(u16),
    /// A response of a good status that failed another check of `success` (its body, its time).
    Unexpected,
    /// No connection: refused, unreachable, or not resolved.
    Connect,
    /// The connection ended before the response did.
    Reset,
    /// The attempt's timeout, or the operation's deadline, passed first.
    Timeout,
    /// An answer that is not HTTP, or too large.
    Malformed,
    /// Another attempt of the operation was answered first: a hedge that lost, cancelled by its client.
    Cancelled,
    /// The client's own breaker or throttle refused it. It never was on the wire, so no attempt ends so; an operation can.
    Refused,
}

/// How an operation ended: exactly one of these for each that was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationOutcome {
    /// Succeeded within its deadline.
    Succeeded,
    /// Its client gave up.
    Failed,
    /// Still held when the run ended.
    Unresolved,
    /// Refused at ingress: the client's outbox or the workers' queue was full, or its destination paused.
    Refused,
    /// Never started, because it would have started too late.
    Dropped,
    /// A newer operation of its client took its place.
    Superseded,
    /// Given up, and put aside where somebody may look at it.
    DeadLettered,
}

/// What made an operation start late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LateBy {
    /// Something of the plan: its client was busy, or the ceiling held it back.
    Plan,
    /// The generator: nothing of the plan held it back.
    Generator,
}

/// One thing that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// An operation came up. `at` is its intended start.
    Offered {
        /// Which.
        operation: OperationId,
        /// Its intended start.
        at: Timestamp,
    },
    /// An attempt went on the wire.
    Sent {
        /// Of which operation.
        operation: OperationId,
        /// 1 for the first attempt of the operation; counts across passes.
        attempt: u32,
        /// Whether it is a retry: attempt 2 or later of its pass.
        retry: bool,
        /// When.
        at: Timestamp,
        /// Behind the moment the plan wanted; none where something of the plan (a busy client) held it back.
        lag: Option<Span>,
    },
    /// An attempt ended.
    Ended {
        /// Of which operation.
        operation: OperationId,
        /// Which attempt.
        attempt: u32,
        /// When it was sent.
        sent: Timestamp,
        /// When it ended.
        at: Timestamp,
        /// How.
        outcome: AttemptOutcome,
    },
    /// An operation ended.
    Finished {
        /// Which.
        operation: OperationId,
        /// Its intended start.
        offered: Timestamp,
        /// When it ended.
        at: Timestamp,
        /// How.
        outcome: OperationOutcome,
        /// Attempts it took, across passes.
        attempts: u32,
        /// How its last attempt ended; none where there was none.
        last: Option<AttemptOutcome>,
    },
    /// An operation began later than the plan meant.
    LateStart {
        /// Which.
        operation: OperationId,
        /// When it began, or was dropped.
        at: Timestamp,
        /// How late.
        late: Span,
        /// Whose doing that is.
        by: LateBy,
    },
    /// Something was done to a fleet.
    Acted {
        /// The fleet's number in the plan.
        fleet: u16,
        /// The action's number among those of the fleet.
        action: u16,
        /// When.
        at: Timestamp,
        /// How many workers, clients or operations it touched.
        affected: u64,
    },
    /// A breaker or a throttle refused a try: nothing went on the wire.
    Throttled {
        /// To which operation.
        operation: OperationId,
        /// When.
        at: Timestamp,
    },
    /// The budget refused a retry: its operation gives up, or is parked.
    BudgetRefused {
        /// To which operation.
        operation: OperationId,
        /// When.
        at: Timestamp,
    },
}
