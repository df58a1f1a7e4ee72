//! A run's record to bytes: text, HTML, Markdown, JSON, CSV, JUnit, annotations, HDR interval log, percentile text, event log, and the schemas of what it
//! reads and writes.

pub mod audit;
pub mod bisect;
pub mod calibrate;
pub mod cases;
pub mod compare;
pub mod compare_text;
pub mod curve;
pub mod curves;
pub mod events;
mod fault_text;
pub mod folder;
pub mod github;
pub mod hgrm;
pub mod hlog;
pub mod html;
pub mod junit;
pub mod layout;
pub mod markdown;
#[cfg(feature = "otlp")]
pub mod otlp;
pub mod plan_text;
pub mod policies;
pub mod progress;
pub mod prometheus;
pub mod published;
#[cfg(test)]
mod reference;
pub mod result;
#[cfg(test)]
mod sample;
pub mod schema;
pub mod seeds;
pub mod seeds_progress;
pub mod seeds_text;
mod service_text;
pub mod text;
#[cfg(feature = "live")]
pub mod tui;
pub mod windows_csv;
