//! The queue against a model that keeps a plain list and looks at all of it, and CoDel against the RFC's pseudo-code, step by step.

use super::super::codel::Codel;
use super::super::config::{Bound, Order, QueueConfig, QueueSettings};
use super::super::expiry::{Checked, Expiry, ExpiryAnswer, ExpirySettings};
use super::super::shed::ShedBy;
use super::{Joined, Popped, Queue};
use crate::priority::Priority;
use crate::rng::{Key, Purpose, Stream};
use crate::service::job::{Jobs, NO_SLOT, Slot};
use crate::service::request::{Arrival, Metadata};
use crate::time::{Span, Timestamp};
use std::cmp::Reverse;

const MS: fn(u64) -> Span = Span::from_millis;

#[derive(Clone, Copy, Debug)]
struct Waiting {
    slot: Slot,
    ticket: u64,
    since: Timestamp,
    of: Metadata,
}

/// The names are those of RFC 8289, section 5.
#[derive(Default)]
struct Rfc {
    first_above_time: u64,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

struct Naive {
    config: QueueSettings,
    waiting: Vec<Waiting>,
    filled: Timestamp,
    codel: Rfc,
}

impl Naive {
    fn new(config: &QueueSettings) -> Self {
        Self { config: config.clone(), waiting: Vec::new(), filled: Timestamp::ZERO, codel: Rfc::default() }
    }

    fn join(&mut self, newcomer: Waiting, now: Timestamp) -> Joined {
        if self.waiting.is_empty() {
            self.filled = now;
        }
        self.waiting.push(newcomer);
        if self.waiting.len() <= self.config.bound.get() as usize {
            return Joined::Waits;
        }
        // Whoever has the least claim goes; of several, the one that came last, which is the newcomer where it is among them.
        let order = self.config.shed.clone().unwrap_or_default();
        let lack = |word: &ShedBy, of: &Metadata| match word {
            ShedBy::Priority => of.priority as i64,
            ShedBy::Attempt => i64::from(of.attempt.clamp(1, 4)),
            ShedBy::Age => -(of.enqueued.0 as i64),
        };
        let key = |w: &Waiting| (order.iter().map(|word| lack(word, &w.of)).collect::<Vec<_>>(), w.ticket);
        let victim = self.waiting.iter().max_by_key(|w| key(w)).map(|w| w.slot).unwrap();
        self.leave(victim);
        if victim == newcomer.slot { Joined::Full } else { Joined::Sheds(victim) }
    }

    fn leave(&mut self, slot: Slot) {
        self.waiting.retain(|w| w.slot != slot);
    }

    fn next(&self, now: Timestamp) -> Option<Waiting> {
        let lifo = self.config.order == Order::Lifo
            || self.config.order == Order::AdaptiveLifo && now.since(self.filled) >= self.config.adaptive_after;
        let key = |w: &&Waiting| match self.config.order {
            Order::Priority => (w.of.priority as u64, w.ticket),
            Order::FreshFirst => (u64::from(w.of.attempt > 1), w.ticket),
            _ if lifo => (0, u64::MAX - w.ticket),
            _ => (0, w.ticket),
        };
        self.waiting.iter().min_by_key(key).copied()
    }

    /// Takes out the next one that has not waited too long.
    fn dequeue(&mut self, now: Timestamp, out: &mut Vec<Popped>) -> Option<Waiting> {
        while let Some(next) = self.next(now) {
            self.leave(next.slot);
            match &self.config.expire_after {
                Some(expiry) if now.since(next.since) >= expiry.age() => out.push(Popped::Expired(next.slot)),
                _ => return Some(next),
            }
        }
        None
    }

    fn dodequeue(&mut self, codel: &Codel, now: Timestamp, out: &mut Vec<Popped>) -> (Option<Waiting>, bool) {
        let p = self.dequeue(now, out);
        let mut ok_to_drop = false;
        let Some(packet) = p else {
            self.codel.first_above_time = 0;
            return (p, ok_to_drop);
        };
        let sojourn_time = now.since(packet.since);
        if sojourn_time < codel.target || self.waiting.len() <= 1 {
            self.codel.first_above_time = 0;
        } else if self.codel.first_above_time == 0 {
            self.codel.first_above_time = now.0 + codel.interval.0;
        } else if now.0 >= self.codel.first_above_time {
            ok_to_drop = true;
        }
        (p, ok_to_drop)
    }

    /// Everything that is taken out for one server.
    fn pop(&mut self, now: Timestamp) -> Vec<Popped> {
        let mut out = Vec::new();
        let p = match self.config.codel.clone() {
            None => self.dequeue(now, &mut out),
            Some(codel) => self.rfc_dequeue(&codel, now, &mut out),
        };
        out.extend(p.map(|p| Popped::Serve(p.slot)));
        out
    }

    fn rfc_dequeue(&mut self, codel: &Codel, now: Timestamp, out: &mut Vec<Popped>) -> Option<Waiting> {
        let control_law = |t: u64, count: u32| t + (codel.interval.0 as f64 / f64::from(count).sqrt()).round() as u64;
        let (mut p, mut ok_to_drop) = self.dodequeue(codel, now, out);
        if self.codel.dropping {
            if !ok_to_drop {
                self.codel.dropping = false;
            }
            while now.0 >= self.codel.drop_next && self.codel.dropping {
                out.extend(p.map(|p| Popped::Drop(p.slot)));
                self.codel.count += 1;
                (p, ok_to_drop) = self.dodequeue(codel, now, out);
                if ok_to_drop {
                    self.codel.drop_next = control_law(self.codel.drop_next, self.codel.count);
                } else {
                    self.codel.dropping = false;
                }
            }
        } else if ok_to_drop {
            out.extend(p.map(|p| Popped::Drop(p.slot)));
            (p, _) = self.dodequeue(codel, now, out);
            self.codel.dropping = true;
            let delta = self.codel.count - self.codel.lastcount;
            self.codel.count = 1;
            if delta > 1 && now.0 - self.codel.drop_next < 16 * codel.interval.0 {
                self.codel.count = delta;
            }
            self.codel.drop_next = control_law(now.0, self.codel.count);
            self.codel.lastcount = self.codel.count;
        }
        p
    }

    fn oldest(&self) -> Option<Waiting> {
        self.waiting.iter().min_by_key(|w| w.ticket).copied()
    }
}

/// The queue and its model, driven alike.
struct Both {
    queue: Queue,
    naive: Naive,
    jobs: Jobs,
    now: Timestamp,
    tickets: u64,
    seen: Seen,
}

/// What happened, so that a test knows that it did.
#[derive(Debug, Default)]
struct Seen {
    full: u32,
    shed: u32,
    expired: u32,
    dropped: u32,
    served: u32,
}

impl Both {
    fn new(config: QueueSettings) -> Self {
        let naive = Naive::new(&config);
        let queue = Queue::new(&QueueConfig(config));
        Self { queue, naive, jobs: Jobs::default(), now: Timestamp::ZERO, tickets: 0, seen: Seen::default() }
    }

    fn arrive(&mut self, of: Metadata) {
        self.tickets += 1;
        let slot = self.jobs.insert(&arrival(self.tickets, of), self.now, self.tickets, Span::ZERO);
        let joined = self.queue.join(&mut self.jobs, slot, self.now);
        assert_eq!(joined, self.naive.join(Waiting { slot, ticket: self.tickets, since: self.now, of }, self.now));
        match joined {
            Joined::Waits => {}
            Joined::Full => {
                self.jobs.remove(slot);
                self.seen.full += 1;
            }
            Joined::Sheds(victim) => {
                self.jobs.remove(victim);
                self.seen.shed += 1;
            }
        }
    }

    fn serve_one(&mut self) {
        let mut popped = Vec::new();
        while let Some(next) = self.queue.pop(&mut self.jobs, self.now) {
            let (Popped::Serve(slot) | Popped::Drop(slot) | Popped::Expired(slot)) = next;
            self.jobs.remove(slot);
            popped.push(next);
            match next {
                Popped::Drop(_) => self.seen.dropped += 1,
                Popped::Expired(_) => self.seen.expired += 1,
                Popped::Serve(_) => {
                    self.seen.served += 1;
                    break;
                }
            }
        }
        assert_eq!(popped, self.naive.pop(self.now));
    }

    fn expire(&mut self) {
        let expiry = self.naive.config.expire_after.clone();
        let on_time = expiry.filter(|expiry| expiry.checked() == Checked::OnTime);
        loop {
            let oldest = self.naive.oldest();
            let due = on_time.as_ref().zip(oldest).map(|(expiry, oldest)| (oldest.since + expiry.age(), oldest.slot));
            assert_eq!(self.queue.expires(&self.jobs), due.map(|(due, _)| due));
            let expired = self.queue.expired(&mut self.jobs, self.now);
            assert_eq!(expired, due.filter(|(due, _)| *due <= self.now));
            let Some((_, slot)) = expired else { break };
            self.naive.leave(slot);
            self.jobs.remove(slot);
            self.seen.expired += 1;
        }
    }

    fn step(&mut self, draws: &mut Stream) {
        self.now += MS(draws.bits() % 3);
        self.expire();
        match draws.bits() % 16 {
            0..=7 => self.arrive(metadata(self.now, draws)),
            8..=13 => self.serve_one(),
            14 if !self.naive.waiting.is_empty() => {
                let slot = self.naive.waiting[(draws.bits() % self.naive.waiting.len() as u64) as usize].slot;
                self.queue.leave(&mut self.jobs, slot);
                self.naive.leave(slot);
                self.jobs.remove(slot);
            }
            // Now and then it runs empty.
            _ if draws.bits().is_multiple_of(8) => (0..30).for_each(|_| self.serve_one()),
            _ => {}
        }
        assert_eq!((self.queue.len(), self.jobs.len()), (self.naive.waiting.len(), self.naive.waiting.len()));
        assert_eq!(self.queue.oldest(&self.jobs), self.naive.oldest().map(|w| w.since));
    }

    /// Takes out whoever is left, as when the whole backlog is refused.
    fn empty(&mut self) {
        while let Some(next) = self.naive.next(self.now) {
            assert_eq!(self.queue.take(&mut self.jobs, self.now), Some(next.slot));
            self.naive.leave(next.slot);
            self.jobs.remove(next.slot);
        }
        assert!(self.queue.is_empty() && self.jobs.is_empty() && self.queue.take(&mut self.jobs, self.now).is_none());
    }
}

/// Of few values, so that there are ties.
fn arrival(id: u64, of: Metadata) -> Arrival {
    Arrival { id, key: Key::default(), destination: 0, before: NO_SLOT, of }
}

fn metadata(now: Timestamp, draws: &mut Stream) -> Metadata {
    let enqueued = Timestamp(now.0.saturating_sub(MS(draws.bits() % 5 * 10).0) / 10_000_000 * 10_000_000);
    let priority = Priority::ALL[(draws.bits() % 4) as usize];
    Metadata { enqueued, attempt: (draws.bits() % 7) as u32, priority, ..Metadata::nothing(now) }
}

fn settings(order: Order, bound: u32) -> QueueSettings {
    let QueueConfig(settings) = QueueConfig::of(Bound::Limited(bound));
    QueueSettings { order, adaptive_after: MS(12), ..settings }
}

/// Every shed order there is: none, and each choice of words in each order.
fn shed_orders() -> Vec<Option<Vec<ShedBy>>> {
    let mut orders = vec![None];
    let mut longer: Vec<Vec<ShedBy>> = vec![Vec::new()];
    for _ in ShedBy::ALL {
        let one_more = |order: &Vec<ShedBy>| {
            let order = order.clone();
            let rest = ShedBy::ALL.iter().filter(|word| !order.contains(word)).copied().collect::<Vec<_>>();
            rest.into_iter().map(move |word| [&order[..], &[word]].concat()).collect::<Vec<_>>()
        };
        longer = longer.iter().flat_map(one_more).collect();
        orders.extend(longer.iter().cloned().map(Some));
    }
    orders
}

fn expiries() -> [Option<Expiry>; 3] {
    let at_dequeue = ExpirySettings { age: MS(15), answer: ExpiryAnswer::Silent, checked: None };
    [None, Some(Expiry::after(MS(15))), Some(Expiry(at_dequeue))]
}

#[test]
fn every_order_every_shed_order_and_every_expiry_agree_with_the_definition() {
    let mut total = Seen::default();
    for (number, (order, shed)) in
        Order::ALL.iter().flat_map(|order| shed_orders().into_iter().map(|shed| (*order, shed))).enumerate()
    {
        let mut draws = Key { seed: 9, operation: number as u64, ..Key::default() }.stream(Purpose::Arrival);
        for expire_after in expiries() {
            let mut both = Both::new(QueueSettings { shed: shed.clone(), expire_after, ..settings(order, 6) });
            (0..300).for_each(|_| both.step(&mut draws));
            assert_eq!(both.seen.shed > 0, shed.is_some(), "{order:?} {shed:?}: {:?}", both.seen);
            both.empty();
            total.full += both.seen.full;
            total.served += both.seen.served;
            total.expired += both.seen.expired;
        }
    }
    assert_eq!(shed_orders().len(), 16);
    assert!(total.expired > 500 && total.full > 500 && total.served > 10_000, "{total:?}");
}

#[test]
fn codel_drops_whom_the_pseudo_code_of_its_rfc_drops() {
    let codel = Some(Codel { target: MS(5), interval: MS(100) });
    let mut total = Seen::default();
    for (number, &order) in Order::ALL.iter().enumerate() {
        let mut draws = Key { seed: 4, operation: number as u64, ..Key::default() }.stream(Purpose::Arrival);
        let [_, _, expire_after] = expiries();
        let expire_after = expire_after.map(|Expiry(expiry)| Expiry(ExpirySettings { age: MS(400), ..expiry }));
        let mut both = Both::new(QueueSettings { codel: codel.clone(), expire_after, ..settings(order, 400) });
        // Overload and rest in turn, the rest at times too short for the waits to come down.
        for phase in 0..24 {
            let (arrivals, length) = if phase % 2 == 0 { (3, 300 + draws.bits() % 900) } else { (1, draws.bits() % 400) };
            for _ in 0..length {
                both.now += MS(1);
                (0..draws.bits() % (arrivals + 1)).for_each(|_| both.arrive(metadata(both.now, &mut draws)));
                both.serve_one();
            }
        }
        total.dropped += both.seen.dropped;
        total.expired += both.seen.expired;
        // In any other order, somebody who has hardly waited is served every few milliseconds.
        assert_eq!(both.seen.dropped > 50, order == Order::Fifo, "{order:?}: {:?}", both.seen);
    }
    assert!(total.expired > 50, "{total:?}");
}

/// The numbers of those that are served, in that order, where `n` came a millisecond apart and all are served from then on.
fn served(order: Order, n: u64, after: Span) -> Vec<u64> {
    let (mut queue, mut jobs) = (Queue::new(&QueueConfig(settings(order, 100))), Jobs::default());
    let at = |ms: u64| Timestamp::ZERO + MS(ms);
    for number in 0..n {
        let priority = Priority::ALL[(number % 4) as usize];
        let of = Metadata { priority, attempt: 1 + (number % 3) as u32, ..Metadata::nothing(at(number)) };
        let slot = jobs.insert(&arrival(number, of), at(number), number, Span::ZERO);
        assert_eq!(queue.join(&mut jobs, slot, at(number)), Joined::Waits);
    }
    let from = at(n - 1) + after;
    let mut served = Vec::new();
    while let Some(Popped::Serve(slot)) = queue.pop(&mut jobs, from) {
        served.extend(jobs.remove(slot).id);
    }
    served
}

#[test]
fn who_is_served_first() {
    for (order, after, wanted) in [
        (Order::Fifo, MS(0), [0, 1, 2, 3, 4, 5]),
        (Order::Lifo, MS(0), [5, 4, 3, 2, 1, 0]),
        (Order::AdaptiveLifo, MS(6), [0, 1, 2, 3, 4, 5]),
        (Order::AdaptiveLifo, MS(7), [5, 4, 3, 2, 1, 0]),
        (Order::Priority, MS(0), [0, 4, 1, 5, 2, 3]),
        (Order::FreshFirst, MS(0), [0, 3, 1, 2, 4, 5]),
    ] {
        assert_eq!(served(order, 6, after), wanted, "{order:?} after {after}");
    }
}

#[test]
fn the_last_comes_first_until_the_queue_is_empty_and_then_the_first_again() {
    let mut both = Both::new(settings(Order::AdaptiveLifo, 100));
    let nothing = Metadata::nothing(Timestamp::ZERO);
    let mut order = Vec::new();
    for (at, arrivals, served) in [(0, 3, 1), (12, 1, 3), (12, 3, 1), (23, 0, 1), (24, 2, 1)] {
        both.now = Timestamp::ZERO + MS(at);
        (0..arrivals).for_each(|_| both.arrive(nothing));
        for _ in 0..served {
            order.extend(both.naive.next(both.now).map(|next| next.ticket));
            both.serve_one();
        }
    }
    assert_eq!(order, [1, 4, 3, 2, 5, 6, 9], "the fourth came last, and everybody else before it waited for 12 ms");
}

#[test]
fn a_full_queue_sheds_by_the_words_in_their_order() {
    let of = |priority, attempt, enqueued| Metadata { priority, attempt, ..Metadata::nothing(Timestamp(enqueued)) };
    let (critical, normal) = (Priority::Critical, Priority::Normal);
    let (p, n, a) = (ShedBy::Priority, ShedBy::Attempt, ShedBy::Age);
    let waiting = [of(critical, 5, 10), of(normal, 1, 20), of(critical, 4, 10), of(normal, 1, 30)];
    for (shed, newcomer, wanted) in [
        (vec![p, n, a], of(normal, 1, 40), Some(1)),
        (vec![p, n, a], of(normal, 2, 40), None),
        (vec![p, n, a], of(normal, 1, 20), None),
        (vec![p], of(critical, 9, 0), Some(3)),
        (vec![p], of(normal, 1, 99), None),
        (vec![n, p], of(normal, 3, 0), Some(2)),
        (vec![n, p], of(critical, 7, 0), None),
        (vec![a], of(normal, 1, 10), None),
        (vec![a], of(normal, 1, 11), Some(2)),
        (vec![a, p], of(critical, 1, 10), None),
    ] {
        let mut both = Both::new(QueueSettings { shed: Some(shed.clone()), ..settings(Order::Fifo, 4) });
        waiting.into_iter().for_each(|of| both.arrive(of));
        let slots: Vec<Slot> = both.naive.waiting.iter().map(|w| w.slot).collect();
        both.arrive(newcomer);
        let left = slots.iter().position(|slot| both.naive.waiting.iter().all(|w| w.slot != *slot));
        assert_eq!(left, wanted, "{shed:?}, {newcomer:?}");
    }
}

#[test]
fn a_long_line_stays_linked_whoever_leaves() {
    let mut both = Both::new(settings(Order::Fifo, 1000));
    (0..600).for_each(|_| both.arrive(Metadata::nothing(Timestamp::ZERO)));
    let mut slots: Vec<(u64, Slot)> = both.naive.waiting.iter().map(|w| (w.ticket * 7919 % 601, w.slot)).collect();
    slots.sort_by_key(|(shuffled, _)| Reverse(*shuffled));
    for (_, slot) in slots.into_iter().step_by(2) {
        both.queue.leave(&mut both.jobs, slot);
        both.naive.leave(slot);
        both.jobs.remove(slot);
    }
    (0..301).for_each(|_| both.serve_one());
    assert_eq!((both.seen.served, both.jobs.len()), (300, 0));
}
