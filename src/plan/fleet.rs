//! A fleet as written: its settings, and a policy by name or spelled out.

use crate::config::{At, Field, Key, Node, Place, Problems, Read, Shape, TimeScale, Value, closest};
use crate::fleet::FleetConfig;
use crate::plan::presets::PolicySpec;
use crate::policy::Policy;

/// A policy by name, or spelled out.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicyRef {
    /// One of `policies`.
    Named(String),
    /// Spelled out in the fleet.
    Inline(Box<Policy>),
}

impl Read for PolicyRef {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        match &node.value {
            Value::Text(name) => Some(Self::Named(name.clone())),
            _ => PolicySpec::read(node, problems).map(|policy| Self::Inline(Box::new(policy.0))),
        }
    }
    fn shape() -> Shape {
        Shape::OneOf(vec![Shape::Text { what: "the name of a policy", pattern: "", examples: &[] }, PolicySpec::shape()])
    }

    fn rescale(&mut self, by: TimeScale) {
        if let Self::Inline(policy) = self {
            policy.rescale(by);
        }
    }
}

/// A fleet as written.
#[derive(Clone, Debug, PartialEq)]
pub struct RawFleet {
    /// Its policy.
    pub policy: At<PolicyRef>,
    /// The rest.
    pub config: FleetConfig,
}

impl Read for RawFleet {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            problems.error(node.place, format!("expected a map, found {}", node.kind()));
            return None;
        };
        let (policy, mut rest): (Vec<_>, Vec<_>) = entries.iter().cloned().partition(|(key, _)| key.name == "policy");
        let policy = match policy.first() {
            Some((_, node)) => At::<PolicyRef>::read(node, problems),
            None => {
                missing_policy(node.place, &mut rest, problems);
                None
            }
        };
        let config = FleetConfig::read(&Node { value: Value::Map(rest), place: node.place }, problems);
        Some(Self { policy: policy?, config: config? })
    }

    fn shape() -> Shape {
        let Shape::Record { doc, mut fields } = FleetConfig::shape() else { return FleetConfig::shape() };
        let doc_of = "How its clients retry: the name of a policy, or a policy spelled out.".to_string();
        fields.insert(0, Field { name: "policy", doc: doc_of, required: true, shape: PolicyRef::shape() });
        Shape::Record { doc, fields }
    }

    fn rescale(&mut self, by: TimeScale) {
        self.policy.rescale(by);
        self.config.rescale(by);
    }
}

/// Reports that `policy` is missing, or the key that was meant to be it.
fn missing_policy(place: Place, rest: &mut Vec<(Key, Node)>, problems: &mut Problems) {
    match rest.iter().position(|(key, _)| closest(&key.name, ["policy"]).is_some()) {
        Some(index) => {
            let (key, _) = rest.remove(index);
            problems.error_with_hint(key.place, format!("unknown key `{}`", key.name), "did you mean `policy`?");
        }
        None => problems.error(place, "`policy` is missing: expected the name of a policy, or a policy spelled out"),
    }
}
