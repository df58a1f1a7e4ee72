//! The shape of what is read, as JSON Schema (draft 2020-12).
//!
//! Made from [`Shape`], which the reading types make themselves: it cannot drift from what is read. Wherever a value
//! stands, a text with a variable (`${…}`) may stand too.

use crate::config::{Alternative, Field, Read, Shape};
use crate::plan::{ProxyFault, RawPlan};
use serde_json::{Map, Value, json};

/// The JSON Schema of plans.
pub fn plan() -> Value {
    let mut defs = Map::new();
    defs.insert(
        "variable".into(),
        json!({ "description": "A text with variables: ${NAME}, ${NAME:-default} or ${NAME:?message}.", "type": "string", "pattern": "\\$\\{" }),
    );
    let mut root = spelled_out(&RawPlan::shape(), &mut defs);
    if let Value::Object(root) = &mut root {
        root.insert("type".into(), json!("object"));
        root.insert("patternProperties".into(), json!({ "^x-": {} }));
        let mut whole = Map::new();
        whole.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
        // The version that a plan gives itself.
        whole.insert("$id".into(), json!(super::published::id("plan", 1)));
        whole.insert("title".into(), json!("stormwake plan"));
        whole.append(root);
        whole.insert("$defs".into(), Value::Object(defs));
        return Value::Object(whole);
    }
    root
}

/// The JSON Schema of a fault as it is put on a proxy that stands alone. Its texts hold no variables.
pub fn proxy_fault() -> Value {
    let mut defs = Map::new();
    let mut root = spelled_out(&ProxyFault::shape(), &mut defs);
    root["$defs"] = Value::Object(defs);
    without_variables(&mut root);
    root
}

fn without_variables(schema: &mut Value) {
    match schema {
        Value::Array(items) => {
            items.retain(|item| *item != variable());
            items.iter_mut().for_each(without_variables);
        }
        Value::Object(entries) => entries.values_mut().for_each(without_variables),
        _ => {}
    }
}

/// The longest schema of a map that stands where it is used: a longer one is defined once, however often it is met.
const LONGEST_INLINE: usize = 600;

fn schema(shape: &Shape, defs: &mut Map<String, Value>) -> Value {
    let whole = spelled_out(shape, defs);
    match shape {
        Shape::Record { doc, .. } | Shape::Choice { doc, .. } => shared(doc, whole, defs),
        _ => whole,
    }
}

/// Puts a long schema among the definitions, under a name made of what it is, and refers to it.
fn shared(doc: &str, whole: Value, defs: &mut Map<String, Value>) -> Value {
    if whole.to_string().len() <= LONGEST_INLINE {
        return whole;
    }
    let words = doc.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).take(8);
    let stem = words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("_");
    let name = |n: usize| if n == 1 { stem.clone() } else { format!("{stem}_{n}") };
    // Two shapes may say the same of themselves: a policy, and one that lays something over a preset.
    let free = (1..).map(name).find(|name| defs.get(name).is_none_or(|known| *known == whole)).unwrap_or_default();
    let reference = json!({ "$ref": format!("#/$defs/{free}") });
    defs.entry(free).or_insert(whole);
    reference
}

fn spelled_out(shape: &Shape, defs: &mut Map<String, Value>) -> Value {
    match shape {
        Shape::Text { what, pattern, examples } => text(what, pattern, examples, defs),
        Shape::Integer { min, max } => json!({
            "description": format!("A whole number from {min} to {max}."),
            "anyOf": [{ "type": "integer", "minimum": min, "maximum": max }, { "type": "string", "pattern": "^[0-9]+$" }, variable()],
        }),
        Shape::Number => json!({ "anyOf": [{ "type": "number" }, { "type": "string", "pattern": "^[-+0-9.eE]+$" }, variable()] }),
        Shape::Bool => json!({ "anyOf": [{ "type": "boolean" }, { "enum": ["true", "false"] }, variable()] }),
        Shape::Keyword(words) => json!({ "anyOf": keywords(words).into_iter().chain([variable()]).collect::<Vec<_>>() }),
        Shape::List(item) => json!({ "type": "array", "items": schema(item, defs) }),
        Shape::Map(value) => json!({ "type": "object", "additionalProperties": schema(value, defs) }),
        Shape::Record { doc, fields } => record(doc, fields, shape.may_be_empty(), defs),
        Shape::Choice { doc, alternatives } => choice(doc, alternatives, defs),
        Shape::OneOf(shapes) => json!({ "anyOf": shapes.iter().map(|shape| schema(shape, defs)).collect::<Vec<_>>() }),
    }
}

fn variable() -> Value {
    json!({ "$ref": "#/$defs/variable" })
}

/// A scalar with a syntax of its own is defined once, by its name.
fn text(what: &str, pattern: &str, examples: &[&str], defs: &mut Map<String, Value>) -> Value {
    if pattern.is_empty() {
        let mut any = json!({ "description": what, "type": ["string", "number", "boolean"] });
        if !examples.is_empty() {
            any["examples"] = json!(examples);
        }
        return any;
    }
    let name: String = what.trim_start_matches("a ").trim_start_matches("an ").replace(' ', "_");
    if !defs.contains_key(&name) {
        let mut forms = vec![json!({ "type": "string", "pattern": pattern })];
        // What a plain number matches is a number to a YAML reader that types scalars.
        if pattern.contains("(0|") {
            forms.push(json!({ "const": 0 }));
        }
        forms.push(variable());
        defs.insert(name.clone(), json!({ "description": what, "examples": examples, "anyOf": forms }));
    }
    json!({ "$ref": format!("#/$defs/{name}") })
}

fn keywords(words: &[Alternative]) -> Vec<Value> {
    words.iter().map(|word| json!({ "const": word.name, "description": word.doc })).collect()
}

fn record(doc: &str, fields: &[Field], may_be_empty: bool, defs: &mut Map<String, Value>) -> Value {
    let mut properties = Map::new();
    for field in fields {
        let mut property = schema(&field.shape, defs);
        if let Value::Object(property) = &mut property
            && !field.doc.is_empty()
        {
            property.insert("description".into(), json!(field.doc));
        }
        properties.insert(field.name.into(), property);
    }
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    json!({
        "description": doc,
        // Nothing at all is read as an empty map.
        "type": if may_be_empty { json!(["object", "null"]) } else { json!("object") },
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn choice(doc: &str, alternatives: &[Alternative], defs: &mut Map<String, Value>) -> Value {
    let mut properties = Map::new();
    for alternative in alternatives {
        let mut property = alternative.shape.as_ref().map_or_else(|| json!({}), |shape| schema(shape, defs));
        if let Value::Object(property) = &mut property {
            property.insert("description".into(), json!(alternative.doc));
        }
        properties.insert(alternative.name.into(), property);
    }
    let map = json!({
        "type": "object",
        "properties": properties,
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": false,
    });
    let stands_alone = |a: &&Alternative| a.shape.as_ref().is_some_and(Shape::may_be_empty);
    let words: Vec<Alternative> = alternatives.iter().filter(stands_alone).cloned().collect();
    let forms: Vec<Value> = [map].into_iter().chain(keywords(&words)).chain([variable()]).collect();
    json!({ "description": doc, "anyOf": forms })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Node, Problems, Source, Value as NodeValue};
    use crate::plan::yaml;

    /// What a YAML reader that types scalars hands to a validator.
    fn typed(node: &Node) -> Value {
        match &node.value {
            NodeValue::Null => Value::Null,
            NodeValue::Text(text) => match serde_json::from_str::<Value>(text) {
                Ok(value @ (Value::Number(_) | Value::Bool(_))) => value,
                _ => json!(text),
            },
            NodeValue::List(items) => items.iter().map(typed).collect(),
            NodeValue::Map(entries) => {
                Value::Object(entries.iter().map(|(key, value)| (key.name.clone(), typed(value))).collect())
            }
        }
    }

    fn instance(text: &str) -> Value {
        let mut problems = Problems::default();
        let document = yaml::parse(text, Source::File, &mut problems);
        typed(&document.unwrap_or_else(|| panic!("{problems:?}")).root)
    }

    fn shipped() -> Vec<(String, String)> {
        let mut found = Vec::new();
        for folder in ["plans", "src/cli/templates"] {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
            for entry in std::fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|ext| ext == "yaml") {
                    found.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
                }
            }
        }
        found
    }

    #[test]
    fn every_shipped_plan_validates() {
        let validator = jsonschema::validator_for(&plan()).unwrap();
        let plans = shipped();
        assert!(plans.len() >= 3, "{}", plans.len());
        for (path, text) in plans {
            let errors: Vec<String> =
                validator.iter_errors(&instance(&text)).map(|e| format!("{}: {e}", e.instance_path())).collect();
            assert!(errors.is_empty(), "{path}\n{}", errors.join("\n"));
        }
    }

    #[test]
    fn what_the_reader_takes_the_schema_takes_and_what_it_refuses_too() {
        let validator = jsonschema::validator_for(&plan()).unwrap();
        let base = "version: 1\nlength: 1m\ntarget: { url: 'http://h/' }\nfleets: { a: { clients: 1, policy: { attempts: 1, timeout: 1s }, load: { closed: {} } } }\n";
        for (more, valid) in [
            ("", true),
            ("x-anything: [1, { a: b }]", true),
            ("seed: 7", true),
            ("seed: \"${SEED:-7}\"", true),
            ("seed: '7'", true),
            ("seed: seven", false),
            ("timer_grain: ${GRAIN}", true),
            ("timer_grain: 250", false),
            ("timer_grain: 1ms", true),
            ("policies: { p: { attempts: unlimited, timeout: 1s, deadline: 0, retry_on: [429, 5xx, timeout] } }", true),
            ("policies: { p: { attempts: many, timeout: 1s } }", false),
            ("policies: { p: { timeout: 1s } }", false),
            ("timeline: [{ at: 1s, for: 2s, fault: refuse }]", true),
            ("timeline: [{ at: 1s, for: 2s, fault: { refuse: } }]", true),
            ("timeline: [{ at: 1s, for: 2s, fault: status }]", false),
            ("timeline: [{ at: 1s, for: 2s, fault: { hang: {}, refuse: {} } }]", false),
            ("timeline: [{ at: 1s, for: 2s, fault: { status: { code: 503, body: 5 } } }]", true),
            ("gates: [{ p99: '<= 1s', during: recovery }]", true),
            ("gates: [{ p99: 1s }]", false),
            ("expect: { class: STUCK }", true),
            ("expect: { class: stuck }", false),
            ("compare: {}", false),
            ("compare: { fleet: a, reference: p, candidates: [q, { own: { attempts: 1, timeout: 1s } }] }", true),
            ("compare: { fleet: a, reference: p, candidates: q }", false),
            (
                "compare: { fleet: a, reference: p, candidates: [q], seeds: 5, gates: [{ policy: q, lost: '<= reference' }, { policy: q, recovered: '>= 95%' }] }",
                true,
            ),
            ("compare: { fleet: a, reference: p, candidates: [q], gates: [{ lost: '<= reference' }] }", false),
            ("gates: [{ recovered: '>= 95% of seeds' }]", true),
            ("gates: [{ recovered: '<= 95% of seeds' }]", false),
            ("policies: { p: { attempts: 2, timeout: 1s, budget: { bucket: { deposit: 10%, burst: 5 }, tier: fleet } } }", true),
            ("policies: { p: { attempts: 2, timeout: 1s, budget: { bucket: { burst: 5 }, tier: fleet } } }", false),
            ("network: wan", true),
            ("network: { latency: { p50: 40ms, p99: 150ms }, reset: 1% }", true),
            ("network: moon", false),
        ] {
            let found = validator.is_valid(&instance(&format!("{base}{more}\n")));
            assert_eq!(found, valid, "{more}");
        }
    }

    #[test]
    fn every_key_says_what_it_is() {
        fn undescribed(path: &str, schema: &Value, found: &mut Vec<String>) {
            if let Some(properties) = schema["properties"].as_object() {
                for (name, property) in properties {
                    let path = format!("{path}.{name}");
                    if property["description"].as_str().is_none_or(str::is_empty) {
                        found.push(path.clone());
                    }
                    undescribed(&path, property, found);
                }
            }
            for part in ["items", "additionalProperties"] {
                if schema[part].is_object() {
                    undescribed(path, &schema[part], found);
                }
            }
            for form in schema["anyOf"].as_array().into_iter().flatten() {
                undescribed(path, form, found);
            }
        }
        let (mut found, plan) = (Vec::new(), plan());
        undescribed("", &plan, &mut found);
        for (name, definition) in plan["$defs"].as_object().into_iter().flatten() {
            undescribed(name, definition, &mut found);
        }
        assert_eq!(found, Vec::<String>::new());
        let length = plan.to_string().len();
        assert!(length < 400_000, "what is met often is defined once: {length} bytes");
    }
}
