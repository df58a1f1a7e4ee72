//! What harm is done to traffic, and when: one fault, one file; the timeline that applies them; the fate of a request.
//!
//! # How faults combine
//!
//! The faults that act apply to a request in the order of the plan. Delays add up. The first terminal fate
//! (answer, swallow, reset) wins, and the faults behind it do not see the request: they neither touch it nor spend
//! a token on it. At one instant faults end before others begin.
//!
//! A fault that begins also strikes what is already there, once and in the same order: `refuse` and `reset` (at a
//! share of 100%) end every live connection, `hang` and `blackhole` swallow the requests in flight and whatever
//! answer is on its way. `latency`, `status` and `rate_limit` leave requests alone that were let through before.
//!
//! What `hang` or `blackhole` swallowed is never answered. With `release: true` it goes on when the fault ends,
//! through the faults that it has not met yet: those behind it in the plan, and those that began meanwhile.
//!
//! # Dice
//!
//! Whether a share strikes, and how much a delay varies, is drawn per request and per fault: the key of a draw is
//! the request's (see [`Request`]) with the fault's number in the plan mixed in, so that two faults do not strike the
//! same requests, and a retry rolls again.

pub mod active;
pub mod blackhole;
pub mod external;
pub mod fate;
pub mod hang;
pub mod latency;
pub mod rate_limit;
pub mod refuse;
pub mod reset;
pub mod rule;
pub mod status;
pub mod timeline;
pub mod toxic;

use crate::choice;

pub use active::Active;
pub use blackhole::Blackhole;
pub use fate::{Dice, Effect, Fate, Judgement, Origin, Request, Strike, destination_key};
pub use hang::Hang;
pub use latency::Latency;
pub use rate_limit::RateLimit;
pub use refuse::Refuse;
pub use reset::Reset;
pub use rule::Rule;
pub use status::Status;
pub use timeline::{Phase, Step, Timeline, Transition};
pub use toxic::{Stream, Toxic, ToxicKind};

choice! {
    /// One way to harm traffic.
    pub enum Fault {
        /// Connects are refused and live connections are closed, as if the process were gone.
        refuse => Refuse(Refuse),
        /// Connections and requests are accepted and never answered.
        hang => Hang(Hang),
        /// Data vanishes in both directions, on live connections too; nothing is closed.
        blackhole => Blackhole(Blackhole),
        /// Connections are reset (RST), live ones too.
        reset => Reset(Reset),
        /// Requests are delayed.
        latency => Latency(Latency),
        /// Requests are answered with a status before the upstream sees them.
        status => Status(Status),
        /// Requests above a rate are answered with 429.
        rate_limit => RateLimit(RateLimit),
    }
}

impl Fault {
    /// What it does to a request that comes while it acts. A rate limit asks for a token through `token`.
    fn effect(&self, dice: Dice, token: impl FnOnce() -> bool) -> Effect {
        match self {
            Self::Refuse(fault) => fault.effect(),
            Self::Hang(fault) => fault.effect(),
            Self::Blackhole(fault) => fault.effect(dice),
            Self::Reset(fault) => fault.effect(dice),
            Self::Latency(fault) => fault.effect(dice),
            Self::Status(fault) => fault.effect(dice),
            Self::RateLimit(fault) => fault.effect(token()),
        }
    }

    /// What it does, as it begins, to a live connection; `in_flight` are the dice of the request on it, if there is one.
    fn onset(&self, in_flight: Option<Dice>) -> Option<Strike> {
        match self {
            Self::Refuse(fault) => Some(fault.onset()),
            Self::Hang(fault) => in_flight.map(|_| fault.onset()),
            Self::Blackhole(fault) => fault.onset(in_flight?),
            Self::Reset(fault) => fault.onset(),
            Self::Latency(_) | Self::Status(_) | Self::RateLimit(_) => None,
        }
    }
}
