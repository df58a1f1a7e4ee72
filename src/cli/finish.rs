//! What the commands that run plans share: a report that is there before the run, what becomes of a record, the exit code.

use super::exit::Code;
use super::logging::{self, Logged, Verbose};
use super::{ci, output, terminal};
use crate::engine::Observer;
use crate::engine::live::clock::{Clock, LiveClock};
use crate::engine::live::run::commands::{NOTE_LENGTH, note};
use crate::engine::live::signal::Signals;
use crate::engine::shared::WINDOW;
use crate::gate::{Judgement, Outcome, judge};
use crate::metrics::{Left, RunRecord, StopReason};
use crate::plan::Loaded;
use crate::report::events::{EventLog, Failure};
use crate::report::folder::{EFFECTIVE, FolderError, ReportFolder};
use crate::report::progress::{Manner, Observers, Progress};
use crate::report::result::{Engine, PlanInfo, RunResult, json, result};
use crate::report::{cases, markdown, text};
use std::io::Write;
use std::path::PathBuf;

/// What every command that runs a plan is given.
#[derive(clap::Args)]
pub struct Common {
    /// The plan; `-` reads it from stdin.
    pub plan: String,
    /// Override a value of the plan: `--set length=2m`, `--set timeline.block.for=30s`. Repeatable.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Run the plan at another speed: `1/20` divides its durations by twenty and multiplies its rates.
    #[arg(long, value_name = "SCALE")]
    pub time_scale: Option<String>,
    /// Show no progress: only the verdict.
    #[arg(long, short)]
    pub quiet: bool,
    /// Print the result document instead of the verdict.
    #[arg(long)]
    pub json: bool,
    /// Who runs it: kept with the run, and said in its report.
    #[arg(long, value_name = "NAME", value_parser = said)]
    pub operator: Option<String>,
    /// Why it is run: kept with the run, and said in its report.
    #[arg(long, value_name = "TEXT", value_parser = said)]
    pub note: Option<String>,
    /// Tell the verdict in full, but end with 0 where it is fail or inconclusive. Other codes stay as they are.
    #[arg(long)]
    pub advisory: bool,
    /// Where reports go: to DIR/PLAN/RUN/.
    #[arg(long, value_name = "DIR", default_value = "reports")]
    pub out: PathBuf,
    /// Whether what is done is logged.
    #[command(flatten)]
    pub verbose: Verbose,
}

impl Common {
    /// Opens the plan for a run by this engine, its seed replaced where one is given.
    ///
    /// # Errors
    /// The code to end with, once everything wrong was said.
    pub fn open(&self, engine: Engine, seed: Option<u64>) -> Result<Loaded, Code> {
        self.verbose.start();
        let mut overrides = with_scale(&self.overrides, self.time_scale.as_deref());
        overrides.extend(seed.map(|seed| format!("seed={seed}")));
        let loaded = super::check::open_for(engine, &self.plan, &overrides)?;
        logging::plan_loaded(&self.plan, &loaded, &overrides);
        Ok(loaded)
    }
}

/// What somebody says of a run: one line, as a note of the live view is.
fn said(text: &str) -> Result<String, String> {
    let kept = note(text).ok_or("it says nothing")?;
    if kept != text.trim() {
        return Err(format!("it must be one line of at most {NOTE_LENGTH} characters"));
    }
    Ok(kept)
}

/// The overrides of a command, its time scale among them.
pub fn with_scale(overrides: &[String], scale: Option<&str>) -> Vec<String> {
    overrides.iter().cloned().chain(scale.map(|scale| format!("time_scale={scale}"))).collect()
}

/// What is there before the run begins.
pub struct Prepared {
    /// What is known of the run beside its record.
    pub info: PlanInfo,
    /// Its report.
    pub folder: ReportFolder,
    /// Who hears what happens.
    pub observer: Box<dyn Observer>,
    log: Failure,
}

/// Milliseconds since the Unix epoch.
pub fn wall_millis() -> u64 {
    u64::try_from(LiveClock::waiting().wall_millis()).unwrap_or_default()
}

/// What is known of a run of this plan that starts now.
pub fn info(common: &Common, loaded: &Loaded, engine: Engine, now: u64) -> PlanInfo {
    PlanInfo {
        // In virtual time there is no such moment, and equal runs are equal to the byte.
        started_unix_ms: (engine == Engine::Live).then_some(now),
        operator: common.operator.clone(),
        note: common.note.clone(),
        advisory: common.advisory,
        ..PlanInfo::of(loaded, &common.plan, engine)
    }
}

/// Makes the folder of a run's report, and puts the plan into it.
///
/// # Errors
/// A folder that cannot be made or written to.
pub fn folder(common: &Common, loaded: &Loaded, now: u64) -> Result<ReportFolder, FolderError> {
    // Before there is a folder that a signal would leave behind. The run reports where it fails.
    let _ = Signals::install();
    let folder = ReportFolder::create(&common.out, &loaded.plan.name, now / 1000, loaded.plan.seed)?;
    folder.write(EFFECTIVE, loaded.effective.as_bytes())?;
    Ok(folder)
}

/// Prepares one run.
///
/// # Errors
/// A report that cannot be written.
pub fn prepare(common: &Common, loaded: &Loaded, engine: Engine) -> Result<Prepared, FolderError> {
    watched(common, loaded, engine, progress(common, loaded, engine))
}

/// Prepares one run whose progress somebody else shows.
///
/// # Errors
/// A report that cannot be written.
pub fn watched(
    common: &Common,
    loaded: &Loaded,
    engine: Engine,
    progress: Option<Box<dyn Observer>>,
) -> Result<Prepared, FolderError> {
    let now = wall_millis();
    let info = info(common, loaded, engine, now);
    let folder = folder(common, loaded, now)?;
    Ok(observed(info, folder, progress)?.with(logged(common)))
}

/// A run's log of events, and who else listens.
///
/// # Errors
/// A log that cannot be made.
pub fn observed(info: PlanInfo, folder: ReportFolder, progress: Option<Box<dyn Observer>>) -> Result<Prepared, FolderError> {
    let log = EventLog::new(folder.events()?, &info);
    let failure = log.failure();
    let mut observers: Vec<Box<dyn Observer>> = vec![Box::new(log)];
    observers.extend(progress);
    Ok(Prepared { info, folder, observer: Box::new(Observers(observers)), log: failure })
}

/// Who logs what happens to a run; nobody where nothing is logged.
pub fn logged(common: &Common) -> Option<Box<dyn Observer>> {
    common.verbose.is_on().then(|| Box::new(Logged) as Box<dyn Observer>)
}

/// The progress of one run on stderr. Virtual time runs too fast for plain lines, which stay.
pub fn progress(common: &Common, loaded: &Loaded, engine: Engine) -> Option<Box<dyn Observer>> {
    let style = terminal::style(terminal::Stream::Err);
    let manner = manner(common);
    if common.quiet || (engine == Engine::Sim && manner == Manner::Plain) {
        return None;
    }
    let width = Box::new(|| terminal::style(terminal::Stream::Err).width);
    Some(Box::new(Progress::new(std::io::stderr(), manner, style, width, WINDOW, loaded.plan.length)))
}

/// As the terminal has it; a line that is rewritten would be torn by those of a log.
pub fn manner(common: &Common) -> Manner {
    if common.verbose.is_on() { Manner::Plain } else { terminal::manner() }
}

/// What a report is made from, once the run is over.
pub struct Over {
    /// What is known of the run beside its record.
    pub info: PlanInfo,
    /// Its report.
    pub folder: ReportFolder,
    log: Failure,
}

impl Prepared {
    /// With one more who hears what happens.
    #[must_use]
    pub fn with(self, more: Option<Box<dyn Observer>>) -> Self {
        let Some(more) = more else { return self };
        Self { observer: Box::new(Observers(vec![self.observer, more])), ..self }
    }

    /// Parts with the observer, which the run takes.
    pub fn begin(self) -> (Box<dyn Observer>, Over) {
        (self.observer, Over { info: self.info, folder: self.folder, log: self.log })
    }
}

impl Over {
    /// Judges the record and writes the report. The code is what the process ends with.
    pub fn write(mut self, record: &RunRecord, judgement: &Judgement) -> (RunResult, ReportFolder, Code) {
        let verdict = judge(record, judgement);
        let code = code_of(record, verdict.outcome).advised(self.info.advisory);
        record.left.iter().for_each(say_left);
        self.info.exit_code = code.number();
        let mut result = result(record, &verdict, &self.info);
        let log = self.log.get().map(|problem| format!("events.ndjson is incomplete: {problem}"));
        let code = write_down(&self.folder, &mut result, record, log, code);
        tracing::info!(folder = ?self.folder.path(), outcome = ?verdict.outcome, code = code.number(), "the report is written");
        (result, self.folder, code)
    }

    /// [`Over::write`], and shows it.
    pub fn conclude(self, common: &Common, record: &RunRecord, judgement: &Judgement) -> Code {
        let (result, folder, code) = self.write(record, judgement);
        // Whoever reads the verdict may read no more; nothing is left to put in order.
        Signals::release();
        ci::tell(&cases::of_run(&result), &markdown::of_run(&result));
        show(common, &result, &folder).map_or_else(|lost| worse(code, lost), |()| code)
    }
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
        let _ = folder.write_again(result);
    }
    code
}

/// Prints the verdict, or the result document.
fn show(common: &Common, result: &RunResult, folder: &ReportFolder) -> Result<(), Code> {
    let bytes = if common.json {
        json(result)
    } else {
        let style = terminal::style(terminal::Stream::Out);
        text::verdict(result, &style, Some(&folder.path().display().to_string())).into_bytes()
    };
    output::print(&bytes)
}

/// Says what is left outside, and how it is removed: each command on a line, to be copied.
pub fn say_left(left: &Left) {
    let mut err = std::io::stderr().lock();
    let _ = writeln!(err, "error: {}; to remove them by hand:", left.what);
    left.by_hand.iter().for_each(|command| drop(writeln!(err, "  {command}")));
}

/// Says what went wrong.
pub fn fail(error: &dyn std::fmt::Display) -> Code {
    let _ = writeln!(std::io::stderr().lock(), "error: {error}");
    Code::Internal
}

/// The exit code of a run that began.
pub fn code_of(record: &RunRecord, outcome: Outcome) -> Code {
    if !record.cleanup_confirmed {
        return Code::CleanupUnconfirmed;
    }
    match (&record.stopped, outcome) {
        (Some(StopReason::Signal(number)), _) => Code::Interrupted(u8::try_from(*number).unwrap_or(0)),
        (Some(StopReason::StopCondition(_) | StopReason::Operator), _) => Code::Stopped,
        (Some(StopReason::Internal(_)), _) | (None, Outcome::Aborted) => Code::Internal,
        (None, Outcome::Pass) => Code::Pass,
        (None, Outcome::Fail) => Code::Fail,
        (None, Outcome::Inconclusive) => Code::Inconclusive,
    }
}

/// A report that cannot be written is told by its own code, unless the run has something worse to say.
pub fn worse(run: Code, report: Code) -> Code {
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
            (true, Some(StopReason::Operator), Outcome::Aborted, 4),
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
            advisory: false,
            started_unix_ms: None,
            expect: None,
            judged_line: None,
            time_scale: None,
            policies: Vec::new(),
            rules: Vec::new(),
            operator: None,
            note: None,
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
        let document = std::fs::read(folder.path().join(crate::report::folder::RESULT)).unwrap();
        let _ = std::fs::remove_dir_all(&root);
        let written: RunResult = serde_json::from_slice(&document).unwrap();
        assert_eq!((code, written.exit_code), (Code::Internal, Code::Internal.number()));
    }
}
