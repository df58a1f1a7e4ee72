//! The network of a simulated run: what a message takes on each hop, what opening a connection takes, and what is lost.
//!
//! There are two hops, from a client to the proxy and from the proxy to the target, and each is crossed twice by an attempt.
//! A live run has a network of its own; this stands in for it. Without settings it is what a loopback shows.

use crate::config::{Node, Problems, Read, Shape, TimeScale, Value, read_keyword};
use crate::record;
use crate::rng::Stream;
use crate::service::ServiceTime;
use crate::time::{Share, Span};

record! {
    /// The network of a simulated run. A live run has its own.
    pub struct NetworkConfig {
        /// One way between a client and the proxy.
        latency: ServiceTime = ServiceTime::Constant(Span::from_micros(60)),
        /// One way between the proxy and the target.
        upstream: ServiceTime = ServiceTime::Constant(Span::from_micros(60)),
        /// What opening a connection takes between a client and the proxy. Between the proxy and the target it is there and back.
        connect: ServiceTime = ServiceTime::Constant(Span::from_micros(120)),
        /// The share of attempts that the network itself resets on their way to the proxy.
        reset: Share = Share::default(),
    }
}

/// The network of a simulated run: its settings, or a word for some that are met often.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// What the plan says, or the word stands for.
    pub config: NetworkConfig,
}

/// The least that an answer takes to its client. Without it a client that fails at once and retries at once would do so without end, and no
/// time would pass.
const LEAST: Span = Span::from_micros(1);

/// The words that stand for a network.
const WORDS: [&str; 2] = ["loopback", "wan"];

impl Network {
    /// What one machine shows to itself.
    pub fn loopback() -> Self {
        let micros = |n| ServiceTime::Constant(Span::from_micros(n));
        Self {
            config: NetworkConfig { latency: micros(60), upstream: micros(60), connect: micros(120), reset: Share::default() },
        }
    }

    /// What a client meets across the internet: 40 ms one way at the median and 150 ms at the 99th percentile, twice that
    /// to connect, and a target in the proxy's own data centre.
    pub fn wan() -> Self {
        let lognormal = |p50, p99| {
            ServiceTime::Lognormal(crate::service::time::Lognormal { p50: Span::from_millis(p50), p99: Span::from_millis(p99) })
        };
        let upstream = ServiceTime::Constant(Span::from_micros(250));
        let config =
            NetworkConfig { latency: lognormal(40, 150), upstream, connect: lognormal(80, 300), reset: Share::default() };
        Self { config }
    }

    /// The way from a client to the proxy.
    pub fn client_hop(&self, draws: &mut Stream) -> Span {
        self.config.latency.sample(draws)
    }

    /// The way from the proxy to a client.
    pub fn to_client(&self, draws: &mut Stream) -> Span {
        self.config.latency.sample(draws).max(LEAST)
    }

    /// One way between the proxy and the target.
    pub fn upstream_hop(&self, draws: &mut Stream) -> Span {
        self.config.upstream.sample(draws)
    }

    /// Opening a connection between a client and the proxy.
    pub fn connect(&self, draws: &mut Stream) -> Span {
        self.config.connect.sample(draws)
    }

    /// Opening a connection between the proxy and the target: there and back.
    pub fn connect_upstream(&self, draws: &mut Stream) -> Span {
        self.upstream_hop(draws) + self.upstream_hop(draws)
    }

    /// Whether this attempt's connection is reset on the way.
    pub fn resets(&self, draws: &mut Stream) -> bool {
        let share = self.config.reset.get();
        share > 0.0 && draws.unit() < share
    }
}

impl Read for Network {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        match &node.value {
            Value::Text(_) => {
                read_keyword(node, &WORDS, problems).map(|index| if index == 0 { Self::loopback() } else { Self::wan() })
            }
            _ => NetworkConfig::read(node, problems).map(|config| Self { config }),
        }
    }
    fn shape() -> Shape {
        let word = |name, doc: &str| crate::config::Alternative { name, doc: doc.to_string(), shape: None };
        let words = vec![
            word(WORDS[0], "What one machine shows to itself."),
            word(WORDS[1], "Clients across the internet, the target near the proxy."),
        ];
        Shape::OneOf(vec![Shape::Keyword(words), NetworkConfig::shape()])
    }

    fn rescale(&mut self, by: TimeScale) {
        self.config.rescale(by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};

    #[test]
    fn a_word_stands_for_its_settings_and_what_is_left_out_is_loopback() {
        let text = |t: &str| Node { value: Value::Text(t.into()), place: Default::default() };
        let mut problems = Problems::default();
        assert_eq!(Network::read(&text("wan"), &mut problems), Some(Network::wan()));
        let empty = Node { value: Value::Map(Vec::new()), place: Default::default() };
        assert_eq!(Network::read(&empty, &mut problems), Some(Network::loopback()));
        assert_eq!(Network::read(&text("moon"), &mut problems), None);
        assert_eq!(problems.error_count(), 1);
    }

    #[test]
    fn a_share_of_attempts_is_reset_and_none_where_nothing_is_said() {
        let draws = |n| Key { seed: 3, operation: n, ..Key::default() }.stream(Purpose::Network);
        let mut lossy = Network::loopback();
        lossy.config.reset = Share::new(0.1).unwrap();
        let struck = (0..10_000).filter(|&n| lossy.resets(&mut draws(n))).count();
        assert!((900..1_100).contains(&struck), "{struck}");
        assert!((0..10_000).all(|n| !Network::loopback().resets(&mut draws(n))));
    }
}
