//! Reads hints from the headers of a response. Whatever a server says there, it is worth a length of time or nothing.

use super::{Hint, HintKind};
use crate::time::Span;

/// From this many on, seconds are a moment since 1970 (2001), and not a length of time (31 years).
const EPOCH_SECONDS: f64 = 1e9;
/// From this many on they are milliseconds since 1970.
const EPOCH_MILLIS: f64 = 1e12;

/// The headers that say milliseconds: OpenAI's and others', Azure's, AWS's.
const MILLIS: [&str; 3] = ["retry-after-ms", "x-ms-retry-after-ms", "x-amz-retry-after"];

/// Reads every kind of hint that is there. `header` gives the value of a header by its name in lower case; `wall_millis` are the
/// milliseconds since 1970 UTC.
pub fn read<'a>(header: impl Fn(&str) -> Option<&'a [u8]>, wall_millis: i64) -> Hint {
    let text = |name: &str| header(name).and_then(|value| std::str::from_utf8(value).ok()).map(str::trim);
    let mut hint = Hint::NONE;
    let mut note = |kind, wait: Option<Span>| hint = wait.map_or(hint, |wait| hint.with(kind, wait));
    note(HintKind::RetryAfter, text("retry-after").and_then(|text| parse_retry_after(text, wall_millis)));
    note(HintKind::RetryAfterMs, MILLIS.iter().find_map(|name| text(name).and_then(number)).map(millis));
    let has_room = |name: &str| text(name).and_then(number).is_some_and(|left| left > 0.0);
    let reset = || text("ratelimit-reset").filter(|_| !has_room("ratelimit-remaining")).and_then(number).map(seconds);
    note(HintKind::RateLimit, text("ratelimit").and_then(parse_ratelimit).or_else(reset));
    let reset = text("x-ratelimit-reset").filter(|_| !has_room("x-ratelimit-remaining"));
    note(HintKind::XRateLimitReset, reset.and_then(|text| parse_reset(text, wall_millis)));
    match header("grpc-retry-pushback-ms") {
        None => hint,
        // gRPC (A6): negative, or nothing that can be read, is no retry.
        Some(_) => match text("grpc-retry-pushback-ms").and_then(|text| text.parse::<i64>().ok()) {
            Some(wait @ 0..) => hint.with(HintKind::GrpcPushback, Span::from_millis(wait.unsigned_abs())),
            _ => hint.with_stop(),
        },
    }
}

fn seconds(n: f64) -> Span {
    Span::from_secs_f64(n)
}

fn millis(n: f64) -> Span {
    Span::from_secs_f64(n / 1e3)
}

/// A number as headers have it: digits, perhaps with a fraction. A negative one is zero.
fn number(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.') && digits.bytes().any(|b| b.is_ascii_digit());
    // More digits than these say nothing more; the text may be as long as a header may be.
    let value = digits.parse::<f64>().ok().filter(|_| plain)?;
    Some(if text.starts_with('-') { 0.0 } else { value })
}

/// `RateLimit` in its forms: `"name";r=0;t=30, …` and, in older drafts, `limit=100, remaining=0, reset=30`. What counts is the longest
/// wait of those that have nothing left; where each has something left, nobody has to wait.
fn parse_ratelimit(text: &str) -> Option<Span> {
    if text.contains("reset=") {
        return ratelimit_item(text.split([',', ';']), "remaining", "reset");
    }
    text.split(',').filter_map(|item| ratelimit_item(item.split(';'), "r", "t")).max()
}

fn ratelimit_item<'a>(parts: impl Iterator<Item = &'a str>, left: &str, until: &str) -> Option<Span> {
    let (mut is_spent, mut wait) = (true, None);
    for (name, value) in parts.filter_map(|part| part.trim().split_once('=')) {
        match number(value.trim()) {
            Some(n) if name == left => is_spent = n <= 0.0,
            Some(n) if name == until => wait = Some(seconds(n)),
            _ => {}
        }
    }
    wait.filter(|_| is_spent)
}

/// `x-ratelimit-reset`, of which servers disagree whether it is a moment or a length of time: told by its size.
fn parse_reset(text: &str, wall_millis: i64) -> Option<Span> {
    let n = number(text)?;
    let until = |then: f64| millis((then - wall_millis as f64).max(0.0));
    Some(match n {
        n if n >= EPOCH_MILLIS => until(n),
        n if n >= EPOCH_SECONDS => until(n * 1e3),
        n => seconds(n),
    })
}

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
    use super::super::Asked;
    use super::*;

    /// 2026-11-30 12:00:00 UTC, and half a second.
    const NOW: i64 = 1_796_040_000_500;

    fn hint(headers: &[(&str, &[u8])]) -> Hint {
        read(|name| headers.iter().find(|(n, _)| *n == name).map(|(_, value)| *value), NOW)
    }

    fn waits(kind: HintKind, headers: &[(&str, &str)]) -> Option<u64> {
        let bytes: Vec<(&str, &[u8])> = headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        match hint(&bytes).get(kind) {
            None => None,
            Some(Asked::Stop) => Some(u64::MAX),
            Some(Asked::Wait(wait)) => Some(wait.as_millis()),
        }
    }

    #[test]
    fn every_kind_is_read() {
        use HintKind::{GrpcPushback as Grpc, RateLimit, RetryAfter, RetryAfterMs, XRateLimitReset as XReset};
        const STOP: Option<u64> = Some(u64::MAX);
        for (kind, headers, want) in [
            (RetryAfter, &[("retry-after", "7")][..], Some(7_000)),
            (RetryAfter, &[("retry-after", "Mon, 30 Nov 2026 12:00:30 GMT")], Some(29_500)),
            (RetryAfter, &[("retry-after", "soon")], None),
            (RetryAfterMs, &[("retry-after-ms", "1500")], Some(1_500)),
            (RetryAfterMs, &[("retry-after-ms", "1500.5")], Some(1_501)),
            (RetryAfterMs, &[("x-ms-retry-after-ms", "20")], Some(20)),
            (RetryAfterMs, &[("x-amz-retry-after", "20")], Some(20)),
            (RetryAfterMs, &[("retry-after-ms", "-1")], Some(0)),
            (RetryAfterMs, &[("retry-after-ms", "1e9")], None),
            (RetryAfterMs, &[("retry-after-ms", "inf")], None),
            (RetryAfterMs, &[("retry-after-ms", ".")], None),
            (RateLimit, &[("ratelimit", "\"default\";r=0;t=30")], Some(30_000)),
            (RateLimit, &[("ratelimit", "\"default\";t=30")], Some(30_000)),
            (RateLimit, &[("ratelimit", "\"a\";r=0;t=3, \"b\";r=0;t=60, \"c\";r=9;t=600")], Some(60_000)),
            (RateLimit, &[("ratelimit", "\"default\";r=5;t=30")], None),
            (RateLimit, &[("ratelimit", "limit=100, remaining=0, reset=5")], Some(5_000)),
            (RateLimit, &[("ratelimit", "limit=100, remaining=1, reset=5")], None),
            (RateLimit, &[("ratelimit-reset", "5")], Some(5_000)),
            (RateLimit, &[("ratelimit-reset", "5"), ("ratelimit-remaining", "0")], Some(5_000)),
            (RateLimit, &[("ratelimit-reset", "5"), ("ratelimit-remaining", "3")], None),
            (RateLimit, &[("ratelimit", ";;=;,t=,t=x")], None),
            (XReset, &[("x-ratelimit-reset", "60")], Some(60_000)),
            (XReset, &[("x-ratelimit-reset", "1796040060")], Some(59_500)),
            (XReset, &[("x-ratelimit-reset", "1796040060000")], Some(59_500)),
            (XReset, &[("x-ratelimit-reset", "1796039000")], Some(0)),
            (XReset, &[("x-ratelimit-reset", "1796040060"), ("x-ratelimit-remaining", "4000")], None),
            (Grpc, &[("grpc-retry-pushback-ms", "250")], Some(250)),
            (Grpc, &[("grpc-retry-pushback-ms", "0")], Some(0)),
            (Grpc, &[("grpc-retry-pushback-ms", "-1")], STOP),
            (Grpc, &[("grpc-retry-pushback-ms", "soon")], STOP),
            (Grpc, &[("grpc-retry-pushback-ms", "")], STOP),
            (Grpc, &[("retry-after", "7")], None),
        ] {
            assert_eq!(waits(kind, headers), want, "{headers:?}");
        }
    }

    #[test]
    fn hostile_values_are_harmless() {
        let names = ["retry-after", MILLIS[0], "ratelimit", "ratelimit-reset", "x-ratelimit-reset", "grpc-retry-pushback-ms"];
        let long = "9".repeat(100_000);
        let commas = ",".repeat(100_000);
        let items = "a;t=1,".repeat(20_000);
        for name in names {
            for value in [long.as_bytes(), commas.as_bytes(), items.as_bytes(), b"\xff\xfe", b"NaN", b"-inf", b"1.2.3", b"\x00"] {
                let hint = hint(&[(name, value)]);
                for kind in HintKind::ALL {
                    let asked = hint.get(*kind);
                    assert!(asked != Some(Asked::Stop) || *kind == HintKind::GrpcPushback, "{name}");
                }
            }
        }
        assert!(hint(&[("retry-after", b"\xff")]).is_none());
    }

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
}
