//! The scheduler's queue: what happens next, by (time, order of being asked for).
//!
//! [`BucketQueue`] is what simulations run on; [`HeapQueue`], on the standard library's heap, is its reference. Both keep one total
//! order, so that a run on either is the same run, event by event: a test, and a benchmark, compare them.
//!
//! A bucket queue spends no comparison on what lies far ahead. Time is cut into ticks of 2^16 ns (66 µs); a tick's
//! number has six digits of eight bits, and each digit has a level of 256 buckets. What is pushed goes to the level of
//! the highest digit in which its tick differs from the current one, so that it is moved down at most once per level, and is sorted
//! only when its own tick comes: a few dozen entries that lie in the cache. The measurements behind the choice stand in `benches/README.md`.

use crate::time::Timestamp;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A queue by (time, order of being pushed).
pub trait Queue<T> {
    /// Adds an item. A moment that has passed already counts as the next one.
    fn push(&mut self, at: Timestamp, item: T);

    /// Takes the next item out.
    fn pop(&mut self) -> Option<(Timestamp, T)>;

    /// The moment of the next item; [`Timestamp::NEVER`] where there is none.
    fn next_at(&mut self) -> Timestamp;

    /// How many items it holds.
    fn len(&self) -> usize;

    /// What comes next, as far as the queue has it at hand; given once, and possibly nothing. For whoever can prepare for it.
    fn at_hand(&mut self) -> &[Entry<T>];

    /// Whether it holds none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An item with its moment.
#[derive(Clone, Copy, Debug)]
pub struct Entry<T> {
    /// When.
    pub at: Timestamp,
    /// What.
    pub item: T,
}

/// An item with its moment and place in the order.
#[derive(Clone, Copy, Debug)]
struct Ordered<T> {
    at: Timestamp,
    sequence: u64,
    item: T,
}

impl<T> Ord for Ordered<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl<T> PartialOrd for Ordered<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Ordered<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Ordered<T> {}

/// The reference: a binary heap.
#[derive(Debug)]
pub struct HeapQueue<T> {
    heap: BinaryHeap<Reverse<Ordered<T>>>,
    sequence: u64,
}

impl<T> Default for HeapQueue<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), sequence: 0 }
    }
}

impl<T> Queue<T> for HeapQueue<T> {
    fn push(&mut self, at: Timestamp, item: T) {
        self.sequence += 1;
        self.heap.push(Reverse(Ordered { at, sequence: self.sequence, item }));
    }

    fn pop(&mut self) -> Option<(Timestamp, T)> {
        self.heap.pop().map(|Reverse(next)| (next.at, next.item))
    }

    fn next_at(&mut self) -> Timestamp {
        self.heap.peek().map_or(Timestamp::NEVER, |next| next.0.at)
    }

    fn len(&self) -> usize {
        self.heap.len()
    }

    fn at_hand(&mut self) -> &[Entry<T>] {
        &[]
    }
}

/// Bits of a moment below its tick.
const TICK: u32 = 16;
/// Bits of a digit.
const DIGIT: u32 = 8;
/// Buckets of a level.
const BUCKETS: usize = 1 << DIGIT;
/// Levels: with the bits of a tick, all of a moment's.
const LEVELS: usize = 6;
/// Entries of a chunk: large enough that a chunk costs nothing, small enough that half-filled ones cost no memory.
const CHUNK: usize = 128;

/// The hierarchical bucket queue. Memory is that of its items, and at most a chunk for each bucket in use.
#[derive(Debug)]
pub struct BucketQueue<T> {
    levels: Vec<Level<T>>,
    /// The current tick. Everything in the levels lies in later ones.
    tick: u64,
    /// The items of the current tick, and of any before it, in their order; those before `taken` are gone.
    current: Vec<Entry<T>>,
    taken: usize,
    /// Whether `current` is new, and nobody has asked for it.
    fresh: bool,
    /// Items that were pushed into the current tick and belong before its last one.
    early: HeapQueue<T>,
    /// Chunks that nobody uses.
    spare: Vec<Vec<Entry<T>>>,
    len: usize,
}

/// The items of a bucket, in the order of being pushed: full chunks, then the one that is open.
#[derive(Debug)]
struct Bucket<T> {
    full: Vec<Vec<Entry<T>>>,
    open: Vec<Entry<T>>,
}

#[derive(Debug)]
struct Level<T> {
    buckets: Vec<Bucket<T>>,
    /// A bit for each bucket that holds something.
    used: [u64; BUCKETS / 64],
}

impl<T> Level<T> {
    fn new() -> Self {
        let buckets = (0..BUCKETS).map(|_| Bucket { full: Vec::new(), open: Vec::new() }).collect();
        Self { buckets, used: [0; BUCKETS / 64] }
    }

    /// The first bucket in use behind one.
    fn next_after(&self, bucket: usize) -> Option<usize> {
        let from = bucket + 1;
        (from / 64..self.used.len()).find_map(|word| {
            let mask = if word == from / 64 { u64::MAX << (from % 64) } else { u64::MAX };
            let bits = self.used[word] & mask;
            (bits != 0).then(|| word * 64 + bits.trailing_zeros() as usize)
        })
    }
}

impl<T: Copy> Default for BucketQueue<T> {
    fn default() -> Self {
        Self {
            levels: (0..LEVELS).map(|_| Level::new()).collect(),
            tick: 0,
            current: Vec::new(),
            taken: 0,
            fresh: false,
            early: HeapQueue::default(),
            spare: Vec::new(),
            len: 0,
        }
    }
}

impl<T: Copy> Queue<T> for BucketQueue<T> {
    fn push(&mut self, at: Timestamp, item: T) {
        self.len += 1;
        if at.0 >> TICK > self.tick {
            self.put(Entry { at, item });
        } else if self.current.last().is_none_or(|last| last.at <= at) {
            self.current.push(Entry { at, item });
        } else {
            self.early.push(at, item);
        }
    }

    fn pop(&mut self) -> Option<(Timestamp, T)> {
        self.settle();
        let next = self.current.get(self.taken);
        // At one moment what stands in `current` was pushed first: what came later went behind it, or into `early` before it.
        let popped = if next.is_none_or(|next| self.early.next_at() < next.at) {
            self.early.pop()?
        } else {
            let Entry { at, item } = *next?;
            self.taken += 1;
            (at, item)
        };
        self.len -= 1;
        Some(popped)
    }

    fn next_at(&mut self) -> Timestamp {
        self.settle();
        let next = self.current.get(self.taken).map_or(Timestamp::NEVER, |next| next.at);
        next.min(self.early.next_at())
    }

    fn len(&self) -> usize {
        self.len
    }

    fn at_hand(&mut self) -> &[Entry<T>] {
        if std::mem::take(&mut self.fresh) { &self.current[self.taken..] } else { &[] }
    }
}

impl<T: Copy> BucketQueue<T> {
    /// Puts an entry of a later tick into its bucket.
    fn put(&mut self, entry: Entry<T>) {
        let tick = entry.at.0 >> TICK;
        let level = ((63 - (tick ^ self.tick).leading_zeros()) / DIGIT) as usize;
        let bucket = (tick >> (level as u32 * DIGIT)) as usize % BUCKETS;
        let Level { buckets, used } = &mut self.levels[level];
        used[bucket / 64] |= 1 << (bucket % 64);
        let Bucket { full, open } = &mut buckets[bucket];
        if open.len() == open.capacity() {
            let chunk = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK));
            let filled = std::mem::replace(open, chunk);
            if !filled.is_empty() {
                full.push(filled);
            }
        }
        open.push(entry);
    }

    /// Goes on to the next tick in use, if the current one has nothing left.
    #[inline]
    fn settle(&mut self) {
        if self.taken == self.current.len() && self.early.is_empty() && self.len > 0 {
            self.enter_next();
        }
    }

    fn enter_next(&mut self) {
        self.current.clear();
        self.taken = 0;
        while self.current.is_empty() {
            self.advance();
        }
        // Stable: at one moment the order of being pushed stays, because a bucket keeps it and is moved down before
        // anything is pushed below it.
        self.current.sort_by_key(|entry| entry.at);
        self.fresh = true;
    }

    /// Enters the next bucket in use, and moves what it holds down.
    fn advance(&mut self) {
        let next = self.levels.iter().enumerate().find_map(|(level, buckets)| {
            let shift = level as u32 * DIGIT;
            let bucket = buckets.next_after((self.tick >> shift) as usize % BUCKETS)?;
            Some((level, bucket, shift))
        });
        let Some((level, bucket, shift)) = next else { return };
        let above = self.tick >> shift >> DIGIT << DIGIT << shift;
        self.tick = above | (bucket as u64) << shift;
        self.levels[level].used[bucket / 64] &= !(1 << (bucket % 64));
        let Bucket { full, open } = &mut self.levels[level].buckets[bucket];
        let (mut full, open) = (std::mem::take(full), std::mem::take(open));
        for mut chunk in full.drain(..).chain([open]) {
            for entry in chunk.drain(..) {
                if entry.at.0 >> TICK == self.tick { self.current.push(entry) } else { self.put(entry) }
            }
            self.spare.push(chunk);
        }
        // The list of chunks keeps its room for the next round.
        self.levels[level].buckets[bucket].full = full;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};
    use crate::time::Span;

    /// Runs both queues through the same pushes and pops, and compares what comes out.
    fn compare(seed: u64, steps: u64, gap: impl Fn(u64) -> u64) {
        let mut draws = Key { seed, ..Key::default() }.stream(Purpose::Network);
        let (mut heap, mut buckets) = (HeapQueue::default(), BucketQueue::default());
        let mut now = Timestamp::ZERO;
        for step in 0..steps {
            let wants = draws.bits() % 5;
            if wants < 3 {
                let at = now + Span(gap(draws.bits()));
                heap.push(at, step);
                buckets.push(at, step);
            } else if wants == 3 {
                assert_eq!(heap.next_at(), buckets.next_at());
            } else {
                let next = heap.pop();
                assert_eq!(next, buckets.pop(), "seed {seed}, step {step}");
                now = next.map_or(now, |(at, _)| at);
            }
            assert_eq!(heap.len(), buckets.len());
        }
        while let Some(next) = heap.pop() {
            assert_eq!(Some(next), buckets.pop());
        }
        assert!(buckets.pop().is_none() && buckets.is_empty());
        assert_eq!(buckets.next_at(), Timestamp::NEVER);
    }

    #[test]
    fn both_queues_give_one_order() {
        for seed in 0..20 {
            compare(seed, 20_000, |bits| bits % 1_000);
            compare(seed, 20_000, |bits| bits % 4 * 60_000);
            compare(seed, 20_000, |bits| bits >> (bits % 60));
            compare(seed, 20_000, |bits| (bits % 7) * 250_000);
            compare(seed, 5_000, |_| 0);
        }
    }

    #[test]
    fn the_ends_of_time_have_their_place() {
        let mut queue = BucketQueue::default();
        for (at, item) in [(u64::MAX - 1, 'd'), (1 << 40, 'c'), (0, 'a'), ((1 << TICK) - 1, 'b'), (u64::MAX - 1, 'e')] {
            queue.push(Timestamp(at), item);
        }
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, item)| item).collect();
        assert_eq!(order, "abcde");
    }

    #[test]
    fn a_moment_that_has_passed_comes_next() {
        let mut queue = BucketQueue::default();
        queue.push(Timestamp(1 << 30), 1);
        assert_eq!(queue.pop(), Some((Timestamp(1 << 30), 1)));
        queue.push(Timestamp(1 << 31), 3);
        queue.push(Timestamp(5), 2);
        assert_eq!(queue.next_at(), Timestamp(5));
        assert_eq!(queue.pop(), Some((Timestamp(5), 2)));
        assert_eq!(queue.pop(), Some((Timestamp(1 << 31), 3)));
    }
}
