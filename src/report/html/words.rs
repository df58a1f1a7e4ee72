//! Text from plans and networks as a page may show it: one line, no control characters, nothing that turns the
//! direction of writing, not endless. Templates escape by themselves; what is put into SVG is escaped here.

use super::super::layout::Style;

/// Characters of a name.
pub const NAME: usize = 80;
/// Characters of a sentence.
pub const SENTENCE: usize = 600;

/// Stands where there is no evidence.
pub const UNKNOWN: &str = "unknown";

/// Text on one line, at most so many characters of it.
pub fn plain(text: &str, most: usize) -> String {
    let clean = Style::default().clean(text);
    if clean.chars().count() <= most {
        return clean;
    }
    clean.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// A name as it may be shown.
pub fn name(text: &str) -> String {
    plain(text, NAME)
}

/// What markup would read as its own, written so that it does not.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| escaped(c, &mut out));
    out
}

fn escaped(c: char, out: &mut String) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        c => out.push(c),
    }
}

/// Characters of a word that need no place to break.
const WORD: usize = 20;

/// The same for text between tags, where a long word gets places to break: a page whose style sheet is refused is no wider for it.
pub fn broken(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut word = 0;
    for c in text.chars() {
        if word == WORD && !c.is_whitespace() {
            out.push_str("<wbr>");
            word = 0;
        }
        word = if c.is_whitespace() { 0 } else { word + 1 };
        escaped(c, &mut out);
    }
    out
}

/// What was seen, or that nobody knows.
pub fn known<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.into(), show)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_word_may_be_broken_and_no_other() {
        assert_eq!(broken("a <b> & c"), "a &lt;b&gt; &amp; c");
        let word = "x".repeat(WORD);
        assert_eq!(broken(&format!("{word} {word}")), format!("{word} {word}"));
        assert_eq!(broken(&format!("{word}<{word}")), format!("{word}<wbr>&lt;{}<wbr>x", "x".repeat(WORD - 1)));
    }

    #[test]
    fn hostile_text_is_tamed() {
        assert_eq!(plain("a\u{202e}b\u{7}\nc", 9), "a?b? c");
        assert_eq!(plain(&"x".repeat(300), 80).chars().count(), 80);
        assert_eq!(escape("<script>\"&'"), "&lt;script&gt;&quot;&amp;&#39;");
        assert_eq!(known(None::<f64>, |x| x.to_string()), UNKNOWN);
    }
}
