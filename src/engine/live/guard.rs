//! What may be dialled: loopback, and beside it only what the plan's `allow` names once `--approve` was given. The
//! resolved address is checked at every connect, so that a name that changes its mind is not followed. A name that is not in
//! `allow` must turn out to be loopback before the run begins, and is not looked up again.

use crate::engine::live::clock::Clock;
use crate::plan::TargetUrl;
use crate::plan::target::allows;
use crate::time::{Span, Timestamp};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use tracing::{debug, warn};

/// How long a resolved name is used before it is resolved again.
const CACHE: Span = Span::from_secs(5);
/// How long a target may take to accept the first connect.
const FIRST_CONNECT: Span = Span::from_secs(3);

/// Why a target is not dialled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    /// It is neither loopback nor in the plan's `allow`.
    #[error(
        "refused: {host}{at} is not on this machine, and the plan does not allow it: add `allow: [{host}]` under `target`, and run with --approve"
    )]
    NotAllowed {
        /// The host, as the plan writes it.
        host: String,
        /// What it resolved to, as ` (192.0.2.1)`; empty where the host is an address, or has none.
        at: String,
    },
    /// The plan allows it, the user did not.
    #[error("refused: {host}{at} is not on this machine: the plan allows it, so run again with --approve if you mean it")]
    NotApproved {
        /// The host, as the plan writes it.
        host: String,
        /// What it resolved to, as ` (192.0.2.1)`; empty where the host is an address, or has none.
        at: String,
    },
    /// The host has no address.
    #[error("the target's host `{host}` cannot be resolved: {problem}; check its spelling, and the network's DNS")]
    Unknown {
        /// The host.
        host: String,
        /// What the resolver said.
        problem: String,
    },
}

impl GuardError {
    /// Whether this is a refusal (exit code 5), and not something wrong with the environment.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::NotAllowed { .. } | Self::NotApproved { .. })
    }
}

/// What the plan allows and whether the user approved.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    hosts: Vec<String>,
    approved: bool,
}

impl Allowed {
    /// The plan's `allow`, and whether `--approve` was given.
    pub fn new(hosts: impl IntoIterator<Item = String>, approved: bool) -> Self {
        Self { hosts: hosts.into_iter().collect(), approved }
    }

    /// Checks one resolved address of a host.
    ///
    /// # Errors
    /// A refusal that says how to lift it.
    pub fn check(&self, host: &str, address: IpAddr) -> Result<(), GuardError> {
        let address = address.to_canonical();
        if address.is_loopback() {
            return Ok(());
        }
        let literal = host.parse::<IpAddr>().is_ok();
        let at = if literal { String::new() } else { format!(" ({address})") };
        let host = host.to_string();
        let named = self.hosts.iter().any(|pattern| allows(pattern, &host, Some(address)));
        match (named, self.approved) {
            (true, true) => Ok(()),
            (true, false) => Err(GuardError::NotApproved { host, at }),
            (false, _) => Err(GuardError::NotAllowed { host, at }),
        }
    }

    /// Where a host may be found in mid-run: looked up each time where it is allowed by its name, else only now. Blocks then.
    ///
    /// # Errors
    /// A refusal: of a name without an address too, unless it is allowed.
    pub fn admit(&self, host: &str, port: u16) -> Result<Whereabouts, GuardError> {
        let named = self.hosts.iter().any(|pattern| allows(pattern, host, None));
        let known = if named && self.approved {
            None
        } else {
            let refuse = |host: String, at| match named {
                true => GuardError::NotApproved { host, at },
                false => GuardError::NotAllowed { host, at },
            };
            let found = self.resolve(host, port);
            Some(found.map_err(|error| if error.is_refusal() { error } else { refuse(host.into(), String::new()) })?)
        };
        Ok(Whereabouts { host: host.into(), port, allowed: self.clone(), known })
    }

    /// Every address of a host, all of them checked.
    ///
    /// # Errors
    /// A refusal, or a host without an address. Blocks while the name is resolved.
    pub fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, GuardError> {
        let unknown = |problem: String| GuardError::Unknown { host: host.to_string(), problem };
        let addresses: Vec<SocketAddr> = match host.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => (host, port).to_socket_addrs().map_err(|error| unknown(error.to_string()))?.collect(),
        };
        if addresses.is_empty() {
            return Err(unknown("it has no address".into()));
        }
        let checked = addresses.iter().try_for_each(|address| self.check(host, address.ip()));
        match &checked {
            Ok(()) => debug!(?host, ?addresses, approved = self.approved, "a host may be dialled"),
            Err(why) => warn!(?host, ?addresses, approved = self.approved, %why, "a host must not be dialled"),
        }
        checked.map(|()| addresses)
    }
}

/// Where a webhook dials.
#[derive(Clone, Debug)]
pub struct Whereabouts {
    host: String,
    port: u16,
    allowed: Allowed,
    /// The addresses of a host that is not allowed by its name: nobody is asked for it again.
    known: Option<Vec<SocketAddr>>,
}

impl Whereabouts {
    /// The addresses to dial, each of them allowed.
    ///
    /// # Errors
    /// A name that now resolves to what is not allowed, or not at all. Blocks while it is resolved.
    pub fn find(&self) -> Result<Vec<SocketAddr>, GuardError> {
        match &self.known {
            Some(addresses) => Ok(addresses.clone()),
            None => self.allowed.resolve(&self.host, self.port),
        }
    }
}

/// Where the proxy dials, looked up and checked again each time.
pub struct Dialler {
    host: String,
    port: u16,
    allowed: Allowed,
    clock: Arc<dyn Clock>,
    cache: Mutex<Cache>,
}

struct Cache {
    found: Result<SocketAddr, GuardError>,
    at: Timestamp,
    refreshing: bool,
}

impl Dialler {
    /// Resolves a target for the first time, and finds the address that accepts connections: a name may have one
    /// for each family, and the target listen on one of them. Blocks for a few seconds at most. Where none accepts,
    /// a warning says so: that the target is down may be what the plan is about.
    ///
    /// # Errors
    /// A refusal, or an unknown host.
    pub fn new(target: &TargetUrl, allowed: Allowed, clock: Arc<dyn Clock>) -> Result<(Arc<Self>, Option<String>), GuardError> {
        let TargetUrl { host, port, .. } = target;
        let addresses = allowed.resolve(host, *port)?;
        let (found, warning) = match first_that_accepts(&addresses) {
            Ok(found) => (found, None),
            Err(problem) => (addresses[0], Some(format!("nothing answers at {host}:{port} ({problem}); is the target running?"))),
        };
        let cache = Mutex::new(Cache { found: Ok(found), at: clock.now(), refreshing: false });
        Ok((Arc::new(Self { host: host.clone(), port: *port, allowed, clock, cache }), warning))
    }

    /// The address to dial. Never blocks: a stale answer is used once more while another thread looks again.
    ///
    /// # Errors
    /// A name that now resolves to what is not allowed, or not at all.
    pub fn dial(self: &Arc<Self>) -> Result<SocketAddr, GuardError> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let stale = self.clock.now().since(cache.at) >= CACHE && self.host.parse::<IpAddr>().is_err();
        if stale && !cache.refreshing {
            cache.refreshing = true;
            let this = self.clone();
            let spawned = std::thread::Builder::new().name("resolver".into()).spawn(move || this.refresh());
            cache.refreshing = spawned.is_ok();
        }
        let address = cache.found.clone()?;
        self.allowed.check(&self.host, address.ip())?;
        Ok(address)
    }

    fn refresh(&self) {
        let found = self.allowed.resolve(&self.host, self.port);
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.at = self.clock.now();
        cache.refreshing = false;
        cache.found = match (found, &cache.found) {
            // The address that worked stays as long as the name has it.
            (Ok(addresses), Ok(current)) if addresses.contains(current) => Ok(*current),
            (Ok(addresses), _) => Ok(addresses[0]),
            // A resolver that is down for a moment is no reason to stop; an address that is forbidden is.
            (Err(GuardError::Unknown { .. }), Ok(current)) => Ok(*current),
            (Err(error), _) => Err(error),
        };
    }
}

fn first_that_accepts(addresses: &[SocketAddr]) -> Result<SocketAddr, String> {
    let mut problem = "it has no address".to_string();
    for address in addresses {
        match TcpStream::connect_timeout(address, FIRST_CONNECT.to_std()) {
            Ok(_) => return Ok(*address),
            Err(error) => problem = error.to_string(),
        }
    }
    Err(problem)
}

#[cfg(test)]
mod tests {
    use super::super::clock::LiveClock;
    use super::*;

    fn allowed(hosts: &[&str], approved: bool) -> Allowed {
        Allowed::new(hosts.iter().map(|h| (*h).to_string()), approved)
    }

    #[test]
    fn only_loopback_unless_named_and_approved() {
        let far: IpAddr = "192.0.2.7".parse().unwrap();
        let near: IpAddr = "127.9.9.9".parse().unwrap();
        let mapped: IpAddr = "::ffff:127.0.0.1".parse().unwrap();
        let mapped_far: IpAddr = "::ffff:192.0.2.7".parse().unwrap();
        for (hosts, approved, host, address, ok) in [
            (&[][..], false, "localhost", near, true),
            (&[], false, "localhost", mapped, true),
            (&[], true, "api.example", far, false),
            (&["api.example"], false, "api.example", far, false),
            (&["api.example"], true, "api.example", far, true),
            (&["API.example"], true, "Api.Example", far, true),
            (&["*.example"], true, "api.example", far, true),
            (&["*.example"], true, "a.b.example", far, true),
            (&["*.example"], true, "example", far, false),
            (&["*.example"], true, ".example", far, false),
            (&["*.example"], true, "badexample", far, false),
            (&["192.0.2.7"], true, "api.example", far, true),
            (&["192.0.2.7"], true, "192.0.2.7", mapped_far, true),
            (&["192.0.2.8"], true, "api.example", far, false),
            (&[], true, "0.0.0.0", "0.0.0.0".parse().unwrap(), false),
        ] {
            let got = allowed(hosts, approved).check(host, address);
            assert_eq!(got.is_ok(), ok, "{hosts:?} {approved} {host} {address}: {got:?}");
        }
    }

    #[test]
    fn a_name_is_looked_up_in_mid_run_only_where_it_is_allowed() {
        for (hosts, approved, host, wanted) in [
            (&[][..], true, "localhost", Ok(true)),
            (&["localhost"], true, "localhost", Ok(false)),
            (&[], true, "127.0.0.1", Ok(true)),
            (&["hook.invalid"], true, "hook.invalid", Ok(false)),
            (&["hook.invalid"], false, "hook.invalid", Err("the plan allows it, so run again with --approve")),
            (&[], true, "hook.invalid", Err("add `allow: [hook.invalid]`")),
            (&[], true, "192.0.2.7", Err("add `allow: [192.0.2.7]`")),
        ] {
            let got = allowed(hosts, approved).admit(host, 80);
            match (&got, wanted) {
                (Ok(found), Ok(known)) => assert_eq!(found.known.is_some(), known, "{host}: {found:?}"),
                (Err(error), Err(words)) => assert!(error.is_refusal() && error.to_string().contains(words), "{host}: {error}"),
                _ => panic!("{hosts:?} {approved} {host}: {got:?}"),
            }
        }
    }

    #[test]
    fn a_refusal_names_host_address_and_remedy() {
        let far = "192.0.2.7".parse().unwrap();
        let message = allowed(&[], false).check("api.example", far).unwrap_err().to_string();
        for part in ["api.example (192.0.2.7)", "allow: [api.example]", "--approve"] {
            assert!(message.contains(part), "{message}");
        }
        let error = allowed(&["api.example"], false).check("api.example", far).unwrap_err();
        assert!(error.is_refusal() && error.to_string().contains("run again with --approve"), "{error}");
    }

    #[test]
    fn a_target_that_is_down_is_warned_of_and_no_refusal() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let url = TargetUrl::parse(&format!("http://{free}/")).unwrap();
        let (dialler, warning) = Dialler::new(&url, Allowed::default(), LiveClock::starting_now()).unwrap();
        assert!(warning.unwrap().contains("is the target running?"));
        assert_eq!(dialler.dial(), Ok(free));
    }

    #[test]
    fn a_name_that_moves_to_a_forbidden_address_is_not_followed() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = TargetUrl::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let (dialler, warning) = Dialler::new(&url, Allowed::default(), LiveClock::starting_now()).unwrap();
        assert!(warning.is_none() && dialler.dial().is_ok());
        dialler.cache.lock().unwrap().found = Ok("192.0.2.1:80".parse().unwrap());
        assert!(dialler.dial().unwrap_err().is_refusal());
    }
}
