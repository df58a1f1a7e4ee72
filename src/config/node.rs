//! The tree that a configuration file becomes, each node with its place.

/// Where a text came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The file itself.
    #[default]
    File,
    /// The n-th override of the command line, from 0.
    Override(u32),
}

/// A stretch of a source: 1-based line and column (in characters), and its length in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The source that line and column count in.
    pub source: Source,
    /// 1-based; 0 where unknown.
    pub line: u32,
    /// 1-based; 0 where unknown.
    pub column: u32,
    /// Characters; 0 where unknown.
    pub len: u32,
}

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What stands there.
    pub value: Value,
    /// Where.
    pub place: Place,
}

/// What a node holds. Scalars stay text: the reader of a field knows what it should be.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing, `~` or `null`.
    Null,
    /// A scalar as text.
    Text(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order of the file, its keys unique.
    Map(Vec<(Key, Node)>),
}

/// The key of a mapping and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// The key's text.
    pub name: String,
    /// Where it stands.
    pub place: Place,
}

impl Node {
    /// What kind of thing this is, for a message.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Text(_) => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    /// The place of what a path leads to (keys of maps, indexes of lists from 0), or of the last thing on the way that is there.
    pub fn place_of(&self, path: &[&str]) -> Place {
        let mut node = self;
        for part in path {
            let next = match &node.value {
                Value::List(items) => part.parse::<usize>().ok().and_then(|index| items.get(index)),
                _ => node.get(part),
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node.place
    }

    /// The place that a message is about: the entry whose key it begins with, in backquotes, or else all of this.
    pub fn blamed(&self, message: &str) -> Place {
        let key = message.strip_prefix('`').and_then(|rest| rest.split('`').next());
        key.map_or(self.place, |key| self.place_of(&[key]))
    }

    /// The entry of a map.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|(k, _)| k.name == key).map(|(_, node)| node),
            _ => None,
        }
    }
}
