//! What text for people is laid out with: columns, colours, and figures in few characters.
//!
//! Names come from plans and details from networks, so nothing is trusted to be printable: control characters never
//! reach a terminal, and no line grows past the width it was given.

/// How text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of a line.
    pub width: usize,
    /// Whether escape sequences for colour may be used. Nothing is said by colour alone.
    pub colour: bool,
    /// Whether only ASCII may be used, for a locale that is not UTF-8.
    pub ascii: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { width: 80, colour: false, ascii: false }
    }
}

/// A colour of the terminal's own palette.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// It held.
    Green,
    /// It did not.
    Red,
    /// Nobody knows.
    Yellow,
    /// Beside the point.
    Dim,
}

impl Style {
    /// The same without colours, for text that is measured.
    pub fn plain(&self) -> Self {
        Self { colour: false, ..*self }
    }

    /// `text` in a colour, or as it is where colours are not wanted.
    pub fn paint(&self, colour: Colour, text: &str) -> String {
        let code = match colour {
            Colour::Green => "1;32",
            Colour::Red => "1;31",
            Colour::Yellow => "1;33",
            Colour::Dim => "2",
        };
        if self.colour && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_string() }
    }

    /// `text` with everything replaced that a terminal would not print as one line of plain text.
    pub fn clean(&self, text: &str) -> String {
        text.chars()
            .map(|c| match c {
                '\t' | '\n' | '\r' => ' ',
                c if c.is_control() || is_directional(c) => '?',
                c if self.ascii && !c.is_ascii() => fallback(c),
                c => c,
            })
            .collect()
    }

    /// At most `width` columns of `text`; where some is cut off, an ellipsis says so.
    pub fn fit(&self, text: &str, width: usize) -> String {
        let text = self.clean(text);
        if columns(&text) <= width {
            return text;
        }
        let ellipsis = if self.ascii { "~" } else { "…" };
        if width == 0 { String::new() } else { take(&text, width - 1) + ellipsis }
    }

    /// `text` fitted to exactly `width` columns, spaces behind it.
    pub fn pad(&self, text: &str, width: usize) -> String {
        let mut fitted = self.fit(text, width);
        let missing = width.saturating_sub(columns(&fitted));
        fitted.extend(std::iter::repeat_n(' ', missing));
        fitted
    }

    /// At most `width` columns of `text`, cut in its middle: names that begin alike often differ at their ends.
    pub fn middle(&self, text: &str, width: usize) -> String {
        let text = self.clean(text);
        if columns(&text) <= width || width < 5 {
            return self.fit(&text, width);
        }
        let ellipsis = if self.ascii { "~" } else { "…" };
        let tail_width = (width - 1) / 3;
        let backwards: String = text.chars().rev().collect();
        let tail: String = take(&backwards, tail_width).chars().rev().collect();
        take(&text, width - 1 - columns(&tail)) + ellipsis + &tail
    }

    /// `text` in lines of at most `width` columns, broken between words, and within one that is wider; what does not fit into `lines` is
    /// cut off.
    pub fn wrap(&self, text: &str, width: usize, lines: usize) -> Vec<String> {
        let text = self.clean(text);
        let mut done: Vec<String> = Vec::new();
        let mut line = String::new();
        for word in text.split_whitespace().flat_map(|word| pieces(word, width)) {
            let room = if line.is_empty() { 0 } else { columns(&line) + 1 };
            if room > 0 && room + columns(word) > width {
                done.push(std::mem::take(&mut line));
            } else if room > 0 {
                line.push(' ');
            }
            line.push_str(word);
        }
        done.push(line);
        done.retain(|line| !line.is_empty());
        if done.len() > lines && lines > 0 {
            let rest = done.split_off(lines - 1).join(" ");
            done.push(rest);
        }
        done.truncate(lines);
        done.iter().map(|line| self.fit(line, width)).collect()
    }
}

/// How many columns of a terminal a text takes.
pub fn columns(text: &str) -> usize {
    text.chars().map(column_count).sum()
}

/// A word, in pieces where it is wider than a line.
fn pieces(word: &str, width: usize) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), word);
    while columns(rest) > width {
        let end = take(rest, width).len();
        // A character that is wider than the line has no place on any.
        if end == 0 {
            break;
        }
        pieces.push(&rest[..end]);
        rest = &rest[end..];
    }
    pieces.push(rest);
    pieces
}

fn take(text: &str, width: usize) -> String {
    let mut used = 0;
    text.chars()
        .take_while(|&c| {
            used += column_count(c);
            used <= width
        })
        .collect()
}

/// Wide ranges of East Asian scripts and pictographs, and marks without a column of their own; one for all else.
fn column_count(c: char) -> usize {
    match u32::from(c) {
        0x300..=0x36F | 0x200B..=0x200F | 0x20D0..=0x20FF | 0xFE00..=0xFE0F | 0xFEFF => 0,
        0x1100..=0x115F
        | 0x2E80..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1FAFF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

/// Marks that turn the direction of writing can make a line read as another.
fn is_directional(c: char) -> bool {
    matches!(u32::from(c), 0x202A..=0x202E | 0x2028 | 0x2029 | 0x2066..=0x2069)
}

fn fallback(c: char) -> char {
    match c {
        '·' | '–' | '—' | '−' => '-',
        '×' => 'x',
        '…' => '~',
        '≥' => '>',
        '≤' => '<',
        '÷' => '/',
        '‘' | '’' => '\'',
        'µ' => 'u',
        _ => '?',
    }
}

/// Stands where there is no evidence.
pub const NONE: &str = "n/a";

/// A number in few characters: `7`, `0.25`, `412`, `1.6k`, `12k`, `3.4M`.
pub fn number(x: f64) -> String {
    let size = x.abs();
    match size {
        _ if !x.is_finite() => NONE.into(),
        _ if size >= 999_500_000.0 => format!("{}G", digits(x / 1e9)),
        _ if size >= 999_500.0 => format!("{}M", digits(x / 1e6)),
        _ if size >= 999.5 => format!("{}k", digits(x / 1e3)),
        _ => digits(x),
    }
}

/// At most one decimal from 1 on, two below, none from 10 on or where they are zero.
fn digits(x: f64) -> String {
    let size = x.abs();
    let text = if size >= 9.95 {
        format!("{x:.0}")
    } else if size >= 0.995 {
        format!("{x:.1}")
    } else {
        format!("{x:.2}")
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

/// Events per second: `400/s`.
pub fn rate(x: Option<f64>) -> String {
    x.map_or_else(|| NONE.into(), |x| format!("{}/s", number(x)))
}

/// A share as a percentage: `75%`, `0.4%`; a little is never shown as nothing, nor nearly all as all.
pub fn percent(x: Option<f64>) -> String {
    let Some(percent) = x.map(|x| x * 100.0).filter(|percent| percent.is_finite()) else { return NONE.into() };
    match percent {
        p if p > 0.0 && p < 0.1 => "<0.1%".into(),
        p if p > 99.9 && p < 100.0 => ">99.9%".into(),
        p if p < 10.0 || (p > 99.0 && p < 100.0) => format!("{}%", trim(format!("{p:.1}"))),
        p => format!("{p:.0}%"),
    }
}

fn trim(text: String) -> String {
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}

/// A time given in milliseconds: `0.4ms`, `12ms`, `1.2s`, `42s`, `3m05s`, `2h10m`.
pub fn millis(x: Option<f64>) -> String {
    let Some(x) = x.filter(|x| x.is_finite()) else { return NONE.into() };
    match x.abs() {
        0.0 => "0ms".into(),
        size if size < 999.5 => format!("{}ms", digits(x)),
        size if size < 59_950.0 => format!("{}s", trim(format!("{:.1}", x / 1e3))),
        size => clock((size / 1e3).round() as u64),
    }
}

/// Whole seconds: `42s`, `3m05s`, `2h10m`.
pub fn clock(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ if seconds % 3600 < 60 => format!("{}h", seconds / 3600),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A factor: `1.3x`.
pub fn factor(x: Option<f64>) -> String {
    x.map_or_else(|| NONE.into(), |x| format!("{x:.2}x"))
}

/// Counts of a document added up. Those of one that was tampered with may be of any size.
pub fn total(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// A count with its digits in threes: `24,000`.
pub fn count(n: u64) -> String {
    let text = n.to_string();
    let mut out = String::with_capacity(text.len() + text.len() / 3);
    for (index, c) in text.chars().enumerate() {
        if index > 0 && (text.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_honest() {
        for (x, want) in [(0.0, "0"), (7.0, "7"), (0.25, "0.25"), (9.94, "9.9"), (412.4, "412"), (999.6, "1k"), (1613.0, "1.6k")]
        {
            assert_eq!(number(x), want, "{x}");
        }
        assert_eq!(number(f64::NAN), NONE);
        assert_eq!(number(12_345.0), "12k");
        for (x, want) in
            [(0.0, "0%"), (0.0004, "<0.1%"), (0.004, "0.4%"), (0.75, "75%"), (0.9995, ">99.9%"), (0.996, "99.6%"), (1.0, "100%")]
        {
            assert_eq!(percent(Some(x)), want, "{x}");
        }
        for (x, want) in [
            (0.4, "0.4ms"),
            (12.3, "12ms"),
            (999.7, "1s"),
            (1234.0, "1.2s"),
            (59_949.0, "59.9s"),
            (185_000.0, "3m05s"),
            (7_800_000.0, "2h10m"),
        ] {
            assert_eq!(millis(Some(x)), want, "{x}");
        }
        assert_eq!(percent(Some(f64::MAX)), NONE);
        assert_eq!(total([u64::MAX, 2]), u64::MAX);
        assert_eq!((percent(None), millis(None), rate(None)), (NONE.into(), NONE.into(), NONE.into()));
        assert_eq!((count(0), count(999), count(1_234_567)), ("0".into(), "999".into(), "1,234,567".into()));
    }

    #[test]
    fn nothing_hostile_reaches_a_terminal() {
        let style = Style::default();
        assert_eq!(style.clean("a\u{1b}[2Jb\r\nc\u{202e}d\u{9b}"), "a?[2Jb  c?d?");
        assert_eq!(Style { ascii: true, ..style }.clean("5 × µ 漢"), "5 x u ?");
        assert_eq!(style.paint(Colour::Red, "x"), "x");
        assert_eq!(Style { colour: true, ..style }.paint(Colour::Red, "x"), "\u{1b}[1;31mx\u{1b}[0m");
    }

    #[test]
    fn no_line_grows_past_its_width() {
        let style = Style::default();
        assert_eq!(style.fit("abcdef", 4), "abc…");
        assert_eq!(style.fit("漢字漢字", 5), "漢字…");
        assert_eq!(style.fit("漢字漢字", 4), "漢…");
        assert_eq!(style.pad("ab", 4), "ab  ");
        assert_eq!(style.fit("abc", 0), "");
        let text = "the quick brown fox jumps over a verylongwordthatdoesnotfitatall and goes";
        for width in 1..40 {
            for lines in 1..5 {
                let wrapped = style.wrap(text, width, lines);
                assert!(wrapped.len() <= lines);
                assert!(wrapped.iter().all(|line| columns(line) <= width), "{width}: {wrapped:?}");
            }
        }
        assert_eq!(style.wrap("a b c", 3, 9), ["a b", "c"]);
        assert_eq!(style.wrap("aa bb cc", 5, 1), ["aa b…"]);
        assert_eq!(style.wrap("aa bbbbbbb cc", 4, 9), ["aa", "bbbb", "bbb", "cc"]);
        assert_eq!(style.wrap("漢", 1, 9), ["…"]);
        assert_eq!((style.middle("payments-block-eu", 12), style.middle("short", 12)), ("payments…-eu".into(), "short".into()));
        for width in 0..20 {
            assert!(columns(&style.middle("漢字 and 漢字 again", width)) <= width, "{width}");
        }
    }
}
