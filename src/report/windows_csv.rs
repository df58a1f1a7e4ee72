//! `windows.csv`: the series, one row a window, over all fleets; `result.json` has no windows by fleet either.
//!
//! A header row names the columns: [`COLUMNS`], which `reports/README.md` is made from. Columns may come, so a reader goes by their names. Fields are quoted
//! as RFC 4180 has it, and rows end with a line feed. A text that a spreadsheet would take for a formula gets an
//! apostrophe in front, which is how a spreadsheet is told that it is a text: names of plans begin with a letter or a digit, so that only a document that no
//! plan made is changed by it.

use super::layout::total;
use super::result::{RunResult, WindowResult};
use std::io::{self, Write};

/// A column.
pub struct Column {
    /// Its name in the header.
    pub name: &'static str,
    /// What it says; where a field may be empty, when.
    pub doc: &'static str,
    cell: Cell,
}

/// Where the fields of a column come from.
enum Cell {
    Phase,
    Count(fn(&WindowResult) -> u64),
    /// Empty without evidence.
    Figure(fn(&WindowResult) -> Option<f64>),
    /// Attempts whose outcome goes by one of these names.
    Outcome(fn(&str) -> bool),
}

const fn count(name: &'static str, doc: &'static str, of: fn(&WindowResult) -> u64) -> Column {
    Column { name, doc, cell: Cell::Count(of) }
}

const fn figure(name: &'static str, doc: &'static str, of: fn(&WindowResult) -> Option<f64>) -> Column {
    Column { name, doc, cell: Cell::Figure(of) }
}

const fn outcome(name: &'static str, doc: &'static str, is: fn(&str) -> bool) -> Column {
    Column { name, doc, cell: Cell::Outcome(is) }
}

/// The columns, in order.
pub const COLUMNS: [Column; 38] = [
    count("t_ms", "When the window begins, in milliseconds since the run began.", |w| w.t_ms),
    Column { name: "phase", doc: "The phase that it begins in; empty where none does.", cell: Cell::Phase },
    count("offered", "Operations, booked at their intended start.", |w| w.offered),
    count("attempts", "Attempts, booked when sent.", |w| w.attempts),
    count("retries", "Of them, retries.", |w| w.retries),
    figure("retry_share", "Retries / attempts, 0 to 1; empty without attempts.", |w| w.retry_share),
    count("scheduled", "Operations whose moment to be sent came, whether they could be sent or not.", |w| w.scheduled),
    count("arrived", "Requests that reached the proxy; live, a few milliseconds off.", |w| w.arrived),
    count(
        "connects",
        "Connections that clients made to the proxy, those apart that were open when the run began and those refused; live, a few milliseconds off.",
        |w| w.connects,
    ),
    count("succeeded", "Operations that succeeded within their deadline, booked at completion.", |w| w.succeeded),
    count("failed", "Operations whose client gave up.", |w| w.failed),
    count("refused", "Operations refused at ingress: the client's outbox was full.", |w| w.refused),
    count("dropped", "Operations dropped because they would have started too late, or thrown away by an action.", |w| w.dropped),
    count("superseded", "Operations whose place a newer one of their client took.", |w| w.superseded),
    count("dead_lettered", "Operations given up and put aside.", |w| w.dead_lettered),
    count("late_starts", "Operations that started later than the plan meant.", |w| w.late_starts),
    count("budget_refused", "Retries that a budget refused.", |w| w.budget_refused),
    count("throttled", "Tries that a breaker or a throttle refused: nothing went on the wire.", |w| w.throttled),
    outcome("attempt_success", "Attempts that ended with an answer that the plan calls a success.", |o| o == "success"),
    outcome("attempt_status_429", "With status 429.", |o| o == "status_429"),
    outcome("attempt_status_4xx", "With any other status from 400 to 499.", |o| {
        status(o).is_some_and(|s| s.starts_with('4')) && o != "status_429"
    }),
    outcome("attempt_status_5xx", "With a status from 500 to 599.", |o| status(o).is_some_and(|s| s.starts_with('5'))),
    outcome("attempt_status_other", "With any other status that is no success.", |o| {
        status(o).is_some_and(|s| !s.starts_with(['4', '5']))
    }),
    outcome(
        "attempt_unexpected",
        "With an answer whose status is a success, and that fails the plan's other conditions of one.",
        |o| o == "unexpected",
    ),
    outcome("attempt_connect", "Without a connection: refused, unreachable, or not resolved.", |o| o == "connect"),
    outcome("attempt_reset", "With a connection that was closed or reset before the answer was whole.", |o| o == "reset"),
    outcome("attempt_timeout", "With the policy's timeout.", |o| o == "timeout"),
    outcome("attempt_malformed", "With something that is no HTTP.", |o| o == "malformed"),
    outcome("attempt_cancelled", "By its own client: another attempt of the operation had answered.", |o| o == "cancelled"),
    figure(
        "p50_ms",
        "Median operation latency from the intended start, of operations that succeeded in the window, in milliseconds; empty without any.",
        |w| w.p50_ms,
    ),
    figure("p99_ms", "99th percentile of the same.", |w| w.p99_ms),
    figure(
        "attempt_p99_ms",
        "99th percentile of attempt latency from the send, of all that ended in the window, in milliseconds; empty without any.",
        |w| w.attempt_p99_ms,
    ),
    figure(
        "lag_p99_ms",
        "99th percentile of the generator's lag, in milliseconds; empty where nothing was sent that the plan had not held back.",
        |w| w.lag_p99_ms,
    ),
    count("in_flight", "Attempts on the wire at the end of the window.", |w| w.in_flight),
    count("backlog", "Operations offered and not finished at the end of the window.", |w| w.backlog),
    figure("oldest_age_ms", "Age of the oldest of them, in milliseconds; empty where there is none.", |w| w.oldest_age_ms),
    count("deep_retries", "Of them, those past attempt 3.", |w| w.deep_retries),
    count("late", "Of them, those past their deadline.", |w| w.late),
];

fn status(outcome: &str) -> Option<&str> {
    outcome.strip_prefix("status_")
}

/// Writes the series.
///
/// # Errors
/// Those of the writer.
pub fn write(out: &mut impl Write, result: &RunResult) -> io::Result<()> {
    writeln!(out, "{}", COLUMNS.each_ref().map(|column| column.name).join(","))?;
    for window in &result.windows {
        let phase = result.phases.iter().rfind(|phase| phase.from_ms <= window.t_ms).map_or("", |phase| &phase.name);
        writeln!(out, "{}", COLUMNS.each_ref().map(|column| field(&column.cell, window, phase)).join(","))?;
    }
    Ok(())
}

fn field(cell: &Cell, window: &WindowResult, phase: &str) -> String {
    match cell {
        Cell::Phase => quoted(phase),
        Cell::Count(of) => of(window).to_string(),
        Cell::Figure(of) => of(window).map_or(String::new(), |x| x.to_string()),
        Cell::Outcome(is) => {
            total(window.by_outcome.iter().filter(|(outcome, _)| is(outcome)).map(|(_, count)| *count)).to_string()
        }
    }
}

/// As RFC 4180 wants it, and never a formula.
fn quoted(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠', '\t', '\r', '\n']);
    let text = if formula { format!("'{text}") } else { text.to_string() };
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
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
    fn a_name_stays_one_field_and_is_no_formula() {
        for (name, wanted) in [
            ("after outage", "after outage"),
            ("a+b", "a+b"),
            ("größe 🙂 \u{202e}drawkcab", "größe 🙂 \u{202e}drawkcab"),
            ("a, \"b\"", "\"a, \"\"b\"\"\""),
            ("two\nlines\r", "\"two\nlines\r\""),
            ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
            ("=HYPERLINK(\"http://x\",1)", "\"'=HYPERLINK(\"\"http://x\"\",1)\""),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("＝1+1", "'＝1+1"),
            ("\t=1", "'\t=1"),
        ] {
            assert_eq!(quoted(name), wanted);
        }
    }

    #[test]
    fn every_outcome_has_a_column() {
        let names =
            ["success", "status_429", "status_404", "status_503", "status_302", "unexpected", "connect", "reset", "timeout"];
        let mut window = WindowResult::default();
        for name in names.into_iter().chain(["malformed", "cancelled"]) {
            window.by_outcome.insert(name.into(), 1);
        }
        let outcomes = COLUMNS.iter().filter(|column| matches!(column.cell, Cell::Outcome(_)));
        let counts: Vec<String> = outcomes.map(|column| field(&column.cell, &window, "")).collect();
        assert_eq!(counts, vec!["1"; 11]);
    }

    #[test]
    fn no_evidence_is_an_empty_field() {
        let window = WindowResult { superseded: 3, dead_lettered: 7, throttled: 9, connects: 4, ..WindowResult::default() };
        let field = |name| field(&COLUMNS.iter().find(|column| column.name == name).unwrap().cell, &window, "steady");
        for name in ["retry_share", "p50_ms", "p99_ms", "attempt_p99_ms", "lag_p99_ms", "oldest_age_ms"] {
            assert_eq!(field(name), "", "{name}");
        }
        for (name, shown) in
            [("offered", "0"), ("connects", "4"), ("superseded", "3"), ("dead_lettered", "7"), ("throttled", "9")]
        {
            assert_eq!(field(name), shown, "{name}");
        }
    }
}
