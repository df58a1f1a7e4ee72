//! Names as the values of labels: short, apart, and not too many.

use super::OTHER;
use crate::time::Span;

/// The most characters of a label's value.
const MOST_CHARACTERS: usize = 100;

/// Names in the order in which they came, and their labels.
#[derive(Default)]
pub struct Names {
    most: usize,
    labels: Vec<String>,
}

impl Names {
    /// At most so many with a label of their own, and one for all others.
    pub fn new(most: usize) -> Self {
        Self { most, labels: Vec::new() }
    }

    /// One more name, apart from the others though they look alike once they are cut.
    pub fn add(&mut self, name: &str) {
        let label = cut(name);
        let same = |label: &String| self.labels.contains(label);
        let numbered = (2..).map(|n| format!("{label}~{n}"));
        let label = std::iter::once(label.clone()).chain(numbered).find(|label| !same(label)).expect("some number is free");
        if self.labels.len() < self.most {
            self.labels.push(label);
        }
    }

    /// The number of a name, which is new where it has not come yet. Names that look alike once they are cut are one.
    pub fn number(&mut self, name: &str) -> usize {
        let label = cut(name);
        if let Some(known) = self.labels.iter().position(|known| *known == label) {
            return known;
        }
        if self.labels.len() < self.most {
            self.labels.push(label);
            return self.labels.len() - 1;
        }
        self.most
    }

    /// Where the n-th that was added is counted.
    pub fn place(&self, number: usize) -> usize {
        number.min(self.most)
    }

    /// The label of a number.
    pub fn label(&self, number: usize) -> String {
        self.labels.get(number).map_or(OTHER, String::as_str).to_string()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }
}

/// A name, cut where it is long.
pub fn cut(name: &str) -> String {
    match name.char_indices().nth(MOST_CHARACTERS) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.to_string(),
    }
}

/// A share; none of nothing.
pub fn ratio_of(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// A length in seconds, where there is one.
pub fn seconds(span: Option<Span>) -> Option<f64> {
    span.map(Span::as_secs_f64)
}
