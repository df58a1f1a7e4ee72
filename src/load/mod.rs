//! When operations are offered: one shape, one file.
//!
//! A shape gives a client its next intended start, and knows nothing of other clients but their number. A fleet's
//! rate is therefore spread over its clients by rule and by draws keyed to each client, and any shard computes the
//! starts of its own clients without asking another. Starts depend on the seed and never on the policy, so two policies
//! compared on one seed see the same arrivals. What becomes of an operation that cannot start is the fleet's matter.

pub mod closed;
pub mod constant;
mod crowd;
pub mod day_curve;
pub mod foreground;
pub mod on_reconnect;
pub mod poisson;
pub mod ramp;
pub mod schedule;
pub mod spike;
mod stretch;
pub mod trigger;

use crate::choice;
use crate::time::{Rate, Timestamp};

pub use closed::Closed;
pub use constant::Constant;
pub use crowd::Crowd;
pub use day_curve::DayCurve;
pub use foreground::Foreground;
pub use on_reconnect::OnReconnect;
pub use poisson::Poisson;
pub use ramp::Ramp;
pub use schedule::Schedule;
pub use spike::Spike;
pub use stretch::Stretch;
pub use trigger::Trigger;

choice! {
    /// When operations are offered.
    pub enum Load {
        /// Evenly spaced.
        constant => Constant(Constant),
        /// At random, independently of each other.
        poisson => Poisson(Poisson),
        /// At a rate that changes linearly.
        ramp => Ramp(Ramp),
        /// At random, at a rate that jumps up for a while.
        spike => Spike(Spike),
        /// Each client starts its next operation when its last one has ended: closed load.
        closed => Closed(Closed),
        /// Every client offers one operation at one moment.
        trigger => Trigger(Trigger),
        /// Every client offers one operation in each period, at its top.
        schedule => Schedule(Schedule),
        /// At random, at a rate that follows a curve.
        day_curve => DayCurve(DayCurve),
        /// People open the app: sessions at random, several operations in each.
        foreground => Foreground(Foreground),
        /// Each client that a fault had cut off offers one operation when it ends.
        on_reconnect => OnReconnect(OnReconnect),
    }
}

/// Where a client stands in its load.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The client's number in its fleet, over all shards.
    pub client: u32,
    /// The number of the operation that comes next, from 0.
    pub number: u64,
    /// The intended start of the operation before it; the start of the run where there is none.
    pub previous: Timestamp,
    /// When the operation before it ended; none while it goes on.
    pub ended: Option<Timestamp>,
}

/// When a client's next operation starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// At this moment, not rounded.
    At(Timestamp),
    /// That depends on when the last one ends: ask again then.
    WhenItEnds,
    /// There is none.
    Never,
}

impl Load {
    /// The next intended start of a client. Nothing starts at or after `end`.
    pub fn next(&self, crowd: &Crowd, step: Step, end: Timestamp) -> Next {
        let next = match self {
            Self::Constant(constant) => constant.next(crowd, step),
            Self::Poisson(poisson) => poisson.next(crowd, step),
            Self::Ramp(ramp) => ramp.next(crowd, step),
            Self::Spike(spike) => spike.next(crowd, step),
            Self::Closed(closed) => closed.next(crowd, step),
            Self::Trigger(trigger) => trigger.next(crowd, step),
            Self::Schedule(schedule) => schedule.next(crowd, step),
            Self::DayCurve(curve) => curve.next(crowd, step),
            Self::Foreground(foreground) => foreground.next(crowd, step),
            Self::OnReconnect(reconnect) => reconnect.next(crowd, step),
        };
        match next {
            Next::At(at) if at >= end => Next::Never,
            next => next,
        }
    }

    /// The rate of the whole fleet where it is the same all the time; none where it changes, or hangs on the target.
    pub fn steady_rate(&self, clients: u32) -> Option<Rate> {
        let (Self::Constant(Constant { rate, each }) | Self::Poisson(Poisson { rate, each })) = self else { return None };
        rate.or_else(|| each.map(|each| each.scale(f64::from(clients))))
    }

    /// Whether the next start depends on when the last operation ended.
    pub const fn is_closed(&self) -> bool {
        matches!(self, Self::Closed(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    /// All starts of a fleet before `end`, sorted, with their clients.
    pub(super) fn starts(load: &Load, seed: u64, clients: u32, end: Timestamp) -> Vec<(Timestamp, u32)> {
        let crowd = Crowd::new(seed, 0, clients);
        let mut all = Vec::new();
        for client in 0..clients {
            let mut previous = Timestamp::ZERO;
            for number in 0.. {
                let Next::At(at) = load.next(&crowd, Step { client, number, previous, ended: None }, end) else { break };
                assert!(at >= previous && at < end);
                all.push((at, client));
                previous = at;
            }
        }
        all.sort_unstable();
        all
    }

    #[test]
    fn starts_are_a_function_of_the_seed() {
        let rate = Some(Rate::per_second(50.0).unwrap());
        let load = Load::Poisson(Poisson { rate, each: None });
        let end = Timestamp::ZERO + Span::from_secs(20);
        assert_eq!(starts(&load, 1, 10, end), starts(&load, 1, 10, end));
        assert_ne!(starts(&load, 1, 10, end), starts(&load, 2, 10, end));
    }

    #[test]
    fn no_rate_is_no_load() {
        let zero = Rate::default();
        let end = Timestamp::ZERO + Span::from_secs(20);
        for load in [
            Load::Constant(Constant { rate: Some(zero), each: None }),
            Load::Poisson(Poisson { rate: None, each: Some(zero) }),
            Load::Ramp(Ramp { from: zero, to: zero, over: Span::from_secs(3) }),
            Load::Ramp(Ramp { from: zero, to: zero, over: Span::ZERO }),
            Load::Spike(Spike { rate: zero, peak: zero, at: Span::ZERO, r#for: Span::from_secs(1) }),
        ] {
            assert_eq!(starts(&load, 1, 5, end), [], "{load:?}");
        }
    }
}
