//! What is wrong with a plan, as text: place, snippet, expectation, remedy.

use super::yaml::Uses;
use crate::config::{Concerns, Place, Problem, Problems, Severity, Source};
use std::fmt::{self, Write as _};

/// Why a plan cannot be run.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PlanError {
    /// The plan has errors; all of them are here, each with its place, snippet and remedy.
    #[error("{0}")]
    Invalid(Box<Diagnostics>),
}

impl PlanError {
    /// What is wrong.
    pub fn diagnostics(&self) -> &Diagnostics {
        let Self::Invalid(diagnostics) = self;
        diagnostics
    }
}

/// Problems with the texts that they were found in. Displays as `file:line:column: error: …` with snippets.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    /// The file's name, as shown.
    pub file: String,
    /// Its text.
    pub text: String,
    /// The overrides of the command line, as given.
    pub overrides: Vec<String>,
    /// Where aliases repeat a text.
    pub uses: Uses,
    /// What was found.
    pub problems: Problems,
}

/// How many problems are shown; the rest are counted.
const MAX_SHOWN: usize = 50;
/// How many characters of a line are shown.
const MAX_WIDTH: usize = 110;

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Where there are errors, warnings would only hide them.
        let errors_only = self.problems.any_error();
        let mut shown: Vec<&Problem> = self.problems.sorted();
        shown.retain(|problem| !errors_only || problem.severity == Severity::Error);
        // An alias repeats the same text, and so the same problem.
        shown.dedup_by(|a, b| a.place == b.place && a.message == b.message);
        let more = shown.len().saturating_sub(MAX_SHOWN);
        for (index, problem) in shown.iter().take(MAX_SHOWN).enumerate() {
            if index > 0 {
                f.write_char('\n')?;
            }
            self.problem(f, problem)?;
        }
        if more > 0 {
            write!(f, "\n… and {more} more\n")?;
        }
        Ok(())
    }
}

impl Diagnostics {
    /// What concerns a run of this kind.
    pub fn concerning(&self, run: Concerns) -> Self {
        Self { problems: self.problems.concerning(run), ..self.clone() }
    }

    fn problem(&self, f: &mut fmt::Formatter<'_>, problem: &Problem) -> fmt::Result {
        let word = match problem.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        writeln!(f, "{}: {word}: {}", self.location(problem.place), visible(&problem.message))?;
        self.snippet(f, problem.place)?;
        if let Some(lines) = self.uses.get(&(problem.place.line, problem.place.column))
            && problem.place.source == Source::File
        {
            let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
            writeln!(f, "     = note: used through an alias in line {}", lines.join(", "))?;
        }
        match &problem.hint {
            Some(hint) => writeln!(f, "     = help: {}", visible(hint)),
            None => Ok(()),
        }
    }

    /// `plan.yaml:12:5`, or the override.
    fn location(&self, place: Place) -> String {
        match place.source {
            Source::File => format!("{}:{}:{}", visible(&self.file), place.line.max(1), place.column.max(1)),
            Source::Override(n) => format!("--set {}", crop(&visible(self.overridden(n)), 100)),
        }
    }

    fn overridden(&self, n: u32) -> &str {
        self.overrides.get(n as usize).map_or("", String::as_str)
    }

    fn snippet(&self, f: &mut fmt::Formatter<'_>, place: Place) -> fmt::Result {
        let (text, number) = match place.source {
            Source::File => (self.text.as_str(), place.line.to_string()),
            Source::Override(n) => (self.overridden(n), String::new()),
        };
        if place.line == 0 {
            return Ok(());
        }
        let Some(line) = text.lines().nth(place.line as usize - 1) else { return Ok(()) };
        let (line, before) = window(&without_user(line), place.column as usize);
        let carets = (place.len as usize).clamp(1, line.chars().count().saturating_sub(before).max(1));
        writeln!(f, "{number:>4} | {line}")?;
        writeln!(f, "     | {}{}", " ".repeat(before), "^".repeat(carets))
    }
}

/// A line with `*` for each character of what stands as user and password in a URL: what is wrong with one must not tell it to a log.
fn without_user(line: &str) -> String {
    let mut shown: Vec<char> = line.chars().collect();
    let mut at = 0;
    while let Some(found) = shown[at..].windows(3).position(|three| three == [':', '/', '/']) {
        let begin = at + found + 3;
        let ends = |c: &char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'');
        let end = shown[begin..].iter().position(ends).map_or(shown.len(), |length| begin + length);
        if let Some(user) = shown[begin..end].iter().rposition(|c| *c == '@') {
            shown[begin..begin + user].fill('*');
        }
        at = end;
    }
    shown.into_iter().collect()
}

/// The part of a line around a column (from 1), made visible, and how many characters stand before the column in it.
fn window(line: &str, column: usize) -> (String, usize) {
    let column = column.max(1) - 1;
    let skip = if column > MAX_WIDTH * 3 / 4 { column - MAX_WIDTH / 2 } else { 0 };
    let mut shown = String::new();
    let mut before = column - skip;
    if skip > 0 {
        shown.push('…');
        before += 1;
    }
    let mut rest = line.chars().skip(skip);
    shown.extend(rest.by_ref().take(MAX_WIDTH).map(plain));
    if rest.next().is_some() {
        shown.push('…');
    }
    (shown, before)
}

/// One character for one, so that carets stay below what they mark.
fn plain(c: char) -> char {
    match c {
        '\t' => ' ',
        c if unsafe_to_show(c) => '\u{fffd}',
        c => c,
    }
}

/// Control characters, and those that reorder or hide text.
fn unsafe_to_show(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// A text that cannot harm a terminal, of bounded length.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(600));
    for (n, c) in text.chars().enumerate() {
        if n == 600 {
            shown.push('…');
            break;
        }
        if unsafe_to_show(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

/// The first characters of a text, and a sign that there are more.
pub(super) fn crop(text: &str, max: usize) -> String {
    let mut chars = text.chars();
    let mut cropped: String = chars.by_ref().take(max).collect();
    if chars.next().is_some() {
        cropped.push('…');
    }
    cropped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str, place: Place, message: &str) -> String {
        let mut problems = Problems::default();
        problems.error_with_hint(place, message, "do better");
        let diagnostics = Diagnostics { file: "p.yaml".into(), text: text.into(), problems, ..Default::default() };
        diagnostics.to_string()
    }

    fn place(line: u32, column: u32, len: u32) -> Place {
        Place { source: Source::File, line, column, len }
    }

    #[test]
    fn a_problem_shows_its_line_marked() {
        let shown = show("a: 1\nb: fast\n", place(2, 4, 4), "no");
        assert_eq!(shown, "p.yaml:2:4: error: no\n   2 | b: fast\n     |    ^^^^\n     = help: do better\n");
    }

    #[test]
    fn a_password_in_a_url_is_not_shown() {
        for (line, shown) in [
            ("url: 'http://user:hunter2@127.0.0.1/pay?a@b'", "url: 'http://************@127.0.0.1/pay?a@b'"),
            ("[http://a@b, https://c:d@e]", "[http://*@b, https://***@e]"),
            ("to: http://127.0.0.1/a@b", "to: http://127.0.0.1/a@b"),
            ("at: 3@4://", "at: 3@4://"),
        ] {
            assert_eq!(without_user(line), shown);
        }
    }

    #[test]
    fn long_lines_are_cropped_around_the_place() {
        let line = format!("{}bad{}", "x".repeat(5000), "y".repeat(5000));
        let shown = show(&line, place(1, 5001, 3), "no");
        let marked: Vec<&str> = shown.lines().collect();
        assert!(marked.iter().all(|line| line.chars().count() < 140), "{shown}");
        let caret = marked[2].chars().position(|c| c == '^').unwrap();
        let under: String = marked[1].chars().skip(caret).take(3).collect();
        assert_eq!(under, "bad", "{shown}");
    }

    #[test]
    fn control_characters_are_shown_safely() {
        let shown = show("a: \u{1b}[2J\u{202e}x", place(1, 4, 3), "found \u{1b}[2J");
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown:?}");
        assert!(shown.contains("\\u{1b}"), "{shown:?}");
    }

    #[test]
    fn places_beyond_the_text_do_no_harm() {
        for at in [place(0, 0, 0), place(9, 9, 9), place(1, 900, 900), place(u32::MAX, u32::MAX, u32::MAX)] {
            assert!(show("a: 1", at, "no").contains("error: no"));
        }
        let far = Place { source: Source::Override(7), line: 1, column: 1, len: 1 };
        assert!(show("a: 1", far, "no").starts_with("--set"));
    }
}
