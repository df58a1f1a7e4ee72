//! Statistical parity of what a service does: five plans, one for each group of its parts, run live, on real sockets through the real proxy
//! against the built-in target's process, and in virtual time with the same seed. ARCHITECTURE.md keeps the table.
//!
//! `cargo run --release --example parity -- target/release/stormwake`; exits with 1 where a figure disagrees. All five run live at once, some
//! hundred attempts a second each. What disagrees, or has no evidence because the machine was too busy, is run again by itself, three
//! times in all: what else a shared machine does for a moment must not decide.
//!
//! Both engines offer the same operations at the same moments, with the same draws. What differs is when messages arrive: by fractions of
//! a millisecond on the wire, by a millisecond where the machine is busy. While a service carries its load that changes nothing. While it does not, who
//! finds the last place in a queue follows from the order of arrivals, and then who retries, and so on: the runs part, as two runs with slightly
//! different networks do in virtual time. Hence the tolerances (see [`Within`]).

use serde_json::Value;
use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

const TRIES: usize = 3;

/// A plan, and which figures it is there to show: they must not be zero, so that equal is not empty.
struct Case {
    name: &'static str,
    text: &'static str,
    shows: &'static [&'static str],
}

const CASES: [Case; 5] = [
    Case {
        name: "duplicates",
        text: include_str!("duplicates.yaml"),
        shows: &["timeouts", "duplicates suppressed", "wasted work"],
    },
    Case {
        name: "expiry",
        text: include_str!("expiry.yaml"),
        shows: &["expired", "queue full", "duplicates executed", "wasted work"],
    },
    Case { name: "capacity", text: include_str!("capacity.yaml"), shows: &["dropped by CoDel", "queue full", "503"] },
    Case { name: "limits", text: include_str!("limits.yaml"), shows: &["limited", "not admitted", "429", "503"] },
    Case { name: "layers", text: include_str!("layers.yaml"), shows: &["503", "useful work, s", "wasted work"] },
];

/// How far apart two figures may lie.
#[derive(Clone, Copy)]
enum Within {
    /// Not at all.
    Equal,
    /// 5% of the simulated one: what most operations have in common, those of calm stretches included.
    Part,
    /// Three standard deviations of the difference of two independent counts, 3 √(2n), or 5% where that is more: what happens under overload alone.
    Noise,
    /// Two percentage points.
    Points,
    /// A tenth of it or two seconds: it is judged in windows of a second.
    Seconds,
}

impl Within {
    fn holds(self, live: f64, sim: f64) -> bool {
        let most = match self {
            Self::Equal => 0.0,
            Self::Part => 0.05 * sim,
            Self::Noise => (3.0 * (2.0 * sim.max(live)).sqrt()).max(0.05 * sim),
            Self::Points => 0.02,
            Self::Seconds => (0.1 * sim).max(2_000.0),
        };
        (live - sim).abs() <= most
    }
}

/// Names, places in the result document, and tolerances. What a document does not have is zero in it.
const FIGURES: [(&str, &str, Within); 17] = [
    ("operations", "/totals/operations", Within::Equal),
    ("attempts", "/totals/attempts", Within::Part),
    ("successes", "/totals/succeeded", Within::Part),
    ("timeouts", "/totals/by_outcome/timeout", Within::Noise),
    ("429", "/totals/by_outcome/status_429", Within::Noise),
    ("503", "/totals/by_outcome/status_503", Within::Noise),
    ("limited", "/service/limited", Within::Noise),
    ("not admitted", "/service/not_admitted", Within::Noise),
    ("queue full", "/service/queue_full", Within::Noise),
    ("expired", "/service/expired", Within::Noise),
    ("dropped by CoDel", "/service/dropped_by_codel", Within::Noise),
    ("lost", "/service/lost", Within::Noise),
    ("duplicates suppressed", "/service/duplicates_suppressed", Within::Noise),
    ("duplicates executed", "/service/duplicates_executed", Within::Noise),
    ("useful work, s", "/service/useful_seconds", Within::Part),
    ("wasted work", "/service/wasted_work", Within::Points),
    ("recovery time, ms", "/recovery/recovery_time_ms", Within::Seconds),
];

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let program = PathBuf::from(std::env::args().nth(1).ok_or("usage: parity PATH-OF-STORMWAKE")?).canonicalize()?;
    let folder = std::env::temp_dir().join(format!("stormwake-parity-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let mut open: Vec<&Case> = CASES.iter().collect();
    for case in &open {
        std::fs::write(folder.join(format!("{}.yaml", case.name)), case.text)?;
    }
    for try_number in 1..=TRIES {
        let live = if try_number == 1 { together(&program, &folder, &open)? } else { in_turn(&program, &folder, &open)? };
        let mut left = Vec::new();
        for (case, live) in open.into_iter().zip(live) {
            let sim = begin(&program, &folder, case, "simulate")?.result()?;
            if !agrees(case, &live, &sim)? {
                left.push(case);
            }
        }
        open = left;
    }
    std::fs::remove_dir_all(&folder)?;
    for case in &open {
        writeln!(std::io::stdout(), "{}: the engines do not agree in {TRIES} tries", case.name)?;
    }
    Ok(if open.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn together(program: &Path, folder: &Path, cases: &[&Case]) -> Result<Vec<Value>, Box<dyn Error>> {
    let begun: Result<Vec<Running>, _> = cases.iter().map(|case| begin(program, folder, case, "run")).collect();
    begun?.into_iter().map(Running::result).collect()
}

fn in_turn(program: &Path, folder: &Path, cases: &[&Case]) -> Result<Vec<Value>, Box<dyn Error>> {
    cases.iter().map(|case| begin(program, folder, case, "run")?.result()).collect()
}

/// A run under way, and where its result goes. It ends with the value.
struct Running(Child, PathBuf);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn result(mut self) -> Result<Value, Box<dyn Error>> {
        self.0.wait()?;
        let text = std::fs::read_to_string(&self.1)?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", self.1.display()).into())
    }
}

fn begin(program: &Path, folder: &Path, case: &Case, engine: &str) -> Result<Running, Box<dyn Error>> {
    let result = folder.join(format!("{}-{engine}.json", case.name));
    let mut command = Command::new(program);
    command.args([engine, &format!("{}.yaml", case.name), "--seed", "1", "--json", "--quiet"]).current_dir(folder);
    command.stdin(Stdio::null()).stdout(std::fs::File::create(&result)?).stderr(Stdio::inherit());
    Ok(Running(command.spawn()?, result))
}

/// Whether the engines came to the same, of which it prints every figure.
fn agrees(case: &Case, live: &Value, sim: &Value) -> Result<bool, Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    let classes = [live, sim].map(|result| result["recovery"]["class"].as_str().unwrap_or("none"));
    let mut agreed = classes[0] == classes[1] && classes[0] != "none" && classes[0] != "INCONCLUSIVE";
    writeln!(out, "{}: live {}, simulated {}{}", case.name, classes[0], classes[1], if agreed { "" } else { "   DIFFERS" })?;
    if let Some(reason) = live["reasons"].as_array().and_then(|reasons| reasons.first()) {
        writeln!(out, "    {reason}")?;
    }
    for (name, place, within) in FIGURES {
        let figure = |result: &Value| result.pointer(place).and_then(Value::as_f64).unwrap_or(0.0);
        let (live, sim) = (figure(live), figure(sim));
        let told = if !within.holds(live, sim) {
            "   DIFFERS"
        } else if case.shows.contains(&name) && (live == 0.0 || sim == 0.0) {
            "   did not happen"
        } else {
            ""
        };
        agreed &= told.is_empty();
        if live != 0.0 || sim != 0.0 {
            writeln!(out, "    {name:<22}{live:>12.3}{sim:>12.3}{told}")?;
        }
    }
    Ok(agreed)
}
