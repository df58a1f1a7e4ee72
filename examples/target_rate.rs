//! Whether `stormwake target` keeps the rates that it is configured for while 2,000 requests a second come: within 2%, by its own counts.
//!
//! `cargo run --release --example target_rate -- target/release/stormwake`. Each case is measured over some seconds of a live run; one that the
//! machine was too busy for (too few requests came, or a rate is off) is measured again, three times at most.
#![allow(clippy::disallowed_methods, reason = "it measures rates of another process by the clock")]

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// What comes, a second.
const OFFERED: f64 = 2000.0;
/// How far off a rate may be.
const OFF: f64 = 0.02;
const TRIES: usize = 3;
/// How long is measured.
const STRETCH: Duration = Duration::from_secs(5);

/// A service, how many a second it serves, and how many its limiter lets in; the same where there is none.
const CASES: [(&str, &str, f64); 3] = [
    ("rate 1500/s", "{ rate: 1500/s, queue: 50 }", 1500.0),
    ("4 servers of 2.5 ms", "{ servers: 4, service_time: 2500us, queue: 50 }", 1600.0),
    (
        "rate 1500/s behind a limiter of 1000/s",
        "{ rate: 1500/s, limiter: { token_bucket: { rate: 1000/s, burst: 100 } } }",
        1000.0,
    ),
];

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let program = PathBuf::from(std::env::args().nth(1).ok_or("usage: target_rate PATH-OF-STORMWAKE")?).canonicalize()?;
    let folder = std::env::temp_dir().join(format!("stormwake-target-rate-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let mut kept = true;
    for (name, service, wanted) in CASES {
        kept &= case(&program, &folder, name, service, wanted)?;
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn case(program: &Path, folder: &Path, name: &str, service: &str, wanted: f64) -> Result<bool, Box<dyn Error>> {
    for _ in 0..TRIES {
        let (came, served) = measure(program, folder, service)?;
        let off = served / wanted - 1.0;
        writeln!(std::io::stdout(), "{name}: {came:.0}/s came, {served:.1}/s served, {:+.2}% off {wanted}/s", off * 100.0)?;
        if off.abs() <= OFF && (came / OFFERED - 1.0).abs() <= 0.1 {
            return Ok(true);
        }
    }
    writeln!(std::io::stdout(), "{name}: not kept in {TRIES} tries")?;
    Ok(false)
}

/// Ends with the value.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How many requests came a second, and how many were served.
fn measure(program: &Path, folder: &Path, service: &str) -> Result<(f64, f64), Box<dyn Error>> {
    let run = |target: &str| {
        format!(
            "version: 1\nname: rate\ntarget: {target}
fleets: {{ all: {{ clients: 200, policy: {{ attempts: 1, timeout: 2s }}, load: {{ poisson: {{ rate: {OFFERED}/s }} }} }} }}\nlength: 8s\n"
        )
    };
    let served_by = folder.join("target.yaml");
    std::fs::write(&served_by, run(&format!("{{ service: {service} }}")))?;
    let mut target = Command::new(program);
    target.args(["target", "--listen", "127.0.0.1:0", "--plan"]).arg(&served_by).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut target = Ending(target.spawn()?);
    let mut said = String::new();
    BufReader::new(target.0.stderr.take().ok_or("no stderr")?).read_line(&mut said)?;
    let addr = said.split("http://").nth(1).and_then(|rest| rest.split(' ').next()).ok_or(format!("it said {said}"))?;

    let plan = folder.join("run.yaml");
    std::fs::write(&plan, run(&format!("{{ url: 'http://{addr}/' }}")))?;
    let mut load = Command::new(program);
    load.arg("run").arg(&plan).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    let mut load = Ending(load.spawn()?);
    let begun = Instant::now();
    while counts(addr)?.0 < OFFERED {
        if begun.elapsed() > Duration::from_secs(20) {
            return Err("no load came within 20 s".into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let ((came, served), from) = (counts(addr)?, Instant::now());
    std::thread::sleep(STRETCH);
    let ((came_by, served_by), took) = (counts(addr)?, from.elapsed().as_secs_f64());
    load.0.wait()?;
    Ok(((came_by - came) / took, (served_by - served) / took))
}

/// How many requests came so far, and how many were served.
fn counts(addr: &str) -> Result<(f64, f64), Box<dyn Error>> {
    let mut stream = TcpStream::connect(addr)?;
    stream.write_all(b"GET /stormwake/stats HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let count = |key: &str| -> Option<f64> {
        let rest = text.split(&format!("\"{key}\":")).nth(1)?;
        rest.split([',', '}']).next()?.parse().ok()
    };
    Ok((count("arrived").ok_or("no count of what came")?, count("served").ok_or("no count of what was served")?))
}
