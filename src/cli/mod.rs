//! The command line: one file per command.

pub mod audit;
pub mod bisect;
pub mod calibrate;
pub mod check;
pub mod ci;
pub mod compare;
pub mod completions;
pub mod exit;
pub mod finish;
pub mod init;
pub mod logging;
pub mod man;
pub mod metrics;
#[cfg(feature = "otlp")]
pub mod otlp;
pub mod output;
pub mod policies;
pub mod proxy;
pub mod report;
pub mod run;
pub mod schema;
pub mod simulate;
pub mod target;
pub mod terminal;
pub mod tui;
pub mod watchdog;

use crate::report::layout::Style;
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// The binary's name.
const NAME: &str = "stormwake";

/// Columns of what was typed that an error shows.
const TYPED: usize = 200;

/// A load-generating chaos test harness: when the fault ends, does the incident end?
#[derive(Parser)]
#[command(name = NAME, version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a plan live and judge the recovery.
    Run(run::Args),
    /// Run a plan in virtual time, with one seed or many, and judge the recovery.
    Simulate(simulate::Args),
    /// Run the policies that a plan compares, on the same seeds, and say what each changes.
    Compare(compare::Args),
    /// Validate a plan, draw its timeline, and say what its arithmetic predicts.
    Check(check::Args),
    /// Find the value of a setting at which half of the seeds stay stuck, in virtual time.
    Bisect(bisect::Args),
    /// Derive a model of a target, and of the way to it, from the report of a live run.
    Calibrate(calibrate::Args),
    /// Make the reports of a run, of many seeds or of a comparison again from its document.
    Report(report::Args),
    /// List the policies of real clients that a plan can name, or spell one out.
    Policies(policies::Args),
    /// Count how far apart backoffs carry clients that failed together.
    Audit(audit::Args),
    /// Print the JSON Schema of plans (or of results).
    Schema(schema::Args),
    /// Write a commented plan to start from.
    Init(init::Args),
    /// Run the fault proxy alone, with Toxiproxy's API.
    ///
    /// Toxiproxy's clients drive it unchanged; ARCHITECTURE.md lists where it answers otherwise, and why.
    /// Counters are at /metrics of the API (Prometheus).
    ///
    ///   stormwake proxy --listen 127.0.0.1:9001 --upstream 127.0.0.1:5432
    ///   curl -d '{"type": "latency", "attributes": {"latency": 200}}' localhost:8474/proxies/proxy-1/toxics
    #[command(verbatim_doc_comment)]
    Proxy(proxy::Args),
    /// Run the built-in target alone.
    ///
    /// Its counts are at /stormwake/stats (JSON) and /metrics (Prometheus).
    /// `POST /stormwake/service` changes it while it runs, from this machine only, with what
    /// a step of a plan's timeline says under `service:`, and answers with what then holds:
    ///
    ///   curl -d 'capacity: 20%' localhost:8080/stormwake/service
    ///   curl -d '{ capacity: 20%, over: 5s }' localhost:8080/stormwake/service
    ///
    /// Several keys stand in braces, or each on a line of its own. The keys are:
    ///
    ///   capacity        a share of the capacity that it began with
    ///   over            the time in which it gets there: 5s
    ///   limiter         other limits: { token_bucket: { rate: 50/s } }; or off
    ///   drain           at most so many leave the queue: 50/s; or off
    ///   restart         what it holds is lost: { down_for: 5s, keeps_queue: true }
    ///   cache           cold or warm, of a service with a `cold_cache`
    ///   reject_backlog  all that waits is refused: {}, or { retry_after: 1s }
    ///   of              one of the plan's `services`; the front one is `service`
    #[command(verbatim_doc_comment)]
    Target(target::Args),
    /// Print what a shell completes this command line with.
    Completions(completions::Args),
    /// Print the manual, or write a page for each command.
    Man(man::Args),
    /// Remove the faults of a run from its Toxiproxy when that run is killed. A run starts it.
    #[command(hide = true)]
    Watchdog,
}

/// Runs the command that argv names.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let error = tamed(error);
            // Help and version go to stdout and are no failure; a closed pipe there is none either.
            let _ = error.print();
            return if error.use_stderr() { exit::Code::Usage.into() } else { exit::Code::Pass.into() };
        }
    };
    let code = match cli.command {
        Command::Run(args) => run::run(args),
        Command::Simulate(args) => simulate::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Check(args) => check::run(args),
        Command::Bisect(args) => bisect::run(args),
        Command::Calibrate(args) => calibrate::run(args),
        Command::Report(args) => report::run(args),
        Command::Policies(args) => policies::run(args),
        Command::Audit(args) => audit::run(args),
        Command::Schema(args) => schema::run(args),
        Command::Init(args) => init::run(args),
        Command::Proxy(args) => proxy::run(args),
        Command::Target(args) => target::run(args),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
        Command::Watchdog => watchdog::run(),
    };
    logging::end();
    code.into()
}

/// An error of the command line, with what was typed as a terminal, and whoever reads commands from a log, may see it: on one line, not endless.
fn tamed(mut error: clap::Error) -> clap::Error {
    let hostile = |text: &str| text.chars().count() > TYPED || text.chars().any(char::is_control);
    let typed: Vec<(ContextKind, String)> = error
        .context()
        .filter_map(|(kind, value)| match value {
            ContextValue::String(text) if hostile(text) => Some((kind, Style::default().fit(text, TYPED))),
            _ => None,
        })
        .collect();
    for (kind, text) in typed {
        error.insert(kind, ContextValue::String(text));
    }
    error
}

/// The command line without commands that are hidden, for shells and the manual.
fn shown() -> clap::Command {
    without_hidden(&Cli::command())
}

/// clap takes nothing away from a command, so it is made again of what is shown.
fn without_hidden(of: &clap::Command) -> clap::Command {
    let commands = of.get_subcommands().filter(|command| !command.is_hide_set()).map(without_hidden);
    let about = of.get_about().cloned().unwrap_or_default();
    let long = of.get_long_about().unwrap_or(&about).clone();
    clap::Command::new(of.get_name().to_string())
        .version(env!("CARGO_PKG_VERSION"))
        .about(about)
        .long_about(long)
        .subcommand_required(of.is_subcommand_required_set())
        .args(of.get_arguments().cloned())
        .subcommands(commands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_is_shown_on_one_line_and_not_endless() {
        let long = "x".repeat(5_000);
        for typed in ["a\n::error::b\u{1b}[2J", &long] {
            for argv in [["x", "run", "p", "--operator", typed], ["x", typed, "", "", ""]] {
                let Err(error) = Cli::try_parse_from(argv) else { panic!("{argv:?}") };
                let said = tamed(error).to_string();
                assert!(said.len() < 600 && !said.contains('\u{1b}') && !said.contains("\n::"), "{said}");
            }
        }
        let Err(error) = Cli::try_parse_from(["x", "run", "p", "--operator", "a\nb"]) else { panic!("two lines") };
        assert!(tamed(error).to_string().contains("'a b' for '--operator <NAME>'"));
    }
}
