//! `stormwake check`: validates a plan, draws its timeline, and says what its arithmetic predicts.

use super::exit::Code;
use super::finish::with_scale;
use super::output;
use super::terminal;
use crate::plan::{self, Loaded, PlanError, yaml};
use crate::report::plan_text;
use crate::report::result::Engine;
use std::io::{ErrorKind, Read, Write};

/// What it is given.
#[derive(clap::Args)]
pub struct Args {
    /// The plan; `-` reads it from stdin.
    plan: String,
    /// Override a value of the plan: `--set length=2m`, `--set timeline.block.for=30s`. Repeatable.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Look at the plan at another speed: `1/20` divides its durations by twenty and multiplies its rates.
    #[arg(long, value_name = "SCALE")]
    time_scale: Option<String>,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
    /// Print the plan as it will run, variables and overrides resolved, instead of its description.
    #[arg(long, conflicts_with = "json")]
    effective: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Code {
    let loaded = match open(&args.plan, &with_scale(&args.overrides, args.time_scale.as_deref())) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let text = if args.effective {
        loaded.effective
    } else if args.json {
        format!("{:#}\n", plan_text::json(&loaded))
    } else {
        plan_text::check(&loaded.plan, terminal::style(terminal::Stream::Out).width)
    };
    output::print(text.as_bytes()).map_or_else(|lost| lost, |()| Code::Pass)
}

/// Opens and checks the plan that a command was given, from a file or, for `-`, from stdin. Errors and warnings go
/// to stderr.
///
/// # Errors
/// The code to end with, once everything wrong was said.
pub fn open(path: &str, overrides: &[String]) -> Result<Loaded, Code> {
    open_with(path, overrides, |loaded| &loaded.warnings_text)
}

/// The same for a run by this engine: only warnings that concern it are said.
///
/// # Errors
/// Those of [`open`].
pub fn open_for(engine: Engine, path: &str, overrides: &[String]) -> Result<Loaded, Code> {
    open_with(path, overrides, |loaded| match engine {
        Engine::Live => &loaded.live_warnings,
        Engine::Sim => &loaded.simulated_warnings,
    })
}

fn open_with(path: &str, overrides: &[String], warnings: impl Fn(&Loaded) -> &String) -> Result<Loaded, Code> {
    let loaded = load(path, &text_of(path)?, overrides).map_err(|error| refuse(&error))?;
    if !warnings(&loaded).is_empty() {
        say(&format!("{}\n", warnings(&loaded)));
    }
    Ok(loaded)
}

/// The text of a plan, from a file or, for `-`, from stdin.
///
/// # Errors
/// The code to end with, once it was said what cannot be read.
pub fn text_of(path: &str) -> Result<String, Code> {
    let bytes = read(path).map_err(|error| say(&unreadable(path, &error)))?;
    plan::decode(bytes, shown(path)).map_err(|error| refuse(&error))
}

/// Checks the text of a plan with the environment of this process.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load(path: &str, text: &str, overrides: &[String]) -> Result<Loaded, PlanError> {
    let env = |name: &str| std::env::var(name).ok();
    plan::load(&plan::Source { file: shown(path), text, overrides, env: &env })
}

fn shown(path: &str) -> &str {
    if path == "-" { "stdin" } else { path }
}

/// Says what is wrong with a plan; gives the code to end with.
pub fn refuse(error: &PlanError) -> Code {
    let count = error.diagnostics().problems.error_count();
    let errors = if count == 1 { "1 error".to_string() } else { format!("{count} errors") };
    say(&format!("{error}\n{errors}: the plan cannot be run\n"))
}

fn say(text: &str) -> Code {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
    Code::Usage
}

/// At most one byte more than a plan may have, whatever the file is.
fn read(path: &str) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = yaml::MAX_BYTES as u64 + 1;
    match path {
        "-" => std::io::stdin().lock().take(limit).read_to_end(&mut bytes)?,
        path => std::fs::File::open(path)?.take(limit).read_to_end(&mut bytes)?,
    };
    Ok(bytes)
}

fn unreadable(path: &str, error: &std::io::Error) -> String {
    let remedy = match error.kind() {
        ErrorKind::NotFound => "check the path; `stormwake init` writes a plan to start from",
        ErrorKind::PermissionDenied => "make the file readable for this user",
        _ => "give the path of a file, or `-` to read the plan from stdin",
    };
    format!("error: cannot read the plan {path}: {error}; {remedy}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_cannot_be_read_comes_with_a_remedy() {
        for (path, remedy) in [("/no/such/plan.yaml", "stormwake init"), ("/", "path of a file")] {
            let error = read(path).unwrap_err();
            assert!(unreadable(path, &error).contains(remedy), "{}", unreadable(path, &error));
        }
    }
}
