//! What a configuration may look like: the source of the JSON Schema and of the plan reference.

/// The shape of a value. Made by the types that read it, so that it cannot drift from them.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A scalar with a syntax of its own.
    Text {
        /// What it is, such as `a duration`.
        what: &'static str,
        /// An anchored regular expression that every valid text matches, in ECMA syntax; empty where any text will do.
        pattern: &'static str,
        /// Valid examples.
        examples: &'static [&'static str],
    },
    /// A whole number within bounds.
    Integer {
        /// The least allowed.
        min: u64,
        /// The greatest allowed.
        max: u64,
    },
    /// A number.
    Number,
    /// `true` or `false`.
    Bool,
    /// One of a set of words.
    Keyword(Vec<Alternative>),
    /// A sequence.
    List(Box<Shape>),
    /// A mapping from free names.
    Map(Box<Shape>),
    /// A mapping with known keys.
    Record {
        /// What it is.
        doc: String,
        /// Its keys.
        fields: Vec<Field>,
    },
    /// A mapping with exactly one key out of a set; a key whose value may be left out can stand alone as a word.
    Choice {
        /// What it is.
        doc: String,
        /// The keys.
        alternatives: Vec<Alternative>,
    },
    /// Any of several shapes.
    OneOf(Vec<Shape>),
}

/// A key of a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The key.
    pub name: &'static str,
    /// What it means.
    pub doc: String,
    /// Whether it must be there.
    pub required: bool,
    /// What it holds.
    pub shape: Shape,
}

/// A key of a choice, or a keyword.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// The key or word.
    pub name: &'static str,
    /// What it means.
    pub doc: String,
    /// What the key holds; none for a keyword.
    pub shape: Option<Shape>,
}

impl Shape {
    /// Whether an empty map is a valid value, so that the key may stand alone as a word.
    pub fn may_be_empty(&self) -> bool {
        matches!(self, Shape::Record { fields, .. } if fields.iter().all(|f| !f.required))
    }
}
