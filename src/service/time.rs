//! How long a request is served: the distributions a plan may name, and their draws.

use super::histogram::{Histogram, Prometheus};
use crate::config::{Node, Problems, Read, Shape, Table, TimeScale, Value};
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

/// Piecewise linear through measured percentiles, the least (`p0`) and the greatest (`p100`) among them: a time between
/// two of them is as likely as any other there. A draw is an inversion, without `libm`.
#[derive(Clone, Debug, PartialEq)]
pub struct Percentiles {
    /// (share of all times that are no longer, that time): the shares rise from 0 to 1, the times never fall.
    points: Vec<(f64, Span)>,
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
        /// Piecewise linear through measured percentiles, from `p0` to `p100`.
        percentiles => Percentiles(Percentiles),
        /// Even within each bucket of a measured histogram.
        histogram => Histogram(Histogram),
        /// The same, from the buckets of a histogram of Prometheus.
        prometheus => Prometheus(Prometheus),
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
    /// Through measured percentiles.
    Percentiles(Percentiles),
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
            Self::Percentiles(p) => p.at(stream.unit()),
        }
    }

    /// The mean service time; with the number of servers it gives the capacity.
    pub fn mean(&self) -> Span {
        match self {
            Self::Constant(time) => *time,
            Self::Uniform(u) => u.from + (u.to - u.from) / 2,
            Self::Exponential(e) => e.mean,
            Self::Lognormal(l) => l.p50.scale(libm::exp(l.sigma() * l.sigma() / 2.0)),
            Self::Percentiles(p) => p.mean(),
        }
    }
}

impl Lognormal {
    /// The standard deviation of the logarithm: p99 lies 2.33 of them above the median.
    fn sigma(&self) -> f64 {
        libm::log(self.p99.0 as f64 / self.p50.0 as f64) / NORMAL_P99
    }
}

impl Percentiles {
    /// Through points of (percent, time), in rising order.
    ///
    /// # Errors
    /// A sentence that says which point is missing or out of order.
    pub fn new(points: impl IntoIterator<Item = (f64, Span)>) -> Result<Self, String> {
        let points: Vec<(f64, Span)> = points.into_iter().map(|(percent, time)| (percent / 100.0, time)).collect();
        let ends = points.first().zip(points.last()).map(|(first, last)| (first.0, last.0));
        if ends != Some((0.0, 1.0)) {
            return Err("`percentiles` begin with `p0`, the least time, and end with `p100`, the greatest".to_string());
        }
        for pair in points.windows(2) {
            let (name, before) = (point_name(pair[1].0), point_name(pair[0].0));
            if pair[0].0 >= pair[1].0 {
                return Err(format!("`{name}` must not stand after `{before}`: write percentiles in rising order"));
            }
            if pair[0].1 > pair[1].1 {
                return Err(format!("`{name}` must not be shorter than `{before}`"));
            }
        }
        Ok(Self { points })
    }

    /// Through points of (share, time) of which neither falls, from share 0 to 1. A share that two points share is a
    /// gap: no time lies between theirs.
    pub(super) const fn with_gaps(points: Vec<(f64, Span)>) -> Self {
        Self { points }
    }

    /// (percent, time), in rising order.
    pub fn points(&self) -> impl Iterator<Item = (f64, Span)> + '_ {
        self.points.iter().map(|(share, time)| (share * 100.0, *time))
    }

    /// The exact mean: each stretch between two points counts by its share, with the middle of its ends.
    pub fn mean(&self) -> Span {
        let parts = self.points.windows(2).map(|p| (p[1].0 - p[0].0) * (p[0].1.0 as f64 + p[1].1.0 as f64) / 2.0);
        Span((parts.sum::<f64>() + 0.5) as u64)
    }

    /// The time that this share of all times does not exceed; 0 to 1.
    fn at(&self, share: f64) -> Span {
        let above = self.points.partition_point(|(point, _)| *point <= share).clamp(1, self.points.len() - 1);
        let ((low, from), (high, to)) = (self.points[above - 1], self.points[above]);
        from + Span(to.0 - from.0).scale((share - low) / (high - low))
    }
}

/// `p50`, `p99.9`.
pub fn point_name(share: f64) -> String {
    format!("p{}", (share * 1e8).round() / 1e6)
}

/// Reads `p50` or `p99.9` as a number from 0 to 100.
fn point(name: &str) -> Result<f64, String> {
    let digits = name.strip_prefix('p').filter(|digits| digits.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
    match digits.and_then(|digits| digits.parse::<f64>().ok()) {
        Some(percent) if percent <= 100.0 => Ok(percent),
        Some(_) => Err(format!("`{name}`: percentiles lie between `p0` and `p100`; 99.9% is written `p99.9`")),
        None => Err(format!("`{name}` is not a percentile: write `p50`, `p99` or `p99.9`")),
    }
}

impl Read for Percentiles {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let table = Table::<Span>::read(node, problems)?;
        let mut points = Vec::new();
        for entry in &table.0 {
            match point(&entry.name) {
                Ok(percent) => points.push((percent, entry.value)),
                Err(message) => problems.error(entry.place, message),
            }
        }
        if points.len() < table.0.len() {
            return None;
        }
        match Self::new(points) {
            Ok(percentiles) => Some(percentiles),
            Err(message) => {
                problems.error(node.blamed(&message), message);
                None
            }
        }
    }
    fn shape() -> Shape {
        Shape::Map(Box::new(Span::shape()))
    }

    fn rescale(&mut self, by: TimeScale) {
        self.points.iter_mut().for_each(|(_, time)| time.rescale(by));
    }
}

/// What is missing where one of the two percentiles stands alone.
fn lonely_percentile(node: &Node) -> Option<String> {
    let Value::Map(entries) = &node.value else { return None };
    let [(key, _)] = &entries[..] else { return None };
    let missing = if key.name == "p50" { "p99" } else { "p50" };
    Some(format!("`{missing}` is missing: expected a duration"))
}

impl Read for ServiceTime {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        match &node.value {
            Value::Text(_) => Span::read(node, problems).map(Self::Constant),
            Value::Map(_) if node.get("p50").is_some() || node.get("p99").is_some() => match lonely_percentile(node) {
                None => Lognormal::read(node, problems).map(Self::Lognormal),
                Some(message) => {
                    let hint = "or write `20ms`, or `{ exponential: { mean: 20ms } }`";
                    problems.error_with_hint(node.place, message, hint);
                    None
                }
            },
            _ => NamedTime::read(node, problems).map(|named| match named {
                NamedTime::Uniform(u) => Self::Uniform(u),
                NamedTime::Exponential(e) => Self::Exponential(e),
                NamedTime::Lognormal(l) => Self::Lognormal(l),
                NamedTime::Percentiles(p) | NamedTime::Histogram(Histogram(p)) | NamedTime::Prometheus(Prometheus(p)) => {
                    Self::Percentiles(p)
                }
            }),
        }
    }
    fn shape() -> Shape {
        Shape::OneOf(vec![Span::shape(), Lognormal::shape(), NamedTime::shape()])
    }

    fn rescale(&mut self, by: TimeScale) {
        match self {
            Self::Constant(time) => time.rescale(by),
            Self::Uniform(uniform) => uniform.rescale(by),
            Self::Exponential(exponential) => exponential.rescale(by),
            Self::Lognormal(lognormal) => lognormal.rescale(by),
            Self::Percentiles(percentiles) => percentiles.rescale(by),
        }
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

    fn read(points: &[(&str, &str)]) -> Result<ServiceTime, String> {
        let text = |t: &str| Node { value: Value::Text(t.into()), place: Default::default() };
        let map = |entries: Vec<(&str, Node)>| {
            let key = |name: &str| crate::config::Key { name: name.into(), place: Default::default() };
            let entries = entries.into_iter().map(|(name, node)| (key(name), node)).collect();
            Node { value: Value::Map(entries), place: Default::default() }
        };
        let inner = map(points.iter().map(|(name, time)| (*name, text(time))).collect());
        let mut problems = Problems::default();
        let read = ServiceTime::read(&map(vec![("percentiles", inner)]), &mut problems);
        read.ok_or_else(|| problems.sorted().iter().map(|p| p.message.clone()).collect::<Vec<_>>().join("; "))
    }

    #[test]
    fn measured_percentiles_are_met_and_their_mean_is_exact() {
        let time = read(&[("p0", "1ms"), ("p50", "4ms"), ("p90", "9ms"), ("p99", "30ms"), ("p99.9", "60ms"), ("p100", "80ms")]);
        let time = time.unwrap();
        check(&time, &[(0.0, 1.0), (0.25, 2.5), (0.5, 4.0), (0.7, 6.5), (0.95, 20.67)]);
        // 0.5 × 2.5 + 0.4 × 6.5 + 0.09 × 19.5 + 0.009 × 45 + 0.001 × 70
        assert_eq!(time.mean(), Span::from_micros(6_080));
        let constant = read(&[("p0", "7ms"), ("p100", "7ms")]).unwrap();
        check(&constant, &[(0.0, 7.0), (0.99, 7.0)]);
        assert!(draws(&time).iter().all(|draw| (MS(1)..=MS(80)).contains(draw)));
    }

    #[test]
    fn percentiles_that_make_no_distribution_are_refused() {
        for (points, wanted) in [
            (&[][..], "begin with `p0`"),
            (&[("p0", "1ms"), ("p50", "2ms")], "end with `p100`"),
            (&[("p1", "1ms"), ("p100", "2ms")], "begin with `p0`"),
            (&[("p0", "1ms"), ("p90", "2ms"), ("p50", "2ms"), ("p100", "2ms")], "`p50` must not stand after `p90`"),
            (&[("p0", "1ms"), ("p50", "3ms"), ("p100", "2ms")], "`p100` must not be shorter than `p50`"),
            (&[("p0", "1ms"), ("p999", "3ms"), ("p100", "2ms")], "99.9% is written `p99.9`"),
            (&[("p0", "1ms"), ("median", "3ms"), ("p100", "2ms")], "`median` is not a percentile"),
            (&[("p0", "1ms"), ("pnan", "3ms"), ("p100", "2ms")], "`pnan` is not a percentile"),
            (&[("p0", "1ms"), ("p100", "2")], "a duration needs a unit"),
        ] {
            let error = read(points).unwrap_err();
            assert!(error.contains(wanted), "{points:?}: {error}");
        }
    }

    #[test]
    fn a_draw_is_a_function_of_its_key() {
        let time = ServiceTime::Exponential(ExponentialTime { mean: MS(10) });
        let key = Key { seed: 1, operation: 3, ..Key::default() };
        assert_eq!(time.draw(key), time.draw(key));
        assert_ne!(time.draw(key), time.draw(Key { operation: 4, ..key }));
    }
}
