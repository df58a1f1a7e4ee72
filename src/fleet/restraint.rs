//! What keeps a client from sending though something is ready: the pace at which it drains its backlog, and an outage that it
//! has noticed, during which it only probes. What it holds back waits in the outbox, as backlog: nothing is lost.
//!
//! Only fleets that have such rules have this.

use crate::record;
use crate::time::{Rate, Span, Timestamp};

record! {
    /// A client that notices an outage stops sending, goes on enqueuing, and probes.
    pub struct Defer {
        /// How many attempts in a row have to fail, of classes that its policy retries.
        after: u32 = 3,
        /// From the end of a failed attempt to the next probe, which is one attempt of what would go next.
        probe_every: Span,
    } => |defer: &Defer| match (defer.after, defer.probe_every.is_zero()) {
        (0, _) => Err("`after` must be 1 or more".to_string()),
        (_, true) => Err("`probe_every` must be longer than nothing".to_string()),
        _ => Ok(()),
    }
}

/// The restraints of one fleet's clients in one shard.
#[derive(Debug)]
pub(super) struct Restraint {
    /// The least time from one send of a client to the next.
    apart: Span,
    defer: Option<Defer>,
    clients: Vec<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// Nothing is sent before.
    not_before: Timestamp,
    /// The next probe; long past for a client that does not defer.
    probe_at: Timestamp,
    /// The moment for which a wake-up was asked.
    armed: Timestamp,
    /// Attempts that failed in a row.
    failures: u32,
}

/// Whether a client may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    /// It may.
    Now,
    /// It may not before this moment, for which a wake-up is needed.
    At(Timestamp),
    /// It may not, and the wake-up is already asked for.
    Later,
}

impl Restraint {
    /// The restraints of so many clients; none where the plan has no rule of this kind.
    pub(super) fn new(drain_rate: Option<Rate>, defer: Option<Defer>, clients: usize) -> Option<Self> {
        if drain_rate.is_none() && defer.is_none() {
            return None;
        }
        let free = State { not_before: Timestamp::ZERO, probe_at: Timestamp::ZERO, armed: Timestamp::NEVER, failures: 0 };
        Some(Self { apart: drain_rate.map_or(Span::ZERO, Rate::interval), defer, clients: vec![free; clients] })
    }

    /// Whether a client may send now.
    pub(super) fn leave(&mut self, client: u32, now: Timestamp) -> Leave {
        let state = &mut self.clients[client as usize];
        let at = state.not_before.max(state.probe_at);
        if at <= now {
            return Leave::Now;
        }
        if state.armed <= at {
            return Leave::Later;
        }
        state.armed = at;
        Leave::At(at)
    }

    /// A wake-up that was asked for has come.
    pub(super) fn woken(&mut self, client: u32, now: Timestamp) {
        let state = &mut self.clients[client as usize];
        if state.armed <= now {
            state.armed = Timestamp::NEVER;
        }
    }

    /// A client sends.
    pub(super) fn sent(&mut self, client: u32, now: Timestamp) {
        self.clients[client as usize].not_before = now + self.apart;
    }

    /// An attempt of a client has ended: in a failure that says nothing is there, or in an answer.
    pub(super) fn ended(&mut self, client: u32, at: Timestamp, failed: bool) {
        let Some(defer) = &self.defer else { return };
        let state = &mut self.clients[client as usize];
        state.failures = if failed { state.failures.saturating_add(1) } else { 0 };
        state.probe_at = if state.failures >= defer.after { at + defer.probe_every } else { Timestamp::ZERO };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::ZERO + Span::from_secs(seconds)
    }

    fn restraint(rate: Option<f64>, after: u32) -> Restraint {
        let defer = (after > 0).then_some(Defer { after, probe_every: Span::from_secs(30) });
        Restraint::new(rate.map(|rate| Rate::per_second(rate).unwrap()), defer, 2).expect("there are rules")
    }

    #[test]
    fn a_client_drains_at_its_pace() {
        let mut paced = restraint(Some(0.5), 0);
        assert_eq!(paced.leave(0, at(5)), Leave::Now);
        paced.sent(0, at(5));
        assert_eq!((paced.leave(0, at(5)), paced.leave(0, at(6))), (Leave::At(at(7)), Leave::Later));
        assert_eq!(paced.leave(1, at(5)), Leave::Now, "each has its own");
        paced.woken(0, at(7));
        assert_eq!(paced.leave(0, at(7)), Leave::Now);
        assert!(Restraint::new(None, None, 2).is_none());
    }

    #[test]
    fn an_outage_is_probed_until_something_answers() {
        let mut deferring = restraint(None, 3);
        for second in 1..=3 {
            assert_eq!(deferring.leave(0, at(second)), Leave::Now);
            deferring.ended(0, at(second), true);
        }
        assert_eq!((deferring.leave(0, at(3)), deferring.leave(0, at(4))), (Leave::At(at(33)), Leave::Later));
        deferring.woken(0, at(33));
        assert_eq!(deferring.leave(0, at(33)), Leave::Now, "the probe");
        deferring.ended(0, at(34), true);
        assert_eq!(deferring.leave(0, at(35)), Leave::At(at(64)), "the next");
        deferring.ended(0, at(64), false);
        assert_eq!(deferring.leave(0, at(64)), Leave::Now, "it drains");
        deferring.ended(0, at(65), true);
        assert_eq!(deferring.leave(0, at(65)), Leave::Now, "one failure is no outage");
    }

    #[test]
    fn an_earlier_moment_is_woken_for_though_a_later_one_is_awaited() {
        let mut both = restraint(Some(1.0), 1);
        both.ended(0, at(1), true);
        assert_eq!(both.leave(0, at(2)), Leave::At(at(31)));
        both.ended(0, at(3), false);
        both.sent(0, at(3));
        assert_eq!(both.leave(0, at(3)), Leave::At(at(4)));
        both.woken(0, at(4));
        assert_eq!(both.leave(0, at(4)), Leave::Now);
    }
}
