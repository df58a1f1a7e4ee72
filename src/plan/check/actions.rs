//! Checks of what the timeline does beside harm: names resolved, numbers within what the fleets have.

use super::{Context, fleets, loads, names, policy, target, workers};
use crate::config::{At, Place};
use crate::fleet::FleetAction;
use crate::gate::config::{Probe, StopConfig, StopTrigger};
use crate::plan::action::{Call, Deed, Exec, RawAction, RawSetLane, RawSetLimit, RawSetRate, Webhook};
use crate::plan::fleet::PolicyRef;
use crate::plan::raw::RawStep;
use crate::plan::{Fleet, RawPlan, TargetUrl};
use crate::policy::Policy;
use crate::time::Span;
use std::sync::Arc;

/// The longest that a command or a webhook may take: an interrupted run has to end.
const LONGEST_LIMIT: Span = Span::from_secs(300);

/// The policies that actions name.
pub(super) fn named(raw: &RawPlan) -> impl Iterator<Item = &str> {
    let steps = raw.timeline.0.iter().flatten().filter_map(|step| step.0.as_ref());
    steps.filter_map(|step| match &policy_of(&step.value.action.as_ref()?.value)?.value {
        PolicyRef::Named(name) => Some(name.as_str()),
        PolicyRef::Inline(_) => None,
    })
}

/// Whether a webhook, a URL of `stop_if`, or a Toxiproxy is called.
pub(super) fn calls(raw: &RawPlan) -> bool {
    let steps = raw.timeline.0.iter().flatten().filter_map(|step| step.0.as_ref());
    let hooks = steps.filter(|step| matches!(step.value.action.as_ref().map(|action| &action.value), Some(RawAction::Http(_))));
    let mut stops = raw.stop_if.0.iter().flatten().filter_map(|stop| stop.0.as_ref());
    let asks = |stop: &StopConfig| matches!(stop.trigger, StopTrigger::Check { probe: Probe::Http(_), .. });
    raw.proxy.is_some() || hooks.count() > 0 || stops.any(asks)
}

fn policy_of(action: &RawAction) -> Option<&At<PolicyRef>> {
    match action {
        RawAction::Restart(restart) => restart.policy.as_ref(),
        RawAction::SetPolicy(set) => Some(&set.policy),
        _ => None,
    }
}

/// What an action is resolved by.
pub(super) struct Actions<'a> {
    pub(super) raw: &'a RawPlan,
    /// Those that could be read.
    pub(super) fleets: &'a [Fleet],
    /// The names of all of them.
    pub(super) known: &'a [String],
    /// Where the step stands.
    pub(super) index: String,
}

impl Actions<'_> {
    /// What a step does, and for a pause that ends by itself, what ends it; none where it cannot be done.
    pub(super) fn check(&self, step: &RawStep, action: &At<RawAction>, cx: &mut Context) -> Option<Deed> {
        if let (Some(lasting), false) = (&step.r#for, matches!(action.value, RawAction::Pause(_))) {
            let message = format!("`{}` takes no time: `for` goes with a fault, or with `pause`", action.value.key());
            cx.error(lasting.place, message, "remove it; what undoes an action is another step");
        }
        if let Some(fleets) = &step.fleets {
            cx.error(fleets.place, "`fleets` goes with a fault: an action names its own fleet", "remove it");
        }
        match &action.value {
            RawAction::Exec(exec) => self.exec(exec, action.place, cx),
            RawAction::Http(http) => self.webhook(http, cx),
            RawAction::Restart(restart) => {
                let policy = match &restart.policy {
                    Some(policy) => Some(Arc::new(self.policy(&restart.fleet, policy, true, cx)?)),
                    None => None,
                };
                self.of(&restart.fleet, cx, |_, _, _| Some(FleetAction::Restart { policy, stagger: restart.stagger }))
            }
            RawAction::SetPolicy(set) => {
                let policy = Arc::new(self.policy(&set.fleet, &set.policy, false, cx)?);
                self.of(&set.fleet, cx, |_, _, _| Some(FleetAction::SetPolicy { policy }))
            }
            RawAction::SetLane(set) => self.of(&set.fleet, cx, |fleet, name, cx| set_lane(set, fleet, name, cx)),
            RawAction::Pause(pause) => self.of(&pause.fleet, cx, |fleet, name, cx| {
                let destination = destination(pause.destination.as_ref(), fleet, name, cx)?;
                Some(FleetAction::Pause { destination, scope: pause.scope })
            }),
            RawAction::Resume(aim) => self.of(&aim.fleet, cx, |fleet, name, cx| {
                Some(FleetAction::Resume { destination: destination(aim.destination.as_ref(), fleet, name, cx)? })
            }),
            RawAction::DropBacklog(aim) => self.of(&aim.fleet, cx, |fleet, name, cx| {
                Some(FleetAction::DropBacklog { destination: destination(aim.destination.as_ref(), fleet, name, cx)? })
            }),
            RawAction::SetRate(set) => self.of(&set.fleet, cx, |fleet, name, cx| set_rate(set, fleet, name, cx)),
            RawAction::SetLimit(set) => self.of(&set.fleet, cx, |fleet, name, cx| set_limit(set, fleet, name, cx)),
            RawAction::Scale(scale) => self.of(&scale.fleet, cx, |fleet, name, cx| {
                let most = fleet.config.clients;
                if scale.to.value > most {
                    let message = format!("fleet `{name}` has {most} of them, and cannot be scaled to {}", scale.to.value);
                    cx.error(scale.to.place, message, "plan for the most, and scale it down at the start with `at: 0s`");
                    return None;
                }
                Some(FleetAction::Scale { to: scale.to.value })
            }),
        }
    }

    /// An action on the fleet of a name.
    fn of(
        &self,
        At { value: name, place }: &At<String>,
        cx: &mut Context,
        action: impl FnOnce(&Fleet, &str, &mut Context) -> Option<FleetAction>,
    ) -> Option<Deed> {
        let Some(number) = self.known.iter().position(|known| known == name) else {
            let known: Vec<&str> = self.known.iter().map(String::as_str).collect();
            names::unknown("fleet", name, *place, &known, cx);
            return None;
        };
        // One that could not be read has been told of.
        let fleet = self.fleets.iter().find(|fleet| fleet.name == *name)?;
        let action = action(fleet, name, cx)?;
        Some(Deed::Fleet { fleet: u16::try_from(number).ok()?, action })
    }

    /// The policy that a fleet gets; `afresh` where nothing is on its wires then.
    fn policy(&self, fleet: &At<String>, policy: &At<PolicyRef>, afresh: bool, cx: &mut Context) -> Option<Policy> {
        let resolved = match &policy.value {
            PolicyRef::Inline(inline) => {
                let key = self.raw.timeline.0.as_ref()?.get(self.index.parse::<usize>().ok()?)?.0.as_ref()?;
                let key = key.value.action.as_ref()?.value.key();
                policy::check(inline, &["timeline", &self.index, "action", key, "policy"], cx);
                (**inline).clone()
            }
            PolicyRef::Named(_) => fleets::resolve(&fleet.value, policy, self.raw, cx)?.1,
        };
        if let Some(known) = self.fleets.iter().find(|known| known.name == fleet.value) {
            fits(&known.policy, &resolved, afresh, &fleet.value, policy.place, cx);
            workers::lanes(known, &resolved, policy.place, cx);
        }
        Some(resolved)
    }

    fn exec(&self, exec: &Exec, place: Place, cx: &mut Context) -> Option<Deed> {
        if exec.command.first().is_none_or(|program| program.trim().is_empty()) {
            cx.error(place, "the command is empty", "such as `command: [systemctl, stop, relay]`");
            return None;
        }
        if exec.undo.first().is_some_and(|program| program.trim().is_empty()) {
            cx.error(place, "the undo names no program", "such as `undo: [systemctl, start, relay]`, or leave it out");
            return None;
        }
        for (key, words) in [("command", &exec.command), ("undo", &exec.undo)] {
            for index in words.iter().enumerate().filter(|(_, word)| word.contains('\0')).map(|(index, _)| index.to_string()) {
                let place = cx.at(&["timeline", &self.index, "action", "exec", key, &index]);
                cx.error(place, "no program can be given a NUL character", "remove `\\0`");
            }
        }
        self.limit(exec.within.0, "exec", cx).then(|| Deed::Exec(exec.clone()))
    }

    fn webhook(&self, http: &Webhook, cx: &mut Context) -> Option<Deed> {
        let calls = [Some(http.call()), http.undo.clone()];
        let sound: Vec<bool> = calls.iter().flatten().map(|call| self.call(call, cx)).collect();
        let path = ["timeline", &self.index, "action", "http"];
        target::check_headers(&http.headers, &[&path[..], &["headers"]].concat(), cx);
        if let Some(undo) = &http.undo {
            target::check_headers(&undo.headers, &[&path[..], &["undo", "headers"]].concat(), cx);
        }
        let sound = sound.into_iter().all(|sound| sound);
        (self.limit(http.within.0, "http", cx) && sound).then(|| Deed::Http(Box::new(http.clone())))
    }

    fn call(&self, call: &Call, cx: &mut Context) -> bool {
        match (TargetUrl::parse(&call.url.value), &self.raw.target.0) {
            (Ok(url), Some(target)) => target::check_allowed(&url, call.url.place, &target.value, cx),
            (Ok(_), None) => {}
            (Err(message), _) => {
                cx.error(call.url.place, message, "such as `url: http://127.0.0.1:9000/hook`");
                return false;
            }
        }
        let method = &call.method.value;
        if method.is_empty() || method.len() > 32 || !method.chars().all(|c| c.is_ascii_uppercase()) {
            cx.error(call.method.place, format!("`{method}` is no method"), "such as POST");
            return false;
        }
        if call.expect.is_empty() {
            cx.error(call.url.place, "no status is expected, and so no answer could be right", "leave `expect` out for 2xx");
            return false;
        }
        true
    }

    fn limit(&self, within: Span, key: &str, cx: &mut Context) -> bool {
        let sound = !within.is_zero() && within <= LONGEST_LIMIT;
        if !sound {
            let place = cx.at(&["timeline", &self.index, "action", key, "within"]);
            cx.error(place, format!("a time limit of {within}: expected up to {LONGEST_LIMIT}"), "10s is usual");
        }
        sound
    }
}

/// A fleet has the connections that its first policy asks for, and what is on them goes by it.
fn fits(before: &Policy, after: &Policy, afresh: bool, fleet: &str, place: Place, cx: &mut Context) {
    if after.concurrency() > before.concurrency() {
        let message = format!(
            "this policy lets a client have {} attempts out at once, and fleet `{fleet}` has connections for {}",
            after.concurrency(),
            before.concurrency()
        );
        cx.error(place, message, "give the fleet a policy with as many from the start");
    } else if !afresh && after.hedge.is_some() != before.hedge.is_some() {
        let message = format!(
            "fleet `{fleet}` has attempts on the wire, which a policy that hedges and one that does not treat differently"
        );
        cx.error(place, message, "use `restart`, which takes them back first");
    }
}

fn set_lane(set: &RawSetLane, fleet: &Fleet, name: &str, cx: &mut Context) -> Option<FleetAction> {
    if fleet.workers.is_none() {
        cx.error(
            set.fleet.place,
            format!("fleet `{name}` has no lanes: it has clients, and no workers on a queue"),
            "remove the step",
        );
        return None;
    }
    let destination = destination(set.destination.as_ref(), fleet, name, cx)?;
    Some(FleetAction::SetLane { destination, concurrency: set.concurrency })
}

fn set_rate(set: &RawSetRate, fleet: &Fleet, name: &str, cx: &mut Context) -> Option<FleetAction> {
    let place = set.to.as_ref().map(|to| to.place).or(set.factor.as_ref().map(|factor| factor.place))?;
    let Some(planned) = fleet.config.load.steady_rate(fleet.config.clients).filter(|rate| rate.get() > 0.0) else {
        let message = format!("the load of fleet `{name}` has no steady rate that could be set");
        cx.error(place, message, "use `constant` or `poisson`; for a load that changes by itself, `ramp` or `spike`");
        return None;
    };
    let factor = match (&set.to, &set.factor) {
        (Some(to), _) => to.value.get() / planned.get(),
        (None, factor) => factor.as_ref()?.value.0,
    };
    if factor <= 0.0 {
        cx.error(place, "a rate of 0 offers nothing", "use `pause: { scope: ingress }`, and `resume`");
        return None;
    }
    loads::rate_bounds_above(planned.get() * factor, place, cx).then_some(FleetAction::SetArrivals { factor })
}

fn set_limit(set: &RawSetLimit, fleet: &Fleet, name: &str, cx: &mut Context) -> Option<FleetAction> {
    if fleet.workers.is_none() {
        cx.error(
            set.fleet.place,
            format!("fleet `{name}` has clients, and no workers on a queue whose dispatches could be limited"),
            "use `set_rate`",
        );
        return None;
    }
    let destination = destination(set.destination.as_ref(), fleet, name, cx)?;
    Some(FleetAction::SetRate { destination, rate: set.rate, burst: set.burst })
}

/// The number of a destination; none of them where none is named. Nothing at all where it is not there.
fn destination(named: Option<&At<String>>, fleet: &Fleet, name: &str, cx: &mut Context) -> Option<Option<u16>> {
    let Some(At { value, place }) = named else { return Some(None) };
    let known = fleet.destinations();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    match known.iter().position(|known| known == value) {
        Some(number) => u16::try_from(number).ok().map(Some),
        None if known.is_empty() => {
            let message = format!("fleet `{name}` has no destinations by name");
            cx.error(*place, message, "leave `destination` out");
            None
        }
        None => {
            names::unknown("destination", value, *place, &known, cx);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Action, Plan, Source, load};
    use crate::time::Timestamp;

    const BASE: &str = "version: 1
target: { service: { servers: 4, service_time: 10ms } }
policies:
  old: { attempts: 3, timeout: 1s }
  new: { attempts: 2, timeout: 1s }
fleets:
  phones: { clients: 10, policy: old, load: { poisson: { rate: 100/s } } }
  bots: { clients: 4, policy: new, load: { closed: { think: 1s } } }
length: 2m
timeline:
";

    fn plan(step: &str) -> Result<Plan, String> {
        let text = format!("{BASE}  - {step}\n");
        let source = Source { file: "plan.yaml", text: &text, overrides: &[], env: &|_| None };
        load(&source).map(|loaded| loaded.plan).map_err(|error| error.to_string())
    }

    fn actions(step: &str) -> Vec<Action> {
        plan(step).unwrap_or_else(|error| panic!("{error}")).actions
    }

    #[test]
    fn names_are_resolved() {
        let restart = &actions("{ at: 5s, action: { restart: { fleet: bots, policy: old, stagger: 30s } } }")[0];
        assert_eq!((restart.name.as_str(), restart.at, restart.fleet()), ("restart", Timestamp(5_000_000_000), Some(1)));
        let Deed::Fleet { action: FleetAction::Restart { policy, stagger }, .. } = &restart.what else { panic!("{restart:?}") };
        assert_eq!(policy.as_ref().map(|policy| policy.attempts), Some(crate::policy::Attempts::Limited(3)));
        assert_eq!(*stagger, Span::from_secs(30));
        for (step, factor) in [
            ("{ at: 1s, action: { set_rate: { fleet: phones, to: 300/s } } }", 3.0),
            ("{ at: 1s, action: { set_rate: { fleet: phones, factor: 50% } } }", 0.5),
        ] {
            let what = Deed::Fleet { fleet: 0, action: FleetAction::SetArrivals { factor } };
            assert_eq!(actions(step)[0].what, what);
        }
        let inline = "{ at: 1s, action: { set_policy: { fleet: phones, policy: { attempts: 9, timeout: 2s } } } }";
        assert_eq!(actions(inline)[0].kind(), "set_policy");
    }

    #[test]
    fn a_pause_that_lasts_ends_by_itself() {
        let all = actions("{ at: 5s, for: 10s, name: hold, action: { pause: { fleet: phones, scope: ingress } } }");
        let told: Vec<_> = all.iter().map(|action| (action.name.as_str(), action.kind(), action.at.0 / 1_000_000_000)).collect();
        assert_eq!(told, [("hold", "pause", 5), ("hold-end", "resume", 15)]);
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_a_remedy() {
        for (step, want) in [
            ("{ at: 1s, name: x }", "needs a `fault`, an `action` or a `service`"),
            ("{ at: 1s, fault: { hang: {} }, action: { resume: { fleet: bots } } }", "exclude each other"),
            ("{ at: 1s, action: { resme: { fleet: bots } } }", "did you mean `resume`?"),
            ("{ at: 1s, action: { resume: { fleet: bot } } }", "did you mean `bots`?"),
            ("{ at: 1s, action: { resume: { fleet: bots, destination: x } } }", "no destinations"),
            ("{ at: 1s, action: { set_policy: { fleet: bots, policy: olt } } }", "did you mean `old`?"),
            ("{ at: 1s, for: 2s, action: { resume: { fleet: bots } } }", "takes no time"),
            ("{ at: 3m, action: { resume: { fleet: bots } } }", "the run ends at 2m"),
            ("{ at: 1s, fleets: [bots], action: { resume: { fleet: bots } } }", "names its own fleet"),
            ("{ at: 1s, action: { scale: { fleet: bots, to: 5 } } }", "cannot be scaled to 5"),
            ("{ at: 1s, action: { set_rate: { fleet: bots, factor: 50% } } }", "no steady rate"),
            ("{ at: 1s, action: { set_rate: { fleet: phones, factor: 2 } } }", "write `200%`"),
            ("{ at: 1s, action: { set_rate: { fleet: phones } } }", "exactly one of `to` and `factor`"),
            ("{ at: 1s, action: { exec: { command: [] } } }", "the command is empty"),
            ("{ at: 1s, action: { exec: { command: [x], within: 1h } } }", "expected up to 5m"),
            ("{ at: 1s, action: { http: { url: 'ftp://x/' } } }", "such as `url: http://127.0.0.1:9000/hook`"),
            ("{ at: 1s, action: { http: { url: 'http://127.0.0.1/', method: get } } }", "`get` is no method"),
            ("{ at: 1s, action: { exec: { command: [x, \"a\\0b\"] } } }", "11:46: error: no program can be given a NUL"),
            ("{ at: 1s, action: { exec: { command: [x], undo: [\"\\0\"] } } }", "11:54: error: no program can be given a NUL"),
        ] {
            let error = plan(step).err().unwrap_or_else(|| panic!("{step} was taken"));
            assert!(error.contains(want), "{step}: {error}");
        }
    }

    #[test]
    fn headers_of_a_webhook_are_those_that_http_allows() {
        let hook = "url: 'http://127.0.0.1/', headers:";
        assert_eq!(actions(&format!("{{ at: 1s, action: {{ http: {{ {hook} {{ Idempotency-Key: a }} }} }} }}")).len(), 1);
        for (headers, want) in [
            ("{ 'a b': c }", "11:70: error: `a b` is not the name of a header"),
            ("{ a: \"b\\nc\" }", "11:73: error: the value of `a` cannot be sent"),
            ("{ a: 1 }, undo: { url: 'http://127.0.0.1/', headers: { a: 1, A: 2 } }", "there twice"),
            ("{ Content-Length: 3 }", "11:70: error: the header `Content-Length` is set by stormwake"),
        ] {
            let step = &format!("{{ at: 1s, action: {{ http: {{ {hook} {headers} }} }} }}");
            let error = plan(step).err().unwrap_or_else(|| panic!("{step} was taken"));
            assert!(error.contains(want), "{step}: {error}");
        }
    }
}
