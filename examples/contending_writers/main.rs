//! Which backoff ends a contention soonest, and with the fewest calls? The table, beside its reference.
//!
//! `cargo run --release --example contending_writers`

mod model;

use std::io::{self, Write};

fn main() -> io::Result<()> {
    match table(&mut io::stdout().lock()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

fn table(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "Means of the seeds, their standard errors, and the reference (200 trials).\n")?;
    writeln!(out, "{:<13}{:>8}{:>7}{:>34}{:>32}", "backoff", "clients", "seeds", "calls (reference)", "ms (reference)")?;
    for case in model::cases() {
        let [(calls, calls_error), (millis, millis_error)] = case.means();
        let calls = format!("{calls:.1} ±{calls_error:.1} ({:.1}, {:+.1}%)", case.calls, 100.0 * (calls / case.calls - 1.0));
        let millis =
            format!("{millis:.0} ±{millis_error:.0} ({:.0}, {:+.1}%)", case.millis, 100.0 * (millis / case.millis - 1.0));
        writeln!(out, "{:<13}{:>8}{:>7}{calls:>34}{millis:>32}", case.name, case.clients, case.seeds())?;
    }
    Ok(())
}
