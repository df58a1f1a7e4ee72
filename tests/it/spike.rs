//! A spike into a queue: the example's rows on fewer seeds than the example takes.

#[path = "../../examples/spike_table/model.rs"]
mod model;

use model::{ROWS, Seen, summary};
