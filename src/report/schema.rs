//! The shape of what is read, as JSON Schema (draft 2020-12).
//!
//! Made from [`Shape`], which the reading types make themselves: it cannot drift from what is read. Wherever a value
//! stands, a text with a variable (`${…}`) may stand too.

use crate::config::{Alternative, Field, Read, Shape};
use crate::plan::RawPlan;
use serde_json::{Map, Value, json};

/// The JSON Schema of plans.
pub fn plan() -> Value {
    let mut defs = Map::new();
    defs.insert(
        "variable".into(),
        json!({ "description": "A text with variables: ${NAME}, ${NAME:-default} or ${NAME:?message}.", "type": "string", "pattern": "\\$\\{" }),
    );
    let mut root = schema(&RawPlan::shape(), &mut defs);
    if let Value::Object(root) = &mut root {
        root.insert("type".into(), json!("object"));
        root.insert("patternProperties".into(), json!({ "^x-": {} }));
        let mut whole = Map::new();
        whole.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
        whole.insert("title".into(), json!("stormwake plan"));
        whole.append(root);
        whole.insert("$defs".into(), Value::Object(defs));
        return Value::Object(whole);
    }
    root
}

fn schema(shape: &Shape, defs: &mut Map<String, Value>) -> Value {
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
