//! Statistical parity of what a service does: five plans, one for each group of its parts, run live, on real sockets through the real proxy
//! against the built-in target's process, and in virtual time with the same seed. ARCHITECTURE.md keeps the table.
//!
//! `cargo run --release --example parity -- target/release/stormwake`; exits with 1 where a figure disagrees. All five run live at once, some
//! hundred attempts a second each. What disagrees, or has no evidence because the machine was too busy, is run again by itself, three
//! times in all: what else a shared machine does for a moment must not decide.
//!
//! Both engines offer the same operations at the same moments, with the same draws. What differs is when messages arrive: by fractions of
//! a millisecond on the wire, by a millisecond or two where the machine is busy. While a service carries its load that changes little. While it does not, who
//! finds the last place in a queue follows from the order of arrivals, and then who retries, and so on: runs part, and what overflows comes in
//! clusters, so that its counts vary more than independent ones would. By how much, virtual time says itself: each plan is simulated with twenty networks
//! that differ by such times, and a live figure must lie within four standard deviations of their mean, or within what [`Least`] allows.

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

/// Networks that the plans are simulated with: half of the messages take less than so many microseconds, one in a hundred more than 2 ms.
const NETWORKS: usize = 20;

/// What may lie between a live figure and the mean of the simulated ones, however alike those are.
#[derive(Clone, Copy)]
enum Least {
    /// Nothing, and no deviation either.
    Equal,
    /// 5%, and a handful: 5.
    Part,
    /// Two percentage points.
    Points,
    /// A tenth, and two seconds: it is judged in windows of a second.
    Seconds,
}

impl Least {
    fn of(self, mean: f64, deviation: f64) -> f64 {
        match self {
            Self::Equal => 0.0,
            Self::Part => (0.05 * mean).max(5.0).max(4.0 * deviation),
            Self::Points => 0.02_f64.max(4.0 * deviation),
            Self::Seconds => (0.1 * mean).max(2_000.0).max(4.0 * deviation),
        }
    }
}

/// Names, places in the result document, and tolerances. What a document does not have is zero in it.
const FIGURES: [(&str, &str, Least); 16] = [
    ("operations", "/totals/operations", Least::Equal),
    ("attempts", "/totals/attempts", Least::Part),
    ("successes", "/totals/succeeded", Least::Part),
    ("timeouts", "/totals/by_outcome/timeout", Least::Part),
    ("429", "/totals/by_outcome/status_429", Least::Part),
    ("503", "/totals/by_outcome/status_503", Least::Part),
    ("limited", "/service/limited", Least::Part),
    ("not admitted", "/service/not_admitted", Least::Part),
    ("queue full", "/service/queue_full", Least::Part),
    ("expired", "/service/expired", Least::Part),
    ("dropped by CoDel", "/service/dropped_by_codel", Least::Part),
    ("duplicates suppressed", "/service/duplicates_suppressed", Least::Part),
    ("duplicates executed", "/service/duplicates_executed", Least::Part),
    ("useful work, s", "/service/useful_seconds", Least::Part),
    ("wasted work", "/service/wasted_work", Least::Points),
    ("recovery time, ms", "/recovery/recovery_time_ms", Least::Seconds),
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
            if !agrees(case, &live, &simulated(&program, &folder, case)?)? {
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
    let begun: Result<Vec<Running>, _> = cases.iter().map(|case| begin(program, folder, case, "run", "")).collect();
    begun?.into_iter().map(Running::result).collect()
}

fn in_turn(program: &Path, folder: &Path, cases: &[&Case]) -> Result<Vec<Value>, Box<dyn Error>> {
    cases.iter().map(|case| begin(program, folder, case, "run", "")?.result()).collect()
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

/// The plan as it is, and then with other networks.
fn simulated(program: &Path, folder: &Path, case: &Case) -> Result<Vec<Value>, Box<dyn Error>> {
    let networks = (1..=NETWORKS).map(|n| format!("network.latency={{p50: {}us, p99: 2ms}}", 20 * n));
    let sets = std::iter::once(String::new()).chain(networks);
    sets.map(|set| begin(program, folder, case, "simulate", &set)?.result()).collect()
}

fn begin(program: &Path, folder: &Path, case: &Case, engine: &str, set: &str) -> Result<Running, Box<dyn Error>> {
    let result = folder.join(format!("{}-{engine}.json", case.name));
    let mut command = Command::new(program);
    command.args([engine, &format!("{}.yaml", case.name), "--seed", "1", "--json", "--quiet"]).current_dir(folder);
    if !set.is_empty() {
        command.args(["--set", set]);
    }
    command.stdin(Stdio::null()).stdout(std::fs::File::create(&result)?).stderr(Stdio::inherit());
    Ok(Running(command.spawn()?, result))
}

/// Whether the engines came to the same, of which it prints every figure. The first simulated result is that of the plan as it is, and gives
/// the class; the others give the spread.
fn agrees(case: &Case, live: &Value, sims: &[Value]) -> Result<bool, Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    let classes = [live, &sims[0]].map(|result| result["recovery"]["class"].as_str().unwrap_or("none"));
    let mut agreed = classes[0] == classes[1] && classes[0] != "none" && classes[0] != "INCONCLUSIVE";
    writeln!(out, "{}: live {}, simulated {}{}", case.name, classes[0], classes[1], if agreed { "" } else { "   DIFFERS" })?;
    if let Some(reason) = live["reasons"].as_array().and_then(|reasons| reasons.first()) {
        writeln!(out, "    {reason}")?;
    }
    writeln!(out, "    {:<22}{:>11}{:>11}{:>11}{:>11}", "", "live", "simulated", "mean of 20", "deviation")?;
    for (name, place, least) in FIGURES {
        let figure = |result: &Value| result.pointer(place).and_then(Value::as_f64).unwrap_or(0.0);
        let (live, sim) = (figure(live), figure(&sims[0]));
        let (mean, deviation) = spread(&sims[1..].iter().map(figure).collect::<Vec<_>>());
        let against = if matches!(least, Least::Equal) { sim } else { mean };
        let told = if (live - against).abs() > least.of(mean, deviation) {
            "   DIFFERS"
        } else if case.shows.contains(&name) && (live == 0.0 || sim == 0.0) {
            "   did not happen"
        } else {
            ""
        };
        agreed &= told.is_empty();
        if live != 0.0 || sim != 0.0 {
            writeln!(out, "    {name:<22}{live:>11.3}{sim:>11.3}{mean:>11.3}{deviation:>11.3}{told}")?;
        }
    }
    Ok(agreed)
}

/// The mean, and the standard deviation.
fn spread(figures: &[f64]) -> (f64, f64) {
    let n = figures.len() as f64;
    let mean = figures.iter().sum::<f64>() / n;
    let squares: f64 = figures.iter().map(|figure| (figure - mean) * (figure - mean)).sum();
    (mean, (squares / (n - 1.0)).sqrt())
}
