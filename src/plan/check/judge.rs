//! Checks of what a plan asks of its run: baseline, recovery, gates, stop conditions, expectation.

use super::{Context, evidence, names, proxies, timeline};
use crate::config::{At, Concerns, Place};
use crate::fault::Step;
use crate::gate::condition::{Bound, Condition};
use crate::gate::config::{Conditions, During, Probe, StopTrigger};
use crate::gate::{GateConfig, RecoveryConfig, RunGate, SeedShare, SteadyState, StopConfig};
use crate::metrics::Figure;
use crate::plan::action::{Action, Deed};
use crate::plan::{Fleet, NamedProxy, RawPlan, TargetUrl, arithmetic};
use crate::time::{Span, Timestamp};

/// The baseline of a plan that asks for a recovery and does not say how long its baseline is, where there is room.
const USUAL_BASELINE: Span = Span::from_secs(30);

/// What could be read.
pub(super) struct Checked {
    pub(super) steady_state: Option<SteadyState>,
    pub(super) recovery: Option<RecoveryConfig>,
    pub(super) gates: Vec<GateConfig>,
    pub(super) recovered: Option<SeedShare>,
    pub(super) stop_if: Vec<StopConfig>,
}

/// Checks all that the judge will need.
pub(super) fn check(
    raw: &RawPlan,
    timeline: &timeline::Checked,
    fleets: &[Fleet],
    named: &[NamedProxy],
    length: Option<Span>,
    cx: &mut Context,
) -> Checked {
    let steady_state = steady_state(raw, timeline, length, cx);
    let without_fault = timeline.complete && timeline.steps.is_empty();
    // Before a step that could not be judged there may be room for the usual one.
    let perhaps = !timeline.complete && raw.recovery.is_some();
    let known = !without_fault && (steady_state.is_some() || raw.steady_state.is_some() || perhaps);
    let baseline = Baseline { known, without_fault };
    let recovery = recovery(raw, timeline, fleets, length, &baseline, cx);
    let (gates, recovered) = gates(raw, timeline, &baseline, cx);
    if let Some(recovery) = &recovery {
        proxies::recovery(recovery, named, raw, cx);
    }
    for (index, gate) in raw.gates.0.iter().flatten().enumerate() {
        if let Some(RunGate::Run(gate)) = &gate.0 {
            proxies::gate(gate, &index.to_string(), named, raw, cx);
        }
    }
    let run = evidence::Run { timeline, fleets, steady: steady_state.as_ref(), recovery: recovery.as_ref(), length };
    if timeline.complete {
        run.baseline(cx);
        for (index, gate) in raw.gates.0.iter().flatten().enumerate() {
            if let Some(RunGate::Run(gate)) = &gate.0 {
                run.gate(gate, &index.to_string(), cx);
            }
        }
    }
    let stop_if = raw.stop_if.0.iter().flatten().filter_map(|stop| stop.0.clone()).collect::<Vec<_>>();
    for (index, stop) in stop_if.iter().enumerate() {
        check_stop(stop, &index.to_string(), length, &baseline, cx);
    }
    if let Some(expect) = raw.expect.as_ref().and_then(|expect| expect.0.as_ref())
        && raw.recovery.is_none()
    {
        let hint = "add `recovery: { within: 1m, hold: 20s }`";
        cx.error(expect.place, "a class is expected, but nothing says what counts as recovered", hint);
    }
    Checked { steady_state, recovery, gates, recovered, stop_if }
}

/// Whether multiples of the baseline mean something.
struct Baseline {
    known: bool,
    /// The plan has no fault, and so nothing that a baseline could come before.
    without_fault: bool,
}

impl Baseline {
    /// What to do where it is not known.
    fn remedy(&self) -> &'static str {
        if self.without_fault {
            "add a fault to `timeline`, and `steady_state: { for: 30s }` before it; or compare with an absolute value"
        } else {
            "add `steady_state: { for: 30s }`, with no fault before its end"
        }
    }
}

fn first_fault(timeline: &timeline::Checked) -> Option<&Step> {
    timeline.steps.iter().min_by_key(|step| step.from)
}

fn steady_state(raw: &RawPlan, timeline: &timeline::Checked, length: Option<Span>, cx: &mut Context) -> Option<SteadyState> {
    let room = first_fault(timeline).map(|step| step.from.since(Timestamp::ZERO));
    let Some(given) = &raw.steady_state else {
        let room = room.filter(|room| raw.recovery.is_some() && timeline.complete && *room >= Span::from_secs(1))?;
        return Some(SteadyState { r#for: room.min(USUAL_BASELINE), require: Conditions::default() });
    };
    let At { value: steady, .. } = given.0.as_ref()?;
    let place = cx.at(&["steady_state", "for"]);
    if timeline.complete && timeline.steps.is_empty() {
        let message = "a baseline ends where the first fault begins, and the timeline has none: no run could measure it";
        cx.error(place, message, "add a fault to `timeline`, or remove `steady_state`");
    }
    if steady.r#for < Span::from_secs(1) {
        cx.error(place, format!("a baseline of {}: expected 1s or more", steady.r#for), "30s is usual");
    } else if let Some((step, room)) = first_fault(timeline).zip(room).filter(|(_, room)| *room < steady.r#for) {
        let message = format!("the baseline of {} does not fit before the first fault, `{}` at {room}", steady.r#for, step.name);
        cx.error(place, message, format!("begin `{}` at {} or later, or shorten the baseline", step.name, steady.r#for));
    } else if length.is_some_and(|length| steady.r#for > length) {
        cx.error(
            place,
            format!("the baseline of {} is longer than the run", steady.r#for),
            "shorten it, or make `length` longer",
        );
    }
    for condition in &steady.require.0 {
        let place = cx.at(&["steady_state", "require", condition.figure.word()]);
        if matches!(condition.comparison.bound, Bound::OfBaseline(_)) {
            cx.error(place, "the baseline cannot be compared with itself", "give an absolute value, such as `\">= 99%\"`");
        }
        only_at_the_end(condition.figure, "steady_state", place, cx);
    }
    Some(steady.clone())
}

/// Refuses figures that need a whole run.
fn only_at_the_end(figure: Figure, whose: &str, place: Place, cx: &mut Context) {
    let late = [
        Figure::RecoveryTime,
        Figure::ErrorWindow,
        Figure::Relapses,
        Figure::Unresolved,
        Figure::WaveScore,
        Figure::WastedWork,
        Figure::Duplicates,
    ];
    if late.contains(&figure) {
        let message = format!("`{}` is known only when the run has ended: `{whose}` cannot use it", figure.word());
        cx.error(place, message, "write it as a gate");
    }
}

fn needs_baseline(condition: &Condition, place: Place, baseline: &Baseline, cx: &mut Context) {
    if matches!(condition.comparison.bound, Bound::OfBaseline(_)) && !baseline.known {
        let message = format!("`{}` needs a baseline, and the plan has none", condition.comparison.text);
        cx.error(place, message, baseline.remedy());
    }
}

fn recovery(
    raw: &RawPlan,
    timeline: &timeline::Checked,
    fleets: &[Fleet],
    length: Option<Span>,
    baseline: &Baseline,
    cx: &mut Context,
) -> Option<RecoveryConfig> {
    let At { value: recovery, place } = raw.recovery.as_ref()?.0.as_ref()?;
    for condition in &recovery.require.0 {
        let place = cx.at(&["recovery", "require", condition.figure.word()]);
        only_at_the_end(condition.figure, "recovery", place, cx);
        needs_baseline(condition, place, baseline, cx);
    }
    recovery_numbers(recovery, cx);
    if timeline.steps.is_empty() && timeline.complete {
        let changed = timeline.actions.iter().any(|action| matches!(action.what, Deed::Service { .. }));
        let (message, hint) = if changed {
            (
                "nothing can recover from it: no change of the service ends, and makes it weaker",
                "give it a `for`, or remove `recovery`",
            )
        } else {
            ("there is nothing to recover from: the timeline is empty", "add a fault, or remove `recovery`")
        };
        cx.error(*place, message, hint);
        return Some(recovery.clone());
    }
    let Some(step) = recovery_step(recovery, timeline, cx) else { return Some(recovery.clone()) };
    if !baseline.known && timeline.complete {
        let message = "there is no baseline to compare the recovery with: a fault acts from the start".to_string();
        cx.warn(*place, message, "begin the first fault later, such as `at: 30s`");
    }
    if let Some(length) = length {
        room(recovery, step, Timestamp(length.0), fleets, cx);
    }
    overlaps(recovery, step, timeline, cx);
    let after = recovery.after.clone().unwrap_or(At { value: step.name.clone(), place: step.place });
    Some(RecoveryConfig { after: Some(after), ..recovery.clone() })
}

fn recovery_numbers(recovery: &RecoveryConfig, cx: &mut Context) {
    for (key, value) in [("within", recovery.within), ("hold", recovery.hold), ("span", recovery.span)] {
        if value < Span::from_secs(1) {
            let place = cx.at(&["recovery", key]);
            cx.error(place, format!("`{key}` of {value}: expected 1s or more"), format!("such as `{key}: 20s`"));
        }
    }
    if recovery.operations == 0 {
        let place = cx.at(&["recovery", "operations"]);
        cx.error(place, "a clause cannot be judged on 0 operations", "200 is usual");
    }
}

/// The step whose end starts the clock.
fn recovery_step<'a>(recovery: &RecoveryConfig, timeline: &'a timeline::Checked, cx: &mut Context) -> Option<&'a Step> {
    let Some(At { value, place }) = &recovery.after else {
        return timeline.complete.then(|| timeline.steps.iter().max_by_key(|step| step.to)).flatten();
    };
    let found = timeline.steps.iter().find(|step| step.name == *value);
    let changes = |action: &&Action| matches!(action.what, Deed::Service { .. }) && action.name == *value;
    if found.is_none() && timeline.actions.iter().any(|action| changes(&action)) {
        let message = format!("`{value}` has no end, or makes the service no weaker: nothing can recover from it");
        cx.error(*place, message, "give it a `for`, or name a step that ends");
    } else if found.is_none() && timeline.complete {
        let known: Vec<&str> = timeline.steps.iter().map(|step| step.name.as_str()).collect();
        names::unknown("step of the timeline", value, *place, &known, cx);
    }
    found
}

/// Whether the run is long enough to see the recovery.
fn room(recovery: &RecoveryConfig, step: &Step, end: Timestamp, fleets: &[Fleet], cx: &mut Context) {
    let left = end.since(step.to);
    let place = cx.at(&["recovery", "within"]);
    let wanted = recovery.within + recovery.hold;
    if left.is_zero() {
        let message = format!("`{}` lasts to the end of the run: nothing can recover from it", step.name);
        cx.error(step.place, message, "give it a `for` that ends sooner, or make `length` longer");
    } else if left < recovery.hold {
        let message = format!(
            "after `{}` ends at {} the run has {left} left: too little to hold for {}",
            step.name, step.to, recovery.hold
        );
        cx.error(place, message, format!("make `length` {} or longer", step.to + wanted));
    } else if left < wanted {
        let message = format!(
            "after `{}` ends at {} the run has {left} left: a recovery within {} cannot be seen to hold for {}",
            step.name, step.to, recovery.within, recovery.hold
        );
        cx.warn(place, message, format!("make `length` {} or longer", step.to + wanted));
    }
    let offered: f64 = fleets.iter().map(|fleet| arithmetic::offered(&fleet.config).rate()).sum();
    let open = fleets.iter().all(|fleet| arithmetic::offered(&fleet.config).is_open());
    let expected = offered * left.as_secs_f64();
    // How many calls a service makes of an operation is not known here.
    let open = open && recovery.at.is_none();
    if open && !fleets.is_empty() && !left.is_zero() && expected < recovery.operations as f64 {
        let message = format!(
            "about {expected:.0} operations come after `{}`, and a clause is judged on {} at least",
            step.name, recovery.operations
        );
        cx.warn(place, message, "offer more, make the run longer, or lower `recovery.operations`");
    }
}

/// Whether another fault disturbs the recovery.
fn overlaps(recovery: &RecoveryConfig, step: &Step, timeline: &timeline::Checked, cx: &mut Context) {
    let until = step.to + recovery.within + recovery.hold;
    let mut later = timeline.steps.iter().filter(|other| other.name != step.name && other.to > step.to && other.from < until);
    let Some(after) = &recovery.after else { return };
    if let Some(other) = later.clone().find(|other| other.from <= step.to) {
        let message = format!("`{}` acts when `{}` ends: there is nothing to see of a recovery from it", other.name, step.name);
        let hint = format!("write `after: {}` to judge the fault that ends last, or leave time between them", other.name);
        cx.error(after.place, message, hint);
    } else if let Some(other) = later.next() {
        let message = format!("`{}` acts while the recovery from `{}` is judged", other.name, step.name);
        cx.warn(after.place, message, "let the clock start after the fault that ends last");
    }
}

/// The gates on a run, and the one on the seeds of many.
fn gates(
    raw: &RawPlan,
    timeline: &timeline::Checked,
    baseline: &Baseline,
    cx: &mut Context,
) -> (Vec<GateConfig>, Option<SeedShare>) {
    let (mut gates, mut recovered) = (Vec::new(), None);
    for (index, gate) in raw.gates.0.iter().flatten().enumerate() {
        match &gate.0 {
            None => {}
            Some(RunGate::Run(gate)) => {
                check_gate(gate, &index.to_string(), raw, timeline, baseline, cx);
                gates.push(gate.clone());
            }
            Some(RunGate::Seeds(share)) if recovered.is_some() => {
                cx.error(share.place, "another gate says how many seeds must recover", "keep one");
            }
            Some(RunGate::Seeds(share)) => {
                if raw.recovery.is_none() {
                    let message = "seeds recover from something, and nothing says what counts as recovered";
                    cx.error(share.place, message, "add `recovery: { within: 1m, hold: 20s }`");
                }
                recovered = Some(share.clone());
            }
        }
    }
    (gates, recovered)
}

fn check_gate(
    gate: &GateConfig,
    index: &str,
    raw: &RawPlan,
    timeline: &timeline::Checked,
    baseline: &Baseline,
    cx: &mut Context,
) {
    let figure = gate.condition.figure;
    let place = cx.at(&["gates", index, figure.word()]);
    needs_baseline(&gate.condition, place, baseline, cx);
    during(gate, timeline, baseline, cx);
    let of_recovery = matches!(figure, Figure::RecoveryTime | Figure::ErrorWindow | Figure::Relapses);
    if of_recovery && raw.recovery.is_none() {
        cx.error(place, format!("`{}` needs `recovery`, and the plan has none", figure.word()), "add `recovery: { within: 1m }`");
    }
    if counted_by_target(figure) {
        target_counts(figure, raw, place, cx);
    }
    if figure == Figure::WaveScore {
        wave_score(gate, place, cx);
    }
    if let Some(fleet) = &gate.fleet {
        let place = cx.at(&["gates", index, "fleet"]);
        let known = cx.keys("fleets");
        if !known.contains(fleet) {
            names::unknown("fleet", fleet, place, &known.iter().map(String::as_str).collect::<Vec<_>>(), cx);
        } else if of_recovery || counted_by_target(figure) {
            cx.error(place, format!("`{}` is a figure of the whole run, not of a fleet", figure.word()), "remove `fleet`");
        }
    }
}

/// Waves are looked for in one stretch only, and in no baseline.
fn wave_score(gate: &GateConfig, place: Place, cx: &mut Context) {
    if gate.during != During::Run {
        let message = "`wave_score` looks at the stretch from the first fault to the end, and at no other";
        cx.error(gate.during_place, message, "remove `during`");
    }
    if matches!(gate.condition.comparison.bound, Bound::OfBaseline(_)) {
        cx.error(place, "`wave_score` has no baseline", "compare it with a factor, such as `\"<= 1.3x\"`");
    }
}

/// Whether only a target that counts its own work can say.
pub(super) fn counted_by_target(figure: Figure) -> bool {
    matches!(figure, Figure::WastedWork | Figure::Duplicates)
}

/// Such a figure needs such a target.
pub(super) fn target_counts(figure: Figure, raw: &RawPlan, place: Place, cx: &mut Context) {
    let word = figure.word();
    let Some(At { value: target, .. }) = &raw.target.0 else { return };
    match (&target.service, &target.model) {
        (Some(_), _) => {}
        (None, Some(_)) => {
            let message = format!("`{word}` is not counted by a target of your own: a live run of this gate is inconclusive");
            let hint = "simulate the plan, whose model counts it, or remove the gate";
            cx.warn_of(Concerns::Live, place, message, hint);
        }
        (None, None) => {
            cx.error(
                place,
                format!("`{word}` is counted by the built-in target only"),
                "remove the gate, or use `target.service`",
            );
        }
    }
}

fn during(gate: &GateConfig, timeline: &timeline::Checked, baseline: &Baseline, cx: &mut Context) {
    match &gate.during {
        During::Run => {}
        During::Baseline if !baseline.known => {
            cx.error(gate.during_place, "the plan has no baseline", baseline.remedy());
        }
        During::Recovery if timeline.steps.is_empty() && timeline.complete => {
            cx.error(gate.during_place, "there is no recovery: the timeline is empty", "add a fault, or remove `during`");
        }
        During::Baseline | During::Recovery => {}
        During::Step(name) => {
            let found = timeline.steps.iter().any(|step| step.name == *name);
            if !found && timeline.complete {
                let steps = timeline.steps.iter().map(|step| step.name.as_str());
                let known: Vec<&str> = steps.chain(["run", "baseline", "recovery"]).collect();
                names::unknown("stretch of the run", name, gate.during_place, &known, cx);
            }
        }
    }
}

fn check_stop(stop: &StopConfig, index: &str, length: Option<Span>, baseline: &Baseline, cx: &mut Context) {
    let at = |cx: &Context, keys: &[&str]| cx.at(&[&["stop_if", index], keys].concat());
    match &stop.trigger {
        StopTrigger::Figure(condition) => {
            let place = at(cx, &[condition.figure.word()]);
            only_at_the_end(condition.figure, "stop_if", place, cx);
            needs_baseline(condition, place, baseline, cx);
        }
        StopTrigger::Check { probe, every } => {
            if *every < Span::from_millis(100) || *every > Span::from_secs(3600) {
                let place = at(cx, &["check", "every"]);
                cx.error(place, format!("a check every {every}: expected 100ms to 1h"), "such as `every: 5s`");
            }
            match probe {
                Probe::Http(url) => {
                    if let Err(message) = TargetUrl::parse(url) {
                        let place = at(cx, &["check", "http"]);
                        cx.error(place, message, "such as `http: http://127.0.0.1:9090/healthy`");
                    }
                }
                Probe::Command(words) if words.first().is_none_or(String::is_empty) => {
                    let place = at(cx, &["check", "command"]);
                    cx.error(place, "the command is empty", "a program and its arguments: `command: [./healthy.sh, eu]`");
                }
                Probe::Command(_) => {}
            }
        }
    }
    if length.is_some_and(|length| stop.lasting >= length) {
        let place = if stop.lasting.is_zero() { stop.place } else { at(cx, &["for"]) };
        cx.warn(place, format!("the run is over before {} have passed: this never stops it", stop.lasting), "make it shorter");
    }
}
