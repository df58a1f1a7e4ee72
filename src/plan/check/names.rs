//! Names: what may be one, and which one was meant.

use super::Context;
use crate::config::{At, Lenient, Place, closest};
use crate::plan::presets;

/// The longest name; it becomes a folder's, and a header's value.
const MAX_LEN: usize = 64;

/// Checks a name that is a key or a value of the plan; `what` is such as `a fleet`.
pub(super) fn check(what: &str, name: &str, place: Place, cx: &mut Context) -> bool {
    let first = name.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
    let all = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if first && all && name.len() <= MAX_LEN {
        return true;
    }
    let hint = match sanitized(name) {
        better if better.is_empty() => format!("such as `{}`", what.rsplit(' ').next().unwrap_or("a")),
        better => format!("such as `{better}`"),
    };
    let shown: String = name.chars().take(80).collect();
    let message = format!(
        "`{shown}` cannot name {what}: expected up to {MAX_LEN} letters, digits, `-` and `_`, the first a letter or a digit"
    );
    cx.error(place, message, hint);
    false
}

/// Checks the name of a policy: as any other, or a preset's.
pub(super) fn check_policy(name: &str, place: Place, cx: &mut Context) {
    if !presets::names().any(|preset| preset == name) {
        check("a policy", name, place, cx);
    }
}

/// The plan's name: what it says, or its file's.
pub(super) fn plan_name(name: &Option<Lenient<At<String>>>, file: &str, cx: &mut Context) -> Option<String> {
    match name {
        Some(Lenient(given)) => {
            given.as_ref().filter(|At { value, place }| check("a plan", value, *place, cx)).map(|at| at.value.clone())
        }
        None => {
            let stem = file.rsplit(['/', '\\']).next().unwrap_or_default();
            let stem = stem.strip_suffix(".yaml").or(stem.strip_suffix(".yml")).unwrap_or(stem);
            Some(sanitized(stem)).filter(|stem| !stem.is_empty()).or_else(|| Some("plan".into()))
        }
    }
}

/// The nearest text that may be a name; empty where nothing is left.
fn sanitized(text: &str) -> String {
    let mapped: String =
        text.chars().take(MAX_LEN).map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' }).collect();
    mapped.trim_matches(['-', '_']).to_string()
}

/// Reports a name that no policy of the plan has, and no preset.
pub(super) fn unknown_policy(name: &str, place: Place, cx: &mut Context) {
    let known = cx.keys("policies");
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let near = closest(name, known.iter().copied()).is_none().then(|| closest(name, presets::names())).flatten();
    match near {
        Some(near) => {
            let shown: String = name.chars().take(80).collect();
            cx.error(place, format!("no policy is called `{shown}`"), format!("did you mean `{near}`?"));
        }
        None => unknown("policy", name, place, &known, cx),
    }
}

/// Reports a name that refers to nothing.
pub(super) fn unknown(what: &str, name: &str, place: Place, known: &[&str], cx: &mut Context) {
    let shown: String = name.chars().take(80).collect();
    let hint = match closest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => format!("the plan has no {what}"),
        None => format!("the plan has: {}", known.iter().take(30).copied().collect::<Vec<_>>().join(", ")),
    };
    cx.error(place, format!("no {what} is called `{shown}`"), hint);
}
