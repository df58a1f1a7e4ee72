//! What goes first: from an outbox, and at a service that sheds. It travels with the request as the urgency of RFC 9218.

use crate::keyword;

keyword! {
    /// What goes first; and the urgency of RFC 9218, which travels with the request.
    pub enum Priority {
        /// Somebody waits for it: `u=1`.
        critical => Critical,
        /// As everything that says nothing: `u=3`.
        normal => Normal,
        /// Nobody waits for it: `u=5`.
        background => Background,
        /// It may wait for all else: `u=7`.
        best_effort => BestEffort,
    }
}

impl Priority {
    /// The value of the `Priority` header.
    pub const fn header(self) -> &'static str {
        match self {
            Self::Critical => "u=1",
            Self::Normal => "u=3",
            Self::Background => "u=5",
            Self::BestEffort => "u=7",
        }
    }

    /// What the value of a `Priority` header comes to: urgencies 0 and 1 are critical, 2 and 3 normal, 4 and 5 background, 6 and 7 best
    /// effort; a value without an urgency that can be read is normal, as RFC 9218 has it.
    pub fn of_header(value: &str) -> Self {
        let urgency = value.split(',').filter_map(|item| item.trim().strip_prefix("u="));
        match urgency.filter_map(|digit| digit.split(';').next()?.trim().parse::<u8>().ok()).next() {
            Some(0 | 1) => Self::Critical,
            Some(4 | 5) => Self::Background,
            Some(6 | 7) => Self::BestEffort,
            _ => Self::Normal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_what_it_was_made_of_and_others_are_read_by_their_urgency() {
        for &priority in Priority::ALL {
            assert_eq!(Priority::of_header(priority.header()), priority);
        }
        for (value, wanted) in [
            ("u=0", Priority::Critical),
            ("i, u=2", Priority::Normal),
            ("u=6;a=1, i", Priority::BestEffort),
            ("u=9", Priority::Normal),
            ("", Priority::Normal),
            ("u=x, u=4", Priority::Background),
        ] {
            assert_eq!(Priority::of_header(value), wanted, "{value}");
        }
    }
}
