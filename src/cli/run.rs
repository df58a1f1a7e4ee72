//! `stormwake run`: load the plan, run it, judge it, write it down, say it.

use super::exit::Code;
use super::{output, terminal};
use crate::engine::Observer;
use crate::engine::live::clock::{Clock, LiveClock};
use crate::engine::live::run::{RunError, RunSetup, run as run_live};
use crate::engine::live::signal::Signals;
use crate::engine::shared::WINDOW;
use crate::gate::{Outcome, judge};
use crate::metrics::{RunRecord, StopReason};
use crate::plan::Loaded;
use crate::report::events::{EventLog, Failure};
use crate::report::folder::{EFFECTIVE, FolderError, RESULT, ReportFolder};
use crate::report::progress::{Observers, Progress};
use crate::report::result::{Engine, PlanInfo, RunResult, json, result};
use crate::report::text;
use std::io::Write;
use std::path::PathBuf;

/// What it is given.
#[derive(clap::Args)]
pub struct Args {
    /// The plan; `-` reads it from stdin.
    plan: String,
    /// Override a value of the plan: `--set length=2m`, `--set timeline.block.for=30s`. Repeatable.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// The seed of every random choice, instead of the plan's.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Dial hosts beyond this machine, where the plan's `allow` names them.
    #[arg(long)]
    approve: bool,
    /// Show no progress: only the verdict.
    #[arg(long, short)]
    quiet: bool,
    /// Print the result document instead of the verdict.
    #[arg(long)]
    json: bool,
    /// Where reports go: to DIR/PLAN/RUN/.
    #[arg(long, value_name = "DIR", default_value = "reports")]
    out: PathBuf,
    /// How many threads carry the load; as many as cores where nothing is said.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    shards: Option<u16>,
}

/// Runs the command.
pub fn run(args: Args) -> Code {
    let mut overrides = args.overrides.clone();
    overrides.extend(args.seed.map(|seed| format!("seed={seed}")));
    let loaded = match super::check::open(&args.plan, &overrides) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    match prepare(&args, &loaded) {
        Ok(prepared) => carry_out(&args, loaded, prepared),
        Err(error) => fail(&error),
    }
}

/// What is there before the run begins.
struct Prepared {
    info: PlanInfo,
    folder: ReportFolder,
    observer: Box<dyn Observer>,
    log: Failure,
}

fn prepare(args: &Args, loaded: &Loaded) -> Result<Prepared, FolderError> {
    // Before there is a folder that a signal would leave behind. The run reports where it fails.
    let _ = Signals::install();
    let plan = &loaded.plan;
    let started = u64::try_from(LiveClock::waiting().wall_millis()).unwrap_or_default();
    let info = PlanInfo {
        name: plan.name.clone(),
        path: args.plan.clone(),
        sha256: loaded.sha256.clone(),
        engine: Engine::Live,
        seed: plan.seed,
        exit_code: 0,
        started_unix_ms: Some(started),
        expect: plan.expect.as_ref().map(|expect| expect.class),
    };
    let folder = ReportFolder::create(&args.out, &plan.name, started / 1000, plan.seed)?;
    folder.write(EFFECTIVE, loaded.effective.as_bytes())?;
    let log = EventLog::new(folder.events()?, &info);
    let failure = log.failure();
    let mut observers: Vec<Box<dyn Observer>> = vec![Box::new(log)];
    if !args.quiet {
        let style = terminal::style(terminal::Stream::Err);
        let width = Box::new(|| terminal::style(terminal::Stream::Err).width);
        let manner = terminal::manner();
        observers.push(Box::new(Progress::new(std::io::stderr(), manner, style, width, WINDOW, plan.length)));
    }
    Ok(Prepared { info, folder, observer: Box::new(Observers(observers)), log: failure })
}

fn carry_out(args: &Args, loaded: Loaded, prepared: Prepared) -> Code {
    let Prepared { mut info, folder, observer, log } = prepared;
    let Loaded { plan, effective, .. } = loaded;
    let judgement = plan.judgement();
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("stormwake"));
    let shards = args.shards.map(usize::from);
    let setup = RunSetup { plan, effective_yaml: effective, program, approve: args.approve, shards, observer };
    let record = match run_live(setup) {
        Ok(record) => record,
        Err(error) => {
            folder.discard();
            fail(&error);
            return code_of_error(&error);
        }
    };
    let verdict = judge(&record, &judgement);
    let code = code_of(&record, verdict.outcome);
    info.exit_code = code.number();
    let mut result = result(&record, &verdict, &info);
    let log = log.get().map(|problem| format!("events.ndjson is incomplete: {problem}"));
    let code = write_down(&folder, &mut result, &record, log, code);
    // Whoever reads the verdict may read no more; nothing is left to put in order.
    Signals::release();
    show(args, &result, &folder).map_or_else(|lost| worse(code, lost), |()| code)
}

/// Writes the report, and returns the code that the process ends with. One whose report is incomplete must not promise
/// it; its document, where that can be written, says the same code.
fn write_down(folder: &ReportFolder, result: &mut RunResult, record: &RunRecord, log: Option<String>, code: Code) -> Code {
    let written = folder.write_report(result, record);
    let Some(problem) = written.err().map(|error| error.to_string()).or(log) else { return code };
    let code = worse(code, fail(&problem));
    if result.exit_code != code.number() {
        result.exit_code = code.number();
        // What kept it from being written has been said already.
        let _ = folder.write(RESULT, &json(result));
    }
    code
}

/// Prints the verdict, or the result document.
fn show(args: &Args, result: &RunResult, folder: &ReportFolder) -> Result<(), Code> {
    let bytes = if args.json {
        json(result)
    } else {
        let style = terminal::style(terminal::Stream::Out);
        text::verdict(result, &style, Some(&folder.path().display().to_string())).into_bytes()
    };
    output::print(&bytes)
}

fn fail(error: &dyn std::fmt::Display) -> Code {
    let _ = writeln!(std::io::stderr().lock(), "error: {error}");
    Code::Internal
}

/// The exit code of a run that began.
fn code_of(record: &RunRecord, outcome: Outcome) -> Code {
    if !record.cleanup_confirmed {
        return Code::CleanupUnconfirmed;
    }
    match (&record.stopped, outcome) {
        (Some(StopReason::Signal(number)), _) => Code::Interrupted(u8::try_from(*number).unwrap_or(0)),
        (Some(StopReason::StopCondition(_)), _) => Code::Stopped,
        (Some(StopReason::Internal(_)), _) | (None, Outcome::Aborted) => Code::Internal,
        (None, Outcome::Pass) => Code::Pass,
        (None, Outcome::Fail) => Code::Fail,
        (None, Outcome::Inconclusive) => Code::Inconclusive,
    }
}

/// The exit code of a run that never began.
fn code_of_error(error: &RunError) -> Code {
    match error {
        error if error.is_refusal() => Code::Refused,
        RunError::Interrupted(number) => Code::Interrupted(u8::try_from(*number).unwrap_or(0)),
        _ => Code::Internal,
    }
}

/// A report that cannot be written is told by its own code, unless the run has something worse to say.
fn worse(run: Code, report: Code) -> Code {
    match run {
        Code::CleanupUnconfirmed | Code::Interrupted(_) | Code::Stopped => run,
        _ => report,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_news_decides_the_code() {
        let record = |cleanup_confirmed, stopped| RunRecord { cleanup_confirmed, stopped, ..RunRecord::default() };
        for (cleanup, stopped, outcome, number) in [
            (true, None, Outcome::Pass, 0),
            (true, None, Outcome::Fail, 1),
            (true, None, Outcome::Inconclusive, 3),
            (true, Some(StopReason::StopCondition("x".into())), Outcome::Aborted, 4),
            (true, Some(StopReason::Internal("x".into())), Outcome::Aborted, 6),
            (true, Some(StopReason::Signal(2)), Outcome::Aborted, 130),
            (true, Some(StopReason::Signal(15)), Outcome::Aborted, 143),
            (false, Some(StopReason::Signal(2)), Outcome::Aborted, 7),
            (false, None, Outcome::Pass, 7),
        ] {
            assert_eq!(code_of(&record(cleanup, stopped.clone()), outcome).number(), number, "{cleanup} {stopped:?} {outcome:?}");
        }
        assert_eq!(worse(Code::Pass, Code::Internal), Code::Internal);
        assert_eq!(worse(Code::CleanupUnconfirmed, Code::Internal), Code::CleanupUnconfirmed);
    }

    #[test]
    fn the_document_says_the_code_that_the_process_ends_with() {
        let root = std::env::temp_dir().join(format!("stormwake-code-{}", std::process::id()));
        let folder = ReportFolder::create(&root, "plan", 0, 1).unwrap();
        std::fs::create_dir_all(folder.path().join("windows.csv/in-the-way")).unwrap();
        let info = PlanInfo {
            name: "plan".into(),
            path: "plan.yaml".into(),
            sha256: String::new(),
            engine: Engine::Live,
            seed: 1,
            exit_code: 0,
            started_unix_ms: None,
            expect: None,
        };
        let record = RunRecord::default();
        let judgement = crate::gate::Judgement {
            steady: None,
            recovery: None,
            gates: Vec::new(),
            expect: None,
            stop_if: Vec::new(),
            smallest_timeout: crate::time::Span::MAX,
            fleet_names: Vec::new(),
        };
        let mut result = result(&record, &judge(&record, &judgement), &info);
        let code = write_down(&folder, &mut result, &record, None, Code::Pass);
        let document = std::fs::read(folder.path().join(RESULT)).unwrap();
        let _ = std::fs::remove_dir_all(&root);
        let written: RunResult = serde_json::from_slice(&document).unwrap();
        assert_eq!((code, written.exit_code), (Code::Internal, Code::Internal.number()));
    }
}
