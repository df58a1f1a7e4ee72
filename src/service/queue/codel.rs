//! CoDel (controlled delay): drops at the head of the queue once whoever is taken out has waited too long for too long, and faster
//! the longer that lasts.
//!
//! The control law, and the state it needs, are those of RFC 8289, section 5, with a request in the place of a packet: the queue is never
//! brought below one that waits. The RFC takes out and drops in one loop; here each call decides on one request, and
//! remembers where in that loop it is.

use crate::record;
use crate::time::{Span, Timestamp};

/// Drops come as fast as in the last cycle where that ended less than so many intervals ago.
const CYCLES: u64 = 16;

record! {
    /// Drops whoever is taken out once all have waited longer than a target for a whole interval.
    pub struct Codel {
        /// A wait that is fine even if it stays.
        target: Span = Span::from_millis(5),
        /// How long the waits must stay above the target before the first drop.
        interval: Span = Span::from_millis(100),
    } => |codel: &Codel| {
        if codel.target.is_zero() {
            return Err("`target` must be above zero: write `5ms`".to_string());
        }
        if codel.interval <= codel.target {
            return Err("`interval` must be longer than `target`: ten to twenty times as long, such as `100ms`".to_string());
        }
        Ok(())
    }
}

/// What the last decision was, as far as the next one goes by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    /// It was served.
    Served,
    /// It was dropped, the first of a cycle: whoever comes next is served.
    DroppedFirst,
    /// It was dropped in a cycle: the next drop may be due already.
    Dropped,
}

/// The state of CoDel.
#[derive(Clone, Debug)]
pub struct Control {
    target: Span,
    interval: Span,
    /// From when on drops are allowed; none while the waits are below the target.
    first_above: Option<Timestamp>,
    dropping: bool,
    drop_next: Timestamp,
    /// Drops of this cycle.
    count: u32,
    /// With how many it began.
    last_count: u32,
    last: Last,
}

impl Control {
    /// Has seen nothing.
    pub fn new(config: &Codel) -> Self {
        Self {
            target: config.target,
            interval: config.interval,
            first_above: None,
            dropping: false,
            drop_next: Timestamp::ZERO,
            count: 0,
            last_count: 0,
            last: Last::Served,
        }
    }

    /// Whether a request is dropped that was taken out after it had waited for so long, and leaves so many behind. Where it is, the
    /// caller takes out the next one at the same moment.
    pub fn drops(&mut self, now: Timestamp, waited: Span, left: usize) -> bool {
        let may = self.may_drop(now, waited, left);
        match std::mem::replace(&mut self.last, Last::Served) {
            Last::DroppedFirst => false,
            Last::Served if !self.dropping => may && self.begin(now),
            last => {
                if may && last == Last::Dropped {
                    self.drop_next = self.after(self.drop_next);
                }
                self.dropping = may;
                may && now >= self.drop_next && self.go_on()
            }
        }
    }

    /// Nobody waits any more.
    pub fn ran_empty(&mut self) {
        self.first_above = None;
        if self.last != Last::DroppedFirst {
            self.dropping = false;
        }
        self.last = Last::Served;
    }

    fn may_drop(&mut self, now: Timestamp, waited: Span, left: usize) -> bool {
        if waited < self.target || left <= 1 {
            self.first_above = None;
            return false;
        }
        now >= *self.first_above.get_or_insert(now + self.interval)
    }

    fn begin(&mut self, now: Timestamp) -> bool {
        let of_last_cycle = self.count.saturating_sub(self.last_count);
        let is_near = now.since(self.drop_next) < self.interval.times(CYCLES);
        self.count = if of_last_cycle > 1 && is_near { of_last_cycle } else { 1 };
        self.last_count = self.count;
        self.dropping = true;
        self.drop_next = self.after(now);
        self.last = Last::DroppedFirst;
        true
    }

    fn go_on(&mut self) -> bool {
        self.count = self.count.saturating_add(1);
        self.last = Last::Dropped;
        true
    }

    /// The control law: t + interval / √count.
    fn after(&self, moment: Timestamp) -> Timestamp {
        moment + self.interval.scale(1.0 / f64::from(self.count).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn under_a_standing_queue_the_drops_come_at_the_moments_of_the_control_law() {
        let ms = Span::from_millis;
        let mut control = Control::new(&Codel { target: ms(5), interval: ms(100) });
        let mut dropped = Vec::new();
        for step in 0..600 {
            let now = Timestamp::ZERO + ms(step);
            while control.drops(now, ms(50), 1000) {
                dropped.push(step);
            }
        }
        // 100 ms above the target, then after 100, 100/√2, 100/√3, … ms more, each seen at the next whole millisecond.
        let (mut at, mut wanted) = (100.0, vec![100]);
        for count in 1..=10 {
            at += 100.0 / f64::from(count).sqrt();
            wanted.push(at.ceil() as u64);
        }
        wanted.retain(|at| *at < 600);
        assert_eq!(dropped, wanted);
        assert_eq!(dropped[..5], [100, 200, 271, 329, 379]);
    }

    #[test]
    fn nobody_is_dropped_below_the_target_or_from_a_queue_of_one() {
        for (waited, left) in [(Span::from_micros(4999), 1000), (Span::from_secs(9), 1)] {
            let mut control = Control::new(&Codel { target: Span::from_millis(5), interval: Span::from_millis(100) });
            assert!((0..900).all(|step| !control.drops(Timestamp::ZERO + Span::from_millis(step), waited, left)));
        }
    }
}
