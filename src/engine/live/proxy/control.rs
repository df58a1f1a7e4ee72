//! What all threads of a proxy share: the snapshot in force, what it touched, and what went wrong.

use super::places::Waiting;
use super::tap::Tap;
use crate::engine::live::clock::Clock;
use crate::fault::Active;
use crate::time::Span;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, watch};

/// A snapshot and its number; a later one has a higher number.
#[derive(Clone)]
pub(super) struct Installed {
    pub(super) generation: u64,
    pub(super) active: Active,
    /// Whether clients are let in at all.
    pub(super) open: bool,
    /// Whether nobody new is let in, open or not.
    pub(super) draining: bool,
}

/// The most fleets of a plan.
const MOST_FLEETS: usize = 256;
/// A door that nobody keeps has nothing to confirm.
const NOT_KEPT: u64 = u64::MAX;

pub(super) struct Control {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) installed: watch::Sender<Installed>,
    /// The number of what is installed: one load tells a connection whether it is up to date.
    pub(super) generation: AtomicU64,
    /// By door (shard and origin): the snapshot that it has carried out.
    doors: Vec<AtomicU64>,
    door_moved: Notify,
    /// By fleet: the number of its next connection.
    pub(super) numbers: Vec<AtomicU32>,
    /// By shard, then fleet: the requests that reached it.
    arrived: Vec<AtomicU64>,
    /// By shard, then fleet: the connections that it took in.
    taken_in: Vec<AtomicU64>,
    pub(super) live: AtomicUsize,
    /// Connects to the upstream that came about, and the nanoseconds that the fastest took.
    connects: (AtomicU64, AtomicU64),
    /// The next ticket of a request that shares its connection; those of connections lie below.
    tickets: AtomicU64,
    /// Requests that wait for a place.
    pub(super) waiting: Waiting,
    pub(super) trouble: Trouble,
    /// Where what passes is counted.
    pub(super) tap: Option<Tap>,
}

/// Bounds that were reached, and how often.
#[derive(Default)]
pub(super) struct Trouble {
    /// No file descriptor for an accept.
    pub(super) accepts: AtomicU64,
    /// A listener could not be opened again.
    pub(super) reopens: AtomicU64,
    /// A listener had as many connections as it may.
    pub(super) full: AtomicU64,
    /// A connect to the upstream failed for want of a file descriptor or a port.
    pub(super) dials: AtomicU64,
    /// A connect to the upstream failed, and not for want of anything here.
    unreachable: AtomicU64,
    /// What was said last.
    unreachable_why: Mutex<String>,
    /// The guard or the resolver refused a connect.
    pub(super) denied: AtomicU64,
    /// What it said last.
    pub(super) denied_why: Mutex<String>,
    /// A request's head was too large.
    pub(super) oversized: AtomicU64,
    /// A client's TLS handshake failed, and no fault had struck it.
    pub(super) handshakes: AtomicU64,
    /// Why the last one did.
    pub(super) handshakes_why: Mutex<String>,
    /// A connection had more streams under way than it may.
    pub(super) streams: AtomicU64,
}

impl Control {
    pub(super) fn new(clock: Arc<dyn Clock>, nothing: Active, origins: usize, shards: usize) -> Self {
        let counters = |n: usize, value: u64| (0..n).map(|_| AtomicU64::new(value)).collect();
        Self {
            clock,
            installed: watch::Sender::new(Installed { generation: 0, active: nothing, open: true, draining: false }),
            generation: AtomicU64::new(0),
            doors: counters(origins * shards, NOT_KEPT),
            door_moved: Notify::new(),
            numbers: (0..origins).map(|_| AtomicU32::new(0)).collect(),
            arrived: counters(MOST_FLEETS * shards, 0),
            taken_in: counters(MOST_FLEETS * shards, 0),
            live: AtomicUsize::new(0),
            connects: (AtomicU64::new(0), AtomicU64::new(u64::MAX)),
            tickets: AtomicU64::new(1 << 63),
            waiting: Waiting::default(),
            trouble: Trouble::default(),
            tap: None,
        }
    }

    /// Puts a snapshot in force for every decision from here on.
    pub(super) fn install(&self, active: Active) {
        self.change(|installed| installed.active = active);
    }

    /// Lets clients in, or closes every listener and connection.
    pub(super) fn set_open(&self, open: bool) {
        self.change(|installed| installed.open = open);
    }

    /// Closes every listener, and no connection.
    pub(super) fn drain(&self) {
        self.change(|installed| installed.draining = true);
    }

    fn change(&self, change: impl FnOnce(&mut Installed)) {
        self.installed.send_modify(|installed| {
            installed.generation += 1;
            change(installed);
            // Inside the lock, so that two at once cannot leave the older number behind.
            self.generation.store(installed.generation, Ordering::Release);
        });
    }

    /// A ticket that no connection and no other request has.
    pub(super) fn ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a connect to the upstream that came about.
    pub(super) fn connected(&self, took: Span) {
        self.connects.0.fetch_add(1, Ordering::Relaxed);
        self.connects.1.fetch_min(took.0, Ordering::Relaxed);
    }

    /// How many connects to the upstream came about, and how long the fastest took; none where there was none.
    pub(super) fn connects(&self) -> Option<(u64, Span)> {
        let (count, fastest) = (self.connects.0.load(Ordering::Relaxed), self.connects.1.load(Ordering::Relaxed));
        (count > 0).then_some((count, Span(fastest)))
    }

    /// Counts a request of a fleet that reached a shard.
    pub(super) fn arrive(&self, shard: usize, fleet: u16) {
        if let Some(count) = self.arrived.get(shard * MOST_FLEETS + usize::from(fleet)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many requests of a fleet have reached a shard.
    pub(super) fn arrived(&self, shard: usize, fleet: u16) -> u64 {
        let count = self.arrived.get(shard * MOST_FLEETS + usize::from(fleet));
        count.map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Counts a connection of a fleet that a shard took in.
    pub(super) fn take_in(&self, shard: usize, fleet: u16) {
        if let Some(count) = self.taken_in.get(shard * MOST_FLEETS + usize::from(fleet)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many connections of a fleet a shard has taken in.
    pub(super) fn taken_in(&self, shard: usize, fleet: u16) -> u64 {
        let count = self.taken_in.get(shard * MOST_FLEETS + usize::from(fleet));
        count.map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// The connections that were accepted, and the requests that came: of all origins and shards.
    pub(super) fn counted(&self) -> (u64, u64) {
        let connected = self.numbers.iter().map(|number| u64::from(number.load(Ordering::Relaxed))).sum();
        (connected, self.arrived.iter().map(|count| count.load(Ordering::Relaxed)).sum())
    }

    /// A door has carried out a snapshot.
    pub(super) fn door_at(&self, door: usize, generation: u64) {
        self.doors[door].store(generation, Ordering::Release);
        self.door_moved.notify_waiters();
    }

    /// Nobody keeps a door any more.
    pub(super) fn door_left(&self, door: usize) {
        self.door_at(door, NOT_KEPT);
    }

    /// Waits until every door has carried out what is installed.
    pub(super) async fn settled(&self) {
        loop {
            let moved = self.door_moved.notified();
            let wanted = self.generation.load(Ordering::Acquire);
            if self.doors.iter().all(|door| door.load(Ordering::Acquire) >= wanted) {
                return;
            }
            moved.await;
        }
    }
}

impl Trouble {
    pub(super) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Every bound by its name in the record, and how often it was reached.
    pub(super) fn limits(&self) -> [(&'static str, u64); 8] {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("proxy accepts", count(&self.accepts)),
            ("proxy reopens", count(&self.reopens)),
            ("proxy connections", count(&self.full)),
            ("target connects", count(&self.dials)),
            ("target connects refused by the guard", count(&self.denied)),
            ("request head", count(&self.oversized)),
            ("TLS handshakes of clients", count(&self.handshakes)),
            ("HTTP/2 streams", count(&self.streams)),
        ]
    }

    /// Counts a connect to the upstream that failed.
    pub(super) fn unreachable(&self, why: String) {
        Self::count(&self.unreachable);
        *self.unreachable_why.lock().expect("nobody panics while holding it") = why;
    }

    /// How many connects to the upstream failed, and why the last one did.
    pub(super) fn unreached(&self) -> (u64, String) {
        let why = self.unreachable_why.lock().expect("nobody panics while holding it").clone();
        (self.unreachable.load(Ordering::Relaxed), why)
    }

    /// One sentence for each bound that was reached.
    pub(super) fn notices(&self) -> Vec<String> {
        let told = [
            (&self.accepts, "times the proxy had no file descriptor for a new connection: raise `ulimit -n` or lower `clients`"),
            (&self.reopens, "times the proxy could not open its listener again after `refuse`, and tried once more"),
            (&self.full, "times a listener of the proxy had as many connections as it may, and paused"),
            (&self.dials, "connects to the target failed for want of a file descriptor or a local port"),
            (&self.oversized, "requests were answered with 431 because their head was larger than 64 KiB or 100 fields"),
            (&self.streams, "HTTP/2 streams were reset because their connection had too many under way"),
        ];
        let why = self.denied_why.lock().expect("nobody panics while holding it").clone();
        let denied = format!("connects to the target were not made: {why}");
        let why = self.handshakes_why.lock().expect("nobody panics while holding it").clone();
        let shaken = format!("TLS handshakes of clients failed; of the last one: {why}");
        let told = told.into_iter().chain([(&self.denied, denied.as_str()), (&self.handshakes, shaken.as_str())]);
        let counted = told.map(|(counter, text)| (counter.load(Ordering::Relaxed), text));
        counted.filter(|(count, _)| *count > 0).map(|(count, text)| format!("{count} {text}")).collect()
    }
}
