//! The recovery class of a run: what became of it once the fault had ended.
//!
//! Looked at is the stretch from the fault's end to the end of the run, or to the start of the next fault. Its first
//! window is the one that begins with the fault's end, or up to a tenth of a window before it. What the classes' own
//! definitions ([`Class`]) leave open is decided here:
//!
//! - Where another fault still acts when the fault has ended, or begins before it really ended, nothing was seen of a
//!   recovery: INCONCLUSIVE.
//! - "It held" means for `recovery.hold`. A run that was healthy for a hold, lost it and got it back for a hold before the end is
//!   RECOVERED (or RECOVERED_LATE) by its first good stretch: the incident did end. What was lost in between is counted in `relapses`, and said in the
//!   sentence; a plan that does not stand for it has the gate `- { relapses: "== 0" }`.
//! - A good stretch that lasts to the end, but whose hold does not fit, is no recovery. It is INCONCLUSIVE where it began
//!   within the target time, since a longer run might have shown it; later than that it is RECOVERING.
//! - A run that is not healthy and ends before the target time has passed is INCONCLUSIVE.
//! - A run that was healthy for a hold, lost it and did not get it back for a hold is classed by its end.
//! - The end is the last `recovery.hold` (or `span`, where that is longer), and more where it takes more to have
//!   `recovery.operations`. Goodput there is compared with the smaller of the baseline's and what was offered; offered load counts
//!   as no more than the baseline carried up to a tenth above it.
//! - The backlog's slope is that of the last half of the stretch, or three times the end where that is longer; what
//!   counts as falling says [`Trend`]. A drain projected beyond the horizon is DEGRADED.
//! - A run that is not healthy, and at whose end nothing was offered and nobody held anything, is INCONCLUSIVE.
//! - With a goodput under half while more is offered than the baseline carried, the run is DEGRADED, not STUCK.

use super::baseline::Baseline;
use super::config::{Class, RecoveryConfig};
use super::health::{Course, Health};
use super::trend::Trend;
use crate::metrics::{FaultRecord, Figure, RunRecord, Window, figure};
use crate::time::{Span, Timestamp};
use std::ops::Range;

/// What became of a run once its fault had ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovery {
    /// The class.
    pub class: Class,
    /// The fault whose end started the clock; none where none took place.
    pub fault: Option<String>,
    /// From the fault's end to the start of the first good stretch that lasted for a hold; none where there was none.
    pub recovery_time: Option<Span>,
    /// For how long after the fault's end the run was seen not to have recovered: the recovery time, if any, is no shorter.
    pub unrecovered_for: Span,
    /// First to last window with errors above baseline + 1%, from the fault's start; none without a baseline.
    pub error_window: Option<Span>,
    /// The same / the fault's duration.
    pub error_window_ratio: Option<f64>,
    /// The clause that cleared last; none where none was broken, or the run did not recover.
    pub last_clause: Option<Figure>,
    /// How often health was lost again after it had lasted for a hold.
    pub relapses: u64,
    /// How fast the backlog changes at the end, in operations per second.
    pub backlog_slope: Option<f64>,
    /// How long after the end the backlog will be back at baseline; none where it does not fall.
    pub projected_drain: Option<Span>,
    /// The class in words, with the numbers behind it.
    pub sentence: String,
}

impl Recovery {
    /// No evidence either way.
    pub fn inconclusive(fault: Option<&FaultRecord>, reason: &str) -> Self {
        Self {
            class: Class::Inconclusive,
            fault: fault.map(|f| f.name.clone()),
            recovery_time: None,
            unrecovered_for: Span::ZERO,
            error_window: None,
            error_window_ratio: None,
            last_clause: None,
            relapses: 0,
            backlog_slope: None,
            projected_drain: None,
            sentence: reason.to_string(),
        }
    }
}

/// The fault whose end starts the clock: the one that `after` names, or the one that ends last. Only those that took
/// place count, if not as the plan has them.
pub fn fault_of<'a>(record: &'a RunRecord, after: Option<&str>) -> Option<&'a FaultRecord> {
    let mut took_place = record.faults.iter().filter(|f| f.from < record.ended && f.took_place());
    match after {
        Some(name) => took_place.find(|f| f.name == name),
        None => took_place.max_by_key(|f| f.to),
    }
}

/// The windows from a moment on: the one that begins there, or up to a tenth of a window before.
pub fn windows_from(record: &RunRecord, from: Timestamp) -> usize {
    let window = record.window.0.max(1);
    (from.0.saturating_sub(window / 10).div_ceil(window)).min(record.windows.len() as u64) as usize
}

/// The number of windows that the run lived through to their end.
pub fn whole_windows(record: &RunRecord) -> usize {
    (record.ended.0 / record.window.0.max(1)).min(record.windows.len() as u64) as usize
}

/// Classes a run.
pub fn assess(record: &RunRecord, baseline: &Baseline, config: &RecoveryConfig, fault: &FaultRecord) -> Recovery {
    let disturbing = disturbing(record, fault);
    if let Some(other) = disturbing.filter(|other| other.from <= fault.to) {
        return Recovery::inconclusive(Some(fault), &disturbed(fault, other));
    }
    let next = disturbing.map_or(Timestamp::NEVER, |other| other.from);
    let first = windows_from(record, fault.to);
    let last = whole_windows(record).min((next.0 / record.window.0.max(1)).try_into().unwrap_or(usize::MAX));
    let health = Health::new(record, baseline, config);
    let course = health.course(first..last.max(first));
    let case = Case { record, baseline, config, fault, health, course, windows: first..last.max(first), next };
    let mut recovery = case.class();
    recovery.error_window = Some(case.error_window());
    let lasted = fault.to.min(record.ended).since(fault.from).as_secs_f64();
    recovery.error_window_ratio = recovery.error_window.filter(|_| lasted > 0.0).map(|w| w.as_secs_f64() / lasted);
    recovery
}

/// The first of the other faults that act after a fault has ended, by more than the tenth of a window that its end may be late.
fn disturbing<'a>(record: &'a RunRecord, fault: &FaultRecord) -> Option<&'a FaultRecord> {
    let late = fault.to + record.window / 10;
    let others = record.faults.iter().filter(|other| other.name != fault.name && other.from < record.ended);
    others.filter(|other| other.to > late).min_by_key(|other| other.from)
}

fn disturbed(fault: &FaultRecord, other: &FaultRecord) -> String {
    format!(
        "{} acted when {} ended, so nothing was seen of a recovery from it: judge the fault that ends last (`after: {}`), or leave time between them",
        other.name, fault.name, other.name
    )
}

struct Case<'a> {
    record: &'a RunRecord,
    baseline: &'a Baseline,
    config: &'a RecoveryConfig,
    fault: &'a FaultRecord,
    health: Health<'a>,
    course: Course,
    /// The stretch after the fault.
    windows: Range<usize>,
    /// When the next fault begins.
    next: Timestamp,
}

/// What the end of the run looks like.
struct End<'a> {
    windows: &'a [Window],
    goodput: f64,
    offered: f64,
    /// Goodput / the smaller of the baseline's and what was offered.
    ratio: f64,
    /// Nothing was offered, and nobody held anything.
    idle: bool,
    trend: Option<Trend>,
    drain: Option<Span>,
}

impl Case<'_> {
    fn class(&self) -> Recovery {
        if self.windows.is_empty() {
            let (name, ended) = (&self.fault.name, self.what_ended());
            return self.inconclusive(format!("nothing was seen after {name}, {ended}: the run must go on when it has ended"));
        }
        let (first, relapses, held) = self.history();
        let mut recovery = match first {
            Some(start) if held => self.recovered(start, relapses),
            _ => self.unrecovered(relapses),
        };
        recovery.relapses = relapses;
        if let Some(start) = first {
            recovery.recovery_time = Some(self.since_fault(start));
            recovery.unrecovered_for = self.since_fault(start);
        }
        recovery
    }

    /// The first healthy window, how often health was lost after it, and whether it was there at the end.
    fn history(&self) -> (Option<usize>, u64, bool) {
        let first = self.course.healthy_from(self.windows.start);
        let (mut healthy, mut relapses) = (first, 0);
        while let Some(broken) = healthy.and_then(|t| self.course.broken_from(t)) {
            relapses += 1;
            healthy = self.course.healthy_from(broken);
        }
        (first, relapses, healthy.is_some())
    }

    fn recovered(&self, start: usize, relapses: u64) -> Recovery {
        let (time, target) = (self.since_fault(start), self.config.within);
        let class = if time <= target { Class::Recovered } else { Class::RecoveredLate };
        let figure_of = |i: usize| self.health.clauses.get(i).map_or(Figure::Goodput, |clause| clause.figure);
        let last_clause = self.course.last_broken(start).map(figure_of);
        let against = if time <= target { "within" } else { "later than" };
        let cleared = last_clause.map_or("nothing was broken when it ended".into(), |f| format!("{} cleared last", f.word()));
        let held = match relapses {
            0 => format!("it held for {}", self.config.hold),
            1 => "it held, was lost once, and came back".to_string(),
            n => format!("it held, was lost {n} times, and came back"),
        };
        let sentence = format!(
            "healthy again {} after {} ended, {against} the target of {target}, and {held}; {cleared}",
            time.about(),
            self.fault.name
        );
        Recovery { class, last_clause, sentence, ..self.inconclusive(String::new()) }
    }

    fn unrecovered(&self, relapses: u64) -> Recovery {
        let all = &self.record.windows[self.windows.clone()];
        if !self.health.enough(all) {
            let reason = format!("too few operations after {}: fewer than {}", self.fault.name, self.health.operations);
            return self.inconclusive(reason);
        }
        if let Some(start) = self.course.good_to_the_end() {
            return self.unproven(start);
        }
        let seen = self.seen_for();
        // For the sentence, where rounding must not make it contradict itself.
        let after = if seen < self.config.within { seen.about().min(seen) } else { seen.about() };
        if !self.target_has_passed() && relapses == 0 {
            let reason = format!(
                "not healthy {after} after {}, and {} before the target of {} had passed; {}",
                self.fault.name,
                self.what_ended(),
                self.config.within,
                self.broken(self.end().windows)
            );
            return Recovery { unrecovered_for: seen, ..self.inconclusive(reason) };
        }
        let end = self.end();
        if end.idle {
            return self
                .inconclusive(format!("not healthy {after} after {}, but nothing was asked of it at the end", self.fault.name));
        }
        self.by_its_end(&end, relapses)
    }

    /// Good at the end, for less than a hold.
    fn unproven(&self, start: usize) -> Recovery {
        let (time, within) = (self.since_fault(start), self.config.within);
        let lasted = self.record.window * (self.windows.end - start) as u64;
        let (class, advice) = if time <= within {
            (Class::Inconclusive, "make the run longer".to_string())
        } else {
            (Class::Recovering, format!("it began later than the target of {within}"))
        };
        let (name, hold) = (&self.fault.name, self.config.hold);
        let ended = self.what_ended();
        let sentence = format!(
            "good from {} after {name} ended, but {ended} {lasted} later, and it takes {hold} to hold; {advice}",
            time.about()
        );
        Recovery { class, unrecovered_for: time, sentence, ..self.inconclusive(String::new()) }
    }

    fn by_its_end(&self, end: &End, relapses: u64) -> Recovery {
        let carried = self.baseline.goodput.unwrap_or(0.0);
        let horizon = self.config.horizon.unwrap_or(self.record.length);
        let falling = end.trend.is_some_and(|t| t.falling);
        let class = match end.drain {
            Some(drain) if drain <= horizon => Class::Recovering,
            _ if !falling && end.ratio < 0.5 && end.offered <= carried * 1.1 => Class::Stuck,
            _ => Class::Degraded,
        };
        let sentence = self.sentence(class, end, relapses);
        let (backlog_slope, projected_drain) = (end.trend.map(|t| t.slope), end.drain);
        let unrecovered_for = self.seen_for();
        Recovery { class, unrecovered_for, backlog_slope, projected_drain, sentence, ..self.inconclusive(String::new()) }
    }

    fn sentence(&self, class: Class, end: &End, relapses: u64) -> String {
        let (rate, share) = (Figure::Goodput.unit(), Figure::Errors.unit());
        let goodput = format!(
            "{} after {} goodput is {} ({} of the smaller of the baseline's {} and the {} offered)",
            self.seen_for().about(),
            self.fault.name,
            rate.show(end.goodput),
            share.show(end.ratio),
            rate.show(self.baseline.goodput.unwrap_or(0.0)),
            rate.show(end.offered),
        );
        let backlog = match (end.trend, end.drain) {
            (Some(trend), Some(drain)) => {
                let whole = Span::from_secs(drain.as_secs_f64().round() as u64);
                format!("; the backlog of {:.0} falls by {:.1}/s and would be gone in {whole}", trend.end.max(0.0), -trend.slope)
            }
            // Where nothing waits there is nothing that could fall.
            (Some(trend), None) if trend.end < 0.5 => String::new(),
            (Some(trend), None) => format!("; the backlog of {:.0} does not fall", trend.end),
            (None, _) => "; the stretch is too short to say where the backlog goes".to_string(),
        };
        let lost = if relapses > 0 { "healthy for a while, then lost; " } else { "" };
        let more = match class {
            Class::Degraded if end.ratio < 0.5 && end.drain.is_none() => "; more is offered than the baseline carried",
            _ => "",
        };
        format!("{lost}{goodput}{backlog}{more}; {}", self.broken(end.windows))
    }

    /// The clauses that do not hold, in words.
    fn broken(&self, windows: &[Window]) -> String {
        let texts: Vec<String> = self.health.broken(windows).map(|c| c.describe(windows, self.record.window)).collect();
        if texts.is_empty() {
            "each clause holds on the whole of the end, but not on every span".into()
        } else {
            format!("broken: {}", texts.join(", "))
        }
    }

    fn end(&self) -> End<'_> {
        let all = &self.record.windows[self.windows.clone()];
        let carried = self.baseline.goodput.unwrap_or(0.0);
        let rate = |name, windows| figure(name, windows, None, self.record.window).unwrap_or(0.0);
        let last = |length: usize| &all[all.len() - length..];
        let mut length = self.health.hold.max(self.health.span).min(all.len());
        // Closed clients that hang offer nothing: more windows would only bring back the time when they did.
        let quiet = rate(Figure::Offered, last(length)) < carried / 100.0;
        while !quiet && length < all.len() && !self.health.enough(last(length)) {
            length += 1;
        }
        let windows = last(length);
        let (goodput, offered) = (rate(Figure::Goodput, windows), rate(Figure::Offered, windows));
        let idle = quiet && windows.iter().all(|w| w.all.backlog == 0);
        let measure = if quiet { carried } else { carried.min(offered) };
        let (trend, drain) = self.trend((3 * length).max(all.len() / 2).min(all.len()));
        End { windows, goodput, offered, ratio: goodput / measure.max(f64::MIN_POSITIVE), idle, trend, drain }
    }

    /// Where the backlog goes over the last windows, and how long it takes from the end until it is back at baseline.
    fn trend(&self, length: usize) -> (Option<Trend>, Option<Span>) {
        let windows = &self.record.windows[self.windows.end - length..self.windows.end];
        let levels: Vec<f64> = windows.iter().map(|w| w.all.backlog as f64).collect();
        let trend = Trend::of(&levels, self.record.window);
        let clause = self.health.clauses.iter().find(|c| c.figure == Figure::Backlog);
        let back = clause.and_then(|c| c.fixed_bound()).unwrap_or(0.0);
        (trend, trend.and_then(|t| t.drain(back)))
    }

    /// First to last window with errors above baseline + 1%, among those that the fault or what followed it touched.
    fn error_window(&self) -> Span {
        let bound = self.baseline.errors.unwrap_or(0.0) + 0.01;
        let first = (self.fault.from.0 / self.record.window.0.max(1)) as usize;
        let above = |w: &Window| {
            figure(Figure::Errors, std::slice::from_ref(w), None, self.record.window).is_some_and(|errors| errors > bound)
        };
        let windows = self.record.windows.get(first..self.windows.end).unwrap_or_default();
        match (windows.iter().position(above), windows.iter().rposition(above)) {
            (Some(from), Some(to)) => self.record.window * (to + 1 - from) as u64,
            _ => Span::ZERO,
        }
    }

    fn since_fault(&self, window: usize) -> Span {
        let start = Timestamp::ZERO + self.record.window * window as u64;
        Span::from_millis(start.since(self.fault.to).as_millis())
    }

    /// How long the run was seen after the fault.
    fn seen_for(&self) -> Span {
        self.since_fault(self.windows.end)
    }

    /// Whether the run was seen for as long as it had to recover. A fault that was removed a little late, by no more than a tenth of a
    /// window, does not take from that time.
    fn target_has_passed(&self) -> bool {
        self.seen_for() + self.record.window / 10 >= self.config.within
    }

    fn what_ended(&self) -> &'static str {
        if self.next < self.record.ended { "the next fault began" } else { "the run ended" }
    }

    fn inconclusive(&self, reason: String) -> Recovery {
        Recovery::inconclusive(Some(self.fault), &reason)
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Conditions;
    use super::super::scenario::{Scenario, Shape, condition};
    use super::super::verdict::{Judgement, judge};
    use super::*;
    use Class::{Degraded, Inconclusive, Recovered, RecoveredLate, Recovering, Stuck};

    /// Healthy within 20 s of the fault's end, and for 10 s.
    fn config() -> RecoveryConfig {
        let secs = Span::from_secs;
        let (after, horizon, require) = (None, None, Conditions::default());
        RecoveryConfig { after, within: secs(20), hold: secs(10), horizon, span: secs(5), operations: 200, require }
    }

    fn requiring(figure: Figure, text: &str) -> RecoveryConfig {
        RecoveryConfig { require: Conditions(vec![condition(figure, text)]), ..config() }
    }

    fn judged(scenario: &Scenario, config: RecoveryConfig) -> Recovery {
        let judgement = Judgement { recovery: Some(config), ..Judgement::default() };
        judge(&scenario.record(), &judgement).recovery.expect("a recovery is asked for")
    }

    fn check(name: &str, scenario: Scenario, config: RecoveryConfig, class: Class, says: &str) -> Recovery {
        let recovery = judged(&scenario, config);
        assert_eq!(recovery.class, class, "{name}: {}", recovery.sentence);
        assert!(recovery.sentence.contains(says), "{name}: `{}` does not say `{says}`", recovery.sentence);
        recovery
    }

    /// Thirty good seconds, an outage of ten.
    fn outage() -> Scenario {
        Scenario::new().good(30).fault(10, |w| w)
    }

    /// A retry storm: four attempts each, nothing comes of them.
    fn storm(w: Shape) -> Shape {
        w.goodput(0.01).retries(3.0).backlog(1600.0)
    }

    #[test]
    fn recovered() {
        for (name, scenario, time, last) in [
            ("at once", outage().good(40), 0, None),
            ("after a while", outage().with(7, |w| w.goodput(0.4)).good(40), 7, Some(Figure::Goodput)),
            ("exactly at the target", outage().with(20, |w| w.goodput(0.4)).good(40), 20, Some(Figure::Goodput)),
            ("the hold just fits", outage().with(5, storm).good(10), 5, Some(Figure::Goodput)),
            ("slow for a while", outage().with(6, |w| w.latency(45.0)).good(30), 6, Some(Figure::P99)),
            ("fast enough all along", outage().with(6, |w| w.latency(39.0)).good(30), 0, None),
            ("retries for a while", outage().with(6, |w| w.retries(0.5).errors(0.0)).good(30), 6, Some(Figure::RetryShare)),
            ("errors for a while", outage().with(6, |w| w.errors(0.1)).good(30), 6, Some(Figure::Errors)),
            ("errors below one per cent", outage().with(6, |w| w.errors(0.009)).good(30), 0, None),
            ("a queue that drains", outage().drain(8, 1600.0, 0.0, |w| w).good(30), 8, Some(Figure::Backlog)),
            ("the bound is a mean", outage().with(10, |w| w.backlog(27.0)).good(30), 0, None),
            ("more goodput than offered", outage().with(8, |w| w.goodput(1.5)).good(30), 0, None),
            ("less is offered now, and it is served", outage().with(40, |w| w.offered(0.5).goodput(0.5)), 0, None),
            ("a good moment does not count", outage().with(3, storm).good(8).with(4, storm).good(30), 15, Some(Figure::Goodput)),
            ("the last clause", outage().with(4, storm).with(5, |w| w.backlog(300.0)).good(20), 9, Some(Figure::Backlog)),
        ] {
            let recovery = check(name, scenario, config(), Recovered, "within the target of 20s");
            assert_eq!((recovery.recovery_time, recovery.last_clause), (Some(Span::from_secs(time)), last), "{name}");
            assert_eq!(recovery.relapses, 0, "{name}");
        }
    }

    #[test]
    fn recovered_late() {
        let late = outage().with(21, |w| w.goodput(0.4)).good(10);
        let recovery = check("a second late", late, config(), RecoveredLate, "healthy again 21s after outage ended, later than");
        assert_eq!(recovery.recovery_time, Some(Span::from_secs(21)));
        check("a slow drain", outage().drain(60, 6000.0, 0.0, |w| w).good(20), config(), RecoveredLate, "backlog cleared last");
    }

    #[test]
    fn not_recovered() {
        let slow = || outage().drain(40, 1600.0, 1200.0, |w| w.latency(900.0));
        let horizon = |s| RecoveryConfig { horizon: Some(Span::from_secs(s)), ..config() };
        let at_half = |goodput| outage().with(40, move |w| w.goodput(goodput).backlog(1600.0));
        for (name, scenario, config, class, says) in [
            ("a storm", outage().with(40, storm), config(), Stuck, "the backlog of 1600 does not fall"),
            ("its numbers", outage().with(40, storm), config(), Stuck, "goodput is 4/s (1% of"),
            ("its clauses", outage().with(40, storm), config(), Stuck, "retry_share 75% (wanted <= 5%)"),
            ("fails fast, holds nothing", outage().with(40, |w| w.goodput(0.0)), config(), Stuck, "40s after outage"),
            ("at 40%", at_half(0.4), config(), Stuck, "40%"),
            ("just under half", at_half(0.49), config(), Stuck, ""),
            ("half", at_half(0.5), config(), Degraded, "50%"),
            ("at 80%", outage().with(40, |w| w.goodput(0.8)), config(), Degraded, "errors 20%"),
            ("nothing waits", outage().with(40, |w| w.goodput(0.8).backlog(0.0)), config(), Degraded, "/s offered); broken"),
            ("slow only", outage().with(40, |w| w.latency(400.0)), config(), Degraded, "p99"),
            ("a rising backlog", outage().drain(40, 100.0, 9000.0, |w| w.goodput(0.4)), config(), Stuck, "does not fall"),
            ("more is offered now", outage().with(40, |w| w.offered(1.2).goodput(0.3)), config(), Degraded, "more is offered"),
            ("a little more is offered now", outage().with(40, |w| w.offered(1.09).goodput(0.3)), config(), Stuck, ""),
            ("clients that hang", outage().good(1).with(39, |w| w.offered(0.0).goodput(0.0)), config(), Stuck, "0/s"),
            ("exactly when the target has passed", outage().with(20, storm), config(), Stuck, ""),
            ("drains within the horizon", slow(), horizon(180), Recovering, "falls by 10.0/s and would be gone in 1m58s"),
            ("drains beyond the horizon, which is as long as the run", slow(), config(), Degraded, "falls by 10.0/s"),
            ("drains, serving nothing yet", outage().drain(40, 1600.0, 400.0, storm_drain), config(), Recovering, "gone in"),
            ("lost again for good", outage().good(15).with(40, storm), config(), Stuck, "healthy for a while, then lost"),
        ] {
            let recovery = check(name, scenario, config, class, says);
            assert_eq!(recovery.last_clause, None, "{name}");
        }
    }

    fn storm_drain(w: Shape) -> Shape {
        w.goodput(0.1).retries(3.0)
    }

    /// An outage that really ended so many milliseconds after its time.
    fn late(millis: u64) -> Scenario {
        outage().later(Span::from_millis(millis))
    }

    #[test]
    fn the_end_of_the_run_cuts_the_evidence() {
        for (name, scenario, class, says) in [
            (
                "the hold is cut, in time",
                outage().with(5, storm).good(9),
                Inconclusive,
                "it takes 10s to hold; make the run longer",
            ),
            ("the hold is cut, late", outage().with(25, storm).good(9), Recovering, "it began later than the target of 20s"),
            ("the target has not passed", outage().with(19, storm), Inconclusive, "before the target of 20s had passed"),
            ("the fault lasts to the end", outage(), Inconclusive, "nothing was seen after outage"),
            ("three seconds only", outage().good(3), Inconclusive, "before the target"),
            ("nothing happens", outage().with(40, |w| w.silent()), Inconclusive, "too few operations after outage"),
            ("nothing is asked any more", outage().with(20, storm).with(20, |w| w.silent()), Inconclusive, "nothing was asked"),
            ("few samples", Scenario::new().rate(10.0).good(30).fault(10, |w| w).good(19), Inconclusive, "too few operations"),
            ("a fault that was removed a moment late", late(1).with(20, storm), Stuck, ""),
            ("lost, back, and cut", outage().good(20).with(8, storm).good(7), Recovering, "the run ended 7s later"),
        ] {
            check(name, scenario, config(), class, says);
        }
        let patient = RecoveryConfig { within: Span::from_secs(90), ..config() };
        let recovery = check("all but passed", late(400).with(90, storm), patient, Inconclusive, "before the target of 1m30s");
        assert_eq!(recovery.unrecovered_for, Span::from_millis(89_600), "rounding is for sentences");
        let mut record = outage().with(5, storm).good(10).record();
        record.ended = record.ended - Span::from_millis(1);
        let judgement = Judgement { recovery: Some(config()), ..Judgement::default() };
        let class = judge(&record, &judgement).recovery.map(|r| r.class);
        assert_eq!(class, Some(Inconclusive), "a window that the end cuts short is no evidence");
    }

    #[test]
    fn spans_grow_until_they_hold_enough() {
        let slow = |ill| Scenario::new().rate(10.0).good(30).fault(10, |w| w).with(10, move |w| w.goodput(ill)).good(60);
        let recovery = check("10/s", slow(0.0), config(), Recovered, "");
        let time = recovery.recovery_time.unwrap().as_secs_f64();
        assert!((9.0..=10.0).contains(&time), "a span of 20 s may begin a second before all is well: {time}");
        check("half of it", slow(0.5), RecoveryConfig { operations: 50, ..config() }, Recovered, "healthy again 10s");
        // A closed load that hangs offers nothing; its silence must not pass for health.
        let closed = outage().with(12, |w| w.offered(0.0).goodput(0.0).backlog(8.0)).good(30);
        let recovery = check("a closed load that hangs", closed, config(), Recovered, "");
        assert_eq!(recovery.recovery_time, Some(Span::from_secs(12)));
    }

    #[test]
    fn noise_does_not_decide() {
        for (name, scenario, class) in [
            ("well", outage().good(120), Recovered),
            ("well after a while", outage().with(10, storm).good(120), Recovered),
            ("a storm", outage().with(120, storm), Stuck),
            ("degraded", outage().with(120, |w| w.goodput(0.8)), Degraded),
            ("full, and staying so", outage().with(120, |w| w.goodput(0.4).backlog(4000.0)), Stuck),
            ("draining", outage().drain(60, 6000.0, 2000.0, |w| w), Recovering),
        ] {
            let recovery = check(name, scenario.noise(0.1), config(), class, "");
            assert_eq!(recovery.relapses, 0, "{name}: {}", recovery.sentence);
        }
    }

    #[test]
    fn relapses_are_counted() {
        let dip = |scenario: Scenario| scenario.with(8, |w| w.goodput(0.3)).good(20);
        let once = check("once", dip(outage().good(20)), config(), Recovered, "was lost once, and came back");
        assert_eq!((once.relapses, once.recovery_time), (1, Some(Span::ZERO)));
        let twice = check("twice", dip(dip(outage().good(20))), config(), Recovered, "lost 2 times");
        assert_eq!(twice.relapses, 2);
        let gone = check("for good", dip(outage().good(20)).with(30, storm), config(), Stuck, "then lost");
        assert_eq!((gone.relapses, gone.recovery_time), (2, Some(Span::ZERO)));
        let before = check("not before it held", outage().good(5).with(5, storm).good(20), config(), Recovered, "");
        assert_eq!(before.relapses, 0);
        let small =
            check("less than a clause notices", outage().good(20).with(1, |w| w.goodput(0.96)).good(20), config(), Recovered, "");
        assert_eq!(small.relapses, 0);
    }

    #[test]
    fn clauses_are_fields_of_the_plan() {
        let slow = || outage().with(40, |w| w.latency(60.0));
        let lean = || outage().with(40, |w| w.goodput(0.9).errors(0.0));
        check("p99 at 3x", slow(), requiring(Figure::P99, "<= 3.1x baseline"), Recovered, "");
        check("p99 by number", slow(), requiring(Figure::P99, "<= 50ms"), Degraded, "p99");
        check("goodput at 95%", lean(), config(), Degraded, "goodput");
        check("goodput at 90%", lean(), requiring(Figure::Goodput, ">= 90% of baseline"), Recovered, "");
        check("goodput by number", lean(), requiring(Figure::Goodput, ">= 399/s"), Degraded, "goodput 360/s (wanted >= 399/s)");
        check("an added clause", outage().good(40), requiring(Figure::Attempts, "<= 0.9x baseline"), Degraded, "attempts");
        check("a backlog", outage().with(40, |w| w.backlog(99.0)), requiring(Figure::Backlog, "<= 100"), Recovered, "");
        check("never", outage().good(40), requiring(Figure::Relapses, "== 0"), Degraded, "relapses unknown");
        let quick = Scenario::new().with(30, |w| w.latency(0.3)).fault(10, |w| w).with(40, |w| w.latency(5.0));
        check("the floor", quick.clone(), config(), Recovered, "");
        check("the floor of a multiple", quick, requiring(Figure::P99, "<= 1.5x baseline"), Recovered, "");
    }

    #[test]
    fn faults_start_and_stop_the_clock() {
        let two = || outage().good(30).fault(10, |w| w).with(40, storm);
        check("the last fault", two(), config(), Stuck, "after outage 2");
        let after = |name: &str| crate::config::At { value: name.to_string(), place: Default::default() };
        let first = RecoveryConfig { after: Some(after("outage")), ..config() };
        let recovery = check("the first, until the second", two(), first.clone(), Recovered, "after outage ended");
        assert_eq!(recovery.relapses, 0, "what the second fault breaks is no relapse");
        check(
            "cut by the second",
            outage().good(9).fault(10, |w| w).good(40),
            first.clone(),
            Inconclusive,
            "the next fault began 9s later",
        );
        for (name, from, to) in [("begins as it ends", 40, 60), ("overlaps", 35, 60), ("began before it", 20, 80)] {
            let mut record = outage().with(40, storm).record();
            let at = |seconds| Timestamp::ZERO + Span::from_secs(seconds);
            let flood = FaultRecord { name: "flood".into(), from: at(from), to: at(to), ..record.faults[0].clone() };
            record.faults.push(flood);
            let judgement =
                Judgement { recovery: Some(RecoveryConfig { operations: 1, ..first.clone() }), ..Judgement::default() };
            let recovery = judge(&record, &judgement).recovery.unwrap();
            assert_eq!(recovery.class, Inconclusive, "{name}: {}", recovery.sentence);
            assert!(recovery.sentence.contains("flood acted when outage ended"), "{name}: {}", recovery.sentence);
            record.faults[1].to = at(40) + Span::from_millis(3);
            let class = judge(&record, &judgement).recovery.map(|r| r.class);
            assert_eq!(class, Some(Stuck), "{name}: what ends together disturbs nothing");
        }
        let nowhere = RecoveryConfig { after: Some(after("flood")), ..config() };
        check("a fault that was not", two(), nowhere, Inconclusive, "the fault flood did not take place");
        check("no fault at all", Scenario::new().good(60), config(), Inconclusive, "no fault took place");
    }

    #[test]
    fn the_error_window_is_measured_from_the_faults_start() {
        let window = |scenario: Scenario| {
            let recovery = judged(&scenario, config());
            (recovery.error_window.unwrap().as_secs_f64(), recovery.error_window_ratio.unwrap())
        };
        assert_eq!(window(outage().good(40)), (10.0, 1.0));
        assert_eq!(window(outage().with(15, |w| w.goodput(0.5)).good(40)), (25.0, 2.5));
        assert_eq!(window(outage().good(10).with(1, |w| w.errors(0.02)).good(29)), (21.0, 2.1));
        assert_eq!(window(Scenario::new().good(30).fault(10, |w| w.goodput(1.0)).good(40)), (0.0, 0.0));
        let silent_first = Scenario::new().good(30).fault(10, |w| w.silent()).with(5, storm).good(40);
        assert_eq!(window(silent_first), (5.0, 0.5), "windows in which no attempt ended have no errors");
    }
}
