//! Tables and lists of facts. All text is tamed and cut here, and escaped by the template.

use super::frame::Tone;
use super::words::{SENTENCE, plain};
use askama::Template;

/// Rows of a table; the document has the others.
pub const ROWS: usize = 60;

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A figure, set to the right.
    Figure(String),
    /// A status: a sign and a word.
    Status(Tone, String),
}

impl Cell {
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A figure.
    pub fn figure(text: impl Into<String>) -> Self {
        Self::Figure(text.into())
    }

    fn shown(&self) -> String {
        let (Self::Text(text) | Self::Figure(text) | Self::Status(_, text)) = self;
        plain(text, SENTENCE)
    }

    fn class(&self) -> &'static str {
        match self {
            Self::Text(_) => "",
            Self::Figure(_) => "n",
            Self::Status(tone, _) => tone.class(),
        }
    }

    fn sign(&self) -> &'static str {
        if let Self::Status(tone, _) = self { tone.sign() } else { "" }
    }
}

/// A table. The first cell of a row names it.
#[derive(Clone, Debug, Default, PartialEq, Template)]
#[template(path = "report/table.html")]
pub struct Table {
    caption: String,
    head: Vec<(String, bool)>,
    rows: Vec<Vec<Cell>>,
    more: usize,
}

impl Table {
    /// An empty one; a heading that begins with `#` is that of figures.
    pub fn new(caption: &str, head: &[&str]) -> Self {
        let heading = |text: &&str| (text.trim_start_matches('#').to_string(), text.starts_with('#'));
        Self { caption: plain(caption, 200), head: head.iter().map(heading).collect(), rows: Vec::new(), more: 0 }
    }

    /// One more row. Those past [`ROWS`] are counted.
    pub fn row(&mut self, cells: Vec<Cell>) {
        if self.rows.len() < ROWS { self.rows.push(cells) } else { self.more += 1 }
    }

    /// Whether it has no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The markup.
    pub fn html(&self) -> String {
        self.render().expect("a string takes every write")
    }
}

/// Facts: a name and a value each.
#[derive(Clone, Debug, Default, PartialEq, Template)]
#[template(path = "report/facts.html")]
pub struct Facts {
    facts: Vec<(String, String)>,
}

impl Facts {
    /// One more.
    pub fn add(&mut self, label: &str, value: impl Into<String>) {
        self.facts.push((label.into(), plain(&value.into(), SENTENCE)));
    }

    /// The markup.
    pub fn html(&self) -> String {
        self.render().expect("a string takes every write")
    }
}

/// A paragraph.
#[derive(Template)]
#[template(source = "<p>{{ text }}</p>", ext = "html")]
struct Paragraph {
    text: String,
}

/// A paragraph.
pub fn paragraph(text: &str) -> String {
    Paragraph { text: plain(text, SENTENCE) }.render().expect("a string takes every write")
}

/// Two blocks side by side where there is room.
pub fn pair(blocks: &[String]) -> String {
    format!("<div class=\"pair\">{}</div>", blocks.concat())
}
