//! What a plan says of the built-in target. Each part's own settings stand in the part's file.

pub use super::limiter::LimiterConfig;
use super::servers::MAX_IN_SERVICE;
pub use super::time::ServiceTime;
use crate::config::{Node, Problems, Read, Shape, TimeScale, read_text};
use crate::record;

/// How many requests are served at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    /// So many.
    Limited(u32),
    /// As many as come.
    Unlimited,
}

impl Read for Servers {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, |text| match (text, text.parse::<u32>()) {
            ("unlimited", _) => Ok(Self::Unlimited),
            (_, Ok(n)) if (1..=MAX_IN_SERVICE).contains(&(n as usize)) => Ok(Self::Limited(n)),
            _ => Err(format!("expected a number of servers from 1 to {MAX_IN_SERVICE}, or `unlimited`, found `{text}`")),
        })
    }
    fn shape() -> Shape {
        Shape::OneOf(vec![
            Shape::Integer { min: 1, max: MAX_IN_SERVICE as u64 },
            Shape::Text { what: "no limit", pattern: "^unlimited$", examples: &["unlimited"] },
        ])
    }

    fn rescale(&mut self, _by: TimeScale) {}
}

record! {
    /// The built-in target: servers, a queue before them, a limiter before that.
    pub struct ServiceConfig {
        /// How many requests are served at once; or `unlimited`.
        servers: Servers,
        /// How long each is served.
        service_time: ServiceTime,
        /// How many requests may wait (first in, first out); more are refused with 503 at once.
        queue: u32 = 1000,
        /// Refuses requests above a rate, before they queue.
        limiter: Option<LimiterConfig>,
        /// Whether the work for a client that has gone is given up. Where not, it is done, and wasted.
        notices_cancel: bool = false,
    }
}
