//! Checks of which requests a fault strikes, of its shape in time, and of the faults of answers.

use super::target::whole_seconds;
use super::{Context, MAX_LENGTH};
use crate::config::{At, Concerns, Place};
use crate::fault::matching::{MOST_MATCHERS, path_fits};
use crate::fault::timeline::MOST_TURNS;
use crate::fault::{Fault, Match, Repeat, Step, TimeShape, Which};
use crate::plan::proxy::MAIN;
use crate::plan::raw::RawStep;
use crate::plan::target::TargetConfig;
use crate::plan::{HeaderValue, RawPlan};
use crate::time::{Share, Span, Timestamp};

/// Headers that the clients send, and whose values a simulated run does not know.
const LIVE_ALONE: [&str; 2] = ["idempotency-key", "x-stormwake-enqueued-at"];

/// Checks a step's `match`, `every`, `first`, `ramp` and `flap`.
pub(super) fn check(raw: &RawPlan, step: &RawStep, fault: &Fault, index: &str, lasts: Span, cx: &mut Context) {
    // What passes another proxy is a service's own, of which the plan knows nothing.
    let is_ours = step.on.as_ref().is_none_or(|on| on.value == MAIN);
    if let (Some(of), Some(target), true) = (&step.which.r#match, &raw.target.0, is_ours) {
        matches_something(of, &target.value, index, cx);
    }
    shaped(fault, Said::of(step), &["timeline", index], lasts, cx);
}

/// What is said of which requests a fault strikes, and when.
#[derive(Clone, Copy)]
pub(super) struct Said<'a> {
    pub(super) which: &'a Which,
    pub(super) shape: &'a TimeShape,
    /// Whether it comes again.
    pub(super) repeats: bool,
}

impl<'a> Said<'a> {
    fn of(step: &'a RawStep) -> Self {
        Self { which: &step.which, shape: &step.shape, repeats: step.repeat.is_some() }
    }
}

/// Checks that a fault that lasts so long can be what is said; `path` leads to it.
pub(super) fn shaped(fault: &Fault, said: Said, path: &[&str], lasts: Span, cx: &mut Context) {
    if fault.chooses_no_requests() {
        no_requests(said, fault, path, cx);
    }
    ramp(said, path, lasts, cx);
    flap(said, path, lasts, cx);
}

/// The keys that only faults have, where a step is none.
pub(super) fn of_faults_alone(step: &RawStep, index: &str, cx: &mut Context) {
    let kind = if step.action.is_some() { "action" } else { "service" };
    for key in given(Said::of(step)) {
        let place = cx.at(&["timeline", index, key]);
        cx.error(
            place,
            format!("`{key}` is of faults: `{kind}` does not take it"),
            "remove it, or make it a step with a `fault`",
        );
    }
}

/// The keys of a step that say which requests it strikes and when.
fn given(Said { which, shape, repeats }: Said) -> impl Iterator<Item = &'static str> {
    let all = [
        ("match", which.r#match.is_some()),
        ("every", which.every.is_some()),
        ("first", which.first.is_some()),
        ("per", which.per.is_some()),
        ("ramp", shape.ramp.is_some()),
        ("flap", shape.flap.is_some()),
        ("repeat", repeats),
    ];
    all.into_iter().filter(|(_, there)| *there).map(|(key, _)| key)
}

fn no_requests(said: Said, fault: &Fault, path: &[&str], cx: &mut Context) {
    for key in given(said).filter(|key| !["flap", "repeat"].contains(key)) {
        let place = cx.at(&[path, &[key]].concat());
        let message = format!("`{}` strikes connections, and not the requests that `{key}` asks for", fault.key());
        cx.error(place, message, "use `reset`, `hang` or `status`, which strike requests");
    }
}

/// Warns where no request of the plan fits, or where a simulated run cannot tell.
fn matches_something(of: &Match, target: &TargetConfig, index: &str, cx: &mut Context) {
    let at = |cx: &Context, key: &str| cx.at(&["timeline", index, "match", key]);
    let own = target.url.as_ref().map_or("/", |url| url.value.path.as_str());
    let paths: Vec<&str> = match target.routes.as_slice() {
        [] => vec![own],
        routes => routes.iter().map(|route| route.path.value.as_str()).collect(),
    };
    if let Some(path) = of.path.as_ref().filter(|path| !paths.iter().any(|own| path_fits(path.as_bytes(), own.as_bytes()))) {
        let place = at(cx, "path");
        let shown = paths.iter().take(5).map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
        cx.warn(place, format!("no request of this plan has a path like `{path}`"), format!("its requests go to {shown}"));
    }
    let methods = || target.routes.iter().map(|route| route.method.as_ref().unwrap_or(&target.method));
    let is_sent = |method: &String| {
        if target.routes.is_empty() { target.method.value == *method } else { methods().any(|own| own.value == *method) }
    };
    if let Some(method) = of.method.as_ref().filter(|method| !is_sent(method)) {
        let place = at(cx, "method");
        cx.warn(place, format!("no request of this plan is a `{method}`"), "see `method` of `target` and its `routes`");
    }
    for entry in of.header.0.iter().filter(|entry| entry.value != "*" && is_hidden(&entry.name, target)) {
        let message = format!("only a live run knows the value of `{}`: a simulated one takes no request to fit", entry.name);
        cx.warn_of(Concerns::Simulated, entry.place, message, "write `\"*\"` for any value");
    }
}

fn is_hidden(name: &str, target: &TargetConfig) -> bool {
    let tables = std::iter::once(&target.headers).chain(target.routes.iter().map(|route| &route.headers));
    let secret = tables
        .flat_map(|table| &table.0)
        .any(|entry| entry.name.eq_ignore_ascii_case(name) && matches!(entry.value, HeaderValue::Secret(_)));
    secret || LIVE_ALONE.contains(&name.to_ascii_lowercase().as_str())
}

fn ramp(said: Said, path: &[&str], lasts: Span, cx: &mut Context) {
    let Some(ramp) = &said.shape.ramp else { return };
    let takes = ramp.r#in + ramp.out;
    if takes > lasts {
        let place = cx.at(&[path, &["ramp"]].concat());
        let message = format!("a ramp of {takes} on a fault of {lasts}: it would never do its whole harm");
        cx.error(place, message, "make it shorter, or the fault longer");
    }
}

fn flap(said: Said, path: &[&str], lasts: Span, cx: &mut Context) {
    let Some(flap) = &said.shape.flap else { return };
    let place = cx.at(&[path, &["flap"]].concat());
    let turns = (u128::from(lasts.0) * 2 / u128::from((flap.on + flap.off).0.max(1))) as usize;
    if flap.on >= lasts {
        let message = format!("it acts for {}, and the fault lasts for {lasts}: it would never rest", flap.on);
        cx.error(place, message, "make `on` shorter, or the fault longer; or leave `flap` out");
    } else if turns > MOST_TURNS && lasts < Span::MAX {
        cx.error(place, format!("it turns {turns} times: {MOST_TURNS} at most"), "make `on` and `off` longer");
    }
}

/// The plan's matchers are the bits of a number.
pub(super) fn few_matchers(steps: &[Step], cx: &mut Context) {
    let with = |step: &&Step| step.which.r#match.is_some();
    if let Some(one) = steps.iter().filter(with).nth(MOST_MATCHERS) {
        cx.error(one.place, format!("more than {MOST_MATCHERS} steps with a `match`"), "join some, or split the plan");
    }
}

/// A step and the times that it comes again, each with a number behind its name.
pub(super) fn repeated(step: Step, repeat: Option<&At<Repeat>>, end: Timestamp, room: usize, cx: &mut Context) -> Vec<Step> {
    let Some(At { value: Repeat { every, times }, place }) = repeat else { return vec![step] };
    let lasts = step.to.since(step.from);
    let last = step.to + every.times(u64::from(*times) - 1);
    if step.to >= end && *times > 1 {
        cx.error(*place, format!("`{}` lasts to the end of the run: it cannot come again", step.name), "give it a `for`");
    } else if *every <= lasts {
        let message = format!("`{}` lasts for {lasts} and comes again after {every}: it would never end", step.name);
        cx.error(*place, message, "make `every` longer than `for`");
    } else if *times as usize > room {
        cx.error(*place, format!("{times} times: {room} more steps fit into a plan"), "make it fewer, or use `flap`");
    } else if last > end {
        let message = format!("the last of {times} ends at {last}, after the run, which ends at {end}");
        cx.error(*place, message, "make it fewer, or `length` longer");
    } else {
        let again = |n: u32| Step {
            name: format!("{}-{}", step.name, n + 1),
            from: step.from + every.times(n.into()),
            to: step.to + every.times(n.into()),
            ..step.clone()
        };
        return (0..*times).map(again).collect();
    }
    vec![step]
}

/// Checks a fault of requests or answers of those that stand here alone. `at` gives the place of a key of it.
pub(super) fn fault(fault: &Fault, at: impl Fn(&Context, &str) -> Place, cx: &mut Context) {
    let none = |share: Share, cx: &mut Context| super::timeline::share(share, at(cx, "share"), cx);
    match fault {
        Fault::LimitConcurrency(limit) => {
            whole_seconds(limit.retry_after, limit.hint, at(cx, "retry_after"), cx);
            long(limit.wait, at(cx, "wait"), cx);
        }
        Fault::Truncate(cut) => none(cut.share, cx),
        Fault::SlowBody(slow) => {
            none(slow.share, cx);
            long(slow.every, at(cx, "every"), cx);
        }
        Fault::Malformed(malformed) => none(malformed.share, cx),
        _ => {}
    }
}

fn long(span: Span, place: Place, cx: &mut Context) {
    if span > MAX_LENGTH {
        cx.error(place, format!("{span}: {MAX_LENGTH} at most"), "such as `1s`");
    }
}
