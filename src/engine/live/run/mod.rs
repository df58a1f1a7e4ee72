//! A live run, from the first check to its record.

pub mod commands;
mod coordinator;
mod hearing;
mod preflight;
mod proxies;

use super::actions::ActionError;
use super::certificates::CertificateError;
use super::external::ExternalError;
use super::guard::GuardError;
use super::limits::TooManySockets;
use super::proxy::ProxyError;
use super::signal::Signals;
use super::stop::CheckError;
use super::target::TargetError;
use super::tls::TlsError;
use super::transport::HeaderError;
use crate::engine::Observer;
use crate::metrics::RunRecord;
use crate::plan::Plan;
use commands::Commands;
use std::path::PathBuf;

/// What a run is made from.
pub struct RunSetup {
    /// The plan.
    pub plan: Plan,
    /// Its text after variables and overrides; the built-in target's child reads it.
    pub effective_yaml: String,
    /// The program that is started as the built-in target: this one.
    pub program: PathBuf,
    /// Whether `--approve` was given.
    pub approve: bool,
    /// How many shards; as many as cores, and no more than clients, where nothing is said.
    pub shards: Option<usize>,
    /// Who hears what happens.
    pub observer: Box<dyn Observer>,
    /// What is asked of the run while it goes on; none where nobody watches it.
    pub commands: Option<Commands>,
}

/// Why there is no record.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A target that must not be, or cannot be, dialled.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// More clients than sockets.
    #[error(transparent)]
    Sockets(#[from] TooManySockets),
    /// A header that cannot be sent.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// A check of `stop_if` that cannot be asked.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// An action of the timeline that cannot be done.
    #[error(transparent)]
    Action(#[from] ActionError),
    /// A Toxiproxy that cannot carry out the faults.
    #[error(transparent)]
    External(#[from] ExternalError),
    /// TLS that cannot be spoken.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Certificates that cannot be made, or an authority that cannot be written.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// A proxy that cannot listen.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// A proxy of the plan that cannot listen where it is told to.
    #[error("`proxies.{name}` cannot listen on {listen}: {source}; stop what listens there, or choose another port")]
    Listen {
        /// Its name.
        name: String,
        /// Where.
        listen: std::net::SocketAddr,
        /// What the machine said.
        source: std::io::Error,
    },
    /// A built-in target that does not start.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The machine refused something.
    #[error("{what}: {source}; this process may be at a limit: raise `ulimit -n` and `ulimit -u`, or use fewer --shards")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the machine said.
        source: std::io::Error,
    },
    /// Clients that could not be connected in time, or a shard that died of it.
    #[error("the run could not begin: {0}")]
    WarmUp(String),
    /// A signal came before the clock started.
    #[error("interrupted before the run began")]
    Interrupted(i32),
}

impl RunError {
    /// Whether a guard refused the run (exit code 5), and nothing is wrong with the environment.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Guard(guard) => guard.is_refusal(),
            Self::Check(check) => check.is_refusal(),
            Self::Action(action) => action.is_refusal(),
            Self::External(external) => external.is_refusal(),
            _ => false,
        }
    }
}

/// Runs a plan on real sockets. Builds its own runtimes; the calling thread coordinates.
///
/// # Errors
/// Whatever keeps the run from beginning. Once it has begun there is a record, however it ends.
pub fn run(setup: RunSetup) -> Result<RunRecord, RunError> {
    let system = |what| move |source| RunError::System { what, source };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system("no runtime can be built"))?;
    let signals = Signals::install().map_err(system("signals cannot be handled"))?;
    let record = runtime.block_on(async {
        let ready = preflight::prepare(setup, signals.clone()).await?;
        match signals.heard() {
            Some(number) => Err(RunError::Interrupted(number)),
            None => Ok(ready.run().await),
        }
    });
    // A resolver that hangs must not hold the process up.
    runtime.shutdown_background();
    record
}

#[cfg(test)]
mod tests;
