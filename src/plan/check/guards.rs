//! Checks of what holds a client back, against what its fleet offers: budgets that can never permit a retry, breakers that can
//! never open, prices that nobody can pay.

use super::Context;
use crate::config::{At, Place};
use crate::plan::arithmetic::Offered;
use crate::policy::breaker::{Opens, Over, SharedBy, Suppresses};
use crate::policy::budget::{BucketConfig, BudgetConfig, ConcurrentConfig, Kind, Tier, WindowConfig};
use crate::policy::{Attempts, Policy, RetryOn, ThrottleConfig};

/// Warns of what can do nothing for this fleet, or only harm.
pub(super) fn check(policy: &Policy, clients: u32, offered: Offered, fleet: &str, cx: &mut Context) {
    budget_permits(policy, clients, offered, fleet, cx);
    breaker_opens(policy, clients, offered, fleet, cx);
    prices(policy, cx);
    let Some(At { value: ThrottleConfig::Adaptive(adaptive), place }) = &policy.throttle else { return };
    if adaptive.throttled_by.contains(&RetryOn::Refused) {
        let message = "`throttled_by` names `refused`, which is the client's own doing: no answer of a server is that";
        cx.warn(*place, message, "name what the server answers, such as 429");
    }
}

/// Warns of a budget that can never permit a retry.
fn budget_permits(policy: &Policy, clients: u32, offered: Offered, fleet: &str, cx: &mut Context) {
    let Some(At { value: budget, place }) = &policy.budget else { return };
    if policy.attempts == Attempts::Limited(1) {
        return;
    }
    let (sharers, who) = match budget.tier {
        Tier::Operation => (1.0, format!("an operation of fleet `{fleet}`")),
        Tier::Client => (f64::from(clients), format!("a client of fleet `{fleet}`")),
        Tier::Fleet => (1.0, format!("fleet `{fleet}`")),
    };
    if let Kind::Window(window) = &budget.kind {
        return window_permits(window, budget.tier, offered, sharers, &who, *place, cx);
    }
    if let Some((message, remedy)) = never_permits(budget, &who) {
        cx.warn(*place, message, remedy);
    }
}

/// Why a budget can never permit a retry, or not for long, and what to do about it: what its own numbers say.
fn never_permits(budget: &BudgetConfig, who: &str) -> Option<(String, &'static str)> {
    match &budget.kind {
        Kind::Bucket(BucketConfig { deposit, burst }) if deposit.get() == 0.0 && budget.tier != Tier::Operation => {
            Some((format!("nothing is deposited: {who} gets {burst} retries in the whole run, and then none"), "raise `deposit`"))
        }
        Kind::Quota(quota) if u32::from(quota.cost) > quota.capacity => {
            let message = format!(
                "this budget never permits a retry: one costs {} and {who} never has more than {}",
                quota.cost, quota.capacity
            );
            Some((message, "raise `capacity`, or lower `cost`"))
        }
        Kind::Concurrent(ConcurrentConfig { share: Some(share), at_least: Some(0), .. }) if budget.tier == Tier::Client => {
            let message = format!(
                "this budget hardly ever permits a retry: {who} has few attempts on the wire at once, and {share} of them are less than one"
            );
            Some((message, "use `tier: fleet`, or an `at_least` of 1 or more"))
        }
        Kind::Grpc(grpc) if grpc.tokens <= 2 => {
            let message =
                format!("this budget never permits a retry: after one failure {who} has no more than half of its tokens");
            Some((message, "`tokens: 10` is usual"))
        }
        _ => None,
    }
}

fn window_permits(window: &WindowConfig, tier: Tier, offered: Offered, sharers: f64, who: &str, place: Place, cx: &mut Context) {
    let Some(offered) = offered.within(window.window.as_secs_f64()) else { return };
    let first_attempts = offered / sharers;
    let earned = first_attempts * window.ratio.get() + window.min_per_second * window.window.as_secs_f64();
    if earned >= 1.0 {
        return;
    }
    let message = format!(
        "this budget never permits a retry: {who} makes {} first attempts in a window of {}, which earn {} of one retry",
        figure(first_attempts),
        window.window,
        figure(earned)
    );
    let hint = match tier {
        Tier::Client => "use `tier: fleet`, a longer `window`, or `min_per_second`",
        Tier::Operation | Tier::Fleet => "use a longer `window`, a higher `ratio`, or `min_per_second`",
    };
    cx.warn(place, message, hint);
}

/// Warns of a breaker that never sees enough to open, or has nothing to suppress.
fn breaker_opens(policy: &Policy, clients: u32, offered: Offered, fleet: &str, cx: &mut Context) {
    let Some(At { value: breaker, place }) = &policy.breaker else { return };
    if breaker.rule.suppresses == Suppresses::Retries && policy.attempts == Attempts::Limited(1) {
        let message = "`attempts: 1` never retries, and this breaker suppresses nothing else";
        return cx.warn(*place, message, "raise `attempts`, or write `suppresses: all`");
    }
    let Opens::Rate { over: Over::Window(window), minimum_calls, .. } = breaker.rule.opens else { return };
    let (sharers, who) = match breaker.tier {
        SharedBy::Client => (f64::from(clients), format!("a client of fleet `{fleet}`")),
        SharedBy::Fleet => (1.0, format!("fleet `{fleet}`")),
    };
    let most = match (offered.within(window.as_secs_f64()), policy.attempts) {
        (Some(operations), Attempts::Limited(attempts)) => operations / sharers * f64::from(attempts),
        _ => return,
    };
    if most < f64::from(minimum_calls) {
        let message = format!(
            "this breaker never opens: {who} makes {} attempts in a window of {window} at most, and fewer than {minimum_calls} are not judged",
            figure(most)
        );
        cx.warn(*place, message, "lower `minimum_calls`, use a longer `window`, or `tier: fleet`");
    }
}

/// Warns of classes of outcomes whose retries cost more than there ever is, or that nobody pays for.
fn prices(policy: &Policy, cx: &mut Context) {
    let priced = policy.on.iter().filter_map(|(class, treatment)| treatment.cost.map(|cost| (class, u32::from(cost))));
    let Some(At { value: budget, place }) = &policy.budget else { return };
    let most = match &budget.kind {
        Kind::Quota(quota) => quota.capacity,
        Kind::Bucket(bucket) => bucket.burst,
        Kind::Window(_) => return,
        Kind::Concurrent(_) | Kind::Grpc(_) => {
            if priced.count() > 0 {
                let message = "`cost` stands in `on`, and this budget has no prices: it counts retries, or failures";
                cx.warn(*place, message, "leave `cost` out, or use a `quota` or a `bucket`");
            }
            return;
        }
    };
    for (class, cost) in priced.filter(|(_, cost)| *cost > most) {
        let message =
            format!("this budget never permits a retry after {class}: it costs {cost}, and there is never more than {most}");
        cx.warn(*place, message, "lower its `cost`, or write `retry: false`");
    }
}

fn figure(n: f64) -> String {
    if n >= 10.0 { format!("{n:.0}") } else { format!("{}", (n * 1000.0).round() / 1000.0) }
}
