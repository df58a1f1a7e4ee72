//! Policies against each other, on the same seeds: what one changes, and the gates on it.
//!
//! A policy's figure is its median over the seeds, and its `recovered` the share of its seeds that recovered. A seed without evidence may have been anything: a
//! gate passes only where it would pass whatever that was, and fails only where it would fail whatever that was. So a gate without enough
//! evidence is inconclusive. A recovery that did not come counts as longer than any; where it came to neither policy at the median, there is nothing to compare.

use super::config::Class;
use super::findings::{Finding, Status};
use super::many::{Against, CompareGate, Compared};
use super::seeds::SeedRun;
use crate::metrics::{Figure, Unit};
use crate::stats::{self, Effect};

/// A policy and its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Contestant {
    /// The policy's name.
    pub name: String,
    /// One run for each seed.
    pub runs: Vec<SeedRun>,
}

impl Contestant {
    /// How many of its runs recovered in time.
    pub fn recovered(&self) -> u64 {
        self.runs.iter().filter(|run| !run.is_unknown() && run.class == Some(Class::Recovered)).count() as u64
    }

    /// The least and the most that its value may be, whatever the runs without evidence were.
    fn bounds(&self, compared: Compared) -> Option<(f64, f64)> {
        let all = self.runs.len() as f64;
        match compared {
            _ if self.runs.is_empty() => None,
            Compared::Recovered => {
                let unknown = self.runs.iter().filter(|run| run.is_unknown()).count() as u64;
                let share = |n: u64| n as f64 / all;
                Some((share(self.recovered()), share(self.recovered() + unknown)))
            }
            Compared::Figure(figure) => {
                let median = |missing: f64| {
                    let values: Vec<f64> = self.runs.iter().map(|run| run.figure(figure).unwrap_or(missing)).collect();
                    stats::median(&values)
                };
                Some((median(f64::NEG_INFINITY)?, median(f64::INFINITY)?))
            }
        }
    }

    /// Its value over the runs with evidence.
    fn value(&self, compared: Compared) -> Option<f64> {
        match compared {
            Compared::Recovered => self.bounds(compared).map(|(low, _)| low),
            Compared::Figure(figure) => {
                let values: Vec<f64> = self.runs.iter().filter_map(|run| run.figure(figure)).collect();
                stats::median(&values)
            }
        }
    }
}

/// What a candidate changes in a figure against the reference, from the seeds of which both have one.
pub fn effect(figure: Figure, reference: &Contestant, candidate: &Contestant) -> Option<Effect> {
    let pair = |run: &SeedRun| {
        let other = candidate.runs.iter().find(|other| other.seed == run.seed)?;
        Some((run.figure(figure)?, other.figure(figure)?))
    };
    let pairs: Vec<(f64, f64)> = reference.runs.iter().filter_map(pair).collect();
    stats::effect(&pairs, stats::CONFIDENCE)
}

/// Judges the gates of a comparison; `candidates` in the order of the plan.
pub fn judge_contest(gates: &[CompareGate], reference: &Contestant, candidates: &[Contestant]) -> Vec<Finding> {
    gates.iter().map(|gate| find(gate, reference, candidates.get(gate.policy))).collect()
}

fn find(gate: &CompareGate, reference: &Contestant, candidate: Option<&Contestant>) -> Finding {
    let unit = gate.figure.unit();
    let name = candidate.map_or("no candidate", |candidate| candidate.name.as_str());
    let seen = candidate.and_then(|candidate| candidate.bounds(gate.figure));
    let value = candidate.and_then(|candidate| candidate.value(gate.figure));
    let (allowed, bound) = match gate.against {
        Against::Absolute(bound) => (Some((bound, bound)), Some(bound)),
        Against::Reference(factor) => {
            let times = |x: f64| x * factor;
            (reference.bounds(gate.figure).map(|(low, high)| (times(low), times(high))), reference.value(gate.figure).map(times))
        }
    };
    let status = match (seen, allowed) {
        (Some(seen), Some(allowed)) => status(gate, seen, allowed),
        _ => Status::Inconclusive,
    };
    let observed = value.map_or_else(|| "no evidence in any run".to_string(), |value| show(unit, value, bound));
    let came_to = bound.filter(|_| matches!(gate.against, Against::Reference(_)));
    Finding {
        gate: format!("{name}: {} {}", gate.figure.word(), gate.text),
        status,
        observed,
        wanted: gate.text.clone() + &came_to.map_or_else(String::new, |bound| format!(" ({})", show(unit, bound, value))),
        value: value.filter(|value| value.is_finite()),
        bound: bound.filter(|bound| bound.is_finite()),
        place: gate.place,
    }
}

/// Whether it holds wherever the values lie within their bounds: a comparison of two ranges is decided at their ends.
fn status(gate: &CompareGate, seen: (f64, f64), allowed: (f64, f64)) -> Status {
    let mut holds = 0;
    for value in [seen.0, seen.1] {
        for bound in [allowed.0, allowed.1] {
            if (value.is_infinite() && value == bound) || value.is_nan() || bound.is_nan() {
                return Status::Inconclusive;
            }
            holds += u32::from(gate.operator.holds(value, bound));
        }
    }
    match holds {
        4 => Status::Pass,
        0 => Status::Fail,
        _ => Status::Inconclusive,
    }
}

/// A value with the digits that it takes to tell it from another.
fn show(unit: Unit, value: f64, beside: Option<f64>) -> String {
    if value.is_finite() { unit.show_beside(value, beside.unwrap_or(value)).0 } else { "never".into() }
}

#[cfg(test)]
mod tests {
    use super::super::condition::Operator;
    use super::super::seeds::tests::run;
    use super::super::verdict::Outcome;
    use super::*;
    use crate::config::Place;

    const NEVER: f64 = f64::INFINITY;

    /// A policy whose runs recovered after so many seconds; not a number is a run without evidence.
    fn contestant(name: &str, seconds: &[f64]) -> Contestant {
        let one = |(seed, &time): (usize, &f64)| {
            let (outcome, class) = match time {
                t if t.is_nan() => (Outcome::Inconclusive, Class::Inconclusive),
                t if t.is_infinite() => (Outcome::Fail, Class::Stuck),
                _ => (Outcome::Pass, Class::Recovered),
            };
            run(seed as u64, outcome, class, time)
        };
        Contestant { name: name.into(), runs: seconds.iter().enumerate().map(one).collect() }
    }

    fn gate(figure: Compared, operator: Operator, against: Against) -> CompareGate {
        CompareGate { policy: 0, figure, operator, against, text: "<= reference".into(), place: Place::default() }
    }

    #[test]
    fn gates_look_at_medians_and_at_what_was_not_seen() {
        let time = Compared::Figure(Figure::RecoveryTime);
        let nan = f64::NAN;
        let at_most = |against| gate(time, Operator::AtMost, against);
        let recovered = |against| gate(Compared::Recovered, Operator::AtLeast, against);
        let (same, half) = (Against::Reference(1.0), Against::Reference(0.5));
        for (name, gate, reference, candidate, want) in [
            ("shorter", at_most(same), &[9.0, 9.0, 9.0][..], &[3.0, 4.0, 5.0][..], Status::Pass),
            ("longer", at_most(same), &[3.0; 3], &[4.0; 3], Status::Fail),
            ("shorter, not by half", at_most(half), &[6.0; 3], &[4.0; 3], Status::Fail),
            ("ends what never ended", at_most(half), &[NEVER; 3], &[4.0; 3], Status::Pass),
            ("never ends", at_most(same), &[4.0; 3], &[NEVER; 3], Status::Fail),
            ("neither ends", at_most(same), &[NEVER; 3], &[NEVER; 3], Status::Inconclusive),
            ("never ends, against a value", at_most(Against::Absolute(20.0)), &[4.0; 3], &[NEVER; 3], Status::Fail),
            ("one unknown cannot matter", at_most(same), &[9.0; 5], &[3.0, 3.0, 3.0, nan, 3.0], Status::Pass),
            ("unknowns may matter", at_most(same), &[9.0; 3], &[3.0, nan, nan], Status::Inconclusive),
            ("the reference is unknown", at_most(same), &[nan; 3], &[3.0; 3], Status::Inconclusive),
            ("nothing is known", at_most(Against::Absolute(20.0)), &[9.0; 3], &[nan; 3], Status::Inconclusive),
            ("nothing ran", at_most(same), &[], &[], Status::Inconclusive),
            ("more recover", recovered(same), &[NEVER, 3.0], &[3.0, 3.0], Status::Pass),
            ("fewer recover", recovered(same), &[3.0, 3.0], &[NEVER, 3.0], Status::Fail),
            ("an unknown may have recovered", recovered(Against::Absolute(0.95)), &[3.0], &[3.0, nan], Status::Inconclusive),
            ("an unknown cannot save it", recovered(Against::Absolute(0.95)), &[3.0], &[NEVER, nan], Status::Fail),
        ] {
            let found = judge_contest(&[gate], &contestant("now", reference), &[contestant("budget", candidate)]);
            assert_eq!(found[0].status, want, "{name}: {found:?}");
        }
    }

    #[test]
    fn a_finding_says_what_it_saw_and_what_the_reference_came_to() {
        let gate = gate(Compared::Figure(Figure::RecoveryTime), Operator::AtMost, Against::Reference(0.5));
        let found = judge_contest(&[gate], &contestant("now", &[9.0]), &[contestant("budget", &[3.0])]).remove(0);
        assert_eq!(found.gate, "budget: recovery_time <= reference");
        assert_eq!((found.observed.as_str(), found.wanted.as_str()), ("3s", "<= reference (4s500ms)"));
        assert_eq!((found.value, found.bound), (Some(3.0), Some(4.5)));
    }

    #[test]
    fn effects_are_paired_by_seed() {
        let (reference, mut candidate) = (contestant("now", &[9.0; 8]), contestant("budget", &[6.0; 8]));
        candidate.runs.remove(0);
        let found = effect(Figure::RecoveryTime, &reference, &candidate).unwrap();
        assert_eq!((found.pairs, found.median, found.is_shown()), (7, -3.0, true));
        assert_eq!(effect(Figure::WastedWork, &reference, &candidate), None);
        let unknown = contestant("unknown", &[f64::NAN; 8]);
        assert_eq!(effect(Figure::RecoveryTime, &reference, &unknown), None);
    }
}
