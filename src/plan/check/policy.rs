//! Checks of one policy: numbers that contradict each other, and settings that can do nothing.

use super::{Context, MAX_LENGTH};
use crate::config::At;
use crate::policy::backoff::{Backoff, Exponential, Jitter, Numbers};
use crate::policy::budget::{BudgetConfig, Kind};
use crate::policy::{Attempts, Policy};
use crate::time::Span;

/// Checks a policy that stands at `path`.
pub(super) fn check(policy: &Policy, path: &[&str], cx: &mut Context) {
    let at = |cx: &Context, key: &[&str]| cx.at(&[path, key].concat());
    if policy.timeout > MAX_LENGTH {
        let place = at(cx, &["timeout"]);
        cx.error(place, format!("a timeout of {}: {MAX_LENGTH} at most", policy.timeout), "such as `timeout: 2s`");
    }
    for (key, limit) in [("deadline", policy.deadline), ("max_elapsed", policy.max_elapsed)] {
        let Some(limit) = limit else { continue };
        let place = at(cx, &[key]);
        if limit.is_zero() {
            cx.error(place, format!("`{key}` must be longer than nothing"), format!("leave it out for no {key}"));
        } else if key == "deadline" && limit < policy.timeout {
            let message =
                format!("the deadline of {limit} is shorter than the timeout of {}: no attempt gets its time", policy.timeout);
            cx.warn(place, message, "make the timeout shorter, or the deadline longer");
        } else if key == "max_elapsed" && limit < policy.timeout {
            let message =
                format!("after an attempt that took its timeout of {} the {limit} are over: it is not retried", policy.timeout);
            cx.warn(place, message, "make the timeout shorter, or `max_elapsed` longer");
        }
    }
    let never = policy.attempts == Attempts::Limited(1);
    for key in ["backoff", "budget", "retry_on", "on", "hedge"] {
        if never && cx.root.place_of(&[path, &[key]].concat()) != cx.root.place_of(path) {
            let place = at(cx, &[key]);
            cx.warn(place, format!("`attempts: 1` never retries: `{key}` does nothing"), "raise `attempts`, or remove it");
        }
    }
    if policy.retry_on.is_empty() && policy.on.iter().all(|(_, treatment)| !treatment.retry) && !never {
        let place = at(cx, &["retry_on"]);
        cx.warn(place, "nothing is retried: `retry_on` is empty", "write `attempts: 1` to say so, or name what is retried");
    }
    backoff(&policy.backoff, &[path, &["backoff"]].concat(), cx);
    for (class, treatment) in policy.on.iter() {
        if let Some(own) = &treatment.backoff {
            backoff(own, &[path, &["on", &class.to_string(), "backoff"]].concat(), cx);
        }
    }
    if let Some(budget) = &policy.budget {
        budget_numbers(budget, &[path, &["budget"]].concat(), cx);
    }
}

fn backoff(backoff: &Backoff, path: &[&str], cx: &mut Context) {
    if matches!(backoff, Backoff::None(_)) {
        return;
    }
    let path = [path, &[backoff.key()]].concat();
    let numbers = backoff.numbers();
    bounds(numbers, &path, cx);
    if let Backoff::Exponential(e) = backoff {
        growth(e, &path, cx);
    }
    jitter(backoff.jitter(), numbers.written, &path, cx);
}

/// The first wait, the longest and the shortest must make sense together.
fn bounds(numbers: Numbers, path: &[&str], cx: &mut Context) {
    let Numbers { key, written, cap, floor } = numbers;
    let at = |cx: &Context, key: &str| cx.at(&[path, &[key]].concat());
    if written.is_zero() && key == "base" {
        let place = at(cx, "base");
        cx.error(place, "a base of nothing never grows", "write `backoff: none` to retry at once, or such as `base: 200ms`");
    }
    if let Some(cap) = cap.filter(|cap| *cap < written) {
        let place = at(cx, "cap");
        cx.error(place, format!("the cap of {cap} is shorter than the base of {written}"), "swap them, or raise the cap");
    }
    if let Some(cap) = cap.filter(|cap| *cap < floor) {
        let place = at(cx, "floor");
        cx.error(place, format!("the floor of {floor} is above the cap of {cap}"), "swap them, or use `fixed` for a steady wait");
    }
    for (key, wait) in [(key, written), ("cap", cap.unwrap_or_default()), ("floor", floor)] {
        if wait > MAX_LENGTH {
            let place = at(cx, key);
            let hint = if key == "cap" { "leave `cap` out for no cap" } else { "no run is longer" };
            cx.error(place, format!("a wait longer than {MAX_LENGTH}"), hint);
            return;
        }
    }
}

fn growth(e: &Exponential, path: &[&str], cx: &mut Context) {
    let at = |cx: &Context, key: &str| cx.at(&[path, &[key]].concat());
    if !(1.0..=1000.0).contains(&e.multiplier) {
        let place = at(cx, "multiplier");
        cx.error(place, format!("a multiplier of {}: expected 1 to 1000", e.multiplier), "2 doubles the wait each time");
    }
    if e.first_exponent > 64 {
        let place = at(cx, "first_exponent");
        cx.error(place, format!("a first exponent of {}: expected 0 to 64", e.first_exponent), "0 makes the first wait the base");
    }
}

fn jitter(jitter: &Jitter, wait: Span, path: &[&str], cx: &mut Context) {
    let place = cx.at(&[path, &["jitter"]].concat());
    match jitter {
        Jitter::Additive(a) if a.range.is_zero() => cx.warn(place, "a jitter of nothing", "write `jitter: none` to say so"),
        Jitter::Proportional(p) if p.share.get() == 0.0 => {
            cx.warn(place, "a jitter of nothing", "write `jitter: none` to say so");
        }
        Jitter::Decorrelated(_) | Jitter::Full(_) | Jitter::Equal(_) if wait.is_zero() => {
            cx.warn(place, "a jitter on a wait of nothing is nothing", "write a delay, or leave the jitter out");
        }
        _ => {}
    }
}

fn budget_numbers(budget: &At<BudgetConfig>, path: &[&str], cx: &mut Context) {
    let Kind::Window(b) = &budget.value.kind else { return };
    if b.window < Span::from_millis(100) || b.window > Span::from_secs(3600) {
        let place = cx.at(&[path, &["window"]].concat());
        cx.error(place, format!("a window of {}: expected 100ms to 1h", b.window), "10s is usual");
    }
    if !(0.0..=1_000_000.0).contains(&b.min_per_second) {
        let place = cx.at(&[path, &["min_per_second"]].concat());
        cx.error(
            place,
            format!("{} retries per second: expected 0 to 1000000", b.min_per_second),
            "0 means none that are not earned",
        );
    }
}
