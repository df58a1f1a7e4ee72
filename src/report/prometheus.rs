//! A run's figures while it goes on, for monitoring systems: an observer that adds up what it hears, and the families made of that.
//!
//! A window counts for the phase in which it begins, as in `windows.csv`; once the run is over, [`Figures::settle`] takes the record in the
//! place of what was heard, so that the counters equal the totals of `result.json`. Bounded: fleets and phases beyond `MOST_PAIRS`
//! together, statuses beyond `MOST_OUTCOMES`, and what is long in a name, share a label.

mod names;
mod sums;

use crate::engine::Observer;
use crate::exposition::{Family, Kind, Sample, text};
use crate::metrics::{Counts, RunEvent, RunRecord, Window};
use crate::plan::Plan;
use crate::time::{Span, Timestamp};
use names::{Names, cut, ratio_of, seconds};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use sums::{COUNTERS, OPERATIONS, Sums};

/// The most pairs of a fleet and a phase that are told apart.
const MOST_PAIRS: usize = 512;
/// The most fleets with a label of their own.
const MOST_FLEETS: usize = 64;
/// The fewest phases with a label of their own, and the most.
const PHASES: (usize, usize) = (8, 64);
/// The most outcomes of attempts of a fleet in a phase.
const MOST_OUTCOMES: usize = 24;
/// What stands for all that has no label of its own.
const OTHER: &str = "other";

/// Which run it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The plan's name.
    pub plan: String,
    /// SHA-256 of the effective plan, in hexadecimal.
    pub sha256: String,
    /// The seed.
    pub seed: u64,
    /// The policy that is compared; none where none is.
    pub policy: Option<String>,
}

/// The figures of one run, or of one after the other. Clones are the same.
#[derive(Clone, Default)]
pub struct Figures(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    subject: Subject,
    length: Span,
    fleets: Names,
    phases: Names,
    /// By the numbers of fleet and phase.
    sums: BTreeMap<(usize, usize), Sums>,
    /// By the number of the fleet: its last window.
    last: BTreeMap<usize, Counts>,
    /// By label: whether it acts.
    faults: BTreeMap<String, bool>,
    phase: Option<usize>,
    /// Where the last window ends.
    until: Timestamp,
    warnings: u64,
    ended: bool,
}

impl Figures {
    /// Begins a run: whatever was before it is forgotten.
    pub fn begin(&self, subject: Subject, plan: &Plan) {
        self.begin_with(
            subject,
            plan.length,
            plan.fleets.iter().map(|fleet| fleet.name.as_str()),
            plan.timeline.iter().map(|step| step.name.as_str()),
        );
    }

    fn begin_with<'a>(
        &self,
        subject: Subject,
        length: Span,
        fleets: impl Iterator<Item = &'a str>,
        faults: impl Iterator<Item = &'a str>,
    ) {
        let mut state = State { subject, length, ..State::default() };
        state.fleets = Names::new(MOST_FLEETS);
        fleets.for_each(|name| state.fleets.add(name));
        let room = MOST_PAIRS / state.fleets.len().max(1);
        state.phases = Names::new(room.clamp(PHASES.0, PHASES.1));
        state.faults = faults.map(|name| (cut(name), false)).collect();
        *self.lock() = state;
    }

    /// Takes what a run came to in the place of what was heard of it: a window that was never told is in it, and what came after the last.
    pub fn settle(&self, record: &RunRecord) {
        let mut state = self.lock();
        state.sums.clear();
        for window in &record.windows {
            let phase = record.phases.iter().rfind(|phase| phase.from <= window.start);
            state.window(window, phase.map_or("", |phase| &phase.name));
        }
        state.end();
    }

    /// All of it.
    pub fn families(&self) -> Vec<Family> {
        self.lock().families()
    }

    /// All of it, as Prometheus reads it.
    pub fn text(&self) -> String {
        text(&self.families())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Figures {
    fn event(&mut self, _at: Timestamp, event: &RunEvent) {
        self.lock().event(event);
    }

    fn window(&mut self, window: &Window, phase: &str) {
        self.lock().window(window, phase);
    }
}

impl State {
    fn event(&mut self, event: &RunEvent) {
        match event {
            RunEvent::PhaseStarted { phase } => self.phase = Some(self.phases.number(phase)),
            RunEvent::FaultStarted { fault } => self.acts(fault, true),
            RunEvent::FaultEnded { fault, .. } => self.acts(fault, false),
            RunEvent::Warning { .. } => self.warnings += 1,
            RunEvent::Ended => self.end(),
            _ => {}
        }
    }

    /// The faults of a plan are known from its start, and bounded by it.
    fn acts(&mut self, fault: &str, acts: bool) {
        if let Some(known) = self.faults.get_mut(&cut(fault)) {
            *known = acts;
        }
    }

    fn end(&mut self) {
        self.faults.values_mut().for_each(|acts| *acts = false);
        self.ended = true;
    }

    fn window(&mut self, window: &Window, phase: &str) {
        let phase = self.phases.number(phase);
        self.phase.get_or_insert(phase);
        self.until = window.start + crate::engine::shared::WINDOW;
        for (fleet, counts) in window.fleets.iter().enumerate() {
            let fleet = self.fleets.place(fleet);
            self.sums.entry((fleet, phase)).or_default().add(counts);
        }
        self.last.clear();
        for (fleet, counts) in window.fleets.iter().enumerate() {
            let gauges = Counts { by_outcome: BTreeMap::new(), ..counts.clone() };
            match self.last.get_mut(&self.fleets.place(fleet)) {
                Some(known) => known.add(&gauges),
                None => drop(self.last.insert(self.fleets.place(fleet), gauges)),
            }
        }
    }

    fn families(&self) -> Vec<Family> {
        let mut all = self.of_the_run();
        all.extend(COUNTERS.iter().enumerate().map(|(index, (name, help, _))| {
            let of = |sums: &Sums| vec![(Vec::new(), sums.counters[index])];
            Family::new(format!("stormwake_{name}"), Kind::Counter, help, self.by_pair(of))
        }));
        all.push(Family::new(
            "stormwake_operations_ended_total",
            Kind::Counter,
            "Operations that ended, by how; unresolved are those still held when the run ended.",
            self.by_pair(|sums| {
                let ended = OPERATIONS.iter().zip(&sums.operations);
                ended.map(|((word, _), count)| (vec![("outcome", (*word).to_string())], *count)).collect()
            }),
        ));
        all.push(Family::new(
            "stormwake_attempts_ended_total",
            Kind::Counter,
            "Attempts that ended, by how.",
            self.by_pair(|sums| sums.outcomes.iter().map(|(word, count)| (vec![("outcome", word.clone())], *count)).collect()),
        ));
        all.push(self.latency(
            "stormwake_operation_latency_seconds",
            "From the intended start of an operation to its success, within 1%, by the phase in which it succeeded.",
            |sums| &sums.latency,
        ));
        all.push(self.latency(
            "stormwake_attempt_latency_seconds",
            "From the send of an attempt to its end, within 1%, by the phase in which it ended.",
            |sums| &sums.attempt_latency,
        ));
        all.extend(self.of_the_last_window());
        all
    }

    fn of_the_run(&self) -> Vec<Family> {
        let Subject { plan, sha256, seed, policy } = &self.subject;
        let labels = vec![
            ("plan", cut(plan)),
            ("plan_sha256", sha256.clone()),
            ("seed", seed.to_string()),
            ("policy", cut(policy.as_deref().unwrap_or_default())),
            ("version", env!("CARGO_PKG_VERSION").to_string()),
        ];
        let one = |labels| vec![Sample::count(labels, 1)];
        let phase = self.phase.iter().flat_map(|phase| one(vec![("phase", self.phases.label(*phase))])).collect();
        let faults = self.faults.iter().map(|(name, acts)| Sample::count(vec![("fault", name.clone())], u64::from(*acts)));
        let gauge = |name: &str, help, samples| Family::new(format!("stormwake_{name}"), Kind::Gauge, help, samples);
        let alone = |level| vec![Sample::level(Vec::new(), level)];
        vec![
            gauge("run_info", "Which run this is; policy is the one that is compared.", one(labels)),
            gauge("run_length_seconds", "How long the run is meant to be.", alone(self.length.as_secs_f64())),
            gauge(
                "run_elapsed_seconds",
                "The end of the last window that is counted, from the run's start.",
                alone(self.until.as_secs_f64()),
            ),
            gauge("run_ended", "1 once the run is over.", vec![Sample::count(Vec::new(), u64::from(self.ended))]),
            gauge("phase_info", "The phase of the run.", phase),
            gauge("fault_active", "1 while the fault is in force.", faults.collect()),
            Family::new(
                "stormwake_warnings_total",
                Kind::Counter,
                "Warnings of the run.",
                vec![Sample::count(Vec::new(), self.warnings)],
            ),
        ]
    }

    fn of_the_last_window(&self) -> Vec<Family> {
        let gauge = |name: &str, help, of: fn(&Counts) -> Option<f64>| {
            let sample =
                |(fleet, counts): (&usize, &Counts)| Some(Sample::level(vec![("fleet", self.fleets.label(*fleet))], of(counts)?));
            Family::new(format!("stormwake_{name}"), Kind::Gauge, help, self.last.iter().filter_map(sample).collect())
        };
        vec![
            gauge("in_flight", "Attempts on the wire at the end of the last window.", |c| Some(c.in_flight as f64)),
            gauge("backlog", "Operations offered and not finished at the end of the last window.", |c| Some(c.backlog as f64)),
            gauge("oldest_age_seconds", "Age of the oldest operation of the backlog.", |c| {
                (c.backlog > 0).then(|| c.oldest_age.as_secs_f64())
            }),
            gauge("retry_share", "Retries as a share of the attempts of the last window.", |c| ratio_of(c.retries, c.attempts)),
            gauge("generator_lag_p99_seconds", "How late attempts of the last window were sent, at p99.", |c| {
                seconds(c.lag.quantile(990))
            }),
        ]
    }

    fn by_pair(&self, of: impl Fn(&Sums) -> Vec<(Vec<(&'static str, String)>, u64)>) -> Vec<Sample> {
        let samples = |(pair, sums): (&(usize, usize), &Sums)| -> Vec<Sample> {
            let with = |more: Vec<(&'static str, String)>| self.labels(*pair).into_iter().chain(more).collect();
            of(sums).into_iter().map(|(more, count)| Sample::count(with(more), count)).collect()
        };
        self.sums.iter().flat_map(samples).collect()
    }

    fn latency(&self, name: &str, help: &'static str, of: fn(&Sums) -> &sums::Latency) -> Family {
        let sample = |(pair, sums): (&(usize, usize), &Sums)| Sample { labels: self.labels(*pair), value: of(sums).value() };
        Family::new(name, Kind::Histogram, help, self.sums.iter().map(sample).collect())
    }

    fn labels(&self, (fleet, phase): (usize, usize)) -> Vec<(&'static str, String)> {
        vec![("fleet", self.fleets.label(fleet)), ("phase", self.phases.label(phase))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::AttemptOutcome;
    use crate::exposition::Value;
    use crate::fault::Phase;
    use std::collections::BTreeSet;

    const SECOND: u64 = 1_000_000_000;

    fn counts(n: u64) -> Counts {
        let mut counts =
            Counts { offered: 4 * n, attempts: 10 * n, retries: 6 * n, succeeded: 3 * n, failed: n, ..Counts::default() };
        counts.by_outcome = [(AttemptOutcome::Success, 3 * n), (AttemptOutcome::Timeout, 7 * n)].into();
        counts.latency.record(Span::from_millis(4));
        counts.latency.record(Span::from_millis(700));
        (counts.backlog, counts.in_flight, counts.oldest_age) = (7, 2, Span::from_millis(1_500));
        counts
    }

    fn window(second: u64, fleets: &[u64]) -> Window {
        let fleets: Vec<Counts> = fleets.iter().map(|n| counts(*n)).collect();
        let mut all = Counts::default();
        fleets.iter().for_each(|counts| all.add(counts));
        Window { start: Timestamp(second * SECOND), all, fleets }
    }

    fn figures(fleets: &[&str], faults: &[&str]) -> Figures {
        let figures = Figures::default();
        let subject = Subject { plan: "a \"plan\"".into(), sha256: "ab12".into(), seed: 7, policy: None };
        figures.begin_with(subject, Span::from_secs(60), fleets.iter().copied(), faults.iter().copied());
        figures
    }

    /// Every series and its value.
    fn series(figures: &Figures) -> BTreeMap<String, f64> {
        let mut all = BTreeMap::new();
        for line in figures.text().lines().filter(|line| !line.starts_with('#')) {
            let (series, value) = line.rsplit_once(' ').unwrap();
            assert_eq!(all.insert(series.to_string(), value.parse().unwrap()), None, "{series} comes once");
        }
        all
    }

    #[test]
    fn windows_are_added_up_by_fleet_and_phase() {
        let mut figures = figures(&["app", "jobs"], &["outage"]);
        figures.event(Timestamp::ZERO, &RunEvent::PhaseStarted { phase: "steady".into() });
        figures.window(&window(0, &[1, 2]), "steady");
        figures.window(&window(1, &[1, 0]), "steady");
        figures.event(Timestamp(2 * SECOND), &RunEvent::FaultStarted { fault: "outage".into() });
        figures.event(Timestamp(2 * SECOND), &RunEvent::PhaseStarted { phase: "outage".into() });
        figures.window(&window(2, &[5, 0]), "outage");
        let all = series(&figures);
        let get = |name: &str| *all.get(&format!("stormwake_{name}")).unwrap_or_else(|| panic!("{name}: {all:#?}"));
        for (name, value) in [
            ("operations_offered_total{fleet=\"app\",phase=\"steady\"}", 8.0),
            ("operations_offered_total{fleet=\"app\",phase=\"outage\"}", 20.0),
            ("attempts_total{fleet=\"jobs\",phase=\"steady\"}", 20.0),
            ("retries_total{fleet=\"app\",phase=\"outage\"}", 30.0),
            ("operations_ended_total{fleet=\"app\",phase=\"steady\",outcome=\"failed\"}", 2.0),
            ("attempts_ended_total{fleet=\"app\",phase=\"outage\",outcome=\"timeout\"}", 35.0),
            ("operation_latency_seconds_bucket{fleet=\"app\",phase=\"steady\",le=\"0.005\"}", 2.0),
            ("operation_latency_seconds_bucket{fleet=\"app\",phase=\"steady\",le=\"0.5\"}", 2.0),
            ("operation_latency_seconds_bucket{fleet=\"app\",phase=\"steady\",le=\"1\"}", 4.0),
            ("operation_latency_seconds_bucket{fleet=\"app\",phase=\"steady\",le=\"+Inf\"}", 4.0),
            ("operation_latency_seconds_count{fleet=\"app\",phase=\"steady\"}", 4.0),
            ("backlog{fleet=\"app\"}", 7.0),
            ("oldest_age_seconds{fleet=\"app\"}", 1.5),
            ("retry_share{fleet=\"app\"}", 0.6),
            ("fault_active{fault=\"outage\"}", 1.0),
            ("phase_info{phase=\"outage\"}", 1.0),
            ("run_elapsed_seconds", 3.0),
            ("run_length_seconds", 60.0),
            ("run_ended", 0.0),
        ] {
            assert_eq!(get(name), value, "{name}");
        }
        let sum = get("operation_latency_seconds_sum{fleet=\"app\",phase=\"steady\"}");
        assert!((sum / 1.408 - 1.0).abs() < 0.01, "{sum}");
        assert!(!all.contains_key("stormwake_retry_share{fleet=\"jobs\"}"), "a window without attempts has no share");
        assert!(!all.contains_key("stormwake_generator_lag_p99_seconds{fleet=\"app\"}"), "nothing was sent, nothing was late");
        assert!(!all.contains_key("stormwake_phase_info{phase=\"steady\"}"), "one phase at a time");
        let info = format!(
            "run_info{{plan=\"a \\\"plan\\\"\",plan_sha256=\"ab12\",seed=\"7\",policy=\"\",version=\"{}\"}}",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(get(&info), 1.0);
        figures.event(Timestamp(3 * SECOND), &RunEvent::Ended);
        let all = series(&figures);
        assert_eq!((all["stormwake_fault_active{fault=\"outage\"}"], all["stormwake_run_ended"]), (0.0, 1.0));
    }

    #[test]
    fn a_record_takes_the_place_of_what_was_heard() {
        let mut heard = figures(&["app"], &[]);
        heard.window(&window(0, &[1]), "steady");
        let phase = |name: &str, from, to| Phase {
            name: name.into(),
            from: Timestamp(from * SECOND),
            to: Timestamp(to * SECOND),
            faults: Vec::new(),
        };
        let record = RunRecord {
            windows: vec![window(0, &[1]), window(1, &[2]), window(2, &[3])],
            phases: vec![phase("steady", 0, 2), phase("outage", 2, 3)],
            ..RunRecord::default()
        };
        heard.settle(&record);
        let all = series(&heard);
        assert_eq!(all["stormwake_operations_offered_total{fleet=\"app\",phase=\"steady\"}"], 12.0);
        assert_eq!(all["stormwake_operations_offered_total{fleet=\"app\",phase=\"outage\"}"], 12.0);
        assert_eq!(all["stormwake_run_ended"], 1.0);
        heard.begin_with(Subject::default(), Span::ZERO, ["app"].into_iter(), [].into_iter());
        assert!(!heard.text().contains("operations_offered_total"), "another run begins anew");
    }

    #[test]
    fn labels_are_few_and_short_whatever_a_plan_and_a_target_say() {
        let long = "x".repeat(300);
        let names: Vec<String> =
            (0..256).map(|n| if n < 3 { format!("{long}{n}") } else { format!("<b>\"{n}\\\u{202e}\n") }).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut figures = figures(&names, &names);
        let mut window = window(0, &[1; 256]);
        for (fleet, counts) in window.fleets.iter_mut().enumerate() {
            let status = |n: u16| (AttemptOutcome::Status(n), 1);
            counts.by_outcome = (400..600).step_by(if fleet == 0 { 1 } else { 50 }).map(status).collect();
        }
        for second in 0..100 {
            figures.window(&window, &format!("{long}-{second}"));
            figures.window(&window, &format!("phase {second}"));
        }
        let families = figures.families();
        let offered = families.iter().find(|family| family.name == "stormwake_operations_offered_total").unwrap();
        assert!(offered.samples.len() <= (MOST_FLEETS + 1) * (PHASES.0 + 1), "{}", offered.samples.len());
        let sum: u64 = offered.samples.iter().map(|sample| if let Value::Count(n) = sample.value { n } else { 0 }).sum();
        assert_eq!(sum, 2 * 100 * 256 * 4, "what shares a label is counted all the same");
        let ended = families.iter().find(|family| family.name == "stormwake_attempts_ended_total").unwrap();
        let first = |sample: &&Sample| sample.labels[0].1 == format!("{}…", "x".repeat(100)) && sample.labels[1].1 == "phase 0";
        assert_eq!(ended.samples.iter().filter(first).count(), MOST_OUTCOMES + 1);
        for family in &families {
            let labels: BTreeSet<String> = family.samples.iter().map(|sample| format!("{:?}", sample.labels)).collect();
            assert_eq!(labels.len(), family.samples.len(), "{}: each combination once", family.name);
            let values = family.samples.iter().flat_map(|sample| &sample.labels);
            assert!(values.into_iter().all(|(_, value)| value.chars().count() <= 104), "{}", family.name);
        }
        let text = figures.text();
        assert!(text.lines().all(|line| line.starts_with("# ") || line.starts_with("stormwake_")), "no name breaks a line");
    }
}
