//! The machine of the queue: lines of jobs, one where nothing tells them apart, and one for each class of priority and attempt that
//! the order of service or of shedding goes by.
//!
//! Each line stays in the order of arrival, so whoever is next, oldest, or to be shed stands at an end of one of them, and every call costs
//! a look at each (at most 16). Only a shed order that names `age` costs O(log n). Leaves to others: the jobs' slots, which the
//! caller fills and frees, and what anybody is answered.

use super::codel::Control;
use super::config::{Order, QueueConfig};
use super::expiry::Checked;
use super::line::Line;
use super::shed::{MOST_ATTEMPTS, Shed, ShedBy};
use crate::priority::Priority;
use crate::service::job::{Jobs, Place, Slot};
use crate::service::request::Metadata;
use crate::time::{Span, Timestamp};

/// What became of a job that was to join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// It waits.
    Waits,
    /// It does not: the queue is full.
    Full,
    /// It waits, and this one, which has less claim, was thrown out for it.
    Sheds(Slot),
}

/// Who was taken out of the queue, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Popped {
    /// To be served.
    Serve(Slot),
    /// Dropped by CoDel; the next one is to be taken out at the same moment.
    Drop(Slot),
    /// It has waited too long; the next one is to be taken out at the same moment.
    Expired(Slot),
}

/// A bounded queue over the jobs of a service. Tickets and moments of arrival must grow from one job that joins to the next, and while
/// a job waits neither they nor what it says of itself may change. Who is taken out is in no line any more: its slot is the caller's.
#[derive(Clone, Debug)]
pub struct Queue {
    bound: usize,
    order: Order,
    /// How long the queue must not have been empty before the last comes first.
    adaptive_after: Span,
    /// The age at which a job is served no more, and when that is seen.
    expiry: Option<(Span, Checked)>,
    codel: Option<Control>,
    shed: Option<Shed>,
    classes: Classes,
    lines: Vec<Line>,
    len: usize,
    /// Since when it is not empty.
    filled: Timestamp,
}

impl Queue {
    /// An empty queue.
    pub fn new(QueueConfig(config): &QueueConfig) -> Self {
        let shed = config.shed.as_deref();
        let classes = Classes::new(config.order, shed.unwrap_or_default());
        let lines = vec![Line::EMPTY; classes.count()];
        Self {
            bound: config.bound.get() as usize,
            order: config.order,
            adaptive_after: config.adaptive_after,
            expiry: config.expire_after.as_ref().map(|expiry| (expiry.age(), expiry.checked())),
            codel: config.codel.as_ref().map(Control::new),
            shed: shed.map(|order| Shed::new(order, lines.len())),
            classes,
            lines,
            len: 0,
            filled: Timestamp::ZERO,
        }
    }

    /// Puts a job into its line.
    pub fn join(&mut self, jobs: &mut Jobs, slot: Slot, now: Timestamp) -> Joined {
        if self.len < self.bound {
            self.append(jobs, slot, now);
            return Joined::Waits;
        }
        match self.shed.as_ref().and_then(|shed| shed.victim(&self.lines, jobs, &jobs.at(slot).of)) {
            None => Joined::Full,
            Some(victim) => {
                self.leave(jobs, victim);
                self.append(jobs, slot, now);
                Joined::Sheds(victim)
            }
        }
    }

    /// Takes out who is next, for an idle server; who has to go in place of being served comes out first, one at each call.
    pub fn pop(&mut self, jobs: &mut Jobs, now: Timestamp) -> Option<Popped> {
        let slot = self.take(jobs, now)?;
        if self.expiry.is_none() && self.codel.is_none() {
            return Some(Popped::Serve(slot));
        }
        let waited = now.since(jobs.at(slot).since);
        if self.expiry.is_some_and(|(age, _)| waited >= age) {
            return Some(Popped::Expired(slot));
        }
        let left = self.len;
        let drops = self.codel.as_mut().is_some_and(|codel| codel.drops(now, waited, left));
        Some(if drops { Popped::Drop(slot) } else { Popped::Serve(slot) })
    }

    /// Takes out who is next, whatever its age: as when the whole backlog is refused.
    pub fn take(&mut self, jobs: &mut Jobs, now: Timestamp) -> Option<Slot> {
        let (line, slot) = self.next(jobs, now)?;
        self.unlink(jobs, line, slot);
        Some(slot)
    }

    /// Takes out a job that waits, wherever it stands.
    pub fn leave(&mut self, jobs: &mut Jobs, slot: Slot) {
        if let Place::Queued { line } = jobs.at(slot).place {
            self.unlink(jobs, line.into(), slot);
        }
    }

    /// When the next job will have waited too long; none where that is seen at its turn.
    pub fn expires(&self, jobs: &Jobs) -> Option<Timestamp> {
        let (age, checked) = self.expiry?;
        (checked == Checked::OnTime).then(|| self.oldest(jobs)).flatten().map(|since| since + age)
    }

    /// Takes out a job that has waited too long by `now`, with the moment when it had; the first such first.
    pub fn expired(&mut self, jobs: &mut Jobs, now: Timestamp) -> Option<(Timestamp, Slot)> {
        let due = self.expires(jobs).filter(|due| *due <= now)?;
        let slot = self.first(jobs)?;
        self.leave(jobs, slot);
        Some((due, slot))
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many may wait.
    pub fn bound(&self) -> usize {
        self.bound
    }

    /// Since when the one waits that waits longest.
    pub fn oldest(&self, jobs: &Jobs) -> Option<Timestamp> {
        self.first(jobs).map(|slot| jobs.at(slot).since)
    }

    fn append(&mut self, jobs: &mut Jobs, slot: Slot, now: Timestamp) {
        if self.len == 0 {
            self.filled = now;
        }
        self.len += 1;
        if let [line] = &mut self.lines[..]
            && self.shed.is_none()
        {
            return line.append(jobs, slot, 0);
        }
        let line = self.classes.line(&jobs.at(slot).of);
        if let Some(shed) = &mut self.shed {
            shed.joined(line, slot, jobs.at(slot));
        }
        self.lines[line].append(jobs, slot, line as u8);
    }

    fn unlink(&mut self, jobs: &mut Jobs, line: usize, slot: Slot) {
        if let Some(shed) = &mut self.shed {
            shed.left(line, jobs.at(slot));
        }
        self.lines[line].remove(jobs, slot);
        self.len -= 1;
        if self.len == 0
            && let Some(codel) = &mut self.codel
        {
            codel.ran_empty();
        }
    }

    /// Who is to be served next, and in which line it stands.
    fn next(&self, jobs: &Jobs, now: Timestamp) -> Option<(usize, Slot)> {
        let last_first = match self.order {
            Order::Fifo | Order::Priority | Order::FreshFirst => false,
            Order::Lifo => true,
            Order::AdaptiveLifo => now.since(self.filled) >= self.adaptive_after,
        };
        if let [line] = self.lines[..] {
            return (!line.is_empty()).then_some((0, if last_first { line.last } else { line.first }));
        }
        if last_first {
            return self.there().map(|(index, line)| (index, line.last)).max_by_key(|(_, slot)| ticket(jobs, *slot));
        }
        let firsts = self.there().map(|(index, line)| (index, line.first));
        firsts.min_by_key(|(index, slot)| (self.classes.rank(self.order, *index), ticket(jobs, *slot)))
    }

    /// Who came first of all.
    fn first(&self, jobs: &Jobs) -> Option<Slot> {
        self.there().map(|(_, line)| line.first).min_by_key(|slot| ticket(jobs, *slot))
    }

    /// The lines in which somebody stands.
    fn there(&self) -> impl Iterator<Item = (usize, &Line)> {
        self.lines.iter().enumerate().filter(|(_, line)| !line.is_empty())
    }
}

fn ticket(jobs: &Jobs, slot: Slot) -> u64 {
    jobs.at(slot).ticket
}

/// Which jobs share a line.
#[derive(Clone, Copy, Debug)]
struct Classes {
    /// Classes of priority: all, or one.
    priorities: usize,
    /// Classes of attempts: up to [`MOST_ATTEMPTS`]; or the first, and all others; or one.
    attempts: usize,
}

impl Classes {
    /// Those that an order of service and one of shedding tell apart.
    fn new(order: Order, shed: &[ShedBy]) -> Self {
        let by_priority = order == Order::Priority || shed.contains(&ShedBy::Priority);
        let attempts = match (shed.contains(&ShedBy::Attempt), order) {
            (true, _) => MOST_ATTEMPTS as usize,
            (false, Order::FreshFirst) => 2,
            (false, _) => 1,
        };
        Self { priorities: if by_priority { Priority::ALL.len() } else { 1 }, attempts }
    }

    fn count(self) -> usize {
        self.priorities * self.attempts
    }

    fn line(self, of: &Metadata) -> usize {
        let priority = (of.priority as usize).min(self.priorities - 1);
        priority * self.attempts + (of.attempt.max(1) as usize - 1).min(self.attempts - 1)
    }

    /// The place of a line in the order of service; lines of one rank are served as one.
    fn rank(self, order: Order, line: usize) -> usize {
        match order {
            Order::Priority => line / self.attempts,
            Order::FreshFirst => usize::from(!line.is_multiple_of(self.attempts)),
            Order::Fifo | Order::Lifo | Order::AdaptiveLifo => 0,
        }
    }
}

#[cfg(test)]
mod tests;
