//! The bytes of `result.json`.

use super::RunResult;
use serde::Serialize;
use serde_json::Value;

/// The document's bytes: JSON with one line for each figure, phase, window and finding, so that a diff of two runs reads well.
pub fn json(result: &RunResult) -> Vec<u8> {
    document(result, OPEN_DEPTH)
}

/// Any document's bytes. Containers nearer to the root than `depth` are written over several lines.
pub fn document(document: &impl Serialize, depth: usize) -> Vec<u8> {
    let value = serde_json::to_value(document).expect("a document of maps with text keys is JSON");
    let mut text = String::new();
    write_value(&mut text, &value, 0, depth);
    text.push('\n');
    text.into_bytes()
}

/// How much of a run's result is written over several lines.
const OPEN_DEPTH: usize = 2;

fn write_value(out: &mut String, value: &Value, depth: usize, open: usize) {
    let items: Vec<(Option<&String>, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, value)| (Some(key), value)).collect(),
        Value::Array(list) => list.iter().map(|value| (None, value)).collect(),
        _ => Vec::new(),
    };
    if depth >= open || items.is_empty() {
        out.push_str(&value.to_string());
        return;
    }
    let (first, last) = if value.is_object() { ('{', '}') } else { ('[', ']') };
    out.push(first);
    for (index, (key, item)) in items.into_iter().enumerate() {
        out.push_str(if index == 0 { "\n" } else { ",\n" });
        out.push_str(&"  ".repeat(depth + 1));
        if let Some(key) = key {
            out.push_str(&Value::String(key.clone()).to_string());
            out.push_str(": ");
        }
        write_value(out, item, depth + 1, open);
    }
    out.push('\n');
    out.push_str(&"  ".repeat(depth));
    out.push(last);
}
