//! Events to windows and histograms.
//!
//! Owns what is booked where: a [`Recorder`] per shard turns events into [`Slice`]s of windows and into histograms, a
//! [`Series`] merges the shards' into a [`RunRecord`], and [`figure()`] reads any figure from any stretch of windows.
//! A [`Tap`] counts what passes one of a plan's proxies.
//! Leaves to others: what a figure means for the run (`gate`), and how it is written down (`report`).

mod destinations;
pub mod figure;
pub mod record;
pub mod recorder;
pub mod series;
pub mod sketch;
mod spectrum;
pub mod stretch;
pub mod tap;
pub mod waves;

pub use destinations::{DestinationCounts, median};
pub use figure::{Figure, Unit};
pub use record::{
    ActionOutcome, ActionRecord, Calls, Connects, Counts, FaultRecord, Left, LimitReached, NoteRecord, RunEvent, RunRecord,
    ServiceCounts, StopReason, Summary, Window,
};
pub use recorder::{Acted, Recorder, Slice, Totals};
pub use series::Series;
pub use sketch::{Sketch, Tally};
pub use stretch::{figure, mean_level, samples};
pub use tap::{Fingerprint, Identity, Tap, TapEnd, TapRecord, TapWindow};
pub use waves::{Taps, Wave, WaveClass, Waves};
