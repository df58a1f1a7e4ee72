//! An answer that a fault gives in the upstream's place.

use crate::config::Table;
use crate::policy::hint::Said;

/// What a client is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The hint, if there is one.
    pub hint: Option<Said>,
    /// Headers beside those that frame the answer: names and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Answer {
    /// A status and a hint, and nothing more.
    pub const fn bare(status: u16, hint: Option<Said>) -> Self {
        Self { status, hint, headers: Vec::new(), body: String::new() }
    }
}

/// The most headers of an answer.
const MOST: usize = 32;
/// The longest name or value, in bytes.
const LONGEST: usize = 1024;
/// What the proxy says itself, as it frames the answer.
const FRAMING: [&str; 5] = ["connection", "content-length", "transfer-encoding", "upgrade", "trailer"];
/// What `retry_after` and `hint` say. A header that says it behind their back would be there live and not in a simulated run.
const HINTS: [&str; 9] = [
    "retry-after",
    "retry-after-ms",
    "x-ms-retry-after-ms",
    "x-amz-retry-after",
    "ratelimit",
    "ratelimit-reset",
    "x-ratelimit-reset",
    "grpc-retry-pushback-ms",
    "x-stormwake-connect",
];

/// A final status that a proxy may answer with.
pub(crate) fn check_status(code: u16) -> Result<(), String> {
    if (200..=599).contains(&code) { Ok(()) } else { Err(format!("{code} is not a status of an answer: expected 200 to 599")) }
}

/// Headers that a proxy may answer with.
pub(super) fn check_headers(headers: &Table<String>) -> Result<(), String> {
    if headers.0.len() > MOST {
        return Err(format!("`headers` has {} of them: {MOST} at most", headers.0.len()));
    }
    headers.0.iter().try_for_each(|entry| check_header(&entry.name, &entry.value))
}

fn check_header(name: &str, value: &str) -> Result<(), String> {
    let shown: String = name.chars().take(80).collect();
    let lower = name.to_ascii_lowercase();
    if !is_token(name) || name.len() > LONGEST {
        Err(format!("`headers` has `{shown}`, which is not the name of a header: such as `content-type`"))
    } else if FRAMING.contains(&lower.as_str()) {
        Err(format!("`headers` has `{shown}`, which the proxy says itself: leave it out"))
    } else if HINTS.contains(&lower.as_str()) {
        Err(format!("`headers` has `{shown}`: say it with `retry_after`, and in which form with `hint`"))
    } else if value.len() > LONGEST || !value.bytes().all(|b| b == b'\t' || (b' '..=b'~').contains(&b)) {
        Err(format!("`headers` gives `{shown}` a value that cannot be sent: one line of plain text, {LONGEST} letters at most"))
    } else {
        Ok(())
    }
}

/// What HTTP allows in a method or the name of a header.
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_a_final_one() {
        assert!(check_status(200).is_ok() && check_status(599).is_ok());
        assert!(check_status(101).unwrap_err().contains("200 to 599"));
        assert!(check_status(600).is_err());
    }

    #[test]
    fn a_header_is_one_that_can_be_sent_and_says_what_nothing_else_says() {
        assert_eq!(check_header("x-cause", "maintenance, back at 9"), Ok(()));
        for (name, value, why) in [
            ("x cause", "a", "not the name of a header"),
            ("", "a", "not the name of a header"),
            ("Content-Length", "9", "says itself"),
            ("Retry-After", "9", "`retry_after`"),
            ("x-cause", "a\r\nb: c", "cannot be sent"),
            ("x-cause", "é", "cannot be sent"),
        ] {
            let said = check_header(name, value).unwrap_err();
            assert!(said.contains(why), "{name}: {said}");
        }
    }
}
