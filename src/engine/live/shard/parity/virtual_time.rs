//! The seams of a live driver over the simulator's world, in virtual time: where nobody has anything to do, the clock
//! stands at the next moment at once.

use crate::engine::live::clock::Clock;
use crate::engine::live::shard::seams::{Book, Timers, Wire};
use crate::engine::live::transport::{Completion, WireCounts};
use crate::engine::sim::queue::HeapQueue;
use crate::engine::sim::world::{Happened, Step, World};
use crate::event::{Event, OperationId};
use crate::fleet::{Gauges, Send};
use crate::metrics::{Recorder, Slice, Totals};
use crate::plan::Plan;
use crate::service::SystemConfig;
use crate::time::{Span, Timestamp};
use std::cell::{RefCell, RefMut};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Poll::Pending, Poll::Ready};

/// A clock that goes where it is put.
#[derive(Default)]
pub struct VirtualClock(AtomicU64);

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }

    fn wall(&self) -> i64 {
        (self.now().0 / 1_000_000_000) as i64
    }
}

impl VirtualClock {
    fn stand_at(&self, at: Timestamp) {
        self.0.fetch_max(at.0, Ordering::Relaxed);
    }
}

/// The wires and the timers of a driver whose far side is the simulator's.
#[derive(Clone)]
pub struct FarSide {
    clock: Arc<VirtualClock>,
    /// What would happen then is after the run, as in the simulator.
    end: Timestamp,
    inner: Rc<RefCell<Inner>>,
}

struct Inner {
    world: World<HeapQueue<Step>>,
    ended: VecDeque<Completion>,
    serial: u64,
}

impl FarSide {
    pub fn new(plan: &Plan, service: &SystemConfig, clock: Arc<VirtualClock>, end: Timestamp) -> Self {
        let inner = Inner { world: World::new(plan, service), ended: VecDeque::new(), serial: 0 };
        Self { clock, end, inner: Rc::new(RefCell::new(inner)) }
    }

    /// Whether an attempt ends on or before a moment, and before the end; if so, the clock stands there.
    fn ends_by(&self, at: Timestamp, inner: &mut RefMut<Inner>) -> bool {
        while inner.ended.is_empty() && inner.world.next_at() <= at && inner.world.next_at() < self.end {
            self.clock.stand_at(inner.world.next_at());
            if let Happened::Ended(ended) = inner.world.advance() {
                inner.serial += 1;
                let (serial, outcome, hint) = (inner.serial, ended.outcome, ended.hint);
                inner.ended.push_back(Completion { fleet: ended.fleet, connection: ended.connection, serial, outcome, hint });
            }
        }
        !inner.ended.is_empty()
    }
}

impl Wire for FarSide {
    fn send(&self, send: Send) {
        self.inner.borrow_mut().world.send(self.clock.now(), &send);
    }

    fn cancel(&self, fleet: u16, connection: u32) {
        let mut inner = self.inner.borrow_mut();
        inner.ended.retain(|ended| (ended.fleet, ended.connection) != (fleet, connection));
        inner.world.cancel(self.clock.now(), fleet, connection);
    }

    fn next(&self) -> Option<Completion> {
        let mut inner = self.inner.borrow_mut();
        self.ends_by(self.clock.now(), &mut inner);
        inner.ended.pop_front()
    }

    /// The timers, which are polled with this, move time, and so wake for it too.
    async fn ready(&self) {
        std::future::poll_fn(|_| if self.inner.borrow().ended.is_empty() { Pending } else { Ready(()) }).await;
    }

    fn arrived(&self, fleet: u16) -> u64 {
        self.inner.borrow().world.arrived(usize::from(fleet))
    }

    fn connected(&self, fleet: u16) -> u64 {
        self.inner.borrow().world.connects(usize::from(fleet))
    }

    fn counts(&self) -> WireCounts {
        WireCounts::default()
    }
}

impl Timers for FarSide {
    async fn until(&mut self, _: &dyn Clock, at: Timestamp) -> io::Result<()> {
        std::future::poll_fn(|context| -> Poll<()> {
            if self.ends_by(at, &mut self.inner.borrow_mut()) {
                context.waker().wake_by_ref();
                return Pending;
            }
            self.clock.stand_at(at);
            Ready(())
        })
        .await;
        Ok(())
    }
}

/// A recorder, and every event that it was given, in order.
pub struct Traced {
    pub recorder: Recorder,
    pub events: Rc<RefCell<Vec<Event>>>,
}

impl Book for Traced {
    fn record(&mut self, event: &Event) {
        self.events.borrow_mut().push(*event);
        self.recorder.record(event);
    }

    fn missed(&mut self, operation: OperationId, at: Timestamp, lag: Span) {
        panic!("{operation:?}, due {at:?}, was missed by {lag}: nothing is late in virtual time");
    }

    fn close_window(&mut self, index: usize, gauges: &[Gauges]) -> Slice {
        self.recorder.close_window(index, gauges)
    }

    fn finish(self) -> Totals {
        self.recorder.finish()
    }
}
