//! What a server's Retry-After is worth to a client.
//!
//! RFC 9110 gives the header two forms, seconds from now and an HTTP-date, and a date three spellings, all of which
//! a recipient must read. A moment that has passed means now. The date form needs the wall clock, and so is turned
//! into a length of time where the header is read; from there on a hint is a [`Span`].

use crate::time::{Share, Span};
use crate::{choice, record};

record! {
    /// The hint is not read.
    pub struct Ignore {}
}

record! {
    /// The wait is the larger of hint and backoff, plus the spread.
    pub struct Honor {
        /// A longer hint counts as this long.
        cap: Span = Span::from_secs(300),
        /// Adds U(0, spread · hint), so that one hint does not bring everybody back together.
        spread: Option<Share>,
    }
}

choice! {
    /// What a Retry-After is worth.
    pub enum RetryAfter {
        /// It is not read.
        ignore => Ignore(Ignore),
        /// It is waited for.
        honor => Honor(Honor),
    }
}

impl RetryAfter {
    /// The hint is not read.
    pub const fn ignore() -> Self {
        Self::Ignore(Ignore {})
    }
}

impl RetryAfter {
    /// The wait before a retry: the backoff, or what the hint makes of it. `draw` is uniform in [0, 1].
    pub fn wait(&self, backoff: Span, hint: Hint, draw: f64) -> Asked {
        Asked::Wait(match (self, hint.0) {
            (Self::Ignore(_), _) | (_, None) => backoff,
            (Self::Honor(honor), Some(hint)) => {
                let hint = hint.min(honor.cap);
                let spread = honor.spread.map_or(Span::ZERO, |share| hint.scale(share.get() * draw));
                hint.max(backoff) + spread
            }
        })
    }
}
/// .
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint(pub Option<Span>);
impl Hint { /// .
 pub const NONE: Self = Self(None); /// .
 pub fn retry_after(s: Span) -> Self { Self(Some(s)) } /// .
 pub fn is_none(&self) -> bool { self.0.is_none() } }
/// .
pub enum Asked { /// .
 Wait(Span), /// .
 Stop }

/// Reads the value of a Retry-After header, given the milliseconds since 1970 UTC: how long to wait from now. Moments
/// that have passed and negative numbers are zero; absurd ones saturate. `None` where it is neither number nor date.
pub fn parse_retry_after(text: &str, wall_millis: i64) -> Option<Span> {
    let text = text.trim();
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        // More digits than a number holds are more time than a run has.
        let seconds = digits.parse::<u64>().unwrap_or(u64::MAX);
        return Some(if text.starts_with('-') { Span::ZERO } else { Span::from_secs(seconds) });
    }
    // The date has whole seconds, the clock has not: a wait in whole seconds could be one too long.
    let wait = parse_http_date(text)?.saturating_mul(1_000).saturating_sub(wall_millis);
    Some(Span::from_millis(u64::try_from(wait).unwrap_or(0)))
}

/// Reads the three forms of RFC 9110's HTTP-date, as seconds since 1970 UTC.
fn parse_http_date(text: &str) -> Option<i64> {
    const FORMS: [&str; 3] = ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];
    // The longest form has 33 characters; what is longer is not worth reading.
    if text.len() > 40 {
        return None;
    }
    let date = FORMS.iter().find_map(|form| jiff::civil::DateTime::strptime(form, text).ok())?;
    Some(date.duration_since(jiff::civil::date(1970, 1, 1).at(0, 0, 0, 0)).as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        // Sun, 06 Nov 1994 08:49:37 GMT
        let then = 784_111_777;
        for (text, wall, want) in [
            ("120", 0, Some(120)),
            (" 0 ", 0, Some(0)),
            ("-5", 0, Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", then - 30, Some(30)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", then - 30, Some(30)),
            ("Sun Nov  6 08:49:37 1994", then - 30, Some(30)),
            ("Sun Nov 16 08:49:37 1994", then, None),
            ("Wed Nov 16 08:49:37 1994", then, Some(864_000)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", then, Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", then + 1_000_000_000, Some(0)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 0, Some(253_402_300_799)),
            ("99999999999999999999999999", 0, Some(u64::MAX)),
            ("", 0, None),
            ("-", 0, None),
            ("soon", 0, None),
            ("1.5", 0, None),
            ("+5", 0, None),
            ("Sun, 06 Nov 1994 08:49:37", 0, None),
            ("Sun, 06 Nov 1994 08:49:37 PST", 0, None),
            ("Sun, 31 Feb 1994 08:49:37 GMT", 0, None),
            ("Sun, 06 Nov 1994 25:49:37 GMT", 0, None),
        ] {
            assert_eq!(parse_retry_after(text, wall * 1_000), want.map(Span::from_secs), "{text}");
        }
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(parse_retry_after(date, then * 1_000 - 1_250), Some(Span::from_millis(1_250)));
        assert_eq!(parse_retry_after(date, then * 1_000 + 1), Some(Span::ZERO));
        assert_eq!(parse_retry_after(date, i64::MIN), Some(Span::from_millis(i64::MAX as u64)));
        assert_eq!(parse_retry_after(&"9".repeat(100_000), 0), Some(Span::MAX));
        assert_eq!(parse_retry_after(&"x".repeat(100_000), 0), None);
    }

    #[test]
    fn a_hint_is_a_floor_with_a_spread_above() {
        let honor = |spread| RetryAfter::Honor(Honor { cap: Span::from_secs(60), spread });
        let half = Some(Share::new(0.5).unwrap());
        for (retry_after, backoff, hint, draw, want) in [
            (RetryAfter::ignore(), 2, Some(30), 1.0, 2),
            (honor(None), 2, None, 1.0, 2),
            (honor(None), 2, Some(30), 1.0, 30),
            (honor(None), 40, Some(30), 1.0, 40),
            (honor(half), 2, Some(30), 0.0, 30),
            (honor(half), 2, Some(30), 1.0, 45),
            (honor(half), 40, Some(30), 1.0, 55),
            (honor(None), 2, Some(1_000_000), 1.0, 60),
            (honor(half), 2, Some(0), 1.0, 2),
        ] {
            let Asked::Wait(wait) = retry_after.wait(Span::from_secs(backoff), Hint(hint.map(Span::from_secs)), draw) else { panic!() };
            assert_eq!(wait, Span::from_secs(want), "{retry_after:?} {backoff} {hint:?} {draw}");
        }
    }
}
