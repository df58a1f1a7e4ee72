//! Measured histograms of service times, as systems export them, read into a distribution that is even within each bucket.

use super::time::Percentiles;
use crate::config::{Node, Place, Problems, Read, Shape, Table, TimeScale};
use crate::record;
use crate::time::Span;

record! {
    /// A bucket: how many took no longer than this, and longer than the bucket before.
    pub struct Bucket {
        /// The longest time in it.
        upto: Span,
        /// How many there were in it, those of the buckets before not among them.
        count: u64,
    }
}

/// A histogram as a list of buckets, each with a count of its own: `[{ upto: 10ms, count: 900 }, { upto: 50ms, count: 100 }]`.
/// A bucket begins where the one before ends; the first one begins at zero, unless a bucket with a count of 0 stands before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram(pub Percentiles);

/// The buckets of a histogram of Prometheus: from the bound `le`, in seconds or with a unit, to how many took no longer:
/// `{ "0.01": 900, "0.05": 1000 }`.
#[derive(Clone, Debug, PartialEq)]
pub struct Prometheus(pub Percentiles);

/// Makes a distribution of (upper end, count of its own) in rising order.
fn distribution(buckets: &[(Span, u64)]) -> Result<Percentiles, String> {
    let total: u128 = buckets.iter().map(|(_, count)| u128::from(*count)).sum();
    if total == 0 {
        return Err("a histogram needs at least one bucket with a count above 0".to_string());
    }
    let (mut points, mut below, mut from) = (Vec::new(), 0u128, Span::ZERO);
    for (upto, count) in buckets {
        if *count > 0 {
            let share = |count: u128| count as f64 / total as f64;
            // A gap, or the beginning: nothing lies between the bucket before and this one.
            if points.last().is_none_or(|(_, end)| *end < from) {
                points.push((share(below), from));
            }
            below += u128::from(*count);
            points.push((share(below), *upto));
        }
        from = *upto;
    }
    Ok(Percentiles::with_gaps(points))
}

/// What is wrong with the order of a bucket and the one before.
fn out_of_order(before: Span, upto: Span) -> Option<String> {
    (upto <= before)
        .then(|| format!("the bucket up to {upto} must not stand after the one up to {before}: write buckets in rising order"))
}

impl Read for Histogram {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let buckets = Vec::<Bucket>::read(node, problems)?;
        let buckets: Vec<(Span, u64)> = buckets.into_iter().map(|bucket| (bucket.upto, bucket.count)).collect();
        let wrong = buckets.windows(2).find_map(|pair| out_of_order(pair[0].0, pair[1].0));
        finish(node.place, wrong.map_or_else(|| distribution(&buckets), Err), problems).map(Self)
    }
    fn shape() -> Shape {
        Vec::<Bucket>::shape()
    }
    fn rescale(&mut self, by: TimeScale) {
        self.0.rescale(by);
    }
}

impl Read for Prometheus {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let table = Table::<u64>::read(node, problems)?;
        let (mut buckets, mut last, mut wrong) = (Vec::new(), (Span::ZERO, 0), false);
        for entry in &table.0 {
            match bucket(&entry.name, entry.value, last, buckets.is_empty()) {
                Ok(None) => {}
                Ok(Some(upto)) => {
                    buckets.push((upto, entry.value - last.1));
                    last = (upto, entry.value);
                }
                Err(message) => {
                    problems.error(entry.place, message);
                    wrong = true;
                }
            }
        }
        if wrong { None } else { finish(node.place, distribution(&buckets), problems).map(Self) }
    }
    fn shape() -> Shape {
        Shape::Map(Box::new(u64::shape()))
    }
    fn rescale(&mut self, by: TimeScale) {
        self.0.rescale(by);
    }
}

/// The upper end of a bucket, after the one that ended at `last` with so many in all; none for an infinite one that holds nothing.
fn bucket(le: &str, count: u64, last: (Span, u64), first: bool) -> Result<Option<Span>, String> {
    if count < last.1 {
        return Err(format!("`{le}`: {count} is less than the {} before it: each count is of all that took no longer", last.1));
    }
    if matches!(le.trim().trim_start_matches('+').to_ascii_lowercase().as_str(), "inf" | ".inf") {
        return if count == last.1 {
            Ok(None)
        } else {
            let more = count - last.1;
            Err(format!(
                "`{le}`: how long did the {more} take that took longer than {}? Write the longest time in its place, such as `30`",
                last.0
            ))
        };
    }
    let upto = match le.trim().parse::<f64>() {
        Ok(secs) if secs.is_finite() && secs >= 0.0 => Span::from_secs_f64(secs),
        Ok(_) => return Err(format!("`{le}` is no bound of a bucket: write seconds, such as `0.05`, or `50ms`")),
        Err(_) => Span::parse(le)?,
    };
    match out_of_order(last.0, upto).filter(|_| !first) {
        Some(message) => Err(message),
        None => Ok(Some(upto)),
    }
}

fn finish(place: Place, read: Result<Percentiles, String>, problems: &mut Problems) -> Option<Percentiles> {
    read.map_err(|message| problems.error(place, message)).ok()
}

#[cfg(test)]
mod tests {
    use super::super::time::ServiceTime;
    use super::*;
    use crate::config::{Key, Value};
    use crate::rng::{Purpose, Stream};

    fn text(text: impl Into<String>) -> Node {
        Node { value: Value::Text(text.into()), place: Place::default() }
    }

    fn map(entries: Vec<(&str, Node)>) -> Node {
        let key = |name: &str| Key { name: name.into(), place: Place::default() };
        Node { value: Value::Map(entries.into_iter().map(|(name, node)| (key(name), node)).collect()), place: Place::default() }
    }

    fn read(named: &str, inner: Node) -> Result<ServiceTime, String> {
        let mut problems = Problems::default();
        let read = ServiceTime::read(&map(vec![(named, inner)]), &mut problems);
        read.ok_or_else(|| problems.sorted().iter().map(|p| p.message.clone()).collect::<Vec<_>>().join("; "))
    }

    fn histogram(buckets: &[(&str, u64)]) -> Result<ServiceTime, String> {
        let bucket = |(upto, count): &(&str, u64)| map(vec![("upto", text(*upto)), ("count", text(count.to_string()))]);
        read("histogram", Node { value: Value::List(buckets.iter().map(bucket).collect()), place: Place::default() })
    }

    fn prometheus(buckets: &[(&str, u64)]) -> Result<ServiceTime, String> {
        read("prometheus", map(buckets.iter().map(|(le, count)| (*le, text(count.to_string()))).collect()))
    }

    /// How many of 100,000 draws lie in (from, to], in milliseconds.
    fn between(time: &ServiceTime, from: f64, to: f64) -> u32 {
        let mut stream: Stream = crate::rng::Key { seed: 1, ..Default::default() }.stream(Purpose::ServiceTime);
        let millis = (0..100_000).map(|_| time.sample(&mut stream).as_secs_f64() * 1e3);
        millis.filter(|draw| (from..to).contains(draw)).count() as u32
    }

    #[test]
    fn draws_fall_into_the_buckets_and_evenly_within() {
        let time = histogram(&[("1ms", 0), ("10ms", 900), ("50ms", 0), ("100ms", 100), ("1s", 0)]).unwrap();
        let near = |count: u32, wanted: u32| count.abs_diff(wanted) < 700;
        assert!(near(between(&time, 1.0, 10.0), 90_000) && near(between(&time, 50.0, 100.0), 10_000));
        assert!(near(between(&time, 1.0, 4.0), 30_000) && near(between(&time, 75.0, 100.0), 5_000));
        assert_eq!(between(&time, 10.0, 50.0) + between(&time, 0.0, 1.0), 0, "nothing lies in an empty bucket");
        assert_eq!(time.mean(), Span::from_micros(12_450), "0.9 x 5.5 + 0.1 x 75");
        assert_eq!(histogram(&[("0", 3), ("10ms", 1)]).unwrap().mean(), Span::from_micros(1_250), "three of four take no time");
    }

    #[test]
    fn prometheus_counts_all_that_took_no_longer() {
        let plain = histogram(&[("10ms", 900), ("50ms", 90), ("2s", 10)]);
        assert_eq!(prometheus(&[("0.01", 900), ("0.05", 990), ("2", 1000), ("+Inf", 1000)]), plain);
        assert_eq!(prometheus(&[("10ms", 900), ("50ms", 990), ("2.0", 1000)]), plain);
    }

    #[test]
    fn what_is_no_histogram_is_refused() {
        type Read = fn(&[(&str, u64)]) -> Result<ServiceTime, String>;
        type Case<'a> = (Read, &'a [(&'a str, u64)], &'a str);
        let cases: [Case; 9] = [
            (histogram, &[], "at least one bucket"),
            (histogram, &[("10ms", 0)], "at least one bucket"),
            (histogram, &[("10ms", 5), ("10ms", 6)], "rising order"),
            (histogram, &[("10ms", 5), ("5ms", 6)], "the bucket up to 5ms must not stand after the one up to 10ms"),
            (prometheus, &[("0.01", 900), ("0.05", 90)], "90 is less than the 900 before it"),
            (prometheus, &[("0.01", 900), ("+Inf", 903)], "how long did the 3 take that took longer than 10ms"),
            (prometheus, &[("0.05", 9), ("0.01", 10)], "rising order"),
            (prometheus, &[("-1", 9)], "no bound of a bucket"),
            (prometheus, &[("fast", 9)], "not a duration"),
        ];
        for (read, buckets, wanted) in cases {
            let error = read(buckets).unwrap_err();
            assert!(error.contains(wanted), "{buckets:?}: {error}");
        }
    }
}
