//! Admission by what requests say of themselves: who is still let in to wait while the queue fills, and who is not let in at all.
//!
//! A queue of bound B lets a request with a share of s in while fewer than s x B wait: so what matters least is refused first, and what
//! matters most still finds room. A share of 100% leaves it to the queue itself; one of 0% lets nothing in. Which of those that wait has to
//! go when the queue is full is the queue's own order of shedding.

use super::key::name_hash;
use super::refusal::{Refusal, Refusing};
use super::request::Metadata;
use crate::config::Table;
use crate::priority::Priority;
use crate::record;
use crate::time::{Share, Span, Timestamp};

/// The status of a refusal whose plan names none.
const STATUS: u16 = 503;

record! {
    /// Up to which share of the queue's bound each priority is let in to wait; as far as the priority before it where nothing is said.
    pub struct Shares {
        /// 100% where nothing is said.
        critical: Option<Share>,
        /// As far as critical where nothing is said.
        normal: Option<Share>,
        /// As far as normal where nothing is said.
        background: Option<Share>,
        /// As far as background where nothing is said.
        best_effort: Option<Share>,
    } => Shares::check
}

impl Shares {
    /// The share that the plan gives a priority.
    const fn said(&self, priority: Priority) -> Option<Share> {
        match priority {
            Priority::Critical => self.critical,
            Priority::Normal => self.normal,
            Priority::Background => self.background,
            Priority::BestEffort => self.best_effort,
        }
    }

    /// The share of a priority: what is said of it, or of the nearest one above of which something is.
    pub fn of(&self, priority: Priority) -> Share {
        let at_or_above = Priority::ALL.iter().rev().filter(|other| **other <= priority);
        at_or_above.filter_map(|other| self.said(*other)).next().unwrap_or(Share::ALL)
    }

    fn check(&self) -> Result<(), String> {
        for pair in Priority::ALL.windows(2) {
            let [higher, lower] = [pair[0], pair[1]];
            let (above, below) = (self.of(higher), self.of(lower));
            if below.get() > above.get() {
                let (higher, lower) = (higher.word(), lower.word());
                return Err(format!(
                    "`{lower}` is let in further ({below}) than `{higher}` ({above}), which goes first: write {above} or less"
                ));
            }
        }
        Ok(())
    }
}

record! {
    /// Who is let in to wait.
    pub struct AdmissionConfig {
        /// Up to which share of the queue's bound each priority is let in.
        shares: Option<Shares>,
        /// The last attempt of an operation that is let in.
        max_attempt: Option<u32>,
        /// How long ago an operation may have been enqueued; older ones are stale.
        max_age: Option<Span>,
        /// The share of the queue's bound that a fleet may fill.
        fleets: Table<Share> = Table::default();
        with
        /// What a refusal says; its status is 503 where nothing is said.
        refusing: Refusing,
    } => |a: &AdmissionConfig| {
        if a.max_attempt == Some(0) {
            return Err("`max_attempt` must be 1 or more: attempt 1 is an operation's first".to_string());
        }
        if a.max_age.is_some_and(Span::is_zero) {
            return Err("`max_age` must be above zero: write such as `60s`".to_string());
        }
        Ok(())
    }
}

impl AdmissionConfig {
    /// Whether it shares out the queue's bound.
    pub fn shares_the_queue(&self) -> bool {
        self.shares.is_some() || !self.fleets.0.is_empty()
    }
}

/// The state of a service's admission: the shares, and how many of each named fleet wait, which whoever owns the queue reports by
/// [`Admission::joined`] and [`Admission::left`].
#[derive(Clone, Debug)]
pub struct Admission {
    /// By priority, in the order of [`Priority::ALL`].
    shares: [Share; Priority::ALL.len()],
    max_attempt: u32,
    max_age: Span,
    fleets: Vec<Fleet>,
    refusing: Refusing,
}

/// A fleet that has a share.
#[derive(Clone, Copy, Debug)]
struct Fleet {
    name: u64,
    share: Share,
    waiting: usize,
}

impl Admission {
    /// Admission while nothing waits.
    pub fn new(config: &AdmissionConfig) -> Self {
        let share = |priority: Priority| config.shares.as_ref().map_or(Share::ALL, |shares| shares.of(priority));
        let fleet = |name: &str, share| Fleet { name: name_hash(name.as_bytes()), share, waiting: 0 };
        Self {
            shares: [Priority::Critical, Priority::Normal, Priority::Background, Priority::BestEffort].map(share),
            max_attempt: config.max_attempt.unwrap_or(u32::MAX),
            max_age: config.max_age.unwrap_or(Span::MAX),
            fleets: config.fleets.0.iter().map(|entry| fleet(&entry.name, entry.value)).collect(),
            refusing: config.refusing.clone(),
        }
    }

    /// Whether a request is let in at this moment, and what it is told where not. `waiting` is how many wait in a queue of that `bound`, and
    /// `ahead` how long what is ahead of the request takes.
    ///
    /// # Errors
    /// The refusal.
    pub fn admit(&self, now: Timestamp, of: &Metadata, waiting: usize, bound: usize, ahead: Span) -> Result<(), Refusal> {
        let own = self.fleets.iter().find(|fleet| fleet.name == of.fleet);
        let passes = of.attempt <= self.max_attempt
            && now.since(of.enqueued) <= self.max_age
            && has_room(self.shares[of.priority as usize], waiting, bound)
            && own.is_none_or(|fleet| has_room(fleet.share, fleet.waiting, bound));
        if passes { Ok(()) } else { Err(self.refusing.refuse(STATUS, ahead)) }
    }

    /// A request has begun to wait.
    pub fn joined(&mut self, of: &Metadata) {
        if let Some(fleet) = self.fleet(of) {
            fleet.waiting += 1;
        }
    }

    /// A request waits no more: it is served, or has expired, was shed, given up or lost.
    pub fn left(&mut self, of: &Metadata) {
        if let Some(fleet) = self.fleet(of) {
            fleet.waiting = fleet.waiting.saturating_sub(1);
        }
    }

    fn fleet(&mut self, of: &Metadata) -> Option<&mut Fleet> {
        self.fleets.iter_mut().find(|fleet| fleet.name == of.fleet)
    }
}

/// Whether one more may wait within a share of a bound. Where nothing may wait at all, only a share of nothing refuses: the rest is up to
/// the servers.
fn has_room(share: Share, waiting: usize, bound: usize) -> bool {
    share == Share::ALL || (share != Share::ZERO && (bound == 0 || (waiting as f64) < share.get() * bound as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Entry, Place};
    use crate::policy::hint::{HintForm, Said};
    use crate::service::refusal::RetryAfter;

    fn share(per_cent: f64) -> Share {
        Share::new(per_cent / 100.0).unwrap()
    }

    fn shares(per_cent: [Option<f64>; 4]) -> Shares {
        let [critical, normal, background, best_effort] = per_cent.map(|per_cent| per_cent.map(share));
        Shares { critical, normal, background, best_effort }
    }

    fn config() -> AdmissionConfig {
        let fleets = Table::default();
        AdmissionConfig { shares: None, max_attempt: None, max_age: None, fleets, refusing: Refusing::plain() }
    }

    fn admits(admission: &Admission, of: Metadata, waiting: usize, bound: usize) -> bool {
        admission.admit(Timestamp::ZERO + Span::from_secs(100), &of, waiting, bound, Span::ZERO).is_ok()
    }

    #[test]
    fn a_priority_goes_as_far_as_is_said_or_as_the_one_before_it() {
        let table = [
            ([None; 4], [100.0; 4]),
            ([None, Some(80.0), None, Some(20.0)], [100.0, 80.0, 80.0, 20.0]),
            ([Some(90.0), None, Some(50.0), None], [90.0, 90.0, 50.0, 50.0]),
        ];
        for (said, want) in table {
            let shares = shares(said);
            assert_eq!(Priority::ALL.iter().map(|p| shares.of(*p)).collect::<Vec<_>>(), want.map(share), "{said:?}");
            assert_eq!(shares.check(), Ok(()));
        }
        for (said, blamed) in [
            ([None, Some(50.0), None, Some(60.0)], "`best_effort` is let in further (60%) than `background` (50%)"),
            ([Some(50.0), Some(60.0), None, None], "`normal` is let in further (60%) than `critical` (50%)"),
        ] {
            let message = shares(said).check().unwrap_err();
            assert!(message.starts_with(blamed), "{message}");
        }
    }

    #[test]
    fn as_the_queue_fills_what_matters_least_is_refused_first() {
        let said = shares([None, Some(80.0), Some(50.0), Some(20.0)]);
        let admission = Admission::new(&AdmissionConfig { shares: Some(said), ..config() });
        // How many wait, of ten; who is let in.
        let table = [(0, "cnbe"), (1, "cnbe"), (2, "cnb"), (4, "cnb"), (5, "cn"), (7, "cn"), (8, "c"), (10, "c")];
        for (waiting, want) in table {
            let is_in = |priority: &&Priority| {
                admits(&admission, Metadata { priority: **priority, ..Metadata::nothing(Timestamp::ZERO) }, waiting, 10)
            };
            let letters =
                [(Priority::Critical, 'c'), (Priority::Normal, 'n'), (Priority::Background, 'b'), (Priority::BestEffort, 'e')];
            let who: String = letters.iter().filter(|(priority, _)| is_in(&priority)).map(|(_, letter)| letter).collect();
            assert_eq!(who, want, "{waiting} wait");
        }
    }

    #[test]
    fn stale_ones_and_those_tried_often_are_refused_whatever_waits() {
        let admission = Admission::new(&AdmissionConfig { max_attempt: Some(3), max_age: Some(Span::from_secs(60)), ..config() });
        for (attempt, enqueued, want) in [(1, 100, true), (3, 40, true), (4, 100, false), (1, 39, false), (1, 101, true)] {
            let enqueued = Timestamp::ZERO + Span::from_secs(enqueued);
            let of = Metadata { attempt, enqueued, ..Metadata::nothing(Timestamp::ZERO) };
            assert_eq!(admits(&admission, of, 0, 10), want, "{of:?}");
        }
    }

    #[test]
    fn a_fleet_fills_no_more_than_its_share() {
        let entry = |name: &str, value| Entry { name: name.into(), place: Place::default(), value };
        let fleets = Table(vec![entry("legacy", share(20.0)), entry("gone", Share::ZERO)]);
        let mut admission = Admission::new(&AdmissionConfig { fleets, ..config() });
        let of = |name: &str| Metadata { fleet: name_hash(name.as_bytes()), ..Metadata::nothing(Timestamp::ZERO) };
        assert!(!admits(&admission, of("gone"), 0, 10) && !admits(&admission, of("gone"), 0, 0), "a share of nothing");
        for waiting in 0..3 {
            assert_eq!(admits(&admission, of("legacy"), waiting, 10), waiting < 2, "{waiting}");
            admission.joined(&of("legacy"));
            admission.joined(&of("other"));
        }
        assert!(admits(&admission, of("other"), 9, 10) && admits(&admission, of("legacy"), 0, 0), "no queue to share out");
        admission.left(&of("legacy"));
        assert!(!admits(&admission, of("legacy"), 3, 10));
        admission.left(&of("legacy"));
        assert!(admits(&admission, of("legacy"), 3, 10));
    }

    #[test]
    fn a_refusal_is_503_unless_the_plan_says_otherwise() {
        let refusing = Refusing { reject: Some(429), retry_after: Some(RetryAfter::Backlog), hint: Some(HintForm::HttpDate) };
        let ahead = Span::from_secs(5);
        for (refusing, status, hint) in
            [(Refusing::plain(), 503, None), (refusing, 429, Said::new(Some(ahead), Some(HintForm::HttpDate)))]
        {
            let admission = Admission::new(&AdmissionConfig { max_attempt: Some(1), refusing, ..config() });
            let of = Metadata { attempt: 2, ..Metadata::nothing(Timestamp::ZERO) };
            assert_eq!(admission.admit(Timestamp::ZERO, &of, 0, 9, ahead), Err(Refusal { status, hint }));
        }
    }
}
