//! Tables and lists of facts. All text is tamed and cut here, and escaped by the template.

use super::frame::Tone;
use super::words::{NAME, SENTENCE, broken, plain};
use askama::Template;

/// Rows of a table; the document has the others.
pub const ROWS: usize = 40;

/// Characters of what is no sentence.
const WORDS: usize = 120;

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A name, or a few words.
    Text(String),
    /// A sentence.
    Sentence(String),
    /// A figure, set to the right.
    Figure(String),
    /// A status: a sign and a word.
    Status(Tone, String),
    /// A figure, and lines below it that say more; a line may have a tone.
    Stacked(String, Vec<(Option<Tone>, String)>),
}

impl Cell {
    /// A name, or a few words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A sentence.
    pub fn sentence(text: impl Into<String>) -> Self {
        Self::Sentence(text.into())
    }

    /// A figure.
    pub fn figure(text: impl Into<String>) -> Self {
        Self::Figure(text.into())
    }

    fn markup(&self) -> String {
        broken(&self.shown())
    }

    fn shown(&self) -> String {
        match self {
            Self::Sentence(text) => plain(text, SENTENCE),
            Self::Text(text) | Self::Figure(text) | Self::Status(_, text) | Self::Stacked(text, _) => plain(text, WORDS),
        }
    }

    fn class(&self) -> &'static str {
        match self {
            Self::Text(_) => "",
            Self::Sentence(_) => "say",
            Self::Stacked(..) => "stacked",
            Self::Figure(_) => "n",
            Self::Status(tone, _) => tone.class(),
        }
    }

    /// The lines below: a class, a sign and the words of each.
    fn lines(&self) -> Vec<(&'static str, &'static str, String)> {
        let Self::Stacked(_, lines) = self else { return Vec::new() };
        let line = |(tone, text): &(Option<Tone>, String)| {
            (tone.map_or("", Tone::class), tone.map_or("", Tone::sign), plain(text, WORDS))
        };
        lines.iter().map(line).collect()
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
    document: &'static str,
}

impl Table {
    /// An empty one; a heading that begins with `#` is that of figures.
    pub fn new(caption: &str, head: &[&str]) -> Self {
        let heading = |text: &&str| (plain(text.trim_start_matches('#'), NAME), text.starts_with('#'));
        Self {
            caption: plain(caption, 200),
            head: head.iter().map(heading).collect(),
            rows: Vec::new(),
            more: 0,
            document: "result.json",
        }
    }

    /// The same, where another document has the rows that are left out.
    pub fn of(self, document: &'static str) -> Self {
        Self { document, ..self }
    }

    /// One more row. Those past [`ROWS`] are counted.
    pub fn row(&mut self, cells: Vec<Cell>) {
        if self.rows.len() < ROWS { self.rows.push(cells) } else { self.more += 1 }
    }

    /// So many more rows that are counted only.
    pub fn left_out(&mut self, rows: usize) {
        self.more += rows;
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
#[template(source = "<p>{{ crate::report::html::words::broken(text)|safe }}</p>", ext = "html")]
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
