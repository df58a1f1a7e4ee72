//! What the pages of many runs share: their curves, their recovery times, their rows.

pub mod curves;
pub mod rows;
pub mod setup;
pub mod times;

use super::super::curves::{CurveResult, CurvesResult};
use super::super::result::{RecoveryClass, RunOutcome};
use super::super::seeds::SeedRow;
use super::chart::{Backdrop, Band, Colour, Dash};
use super::frame::Tone;
use crate::metrics::Figure;

/// The runs of one policy, or of the plan's own.
#[derive(Clone, Copy)]
pub struct Runs<'a> {
    /// The policy; empty for the plan's own.
    pub name: &'a str,
    /// One for each run, in the order of the seeds.
    pub rows: &'a [SeedRow],
    /// What their curves have in common.
    pub curves: Option<&'a CurvesResult>,
    /// The seed of the worst.
    pub worst: Option<u64>,
    /// The colour of its lines.
    pub colour: Colour,
    /// How they are drawn.
    pub dash: Dash,
}

impl<'a> Runs<'a> {
    /// The runs whose curve is there.
    pub fn drawn(&self) -> impl Iterator<Item = (&'a SeedRow, &'a CurveResult)> + use<'a> {
        self.rows.iter().filter_map(|row| row.curve.as_ref().map(|curve| (row, curve)))
    }

    /// The runs from the worst to the best; of equals the first comes first.
    pub fn worst_first(&self) -> Vec<&'a SeedRow> {
        let mut rows: Vec<&SeedRow> = self.rows.iter().collect();
        rows.sort_by(|a, b| badness(b).0.cmp(&badness(a).0).then_with(|| badness(b).1.total_cmp(&badness(a).1)));
        rows
    }
}

/// How bad a run is: by its outcome, then by how long recovery took.
fn badness(row: &SeedRow) -> (u8, f64) {
    let outcome = match row.outcome {
        RunOutcome::Pass => 0,
        RunOutcome::Inconclusive => 1,
        RunOutcome::Fail => 2,
        RunOutcome::Aborted => 3,
    };
    let time = match Time::of(row) {
        Time::After(seconds) => seconds,
        Time::Never => f64::INFINITY,
        Time::Unknown => -1.0,
    };
    (outcome, time)
}

/// When a run was healthy again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Time {
    /// So many seconds after the end of the fault.
    After(f64),
    /// Not as long as it lasted.
    Never,
    /// Nobody knows.
    Unknown,
}

impl Time {
    /// That of this run.
    pub fn of(row: &SeedRow) -> Self {
        let known = row.class.is_some_and(|class| class != RecoveryClass::Inconclusive) && row.outcome != RunOutcome::Aborted;
        match row.figures.get(Figure::RecoveryTime.word()).copied().flatten() {
            Some(seconds) => Self::After(seconds),
            None if known => Self::Never,
            None => Self::Unknown,
        }
    }

    /// In words.
    pub fn words(self) -> String {
        match self {
            Self::After(seconds) => super::super::seeds_text::shown(Figure::RecoveryTime.word(), Some(seconds)),
            Self::Never => "never".into(),
            Self::Unknown => super::words::UNKNOWN.into(),
        }
    }
}

/// A word and its tone for an outcome.
pub fn outcome(outcome: RunOutcome) -> (Tone, &'static str) {
    match outcome {
        RunOutcome::Pass => (Tone::Good, "PASS"),
        RunOutcome::Fail => (Tone::Bad, "FAIL"),
        RunOutcome::Inconclusive => (Tone::Unsure, "INCONCLUSIVE"),
        RunOutcome::Aborted => (Tone::Muted, "ABORTED"),
    }
}

/// Faults that are shaded in a small chart.
const FEW_BANDS: usize = 8;

/// The same behind a small chart: the first few, without their names.
pub fn small_backdrop(curves: &CurvesResult, columns: usize) -> Backdrop {
    let mut backdrop = backdrop(curves, columns);
    backdrop.bands.truncate(FEW_BANDS);
    backdrop.bands.iter_mut().for_each(|band| band.name = "fault".into());
    backdrop
}

/// What stands behind curves: the faults. A point of a run may be drawn as so many columns.
pub fn backdrop(curves: &CurvesResult, columns: usize) -> Backdrop {
    let faulty = curves.phases.iter().filter(|phase| !phase.faults.is_empty());
    let band = |phase: &super::super::curves::CurvePhase| Band {
        from_ms: phase.from_ms as f64,
        to_ms: phase.to_ms as f64,
        name: phase.name.clone(),
    };
    Backdrop {
        span_ms: curves.length_ms as f64,
        window_ms: curves.step_ms as f64 / columns.max(1) as f64,
        bands: faulty.map(band).collect(),
        ..Backdrop::default()
    }
}

#[cfg(test)]
mod tests;
