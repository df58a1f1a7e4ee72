//! Where an upstream is: its addresses, looked up on threads of their own and checked each time they are used, so that
//! neither a call nor a connection waits for a name.

use super::address::Destination;
use super::refusal::Refusal;
use crate::engine::live::clock::Clock;
use crate::engine::live::guard::{Allowed, GuardError};
use crate::engine::live::proxy::Upstream;
use crate::time::{Span, Timestamp};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long addresses are used before the name is looked up again.
const KEPT: Span = Span::from_secs(5);
/// How long a call waits for names. A slower one is found in the background.
const PATIENCE: Duration = Duration::from_millis(20);

/// An upstream that is being looked up, or has been.
pub struct Lookup {
    destination: Destination,
    allowed: Allowed,
    clock: Arc<dyn Clock>,
    found: Mutex<Found>,
}

struct Found {
    addresses: Result<Vec<SocketAddr>, GuardError>,
    at: Timestamp,
    looking: bool,
}

/// Looks upstreams up, on one thread for all. Waits a moment at most; connects to one that is not found by then fail until it is.
///
/// # Errors
/// An upstream that is not on this machine, and not allowed.
pub async fn begin(all: Vec<Destination>, allowed: &Allowed, clock: &Arc<dyn Clock>) -> Result<Vec<Arc<Lookup>>, Refusal> {
    let lookups: Vec<_> = all.into_iter().map(|of| Arc::new(Lookup::new(of, allowed.clone(), clock.clone()))).collect();
    let (addresses, names): (Vec<_>, Vec<_>) = lookups.iter().cloned().partition(|lookup| lookup.is_address());
    addresses.iter().for_each(|lookup| lookup.look());
    if let Some(done) = look_aside(names) {
        let _ = tokio::time::timeout(PATIENCE, done).await;
    }
    for (n, lookup) in lookups.iter().enumerate() {
        if matches!(&lookup.lock().addresses, Err(error) if error.is_refusal()) {
            return Err(lookup.refusal().at(&[&n.to_string()]));
        }
    }
    Ok(lookups)
}

impl Lookup {
    fn new(destination: Destination, allowed: Allowed, clock: Arc<dyn Clock>) -> Self {
        let unknown = GuardError::Unknown { host: destination.host.clone(), problem: "it is being looked up".into() };
        let found = Found { addresses: Err(unknown), at: clock.now(), looking: true };
        Self { destination, allowed, clock, found: Mutex::new(found) }
    }

    /// As a proxy dials it.
    pub fn upstream(self: &Arc<Self>) -> Upstream {
        let lookup = self.clone();
        Upstream::among(Arc::new(move || lookup.addresses()))
    }

    /// The addresses by now. Never blocks: stale ones are used once more while a thread looks again.
    fn addresses(self: &Arc<Self>) -> Result<Vec<SocketAddr>, String> {
        let mut found = self.lock();
        let unknown = matches!(found.addresses, Err(GuardError::Unknown { .. }));
        let stale = unknown || self.clock.now().since(found.at) >= KEPT;
        if stale && !found.looking && !self.is_address() {
            found.looking = true;
            drop(found);
            drop(look_aside(vec![self.clone()]));
            found = self.lock();
        }
        match &found.addresses {
            Ok(addresses) => Ok(addresses.clone()),
            Err(error) if error.is_refusal() => Err(self.refusal().error),
            Err(error) => Err(error.to_string()),
        }
    }

    fn is_address(&self) -> bool {
        self.destination.host.parse::<IpAddr>().is_ok()
    }

    fn lock(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self) {
        let Destination { host, port, .. } = &self.destination;
        let addresses = self.allowed.resolve(host, *port);
        let mut found = self.lock();
        (found.at, found.looking) = (self.clock.now(), false);
        // A resolver that is down for a moment is no reason to stop; an address that is forbidden is.
        if !(matches!(addresses, Err(GuardError::Unknown { .. })) && found.addresses.is_ok()) {
            found.addresses = addresses;
        }
    }

    fn refusal(&self) -> Refusal {
        let host = &self.destination.host;
        let error = format!("refused: {host} is not on this machine: start with --allow {host} if you mean it");
        Refusal::new(403, error).at(&["upstream"])
    }
}

/// Looks on another thread; none where there is nothing to look up, or the system gives no thread.
fn look_aside(all: Vec<Arc<Lookup>>) -> Option<oneshot::Receiver<()>> {
    if all.is_empty() {
        return None;
    }
    let (done, told) = oneshot::channel();
    let names = all.clone();
    let look = move || {
        names.iter().for_each(|lookup| lookup.look());
        let _ = done.send(());
    };
    let spawned = std::thread::Builder::new().name("resolver".into()).spawn(look);
    if spawned.is_err() {
        all.iter().for_each(|lookup| lookup.lock().looking = false);
    }
    spawned.ok().map(|_| told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::live::clock::LiveClock;

    fn look(upstream: &str, hosts: &[&str]) -> Result<Arc<Lookup>, Refusal> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let allowed = Allowed::new(hosts.iter().map(ToString::to_string), true);
        let clock: Arc<dyn Clock> = LiveClock::starting_now();
        let all = vec![Destination::parse(upstream)?];
        runtime.block_on(begin(all, &allowed, &clock)).map(|mut found| found.remove(0))
    }

    #[test]
    fn addresses_are_known_at_once_and_only_those_that_may() {
        assert_eq!(look("127.0.0.1:5", &[]).unwrap().addresses(), Ok(vec!["127.0.0.1:5".parse().unwrap()]));
        let refusal = look("192.0.2.1:5", &[]).err().unwrap();
        assert!(refusal.status == 403 && refusal.error.contains("--allow 192.0.2.1"), "{refusal:?}");
        assert_eq!(refusal.at, ["0", "upstream"]);
        assert!(look("192.0.2.1:5", &["192.0.2.1"]).is_ok());
    }

    #[test]
    fn a_name_without_an_address_is_an_upstream_that_cannot_be_reached() {
        let lookup = look("name.invalid:5", &[]).unwrap();
        assert!(lookup.addresses().unwrap_err().contains("name.invalid"));
    }

    #[test]
    fn a_name_that_moves_to_a_forbidden_address_is_not_followed() {
        let lookup = look("localhost:5", &[]).unwrap();
        lookup.lock().addresses = lookup.allowed.resolve("192.0.2.1", 5);
        assert!(lookup.addresses().unwrap_err().contains("--allow localhost"));
    }
}
