//! The periods at which a plan may bring its load back in step: where waves are looked for.

use super::{Fleet, Plan};
use crate::fault::Fault;
use crate::load::Load;
use crate::policy::{Asked, Attempts, Backoff, Hint, RetryAfter, Treatment, WaitInput};
use crate::time::Span;

/// So many waits of a policy are looked at: the usual shapes reach their cap before.
const MOST_WAITS: u32 = 64;
/// So many periods of a fleet are kept, the longest: synchrony lasts at the cap.
const MOST_PERIODS: usize = 24;
/// A wait whose shortest and longest are no further apart than this keeps its clients in step for a while.
const NARROW: f64 = 0.7;

impl Plan {
    /// By fleet, the periods that its policy and its load imply, rising: waits that hardly vary, alone and with a timeout before
    /// them; constant hints, where they are honoured; the pause of closed load.
    pub fn periods(&self) -> Vec<Vec<Span>> {
        let hints = self.hints();
        self.fleets.iter().map(|fleet| of_fleet(fleet, &hints)).collect()
    }

    /// Every Retry-After that the plan has somebody send.
    fn hints(&self) -> Vec<Span> {
        let faults = self.timeline.iter().filter(|step| step.on == 0).filter_map(|step| match &step.fault {
            Some(Fault::Status(status)) => status.retry_after,
            Some(Fault::RateLimit(limit)) => limit.retry_after,
            Some(Fault::LimitConcurrency(limit)) => limit.retry_after,
            _ => None,
        });
        let services = self.target.front().into_iter().chain(self.target.services.0.iter().map(|entry| &entry.value));
        let limiters = services.filter_map(|service| service.service.limiter.as_ref()).flat_map(|limiters| limiters.hints());
        faults.chain(limiters.map(|said| said.wait)).collect()
    }
}

fn of_fleet(fleet: &Fleet, hints: &[Span]) -> Vec<Span> {
    let policy = &fleet.policy;
    let treatments: Vec<&Treatment> = policy.on.iter().map(|(_, treatment)| treatment).collect();
    let backoffs = treatments.iter().filter_map(|treatment| treatment.backoff.as_ref()).chain([&policy.backoff]);
    let mut waits: Vec<Span> = backoffs.flat_map(|backoff| steady_waits(backoff, policy.attempts)).collect();
    let honored = treatments.iter().filter_map(|treatment| treatment.retry_after.as_ref()).chain([&policy.retry_after]);
    waits.extend(honored.flat_map(|retry_after| hints.iter().filter_map(|hint| steady_hint(retry_after, *hint))));
    let mut periods = waits.clone();
    periods.extend(waits.iter().map(|wait| *wait + policy.timeout));
    if let Load::Closed(closed) = &fleet.config.load {
        periods.push(closed.think);
    }
    periods.retain(|period| !period.is_zero());
    periods.sort_unstable();
    periods.dedup();
    periods.split_off(periods.len().saturating_sub(MOST_PERIODS))
}

/// The waits of a backoff that are much the same for everybody.
fn steady_waits(backoff: &Backoff, attempts: Attempts) -> Vec<Span> {
    let most = match attempts {
        Attempts::Limited(attempts) => attempts.saturating_sub(1).min(MOST_WAITS),
        Attempts::Unlimited => MOST_WAITS,
    };
    let at = |failed_attempt, previous, draw| backoff.wait(WaitInput { failed_attempt, previous, draw });
    let mut waits = Vec::new();
    let (mut before_least, mut before_most) = (None, None);
    for failed_attempt in 1..=most {
        let (least, most) = (at(failed_attempt, before_least, 0.0), at(failed_attempt, before_most, 1.0));
        (before_least, before_most) = (least, most);
        let Some((least, most)) = least.zip(most) else { break };
        waits.extend(steady(least, most));
    }
    waits.dedup();
    waits
}

/// The wait that a hint makes, where it is much the same for everybody.
fn steady_hint(retry_after: &RetryAfter, hint: Span) -> Option<Span> {
    let wait = |draw| match retry_after.wait(Span::ZERO, Hint::retry_after(hint), draw) {
        Asked::Wait(wait) => Some(wait),
        Asked::Stop => None,
    };
    steady(wait(0.0)?, wait(1.0)?)
}

fn steady(least: Span, most: Span) -> Option<Span> {
    (least >= most.scale(NARROW)).then(|| (least + most) / 2)
}

#[cfg(test)]
mod tests {
    use crate::plan::{Source, load};
    use crate::time::Span;

    fn periods(policy: &str, rest: &str) -> Vec<String> {
        let text = format!(
            "version: 1\ntarget: {{ service: {{ servers: 1, service_time: 1ms }} }}\nlength: 1m\n\
             fleets: {{ a: {{ clients: 1, policy: {policy}, load: {{ poisson: {{ rate: 1/s }} }} }} }}\n{rest}"
        );
        let plan =
            load(&Source { file: "p", text: &text, overrides: &[], env: &|_| None }).unwrap_or_else(|e| panic!("{e}")).plan;
        plan.periods()[0].iter().map(Span::to_string).collect()
    }

    #[test]
    fn waits_that_keep_in_step_imply_periods_and_jitter_does_not() {
        let limited = "timeline: [ { at: 1s, fault: { status: { code: 429, retry_after: 30s } } } ]";
        for (backoff, rest, wanted) in [
            (
                "{ exponential: { base: 2s, cap: 60s } }",
                "",
                &["2s", "3s", "4s", "5s", "8s", "9s", "16s", "17s", "32s", "33s", "1m", "1m1s"][..],
            ),
            ("{ exponential: { base: 2s, cap: 60s, jitter: full } }", "", &[]),
            ("{ exponential: { base: 2s, cap: 60s, jitter: decorrelated } }", "", &[]),
            ("{ fixed: { delay: 5s, jitter: { proportional: { share: 10% } } } }", "", &["5s", "6s"]),
            ("{ fixed: { delay: 5s, jitter: equal } }, retry_after: honor", limited, &["30s", "31s"]),
            ("{ fixed: { delay: 5s, jitter: equal } }, retry_after: { honor: { spread: 50% } }", limited, &[]),
            ("none", "", &["1s"]),
        ] {
            let policy = format!("{{ attempts: 9, timeout: 1s, backoff: {backoff} }}");
            assert_eq!(periods(&policy, rest), wanted, "{backoff}");
        }
    }
}
