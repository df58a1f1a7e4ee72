//! A poor link: what the messages of some clients take on top of everything else.
//!
//! A lost message on a TCP connection is no lost request: the sender sends it again after its retransmission timeout, which
//! doubles from loss to loss (RFC 6298, 5.5), and the request is late. The timeout is Linux's: the smoothed round trip plus a
//! variation that counts as 200 ms at least (`TCP_RTO_MIN`; RFC 6298, 2.4, would have the whole be 1 s at least),
//! at most 120 s, and 15 times (`tcp_retries2`), longer than any attempt waits. A sender whose later segments are
//! acknowledged would learn of a loss sooner; a request and its answer are one segment each, and have none.
//!
//! An attempt crosses the link twice, and twice more where it has to connect first. Each crossing takes `latency`
//! and meets `loss` anew. All of it is drawn when the attempt is sent, and an engine holds the attempt for so long
//! before it goes on the wire. Its timeout counts from the send.

use super::Connections;
use crate::load::Crowd;
use crate::record;
use crate::rng::{Key, Purpose, Stream};
use crate::service::ServiceTime;
use crate::time::{Share, Span};
use std::ops::Range;

/// What the variation of the round trip counts as at least.
const RTO_MIN: Span = Span::from_millis(200);
/// The longest wait for a retransmission.
const RTO_MAX: Span = Span::from_secs(120);
/// How often a message is sent again before its connection is given up.
const RETRIES: u32 = 15;

record! {
    /// A poor link, on top of the network that all share.
    pub struct LinkConfig {
        /// What each message takes on it, one way.
        latency: ServiceTime = ServiceTime::Constant(Span::ZERO),
        /// The share of messages that are lost, and sent again after a timeout.
        loss: Share = Share::default(),
        /// The share of the fleet's clients that have it; a client has it for the whole run.
        share: Share = Share::ALL,
    } => |link: &LinkConfig| match link.loss.get() {
        loss if loss > 0.9 => Err("`loss` must be 90% at most: for a link that is gone use a fault".to_string()),
        _ => Ok(()),
    }
}

impl LinkConfig {
    /// By client of a fleet of `clients`, whether its link is poor: spread evenly over every region, and exact to one client.
    pub fn strikes(&self, clients: u32) -> impl Fn(u32) -> bool + use<> {
        let (crowd, share) = (Crowd::new(0, 0, clients), self.share.get());
        move |client| {
            let turn = f64::from(crowd.turn(client));
            ((turn + 1.0) * share).floor() > (turn * share).floor()
        }
    }

    /// What an attempt takes on the link: there and back, and there and back again where it connects first.
    pub fn delay(&self, connects: bool, draws: &mut Stream) -> Span {
        let crossings = if connects { 4 } else { 2 };
        (0..crossings).map(|_| self.crossing(draws)).sum()
    }

    /// The mean of [`LinkConfig::delay`] without losses.
    pub fn mean(&self, connects: bool) -> Span {
        self.latency.mean().times(if connects { 4 } else { 2 })
    }

    fn crossing(&self, draws: &mut Stream) -> Span {
        let mut takes = self.latency.sample(draws);
        let mut timeout = RTO_MIN + self.latency.mean().times(2);
        for _ in 0..RETRIES {
            if self.loss.get() == 0.0 || draws.unit() >= self.loss.get() {
                break;
            }
            takes += timeout;
            timeout = timeout.times(2).min(RTO_MAX);
        }
        takes
    }
}

/// The links of a fleet's clients in one shard.
#[derive(Debug)]
pub(super) struct Link {
    config: LinkConfig,
    connects: bool,
    /// By client's place in the shard.
    is_poor: Vec<bool>,
}

impl Link {
    /// The links of the clients with these numbers, of a fleet of `of`.
    pub(super) fn new(config: LinkConfig, connections: Connections, of: u32, clients: Range<u32>) -> Self {
        let is_poor = clients.map(config.strikes(of)).collect();
        Self { config, connects: connections == Connections::PerAttempt, is_poor }
    }

    /// What an attempt of a client takes on it.
    pub(super) fn delay(&self, client: u32, attempt: Key) -> Span {
        match self.is_poor.get(client as usize) {
            Some(true) => self.config.delay(self.connects, &mut attempt.stream(Purpose::Link)),
            _ => Span::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(latency: u64, loss: f64, share: f64) -> LinkConfig {
        let share_of = |share| Share::new(share).unwrap();
        let latency = ServiceTime::Constant(Span::from_millis(latency));
        LinkConfig { latency, loss: share_of(loss), share: share_of(share) }
    }

    fn delays(link: &LinkConfig, connects: bool) -> Vec<f64> {
        let draws = |operation| Key { operation, ..Key::default() }.stream(Purpose::Link);
        (0..40_000).map(|n| link.delay(connects, &mut draws(n)).as_secs_f64()).collect()
    }

    #[test]
    fn a_loss_costs_a_timeout_that_doubles() {
        let all = delays(&link(50, 0.1, 1.0), false);
        let share = |want: f64| all.iter().filter(|delay| (**delay - want).abs() < 1e-6).count() as f64 / all.len() as f64;
        // Two crossings of 50 ms; the first timeout is 200 + 100 ms, the second 600 ms.
        for (delay, want) in [(0.1, 0.81), (0.4, 2.0 * 0.9 * 0.09), (0.7, 0.0081), (1.0, 2.0 * 0.9 * 0.009)] {
            let error = f64::sqrt(want * (1.0 - want) / all.len() as f64);
            assert!((share(delay) - want).abs() < 3.0 * error, "{delay}: {} of {want}", share(delay));
        }
        assert!(delays(&link(50, 0.0, 1.0), false).iter().all(|delay| *delay == 0.1));
        assert!(delays(&link(50, 0.0, 1.0), true).iter().all(|delay| *delay == 0.2));
        assert!(delays(&link(0, 0.9, 1.0), false).iter().all(|delay| *delay < 2.0 * 15.0 * 120.0), "bounded");
    }

    #[test]
    fn a_share_of_the_clients_has_it_in_every_region() {
        for (share, clients, want) in [(0.2, 1_000, 200), (1.0, 7, 7), (0.0, 50, 0), (0.33, 100, 33)] {
            let strikes = link(1, 0.0, share).strikes(clients);
            assert_eq!((0..clients).filter(|&client| strikes(client)).count(), want);
        }
        let (strikes, crowd) = (link(1, 0.0, 0.2).strikes(1_000), Crowd::new(0, 0, 1_000));
        let in_region = (0..1_000).filter(|&client| crowd.turn(client) < 400 && strikes(client)).count();
        assert_eq!(in_region, 80);
    }
}
