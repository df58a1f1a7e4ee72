//! People who open an app.
//!
//! Each client's sessions begin at random; a session offers `operations` operations, the first as the app opens, the rest
//! spread over `within`: each at a draw within its own slot of it. A client has one session at a time, so the pause
//! between two beginnings is `within` plus an exponential one whose mean makes the rate exact: a Poisson process with a dead
//! time. It is stationary from the start of the run, unless `first` says when a client looks first: in the morning, each
//! at its own moment, and from there on at random.
//!
//! The next start follows from the last one alone, since what a session has drawn can be drawn again.

use super::constant::{fleet_rate, one_rate};
use super::{Crowd, Next, Step};
use crate::record;
use crate::time::{Rate, Span, Timestamp};

record! {
    /// The first look of the day.
    pub struct FirstLook {
        /// The moment, from the start of the run.
        at: Span,
        /// The first session of each client begins later by U(0, spread).
        spread: Span = Span::ZERO,
    }
}

record! {
    /// People open the app: sessions at random, several operations in each. `rate` is the fleet's sessions, `each` every client's.
    pub struct Foreground {
        /// Sessions per second of the whole fleet.
        rate: Option<Rate>,
        /// Sessions per second of each client.
        each: Option<Rate>,
        /// How many operations a session offers.
        operations: u32,
        /// How long a session lasts: its first operation comes as it begins, the others within this.
        within: Span,
        /// When each client looks first; from there on its sessions come at random. At random from the start where nothing is said.
        first: Option<FirstLook>,
    } => Foreground::check
}

impl Foreground {
    fn check(&self) -> Result<(), String> {
        if !(1..=1_000).contains(&self.operations) {
            return Err("`operations` must be 1 to 1000".into());
        }
        if let Some(each) = self.each
            && each.get() * self.within.as_secs_f64() >= 1.0
        {
            return Err("`within` leaves no pause between the sessions of a client: make it shorter, or `each` lower".into());
        }
        match (self.rate, self.each, &self.first) {
            (None, None, Some(_)) => Ok(()),
            (rate, each, _) => one_rate(rate, each),
        }
    }

    pub(super) fn next(&self, crowd: &Crowd, step: Step) -> Next {
        let (session, place) = (step.number / u64::from(self.operations), step.number % u64::from(self.operations));
        if place > 0 {
            return Next::At(self.began(crowd, step) + self.later(crowd, step.client, step.number));
        }
        let Some(pause) = self.pause(crowd) else {
            return match &self.first {
                Some(first) if session == 0 => Next::At(first.of(crowd, step)),
                _ => Next::Never,
            };
        };
        let mut draws = crowd.draws(step.client, step.number);
        match (&self.first, session) {
            (Some(first), 0) => Next::At(first.of(crowd, step)),
            // The rest of a pause that the start of the run falls into: it is the dead time that is under way with the
            // share that it has of all time, and else the whole of the other part, which has no memory.
            (None, 0) => {
                let dead = self.within.as_secs_f64();
                let in_dead_time = draws.unit() * (dead + pause) < dead;
                let waits =
                    if in_dead_time { dead * draws.unit() + pause * draws.exponential() } else { pause * draws.exponential() };
                Next::At(Timestamp::ZERO + Span::from_secs_f64(waits))
            }
            _ => Next::At(self.began(crowd, step) + self.within + Span::from_secs_f64(pause * draws.exponential())),
        }
    }

    /// Operations per second of the whole fleet, the first look left aside.
    pub fn operations_per_second(&self, clients: f64) -> f64 {
        (self.rate.map_or(0.0, Rate::get) + self.each.map_or(0.0, Rate::get) * clients) * f64::from(self.operations)
    }

    /// The mean of the exponential part of a pause, in seconds; none where there are no sessions but the first.
    fn pause(&self, crowd: &Crowd) -> Option<f64> {
        let rate = fleet_rate(self.rate, self.each, crowd) / crowd.clients();
        (rate > 0.0).then(|| (1.0 / rate - self.within.as_secs_f64()).max(0.0))
    }

    /// When the session of the operation before this one began.
    fn began(&self, crowd: &Crowd, step: Step) -> Timestamp {
        step.previous - self.later(crowd, step.client, step.number.saturating_sub(1))
    }

    /// How long after the beginning of its session an operation starts.
    fn later(&self, crowd: &Crowd, client: u32, number: u64) -> Span {
        let place = number % u64::from(self.operations);
        if place == 0 {
            return Span::ZERO;
        }
        let slots = f64::from(self.operations - 1);
        self.within.scale((place as f64 - 1.0 + crowd.draws(client, number).unit()) / slots)
    }
}

impl FirstLook {
    fn of(&self, crowd: &Crowd, step: Step) -> Timestamp {
        Timestamp::ZERO + self.at + self.spread.scale(crowd.draws(step.client, step.number).unit())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Load, tests::starts};
    use super::*;

    fn rate(rate: f64) -> Option<Rate> {
        Some(Rate::per_second(rate).unwrap())
    }

    /// Every client 0.05 sessions a second, of four operations within eight seconds.
    fn shape() -> Foreground {
        Foreground { rate: None, each: rate(0.05), operations: 4, within: Span::from_secs(8), first: None }
    }

    fn seconds(shape: &Foreground, clients: u32, end: u64) -> Vec<(f64, u32)> {
        let end = Timestamp::ZERO + Span::from_secs(end);
        let all = starts(&Load::Foreground(shape.clone()), 5, clients, end);
        all.into_iter().map(|(at, client)| (at.as_secs_f64(), client)).collect()
    }

    #[test]
    fn sessions_have_their_rate_from_the_first_second_and_their_operations() {
        let all = seconds(&shape(), 2_000, 200);
        for (from, to) in [(0.0, 20.0), (20.0, 100.0), (100.0, 190.0)] {
            let operations = all.iter().filter(|(at, _)| (from..to).contains(at)).count() as f64;
            // The first stretch lacks the sessions that were open when the run began: 100/s for 8 s, of whose three later
            // operations half were still to come.
            let wanted = 400.0 * (to - from) - if from == 0.0 { 1_200.0 } else { 0.0 };
            // The counts of sessions vary by 0.6 of a Poisson count's error: this is more than three of theirs.
            assert!((operations - wanted).abs() < 2.0 * 4.0 * f64::sqrt(wanted / 4.0), "{from}: {operations} of {wanted}");
        }
    }

    #[test]
    fn a_session_fills_its_time_and_none_overlaps_the_next() {
        let of_one: Vec<f64> =
            seconds(&shape(), 3, 20_000).iter().filter(|(_, client)| *client == 1).map(|(at, _)| *at).collect();
        let sessions: Vec<&[f64]> = of_one.chunks_exact(4).collect();
        assert!((850..1_150).contains(&sessions.len()), "{}", sessions.len());
        for (one, next) in sessions.iter().zip(&sessions[1..]) {
            assert!(one[3] - one[0] <= 8.0 && next[0] >= one[0] + 8.0);
            for (slot, at) in (0..3).zip(&one[1..]) {
                let within = (at - one[0]) / (8.0 / 3.0);
                assert!((f64::from(slot) - 1e-6..f64::from(slot) + 1.0).contains(&within), "{one:?}");
            }
        }
    }

    #[test]
    fn the_morning_begins_with_everybodys_first_look() {
        let first = Some(FirstLook { at: Span::from_secs(60), spread: Span::from_secs(30) });
        let morning = Foreground { first: first.clone(), ..shape() };
        let all = seconds(&morning, 500, 98);
        let mut seen = vec![0; 500];
        all.iter().for_each(|(_, client)| seen[*client as usize] += 1);
        assert!(seen.iter().all(|n| *n >= 4), "everybody has looked");
        assert!((60.0..60.5).contains(&all[0].0), "{:?}", all[0]);
        let once = Foreground { each: None, first, ..shape() };
        assert_eq!(seconds(&once, 500, 100_000).len(), 2_000, "one session each, and no more");
    }

    #[test]
    fn one_operation_a_session_and_no_time_is_a_plain_process() {
        let plain = Foreground { rate: rate(50.0), each: None, operations: 1, within: Span::ZERO, first: None };
        let count = seconds(&plain, 20, 400).len() as f64;
        assert!((count - 20_000.0).abs() < 3.0 * f64::sqrt(20_000.0), "{count}");
    }
}
