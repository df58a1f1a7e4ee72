//! Bodies of calls: strict JSON as a tree that the records of a plan are read from. A thing's place is its path in the body.

use super::super::super::Refusal;
use super::super::super::json::Json;
use crate::config::{Key, Node, Place, Problems, Read, Source, Value};

/// The most values of a body.
const MAX_VALUES: usize = 20_000;
/// How deep a body may be nested.
const MAX_DEPTH: usize = 32;
/// The longest key, in bytes.
const MAX_KEY: usize = 1_000;

/// Something that is wrong with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Where in the body: `fault.status.code`; empty for all of it, or where it is not the body.
    pub place: String,
    /// What is wrong, and what was expected.
    pub message: String,
    /// How to mend it.
    pub remedy: String,
}

/// What a call is refused with: a status, and what is wrong, one thing at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The HTTP status.
    pub status: u16,
    /// What is wrong.
    pub wrongs: Vec<Wrong>,
}

/// What mends what says no better itself.
const REMEDY: &str = "GET /v1/openapi.json says what may stand where";

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        let remedy = match (refusal.status, refusal.error.as_str()) {
            (404, "proxy not found") => Some("GET /v1/proxies lists them"),
            (409, "proxy already exists") => Some("PATCH /v1/proxies/{name} changes it"),
            _ => refusal.hint(),
        };
        let status = match refusal.status {
            _ if refusal.environment => 409,
            // What Toxiproxy takes for its own failure is a bad address.
            500 => 400,
            status => status,
        };
        let (message, remedy) = match (remedy, refusal.error.rsplit_once(": start with ")) {
            (None, Some((message, start))) => (message.to_string(), format!("start with {start}")),
            (remedy, _) => (refusal.error.clone(), remedy.unwrap_or(REMEDY).to_string()),
        };
        // The number of the proxy among those changed at once is nothing that the caller wrote.
        let place: Vec<&str> = refusal.at.iter().map(String::as_str).filter(|part| part.parse::<usize>().is_err()).collect();
        Self { status, wrongs: vec![Wrong { place: place.join("."), message, remedy }] }
    }
}

/// A body as a tree: the line of a place is the number of its value, from 1.
pub struct Body {
    /// The tree.
    pub root: Node,
    /// By value: the number of the one that it stands in, and its key or index there.
    paths: Vec<(usize, String)>,
}

impl Body {
    /// Reads a body; one that is empty is an empty map.
    ///
    /// # Errors
    /// What is no JSON, or too much of it.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refused> {
        let bytes = if bytes.trim_ascii().is_empty() { b"{}" } else { bytes };
        let refused = |message: String, remedy: &str| Refused {
            status: 400,
            wrongs: vec![Wrong { place: String::new(), message, remedy: remedy.into() }],
        };
        if std::str::from_utf8(bytes).is_err() {
            return Err(refused("the body is not UTF-8".into(), "send JSON in UTF-8"));
        }
        let json =
            Json::parse_all(bytes).map_err(|error| refused(format!("the body is no JSON: {error}"), "send a JSON object"))?;
        let mut tree = Tree { paths: Vec::new(), problems: Problems::default(), full: false };
        let root = tree.node(json, 0, String::new(), 0);
        let body = Self { root, paths: tree.paths };
        if tree.full {
            let message =
                format!("too much: a body has {MAX_VALUES} values, {MAX_DEPTH} levels, and keys of {MAX_KEY} bytes at most");
            return Err(refused(message, "send less at once"));
        }
        if tree.problems.any_error() {
            return Err(body.refused(&tree.problems));
        }
        Ok(body)
    }

    /// Reads all of it as one thing.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read<T: Read>(&self) -> Result<T, Refused> {
        self.read_by(|problems| T::read(&self.root, problems))
    }

    /// The same with a reader of one's own.
    ///
    /// # Errors
    /// Everything that it says is wrong.
    pub fn read_by<T>(&self, read: impl FnOnce(&mut Problems) -> Option<T>) -> Result<T, Refused> {
        let mut problems = Problems::default();
        let value = read(&mut problems);
        match value {
            Some(value) if !problems.any_error() => Ok(value),
            _ => Err(self.refused(&problems)),
        }
    }

    fn refused(&self, problems: &Problems) -> Refused {
        let errors = problems.sorted().into_iter().filter(|problem| problem.severity == crate::config::Severity::Error);
        let wrong = |problem: &crate::config::Problem| Wrong {
            place: self.path(problem.place),
            message: problem.message.clone(),
            remedy: problem.hint.clone().unwrap_or_else(|| REMEDY.to_string()),
        };
        Refused { status: 400, wrongs: errors.map(wrong).collect() }
    }

    fn path(&self, place: Place) -> String {
        let mut parts = Vec::new();
        let mut at = place.line as usize;
        while let Some((parent, key)) =
            at.checked_sub(1).and_then(|index| self.paths.get(index)).filter(|(parent, _)| *parent > 0)
        {
            parts.push(key.as_str());
            at = *parent;
        }
        parts.reverse();
        parts.join(".")
    }
}

struct Tree {
    paths: Vec<(usize, String)>,
    problems: Problems,
    full: bool,
}

impl Tree {
    fn node(&mut self, json: Json, parent: usize, key: String, depth: usize) -> Node {
        let place = Place { source: Source::File, line: self.paths.len() as u32 + 1, column: 1, len: 1 };
        if self.full || self.paths.len() >= MAX_VALUES || depth > MAX_DEPTH || key.len() > MAX_KEY {
            self.full = true;
            return Node { value: Value::Null, place };
        }
        self.paths.push((parent, key));
        let own = place.line as usize;
        let value = match json {
            Json::Null => Value::Null,
            Json::Bool(truth) => Value::Text(truth.to_string()),
            Json::Number(text) | Json::Text(text) => Value::Text(text),
            Json::List(items) => {
                let items = items.into_iter().enumerate();
                Value::List(items.map(|(index, item)| self.node(item, own, index.to_string(), depth + 1)).collect())
            }
            Json::Map(entries) => self.map(entries, own, depth),
        };
        Node { value, place }
    }

    fn map(&mut self, entries: Vec<(String, Json)>, own: usize, depth: usize) -> Value {
        let mut seen = std::collections::BTreeSet::new();
        let mut map = Vec::with_capacity(entries.len());
        for (name, value) in entries {
            let node = self.node(value, own, name.clone(), depth + 1);
            if !seen.insert(name.clone()) {
                let shown: String = name.chars().take(60).collect();
                self.problems.error_with_hint(node.place, format!("the key `{shown}` is there twice"), "keep one of them");
                continue;
            }
            map.push((Key { name, place: node.place }, node));
        }
        Value::Map(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::ProxyFault;

    fn wrongs(text: &str) -> Vec<Wrong> {
        let body = Body::parse(text.as_bytes());
        body.and_then(|body| {
            body.read_by(|problems| {
                ProxyFault::sound(&body.root, crate::plan::Sees { requests: true, handshakes: false }, problems)
            })
        })
        .unwrap_err()
        .wrongs
    }

    #[test]
    fn what_is_wrong_has_its_path_and_a_remedy() {
        for (text, place, message, remedy) in [
            (r#"{"fault":{"status":{"code":"x"}}}"#, "fault.status.code", "a whole number", "openapi"),
            (r#"{"fault":{"status":{"code":700}}}"#, "fault.status", "200 to 599", "openapi"),
            (r#"{"fault":{"statsu":{}}}"#, "fault.statsu", "unknown key `statsu`", "status"),
            (r#"{"fault":{"reset":{"share":"0%"}}}"#, "fault.reset.share", "strikes nothing", "raise it"),
            (r#"{"fault":{"reset":{}},"for":30}"#, "for", "unit", ""),
            (r#"{"fault":{"reset":{}},"for":"0s"}"#, "for", "more than nothing", "30s"),
            (r#"{"fault":{"reset":{}},"at":"3s"}"#, "at", "unknown key `at`", ""),
            (r#"{"fault":{"reset":{}},"fault":{"hang":{}}}"#, "fault", "twice", "keep one"),
            (r#"{"fault":{"certificate":{"kind":"expired"}}}"#, "fault", "TLS handshakes", "refuse"),
            ("{}", "", "`fault` is missing", ""),
            ("[]", "", "a list", ""),
            ("{} {}", "", "no JSON", "JSON object"),
            ("{", "", "no JSON", ""),
        ] {
            let first = wrongs(text).remove(0);
            assert_eq!(first.place, place, "{text}: {first:?}");
            assert!(first.message.contains(message) && first.remedy.contains(remedy), "{text}: {first:?}");
        }
        assert_eq!(wrongs(r#"{"fault":{"status":{"code":700}},"for":"0","x":1}"#).len(), 2, "all that can be told at once is");
    }

    #[test]
    fn what_is_too_much_is_refused_as_a_whole() {
        let deep = format!("{}{}", "[".repeat(50), "]".repeat(50));
        let wide = format!("[{}1]", "1,".repeat(MAX_VALUES));
        let long = format!(r#"{{"{}":1}}"#, "k".repeat(MAX_KEY + 1));
        for text in [deep, wide, long] {
            let refused = Body::parse(text.as_bytes()).err().expect("it is too much");
            assert!(refused.wrongs[0].message.contains("too much"), "{refused:?}");
        }
        assert!(Body::parse(b"\"\xff\"").is_err());
        assert!(Body::parse(b" ").is_ok_and(|body| body.root.value == Value::Map(vec![])));
    }
}
