//! What the timeline says of clients that return: when the fault ends that had cut them off, and which of them it had.

use super::timeline::Checked;
use super::{Context, MAX_LENGTH, names};
use crate::fault::{Fault, Origin, Step};
use crate::load::Load;
use crate::load::on_reconnect::Returns;
use crate::plan::{Fleet, RawPlan};
use crate::time::{Share, Span, Timestamp};

/// Fills in, for every fleet whose clients return after a fault, when and which.
pub(super) fn resolve(fleets: &mut [Fleet], raw: &RawPlan, timeline: &Checked, cx: &mut Context) {
    let end = raw.length.0.as_ref().map_or(MAX_LENGTH, |length| length.value);
    let all = raw.fleets.0.as_ref().map_or(0, |fleets| fleets.value.0.len());
    // The numbers of a timeline are those of all fleets, and some could not be read.
    let complete = timeline.complete && fleets.len() == all;
    for (number, fleet) in (0u16..).zip(fleets) {
        let Load::OnReconnect(load) = &mut fleet.config.load else { continue };
        let after = &load.config.after;
        match timeline.steps.iter().find(|step| step.name == after.value) {
            Some(step) if complete => {
                let regions = &fleet.config.regions;
                let struck: Vec<u16> = (0..regions.count())
                    .filter(|&region| step.on == 0 && step.strikes(Origin { fleet: number, region }))
                    .collect();
                let turns = struck.iter().map(|&region| regions.turns(region, fleet.config.clients)).collect();
                let some = struck.len() < usize::from(regions.count());
                load.returns = Some(Returns { at: step.to, turns: some.then_some(turns) });
                check(step, &fleet.name, struck.is_empty(), load.config.spread, end, cx);
            }
            None if timeline.complete => {
                let known: Vec<&str> = timeline.steps.iter().map(|step| step.name.as_str()).collect();
                names::unknown("step of the timeline", &after.value, after.place, &known, cx);
            }
            _ => {}
        }
    }
}

fn check(step: &Step, fleet: &str, strikes_nobody: bool, spread: Span, end: Span, cx: &mut Context) {
    let at = |cx: &Context, key: &str| cx.at(&["fleets", fleet, "load", "on_reconnect", key]);
    let end = Timestamp::ZERO + end;
    let after = at(cx, "after");
    if strikes_nobody {
        let message = format!("`{}` does not strike fleet `{fleet}`: nobody of it would return", step.name);
        cx.error(after, message, "name a fault that does, or widen its `fleets` or `regions`");
    } else if step.to >= end {
        let message = format!("`{}` lasts to the end of the run: nobody would return", step.name);
        cx.error(after, message, "give it a `for`, or make `length` longer");
    } else if !step.fault.as_ref().is_some_and(cuts_off) || !step.which.is_all() {
        let message = format!("a step like `{}` cuts nobody off: all of its scope return all the same", step.kind());
        cx.warn(after, message, "use refuse, close, hang, blackhole or reset with a share of 100%");
    } else if step.to + spread > end {
        let place = at(cx, "spread");
        cx.warn(place, "some clients return only after the end of the run", "make the spread shorter, or `length` longer");
    }
}

/// Whether a fault leaves nothing through.
fn cuts_off(fault: &Fault) -> bool {
    match fault {
        Fault::Refuse(_) | Fault::Hang(_) | Fault::Close(_) => true,
        Fault::Blackhole(blackhole) => blackhole.share == Share::ALL,
        Fault::Reset(reset) => reset.share == Share::ALL,
        _ => false,
    }
}
