//! Which outcomes are retried.

use crate::config::{Node, Problems, Read, Shape, TimeScale, read_text};
use crate::event::AttemptOutcome;
use std::fmt;

/// A class of outcomes that a policy retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryOn {
    /// No connection.
    Connect,
    /// The connection ended before the response did.
    Reset,
    /// The attempt's timeout passed.
    Timeout,
    /// The answer was not HTTP.
    Malformed,
    /// A good status, but a failed check.
    Unexpected,
    /// Refused by the client itself: its breaker or its throttle.
    Refused,
    /// One status.
    Status(u16),
    /// A class of statuses by its first digit.
    StatusClass(u8),
}

/// What is retried where a policy does not say: connect, reset, timeout, 429 and 5xx.
pub fn default_classes() -> Vec<RetryOn> {
    vec![RetryOn::Connect, RetryOn::Reset, RetryOn::Timeout, RetryOn::Status(429), RetryOn::StatusClass(5)]
}

impl RetryOn {
    /// Whether an outcome belongs to this class.
    pub fn matches(self, outcome: AttemptOutcome) -> bool {
        match (self, outcome) {
            (Self::Connect, AttemptOutcome::Connect)
            | (Self::Reset, AttemptOutcome::Reset)
            | (Self::Timeout, AttemptOutcome::Timeout)
            | (Self::Malformed, AttemptOutcome::Malformed)
            | (Self::Unexpected, AttemptOutcome::Unexpected)
            | (Self::Refused, AttemptOutcome::Refused) => true,
            (Self::Status(code), AttemptOutcome::Status(got)) => code == got,
            (Self::StatusClass(class), AttemptOutcome::Status(got)) => got / 100 == u16::from(class),
            _ => false,
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is nothing to retry on: expected connect, reset, timeout, malformed, unexpected, refused, a status such as 429, or a class such as 5xx"
            )
        };
        match text {
            "connect" => return Ok(Self::Connect),
            "reset" => return Ok(Self::Reset),
            "timeout" => return Ok(Self::Timeout),
            "malformed" => return Ok(Self::Malformed),
            "unexpected" => return Ok(Self::Unexpected),
            "refused" => return Ok(Self::Refused),
            _ => {}
        }
        if let Some(digit) = text.strip_suffix("xx") {
            return match digit.parse::<u8>() {
                Ok(n @ 1..=5) => Ok(Self::StatusClass(n)),
                _ => Err(wrong()),
            };
        }
        match text.parse::<u16>() {
            Ok(code @ 100..=599) => Ok(Self::Status(code)),
            _ => Err(wrong()),
        }
    }
}

/// As a plan writes it.
impl fmt::Display for RetryOn {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Connect => f.write_str("connect"),
            Self::Reset => f.write_str("reset"),
            Self::Timeout => f.write_str("timeout"),
            Self::Malformed => f.write_str("malformed"),
            Self::Unexpected => f.write_str("unexpected"),
            Self::Refused => f.write_str("refused"),
            Self::Status(code) => write!(f, "{code}"),
            Self::StatusClass(class) => write!(f, "{class}xx"),
        }
    }
}

impl Read for RetryOn {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, Self::parse)
    }
    fn shape() -> Shape {
        Shape::OneOf(vec![
            Shape::Integer { min: 100, max: 599 },
            Shape::Text {
                what: "an outcome",
                pattern: "^(connect|reset|timeout|malformed|unexpected|refused|[1-5]xx|[1-5][0-9][0-9])$",
                examples: &["timeout", "429", "5xx"],
            },
        ])
    }

    fn rescale(&mut self, _by: TimeScale) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_retries_what_may_pass() {
        let retried = |outcome| default_classes().iter().any(|class| class.matches(outcome));
        for outcome in [AttemptOutcome::Connect, AttemptOutcome::Reset, AttemptOutcome::Timeout] {
            assert!(retried(outcome), "{outcome:?}");
        }
        for (code, want) in [(429, true), (500, true), (503, true), (599, true), (400, false), (404, false), (302, false)] {
            assert_eq!(retried(AttemptOutcome::Status(code)), want, "{code}");
        }
        assert!(!retried(AttemptOutcome::Malformed) && !retried(AttemptOutcome::Unexpected));
    }

    #[test]
    fn words_codes_and_classes_are_read() {
        for (text, want) in [
            ("timeout", Some(RetryOn::Timeout)),
            ("unexpected", Some(RetryOn::Unexpected)),
            ("429", Some(RetryOn::Status(429))),
            ("5xx", Some(RetryOn::StatusClass(5))),
            ("6xx", None),
            ("0xx", None),
            ("99", None),
            ("600", None),
            ("timeouts", None),
        ] {
            assert_eq!(RetryOn::parse(text).ok(), want, "{text}");
        }
    }
}
