//! Reading plain types from nodes. A reader reports all that is wrong and goes on; `None` means that it did.

use super::{Alternative, Field, Key, Node, Place, Problems, Shape, TimeScale, Value, closest};
use crate::time::{Rate, Share, Span};

/// A type that can be read from a configuration.
pub trait Read: Sized {
    /// Reads a node; on `None` at least one error was reported.
    fn read(node: &Node, problems: &mut Problems) -> Option<Self>;

    /// What it looks like.
    fn shape() -> Shape;

    /// The value of a field that is not there; `None` makes the field required.
    fn missing() -> Option<Self> {
        None
    }

    /// Puts it at another speed: multiplies durations, divides rates, and leaves everything else. Every type says what it does, so that none
    /// is forgotten.
    fn rescale(&mut self, by: TimeScale);
}

/// A record that may stand in another one's map, beside its fields.
pub trait Part: Read {
    /// Takes its fields out of a map; on `None` at least one error was reported. Does not check what must hold between them.
    fn take(node: &Node, fields: &mut Fields, problems: &mut Problems) -> Option<Self>;

    /// Its fields.
    fn fields() -> Vec<Field>;

    /// What must hold of and between its fields.
    ///
    /// # Errors
    /// A sentence that says what to write.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Takes a part out of a map and checks it.
pub fn read_part<T: Part>(node: &Node, fields: &mut Fields, problems: &mut Problems) -> Option<T> {
    let part = T::take(node, fields, problems)?;
    checked(part, node, problems)
}

/// What was taken out of a map, if it holds together.
pub fn checked<T: Part>(part: T, node: &Node, problems: &mut Problems) -> Option<T> {
    match part.check() {
        Ok(()) => Some(part),
        Err(message) => {
            problems.error(node.blamed(&message), message);
            None
        }
    }
}

/// A length of time that no scale changes: what it limits happens at its own speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealTime(pub Span);

impl Read for RealTime {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        Span::read(node, problems).map(Self)
    }
    fn shape() -> Shape {
        Span::shape()
    }
    fn rescale(&mut self, _by: TimeScale) {}
}

/// A value that remembers its place, for checks across fields.
#[derive(Clone, Debug, PartialEq)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub place: Place,
}

/// A value that may have been wrong: its errors are reported, and what stands beside it is still read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Lenient<T>(pub Option<T>);

/// A mapping from free names, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Table<T>(pub Vec<Entry<T>>);

/// An entry of a [`Table`].
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<T> {
    /// Its name.
    pub name: String,
    /// Where the name stands.
    pub place: Place,
    /// What it names.
    pub value: T,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Table<T> {
    /// The entry of a name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|e| e.name == name).map(|e| &e.value)
    }
}

/// The fields of a map while a record is read from it; what is never taken is an unknown key.
pub struct Fields<'a> {
    place: Place,
    entries: Vec<(&'a Key, &'a Node, bool)>,
    known: Vec<&'static str>,
    free: Option<&'static str>,
}

impl<'a> Fields<'a> {
    /// Opens a map. Nothing at all counts as an empty map.
    pub fn open(node: &'a Node, problems: &mut Problems) -> Option<Self> {
        let entries = match &node.value {
            Value::Map(entries) => entries.iter().map(|(k, v)| (k, v, false)).collect(),
            Value::Null => Vec::new(),
            _ => {
                problems.error(node.place, format!("expected a map, found {}", node.kind()));
                return None;
            }
        };
        Some(Self { place: node.place, entries, known: Vec::new(), free: None })
    }

    /// Lets keys with this prefix pass unread.
    pub fn allow_prefix(&mut self, prefix: &'static str) {
        self.free = Some(prefix);
    }

    /// Reads one field; `missing` gives the value where there is none.
    pub fn take<T: Read>(
        &mut self,
        name: &'static str,
        problems: &mut Problems,
        missing: impl FnOnce() -> Option<T>,
    ) -> Option<T> {
        let name = name.trim_start_matches("r#");
        self.known.push(name);
        if let Some(entry) = self.entries.iter_mut().find(|(key, _, _)| key.name == name) {
            entry.2 = true;
            return T::read(entry.1, problems);
        }
        let value = missing();
        if value.is_none() {
            problems.error(self.place, format!("`{name}` is missing: expected {}", describe(&T::shape())));
        }
        value
    }

    /// Reports every key that nothing has taken.
    pub fn close(self, problems: &mut Problems) {
        for (key, _, taken) in &self.entries {
            let free = self.free.is_some_and(|prefix| key.name.starts_with(prefix));
            if !taken && !free {
                unknown(key.place, "key", &key.name, &self.known, problems);
            }
        }
    }
}

fn unknown(place: Place, what: &str, word: &str, known: &[&'static str], problems: &mut Problems) {
    let shown: String = word.chars().take(60).collect();
    let message = format!("unknown {what} `{shown}`");
    match closest(word, known.iter().copied()) {
        Some(near) => problems.error_with_hint(place, message, format!("did you mean `{near}`?")),
        None => problems.error_with_hint(place, message, format!("expected one of: {}", known.join(", "))),
    }
}

/// What a shape is, in a few words.
fn describe(shape: &Shape) -> String {
    match shape {
        Shape::Text { what, examples, .. } => match examples.first() {
            Some(example) => format!("{what}, such as `{example}`"),
            None => (*what).to_string(),
        },
        Shape::Integer { min, max: u64::MAX } => format!("a whole number of {min} or more"),
        Shape::Integer { min, max } => format!("a whole number from {min} to {max}"),
        Shape::Number => "a number".into(),
        Shape::Bool => "true or false".into(),
        Shape::Keyword(words) => format!("one of {}", names(words)),
        Shape::List(_) => "a list".into(),
        Shape::Map(_) => "a map of names".into(),
        Shape::Record { fields, .. } => {
            let required: Vec<&str> = fields.iter().filter(|f| f.required).map(|f| f.name).collect();
            if required.is_empty() { "a map".into() } else { format!("a map with {}", required.join(", ")) }
        }
        Shape::Choice { alternatives, .. } => format!("a map with one of the keys {}", names(alternatives)),
        Shape::OneOf(shapes) => shapes.iter().map(describe).collect::<Vec<_>>().join(", or "),
    }
}

fn names(alternatives: &[Alternative]) -> String {
    alternatives.iter().map(|a| a.name).collect::<Vec<_>>().join(", ")
}

/// Reads a scalar through a parser whose error is a full sentence.
pub fn read_text<T: Read>(node: &Node, problems: &mut Problems, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
    let Value::Text(text) = &node.value else {
        problems.error(node.place, format!("expected {}, found {}", describe(&T::shape()), node.kind()));
        return None;
    };
    match parse(text) {
        Ok(value) => Some(value),
        Err(message) => {
            problems.error(node.place, message);
            None
        }
    }
}

/// Reads one of a set of words; gives its index.
pub fn read_keyword(node: &Node, words: &[&'static str], problems: &mut Problems) -> Option<usize> {
    let Value::Text(text) = &node.value else {
        problems.error(node.place, format!("expected one of {}, found {}", words.join(", "), node.kind()));
        return None;
    };
    let index = words.iter().position(|w| w == text);
    if index.is_none() {
        unknown(node.place, "word", text, words, problems);
    }
    index
}

/// Opens a one-key map (or a word alone, which stands for `word: {}`): the index of its key, and its value.
pub fn read_choice(node: &Node, words: &[&'static str], problems: &mut Problems) -> Option<(usize, Node)> {
    let (name, place, inner) = match &node.value {
        Value::Text(word) => (word, node.place, Node { value: Value::Null, place: node.place }),
        Value::Map(entries) if entries.len() == 1 => (&entries[0].0.name, entries[0].0.place, entries[0].1.clone()),
        Value::Map(entries) => {
            let message = format!("expected exactly one key, found {}", entries.len());
            problems.error_with_hint(node.place, message, format!("one of: {}", words.join(", ")));
            return None;
        }
        _ => {
            problems
                .error(node.place, format!("expected a map with one of the keys {}, found {}", words.join(", "), node.kind()));
            return None;
        }
    };
    match words.iter().position(|w| w == name) {
        Some(index) => Some((index, inner)),
        None => {
            unknown(place, "key", name, words, problems);
            None
        }
    }
}

impl<T: Read> Read for Option<T> {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        T::read(node, problems).map(Some)
    }
    fn shape() -> Shape {
        T::shape()
    }
    fn missing() -> Option<Self> {
        Some(None)
    }
    fn rescale(&mut self, by: TimeScale) {
        self.iter_mut().for_each(|value| value.rescale(by));
    }
}

impl<T: Read> Read for Box<T> {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        T::read(node, problems).map(Self::new)
    }
    fn shape() -> Shape {
        T::shape()
    }
    fn rescale(&mut self, by: TimeScale) {
        (**self).rescale(by);
    }
}

impl<T: Read> Read for At<T> {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        T::read(node, problems).map(|value| At { value, place: node.place })
    }
    fn shape() -> Shape {
        T::shape()
    }
    fn rescale(&mut self, by: TimeScale) {
        self.value.rescale(by);
    }
}

impl<T: Read> Read for Lenient<T> {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        Some(Lenient(T::read(node, problems)))
    }
    fn shape() -> Shape {
        T::shape()
    }
    fn rescale(&mut self, by: TimeScale) {
        self.0.rescale(by);
    }
}

impl<T: Read> Read for Vec<T> {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::List(items) = &node.value else {
            problems.error(node.place, format!("expected a list, found {}", node.kind()));
            return None;
        };
        let read: Vec<Option<T>> = items.iter().map(|item| T::read(item, problems)).collect();
        read.into_iter().collect()
    }
    fn shape() -> Shape {
        Shape::List(Box::new(T::shape()))
    }
    fn rescale(&mut self, by: TimeScale) {
        self.iter_mut().for_each(|value| value.rescale(by));
    }
}

impl<T: Read> Read for Table<T> {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            problems.error(node.place, format!("expected a map of names, found {}", node.kind()));
            return None;
        };
        let read: Vec<Option<Entry<T>>> = entries
            .iter()
            .map(|(key, node)| T::read(node, problems).map(|value| Entry { name: key.name.clone(), place: key.place, value }))
            .collect();
        read.into_iter().collect::<Option<Vec<_>>>().map(Table)
    }
    fn shape() -> Shape {
        Shape::Map(Box::new(T::shape()))
    }
    fn rescale(&mut self, by: TimeScale) {
        self.0.iter_mut().for_each(|entry| entry.value.rescale(by));
    }
}

impl Read for bool {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, |text| match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(format!("expected true or false, found `{text}`")),
        })
    }
    fn shape() -> Shape {
        Shape::Bool
    }
    fn rescale(&mut self, _by: TimeScale) {}
}

impl Read for String {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, |text| Ok(text.to_string()))
    }
    fn shape() -> Shape {
        Shape::Text { what: "a text", pattern: "", examples: &[] }
    }
    fn rescale(&mut self, _by: TimeScale) {}
}

macro_rules! whole_numbers {
    ($($ty:ty),*) => {$(
        impl Read for $ty {
            fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
                read_text(node, problems, |text| {
                    text.parse::<$ty>().map_err(|_| format!("expected a whole number from 0 to {}, found `{text}`", <$ty>::MAX))
                })
            }
            fn shape() -> Shape {
                Shape::Integer { min: 0, max: <$ty>::MAX as u64 }
            }
            fn rescale(&mut self, _by: TimeScale) {}
        }
    )*};
}
whole_numbers!(u8, u16, u32, u64);

impl Read for f64 {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, |text| match text.parse::<f64>() {
            Ok(n) if n.is_finite() => Ok(n),
            _ => Err(format!("expected a number, found `{text}`")),
        })
    }
    fn shape() -> Shape {
        Shape::Number
    }
    fn rescale(&mut self, _by: TimeScale) {}
}

impl Read for Span {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, Span::parse)
    }
    fn shape() -> Shape {
        Shape::Text {
            what: "a duration",
            pattern: r"^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h|d))+)$",
            examples: &["30s", "200ms", "1m30s"],
        }
    }
    fn rescale(&mut self, by: TimeScale) {
        *self = Span((by.time(self.0 as f64) + 0.5) as u64);
    }
}

impl Read for Rate {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, Rate::parse)
    }
    fn shape() -> Shape {
        Shape::Text { what: "a rate", pattern: r"^[0-9]+(\.[0-9]+)?/(s|m|h)$", examples: &["600/s", "30/m"] }
    }
    fn rescale(&mut self, by: TimeScale) {
        *self = Rate::per_second(by.rate(self.get())).unwrap_or(*self);
    }
}

impl Read for Share {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, Share::parse)
    }
    fn shape() -> Shape {
        Shape::Text { what: "a share", pattern: r"^[0-9]+(\.[0-9]+)?%$", examples: &["10%"] }
    }
    fn rescale(&mut self, _by: TimeScale) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Node {
        Node { value: Value::Text(text.into()), place: Place { line: 3, column: 4, ..Place::default() } }
    }

    #[test]
    fn a_lenient_value_reports_and_goes_on() {
        let mut problems = Problems::default();
        let read = Vec::<Lenient<Span>>::read(
            &Node { value: Value::List(vec![text("1s"), text("soon"), text("2s")]), place: Place::default() },
            &mut problems,
        );
        let kept: Vec<Option<Span>> = read.unwrap().into_iter().map(|lenient| lenient.0).collect();
        assert_eq!(kept, [Some(Span::from_secs(1)), None, Some(Span::from_secs(2))]);
        assert_eq!(problems.error_count(), 1);
    }

    #[test]
    fn a_place_is_found_by_its_path_or_the_nearest_above() {
        let key = |name: &str| Key { name: name.into(), place: Place::default() };
        let list = Node { value: Value::List(vec![text("x")]), place: Place { line: 2, ..Place::default() } };
        let root = Node { value: Value::Map(vec![(key("a"), list)]), place: Place { line: 1, ..Place::default() } };
        let line = |path: &[&str]| root.place_of(path).line;
        assert_eq!((line(&["a", "0"]), line(&["a", "7"]), line(&["b", "c"]), line(&[])), (3, 2, 1, 1));
    }
}
