//! The faults of a proxy that `/v1` puts there: what was asked for, since when, and until when.

use super::leases::{Hold, LeaseId};
use super::refusal::Refusal;
use super::registry::{Entry, Registry, Wanted};
use crate::engine::live::proxy::Protocol;
use crate::fault::matching::MOST_MATCHERS;
use crate::fault::{Match, Step};
use crate::plan::ProxyFault;
use crate::time::{Span, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most faults of a proxy.
pub const MAX_FAULTS: usize = 100;
/// The most faults of all proxies together.
pub const MAX_ALL: usize = 2_000;
/// The longest text of a fault, in bytes: it is kept as long as the fault is.
pub const MAX_TEXT: usize = 64 << 10;
/// The longest name, in bytes.
pub const MAX_NAME: usize = 200;

/// A fault as a client asks for it.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultInput {
    /// What it is; sound but for the proxy that it goes to.
    pub fault: ProxyFault,
    /// The same in JSON, as an answer shows it.
    pub text: Arc<str>,
}

/// A fault of a proxy.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Its name, which no other fault of the proxy has.
    pub name: String,
    /// Tells its rule from all others; another one once it is changed.
    pub number: usize,
    /// As it was asked for.
    pub input: FaultInput,
    /// When it began.
    pub since: Timestamp,
    /// The lease that holds it, and what it took the place of.
    pub hold: Option<Hold<Option<Box<Placed>>>>,
}

/// By proxy, its faults by name.
pub type FaultSet = BTreeMap<String, Vec<(String, FaultInput)>>;

impl Placed {
    fn new(name: &str, number: usize, input: &FaultInput, since: Timestamp) -> Self {
        Self { name: name.to_string(), number, input: input.clone(), since, hold: None }
    }

    /// The step that it is.
    pub fn step(&self) -> Step {
        self.input.fault.step(&self.name, self.since)
    }

    /// How long it lasts.
    pub fn lasts(&self) -> Option<Span> {
        self.input.fault.r#for.as_ref().map(|lasts| lasts.value)
    }

    /// When it ends by itself.
    pub fn ends(&self) -> Option<Timestamp> {
        self.lasts().map(|lasts| self.since + lasts)
    }

    /// Whether its time is over.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.ends().is_some_and(|ends| ends <= now)
    }

    /// The lease that holds it.
    pub fn lease(&self) -> Option<&LeaseId> {
        self.hold.as_ref().map(|hold| &hold.lease)
    }
}

impl Entry {
    /// One of its faults.
    ///
    /// # Errors
    /// Where it has none of that name.
    pub fn fault(&self, name: &str) -> Result<&Placed, Refusal> {
        self.faults.iter().find(|fault| fault.name == name).ok_or_else(Refusal::no_fault)
    }

    /// Puts a fault in the place of the one of its name, or behind all others. One that is said again, and has no time of its own, stays.
    fn place(&mut self, name: &str, input: &FaultInput, number: usize, now: Timestamp) -> Result<(), Refusal> {
        let fault = &input.fault.fault.value;
        if self.protocol == Protocol::Tcp && input.fault.of_requests() {
            let error = format!("`{}` needs to know requests, and the proxy {} sees bytes", fault.key(), self.name);
            let remedy = "give the proxy `protocol: http`, or use `reset`, `hang` or `blackhole`";
            return Err(Refusal::new(400, error).at(&["fault"]).with_remedy(remedy));
        }
        let placed = Placed::new(name, number, input, now);
        let Some(there) = self.faults.iter_mut().find(|there| there.name == name) else {
            if self.faults.len() >= MAX_FAULTS {
                let error = format!("too many faults: a proxy has {MAX_FAULTS} at most");
                return Err(Refusal::new(400, error).with_remedy("remove some first"));
            }
            self.faults.push(placed);
            return self.fits_into_heads();
        };
        if there.input.text != input.text || there.lasts().is_some() {
            *there = placed;
        }
        self.fits_into_heads()
    }

    /// What its faults look for in the heads of requests.
    pub fn matches(&self) -> impl Iterator<Item = &Match> {
        self.faults.iter().filter_map(|fault| fault.input.fault.which.r#match.as_ref())
    }

    fn fits_into_heads(&self) -> Result<(), Refusal> {
        if self.matches().count() <= MOST_MATCHERS {
            return Ok(());
        }
        let error = format!("too many faults with a `match`: a proxy has {MOST_MATCHERS} at most");
        Err(Refusal::new(400, error).at(&["match"]).with_remedy("remove some first"))
    }

    /// Whether all of its faults can act on what it relays.
    ///
    /// # Errors
    /// Which one cannot.
    pub fn fits_its_faults(&self) -> Result<(), Refusal> {
        let of_requests = |fault: &&Placed| fault.input.fault.of_requests();
        match self.faults.iter().find(of_requests) {
            Some(fault) if self.protocol == Protocol::Tcp => {
                let error =
                    format!("its fault {} needs to know requests, and with `protocol: tcp` the proxy sees bytes", fault.name);
                Err(Refusal::new(400, error).at(&["protocol"]).with_remedy("remove the fault first"))
            }
            _ => Ok(()),
        }
    }
}

impl Registry {
    /// A proxy with a fault.
    ///
    /// # Errors
    /// Where there is no such proxy, or it cannot have the fault.
    pub fn with_fault(&self, proxy: &str, name: &str, input: &FaultInput, now: Timestamp) -> Result<Vec<Wanted>, Refusal> {
        named(name)?;
        let mut entry = self.get(proxy)?.clone();
        if entry.fault(name).is_err() {
            self.room_for(self.faults() + 1)?;
        }
        entry.place(name, input, self.next_number(), now)?;
        Ok(vec![Wanted { entry, moves: false }])
    }

    /// A proxy without one of its faults.
    ///
    /// # Errors
    /// Where one of the two is not there.
    pub fn without_fault(&self, proxy: &str, name: &str) -> Result<Vec<Wanted>, Refusal> {
        let mut entry = self.get(proxy)?.clone();
        entry.fault(name)?;
        entry.faults.retain(|fault| fault.name != name);
        Ok(vec![Wanted { entry, moves: false }])
    }

    /// Every proxy with these faults and no others.
    ///
    /// # Errors
    /// The first that cannot be; `at` begins with the proxy and the fault.
    pub fn with_faults(&self, set: &FaultSet, now: Timestamp) -> Result<Vec<Wanted>, Refusal> {
        for proxy in set.keys() {
            self.get(proxy).map_err(|refusal| refusal.at(&[proxy]))?;
        }
        self.room_for(set.values().map(Vec::len).sum())?;
        let mut number = self.next_number();
        let mut all = Vec::new();
        for there in self.entries() {
            let wanted = set.get(&there.name).map(Vec::as_slice).unwrap_or_default();
            let mut entry = there.clone();
            entry.faults.retain(|fault| wanted.iter().any(|(name, _)| *name == fault.name));
            for (name, input) in wanted {
                let placed = named(name).and_then(|()| entry.place(name, input, number, now));
                placed.map_err(|refusal| refusal.at(&[&there.name, name]))?;
                number += 1;
            }
            all.push(Wanted { entry, moves: false });
        }
        Ok(all)
    }

    /// The proxies whose faults have come to their end, without those.
    pub fn past(&self, now: Timestamp) -> Vec<Wanted> {
        let over = |entry: &&Entry| entry.faults.iter().any(|fault| fault.is_over(now));
        let without = |entry: &Entry| {
            let mut entry = entry.clone();
            entry.faults.retain(|fault| !fault.is_over(now));
            Wanted { entry, moves: false }
        };
        self.entries().filter(over).map(without).collect()
    }

    /// When the next fault ends by itself, begins to rest, or acts again.
    pub fn next_turn(&self, now: Timestamp) -> Option<Timestamp> {
        let faults = || self.entries().flat_map(|entry| &entry.faults);
        let turns = faults().filter_map(|fault| fault.input.fault.shape.next_turn(fault.since, now));
        faults().filter_map(Placed::ends).chain(turns).min()
    }

    fn faults(&self) -> usize {
        self.entries().map(|entry| entry.faults.len()).sum()
    }

    fn room_for(&self, faults: usize) -> Result<(), Refusal> {
        if faults <= MAX_ALL {
            return Ok(());
        }
        Err(Refusal::new(400, format!("too many faults: {MAX_ALL} at most, of all proxies")).with_remedy("remove some first"))
    }
}

fn named(name: &str) -> Result<(), Refusal> {
    if !name.is_empty() && name.len() <= MAX_NAME {
        return Ok(());
    }
    let error = format!("the name of a fault has 1 to {MAX_NAME} bytes, and this one {}", name.len());
    Err(Refusal::new(400, error).at(&["name"]).with_remedy("such as `outage`"))
}
