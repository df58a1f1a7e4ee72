//! The simulator's queue against the standard library's heap: nanoseconds of processor time for taking the next item out and putting one in, a million
//! pending, in alternation; and whether both give one order.
//!
//! `cargo bench --bench queue`
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod common;

use common::{median, say, timed};
use stormwake::engine::sim::queue::{BucketQueue, HeapQueue, Queue};
use stormwake::rng::{Key, Purpose, Stream};
use stormwake::time::{Span, Timestamp};

/// What a simulation's queue holds, by size.
type Item = [u32; 4];

const PENDING: u32 = 1_000_000;
const STEPS: u32 = 4_000_000;
const ROUNDS: usize = 5;

fn main() {
    say(&format!("{PENDING} pending, {STEPS} times out and in, {ROUNDS} rounds in alternation; medians"));
    say(&format!("{:<22}{:>12}{:>12}{:>8}", "gaps", "heap ns", "buckets ns", "ratio"));
    compare("full jitter to 30 s", |draws| Span::from_secs(30).scale(draws.unit()));
    compare("exponential, mean 1 s", |draws| Span::from_secs(1).scale(draws.exponential()));
    compare("hops, waits, timeouts", mixed);
}

/// As an attempt has them: two short hops in four, a service, a backoff.
fn mixed(draws: &mut Stream) -> Span {
    match draws.bits() % 4 {
        0 | 1 => Span::from_micros(60),
        2 => Span::from_millis(10).scale(draws.unit()),
        _ => Span::from_secs(30).scale(draws.unit()),
    }
}

fn compare(name: &str, gap: fn(&mut Stream) -> Span) {
    let (mut heap, mut buckets, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let one = hold::<HeapQueue<Item>>(round as u64, gap);
        let other = hold::<BucketQueue<Item>>(round as u64, gap);
        assert_eq!(one.0, other.0, "{name}: both queues give one order");
        ratios.push(one.1 / other.1);
        heap.push(one.1);
        buckets.push(other.1);
    }
    say(&format!("{name:<22}{:>12.0}{:>12.0}{:>8.1}", median(heap), median(buckets), median(ratios)));
}

/// Fills a queue, then takes out and puts in; gives a hash of the order in which items came, and nanoseconds a step.
fn hold<Q: Queue<Item> + Default>(seed: u64, gap: fn(&mut Stream) -> Span) -> (u64, f64) {
    let mut queue = Q::default();
    let mut draws = Key { seed, ..Key::default() }.stream(Purpose::Network);
    (0..PENDING).for_each(|n| queue.push(Timestamp::ZERO + gap(&mut draws), [n, 0, 0, 0]));
    let (hash, took) = timed(|| {
        let mut hash = 0u64;
        for _ in 0..STEPS {
            let (at, item) = queue.pop().expect("what is taken out is put back");
            hash = (hash ^ at.0 ^ u64::from(item[0])).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
            queue.push(at + gap(&mut draws), item);
        }
        hash
    });
    (hash, took.processor * 1e9 / f64::from(STEPS))
}
