//! A run's record to bytes: text, JSON, CSV, HDR interval log, event log, and the schemas of what it reads and writes.

pub mod audit;
pub mod bisect;
pub mod calibrate;
pub mod compare;
pub mod compare_text;
pub mod curve;
pub mod events;
pub mod folder;
pub mod hlog;
pub mod html;
pub mod layout;
pub mod plan_text;
pub mod policies;
pub mod progress;
pub mod result;
#[cfg(test)]
mod sample;
pub mod schema;
pub mod seeds;
pub mod seeds_progress;
pub mod seeds_text;
mod service_text;
pub mod text;
pub mod windows_csv;
