//! `stormwake simulate`: a plan in virtual time, with one seed or many.

use super::exit::Code;
use super::finish::{Common, code_of, fail, folder, info, manner, observed, prepare, wall_millis, worse};
use super::{ci, output, terminal};
use crate::engine::live::clock::{Clock, LiveClock};
use crate::engine::live::signal::Signals;
use crate::engine::shared::WINDOW;
use crate::engine::sim::{self, many::many};
use crate::fault::{Phase, Timeline};
use crate::gate::{CURVES, Class, Curve, Outcome, SeedRun, SeedsVerdict, judge, judge_seeds};
use crate::metrics::{RunRecord, StopReason};
use crate::plan::{self, Loaded, Plan};
use crate::report::curves::Frame;
use crate::report::folder::{EFFECTIVE, ReportFolder};
use crate::report::result::Engine;
use crate::report::seeds::{self, SeedsInfo, SeedsResult};
use crate::report::seeds_progress::Tally;
use crate::report::{cases, markdown, seeds_text};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many seeds are run where nothing is said.
const SEEDS_RUN: u32 = 20;

/// What it is given.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    common: Common,
    /// Run this seed alone, and report it as `run` does.
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// How many seeds to run: the plan's, and those that follow it.
    #[arg(long, value_name = "N", default_value_t = SEEDS_RUN, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    seeds: u32,
    /// How many threads run seeds; as many as cores where nothing is said. It changes no result.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// Runs the command.
pub fn run(args: Args) -> Code {
    match args.common.open(Engine::Sim, args.seed) {
        Ok(loaded) if args.seed.is_some() => one(&args.common, &loaded),
        Ok(loaded) => all(&args, &loaded),
        Err(code) => code,
    }
}

/// One seed, as `run` does it.
fn one(common: &Common, loaded: &Loaded) -> Code {
    match prepare(common, loaded, Engine::Sim) {
        Ok(prepared) => {
            let (mut observer, over) = prepared.begin();
            match sim::run(&loaded.plan, &mut *observer, Signals::flag()) {
                Ok(record) => over.conclude(common, &record, &loaded.plan.judgement()),
                Err(error) => {
                    over.folder.discard();
                    not_simulated(&error)
                }
            }
        }
        Err(error) => fail(&error),
    }
}

/// A plan that cannot be simulated is a plan that says too little.
pub fn not_simulated(error: &sim::SimError) -> Code {
    fail(error);
    Code::Usage
}

/// So many seeds: the plan's own, and those that follow it.
pub fn seeds_of(plan: &Plan, count: u32) -> Vec<u64> {
    (0..u64::from(count)).map(|index| plan.seed.wrapping_add(index)).collect()
}

/// As many threads as cores where nothing is said.
pub fn threads_of(threads: Option<u16>) -> usize {
    threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}

/// What is kept of one run, and the code that it would end with alone.
pub type Kept = (SeedRun, Code);

/// Judges a run, and keeps what many runs need of it: of very many only the first with their curves.
pub fn keep(plan: &Plan, seed: u64, record: &RunRecord) -> Kept {
    let verdict = judge(record, &plan.judgement());
    let mut kept = SeedRun::of(seed, record, &verdict);
    kept.curve = kept.curve.filter(|_| seed.wrapping_sub(plan.seed) < CURVES);
    (kept, code_of(record, verdict.outcome))
}

/// The phases of a plan's runs.
pub fn phases(plan: &Plan) -> Vec<Phase> {
    Timeline::new(plan.timeline.clone(), plan.seed).phases(plan.length)
}

/// What the curves of a plan's runs have in common.
pub fn frame<'a>(plan: &Plan, phases: &'a [Phase]) -> Frame<'a> {
    Frame { window: WINDOW, length: plan.length, phases }
}

/// Shows how far many runs have come, from any thread.
pub struct Going {
    clock: LiveClock,
    tally: Option<Mutex<Tally<std::io::Stderr>>>,
}

impl Going {
    /// Shows nothing where it is to be quiet.
    pub fn new(common: &Common) -> Self {
        let clock = LiveClock::waiting().as_ref().clone();
        clock.begin_in(crate::time::Span::ZERO);
        let style = terminal::style(terminal::Stream::Err);
        let tally = (!common.quiet).then(|| Mutex::new(Tally::new(std::io::stderr(), manner(common), style)));
        Self { clock, tally }
    }

    /// Tells how far it has come.
    pub fn tell(&self, text: &str) {
        if let Some(tally) = &self.tally {
            tally.lock().unwrap_or_else(PoisonError::into_inner).tell(self.clock.now(), text);
        }
    }
}

fn all(args: &Args, loaded: &Loaded) -> Code {
    let now = wall_millis();
    let folder = match folder(&args.common, loaded, now) {
        Ok(folder) => folder,
        Err(error) => return fail(&error),
    };
    let plan = &loaded.plan;
    let seeds = seeds_of(plan, args.seeds);
    let kept = match run_seeds(args, plan, &seeds) {
        Ok(kept) => kept,
        Err(error) => {
            folder.discard();
            return not_simulated(&error);
        }
    };
    let (mut runs, codes): (Vec<SeedRun>, Vec<Code>) = kept.into_iter().unzip();
    let verdict = judge_seeds(&runs, expected(plan), plan.recovered.as_ref());
    let stopped = stopped(seeds.len() as u64, runs.len() as u64);
    let mut info = info(&args.common, loaded, Engine::Sim, now);
    let mut code = code_of_many(&verdict, &codes, stopped.as_ref()).advised(args.common.advisory);
    let mut worst = verdict.worst.filter(|_| stopped.is_none());
    if let Some(index) = worst {
        match write_worst(args, loaded, &folder, runs[index].seed) {
            Ok(Some(curve)) => runs[index].curve = Some(curve),
            // Every seed is judged; the report is not whole.
            Ok(None) => {
                worst = None;
                code = Code::Interrupted(u8::try_from(Signals::flag().load(Ordering::SeqCst)).unwrap_or(0));
            }
            Err(problem) => code = worse(code, fail(&problem)),
        }
    }
    info.exit_code = code.number();
    let (planned, phases) = (seeds.len() as u64, phases(plan));
    let frame = frame(plan, &phases);
    let more = SeedsInfo { plan: &info, gates: &plan.gates, planned, stopped: stopped.as_ref(), frame };
    let result = seeds::result(&runs, &verdict, more);
    if let Err(error) = folder.write_seeds(&result) {
        code = worse(code, fail(&error));
    }
    Signals::release();
    ci::tell(&cases::of_seeds(&result), &markdown::of_seeds(&result));
    show(args, &result, &folder, worst.map(|index| runs[index].seed)).map_or_else(|lost| worse(code, lost), |()| code)
}

fn run_seeds(args: &Args, plan: &Plan, seeds: &[u64]) -> Result<Vec<Kept>, sim::SimError> {
    let expect = expected(plan);
    let (wanted, going) = (AtomicUsize::new(0), Going::new(&args.common));
    let word = match (expect, &plan.recovery) {
        (Some(class), _) => class.word(),
        (None, Some(_)) => "recovered",
        (None, None) => "passed",
    };
    let each = |seed, record: RunRecord| {
        let kept = keep(plan, seed, &record);
        wanted.fetch_add(usize::from(kept.0.is_wanted(expect)), Ordering::Relaxed);
        kept
    };
    let done = |done| going.tell(&format!("{done}/{} seeds, {} {word}", seeds.len(), wanted.load(Ordering::Relaxed)));
    many(plan, seeds, threads_of(args.threads), Signals::flag(), &each, &done)
}

fn expected(plan: &Plan) -> Option<Class> {
    plan.expect.as_ref().map(|expect| expect.class)
}

/// What a signal did to many runs; nothing where it came after the last.
pub fn stopped(planned: u64, done: u64) -> Option<StopReason> {
    let number = Signals::flag().load(Ordering::SeqCst);
    (done < planned && number != 0).then_some(StopReason::Signal(number))
}

/// The code of many runs: that of what decides.
fn code_of_many(verdict: &SeedsVerdict, codes: &[Code], stopped: Option<&StopReason>) -> Code {
    if let Some(StopReason::Signal(number)) = stopped {
        return Code::Interrupted(u8::try_from(*number).unwrap_or(0));
    }
    match verdict.outcome {
        Outcome::Pass => Code::Pass,
        Outcome::Fail => Code::Fail,
        Outcome::Inconclusive => Code::Inconclusive,
        // What stopped it is known to the run alone.
        Outcome::Aborted => verdict.decided_by.and_then(|index| codes.get(index)).copied().unwrap_or(Code::Internal),
    }
}

/// The whole report of one seed, in a folder of its own: what `--seed` would have written. The run is made again, which is
/// cheaper than to keep the record of each. Returns its curve; none where a signal ended it, and then nothing of it is left.
fn write_worst(args: &Args, loaded: &Loaded, folder: &ReportFolder, seed: u64) -> Result<Option<Curve>, String> {
    let loaded = reseeded(loaded, seed)?;
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let inner = folder.within(&worst_folder(seed)).map_err(|error| said(&error))?;
    inner.write(EFFECTIVE, loaded.effective.as_bytes()).map_err(|error| said(&error))?;
    let info = info(&args.common, &loaded, Engine::Sim, 0);
    let (mut observer, over) = observed(info, inner, None).map_err(|error| said(&error))?.begin();
    let record = sim::run(&loaded.plan, &mut *observer, Signals::flag()).map_err(|error| said(&error))?;
    if matches!(record.stopped, Some(StopReason::Signal(_))) {
        over.folder.discard();
        return Ok(None);
    }
    over.write(&record, &loaded.plan.judgement());
    Ok(Some(Curve::of(&record)))
}

fn worst_folder(seed: u64) -> String {
    format!("seed{seed}")
}

/// The plan with another seed: places stay those of its file, and the effective text is the one that `--seed` gives.
pub fn reseeded(loaded: &Loaded, seed: u64) -> Result<Loaded, String> {
    let overrides = [format!("seed={seed}")];
    let none = |_: &str| None;
    let source = plan::Source { file: EFFECTIVE, text: &loaded.effective, overrides: &overrides, env: &none };
    let again = plan::load(&source).map_err(|error| error.to_string())?;
    Ok(Loaded { plan: Plan { seed, ..loaded.plan.clone() }, ..again })
}

fn show(args: &Args, result: &SeedsResult, folder: &ReportFolder, worst: Option<u64>) -> Result<(), Code> {
    if args.common.json {
        return output::print(&seeds::json(result));
    }
    let style = terminal::style(terminal::Stream::Out);
    let worst = worst.map_or_else(String::new, |seed| format!("  (the worst in {}/)", worst_folder(seed)));
    let report = format!("{}{worst}", folder.path().display());
    output::print(seeds_text::verdict(result, &style, Some(&report)).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(outcome: Outcome, decided_by: Option<usize>) -> SeedsVerdict {
        SeedsVerdict { outcome, decided_by, wanted: 0, share: None, worst: decided_by }
    }

    #[test]
    fn the_worst_seed_decides_the_code() {
        let codes = [Code::Pass, Code::Stopped, Code::Fail];
        for (outcome, decided_by, signal, number) in [
            (Outcome::Pass, Some(0), None, 0),
            (Outcome::Fail, Some(2), None, 1),
            (Outcome::Fail, None, None, 1),
            (Outcome::Inconclusive, Some(2), None, 3),
            (Outcome::Inconclusive, None, None, 3),
            (Outcome::Aborted, Some(1), None, 4),
            (Outcome::Pass, Some(0), Some(2), 130),
            (Outcome::Fail, Some(2), Some(15), 143),
        ] {
            let stopped = signal.map(StopReason::Signal);
            let code = code_of_many(&verdict(outcome, decided_by), &codes, stopped.as_ref());
            assert_eq!(code.number(), number, "{outcome:?} {decided_by:?} {signal:?}");
        }
    }
}
