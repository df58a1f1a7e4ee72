//! Checks of the comparison: its fleet, its policies, its gates.

use super::{Context, guards, judge, names, policy, workers};
use crate::config::{At, Place};
use crate::gate::many::RawCompareGate;
use crate::gate::{CompareGate, Compared};
use crate::metrics::Figure;
use crate::plan::compare::{CandidateRef, RawCompare};
use crate::plan::{Candidate, Compare, Fleet, RawPlan, arithmetic};

/// The most candidates of a comparison.
const MAX_CANDIDATES: usize = 64;
/// The most seeds that each policy is run with.
const MAX_SEEDS: u32 = 1000;

/// The policies that the comparison names.
pub(super) fn named(raw: &RawPlan) -> impl Iterator<Item = &str> {
    let compare = raw.compare.as_ref().and_then(|compare| compare.0.as_ref()).map(|compare| &compare.value);
    compare.into_iter().flat_map(|compare| {
        let candidates = compare.candidates.value.iter().filter_map(|candidate| candidate.0.as_ref());
        candidates.chain([&compare.reference]).map(|candidate| candidate.value.name())
    })
}

/// The comparison, names resolved; none where there is none, or where it cannot be run.
pub(super) fn check(raw: &RawPlan, fleets: &[Fleet], cx: &mut Context) -> Option<Compare> {
    let At { value: compare, .. } = raw.compare.as_ref()?.0.as_ref()?;
    let fleet = fleet(compare, cx);
    let Checked { reference, candidates, known } = policies(compare, raw, cx);
    seeds(&compare.seeds, cx);
    let gates = gates(compare, &known, raw, cx);
    if let Some(fleet) = fleet {
        budgets(fleet, raw, reference.iter().chain(&candidates), cx);
        lanes(compare, fleets, reference.iter().chain(&candidates), cx);
    }
    Some(Compare { fleet: fleet?, reference: reference?, candidates, seeds: compare.seeds.value, gates })
}

fn fleet(compare: &RawCompare, cx: &mut Context) -> Option<u16> {
    let At { value: name, place } = &compare.fleet;
    let known = cx.keys("fleets");
    let number = known.iter().position(|fleet| fleet == name);
    if number.is_none() {
        names::unknown("fleet", name, *place, &known.iter().map(String::as_str).collect::<Vec<_>>(), cx);
    }
    number.and_then(|number| u16::try_from(number).ok())
}

fn seeds(seeds: &At<u32>, cx: &mut Context) {
    if !(1..=MAX_SEEDS).contains(&seeds.value) {
        let message = format!("{} seeds: expected 1 to {MAX_SEEDS}", seeds.value);
        cx.error(seeds.place, message, "20 show a large effect, 200 a small one");
    }
}

/// The policies that could be resolved.
struct Checked<'a> {
    reference: Option<Candidate>,
    candidates: Vec<Candidate>,
    /// The names of all candidates, resolved or not.
    known: Vec<&'a str>,
}

fn policies<'a>(compare: &'a RawCompare, raw: &RawPlan, cx: &mut Context) -> Checked<'a> {
    let reference = resolve(&compare.reference, &["compare", "reference"], raw, cx);
    let list = &compare.candidates;
    if list.value.is_empty() || list.value.len() > MAX_CANDIDATES {
        let message = format!("{} candidates: expected 1 to {MAX_CANDIDATES}", list.value.len());
        cx.error(list.place, message, "name the policies to compare with the reference");
    }
    let (mut candidates, mut known) = (Vec::new(), Vec::new());
    for (index, candidate) in list.value.iter().enumerate().take(MAX_CANDIDATES) {
        let Some(candidate) = &candidate.0 else { continue };
        let name = candidate.value.name();
        if name == compare.reference.value.name() {
            cx.error(
                candidate.place,
                format!("`{}` is the reference: it cannot be measured against itself", short(name)),
                "remove it from `candidates`, or make another policy the reference",
            );
        } else if known.contains(&name) {
            cx.error(candidate.place, format!("the candidate `{}` is there twice", short(name)), "keep one");
        } else {
            candidates.extend(resolve(candidate, &["compare", "candidates", &index.to_string()], raw, cx));
        }
        known.push(name);
    }
    Checked { reference, candidates, known }
}

fn resolve(given: &At<CandidateRef>, path: &[&str], raw: &RawPlan, cx: &mut Context) -> Option<Candidate> {
    let policies = cx.keys("policies");
    match &given.value {
        CandidateRef::Named(name) => {
            if !policies.contains(name) {
                names::unknown_policy(name, given.place, cx);
            }
            let policy = raw.policies.0.as_ref()?.get(name)?.0.clone()?.0;
            Some(Candidate { name: name.clone(), policy })
        }
        CandidateRef::Inline(candidate) => {
            let name = &candidate.name;
            names::check_policy(name, given.place, cx);
            if policies.contains(name) {
                let message = format!("`{}` is spelled out here, and another policy of the plan has that name", short(name));
                cx.error(given.place, message, "give it another name, or name the plan's own");
            }
            policy::check(&candidate.policy, &[path, &[name]].concat(), cx);
            Some((**candidate).clone())
        }
    }
}

fn gates(compare: &RawCompare, known: &[&str], raw: &RawPlan, cx: &mut Context) -> Vec<CompareGate> {
    let mut gates = Vec::new();
    for gate in compare.gates.iter().filter_map(|gate| gate.0.as_ref()) {
        figure(gate.figure.value, gate.figure.place, raw, cx);
        let name = gate.policy.value.as_str();
        match known.iter().position(|candidate| *candidate == name) {
            Some(policy) => gates.push(of(gate, policy)),
            None if name == compare.reference.value.name() => cx.error(
                gate.policy.place,
                format!("`{}` is the reference: a gate looks at a candidate", short(name)),
                "swap the two, or put the gate in the plan's own `gates`",
            ),
            None => names::unknown("candidate", name, gate.policy.place, known, cx),
        }
    }
    gates
}

fn of(gate: &RawCompareGate, policy: usize) -> CompareGate {
    CompareGate {
        policy,
        figure: gate.figure.value,
        operator: gate.comparison.operator,
        against: gate.comparison.against,
        text: gate.comparison.text.clone(),
        place: gate.place,
    }
}

/// What a figure needs of the plan.
fn figure(figure: Compared, place: Place, raw: &RawPlan, cx: &mut Context) {
    if let Compared::Figure(figure) = figure
        && judge::counted_by_target(figure)
    {
        judge::target_counts(figure, raw, place, cx);
    }
    let of_recovery = match figure {
        Compared::Recovered => true,
        Compared::Figure(figure) => matches!(figure, Figure::RecoveryTime | Figure::ErrorWindow | Figure::Relapses),
    };
    if of_recovery && raw.recovery.is_none() {
        let message = format!("`{}` needs `recovery`, and the plan has none", figure.word());
        cx.error(place, message, "add `recovery: { within: 1m, hold: 20s }`");
    }
}

/// Warns of budgets that can never permit a retry to the fleet.
fn budgets<'a>(fleet: u16, raw: &RawPlan, policies: impl Iterator<Item = &'a Candidate>, cx: &mut Context) {
    let Some(fleets) = &raw.fleets.0 else { return };
    let Some(entry) = fleets.value.0.get(usize::from(fleet)) else { return };
    let Some(At { value: fleet, .. }) = &entry.value.0 else { return };
    for candidate in policies {
        guards::check(&candidate.policy, fleet.config.clients, arithmetic::offered(&fleet.config), &entry.name, cx);
    }
}

/// The lanes that a candidate's retries go to must be in the fleet's queue.
fn lanes<'a>(compare: &RawCompare, fleets: &[Fleet], policies: impl Iterator<Item = &'a Candidate>, cx: &mut Context) {
    // One that could not be read has been told of.
    let Some(fleet) = fleets.iter().find(|fleet| fleet.name == compare.fleet.value) else { return };
    let written = || [&compare.reference].into_iter().chain(compare.candidates.value.iter().filter_map(|one| one.0.as_ref()));
    for candidate in policies.filter(|candidate| candidate.policy != fleet.policy) {
        let place = written().find(|one| one.value.name() == candidate.name).map_or(compare.fleet.place, |one| one.place);
        workers::lanes(fleet, &candidate.policy, place, cx);
    }
}

fn short(text: &str) -> String {
    text.chars().take(80).collect()
}
