//! From what a plan says to what can be run: names resolved, numbers checked against each other.

mod actions;
mod calls;
mod changes;
mod compare;
mod devices;
mod evidence;
mod external;
mod fleets;
mod guards;
mod judge;
mod loads;
mod names;
mod network;
mod policy;
mod proxies;
mod proxy_fault;
mod requests;
mod returns;
mod scope;
mod service;
mod target;
mod timeline;
mod tls;
mod workers;

pub(super) use proxy_fault::check as proxy_fault;

use super::{Changeable, Plan, RawPlan};
use crate::config::{At, Concerns, Lenient, Node, Place, Problems};
use crate::service::ServiceChange;
use crate::time::Span;

/// The longest run.
pub(super) const MAX_LENGTH: Span = Span::from_secs(24 * 3600);

/// What every check needs: the tree, for places, and where to report.
struct Context<'a> {
    root: &'a Node,
    problems: &'a mut Problems,
}

impl Context<'_> {
    fn at(&self, path: &[&str]) -> Place {
        self.root.place_of(path)
    }

    fn error(&mut self, place: Place, message: impl Into<String>, hint: impl Into<String>) {
        self.problems.error_with_hint(place, message, hint);
    }

    fn warn(&mut self, place: Place, message: impl Into<String>, hint: impl Into<String>) {
        self.problems.warning(place, message, hint);
    }

    /// A warning that concerns some runs of the plan and not others.
    fn warn_of(&mut self, concerns: Concerns, place: Place, message: impl Into<String>, hint: impl Into<String>) {
        self.problems.warning_of(concerns, place, message, hint);
    }

    /// Whether the plan has such a section.
    fn has(&self, section: &str) -> bool {
        self.root.get(section).is_some()
    }

    /// The keys of a map of the plan.
    fn keys(&self, section: &str) -> Vec<String> {
        match self.root.get(section).map(|node| &node.value) {
            Some(crate::config::Value::Map(entries)) => entries.iter().map(|(key, _)| key.name.clone()).collect(),
            _ => Vec::new(),
        }
    }
}

/// Checks a plan as a whole; `None` where something is missing. Errors may have been reported in either case.
pub(super) fn check(raw: RawPlan, root: &Node, file: &str, problems: &mut Problems) -> Option<Plan> {
    let (raw, time_scale) = raw.at_its_speed();
    let mut cx = Context { root, problems };
    version(&raw.version, &mut cx);
    let name = names::plan_name(&raw.name, file, &mut cx);
    let length = length(&raw.length, &mut cx);
    let timer_grain = timer_grain(&raw.timer_grain, &mut cx);
    let mut fleets = fleets::check(&raw, length, &mut cx);
    let resolved = calls::resolve(&raw, &mut cx);
    if let Some(target) = &raw.target.0 {
        target::check(&target.value, &fleets, actions::calls(&raw), &mut cx);
    }
    if let Some(network) = &raw.network.0 {
        network::check(network, &fleets, &mut cx);
    }
    let proxies = proxies::check(&raw, &mut cx);
    let timeline = timeline::check(&raw, &fleets, &proxies, length, &mut cx);
    let external = external::check(&raw, &proxies, &timeline.steps, &mut cx);
    returns::resolve(&mut fleets, &raw, &timeline, &mut cx);
    let judged = judge::check(&raw, &timeline, &fleets, &proxies, length, &mut cx);
    let compare = compare::check(&raw, &fleets, &mut cx);
    let expected = raw.expect.as_ref().and_then(|expect| expect.0.as_ref()).map(|expect| expect.place);
    let judged_at = expected.or_else(|| raw.recovery.as_ref().and_then(|recovery| recovery.0.as_ref()).map(|of| of.place));
    Some(Plan {
        name: name?,
        seed: raw.seed.0?,
        target: resolved?,
        network: raw.network.0?,
        proxies,
        fleets,
        steady_state: judged.steady_state,
        timeline: timeline.steps,
        external,
        actions: timeline.actions,
        recovery: judged.recovery,
        gates: judged.gates,
        recovered: judged.recovered,
        compare,
        stop_if: judged.stop_if,
        judged_at,
        expect: raw.expect.and_then(|expect| expect.0).map(|expect| expect.value),
        length: length?,
        timer_grain: timer_grain?,
        time_scale,
    })
}

/// Checks a change of a service that stands by itself.
pub(super) fn change(change: &ServiceChange, services: &[Changeable], root: &Node, problems: &mut Problems) {
    changes::whose(change, services, &mut Context { root, problems });
    if let Some(limiters) = change.limiter.as_ref().and_then(|limiter| limiter.get()) {
        service::limiters(limiters, &[], &mut Context { root, problems });
    }
}

fn version(version: &Lenient<At<u32>>, cx: &mut Context) {
    if let Some(At { value, place }) = version.0
        && value != 1
    {
        cx.error(place, format!("version {value} of the plan's language is not known: expected 1"), "write `version: 1`");
    }
}

fn length(length: &Lenient<At<Span>>, cx: &mut Context) -> Option<Span> {
    let At { value, place } = *length.0.as_ref()?;
    if value < Span::from_secs(1) || value > MAX_LENGTH {
        let message = format!("a run of {value}: expected 1s to {MAX_LENGTH}");
        cx.error(place, message, "leave time for the baseline, the faults and the recovery, such as `length: 5m`");
        return None;
    }
    Some(value)
}

fn timer_grain(grain: &Lenient<At<Span>>, cx: &mut Context) -> Option<Span> {
    let At { value, place } = *grain.0.as_ref()?;
    let (least, most) = (Span::from_micros(50), Span::from_millis(50));
    if value < least || value > most {
        let hint = "leave it out: 250us costs little and is finer than any timeout";
        cx.error(place, format!("a timer grain of {value}: expected {least} to {most}"), hint);
        return None;
    }
    Some(value)
}
