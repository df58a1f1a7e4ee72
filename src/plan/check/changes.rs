//! Checks of steps that change the service: what each does, when it is put back, and what bears witness of it.
//!
//! A change that weakens the service and ends is a step of the fault timeline as well, one that does nothing to traffic: it makes a phase, the
//! baseline comes before it, it counts the requests that came while it acted, and recovery can be judged after it. A restart and a cold
//! cache end by themselves: they act for as long as the service is down, a second at least.

use super::{Context, names, service};
use crate::config::Place;
use crate::fault::{Step, TimeShape, Which};
use crate::plan::action::{Action, Deed};
use crate::plan::raw::RawStep;
use crate::plan::{Changeable, RawPlan};
use crate::service::change::FRONT;
use crate::service::{ServiceChange, ServiceConfig};
use crate::time::{Span, Timestamp};

/// How long a restart or a cold cache acts at least: long enough for requests to come.
const LEAST: Span = Span::from_secs(1);

/// When a step begins and ends, and when the run does.
#[derive(Clone, Copy)]
pub(super) struct Times {
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    pub(super) end: Timestamp,
}

/// What a change is resolved by.
pub(super) struct Changes<'a> {
    pub(super) raw: &'a RawPlan,
    /// Where the step stands.
    pub(super) index: &'a str,
}

impl Changes<'_> {
    /// What bears witness of a change, where something does; and what is done: the change, and at its end what puts it back. None where it
    /// is not known what is changed: such a step may bear witness or not.
    pub(super) fn check(
        &self,
        step: &RawStep,
        change: &ServiceChange,
        name: String,
        times: Times,
        place: Place,
        cx: &mut Context,
    ) -> Option<(Option<Step>, Vec<Action>)> {
        let path = ["timeline", self.index, "service"];
        let scopes = [
            step.fleets.as_ref().map(|at| at.place),
            step.regions.as_ref().map(|at| at.place),
            step.destinations.as_ref().map(|at| at.place),
        ];
        for place in scopes.into_iter().flatten() {
            cx.error(place, "a fault strikes some traffic and not other; a change of the service is one for all", "remove it");
        }
        if let Some(limiters) = change.limiter.as_ref().and_then(|limiter| limiter.get()) {
            service::limiters(limiters, &path, cx);
        }
        if let Some(refusing) = &change.reject_backlog {
            service::refusing(refusing, &[&path[..], &["reject_backlog"]].concat(), cx);
        }
        self.lasts(step, change, cx);
        let config = self.service(change, cx)?;
        cached(change, config.curve.cold_cache.is_some(), &path, cx);
        let deed = |change, ends| Deed::Service { change: Box::new(change), ends };
        let mut actions = vec![Action { name: name.clone(), at: times.from, what: deed(change.clone(), false), place }];
        if step.r#for.is_some() && times.to < times.end {
            let back = deed(change.undo(&config), true);
            actions.push(Action { name: format!("{name}-end"), at: times.to, what: back, place });
        }
        Some((witness(step, change, name, times, place), actions))
    }

    /// What happens once has no end.
    fn lasts(&self, step: &RawStep, change: &ServiceChange, cx: &mut Context) {
        if let (Some(lasting), Some(key)) = (&step.r#for, change.happens_once()) {
            let hint = if key == "restart" {
                "remove it; how long it is down, `down_for` says"
            } else {
                "remove it, or make two steps of it"
            };
            cx.error(lasting.place, format!("`{key}` happens once: it cannot last"), hint);
        }
    }

    /// The service that is changed; said where the plan has none. None as well where the target could not be read.
    fn service(&self, change: &ServiceChange, cx: &mut Context) -> Option<ServiceConfig> {
        let target = &self.raw.target.0.as_ref()?.value;
        if let Some(of) = change.of.as_ref().filter(|of| *of != FRONT) {
            let known: Vec<&str> = [FRONT].into_iter().chain(target.services.0.iter().map(|entry| entry.name.as_str())).collect();
            let found = target.services.get(of).map(|service| service.service.clone());
            if found.is_none() {
                let place = cx.at(&["timeline", self.index, "service", "of"]);
                names::unknown("service", of, place, &known, cx);
            }
            return found;
        }
        let service = target.behaviour().cloned();
        if service.is_none() {
            let message = "there is no service to change: the target is a URL, and nothing here can change somebody's server";
            let place = cx.at(&["timeline", self.index, "service"]);
            cx.error(
                place,
                message,
                "change it with `action: { exec: … }`; or say with `model` what stands in for it in simulated runs",
            );
        }
        service
    }
}

/// Checks a change that stands by itself against the services that there are.
pub(super) fn whose(change: &ServiceChange, services: &[Changeable], cx: &mut Context) {
    if let Some(service) = services.iter().find(|service| service.name == change.whose()) {
        return cached(change, service.has_cache, &[], cx);
    }
    let known: Vec<&str> = services.iter().map(|service| service.name).collect();
    names::unknown("service", change.whose(), cx.at(&["of"]), &known, cx);
}

/// A cache that is not there becomes neither cold nor warm. `path` leads to the change.
fn cached(change: &ServiceChange, has_cache: bool, path: &[&str], cx: &mut Context) {
    if change.cache.is_some() && !has_cache {
        let place = cx.at(&[path, &["cache"]].concat());
        let message = match &change.of {
            None => "`cache` changes nothing: this service has no `cold_cache`".to_string(),
            Some(of) => format!("`cache` changes nothing: `{of}` has no `cold_cache`"),
        };
        cx.error(place, message, "give the service a `cold_cache` in the plan, or remove `cache`");
    }
}

/// The step of the fault timeline beside a change that weakens the service and ends.
fn witness(step: &RawStep, change: &ServiceChange, name: String, times: Times, place: Place) -> Option<Step> {
    let passing = change.restart.as_ref().map(|restart| restart.down_for).or(change.cache.map(|_| Span::ZERO));
    let to = match (&step.r#for, passing) {
        _ if !change.weakens() => return None,
        (Some(_), _) => times.to,
        (None, Some(down_for)) => (times.from + down_for.max(LEAST)).min(times.end),
        (None, None) => return None,
    };
    let (fleets, destinations, regions) = (None, None, None);
    let (which, shape) = (Which::ALL, TimeShape::FULL);
    Some(Step { name, from: times.from, to, fault: None, on: 0, fleets, destinations, regions, which, shape, place })
}

/// Warns where a change ends while another one of the same part holds: it puts back what the plan's `service` says.
pub(super) fn conflicts(actions: &[Action], cx: &mut Context) {
    let changes = |action: &Action| match &action.what {
        Deed::Service { change, ends } => Some((change.clone(), *ends)),
        _ => None,
    };
    for (index, begun) in actions.iter().enumerate() {
        let Some((change, false)) = changes(begun) else { continue };
        let Some(ended) = actions.get(index + 1).filter(|next| matches!(changes(next), Some((_, true)))) else { continue };
        let during = |other: &&Action| begun.at <= other.at && other.at < ended.at && other.name != begun.name;
        for other in actions.iter().filter(during) {
            let Some((others, false)) = changes(other).filter(|(others, _)| others.whose() == change.whose()) else { continue };
            let Some(part) = change.lasting().find(|part| others.lasting().any(|other| other == *part)) else { continue };
            let message = format!(
                "`{}` changes `{part}` while `{}` does, whose end puts it back to what the plan's service says",
                other.name, begun.name
            );
            cx.warn(other.place, message, format!("let `{}` begin at {} or later, or change another part", other.name, ended.at));
        }
    }
}
