//! Leases: what is changed under one is undone when it ends, by whoever holds it or because nobody has renewed it. Decisions without effects.
//!
//! A lease knows nothing of what it holds: each thing that was changed under it says so itself, with what was there before. So a lease
//! cannot forget anything, and what is gone already needs no undoing.

use super::faults::Placed;
use super::refusal::Refusal;
use super::registry::{Entry, Registry, Wanted};
use super::toxics::Harm;
use crate::time::{Span, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How long a lease lasts where nothing is said.
pub const TTL: Span = Span::from_secs(5);
/// The shortest and the longest.
const BOUNDS: (Span, Span) = (Span::from_secs(1), Span::from_secs(3_600));
/// The most at once.
const MAX_LEASES: usize = 1_000;

/// Tells a lease from all others, those of an earlier process included.
pub type LeaseId = Arc<str>;

/// What a lease holds: what was there before is put back when it ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Hold<T> {
    /// The lease.
    pub lease: LeaseId,
    /// What was there before.
    pub before: T,
}

/// A lease.
#[derive(Clone, Debug, PartialEq)]
pub struct Lease {
    /// Its name.
    pub id: LeaseId,
    /// How long it lasts from when it is renewed.
    pub ttl: Span,
    /// When it ends.
    pub ends: Timestamp,
}

/// The leases by name.
#[derive(Debug, Default)]
pub struct Leases {
    all: BTreeMap<LeaseId, Lease>,
    /// What every name begins with.
    prefix: String,
    next: u64,
}

impl Leases {
    /// No lease; `prefix` tells their names from those of other processes.
    pub fn new(prefix: String) -> Self {
        Self { prefix, ..Self::default() }
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Lease> {
        self.all.values()
    }

    /// A lease.
    ///
    /// # Errors
    /// Where there is none of that name.
    pub fn get(&self, id: &str) -> Result<&Lease, Refusal> {
        self.all.get(id).ok_or_else(|| Refusal::no_lease(404, id))
    }

    /// The name of a lease that a call names; none where it names none.
    ///
    /// # Errors
    /// Where there is none of that name.
    pub fn of_call(&self, id: Option<&str>) -> Result<Option<LeaseId>, Refusal> {
        let find = |id: &str| self.all.get(id).map(|lease| lease.id.clone()).ok_or_else(|| Refusal::no_lease(412, id));
        id.map(find).transpose()
    }

    /// A new one.
    ///
    /// # Errors
    /// A length out of bounds, or too many leases.
    pub fn begin(&mut self, ttl: Option<Span>, now: Timestamp) -> Result<Lease, Refusal> {
        let ttl = bounded(ttl.unwrap_or(TTL))?;
        if self.all.len() >= MAX_LEASES {
            let error = format!("too many leases: {MAX_LEASES} at most");
            return Err(Refusal::new(429, error).with_remedy("end those that are not needed, or wait until they end"));
        }
        self.next += 1;
        let id: LeaseId = format!("{}-{}", self.prefix, self.next).into();
        let lease = Lease { id: id.clone(), ttl, ends: now + ttl };
        self.all.insert(id, lease.clone());
        Ok(lease)
    }

    /// Has one last from now on, for as long as it did or for another time.
    ///
    /// # Errors
    /// Where there is none of that name, or a length out of bounds.
    pub fn renew(&mut self, id: &str, ttl: Option<Span>, now: Timestamp) -> Result<Lease, Refusal> {
        let lease = self.all.get_mut(id).ok_or_else(|| Refusal::no_lease(404, id))?;
        lease.ttl = bounded(ttl.unwrap_or(lease.ttl))?;
        lease.ends = now + lease.ttl;
        Ok(lease.clone())
    }

    /// Forgets a lease.
    ///
    /// # Errors
    /// Where there is none of that name.
    pub fn end(&mut self, id: &str) -> Result<Lease, Refusal> {
        self.all.remove(id).ok_or_else(|| Refusal::no_lease(404, id))
    }

    /// Forgets those whose time is over; their names.
    pub fn expire(&mut self, now: Timestamp) -> Vec<LeaseId> {
        self.all.extract_if(.., |_, lease| lease.ends <= now).map(|(id, _)| id).collect()
    }

    /// When the next one ends.
    pub fn next_end(&self) -> Option<Timestamp> {
        self.all.values().map(|lease| lease.ends).min()
    }
}

fn bounded(ttl: Span) -> Result<Span, Refusal> {
    let (least, most) = BOUNDS;
    if (least..=most).contains(&ttl) {
        return Ok(ttl);
    }
    let error = format!("a lease of {ttl}: expected {least} to {most}");
    Err(Refusal::new(400, error).at(&["ttl"]).with_remedy(format!("such as `{TTL}`, and renew it every third of that")))
}

/// Something of a proxy that a lease can hold.
trait Held: Clone {
    fn name(&self) -> &str;
    fn number(&self) -> usize;
    fn hold(&mut self) -> &mut Option<Hold<Option<Box<Self>>>>;
    fn held_by(&self) -> Option<&LeaseId>;
}

impl Held for Harm {
    fn name(&self) -> &str {
        &self.name
    }
    fn number(&self) -> usize {
        self.number
    }
    fn hold(&mut self) -> &mut Option<Hold<Option<Box<Self>>>> {
        &mut self.hold
    }
    fn held_by(&self) -> Option<&LeaseId> {
        self.hold.as_ref().map(|hold| &hold.lease)
    }
}

impl Held for Placed {
    fn name(&self) -> &str {
        &self.name
    }
    fn number(&self) -> usize {
        self.number
    }
    fn hold(&mut self) -> &mut Option<Hold<Option<Box<Self>>>> {
        &mut self.hold
    }
    fn held_by(&self) -> Option<&LeaseId> {
        self.lease()
    }
}

/// Has a lease hold what differs between a proxy that is there and as it shall be; what another lease holds stays that one's, and only who
/// names no lease may change it.
///
/// # Errors
/// What the lease cannot hold.
pub fn hold(before: Option<&Entry>, wanted: &mut Wanted, lease: Option<&LeaseId>) -> Result<(), Refusal> {
    let Wanted { entry, moves } = wanted;
    let Some(before) = before else {
        entry.made_under = lease.cloned();
        return hold_each(&[], &mut entry.toxics, None).and_then(|()| hold_each(&[], &mut entry.faults, None));
    };
    if *moves && lease.is_some() {
        let error = format!("the proxy {} would listen or send elsewhere, and no lease undoes that", entry.name);
        return Err(Refusal::new(400, error).with_remedy("send this call without the header Stormwake-Lease"));
    }
    if entry.enabled != before.enabled {
        entry.hold = match (lease, &before.hold) {
            (None, _) => None,
            (Some(lease), None) => Some(Hold { lease: lease.clone(), before: before.enabled }),
            (Some(lease), Some(hold)) if hold.lease == *lease => Some(hold.clone()),
            (Some(_), Some(hold)) => return Err(held(&format!("`enabled` of {}", entry.name), &hold.lease)),
        };
    }
    hold_each(&before.toxics, &mut entry.toxics, lease)?;
    hold_each(&before.faults, &mut entry.faults, lease)
}

fn hold_each<T: Held>(before: &[T], after: &mut [T], lease: Option<&LeaseId>) -> Result<(), Refusal> {
    let foreign = |there: &T| lease.and_then(|lease| there.held_by().filter(|by| *by != lease).cloned());
    for gone in before.iter().filter(|there| !after.iter().any(|one| one.name() == there.name())) {
        if let Some(by) = foreign(gone) {
            return Err(held(gone.name(), &by));
        }
    }
    for one in after {
        let there = before.iter().find(|there| there.name() == one.name());
        if there.is_some_and(|there| there.number() == one.number()) {
            continue;
        }
        if let Some((there, by)) = there.and_then(|there| Some((there, foreign(there)?))) {
            return Err(held(there.name(), &by));
        }
        let kept = there.and_then(|there| there.clone().hold().take());
        let begun = lease.map(|lease| Hold { lease: lease.clone(), before: there.cloned().map(Box::new) });
        *one.hold() = kept.or(begun);
    }
    Ok(())
}

/// Whether who names this lease may remove a proxy: not where another lease made it, or holds any of it.
///
/// # Errors
/// Which lease has it.
pub fn may_remove(entry: &Entry, lease: Option<&LeaseId>) -> Result<(), Refusal> {
    let Some(lease) = lease else { return Ok(()) };
    let own = [entry.made_under.as_ref(), entry.hold.as_ref().map(|hold| &hold.lease)];
    let toxics = entry.toxics.iter().map(Held::held_by);
    let all = own.into_iter().chain(toxics).chain(entry.faults.iter().map(Held::held_by)).flatten();
    match all.into_iter().find(|by| *by != lease) {
        Some(by) => Err(held(&entry.name, by)),
        None => Ok(()),
    }
}

fn held(what: &str, by: &LeaseId) -> Refusal {
    let remedy = "wait until that lease ends, or send this call without the header Stormwake-Lease";
    Refusal::new(409, format!("{what} is held by the lease {by}")).with_remedy(remedy)
}

/// What the end of some leases makes of the proxies.
#[derive(Debug, Default)]
pub struct Undone {
    /// Those that stay, as they shall be.
    pub wanted: Vec<Wanted>,
    /// Those that go, by name.
    pub removed: Vec<String>,
}

impl Registry {
    /// What undoes all that these leases hold.
    pub fn undone(&self, ended: &[LeaseId], now: Timestamp) -> Undone {
        let mut undone = Undone::default();
        for there in self.entries() {
            if there.made_under.as_ref().is_some_and(|by| ended.contains(by)) {
                undone.removed.push(there.name.clone());
                continue;
            }
            let mut entry = there.clone();
            if let Some(hold) = entry.hold.take_if(|hold| ended.contains(&hold.lease)) {
                entry.enabled = hold.before;
            }
            entry.toxics = put_back(entry.toxics, ended);
            entry.faults = put_back(entry.faults, ended);
            entry.faults.retain(|fault| !fault.is_over(now));
            if entry != *there {
                undone.wanted.push(Wanted { entry, moves: false });
            }
        }
        undone
    }

    /// What a lease holds, each as a path.
    pub fn held_by(&self, lease: &str) -> Vec<String> {
        let of = |entry: &Entry| {
            let name = &entry.name;
            let is = |by: Option<&LeaseId>| by.is_some_and(|by| **by == *lease);
            let made = is(entry.made_under.as_ref()).then(|| name.clone());
            let enabled = is(entry.hold.as_ref().map(|hold| &hold.lease)).then(|| format!("{name}/enabled"));
            let toxics = entry.toxics.iter().filter(|one| is(one.held_by())).map(|one| format!("{name}/toxics/{}", one.name));
            let faults = entry.faults.iter().filter(|one| is(one.held_by())).map(|one| format!("{name}/faults/{}", one.name));
            made.into_iter().chain(enabled).chain(toxics).chain(faults).collect::<Vec<_>>()
        };
        self.entries().flat_map(of).collect()
    }
}

fn put_back<T: Held>(all: Vec<T>, ended: &[LeaseId]) -> Vec<T> {
    let before = |mut one: T| match one.hold().take_if(|hold| ended.contains(&hold.lease)) {
        Some(hold) => hold.before.map(|before| *before),
        None => Some(one),
    };
    all.into_iter().filter_map(before).collect()
}
