//! A plan at another speed: every duration multiplied, every rate divided.

use super::{Node, Problems, Read, Shape, read_text};
use std::fmt;

/// A ratio of whole numbers, as `1/20`: exact, so that a scaled plan equals one whose figures were divided by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeScale {
    numerator: u32,
    denominator: u32,
}

/// The largest factor in either direction.
const MOST: u32 = 1000;

impl TimeScale {
    /// Reads `1/20`, or `2`.
    ///
    /// # Errors
    /// A sentence that says how a scale is written.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is not a time scale: write `1/20` to make everything twenty times as fast, `2` half as fast");
        let (numerator, denominator) = text.trim().split_once('/').unwrap_or((text.trim(), "1"));
        let whole = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
        let (numerator, denominator) = (whole(numerator)?, whole(denominator)?);
        if !(1..=MOST).contains(&numerator) || !(1..=MOST).contains(&denominator) {
            return Err(format!("`{text}`: both parts of a time scale lie between 1 and {MOST}"));
        }
        Ok(Self { numerator, denominator })
    }

    /// A length of time at this scale, in any unit.
    pub fn time(self, length: f64) -> f64 {
        length * f64::from(self.numerator) / f64::from(self.denominator)
    }

    /// A rate at this scale, in any unit.
    pub fn rate(self, rate: f64) -> f64 {
        rate * f64::from(self.denominator) / f64::from(self.numerator)
    }

    /// Whether it changes nothing.
    pub const fn is_none(self) -> bool {
        self.numerator == self.denominator
    }
}

impl fmt::Display for TimeScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(f, "{}", self.numerator),
            denominator => write!(f, "{}/{denominator}", self.numerator),
        }
    }
}

impl Read for TimeScale {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, Self::parse)
    }

    fn shape() -> Shape {
        Shape::Text { what: "a time scale", pattern: r"^[0-9]+(/[0-9]+)?$", examples: &["1/20", "2"] }
    }

    fn rescale(&mut self, _by: TimeScale) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_is_a_ratio() {
        let twentieth = TimeScale::parse("1/20").unwrap();
        assert_eq!((twentieth.time(30.0), twentieth.rate(0.3), twentieth.to_string().as_str()), (1.5, 6.0, "1/20"));
        assert_eq!(TimeScale::parse(" 2 ").unwrap().to_string(), "2");
        assert!(TimeScale::parse("3/3").unwrap().is_none());
        for wrong in ["", "0", "1/0", "-1/2", "0.05", "1/20/3", "1/1001", "x"] {
            assert!(TimeScale::parse(wrong).is_err(), "{wrong}");
        }
    }
}
