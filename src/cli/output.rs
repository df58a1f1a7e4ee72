//! The way to stdout.

use super::exit::Code;
use std::io::{ErrorKind, Write};

/// Writes all of it to stdout. A closed pipe is no error: whoever reads has seen enough.
///
/// # Errors
/// The code to end with where output is lost, as on a full disk, once that was said.
pub fn print(bytes: &[u8]) -> Result<(), Code> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let _ = writeln!(std::io::stderr().lock(), "error: the output is lost: cannot write to stdout: {error}");
            Err(Code::Internal)
        }
        _ => Ok(()),
    }
}
