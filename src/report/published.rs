//! The documents that a run leaves for others to read: their names, their versions, and their schemas.
//!
//! A version grows when a field goes or changes its meaning, not when one comes: a reader that skips what it does not know reads every
//! later document of the version that it was written for. A document says its version, and its schema holds it to that.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// A document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// What its schema goes by: `urn:stormwake:schema:NAME:VERSION`.
    pub name: &'static str,
    /// Its file.
    pub file: &'static str,
    /// The version of its shape.
    pub version: u32,
    /// What it is.
    pub title: &'static str,
}

/// One run.
pub const RESULT: Published = Published { name: "result", file: super::folder::RESULT, version: 1, title: "One run of a plan" };
/// Many runs of one plan.
pub const SEEDS: Published = Published { name: "seeds", file: super::folder::SEEDS, version: 1, title: "Many runs of one plan" };
/// Policies on one plan.
pub const COMPARE: Published = Published {
    name: "compare",
    file: super::folder::COMPARE,
    version: 1,
    title: "Policies compared on one plan and the same seeds",
};
/// A line of the log of events.
pub const EVENTS: Published =
    Published { name: "events", file: super::folder::EVENTS, version: 1, title: "One line of a run's events" };

/// The version of documents that do not say theirs.
pub(super) const fn first() -> u32 {
    1
}

/// The name of a schema.
pub(super) fn id(name: &str, version: u32) -> String {
    format!("urn:stormwake:schema:{name}:{version}")
}

impl Published {
    /// The JSON Schema of the document, which is of type `T`.
    pub(super) fn schema<T: JsonSchema>(&self) -> Value {
        let mut of = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>().to_value();
        let mut whole = Map::new();
        whole.insert("$schema".into(), of["$schema"].take());
        whole.insert("$id".into(), json!(id(self.name, self.version)));
        whole.insert("title".into(), json!(format!("stormwake {}: {}", self.file, self.title)));
        whole.insert("version".into(), json!(self.version));
        if let Some(version) = of.pointer_mut("/properties/schema_version").and_then(Value::as_object_mut) {
            version.insert("const".into(), json!(self.version));
        }
        for (key, value) in of.as_object_mut().map(std::mem::take).unwrap_or_default() {
            whole.entry(key).or_insert(value);
        }
        Value::Object(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_schema_says_what_it_is_and_of_which_version() {
        let schemas = [
            (RESULT, super::super::result::schema()),
            (SEEDS, super::super::seeds::schema()),
            (COMPARE, super::super::compare::schema()),
            (EVENTS, super::super::events::schema()),
        ];
        let mut ids = std::collections::BTreeSet::new();
        for (of, schema) in schemas {
            assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{of:?}");
            assert_eq!(schema["$id"], format!("urn:stormwake:schema:{}:{}", of.name, of.version));
            assert!(schema["title"].as_str().is_some_and(|title| title.contains(of.file)), "{of:?}");
            assert!(schema["description"].is_string(), "{of:?}");
            assert!(jsonschema::meta::is_valid(&schema), "{of:?}");
            ids.insert(schema["$id"].to_string());
            // A line of events has no version of its own but in the first.
            if of != EVENTS {
                assert_eq!(schema["properties"]["schema_version"]["const"], of.version, "{of:?}");
                assert!(schema["required"].as_array().is_some_and(|names| names.contains(&json!("schema_version"))), "{of:?}");
            }
        }
        assert_eq!(ids.len(), 4);
    }
}
