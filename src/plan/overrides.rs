//! `--set key=value`: overrides of the command line. A key is a dotted path; items of a list go by their `name`, or
//! by their index from 0. Maps are made where there are none. A value is one YAML value, flow style included.

use super::yaml;
use crate::config::{Key, Node, Place, Problems, Source, Value, closest};

/// A part of a path, and where it stands in its override.
struct Part<'a> {
    name: &'a str,
    place: Place,
}

/// Maps of the plan whose keys are names of its author: a path through them does not make new ones.
const NAMED: [&str; 2] = ["fleets", "policies"];

/// Applies every override to the tree, in order.
pub fn apply(root: &mut Node, overrides: &[String], problems: &mut Problems) {
    for (n, text) in overrides.iter().enumerate() {
        let source = Source::Override(u32::try_from(n).unwrap_or(u32::MAX));
        if let Some((path, value)) = parse(text, source, problems) {
            set(root, &path, value, problems);
        }
    }
}

/// The single value that a plan, as [`Loaded::effective`](super::Loaded::effective) gives it, has at the key of an override; none
/// where it has none, or more than one value.
pub fn value_of(effective: &str, key: &str) -> Option<String> {
    let mut node = &yaml::parse(effective, Source::File, &mut Problems::default())?.root;
    for part in key.split('.') {
        node = match &node.value {
            Value::List(items) => &items[find_item(items, part)?],
            _ => node.get(part)?,
        };
    }
    match &node.value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    }
}

fn parse<'a>(text: &'a str, source: Source, problems: &mut Problems) -> Option<(Vec<Part<'a>>, Node)> {
    let whole = Place { source, line: 1, column: 1, len: count(text.lines().next().unwrap_or_default()) };
    let Some((key, value)) = text.split_once('=') else {
        let hint = "write `--set length=2m`, `--set fleets.phones.clients=100` or `--set timeline.block.for=30s`";
        problems.error_with_hint(whole, "expected `key=value`", hint);
        return None;
    };
    let mut path = Vec::new();
    let mut column = 1;
    for name in key.split('.') {
        let place = Place { source, line: 1, column, len: count(name) };
        column += count(name) + 1;
        if name.trim().is_empty() || name != name.trim() {
            problems.error_with_hint(place, "a part of the key is empty", "write it like `fleets.phones.clients`");
            return None;
        }
        path.push(Part { name, place });
    }
    parse_value(value, source, column - 1, problems).map(|value| (path, value))
}

fn count(text: &str) -> u32 {
    u32::try_from(text.chars().count()).unwrap_or(u32::MAX)
}

/// Reads a value; `before` is the column of the `=`.
fn parse_value(text: &str, source: Source, before: u32, problems: &mut Problems) -> Option<Node> {
    let place = Place { source, line: 1, column: before + 1, len: count(text) };
    if text.trim().is_empty() {
        return Some(Node { value: Value::Null, place });
    }
    // What YAML gives a meaning that has none here (block texts, aliases, tags) is text: `>= 5%` needs no quotes.
    if text.trim_start().starts_with(['>', '|', '*', '&', '@', '%', '`', '!']) {
        return Some(Node { value: Value::Text(text.trim().to_string()), place });
    }
    let mut found = Problems::default();
    let document = yaml::parse(text, source, &mut found);
    for problem in found.sorted() {
        let place = shifted(problem.place, before);
        match &problem.hint {
            Some(hint) => problems.error_with_hint(place, problem.message.clone(), hint.clone()),
            None => problems.error(place, problem.message.clone()),
        }
    }
    let mut root = document?.root;
    shift(&mut root, before);
    Some(root)
}

fn shifted(place: Place, by: u32) -> Place {
    if place.line > 1 { place } else { Place { column: place.column.saturating_add(by), ..place } }
}

fn shift(node: &mut Node, by: u32) {
    node.place = shifted(node.place, by);
    match &mut node.value {
        Value::Null | Value::Text(_) => {}
        Value::List(items) => items.iter_mut().for_each(|item| shift(item, by)),
        Value::Map(entries) => entries.iter_mut().for_each(|(key, value)| {
            key.place = shifted(key.place, by);
            shift(value, by);
        }),
    }
}

fn set(root: &mut Node, path: &[Part], value: Node, problems: &mut Problems) {
    let mut node = root;
    for (depth, part) in path.iter().enumerate() {
        match child(node, &path[..depth], part, depth + 1 == path.len()) {
            Ok(child) => node = child,
            Err((message, hint)) => {
                problems.error_with_hint(part.place, message, hint);
                return;
            }
        }
    }
    *node = value;
}

/// The node that a part leads to, made where it may be.
fn child<'a>(node: &'a mut Node, path: &[Part], part: &Part, last: bool) -> Result<&'a mut Node, (String, String)> {
    let parent = path.iter().map(|p| p.name).collect::<Vec<_>>().join(".");
    if node.value == Value::Null {
        node.value = Value::Map(Vec::new());
    }
    match &mut node.value {
        Value::Map(entries) => match entries.iter().position(|(key, _)| key.name == part.name) {
            Some(index) => Ok(&mut entries[index].1),
            None if !last && NAMED.contains(&parent.as_str()) => {
                let names: Vec<&str> = entries.iter().map(|(key, _)| key.name.as_str()).collect();
                Err(no_such(&parent, part.name, &names))
            }
            None => {
                let key = Key { name: part.name.to_string(), place: part.place };
                entries.push((key, Node { value: Value::Null, place: part.place }));
                entries.last_mut().map(|(_, value)| value).ok_or_else(|| no_such(&parent, part.name, &[]))
            }
        },
        Value::List(items) => match find_item(items, part.name) {
            Some(index) => Ok(&mut items[index]),
            None => {
                let indexes: Vec<String> = (0..items.len().min(20)).map(|n| n.to_string()).collect();
                let names = items.iter().filter_map(item_name).chain(indexes.iter().map(String::as_str));
                Err(no_such(&parent, part.name, &names.collect::<Vec<_>>()))
            }
        },
        Value::Text(_) | Value::Null => {
            let hint = format!("set it whole: `--set {parent}={{{}: …}}`", part.name);
            Err((format!("`{parent}` is a single value and has no `{}`", part.name), hint))
        }
    }
}

fn find_item(items: &[Node], name: &str) -> Option<usize> {
    let named = items.iter().position(|item| item_name(item) == Some(name));
    named.or_else(|| name.parse::<usize>().ok().filter(|index| *index < items.len()))
}

/// An item's `name`, or, for a step of the timeline without one, the key of its fault.
fn item_name(item: &Node) -> Option<&str> {
    let text = |node: &'_ Node| matches!(node.value, Value::Text(_));
    match (item.get("name"), item.get("fault")) {
        (Some(Node { value: Value::Text(name), .. }), _) => Some(name),
        (_, Some(Node { value: Value::Map(fault), .. })) => fault.first().map(|(key, _)| key.name.as_str()),
        (_, Some(fault)) if text(fault) => match &fault.value {
            Value::Text(word) => Some(word),
            _ => None,
        },
        _ => None,
    }
}

fn no_such(parent: &str, name: &str, names: &[&str]) -> (String, String) {
    let index = name.parse::<u64>().is_ok();
    let hint = match closest(name, names.iter().copied()).filter(|_| !index) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.is_empty() => "it is empty".to_string(),
        None => format!("it has: {}", names.join(", ")),
    };
    (format!("`{parent}` has no `{name}`"), hint)
}

#[cfg(test)]
mod tests {
    use super::super::emit::emit;
    use super::*;

    const PLAN: &str = "length: 8m\nfleets:\n  phones: { clients: 10 }\ntimeline:\n  - { name: block, for: 2m }\n  - { fault: { hang: {} } }\nlist: [a, b]\n";

    fn applied(overrides: &[&str]) -> Result<String, Vec<(u32, String)>> {
        let mut problems = Problems::default();
        let mut root = yaml::parse(PLAN, Source::File, &mut problems).unwrap().root;
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        apply(&mut root, &overrides, &mut problems);
        if problems.any_error() {
            let list = problems.sorted();
            return Err(list
                .iter()
                .map(|p| (p.place.column, format!("{} / {}", p.message, p.hint.clone().unwrap_or_default())))
                .collect());
        }
        Ok(emit(&root))
    }

    #[test]
    fn overrides_reach_every_place() {
        for (text, want) in [
            ("length=2m", "length: 2m\n"),
            ("fleets.phones.clients=99", "clients: 99\n"),
            ("timeline.block.for=30s", "for: 30s\n"),
            ("timeline.0.for=31s", "for: 31s\n"),
            ("timeline.hang.at=1s", "at: 1s\n"),
            ("list.1=c", "- c\n"),
            ("recovery.within=1m", "recovery:\n  within: 1m\n"),
            ("fleets.more={clients: 1, load: {closed: {}}}", "more:\n    clients: 1\n"),
            ("a.b=>= 5%", "b: \">= 5%\"\n"),
            ("a.b=*.internal", "b: \"*.internal\"\n"),
            ("a.b=x=y", "b: \"x=y\"\n"),
            ("a.b=", "b: null\n"),
        ] {
            let effective = applied(&[text]).unwrap();
            assert!(effective.contains(want), "{text}:\n{effective}");
        }
    }

    #[test]
    fn a_value_is_found_where_an_override_would_set_it() {
        for (key, wanted) in [
            ("length", Some("8m")),
            ("fleets.phones.clients", Some("10")),
            ("timeline.block.for", Some("2m")),
            ("timeline.0.for", Some("2m")),
            ("list.1", Some("b")),
            ("timeline.bock.for", None),
            ("fleets.phones", None),
            ("length.x", None),
            ("", None),
        ] {
            assert_eq!(value_of(PLAN, key).as_deref(), wanted, "{key}");
        }
    }

    #[test]
    fn a_later_override_wins() {
        assert!(applied(&["length=2m", "length=3m"]).unwrap().contains("length: 3m"));
    }

    #[test]
    fn wrong_overrides_say_where_and_what() {
        for (text, column, want) in [
            ("length", 1, "expected `key=value`"),
            ("=1", 1, "part of the key is empty"),
            ("a..b=1", 3, "part of the key is empty"),
            ("fleets.phone.clients=9", 8, "did you mean `phones`?"),
            ("timeline.bock.for=9s", 10, "did you mean `block`?"),
            ("timeline.7.for=9s", 10, "it has: block, hang, 0, 1"),
            ("length.x=1", 8, "`length` is a single value"),
            ("a=[1, 2", 3, "ends in the middle|not YAML"),
        ] {
            let errors = applied(&[text]).unwrap_err();
            assert!(want.split('|').any(|want| errors[0].1.contains(want)), "{text}: {errors:?}");
            if column != 3 {
                assert_eq!(errors[0].0, column, "{text}: {errors:?}");
            }
        }
    }

    #[test]
    fn places_count_in_the_override() {
        let mut problems = Problems::default();
        let mut root = yaml::parse(PLAN, Source::File, &mut problems).unwrap().root;
        apply(&mut root, &["length=2m".into(), "a.b={c: d}".into()], &mut problems);
        let place = root.get("length").unwrap().place;
        assert_eq!((place.source, place.line, place.column, place.len), (Source::Override(0), 1, 8, 2));
        let inner = root.get("a").unwrap().get("b").unwrap().get("c").unwrap().place;
        assert_eq!((inner.source, inner.line, inner.column), (Source::Override(1), 1, 9));
    }
}
