//! `stormwake calibrate`: from the report of a live run to a model of its target, as YAML to be pasted into a plan.

use super::exit::Code;
use super::output;
use crate::report::calibrate::{calibrate, json, yaml};
use crate::report::folder::RESULT;
use crate::report::result::RunResult;
use crate::time::Span;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Bytes of a result that are read: a day of windows is far less.
const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// What it is given.
#[derive(clap::Args)]
pub struct Args {
    /// The report of a live run: its folder, or its result.json.
    run: PathBuf,
    /// The time to the target and back, where you know it better than the run does: `--round-trip 12ms`.
    #[arg(long, value_name = "TIME", value_parser = Span::parse)]
    round_trip: Option<Span>,
    /// Print JSON instead of YAML.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Code {
    let result = match read(&args.run) {
        Ok(result) => result,
        Err(problem) => {
            say(&format!("error: {problem}"));
            return Code::Usage;
        }
    };
    match calibrate(&result, args.round_trip) {
        Ok(found) => {
            say(&format!("from {}", found.basis));
            found.doubts.iter().for_each(|doubt| say(&format!("doubt: {doubt}")));
            let bytes = if args.json { json(&found) } else { yaml(&found).into_bytes() };
            output::print(&bytes).map_or_else(|lost| lost, |()| Code::Pass)
        }
        Err(reason) => {
            say(&format!("no model: {reason}"));
            Code::Inconclusive
        }
    }
}

fn read(run: &Path) -> Result<RunResult, String> {
    let path = if run.is_dir() { run.join(RESULT) } else { run.to_path_buf() };
    let shown = path.display();
    let open = || -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        std::fs::File::open(&path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = open().map_err(|error| {
        format!("cannot read the result {shown}: {error}; give the folder of a run (reports/PLAN/RUN), or its {RESULT}")
    })?;
    serde_json::from_slice(&bytes).map_err(|error| {
        format!("{shown} is no result of a run: {error}; give the folder of a run (reports/PLAN/RUN), or its {RESULT}")
    })
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
