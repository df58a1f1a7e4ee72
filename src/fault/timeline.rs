//! The timeline: which faults act when, and the phases that they cut a run into.

use super::rule::Rule;
use super::{Active, Fault, Origin, Request};
use crate::config::Place;
use crate::time::{Span, Timestamp};
use std::sync::Arc;

/// A fault at a time for a duration.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its name; unique in the plan.
    pub name: String,
    /// When it begins.
    pub from: Timestamp,
    /// When it ends; at the end of the run where the plan says nothing.
    pub to: Timestamp,
    /// What it does to traffic; none where it is the target itself that is changed: then it touches what comes while it acts, and does
    /// nothing to it.
    pub fault: Option<Fault>,
    /// The proxy at which it acts: 0 is the one between clients and target, `n` the n-th of the plan's `proxies`.
    pub on: u16,
    /// The numbers of the fleets it strikes; none for all of them.
    pub fleets: Option<Vec<u16>>,
    /// The destinations whose requests it strikes, as [`destination_key`](super::destination_key) says; none for all of them.
    pub destinations: Option<Vec<u64>>,
    /// The regions it strikes, of all fleets that it strikes, in order; none for all of them.
    pub regions: Option<Vec<Origin>>,
    /// Where it stands in the plan.
    pub place: Place,
}

impl Step {
    /// Its kind, as a plan names it.
    pub fn kind(&self) -> &'static str {
        self.fault.as_ref().map_or("service", Fault::key)
    }

    /// Whether it strikes traffic from there.
    pub fn strikes(&self, origin: Origin) -> bool {
        match (&self.regions, &self.fleets) {
            (Some(regions), _) => regions.binary_search(&origin).is_ok(),
            (None, Some(fleets)) => fleets.contains(&origin.fleet),
            (None, None) => true,
        }
    }

    /// Whether it acts at a moment: from its start, included, to its end, excluded.
    fn acts(&self, now: Timestamp) -> bool {
        self.from <= now && now < self.to
    }

    /// Whether it is meant for a request; for a connection without one, where it is limited to no destination.
    pub(super) fn is_meant_for(&self, request: Option<&Request>) -> bool {
        self.destinations.as_ref().is_none_or(|all| request.is_some_and(|request| all.contains(&request.destination)))
    }
}

/// A stretch of the run between two changes of the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// `steady`, the names of the faults that act joined by `+`, or `after NAME`.
    pub name: String,
    /// When it begins.
    pub from: Timestamp,
    /// When it ends.
    pub to: Timestamp,
    /// The names of the faults that act, in the order of the plan.
    pub faults: Vec<String>,
}

/// A step that ended or began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// It acts no longer.
    Ended(usize),
    /// It acts now.
    Began(usize),
}

/// The faults of a run, in the order of the plan.
#[derive(Clone, Debug)]
pub struct Timeline {
    seed: u64,
    rules: Arc<[Arc<Rule>]>,
}

impl Timeline {
    /// The timeline of a plan's steps; `seed` is the run's.
    pub fn new(steps: Vec<Step>, seed: u64) -> Self {
        let rules = steps.into_iter().enumerate().map(|(number, step)| Arc::new(Rule::new(number, step)));
        Self { seed, rules: rules.collect() }
    }

    /// The steps, in the order of the plan.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = &Step> {
        self.rules.iter().map(|rule| &rule.step)
    }

    /// A step by its index in the plan.
    pub fn step(&self, index: usize) -> &Step {
        &self.rules[index].step
    }

    /// How many requests and connections a step has touched on real sockets; zero for a step that there is not.
    pub fn touched(&self, step: usize) -> u64 {
        self.rules.get(step).map_or(0, |rule| rule.touched())
    }

    /// The moments at which what acts changes, in order, each once.
    pub fn changes(&self) -> Vec<Timestamp> {
        let lasting = self.steps().filter(|step| step.from < step.to);
        let mut moments: Vec<Timestamp> = lasting.flat_map(|step| [step.from, step.to]).collect();
        moments.sort_unstable();
        moments.dedup();
        moments
    }

    /// What acts at a moment. What ends at that moment no longer does, what begins at it does.
    pub fn active(&self, now: Timestamp) -> Active {
        self.snapshot(|step| step.acts(now))
    }

    /// Nothing acts.
    pub fn nothing(&self) -> Active {
        self.snapshot(|_| false)
    }

    /// What changed from one snapshot to another: ends first, each in the order of the plan.
    pub fn transitions(before: &Active, after: &Active) -> Vec<Transition> {
        let ended = before.steps().into_iter().filter(|&step| !after.contains(step)).map(Transition::Ended);
        let began = after.steps().into_iter().filter(|&step| !before.contains(step)).map(Transition::Began);
        ended.chain(began).collect()
    }

    /// The phases of a run of this length: gapless from its start to its end, cut where what acts changes.
    pub fn phases(&self, length: Span) -> Vec<Phase> {
        let end = Timestamp::ZERO + length;
        let mut cuts = self.changes();
        cuts.retain(|&cut| Timestamp::ZERO < cut && cut < end);
        cuts.insert(0, Timestamp::ZERO);
        cuts.push(end);
        cuts.windows(2).filter(|cut| cut[0] < cut[1]).map(|cut| self.phase(cut[0], cut[1])).collect()
    }

    fn phase(&self, from: Timestamp, to: Timestamp) -> Phase {
        let acting = self.active(from);
        let faults: Vec<String> = acting.rules().iter().map(|rule| rule.step.name.clone()).collect();
        let name = if faults.is_empty() { self.quiet_name(from) } else { faults.join("+") };
        Phase { name, from, to, faults }
    }

    /// The name of a stretch without faults: after those that ended last, if any has.
    fn quiet_name(&self, from: Timestamp) -> String {
        let past = self.steps().filter(|step| step.from < step.to && step.to <= from);
        match past.map(|step| step.to).max() {
            None => "steady".to_string(),
            Some(last) => format!("after {}", self.joined(|step| step.from < step.to && step.to == last)),
        }
    }

    fn joined(&self, belongs: impl Fn(&Step) -> bool) -> String {
        let steps = self.steps().filter(|step| belongs(step));
        steps.map(|step| step.name.as_str()).collect::<Vec<_>>().join("+")
    }

    fn snapshot(&self, acts: impl Fn(&Step) -> bool) -> Active {
        Active::new(self.seed, self.rules.iter().filter(|rule| acts(&rule.step)).cloned().collect())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::*;
    use super::*;
    use crate::time::{Rate, Share};

    pub(crate) fn at(seconds: u64) -> Timestamp {
        Timestamp::ZERO + Span::from_secs(seconds)
    }

    pub(crate) fn step(name: &str, from: u64, to: u64, fault: Fault) -> Step {
        Step {
            name: name.into(),
            from: at(from),
            to: at(to),
            fault: Some(fault),
            on: 0,
            fleets: None,
            destinations: None,
            regions: None,
            place: Place::default(),
        }
    }

    /// A fault by a word and a number.
    pub(crate) fn fault(text: &str) -> Fault {
        let (word, number) = text.split_once(' ').unwrap_or((text, "0"));
        let number: u64 = number.parse().unwrap();
        let (none, all) = (Share::default(), Share::ALL);
        match word {
            "refuse" => Fault::Refuse(Refuse {}),
            "close" => Fault::Close(Close {}),
            "hang" => Fault::Hang(Hang { release: false }),
            "hang-release" => Fault::Hang(Hang { release: true }),
            "blackhole" => Fault::Blackhole(Blackhole { share: all, release: false }),
            "blackhole-release" => Fault::Blackhole(Blackhole { share: all, release: true }),
            "blackhole-half" => Fault::Blackhole(Blackhole { share: Share::new(0.5).unwrap(), release: false }),
            "reset" => Fault::Reset(Reset { share: all }),
            "reset-half" => Fault::Reset(Reset { share: Share::new(0.5).unwrap() }),
            "latency" => Fault::Latency(Latency {
                add: Span::from_millis(number),
                jitter: Span::ZERO,
                distribution: Distribution::Uniform,
                share: all,
            }),
            "status" => {
                Fault::Status(Status { code: number as u16, retry_after: None, hint: None, body: String::new(), share: all })
            }
            "status-none" => Fault::Status(Status { code: 503, retry_after: None, hint: None, body: String::new(), share: none }),
            "limit" => Fault::RateLimit(RateLimit {
                rate: Rate::per_second(number as f64).unwrap(),
                burst: 1,
                retry_after: Some(Span::from_millis(1_500)),
                hint: None,
            }),
            "expired" | "not_yet_valid" | "wrong_name" | "untrusted" => {
                let kind = CertificateKind::ALL.iter().find(|kind| kind.word() == word);
                Fault::Certificate(Certificate { kind: *kind.expect("one of its words"), share: all })
            }
            "handshake-hang" => Fault::HandshakeHang(HandshakeHang { share: all, release: false }),
            "handshake-hang-release" => Fault::HandshakeHang(HandshakeHang { share: all, release: true }),
            _ => panic!("no fault `{text}`"),
        }
    }

    fn timeline(steps: &[(&str, u64, u64)]) -> Timeline {
        Timeline::new(steps.iter().map(|(name, from, to)| step(name, *from, *to, fault("hang"))).collect(), 1)
    }

    fn names(timeline: &Timeline, length: u64) -> Vec<String> {
        let phases = timeline.phases(Span::from_secs(length));
        assert_eq!(phases.first().map(|p| p.from), Some(Timestamp::ZERO));
        assert_eq!(phases.last().map(|p| p.to), Some(at(length)));
        assert!(phases.windows(2).all(|p| p[0].to == p[1].from), "gapless");
        phases.iter().map(|p| format!("{} {}", p.name, Span(p.to.0))).collect()
    }

    #[test]
    fn phases_are_named_after_what_acts_or_what_ended_last() {
        assert_eq!(names(&timeline(&[]), 10), ["steady 10s"]);
        assert_eq!(names(&timeline(&[("a", 2, 4)]), 10), ["steady 2s", "a 4s", "after a 10s"]);
        assert_eq!(names(&timeline(&[("a", 0, 4)]), 10), ["a 4s", "after a 10s"]);
        assert_eq!(names(&timeline(&[("a", 2, 10)]), 10), ["steady 2s", "a 10s"]);
        assert_eq!(names(&timeline(&[("a", 2, 6), ("b", 4, 8)]), 10), ["steady 2s", "a 4s", "a+b 6s", "b 8s", "after b 10s"]);
        assert_eq!(names(&timeline(&[("b", 6, 8), ("a", 2, 4)]), 10), ["steady 2s", "a 4s", "after a 6s", "b 8s", "after b 10s"]);
        assert_eq!(names(&timeline(&[("a", 2, 4), ("b", 2, 4)]), 10), ["steady 2s", "a+b 4s", "after a+b 10s"]);
    }

    #[test]
    fn what_reaches_beyond_the_run_is_cut_and_what_takes_no_time_never_acts() {
        assert_eq!(names(&timeline(&[("a", 2, 99), ("b", 50, 60)]), 10), ["steady 2s", "a 10s"]);
        assert_eq!(names(&timeline(&[("a", 5, 5)]), 10), ["steady 10s"]);
        assert!(timeline(&[("a", 5, 5)]).changes().is_empty());
        assert!(timeline(&[]).phases(Span::ZERO).is_empty());
    }

    #[test]
    fn at_one_instant_ends_come_before_starts() {
        let timeline = timeline(&[("b", 4, 6), ("a", 2, 4)]);
        assert_eq!(timeline.changes(), [at(2), at(4), at(6)]);
        assert_eq!(timeline.active(at(3)).steps(), [1]);
        assert_eq!(timeline.active(at(4)).steps(), [0]);
        assert!(timeline.active(at(6)).is_empty());
        let changed = Timeline::transitions(&timeline.active(at(3)), &timeline.active(at(4)));
        assert_eq!(changed, [Transition::Ended(1), Transition::Began(0)]);
        assert!(timeline.nothing().is_empty());
    }
}
