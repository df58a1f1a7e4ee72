//! From what was seen of a target to a model of it: how long it serves, and, where that showed, what it cannot exceed.
//!
//! A light load shows how long a request takes and nothing of how many are served at once: any number of servers that is never
//! busy looks alike. So the number is estimated only from stretches in which the target was visibly at its limit:
//!
//! - **A limiter** refuses at once: at least a twentieth of the attempts are refused while those that are served take no longer than before.
//! - **Servers with a queue** take longer: latency is three times the baseline's and more, and throughput stays where it is, whatever
//!   is attempted. That throughput times the mean service time is the number of busy servers (Little's law).
//!
//! Where attempts time out, the target works for clients that have gone, and what comes back is not what it can do: no evidence.

use super::time::{Percentiles, ServiceTime};
use crate::time::{Rate, Span};

/// Windows that a limit must show in.
const LEAST_SLICES: usize = 3;
/// How far the throughput of those windows may be apart for a plateau: (largest − smallest) / median.
const PLATEAU: f64 = 0.2;

/// A window of a run in which no fault acted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    /// How long it is.
    pub length: Span,
    /// Attempts that ended well.
    pub succeeded: u64,
    /// Attempts that were refused: 429 or 503.
    pub refused: u64,
    /// The status that most of them got.
    pub status: u16,
    /// Attempts that ended in any other way, timeouts among them.
    pub lost: u64,
    /// The 99th percentile of attempt latency.
    pub p99: Option<Span>,
    /// Attempts on the wire at its end.
    pub in_flight: u64,
}

/// What the target could not exceed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// Nothing was seen of a limit; why not, in words.
    NotSeen(&'static str),
    /// A limiter.
    Limiter {
        /// The rate that it lets through.
        rate: Rate,
        /// The status of a refusal.
        status: u16,
        /// In how many windows that was seen.
        slices: usize,
    },
    /// Servers, and what waits for them.
    Servers {
        /// Responses per second at the plateau.
        capacity: Rate,
        /// How many are served at once.
        servers: u32,
        /// How many may wait, where the queue was seen to overflow.
        queue: Option<u32>,
        /// In how many windows that was seen.
        slices: usize,
    },
}

/// The service time behind attempt latencies: each percentile (percent, latency; in rising order, from 0 to 100) less the network's
/// share. One value alone where the distribution is flat: the middle half within a twentieth (or 300 µs) of the median, the mean within a tenth and the
/// 99th percentile within twice of it, so that what lies above is what waiting makes of a constant.
///
/// # Errors
/// Percentiles that make no distribution.
pub fn service_time(percentiles: &[(f64, Span)], mean: Span, network: Span) -> Result<ServiceTime, String> {
    let less = |latency: Span| Span(latency.0.saturating_sub(network.0));
    let points = Percentiles::new(percentiles.iter().map(|(percent, latency)| (*percent, less(*latency))))?;
    let points = with_mean(points, less(mean));
    let at = |percent: f64| points.points().find(|(point, _)| *point >= percent).map_or(Span::ZERO, |(_, time)| time);
    let (median, low) = (at(50.0), at(5.0));
    let flat = median.0 - low.0 <= (median.0 / 20).max(300_000);
    let near = less(mean).0 <= median.0 + median.0 / 10 && at(99.0).0 <= median.0 * 2;
    Ok(if flat && near { ServiceTime::Constant(median) } else { ServiceTime::Percentiles(points) })
}

/// The same distribution with the greatest time lowered, as far as it goes, until the mean is this one: a tail is not even between its points,
/// and the slowest of all attempts is the least certain of them.
fn with_mean(points: Percentiles, mean: Span) -> Percentiles {
    let mut all: Vec<(f64, Span)> = points.points().collect();
    let &[.., (percent, least), (_, most)] = &all[..] else { return points };
    let excess = points.mean().0.saturating_sub(mean.0) as f64 * 200.0 / (100.0 - percent);
    let lowered = Span(most.0.saturating_sub(excess as u64)).max(least);
    all.last_mut().expect("it has two points").1 = lowered;
    Percentiles::new(all).unwrap_or(points)
}

/// What windows without a fault show of a limit, against the 99th percentile of attempt latency in the baseline.
pub fn limit(slices: &[Slice], baseline_p99: Span, mean: Span) -> Limit {
    let waited = |slice: &&Slice, times: f64| slice.p99.is_some_and(|p99| p99 > baseline_p99.scale(times) + Span::from_millis(5));
    let refusing: Vec<&Slice> = slices.iter().filter(|s| s.refused * 20 >= s.ended().max(1) && !waited(s, 1.5)).collect();
    if let Some(rate) = plateau(&refusing) {
        let status = refusing.iter().max_by_key(|slice| slice.refused).map_or(429, |slice| slice.status);
        return Limit::Limiter { rate, status, slices: refusing.len() };
    }
    let slow: Vec<&Slice> = slices.iter().filter(|slice| waited(slice, 3.0)).collect();
    if slow.is_empty() {
        return Limit::NotSeen("no window without a fault shows refusals, or latency above three times the baseline's");
    }
    let kept: Vec<&Slice> = slow.into_iter().filter(|slice| slice.lost * 20 < slice.ended().max(1)).collect();
    let Some(capacity) = plateau(&kept) else {
        return Limit::NotSeen("latency rose, but too few windows without timeouts show the same throughput");
    };
    let busy = capacity.get() * mean.as_secs_f64();
    let servers = (busy.round() as u32).max(1);
    let overflowed = kept.iter().filter(|slice| slice.refused > 0).map(|slice| slice.in_flight).max();
    let queue = overflowed.map(|most| u32::try_from(most).unwrap_or(u32::MAX).saturating_sub(servers));
    Limit::Servers { capacity, servers, queue, slices: kept.len() }
}

/// The median rate of success of these windows; none where they are too few, or too far apart.
fn plateau(slices: &[&Slice]) -> Option<Rate> {
    let rates: Vec<f64> = slices.iter().map(|slice| slice.succeeded as f64 / slice.length.as_secs_f64().max(1e-9)).collect();
    let spread = crate::stats::spread(&rates)?;
    let flat = spread.median > 0.0 && spread.max - spread.min <= PLATEAU * spread.median;
    (spread.count >= LEAST_SLICES && flat).then(|| Rate::per_second(spread.median).ok()).flatten()
}

impl Slice {
    fn ended(&self) -> u64 {
        self.succeeded + self.refused + self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};

    const MS: fn(u64) -> Span = Span::from_millis;
    /// As a result keeps them.
    const KEPT: [f64; 19] =
        [0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.9, 100.0];

    /// Percentiles and mean of draws of a service time, a network before them.
    fn observed(time: &ServiceTime, network: Span) -> (Vec<(f64, Span)>, Span) {
        let draw = |n| network + time.draw(Key { seed: 4, operation: n, attempt: 1, ..Key::default() });
        let mut all: Vec<Span> = (0..5_000).map(draw).collect();
        all.sort();
        let at = |percent: f64| all[((all.len() - 1) as f64 * percent / 100.0) as usize];
        let mean = all.iter().copied().sum::<Span>() / all.len() as u64;
        (KEPT.iter().map(|&percent| (percent, at(percent))).collect(), mean)
    }

    fn parsed(text: &str) -> ServiceTime {
        use crate::config::{Node, Place, Problems, Read, Value};
        let node = Node { value: Value::Text(text.into()), place: Place::default() };
        ServiceTime::read(&node, &mut Problems::default()).unwrap()
    }

    #[test]
    fn a_known_service_is_found_again_behind_its_network() {
        let exponential = ServiceTime::Exponential(crate::service::time::ExponentialTime { mean: MS(20) });
        let lognormal = ServiceTime::Lognormal(crate::service::time::Lognormal { p50: MS(40), p99: MS(180) });
        for truth in [exponential, lognormal, parsed("10ms")] {
            for network in [Span::from_micros(240), MS(30)] {
                let (percentiles, mean) = observed(&truth, network);
                let found = service_time(&percentiles, mean, network).unwrap();
                let ratio = found.mean().as_secs_f64() / truth.mean().as_secs_f64();
                assert!((0.95..1.05).contains(&ratio), "{truth:?} behind {network}: {found:?}");
                let own = (mean.0 - network.0) as f64;
                assert!((found.mean().0 as f64 / own - 1.0).abs() < 0.02, "{truth:?}: {} for {own}", found.mean());
            }
        }
        let (percentiles, mean) = observed(&parsed("10ms"), MS(1));
        assert_eq!(service_time(&percentiles, mean, MS(1)).unwrap(), ServiceTime::Constant(MS(10)));
        assert!(service_time(&percentiles[1..], mean, MS(1)).is_err());
        assert_eq!(service_time(&percentiles, mean, MS(99)).unwrap(), ServiceTime::Constant(Span::ZERO), "never below zero");
    }

    #[test]
    fn a_slow_tail_is_no_constant() {
        let tail = [(0.0, MS(1)), (5.0, MS(1)), (50.0, MS(1)), (90.0, MS(1)), (99.0, MS(400)), (100.0, MS(500))];
        assert!(matches!(service_time(&tail, MS(20), Span::ZERO).unwrap(), ServiceTime::Percentiles(_)));
    }

    /// One-second windows: (succeeded, refused, lost, p99 in ms, in flight).
    fn slices(windows: &[(u64, u64, u64, u64, u64)]) -> Vec<Slice> {
        let slice = |&(succeeded, refused, lost, p99, in_flight): &(u64, u64, u64, u64, u64)| Slice {
            length: Span::from_secs(1),
            succeeded,
            refused,
            status: 429,
            lost,
            p99: Some(MS(p99)),
            in_flight,
        };
        windows.iter().map(slice).collect()
    }

    fn limit_of(windows: &[(u64, u64, u64, u64, u64)]) -> Limit {
        limit(&slices(windows), MS(15), MS(10))
    }

    #[test]
    fn a_limit_shows_where_the_target_was_at_it() {
        let shaken = |n: u64| (Key { operation: n, ..Key::default() }.stream(Purpose::Network).unit() * 20.0) as u64;
        let light: Vec<_> = (0..20).map(|n| (390 + shaken(n), 0, 0, 15, 4)).collect();
        assert!(matches!(limit_of(&light), Limit::NotSeen(_)));
        let drained: Vec<_> = light.iter().copied().chain((0..5).map(|n| (590 + shaken(n), 0, 0, 700, 900 - n * 150))).collect();
        match limit_of(&drained) {
            Limit::Servers { servers, queue, slices, capacity } => {
                assert_eq!((servers, queue, slices), (6, None, 5));
                assert!((590.0..=610.0).contains(&capacity.get()));
            }
            limit => panic!("{limit:?}"),
        }
        let overflowing = limit_of(&[(600, 90, 0, 900, 506), (600, 80, 0, 900, 505), (603, 70, 0, 900, 500)]);
        assert!(matches!(overflowing, Limit::Servers { servers: 6, queue: Some(500), .. }), "{overflowing:?}");
        let limited = limit_of(&[(300, 100, 0, 14, 4), (301, 150, 0, 15, 4), (299, 40, 0, 15, 4), (250, 0, 0, 15, 4)]);
        assert_eq!(limited, Limit::Limiter { rate: Rate::per_second(300.0).unwrap(), status: 429, slices: 3 });
    }

    #[test]
    fn what_timeouts_hide_is_no_evidence() {
        let stuck: Vec<_> = (0..20).map(|n| (5 + n % 3, 0, 1_500, 1_000, 1_900)).collect();
        assert!(matches!(limit_of(&stuck), Limit::NotSeen(why) if why.contains("timeouts")));
        let uneven = limit_of(&[(300, 0, 0, 700, 90), (500, 0, 0, 700, 90), (600, 0, 0, 700, 90)]);
        assert!(matches!(uneven, Limit::NotSeen(_)));
        let few = limit_of(&[(600, 0, 0, 700, 90), (600, 0, 0, 700, 90)]);
        assert!(matches!(few, Limit::NotSeen(_)));
    }
}
