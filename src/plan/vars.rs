//! `${VAR}`, `${VAR:-default}` and `${VAR:?message}` in values. Resolved after parsing: what a variable holds is
//! text of that value and nothing else, whatever characters it has. `$${` stands for `${`.

use crate::config::{Node, Place, Problems, Source, Value};

/// How long a value may become.
const MAX_RESOLVED: usize = 64 << 10;

/// Where values stand, to find a variable's own place within its value.
pub struct Texts<'a> {
    /// The plan's text.
    pub file: &'a str,
    /// The overrides, as given.
    pub overrides: &'a [String],
}

/// Resolves every variable below a node, in values only. What is missing is reported.
pub fn resolve(node: &mut Node, env: &dyn Fn(&str) -> Option<String>, texts: &Texts, problems: &mut Problems) {
    let place = node.place;
    match &mut node.value {
        Value::Null => {}
        Value::Text(text) if text.contains("${") => {
            if let Some(resolved) = resolve_text(text, place, env, texts, problems) {
                *text = resolved;
            }
        }
        Value::Text(_) => {}
        Value::List(items) => items.iter_mut().for_each(|item| resolve(item, env, texts, problems)),
        Value::Map(entries) => entries.iter_mut().for_each(|(_, value)| resolve(value, env, texts, problems)),
    }
}

/// Escapes a text so that resolving it gives it back.
pub fn escape(text: &str) -> String {
    text.replace("${", "$${")
}

fn resolve_text(
    text: &str,
    place: Place,
    env: &dyn Fn(&str) -> Option<String>,
    texts: &Texts,
    problems: &mut Problems,
) -> Option<String> {
    let mut resolved = String::new();
    let mut rest = text;
    let mut sound = true;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            resolved.push_str(&rest[..at - 1]);
            resolved.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        resolved.push_str(&rest[..at]);
        let inner = &rest[at + 2..];
        let end = inner.find('}');
        let whole = &rest[at..end.map_or(rest.len(), |end| at + 2 + end + 1)];
        match end.ok_or_else(unclosed).and_then(|end| value_of(&inner[..end], env)) {
            Ok(value) => resolved.push_str(&value),
            Err((message, hint)) => {
                problems.error_with_hint(place_within(place, whole, texts), message, hint);
                sound = false;
            }
        }
        rest = end.map_or("", |end| &inner[end + 1..]);
        if resolved.len() > MAX_RESOLVED {
            problems.error_with_hint(place, format!("longer than {MAX_RESOLVED} bytes with its variables"), "shorten them");
            return None;
        }
    }
    resolved.push_str(rest);
    sound.then_some(resolved)
}

type Refusal = (String, String);

fn unclosed() -> Refusal {
    ("`${` without its `}`".into(), "write `${NAME}`, or `$${` for a literal `${`".into())
}

/// The value of what stands between `${` and `}`.
fn value_of(inner: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<String, Refusal> {
    let split = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
    let (name, operator) = inner.split_at(split);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        let hint = "a name is letters, digits and _: `${NAME}`; `$${` stands for a literal `${`";
        return Err((format!("`${{{}}}` names no variable", short(inner)), hint.into()));
    }
    if operator.contains("${") {
        return Err(("variables cannot be nested".into(), format!("write a plain default: `${{{name}:-default}}`")));
    }
    // As in a shell, `:-` and `:?` take an empty variable for a missing one.
    let set = env(name);
    let filled = set.clone().filter(|value| !value.is_empty());
    match (operator, filled) {
        ("", _) => set.ok_or_else(|| missing(name, None)),
        (op, Some(value)) if op.starts_with(":-") || op.starts_with(":?") => Ok(value),
        (op, None) if op.starts_with(":-") => Ok(op[2..].to_string()),
        (op, None) if op.starts_with(":?") => Err(missing(name, Some(&op[2..]))),
        _ => Err((
            format!("`${{{}}}` is not understood", short(inner)),
            format!("write `${{{name}}}`, `${{{name}:-default}}` or `${{{name}:?message}}`"),
        )),
    }
}

fn missing(name: &str, message: Option<&str>) -> Refusal {
    let what = match message {
        Some(message) if !message.trim().is_empty() => format!("the variable `{name}` is not set: {}", short(message)),
        _ => format!("the variable `{name}` is not set"),
    };
    (what, format!("set it (`{name}=… stormwake …`), or give a default: `${{{name}:-default}}`"))
}

fn short(text: &str) -> String {
    text.chars().take(200).collect()
}

/// The place of a variable within its value, where the value stands on one line; else the value's.
fn place_within(place: Place, variable: &str, texts: &Texts) -> Place {
    let text = match place.source {
        Source::File => texts.file,
        Source::Override(n) => texts.overrides.get(n as usize).map_or("", String::as_str),
    };
    let found = text.lines().nth((place.line as usize).saturating_sub(1)).and_then(|line| {
        let from = line.char_indices().nth((place.column as usize).saturating_sub(1))?.0;
        let at = line[from..].find(variable)?;
        Some(line[from..from + at].chars().count())
    });
    match found {
        Some(skipped) if skipped < place.len as usize => {
            Place { column: place.column + skipped as u32, len: variable.chars().count() as u32, ..place }
        }
        _ => place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str) -> Option<String> {
        match name {
            "HOST" => Some("example".into()),
            "EMPTY" => Some(String::new()),
            "EVIL" => Some("x\", y: [${HOST}] # {".into()),
            _ => None,
        }
    }

    fn resolve_one(text: &str) -> Result<String, String> {
        let mut problems = Problems::default();
        let mut node = Node { value: Value::Text(text.into()), place: Place::default() };
        resolve(&mut node, &env, &Texts { file: "", overrides: &[] }, &mut problems);
        match (problems.sorted().first(), node.value) {
            (Some(problem), _) => Err(format!("{} / {}", problem.message, problem.hint.clone().unwrap_or_default())),
            (None, Value::Text(text)) => Ok(text),
            (None, other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn variables_resolve() {
        for (text, want) in [
            ("plain", "plain"),
            ("http://${HOST}:80/", "http://example:80/"),
            ("${NONE:-a b}", "a b"),
            ("${NONE:-}", ""),
            ("${EMPTY:-d}", "d"),
            ("${EMPTY}", ""),
            ("${HOST:?say it}", "example"),
            ("$${HOST}", "${HOST}"),
            ("$$${HOST}", "$${HOST}"),
            ("a $ b $5 ${HOST}${HOST}", "a $ b $5 exampleexample"),
            // What a variable holds is neither YAML nor a variable again.
            ("${EVIL}", "x\", y: [${HOST}] # {"),
        ] {
            assert_eq!(resolve_one(text), Ok(want.to_string()), "{text}");
        }
    }

    #[test]
    fn what_is_missing_says_how_to_set_it() {
        for (text, want) in [
            ("${NONE}", "`NONE` is not set / set it (`NONE=… stormwake …`), or give a default: `${NONE:-default}`"),
            ("${NONE:?where to ask}", "`NONE` is not set: where to ask"),
            ("${EMPTY:?say it}", "`EMPTY` is not set: say it"),
            ("${", "without its `}`"),
            ("${}", "names no variable"),
            ("${9}", "names no variable"),
            ("${HOST-x}", "is not understood"),
            ("${NONE:-${HOST}}", "cannot be nested"),
        ] {
            let error = resolve_one(text).unwrap_err();
            assert!(error.contains(want), "{text}: {error}");
        }
    }

    #[test]
    fn an_escaped_text_resolves_to_itself() {
        for text in ["${HOST}", "$${x", "a$", "$$", "${${", "plain"] {
            assert_eq!(resolve_one(&escape(text)), Ok(text.to_string()), "{text}");
        }
    }
}
