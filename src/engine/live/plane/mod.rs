//! The fault plane: named proxies with their toxics and faults, made, changed and removed while they run, by the API that
//! Toxiproxy's clients speak, and by one of its own for what that lacks.
//!
//! What may be done is decided in `registry`, without effects; this file carries it out: listeners, threads, rules. A
//! call is carried out whole or not at all: what is new is bound first, and only then takes the place of what was there.
//! Nothing here waits for a connection. [`api`] speaks HTTP; what toxics do to bytes is `fault`'s and the proxy's.

mod address;
pub mod api;
mod decode;
mod differences;
mod driving;
mod expiry;
mod faults;
mod json;
mod leases;
mod lookup;
mod metrics;
mod refusal;
mod registry;
mod shards;
mod toxics;

pub use differences::{DIFFERENCES, Difference};
pub use driving::{Counters, View};
pub use faults::{FaultInput, FaultSet, Placed};
pub use json::Json;
pub use leases::Lease;
pub use refusal::Refusal;
pub use registry::{Entry, ProxyInput};
pub use toxics::ToxicInput;

use super::certificates::{Authority, CertificateError};
use super::clock::{Clock, LiveClock};
use super::guard::Allowed;
use super::proxy::{ClientTls, Entrance, Port, Protocol, Proxy, ProxyError, ProxySetup, Upstream};
use super::redacted::Redacted;
use super::tls;
use crate::fault::{Active, Matchers, Origin, Rule};
use crate::plan::TlsFront;
use crate::time::Timestamp;
use expiry::Bell;
use leases::Leases;
use lookup::Lookup;
use registry::{Registry, Wanted};
use shards::{Done, Shards};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tracing::info;

/// How long a call waits until what it changed is so everywhere. It is in force from before that.
const SETTLE: Duration = Duration::from_millis(25);

/// What a plane is made from.
#[derive(Clone, Debug)]
pub struct PlaneSetup {
    /// How many threads serve.
    pub shards: usize,
    /// Mixed into all dice.
    pub seed: u64,
    /// Whether proxies may listen beyond loopback.
    pub exposed: bool,
    /// The hosts beyond loopback that upstreams may be: names, `*.` names, or addresses.
    pub allowed: Vec<String>,
}

/// The proxies. Shared by all threads through an `Arc`.
pub struct Plane {
    state: Mutex<State>,
    allowed: Allowed,
    clock: Arc<dyn Clock>,
    seed: u64,
    /// Made when the first proxy speaks TLS to its clients.
    authority: OnceLock<Authority>,
    bell: Arc<Bell>,
}

struct State {
    registry: Registry,
    leases: Leases,
    running: BTreeMap<String, Running>,
    shards: Shards,
}

/// A proxy that runs.
struct Running {
    /// Its number at the threads.
    id: u64,
    proxy: Arc<Proxy>,
    rules: Vec<Acting>,
    /// What they look for in heads.
    matchers: Matchers,
    /// The numbers of those that are in force: a fault may rest.
    shown: Vec<usize>,
}

/// A toxic or a fault that acts.
#[derive(Clone)]
struct Acting {
    /// Its name.
    name: String,
    /// Whether it is a fault: both may have the same name.
    is_fault: bool,
    rule: Arc<Rule>,
    /// What it had touched before it was changed last.
    before: u64,
}

/// Upstreams by their text.
type Found = BTreeMap<String, Arc<Lookup>>;

/// What has to become so at other threads.
#[derive(Default)]
struct Settling {
    done: Done,
    proxies: Vec<Arc<Proxy>>,
}

impl Plane {
    /// A plane without proxies; starts its threads.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(setup: PlaneSetup) -> io::Result<Arc<Self>> {
        let PlaneSetup { shards, seed, exposed, allowed } = setup;
        let clock = LiveClock::starting_now();
        let (registry, running) = (Registry::new(exposed), BTreeMap::new());
        let leases = Leases::new(format!("{:x}{:x}", clock.wall_millis(), std::process::id()));
        let state = Mutex::new(State { registry, leases, running, shards: Shards::start(shards.max(1))? });
        let allowed = Allowed::new(allowed, true);
        let (bell, authority) = (Arc::default(), OnceLock::new());
        let plane = Arc::new(Self { state, allowed, clock, seed, bell, authority });
        expiry::keep(&plane)?;
        Ok(plane)
    }

    /// The authority of its proxies that speak TLS to their clients: one for all of them, as long as the plane is there.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub fn authority(&self) -> Result<&Authority, CertificateError> {
        if let Some(authority) = self.authority.get() {
            return Ok(authority);
        }
        let made = Authority::new(self.clock.wall())?;
        Ok(self.authority.get_or_init(|| made))
    }

    /// Every proxy by name.
    pub fn entries(&self) -> Vec<Entry> {
        self.lock().registry.entries().cloned().collect()
    }

    /// One of them.
    ///
    /// # Errors
    /// Where there is none of that name.
    pub fn entry(&self, name: &str) -> Result<Entry, Refusal> {
        self.lock().registry.get(name).cloned()
    }

    /// Makes a proxy. As in every other change, `lease` names the lease that undoes it when it ends, if any.
    ///
    /// # Errors
    /// Why there is none; then nothing has changed. The same holds for every other change.
    pub async fn create(&self, input: &ProxyInput, lease: Option<&str>) -> Result<Entry, Refusal> {
        self.change_one(lease, |registry| registry.created(input)).await
    }

    /// Changes where a proxy listens and sends, and whether it lets clients in. One that moves loses its connections.
    ///
    /// # Errors
    /// Why it stays as it was.
    pub async fn update(&self, name: &str, input: &ProxyInput, lease: Option<&str>) -> Result<Entry, Refusal> {
        self.change_one(lease, |registry| registry.updated(name, input)).await
    }

    /// Makes many, and changes those that are there; all of them or none.
    ///
    /// # Errors
    /// Why nothing has changed. `at` begins with the number of the proxy, from 0, where the reason lies in one.
    pub async fn populate(&self, inputs: &[ProxyInput], lease: Option<&str>) -> Result<Vec<Entry>, Refusal> {
        self.change(lease, |registry| registry.populated(inputs)).await
    }

    /// Adds a toxic to a proxy.
    ///
    /// # Errors
    /// Why it has none more.
    pub async fn add_toxic(&self, proxy: &str, input: &ToxicInput, lease: Option<&str>) -> Result<Entry, Refusal> {
        self.change_one(lease, |registry| registry.with_toxic(proxy, input)).await
    }

    /// Changes a toxic's attributes, those that are said, and its toxicity.
    ///
    /// # Errors
    /// Why it stays as it was.
    pub async fn update_toxic(
        &self,
        proxy: &str,
        toxic: &str,
        input: &ToxicInput,
        lease: Option<&str>,
    ) -> Result<Entry, Refusal> {
        self.change_one(lease, |registry| registry.with_toxic_changed(proxy, toxic, input)).await
    }

    /// Takes a toxic out.
    ///
    /// # Errors
    /// Where there is none of that name.
    pub async fn remove_toxic(&self, proxy: &str, toxic: &str, lease: Option<&str>) -> Result<Entry, Refusal> {
        self.change_one(lease, |registry| registry.without_toxic(proxy, toxic)).await
    }

    /// Enables every proxy, and takes all toxics and faults out.
    ///
    /// # Errors
    /// What another lease holds, where this is done under one.
    pub async fn reset(&self, lease: Option<&str>) -> Result<(), Refusal> {
        self.change(lease, |registry| Ok(registry.reset())).await.map(drop)
    }

    /// Ends a proxy with its connections; its port is free again. No lease puts it back.
    ///
    /// # Errors
    /// Where there is none of that name, or no such lease; or another one made it, or holds any of it.
    pub async fn remove(&self, name: &str, lease: Option<&str>) -> Result<(), Refusal> {
        let settling = {
            let mut state = self.lock();
            let lease = state.leases.of_call(lease)?;
            leases::may_remove(state.registry.get(name)?, lease.as_ref())?;
            info!(proxy = ?name, "a proxy is removed");
            state.registry.remove(name);
            state.end(name)
        };
        settling.wait().await;
        Ok(())
    }

    /// Closes every listener, and no connection.
    pub fn drain(&self) {
        self.lock().running.values().for_each(|running| running.proxy.drain());
    }

    /// How many clients are connected.
    pub fn connections(&self) -> usize {
        self.lock().running.values().map(|running| running.proxy.connections()).sum()
    }

    /// Everything that is counted, as Prometheus reads it.
    pub fn metrics(&self) -> String {
        let state = self.lock();
        metrics::exposition(state.registry.entries().filter_map(|entry| Some((entry, state.running.get(&entry.name)?))))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn change_one(
        &self,
        lease: Option<&str>,
        decide: impl Fn(&Registry) -> Result<Vec<Wanted>, Refusal>,
    ) -> Result<Entry, Refusal> {
        let mut entries = self.change(lease, decide).await?;
        Ok(entries.pop().expect("a change of one proxy gives one"))
    }

    /// Decides, looks names up while others may decide too, decides again by what is there now, and carries that out.
    async fn change(
        &self,
        lease: Option<&str>,
        decide: impl Fn(&Registry) -> Result<Vec<Wanted>, Refusal>,
    ) -> Result<Vec<Entry>, Refusal> {
        let wanted = self.lock().decide(lease, &decide)?;
        let found = self.look_up(wanted).await?;
        let (entries, settling) = {
            let mut state = self.lock();
            let wanted = state.decide(lease, &decide)?;
            self.carry_out(wanted, &found, &mut state)?
        };
        self.bell.ring();
        settling.wait().await;
        Ok(entries)
    }

    async fn look_up(&self, wanted: Vec<Wanted>) -> Result<Found, Refusal> {
        let moving = wanted.into_iter().map(|wanted| wanted.moves.then_some(wanted.entry));
        let (places, entries): (Vec<usize>, Vec<Entry>) = moving.enumerate().filter_map(|(n, entry)| Some((n, entry?))).unzip();
        let destinations = entries.iter().map(|entry| entry.destination.clone()).collect();
        let lookups = lookup::begin(destinations, &self.allowed, &self.clock).await.map_err(|mut refusal| {
            let place = refusal.at[0].parse().ok().and_then(|n: usize| places.get(n));
            refusal.at[0] = place.copied().unwrap_or_default().to_string();
            refusal
        })?;
        Ok(entries.into_iter().map(|entry| entry.upstream).zip(lookups).collect())
    }

    /// Binds what is new, and only then lets it take the place of what was there.
    fn carry_out(&self, mut all: Vec<Wanted>, found: &Found, state: &mut State) -> Result<(Vec<Entry>, Settling), Refusal> {
        let mut bound = self.bind(&mut all, found, state)?;
        let mut settling = Settling::default();
        for Wanted { entry, moves } in &all {
            let Entry { name, listen, enabled, .. } = entry;
            let upstream = Redacted::Url(&entry.upstream);
            info!(proxy = ?name, %listen, %upstream, enabled, toxics = entry.toxics.len(), binds = moves, "a proxy is made or changed");
            let before = state.running.get(&entry.name).map(|running| running.rules.clone()).unwrap_or_default();
            if *moves {
                settling.join(state.end(&entry.name));
                let proxy = Arc::new(bound.remove(&entry.name).expect("what moves was bound"));
                let (id, done) = state.shards.serve(&proxy);
                settling.done.extend(done);
                let (rules, matchers, shown) = (Vec::new(), Matchers::default(), Vec::new());
                state.running.insert(entry.name.clone(), Running { id, proxy, rules, matchers, shown });
            }
            let was_enabled = *moves || state.registry.get(&entry.name).is_ok_and(|there| there.enabled);
            let running = state.running.get_mut(&entry.name).expect("what does not move runs");
            running.become_like(entry, was_enabled, &before, (self.seed, self.clock.now()));
            settling.proxies.push(running.proxy.clone());
            state.registry.commit(entry.clone());
        }
        Ok((all.into_iter().map(|wanted| wanted.entry).collect(), settling))
    }

    fn bind(&self, all: &mut [Wanted], found: &Found, state: &State) -> Result<BTreeMap<String, Proxy>, Refusal> {
        let moving = || all.iter().filter(|wanted| wanted.moves);
        let held = moving().filter_map(|wanted| state.running.get(&wanted.entry.name));
        let held: Vec<Arc<Port>> = held.flat_map(|running| running.proxy.ports().iter().cloned()).collect();
        let mut bound = BTreeMap::new();
        let mut taken = Vec::new();
        for (n, Wanted { entry, .. }) in all.iter_mut().enumerate().filter(|(_, wanted)| wanted.moves) {
            let proxy = if taken.contains(&entry.listen) {
                Err(cannot_listen(entry.listen, &io::Error::from(rustix::io::Errno::ADDRINUSE)))
            } else {
                self.bind_one(entry, found, &held, state.shards.count())
            };
            let proxy = proxy.map_err(|refusal| refusal.at(&[&n.to_string()]))?;
            entry.listen = proxy.addr(0);
            taken.push(entry.listen);
            bound.insert(entry.name.clone(), proxy);
        }
        Ok(bound)
    }

    fn bind_one(&self, entry: &Entry, found: &Found, held: &[Arc<Port>], shards: usize) -> Result<Proxy, Refusal> {
        let lookup = found.get(&entry.upstream);
        let lookup = lookup.ok_or_else(|| Refusal::new(409, "the proxy was changed at the same time: try again"))?;
        let entrances = vec![Entrance { origin: Origin::from(0), listen: Some(entry.listen) }];
        let (nothing, upstream) = (Active::new(self.seed, Vec::new()), towards(entry, lookup)?);
        let tls = entry.tls.as_ref().map(|front| self.encrypted(front)).transpose();
        let tls = tls.map_err(|error| Refusal::new(400, error.to_string()).at(&["tls"]))?;
        let (protocol, clock) = (entry.protocol, self.clock.clone());
        let setup = ProxySetup { nothing, entrances, protocol, shards, upstream, clock };
        let ProxyError::Listen(error) = match Proxy::bind_over(setup, held) {
            Ok(proxy) => {
                return Ok(match tls {
                    Some(tls) => proxy.with_tls(tls),
                    None => proxy,
                });
            }
            Err(error) => error,
        };
        Err(cannot_listen(entry.listen, &error))
    }

    fn encrypted(&self, front: &TlsFront) -> Result<ClientTls, CertificateError> {
        let names: Vec<String> = front.names.iter().map(|name| name.value.clone()).collect();
        ClientTls::new(&self.authority()?.certify(&names)?)
    }
}

impl State {
    /// What is decided, held by the lease under which it is.
    fn decide(
        &self,
        lease: Option<&str>,
        decide: &impl Fn(&Registry) -> Result<Vec<Wanted>, Refusal>,
    ) -> Result<Vec<Wanted>, Refusal> {
        let lease = self.leases.of_call(lease)?;
        let mut all = decide(&self.registry)?;
        for wanted in &mut all {
            let before = self.registry.get(&wanted.entry.name).ok();
            leases::hold(before, wanted, lease.as_ref())?;
        }
        Ok(all)
    }

    /// Ends what runs under a name, if anything does.
    fn end(&mut self, name: &str) -> Settling {
        let Some(Running { id, proxy, .. }) = self.running.remove(name) else { return Settling::default() };
        proxy.set_open(false);
        Settling { done: self.shards.drop(id), proxies: Vec::new() }
    }
}

impl Running {
    /// Puts toxics, faults and openness in force. Rules that were there stay, with what they remember.
    fn become_like(&mut self, entry: &Entry, was_enabled: bool, before: &[Acting], (seed, now): (u64, Timestamp)) {
        let matchers = self.matchers.changed_to(entry.matches());
        let acting = |name: &str, is_fault: bool, number: usize, rule: &dyn Fn() -> Rule| {
            if let Some(same) = before.iter().find(|acting| acting.rule.number == number) {
                return same.clone();
            }
            let changed = before.iter().find(|acting| acting.name == name && acting.is_fault == is_fault);
            Acting { name: name.into(), is_fault, rule: Arc::new(rule()), before: changed.map_or(0, Acting::touched) }
        };
        let toxics = entry
            .harms()
            .map(|harm| acting(&harm.name, false, harm.number, &|| Rule::of_toxic(harm.number, harm.name.clone(), harm.toxic())));
        let faults = entry.faults.iter();
        let faults = faults
            .map(|fault| acting(&fault.name, true, fault.number, &|| Rule::new(fault.number, fault.step()).known_to(&matchers)));
        let rules: Vec<Acting> = toxics.chain(faults).collect();
        (self.rules, self.matchers) = (rules, matchers);
        self.show(seed, now);
        if entry.enabled != was_enabled {
            self.proxy.set_open(entry.enabled);
        }
    }

    /// Puts those rules in force that do not rest now, where these are others than before.
    fn show(&mut self, seed: u64, now: Timestamp) {
        let acting: Vec<_> =
            self.rules.iter().filter(|acting| acting.rule.step.acts(now)).map(|acting| acting.rule.clone()).collect();
        let numbers: Vec<usize> = acting.iter().map(|rule| rule.number).collect();
        if numbers != self.shown {
            self.proxy.apply(Active::new(seed, acting).with_matchers(&self.matchers));
            self.shown = numbers;
        }
    }
}

impl Acting {
    fn touched(&self) -> u64 {
        self.before + self.rule.touched()
    }
}

impl Settling {
    fn join(&mut self, other: Self) {
        self.done.extend(other.done);
        self.proxies.extend(other.proxies);
    }

    /// Waits for a moment at most: what has been decided is in force anyway.
    async fn wait(self) {
        let all = async {
            for done in self.done {
                // A thread that has ended has nothing left to do.
                let _ = done.await;
            }
            for proxy in self.proxies {
                proxy.settled(SETTLE).await;
            }
        };
        let _ = tokio::time::timeout(SETTLE, all).await;
    }
}

/// The way to a proxy's upstream, in TLS where it asks for that.
fn towards(entry: &Entry, lookup: &Arc<Lookup>) -> Result<Upstream, Refusal> {
    if !entry.destination.tls {
        return Ok(lookup.upstream());
    }
    let tls = tls::client_for(&entry.destination.host, &entry.upstream_tls);
    let (config, name) = tls.map_err(|error| Refusal::new(400, error.to_string()).at(&["upstream_tls"]))?;
    let upstream = lookup.upstream().with_tls(config, name);
    Ok(if entry.protocol == Protocol::Http { upstream } else { upstream.of_bytes() })
}

/// Says it as Go's network package does.
fn cannot_listen(addr: SocketAddr, error: &io::Error) -> Refusal {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default().to_lowercase();
    Refusal { environment: true, ..Refusal::new(500, format!("listen tcp {addr}: bind: {text}")).at(&["listen"]) }
}
