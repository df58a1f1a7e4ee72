//! What one shard books by destination, for fleets of workers: an operation's destination stands for its client.
//!
//! The backlog of a destination is counted from events and not asked of a machine: what was offered and has not finished.

use super::sketch::{Sketch, Tally};
use crate::event::{Event, OperationOutcome};
use crate::time::{Span, Timestamp};

/// What happened in a window with regard to one destination.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DestinationCounts {
    /// Operations, booked at their intended start.
    pub offered: u64,
    /// Attempts, booked when sent.
    pub attempts: u64,
    /// Of them, retries.
    pub retries: u64,
    /// Operations that succeeded within their deadline, booked at completion.
    pub succeeded: u64,
    /// Operation latency from the intended start, of those that succeeded.
    pub latency: Sketch,
    /// Operations offered and not finished at the end of the window: ready, scheduled and in flight.
    pub backlog: u64,
}

impl DestinationCounts {
    /// Adds what another shard counted.
    pub fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.attempts += other.attempts;
        self.retries += other.retries;
        self.succeeded += other.succeeded;
        self.latency.merge(&other.latency);
        self.backlog += other.backlog;
    }
}

/// The destinations of one fleet, while they are written.
#[derive(Clone, Debug)]
pub(super) struct Shelf {
    /// By window and destination: the one that is open, and the one after.
    open: [Vec<(DestinationCounts, Tally)>; 2],
    /// By destination.
    held: Vec<u64>,
}

impl Shelf {
    pub(super) fn new(destinations: usize) -> Self {
        let open = vec![Default::default(); destinations];
        Self { open: [open.clone(), open], held: vec![0; destinations] }
    }

    /// Books an event of its fleet. `ahead` says of a moment whether it lies in the window after the one that is open.
    pub(super) fn record(&mut self, event: &Event, ahead: impl Fn(Timestamp) -> bool) {
        let (Event::Offered { operation, at } | Event::Sent { operation, at, .. } | Event::Finished { operation, at, .. }) =
            *event
        else {
            return;
        };
        let place = operation.client as usize;
        let (Some((counts, latency)), Some(held)) = (self.open[usize::from(ahead(at))].get_mut(place), self.held.get_mut(place))
        else {
            return;
        };
        match *event {
            Event::Offered { .. } => {
                counts.offered += 1;
                *held += 1;
            }
            Event::Sent { retry, .. } => {
                counts.attempts += 1;
                counts.retries += u64::from(retry);
            }
            Event::Finished { offered, outcome, .. } => {
                *held = held.saturating_sub(1);
                if outcome == OperationOutcome::Succeeded {
                    counts.succeeded += 1;
                    latency.record(at.since(offered));
                }
            }
            _ => {}
        }
    }

    /// Closes the window that is open.
    pub(super) fn close(&mut self) -> Vec<DestinationCounts> {
        let closed = self.open[0].iter_mut().zip(&self.held).map(|((counts, latency), &backlog)| {
            let latency = latency.take();
            DestinationCounts { latency, backlog, ..std::mem::take(counts) }
        });
        let closed = closed.collect();
        self.open.swap(0, 1);
        closed
    }
}

/// The median latency over several windows of a destination; none where nothing succeeded.
pub fn median<'a>(windows: impl Iterator<Item = &'a DestinationCounts>) -> Option<Span> {
    let mut all = Tally::default();
    windows.for_each(|counts| all.merge(&counts.latency));
    all.take().quantile(500)
}
