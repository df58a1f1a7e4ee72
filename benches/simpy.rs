//! One small plan here and in SimPy, in turns. Needs Python 3 and, the first time, the network: SimPy is installed into `target/simpy-venv`.
//!
//! `cargo bench --bench simpy`
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod common;

use common::{median, plan, say, simulate};
use std::path::{Path, PathBuf};
use std::process::Command;
use stormwake::engine::sim::Buckets;
use stormwake::metrics::Counts;
use stormwake::plan::Plan;

const ROUNDS: u64 = 5;
/// The version that is compared with.
const SIMPY: &str = "simpy==4.1.2";

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    match python(root) {
        Ok(python) => compare(root, &python),
        Err(reason) => say(&format!("skipped: {reason}")),
    }
}

/// What one run shows.
struct Seen {
    seconds: f64,
    attempts_per_operation: f64,
    success: f64,
    latency: f64,
}

fn compare(root: &Path, python: &Path) {
    let plan = plan("benches/simpy.yaml");
    let seconds = plan.length.as_secs_f64();
    let turn = |seed| (theirs(root, python, seed, seconds), ours(&Plan { seed, ..plan.clone() }));
    let (theirs, ours): (Vec<Seen>, Vec<Seen>) = (1..=ROUNDS).map(turn).unzip();
    say(&format!("benches/simpy.yaml, {} of virtual time, {ROUNDS} seeds in turns", plan.length));
    let agree = |name: &str, figure: fn(&Seen) -> f64| {
        let mean = |of: &[Seen]| of.iter().map(figure).sum::<f64>() / of.len() as f64;
        let (theirs, ours) = (mean(&theirs), mean(&ours));
        say(&format!("{name:<24} SimPy {theirs:.4}, stormwake {ours:.4}"));
        assert!((ours / theirs - 1.0).abs() < 0.05, "{name}: both are to simulate the same");
    };
    agree("attempts per operation", |seen| seen.attempts_per_operation);
    agree("success", |seen| seen.success);
    agree("latency in seconds", |seen| seen.latency);
    let of = |all: &[Seen]| median(all.iter().map(|seen| seen.seconds).collect());
    let ratio = median(theirs.iter().zip(&ours).map(|(theirs, ours)| theirs.seconds / ours.seconds).collect());
    say(&format!("seconds on a processor   SimPy {:.2}, stormwake {:.4}: {ratio:.0} times", of(&theirs), of(&ours)));
}

fn ours(plan: &Plan) -> Seen {
    let (record, _, took) = simulate::<Buckets>(plan);
    let sum = |count: fn(&Counts) -> u64| record.windows.iter().map(|window| count(&window.all)).sum::<u64>() as f64;
    let (mut total, mut count) = (0.0, 0.0);
    for summary in &record.summaries {
        total += summary.succeeded.mean() * summary.succeeded.len() as f64;
        count += summary.succeeded.len() as f64;
    }
    let offered = sum(|c| c.offered);
    Seen {
        seconds: took.processor,
        attempts_per_operation: sum(|c| c.attempts) / offered,
        success: sum(|c| c.succeeded) / offered,
        latency: total / count / 1e6,
    }
}

fn theirs(root: &Path, python: &Path, seed: u64, seconds: f64) -> Seen {
    let script = root.join("benches/simpy_plan.py");
    let output = Command::new(python).arg(script).args([seed.to_string(), seconds.to_string()]).output().expect("Python runs");
    let said: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let number = |key: &str| said[key].as_f64().expect("the script prints numbers");
    Seen {
        seconds: number("seconds"),
        attempts_per_operation: number("attempts") / number("operations"),
        success: number("succeeded") / number("operations"),
        latency: number("mean_latency"),
    }
}

/// A Python that has SimPy, made where there is none yet.
fn python(root: &Path) -> Result<PathBuf, String> {
    let folder = root.join("target/simpy-venv");
    let python = folder.join("bin/python");
    if succeeds(Command::new(&python).args(["-c", "import simpy"])) {
        return Ok(python);
    }
    if !succeeds(Command::new("python3").args(["-m", "venv"]).arg(&folder)) {
        return Err("there is no `python3` that can make a virtual environment".to_string());
    }
    match succeeds(Command::new(&python).args(["-m", "pip", "install", "--quiet", SIMPY])) {
        true => Ok(python),
        false => Err(format!("{SIMPY} could not be installed: is there a network?")),
    }
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
