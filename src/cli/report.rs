//! `stormwake report`: the reports of a folder made again from its document, as after an update of stormwake, or where only the document was kept.

use super::exit::Code;
use super::finish::fail;
use super::output;
use crate::report::compare::CompareResult;
use crate::report::folder::{COMPARE, EFFECTIVE, FolderError, JUNIT, PAGE, RESULT, ReportFolder, SEEDS, SUMMARY, WINDOWS};
use crate::report::result::RunResult;
use crate::report::seeds::SeedsResult;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes of a document that are read: a day of windows is far less.
const MOST_BYTES: u64 = 256 * 1024 * 1024;
/// The newest shape of documents that is understood.
const NEWEST: u64 = 1;

/// What it is given.
#[derive(clap::Args)]
pub struct Args {
    /// The folder of a report: that of a run, of many seeds, or of a comparison; or its result.json, seeds.json or compare.json.
    report: PathBuf,
    /// Where the files go, instead of the report's own folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: Args) -> Code {
    let found = match find(&args.report) {
        Ok(found) => found,
        Err(problem) => return refuse(&problem),
    };
    let document = match read(&found, MOST_BYTES) {
        Ok(document) => document,
        Err(problem) => return refuse(&format!("{}: {problem}", found.display())),
    };
    let own = found.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let plan = match plan(&own.join(EFFECTIVE)) {
        Ok(plan) => plan,
        Err(problem) => return refuse(&problem),
    };
    let made = ReportFolder::at(args.out.as_deref().unwrap_or(own)).and_then(|folder| make(&document, &plan, &folder));
    match made {
        Ok(paths) => {
            let lines: String = paths.iter().map(|path| format!("{}\n", path.display())).collect();
            output::print(lines.as_bytes()).map_or_else(|lost| lost, |()| Code::Pass)
        }
        Err(error) => fail(&error),
    }
}

fn refuse(problem: &str) -> Code {
    fail(&problem);
    Code::Usage
}

/// A document that reports are made from.
enum Document {
    Run(Box<RunResult>),
    Seeds(Box<SeedsResult>),
    Compare(Box<CompareResult>),
}

/// The document that a path leads to.
fn find(path: &Path) -> Result<PathBuf, String> {
    let advice = "give the folder of a report (reports/PLAN/RUN), or its document";
    let metadata = std::fs::metadata(path).map_err(|error| format!("cannot read {}: {error}; {advice}", path.display()))?;
    if !metadata.is_dir() {
        let known = path.file_name().is_some_and(|name| [RESULT, SEEDS, COMPARE].iter().any(|known| name == *known));
        return if known {
            Ok(path.to_path_buf())
        } else {
            Err(format!("{} is no document of a report; {advice}", path.display()))
        };
    }
    let mut there = [RESULT, SEEDS, COMPARE].into_iter().map(|name| path.join(name)).filter(|file| file.exists());
    match (there.next(), there.next()) {
        (Some(file), None) => Ok(file),
        (Some(_), Some(_)) => Err(format!("{} holds more than one document; name the one that is meant", path.display())),
        _ => Err(format!("there is no {RESULT}, {SEEDS} or {COMPARE} in {}; {advice}", path.display())),
    }
}

/// Reads a document. What does not belong to it is refused before it is taken for one.
fn read(path: &Path, most: u64) -> Result<Document, String> {
    let bytes = bounded(path, most)?;
    let name = path.file_name().unwrap_or_default();
    match () {
        () if name == SEEDS => parse(&bytes, "`stormwake simulate`").map(|result| Document::Seeds(Box::new(result))),
        () if name == COMPARE => parse(&bytes, "`stormwake compare`").map(|result| Document::Compare(Box::new(result))),
        () => parse(&bytes, "`stormwake run` or `simulate --seed`").map(|result| Document::Run(Box::new(result))),
    }
}

/// The text of the plan that was run; empty where only the document was kept.
fn plan(path: &Path) -> Result<String, String> {
    if !path.exists() {
        return Ok(String::new());
    }
    let bytes = bounded(path, MOST_BYTES).map_err(|problem| format!("{}: {problem}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn bounded(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let said = |error: io::Error| format!("cannot be read: {error}");
    let long = || format!("is longer than {most} bytes, which no report is");
    match std::fs::metadata(path).map_err(said)? {
        known if !known.is_file() => return Err("is no file".into()),
        known if known.len() > most => return Err(long()),
        _ => {}
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    File::open(path).map_err(said)?.take(most + 1).read_to_end(&mut bytes).map_err(said)?;
    if bytes.len() as u64 > most { Err(long()) } else { Ok(bytes) }
}

/// What says whether a document is ours, and which shape it has.
#[derive(Deserialize)]
struct Mark {
    stormwake: Option<String>,
    #[serde(default)]
    schema_version: Option<u64>,
}

fn parse<T: DeserializeOwned>(bytes: &[u8], made_by: &str) -> Result<T, String> {
    let whole = |error: serde_json::Error| match error.is_eof() {
        true => format!("ends in the middle: {error}; it was not written whole"),
        false => format!("is no JSON of a report: {error}"),
    };
    let mark: Mark = serde_json::from_slice(bytes).map_err(whole)?;
    let Some(version) = mark.stormwake else {
        return Err(format!("is no document of a report: {made_by} writes them"));
    };
    match mark.schema_version {
        Some(found) if found > NEWEST => Err(format!(
            "has schema_version {found}, written by stormwake {}; this one ({}) understands {NEWEST}",
            version.chars().filter(|c| !c.is_control()).take(40).collect::<String>(),
            env!("CARGO_PKG_VERSION")
        )),
        _ => serde_json::from_slice(bytes).map_err(|error| format!("is no document of {made_by}: {error}")),
    }
}

/// Makes the files again, and says which.
fn make(document: &Document, plan: &str, folder: &ReportFolder) -> Result<Vec<PathBuf>, FolderError> {
    let names: &[&str] = match document {
        Document::Run(result) => folder.write_made(result, plan).map(|()| &[JUNIT, PAGE, SUMMARY, WINDOWS][..])?,
        Document::Seeds(result) => folder.write_seeds_made(result, plan).map(|()| &[JUNIT, PAGE, SUMMARY][..])?,
        Document::Compare(result) => folder.write_compare_made(result, plan).map(|()| &[JUNIT, PAGE, SUMMARY][..])?,
    };
    Ok(names.iter().map(|name| folder.path().join(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_document_says_why() {
        let root = std::env::temp_dir().join(format!("stormwake-report-{}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        let file = root.join(RESULT);
        let problem = |bytes: &str| {
            std::fs::write(&file, bytes).unwrap();
            read(&file, 200).err().unwrap_or_default()
        };
        for (bytes, why) in [
            ("", "ends in the middle"),
            ("{\"stormwake\": \"0.1", "ends in the middle"),
            ("hello", "no JSON"),
            ("[1, 2]", "no JSON of a report"),
            ("{\"a\": 1}", "no document of a report"),
            ("{\"stormwake\": \"9.0.0\", \"schema_version\": 7}", "has schema_version 7, written by stormwake 9.0.0"),
            ("{\"stormwake\": \"0.1.0\", \"planned\": 20}", "no document of `stormwake run`"),
            (&" ".repeat(201), "longer than 200 bytes"),
            (&"[".repeat(200), "no JSON"),
        ] {
            let said = problem(bytes);
            assert!(said.contains(why), "{bytes:?}: {said}");
        }
        let found = [find(&root).is_ok(), find(&root.join("gone")).is_ok(), find(Path::new("Cargo.toml")).is_ok()];
        std::fs::write(root.join(SEEDS), "{}").unwrap();
        let two = find(&root).unwrap_err();
        let _ = std::fs::remove_dir_all(&root);
        assert_eq!(found, [true, false, false]);
        assert!(two.contains("more than one document"), "{two}");
    }
}
