//! `stormwake completions`: what a shell completes our command line with.

use super::exit::Code;
use super::{NAME, output};
use clap_complete::Shell;

/// What it is given.
#[derive(clap::Args)]
pub struct Args {
    /// The shell that is to complete.
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs the command.
pub fn run(args: Args) -> Code {
    output::print(&script(args.shell)).map_or_else(|lost| lost, |()| Code::Pass)
}

fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut super::shown(), NAME, &mut script);
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_is_shown_is_completed_in_every_shell() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let script = String::from_utf8(script(shell)).expect("scripts are text");
            for command in super::super::shown().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
            assert!(!script.contains("watchdog"), "{shell} shows what is hidden");
        }
    }
}
