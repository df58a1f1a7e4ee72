//! How long a request is served: the distributions a plan may name, and their draws.

use crate::config::{Node, Problems, Read, Shape, Value};
use crate::rng::{Key, Purpose, Stream};
use crate::time::Span;
use crate::{choice, record};

record! {
    /// Uniform between two times.
    pub struct Uniform {
        /// The least.
        from: Span,
        /// The greatest.
        to: Span,
    } => |u: &Uniform| if u.from <= u.to { Ok(()) } else { Err("`from` must not be longer than `to`".to_string()) }
}

record! {
    /// Exponential around a mean.
    pub struct ExponentialTime {
        /// The mean.
        mean: Span,
    }
}

record! {
    /// Lognormal through two percentiles.
    pub struct Lognormal {
        /// The median.
        p50: Span,
        /// The 99th percentile.
        p99: Span,
    } => |l: &Lognormal| if !l.p50.is_zero() && l.p50 <= l.p99 { Ok(()) } else { Err("`p50` must be above zero and not longer than `p99`".to_string()) }
}

choice! {
    /// A distribution of service times with a name.
    pub enum NamedTime {
        /// Uniform between two times.
        uniform => Uniform(Uniform),
        /// Exponential around a mean.
        exponential => Exponential(ExponentialTime),
        /// Lognormal through two percentiles.
        lognormal => Lognormal(Lognormal),
    }
}

/// How long one request is served: `10ms`, `{ p50: 40ms, p99: 180ms }`, or a named distribution.
#[derive(Clone, Debug, PartialEq)]
pub enum ServiceTime {
    /// Always the same.
    Constant(Span),
    /// Uniform.
    Uniform(Uniform),
    /// Exponential.
    Exponential(ExponentialTime),
    /// Lognormal.
    Lognormal(Lognormal),
}

/// The 99th percentile of the standard normal distribution.
const NORMAL_P99: f64 = 2.326_347_874_040_841;

impl ServiceTime {
    /// The service time of the request with this key: a function of the key, and of nothing else.
    pub fn draw(&self, key: Key) -> Span {
        self.sample(&mut key.stream(Purpose::ServiceTime))
    }

    /// One draw from a stream. A constant takes none.
    pub fn sample(&self, stream: &mut Stream) -> Span {
        match self {
            Self::Constant(time) => *time,
            Self::Uniform(u) => u.from + (u.to - u.from).scale(stream.unit()),
            Self::Exponential(e) => e.mean.scale(stream.exponential()),
            Self::Lognormal(l) => l.p50.scale(libm::exp(l.sigma() * stream.normal())),
        }
    }

    /// The mean service time; with the number of servers it gives the capacity.
    pub fn mean(&self) -> Span {
        match self {
            Self::Constant(time) => *time,
            Self::Uniform(u) => u.from + (u.to - u.from) / 2,
            Self::Exponential(e) => e.mean,
            Self::Lognormal(l) => l.p50.scale(libm::exp(l.sigma() * l.sigma() / 2.0)),
        }
    }
}

impl Lognormal {
    /// The standard deviation of the logarithm: p99 lies 2.33 of them above the median.
    fn sigma(&self) -> f64 {
        libm::log(self.p99.0 as f64 / self.p50.0 as f64) / NORMAL_P99
    }
}

impl Read for ServiceTime {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        match &node.value {
            Value::Text(_) => Span::read(node, problems).map(Self::Constant),
            Value::Map(_) if node.get("p50").is_some() || node.get("p99").is_some() => {
                Lognormal::read(node, problems).map(Self::Lognormal)
            }
            _ => NamedTime::read(node, problems).map(|named| match named {
                NamedTime::Uniform(u) => Self::Uniform(u),
                NamedTime::Exponential(e) => Self::Exponential(e),
                NamedTime::Lognormal(l) => Self::Lognormal(l),
            }),
        }
    }
    fn shape() -> Shape {
        Shape::OneOf(vec![Span::shape(), Lognormal::shape(), NamedTime::shape()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Span = Span::from_millis;

    fn draws(time: &ServiceTime) -> Vec<Span> {
        let mut all: Vec<Span> =
            (0..40_000).map(|n| time.draw(Key { seed: 5, operation: n, attempt: 1, ..Key::default() })).collect();
        all.sort();
        all
    }

    /// The mean of many draws is the stated mean, and the given (percentile, milliseconds) are met, all within 4%.
    fn check(time: &ServiceTime, percentiles: &[(f64, f64)]) {
        let all = draws(time);
        let mean = all.iter().copied().sum::<Span>().as_secs_f64() / all.len() as f64;
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 0.04;
        assert!(near(mean, time.mean().as_secs_f64()), "{time:?}: mean {mean}, stated {}", time.mean());
        for (percentile, millis) in percentiles {
            let seen = all[(all.len() as f64 * percentile) as usize].as_secs_f64() * 1e3;
            assert!(near(seen, *millis), "{time:?}: {percentile} at {seen} ms, not {millis}");
        }
    }

    #[test]
    fn draws_have_the_percentiles_that_the_plan_names() {
        check(&ServiceTime::Constant(MS(10)), &[(0.0, 10.0), (0.99, 10.0)]);
        check(&ServiceTime::Uniform(Uniform { from: MS(10), to: MS(30) }), &[(0.0, 10.0), (0.5, 20.0), (0.99, 29.8)]);
        check(&ServiceTime::Exponential(ExponentialTime { mean: MS(10) }), &[(0.5, 6.931), (0.9, 23.03)]);
        check(&ServiceTime::Lognormal(Lognormal { p50: MS(40), p99: MS(180) }), &[(0.5, 40.0), (0.99, 180.0)]);
        check(&ServiceTime::Lognormal(Lognormal { p50: MS(40), p99: MS(40) }), &[(0.0, 40.0), (0.99, 40.0)]);
    }

    #[test]
    fn a_draw_is_a_function_of_its_key() {
        let time = ServiceTime::Exponential(ExponentialTime { mean: MS(10) });
        let key = Key { seed: 1, operation: 3, ..Key::default() };
        assert_eq!(time.draw(key), time.draw(key));
        assert_ne!(time.draw(key), time.draw(Key { operation: 4, ..key }));
    }
}
