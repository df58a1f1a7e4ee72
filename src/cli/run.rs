//! `stormwake run`: load the plan, run it, judge it, write it down, say it.

use super::exit::Code;
use super::finish::{Common, Prepared, fail, prepare, watched};
use super::tui::Tui;
use crate::engine::live::run::commands::{Commands, commands};
use crate::engine::live::run::{RunError, RunSetup, run as run_live};
use crate::plan::Loaded;
use crate::report::result::Engine;
use crate::report::tui::Facts;
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
    /// Watch the run on the whole terminal, with keys to end a fault early, to note something and to stop.
    #[arg(long, conflicts_with = "quiet")]
    tui: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Code {
    if let Some(why) = args.tui.then(Tui::impossible).flatten() {
        fail(&why);
        return Code::Usage;
    }
    let loaded = match args.common.open(Engine::Live, args.seed) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    if args.tui { watch(&args, loaded) } else { carry_out(&args, loaded) }
}

fn carry_out(args: &Args, loaded: Loaded) -> Code {
    match prepare(&args.common, &loaded, Engine::Live) {
        Ok(prepared) => conclude(args, loaded, prepared, None, || ()),
        Err(error) => fail(&error),
    }
}

/// The same, while the terminal shows it.
fn watch(args: &Args, loaded: Loaded) -> Code {
    let (commander, asked) = commands();
    let facts = Facts { operator: args.common.operator.clone(), note: args.common.note.clone() };
    let tui = Tui::new(&loaded.plan, facts, commander);
    let prepared = match watched(&args.common, &loaded, Engine::Live, Some(tui.observer())) {
        Ok(prepared) => prepared,
        Err(error) => return fail(&error),
    };
    match tui.begin() {
        Ok(shown) => conclude(args, loaded, prepared, Some(asked), || shown.end()),
        Err(error) => {
            prepared.folder.discard();
            fail(&format!("the terminal cannot be taken over: {error}; leave `--tui` out"))
        }
    }
}

/// Runs it, and says what came of it once nothing else is on the terminal.
fn conclude(args: &Args, loaded: Loaded, prepared: Prepared, commands: Option<Commands>, give_back: impl FnOnce()) -> Code {
    let (observer, over) = prepared.begin();
    let Loaded { plan, effective, .. } = loaded;
    let judgement = plan.judgement();
    let shards = args.shards.map(usize::from);
    let (program, approve) = (program(), args.approve);
    let ran = run_live(RunSetup { plan, effective_yaml: effective, program, approve, shards, observer, commands });
    give_back();
    match ran {
        Ok(record) => over.conclude(&args.common, &record, &judgement),
        Err(error) => {
            over.folder.discard();
            fail(&error);
            code_of_error(&error)
        }
    }
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
