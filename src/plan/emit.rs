//! A tree of nodes to YAML text: the effective plan. Reading it gives the same tree, with no variable left in it.

use super::vars;
use crate::config::{Node, Value};
use std::fmt::Write as _;

/// The YAML text of a tree. Texts that hold `${` are escaped, so that loading it resolves nothing.
pub fn emit(root: &Node) -> String {
    let mut out = String::new();
    match &root.value {
        Value::Map(entries) if !entries.is_empty() => block(&mut out, root, 0),
        Value::List(items) if !items.is_empty() => block(&mut out, root, 0),
        _ => {
            out.push_str(&inline(root));
            out.push('\n');
        }
    }
    out
}

/// A map or list that is not empty, one entry a line.
fn block(out: &mut String, node: &Node, indent: usize) {
    let pad = " ".repeat(indent);
    match &node.value {
        Value::Map(entries) => {
            for (key, value) in entries {
                let _ = write!(out, "{pad}{}:", quote(&key.name));
                below(out, value, indent + 2);
            }
        }
        Value::List(items) => {
            for item in items {
                let _ = write!(out, "{pad}-");
                below(out, item, indent + 2);
            }
        }
        Value::Null | Value::Text(_) => {}
    }
}

fn below(out: &mut String, node: &Node, indent: usize) {
    let nested = match &node.value {
        Value::Map(entries) => !entries.is_empty(),
        Value::List(items) => !items.is_empty(),
        Value::Null | Value::Text(_) => false,
    };
    if nested {
        out.push('\n');
        block(out, node, indent);
    } else {
        let _ = writeln!(out, " {}", inline(node));
    }
}

fn inline(node: &Node) -> String {
    match &node.value {
        Value::Null => "null".into(),
        Value::Text(text) => quote(&vars::escape(text)),
        Value::List(_) => "[]".into(),
        Value::Map(_) => "{}".into(),
    }
}

/// Plain where that is safe whatever the reader makes of it, else in double quotes.
fn quote(text: &str) -> String {
    let first = text.chars().next().is_some_and(|c| c.is_ascii_alphanumeric() || c == '/');
    let all = text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./%".contains(c));
    if first && all && !text.eq_ignore_ascii_case("null") {
        return text.to_string();
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                let _ = write!(quoted, "\\U{:08x}", c as u32);
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Problems, Source};
    use crate::plan::yaml;

    fn values(node: &Node) -> String {
        match &node.value {
            Value::Null => "~".into(),
            Value::Text(text) => format!("{text:?}"),
            Value::List(items) => format!("[{}]", items.iter().map(values).collect::<Vec<_>>().join(",")),
            Value::Map(entries) => {
                format!(
                    "{{{}}}",
                    entries.iter().map(|(k, v)| format!("{:?}:{}", k.name, values(v))).collect::<Vec<_>>().join(",")
                )
            }
        }
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let text = "a: 1e3\nb: [0755, yes, ~, .inf, 'null', \"x: y # z\"]\nc: { d: {}, e: [], f: { g: '1' } }\nh: |\n  two\n  lines\ni: \"\\u001b\\u2028\"\nj: - 5\n"
            .replace("j: - 5", "j: '- 5'");
        let mut problems = Problems::default();
        let first = yaml::parse(&text, Source::File, &mut problems).unwrap().root;
        let written = emit(&first);
        let second = yaml::parse(&written, Source::File, &mut problems).unwrap().root;
        assert_eq!(values(&first), values(&second), "{written}");
        assert_eq!(emit(&second), written);
        assert!(written.contains("a: 1e3\n"), "{written}");
    }
}
