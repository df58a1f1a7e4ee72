//! `report.html`: what a run found, to be seen in ten seconds.
//!
//! A page is one file that works offline, without a script, under a strict content policy and on paper. [`frame`] has the
//! page around everything (`page(banner, sections, version)`), [`chart`] the drawings, [`table`] tables and facts,
//! [`words`] the taming of text. Blocks of a [`frame::Section`] are markup made by these; what comes from a plan must pass
//! [`words::plain`] and be escaped, which the templates in `templates/report` and the charts do.

pub mod chart;
pub mod frame;
mod run;
pub mod table;
pub mod words;

pub use run::run;
