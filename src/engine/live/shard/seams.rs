//! What a driver needs from outside, so that a test can drive it: wires, timers and a book, beside the clock. A run is
//! compiled for its own, with nothing dynamic between.

use crate::engine::live::clock::Clock;
use crate::engine::live::timer::Timer;
use crate::engine::live::transport::{Completion, Transport, WireCounts};
use crate::event::{Event, OperationId};
use crate::fleet::{Gauges, Send};
use crate::metrics::{Recorder, Slice, Totals};
use crate::time::{Span, Timestamp};
use std::future::Future;
use std::io;

/// The clients' connections.
pub trait Wire {
    /// Puts an attempt on its connection's wire, where none is.
    fn send(&self, send: Send);

    /// Gives the attempt on a connection up and closes it.
    fn cancel(&self, fleet: u16, connection: u32);

    /// The next attempt that ended and was not given up.
    fn next(&self) -> Option<Completion>;

    /// Returns once an attempt has ended.
    fn ready(&self) -> impl Future<Output = ()>;

    /// How many requests of a fleet have reached this shard's part of the proxy.
    fn arrived(&self, fleet: u16) -> u64;

    /// How many connections of a fleet this shard's part of the proxy has taken in.
    fn connected(&self, fleet: u16) -> u64;

    /// What happened to connections so far.
    fn counts(&self) -> WireCounts;
}

/// Waits for one moment at a time.
pub trait Timers {
    /// Returns once the clock has reached `at`; may be dropped before, and asked for another moment.
    ///
    /// # Errors
    /// When the machine's timer fails.
    fn until(&mut self, clock: &dyn Clock, at: Timestamp) -> impl Future<Output = io::Result<()>>;
}

/// Where what happened is booked.
pub trait Book {
    /// Books an event.
    fn record(&mut self, event: &Event);

    /// Books the lag of an attempt that came up too late to be sent at all.
    fn missed(&mut self, operation: OperationId, at: Timestamp, lag: Span);

    /// Closes a window, the next in order.
    fn close_window(&mut self, index: usize, gauges: &[Gauges]) -> Slice;

    /// What was booked over the whole run.
    fn finish(self) -> Totals;
}

/// What a driver works with.
pub struct Seams<W, T, B> {
    pub wire: W,
    pub timers: T,
    pub book: B,
}

impl Wire for Transport {
    fn send(&self, send: Send) {
        self.send(send);
    }

    fn cancel(&self, fleet: u16, connection: u32) {
        self.cancel(fleet, connection);
    }

    fn next(&self) -> Option<Completion> {
        self.next()
    }

    async fn ready(&self) {
        self.ready().await;
    }

    fn arrived(&self, fleet: u16) -> u64 {
        self.arrived(fleet)
    }

    fn connected(&self, fleet: u16) -> u64 {
        self.connected(fleet)
    }

    fn counts(&self) -> WireCounts {
        self.counts()
    }
}

impl Timers for Timer {
    async fn until(&mut self, clock: &dyn Clock, at: Timestamp) -> io::Result<()> {
        self.until(clock, at).await
    }
}

impl Book for Recorder {
    fn record(&mut self, event: &Event) {
        self.record(event);
    }

    fn missed(&mut self, operation: OperationId, at: Timestamp, lag: Span) {
        self.missed(operation, at, lag);
    }

    fn close_window(&mut self, index: usize, gauges: &[Gauges]) -> Slice {
        self.close_window(index, gauges)
    }

    fn finish(self) -> Totals {
        self.finish()
    }
}
