//! `windows.csv`: the series, one row a window.
//!
//! A header row names the columns. Counts are of the window, not per second; times are in milliseconds; shares lie
//! between 0 and 1; a field without evidence is empty. The columns:
//!
//! - `t_ms`: when the window begins, since the run began; `phase`: the phase that it begins in
//! - `offered`, `attempts`, `retries`, `retry_share`: operations by intended start; attempts by send
//! - `scheduled`, `arrived`: operations whose moment to be sent came; requests that reached the proxy
//! - `succeeded`, `failed`, `refused`, `dropped`, `superseded`, `dead_lettered`: operations by how they ended, booked when they did
//! - `late_starts`, `budget_refused`, `throttled`: operations started late; retries that a budget refused; tries that a breaker or a
//!   throttle refused
//! - `attempt_…`: attempts that ended, by how: `success`, `status_429`, other `status_4xx`, `status_5xx`, `status_other`,
//!   `unexpected`, `connect`, `reset`, `timeout`, `malformed`
//! - `p50_ms`, `p99_ms`: operation latency from the intended start, of those that succeeded; `attempt_p99_ms`: of all
//!   attempts that ended, from the send; `lag_p99_ms`: generator lag
//! - `in_flight`, `backlog`, `oldest_age_ms`, `deep_retries`, `late`: as they stand at the end of the window

use super::result::{RunResult, WindowResult};
use std::io::{self, Write};

/// The columns, in order.
pub const COLUMNS: [&str; 37] = [
    "t_ms",
    "phase",
    "offered",
    "attempts",
    "retries",
    "retry_share",
    "scheduled",
    "arrived",
    "succeeded",
    "failed",
    "refused",
    "dropped",
    "superseded",
    "dead_lettered",
    "late_starts",
    "budget_refused",
    "throttled",
    "attempt_success",
    "attempt_status_429",
    "attempt_status_4xx",
    "attempt_status_5xx",
    "attempt_status_other",
    "attempt_unexpected",
    "attempt_connect",
    "attempt_reset",
    "attempt_timeout",
    "attempt_malformed",
    "attempt_cancelled",
    "p50_ms",
    "p99_ms",
    "attempt_p99_ms",
    "lag_p99_ms",
    "in_flight",
    "backlog",
    "oldest_age_ms",
    "deep_retries",
    "late",
];

/// Where the columns of attempt outcomes begin.
const OUTCOMES_FROM: usize = 17;
/// How many there are.
const OUTCOMES: usize = 11;

/// Writes the series.
///
/// # Errors
/// Those of the writer.
pub fn write(out: &mut impl Write, result: &RunResult) -> io::Result<()> {
    writeln!(out, "{}", COLUMNS.join(","))?;
    for window in &result.windows {
        let phase = result.phases.iter().rfind(|phase| phase.from_ms <= window.t_ms).map_or("", |phase| &phase.name);
        writeln!(out, "{}", row(window, phase).join(","))?;
    }
    Ok(())
}

fn row(window: &WindowResult, phase: &str) -> Vec<String> {
    let figure = |x: Option<f64>| x.map_or(String::new(), |x| x.to_string());
    let mut row = vec![window.t_ms.to_string(), quoted(phase)];
    row.extend([window.offered, window.attempts, window.retries].map(|n| n.to_string()));
    row.push(figure(window.retry_share));
    row.extend([window.scheduled, window.arrived].map(|n| n.to_string()));
    row.extend([window.succeeded, window.failed, window.refused, window.dropped].map(|n| n.to_string()));
    row.extend([window.superseded, window.dead_lettered].map(|n| n.to_string()));
    row.extend([window.late_starts, window.budget_refused, window.throttled].map(|n| n.to_string()));
    row.extend(outcomes(window).map(|n| n.to_string()));
    row.extend([window.p50_ms, window.p99_ms, window.attempt_p99_ms, window.lag_p99_ms].map(figure));
    row.extend([window.in_flight, window.backlog].map(|n| n.to_string()));
    row.push(figure(window.oldest_age_ms));
    row.extend([window.deep_retries, window.late].map(|n| n.to_string()));
    row
}

fn outcomes(window: &WindowResult) -> [u64; OUTCOMES] {
    let mut counts = [0; OUTCOMES];
    for (name, count) in &window.by_outcome {
        let column = match name.strip_prefix("status_") {
            Some("429") => "attempt_status_429".to_string(),
            Some(status) if status.starts_with(['4', '5']) && status.len() == 3 => format!("attempt_status_{}xx", &status[..1]),
            Some(_) => "attempt_status_other".to_string(),
            None => format!("attempt_{name}"),
        };
        let columns = &COLUMNS[OUTCOMES_FROM..OUTCOMES_FROM + OUTCOMES];
        if let Some(at) = columns.iter().position(|&known| known == column) {
            counts[at] += count;
        }
    }
    counts
}

/// As RFC 4180 wants it.
fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_string() }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn every_row_has_every_column() {
        let mut result = sample::stuck();
        result.phases[0].name = "a, \"b\"".into();
        let mut bytes = Vec::new();
        write(&mut bytes, &result).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let mut lines = text.lines();
        assert_eq!(lines.next().unwrap().split(',').count(), COLUMNS.len());
        let first = lines.next().unwrap();
        let rest = first.strip_prefix("0,\"a, \"\"b\"\"\",").expect("the phase is quoted");
        assert_eq!(rest.split(',').count(), COLUMNS.len() - 2);
        assert_eq!(lines.clone().count(), result.windows.len() - 1);
        let plain = lines.filter(|line| !line.contains('"'));
        assert_eq!(plain.map(|line| line.split(',').count()).collect::<Vec<_>>(), [COLUMNS.len(); 45]);
    }

    #[test]
    fn every_outcome_has_a_column() {
        let names =
            ["success", "status_429", "status_404", "status_503", "status_302", "unexpected", "connect", "reset", "timeout"];
        let mut window = WindowResult::default();
        for name in names.into_iter().chain(["malformed", "cancelled"]) {
            window.by_outcome.insert(name.into(), 1);
        }
        assert_eq!(outcomes(&window), [1; OUTCOMES]);
    }

    #[test]
    fn no_evidence_is_an_empty_field() {
        let window = WindowResult { superseded: 3, dead_lettered: 7, throttled: 9, ..WindowResult::default() };
        let row = row(&window, "steady");
        let field = |name| &row[COLUMNS.iter().position(|&column| column == name).unwrap()];
        for name in ["retry_share", "p50_ms", "p99_ms", "attempt_p99_ms", "lag_p99_ms", "oldest_age_ms"] {
            assert_eq!(field(name), "", "{name}");
        }
        for (name, shown) in [("offered", "0"), ("superseded", "3"), ("dead_lettered", "7"), ("throttled", "9")] {
            assert_eq!(field(name), shown, "{name}");
        }
    }
}
