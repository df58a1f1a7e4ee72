//! Which policies a plan compares: the section as written, and as it can be run.

use crate::config::{At, Lenient, Node, Place, Problems, Read, Shape, TimeScale, Value};
use crate::gate::CompareGate;
use crate::gate::many::RawCompareGate;
use crate::plan::presets::PolicySpec;
use crate::policy::Policy;
use crate::record;

/// How many seeds each policy is run with where nothing is said.
pub const USUAL_SEEDS: u32 = 20;

/// A comparison of policies: each drives the same fleet of the same plan, on the same seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// The fleet whose policy varies, by its number.
    pub fleet: u16,
    /// The policy that the others are measured against.
    pub reference: Candidate,
    /// The others, in the order of the plan; at least one.
    pub candidates: Vec<Candidate>,
    /// How many seeds each policy is run with.
    pub seeds: u32,
    /// Checks on the candidates.
    pub gates: Vec<CompareGate>,
}

/// A policy that is compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its name.
    pub name: String,
    /// What it does.
    pub policy: Policy,
}

impl Compare {
    /// How many runs the comparison takes.
    pub fn runs(&self) -> u64 {
        (self.candidates.len() as u64 + 1) * u64::from(self.seeds)
    }
}

record! {
    /// Policies to compare: each drives the same fleet, on the same seeds.
    pub struct RawCompare {
        /// The fleet whose policy varies.
        fleet: At<String>,
        /// The policy that the others are measured against.
        reference: At<CandidateRef>,
        /// The others: names of policies, or policies spelled out under a name.
        candidates: At<Vec<Lenient<At<CandidateRef>>>>,
        /// How many seeds each policy is run with.
        seeds: At<u32> = At { value: USUAL_SEEDS, place: Place::default() },
        /// Checks on the candidates.
        gates: Vec<Lenient<RawCompareGate>> = Vec::new(),
    }
}

/// A policy to compare: by name, or spelled out under a name of its own.
#[derive(Clone, Debug, PartialEq)]
pub enum CandidateRef {
    /// One of `policies`.
    Named(String),
    /// Spelled out: `{ quick: { attempts: 2, timeout: 1s } }`.
    Inline(Box<Candidate>),
}

impl CandidateRef {
    /// The name, of either.
    pub fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::Inline(candidate) => &candidate.name,
        }
    }
}

impl Read for CandidateRef {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        match &node.value {
            Value::Text(name) => Some(Self::Named(name.clone())),
            Value::Map(entries) => {
                let [(key, value)] = entries.as_slice() else {
                    let message = format!("expected one policy under its name, found {} keys", entries.len());
                    problems.error_with_hint(node.place, message, "such as `{ quick: { attempts: 2, timeout: 1s } }`");
                    return None;
                };
                let policy = PolicySpec::read(value, problems)?.0;
                Some(Self::Inline(Box::new(Candidate { name: key.name.clone(), policy })))
            }
            _ => {
                let kind = node.kind();
                problems.error(node.place, format!("expected the name of a policy, or a policy under a name, found {kind}"));
                None
            }
        }
    }
    fn shape() -> Shape {
        let name = Shape::Text { what: "the name of a policy", pattern: "", examples: &[] };
        Shape::OneOf(vec![name, Shape::Map(Box::new(PolicySpec::shape()))])
    }

    fn rescale(&mut self, by: TimeScale) {
        if let Self::Inline(candidate) = self {
            candidate.policy.rescale(by);
        }
    }
}
