//! `stormwake watchdog`: what a run starts beside it, to clean up where it is killed.

use super::exit::Code;
use super::finish::fail;
use crate::engine::live::external::guard;
use std::io;

/// Runs the command.
pub fn run() -> Code {
    match guard::watch(io::stdin(), &mut io::stdout()) {
        Ok(true) => Code::Pass,
        Ok(false) => Code::CleanupUnconfirmed,
        Err(error) => fail(&error),
    }
}
