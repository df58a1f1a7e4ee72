//! The timeline: which faults act when, and the phases that they cut a run into.

use super::rule::Rule;
use super::{Active, Fault, Matchers, Origin, Request, TimeShape, Which};
use crate::config::Place;
use crate::time::{Span, Timestamp};
use std::collections::BTreeMap;
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
    /// Which requests it strikes, of all those.
    pub which: Which,
    /// Its shape in time.
    pub shape: TimeShape,
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

    /// Whether a moment lies in it: from its start, included, to its end, excluded.
    pub fn spans(&self, now: Timestamp) -> bool {
        self.from <= now && now < self.to
    }

    /// Whether it acts at a moment, and does not rest.
    pub fn acts(&self, now: Timestamp) -> bool {
        self.spans(now) && !self.shape.rests(self.from, now)
    }

    /// How much of its harm it does at a moment, from 0 to 1.
    pub(super) fn level(&self, now: Timestamp) -> f64 {
        self.shape.level(self.from, self.to, now)
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
    matchers: Matchers,
    /// When steps that somebody has ended early did end, by their index.
    ended: BTreeMap<usize, Timestamp>,
}

impl Timeline {
    /// The timeline of a plan's steps; `seed` is the run's.
    pub fn new(steps: Vec<Step>, seed: u64) -> Self {
        let matchers = Matchers::of(steps.iter().filter_map(|step| step.which.r#match.as_ref()));
        let rules = steps.into_iter().enumerate().map(|(number, step)| Arc::new(Rule::new(number, step).known_to(&matchers)));
        Self { seed, rules: rules.collect(), matchers, ended: BTreeMap::new() }
    }

    /// The steps, in the order of the plan.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = &Step> {
        self.rules.iter().map(|rule| &rule.step)
    }

    /// A step by its index in the plan.
    pub fn step(&self, index: usize) -> &Step {
        &self.rules[index].step
    }

    /// Ends a step at a moment before its own end: from then on it acts no more, and the phases are cut there. What other steps do stays as
    /// it is. The first end counts.
    pub fn end(&mut self, index: usize, at: Timestamp) {
        self.ended.entry(index).or_insert(at);
    }

    /// When a step ends: as the plan has it, or when somebody has ended it.
    pub fn end_of(&self, index: usize) -> Timestamp {
        let to = self.rules[index].step.to;
        self.ended.get(&index).map_or(to, |at| to.min(*at))
    }

    /// Whether a moment lies in a step, as far as it lasts.
    fn spans(&self, rule: &Rule, now: Timestamp) -> bool {
        rule.step.spans(now) && now < self.end_of(rule.number)
    }

    /// How many requests and connections a step has touched on real sockets; zero for a step that there is not.
    pub fn touched(&self, step: usize) -> u64 {
        self.rules.get(step).map_or(0, |rule| rule.touched())
    }

    /// What a request's head is to be held against in this run.
    pub fn matchers(&self) -> &Matchers {
        &self.matchers
    }

    /// Requests that a fault left alone for want of room to count them.
    pub fn left_out(&self) -> u64 {
        self.rules.iter().map(|rule| rule.left_out()).sum()
    }

    /// The moments at which what acts changes, in order, each once: starts and ends, rests and what ends them.
    pub fn changes(&self) -> Vec<Timestamp> {
        let turns = self.steps().flat_map(|step| step.shape.turns(step.from, step.to, MOST_TURNS));
        in_order(self.borders().into_iter().chain(turns).collect())
    }

    /// The moments at which a fault starts or ends.
    fn borders(&self) -> Vec<Timestamp> {
        in_order(self.lasting().flat_map(|(step, end)| [step.from, end]).collect())
    }

    /// The steps that take time, with their ends.
    fn lasting(&self) -> impl Iterator<Item = (&Step, Timestamp)> {
        let ends = self.rules.iter().map(|rule| (&rule.step, self.end_of(rule.number)));
        ends.filter(|(step, end)| step.from < *end)
    }

    /// The numbers of the steps that a moment lies in, whether or not they rest then.
    pub fn spanning(&self, now: Timestamp) -> Vec<usize> {
        self.rules.iter().filter(|rule| self.spans(rule, now)).map(|rule| rule.number).collect()
    }

    /// What acts at a moment. What ends at that moment no longer does, what begins at it does.
    pub fn active(&self, now: Timestamp) -> Active {
        self.snapshot(|rule| self.spans(rule, now) && rule.step.acts(now))
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

    /// The phases of a run of this length: gapless from its start to its end, cut where a fault starts or ends.
    pub fn phases(&self, length: Span) -> Vec<Phase> {
        let end = Timestamp::ZERO + length;
        let mut cuts = self.borders();
        cuts.retain(|&cut| Timestamp::ZERO < cut && cut < end);
        cuts.insert(0, Timestamp::ZERO);
        cuts.push(end);
        cuts.windows(2).filter(|cut| cut[0] < cut[1]).map(|cut| self.phase(cut[0], cut[1])).collect()
    }

    fn phase(&self, from: Timestamp, to: Timestamp) -> Phase {
        let faults: Vec<String> =
            self.rules.iter().filter(|rule| self.spans(rule, from)).map(|rule| rule.step.name.clone()).collect();
        let name = if faults.is_empty() { self.quiet_name(from) } else { faults.join("+") };
        Phase { name, from, to, faults }
    }

    /// The name of a stretch without faults: after those that ended last, if any has.
    fn quiet_name(&self, from: Timestamp) -> String {
        let Some(last) = self.lasting().map(|(_, end)| end).filter(|end| *end <= from).max() else { return "steady".to_string() };
        let names: Vec<&str> = self.lasting().filter(|(_, end)| *end == last).map(|(step, _)| step.name.as_str()).collect();
        format!("after {}", names.join("+"))
    }

    fn snapshot(&self, acts: impl Fn(&Rule) -> bool) -> Active {
        let rules = self.rules.iter().filter(|rule| acts(rule)).cloned().collect();
        Active::new(self.seed, rules).with_matchers(&self.matchers)
    }
}

/// The most times that one fault begins to rest or to act again; beyond it stays as it is. A plan with so many is refused before.
pub const MOST_TURNS: usize = 10_000;

fn in_order(mut moments: Vec<Timestamp>) -> Vec<Timestamp> {
    moments.sort_unstable();
    moments.dedup();
    moments
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
            which: Which::ALL,
            shape: TimeShape::FULL,
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
            "blackhole" => Fault::Blackhole(Blackhole { share: all, release: false, when: When::Before }),
            "blackhole-release" => Fault::Blackhole(Blackhole { share: all, release: true, when: When::Before }),
            "blackhole-half" => {
                Fault::Blackhole(Blackhole { share: Share::new(0.5).unwrap(), release: false, when: When::Before })
            }
            "reset" => Fault::Reset(Reset { share: all, when: When::Before }),
            "reset-after" => Fault::Reset(Reset { share: all, when: When::After }),
            "lose" => Fault::Blackhole(Blackhole { share: all, release: false, when: When::After }),
            "reset-half" => Fault::Reset(Reset { share: Share::new(0.5).unwrap(), when: When::Before }),
            "latency" => Fault::Latency(Latency {
                add: Span::from_millis(number),
                jitter: Span::ZERO,
                distribution: Distribution::Uniform,
                share: all,
            }),
            "status" => Fault::Status(Status::bare(number as u16)),
            "status-none" => Fault::Status(Status { share: none, ..Status::bare(503) }),
            "status-after" => Fault::Status(Status { when: When::After, ..Status::bare(number as u16) }),
            "truncate" => Fault::Truncate(Truncate { keep: None, bytes: Some(number), end: CutEnd::Fin, share: all }),
            "truncate-rst" => Fault::Truncate(Truncate { keep: None, bytes: Some(number), end: CutEnd::Rst, share: all }),
            "truncate-half" => Fault::Truncate(Truncate { keep: None, bytes: None, end: CutEnd::Fin, share: all }),
            "slow" => Fault::SlowBody(SlowBody { bytes: 2, every: Span::from_millis(number), share: all }),
            "malformed" => Fault::Malformed(Malformed { kind: Nonsense::ALL[number as usize], when: When::Before, share: all }),
            "malformed-after" => Fault::Malformed(Malformed { kind: Nonsense::StatusLine, when: When::After, share: all }),
            "at-once" => Fault::LimitConcurrency(LimitConcurrency {
                limit: 1,
                queue: 1,
                wait: Span::from_millis(number),
                status: 503,
                retry_after: None,
                hint: None,
            }),
            "limit" => Fault::RateLimit(RateLimit {
                rate: Rate::per_second(number as f64).unwrap(),
                burst: 1,
                status: 429,
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

    #[test]
    fn what_is_ended_early_acts_no_more_and_the_phases_say_so() {
        let flap = TimeShape { flap: Some(Flap { on: Span::from_secs(1), off: Span::from_secs(1) }), ..TimeShape::FULL };
        let steps = vec![
            Step { shape: flap, ..step("a", 2, 8, fault("hang")) },
            step("b", 4, 6, fault("reset")),
            step("c", 9, 10, fault("hang")),
        ];
        let mut timeline = Timeline::new(steps, 1);
        assert_eq!(names(&timeline, 12), ["steady 2s", "a 4s", "a+b 6s", "a 8s", "after a 9s", "c 10s", "after c 12s"]);
        timeline.end(0, at(5));
        timeline.end(0, at(7));
        assert_eq!((timeline.end_of(0), timeline.end_of(1), timeline.step(0).to), (at(5), at(6), at(8)));
        assert_eq!(names(&timeline, 12), ["steady 2s", "a 4s", "a+b 5s", "b 6s", "after b 9s", "c 10s", "after c 12s"]);
        let acting: Vec<Vec<usize>> = [2, 4, 5, 6, 7, 9].map(|second| timeline.active(at(second)).steps()).into();
        assert_eq!(acting, [vec![0], vec![0, 1], vec![1], vec![], vec![], vec![2]]);
        assert_eq!((timeline.spanning(at(4)), timeline.spanning(at(5))), (vec![0, 1], vec![1]));
        timeline.end(1, at(99));
        assert_eq!(timeline.end_of(1), at(6), "an end that comes later changes nothing");
        timeline.end(2, at(9));
        assert_eq!(names(&timeline, 12).last().map(String::as_str), Some("after b 12s"), "what never acts is no phase");
    }

    #[test]
    fn a_rest_is_a_change_and_no_end() {
        let flap = TimeShape { flap: Some(Flap { on: Span::from_secs(2), off: Span::from_secs(3) }), ..TimeShape::FULL };
        let steps = vec![Step { shape: flap, ..step("flaps", 2, 9, fault("hang")) }, step("b", 3, 5, fault("reset"))];
        let timeline = Timeline::new(steps, 1);
        assert_eq!(timeline.changes(), [at(2), at(3), at(4), at(5), at(7), at(9)]);
        let acting: Vec<Vec<usize>> = (1..10).map(|second| timeline.active(at(second)).steps()).collect();
        let wanted: [&[usize]; 9] = [&[], &[0], &[0, 1], &[1], &[], &[], &[0], &[0], &[]];
        assert_eq!(acting, wanted);
        assert_eq!(names(&timeline, 10), ["steady 2s", "flaps 3s", "flaps+b 5s", "flaps 9s", "after flaps 10s"]);
    }

    #[test]
    fn all_snapshots_of_a_run_look_at_the_same_of_a_head() {
        let of = |path: &str| Match { method: None, path: Some(path.into()), header: Default::default() };
        let by = |name, from, path: &str| {
            let which = Which { r#match: Some(of(path)), ..Which::ALL };
            Step { which, ..step(name, from, from + 1, fault("status 503")) }
        };
        let timeline = Timeline::new(vec![by("a", 1, "/a"), by("b", 2, "/b"), by("c", 3, "/a")], 1);
        let looked_at = |snapshot: Active| snapshot.matchers().len();
        assert_eq!((looked_at(timeline.nothing()), looked_at(timeline.active(at(1)))), (2, 2));
        assert_eq!(looked_at(timeline.active(at(2)).at_proxy(3)), 2);
        let struck = |second, path| {
            let head = matching::tests::Plain("GET", path, &[]);
            let request = Request::ours(0, 1, 1).fitting(timeline.matchers().bits(&head));
            timeline.active(at(second)).judge(&request, at(second)).touched.len()
        };
        assert_eq!([struck(1, "/a"), struck(1, "/b"), struck(2, "/b"), struck(3, "/a")], [1, 0, 1, 1]);
    }
}
