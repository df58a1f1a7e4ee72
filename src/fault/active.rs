//! Which faults act at one moment: a snapshot that decides the fate of requests.

use super::rule::Rule;
use super::{Effect, Fate, Handshake, Judgement, Origin, Request, Strike};
use crate::time::{Span, Timestamp};
use std::sync::Arc;

/// The rules that act at one moment. Immutable and cheap to clone: to change what acts, put another in its place. A rule is
/// told from others by its number, so two snapshots can be compared even where one was put together by hand.
#[derive(Clone, Debug)]
pub struct Active {
    seed: u64,
    /// In the order of the plan.
    rules: Arc<[Arc<Rule>]>,
}

impl Active {
    /// These rules, in this order; `seed` is the run's.
    pub fn new(seed: u64, rules: Vec<Arc<Rule>>) -> Self {
        Self { seed, rules: rules.into() }
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
        Self { seed: self.seed, rules: there.cloned().collect() }
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
        self.judge_by(request, now, |_| true)
    }

    /// The fate of a request that `step` held until it ended. It has met the steps of `judged`, the snapshot of its
    /// first judgement, up to and including that one; the others have their say now.
    pub fn judge_released(&self, request: &Request, now: Timestamp, step: usize, judged: &Active) -> Judgement {
        self.judge_by(request, now, |other| other > step || !judged.contains(other))
    }

    /// What the steps that act here, and did not in `before`, do to a live connection as they begin; with the step
    /// that does it. `in_flight` is the request on the connection, if there is one.
    pub fn onset(&self, before: &Active, origin: impl Into<Origin>, in_flight: Option<&Request>) -> Option<(usize, Strike)> {
        let begins = |rule: &&Rule| !before.contains(rule.number) && rule.step.is_meant_for(in_flight);
        self.striking(origin.into()).filter(begins).find_map(|rule| {
            let dice = in_flight.map(|request| request.dice(self.seed, rule.number));
            rule.step.fault.as_ref()?.onset(dice).map(|strike| (rule.number, strike))
        })
    }

    /// What becomes of a TLS handshake that begins now, with the step that has the say; none where it goes on in good order. The
    /// connection is given as its first request would be, by [`Request::foreign`]. Steps in `met` have had their say.
    pub fn handshake(&self, connection: &Request, met: &[usize]) -> Option<(usize, Handshake)> {
        let meets = |rule: &&Rule| rule.step.is_meant_for(None) && !met.contains(&rule.number);
        self.striking(connection.origin).filter(meets).find_map(|rule| {
            let dice = connection.dice(self.seed, rule.number);
            rule.step.fault.as_ref()?.handshake(dice).map(|handshake| (rule.number, handshake))
        })
    }

    fn striking(&self, origin: Origin) -> impl Iterator<Item = &Rule> {
        self.rules.iter().map(|rule| &**rule).filter(move |rule| rule.step.strikes(origin))
    }

    fn judge_by(&self, request: &Request, now: Timestamp, has_a_say: impl Fn(usize) -> bool) -> Judgement {
        let mut delay = Span::ZERO;
        let mut touched = Vec::new();
        let meets = |rule: &&Rule| has_a_say(rule.number) && rule.step.is_meant_for(Some(request));
        for rule in self.striking(request.origin).filter(meets) {
            let step = rule.number;
            let effect = rule.effect(request.dice(self.seed, step), now);
            if effect != Effect::Pass {
                touched.push(step);
            }
            let fate = match effect {
                Effect::Pass | Effect::Witness => continue,
                Effect::Delay(more) => {
                    delay += more;
                    continue;
                }
                Effect::Answer { status, hint, body } => Fate::Answer { delay, status, hint, body },
                Effect::Swallow { release } => Fate::Swallow { step, release },
                Effect::Close => Fate::Close { delay },
                Effect::Reset => Fate::Reset { delay },
            };
            return Judgement { fate, touched };
        }
        Judgement { fate: Fate::Forward { delay }, touched }
    }
}

#[cfg(test)]
mod tests {
    use super::super::timeline::tests::{at, fault, step};
    use super::super::{Step, Timeline};
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
        let answer = |status, delay| Fate::Answer { delay, status, hint: None, body: String::new() };
        assert_eq!(judge(&[]), (Fate::Forward { delay: Span::ZERO }, vec![]));
        assert_eq!(judge(&["latency 10", "latency 20"]), (Fate::Forward { delay: ms(30) }, vec![0, 1]));
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
            assert!(matches!(fate, Fate::Answer { status: 503, .. }));
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
        assert_eq!(judged, Judgement { fate: Fate::Reset { delay: ms(5) }, touched: vec![0, 1, 2] });
        let alone = Timeline::new(vec![changed("a")], 7).active(at(1));
        assert_eq!(alone.judge(&Request::ours(0, 1, 1), at(1)).touched, [0]);
        assert_eq!(alone.onset(&Timeline::new(vec![], 7).active(at(1)), 0, None), None);
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
        assert_eq!(active.onset(&Timeline::new(vec![], 7).active(at(1)), 2, None), None);
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
            assert_eq!(active.onset(&none, 0, Some(&request)).is_some(), struck);
        }
        assert!(active.judge(&Request::ours(0, 1, 1), at(1)).touched.is_empty(), "it goes nowhere in particular");
        assert_eq!(active.onset(&none, 0, None), None, "an idle connection goes nowhere");
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
            assert_eq!(active.onset(&Timeline::new(vec![], 7).active(at(1)), origin, None).is_some(), struck);
        }
    }

    #[test]
    fn what_begins_strikes_live_connections_once_and_in_order() {
        let request = Request::ours(0, 1, 1);
        let none = active(&[]);
        let onset = |faults: &[&str], in_flight: bool| active(faults).onset(&none, 0, in_flight.then_some(&request));
        assert_eq!(onset(&["latency 5", "status 503", "limit 1"], true), None);
        assert_eq!(onset(&["hang"], false), None);
        assert_eq!(onset(&["hang-release"], true), Some((0, Strike::Swallow { release: true })));
        assert_eq!(onset(&["hang", "reset"], true), Some((0, Strike::Swallow { release: false })));
        assert_eq!(onset(&["hang", "reset"], false), Some((1, Strike::Reset)));
        assert_eq!(onset(&["latency 5", "refuse"], false), Some((1, Strike::Reset)));
        let acting = active(&["refuse"]);
        assert_eq!(acting.onset(&acting, 0, Some(&request)), None, "what acted before has had its say");
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
        assert_eq!(judge(&["expired", "handshake-hang"]), (Fate::Forward { delay: Span::ZERO }, vec![]));
        assert_eq!(active(&["expired", "handshake-hang"]).onset(&active(&[]), 0, Some(&connection)), None);
        let scoped = Step { fleets: Some(vec![1]), ..step("scoped", 0, 10, fault("expired")) };
        let scoped = Timeline::new(vec![scoped], 7).active(at(1));
        assert_eq!(scoped.handshake(&connection, &[]), None);
        assert_eq!(scoped.handshake(&Request::foreign(1, 3, 0), &[]), show(0, Expired));
    }

    #[test]
    fn what_is_released_meets_only_what_it_has_not_met() {
        let steps = vec![
            step("slow", 0, 10, fault("latency 5")),
            step("hang", 0, 5, fault("hang-release")),
            step("later", 4, 10, fault("latency 7")),
            step("behind", 0, 10, fault("latency 100")),
        ];
        let timeline = Timeline::new(steps, 7);
        let request = Request::ours(0, 1, 1);
        let judged = timeline.active(at(1));
        assert_eq!(judged.judge(&request, at(1)).fate, Fate::Swallow { step: 1, release: true });
        let released = timeline.active(at(5)).judge_released(&request, at(5), 1, &judged);
        assert_eq!(released, Judgement { fate: Fate::Forward { delay: ms(107) }, touched: vec![2, 3] });
    }
}
