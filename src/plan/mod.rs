//! The plan: YAML to a checked [`Plan`] made of the configs of the modules below.

pub mod action;
pub mod arithmetic;
mod change;
mod check;
pub mod compare;
pub mod emit;
pub mod error;
pub mod external;
pub mod fleet;
mod judgement;
mod load;
mod overrides;
mod periods;
pub mod presets;
pub mod proxy;
pub mod proxy_fault;
pub mod proxy_file;
pub mod raw;
pub mod service;
pub mod target;
pub mod tls;
pub mod url;
mod vars;
pub mod yaml;

pub use action::{Action, Call, Deed, Exec, Webhook};
pub use change::{Changeable, service_change};
pub use compare::{Candidate, Compare};
pub use error::{Diagnostics, PlanError};
pub use external::External;
pub use load::{Loaded, Source, decode, load};
pub use overrides::value_of;
pub use proxy::NamedProxy;
pub use proxy_fault::{ProxyFault, Sees};
pub use proxy_file::{FileProxy, FileToxic, ProxyFile, Spoken, proxy_file};
pub use raw::RawPlan;
pub use target::{HeaderValue, Route, StatusSet, Success, TargetConfig};
pub use tls::{TlsBack, TlsFront};
pub use url::{Scheme, TargetUrl};

#[cfg(test)]
mod tests;

use crate::config::TimeScale;
use crate::fault::Step;
use crate::fleet::workers::{WorkerCount, config::LIVE_UNLIMITED};
use crate::fleet::{FleetConfig, WorkersConfig};
use crate::gate::{Expect, GateConfig, RecoveryConfig, SeedShare, SteadyState, StopConfig};
use crate::network::Network;
use crate::policy::Policy;
use crate::time::{Span, Timestamp};

/// A plan that can be run: every name resolved, every number within bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What reports and folders are named after.
    pub name: String,
    /// Drives every random choice of the run.
    pub seed: u64,
    /// Where the load goes.
    pub target: TargetConfig,
    /// The network of a simulated run.
    pub network: Network,
    /// The proxies beside the one between clients and target, in the order of the plan: the n-th is number n, from 1.
    pub proxies: Vec<NamedProxy>,
    /// The fleets, in the order of the plan; their number is their index.
    pub fleets: Vec<Fleet>,
    /// The baseline.
    pub steady_state: Option<SteadyState>,
    /// The faults, in the order of the plan.
    pub timeline: Vec<Step>,
    /// The servers that carry out faults in the place of our proxies.
    pub external: Vec<External>,
    /// What else happens, in the order of its moments; at one moment in the order of the plan.
    pub actions: Vec<Action>,
    /// What counts as recovered.
    pub recovery: Option<RecoveryConfig>,
    /// Checks on the run.
    pub gates: Vec<GateConfig>,
    /// How many seeds must recover, where many are simulated; all of them where nothing is said.
    pub recovered: Option<SeedShare>,
    /// Which policies are compared.
    pub compare: Option<Compare>,
    /// When the run is stopped before its end.
    pub stop_if: Vec<StopConfig>,
    /// What a plan that shows a failure expects.
    pub expect: Option<Expect>,
    /// Where the plan says what its recovery is to be: at `expect`, or else at `recovery`; none where it says nothing.
    pub judged_at: Option<crate::config::Place>,
    /// How long the run is.
    pub length: Span,
    /// What deadlines are rounded up to.
    pub timer_grain: Span,
    /// At which speed all of this is, against the plan as written; none where that is its own.
    pub time_scale: Option<TimeScale>,
}

/// A fleet with its policy resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Fleet {
    /// Its name in the plan.
    pub name: String,
    /// The name of its policy; `inline` where the fleet spells it out.
    pub policy_name: String,
    /// How its clients retry.
    pub policy: Policy,
    /// The rest. For a fleet of workers: as many clients as there are workers, and the load that all of its streams are together.
    pub config: FleetConfig,
    /// For a fleet of workers: its queue.
    pub workers: Option<WorkersConfig>,
    /// For a fleet of producers: where its operations go instead of to the target.
    pub into: Option<Into>,
}

/// Into whose queue a fleet of producers puts its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Into {
    /// The fleet of workers, by its number.
    pub fleet: u16,
    /// The destination, by its number there.
    pub destination: u16,
}

impl Fleet {
    /// The names of its destinations; none where it has none, or one without a name.
    pub fn destinations(&self) -> Vec<String> {
        let named = self.workers.iter().flat_map(|workers| &workers.queue.destinations.0);
        named.map(|entry| entry.name.clone()).collect()
    }

    /// How many connections it has: of producers none, because theirs are not to the target.
    pub fn connections(&self) -> u32 {
        self.config.clients.saturating_mul(self.connections_each())
    }

    /// How many connections each of its clients has: as many as it may have attempts out at once; each worker one.
    pub fn connections_each(&self) -> u32 {
        match (&self.workers, self.into) {
            (_, Some(_)) => 0,
            (Some(_), _) => 1,
            (None, None) => self.policy.concurrency(),
        }
    }

    /// By connection, the region of its client.
    pub fn region_of(&self) -> impl Fn(u32) -> u16 + use<> {
        let (each, of_client) = (self.connections_each().max(1), self.config.regions.of(self.config.clients));
        move |connection| of_client(connection / each)
    }
}

impl Plan {
    /// By fleet, the names of its destinations.
    pub fn destinations(&self) -> Vec<Vec<String>> {
        self.fleets.iter().map(Fleet::destinations).collect()
    }

    /// Where each worker takes a connection: gives fleets of unlimited workers as many as fit. Which they are.
    pub fn bound_workers(&mut self) -> Vec<String> {
        let mut bounded = Vec::new();
        for Fleet { name, workers, config, .. } in &mut self.fleets {
            if let Some(workers) = workers.as_mut().filter(|workers| workers.workers == WorkerCount::Unlimited) {
                workers.workers = WorkerCount::Limited(LIVE_UNLIMITED);
                config.clients = LIVE_UNLIMITED;
                bounded.push(name.clone());
            }
        }
        bounded
    }

    /// The steps of the timeline that a Toxiproxy or a `stormwake proxy` carries out.
    pub fn remote_steps(&self) -> Vec<usize> {
        self.external.iter().flat_map(|external| external.remotes(&self.timeline)).map(|remote| remote.step).collect()
    }

    /// By fleet, whether it hands its operations to another's queue.
    pub fn producers(&self) -> Vec<bool> {
        self.fleets.iter().map(|fleet| fleet.into.is_some()).collect()
    }

    /// The fleets whose attempts go to the target.
    pub fn senders(&self) -> impl Iterator<Item = &Fleet> {
        self.fleets.iter().filter(|fleet| fleet.into.is_none())
    }

    /// The stretch of `steady_state.for` before the first fault; none where the plan has no steady state or no fault.
    pub fn baseline(&self) -> Option<(Timestamp, Timestamp)> {
        let first = self.timeline.iter().map(|step| step.from).min()?;
        let steady = self.steady_state.as_ref()?;
        Some((first - steady.r#for, first))
    }
}
