//! A service as a plan has it: its limits, and which other service it calls, by which policy.

use super::fleet::PolicyRef;
use crate::config::At;
use crate::record;
use crate::service::ServiceConfig;
use crate::service::system::{CallConfig, FailsConfig, Member};
use crate::time::Span;

record! {
    /// A call that the service makes for every request, after its own work and before its answer. Its server stays taken meanwhile.
    pub struct RawCall {
        /// Which of `services` is called.
        service: At<String>,
        /// How the call is retried: the name of a policy, or a policy spelled out. Its budget is shared by all calls of this service.
        policy: At<PolicyRef>,
        /// How long a request, and an answer, takes from one service to the other.
        latency: Span = Span::from_micros(500),
        /// What the request is answered with whose call has failed.
        on_failure: u16 = 503,
    } => |call: &RawCall| match call {
        RawCall { latency, .. } if *latency < Span::from_micros(1) => {
            Err("`latency` must be 1us or more: a call that takes no time would be retried without end in none".to_string())
        }
        RawCall { latency, .. } if *latency > Span::from_secs(60) => Err("`latency` must be 1m or less".to_string()),
        RawCall { on_failure: 300..=599, .. } => Ok(()),
        RawCall { on_failure, .. } => Err(format!("`on_failure` is {on_failure}: expected the status of a failure, from 300 to 599")),
    }
}

record! {
    /// A service: its limits, and what it calls.
    pub struct RawService {
        /// A call to another service that it makes for every request.
        calls: Option<RawCall>,
        /// A share of its requests that fail, after their service.
        fails: Option<FailsConfig>;
        with
        /// Its limits.
        service: ServiceConfig,
    }
}

impl RawService {
    /// It with its call resolved, where `place_of` knows the service that is called and its policy has been put in place of its name; none where not.
    pub(super) fn member(&self, place_of: impl Fn(&str) -> Option<usize>) -> Option<Member> {
        let calls = match &self.calls {
            None => None,
            Some(RawCall { service, policy: At { value: PolicyRef::Inline(policy), .. }, latency, on_failure }) => {
                Some(CallConfig {
                    to: place_of(&service.value)?,
                    policy: (**policy).clone(),
                    latency: *latency,
                    on_failure: *on_failure,
                })
            }
            Some(_) => return None,
        };
        Some(Member { service: self.service.clone(), calls, fails: self.fails.clone() })
    }
}
