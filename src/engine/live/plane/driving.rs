//! What the plane does beyond what Toxiproxy's API knows: faults as a plan's, leases, and what it counts of both.

use super::faults::{FaultInput, FaultSet, Placed};
use super::leases::{Lease, Undone};
use super::refusal::Refusal;
use super::registry::Entry;
use super::{Acting, Plane, Running, Settling, State};
use crate::time::{Span, Timestamp};
use std::collections::BTreeMap;
use tracing::{info, trace, warn};

/// What a proxy has counted since it listens where it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Clients that are connected.
    pub connections: u64,
    /// Clients that have connected, those included.
    pub connected: u64,
    /// Requests that came; none where it knows bytes alone.
    pub requests: u64,
    /// Connects to the upstream that came about.
    pub upstream_connects: u64,
    /// Connects to it that failed.
    pub upstream_failures: u64,
    /// How often a bound was reached.
    pub bounds: u64,
}

/// A proxy as it is, with what it has counted.
#[derive(Clone, Debug)]
pub struct View {
    /// What it is.
    pub entry: Entry,
    /// What it has counted.
    pub counters: Counters,
    /// What each of its toxics has touched, by name.
    pub toxics: BTreeMap<String, u64>,
    /// What each of its faults has touched, by name.
    pub faults: BTreeMap<String, u64>,
    /// When this was so.
    pub now: Timestamp,
}

impl Plane {
    /// Every proxy by name, with what it has counted.
    pub fn views(&self) -> Vec<View> {
        let state = self.lock();
        let now = self.clock.now();
        state.registry.entries().filter_map(|entry| Some(view(entry, state.running.get(&entry.name)?, now))).collect()
    }

    /// One of them.
    ///
    /// # Errors
    /// Where there is none of that name.
    pub fn view(&self, name: &str) -> Result<View, Refusal> {
        let state = self.lock();
        let entry = state.registry.get(name)?;
        Ok(view(entry, state.running.get(name).ok_or_else(Refusal::no_proxy)?, self.clock.now()))
    }

    /// Puts a fault on a proxy, in the place of the one of its name if there is one.
    ///
    /// # Errors
    /// Why it stays as it was.
    pub async fn put_fault(&self, proxy: &str, name: &str, input: &FaultInput, lease: Option<&str>) -> Result<View, Refusal> {
        self.change(lease, |registry| registry.with_fault(proxy, name, input, self.clock.now())).await?;
        self.view(proxy)
    }

    /// Takes a fault out; how it was, and what it has touched to its end.
    ///
    /// # Errors
    /// Where there is none of that name, or another lease holds it.
    pub async fn remove_fault(&self, proxy: &str, name: &str, lease: Option<&str>) -> Result<(Placed, u64), Refusal> {
        let (placed, acting) = {
            let state = self.lock();
            let placed = state.registry.get(proxy)?.fault(name)?.clone();
            let rules = state.running.get(proxy).map(|running| running.rules.as_slice()).unwrap_or_default();
            (placed, rules.iter().find(|acting| acting.is_fault && acting.name == name).cloned())
        };
        self.change(lease, |registry| registry.without_fault(proxy, name)).await?;
        Ok((placed, acting.map_or(0, |acting| acting.touched())))
    }

    /// Gives every proxy these faults and no others; all of them or none.
    ///
    /// # Errors
    /// Why nothing has changed; `at` begins with the proxy and the fault.
    pub async fn put_faults(&self, set: &FaultSet, lease: Option<&str>) -> Result<Vec<View>, Refusal> {
        self.change(lease, |registry| registry.with_faults(set, self.clock.now())).await?;
        Ok(self.views())
    }

    /// Begins a lease.
    ///
    /// # Errors
    /// A length out of bounds, or too many leases.
    pub fn begin_lease(&self, ttl: Option<Span>) -> Result<Lease, Refusal> {
        let begun = self.lock().leases.begin(ttl, self.clock.now());
        info!(begun = begun.is_ok(), "a lease was asked for");
        self.bell.ring();
        begun
    }

    /// Has a lease last from now on. One whose time is over is not there any more.
    ///
    /// # Errors
    /// Where there is none of that name, or a length out of bounds.
    pub fn renew_lease(&self, id: &str, ttl: Option<Span>) -> Result<Lease, Refusal> {
        self.expire();
        let renewed = self.lock().leases.renew(id, ttl, self.clock.now());
        trace!(renewed = renewed.is_ok(), "a lease was to be renewed");
        self.bell.ring();
        renewed
    }

    /// Ends a lease, and undoes what it holds.
    ///
    /// # Errors
    /// Where there is none of that name.
    pub async fn end_lease(&self, id: &str) -> Result<(), Refusal> {
        let settling = {
            let mut state = self.lock();
            let ended = state.leases.end(id)?;
            info!(lease = ?ended.id, "a lease has ended: what it holds is undone");
            let undone = state.registry.undone(&[ended.id], self.clock.now());
            self.undo(undone, &mut state)
        };
        // What is back may have a moment of its own.
        self.bell.ring();
        settling.wait().await;
        Ok(())
    }

    /// A lease, what it holds, and the time.
    ///
    /// # Errors
    /// Where there is none of that name.
    pub fn lease(&self, id: &str) -> Result<(Lease, Vec<String>, Timestamp), Refusal> {
        let state = self.lock();
        let now = self.clock.now();
        let lease = state.leases.get(id)?.clone();
        let held = state.registry.held_by(id);
        Ok((lease, held, now))
    }

    /// All leases, and the time.
    pub fn leases(&self) -> (Vec<(Lease, Vec<String>)>, Timestamp) {
        let state = self.lock();
        let with = |lease: &Lease| (lease.clone(), state.registry.held_by(&lease.id));
        (state.leases.all().map(with).collect(), self.clock.now())
    }

    /// Ends what is over by now; how long it is until the next end, if one is to come.
    pub(super) fn expire(&self) -> Option<Span> {
        let mut state = self.lock();
        let now = self.clock.now();
        let ended = state.leases.expire(now);
        if !ended.is_empty() {
            warn!(leases = ?ended, "leases were not renewed in time: what they hold is undone");
            let undone = state.registry.undone(&ended, now);
            drop(self.undo(undone, &mut state));
        }
        let wanted = state.registry.past(now);
        if !wanted.is_empty() {
            drop(self.undo(Undone { wanted, removed: Vec::new() }, &mut state));
        }
        for running in state.running.values_mut() {
            running.show(self.seed, now);
        }
        let next = state.leases.next_end().into_iter().chain(state.registry.next_turn(now)).min();
        next.map(|next| next.since(now))
    }

    /// Nothing of it moves, so that nothing can be refused.
    fn undo(&self, undone: Undone, state: &mut State) -> Settling {
        let mut settling = Settling::default();
        for name in &undone.removed {
            state.registry.remove(name);
            settling.join(state.end(name));
        }
        if let Ok((_, carried_out)) = self.carry_out(undone.wanted, &BTreeMap::new(), state) {
            settling.join(carried_out);
        }
        settling
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        self.bell.ring();
    }
}

fn view(entry: &Entry, running: &Running, now: Timestamp) -> View {
    let proxy = &running.proxy;
    let touched = |faults: bool| {
        let each = running.rules.iter().filter(|acting| acting.is_fault == faults);
        each.map(|acting: &Acting| (acting.name.clone(), acting.touched())).collect()
    };
    let (connections, connected, requests) = proxy.counted();
    let counters = Counters {
        connections,
        connected,
        requests,
        upstream_connects: proxy.connects().map_or(0, |connects| connects.count),
        upstream_failures: proxy.unreached().0,
        bounds: proxy.limits().iter().map(|(_, count)| count).sum(),
    };
    View { entry: entry.clone(), counters, toxics: touched(false), faults: touched(true), now }
}
