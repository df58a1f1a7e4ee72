//! Checks of whom a step strikes: fleets that exist, and regions that they have.

use super::{Context, names};
use crate::config::At;
use crate::fault::Origin;
use crate::plan::Fleet;
use crate::plan::raw::RawStep;

/// The numbers of the fleets that a step strikes; none for all of them.
pub(super) fn fleets(raw: &RawStep, known: &[String], all: &[Fleet], cx: &mut Context) -> Option<Vec<u16>> {
    let At { value: list, place } = raw.fleets.as_ref()?;
    if list.is_empty() {
        cx.error(*place, "no fleet is named: the fault would strike nobody", "leave `fleets` out to strike all of them");
    }
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let mut numbers = Vec::new();
    for At { value, place } in list {
        match known.iter().position(|name| name == value) {
            Some(number) => numbers.push(u16::try_from(number).unwrap_or(u16::MAX)),
            None => names::unknown("fleet", value, *place, &known, cx),
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    producers(raw, list, all, cx);
    Some(numbers)
}

/// What producers do never reaches the network.
fn producers(raw: &RawStep, list: &[At<String>], all: &[Fleet], cx: &mut Context) {
    let is_producer = |name: &&At<String>| all.iter().any(|fleet| fleet.name == name.value && fleet.into.is_some());
    let Some(first) = list.iter().find(is_producer) else { return };
    let message = format!("fleet `{}` fills a queue, which takes no network: no fault can touch it", first.value);
    let hint = "name the fleet of workers whose queue it fills; `pause: { scope: ingress }` refuses what comes into that";
    if list.iter().all(|name| is_producer(&name)) && raw.fault.is_some() {
        cx.error(first.place, message, hint);
    } else {
        cx.warn(first.place, message, hint);
    }
}

/// The regions that a step strikes, among those of `struck`; none for all of them. A name stands for the region of that name
/// of every fleet that has one.
pub(super) fn regions(
    raw: &RawStep,
    known: &[String],
    struck: Option<&[u16]>,
    fleets: &[Fleet],
    cx: &mut Context,
) -> Option<Vec<Origin>> {
    let At { value: list, place } = raw.regions.as_ref()?;
    // A region that seems unknown may be one of a fleet that could not be read.
    if fleets.len() < known.len() {
        return Some(Vec::new());
    }
    if list.is_empty() {
        cx.error(*place, "no region is named: the fault would strike nobody", "leave `regions` out to strike all of them");
    }
    let scope: Vec<(u16, &Fleet)> =
        (0..).zip(fleets).filter(|(number, _)| struck.is_none_or(|struck| struck.contains(number))).collect();
    let mut names: Vec<&str> = scope.iter().flat_map(|(_, fleet)| fleet.config.regions.names()).collect();
    names.sort_unstable();
    names.dedup();
    let mut origins = Vec::new();
    for At { value, place } in list {
        if !names.contains(&value.as_str()) {
            names::unknown("region of those fleets", value, *place, &names, cx);
        }
        let of =
            |(number, fleet): &(u16, &Fleet)| fleet.config.regions.number(value).map(|region| Origin { fleet: *number, region });
        origins.extend(scope.iter().filter_map(of));
    }
    origins.sort_unstable();
    origins.dedup();
    Some(origins)
}
