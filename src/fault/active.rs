//! Which faults act at one moment: a snapshot that decides the fate of requests.

use super::rule::Rule;
use super::{Effect, Fate, Handshake, Judgement, Matchers, Origin, Pending, Request, Strike};
use crate::time::{Span, Timestamp};
use std::sync::Arc;

/// The rules that act at one moment. Immutable and cheap to clone: to change what acts, put another in its place. A rule is
/// told from others by its number, so two snapshots can be compared even where one was put together by hand.
#[derive(Clone, Debug)]
pub struct Active {
    seed: u64,
    /// In the order of the plan.
    rules: Arc<[Arc<Rule>]>,
    matchers: Matchers,
}

impl Active {
    /// These rules, in this order; `seed` is the run's.
    pub fn new(seed: u64, rules: Vec<Arc<Rule>>) -> Self {
        Self { seed, rules: rules.into(), matchers: Matchers::default() }
    }

    /// The same, of a plan with these matchers, whether or not a rule that acts here has one.
    #[must_use]
    pub fn with_matchers(self, matchers: &Matchers) -> Self {
        Self { matchers: matchers.clone(), ..self }
    }

    /// What a request's head is to be held against, for any rule that acts while it is in flight.
    pub fn matchers(&self) -> &Matchers {
        &self.matchers
    }

    /// The rules that act, in the order of the plan.
    pub fn rules(&self) -> &[Arc<Rule>] {
        &self.rules
    }

    /// The numbers of the steps that act, in the order of the plan.
    pub fn steps(&self) -> Vec<usize> {
        self.rules.iter().map(|rule| rule.number).collect()
    }

    /// Those of them that act at one of a plan's proxies.
    pub fn at_proxy(&self, proxy: u16) -> Self {
        let there = self.rules.iter().filter(|rule| rule.step.on == proxy);
        Self { seed: self.seed, rules: there.cloned().collect(), matchers: self.matchers.clone() }
    }

    /// The seed that dice are mixed with.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether nothing acts.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether a step acts.
    pub fn contains(&self, step: usize) -> bool {
        self.rules.iter().any(|rule| rule.number == step)
    }

    /// The rule of a step, if it acts.
    pub fn rule(&self, step: usize) -> Option<&Arc<Rule>> {
        self.rules.iter().find(|rule| rule.number == step)
    }

    /// Counts something that a step touched; nothing where it does not act here.
    pub fn touch(&self, step: usize) {
        self.rules.iter().filter(|rule| rule.number == step).for_each(|rule| rule.touch());
    }

    /// The steps that refuse connects from there.
    pub fn refusing(&self, origin: impl Into<Origin>) -> impl Iterator<Item = usize> {
        let refuses = |rule: &&Rule| matches!(rule.step.fault, Some(super::Fault::Refuse(_)));
        self.striking(origin.into()).filter(refuses).map(|rule| rule.number)
    }

    /// The steps that close connections from there as soon as they are accepted.
    pub fn closing(&self, origin: impl Into<Origin>) -> impl Iterator<Item = usize> {
        let closes = |rule: &&Rule| matches!(rule.step.fault, Some(super::Fault::Close(_)));
        self.striking(origin.into()).filter(closes).map(|rule| rule.number)
    }

    /// Whether any of them may act on the bytes of connections.
    pub fn of_bytes(&self) -> bool {
        self.rules.iter().any(|rule| rule.of_bytes())
    }

    /// The fate of a request that comes at `now`.
    pub fn judge(&self, request: &Request, now: Timestamp) -> Judgement {
        self.judge_again(request, now, &[], Course::default())
    }

    /// The fate of a request that was held, see [`Hold`](super::Hold): the steps that it has not met have their say.
    pub(super) fn judge_again(&self, request: &Request, now: Timestamp, met: &[usize], mut course: Course) -> Judgement {
        let meets = |rule: &&Rule| !met.contains(&rule.number) && rule.is_meant_for(Some(request));
        for rule in self.striking(request.origin).filter(meets) {
            // Of what may come to an answer the first is the one that does.
            if course.harm.is_some() && rule.is_of_answers() {
                continue;
            }
            if let Some(fate) = course.meet(rule.number, rule.effect(request, self.seed, now)) {
                return course.end(fate);
            }
        }
        course.through()
    }

    /// What the steps that act here, and did not in `before`, do to a live connection as they begin, at `now`; with the step
    /// that does it. `in_flight` is the request on the connection, if there is one. Steps that count requests begin with those to come.
    pub fn onset(
        &self,
        before: &Active,
        origin: impl Into<Origin>,
        in_flight: Option<&Request>,
        now: Timestamp,
    ) -> Option<(usize, Strike)> {
        let begins = |rule: &&Rule| !before.contains(rule.number) && !rule.counts() && rule.is_meant_for(in_flight);
        self.striking(origin.into()).filter(begins).find_map(|rule| {
            let dice = in_flight.map(|request| rule.dice(request, self.seed, now));
            rule.step.fault.as_ref()?.onset(dice).map(|strike| (rule.number, strike))
        })
    }

    /// What becomes of a TLS handshake that begins now, with the step that has the say; none where it goes on in good order. The
    /// connection is given as its first request would be, by [`Request::foreign`]. Steps in `met` have had their say.
    pub fn handshake(&self, connection: &Request, met: &[usize]) -> Option<(usize, Handshake)> {
        let meets = |rule: &&Rule| rule.is_meant_for(None) && !rule.step.which.counts() && !met.contains(&rule.number);
        self.striking(connection.origin).filter(meets).find_map(|rule| {
            let dice = connection.dice(self.seed, rule.number);
            rule.step.fault.as_ref()?.handshake(dice).map(|handshake| (rule.number, handshake))
        })
    }

    fn striking(&self, origin: Origin) -> impl Iterator<Item = &Rule> {
        self.rules.iter().map(|rule| &**rule).filter(move |rule| rule.step.strikes(origin))
    }
}

/// A request on its way through the faults.
#[derive(Default)]
pub(super) struct Course {
    /// What delays it so far.
    delay: Span,
    touched: Vec<usize>,
    entered: Vec<usize>,
    /// What is to come to its answer.
    harm: Option<Pending>,
    /// How many had touched it before that.
    harmed_at: usize,
}

impl Course {
    /// Of a request that has come so far.
    pub(super) fn going_on(delay: Span, harm: Option<Pending>) -> Self {
        Self { delay, harm, ..Self::default() }
    }

    /// What a step does to it: its fate, where that ends its way.
    fn meet(&mut self, step: usize, effect: Effect) -> Option<Fate> {
        let delay = self.delay;
        let fate = match effect {
            Effect::Pass => return None,
            Effect::Enter => {
                self.entered.push(step);
                return None;
            }
            Effect::Harm(harm) => {
                (self.harm, self.harmed_at) = (Some(Pending { step, harm: Box::new(harm) }), self.touched.len());
                return None;
            }
            Effect::Witness => None,
            Effect::Delay(more) => {
                self.delay += more;
                None
            }
            Effect::Wait { at_most } => Some(Fate::Wait { step, at_most, delay }),
            Effect::Answer(answer) => Some(Fate::Answer { delay, answer }),
            Effect::Malformed(kind) => Some(Fate::Malformed { delay, kind }),
            Effect::Swallow { release } => Some(Fate::Swallow { step, release }),
            Effect::Close => Some(Fate::Close { delay }),
            Effect::Reset => Some(Fate::Reset { delay }),
        };
        self.touched.push(step);
        fate
    }

    /// It goes no further, for now or for good. What would have come to its answer does so only if it goes on.
    fn end(self, fate: Fate) -> Judgement {
        let goes_on = matches!(fate, Fate::Wait { .. } | Fate::Swallow { release: true, .. });
        let pending = self.harm.filter(|_| goes_on);
        Judgement { fate, touched: self.touched, entered: self.entered, pending }
    }

    /// It has met them all, and goes to the upstream.
    fn through(mut self) -> Judgement {
        let harm = self.harm.take().map(|Pending { step, harm }| {
            self.touched.insert(self.harmed_at, step);
            harm
        });
        let fate = Fate::Forward { delay: self.delay, harm };
        self.end(fate)
    }
}

#[cfg(test)]
mod tests {
    use super::super::timeline::tests::{at, fault, step};
    use super::super::{Answer, CutEnd, Harm, Keep, Step, Timeline};
    use super::*;

    /// All steps at once, at second 1.
    fn active(faults: &[&str]) -> Active {
        let steps = faults.iter().enumerate().map(|(n, text)| step(&n.to_string(), 0, 10, fault(text))).collect();
        Timeline::new(steps, 7).active(at(1))
    }

    fn judge(faults: &[&str]) -> (Fate, Vec<usize>) {
        let judgement = active(faults).judge(&Request::ours(0, 42, 1), at(1));
        (judgement.fate, judgement.touched)
    }

    fn ms(n: u64) -> Span {
        Span::from_millis(n)
    }

    #[test]
    fn delays_add_and_the_first_terminal_fate_wins() {
        let answer = |status, delay| Fate::Answer { delay, answer: Answer::bare(status, None) };
        assert_eq!(judge(&[]), (Fate::forward(Span::ZERO), vec![]));
        assert_eq!(judge(&["latency 10", "latency 20"]), (Fate::forward(ms(30)), vec![0, 1]));
        assert_eq!(judge(&["latency 10", "status 503", "latency 20"]), (answer(503, ms(10)), vec![0, 1]));
        assert_eq!(judge(&["status 503", "status 500"]), (answer(503, Span::ZERO), vec![0]));
        assert_eq!(judge(&["hang", "reset"]), (Fate::Swallow { step: 0, release: false }, vec![0]));
        assert_eq!(judge(&["reset", "hang"]), (Fate::Reset { delay: Span::ZERO }, vec![0]));
        assert_eq!(judge(&["status-none", "blackhole"]), (Fate::Swallow { step: 1, release: false }, vec![1]));
    }

    #[test]
    fn a_request_that_is_answered_first_spends_no_token() {
        let both = active(&["status 503", "limit 1"]);
        for n in 0..10 {
            let fate = both.judge(&Request::ours(0, n, 1), at(1)).fate;
            assert!(matches!(fate, Fate::Answer { answer: Answer { status: 503, .. }, .. }));
        }
        let limit = active(&["limit 1"]);
        let touched: Vec<usize> = (0..3).map(|n| limit.judge(&Request::ours(0, n, 1), at(1)).touched.len()).collect();
        assert_eq!(touched, [0, 1, 1], "the one that passes is not touched");
    }

    #[test]
    fn a_step_that_changes_the_target_touches_what_comes_and_leaves_it_alone() {
        let changed = |n: &str| Step { fault: None, ..step(n, 0, 10, fault("hang")) };
        let steps = vec![changed("a"), step("late", 0, 10, fault("latency 5")), step("out", 0, 10, fault("reset")), changed("b")];
        let active = Timeline::new(steps, 7).active(at(1));
        let judged = active.judge(&Request::ours(0, 1, 1), at(1));
        assert_eq!(
            judged,
            Judgement { fate: Fate::Reset { delay: ms(5) }, touched: vec![0, 1, 2], entered: vec![], pending: None }
        );
        let alone = Timeline::new(vec![changed("a")], 7).active(at(1));
        assert_eq!(alone.judge(&Request::ours(0, 1, 1), at(1)).touched, [0]);
        assert_eq!(alone.onset(&Timeline::new(vec![], 7).active(at(1)), 0, None, at(1)), None);
    }

    #[test]
    fn a_fault_for_some_fleets_leaves_the_others_alone() {
        let scoped = Step { fleets: Some(vec![1, 3]), ..step("scoped", 0, 10, fault("refuse")) };
        let active = Timeline::new(vec![scoped], 7).active(at(1));
        let struck: Vec<bool> =
            (0..4).map(|fleet| !active.judge(&Request::ours(fleet, 1, 1), at(1)).touched.is_empty()).collect();
        assert_eq!(struck, [false, true, false, true]);
        assert_eq!(active.refusing(1).collect::<Vec<_>>(), [0]);
        assert_eq!(active.refusing(2).count(), 0);
        assert_eq!(active.onset(&Timeline::new(vec![], 7).active(at(1)), 2, None, at(1)), None);
    }

    #[test]
    fn a_fault_for_some_destinations_strikes_their_requests() {
        use super::super::destination_key;
        let scoped = |text| Step { destinations: Some(vec![destination_key(b"big")]), ..step(text, 0, 10, fault(text)) };
        let active = Timeline::new(vec![scoped("status 429"), scoped("hang")], 7).active(at(1));
        let none = Timeline::new(vec![], 7).active(at(1));
        for (name, struck) in [(&b"big"[..], true), (b"healthy", false)] {
            let request = Request::ours(0, 1, 1).bound_for(destination_key(name));
            assert_eq!(active.judge(&request, at(1)).touched == [0], struck);
            assert_eq!(active.onset(&none, 0, Some(&request), at(1)).is_some(), struck);
        }
        assert!(active.judge(&Request::ours(0, 1, 1), at(1)).touched.is_empty(), "it goes nowhere in particular");
        assert_eq!(active.onset(&none, 0, None, at(1)), None, "an idle connection goes nowhere");
    }

    #[test]
    fn a_fault_for_some_regions_leaves_the_others_alone() {
        let regions = Some(vec![Origin { fleet: 1, region: 0 }, Origin { fleet: 1, region: 2 }]);
        let scoped = Step { fleets: Some(vec![1]), regions, ..step("scoped", 0, 10, fault("refuse")) };
        let active = Timeline::new(vec![scoped], 7).active(at(1));
        for (fleet, region, struck) in [(1, 0, true), (1, 1, false), (1, 2, true), (0, 0, false)] {
            let origin = Origin { fleet, region };
            assert_eq!(!active.judge(&Request::ours(origin, 1, 1), at(1)).touched.is_empty(), struck, "{origin:?}");
            assert_eq!(active.refusing(origin).count() == 1, struck);
            assert_eq!(active.onset(&Timeline::new(vec![], 7).active(at(1)), origin, None, at(1)).is_some(), struck);
        }
    }

    #[test]
    fn what_begins_strikes_live_connections_once_and_in_order() {
        let request = Request::ours(0, 1, 1);
        let none = active(&[]);
        let onset = |faults: &[&str], in_flight: bool| active(faults).onset(&none, 0, in_flight.then_some(&request), at(1));
        assert_eq!(onset(&["latency 5", "status 503", "limit 1"], true), None);
        assert_eq!(onset(&["hang"], false), None);
        assert_eq!(onset(&["hang-release"], true), Some((0, Strike::Swallow { release: true })));
        assert_eq!(onset(&["hang", "reset"], true), Some((0, Strike::Swallow { release: false })));
        assert_eq!(onset(&["hang", "reset"], false), Some((1, Strike::Reset)));
        assert_eq!(onset(&["latency 5", "refuse"], false), Some((1, Strike::Reset)));
        let acting = active(&["refuse"]);
        assert_eq!(acting.onset(&acting, 0, Some(&request), at(1)), None, "what acted before has had its say");
    }

    #[test]
    fn what_comes_to_an_answer_ends_nothing_and_the_first_of_it_counts() {
        let forward = |millis, harm| Fate::Forward { delay: ms(millis), harm: Some(Box::new(harm)) };
        let cut = |bytes| Harm::Cut { keep: Keep::Bytes(bytes), end: CutEnd::Fin };
        assert_eq!(judge(&["truncate 3", "latency 10"]), (forward(10, cut(3)), vec![0, 1]));
        assert_eq!(judge(&["latency 10", "truncate 3"]), (forward(10, cut(3)), vec![0, 1]));
        assert_eq!(judge(&["reset-after", "truncate 3"]), (forward(0, Harm::Reset), vec![0]));
        let refused = Fate::Answer { delay: Span::ZERO, answer: Answer::bare(500, None) };
        assert_eq!(judge(&["status-after 503", "status 500"]), (refused, vec![1]), "no answer comes that it could replace");
        let replaced = Harm::Replace(Answer::bare(503, None));
        assert_eq!(judge(&["status-after 503", "lose"]), (forward(0, replaced), vec![0]));
    }

    #[test]
    fn a_place_is_taken_on_the_way_and_whoever_finds_none_waits_there() {
        let limited = active(&["latency 5", "at-once 100", "status 418"]);
        let judge = |ticket| limited.judge(&Request::ours(0, 1, 1).on(ticket), at(1));
        let first = judge(1);
        assert_eq!((first.touched, first.entered), (vec![0, 2], vec![1]));
        let wait = Fate::Wait { step: 1, at_most: ms(100), delay: ms(5) };
        assert_eq!((judge(2).fate, judge(3).touched), (wait, vec![0, 1]));
        let rule = limited.rule(1).unwrap();
        assert_eq!((rule.leave(1), rule.has_place(2)), (Some(2), true));
    }

    #[test]
    fn a_fault_that_counts_begins_with_those_to_come_and_one_that_ramps_with_nobody() {
        use super::super::{Per, Ramp, TimeShape, Which};
        let none = Timeline::new(vec![], 7).active(at(1));
        let request = Request::ours(0, 1, 1);
        let onset =
            |step: Step, second| Timeline::new(vec![step], 7).active(at(second)).onset(&none, 0, Some(&request), at(second));
        let counts = Which { first: Some(9), per: Some(Per::Run), ..Which::ALL };
        assert_eq!(onset(Step { which: counts, ..step("a", 1, 9, fault("hang")) }, 1), None);
        let ramp = Some(Ramp { r#in: Span::from_secs(4), out: Span::ZERO });
        let ramps = |text| Step { shape: TimeShape { ramp: ramp.clone(), ..TimeShape::FULL }, ..step("a", 1, 9, fault(text)) };
        assert_eq!((onset(ramps("hang"), 1), onset(ramps("hang"), 5).is_some()), (None, true));
        let active = Timeline::new(vec![ramps("latency 100")], 7).active(at(2));
        assert_eq!(active.judge(&request, at(2)).fate, Fate::forward(ms(25)));
    }

    #[test]
    fn a_handshake_meets_the_first_fault_that_has_a_say_and_requests_never_meet_those_of_handshakes() {
        use super::super::CertificateKind::{Expired, Untrusted};
        let connection = Request::foreign(0, 3, 0);
        let handshake = |faults: &[&str], met: &[usize]| active(faults).handshake(&connection, met);
        let show = |step, kind| Some((step, Handshake::Show(kind)));
        let hold = |step, release| Some((step, Handshake::Hold { release }));
        assert_eq!(handshake(&[], &[]), None);
        assert_eq!(handshake(&["latency 5", "status 503", "limit 1", "reset", "refuse", "blackhole-half"], &[]), None);
        assert_eq!(handshake(&["status 503", "expired", "handshake-hang"], &[]), show(1, Expired));
        assert_eq!(handshake(&["handshake-hang", "expired"], &[]), hold(0, false));
        assert_eq!(handshake(&["handshake-hang", "expired"], &[0]), show(1, Expired));
        assert_eq!(handshake(&["hang-release", "untrusted"], &[]), hold(0, true));
        assert_eq!(handshake(&["blackhole", "untrusted"], &[]), hold(0, false));
        assert_eq!(handshake(&["untrusted", "blackhole"], &[]), show(0, Untrusted));
        assert_eq!(judge(&["expired", "handshake-hang"]), (Fate::forward(Span::ZERO), vec![]));
        assert_eq!(active(&["expired", "handshake-hang"]).onset(&active(&[]), 0, Some(&connection), at(1)), None);
        let scoped = Step { fleets: Some(vec![1]), ..step("scoped", 0, 10, fault("expired")) };
        let scoped = Timeline::new(vec![scoped], 7).active(at(1));
        assert_eq!(scoped.handshake(&connection, &[]), None);
        assert_eq!(scoped.handshake(&Request::foreign(1, 3, 0), &[]), show(0, Expired));
    }
}
