//! `stormwake run`: load the plan, run it, judge it, write it down, say it.

use super::exit::Code;
use super::finish::{Common, Prepared, fail, prepare};
use super::metrics::{MetricsArgs, Watched};
use crate::engine::live::run::{RunError, RunSetup, run as run_live};
use crate::plan::Loaded;
use crate::report::prometheus::Subject;
use crate::report::result::Engine;
use std::path::PathBuf;

/// What it is given.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    common: Common,
    /// The seed of every random choice, instead of the plan's.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Dial hosts beyond this machine, where the plan's `allow` names them, and run the commands of its `exec` actions on this one.
    #[arg(long)]
    approve: bool,
    /// How many threads carry the load; as many as cores where nothing is said.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    shards: Option<u16>,
    #[command(flatten)]
    metrics: MetricsArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Code {
    let loaded = match args.common.open(args.seed) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    // Before there is a folder: an address that cannot be had is no run.
    let watched = match args.metrics.start(&loaded.plan, args.approve) {
        Ok(watched) => watched,
        Err(code) => return code,
    };
    match prepare(&args.common, &loaded, Engine::Live) {
        Ok(prepared) => carry_out(&args, loaded, prepared, watched),
        Err(error) => fail(&error),
    }
}

fn carry_out(args: &Args, loaded: Loaded, prepared: Prepared, watched: Watched) -> Code {
    watched.begin(subject(&loaded), &loaded.plan);
    let (observer, over) = prepared.with(watched.observer()).begin();
    let Loaded { plan, effective, .. } = loaded;
    let judgement = plan.judgement();
    let shards = args.shards.map(usize::from);
    let setup = RunSetup { plan, effective_yaml: effective, program: program(), approve: args.approve, shards, observer };
    match run_live(setup) {
        Ok(record) => {
            watched.settle(&record);
            let code = over.conclude(&args.common, &record, &judgement);
            watched.end();
            code
        }
        Err(error) => {
            over.folder.discard();
            fail(&error);
            code_of_error(&error)
        }
    }
}

fn subject(loaded: &Loaded) -> Subject {
    let Loaded { plan, sha256, .. } = loaded;
    Subject { plan: plan.name.clone(), sha256: sha256.clone(), seed: plan.seed, policy: None }
}

/// This program, which is started once more as the built-in target.
pub fn program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("stormwake"))
}

/// The exit code of a run that never began.
pub fn code_of_error(error: &RunError) -> Code {
    match error {
        error if error.is_refusal() => Code::Refused,
        RunError::Interrupted(number) => Code::Interrupted(u8::try_from(*number).unwrap_or(0)),
        _ => Code::Internal,
    }
}
