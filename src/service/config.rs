//! What a plan says of the built-in target. Each part's own settings stand in the part's file.

use super::admission::AdmissionConfig;
use super::backlog::BacklogRule;
use super::curve::Curve;
use super::duplicates::Deduplication;
use super::limiter::LimitersConfig;
use super::queue::{Bound, QueueConfig};
use super::servers::MAX_IN_SERVICE;
use super::time::ServiceTime;
use crate::config::{Node, Problems, Read, Shape, TimeScale, read_text};
use crate::record;
use crate::time::{Rate, Share, Span};

/// How many requests are served at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    /// So many.
    Limited(u32),
    /// As many as come.
    Unlimited,
}

impl Read for Servers {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, |text| match (text, text.parse::<u32>()) {
            ("unlimited", _) => Ok(Self::Unlimited),
            (_, Ok(n)) if (1..=MAX_IN_SERVICE).contains(&(n as usize)) => Ok(Self::Limited(n)),
            _ => Err(format!("expected a number of servers from 1 to {MAX_IN_SERVICE}, or `unlimited`, found `{text}`")),
        })
    }
    fn shape() -> Shape {
        Shape::OneOf(vec![
            Shape::Integer { min: 1, max: MAX_IN_SERVICE as u64 },
            Shape::Text { what: "no limit", pattern: "^unlimited$", examples: &["unlimited"] },
        ])
    }

    fn rescale(&mut self, _by: TimeScale) {}
}

record! {
    /// A service: servers, a queue before them, and before that whatever refuses.
    pub struct ServiceConfig {
        /// How many requests are served at once, or `unlimited`; 1 where nothing is said and there is a `rate`.
        servers: Option<Servers>,
        /// How long each is served; or, in its place, `rate`.
        service_time: Option<ServiceTime>,
        /// How many all servers serve together in a second, each request for the same time.
        rate: Option<Rate>,
        /// How many requests may wait, first in, first out; or all settings of the queue.
        queue: QueueConfig = QueueConfig::of(Bound::Limited(1000)),
        /// Refuses requests above a limit, before they queue: one limiter, or a list of them.
        limiter: Option<LimitersConfig>,
        /// Who is let in to wait, by what requests say of themselves.
        admission: Option<AdmissionConfig>,
        /// At most so many requests leave the queue in a second, however many come.
        drain: Option<Rate>,
        /// How many requests it can hold at once, waiting and served; more are refused with 503 before anything else.
        memory: Option<u32>,
        /// What a refusal costs the servers, as a share of the mean service time.
        cost_of_refusal: Share = Share::ZERO,
        /// Requests with one idempotency key are served once.
        deduplicate: Option<Deduplication>,
        /// When everything that waits is refused at once.
        reject_backlog: Option<BacklogRule>,
        /// Whether the work for a client that has gone is given up. Where not, it is done, and wasted.
        notices_cancel: bool = false;
        with
        /// How the capacity bends.
        curve: Curve,
    } => ServiceConfig::check
}

impl ServiceConfig {
    /// Servers with a service time, a queue of 1000, and nothing else.
    pub fn new(servers: Servers, service_time: ServiceTime) -> Self {
        Self {
            servers: Some(servers),
            service_time: Some(service_time),
            rate: None,
            queue: QueueConfig::of(Bound::Limited(1000)),
            limiter: None,
            admission: None,
            drain: None,
            memory: None,
            cost_of_refusal: Share::ZERO,
            deduplicate: None,
            reject_backlog: None,
            notices_cancel: false,
            curve: Curve::flat(),
        }
    }

    /// How many requests are served at once.
    pub fn servers(&self) -> Servers {
        self.servers.unwrap_or(Servers::Limited(1))
    }

    /// How long each is served, at full capacity and alone.
    pub fn time(&self) -> ServiceTime {
        match (&self.service_time, self.rate) {
            (Some(time), _) => time.clone(),
            (None, rate) => ServiceTime::Constant(rate.map_or(Span::ZERO, |rate| self.time_at(rate))),
        }
    }

    fn time_at(&self, rate: Rate) -> Span {
        let servers = match self.servers() {
            Servers::Limited(servers) => servers,
            Servers::Unlimited => 1,
        };
        rate.interval().times(servers.into())
    }

    fn check(&self) -> Result<(), String> {
        match (&self.service_time, self.rate, self.servers) {
            (Some(_), Some(_), _) => Err("`rate` and `service_time` exclude each other: keep one".to_string()),
            (None, None, _) => Err("the capacity is missing: give `servers` and `service_time`, or a `rate`".to_string()),
            (Some(_), None, None) => {
                Err("`servers` is missing: how many requests are served at once, or `unlimited`".to_string())
            }
            (None, Some(_), Some(Servers::Unlimited)) => {
                Err("`rate` is what limited servers serve together: give their number, or a `service_time`".to_string())
            }
            (None, Some(rate), _) if rate.get() <= 0.0 => Err("`rate` must be above 0: such as `rate: 300/s`".to_string()),
            _ if self.memory == Some(0) => {
                Err("`memory` must be 1 or more: a service that holds nothing serves nothing".to_string())
            }
            _ => Ok(()),
        }
    }
}
