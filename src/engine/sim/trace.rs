//! Listening to every event of a run: to compare two runs event by event.

use crate::event::Event;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Hears every event, in order.
pub trait Trace {
    /// An event was recorded.
    fn event(&mut self, event: &Event);
}

/// Nobody listens.
impl Trace for () {
    fn event(&mut self, _: &Event) {}
}

/// Keeps every event.
#[derive(Clone, Debug, Default)]
pub struct EventList(pub Vec<Event>);

impl Trace for EventList {
    fn event(&mut self, event: &Event) {
        self.0.push(*event);
    }
}

/// A hash of all events, in order, with their moments.
#[derive(Clone, Debug, Default)]
pub struct EventHash(DefaultHasher);

impl EventHash {
    /// The hash so far.
    pub fn value(&self) -> u64 {
        self.0.finish()
    }
}

impl Trace for EventHash {
    fn event(&mut self, event: &Event) {
        event.hash(&mut self.0);
    }
}
