//! What both engines do alike: what a run's machines are made from, which fault began and ended when, and what its record
//! says of bounds.

mod acts;
mod faults;
mod fleets;
mod limits;
mod producers;

pub use acts::{Acts, blank, left_out};
pub use faults::{Faults, without_toxiproxy};
pub use fleets::{Part, fleet_number, machines, origins, recorder, shared_state};
pub use limits::{UNCOUNTED, limits_reached};
pub use producers::{Enqueue, Producers};

use crate::metrics::{RunRecord, TapRecord, waves};
use crate::plan::Plan;
use crate::time::Span;

/// Looks for waves in a record whose series is complete, at its taps too.
pub fn look_for_waves(plan: &Plan, record: &mut RunRecord) {
    record.waves = Some(waves::measure(record, &plan.periods()));
    let at_tap = |tap: &TapRecord| record.at_tap(&tap.name).map(|seen| waves::measure(&seen, &[]));
    let seen: Vec<_> = record.taps.iter().map(at_tap).collect();
    record.taps.iter_mut().zip(seen).for_each(|(tap, waves)| tap.waves = waves);
}

/// How long a window of the series is.
pub const WINDOW: Span = Span::from_secs(1);
