//! Checks of the timeline: every step within the run, with a name of its own and fleets that exist.

use super::actions::Actions;
use super::target::whole_seconds;
use super::{Context, MAX_LENGTH, changes, names, proxies, requests, scope, tls, workers};
use crate::config::{At, Place};
use crate::fault::{Distribution, Fault, Step, destination_key};
use crate::fleet::FleetAction;
use crate::plan::action::{Action, Deed};
use crate::plan::raw::RawStep;
use crate::plan::{Fleet, NamedProxy, RawPlan};
use crate::time::{Share, Span, Timestamp};

/// Words that a gate's `during` gives a meaning.
const RESERVED: [&str; 5] = ["run", "baseline", "steady_state", "steady", "recovery"];
/// The most steps of a plan.
const MAX_STEPS: usize = 256;

/// The steps that could be read.
pub(super) struct Checked {
    /// The faults, in the order of the plan.
    pub(super) steps: Vec<Step>,
    /// What else happens, in the order of its moments.
    pub(super) actions: Vec<Action>,
    /// Whether these are all: where not, a name that is not among them may still be right.
    pub(super) complete: bool,
}

impl Checked {
    const fn nothing() -> Self {
        Self { steps: Vec::new(), actions: Vec::new(), complete: false }
    }

    fn takes(&self, name: &str) -> bool {
        self.steps.iter().any(|step| step.name == name) || self.actions.iter().any(|action| action.name == name)
    }
}

/// Checks every step.
pub(super) fn check(raw: &RawPlan, all: &[Fleet], named: &[NamedProxy], length: Option<Span>, cx: &mut Context) -> Checked {
    let mut checked = Checked::nothing();
    let Some(list) = &raw.timeline.0 else { return checked };
    if list.len() > MAX_STEPS {
        let place = cx.at(&["timeline"]);
        cx.error(place, format!("{} steps: {MAX_STEPS} at most", list.len()), "split the plan");
        return checked;
    }
    let given: Vec<&str> = list.iter().filter_map(|s| s.0.as_ref()?.value.name.as_ref()).map(|n| n.value.as_str()).collect();
    let known = cx.keys("fleets");
    let bound = workers::names(raw);
    let mut sound = 0;
    for (index, step) in list.iter().enumerate() {
        let Some(At { value: step, place }) = &step.0 else { continue };
        let name = name(step, &given, &checked, cx);
        let (from, to) = times(step, length, &name, cx);
        let index = index.to_string();
        let on = proxies::on(step, named, raw, cx);
        if let Some(At { value: of, place: at }) = &step.fault {
            fault(of, &["timeline", &index, "fault"], cx);
            tls::handshake_fault(of, proxies::speaks_tls(on, named), *at, cx);
            let fleets = scope::fleets(step, &known, all, cx);
            let regions = scope::regions(step, &known, fleets.as_deref(), all, cx);
            let destinations = bound_for(step, of, &bound, cx);
            requests::check(raw, step, of, &index, to.since(from), cx);
            let first = Step {
                name,
                from,
                to,
                fault: Some(of.clone()),
                on,
                fleets,
                regions,
                destinations,
                which: step.which.clone(),
                shape: step.shape.clone(),
                place: *place,
            };
            let end = length.map_or(Timestamp::NEVER, |length| Timestamp(length.0));
            let room = MAX_STEPS - checked.steps.len().min(MAX_STEPS);
            let each = requests::repeated(first, step.repeat.as_ref(), end, room, cx);
            for again in each.iter().filter(|again| checked.takes(&again.name)) {
                cx.error(*place, format!("another step is called `{}`", again.name), "give each step a name of its own");
            }
            checked.steps.extend(each);
        } else if let Some(action) = &step.action {
            requests::of_faults_alone(step, &index, cx);
            let deed = Actions { raw, fleets: all, known: &known, index }.check(step, action, cx);
            let Some(what) = deed else { continue };
            let ends = step.r#for.as_ref().and_then(|_| end_of(&what));
            checked.actions.push(Action { name: name.clone(), at: from, what, place: *place });
            checked.actions.extend(ends.map(|what| Action { name: name + "-end", at: to, what, place: *place }));
        } else if let Some(At { value: change, .. }) = &step.service {
            requests::of_faults_alone(step, &index, cx);
            let times = changes::Times { from, to, end: length.map_or(Timestamp::NEVER, |length| Timestamp(length.0)) };
            let judged = changes::Changes { raw, index: &index }.check(step, change, name, times, *place, cx);
            let Some((witness, actions)) = judged else { continue };
            checked.steps.extend(witness);
            checked.actions.extend(actions);
        }
        sound += 1;
    }
    changes::conflicts(&checked.actions, cx);
    requests::few_matchers(&checked.steps, cx);
    // Those at one moment stay in the order of the plan; but what ends a change of the service comes before what begins another.
    checked.actions.sort_by_key(|action| (action.at, !matches!(action.what, Deed::Service { ends: true, .. })));
    Checked { complete: sound == list.len(), ..checked }
}

/// What ends a pause that lasts for a time.
fn end_of(what: &Deed) -> Option<Deed> {
    match what {
        Deed::Fleet { fleet, action: FleetAction::Pause { destination, .. } } => {
            Some(Deed::Fleet { fleet: *fleet, action: FleetAction::Resume { destination: *destination } })
        }
        _ => None,
    }
}

/// The step's own name, or that of what it does with the first number that is free.
fn name(raw: &RawStep, given: &[&str], before: &Checked, cx: &mut Context) -> String {
    let Some(At { value, place }) = &raw.name else {
        let key = raw.fault.as_ref().map(|fault| fault.value.key());
        let key = key.or(raw.action.as_ref().map(|action| action.value.key()));
        let key = key.or(raw.service.as_ref().map(|_| "service")).unwrap_or("step");
        let free = |name: &String| !before.takes(name) && !given.contains(&name.as_str());
        return (1..).map(|n| if n == 1 { key.to_string() } else { format!("{key}-{n}") }).find(free).unwrap_or_default();
    };
    if names::check("a step", value, *place, cx) && RESERVED.contains(&value.as_str()) {
        cx.error(*place, format!("`{value}` cannot name a step: gates give it a meaning"), "such as `outage`");
    } else if before.takes(value) {
        cx.error(*place, format!("another step is called `{value}`"), "give each step a name of its own");
    }
    value.clone()
}

fn times(raw: &RawStep, length: Option<Span>, name: &str, cx: &mut Context) -> (Timestamp, Timestamp) {
    let from = Timestamp(raw.at.value.0);
    let end = length.map_or(Timestamp::NEVER, |length| Timestamp(length.0));
    if from >= end {
        let message = format!("`{name}` begins at {}, the run ends at {end}", raw.at.value);
        cx.error(raw.at.place, message, "begin it sooner, or make `length` longer");
        return (from, end);
    }
    let Some(At { value: lasting, place }) = raw.r#for else { return (from, end) };
    let to = from + lasting;
    if lasting.is_zero() {
        cx.error(place, format!("`{name}` lasts for nothing"), "give it a duration, such as `for: 30s`");
    } else if to > end {
        let message = format!("`{name}` ends at {to}, after the run, which ends at {end}");
        cx.error(place, message, "make it shorter, or `length` longer; leave `for` out to last to the end of the run");
    }
    (from, to)
}

/// The destinations that a fault is limited to. What strikes connections as such cannot be limited so.
fn bound_for(raw: &RawStep, fault: &Fault, known: &[&str], cx: &mut Context) -> Option<Vec<u64>> {
    let At { value: list, place } = raw.destinations.as_ref()?;
    if list.is_empty() {
        cx.error(
            *place,
            "no destination is named: the fault would strike nothing",
            "leave `destinations` out to strike everything",
        );
    }
    let on_connections = match fault {
        Fault::Reset(reset) => reset.is_of_connections(),
        _ => fault.chooses_no_requests(),
    };
    if on_connections {
        let message = format!("`{}` strikes connections, which go to no destination in particular", fault.key());
        cx.error(*place, message, "use `hang`, `blackhole`, `status`, or `reset` with a share below 100%");
    }
    for At { value, place } in list.iter().filter(|name| !known.contains(&name.value.as_str())) {
        names::unknown("destination", value, *place, known, cx);
    }
    Some(list.iter().map(|name| destination_key(name.value.as_bytes())).collect())
}

/// Checks a fault by itself; `path` leads to it.
pub(super) fn fault(fault: &Fault, path: &[&str], cx: &mut Context) {
    let at = |cx: &Context, key: &str| cx.at(&[path, &[fault.key(), key]].concat());
    match fault {
        Fault::Refuse(_) | Fault::Hang(_) | Fault::Close(_) | Fault::Bandwidth(_) | Fault::Slicer(_) => {}
        Fault::LimitData(_) | Fault::HalfOpen(_) | Fault::Stall(_) => {}
        Fault::Loss(loss) => share(loss.share, at(cx, "share"), cx),
        Fault::SlowClose(slow) => {
            if slow.delay.is_zero() {
                cx.warn(at(cx, "delay"), "a close that is late by nothing harms nobody", "such as `delay: 5s`");
            }
        }
        Fault::Blackhole(blackhole) => share(blackhole.share, at(cx, "share"), cx),
        Fault::Reset(reset) => share(reset.share, at(cx, "share"), cx),
        Fault::Latency(latency) => {
            share(latency.share, at(cx, "share"), cx);
            let place = at(cx, "add");
            if latency.add > MAX_LENGTH {
                cx.error(place, format!("a delay of {}: {MAX_LENGTH} at most", latency.add), "such as `add: 800ms`");
            } else if latency.add.is_zero() && latency.jitter.is_zero() {
                cx.warn(place, "a delay of nothing harms nobody", "such as `add: 800ms`");
            } else if latency.jitter > latency.add && matches!(latency.distribution, Distribution::Uniform | Distribution::Normal)
            {
                let place = at(cx, "jitter");
                let message =
                    format!("a jitter of {} on {}: what would be below zero counts as zero", latency.jitter, latency.add);
                cx.warn(place, message, "keep the jitter at most as long as `add`");
            }
        }
        Fault::Status(status) => {
            share(status.share, at(cx, "share"), cx);
            whole_seconds(status.retry_after, status.hint, at(cx, "retry_after"), cx);
        }
        Fault::RateLimit(limit) => {
            if limit.rate.get() <= 0.0 || limit.burst == 0 {
                let place = cx.at(path);
                cx.error(place, "a limit without room refuses everything", "use `fault: { status: { code: 429 } }` for that");
            }
            whole_seconds(limit.retry_after, limit.hint, at(cx, "retry_after"), cx);
        }
        Fault::Certificate(certificate) => share(certificate.share, at(cx, "share"), cx),
        Fault::HandshakeHang(hang) => share(hang.share, at(cx, "share"), cx),
        Fault::LimitConcurrency(_) | Fault::Truncate(_) | Fault::SlowBody(_) | Fault::Malformed(_) => {
            requests::fault(fault, at, cx)
        }
    }
}

pub(super) fn share(share: Share, place: Place, cx: &mut Context) {
    if share.get() == 0.0 {
        cx.error(place, "a share of 0% strikes nothing, and a run whose fault touched nothing proves nothing", "raise it");
    }
}
