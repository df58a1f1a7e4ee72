//! `stormwake man`: the manual, a page for each command.

use super::exit::Code;
use super::output;
use clap_mangen::Man;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What it is given.
#[derive(clap::Args)]
pub struct Args {
    /// Write a page for each command into this folder, which is made where it is not there: all of them, or none.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: Args) -> Code {
    let pages = pages();
    let Some(folder) = args.out else {
        // The main page is the first.
        return pages.first().map_or(Code::Internal, |(_, page)| output::print(page).map_or_else(|lost| lost, |()| Code::Pass));
    };
    let mut stderr = std::io::stderr().lock();
    match write(&folder, &pages) {
        Ok(()) => {
            let _ = writeln!(stderr, "{} pages written to {}", pages.len(), folder.display());
            Code::Pass
        }
        Err(error) => {
            let _ = writeln!(
                stderr,
                "error: cannot write the pages to {}: {error}; choose a folder that is writable",
                folder.display()
            );
            Code::Internal
        }
    }
}

/// The pages and the names of their files, `stormwake.1` first. No date stands in them: the same version writes the same pages.
fn pages() -> Vec<(String, Vec<u8>)> {
    let mut main = super::shown().disable_help_subcommand(true);
    main.build();
    let mut pages = Vec::new();
    add(&main, &mut pages);
    pages
}

fn add(command: &clap::Command, pages: &mut Vec<(String, Vec<u8>)>) {
    let source = format!("stormwake {}", env!("CARGO_PKG_VERSION"));
    let page = Man::new(command.clone()).source(source).manual("stormwake");
    let mut bytes = Vec::new();
    page.render(&mut bytes).expect("memory takes every write");
    pages.push((page.get_filename(), bytes));
    command.get_subcommands().for_each(|command| add(command, pages));
}

/// Writes all of them beside their places first, so that a full disk leaves what was there as it was.
fn write(folder: &Path, pages: &[(String, Vec<u8>)]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let beside = |name: &str| folder.join(format!(".{name}.part"));
    let written = pages.iter().try_for_each(|(name, page)| std::fs::write(beside(name), page));
    let placed = written.and_then(|()| pages.iter().try_for_each(|(name, _)| std::fs::rename(beside(name), folder.join(name))));
    if placed.is_err() {
        // Some were never written, and none may stay.
        pages.iter().for_each(|(name, _)| drop(std::fs::remove_file(beside(name))));
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_is_shown_has_a_page() {
        let names: Vec<String> = pages().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names[0], "stormwake.1");
        for command in super::super::shown().get_subcommands() {
            assert!(names.contains(&format!("stormwake-{}.1", command.get_name())), "{names:?}");
        }
        assert!(!names.iter().any(|name| name.contains("watchdog")), "{names:?}");
        for (name, page) in pages() {
            let page = String::from_utf8(page).expect("pages are text");
            assert!(page.contains(".TH ") && page.contains(".SH SYNOPSIS") && !page.contains("watchdog"), "{name}:\n{page}");
        }
    }
}
