//! Comparisons: `"<= 5%"`, `"<= 2x baseline"`, `">= 95% of baseline"`.

use crate::config::{Node, Problems, Read, Shape, TimeScale, read_text};
use crate::metrics::{Figure, Unit};
use crate::time::{Rate, Span, parse_percent};

/// How a figure is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `<=`
    AtMost,
    /// `<`
    Below,
    /// `>=`
    AtLeast,
    /// `>`
    Above,
    /// `==`
    Exactly,
}

/// What a figure is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// A value in the figure's unit (shares as fractions, times in seconds).
    Absolute(f64),
    /// So many times the figure's value in the baseline.
    OfBaseline(f64),
}

/// A comparison as written, its unit not yet checked against a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// As the plan writes it.
    pub text: String,
    /// How.
    pub operator: Operator,
    /// With what.
    pub bound: Bound,
    /// The unit it was written in; none for multiples of the baseline.
    pub unit: Option<Unit>,
}

/// A figure and its comparison, in one unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// What is compared.
    pub figure: Figure,
    /// How, and with what.
    pub comparison: Comparison,
}

impl Operator {
    /// Whether `observed` stands in this relation to `bound`.
    pub fn holds(self, observed: f64, bound: f64) -> bool {
        match self {
            Self::AtMost => observed <= bound,
            Self::Below => observed < bound,
            Self::AtLeast => observed >= bound,
            Self::Above => observed > bound,
            Self::Exactly => observed == bound,
        }
    }

    /// Takes the operator off the front of a comparison.
    pub(super) fn split(text: &str) -> Option<(Self, &str)> {
        // Those of two signs first: `<` is the beginning of `<=`.
        [Self::AtMost, Self::AtLeast, Self::Exactly, Self::Below, Self::Above]
            .into_iter()
            .find_map(|operator| text.strip_prefix(operator.sign()).map(|rest| (operator, rest.trim())))
    }

    /// As a plan writes it.
    pub fn sign(self) -> &'static str {
        match self {
            Self::AtMost => "<=",
            Self::Below => "<",
            Self::AtLeast => ">=",
            Self::Above => ">",
            Self::Exactly => "==",
        }
    }
}

impl Condition {
    /// Joins a figure and a comparison.
    ///
    /// # Errors
    /// A comparison in another unit than the figure's.
    pub fn new(figure: Figure, comparison: Comparison) -> Result<Self, String> {
        if let Some(unit) = comparison.unit {
            unit_fits(unit, figure.unit(), &comparison.text, figure.word(), "<= 2x baseline")?;
        }
        Ok(Self { figure, comparison })
    }
}

/// Whether a comparison's unit is that of its figure; `multiple` is an example of the form that needs no unit.
pub(super) fn unit_fits(unit: Unit, wanted: Unit, text: &str, figure: &str, multiple: &str) -> Result<(), String> {
    // A factor without its x is a plain number.
    if unit == wanted || unit == Unit::Count && wanted == Unit::Factor {
        return Ok(());
    }
    let example = match wanted {
        Unit::Share => "<= 5%",
        Unit::Rate => "<= 600/s",
        Unit::Time => "<= 400ms",
        Unit::Count => "<= 10",
        Unit::Factor => "<= 1.3x",
    };
    Err(format!("`{text}` does not fit `{figure}`: write it like `{example}`, or as a multiple such as `{multiple}`"))
}

impl Comparison {
    /// Reads a comparison.
    ///
    /// # Errors
    /// A sentence that says how one is written.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a comparison: write `<= 5%`, `>= 600/s`, `<= 400ms`, `<= 2x baseline` or `>= 95% of baseline`"
            )
        };
        let trimmed = text.trim();
        let (operator, rest) = Operator::split(trimmed).ok_or_else(wrong)?;
        let (bound, unit) = match rest.strip_suffix("baseline") {
            Some(factor) => (Bound::OfBaseline(parse_factor(factor).ok_or_else(wrong)?), None),
            None => parse_quantity(rest).map(|(n, unit)| (Bound::Absolute(n), Some(unit))).ok_or_else(wrong)?,
        };
        Ok(Self { text: trimmed.to_string(), operator, bound, unit })
    }
}

/// What stands before the word that a multiple is of: nothing, `2x` or `95% of`.
pub(super) fn parse_factor(text: &str) -> Option<f64> {
    let text = text.trim();
    if text.is_empty() {
        return Some(1.0);
    }
    if let Some(percent) = text.strip_suffix("of") {
        return parse_percent(percent).ok();
    }
    text.strip_suffix('x')?.trim().parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0)
}

/// An absolute value and its unit.
pub(super) fn parse_quantity(text: &str) -> Option<(f64, Unit)> {
    if text.ends_with('%') {
        return Some((parse_percent(text).ok()?, Unit::Share));
    }
    if let Some(factor) = text.strip_suffix('x') {
        return factor.trim().parse().ok().filter(|n: &f64| n.is_finite()).map(|n| (n, Unit::Factor));
    }
    if let Ok(n) = text.parse::<f64>() {
        return n.is_finite().then_some((n, Unit::Count));
    }
    if let Ok(rate) = Rate::parse(text) {
        return Some((rate.get(), Unit::Rate));
    }
    Span::parse(text).ok().map(|span| (span.as_secs_f64(), Unit::Time))
}

/// Puts a bound that is a time or a rate at another speed, and its text with it.
pub(super) fn rescale(bound: &mut f64, unit: Unit, operator: Operator, text: &mut String, by: TimeScale) {
    let shown = match unit {
        Unit::Time => {
            *bound = by.time(*bound);
            Span::from_secs_f64(*bound).to_string()
        }
        Unit::Rate => {
            *bound = by.rate(*bound);
            format!("{bound}/s")
        }
        Unit::Share | Unit::Count | Unit::Factor => return,
    };
    *text = format!("{} {shown}", operator.sign());
}

impl Read for Comparison {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, Self::parse)
    }
    fn shape() -> Shape {
        Shape::Text {
            what: "a comparison",
            pattern: r"^\s*(<=|>=|==|<|>)\s*\S.*$",
            examples: &["<= 5%", "<= 2x baseline", ">= 95% of baseline"],
        }
    }

    fn rescale(&mut self, by: TimeScale) {
        if let (Bound::Absolute(bound), Some(unit)) = (&mut self.bound, self.unit) {
            rescale(bound, unit, self.operator, &mut self.text, by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_read() {
        let read = |text| Comparison::parse(text).map(|c| (c.operator, c.bound, c.unit));
        assert_eq!(read("<= 5%"), Ok((Operator::AtMost, Bound::Absolute(0.05), Some(Unit::Share))));
        assert_eq!(read("> 3500/s"), Ok((Operator::Above, Bound::Absolute(3500.0), Some(Unit::Rate))));
        assert_eq!(read("<= 400ms"), Ok((Operator::AtMost, Bound::Absolute(0.4), Some(Unit::Time))));
        assert_eq!(read(">= 95% of baseline"), Ok((Operator::AtLeast, Bound::OfBaseline(0.95), None)));
        assert_eq!(read("<= 2x baseline"), Ok((Operator::AtMost, Bound::OfBaseline(2.0), None)));
        assert_eq!(read("<= 1.3x"), Ok((Operator::AtMost, Bound::Absolute(1.3), Some(Unit::Factor))));
        assert_eq!(read("== 0"), Ok((Operator::Exactly, Bound::Absolute(0.0), Some(Unit::Count))));
        for wrong in ["5%", "<=", "<= lots", "<= 2 baselines", "=< 3", "<= -1x baseline"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn units_must_fit_the_figure() {
        let join = |figure, text| Condition::new(figure, Comparison::parse(text).unwrap());
        assert!(join(Figure::P99, "<= 400ms").is_ok());
        assert!(join(Figure::P99, "<= 2x baseline").is_ok());
        assert!(join(Figure::P99, "<= 5%").unwrap_err().contains("400ms"));
        assert!(join(Figure::RetryShare, "<= 5").unwrap_err().contains("5%"));
    }
}
