//! Events to windows and histograms.

pub mod figure;
pub mod record;

pub use figure::{Figure, Unit};
pub use record::{Counts, FaultRecord, LimitReached, RunEvent, RunRecord, Sketch, StopReason, Window};
pub mod recorder;
pub mod series;
pub use recorder::{Recorder, Slice, Totals};
pub use series::Series;
pub use record::ServiceCounts;
