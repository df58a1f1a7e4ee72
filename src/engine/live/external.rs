//! Faults that a Toxiproxy or a `stormwake proxy` carries out: its proxies are moved along with the timeline, looked at after each change, and left as they were found.
//!
//! [`External`] is what a run has of it. It owns a driver for each proxy ([`driver`]), which speaks to the server through our own client ([`client`]),
//! and what cleans up where this process is killed: of a Toxiproxy another process ([`watchdog`], [`guard`]), of a `stormwake proxy` a lease
//! ([`lease`]). What a server should have is decided in
//! [`fault::external`](crate::fault::external).
//!
//! A run takes a proxy only as it should be: there, enabled, without toxics that some run of ours has left. It neither enables a proxy
//! that somebody else has disabled, nor removes what another run may still need.

pub mod client;
pub mod driver;
pub mod guard;
pub mod lease;
mod v1;
pub mod watchdog;
mod wire;

use super::clock::Clock;
use super::guard::{Allowed, GuardError};
use crate::fault::external::{Call, Hand, Remote, Server};
use crate::metrics::Left;
use crate::plan::{Plan, TargetUrl};
pub use client::{ApiError, Endpoint};
pub use driver::Told;
use driver::{Driver, of_strangers};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use watchdog::{BEAT, Charge, Watchdog};

/// Why a server cannot carry out the faults; known before the run begins.
#[derive(Debug, thiserror::Error)]
pub enum ExternalError {
    /// An address that must not be dialled.
    #[error("the server that has the plan's faults: {0}")]
    Guard(#[from] GuardError),
    /// A server that does not answer as it should.
    #[error("the {server} at {authority} cannot be used: {source}; is it running there?")]
    Api {
        /// What it is.
        server: Server,
        /// Where.
        authority: String,
        /// What happened.
        source: ApiError,
    },
    /// A proxy that is not there.
    #[error("the {server} at {authority} has no proxy `{proxy}`: `curl http://{authority}/proxies` lists those that it has")]
    NoProxy {
        /// What it is.
        server: Server,
        /// Where.
        authority: String,
        /// Its name.
        proxy: String,
    },
    /// A proxy that is down.
    #[error("the {server}'s `{proxy}` is disabled, and only whoever disabled it knows why; to enable it: {by_hand}")]
    Disabled {
        /// What the server is.
        server: Server,
        /// Its name.
        proxy: String,
        /// The command.
        by_hand: String,
    },
    /// Toxics of another run.
    #[error(
        "the {server}'s `{proxy}` has faults of another run of stormwake: where that is still going, wait for it; where it was killed, remove \
         them: {by_hand}"
    )]
    Marked {
        /// What the server is.
        server: Server,
        /// Its name.
        proxy: String,
        /// The commands.
        by_hand: String,
    },
    /// A proxy that moves bytes, and a fault that answers requests.
    #[error("the stormwake proxy's `{proxy}` moves bytes, and `{fault}` needs to know requests: give it `protocol: http`")]
    OfBytes {
        /// Its name.
        proxy: String,
        /// The step's name.
        fault: String,
    },
    /// No watchdog.
    #[error("the process that would remove the faults if this one were killed does not run: {0}")]
    Watchdog(String),
}

impl ExternalError {
    /// Whether this is a refusal (exit code 5).
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Guard(guard) if guard.is_refusal())
    }
}

/// A proxy that may be dialled.
pub struct Prepared {
    endpoint: Endpoint,
    /// Whether it stands between the clients and the target, as far as the plan says.
    in_front: bool,
    remotes: Vec<Remote>,
}

/// What is worth saying of a proxy before the run.
#[derive(Default)]
pub struct Notices {
    /// No cause for concern.
    pub notes: Vec<String>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// The servers of a run. Dropped before its end, the watchdog removes what they have, or the end of a lease does.
pub struct External {
    orders: Vec<mpsc::UnboundedSender<Vec<usize>>>,
    drivers: Vec<JoinHandle<Driver>>,
    told: mpsc::UnboundedReceiver<Told>,
    watchdog: Option<Arc<Watchdog>>,
    leased: Vec<Endpoint>,
    _beats: JoinSet<()>,
}

/// What came of the last removal.
#[derive(Debug, Default)]
pub struct Ending {
    /// What became of the steps that had not been told.
    pub told: Vec<Told>,
    /// What could not be removed.
    pub left: Vec<Left>,
}

impl External {
    /// Looks up what may be dialled. Blocks while names are resolved; none of them is looked up again.
    ///
    /// # Errors
    /// A refusal, or a host that is not known.
    pub fn prepare(plan: &Plan, allowed: &Allowed) -> Result<Vec<Prepared>, ExternalError> {
        let prepare = |external: &crate::plan::External| {
            let url = &external.api;
            let addresses = allowed.resolve(&url.host, url.port)?;
            let (server, lease) = (external.server, Default::default());
            let endpoint = Endpoint { addresses, authority: url.authority(), proxy: external.name.clone(), server, lease };
            Ok(Prepared { endpoint, in_front: external.on == 0, remotes: external.remotes(&plan.timeline) })
        };
        plan.external.iter().map(prepare).collect()
    }

    /// Sees that each proxy is as it should be, and sees to it that nothing outlives the run. `run` tells this run from all others, in letters and digits; `target` is
    /// where the requests go.
    ///
    /// # Errors
    /// A server or a proxy that is not as it should be; no watchdog, or no lease.
    pub async fn begin(
        prepared: Vec<Prepared>,
        program: &Path,
        run: &str,
        target: Option<&TargetUrl>,
        clock: &Arc<dyn Clock>,
    ) -> Result<(Self, Notices), ExternalError> {
        let mut notices = Notices::default();
        let mut strangers = Vec::new();
        for one in &prepared {
            strangers.push(look(one, run, target.filter(|_| one.in_front), &mut notices).await?);
        }
        let watchdog = watched(&prepared, program, run).await?;
        let leased = leased(&prepared).await?;
        let (heard, told) = mpsc::unbounded_channel();
        let (mut orders, mut drivers) = (Vec::new(), Vec::new());
        for (number, (Prepared { endpoint, remotes, .. }, strangers)) in prepared.into_iter().zip(strangers).enumerate() {
            let (told, clock, watchdog, run) = (heard.clone(), clock.clone(), watchdog.clone(), run.to_string());
            let driver = Driver::new(driver::Parts { number, endpoint, run, remotes, strangers, watchdog, told, clock });
            let (order, ordered) = mpsc::unbounded_channel();
            orders.push(order);
            drivers.push(tokio::spawn(driver.follow(ordered)));
        }
        let mut beats = JoinSet::new();
        if let Some(watchdog) = &watchdog {
            beats.spawn(beat(watchdog.clone()));
        }
        for endpoint in &leased {
            beats.spawn(lease::keep(endpoint.clone()));
        }
        Ok((Self { orders, drivers, told, watchdog, leased, _beats: beats }, notices))
    }

    /// Has the proxies carry out the steps that act from now on. Never waits.
    pub fn turn(&self, acting: &[usize]) {
        for order in &self.orders {
            // A driver that has gone is found at the end.
            let _ = order.send(acting.to_vec());
        }
    }

    /// What becomes of the steps; never, where nothing more does. Cancel safe.
    pub async fn next(&mut self) -> Told {
        match self.told.recv().await {
            Some(told) => told,
            None => std::future::pending().await,
        }
    }

    /// Begins to remove everything; within about six seconds that is done, or told to be left.
    pub fn end(self) -> JoinHandle<Ending> {
        let Self { orders, drivers, mut told, watchdog, leased, _beats } = self;
        drop(orders);
        tokio::spawn(async move {
            let mut ending = Ending::default();
            let mut clearing = JoinSet::new();
            for driver in drivers {
                clearing.spawn(async move {
                    match driver.await {
                        Ok(driver) => driver.clear().await,
                        Err(error) => Some(Left { what: format!("a driver broke off: {error}"), by_hand: Vec::new() }),
                    }
                });
            }
            while let Some(left) = clearing.join_next().await {
                let broken = |error| Some(Left { what: format!("a driver broke off: {error}"), by_hand: Vec::new() });
                ending.left.extend(left.unwrap_or_else(broken));
            }
            while let Ok(one) = told.try_recv() {
                ending.told.push(one);
            }
            drop(_beats);
            match &watchdog {
                Some(watchdog) if ending.left.is_empty() => watchdog.dismiss().await,
                Some(watchdog) => watchdog.leave(),
                None => {}
            }
            // Where something is left, the end of a lease is what removes it: by a call if there is an answer to one, else in its time.
            for endpoint in &leased {
                lease::end(endpoint).await;
            }
            ending
        })
    }
}

/// A process that watches over those that are Toxiproxies; none where there are none.
async fn watched(prepared: &[Prepared], program: &Path, run: &str) -> Result<Option<Arc<Watchdog>>, ExternalError> {
    let its = prepared.iter().filter(|one| one.endpoint.server == Server::Toxiproxy);
    let charges: Vec<Charge> = its.map(|one| Charge { endpoint: one.endpoint.clone(), run: run.to_string() }).collect();
    if charges.is_empty() {
        return Ok(None);
    }
    let watchdog = Watchdog::start(program, &charges).await.map_err(ExternalError::Watchdog)?;
    Ok(Some(Arc::new(watchdog)))
}

/// Begins a lease with each that is a `stormwake proxy`; those.
async fn leased(prepared: &[Prepared]) -> Result<Vec<Endpoint>, ExternalError> {
    let mut leased = Vec::new();
    for Prepared { endpoint, .. } in prepared.iter().filter(|one| one.endpoint.server == Server::Stormwake) {
        let (server, authority) = (endpoint.server, endpoint.authority.clone());
        lease::begin(endpoint).await.map_err(|source| ExternalError::Api { server, authority, source })?;
        leased.push(endpoint.clone());
    }
    Ok(leased)
}

/// Tells the watchdog once a second that the run lives.
async fn beat(watchdog: Arc<Watchdog>) {
    let mut ticks = tokio::time::interval(BEAT.to_std());
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // Where it has gone, the next change fails.
    while watchdog.beat().is_ok() {
        ticks.tick().await;
    }
}

/// Sees that a proxy is as it should be; the toxics and faults of others that it has.
async fn look(
    Prepared { endpoint, remotes, .. }: &Prepared,
    run: &str,
    target: Option<&TargetUrl>,
    notices: &mut Notices,
) -> Result<Vec<String>, ExternalError> {
    let (server, authority, proxy) = (endpoint.server, endpoint.authority.clone(), endpoint.proxy.clone());
    let held = match endpoint.held().await {
        Ok(held) => held,
        Err(ApiError::NoProxy { .. }) => return Err(ExternalError::NoProxy { server, authority, proxy }),
        Err(source) => return Err(ExternalError::Api { server, authority, source }),
    };
    let marked = held.marked().into_iter().map(|name| endpoint.by_hand(&Call::Remove(name.to_string())));
    let marked: Vec<String> = marked.collect();
    if !marked.is_empty() {
        return Err(ExternalError::Marked { server, proxy, by_hand: marked.join("; ") });
    }
    if !held.enabled {
        return Err(ExternalError::Disabled { server, proxy, by_hand: endpoint.by_hand(&Call::Enable(true)) });
    }
    if let Some(remote) = remotes.iter().find(|remote| held.of_bytes && remote.of_requests) {
        return Err(ExternalError::OfBytes { proxy, fault: remote.name.clone() });
    }
    let listens = |target: &&TargetUrl| held.listen.rsplit(':').next() == Some(target.port.to_string().as_str());
    if let Some(target) = target.filter(|target| !listens(target)) {
        let (target, listen) = (target.authority(), &held.listen);
        let text = format!(
            "the target is {target} and the {server}'s `{proxy}` listens at {listen}: its faults strike behind the target"
        );
        notices.notes.push(text);
    }
    let strangers = Hand::new(run, server).strangers(&held);
    notices.warnings.extend(of_strangers(endpoint, &strangers));
    Ok(strangers)
}
