//! A spike into a queue, under six policies: who recovers, and when? 200 seeds each, beside the reference.
//!
//! `cargo run --release --example spike_table [SEEDS [CLIENTS]]`; exits with 1 where a row is not met. The times of few
//! seeds vary by more than what is allowed.

mod model;

use model::{ROWS, Row, Seen, summary};
use std::io::{self, Write};
use std::process::ExitCode;

/// How many of 100,000 clients are met busy: the most that are on the wire at once are 93 × 4 attempts for 4 s each, 1.5%.
const CLIENTS: u32 = 100_000;

fn main() -> ExitCode {
    let number = |at, default| std::env::args().nth(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    let seeds: Vec<u64> = (1..=u64::from(number(1, 200)).max(2)).collect();
    let clients = number(2, CLIENTS).max(1);
    say(&format!("{} seeds, {clients} clients; in brackets the reference\n", seeds.len()));
    say(&format!("{:<24}{:>18}{:>38}{:>22}", "policy", "stuck", "recovery s: mean, median", "amplification"));
    let mut met = true;
    for row in ROWS {
        let plan = row.plan(clients).expect("the rows are plans");
        let seen = row.run(&plan, &seeds).expect("a plan with a service can be simulated");
        met &= print(&row, &seen);
    }
    ExitCode::from(u8::from(!met))
}

/// Prints a row; says whether the reference is met.
fn print(row: &Row, seen: &[Seen]) -> bool {
    let stuck = seen.iter().filter(|s| s.stuck).count();
    let recoveries: Vec<f64> = seen.iter().filter(|s| !s.stuck).filter_map(|s| s.recovery).collect();
    let amplification = summary(&seen.iter().map(|s| s.amplification).collect::<Vec<_>>()).0;
    let (mean, error, median) = summary(&recoveries);
    let met = stuck == if row.stuck { seen.len() } else { 0 }
        && row.recovery.is_none_or(|(want, within)| (mean / want - 1.0).abs() <= within)
        && row.amplification.is_none_or(|want| (amplification / want - 1.0).abs() <= 0.01);
    let of = format!("{stuck} of {} ({})", seen.len(), if row.stuck { "all" } else { "none" });
    let recovery = match row.recovery {
        Some((want, within)) => format!("{mean:.1} ±{error:.1}, {median:.0} ({want} ±{}%)", within * 100.0),
        None => String::new(),
    };
    let load = format!("{amplification:.3} ({})", row.amplification.map_or("-".to_string(), |want| want.to_string()));
    say(&format!("{:<24}{of:>18}{recovery:>38}{load:>22}{}", row.name, if met { "" } else { "   NOT MET" }));
    met
}

/// Prints a line; a reader that has gone is no error.
fn say(line: &str) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}
