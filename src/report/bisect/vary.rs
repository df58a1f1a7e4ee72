//! What a search varies: a key of the plan, from one value to another, in the terms that plans are written in.

use crate::gate::tipping::Range;
use crate::time::{Rate, Span, parse_percent};

/// What a value is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Duration,
    /// Per second.
    Rate,
    /// A fraction of the whole, or a ratio.
    Share,
    /// A whole number.
    Count,
    /// Any number from 0 on.
    Number,
}

/// A key of the plan and the range of its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Vary {
    /// The key, as `--set` takes it.
    pub key: String,
    /// What both ends are counted in.
    pub unit: Unit,
    /// The lower end.
    pub from: f64,
    /// The upper end.
    pub to: f64,
}

/// What a value may be rounded to, from fine to coarse.
const GRAINS: [f64; 16] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

impl Unit {
    /// Its word in results.
    pub fn word(self) -> &'static str {
        match self {
            Self::Duration => "seconds",
            Self::Rate => "per_second",
            Self::Share => "share",
            Self::Count => "count",
            Self::Number => "number",
        }
    }

    /// A value and its unit.
    ///
    /// # Errors
    /// A sentence that says what a value may look like.
    pub fn of(text: &str) -> Result<(Self, f64), String> {
        let text = text.trim();
        if let Ok(count) = text.parse::<u32>() {
            return Ok((Self::Count, f64::from(count)));
        }
        let found = match text.parse::<f64>() {
            Ok(number) => Some((Self::Number, number)),
            Err(_) if text.ends_with('%') => Some((Self::Share, parse_percent(text)?)),
            Err(_) if text.contains('/') => Some((Self::Rate, Rate::parse(text)?.get())),
            Err(_) => Span::parse(text).ok().map(|span| (Self::Duration, span.as_secs_f64())),
        };
        let usable = found.filter(|(_, number)| number.is_finite() && *number >= 0.0);
        usable.ok_or_else(|| format!("`{text}` is not a value that can vary: write `30s`, `600/s`, `10%` or `200`"))
    }

    /// A value as a plan writes it: `12.3s`, `400/s`, `7.5%`, `200`.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Duration if value > 0.0 && value < 1.0 => format!("{}ms", trimmed(value * 1e3)),
            Self::Duration => format!("{}s", trimmed(value)),
            Self::Rate => format!("{}/s", trimmed(value)),
            Self::Share => format!("{}%", trimmed(value * 100.0)),
            Self::Count | Self::Number => trimmed(value),
        }
    }

    /// The finest step between two values.
    fn finest(self) -> f64 {
        if self == Self::Count { 1.0 } else { GRAINS[0] }
    }

    fn article(self) -> &'static str {
        match self {
            Self::Duration => "a duration",
            Self::Rate => "a rate",
            Self::Share => "a share",
            Self::Count | Self::Number => "a bare number",
        }
    }
}

/// At most six decimals, none that are zero.
fn trimmed(x: f64) -> String {
    let text = format!("{x:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

impl Vary {
    /// Reads `timeline.block.for=1s..120s`.
    ///
    /// # Errors
    /// A sentence that says what is wrong, and how to write it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let example = "write `timeline.block.for=1s..120s`";
        let (key, range) = text.split_once('=').ok_or_else(|| format!("`{text}` names no range: {example}"))?;
        let (low, high) = range.split_once("..").ok_or_else(|| format!("`{range}` is not a range: {example}"))?;
        let ((low_unit, from), (high_unit, to)) = (Unit::of(low)?, Unit::of(high)?);
        let unit = match (low_unit, high_unit) {
            (a, b) if a == b => a,
            // Nothing at all has every unit.
            (Unit::Count, unit) if from == 0.0 => unit,
            (Unit::Count | Unit::Number, Unit::Count | Unit::Number) => Unit::Number,
            (a, b) => {
                let (a, b) = (a.article(), b.article());
                return Err(format!("`{low}` is {a} and `{high}` {b}: both ends of a range have one unit"));
            }
        };
        if from >= to {
            return Err(format!("`{range}` has no inside: write the smaller value first"));
        }
        if key.trim().is_empty() {
            return Err(format!("the key is missing: {example}"));
        }
        Ok(Self { key: key.trim().to_string(), unit, from, to })
    }

    /// What a search may try, given how near it is to come.
    pub fn range(&self, tolerance: f64) -> Range {
        let wanted = tolerance * self.from.max(self.to / 1e3) / 4.0;
        let grain = GRAINS.into_iter().rfind(|grain| *grain <= wanted).unwrap_or(GRAINS[0]).max(self.unit.finest());
        Range { from: self.from, to: self.to, tolerance, grain }
    }

    /// The override that gives the key this value.
    pub fn set(&self, value: f64) -> String {
        format!("{}={}", self.key, self.unit.show(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_in_the_terms_of_plans() {
        for (text, unit, from, to) in [
            ("timeline.block.for=1s..2m", Unit::Duration, 1.0, 120.0),
            ("a.b=200ms..1m30s", Unit::Duration, 0.2, 90.0),
            ("a=0..3s", Unit::Duration, 0.0, 3.0),
            ("fleets.app.load.poisson.rate=100/s..900/s", Unit::Rate, 100.0, 900.0),
            ("fleets.app.clients=100..5000", Unit::Count, 100.0, 5000.0),
            ("policies.app.budget.ratio=1%..50%", Unit::Share, 0.01, 0.5),
            ("policies.app.backoff.exponential.multiplier=1..3.5", Unit::Number, 1.0, 3.5),
        ] {
            let vary = Vary::parse(text).unwrap();
            assert_eq!((vary.unit, vary.from), (unit, from), "{text}");
            assert!((vary.to - to).abs() < 1e-9, "{text}: {vary:?}");
        }
    }

    #[test]
    fn wrong_ranges_say_how_to_mend_them() {
        for (text, wanted) in [
            ("timeline.block.for", "names no range"),
            ("a=1s", "not a range"),
            ("a=1s..900/s", "`1s` is a duration and `900/s` a rate"),
            ("a=1s..10", "one unit"),
            ("a=5s..5s", "has no inside"),
            ("a=9s..5s", "smaller value first"),
            ("=1s..5s", "key is missing"),
            ("a=1s..soon", "`soon` is not a value that can vary"),
            ("a=-1..5", "`-1` is not a value"),
            ("a=1..inf", "`inf` is not a value"),
        ] {
            let error = Vary::parse(text).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }

    #[test]
    fn values_are_written_as_plans_read_them() {
        for (unit, value, wanted) in [
            (Unit::Duration, 12.3, "12.3s"),
            (Unit::Duration, 0.25, "250ms"),
            (Unit::Duration, 0.0, "0s"),
            (Unit::Rate, 412.5, "412.5/s"),
            (Unit::Share, 0.07, "7%"),
            (Unit::Count, 300.0, "300"),
            (Unit::Number, 1.75, "1.75"),
        ] {
            assert_eq!(unit.show(value), wanted);
            let (_, read) = Unit::of(wanted).unwrap();
            assert!((read - value).abs() < 1e-9, "{wanted}");
        }
        let grain = |text| Vary::parse(text).unwrap().range(0.02).grain;
        assert_eq!([grain("a=1s..120s"), grain("a=100..5000"), grain("a=0..3s")], [1e-3, 1.0, 1e-5]);
    }
}
