//! What the benchmarks share: timing side by side, medians, output.

use std::io::Write;
use std::time::Instant;

/// Runs `work`; gives its result and how many seconds it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let began = Instant::now();
    let result = work();
    (result, began.elapsed().as_secs_f64())
}

/// The median; of an even number the higher of the two in the middle.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Prints a line; a reader that has gone is no error.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
