//! What the machine allows: file descriptors and ports, counted against what a plan needs before it runs.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors beside those of clients and listeners: epoll, timers, files, pipes.
const SLACK: u64 = 128;

/// A plan that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{clients} clients need {needed} file descriptors in this process ({per_client} each), and it may open {limit}: \
     raise the limit (`ulimit -n {needed}`, or `nofile` in /etc/security/limits.conf), or use at most {fitting} clients"
)]
pub struct TooManySockets {
    /// Clients of the plan.
    pub clients: u64,
    /// What they need.
    pub needed: u64,
    /// Of it, for each client.
    pub per_client: u64,
    /// What is allowed.
    pub limit: u64,
    /// How many clients would fit.
    pub fitting: u64,
}

/// Sockets of this process for each client: its own, and the proxy's two.
pub const PER_CLIENT: u64 = 3;

/// Raises the soft limit on file descriptors to the hard one, and returns what is then allowed.
pub fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let raised = setrlimit(Resource::Nofile, wanted).is_ok();
    // No limit at all reads as none.
    if raised { limit.maximum } else { limit.current }.unwrap_or(u64::MAX)
}

/// Checks that so many clients fit, beside so many listeners of the proxy.
///
/// # Errors
/// What is needed, what is there, and the remedy.
pub fn check(clients: u64, listeners: u64, limit: u64) -> Result<(), TooManySockets> {
    let besides = listeners.saturating_add(SLACK);
    let needed = clients.saturating_mul(PER_CLIENT).saturating_add(besides);
    if needed <= limit {
        return Ok(());
    }
    let fitting = limit.saturating_sub(besides) / PER_CLIENT;
    Err(TooManySockets { clients, needed, per_client: PER_CLIENT, limit, fitting })
}

/// A warning where clients could use up the ephemeral ports: each holds one to its proxy, and the proxy one to the
/// target; ports of closed connections stay taken for a minute.
pub fn port_warning(clients: u64, per_attempt_rate: f64) -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    port_warning_of(&text, clients, per_attempt_rate)
}

fn port_warning_of(range: &str, clients: u64, per_attempt_rate: f64) -> Option<String> {
    let mut ends = range.split_whitespace().map(str::parse::<u64>);
    let (Some(Ok(low)), Some(Ok(high))) = (ends.next(), ends.next()) else { return None };
    let ports = (high + 1).saturating_sub(low);
    // On loopback the kernel reuses a port in TIME_WAIT after one second.
    let wanted = clients.saturating_add(per_attempt_rate as u64);
    (wanted > ports).then(|| {
        format!(
            "{clients} clients may need {wanted} ephemeral ports, and there are {ports}: \
             widen net.ipv4.ip_local_port_range, or use fewer clients; connects that find none count as `connect`"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_does_not_fit_is_told_what_would() {
        assert_eq!(check(5_000, 6, 20_000), Ok(()));
        let error = check(100, 0, 256).unwrap_err();
        assert_eq!((error.needed, error.fitting), (428, 42));
        assert!(check(error.fitting, 0, 256).is_ok() && check(error.fitting + 1, 0, 256).is_err());
        assert!(error.to_string().contains("ulimit -n 428") && error.to_string().contains("at most 42 clients"), "{error}");
        assert!(check(u64::MAX, u64::MAX, 20_000).is_err());
        assert!(check(10, 0, 20).unwrap_err().fitting == 0);
        // 256 fleets on two shards.
        assert_eq!(check(10, 768, 900).unwrap_err().needed, 10 * PER_CLIENT + 768 + SLACK);
    }

    #[test]
    fn ports_are_warned_of_only_when_they_may_run_out() {
        assert_eq!(port_warning_of("32768\t60999\n", 5_000, 1_000.0), None);
        assert!(port_warning_of("32768\t60999\n", 30_000, 0.0).unwrap().contains("28232"));
        assert!(port_warning_of("32768 33767", 10, 5_000.0).is_some());
        assert_eq!(port_warning_of("garbage", 30_000, 0.0), None);
    }
}
