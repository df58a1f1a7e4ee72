//! What both engines do alike: what a run's machines are made from, which fault began and ended when, and what its record
//! says of bounds.

mod faults;
mod fleets;
mod limits;
mod producers;

pub use faults::Faults;
pub use fleets::{Part, fleet_number, machines, origins, recorder, shared_state};
pub use limits::limits_reached;
pub use producers::{Enqueue, Producers, enqueued};

use crate::time::Span;

/// How long a window of the series is.
pub const WINDOW: Span = Span::from_secs(1);
