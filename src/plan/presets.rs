//! The policies of real clients, by name: `preset: aws-standard-2.1` in place of spelling one out.
//!
//! A preset is a file of `presets/` and a line of `FILES`. It is policy YAML, read as a plan's is, with the client whose
//! rule it is, the version and the source that the rule is from, and a note of what that source leaves open. How a plan
//! uses one is `presets/expand.rs`.

mod expand;

use super::yaml;
use crate::config::{Alternative, Field, Node, Problems, Read, Shape, Source, TimeScale};
use crate::policy::Policy;

pub(super) use expand::expand;
pub use expand::{spelled_out, suggestion};

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        /// The presets, by name, and the text of each.
        const FILES: &[(&str, &str)] = &[$(($name, include_str!(concat!("presets/", $name, ".yaml")))),*];
    };
}

files![
    "aws-legacy",
    "aws-standard-2.0",
    "aws-standard-2.1",
    "aws-adaptive",
    "grpc-retry",
    "grpc-hedging",
    "grpc-connection-backoff",
    "finagle",
    "linkerd",
    "tower-budget",
    "envoy",
    "sre-adaptive-throttling",
    "sre-client-budget",
    "azure-core-python",
    "azure-core-rust",
    "google-api-core",
    "client-go-workqueue",
    "resilience4j",
    "resilience4j-exponential",
    "resilience4j-breaker",
    "polly-v8",
    "stripe",
    "urllib3",
    "tenacity-exponential-jitter",
    "tower-exponential",
    "rust-backoff",
];

/// The policy of a real client.
#[derive(Clone, Debug)]
pub struct Preset {
    /// Its name in a plan.
    pub name: &'static str,
    /// Whose rule it is.
    pub client: String,
    /// The version, or the document, that has it.
    pub version: String,
    /// The rule in a line.
    pub summary: String,
    /// Where it is from: the project's own documentation, or a file of its source.
    pub source: String,
    /// What the source does not say, and what stands in for it.
    pub note: String,
    /// The policy as it would be spelled out.
    pub node: Node,
    /// The policy.
    pub policy: Policy,
}

/// The names of all presets.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// All presets, in the order of the catalogue.
pub fn all() -> Vec<Preset> {
    names().filter_map(named).collect()
}

/// The preset of a name.
pub fn named(name: &str) -> Option<Preset> {
    let (name, text) = FILES.iter().find(|(known, _)| *known == name)?;
    let mut problems = Problems::default();
    let preset = read(name, text, &mut problems);
    // The files are part of the program, and a test reads every one.
    debug_assert!(preset.is_some(), "{name}: {problems:?}");
    preset
}

fn read(name: &'static str, text: &str, problems: &mut Problems) -> Option<Preset> {
    let root = yaml::parse(text, Source::File, problems)?.root;
    let mut text = |key: &str| root.get(key).and_then(|node| String::read(node, problems));
    let (client, version, summary) = (text("client")?, text("version")?, text("summary")?);
    let (source, note) = (text("source")?, text("note")?);
    let node = root.get("policy")?.clone();
    let policy = Policy::read(&node, problems)?;
    Some(Preset { name, client, version, summary, source, note, node, policy })
}

/// A policy as a plan may write it: spelled out, or a preset with some of its fields overridden.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicySpec(pub Policy);

impl Read for PolicySpec {
    /// Reads a policy whose preset, if any, was expanded before.
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        Policy::read(node, problems).map(Self)
    }

    fn shape() -> Shape {
        Shape::OneOf(vec![Policy::shape(), overriding()])
    }

    fn rescale(&mut self, by: TimeScale) {
        self.0.rescale(by);
    }
}

/// A preset and what overrides it: nothing else has to be there, and what need not be there can be taken away.
fn overriding() -> Shape {
    let Shape::Record { doc, fields } = Policy::shape() else { return Policy::shape() };
    let words = names().map(|name| Alternative { name, doc: format!("The preset {name}."), shape: None }).collect();
    let preset = Field {
        name: "preset",
        doc: "The policy of a real client, by name; `stormwake policies` lists them. Fields beside it override its own.".into(),
        required: true,
        shape: Shape::Keyword(words),
    };
    let fields = std::iter::once(preset).chain(fields.into_iter().map(optional)).collect();
    Shape::Record { doc, fields }
}

fn optional(field: Field) -> Field {
    let shape = relaxed(field.shape);
    let shape = if field.required || expand::has_none(&shape) { shape } else { Shape::OneOf(vec![shape, none()]) };
    Field { required: false, shape, ..field }
}

/// The word that takes away what a preset says.
fn none() -> Shape {
    let doc = "Takes away what the preset says.".to_string();
    Shape::Keyword(vec![Alternative { name: expand::NONE, doc, shape: None }])
}

fn relaxed(shape: Shape) -> Shape {
    match shape {
        Shape::Record { doc, fields } => Shape::Record { doc, fields: fields.into_iter().map(optional).collect() },
        Shape::Choice { doc, alternatives } => {
            let relax = |a: Alternative| Alternative { shape: a.shape.map(relaxed), ..a };
            Shape::Choice { doc, alternatives: alternatives.into_iter().map(relax).collect() }
        }
        Shape::Map(inner) => {
            let inner = relaxed(*inner);
            Shape::Map(Box::new(if expand::has_none(&inner) { inner } else { Shape::OneOf(vec![inner, none()]) }))
        }
        other => other,
    }
}
