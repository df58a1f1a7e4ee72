//! The servers: what is being served, and until when.

use super::config;
use super::job::Slot;
use crate::time::Span;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The most requests in service at once, whatever the plan says: it bounds the memory of `unlimited` servers.
/// Beyond it an unlimited service answers 503, and counts that; a limited one has no more servers than this.
pub const MAX_IN_SERVICE: usize = 100_000;

/// What is being served, by the work at which each is done (see [`capacity`](super::capacity)); ties end in the order of arrival.
///
/// Who ends later than all before, as with a constant service time everybody does, joins a line; the others join a heap. Who is stopped is
/// remembered until its turn comes, or until half of all are such: so each call costs O(log n), and memory is twice that of what is served.
#[derive(Clone, Debug)]
pub struct Servers {
    line: VecDeque<Entry>,
    heap: BinaryHeap<Reverse<Entry>>,
    stopped: BinaryHeap<Reverse<(u64, u64)>>,
    bound: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    done: u64,
    ticket: u64,
    slot: Slot,
}

impl Servers {
    /// Idle servers.
    pub fn new(servers: config::Servers) -> Self {
        let bound = match servers {
            config::Servers::Limited(n) => (n as usize).min(MAX_IN_SERVICE),
            config::Servers::Unlimited => MAX_IN_SERVICE,
        };
        Self { line: VecDeque::new(), heap: BinaryHeap::new(), stopped: BinaryHeap::new(), bound }
    }

    /// Begins to serve a request, so much work done by now; gives the work at which it is done. No two share a ticket.
    pub fn start(&mut self, work_now: u64, slot: Slot, ticket: u64, work: Span) -> u64 {
        let done = work_now.saturating_add(work.0);
        let entry = Entry { done, ticket, slot };
        if self.line.back().is_none_or(|last| *last < entry) {
            self.line.push_back(entry);
        } else {
            self.heap.push(Reverse(entry));
        }
        done
    }

    /// The work at which the next one is done.
    pub fn next(&self) -> Option<u64> {
        self.first().map(|(entry, _)| entry.done)
    }

    /// Takes out the next one that is done once so much work is, with the work at which it was.
    pub fn finish(&mut self, upto_work: u64) -> Option<(u64, Slot)> {
        let (entry, in_line) = self.first().filter(|(entry, _)| entry.done <= upto_work)?;
        self.take(in_line);
        self.forget_stopped();
        Some((entry.done, entry.slot))
    }

    /// Stops the service of one that is in service, by what [`Servers::start`] gave and was given.
    pub fn stop(&mut self, done: u64, ticket: u64) {
        self.stopped.push(Reverse((done, ticket)));
        self.forget_stopped();
        if self.stopped.len() > 64 && self.stopped.len() > self.len() {
            let stopped = std::mem::take(&mut self.stopped).into_sorted_vec();
            let goes = |entry: &Entry| stopped.binary_search(&Reverse((entry.done, entry.ticket))).is_ok();
            self.line.retain(|entry| !goes(entry));
            self.heap.retain(|Reverse(entry)| !goes(entry));
        }
    }

    /// How many can be in service at once.
    pub const fn bound(&self) -> usize {
        self.bound
    }

    /// How many are in service.
    pub fn len(&self) -> usize {
        self.line.len() + self.heap.len() - self.stopped.len()
    }

    /// Whether all are idle.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first of all, and whether it stands in the line.
    fn first(&self) -> Option<(Entry, bool)> {
        match (self.line.front(), self.heap.peek()) {
            (Some(line), Some(Reverse(heap))) if heap < line => Some((*heap, false)),
            (None, Some(Reverse(heap))) => Some((*heap, false)),
            (line, _) => line.map(|line| (*line, true)),
        }
    }

    fn take(&mut self, in_line: bool) {
        if in_line {
            self.line.pop_front();
        } else {
            self.heap.pop();
        }
    }

    /// Takes out who was stopped, as far as they stand first.
    fn forget_stopped(&mut self) {
        while let (Some(Reverse(stopped)), Some((entry, in_line))) = (self.stopped.peek(), self.first()) {
            if *stopped != (entry.done, entry.ticket) {
                return;
            }
            self.stopped.pop();
            self.take(in_line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};

    #[test]
    fn ends_are_in_the_order_of_work_and_ties_in_that_of_arrival() {
        let mut servers = Servers::new(config::Servers::Limited(5));
        for (ticket, work) in [(0, 30), (1, 10), (2, 10), (3, 40), (4, 30)] {
            assert!((servers.len() < servers.bound()));
            assert_eq!(servers.start(100, Slot(ticket), ticket.into(), Span(work)), 100 + work);
        }
        assert_eq!(((servers.len() < servers.bound()), servers.next(), servers.finish(109)), (false, Some(110), None));
        servers.stop(130, 0);
        assert_eq!((servers.len(), (servers.len() < servers.bound())), (4, true));
        let ended: Vec<_> = std::iter::from_fn(|| servers.finish(139)).collect();
        assert_eq!(ended, [(110, Slot(1)), (110, Slot(2)), (130, Slot(4))]);
        assert_eq!(
            (servers.finish(u64::MAX).map(|(_, slot)| slot), servers.next(), servers.is_empty()),
            (Some(Slot(3)), None, true)
        );
        assert_eq!(servers.start(u64::MAX, Slot(0), 9, Span(1)), u64::MAX);
    }

    /// Starts, ends and stops at random, beside a sorted list that does the same.
    #[test]
    fn a_sorted_list_does_the_same() {
        for (seed, constant) in [(1, false), (2, true)] {
            let mut stream = Key { seed, ..Key::default() }.stream(Purpose::ServiceTime);
            let mut servers = Servers::new(config::Servers::Limited(300));
            let (mut list, mut now) = (Vec::<(u64, u64, Slot)>::new(), 0);
            for ticket in 0..20_000u64 {
                match stream.bits() % if ticket % 2_000 < 1_000 { 3 } else { 8 } {
                    0 if !list.is_empty() => {
                        list.sort();
                        let (done, ticket, _) = list.remove(stream.bits() as usize % list.len());
                        servers.stop(done, ticket);
                    }
                    1 => {
                        list.sort();
                        now = servers.next().unwrap_or(now);
                        let ended = (!list.is_empty()).then(|| list.remove(0)).map(|(done, _, slot)| (done, slot));
                        assert_eq!(servers.finish(now), ended);
                    }
                    _ if (servers.len() < servers.bound()) => {
                        let work = if constant { 50 } else { stream.bits() % 100 };
                        let slot = Slot(ticket as u32);
                        list.push((servers.start(now, slot, ticket, Span(work)), ticket, slot));
                    }
                    _ => {}
                }
                assert_eq!(servers.len(), list.len());
                assert!(servers.line.len() + servers.heap.len() <= 2 * list.len() + 65, "what is stopped is forgotten");
            }
        }
    }
}
