//! What a request of the front service comes to at the services behind it.

use super::{capacity_of, mean_service_time};
use crate::plan::fleet::PolicyRef;
use crate::plan::service::RawService;
use crate::plan::{Plan, TargetConfig};
use crate::policy::Attempts;
use crate::service::system::MAX_DEPTH;

/// A service that requests pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Its name; none for the front one.
    pub name: Option<String>,
    /// Requests per second that it can serve, its servers taken while what they call answers; none where nothing limits it.
    pub capacity: Option<f64>,
    /// How many requests one of the front service may become here, every call failing; calls with a budget taken to be retried by nobody.
    pub most: f64,
}

/// The services that a request of the front one passes, that one first.
pub fn layers(plan: &Plan) -> Vec<Layer> {
    let Some(front) = plan.target.front() else { return Vec::new() };
    let mut layers = Vec::new();
    let (mut name, mut service, mut most) = (None, front, 1.0);
    // A plan that was not checked may call round in circles.
    for _ in 0..MAX_DEPTH {
        layers.push(Layer { name, capacity: capacity_of(&service.service, held(&plan.target, service, MAX_DEPTH)), most });
        let Some(call) = &service.calls else { break };
        let Some(next) = plan.target.services.get(&call.service.value) else { break };
        (name, service, most) = (Some(call.service.value.clone()), next, most * attempts(&call.policy.value));
    }
    layers
}

fn attempts(policy: &PolicyRef) -> f64 {
    match policy {
        PolicyRef::Inline(policy) if policy.budget.is_none() => match policy.attempts {
            Attempts::Limited(attempts) => attempts.into(),
            Attempts::Unlimited => f64::INFINITY,
        },
        _ => 1.0,
    }
}

/// How long a request takes a server, in seconds, where nothing waits.
fn held(target: &TargetConfig, service: &RawService, deep: usize) -> f64 {
    let own = mean_service_time(&service.service.time());
    let call = service.calls.as_ref().filter(|_| deep > 0);
    let called = call.and_then(|call| Some((call, target.services.get(&call.service.value)?)));
    called.map_or(own, |(call, next)| own + 2.0 * call.latency.as_secs_f64() + held(target, next, deep - 1))
}
