//! How the capacity bends: with what is in service, with what the cache holds, and with the time since a restart.

use super::change::CacheState;
use crate::config::{Node, Problems, Read, Shape, TimeScale, read_text};
use crate::record;
use crate::rng::{Key, Purpose};
use crate::time::{Share, Span, parse_percent};

/// How many times as long: `10x`, or `1000%`; 1 or more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times(f64);

impl Times {
    /// The most: beyond it a request that misses is never served.
    const MOST: f64 = 1e6;

    /// So many times as long.
    ///
    /// # Errors
    /// Numbers that are not between 1 and a million.
    pub fn new(times: f64) -> Result<Self, String> {
        if (1.0..=Self::MOST).contains(&times) {
            Ok(Self(times))
        } else {
            Err(format!("{times} times as long: expected from `1x` to `1000000x`"))
        }
    }

    /// The factor.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Read for Times {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, |text| match text.trim().strip_suffix('x').map(|number| number.trim().parse()) {
            Some(Ok(times)) => Self::new(times),
            None if text.trim().ends_with('%') => Self::new(parse_percent(text)?),
            _ => Err(format!("`{text}` does not say how many times as long: write `10x`, or `1000%`")),
        })
    }
    fn shape() -> Shape {
        Shape::Text { what: "how many times as long", pattern: r"^[0-9]+(\.[0-9]+)?[x%]$", examples: &["10x", "1000%"] }
    }
    fn rescale(&mut self, _by: TimeScale) {}
}

record! {
    /// A cache that warms with what is served. `service_time` and `rate` are those of the service with a warm cache, hits
    /// and misses together, as one measures them; a cold one is slower by as much as follows from these.
    pub struct ColdCache {
        /// The share of requests that a warm cache answers.
        hits: Share,
        /// How long a request is served that misses, against one that hits: `10x`.
        miss_costs: Times,
        /// How many served requests warm it; the share of hits rises evenly with each.
        warms_after: u32,
        /// What it is when the run begins. A restart makes it cold.
        at_first: CacheState = CacheState::Warm,
    } => |cache: &ColdCache| match cache.warms_after {
        0 => Err("`warms_after` must be 1 or more: how many served requests warm the cache".to_string()),
        _ => Ok(()),
    }
}

record! {
    /// A start at less than full capacity.
    pub struct SlowStart {
        /// The share of the capacity that is there at once.
        from: Share,
        /// How long it takes to reach all of it.
        over: Span,
    }
}

record! {
    /// How the capacity bends.
    pub struct Curve {
        /// A request that enters while C others are served takes `1 + C x this` times its time.
        slows_with_concurrency: Share = Share::ZERO,
        /// A cache that warms with what is served.
        cold_cache: Option<ColdCache>,
        /// How the service comes back from a restart.
        slow_start: Option<SlowStart>,
    }
}

impl Curve {
    /// A capacity that does not bend.
    pub const fn flat() -> Self {
        Self { slows_with_concurrency: Share::ZERO, cold_cache: None, slow_start: None }
    }
}

/// What bends the work of each request as it enters service.
#[derive(Clone, Debug)]
pub struct Bends {
    slows: f64,
    cache: Option<Cache>,
}

/// A cache and how warm it is.
#[derive(Clone, Debug)]
struct Cache {
    /// The share of hits once it is warm.
    hits: f64,
    /// The work of a hit and of a miss, as factors whose mean over a warm cache is 1.
    hit: f64,
    miss: f64,
    warms_after: u32,
    /// How many it has seen served, up to `warms_after`.
    served: u32,
}

impl Bends {
    /// Of a service that begins.
    pub fn new(curve: &Curve) -> Self {
        Self { slows: curve.slows_with_concurrency.get(), cache: curve.cold_cache.as_ref().map(Cache::new) }
    }

    /// The work of a request that enters service while `others` are in service, at full capacity: what was `drawn` for it,
    /// times `1 + slows_with_concurrency x others`, times what a hit or a miss costs. Stays so until it is done.
    pub fn work(&self, drawn: Span, others: usize, key: Key) -> Span {
        let crowded = 1.0 + self.slows * others as f64;
        match &self.cache {
            None if self.slows == 0.0 => drawn,
            None => drawn.scale(crowded),
            Some(cache) => drawn.scale(crowded * cache.cost(key)),
        }
    }

    /// A request was served: that warms the cache.
    pub fn served(&mut self) {
        if let Some(cache) = &mut self.cache {
            cache.served = cache.served.saturating_add(1).min(cache.warms_after);
        }
    }

    /// The cache holds nothing any more.
    pub fn cold(&mut self) {
        self.cache.iter_mut().for_each(|cache| cache.served = 0);
    }

    /// The cache holds all that it can.
    pub fn warm(&mut self) {
        self.cache.iter_mut().for_each(|cache| cache.served = cache.warms_after);
    }

    /// The share of requests that the cache answers by now; none where there is no cache.
    pub fn hits(&self) -> Option<f64> {
        self.cache.as_ref().map(Cache::chance)
    }
}

impl Cache {
    fn new(config: &ColdCache) -> Self {
        let (hits, times) = (config.hits.get(), config.miss_costs.get());
        let hit = 1.0 / (hits + (1.0 - hits) * times);
        let served = match config.at_first {
            CacheState::Cold => 0,
            CacheState::Warm => config.warms_after,
        };
        Self { hits, hit, miss: hit * times, warms_after: config.warms_after, served }
    }

    /// The chance of a hit.
    fn chance(&self) -> f64 {
        self.hits * f64::from(self.served) / f64::from(self.warms_after.max(1))
    }

    fn cost(&self, key: Key) -> f64 {
        if key.stream(Purpose::Cache).unit() < self.chance() { self.hit } else { self.miss }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Span = Span::from_millis;

    fn key(operation: u64) -> Key {
        Key { seed: 3, operation, attempt: 1, ..Key::default() }
    }

    fn cached(hits: f64, times: f64, warms_after: u32, at_first: CacheState) -> Bends {
        let (hits, miss_costs) = (Share::new(hits).unwrap(), Times::new(times).unwrap());
        let cold_cache = Some(ColdCache { hits, miss_costs, warms_after, at_first });
        Bends::new(&Curve { cold_cache, ..Curve::flat() })
    }

    /// The mean work over many keys, in milliseconds, of requests that are drawn 10 ms.
    fn mean(bends: &Bends) -> f64 {
        (0..40_000).map(|n| bends.work(MS(10), 0, key(n)).as_secs_f64() * 1e3).sum::<f64>() / 40_000.0
    }

    #[test]
    fn a_flat_curve_leaves_every_nanosecond() {
        let odd = Span(0x0123_4567_89ab_cdef);
        assert_eq!(Bends::new(&Curve::flat()).work(odd, 99, key(1)), odd);
        assert_eq!(Bends::new(&Curve::flat()).hits(), None);
    }

    #[test]
    fn who_enters_among_others_takes_longer() {
        let curve = Curve { slows_with_concurrency: Share::new(0.01).unwrap(), ..Curve::flat() };
        let bends = Bends::new(&curve);
        let works = [0, 1, 50, 100].map(|others| bends.work(MS(1000), others, key(1)));
        assert_eq!(works, [MS(1000), MS(1010), MS(1500), MS(2000)]);
    }

    #[test]
    fn a_warm_cache_has_the_stated_mean_and_a_cold_one_follows() {
        let mut bends = cached(0.9, 11.0, 100, CacheState::Warm);
        assert!((mean(&bends) / 10.0 - 1.0).abs() < 0.02, "{}", mean(&bends));
        // A hit takes 10 / (0.9 + 0.1 x 11) = 5 ms, a miss 55 ms.
        let works: std::collections::BTreeSet<Span> = (0..100).map(|n| bends.work(MS(10), 0, key(n))).collect();
        assert_eq!(works.into_iter().collect::<Vec<_>>(), [MS(5), MS(55)]);
        bends.cold();
        assert_eq!((mean(&bends).round(), bends.hits()), (55.0, Some(0.0)));
        (0..50).for_each(|_| bends.served());
        // Half as warm: 0.45 x 5 + 0.55 x 55.
        assert!((mean(&bends) / 32.5 - 1.0).abs() < 0.02, "{}", mean(&bends));
        (0..500).for_each(|_| bends.served());
        assert_eq!(bends.hits(), Some(0.9));
        bends.cold();
        bends.warm();
        assert_eq!(bends.hits(), Some(0.9));
        assert_eq!(cached(0.9, 11.0, 100, CacheState::Cold).hits(), Some(0.0));
    }

    #[test]
    fn who_hits_a_cooler_cache_hits_a_warmer_one() {
        let (warm, mut cool) = (cached(0.8, 5.0, 10, CacheState::Warm), cached(0.8, 5.0, 10, CacheState::Cold));
        (0..5).for_each(|_| cool.served());
        assert!((0..1000).all(|n| warm.work(MS(10), 0, key(n)) <= cool.work(MS(10), 0, key(n))));
    }

    #[test]
    fn how_many_times_is_written_in_two_ways() {
        let read = |text: &str| {
            let mut problems = Problems::default();
            let node = Node { value: crate::config::Value::Text(text.into()), place: Default::default() };
            Times::read(&node, &mut problems).map(Times::get).ok_or_else(|| problems.sorted()[0].message.clone())
        };
        assert_eq!((read("10x"), read("1000%"), read(" 1.5 x")), (Ok(10.0), Ok(10.0), Ok(1.5)));
        for (wrong, wanted) in
            [("10", "write `10x`"), ("0.5x", "from `1x`"), ("50%", "from `1x`"), ("NaNx", "from `1x`"), ("x", "write `10x`")]
        {
            assert!(read(wrong).unwrap_err().contains(wanted), "{wrong}: {:?}", read(wrong));
        }
    }
}
