//! Gates to findings.
//!
//! A gate without enough evidence is inconclusive, never passed. Enough is: for a quantile, as many samples as it takes for
//! one to lie above it (100 for p99); for a share or a factor, 20; for a comparison with the baseline, a baseline that
//! can be used. `recovery_time` of a run that has not recovered is no shorter than the time for which that was seen, which may be
//! enough to fail a gate and is never enough to pass `<=`. Figures of the run as a whole (`recovery_time`, `error_window`, `relapses`,
//! `wasted_work`, `duplicates`) are not known by fleet, nor of a part of the run.

use super::baseline::Measured;
use super::condition::{Bound, Operator};
use super::config::{Class, During, GateConfig};
use super::recovery::{Recovery, whole_windows, windows_from};
use crate::config::Place;
use crate::metrics::{FaultRecord, Figure, RunRecord, ServiceCounts, figure, samples};
use crate::time::Timestamp;
use std::ops::Range;

/// What became of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It holds.
    Pass,
    /// It does not.
    Fail,
    /// There is not enough evidence.
    Inconclusive,
}

/// One gate's result.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The gate as text: `amplification <= 1.3x during recovery`.
    pub gate: String,
    /// What became of it.
    pub status: Status,
    /// What was seen, in the form that a plan writes it; where nothing was, why.
    pub observed: String,
    /// What was wanted, multiples of the baseline worked out: `<= 2x baseline (80ms)`.
    pub wanted: String,
    /// What was seen, in the figure's unit.
    pub value: Option<f64>,
    /// The bound, in the figure's unit.
    pub bound: Option<f64>,
    /// Where the gate stands in the plan.
    pub place: Place,
}

impl Status {
    /// Its word in results.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// What gates are judged by.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The run.
    pub record: &'a RunRecord,
    /// Its baseline.
    pub baseline: &'a Measured,
    /// Its recovery, where the plan asks for one.
    pub recovery: Option<&'a Recovery>,
    /// The fault whose end recovery starts with.
    pub fault: Option<&'a FaultRecord>,
    /// The names of the fleets, by number.
    pub fleets: &'a [String],
    /// Why the measurements cannot be trusted; none where they can.
    pub distrust: Option<&'a str>,
    /// Why nothing can be said of retries; none where it can.
    pub doubt: Option<&'a str>,
}

/// Something seen: a value, or a bound below it.
enum Observation {
    Exactly(f64),
    AtLeast(f64),
}

/// Judges one gate.
pub fn find(gate: &GateConfig, evidence: &Evidence) -> Finding {
    let name = gate.condition.figure;
    let comparison = &gate.condition.comparison;
    let seen = evidence.observe(gate);
    let bound = evidence.bound(gate);
    // A value is shown with the digits that it takes to see on which side of its bound it lies.
    let shown =
        |value: f64| bound.as_ref().map_or_else(|_| name.unit().show(value), |bound| name.unit().show_beside(value, *bound).0);
    let wanted = match (comparison.bound, &bound) {
        (Bound::OfBaseline(_), Ok(bound)) => {
            let text = match &seen {
                Ok(Observation::Exactly(value) | Observation::AtLeast(value)) => name.unit().show_beside(*value, *bound).1,
                Err(_) => name.unit().show(*bound),
            };
            format!("{} ({text})", comparison.text)
        }
        _ => comparison.text.clone(),
    };
    let (status, observed, value) = match (&seen, &bound) {
        (Ok(seen), Ok(bound)) => {
            let (value, text) = match seen {
                Observation::Exactly(value) => (*value, shown(*value)),
                Observation::AtLeast(value) => (*value, format!("more than {}", shown(*value))),
            };
            let doubt = evidence.doubt.filter(|_| name.is_of_retries());
            match evidence.distrust.or(doubt).filter(|_| name != Figure::LagP99) {
                Some(reason) => (Status::Inconclusive, format!("{text}, but {reason}"), Some(value)),
                None => (seen.status(comparison.operator, *bound), text, Some(value)),
            }
        }
        (Err(reason), _) | (_, Err(reason)) => (Status::Inconclusive, reason.clone(), None),
    };
    Finding { gate: describe(gate), status, observed, wanted, value, bound: bound.ok(), place: gate.place }
}

/// A gate as text: `amplification <= 1.3x during recovery`.
pub fn describe(gate: &GateConfig) -> String {
    let during = match &gate.during {
        During::Run => String::new(),
        During::Baseline => " during baseline".into(),
        During::Recovery => " during recovery".into(),
        During::Step(name) => format!(" during {name}"),
    };
    let fleet = gate.fleet.as_ref().map_or(String::new(), |fleet| format!(" of {fleet}"));
    let at = gate.at.as_ref().map_or(String::new(), |at| format!(" at {at}"));
    format!("{}{fleet}{at} {}{during}", gate.condition.figure.word(), gate.condition.comparison.text)
}

impl Observation {
    fn status(&self, operator: Operator, bound: f64) -> Status {
        match (self, operator) {
            (Self::Exactly(value), _) if operator.holds(*value, bound) => Status::Pass,
            (Self::Exactly(_), _) => Status::Fail,
            (Self::AtLeast(value), Operator::AtMost | Operator::Below) if !operator.holds(*value, bound) => Status::Fail,
            (Self::AtLeast(value), Operator::AtLeast | Operator::Above) if operator.holds(*value, bound) => Status::Pass,
            (Self::AtLeast(value), Operator::Exactly) if *value > bound => Status::Fail,
            (Self::AtLeast(_), _) => Status::Inconclusive,
        }
    }
}

impl Evidence<'_> {
    fn observe(&self, gate: &GateConfig) -> Result<Observation, String> {
        let name = gate.condition.figure;
        let fleet = self.fleet(gate)?;
        if name == Figure::WaveScore {
            return self.waves(gate, fleet);
        }
        if matches!(name, Figure::RecoveryTime | Figure::ErrorWindow | Figure::Relapses | Figure::WastedWork | Figure::Duplicates)
        {
            return self.of_the_whole(gate);
        }
        let windows = self.windows(gate)?;
        let windows = self.record.windows.get(windows).unwrap_or_default();
        let (have, need) = (samples(name, windows, fleet), needed(name));
        let value = figure(name, windows, fleet, self.record.window);
        match value {
            Some(value) if have >= need => Ok(Observation::Exactly(value)),
            Some(_) => Err(format!("too few samples: {have}, and it takes {need}")),
            None => Err("no evidence: nothing of the kind happened there".into()),
        }
    }

    fn of_the_whole(&self, gate: &GateConfig) -> Result<Observation, String> {
        let name = gate.condition.figure;
        if gate.fleet.is_some() {
            return Err(format!("{} is known over all fleets only: leave `fleet` out", name.word()));
        }
        if matches!(name, Figure::WastedWork | Figure::Duplicates) {
            return match gate.during {
                During::Run => of_service(name, self.record.service.as_ref()),
                _ => Err(format!("{} is known for the whole run only: leave `during` out", name.word())),
            };
        }
        let recovery = self.recovery.ok_or_else(|| format!("{} takes a `recovery` in the plan", name.word()))?;
        let unknown = || recovery.sentence.clone();
        let shown = recovery.class != Class::Inconclusive;
        match name {
            Figure::RecoveryTime => match recovery.recovery_time {
                Some(time) => Ok(Observation::Exactly(time.as_secs_f64())),
                None if !recovery.unrecovered_for.is_zero() => Ok(Observation::AtLeast(recovery.unrecovered_for.as_secs_f64())),
                None => Err(unknown()),
            },
            Figure::ErrorWindow => recovery.error_window.map(|w| Observation::Exactly(w.as_secs_f64())).ok_or_else(unknown),
            _ if recovery.recovery_time.is_some() && shown => Ok(Observation::Exactly(recovery.relapses as f64)),
            _ if recovery.recovery_time.is_some() => Ok(Observation::AtLeast(recovery.relapses as f64)),
            _ => Err("there was no recovery that could have been lost".into()),
        }
    }

    fn waves(&self, gate: &GateConfig, fleet: Option<usize>) -> Result<Observation, String> {
        if gate.during != During::Run {
            return Err("wave_score is known from the first fault to the end only: leave `during` out".into());
        }
        let waves = self.record.waves.as_ref();
        let taps = waves.and_then(|waves| fleet.map_or(Some(&waves.all), |fleet| waves.fleets.get(fleet)));
        let wave = taps.and_then(|taps| taps.arrived);
        let none = "too little to see waves in: it takes three whole periods, and 20 requests in each";
        wave.map(|wave| Observation::Exactly(wave.score())).ok_or_else(|| none.into())
    }

    fn bound(&self, gate: &GateConfig) -> Result<f64, String> {
        let name = gate.condition.figure;
        let factor = match gate.condition.comparison.bound {
            Bound::Absolute(bound) => return Ok(bound),
            Bound::OfBaseline(factor) => factor,
        };
        if let Some(trouble) = &self.baseline.trouble {
            return Err(trouble.clone());
        }
        let fleet = self.fleet(gate)?;
        let baseline = self.baseline.baseline.as_ref().ok_or("there is no baseline")?;
        let (have, need) = (samples(name, baseline.windows_of(self.record), fleet), needed(name));
        match baseline.figure(self.record, name, fleet) {
            Some(value) if have >= need => Ok(value * factor),
            Some(_) => Err(format!("too few samples in the baseline: {have}, and it takes {need}")),
            None => Err(format!("the baseline has no {}", name.word())),
        }
    }

    fn fleet(&self, gate: &GateConfig) -> Result<Option<usize>, String> {
        match &gate.fleet {
            None => Ok(None),
            Some(name) => {
                let found = self.fleets.iter().position(|fleet| fleet == name);
                found.map(Some).ok_or_else(|| format!("there is no fleet `{name}`"))
            }
        }
    }

    /// The numbers of the windows that a gate looks at. Rates take no window that the run's end cut short.
    fn windows(&self, gate: &GateConfig) -> Result<Range<usize>, String> {
        let counted = matches!(
            gate.condition.figure,
            Figure::Failed | Figure::Lost | Figure::Unresolved | Figure::Refused | Figure::Amplification
        );
        let end = if counted { self.record.windows.len() } else { whole_windows(self.record) };
        let from = |at: Timestamp| windows_from(self.record, at).min(end);
        match &gate.during {
            During::Run => Ok(0..end),
            During::Baseline => {
                let trouble = || self.baseline.trouble.clone().unwrap_or_else(|| "there is no baseline".into());
                self.baseline.baseline.as_ref().map(|b| b.windows.clone()).ok_or_else(trouble)
            }
            During::Recovery => {
                let fault = self.fault.ok_or("no fault took place that the run could recover from")?;
                Ok(from(fault.to)..end)
            }
            During::Step(name) => {
                let step = self.record.faults.iter().find(|f| f.name == *name && f.from < self.record.ended);
                let step = step.ok_or_else(|| format!("`{name}` did not take place"))?;
                let first = from(step.from);
                Ok(first..from(step.to).max(first))
            }
        }
    }
}

/// What the target counted: work for clients that had gone, as a share of all of it; operations carried out again.
fn of_service(name: Figure, service: Option<&ServiceCounts>) -> Result<Observation, String> {
    let taken = || format!("{} takes the built-in target, which counts its own work", name.word());
    let service = &service.ok_or_else(taken)?.of;
    let wasted = service.wasted_share().ok_or("the target did no work")?;
    let value = if name == Figure::Duplicates { service.duplicates_executed as f64 } else { wasted };
    Ok(Observation::Exactly(value))
}

/// How many samples a figure takes to be evidence.
pub(crate) fn needed(name: Figure) -> u64 {
    match name {
        Figure::P999 => 1000,
        Figure::P99 | Figure::AttemptP99 | Figure::LagP99 => 100,
        Figure::P90 => 10,
        Figure::P50 => 2,
        Figure::Success | Figure::Errors | Figure::RetryShare | Figure::Amplification | Figure::LaunderedRetries => 20,
        _ => 1,
    }
}
