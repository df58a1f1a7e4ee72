//! The folder of a run's report: `reports/<plan>/<run>/`.
//!
//! It is made, and written to, before the run begins: a run of two hours must not end with "permission denied".
//! Files appear whole or not at all (written beside, then renamed); only `events.ndjson` grows as the run goes on.
//! Names from plans cannot leave the folder they are meant for.

use super::cases::{self, Suites};
use super::compare::{self, CompareResult};
use super::result::{RunResult, json};
use super::seeds::{self, SeedsResult};
use super::{hgrm, hlog, html, junit, markdown, windows_csv};
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
/// What was judged, as CI systems read test results.
pub const JUNIT: &str = "junit.xml";
/// The summary.
pub const SUMMARY: &str = "summary.md";
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
                // A run that never began took the plan's folder with it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir_all(&parent).map_err(unwritable)?,
                Err(source) => return Err(FolderError::Unwritable { path, source }),
            }
        }
        Err(FolderError::NoNameLeft(parent.join(run)))
    }

    /// A folder to write a report into again, or another; made where it is not there.
    ///
    /// # Errors
    /// One that cannot be made.
    pub fn at(path: &Path) -> Result<Self, FolderError> {
        fs::create_dir_all(path).map_err(|source| FolderError::Unwritable { path: path.to_path_buf(), source })?;
        Ok(Self { path: path.to_path_buf() })
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
        // The plan's folder goes with its last run.
        let _ = self.path.parent().map(fs::remove_dir);
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
        let mut log = Vec::new();
        let path = self.path.join(LATENCY);
        let logged = hlog::write(&mut log, record, result.started_unix_ms).map_err(|source| FolderError::File { path, source });
        let document = self.write(RESULT, &json(result));
        let made = self.write_made(result, &self.plan());
        let histograms = logged.and_then(|()| self.write(LATENCY, &log));
        let percentiles = hgrm::files(record).into_iter().map(|(name, text)| self.write(&name, text.as_bytes()));
        let percentiles = percentiles.fold(Ok(()), Result::and);
        document.and(made).and(histograms).and(percentiles)
    }

    /// Writes a run's document again, and what is made from it.
    ///
    /// # Errors
    /// The first file that could not be written.
    pub fn write_again(&self, result: &RunResult) -> Result<(), FolderError> {
        self.write(RESULT, &json(result)).and(self.write_made(result, &self.plan()))
    }

    /// The plan that stands in it; none is said to be unknown.
    fn plan(&self) -> String {
        fs::read_to_string(self.path.join(EFFECTIVE)).unwrap_or_default()
    }

    /// Writes what is made from the run's document and the text of its plan, and can be made again from them.
    ///
    /// # Errors
    /// The first file that could not be written.
    pub fn write_made(&self, result: &RunResult, plan: &str) -> Result<(), FolderError> {
        let mut csv = Vec::new();
        windows_csv::write(&mut csv, result).expect("memory takes every write");
        let series = self.write(WINDOWS, &csv);
        let told = self.write_told(&cases::of_run(result), &markdown::of_run(result));
        series.and(told).and(self.write(PAGE, html::run(result, plan).as_bytes()))
    }

    /// Writes the report of many seeds.
    ///
    /// # Errors
    /// The first file that could not be written.
    pub fn write_seeds(&self, result: &SeedsResult) -> Result<(), FolderError> {
        self.write(SEEDS, &seeds::json(result)).and(self.write_seeds_made(result, &self.plan()))
    }

    /// Writes what is made from the document of many seeds and the text of their plan.
    ///
    /// # Errors
    /// The first file that could not be written.
    pub fn write_seeds_made(&self, result: &SeedsResult, plan: &str) -> Result<(), FolderError> {
        let told = self.write_told(&cases::of_seeds(result), &markdown::of_seeds(result));
        told.and(self.write(PAGE, html::seeds(result, plan).as_bytes()))
    }

    /// Writes the report of a comparison.
    ///
    /// # Errors
    /// The first file that could not be written.
    pub fn write_compare(&self, result: &CompareResult) -> Result<(), FolderError> {
        self.write(COMPARE, &compare::json(result)).and(self.write_compare_made(result, &self.plan()))
    }

    /// Writes what is made from the document of a comparison and the text of its plan.
    ///
    /// # Errors
    /// The first file that could not be written.
    pub fn write_compare_made(&self, result: &CompareResult, plan: &str) -> Result<(), FolderError> {
        let told = self.write_told(&cases::of_comparison(result), &markdown::of_comparison(result));
        told.and(self.write(PAGE, html::compare(result, plan).as_bytes()))
    }

    fn write_told(&self, suites: &Suites, summary: &[u8]) -> Result<(), FolderError> {
        let cases = self.write(JUNIT, &junit::xml(suites));
        cases.and(self.write(SUMMARY, summary))
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

/// Synced, because a disk may promise space that it has not. Into a new file: what stands there already may lead elsewhere, or keep whoever
/// opens it waiting.
fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::create_new(path)?;
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
        first.discard();
        assert!(files(&temp.0).is_empty(), "a run that never began leaves nothing");
    }

    #[test]
    fn a_report_is_all_of_its_files() {
        let temp = Temp::new("files");
        let folder = ReportFolder::create(&temp.0, "storm", 0, 7).unwrap();
        let record = sample::record();
        folder.events().unwrap().write_all(b"{}\n").unwrap();
        folder.write(EFFECTIVE, b"name: storm\n").unwrap();
        folder.write_report(&sample::stuck(), &record).unwrap();
        let [after, before, whole] = ["latency-after.hgrm", "latency-before.hgrm", "latency.hgrm"];
        let wanted = [EFFECTIVE, EVENTS, JUNIT, after, before, whole, LATENCY, PAGE, RESULT, SUMMARY, WINDOWS];
        assert_eq!(files(folder.path()), wanted);
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
        let left = files(folder.path());
        let wanted = [JUNIT, LATENCY, PAGE, RESULT, SUMMARY, WINDOWS, "latency.hgrm"];
        assert!(wanted.iter().all(|name| left.iter().any(|known| known == name)), "{left:?}");
        assert!(left.iter().all(|name| !name.starts_with('.')), "no part stays: {left:?}");
    }

    #[test]
    fn what_stands_in_the_place_of_a_half_written_file_is_not_written_into() {
        let temp = Temp::new("part");
        let folder = ReportFolder::at(&temp.0).unwrap();
        let (other, part) = (temp.0.join("other"), temp.0.join(".summary.md.part"));
        fs::write(&other, "mine").unwrap();
        std::os::unix::fs::symlink(&other, &part).unwrap();
        folder.write(SUMMARY, b"new").unwrap();
        let [other, summary] = [other, temp.0.join(SUMMARY)].map(|path| fs::read_to_string(path).unwrap());
        assert_eq!((other.as_str(), summary.as_str(), part.exists()), ("mine", "new", false));
    }

    #[test]
    fn a_full_disk_says_so() {
        let error = FolderError::File { path: "reports/x/result.json".into(), source: io::ErrorKind::StorageFull.into() };
        assert!(error.to_string().contains("free some space"), "{error}");
        let error = File::create("/dev/full").unwrap().write_all(b"x").unwrap_err();
        assert!(remedy(&error).contains("disk is full"), "{error:?}");
    }
}
