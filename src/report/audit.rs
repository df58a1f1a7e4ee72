//! Phase-lock audits as a table with a plot, and as JSON.

use super::curve::{Pick, cells, spark};
use super::layout::{Colour, Style, columns, number, percent, rate};
use crate::policy::audit::{Audit, Found, Rhythm};
use crate::time::Span;
use serde_json::json;

/// Columns of a figure.
const FIGURE: usize = 10;
/// The narrowest plot.
const LEAST_PLOT: usize = 20;

/// A policy's audit.
#[derive(Clone, Debug)]
pub struct Audited {
    /// Its name.
    pub name: String,
    /// What was found.
    pub found: Found,
    /// Whether it has no jitter: then clients stay in step, even where windows of a second hide it.
    pub in_step: bool,
}

/// What an audit says to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It keeps to it, or there is none.
    Within,
    /// It is past it.
    Past,
    /// It could not be counted.
    Unknown,
}

impl Audited {
    fn rhythm(&self) -> Option<Rhythm> {
        match &self.found {
            Found::Attempts(counts) => Rhythm::of(counts),
            Found::AtOnce | Found::Ended { .. } | Found::TooMany => None,
        }
    }

    /// Whether its peak over its mean keeps to a limit. Retries that follow at once without end are past every limit.
    pub fn judge(&self, max_peak: Option<f64>) -> Judged {
        let Some(most) = max_peak else { return Judged::Within };
        match (&self.found, self.rhythm()) {
            (Found::TooMany, _) => Judged::Unknown,
            (Found::AtOnce, _) => Judged::Past,
            (_, Some(rhythm)) if rhythm.peak_to_mean() > most => Judged::Past,
            _ => Judged::Within,
        }
    }

    /// What it says beside its figures, or in their place.
    fn sentence(&self) -> Option<String> {
        match (&self.found, self.rhythm()) {
            (Found::AtOnce, _) => Some("retries at once, without end: nothing spreads it".into()),
            (Found::Ended { retries, at }, _) => Some(format!("had ended by then: {retries} retries, the last after {at}")),
            (Found::TooMany, _) => Some("too many attempts to follow: fewer `--clients`, or an earlier `--to`".into()),
            (Found::Attempts(_), None) => Some("no attempt in this time: its waits are longer".into()),
            (Found::Attempts(_), Some(_)) => self.in_step.then(|| "no jitter: all clients in step".into()),
        }
    }
}

/// The audits as a table, and under it the attempts of each over the time that was counted.
pub fn table(audits: &[Audited], audit: &Audit, max_peak: Option<f64>, style: &Style) -> String {
    let mut lines = style.wrap(&headline(audit), style.width, 4);
    lines.push(String::new());
    let name = audits.iter().map(|audited| columns(&audited.name)).max().unwrap_or(0).clamp(6, 36) + 2;
    let cells = |cells: [&str; 5]| cells.map(|cell| format!("{cell:>FIGURE$}")).concat();
    lines.push(style.fit(&(style.pad("policy", name) + &cells(["mean", "peak", "peak/mean", "quiet", "peak at"])), style.width));
    for audited in audits {
        let figures = |rhythm: Rhythm| {
            let (mean, peak) = (rate(Some(rhythm.mean)), rate(Some(rhythm.peak as f64)));
            let at = Span::from_secs(u64::from(audit.from) + rhythm.peak_at as u64).to_string();
            cells([&mean, &peak, &factor(rhythm.peak_to_mean()), &percent(Some(rhythm.quiet)), &at])
        };
        let row = audited.rhythm().map_or_else(|| "  ".to_string() + &audited.sentence().unwrap_or_default(), figures);
        let row = style.fit(&(style.pad(&audited.name, name) + &row), style.width);
        lines.push(match audited.judge(max_peak) {
            Judged::Within => row,
            Judged::Past => style.paint(Colour::Red, &row),
            Judged::Unknown => style.paint(Colour::Yellow, &row),
        });
    }
    let in_step = audits.iter().filter(|audited| audited.in_step && audited.rhythm().is_some());
    let in_step: Vec<&str> = in_step.map(|audited| audited.name.as_str()).collect();
    if !in_step.is_empty() {
        let why = "in step, without jitter (a window of a second hides it where the waits are that short)";
        lines.extend(style.wrap(&format!("{why}: {}", in_step.join(", ")), style.width, 10));
    }
    lines.push(String::new());
    lines.extend(plots(audits, audit, name, style));
    lines.extend(max_peak.into_iter().flat_map(|most| conclusion(audits, most, style)));
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn headline(audit: &Audit) -> String {
    format!(
        "{} clients fail together and everything keeps failing; limits on attempts, budgets and breakers do not count, and \
         attempts take no time. Attempts in seconds from {} to {}:",
        super::layout::count(u64::from(audit.clients)),
        Span::from_secs(u64::from(audit.from)),
        Span::from_secs(u64::from(audit.to)),
    )
}

/// `1.08`, `26`, `150`: two decimals where they tell spread-out clients from others.
fn factor(x: f64) -> String {
    if x < 10.0 { format!("{x:.2}") } else { number(x) }
}

/// A line for each policy: attempts by second, each on its own scale; where seconds share a column, the busiest.
fn plots(audits: &[Audited], audit: &Audit, name: usize, style: &Style) -> Vec<String> {
    let width = style.width.saturating_sub(name).max(LEAST_PLOT);
    let mut lines = Vec::new();
    for audited in audits {
        let (Found::Attempts(counts), Some(rhythm)) = (&audited.found, audited.rhythm()) else { continue };
        let values: Vec<Option<f64>> = counts.iter().map(|n| Some(*n as f64)).collect();
        let line = spark(&cells(&values, width.min(values.len()), Pick::Highest), rhythm.peak as f64, style);
        lines.push(style.pad(&audited.name, name) + line.trim_end());
    }
    if !lines.is_empty() {
        let width = width.min((audit.to - audit.from) as usize);
        let (from, to) = (format!("{}s", audit.from), format!("{}s", audit.to));
        let gap = width.saturating_sub(from.len() + to.len());
        lines.insert(0, style.pad("attempts", name) + &from + &" ".repeat(gap) + &to);
        lines.push(String::new());
    }
    lines
}

fn conclusion(audits: &[Audited], most: f64, style: &Style) -> Vec<String> {
    let names = |judged| {
        let of = audits.iter().filter(|audited| audited.judge(Some(most)) == judged).map(|audited| audited.name.as_str());
        of.collect::<Vec<_>>().join(", ")
    };
    let (past, unknown) = (names(Judged::Past), names(Judged::Unknown));
    let mut lines = Vec::new();
    if !past.is_empty() {
        lines.extend(style.wrap(&format!("FAIL peak/mean past {}: {past}", factor(most)), style.width, 10));
    }
    if !unknown.is_empty() {
        lines.extend(style.wrap(&format!("INCONCLUSIVE not counted: {unknown}"), style.width, 10));
    }
    if lines.is_empty() {
        lines.push(format!("PASS no peak/mean past {}", factor(most)));
    }
    lines
}

/// The audits as JSON, with the attempts of every second.
pub fn json(audits: &[Audited], audit: &Audit, max_peak: Option<f64>) -> serde_json::Value {
    let one = |audited: &Audited| {
        let rhythm = audited.rhythm();
        let (found, counts) = match &audited.found {
            Found::Attempts(counts) => (if rhythm.is_some() { "attempts" } else { "none" }, counts.as_slice()),
            Found::AtOnce => ("at_once", [].as_slice()),
            Found::Ended { .. } => ("ended", [].as_slice()),
            Found::TooMany => ("too_many", [].as_slice()),
        };
        json!({
            "name": audited.name,
            "found": found,
            "in_step": audited.in_step,
            "says": audited.sentence(),
            "mean_per_s": rhythm.map(|rhythm| rhythm.mean),
            "peak_per_s": rhythm.map(|rhythm| rhythm.peak),
            "peak_to_mean": rhythm.map(|rhythm| rhythm.peak_to_mean()),
            "peak_at_s": rhythm.map(|rhythm| u64::from(audit.from) + rhythm.peak_at as u64),
            "quiet_share": rhythm.map(|rhythm| rhythm.quiet),
            "past": max_peak.and_then(|_| match audited.judge(max_peak) {
                Judged::Within => Some(false),
                Judged::Past => Some(true),
                Judged::Unknown => None,
            }),
            "per_second": counts,
        })
    };
    json!({
        "clients": audit.clients, "from_s": audit.from, "to_s": audit.to, "seed": audit.seed, "max_peak": max_peak,
        "policies": audits.iter().map(one).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (Vec<Audited>, Audit) {
        let audit = Audit { clients: 1_000, from: 600, to: 608, seed: 1 };
        let audited = |name: &str, found| Audited { name: name.into(), found, in_step: name == "march" };
        let audits = vec![
            audited("march", Found::Attempts(vec![0, 1_000, 0, 0, 0, 1_000, 0, 0])),
            audited("spread", Found::Attempts(vec![250, 250, 240, 260, 250, 250, 245, 255])),
            audited("silent", Found::Attempts(vec![0; 8])),
            audited("hammer", Found::AtOnce),
            audited("short", Found::Ended { retries: 3, at: Span::from_secs(40) }),
            audited("frantic", Found::TooMany),
        ];
        (audits, audit)
    }

    #[test]
    fn the_table_says_what_was_found_and_what_was_not() {
        let (audits, audit) = sample();
        let style = Style { width: 100, ascii: true, ..Style::default() };
        let text = table(&audits, &audit, Some(3.0), &style);
        for want in [
            "1,000 clients fail together",
            "march         250/s      1k/s      4.00       75%     10m1s\n",
            "spread        250/s     260/s      1.04        0%     10m3s\n",
            "hammer     retries at once, without end",
            "that short): march\n",
            "had ended by then: 3 retries, the last after 40s",
            "no attempt in this time",
            "\nattempts 600s608s\nmarch     #   #\nspread   ##*#####",
            "FAIL peak/mean past 3.00: march, hammer\nINCONCLUSIVE not counted: frantic\n",
        ] {
            assert!(text.contains(want), "{want}\n{text}");
        }
        assert!(!table(&audits, &audit, None, &style).contains("FAIL"));
        assert!(table(&audits[1..3], &audit, Some(3.0), &style).ends_with("PASS no peak/mean past 3.00\n"));
        for width in [1, 40, 80, 200] {
            let text = table(&audits, &audit, Some(3.0), &Style { width, ..style });
            assert!(text.lines().all(|line| columns(line) <= width.max(60)), "{width}\n{text}");
        }
    }

    #[test]
    fn json_has_the_figures_and_every_second() {
        let (audits, audit) = sample();
        let found = json(&audits, &audit, Some(3.0));
        let policy = |index: usize| &found["policies"][index];
        assert_eq!((policy(0)["peak_to_mean"].as_f64(), policy(0)["past"].as_bool()), (Some(4.0), Some(true)));
        assert_eq!(policy(1)["per_second"][3], 260);
        assert_eq!((policy(3)["found"].as_str(), policy(3)["mean_per_s"].as_f64()), (Some("at_once"), None));
        assert!(policy(5)["past"].is_null());
    }
}
