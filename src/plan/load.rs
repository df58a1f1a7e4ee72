//! From a plan's text to a plan: parse, override, resolve, read, check. Every stage reports all that it finds.

use super::check;
use super::error::{Diagnostics, PlanError};
use super::{Plan, RawPlan, emit, overrides, presets, vars, yaml};
use crate::config::{Concerns, Node, Place, Problems, Read, Source as TextSource, Value};
use sha2::{Digest, Sha256};

/// A plan as the user gives it.
pub struct Source<'a> {
    /// Its name, as shown in messages.
    pub file: &'a str,
    /// Its text.
    pub text: &'a str,
    /// The overrides of the command line, `key=value` each, in order.
    pub overrides: &'a [String],
    /// The environment: the value of a variable, none where it is not set.
    pub env: &'a dyn Fn(&str) -> Option<String>,
}

/// A plan that can be run, and what else its reader may want to know.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The plan.
    pub plan: Plan,
    /// What probably is not meant as it stands.
    pub warnings: Problems,
    /// The same as text, with places and snippets; empty where there are none.
    pub warnings_text: String,
    /// Of that text, what concerns a live run.
    pub live_warnings: String,
    /// Of that text, what concerns a simulated run.
    pub simulated_warnings: String,
    /// The plan as YAML, after variables and overrides, without `x-*` keys, its presets spelled out. Loading it gives the
    /// same plan, whatever a later version makes of a preset's name.
    pub effective: String,
    /// SHA-256 of the plan's text, in hexadecimal digits.
    pub sha256: String,
}

/// Loads a plan.
///
/// # Errors
/// Everything that is wrong with it, in one [`PlanError`].
pub fn load(source: &Source) -> Result<Loaded, PlanError> {
    let mut diagnostics = Diagnostics {
        file: source.file.to_string(),
        text: source.text.to_string(),
        overrides: source.overrides.to_vec(),
        ..Diagnostics::default()
    };
    let loaded = stages(source, &mut diagnostics);
    match loaded {
        Some((plan, effective)) if !diagnostics.problems.any_error() => Ok(Loaded {
            plan,
            warnings_text: diagnostics.to_string(),
            live_warnings: diagnostics.concerning(Concerns::Live).to_string(),
            simulated_warnings: diagnostics.concerning(Concerns::Simulated).to_string(),
            warnings: diagnostics.problems,
            sha256: Sha256::digest(effective.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect(),
            effective,
        }),
        _ => Err(PlanError::Invalid(Box::new(diagnostics))),
    }
}

/// The text of a plan file.
///
/// # Errors
/// A file that is too large, or not UTF-8, with the place of the first wrong byte.
pub fn decode(bytes: Vec<u8>, file: &str) -> Result<String, PlanError> {
    let mut problems = Problems::default();
    let start = Place { source: TextSource::File, line: 1, column: 1, len: 1 };
    if bytes.len() > yaml::MAX_BYTES {
        let message = format!("the file is too long: a plan may have {} bytes at most", yaml::MAX_BYTES);
        problems.error_with_hint(start, message, "is this the right file?");
        return Err(PlanError::Invalid(Box::new(Diagnostics { file: file.to_string(), problems, ..Default::default() })));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
        let before = text.get(..valid).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let place = Place { line: line as u32, column: column as u32, ..start };
        problems.error_with_hint(place, "this byte is not UTF-8", "save the file as UTF-8");
        PlanError::Invalid(Box::new(Diagnostics { file: file.to_string(), text, problems, ..Default::default() }))
    })
}

fn stages(source: &Source, diagnostics: &mut Diagnostics) -> Option<(Plan, String)> {
    let problems = &mut diagnostics.problems;
    let document = yaml::parse(source.text, TextSource::File, problems)?;
    diagnostics.uses = document.uses;
    let mut root = document.root;
    if !matches!(root.value, Value::Map(_)) {
        refuse_root(&root, problems);
        return None;
    }
    overrides::apply(&mut root, source.overrides, problems);
    vars::resolve(&mut root, source.env, &vars::Texts { file: source.text, overrides: source.overrides }, problems);
    if let Value::Map(entries) = &mut root.value {
        entries.retain(|(key, _)| !key.name.starts_with("x-"));
    }
    // An unresolved variable would only be reported again, as a value that does not fit its field.
    let sound = !problems.any_error();
    if sound {
        presets::expand(&mut root, problems);
    }
    let effective = emit::emit(&root);
    if effective.len() > yaml::MAX_BYTES {
        let message =
            format!("with its aliases spelled out the plan is {} bytes long, and may be {}", effective.len(), yaml::MAX_BYTES);
        problems.error_with_hint(root.place, message, "use fewer aliases of large values");
        return None;
    }
    if !sound {
        return None;
    }
    let raw = RawPlan::read(&root, problems)?;
    let plan = check::check(raw, &root, source.file, problems)?;
    Some((plan, effective))
}

fn refuse_root(root: &Node, problems: &mut Problems) {
    let message = match root.value {
        Value::Null => "the file is empty: expected a plan".to_string(),
        _ => format!("expected a plan: a map with version, target, fleets and length; found {}", root.kind()),
    };
    problems.error_with_hint(root.place, message, "`stormwake init` writes one to start from");
}
