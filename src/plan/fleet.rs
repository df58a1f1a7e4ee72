//! A fleet as written: its settings, and a policy by name or spelled out.

use super::arithmetic::offered_by;
use crate::config::{At, Field, Key, Node, Place, Problems, Read, Shape, TimeScale, Value, closest};
use crate::fleet::{FleetConfig, WorkersConfig};
use crate::load::{Constant, Load};
use crate::plan::presets::PolicySpec;
use crate::policy::Policy;
use crate::time::Rate;

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
    /// The rest; of a fleet of workers, what of it is like a client's.
    pub config: FleetConfig,
    /// What makes it a fleet of workers.
    pub workers: Option<WorkersConfig>,
    /// The fleet of workers into whose queue it puts its operations.
    pub into: Option<At<String>>,
    /// Its destination there.
    pub destination: Option<At<String>>,
}

/// The keys of a fleet that are no setting of its clients.
const POLICY: &str = "policy";
const INTO: [(&str, &str); 2] = [
    ("into", "The fleet of workers into whose queue its operations go: its clients are producers, an attempt is an enqueue."),
    ("destination", "With `into`: where they go from there, by the name of a destination of that queue."),
];

impl Read for RawFleet {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            problems.error(node.place, format!("expected a map, found {}", node.kind()));
            return None;
        };
        let (policy, mut rest): (Vec<_>, Vec<_>) = entries.iter().cloned().partition(|(key, _)| key.name == POLICY);
        let policy = match policy.first() {
            Some((_, node)) => At::<PolicyRef>::read(node, problems),
            None => {
                missing_policy(node.place, &mut rest, problems);
                None
            }
        };
        if rest.iter().any(|(key, _)| key.name == "workers" || key.name == "queue") {
            let workers = WorkersConfig::read(&Node { value: Value::Map(rest), place: node.place }, problems)?;
            return Some(Self {
                policy: policy?,
                config: as_clients(&workers),
                workers: Some(workers),
                into: None,
                destination: None,
            });
        }
        let (taken, rest): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|(key, _)| INTO.iter().any(|(name, _)| key.name == *name));
        let mut name = |wanted: &str| {
            let (_, node) = taken.iter().find(|(key, _)| key.name == wanted)?;
            At::<String>::read(node, problems)
        };
        let (into, destination) = (name(INTO[0].0), name(INTO[1].0));
        let config = FleetConfig::read(&Node { value: Value::Map(rest), place: node.place }, problems);
        Some(Self { policy: policy?, config: config?, workers: None, into, destination })
    }

    fn shape() -> Shape {
        let (devices, workers) = (FleetConfig::shape(), WorkersConfig::shape());
        let (Shape::Record { doc, mut fields }, Shape::Record { doc: workers_doc, fields: mut workers_fields }) =
            (devices, workers)
        else {
            return FleetConfig::shape();
        };
        let doc_of = "How its clients retry: the name of a policy, or a policy spelled out.".to_string();
        let policy = Field { name: POLICY, doc: doc_of, required: true, shape: PolicyRef::shape() };
        fields.insert(0, policy.clone());
        fields.extend(INTO.map(|(name, doc)| Field { name, doc: doc.into(), required: false, shape: String::shape() }));
        workers_fields.insert(0, policy);
        Shape::OneOf(vec![Shape::Record { doc, fields }, Shape::Record { doc: workers_doc, fields: workers_fields }])
    }

    fn rescale(&mut self, by: TimeScale) {
        self.policy.rescale(by);
        self.config.rescale(by);
        self.workers.rescale(by);
    }
}

/// What of a fleet of workers is like a client's: as many clients as there may be workers, and one load that stands for all streams.
fn as_clients(workers: &WorkersConfig) -> FleetConfig {
    let streams: Vec<Load> = workers.queue.streams().into_iter().filter_map(|(_, stream)| stream.arrivals).collect();
    let load = match &streams[..] {
        [only] => only.clone(),
        _ => steady(streams.iter().map(|load| offered_by(load, 1).peak()).sum()),
    };
    FleetConfig {
        connections: workers.connections,
        outbox: workers.queue.bound,
        priority: workers.priority.clone(),
        idempotency_key: workers.idempotency_key,
        ..FleetConfig::new(workers.workers.most(), load)
    }
}

/// So many operations a second.
pub(super) fn steady(rate: f64) -> Load {
    Load::Constant(Constant { rate: Rate::per_second(rate).ok(), each: None })
}

/// Reports that `policy` is missing, or the key that was meant to be it.
fn missing_policy(place: Place, rest: &mut Vec<(Key, Node)>, problems: &mut Problems) {
    match rest.iter().position(|(key, _)| closest(&key.name, [POLICY]).is_some()) {
        Some(index) => {
            let (key, _) = rest.remove(index);
            problems.error_with_hint(key.place, format!("unknown key `{}`", key.name), "did you mean `policy`?");
        }
        None => problems.error(place, "`policy` is missing: expected the name of a policy, or a policy spelled out"),
    }
}
