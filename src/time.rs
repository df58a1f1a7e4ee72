//! Moments, lengths of time, rates and shares, and how each is written.
//!
//! Owns the units of the whole program: a [`Timestamp`] counts nanoseconds since the run began, a
//! [`Span`] is a length of time in nanoseconds. Nothing here reads a clock.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// A moment: nanoseconds since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

/// A length of time in nanoseconds. Arithmetic saturates: no plan makes a run long enough to notice,
/// and a hostile one must not panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

impl Timestamp {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens.
    pub const NEVER: Self = Self(u64::MAX);

    /// The time from `earlier` to here; zero where `earlier` is later.
    pub fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Rounded up to a multiple of `grain`: the one place where deadlines are rounded (invariant 4).
    /// A zero grain leaves the moment as it is.
    pub fn round_up(self, grain: Span) -> Self {
        match grain.0 {
            0 => self,
            g => Self(self.0.div_ceil(g).saturating_mul(g)),
        }
    }

    /// Whole milliseconds since the run began, rounded down.
    pub fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Seconds since the run began.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than any run.
    pub const MAX: Self = Self(u64::MAX);

    /// `n` microseconds.
    pub const fn from_micros(n: u64) -> Self {
        Self(n.saturating_mul(1_000))
    }

    /// `n` milliseconds.
    pub const fn from_millis(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000))
    }

    /// `n` seconds.
    pub const fn from_secs(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000_000))
    }

    /// `s` seconds, rounded to the nanosecond; negative and NaN become zero, too large saturates.
    pub fn from_secs_f64(s: f64) -> Self {
        Self((s * 1e9 + 0.5) as u64)
    }

    /// Seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Whole seconds, rounded up: as a Retry-After says it, so that nobody is asked back too early.
    pub const fn as_secs_up(self) -> u64 {
        self.0.div_ceil(1_000_000_000)
    }

    /// Whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Whether this is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// This length times a factor, rounded to the nanosecond; negative and NaN give zero.
    pub fn scale(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor + 0.5) as u64)
    }

    /// This length times a whole number.
    pub const fn times(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }

    /// This length for a sentence: to the tenth of a second from one second on, to the second from one minute on.
    pub const fn about(self) -> Self {
        let step = match self.0 {
            0..1_000_000_000 => 1_000_000,
            1_000_000_000..60_000_000_000 => 100_000_000,
            _ => 1_000_000_000,
        };
        Self(self.0.saturating_add(step / 2) / step * step)
    }

    /// This length to the microsecond; to ten of them from 10 ms on, and to a thousand from one second on.
    pub const fn about_micros(self) -> Self {
        let step = match self.0 {
            0..10_000_000 => 1_000,
            10_000_000..1_000_000_000 => 10_000,
            _ => 1_000_000,
        };
        Self(self.0.saturating_add(step / 2) / step * step)
    }

    /// For the standard library and the runtime.
    pub const fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0)
    }

    /// From the standard library; saturates.
    pub fn from_std(d: std::time::Duration) -> Self {
        Self(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Reads `90s`, `1m30s`, `200ms`, `1.5s`, `250us`, `2h`, `1d`, or `0`.
    ///
    /// # Errors
    /// A sentence that says what a duration looks like, and how this text can be mended.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "0" {
            return Ok(Self::ZERO);
        }
        if text.parse::<f64>().is_ok() {
            return Err(format!("a duration needs a unit: write `{text}s` or `{text}ms`"));
        }
        let mut total = 0u64;
        let mut rest = text;
        let mut last_unit = u64::MAX;
        while !rest.is_empty() {
            let (nanos, unit, after) = read_part(rest, text)?;
            if unit >= last_unit {
                return Err(format!("`{text}`: units must go from large to small, each once, like `1m30s`"));
            }
            last_unit = unit;
            total = total.saturating_add(nanos);
            rest = after;
        }
        if text.is_empty() {
            return Err("a duration is missing: write `30s`, `200ms` or `1m30s`".into());
        }
        Ok(Self(total))
    }
}

/// One number and unit from the front of `rest`: its nanoseconds, the unit's size, what follows.
fn read_part<'a>(rest: &'a str, whole: &str) -> Result<(u64, u64, &'a str), String> {
    let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, after) = rest.split_at(digits);
    let letters = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
    let (unit, after) = after.split_at(letters);
    let size = match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        "M" => return Err(format!("`{whole}`: there is no unit `M`; minutes are `m`")),
        _ => return Err(format!("`{whole}` is not a duration: write `30s`, `200ms`, `1m30s` or `2h`")),
    };
    let n: f64 = number.parse().map_err(|_| format!("`{whole}` is not a duration: write `30s`, `200ms`, `1m30s` or `2h`"))?;
    let nanos = match number.parse::<u64>() {
        Ok(whole_number) => whole_number.saturating_mul(size),
        Err(_) => (n * size as f64 + 0.5) as u64,
    };
    Ok((nanos, size, after))
}

impl fmt::Display for Span {
    /// The shortest form that [`Span::parse`] reads back to the same value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        let units =
            [(3_600_000_000_000, "h"), (60_000_000_000, "m"), (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
        for (size, name) in units {
            let n = rest / size;
            if n > 0 {
                write!(f, "{n}{name}")?;
                rest -= n * size;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}

impl Add<Span> for Timestamp {
    type Output = Self;
    fn add(self, rhs: Span) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign<Span> for Timestamp {
    fn add_assign(&mut self, rhs: Span) {
        *self = *self + rhs;
    }
}

impl Sub<Span> for Timestamp {
    type Output = Self;
    fn sub(self, rhs: Span) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

impl Sub for Span {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl Mul<u64> for Span {
    type Output = Self;
    fn mul(self, rhs: u64) -> Self {
        self.times(rhs)
    }
}

impl Div<u64> for Span {
    type Output = Self;
    fn div(self, rhs: u64) -> Self {
        Self(self.0 / rhs.max(1))
    }
}

impl Sum for Span {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, |a, b| a + b)
    }
}

/// How often something happens, per second. Always finite and not negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Rate(f64);

impl Rate {
    /// `n` a second.
    ///
    /// # Errors
    /// Negative and non-finite numbers.
    pub fn per_second(n: f64) -> Result<Self, String> {
        if n.is_finite() && n >= 0.0 { Ok(Self(n)) } else { Err(format!("{n} is not a rate: it must be 0 or more")) }
    }

    /// Events per second.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// The time from one event to the next at an even pace; [`Span::MAX`] at a rate of zero.
    pub fn interval(self) -> Span {
        if self.0 > 0.0 { Span::from_secs_f64(1.0 / self.0) } else { Span::MAX }
    }

    /// This rate times a factor (negative and non-finite factors give zero).
    pub fn scale(self, factor: f64) -> Self {
        Self::per_second(self.0 * factor).unwrap_or_default()
    }

    /// Reads `600/s`, `30/m`, `1000/h`.
    ///
    /// # Errors
    /// A sentence that says how a rate is written.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.parse::<f64>().is_ok() {
            return Err(format!("a rate needs a unit: write `{text}/s` or `{text}/m`"));
        }
        let wrong = || format!("`{text}` is not a rate: write `600/s`, `30/m` or `10/h`");
        let (number, unit) = text.split_once('/').ok_or_else(wrong)?;
        let per = match unit.trim() {
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "M" => return Err(format!("`{text}`: there is no unit `M`; minutes are `m`")),
            _ => return Err(wrong()),
        };
        let n: f64 = number.trim().parse().map_err(|_| wrong())?;
        Self::per_second(n / per)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.0)
    }
}

/// A part of a whole: 0 to 1, written as `10%`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Share(f64);

impl Share {
    /// Everything.
    pub const ALL: Self = Self(1.0);
    /// Nothing.
    pub const ZERO: Self = Self(0.0);

    /// A fraction between 0 and 1.
    ///
    /// # Errors
    /// Anything outside that.
    pub fn new(fraction: f64) -> Result<Self, String> {
        if (0.0..=1.0).contains(&fraction) {
            Ok(Self(fraction))
        } else {
            Err(format!("a share lies between 0% and 100%, not at {}%", fraction * 100.0))
        }
    }

    /// The fraction, 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// Reads `10%`.
    ///
    /// # Errors
    /// A sentence that says how a share is written.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::new(parse_percent(text)?)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded to a millionth of a per cent, so that 0.07 prints as 7% and not 7.000000000000001%.
        write!(f, "{}%", (self.0 * 1e8).round() / 1e6)
    }
}

/// Reads `150%` as 1.5: a percentage that may exceed the whole (a ratio, a factor).
///
/// # Errors
/// A sentence that says how a percentage is written.
pub fn parse_percent(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let number = text.strip_suffix('%').ok_or_else(|| match text.parse::<f64>() {
        Ok(n) if n <= 1.0 => format!("a share needs a unit: write `{}%`", n * 100.0),
        Ok(n) => format!("a share needs a unit: write `{n}%`"),
        Err(_) => format!("`{text}` is not a share: write `10%`"),
    })?;
    match number.trim().parse::<f64>() {
        Ok(n) if n.is_finite() && n >= 0.0 => Ok(n / 100.0),
        _ => Err(format!("`{text}` is not a share: write `10%`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_write() {
        for (text, nanos) in [
            ("90s", 90_000_000_000),
            ("1m30s", 90_000_000_000),
            ("200ms", 200_000_000),
            ("1.5s", 1_500_000_000),
            ("2h", 7_200_000_000_000),
            ("250us", 250_000),
            ("0", 0),
            ("1h1m1s1ms", 3_661_001_000_000),
        ] {
            assert_eq!(Span::parse(text), Ok(Span(nanos)), "{text}");
            assert_eq!(Span::parse(&Span(nanos).to_string()), Ok(Span(nanos)), "{text} back");
        }
    }

    #[test]
    fn bad_durations_say_how_to_mend_them() {
        for (text, want) in [
            ("10", "write `10s`"),
            ("5M", "minutes are `m`"),
            ("", "missing"),
            ("1s1m", "large to small"),
            ("fast", "not a duration"),
            ("1s 2ms", "not a duration"),
            ("-3s", "not a duration"),
            ("1..2s", "not a duration"),
        ] {
            let error = Span::parse(text).unwrap_err();
            assert!(error.contains(want), "{text}: {error}");
        }
    }

    #[test]
    fn rates_and_shares() {
        assert_eq!(Rate::parse("600/s").unwrap().get(), 600.0);
        assert_eq!(Rate::parse("30/m").unwrap().get(), 0.5);
        assert!(Rate::parse("600").unwrap_err().contains("`600/s`"));
        assert!(Rate::parse("-1/s").is_err());
        assert_eq!(Share::parse("10%").unwrap().get(), 0.1);
        assert_eq!(Share::parse("7%").unwrap().to_string(), "7%");
        assert!(Share::parse("0.1").unwrap_err().contains("`10%`"));
        assert!(Share::parse("101%").is_err());
    }

    #[test]
    fn lengths_for_sentences_are_rounded() {
        for (exact, said) in
            [(999_400_000, "999ms"), (5_999_000_000, "6s"), (1_240_000_000, "1s200ms"), (90_600_000_000, "1m31s"), (0, "0s")]
        {
            assert_eq!(Span(exact).about().to_string(), said);
        }
    }

    #[test]
    fn rounding_up_to_a_grain() {
        let grain = Span::from_micros(250);
        assert_eq!(Timestamp(1).round_up(grain), Timestamp(250_000));
        assert_eq!(Timestamp(250_000).round_up(grain), Timestamp(250_000));
        assert_eq!(Timestamp(7).round_up(Span::ZERO), Timestamp(7));
    }
}
