//! Many runs of one plan to one verdict.
//!
//! The outcome is that of the worst run, unless the plan says what share of its seeds must recover: then that share stands in place of every run's class, and
//! what else a run has to say (its gates, its doubts, that it was stopped) is still that of the worst. A run without evidence has not recovered, and has not failed to:
//! where it would decide, the share is inconclusive. An aborted run, and one whose class is inconclusive, lends no figure to a comparison.

use super::config::Class;
use super::curve::Curve;
use super::findings::{Finding, Status, needed};
use super::many::SeedShare;
use super::recovery::{Recovery, whole_windows};
use super::verdict::{Outcome, Verdict};
use crate::metrics::{ActionRecord, Figure, RunRecord, WaveClass, figure, samples};

/// What is kept of one run among many.
#[derive(Clone, Debug, PartialEq)]
pub struct SeedRun {
    /// Its seed.
    pub seed: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Its recovery class; none where the plan asks for no recovery.
    pub class: Option<Class>,
    /// The class in words; empty without one.
    pub sentence: String,
    /// Why it did not pass, the gravest first.
    pub reasons: Vec<String>,
    /// What became of the plan's gates, in their order.
    pub gates: Vec<Status>,
    /// Whether something else than its class and its gates kept it from passing.
    pub doubtful: bool,
    /// Its figures, in the order of their table; see [`SeedRun::figure`].
    pub figures: Vec<Option<f64>>,
    /// Whether what arrived came in waves; none where there was too little to see.
    pub waves: Option<WaveClass>,
    /// What the timeline did beside harm.
    pub actions: Vec<ActionRecord>,
    /// Its recovery curve; none where it is not kept, as of most of very many runs.
    pub curve: Option<Curve>,
}

impl SeedRun {
    /// What is kept of this run.
    pub fn of(seed: u64, record: &RunRecord, verdict: &Verdict) -> Self {
        let recovery = verdict.recovery.as_ref();
        let sentence = recovery.map_or_else(String::new, |recovery| recovery.sentence.clone());
        let explained = |reason: &String| {
            (!sentence.is_empty() && reason.ends_with(&sentence))
                || verdict.findings.iter().any(|finding| reason.starts_with(&format!("{}: ", finding.gate)))
        };
        let class = recovery.map(|recovery| recovery.class);
        let silent = match class {
            _ if verdict.outcome == Outcome::Aborted => true,
            Some(class) => class == Class::Inconclusive,
            None => verdict.outcome == Outcome::Inconclusive,
        };
        let value = |&name: &Figure| if silent { None } else { of_run(name, record, recovery) };
        Self {
            seed,
            outcome: verdict.outcome,
            class,
            doubtful: !verdict.reasons.iter().all(explained),
            sentence,
            reasons: verdict.reasons.clone(),
            gates: verdict.findings.iter().map(|finding| finding.status).collect(),
            figures: Figure::ALL.iter().map(value).collect(),
            waves: record.waves.as_ref().and_then(|waves| waves.all.arrived).map(|wave| wave.class).filter(|_| !silent),
            actions: record.actions.clone(),
            curve: Some(Curve::of(record)),
        }
    }

    /// A figure of the whole run, in its unit; none without evidence. A recovery that did not come as long as the run lasted took infinitely long.
    pub fn figure(&self, name: Figure) -> Option<f64> {
        let index = Figure::ALL.iter().position(|figure| *figure == name)?;
        self.figures.get(index).copied().flatten()
    }

    /// Whether it is what is wanted of a plan that expects this class: its class is that one, RECOVERED where none is expected; without a `recovery`, it passed.
    pub fn is_wanted(&self, expected: Option<Class>) -> bool {
        match self.class {
            Some(class) => !self.is_unknown() && class == expected.unwrap_or(Class::Recovered),
            None => self.outcome == Outcome::Pass,
        }
    }

    /// Whether nothing can be said of its recovery.
    pub fn is_unknown(&self) -> bool {
        self.outcome == Outcome::Aborted || self.class.is_none_or(|class| class == Class::Inconclusive)
    }

    /// Its outcome but for its class.
    fn beside_its_class(&self) -> Outcome {
        let any = |status| self.gates.contains(&status);
        let unclear = self.doubtful && !self.is_unknown();
        match self.outcome {
            Outcome::Aborted => Outcome::Aborted,
            _ if any(Status::Fail) => Outcome::Fail,
            _ if any(Status::Inconclusive) || unclear => Outcome::Inconclusive,
            _ => Outcome::Pass,
        }
    }
}

/// A figure of a whole run. Rates take no window that the run's end cut short.
fn of_run(name: Figure, record: &RunRecord, recovery: Option<&Recovery>) -> Option<f64> {
    match name {
        Figure::RecoveryTime => recovery.map(|r| r.recovery_time.map_or(f64::INFINITY, |time| time.as_secs_f64())),
        Figure::ErrorWindow => recovery.and_then(|r| r.error_window).map(|time| time.as_secs_f64()),
        Figure::Relapses => recovery.filter(|r| r.recovery_time.is_some()).map(|r| r.relapses as f64),
        Figure::WaveScore => record.waves.as_ref().and_then(|waves| waves.all.arrived).map(|wave| wave.score()),
        Figure::WastedWork => record.service.as_ref()?.of.wasted_share(),
        Figure::Duplicates => record
            .service
            .as_ref()
            .filter(|service| service.of.wasted_share().is_some())
            .map(|service| service.of.duplicates_executed as f64),
        _ => {
            let counted =
                matches!(name, Figure::Failed | Figure::Lost | Figure::Unresolved | Figure::Refused | Figure::Amplification);
            let end = if counted { record.windows.len() } else { whole_windows(record) };
            let windows = &record.windows[..end];
            figure(name, windows, None, record.window).filter(|_| samples(name, windows, None) >= needed(name))
        }
    }
}

/// The verdict on many runs.
#[derive(Clone, Debug, PartialEq)]
pub struct SeedsVerdict {
    /// How they ended, together.
    pub outcome: Outcome,
    /// The run that decides it, by its index; none where the share of seeds does, or there is no run.
    pub decided_by: Option<usize>,
    /// How many runs had the class that is wanted: the expected one, or RECOVERED; without a `recovery`, how many passed.
    pub wanted: u64,
    /// What became of the gate on the share of seeds.
    pub share: Option<Finding>,
    /// The worst run, by its index.
    pub worst: Option<usize>,
}

/// Judges many runs of a plan that expects this class (RECOVERED where nothing is said).
pub fn judge_seeds(runs: &[SeedRun], expected: Option<Class>, share: Option<&SeedShare>) -> SeedsVerdict {
    let wanted = runs.iter().filter(|run| run.is_wanted(expected)).count() as u64;
    let share = share.map(|share| find_share(share, runs));
    let of = |run: &SeedRun| if share.is_some() { run.beside_its_class() } else { run.outcome };
    let gravest = (0..runs.len()).max_by(|&a, &b| {
        let weight = |index: usize| gravity(of(&runs[index]));
        weight(a).cmp(&weight(b)).then_with(|| badness(&runs[a], &runs[b])).then_with(|| b.cmp(&a))
    });
    let by_share = share.as_ref().map(|finding| match finding.status {
        Status::Pass => Outcome::Pass,
        Status::Fail => Outcome::Fail,
        Status::Inconclusive => Outcome::Inconclusive,
    });
    let (outcome, decided_by) = match (gravest, by_share) {
        (Some(index), Some(share)) if gravity(share) >= gravity(of(&runs[index])) => (share, None),
        (Some(index), _) => (of(&runs[index]), Some(index)),
        (None, _) => (Outcome::Inconclusive, None),
    };
    SeedsVerdict { outcome, decided_by, wanted, share, worst: worst(runs) }
}

/// The worst of these runs, by its index: by outcome, then by how long recovery took; the first of equals.
pub fn worst(runs: &[SeedRun]) -> Option<usize> {
    (0..runs.len()).max_by(|&a, &b| badness(&runs[a], &runs[b]).then_with(|| b.cmp(&a)))
}

/// From pass to aborted.
fn gravity(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Pass => 0,
        Outcome::Inconclusive => 1,
        Outcome::Fail => 2,
        Outcome::Aborted => 3,
    }
}

/// By outcome, then by how long recovery took. Of equals the first is the worst.
fn badness(a: &SeedRun, b: &SeedRun) -> std::cmp::Ordering {
    let time = |run: &SeedRun| run.figure(Figure::RecoveryTime).unwrap_or(-1.0);
    gravity(a.outcome).cmp(&gravity(b.outcome)).then_with(|| time(a).total_cmp(&time(b)))
}

/// Whether enough runs recovered: RECOVERED, whatever the plan expects.
fn find_share(share: &SeedShare, runs: &[SeedRun]) -> Finding {
    let all = runs.len() as u64;
    let wanted = runs.iter().filter(|run| run.is_wanted(None)).count() as u64;
    let unknown = runs.iter().filter(|run| run.is_unknown()).count() as u64;
    let status = match (share.holds(wanted, all), share.holds(wanted + unknown, all)) {
        _ if unknown == all => Status::Inconclusive,
        (true, _) => Status::Pass,
        (false, true) => Status::Inconclusive,
        (false, false) => Status::Fail,
    };
    let besides = if unknown > 0 { format!(", {unknown} without evidence") } else { String::new() };
    Finding {
        gate: format!("recovered {}", share.text),
        status,
        observed: format!("{wanted} of {all}{besides}"),
        wanted: share.text.clone(),
        value: (all > 0).then(|| wanted as f64 / all as f64),
        bound: Some(share.at_least.get()),
        place: share.place,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::config::Place;
    use crate::time::Share;

    /// A run of this outcome and class, recovered after so many seconds.
    pub fn run(seed: u64, outcome: Outcome, class: Class, seconds: f64) -> SeedRun {
        let none = outcome == Outcome::Aborted || class == Class::Inconclusive;
        let value = |figure: &Figure| (*figure == Figure::RecoveryTime && !none).then_some(seconds);
        SeedRun {
            seed,
            outcome,
            class: Some(class),
            sentence: "so it was".into(),
            reasons: Vec::new(),
            gates: Vec::new(),
            doubtful: false,
            figures: Figure::ALL.iter().map(value).collect(),
            waves: None,
            actions: Vec::new(),
            curve: None,
        }
    }

    fn good(seed: u64) -> SeedRun {
        run(seed, Outcome::Pass, Class::Recovered, 8.0)
    }

    fn stuck(seed: u64) -> SeedRun {
        run(seed, Outcome::Fail, Class::Stuck, f64::INFINITY)
    }

    fn unknown(seed: u64) -> SeedRun {
        run(seed, Outcome::Inconclusive, Class::Inconclusive, 0.0)
    }

    fn aborted(seed: u64) -> SeedRun {
        run(seed, Outcome::Aborted, Class::Inconclusive, 0.0)
    }

    fn share(at_least: f64) -> SeedShare {
        let at_least = Share::new(at_least).unwrap();
        SeedShare { at_least, more: false, text: format!(">= {at_least} of seeds"), place: Place::default() }
    }

    #[test]
    fn the_worst_seed_decides() {
        let late = |seed, seconds| run(seed, Outcome::Fail, Class::RecoveredLate, seconds);
        let slow = |seed| run(seed, Outcome::Pass, Class::Recovered, 9.0);
        for (name, runs, outcome, worst) in [
            ("all good, the slowest is the worst", vec![good(1), slow(2), good(3)], Outcome::Pass, Some(2)),
            ("all alike, the first is the worst", vec![good(1), good(2)], Outcome::Pass, Some(1)),
            ("one without evidence", vec![good(1), unknown(2), slow(3)], Outcome::Inconclusive, Some(2)),
            ("one fails", vec![unknown(1), late(2, 20.0), good(3)], Outcome::Fail, Some(2)),
            ("the later fails worse", vec![late(1, 20.0), late(2, 30.0), good(3)], Outcome::Fail, Some(2)),
            ("never is later than late", vec![late(1, 20.0), stuck(2), late(3, 90.0)], Outcome::Fail, Some(2)),
            ("one is stopped", vec![stuck(1), aborted(2), good(3)], Outcome::Aborted, Some(2)),
            ("none", vec![], Outcome::Inconclusive, None),
        ] {
            let verdict = judge_seeds(&runs, None, None);
            assert_eq!(verdict.outcome, outcome, "{name}");
            assert_eq!(verdict.worst.map(|index| runs[index].seed), worst, "{name}");
            assert_eq!(verdict.decided_by, verdict.worst, "{name}");
        }
    }

    #[test]
    fn a_share_of_seeds_stands_in_place_of_their_classes() {
        let gate = |run: SeedRun, status| SeedRun { gates: vec![status], ..run };
        let doubtful = |run: SeedRun| SeedRun { doubtful: true, outcome: Outcome::Inconclusive, ..run };
        let with = |last: Vec<SeedRun>| -> Vec<SeedRun> { (0..20 - last.len() as u64).map(good).chain(last).collect() };
        for (name, runs, outcome) in [
            ("nineteen of twenty", with(vec![stuck(20)]), Outcome::Pass),
            ("eighteen of twenty", with(vec![stuck(19), stuck(20)]), Outcome::Fail),
            ("nineteen and one without evidence", with(vec![unknown(20)]), Outcome::Pass),
            ("eighteen and one without evidence", with(vec![stuck(19), unknown(20)]), Outcome::Inconclusive),
            ("seventeen and one without evidence", with(vec![stuck(18), stuck(19), unknown(20)]), Outcome::Fail),
            ("another gate of a stuck seed fails", with(vec![gate(stuck(20), Status::Fail)]), Outcome::Fail),
            ("another gate of a good seed fails", with(vec![gate(good(20), Status::Fail)]), Outcome::Fail),
            ("another gate is without evidence", with(vec![gate(good(20), Status::Inconclusive)]), Outcome::Inconclusive),
            ("a doubt that is not about recovery", with(vec![doubtful(good(20))]), Outcome::Inconclusive),
            ("one is stopped", with(vec![aborted(20)]), Outcome::Aborted),
            ("none", vec![], Outcome::Inconclusive),
        ] {
            let verdict = judge_seeds(&runs, None, Some(&share(0.95)));
            assert_eq!(verdict.outcome, outcome, "{name}");
            assert!(verdict.share.is_some());
        }
        let found = judge_seeds(&with(vec![unknown(20)]), None, Some(&share(0.95))).share.unwrap();
        assert_eq!(found.gate, "recovered >= 95% of seeds");
        assert_eq!((found.observed.as_str(), found.value), ("19 of 20, 1 without evidence", Some(0.95)));
    }

    #[test]
    fn an_expected_class_is_what_is_counted() {
        let stuck = |seed| run(seed, Outcome::Pass, Class::Stuck, f64::INFINITY);
        let verdict = judge_seeds(&[stuck(1), stuck(2), run(3, Outcome::Fail, Class::Recovered, 3.0)], Some(Class::Stuck), None);
        assert_eq!((verdict.wanted, verdict.outcome, verdict.worst), (2, Outcome::Fail, Some(2)));
        let unasked = SeedRun { class: None, ..run(1, Outcome::Pass, Class::Recovered, 0.0) };
        assert_eq!(judge_seeds(&[unasked], None, None).wanted, 1, "without a recovery a pass is what is wanted");
    }

    #[test]
    fn what_is_kept_of_a_run_is_evidence() {
        use super::super::verdict::judge;
        use super::super::{Judgement, RecoveryConfig, SteadyState};
        use crate::time::Span;
        let recovery = RecoveryConfig {
            at: None,
            after: None,
            within: Span::from_secs(15),
            hold: Span::from_secs(10),
            horizon: None,
            span: Span::from_secs(5),
            operations: 200,
            require: Default::default(),
        };
        let steady = SteadyState { r#for: Span::from_secs(20), require: Default::default() };
        let judgement = Judgement { steady: Some(steady), recovery: Some(recovery), ..Judgement::default() };
        let record = super::super::scenario::Scenario::new().good(30).fault(10, |w| w).good(40).record();
        let kept = SeedRun::of(7, &record, &judge(&record, &judgement));
        assert_eq!((kept.seed, kept.outcome, kept.class), (7, Outcome::Pass, Some(Class::Recovered)), "{kept:?}");
        assert_eq!(kept.figure(Figure::RecoveryTime), Some(0.0));
        assert_eq!(kept.figure(Figure::PeakAttempts), Some(400.0));
        assert_eq!(kept.figure(Figure::WastedWork), None, "nobody counted it");
        assert_eq!(kept.curve.as_ref().map(|curve| curve.points.len()), Some(80));
        let mut untouched = record.clone();
        untouched.faults[0].touched = 0;
        let kept = SeedRun::of(7, &untouched, &judge(&untouched, &judgement));
        assert!(kept.is_unknown() && kept.figure(Figure::PeakAttempts).is_none(), "no evidence, no figure: {kept:?}");
        let mut stopped = record;
        stopped.stopped = Some(crate::metrics::StopReason::StopCondition("x".into()));
        let kept = SeedRun::of(7, &stopped, &judge(&stopped, &judgement));
        assert!(kept.is_unknown() && kept.outcome == Outcome::Aborted && kept.figure(Figure::PeakAttempts).is_none());
    }
}
