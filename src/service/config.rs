//! What a plan says of the built-in target. Each part's own settings stand in the part's file.

pub use super::limiter::LimiterConfig;
pub use super::time::ServiceTime;
use crate::config::{Node, Problems, Read, Shape, read_text};
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
            (_, Ok(n)) if n > 0 => Ok(Self::Limited(n)),
            _ => Err(format!("expected a number of servers from 1, or `unlimited`, found `{text}`")),
        })
    }
    fn shape() -> Shape {
        Shape::OneOf(vec![
            Shape::Integer { min: 1, max: u64::from(u32::MAX) },
            Shape::Text { what: "no limit", pattern: "^unlimited$", examples: &["unlimited"] },
        ])
    }
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
