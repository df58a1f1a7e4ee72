//! A lease of a `stormwake proxy`: what a run puts there goes when the run does. No process beside the run is needed for that.

use super::client::{ApiError, Endpoint};
use crate::time::Span;
use std::sync::{Arc, Mutex, PoisonError};
use tracing::{info, trace, warn};

/// How long it lasts.
pub const TTL: Span = Span::from_secs(5);
/// How often it is renewed.
const EVERY: Span = Span::from_millis(TTL.0 / 3_000_000);

/// The lease that a run has now: another one, once the server has forgotten the first. Shared by all that call the server.
#[derive(Clone, Debug, Default)]
pub struct Leased(Arc<Mutex<Option<String>>>);

impl PartialEq for Leased {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Leased {}

impl Leased {
    /// Its name; none where there is none.
    pub fn id(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, id: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = id;
    }
}

/// Begins a lease, under which all further calls to this server are made.
///
/// # Errors
/// Whatever keeps it from being had.
pub(super) async fn begin(endpoint: &Endpoint) -> Result<(), ApiError> {
    let id = endpoint.begin_lease(TTL).await?;
    info!(server = %endpoint.authority, lease = %id, ttl = %TTL, "a lease begins");
    endpoint.lease.set(Some(id));
    Ok(())
}

/// Renews it until this is dropped. Where the server has forgotten it, another one begins: what the first held is gone then, and the next
/// look at the server says so.
pub(super) async fn keep(endpoint: Endpoint) {
    let mut ticks = tokio::time::interval(EVERY.to_std());
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(id) = endpoint.lease.id() else { return };
        // What failed for another reason is tried again.
        match endpoint.renew_lease(&id).await {
            Ok(true) => trace!(server = %endpoint.authority, "a lease was renewed"),
            Ok(false) => {
                warn!(server = %endpoint.authority, lease = %id, "the server has forgotten the lease: another one begins");
                let _ = begin(&endpoint).await;
            }
            Err(problem) => warn!(server = %endpoint.authority, %problem, "a lease was not renewed"),
        }
    }
}

/// Ends it, as far as the server can be asked; else it ends by itself.
pub(super) async fn end(endpoint: &Endpoint) {
    if let Some(id) = endpoint.lease.id() {
        let ended = endpoint.end_lease(&id).await.is_ok();
        info!(server = %endpoint.authority, lease = %id, ended, "the lease ends");
        endpoint.lease.set(None);
    }
}
