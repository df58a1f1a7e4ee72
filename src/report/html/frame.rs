//! The frame of a page: head, content policy, style, banner, sections, script.
//!
//! A page is one file. Its policy allows the very style sheet and script that it holds, by their hashes, and nothing
//! else; where even these are refused (a CI server's own policy), it still reads from top to bottom.

use super::words::{SENTENCE, name, plain};
use askama::Template;
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("../../../templates/report/page.css");
const SCRIPT: &str = include_str!("../../../templates/report/page.js");

/// What a page comes to: its colour and its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As it should be.
    Good,
    /// Not so.
    Bad,
    /// Nobody knows.
    Unsure,
    /// Worth a look.
    Warning,
    /// Cut short, or beside the point.
    Muted,
}

impl Tone {
    /// The class of the style sheet.
    pub fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Unsure | Self::Warning => "unsure",
            Self::Muted => "muted",
        }
    }

    /// A sign that needs no colour.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Good => "✓",
            Self::Bad => "✗",
            Self::Unsure => "?",
            Self::Warning => "⚠",
            Self::Muted => "■",
        }
    }
}

/// One figure of the banner.
#[derive(Clone, Debug, PartialEq)]
pub struct Tile {
    /// What it is.
    pub label: String,
    /// The figure with its unit.
    pub value: String,
    /// What to hold it against; empty for none.
    pub note: String,
}

impl Tile {
    /// One with a remark.
    pub fn new(label: &str, value: String, note: impl Into<String>) -> Self {
        Self { label: label.into(), value, note: note.into() }
    }
}

/// The banner: what came out, in a word, in a sentence, in figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Banner {
    /// What it comes to.
    pub tone: Tone,
    /// The outcome in one word.
    pub word: String,
    /// The rest of the outcome, such as the class; empty for none.
    pub class: String,
    /// What the page is of.
    pub name: String,
    /// The sentence.
    pub sentence: String,
    /// Reasons, a sentence each.
    pub reasons: Vec<String>,
    /// A line about where this comes from.
    pub origin: String,
    /// Figures.
    pub tiles: Vec<Tile>,
}

/// One section, its blocks already markup.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Unique on the page.
    pub id: &'static str,
    /// The heading.
    pub title: String,
    /// What it is about; empty for nothing.
    pub lead: String,
    /// Charts and tables, as markup.
    pub blocks: Vec<String>,
}

impl Section {
    /// One without blocks.
    pub fn new(id: &'static str, title: &str, lead: impl Into<String>) -> Self {
        Self { id, title: title.into(), lead: lead.into(), blocks: Vec::new() }
    }

    /// The same with one more block.
    pub fn with(mut self, block: String) -> Self {
        self.blocks.push(block);
        self
    }
}

#[derive(Template)]
#[template(path = "report/page.html")]
struct Page<'a> {
    title: String,
    policy: String,
    style: &'a str,
    script: &'a str,
    banner: &'a Banner,
    sections: &'a [Section],
    made_by: &'a str,
    document: &'a str,
}

/// The page. `made_by` is the version that wrote the document.
pub fn page(banner: Banner, sections: &[Section], made_by: &str) -> String {
    page_of("result.json", banner, sections, made_by)
}

/// The page of another document.
pub fn page_of(document: &str, banner: Banner, sections: &[Section], made_by: &str) -> String {
    let banner = tamed(banner, document);
    let title = format!("{} · {} · stormwake", banner.word, banner.name);
    let (style, script) = (STYLE.trim_end(), SCRIPT.trim_end());
    let page = Page { title, policy: policy(style, script), style, script, banner: &banner, sections, made_by, document };
    page.render().expect("a string takes every write")
}

fn tamed(banner: Banner, document: &str) -> Banner {
    let more = banner.reasons.len().saturating_sub(REASONS);
    let more = (more > 0).then(|| format!("… and {more} more, in {document}"));
    let long = |text: &String| plain(text, SENTENCE);
    Banner {
        word: name(&banner.word),
        class: name(&banner.class),
        name: name(&banner.name),
        sentence: long(&banner.sentence),
        reasons: banner.reasons.iter().take(REASONS).map(long).chain(more).collect(),
        origin: plain(&banner.origin, SENTENCE),
        ..banner
    }
}

/// Reasons in the banner; the document has all.
const REASONS: usize = 8;

/// Only what the page itself holds.
fn policy(style: &str, script: &str) -> String {
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'",
        hash(style),
        hash(script)
    )
}

fn hash(text: &str) -> String {
    base64(&Sha256::digest(text.as_bytes()))
}

/// Base64 with padding (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0u32, |bits, n| bits << 8 | u32::from(chunk.get(n).copied().unwrap_or(0)));
        for n in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * n) & 63) as usize];
            text.push(if n > chunk.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        for (text, want) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(text.as_bytes()), want);
        }
        assert_eq!(hash(""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }
}
