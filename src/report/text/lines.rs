//! A label and what stands beside it.

use crate::report::layout::{Style, columns};

/// Columns of a label.
pub(super) const LABEL: usize = 12;

/// A label and a text that is cut at the width.
pub(super) fn label_line(label: &str, text: &str, style: &Style) -> String {
    let rest = style.width.saturating_sub(LABEL);
    format!("{}{}", style.pad(label, LABEL), style.fit(text, rest))
}

/// The parts that fit beside a label, in the order of their weight.
pub(super) fn parts_line(label: &str, parts: &[String], style: &Style) -> String {
    let room = style.width.saturating_sub(LABEL);
    let mut text = String::new();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let gap = if text.is_empty() { "" } else { "  " };
        if text.is_empty() || columns(&text) + columns(gap) + columns(part) <= room {
            text = text + gap + part;
        }
    }
    label_line(label, &text, style)
}

/// The parts beside a label, in at most so many lines; what does not fit is counted.
pub(super) fn parts_lines(label: &str, parts: &[String], most: usize, style: &Style) -> Vec<String> {
    let room = style.width.saturating_sub(LABEL);
    let mut texts: Vec<String> = vec![String::new()];
    let parts: Vec<&String> = parts.iter().filter(|part| !part.is_empty()).collect();
    for (index, part) in parts.iter().enumerate() {
        let after = parts.len() - index - 1;
        let more = |left: usize| format!("  and {left} more");
        let text = texts.last().map_or("", String::as_str);
        let gap = if text.is_empty() { "" } else { "  " };
        // On the last line something stays free to say that there is more.
        let kept = if texts.len() < most || after == 0 { 0 } else { columns(&more(after)) };
        if text.is_empty() || columns(text) + columns(gap) + columns(part) + kept <= room {
            let longer = format!("{text}{gap}{part}");
            texts.pop();
            texts.push(longer);
        } else if texts.len() < most {
            texts.push(part.to_string());
        } else {
            let said = style.fit(text, room.saturating_sub(columns(&more(after + 1)))) + &more(after + 1);
            texts.pop();
            texts.push(said);
            break;
        }
    }
    let line = |(index, text): (usize, &String)| label_line(if index == 0 { label } else { "" }, text, style);
    texts.iter().enumerate().map(line).collect()
}

/// A text beside a label, wrapped to at most so many lines.
pub(super) fn wrapped(label: &str, text: &str, most: usize, style: &Style) -> Vec<String> {
    let lines = style.wrap(text, style.width.saturating_sub(LABEL), most);
    let line = |(index, text): (usize, &String)| label_line(if index == 0 { label } else { "" }, text, style);
    lines.iter().enumerate().map(line).collect()
}
