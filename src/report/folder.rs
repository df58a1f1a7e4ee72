//! The folder of a run's report: `reports/<plan>/<run>/`.
//!
//! It is made, and written to, before the run begins: a run of two hours must not end with "permission denied".
//! Files appear whole or not at all (written beside, then renamed); only `events.ndjson` grows as the run goes on.
//! Names from plans cannot leave the folder they are meant for.

use super::result::{RunResult, json};
use super::{hlog, html, windows_csv};
use crate::metrics::RunRecord;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The document of the run.
pub const RESULT: &str = "result.json";
/// The series.
pub const WINDOWS: &str = "windows.csv";
/// The histograms.
pub const LATENCY: &str = "latency.hlog";
/// The page.
pub const PAGE: &str = "report.html";
/// The run's events, written as they happen.
pub const EVENTS: &str = "events.ndjson";
/// The plan after variables and overrides.
pub const EFFECTIVE: &str = "effective.yaml";

/// What many seeds of a plan showed.
pub const SEEDS: &str = "seeds.json";
/// What a comparison of policies showed.
pub const COMPARE: &str = "compare.json";

/// Characters of a plan's name that a folder's name keeps.
const NAME_LENGTH: usize = 64;
/// Runs of one plan and seed that may begin in one second.
const SAME_SECOND: u32 = 1_000;
/// Bytes that must fit on the disk before a run begins.
const PROBE: usize = 256 * 1024;

/// Why a report cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The folder cannot be made, or nothing can be written into it.
    #[error("cannot write reports to `{}`: {source}; {}", path.display(), remedy(source))]
    Unwritable {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file of the report cannot be written.
    #[error("cannot write `{}`: {source}; {}", path.display(), remedy(source))]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// So many runs began in one second that there is no name left.
    #[error("`{}` and {SAME_SECOND} names like it are taken; choose another output folder, or remove old reports", .0.display())]
    NoNameLeft(PathBuf),
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "the disk is full: free some space, or choose an output folder on another disk"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "make the folder writable, or choose another output folder"
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "a part of this path is a file: move it away, or choose another output folder"
        }
        _ => "choose another output folder",
    }
}

/// The folder of one run's report; it exists, and could be written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFolder {
    path: PathBuf,
}

impl ReportFolder {
    /// Makes the folder below `root`, named after the plan and then after the start of the run (seconds since the Unix
    /// epoch) and its seed, and tries whether it can be written to.
    ///
    /// # Errors
    /// A folder that cannot be made or written to, a full disk.
    pub fn create(root: &Path, plan: &str, started_unix: u64, seed: u64) -> Result<Self, FolderError> {
        let parent = root.join(folder_name(plan));
        let unwritable = |source| FolderError::Unwritable { path: parent.clone(), source };
        fs::create_dir_all(&parent).map_err(unwritable)?;
        let run = run_name(started_unix, seed);
        for n in 1..=SAME_SECOND {
            let path = parent.join(if n == 1 { run.clone() } else { format!("{run}-{n}") });
            match fs::create_dir(&path) {
                Ok(()) => return Self { path }.probed(),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(FolderError::Unwritable { path, source }),
            }
        }
        Err(FolderError::NoNameLeft(parent.join(run)))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A folder in this one, for the report of one run of many.
    ///
    /// # Errors
    /// One that cannot be made.
    pub fn within(&self, name: &str) -> Result<Self, FolderError> {
        let path = self.path.join(folder_name(name));
        match fs::create_dir(&path) {
            Ok(()) => Ok(Self { path }),
            Err(source) => Err(FolderError::Unwritable { path, source }),
        }
    }

    /// Removes the folder of a run that never began. What has been written into it goes too.
    pub fn discard(self) {
        // Nothing depends on it: what cannot be removed stays as an empty report.
        let _ = fs::remove_dir_all(&self.path);
    }

    /// Opens the log of events. Unbuffered: each write reaches the file.
    ///
    /// # Errors
    /// A file that cannot be made.
    pub fn events(&self) -> Result<File, FolderError> {
        let path = self.path.join(EVENTS);
        OpenOptions::new().append(true).create(true).open(&path).map_err(|source| FolderError::File { path, source })
    }

    /// Writes a file whole, or leaves none.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), FolderError> {
        let path = self.path.join(name);
        let beside = self.path.join(format!(".{name}.part"));
        let written = write_synced(&beside, bytes).and_then(|()| fs::rename(&beside, &path));
        written.map_err(|source| {
            // It may not be there, and must not stay.
            let _ = fs::remove_file(&beside);
            FolderError::File { path, source }
        })
    }

    /// Writes what is made from the run's record: the document first, for it holds the most. A file that fails does
    /// not keep the others from being written.
    ///
    /// # Errors
    /// The first file that could not be written.
    pub fn write_report(&self, result: &RunResult, record: &RunRecord) -> Result<(), FolderError> {
        let into_memory = "memory takes every write";
        let mut csv = Vec::new();
        windows_csv::write(&mut csv, result).expect(into_memory);
        let mut log = Vec::new();
        let path = self.path.join(LATENCY);
        let logged = hlog::write(&mut log, record, result.started_unix_ms).map_err(|source| FolderError::File { path, source });
        let document = self.write(RESULT, &json(result));
        let series = self.write(WINDOWS, &csv);
        let histograms = logged.and_then(|()| self.write(LATENCY, &log));
        let page = self.write_page(result);
        document.and(series).and(histograms).and(page)
    }

    /// Writes the page of a run. The plan on it is the one that stands in the folder.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write_page(&self, result: &RunResult) -> Result<(), FolderError> {
        // One that is not there is said to be unknown.
        let plan = fs::read_to_string(self.path.join(EFFECTIVE)).unwrap_or_default();
        self.write(PAGE, html::run(result, &plan).as_bytes())
    }

    fn probed(self) -> Result<Self, FolderError> {
        let probe = self.path.join(".probe");
        let tried = write_synced(&probe, &vec![0; PROBE]);
        let removed = fs::remove_file(&probe);
        match tried.and(removed) {
            Ok(()) => Ok(self),
            Err(source) => {
                let path = self.path.clone();
                self.discard();
                Err(FolderError::Unwritable { path, source })
            }
        }
    }
}

/// Synced, because a disk may promise space that it has not.
fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A plan's name as the name of one folder: letters, digits, `.`, `_` and `-`, no dot in front.
fn folder_name(plan: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' };
    let name: String = plan.chars().map(plain).take(NAME_LENGTH).collect();
    let name = name.trim_matches(['.', '-']);
    if name.is_empty() { "plan".into() } else { name.to_string() }
}

/// `20261130T065512Z-seed7`.
fn run_name(started_unix: u64, seed: u64) -> String {
    let moment = i64::try_from(started_unix).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    let moment = moment.unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    format!("{}-seed{seed}", moment.strftime("%Y%m%dT%H%M%SZ"))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    /// A folder of this test alone, removed at its end.
    struct Temp(PathBuf);

    impl Temp {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("stormwake-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Temp {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn files(path: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn names_are_one_folder_below_the_root() {
        for (plan, want) in [
            ("quickstart", "quickstart"),
            ("../../etc/passwd", "etc-passwd"),
            ("/", "plan"),
            ("..", "plan"),
            ("", "plan"),
            ("a\0b\nc", "a-b-c"),
            ("C:\\x", "C--x"),
            (".hidden", "hidden"),
            ("größe", "gr--e"),
        ] {
            assert_eq!(folder_name(plan), want, "{plan:?}");
        }
        assert_eq!(folder_name(&"x".repeat(5_000)).len(), NAME_LENGTH);
        assert_eq!(run_name(1_796_021_712, 7), "20261130T065512Z-seed7");
        assert_eq!(run_name(u64::MAX, 7), "19700101T000000Z-seed7");
    }

    #[test]
    fn two_runs_of_one_second_have_two_folders() {
        let temp = Temp::new("collide");
        let first = ReportFolder::create(&temp.0, "storm", 0, 7).unwrap();
        let second = ReportFolder::create(&temp.0, "storm", 0, 7).unwrap();
        assert_eq!(first.path(), temp.0.join("storm/19700101T000000Z-seed7"));
        assert_eq!(second.path(), temp.0.join("storm/19700101T000000Z-seed7-2"));
        assert!(files(first.path()).is_empty(), "the probe is gone");
        second.discard();
        assert_eq!(files(&temp.0.join("storm")), ["19700101T000000Z-seed7"]);
    }

    #[test]
    fn a_report_is_all_of_its_files() {
        let temp = Temp::new("files");
        let folder = ReportFolder::create(&temp.0, "storm", 0, 7).unwrap();
        let record = sample::record();
        folder.events().unwrap().write_all(b"{}\n").unwrap();
        folder.write(EFFECTIVE, b"name: storm\n").unwrap();
        folder.write_report(&sample::stuck(), &record).unwrap();
        assert_eq!(files(folder.path()), [EFFECTIVE, EVENTS, LATENCY, PAGE, RESULT, WINDOWS]);
        let read: RunResult = serde_json::from_slice(&fs::read(folder.path().join(RESULT)).unwrap()).unwrap();
        assert_eq!(read, sample::stuck());
    }

    #[test]
    fn a_root_that_is_no_folder_is_refused_before_the_run() {
        let temp = Temp::new("file");
        let file = temp.0.join("reports");
        fs::write(&file, "").unwrap();
        let error = ReportFolder::create(&file, "storm", 0, 7).unwrap_err().to_string();
        assert!(error.contains("reports/storm") && error.contains("choose another output folder"), "{error}");
        assert!(!error.contains('\n'));
    }

    #[test]
    fn a_file_that_fails_names_itself_and_leaves_nothing_half() {
        let temp = Temp::new("fails");
        let folder = ReportFolder::create(&temp.0, "storm", 0, 7).unwrap();
        fs::create_dir(folder.path().join(RESULT)).unwrap();
        let error = folder.write_report(&sample::stuck(), &sample::record()).unwrap_err().to_string();
        assert!(error.contains("result.json"), "{error}");
        assert_eq!(files(folder.path()), [LATENCY, PAGE, RESULT, WINDOWS], "the others are written, and no part stays");
    }

    #[test]
    fn a_full_disk_says_so() {
        let error = FolderError::File { path: "reports/x/result.json".into(), source: io::ErrorKind::StorageFull.into() };
        assert!(error.to_string().contains("free some space"), "{error}");
        let error = write_synced(Path::new("/dev/full"), b"x").unwrap_err();
        assert!(remedy(&error).contains("disk is full"), "{error:?}");
    }
}
