//! The live view: a run on a terminal while it goes on.
//!
//! [`View`] hears the run and keeps what is shown, in bounded memory; [`draw`] shows it at a moment and does nothing else; [`Desk`] says what a
//! key does. None of them knows a terminal: raw mode, keys and signals are left to `cli/tui.rs`, and the time is an argument.
//!
//! Nothing is said by colour alone, names are cleaned of what a terminal would obey, and a locale without UTF-8 gets ASCII.

mod chart;
mod draw;
mod editor;
mod keys;
mod rows;
mod series;
mod view;

pub use draw::draw;
pub use keys::{Deed, Desk, Key};
pub use view::{Facts, View};

#[cfg(test)]
mod tests;
