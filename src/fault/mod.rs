//! What harm is done to traffic, and when: one fault, one file; the timeline that applies them; the fate of a request.

pub mod blackhole;
pub mod hang;
pub mod latency;
pub mod rate_limit;
pub mod refuse;
pub mod reset;
pub mod status;
pub mod timeline;

use crate::choice;

pub use blackhole::Blackhole;
pub use hang::Hang;
pub use latency::Latency;
pub use rate_limit::RateLimit;
pub use refuse::Refuse;
pub use reset::Reset;
pub use status::Status;
pub use timeline::{Active, Phase, Step, Timeline};

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
