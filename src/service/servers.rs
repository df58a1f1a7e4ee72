//! The servers: what is being served, and until when.

use super::config;
use super::queue::Waiting;
use crate::time::{Span, Timestamp};
use std::collections::BTreeMap;

/// The most requests in service at once, whatever the plan says: it bounds the memory of `unlimited` servers.
/// Beyond it an unlimited service answers 503, and counts that; a limited one has no more servers than this.
pub const MAX_IN_SERVICE: usize = 100_000;

/// A request in service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serving {
    /// The caller's name for it; none once its client has gone.
    pub id: Option<u64>,
    /// When its service began.
    pub since: Timestamp,
    /// In which order it came.
    pub ticket: u64,
}

/// Requests in service, by the moment each is done; ties end in the order of arrival.
#[derive(Clone, Debug)]
pub struct Servers {
    serving: BTreeMap<(Timestamp, u64), Serving>,
    bound: usize,
    /// Servers that wait for a call.
    pub(super) calling: usize,
}

impl Servers {
    /// Idle servers.
    pub fn new(servers: config::Servers) -> Self {
        let bound = match servers {
            config::Servers::Limited(n) => (n as usize).min(MAX_IN_SERVICE),
            config::Servers::Unlimited => MAX_IN_SERVICE,
        };
        Self { serving: BTreeMap::new(), bound, calling: 0 }
    }

    /// Whether one is idle.
    pub fn any_idle(&self) -> bool {
        self.serving.len() + self.calling < self.bound
    }

    /// Begins to serve a request; gives the moment when that is done.
    pub fn start(&mut self, now: Timestamp, ticket: u64, request: Waiting) -> Timestamp {
        let done = now + request.work;
        self.serving.insert((done, ticket), Serving { id: request.id, since: now, ticket });
        done
    }

    /// When the next one is done.
    pub fn next(&self) -> Option<Timestamp> {
        self.serving.first_key_value().map(|((done, _), _)| *done)
    }

    /// Takes out the next one that is done by `now`, with the moment when it was.
    pub fn finish(&mut self, now: Timestamp) -> Option<(Timestamp, Serving)> {
        let next = self.serving.first_entry()?;
        let done = next.key().0;
        (done <= now).then(|| (done, next.remove()))
    }

    /// Stops the service of one; gives how long it had been served.
    pub fn stop(&mut self, now: Timestamp, done: Timestamp, ticket: u64) -> Span {
        self.serving.remove(&(done, ticket)).map_or(Span::ZERO, |serving| now.since(serving.since))
    }

    /// Serves one on for a client that has gone.
    pub fn orphan(&mut self, done: Timestamp, ticket: u64) {
        if let Some(serving) = self.serving.get_mut(&(done, ticket)) {
            serving.id = None;
        }
    }

    /// How many are in service.
    pub fn len(&self) -> usize {
        self.serving.len()
    }

    /// Whether all are idle.
    pub fn is_empty(&self) -> bool {
        self.serving.is_empty()
    }
}
