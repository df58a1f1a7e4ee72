//! Small files that a plan names: read within bounds, and never one that could keep a run waiting.

use std::io::Read as _;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// What the system says.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A device, a pipe or a folder: reading it could last for ever.
    #[error("it is not a regular file")]
    NotRegular,
    /// Too large.
    #[error("it is larger than {} KiB", .0 / 1024)]
    TooLarge(u64),
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// Any other file, or one that cannot be read.
pub fn read(path: &str, limit: u64) -> Result<Vec<u8>, FileError> {
    // Asked before it is opened: opening a pipe waits for its writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(FileError::NotRegular);
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(FileError::TooLarge(limit)) } else { Ok(bytes) }
}
