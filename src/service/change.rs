//! What can be changed of a service while it runs: by a step of the timeline, or by its control API.

use super::config::ServiceConfig;
use super::limiter::{LimiterConfig, LimitersConfig};
use super::refusal::Refusing;
use crate::config::{Node, Problems, Read, Shape, TimeScale, Value};
use crate::keyword;
use crate::record;
use crate::time::{Rate, Share, Span};
use std::fmt;

/// What the front service is called where it has to have a name.
pub const FRONT: &str = "service";

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
        /// Which of the target's `services` it is, by its name; the front one where nothing is said, or `service`.
        of: Option<String>,
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
    } => ServiceChange::check
}

impl ServiceChange {
    /// Changes nothing.
    pub const fn nothing() -> Self {
        Self {
            of: None,
            capacity: None,
            over: Span::ZERO,
            limiter: None,
            drain: None,
            restart: None,
            cache: None,
            reject_backlog: None,
        }
    }

    /// The name of the service that it changes.
    pub fn whose(&self) -> &str {
        self.of.as_deref().unwrap_or(FRONT)
    }

    /// What puts back what this changes, of a service that the plan describes so. What happens once (a restart, another cache, a refused
    /// backlog) is not put back.
    pub fn undo(&self, plan: &ServiceConfig) -> Self {
        Self {
            of: self.of.clone(),
            capacity: self.capacity.map(|_| Share::ALL),
            over: self.over,
            limiter: self.limiter.as_ref().map(|_| plan.limiter.clone().map_or(Setting::Off, Setting::To)),
            drain: self.drain.as_ref().map(|_| plan.drain.map_or(Setting::Off, Setting::To)),
            ..Self::nothing()
        }
    }

    /// Whether the service can do less for it, so that there is something to recover from: less capacity, a limit, a restart, a cold cache.
    pub fn weakens(&self) -> bool {
        self.capacity.is_some_and(|share| share < Share::ALL)
            || matches!(self.limiter, Some(Setting::To(_)))
            || self.restart.is_some()
            || self.cache == Some(CacheState::Cold)
    }

    /// What of it happens once, and so cannot last, by its key; none where all of it can.
    pub fn happens_once(&self) -> Option<&'static str> {
        let keys = [
            (self.restart.is_some(), "restart"),
            (self.cache.is_some(), "cache"),
            (self.reject_backlog.is_some(), "reject_backlog"),
        ];
        keys.into_iter().find(|(there, _)| *there).map(|(_, key)| key)
    }

    /// The keys of what it changes for good.
    pub fn lasting(&self) -> impl Iterator<Item = &'static str> {
        let keys = [(self.capacity.is_some(), "capacity"), (self.limiter.is_some(), "limiter"), (self.drain.is_some(), "drain")];
        keys.into_iter().filter(|(there, _)| *there).map(|(_, key)| key)
    }

    fn check(&self) -> Result<(), String> {
        match (self.lasting().next(), self.happens_once()) {
            (None, None) => Err("nothing changes: name what does, such as `capacity: 20%`".to_string()),
            _ if !self.over.is_zero() && self.capacity.is_none() => {
                Err("`over` says how long a capacity takes to get there: give a `capacity`, or remove it".to_string())
            }
            _ if matches!(self.drain, Some(Setting::To(rate)) if rate.get() <= 0.0) => {
                Err("`drain` must be above 0: such as `drain: 50/s`, or `off` for no limit".to_string())
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for ServiceChange {
    /// In a few words: `capacity 20% over 5s, limiter off`, or `db: capacity 20%`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let over = if self.over.is_zero() { String::new() } else { format!(" over {}", self.over) };
        let parts = [
            self.capacity.map(|share| format!("capacity {}%{over}", (share.get() * 1000.0).round() / 10.0)),
            self.limiter.as_ref().map(|limiter| match limiter {
                Setting::Off => "limiter off".to_string(),
                Setting::To(LimitersConfig(all)) => {
                    format!("limiter {}", all.iter().map(LimiterConfig::key).collect::<Vec<_>>().join(", "))
                }
            }),
            self.drain.as_ref().map(|drain| match drain {
                Setting::Off => "drain off".to_string(),
                Setting::To(rate) => format!("drain {rate}"),
            }),
            self.restart.as_ref().map(|restart| {
                if restart.down_for.is_zero() { "restart".to_string() } else { format!("restart, down for {}", restart.down_for) }
            }),
            self.cache.map(|cache| format!("{} cache", cache.word())),
            self.reject_backlog.as_ref().map(|_| "backlog refused".to_string()),
        ];
        let of = self.of.as_ref().map_or(String::new(), |of| format!("{of}: "));
        write!(f, "{of}{}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Servers;
    use super::super::time::ServiceTime;
    use super::*;

    fn change() -> ServiceChange {
        ServiceChange::nothing()
    }

    #[test]
    fn what_lasts_is_put_back_to_what_the_plan_says() {
        let plain = ServiceConfig::new(Servers::Limited(1), ServiceTime::Constant(Span::from_millis(5)));
        let drained = ServiceConfig { drain: Rate::per_second(9.0).ok(), ..plain.clone() };
        let half = ServiceChange { capacity: Share::new(0.5).ok(), over: Span::from_secs(2), ..change() };
        assert_eq!(half.undo(&plain), ServiceChange { capacity: Some(Share::ALL), ..half.clone() });
        let drain = ServiceChange { drain: Some(Setting::Off), cache: Some(CacheState::Cold), ..change() };
        let back = |plan| drain.undo(plan).drain;
        assert_eq!(back(&plain), Some(Setting::Off));
        assert_eq!(back(&drained), drained.drain.map(Setting::To));
        assert_eq!((drain.undo(&plain).cache, drain.happens_once()), (None, Some("cache")));
        let limiter = ServiceChange { limiter: Some(Setting::To(LimitersConfig(Vec::new()))), ..change() };
        assert_eq!(limiter.undo(&plain).limiter, Some(Setting::Off));
    }

    #[test]
    fn what_weakens_a_service_is_told_from_what_does_not() {
        let weak = [
            ServiceChange { capacity: Share::new(0.99).ok(), ..change() },
            ServiceChange { limiter: Some(Setting::To(LimitersConfig::default())), ..change() },
            ServiceChange { restart: Some(RestartChange { down_for: Span::ZERO, keeps_queue: true }), ..change() },
            ServiceChange { cache: Some(CacheState::Cold), ..change() },
        ];
        assert!(weak.iter().all(ServiceChange::weakens));
        let other = [
            ServiceChange { capacity: Some(Share::ALL), ..change() },
            ServiceChange { limiter: Some(Setting::Off), drain: Some(Setting::Off), ..change() },
            ServiceChange { cache: Some(CacheState::Warm), reject_backlog: Some(Refusing::plain()), ..change() },
        ];
        assert!(!other.iter().any(ServiceChange::weakens));
        assert_eq!(weak[0].to_string(), "capacity 99%");
        assert_eq!(other[1].to_string(), "limiter off, drain off");
        assert_eq!(other[2].to_string(), "warm cache, backlog refused");
    }
}
