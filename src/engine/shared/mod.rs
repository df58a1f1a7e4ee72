//! What both engines do alike: what a run's machines are made from, which fault began and ended when, and what its record
//! says of bounds.

mod faults;
mod fleets;
mod limits;

pub use faults::Faults;
pub use fleets::{fleet_number, machines, origins, shared_state};
pub use limits::limits_reached;

use crate::time::Span;

/// How long a window of the series is.
pub const WINDOW: Span = Span::from_secs(1);
