//! `stormwake policies`: the policies of real clients that a plan can name, and any policy spelled out.

use super::exit::Code;
use super::{check, output, terminal};
use crate::config::{Node, Problems, Read, closest};
use crate::plan::presets::{self, Preset};
use crate::policy::Policy;
use crate::report::policies::{self, Shown};
use std::io::Write;

/// What it is given.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Spell a policy out, and draw the waits before its retries.
    Show(Show),
}

#[derive(clap::Args)]
struct Show {
    /// The preset, or with `--plan` the policy of the plan.
    name: String,
    /// The plan whose policy is shown; `-` reads it from stdin.
    #[arg(long)]
    plan: Option<String>,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Code {
    let shown = match args.command {
        None => {
            let all = presets::all();
            let text = if args.json {
                format!("{:#}\n", policies::list_json(&all))
            } else {
                policies::list(&all, &terminal::style(terminal::Stream::Out))
            };
            Ok(text)
        }
        Some(Command::Show(args)) => show(&args),
    };
    match shown {
        Ok(text) => output::print(text.as_bytes()).map_or_else(|lost| lost, |()| Code::Pass),
        Err(code) => code,
    }
}

fn show(args: &Show) -> Result<String, Code> {
    let text = |shown: &Shown| match args.json {
        true => format!("{:#}\n", policies::show_json(shown)),
        false => policies::show(shown, &terminal::style(terminal::Stream::Out)),
    };
    if let Some(path) = &args.plan {
        let loaded = check::open(path, &[])?;
        let all = of_plan(&loaded.effective);
        return match all.iter().find(|(name, ..)| *name == args.name) {
            Some((name, node, policy)) => Ok(text(&Shown { name, preset: None, node, policy })),
            None => Err(unknown(&args.name, &all.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(), path)),
        };
    }
    let preset: Preset = presets::named(&args.name).ok_or_else(|| no_preset(&args.name))?;
    Ok(text(&Shown { name: preset.name, preset: Some(&preset), node: &preset.node, policy: &preset.policy }))
}

/// The policies of a plan that was checked, by name.
pub fn of_plan(effective: &str) -> Vec<(String, Node, Policy)> {
    let read = |(name, node): (String, Node)| Policy::read(&node, &mut Problems::default()).map(|policy| (name, node, policy));
    presets::spelled_out(effective).into_iter().filter_map(read).collect()
}

/// Says that no preset has that name.
pub fn no_preset(name: &str) -> Code {
    usage(&format!("no preset is called `{}`: {}", short(name), presets::suggestion(name)))
}

fn unknown(name: &str, known: &[&str], path: &str) -> Code {
    let hint = match closest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("it has: {}", known.join(", ")),
    };
    usage(&format!("{path} has no policy that is called `{}`: {hint}", short(name)))
}

/// Says what is wrong with what was asked for.
pub fn usage(message: &str) -> Code {
    let _ = writeln!(std::io::stderr().lock(), "error: {message}");
    Code::Usage
}

fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}
