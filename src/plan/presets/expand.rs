//! How a plan uses a preset: before it is read, the preset's keys are laid under the plan's own.
//!
//! Maps merge key by key as deep as they go, so that `backoff: { exponential: { cap: 5s } }` changes the cap alone. Where
//! exactly one key may stand (a backoff, a budget's kind) another key replaces all of it. The word `none`, or nothing at
//! all, takes away what the preset says. What comes from a preset has the place of its name in the plan, so that whatever is
//! said of it points there.

use super::{Preset, named, names};
use crate::config::{Key, Node, Place, Problems, Read, Shape, Source, Value, closest};
use crate::plan::yaml;
use crate::policy::Policy;

/// The key of a policy that names a preset.
const PRESET: &str = "preset";
/// The word that takes away what the preset says.
pub(super) const NONE: &str = "none";
/// Keys of which exactly one stands in a map beside others: what a budget is, and what opens a breaker.
const KINDS: [&[&str]; 2] = [&["ratio", "bucket", "quota", "concurrent", "grpc"], &["failures", "rate", "above"]];

/// Expands every preset that a plan uses: in its policies, in policies that are spelled out in a fleet, a service's calls, a comparison or an
/// action, and where a preset's name stands in place of that of a policy.
pub fn expand(root: &mut Node, problems: &mut Problems) {
    let mut named = Vec::new();
    let Value::Map(sections) = &mut root.value else { return };
    for (section, node) in sections {
        match section.name.as_str() {
            "policies" => values(node).into_iter().for_each(|policy| policy_node(policy, problems)),
            "fleets" => {
                let fleets = values(node).into_iter();
                fleets.filter_map(|fleet| entry(fleet, "policy")).for_each(|node| either(node, &mut named, problems));
            }
            "compare" => compare(node, &mut named, problems),
            "target" => calls(node).into_iter().for_each(|policy| either(policy, &mut named, problems)),
            "timeline" => {
                let actions = values(node).into_iter().filter_map(|step| entry(step, "action")).flat_map(values);
                actions.filter_map(|action| entry(action, "policy")).for_each(|node| either(node, &mut named, problems));
            }
            _ => {}
        }
    }
    add(root, named);
}

/// The policies of a plan's effective text, spelled out: each by its name, and those without one by the fleet that has it
/// or by the step of the timeline that brings it, as `timeline.0`.
pub fn spelled_out(effective: &str) -> Vec<(String, Node)> {
    let mut problems = Problems::default();
    let Some(document) = yaml::parse(effective, Source::File, &mut problems) else { return Vec::new() };
    let mut root = document.root;
    expand(&mut root, &mut problems);
    let inline = |(name, node): (String, Node)| {
        let policy = node.get("policy").filter(|policy| matches!(policy.value, Value::Map(_)));
        policy.map(|policy| (name, policy.clone()))
    };
    let compare = root.get("compare");
    let candidates = entries(compare.and_then(|compare| compare.get("candidates")));
    let reference = compare.and_then(|compare| compare.get("reference")).cloned();
    let compared = reference.into_iter().chain(candidates.into_iter().map(|(_, node)| node));
    let steps = entries(root.get("timeline")).into_iter().flat_map(|(index, step)| {
        let named = move |(_, action): (String, Node)| (format!("timeline.{index}"), action);
        entries(step.get("action")).into_iter().map(named)
    });
    let target = root.get("target");
    let front =
        ["service", "model"].map(|key| target.and_then(|target| target.get(key)).map(|node| (key.to_string(), node.clone())));
    let services = front.into_iter().flatten().chain(entries(target.and_then(|target| target.get("services"))));
    let called = services.filter_map(|(name, service)| Some((format!("target.{name}"), service.get("calls")?.clone())));
    let mut found = entries(root.get("policies"));
    found.extend(called.filter_map(inline));
    found.extend(entries(root.get("fleets")).into_iter().filter_map(inline));
    found.extend(compared.flat_map(|candidate| entries(Some(&candidate))));
    found.extend(steps.filter_map(inline));
    found
}

/// What a map holds by its keys, or a list by its indexes.
fn entries(node: Option<&Node>) -> Vec<(String, Node)> {
    match node.map(|node| &node.value) {
        Some(Value::Map(entries)) => entries.iter().map(|(key, node)| (key.name.clone(), node.clone())).collect(),
        Some(Value::List(items)) => items.iter().enumerate().map(|(index, node)| (index.to_string(), node.clone())).collect(),
        _ => Vec::new(),
    }
}

fn compare(node: &mut Node, named: &mut Vec<(String, Place)>, problems: &mut Problems) {
    let mut candidates: Vec<&mut Node> = Vec::new();
    if let Value::Map(entries) = &mut node.value {
        for (key, node) in entries {
            match key.name.as_str() {
                "reference" => candidates.push(node),
                "candidates" => candidates.extend(values(node)),
                _ => {}
            }
        }
    }
    for candidate in candidates {
        match &candidate.value {
            Value::Text(name) => named.push((name.clone(), candidate.place)),
            _ => values(candidate).into_iter().for_each(|policy| policy_node(policy, problems)),
        }
    }
}

/// The policies of a target's services.
fn calls(target: &mut Node) -> Vec<&mut Node> {
    let Value::Map(entries) = &mut target.value else { return Vec::new() };
    let services = entries.iter_mut().flat_map(|(key, node)| match key.name.as_str() {
        "service" | "model" => vec![node],
        "services" => values(node),
        _ => Vec::new(),
    });
    services.filter_map(|service| entry(service, "calls")).filter_map(|calls| entry(calls, "policy")).collect()
}

/// What a map or a list holds.
fn values(node: &mut Node) -> Vec<&mut Node> {
    match &mut node.value {
        Value::Map(entries) => entries.iter_mut().map(|(_, node)| node).collect(),
        Value::List(items) => items.iter_mut().collect(),
        Value::Null | Value::Text(_) => Vec::new(),
    }
}

fn entry<'a>(node: &'a mut Node, key: &str) -> Option<&'a mut Node> {
    match &mut node.value {
        Value::Map(entries) => entries.iter_mut().find(|(k, _)| k.name == key).map(|(_, node)| node),
        _ => None,
    }
}

/// A policy by name, or spelled out.
fn either(node: &mut Node, named: &mut Vec<(String, Place)>, problems: &mut Problems) {
    match &node.value {
        Value::Text(name) => named.push((name.clone(), node.place)),
        _ => policy_node(node, problems),
    }
}

/// Presets that stand where a policy's name does become policies of the plan.
fn add(root: &mut Node, used: Vec<(String, Place)>) {
    for (name, place) in used {
        let there = root.get("policies").is_some_and(|policies| policies.get(&name).is_some());
        let Some(preset) = named(&name).filter(|_| !there) else { continue };
        let policy = placed(preset.node, place);
        let Value::Map(sections) = &mut root.value else { return };
        if !sections.iter().any(|(key, _)| key.name == "policies") {
            let key = Key { name: "policies".into(), place };
            sections.push((key, Node { value: Value::Map(Vec::new()), place }));
        }
        let policies = sections.iter_mut().find(|(key, _)| key.name == "policies");
        if let Some((_, Node { value: Value::Map(entries), .. })) = policies {
            entries.push((Key { name, place }, policy));
        }
    }
}

/// Lays the preset of a policy, if it names one, under its own keys.
fn policy_node(node: &mut Node, problems: &mut Problems) {
    let Value::Map(entries) = &mut node.value else { return };
    let Some(index) = preset_key(entries, problems) else { return };
    let (_, name) = entries.remove(index);
    let own = Node { value: Value::Map(std::mem::take(entries)), place: node.place };
    let Some(preset) = resolve(&name, problems) else { return };
    *node = Node { place: node.place, ..merge(&Policy::shape(), placed(preset.node, name.place), own) };
}

/// Which of a policy's keys names its preset; a key that was probably meant to is reported, and taken for it.
fn preset_key(entries: &[(Key, Node)], problems: &mut Problems) -> Option<usize> {
    if let Some(index) = entries.iter().position(|(key, _)| key.name == PRESET) {
        return Some(index);
    }
    let Shape::Record { fields, .. } = Policy::shape() else { return None };
    let unknown = |name: &str| !fields.iter().any(|field| field.name == name);
    let index = entries.iter().position(|(key, _)| unknown(&key.name) && closest(&key.name, [PRESET]).is_some())?;
    let key = &entries[index].0;
    problems.error_with_hint(key.place, format!("unknown key `{}`", key.name), format!("did you mean `{PRESET}`?"));
    Some(index)
}

/// The preset that was named. One that is not there is reported, and the first stands in for it, so that the rest of the
/// policy is not blamed for what is missing now.
fn resolve(name: &Node, problems: &mut Problems) -> Option<Preset> {
    let stand_in = || names().next().and_then(named);
    let Value::Text(text) = &name.value else {
        problems.error(name.place, format!("expected the name of a preset, found {}", name.kind()));
        return stand_in();
    };
    named(text).or_else(|| {
        let shown: String = text.chars().take(80).collect();
        problems.error_with_hint(name.place, format!("no preset is called `{shown}`"), suggestion(text));
        stand_in()
    })
}

/// What was probably meant by a name that no preset has.
pub fn suggestion(name: &str) -> String {
    match closest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`stormwake policies` lists them".into(),
    }
}

/// A node that comes from a preset, at the place of the preset's name.
fn placed(mut node: Node, place: Place) -> Node {
    node.place = place;
    node.value = match node.value {
        Value::List(items) => Value::List(items.into_iter().map(|item| placed(item, place)).collect()),
        Value::Map(entries) => {
            Value::Map(entries.into_iter().map(|(key, node)| (Key { place, ..key }, placed(node, place))).collect())
        }
        other => other,
    };
    node
}

/// `own` over `base`.
fn merge(shape: &Shape, base: Node, own: Node) -> Node {
    let place = own.place;
    let own = match own.value {
        Value::Map(own) => own,
        value => return Node { value, place },
    };
    let base = match (shape, base.value) {
        (Shape::Record { .. } | Shape::Map(_), Value::Map(base)) if !other_kind(&base, &own) => base,
        (Shape::Choice { .. }, Value::Map(base)) if same_key(&base, &own) => base,
        _ => Vec::new(),
    };
    let value = own.into_iter().fold(base, |merged, entry| lay(shape, merged, entry));
    Node { value: Value::Map(value), place }
}

/// Lays one entry over those that are there. What takes away something that is not there changes nothing.
fn lay(shape: &Shape, mut merged: Vec<(Key, Node)>, (key, node): (Key, Node)) -> Vec<(Key, Node)> {
    let inner = inner(shape, &key.name);
    let taken_away = match &node.value {
        // Of several alternatives, the one that stands there without more is meant.
        _ if matches!(shape, Shape::Choice { .. }) || is_unknown(shape, &key.name) => false,
        Value::Null => true,
        Value::Text(word) => word == NONE && !inner.as_ref().is_some_and(has_none),
        _ => false,
    };
    let index = merged.iter().position(|(known, _)| known.name == key.name);
    let base = index.map_or(Node { value: Value::Null, place: node.place }, |index| merged.remove(index).1);
    if !taken_away {
        let node = inner.map_or(node.clone(), |inner| merge(&inner, base, node));
        merged.insert(index.unwrap_or(merged.len()), (key, node));
    }
    merged
}

/// Whether a record has no such key, which its reader will say.
fn is_unknown(shape: &Shape, key: &str) -> bool {
    matches!(shape, Shape::Record { fields, .. } if !fields.iter().any(|field| field.name == key))
}

/// The shape of an entry.
fn inner(shape: &Shape, key: &str) -> Option<Shape> {
    match shape {
        Shape::Record { fields, .. } => fields.iter().find(|field| field.name == key).map(|field| field.shape.clone()),
        Shape::Choice { alternatives, .. } => alternatives.iter().find(|a| a.name == key)?.shape.clone(),
        Shape::Map(inner) => Some((**inner).clone()),
        _ => None,
    }
}

/// Whether `none` is a value of its own there: a backoff or a jitter.
pub(super) fn has_none(shape: &Shape) -> bool {
    match shape {
        Shape::Choice { alternatives, .. } | Shape::Keyword(alternatives) => alternatives.iter().any(|a| a.name == NONE),
        _ => false,
    }
}

fn same_key(base: &[(Key, Node)], own: &[(Key, Node)]) -> bool {
    matches!((base, own), ([(base, _)], [(own, _)]) if base.name == own.name)
}

/// Whether `own` is a budget or a breaker of another kind than `base`.
fn other_kind(base: &[(Key, Node)], own: &[(Key, Node)]) -> bool {
    let of = |kinds: &[&'static str], entries: &[(Key, Node)]| {
        kinds.iter().copied().find(|kind| entries.iter().any(|(key, _)| key.name == *kind))
    };
    KINDS.iter().any(|kinds| matches!((of(kinds, base), of(kinds, own)), (Some(base), Some(own)) if base != own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{emit, load};

    fn source(text: &str) -> crate::plan::Source<'_> {
        crate::plan::Source { file: "p.yaml", text, overrides: &[], env: &|_| None }
    }

    /// A policy of a plan, expanded, as YAML of one line per leaf.
    fn expanded(policy: &str) -> Result<String, String> {
        let mut problems = Problems::default();
        let mut root = yaml::parse(&format!("policies: {{ p: {policy} }}"), Source::File, &mut problems).unwrap().root;
        expand(&mut root, &mut problems);
        match problems.sorted().first() {
            Some(problem) => Err(format!("{} / {}", problem.message, problem.hint.clone().unwrap_or_default())),
            None => Ok(emit::emit(root.get("policies").unwrap().get("p").unwrap())),
        }
    }

    #[test]
    fn any_field_is_overridden_and_the_rest_stays() {
        let plain = expanded("{ preset: stripe }").unwrap();
        assert!(plain.contains("attempts: 3\n") && plain.contains("    floor: 500ms\n") && !plain.contains("preset"), "{plain}");
        for (own, with, without) in [
            ("attempts: 9", "attempts: 9\n", "attempts: 3\n"),
            ("backoff: { exponential: { cap: 9s } }", "    cap: 9s\n    jitter: equal\n    floor: 500ms\n", "cap: 5s"),
            ("backoff: { exponential: { floor: none } }", "    jitter: equal\n", "floor"),
            ("backoff: { exponential: { jitter: none } }", "    jitter: none\n", "equal"),
            ("backoff: { fixed: { delay: 1s } }", "backoff:\n  fixed:\n    delay: 1s\n", "exponential"),
            ("backoff: none", "backoff: none\n", "exponential"),
            ("retry_on: [timeout]", "retry_on:\n  - timeout\n", "409"),
            ("max_elapsed: 7s", "max_elapsed: 7s\n", "deadline"),
        ] {
            let found = expanded(&format!("{{ {own}, preset: stripe }}")).unwrap();
            assert!(found.contains(with) && !found.contains(without), "{own}\n{found}");
        }
        for (own, with, without) in [
            ("budget: { tier: fleet }", "budget:\n  ratio: 20%\n  window: 10s\n  min_per_second: 10\n  tier: fleet\n", "client"),
            ("budget: { bucket: { deposit: 1%, burst: 2 }, tier: fleet }", "    burst: 2\n", "ratio"),
            ("budget: none", "attempts: 4\n", "budget"),
            ("budget:", "attempts: 4\n", "budget"),
            ("on: { 429: { retry: false } }", "on:\n  429:\n    retry: false\n", "preset"),
        ] {
            let found = expanded(&format!("{{ preset: finagle, {own} }}")).unwrap();
            assert!(found.contains(with) && !found.contains(without), "{own}\n{found}");
        }
    }

    #[test]
    fn none_takes_away_what_may_be_there_and_changes_nothing_where_it_is_not() {
        let keys = ["deadline", "max_elapsed", "retry_on", "on", "retry_after", "budget", "breaker", "throttle", "hedge"];
        for name in names() {
            for key in keys {
                let read = |policy: &str| {
                    let text = format!(
                        "{PLAN}fleets: {{ a: {{ clients: 9, policy: {policy}, load: {{ poisson: {{ rate: 20/s }} }} }} }}\n"
                    );
                    load(&source(&text)).unwrap_or_else(|error| panic!("{policy}: {error}")).plan.fleets[0].policy.clone()
                };
                let found = read(&format!("{{ preset: {name}, {key}: none }}"));
                let has = named(name).unwrap().node.get(key).is_some();
                assert!(has || found == read(&format!("{{ preset: {name} }}")), "{name} {key}");
            }
        }
        for own in ["linear: { base: 1s, cap: none, jitter: { full: } }", "exponential: { base: 1s, cap: none, floor: none }"] {
            let found = expanded(&format!("{{ preset: finagle, backoff: {{ {own} }}, hedge: none }}")).unwrap();
            assert!(!found.contains("cap") && !found.contains("floor") && !found.contains("hedge"), "{found}");
            assert_eq!(found.contains("full: null"), own.contains("full"), "{found}");
        }
        assert!(expanded("{ preset: finagle, budgt: none }").unwrap().contains("budgt"), "its reader will say");
    }

    #[test]
    fn treatments_and_breakers_are_overridden_too() {
        let found = expanded("{ preset: aws-standard-2.1, on: { 429: { cost: 9 }, 503: { retry: false } } }").unwrap();
        for want in ["    cost: 9\n", "        base: 1s\n", "  503:\n    retry: false\n"] {
            assert!(found.contains(want), "{want}\n{found}");
        }
        assert!(!expanded("{ preset: aws-standard-2.1, on: { 429: none } }").unwrap().contains("cost: 5"));
        let found = expanded("{ preset: resilience4j-breaker, breaker: { failures: 5, tier: fleet } }").unwrap();
        assert!(found.contains("breaker:\n  failures: 5\n  tier: fleet\n"), "{found}");
    }

    #[test]
    fn a_preset_that_is_not_there_is_told_and_nothing_else() {
        for (policy, want) in [
            ("{ preset: stripes }", "no preset is called `stripes` / did you mean `stripe`?"),
            ("{ preset: aws-standard }", "no preset is called `aws-standard` / did you mean `aws-standard-2"),
            ("{ preset: my-own-thing }", "/ `stormwake policies` lists them"),
            ("{ preset: [stripe] }", "expected the name of a preset, found a list"),
            ("{ prest: stripe }", "unknown key `prest` / did you mean `preset`?"),
        ] {
            let message = expanded(policy).unwrap_err();
            assert!(message.contains(want), "{policy}: {message}");
        }
        let text = "version: 1\nlength: 1m\ntarget: { service: { servers: 1, service_time: { exponential: { mean: 1ms } } } }\n\
                    fleets: { a: { clients: 1, policy: { preset: strip }, load: { poisson: { rate: 1/s } } } }\n";
        let error = load(&source(text)).unwrap_err();
        assert_eq!(error.diagnostics().problems.error_count(), 1, "{error}");
    }

    const PLAN: &str =
        "version: 1\nlength: 10m\nseed: 3\ntarget: { service: { servers: 1, service_time: { exponential: { mean: 1ms } } } }\n";

    #[test]
    fn a_name_stands_wherever_a_policy_may() {
        let text = format!(
            "{PLAN}policies: {{ own: {{ preset: polly-v8, attempts: 2 }}, stripe: {{ attempts: 7, timeout: 1s }} }}\n\
             fleets:\n  a: {{ clients: 9, policy: aws-standard-2.1, load: {{ poisson: {{ rate: 1/s }} }} }}\n\
             \x20 b: {{ clients: 9, policy: stripe, load: {{ poisson: {{ rate: 1/s }} }} }}\n\
             \x20 c: {{ clients: 9, policy: {{ preset: envoy, timeout: 9s }}, load: {{ poisson: {{ rate: 1/s }} }} }}\n\
             compare: {{ fleet: a, reference: urllib3, candidates: [own, polly-v8, {{ x: {{ preset: stripe, attempts: 2 }} }}] }}\n\
             timeline:\n  - {{ at: 5m, action: {{ set_policy: {{ fleet: b, policy: {{ preset: envoy, attempts: 2 }} }} }} }}\n\
             \x20 - {{ at: 6m, action: {{ set_policy: {{ fleet: a, policy: rust-backoff }} }} }}\n"
        );
        let loaded = load(&source(&text)).unwrap_or_else(|e| panic!("{e}"));
        let fleet = |index: usize| &loaded.plan.fleets[index];
        assert_eq!(
            (fleet(0).policy_name.as_str(), &fleet(0).policy.on),
            ("aws-standard-2.1", &named("aws-standard-2.1").unwrap().policy.on)
        );
        assert!(fleet(0).policy.budget.as_ref().is_some_and(|budget| budget.place.line == 7), "said of where the name stands");
        assert_eq!(fleet(1).policy.attempts, crate::policy::Attempts::Limited(7), "the plan's own comes first");
        assert_eq!(fleet(2).policy.timeout, crate::time::Span::from_secs(9));
        let compare = loaded.plan.compare.as_ref().unwrap();
        assert_eq!(compare.reference.policy, named("urllib3").unwrap().policy);
        let attempts: Vec<_> = compare.candidates.iter().map(|candidate| candidate.policy.attempts).collect();
        assert_eq!(attempts, [2, 4, 2].map(crate::policy::Attempts::Limited));
        assert!(!loaded.effective.contains("preset:"), "what a preset means now is in it: {}", loaded.effective);
        let again = load(&source(&loaded.effective)).unwrap();
        let shapes = |plan: &crate::plan::Plan| {
            plan.fleets.iter().map(|f| (f.policy.attempts, f.policy.backoff.clone())).collect::<Vec<_>>()
        };
        assert_eq!((again.effective, shapes(&again.plan)), (loaded.effective.clone(), shapes(&loaded.plan)));
        let names: Vec<String> = spelled_out(&loaded.effective).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["own", "stripe", "aws-standard-2.1", "urllib3", "polly-v8", "rust-backoff", "c", "x", "timeline.0"]);
        for (policy, want) in [("urlib3", "did you mean `urllib3`?"), ("owm", "did you mean `own`?")] {
            let text = text.replace("reference: urllib3", &format!("reference: {policy}"));
            let error = load(&source(&text)).unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        }
    }

    #[test]
    fn every_preset_is_a_policy_without_a_warning() {
        for name in names() {
            let text =
                format!("{PLAN}fleets: {{ a: {{ clients: 9, policy: {name}, load: {{ poisson: {{ rate: 20/s }} }} }} }}\n");
            let loaded = load(&source(&text)).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(loaded.warnings_text, "", "{name}");
            assert_eq!(loaded.plan.fleets[0].policy_name, name);
            let preset = named(name).unwrap();
            for text in [&preset.client, &preset.version, &preset.summary, &preset.source, &preset.note] {
                assert!(!text.trim().is_empty(), "{name}");
            }
        }
    }
}
