//! Operation latency over time as a map: how many operations that succeeded took how long, from the intended start.

use super::build::coarse;
use crate::metrics::{RunRecord, Tally};
use crate::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most columns of a map.
const COLUMNS: usize = 240;
/// Rows for each factor of ten.
const PER_DECADE: i32 = 8;

/// A map of counts: the time at which they succeeded to the right, latency upwards in even steps of its logarithm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeatMap {
    /// How long a column is, in milliseconds: a whole number of windows.
    pub column_ms: u64,
    /// The edges of the rows in milliseconds, from below: row r holds latencies from edge r to below edge r + 1, the first all below it and the last all above.
    pub edges_ms: Vec<f64>,
    /// The columns, gapless from the start of the run.
    pub columns: Vec<HeatColumn>,
}

/// One column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeatColumn {
    /// When it begins, in milliseconds since the run began.
    pub t_ms: u64,
    /// The number of the lowest row in use.
    pub first: usize,
    /// Counts of that row and those above it, up to the highest in use; empty where nothing succeeded.
    pub counts: Vec<u64>,
}

/// The map of a run; none where nothing succeeded.
pub(super) fn heat(record: &RunRecord) -> Option<HeatMap> {
    let together = record.windows.len().div_ceil(COLUMNS).max(1);
    let columns: Vec<Tally> = record
        .windows
        .chunks(together)
        .map(|windows| {
            let mut tally = Tally::default();
            windows.iter().for_each(|window| tally.merge(&window.all.latency));
            tally
        })
        .collect();
    let least = columns.iter().filter_map(|column| column.quantile(0)).min()?;
    let most = columns.iter().filter_map(|column| column.quantile(1000)).max()?;
    let (low, high) = (step_below(least), step_below(most) + 1);
    let edges: Vec<f64> = (low..=high).map(edge).collect();
    let column_ms = record.window.as_millis() * together as u64;
    let columns = columns.iter().enumerate().map(|(n, tally)| column(n as u64 * column_ms, tally, low)).collect();
    Some(HeatMap { column_ms, edges_ms: edges.into_iter().filter_map(coarse).collect(), columns })
}

fn column(t_ms: u64, tally: &Tally, low: i32) -> HeatColumn {
    let (mut first, mut counts) = (0, Vec::new());
    for (value, n) in tally.values() {
        let row = usize::try_from(step_below(value) - low).unwrap_or(0);
        if counts.is_empty() {
            first = row;
        }
        counts.resize(counts.len().max(row - first + 1), 0);
        counts[row - first] += n;
    }
    HeatColumn { t_ms, first, counts }
}

/// The lower edge of a row, in milliseconds: 10^(step / 8), by a software power, for it decides.
fn edge(step: i32) -> f64 {
    libm::exp10(f64::from(step) / f64::from(PER_DECADE))
}

/// The row that a latency falls into, by its step on the whole scale.
fn step_below(value: Span) -> i32 {
    let ms = (value.0 as f64 / 1e6).max(1e-3);
    let guess = (libm::log10(ms) * f64::from(PER_DECADE)) as i32 + 1;
    (guess - 3..=guess).rev().find(|&step| edge(step) <= ms).unwrap_or(guess - 3)
}

#[cfg(test)]
mod tests {
    use super::super::super::sample;
    use super::*;

    #[test]
    fn every_success_is_in_one_cell() {
        let record = sample::record();
        let map = heat(&record).expect("there were some");
        assert_eq!((map.column_ms, map.columns.len()), (1_000, 60));
        for (column, window) in map.columns.iter().zip(&record.windows) {
            assert_eq!(column.counts.iter().sum::<u64>(), window.all.succeeded);
            assert!(column.first + column.counts.len() < map.edges_ms.len());
        }
        assert!(map.edges_ms.is_sorted() && map.edges_ms.len() > PER_DECADE as usize);
        assert_eq!(map.columns[20].counts, [] as [u64; 0], "nothing succeeds in the outage");
        assert_eq!(heat(&RunRecord::default()), None);
    }

    #[test]
    fn a_latency_lies_between_the_edges_of_its_row() {
        for micros in [0, 1, 2, 9, 10, 11, 99, 1_000, 1_333, 1_334, 9_999, 10_000, 86_400_000_000] {
            let (step, ms) = (step_below(Span::from_micros(micros)), (micros as f64 / 1e3).max(1e-3));
            assert!(edge(step) <= ms && ms < edge(step + 1), "{micros}: {step}");
        }
    }
}
