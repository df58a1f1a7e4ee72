//! Amounts of bytes and rates of them, and how each is written: `64KB` is 64,000 bytes, `64KiB` is 65,536.

use crate::config::{Node, Problems, Read, Shape, TimeScale, read_text};
use std::fmt;

/// An amount of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(pub u64);

/// Bytes a second, above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteRate(u64);

/// The units, the longest names first, so that none is found inside another.
const UNITS: [(&str, u64); 7] =
    [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("KB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("B", 1)];
/// A terabyte: the most that an amount or a rate may be.
const MOST: u64 = 1_000_000_000_000;

impl Size {
    /// Reads `64KB`, `1MiB`, `1.5MB` or `512B`.
    ///
    /// # Errors
    /// A sentence that says how an amount is written.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let wrong = || format!("expected an amount of bytes, such as `64KB` or `1MiB`, found `{text}`");
        let unit = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(unit);
        if unit.is_empty() && number.parse::<f64>().is_ok() {
            return Err(format!("`{text}` has no unit: write `{text}B`, `{text}KB` or `{text}KiB`"));
        }
        let (_, one) = UNITS.iter().find(|(name, _)| *name == unit.trim_start()).ok_or_else(wrong)?;
        let bytes = number.parse::<f64>().map_err(|_| wrong())? * *one as f64;
        if bytes > MOST as f64 {
            return Err(format!("`{text}` is too much: `1000GB` at most"));
        }
        Ok(Self((bytes + 0.5) as u64))
    }
}

impl ByteRate {
    /// So many bytes a second.
    ///
    /// # Errors
    /// When that is nothing, or more than a terabyte.
    pub fn per_second(bytes: u64) -> Result<Self, String> {
        match bytes {
            0 => Err("a rate of nothing lets nothing pass: use `stall` or `half_open` for that".to_string()),
            1..=MOST => Ok(Self(bytes)),
            _ => Err("a rate is `1000GB/s` at most".to_string()),
        }
    }

    /// Bytes a second.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Reads `500KB/s`.
    ///
    /// # Errors
    /// A sentence that says how a rate of bytes is written.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let Some(amount) = text.strip_suffix("/s") else {
            return Err(match Size::parse(text) {
                Ok(_) => format!("`{text}` is an amount, not a rate: write `{text}/s`"),
                Err(_) => format!("expected bytes a second, such as `500KB/s`, found `{text}`"),
            });
        };
        Size::parse(amount).and_then(|size| Self::per_second(size.0))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |(_, one): &&(&str, u64)| self.0 >= *one && self.0.is_multiple_of(*one);
        match UNITS.iter().filter(whole).max_by_key(|(_, one)| *one) {
            Some((name, one)) => write!(f, "{}{name}", self.0 / one),
            None => write!(f, "{}B", self.0),
        }
    }
}

impl fmt::Display for ByteRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", Size(self.0))
    }
}

impl Read for Size {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, Self::parse)
    }

    fn shape() -> Shape {
        Shape::Text {
            what: "an amount of bytes",
            pattern: r"^[0-9]+(\.[0-9]+)? *(B|KB|MB|GB|KiB|MiB|GiB)$",
            examples: &["64KB", "1MiB"],
        }
    }

    fn rescale(&mut self, _by: TimeScale) {}
}

impl Read for ByteRate {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, Self::parse)
    }

    fn shape() -> Shape {
        Shape::Text {
            what: "bytes a second",
            pattern: r"^[0-9]+(\.[0-9]+)? *(B|KB|MB|GB|KiB|MiB|GiB)/s$",
            examples: &["500KB/s", "10MB/s"],
        }
    }

    fn rescale(&mut self, by: TimeScale) {
        let scaled = by.rate(self.0 as f64) + 0.5;
        *self = Self((scaled as u64).clamp(1, MOST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_and_written() {
        for (text, bytes, told) in [
            ("64KB", 64_000, "64KB"),
            ("64KiB", 65_536, "64KiB"),
            ("1.5MB", 1_500_000, "1500KB"),
            ("2 GiB", 2 << 30, "2GiB"),
            ("0B", 0, "0B"),
            ("1000B", 1_000, "1KB"),
        ] {
            assert_eq!(Size::parse(text).map(|s| (s.0, s.to_string())), Ok((bytes, told.to_string())), "{text}");
        }
        assert_eq!(ByteRate::parse("500KB/s").map(|r| (r.get(), r.to_string())), Ok((500_000, "500KB/s".to_string())));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_remedy() {
        let size = |text| Size::parse(text).unwrap_err();
        assert!(size("64").contains("write `64B`, `64KB` or `64KiB`"));
        assert!(size("64kb").contains("such as `64KB`"));
        assert!(size("1.2.3KB").contains("such as `64KB`"));
        assert!(size("1001GB").contains("`1000GB` at most"));
        let rate = |text| ByteRate::parse(text).unwrap_err();
        assert!(rate("500KB").contains("write `500KB/s`"));
        assert!(rate("500").contains("such as `500KB/s`"));
        assert!(rate("0KB/s").contains("nothing"));
    }
}
