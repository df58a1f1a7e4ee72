//! Waits out of a table, as webhooks have them: at once, 5 s, 5 min, half an hour, and so on for a day.

use super::kept::{Clamp, Kept};
use super::{Jitter, WaitInput};
use crate::time::Span;
use crate::{keyword, record};

keyword! {
    /// What follows the last wait of a table.
    pub enum AfterLast {
        /// The last wait, again and again.
        repeat => Repeat,
        /// Nothing: there is no further retry, whatever `attempts` allows.
        end => End,
    }
}

record! {
    /// Waits out of a table: the n-th entry after the n-th failure.
    pub struct Schedule {
        /// The waits, in order, such as `[0, 5s, 5m, 30m, 2h]`.
        waits: Vec<Span>,
        /// What follows the last of them: it repeats, or the retries end.
        after_last: AfterLast = AfterLast::Repeat,
        /// The random part of each.
        jitter: Jitter = Jitter::none(),
        /// The shortest wait, whatever the jitter has made of it.
        floor: Span = Span::ZERO,
    } => |schedule: &Schedule| match schedule.waits.len() {
        1..=MOST => Ok(()),
        n => Err(format!("`waits` has {n} entries: expected 1 to {MOST}, such as `[0, 5s, 5m]`")),
    }
}

/// The longest table.
const MOST: usize = 1_000;

impl Schedule {
    /// The longest wait of the table.
    pub fn longest(&self) -> Span {
        self.waits.iter().copied().max().unwrap_or_default()
    }

    /// The wait before the next attempt; none where the table has ended.
    pub fn wait(&self, input: WaitInput) -> Option<Span> {
        let index = (input.failed_attempt as usize).saturating_sub(1);
        let last = *self.waits.last()?;
        let plain = match (self.waits.get(index), self.after_last) {
            (Some(wait), _) => *wait,
            (None, AfterLast::Repeat) => last,
            (None, AfterLast::End) => return None,
        };
        let (base, cap) = (self.waits[0], Span::MAX);
        let (jitter, floor) = (&self.jitter, self.floor);
        Some(Kept { base, cap, jitter, clamp: Clamp::BeforeJitter, floor, zero_first_retry: false }.wait(plain, input))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::backoff::jitter::Plain;

    #[test]
    fn a_webhooks_table_repeats_or_ends() {
        let seconds = [0, 5, 300, 1_800, 7_200, 18_000, 36_000, 36_000];
        let waits: Vec<Span> = seconds.map(Span::from_secs).to_vec();
        let schedule = |after_last, jitter| Schedule { waits: waits.clone(), after_last, jitter, floor: Span::ZERO };
        let wait = |schedule: &Schedule, failed_attempt| {
            schedule.wait(WaitInput { failed_attempt, previous: None, draw: 0.5 }).map(|wait| wait.as_millis() / 1_000)
        };
        for (after_last, beyond) in [(AfterLast::Repeat, Some(36_000)), (AfterLast::End, None)] {
            let schedule = schedule(after_last, Jitter::none());
            for (index, want) in seconds.into_iter().enumerate() {
                assert_eq!(wait(&schedule, index as u32 + 1), Some(want), "{after_last:?} {index}");
            }
            for n in [9, 1_000, u32::MAX] {
                assert_eq!(wait(&schedule, n), beyond, "{after_last:?} {n}");
            }
        }
        let half = schedule(AfterLast::Repeat, Jitter::Full(Plain {}));
        assert_eq!([1, 2, 3].map(|n| wait(&half, n)), [Some(0), Some(2), Some(150)]);
    }
}
