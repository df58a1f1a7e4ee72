//! `stormwake init`: writes a commented plan to start from.

use super::exit::Code;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What to start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Template {
    /// The built-in target, an outage, a recovery: a minute on this machine.
    Quickstart,
    /// A staging system, a provider that is blocked, stop conditions.
    GameDay,
    /// A service of yours, a fault between it and its provider, and what that sees of the service's retries.
    Provider,
    /// A short run with gates, for a build.
    Ci,
}

/// What it is given.
#[derive(clap::Args)]
pub struct Args {
    /// Where to write; `-` writes to stdout. The template's name in the current folder where nothing is said.
    file: Option<PathBuf>,
    /// What to start from.
    #[arg(long, value_enum, default_value_t = Template::Quickstart)]
    template: Template,
    /// Overwrite the file if it is there.
    #[arg(long)]
    force: bool,
}

impl Template {
    /// Every template.
    pub const ALL: [Self; 4] = [Self::Quickstart, Self::GameDay, Self::Provider, Self::Ci];

    /// The file that it is written to where no name is given.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Quickstart => "quickstart.yaml",
            Self::GameDay => "game-day.yaml",
            Self::Provider => "provider.yaml",
            Self::Ci => "ci.yaml",
        }
    }

    /// Its text.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Quickstart => include_str!("templates/quickstart.yaml"),
            Self::GameDay => include_str!("templates/game-day.yaml"),
            Self::Provider => include_str!("templates/provider.yaml"),
            Self::Ci => include_str!("templates/ci.yaml"),
        }
    }
}

/// Runs the command.
pub fn run(args: Args) -> Code {
    let file = args.file.unwrap_or_else(|| args.template.file().into());
    let shown = file.display().to_string();
    let text = args.template.text().replace("FILE", if shown == "-" { "plan.yaml" } else { &shown });
    if shown == "-" {
        return super::output::print(text.as_bytes()).map_or_else(|lost| lost, |()| Code::Pass);
    }
    let mut stderr = std::io::stderr().lock();
    match write(&file, &text, args.force) {
        Ok(()) => {
            let _ = writeln!(stderr, "{shown} written. Next: stormwake check {shown}");
            Code::Pass
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let _ = writeln!(stderr, "error: {shown} is there already: choose another name, or overwrite it with --force");
            Code::Usage
        }
        Err(error) => {
            let _ = writeln!(stderr, "error: cannot write {shown}: {error}");
            Code::Internal
        }
    }
}

fn write(file: &Path, text: &str, force: bool) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    options.open(file)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Source, load};

    #[test]
    fn every_template_passes_check_without_a_warning() {
        for template in Template::ALL {
            let source = Source { file: template.file(), text: template.text(), overrides: &[], env: &|_| None };
            let loaded = load(&source).unwrap_or_else(|error| panic!("{template:?}\n{error}"));
            assert_eq!(loaded.warnings_text, "", "{template:?}");
            assert_eq!(format!("{}.yaml", loaded.plan.name), template.file());
        }
    }

    #[test]
    fn a_file_that_is_there_is_kept_unless_forced() {
        let folder = std::env::temp_dir().join(format!("stormwake-init-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("plan.yaml");
        write(&file, "mine", false).unwrap();
        assert_eq!(write(&file, "yours", false).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
        write(&file, "yours", true).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "yours");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
