//! The order in which a client's operations go where the plan gives them priorities: by priority, then by age. Beside it, what
//! may be thrown out of a full outbox, and what a newer operation makes pointless.
//!
//! A fleet without such rules has none of this, and its outboxes stay plain lists.

use super::kinds::{Kind, Priority};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// An operation that waits: its client's place in the shard, its number there, its slot, and what it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) client: u32,
    pub(super) number: u64,
    pub(super) slot: u32,
    pub(super) kind: Kind,
}

/// The operations of one fleet in one shard by their rank.
#[derive(Debug, Default)]
pub(super) struct Ranks {
    /// Those that are ready, by client: the first of a client goes first.
    ready: BTreeSet<(u32, Priority, u64, u32)>,
    /// Those that wait for an attempt, ready or not, by client: the least and oldest first.
    waiting: BTreeSet<(u32, Reverse<Priority>, u64, u32)>,
    /// By client, kind and object: the newest operation about it.
    newest: BTreeMap<(u32, u8, u32), u32>,
}

impl Ranks {
    /// An operation is taken in: it waits, and is the newest about its object.
    pub(super) fn comes(&mut self, of: Waiter) {
        self.waits(of);
        if let Some((kind, object)) = of.kind.replaces {
            self.newest.insert((of.client, kind, object), of.slot);
        }
    }

    /// An operation would wait again: whether it may, since nothing newer has made it pointless.
    pub(super) fn comes_back(&mut self, of: Waiter) -> bool {
        match self.before(of.client, of.kind) {
            Some(newest) if newest != of.slot => false,
            Some(_) => {
                self.waits(of);
                true
            }
            // What was newer has ended before it.
            None => {
                self.comes(of);
                true
            }
        }
    }

    /// An operation that waits may go.
    pub(super) fn is_ready(&mut self, of: Waiter) {
        self.ready.insert((of.client, of.kind.priority, of.number, of.slot));
    }

    /// An operation may not go any more: it has gone, or it leaves.
    pub(super) fn is_not_ready(&mut self, of: Waiter) {
        self.ready.remove(&(of.client, of.kind.priority, of.number, of.slot));
    }

    /// An operation waits no more: it has gone, or it leaves.
    pub(super) fn waits_no_more(&mut self, of: Waiter) {
        self.waiting.remove(&(of.client, Reverse(of.kind.priority), of.number, of.slot));
    }

    /// The slot of the operation of a client that goes first.
    pub(super) fn first(&self, client: u32) -> Option<u32> {
        let of_client = (client, Priority::Critical, 0, 0)..=(client, Priority::BestEffort, u64::MAX, u32::MAX);
        self.ready.range(of_client).next().map(|(_, _, _, slot)| *slot)
    }

    /// The slot of the operation of a client that has the least claim to its place, if it has no more than `priority` has.
    pub(super) fn least(&self, client: u32, priority: Priority) -> Option<u32> {
        let no_more = (client, Reverse(Priority::BestEffort), 0, 0)..=(client, Reverse(priority), u64::MAX, u32::MAX);
        self.waiting.range(no_more).next().map(|(_, _, _, slot)| *slot)
    }

    /// The slot of the newest operation about the object of one that is not taken in yet.
    pub(super) fn before(&self, client: u32, kind: Kind) -> Option<u32> {
        let (kind, object) = kind.replaces?;
        self.newest.get(&(client, kind, object)).copied()
    }

    /// An operation has ended.
    pub(super) fn ended(&mut self, of: Waiter) {
        self.is_not_ready(of);
        self.waits_no_more(of);
        if let Some((kind, object)) = of.kind.replaces
            && self.before(of.client, of.kind) == Some(of.slot)
        {
            self.newest.remove(&(of.client, kind, object));
        }
    }

    fn waits(&mut self, of: Waiter) {
        self.waiting.insert((of.client, Reverse(of.kind.priority), of.number, of.slot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter(client: u32, number: u64, priority: Priority) -> Waiter {
        Waiter { client, number, slot: number as u32 + 100, kind: Kind { priority, replaces: None } }
    }

    #[test]
    fn what_goes_first_is_by_priority_then_by_age() {
        use Priority::{BestEffort, Critical, Normal};
        let mut ranks = Ranks::default();
        let all = [waiter(1, 3, Normal), waiter(1, 1, BestEffort), waiter(1, 4, Critical), waiter(1, 2, Normal)];
        for of in all.into_iter().chain([waiter(0, 9, Critical), waiter(2, 0, Critical)]) {
            ranks.comes(of);
            ranks.is_ready(of);
        }
        let mut order = Vec::new();
        while let Some(slot) = ranks.first(1) {
            order.push(slot - 100);
            ranks.ended(*all.iter().find(|of| of.slot == slot).unwrap());
        }
        assert_eq!(order, [4, 2, 3, 1]);
        assert_eq!((ranks.first(0), ranks.first(1), ranks.first(2)), (Some(109), None, Some(100)));
    }

    #[test]
    fn the_least_claim_is_the_oldest_of_the_lowest_priority() {
        use Priority::{Background, BestEffort, Critical, Normal};
        let mut ranks = Ranks::default();
        for of in [waiter(1, 1, Normal), waiter(1, 2, Background), waiter(1, 3, Background), waiter(1, 4, Critical)] {
            ranks.comes(of);
        }
        assert_eq!(ranks.least(1, Critical), Some(102));
        assert_eq!(ranks.least(1, Background), Some(102), "among equals the oldest goes");
        assert_eq!(ranks.least(1, BestEffort), None, "nothing has less claim");
        assert_eq!(ranks.least(2, Critical), None);
        ranks.waits_no_more(waiter(1, 2, Background));
        assert_eq!(ranks.least(1, Critical), Some(103));
    }

    #[test]
    fn the_newest_about_an_object_makes_the_others_pointless() {
        let mut ranks = Ranks::default();
        let about = |number, object| {
            let kind = Kind { priority: Priority::Normal, replaces: Some((0, object)) };
            Waiter { kind, ..waiter(1, number, Priority::Normal) }
        };
        let newest = |ranks: &Ranks| ranks.before(1, about(9, 7).kind);
        ranks.comes(about(1, 7));
        ranks.waits_no_more(about(1, 7));
        ranks.comes(about(2, 8));
        assert_eq!(newest(&ranks), Some(101));
        ranks.comes(about(3, 7));
        assert!(!ranks.comes_back(about(1, 7)) && ranks.comes_back(about(3, 7)) && ranks.comes_back(about(2, 8)));
        ranks.ended(about(1, 7));
        assert_eq!(newest(&ranks), Some(103), "the end of the older one changes nothing");
        ranks.ended(about(3, 7));
        assert_eq!(newest(&ranks), None);
        assert!(ranks.comes_back(about(1, 7)), "what was newer has ended before it");
        assert_eq!(newest(&ranks), Some(101));
    }
}
