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
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
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
    fn hostile_text_is_tamed() {
        assert_eq!(plain("a\u{202e}b\u{7}\nc", 9), "a?b? c");
        assert_eq!(plain(&"x".repeat(300), 80).chars().count(), 80);
        assert_eq!(escape("<script>\"&'"), "&lt;script&gt;&quot;&amp;&#39;");
        assert_eq!(known(None::<f64>, |x| x.to_string()), UNKNOWN);
    }
}
