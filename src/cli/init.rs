//! `stormwake init`.

use super::exit::Code;

/// What it is given.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the command.
pub fn run(_args: Args) -> Code {
    Code::Internal
}
