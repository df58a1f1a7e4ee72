//! Whether everybody who is refused is told the same wait, and keeps to it.

use super::rules::{Rule, rule};
use crate::fault::Fault;
use crate::plan::{Deed, Plan};
use crate::policy::hint::{HintForm, Said};
use crate::policy::{Policy, RetryAfter};
use crate::service::ServiceChange;
use crate::service::change::Setting;
use crate::service::config::ServiceConfig;
use crate::service::refusal::Refusing;

/// The same hint for everybody brings everybody back together, and one that names a moment does so whenever they were refused.
pub(super) fn hints(plan: &Plan) -> Vec<Rule> {
    let honours =
        |policy: &Policy| matches!(&policy.retry_after, RetryAfter::Honor(h) if h.spread.is_none_or(|s| s.is_nothing()));
    let honouring: Vec<&str> = plan.senders().filter(|fleet| honours(&fleet.policy)).map(|fleet| fleet.name.as_str()).collect();
    if honouring.is_empty() {
        return Vec::new();
    }
    let from_faults = plan.timeline.iter().filter(|step| step.on == 0).filter_map(|step| match &step.fault {
        Some(Fault::Status(status)) => Said::new(status.retry_after, status.hint).map(|said| (format!("`{}`", step.name), said)),
        Some(Fault::RateLimit(limit)) => Said::new(limit.retry_after, limit.hint).map(|said| (format!("`{}`", step.name), said)),
        Some(Fault::LimitConcurrency(limit)) => {
            Said::new(limit.retry_after, limit.hint).map(|said| (format!("`{}`", step.name), said))
        }
        _ => None,
    });
    let from_target = plan.target.behaviour().into_iter().flat_map(of_service);
    let from_changes = plan.actions.iter().filter_map(|action| match &action.what {
        Deed::Service { change, ends: false } => Some(of_change(change).map(|said| (format!("`{}`", action.name), said))),
        _ => None,
    });
    from_faults
        .chain(from_target.map(|(part, said)| (format!("the target's {part}"), said)))
        .chain(from_changes.flatten())
        .filter(|(_, said)| !said.wait.is_zero())
        .take(10)
        .map(|(who, said)| {
            let what = match said.form {
                HintForm::RetryAfter => "the same Retry-After of",
                form if form.is_moment() => "one moment to come back, in about",
                _ => "the same wait of",
            };
            let sentence = format!(
                "{who} tells everybody {what} {}: clients of {} that are refused together come back together; `honor: {{ spread: 50% }}` parts them",
                said.wait,
                honouring.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
            );
            rule("same_hint", true, sentence)
        })
        .collect()
}

/// What the parts of a service say that always say the same.
fn of_service(service: &ServiceConfig) -> Vec<(&'static str, Said)> {
    let limiters = service.limiter.iter().flat_map(|limiters| limiters.hints()).map(|said| ("limiter", said));
    let others = [
        ("queue", Some(&service.queue.0.refusing)),
        ("admission", service.admission.as_ref().map(|admission| &admission.refusing)),
        ("`reject_backlog`", service.reject_backlog.as_ref().map(|rule| &rule.refusing)),
    ];
    let constant = |(part, refusing): (_, Option<&Refusing>)| Some((part, refusing?.constant()?));
    limiters.chain(others.into_iter().filter_map(constant)).collect()
}

/// The same of a step that changes a service.
fn of_change(change: &ServiceChange) -> impl Iterator<Item = Said> {
    let limiters = change.limiter.iter().filter_map(Setting::get).flat_map(|limiters| limiters.hints());
    limiters.chain(change.reject_backlog.iter().filter_map(Refusing::constant))
}

#[cfg(test)]
mod tests {
    use crate::plan::arithmetic::rules;
    use crate::plan::{Source, load};

    #[test]
    fn every_part_that_tells_all_the_same_is_named() {
        for (service, policy, step, wanted) in [
            (
                "queue: { bound: 9, retry_after: 6s }",
                "honor",
                "",
                "the target's queue tells everybody the same Retry-After of 6s",
            ),
            ("queue: { bound: 9, retry_after: backlog }", "honor", "", ""),
            ("queue: { bound: 9, retry_after: 6s }", "ignore", "", ""),
            ("queue: { bound: 9, retry_after: 6s }", "{ honor: { spread: 50% } }", "", ""),
            ("admission: { max_age: 9s, retry_after: 4s }", "honor", "", "the target's admission tells everybody"),
            ("reject_backlog: { older_than: 9s, retry_after: 4s }", "honor", "", "the target's `reject_backlog` tells everybody"),
            ("limiter: { token_bucket: { rate: 9/s, retry_after: 4s } }", "honor", "", "the target's limiter tells everybody"),
            ("queue: 9", "honor", "reject_backlog: { retry_after: 4s }", "`flush` tells everybody the same Retry-After of 4s"),
            ("queue: 9", "honor", "reject_backlog: { retry_after: backlog }", ""),
        ] {
            let step = if step.is_empty() { String::new() } else { format!("{{ at: 9s, name: flush, service: {{ {step} }} }}") };
            let text = format!(
                "version: 1\ntarget: {{ service: {{ rate: 100/s, {service} }} }}\nfleets: {{ a: {{ clients: 9, policy: {{ attempts: 3, timeout: 1s, \
                 retry_after: {policy} }}, load: {{ poisson: {{ rate: 10/s }} }} }} }}\ntimeline: [{step}]\nlength: 1m\n"
            );
            let loaded = load(&Source { file: "p.yaml", text: &text, overrides: &[], env: &|_| None });
            let rules = rules(&loaded.unwrap_or_else(|error| panic!("{error}")).plan);
            let said: Vec<&str> =
                rules.iter().filter(|rule| rule.key == "same_hint").map(|rule| rule.sentence.as_str()).collect();
            assert_eq!(said.len(), usize::from(!wanted.is_empty()), "{service} {policy} {step}: {said:?}");
            assert!(said.concat().contains(wanted), "{service}: {said:?}");
        }
    }
}
