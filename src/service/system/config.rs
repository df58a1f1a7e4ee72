//! What a system is made of, with every name resolved: services, and which of them calls which.

use crate::policy::Policy;
use crate::record;
use crate::service::ServiceConfig;
use crate::time::{Share, Span};

/// The most services of a system beside the front one.
pub const MAX_SERVICES: usize = 32;

/// The most services that one request passes, each called by the one before it.
pub const MAX_DEPTH: usize = 8;

record! {
    /// A share of requests that are answered with a failure, each by its own draw, after their service.
    pub struct FailsConfig {
        /// The share of requests that fail.
        share: Share,
        /// What they are answered with.
        status: u16 = 500,
    } => |f: &FailsConfig| match f.status {
        300..=599 => Ok(()),
        status => Err(format!("`status` is {status}: expected that of a failure, from 300 to 599")),
    }
}

/// A call that a service makes for every request, after its own work and before its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct CallConfig {
    /// Which service is called: its index in [`SystemConfig::services`].
    pub to: usize,
    /// How the call is retried.
    pub policy: Policy,
    /// How long a request, and an answer, takes from one service to the other.
    pub latency: Span,
    /// What the request is answered with whose call has failed.
    pub on_failure: u16,
}

/// A service as a part of a system.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its limits.
    pub service: ServiceConfig,
    /// What it calls.
    pub calls: Option<CallConfig>,
    /// Which of its requests fail.
    pub fails: Option<FailsConfig>,
}

/// The services of a target, with every name resolved. Calls make no cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemConfig {
    /// What serves every request that is for none of the others.
    pub front: Member,
    /// The others, by the names that requests and calls have for them.
    pub services: Vec<(String, Member)>,
}

impl Member {
    /// A service that calls nothing.
    pub const fn of(service: ServiceConfig) -> Self {
        Self { service, calls: None, fails: None }
    }
}

impl SystemConfig {
    /// One service, and nothing behind it.
    pub const fn of(service: ServiceConfig) -> Self {
        Self { front: Member::of(service), services: Vec::new() }
    }

    /// Whether it is no more than one service.
    pub fn is_alone(&self) -> bool {
        self.services.is_empty() && self.front.calls.is_none() && self.front.fails.is_none()
    }
}
