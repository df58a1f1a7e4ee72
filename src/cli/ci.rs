//! What a CI system is told beside the report, where the environment says that there is one.
//!
//! `GITHUB_STEP_SUMMARY` names a file that the Markdown summary is appended to. `GITHUB_ACTIONS=true` asks for annotations; they go to stderr, for GitHub's runner reads
//! commands from both streams, and stdout is for data (`--json`). Nothing here changes how a run ends: what cannot be told is a warning.

use crate::report::cases::Suites;
use crate::report::github::{Workspace, annotations};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Bytes of summaries that GitHub takes of one step.
const MOST_BYTES: u64 = 1024 * 1024;

/// Tells what came out.
pub fn tell(suites: &Suites, summary: &[u8]) {
    let path = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let mut err = std::io::stderr().lock();
    if let Some(file) = path("GITHUB_STEP_SUMMARY")
        && let Err(error) = append(&file, summary, MOST_BYTES)
    {
        let _ = writeln!(err, "warning: cannot add the summary to GITHUB_STEP_SUMMARY ({}): {error}", file.display());
    }
    if std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true") {
        let (root, current) = (path("GITHUB_WORKSPACE"), std::env::current_dir().ok());
        let workspace = Workspace { root: root.as_deref(), current: current.as_deref() };
        let _ = err.write_all(annotations(suites, workspace).as_bytes());
    }
}

/// Appends in one write, with an empty line behind it, for what another step's command adds.
fn append(file: &Path, summary: &[u8], most: u64) -> io::Result<()> {
    // Anything else might keep whoever opens it waiting.
    let there = match std::fs::metadata(file) {
        Ok(known) if !known.is_file() => return Err(io::Error::other("it is no file")),
        Ok(known) => known.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    let bytes = [summary, b"\n"].concat();
    if there + bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it would be longer than the {most} bytes that GitHub takes of a step")));
    }
    OpenOptions::new().append(true).create(true).open(file)?.write_all(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_added_up_to_what_github_takes() {
        let root = std::env::temp_dir().join(format!("stormwake-summary-{}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        let file = root.join("summary");
        append(&file, b"one\n", 12).unwrap();
        append(&file, b"two\n", 12).unwrap();
        let full = append(&file, b"three\n", 12).unwrap_err().to_string();
        let folder = append(&root, b"x", 12).unwrap_err().to_string();
        let missing = append(&root.join("no/such/folder"), b"x", 12).is_err();
        let text = std::fs::read_to_string(&file).unwrap();
        let _ = std::fs::remove_dir_all(&root);
        assert_eq!(text, "one\n\ntwo\n\n");
        assert!(full.contains("longer than the 12 bytes") && folder.contains("no file") && missing, "{full} {folder}");
    }
}
