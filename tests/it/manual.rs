//! Completions and the manual, by the programs that read them.

use crate::support::{Folder, command, stormwake};
use std::io::Write as _;
use std::process::{Command, Output};

/// A program's output on a file; none, and said so, where there is no such program.
fn read_by(program: &str, args: &[&str], file: &std::path::Path) -> Option<Output> {
    match Command::new(program).args(args).arg(file).output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let _ = writeln!(std::io::stderr(), "SKIPPED: there is no `{program}` here");
            None
        }
        Err(error) => panic!("{program}: {error}"),
    }
}

#[test]
fn shells_parse_what_completes_us() {
    let folder = Folder::new("completions");
    for shell in ["bash", "zsh", "fish"] {
        let said = stormwake(&folder, &["completions", shell]);
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{shell}");
        let file = folder.write(shell, &said.out);
        if let Some(output) = read_by(shell, &["-n"], &file) {
            assert!(output.status.success() && output.stderr.is_empty(), "{shell}: {output:?}");
        }
    }
    assert_eq!(stormwake(&folder, &["completions", "cmd"]).code, Some(2));
}

#[test]
fn the_manual_is_written_whole_and_renders() {
    let folder = Folder::new("manual");
    let said = stormwake(&folder, &["man", "--out", "man/man1"]);
    assert_eq!(said.code, Some(0), "{said:#?}");
    let written = folder.path().join("man/man1");
    let mut names: Vec<String> = std::fs::read_dir(&written)
        .expect("it is there")
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    for name in ["stormwake.1", "stormwake-run.1", "stormwake-simulate.1", "stormwake-man.1"] {
        assert!(names.iter().any(|there| there == name), "{names:?}");
    }
    assert!(names.iter().all(|name| name.ends_with(".1") && !name.contains("watchdog")), "{names:?}");
    for name in &names {
        if let Some(output) = read_by("groff", &["-ww", "-man", "-Tutf8", "-P-cbou"], &written.join(name)) {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && output.stderr.is_empty(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
            assert!(text.contains("SYNOPSIS") && text.contains("stormwake"), "{name}: {text}");
        }
    }
    let main = stormwake(&folder, &["man"]);
    assert_eq!(main.out.as_bytes(), std::fs::read(written.join("stormwake.1")).unwrap());
}

#[test]
fn a_manual_that_cannot_be_written_leaves_nothing_and_says_what_to_do() {
    let folder = Folder::new("manual-nowhere");
    folder.write("file", "");
    let said = stormwake(&folder, &["man", "--out", "file"]);
    assert!(said.code == Some(6) && said.err.contains("choose a folder"), "{said:#?}");
    // A folder where the first page belongs: nothing can take its place, and no part stays.
    std::fs::create_dir_all(folder.path().join("taken/stormwake.1/x")).unwrap();
    let said = stormwake(&folder, &["man", "--out", "taken"]);
    assert_eq!(said.code, Some(6), "{said:#?}");
    assert_eq!(std::fs::read_dir(folder.path().join("taken")).unwrap().count(), 1);
}

#[test]
fn a_closed_pipe_is_no_error_here_either() {
    let folder = Folder::new("manual-pipe");
    for args in [&["man"][..], &["completions", "bash"]] {
        let mut child = command(&folder, args).spawn().expect("the binary starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    }
}
