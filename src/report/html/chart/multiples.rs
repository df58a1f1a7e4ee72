//! Many small charts side by side, each with its own heading: one for each seed, policy or fleet.

/// So many charts as a list.
pub fn multiples(charts: &[String]) -> String {
    let items: String = charts.iter().map(|chart| format!("<li>{chart}</li>")).collect();
    format!("<ul class=\"multiples\">{items}</ul>")
}
