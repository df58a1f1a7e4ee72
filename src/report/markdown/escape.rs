//! Text from plans and networks as Markdown that shows it and does nothing else.
//!
//! Names stand in code spans, where no Markdown, HTML, mention or link is read; sentences, which have names in them, are escaped character by character. Both are
//! one line of bounded length, and neither can end the table cell that it stands in.

use crate::report::layout::Style;

/// Parts two characters that mean something together, and shows nothing.
const APART: char = '\u{200b}';

/// A sentence, or a part of one.
pub fn text(text: &str, width: usize) -> String {
    let shown = Style::default().fit(text, width);
    let mut out = String::with_capacity(shown.len() * 2);
    let mut chars = shown.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        let next = chars.peek().copied().unwrap_or(' ');
        if c == '.' && before.is_alphabetic() && next.is_alphanumeric() {
            out.push(APART);
        }
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' | '$' => out.extend(['\\', c]),
            c => out.push(c),
        }
        // Mentions and references (`@name`, `#1`, `!1`, `~label`, `$1`), addresses and hosts: forges make links of these in text that is already escaped.
        let refers =
            matches!(c, '@' | '#' | '!' | '~' | '$' | '%' | '&' | '^') && (next.is_alphanumeric() || matches!(next, '"' | '_'));
        if refers || (c == ':' && next == '/') {
            out.push(APART);
        }
        before = c;
    }
    leading(&out)
}

/// What would begin a list, a quotation or a heading is no beginning.
fn leading(text: &str) -> String {
    let text = text.trim_start();
    let digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
    match text.chars().next() {
        Some(c @ ('-' | '+' | '=')) if text[1..].starts_with([c, ' ']) => format!("\\{text}"),
        Some('0'..='9') if digits.starts_with(". ") || digits.starts_with(") ") => {
            let (number, rest) = text.split_at(text.len() - digits.len());
            format!("{number}\\{rest}")
        }
        _ => text.to_string(),
    }
}

/// A name in a cell of a table. A table splits its cells before it reads code: a bar is escaped there, and a backslash before it must not be read as its escape.
pub fn cell(name: &str, width: usize) -> String {
    code(name, width).replace("\\|", &format!("\\{APART}|")).replace('|', "\\|")
}

/// A name, as a code span.
pub fn code(name: &str, width: usize) -> String {
    let shown = Style::default().fit(name, width);
    if shown.trim().is_empty() {
        return String::new();
    }
    let fence = "`".repeat(longest_run(&shown) + 1);
    let pad = if shown.starts_with(['`', ' ']) || shown.ends_with(['`', ' ']) { " " } else { "" };
    format!("{fence}{pad}{shown}{pad}{fence}")
}

fn longest_run(text: &str) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shown_and_does_nothing() {
        for (given, shown) in [
            ("goodput is 2.5% of the baseline's 400/s", "goodput is 2.5% of the baseline's 400/s"),
            ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
            ("a|b\nc", "a\\|b c"),
            ("**x** _y_ `z`", "\\*\\*x\\*\\* \\_y\\_ \\`z\\`"),
            ("[x](http://x.example)", "\\[x\\](http:\u{200b}//x\u{200b}.example)"),
            ("www.evil.example", "www\u{200b}.evil\u{200b}.example"),
            ("ask @team about #12 and a@b.example", "ask @\u{200b}team about \\#\u{200b}12 and a@\u{200b}b\u{200b}.example"),
            ("&lt;b&gt;", "&amp;\u{200b}lt;b&amp;\u{200b}gt;"),
            ("- x", "\\- x"),
            ("12. x", "12\\. x"),
            ("--- ", "\\--- "),
            ("7.1s and -1.9x", "7.1s and -1.9x"),
            ("-1.9x", "-1.9x"),
            ("# x", "\\# x"),
            ("", ""),
        ] {
            assert_eq!(text(given, 200), shown, "{given:?}");
        }
        assert_eq!(text(&"x".repeat(300), 10), format!("{}…", "x".repeat(9)));
        assert!(!text("a\u{202e}b\u{7}", 10).contains(['\u{202e}', '\u{7}']));
    }

    #[test]
    fn code_cannot_be_left() {
        for (given, shown) in [
            ("errors <= 1%", "`errors <= 1%`"),
            ("a`b", "``a`b``"),
            ("`a``", "``` `a`` ```"),
            ("a|b", "`a\\|b`"),
            ("a\\|b", "`a\\\u{200b}\\|b`"),
            ("@team", "`@team`"),
            ("  ", ""),
        ] {
            assert_eq!(cell(given, 200), shown, "{given:?}");
        }
        assert_eq!(code("a\\|b", 200), "`a\\|b`", "out of a table nothing is escaped");
    }
}
