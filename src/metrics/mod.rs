//! Events to windows and histograms.

pub mod figure;
pub mod record;

pub use figure::{Figure, Unit};
pub use record::{Counts, FaultRecord, LimitReached, RunEvent, RunRecord, ServiceCounts, Sketch, StopReason, Summary, Window};
