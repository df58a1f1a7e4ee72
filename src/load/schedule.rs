//! Everybody at the top of the hour.
//!
//! Whoever writes a timer writes it on the hour, so a fleet's clients come together, period after period, as far apart as
//! their spread says. Each period draws anew for each client.

use super::{Crowd, Next, Step};
use crate::record;
use crate::time::{Span, Timestamp};

record! {
    /// Every client offers one operation in each period, at its top.
    pub struct Schedule {
        /// The period.
        every: Span,
        /// The first moment; one period after the start of the run where nothing is said.
        first: Option<Span>,
        /// The moment of each client is later by U(0, spread), drawn for every period.
        spread: Span = Span::ZERO,
    } => |s: &Schedule| match (s.every.is_zero(), s.spread <= s.every) {
        (true, _) => Err("`every` must be longer than nothing: write `1h`".to_string()),
        (_, false) => Err("`spread` must not be longer than `every`, or periods would overtake each other".to_string()),
        _ => Ok(()),
    }
}

impl Schedule {
    pub(super) fn next(&self, crowd: &Crowd, step: Step) -> Next {
        let later = self.spread.scale(crowd.draws(step.client, step.number).unit());
        Next::At(Timestamp::ZERO + self.first() + self.every.times(step.number) + later)
    }

    /// The first moment, from the start of the run.
    pub fn first(&self) -> Span {
        self.first.unwrap_or(self.every)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Load, tests::starts};
    use super::*;

    fn seconds(schedule: &Schedule, clients: u32, end: u64) -> Vec<f64> {
        let end = Timestamp::ZERO + Span::from_secs(end);
        starts(&Load::Schedule(schedule.clone()), 3, clients, end).iter().map(|(at, _)| at.as_secs_f64()).collect()
    }

    #[test]
    fn every_client_comes_once_in_each_period_within_its_spread() {
        let hourly = Schedule { every: Span::from_secs(3600), first: None, spread: Span::from_secs(30) };
        let all = seconds(&hourly, 1_000, 3 * 3600);
        assert_eq!(all.len(), 2_000, "at 1 h and 2 h; that at 3 h is past the end");
        for (hour, of_hour) in (1..).zip(all.chunks(1_000)) {
            let top = f64::from(hour) * 3600.0;
            assert!(of_hour.iter().all(|at| (top..top + 30.0).contains(at)));
            let mean = of_hour.iter().sum::<f64>() / 1_000.0 - top;
            // Three standard errors of a uniform: 30/√12/√1000.
            assert!((mean - 15.0).abs() < 0.83, "{mean}");
        }
    }

    #[test]
    fn without_a_spread_all_come_at_the_moment_itself() {
        let exact = Schedule { every: Span::from_secs(10), first: Some(Span::from_secs(5)), spread: Span::ZERO };
        assert_eq!(seconds(&exact, 2, 26), [5.0, 5.0, 15.0, 15.0, 25.0, 25.0]);
    }
}
