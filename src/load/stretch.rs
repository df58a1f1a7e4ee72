//! A rate that changes in mid-run: the load goes on in a time of its own, which runs faster or slower than the run's from then on.
//! So the draws stay, and with them the operations; only their moments move.

use crate::time::{Span, Timestamp};

/// How the time of a load runs against that of the run, since the last change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// The moment of the change, in the run's time.
    run: Timestamp,
    /// The same, in the load's.
    load: Timestamp,
    /// How fast the load's time runs.
    factor: f64,
}

impl Stretch {
    /// The load's time is the run's.
    pub const NONE: Self = Self { run: Timestamp::ZERO, load: Timestamp::ZERO, factor: 1.0 };

    /// Runs at another speed from a moment of the run on.
    pub fn turned(self, at: Timestamp, factor: f64) -> Self {
        Self { run: at, load: self.load_time(at), factor }
    }

    /// The moment of the load at a moment of the run, for those after the last change.
    pub fn load_time(self, run: Timestamp) -> Timestamp {
        if self == Self::NONE || run == Timestamp::NEVER {
            return run;
        }
        self.load + run.since(self.run).scale(self.factor)
    }

    /// The moment of the run at a moment of the load, for those after the last change.
    pub fn run_time(self, load: Timestamp) -> Timestamp {
        if self == Self::NONE || load == Timestamp::NEVER {
            return load;
        }
        let since = load.since(self.load);
        self.run + if self.factor > 0.0 { since.scale(1.0 / self.factor) } else { Span::MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn time_runs_faster_from_the_change_on() {
        let twice = Stretch::NONE.turned(at(10), 2.0);
        assert_eq!((twice.load_time(at(10)), twice.load_time(at(15)), twice.run_time(at(20))), (at(10), at(20), at(15)));
        let half = twice.turned(at(20), 0.5);
        assert_eq!((half.load_time(at(20)), half.load_time(at(24)), half.run_time(at(32))), (at(30), at(32), at(24)));
        assert_eq!(half.turned(at(24), 0.0).run_time(at(40)), Timestamp::NEVER);
        assert_eq!(Stretch::NONE.load_time(Timestamp(u64::MAX - 1)), Timestamp(u64::MAX - 1));
    }
}
