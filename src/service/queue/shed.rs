//! Who is thrown out of a full queue: whoever has the least claim, by an order of words, the newcomer among them.

use crate::keyword;
use crate::service::job::{Job, Jobs, NO_SLOT, Slot};
use crate::service::request::Metadata;
use crate::time::Timestamp;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::line::Line;

/// Attempts from this one on count alike.
pub const MOST_ATTEMPTS: u32 = 4;

keyword! {
    /// What the claim of a request goes by.
    pub enum ShedBy {
        /// The lower priority goes first.
        priority => Priority,
        /// The one with more attempts goes first; from the fourth on all count alike.
        attempt => Attempt,
        /// The one that was enqueued first goes first.
        age => Age,
    }
}

/// What must hold of a shed order.
///
/// # Errors
/// An order of no word, or of one twice.
pub fn check(order: &[ShedBy]) -> Result<(), String> {
    let twice = order.iter().enumerate().find(|(at, word)| order[..*at].contains(word));
    match (order, twice) {
        ([], _) => Err("`shed` is empty: write what goes first, such as `shed: [priority, attempt, age]`".to_string()),
        (_, Some((_, word))) => Err(format!("`shed` names `{}` twice: once is enough", word.word())),
        _ => Ok(()),
    }
}

/// How little claim a request has: the greater, the less.
type Lack = [u64; ShedBy::ALL.len()];

/// One line's requests by the moments when they were enqueued; of one moment, the one that came last goes first.
type Ages = BTreeMap<(Timestamp, Reverse<u64>), Slot>;

/// Finds who goes first. Where the order names no age, that costs a look at the end of every line; where it does, O(log n) at every
/// join and leave.
#[derive(Clone, Debug)]
pub struct Shed {
    order: Vec<ShedBy>,
    /// One for each line; none where the order names no age.
    ages: Vec<Ages>,
}

impl Shed {
    /// For so many empty lines.
    pub fn new(order: &[ShedBy], lines: usize) -> Self {
        let by_age = order.contains(&ShedBy::Age);
        Self { order: order.to_vec(), ages: vec![Ages::new(); if by_age { lines } else { 0 }] }
    }

    /// A job joined a line.
    pub fn joined(&mut self, line: usize, slot: Slot, job: &Job) {
        if let Some(ages) = self.ages.get_mut(line) {
            ages.insert((job.of.enqueued, Reverse(job.ticket)), slot);
        }
    }

    /// A job left a line.
    pub fn left(&mut self, line: usize, job: &Job) {
        if let Some(ages) = self.ages.get_mut(line) {
            ages.remove(&(job.of.enqueued, Reverse(job.ticket)));
        }
    }

    /// Who goes first of those that wait, if it has less claim than this newcomer. Of several with equal claims the one that came
    /// last goes first; so a newcomer that has no more claim than anybody else has to go itself.
    pub fn victim(&self, lines: &[Line], jobs: &Jobs, newcomer: &Metadata) -> Option<Slot> {
        let of_line = |(index, line): (usize, &Line)| match self.ages.get(index) {
            Some(ages) => ages.first_key_value().map(|(_, slot)| *slot),
            None => Some(line.last).filter(|slot| *slot != NO_SLOT),
        };
        let waiting = lines.iter().enumerate().filter_map(of_line);
        let lack = |slot: &Slot| (self.lack(&jobs.at(*slot).of), jobs.at(*slot).ticket);
        waiting.max_by_key(lack).filter(|slot| self.lack(&jobs.at(*slot).of) > self.lack(newcomer))
    }

    fn lack(&self, of: &Metadata) -> Lack {
        let mut lack = Lack::default();
        for (place, word) in lack.iter_mut().zip(&self.order) {
            *place = match word {
                ShedBy::Priority => of.priority as u64,
                ShedBy::Attempt => of.attempt.clamp(1, MOST_ATTEMPTS).into(),
                ShedBy::Age => u64::MAX - of.enqueued.0,
            };
        }
        lack
    }
}
