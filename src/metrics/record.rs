//! What a run leaves behind: plain data that the judge and the reports read.

use super::{DestinationCounts, Sketch, TapRecord, Waves};
use crate::event::AttemptOutcome;
use crate::fault::Phase;
use crate::service::system::CallCounts;
use crate::time::{Span, Timestamp};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// A run's record.
#[derive(Clone, Debug, Default)]
pub struct RunRecord {
    /// The names of the fleets, by number.
    pub fleets: Vec<String>,
    /// By fleet number, whether it hands its operations to another fleet's queue: what it does is told of it alone, and of the whole
    /// only the operations that no queue took in. Fleets beyond its end do not.
    pub producers: Vec<bool>,
    /// By fleet number, the names of its destinations; none of a fleet that has none, or one without a name.
    pub destinations: Vec<Vec<String>>,
    /// How long a window is.
    pub window: Span,
    /// The series, gapless from the start of the run.
    pub windows: Vec<Window>,
    /// The phases of the run.
    pub phases: Vec<Phase>,
    /// Histograms and attempts per operation, by phase and fleet.
    pub summaries: Vec<Summary>,
    /// What the faults did.
    pub faults: Vec<FaultRecord>,
    /// What else the timeline did, in the order of its moments.
    pub actions: Vec<ActionRecord>,
    /// What somebody noted while it ran, in the order of moments.
    pub notes: Vec<NoteRecord>,
    /// Whether the load came back in step; none where nobody looked.
    pub waves: Option<Waves>,
    /// When the run ended.
    pub ended: Timestamp,
    /// How long it was meant to be.
    pub length: Span,
    /// Why it ended before that; none where it did not.
    pub stopped: Option<StopReason>,
    /// Whether every fault was seen to be removed.
    pub cleanup_confirmed: bool,
    /// What may still be in force outside.
    pub left: Vec<Left>,
    /// Bounds that were reached, and how often. The bound `windows` counts those that not every shard completed.
    pub limits_reached: Vec<LimitReached>,
    /// What the built-in target counted; none for somebody else's.
    pub service: Option<ServiceCounts>,
    /// What passed the plan's `proxies`, in their order; empty in virtual time.
    pub taps: Vec<TapRecord>,
    /// The connects from the proxy to the target; none where there were none, and in virtual time.
    pub connects: Option<Connects>,
}

impl RunRecord {
    /// The histograms of the whole: those of fleets whose attempts go to the target.
    pub fn summaries_of_all(&self) -> impl Iterator<Item = &Summary> {
        self.summaries.iter().filter(|summary| !self.producers.get(summary.fleet).copied().unwrap_or(false))
    }
}

/// One fixed slice of the run's series.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// When it begins.
    pub start: Timestamp,
    /// Over all fleets.
    pub all: Counts,
    /// By fleet number.
    pub fleets: Vec<Counts>,
}

/// What happened in a window.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Operations, booked at their intended start.
    pub offered: u64,
    /// Operations whose moment to be sent came, whether they could be sent or not: first attempts and retries that fell due.
    pub scheduled: u64,
    /// Attempts, booked when sent.
    pub attempts: u64,
    /// Of them, retries.
    pub retries: u64,
    /// Of them, the first of their operation.
    pub first_attempts: u64,
    /// Requests that reached the proxy. Live, the count is read when a window is closed, which may be a few milliseconds off.
    pub arrived: u64,
    /// Connections that clients made to the proxy, booked when they are open: those that it took in, and that a warm-up had not opened before the
    /// run began. A connect that was refused, or given up before that, came to no connection. Live, counted as `arrived` is.
    pub connects: u64,
    /// Attempts that ended, by how.
    pub by_outcome: BTreeMap<AttemptOutcome, u64>,
    /// Operations that succeeded within their deadline, booked at completion.
    pub succeeded: u64,
    /// Operations whose client gave up.
    pub failed: u64,
    /// Operations still held when the run ended; in its last window only.
    pub unresolved: u64,
    /// Operations refused at ingress.
    pub refused: u64,
    /// Operations dropped because they would have started too late.
    pub dropped: u64,
    /// Operations whose place a newer one took.
    pub superseded: u64,
    /// Operations given up and put aside.
    pub dead_lettered: u64,
    /// Operations that started late, whatever the cause.
    pub late_starts: u64,
    /// Of them, those that nothing of the plan held back: the generator was late.
    pub late_by_generator: u64,
    /// Retries that the budget refused.
    pub budget_refused: u64,
    /// Tries that a breaker or a throttle refused: nothing went on the wire.
    pub throttled: u64,
    /// Operation latency from the intended start, of those that succeeded.
    pub latency: Sketch,
    /// Attempt latency from the send, of all that ended.
    pub attempt_latency: Sketch,
    /// Generator lag.
    pub lag: Sketch,
    /// Attempts on the wire at the end of the window.
    pub in_flight: u64,
    /// Operations offered and not finished at the end of the window.
    pub backlog: u64,
    /// Age of the oldest of them.
    pub oldest_age: Span,
    /// Of them, those past attempt 3.
    pub deep_retries: u64,
    /// Of them, those past their deadline.
    pub late: u64,
    /// By destination, of a fleet of workers that has several; never over all fleets.
    pub destinations: Vec<DestinationCounts>,
}

/// Histograms of one phase and fleet. Values in microseconds, three digits, an hour at most. An operation belongs
/// to the phase of its intended start, an attempt and its lag to the phase in which it was sent, however long it
/// then takes; a window to the phase in which it begins.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The phase's number.
    pub phase: usize,
    /// The fleet's number.
    pub fleet: usize,
    /// Latency of operations that succeeded, from the intended start.
    pub succeeded: Histogram<u64>,
    /// The same of operations that failed.
    pub failed: Histogram<u64>,
    /// Latency of attempts that succeeded, from the send.
    pub attempt_succeeded: Histogram<u64>,
    /// The same of attempts that failed.
    pub attempt_failed: Histogram<u64>,
    /// Generator lag.
    pub lag: Histogram<u64>,
    /// Retry share of its windows, in basis points, one sample a window.
    pub retry_share: Histogram<u64>,
    /// How many operations ended after how many attempts, by attempts: exact up to 255, above that rounded down by
    /// less than 1%. Operations that were never attempted are not in it.
    pub attempts_per_operation: BTreeMap<u32, u64>,
    /// Distinct operations attempted: first attempts.
    pub first_attempts: u64,
}

/// Something outside that could not be put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// What may still be there, in a sentence.
    pub what: String,
    /// The commands that remove it by hand.
    pub by_hand: Vec<String>,
}

/// What a fault did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultRecord {
    /// Its name.
    pub name: String,
    /// Its kind, as in the plan.
    pub kind: &'static str,
    /// When it really began.
    pub from: Timestamp,
    /// When it really ended.
    pub to: Timestamp,
    /// How many requests and connects it touched.
    pub touched: u64,
    /// Why it did not happen as the plan has it; none where it did.
    pub failed: Option<String>,
}

impl FaultRecord {
    /// Whether it acted at all: one that failed may have acted for a while.
    pub fn took_place(&self) -> bool {
        self.failed.is_none() || self.from < self.to
    }
}

/// What an action of the timeline came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionRecord {
    /// Its name.
    pub name: String,
    /// Its kind, as in the plan.
    pub kind: &'static str,
    /// The fleet that it was done to; none for commands and webhooks.
    pub fleet: Option<String>,
    /// When it was done; when it would have been where it was not.
    pub at: Timestamp,
    /// What came of it.
    pub outcome: ActionOutcome,
    /// How many clients, workers or operations it changed something for; none for commands and webhooks.
    pub affected: Option<u64>,
    /// What a command or a webhook answered, or why it was not done; shortened.
    pub detail: String,
    /// Whether what undoes it worked; none where nothing does, or nothing was done.
    pub undone: Option<bool>,
}

/// What somebody noted while the run went on, such as "pager fired".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteRecord {
    /// When.
    pub at: Timestamp,
    /// What.
    pub text: String,
}

/// What came of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionOutcome {
    /// It was done.
    Done,
    /// It was tried, and failed.
    Failed,
    /// It was not tried: a simulated run reaches nothing outside.
    Skipped,
}

/// A bound that was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitReached {
    /// Which bound, such as `max_attempts` or `outbox`.
    pub limit: String,
    /// How often.
    pub count: u64,
}

/// Why a run ended before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// A stop condition of the plan, and what it saw.
    StopCondition(String),
    /// The user's signal: 1 for SIGHUP, 2 for SIGINT, 15 for SIGTERM.
    Signal(i32),
    /// Something of ours broke: the built-in target died, a shard ended.
    Internal(String),
}

impl std::fmt::Display for StopReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::StopCondition(what) => write!(f, "stop condition: {what}"),
            Self::Signal(1) => f.write_str("SIGHUP"),
            Self::Signal(2) => f.write_str("SIGINT"),
            Self::Signal(15) => f.write_str("SIGTERM"),
            Self::Signal(number) => write!(f, "signal {number}"),
            Self::Internal(what) => f.write_str(what),
        }
    }
}

/// What the built-in target counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceCounts {
    /// What the service counted: the front one, where there are several, with the work of all.
    pub of: crate::service::Counts,
    /// Connections that could not be accepted at once, mostly for want of file descriptors.
    pub accept_errors: u64,
    /// Where there are several services: what each of the others counted, by name.
    pub others: Vec<(String, crate::service::Counts)>,
    /// What came of the calls between them.
    pub calls: Vec<Calls>,
}

/// The calls that one service made of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calls {
    /// Who called.
    pub from: String,
    /// Whom.
    pub to: String,
    /// What came of it.
    pub counts: CallCounts,
}

/// Connects from the proxy to the target that came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connects {
    /// How many.
    pub count: u64,
    /// How long the fastest took, TLS apart: there and back, where nothing waited.
    pub fastest: Span,
}

/// Something that happened to the run itself.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEvent {
    /// The clock started.
    Started,
    /// A phase began.
    PhaseStarted {
        /// Its name.
        phase: String,
    },
    /// A fault was applied.
    FaultStarted {
        /// Its name.
        fault: String,
    },
    /// A fault was removed.
    FaultEnded {
        /// Its name.
        fault: String,
        /// What it touched.
        touched: u64,
    },
    /// An action of the timeline was done, or tried.
    Acted {
        /// What it came to.
        action: ActionRecord,
    },
    /// What undoes an action was done, or tried.
    Undone {
        /// The name of the action.
        action: String,
        /// Whether it worked.
        confirmed: bool,
        /// What it answered.
        detail: String,
    },
    /// The run is being stopped before its end.
    Stopping {
        /// Why.
        reason: String,
    },
    /// A check of `stop_if` failed or passed again.
    Check {
        /// What was asked.
        check: String,
        /// Whether it passed.
        passed: bool,
        /// What it answered.
        detail: String,
    },
    /// Something that is worth keeping with the run, and no cause for concern.
    Note {
        /// What.
        text: String,
    },
    /// Something that the user should know.
    Warning {
        /// What.
        text: String,
    },
    /// The run is over.
    Ended,
}
