//! The committed sample, `reports/sample`: what a simulation of the quickstart leaves, to the byte. `UPDATE_GOLDEN=1` makes it again; its picture is
//! made from the page by `tests/conformance/browser`.

use crate::support::{Folder, command};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The picture of the page, which a browser makes: its bytes hang on the browser and its fonts.
const PICTURE: &str = "report.png";

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let read = |path: PathBuf| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap());
    entries.map(|entry| read(entry.unwrap().path())).filter(|(name, _)| name != PICTURE).collect()
}

/// The only folder in a folder.
fn only(folder: &Path) -> PathBuf {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(entries.len(), 1, "{}", folder.display());
    entries.remove(0)
}

#[test]
fn the_committed_sample_is_what_a_simulation_leaves_today() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (folder, sample) = (Folder::new("sample"), root.join("reports/sample"));
    let out = folder.path().to_string_lossy().into_owned();
    let args = ["simulate", "plans/quickstart.yaml", "--seed", "1", "--quiet", "--out", &out];
    let ran = command(&folder, &args).current_dir(root).output().expect("the binary starts");
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    let made = files(&only(&folder.path().join("quickstart")));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(&sample).unwrap();
        files(&sample).keys().for_each(|name| std::fs::remove_file(sample.join(name)).unwrap());
        made.iter().for_each(|(name, bytes)| std::fs::write(sample.join(name), bytes).unwrap());
    }
    let kept = files(&sample);
    assert_eq!(kept.keys().collect::<Vec<_>>(), made.keys().collect::<Vec<_>>(), "UPDATE_GOLDEN=1 makes the sample again");
    let differ: Vec<&String> = made.keys().filter(|name| kept[*name] != made[*name]).collect();
    assert!(
        differ.is_empty(),
        "{differ:?} of reports/sample are not as a simulation leaves them; UPDATE_GOLDEN=1 makes them again"
    );
    assert!(sample.join(PICTURE).is_file(), "README shows {PICTURE}");
}
