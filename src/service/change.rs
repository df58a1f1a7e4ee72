//! What can be changed of a service while it runs: by a step of the timeline, or by its control API.

use super::limiter::LimitersConfig;
use super::refusal::Refusing;
use crate::config::{Node, Problems, Read, Shape, TimeScale, Value};
use crate::keyword;
use crate::record;
use crate::time::{Rate, Share, Span};

keyword! {
    /// A part that is taken away.
    pub enum Off {
        /// There is none.
        off => Off,
    }
}

/// Another setting of a part, or none of it: `off`.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting<T> {
    /// The part is taken away.
    Off,
    /// It is there, with these settings.
    To(T),
}

impl<T> Setting<T> {
    /// The settings; none where the part is taken away.
    pub fn get(&self) -> Option<&T> {
        match self {
            Self::Off => None,
            Self::To(to) => Some(to),
        }
    }
}

impl<T: Read> Read for Setting<T> {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        match &node.value {
            Value::Text(text) if text == "off" => Some(Self::Off),
            _ => T::read(node, problems).map(Self::To),
        }
    }
    fn shape() -> Shape {
        Shape::OneOf(vec![Off::shape(), T::shape()])
    }
    fn rescale(&mut self, by: TimeScale) {
        if let Self::To(to) = self {
            to.rescale(by);
        }
    }
}

record! {
    /// A restart: what is in service and, unless it is kept, what waits is lost; clients see their connections break.
    pub struct RestartChange {
        /// How long it is down.
        down_for: Span = Span::ZERO,
        /// Whether what waits is still there afterwards.
        keeps_queue: bool = false,
    }
}

keyword! {
    /// What a cache can be made.
    pub enum CacheState {
        /// It holds nothing.
        cold => Cold,
        /// It holds everything.
        warm => Warm,
    }
}

record! {
    /// What changes of a service. What is not named stays.
    pub struct ServiceChange {
        /// Its capacity, as a share of what the plan gives it.
        capacity: Option<Share>,
        /// Over how long the capacity gets there; at once where nothing is said.
        over: Span = Span::ZERO,
        /// Other limits in place of all that there are, or `off`.
        limiter: Option<Setting<LimitersConfig>>,
        /// Another rate at which the queue is drained, or `off`.
        drain: Option<Setting<Rate>>,
        /// It restarts.
        restart: Option<RestartChange>,
        /// Its cache becomes cold, or warm.
        cache: Option<CacheState>,
        /// Everything that waits is refused at once.
        reject_backlog: Option<Refusing>,
    }
}
