//! Annotations of GitHub Actions: the cases that did not hold, each at its gate's own line of the plan.
//!
//! Workflow commands as GitHub's runner reads them: `::error file=…,line=…,title=…::message`, data and properties with their own characters escaped. What
//! the environment says is handed in.

use super::cases::{Case, Suites};
use super::layout::Style;
use super::result::{GateStatus, RunOutcome};
use std::path::{Component, Path, PathBuf};

/// Annotations of one run; of more GitHub shows the first ten of a kind in each step.
const MOST: usize = 10;
/// Columns of a line of a message.
const LONGEST: usize = 400;
/// Lines of a message beside what was seen and wanted.
const DETAILS: usize = 4;

/// Where the plan's file is looked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Workspace<'a> {
    /// The folder that the repository is checked out to (`GITHUB_WORKSPACE`).
    pub root: Option<&'a Path>,
    /// The folder that the program was started in.
    pub current: Option<&'a Path>,
}

/// The annotations, a line each, those that failed first; empty where everything held. Those that make nothing fail are warnings: what is
/// inconclusive, and all of them where a verdict is advice.
pub fn annotations(of: &Suites, workspace: Workspace) -> String {
    let with = |status| of.cases().filter(move |case| case.status == status);
    let cases: Vec<&Case> = with(GateStatus::Fail).chain(with(GateStatus::Inconclusive)).collect();
    let file = of.file.as_ref().map(|file| relative(file, workspace));
    let shown = if cases.len() > MOST { MOST - 1 } else { cases.len() };
    let mut lines: Vec<String> = cases.iter().take(shown).map(|case| annotation(case, of, file.as_deref())).collect();
    if let Some(first) = cases.get(shown) {
        let text = format!("and {} more that did not hold; all are in the report", cases.len() - shown);
        let title = format!("{}: and more", plan(of));
        lines.push(command(kind(first, of), file.as_deref(), None, &title, &text));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn plan(of: &Suites) -> String {
    Style::default().fit(&of.plan, 60)
}

fn kind(case: &Case, of: &Suites) -> &'static str {
    if of.advisory || case.status != GateStatus::Fail { "warning" } else { "error" }
}

fn annotation(case: &Case, of: &Suites, file: Option<&str>) -> String {
    let word = match case.status {
        GateStatus::Fail => "failed",
        _ if of.outcome == RunOutcome::Aborted => "broken off",
        _ => "inconclusive",
    };
    let title = format!("{} {word}: {}", plan(of), case.name);
    let lines = std::iter::once(&case.message)
        .chain(case.details.iter().filter(|line| is_news(line) && **line != case.message).take(DETAILS));
    let text: Vec<String> = lines.map(|line| Style::default().fit(line, LONGEST)).collect();
    command(kind(case, of), file, case.line, &title, &text.join("\n"))
}

/// Whether neither the title, nor the message, nor the place of an annotation says it.
fn is_news(detail: &str) -> bool {
    !["gate:", "observed:", "wanted:", "at:"].iter().any(|label| detail.starts_with(label))
}

fn command(kind: &str, file: Option<&str>, line: Option<u32>, title: &str, message: &str) -> String {
    let mut properties: Vec<String> = file.map(|file| format!("file={}", property(file))).into_iter().collect();
    properties.extend(file.and(line).map(|line| format!("line={line}")));
    properties.push(format!("title={}", property(&Style::default().fit(title, LONGEST))));
    format!("::{kind} {}::{}", properties.join(","), data(message))
}

/// The text of a command: the percent sign first, for the others are written with it.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property, which ends at a comma or a colon.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// The file as seen from the workspace; as it was given where it lies elsewhere.
fn relative(file: &str, workspace: Workspace) -> String {
    let path = Path::new(file);
    let absolute = match (path.is_absolute(), workspace.current) {
        (true, _) => path.to_path_buf(),
        (false, Some(current)) => current.join(path),
        (false, None) => return file.to_string(),
    };
    let root = workspace.root.map(normal).filter(|root| root.components().count() > 1);
    let within = root.and_then(|root| normal(&absolute).strip_prefix(root).ok().map(Path::to_path_buf));
    within.map_or_else(|| file.to_string(), |path| path.to_string_lossy().into_owned())
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::super::cases::{of_comparison, of_run, of_seeds};
    use super::super::sample;
    use super::*;

    fn of(suites: &Suites) -> Vec<String> {
        annotations(suites, Workspace::default()).lines().map(str::to_string).collect()
    }

    #[test]
    fn what_did_not_hold_is_said_at_its_own_line() {
        assert_eq!(of(&of_run(&sample::pass())), [""; 0]);
        let mut result = sample::pass();
        result.outcome = RunOutcome::Fail;
        result.findings[1].status = GateStatus::Fail;
        let suites = of_run(&result);
        let want = "::error file=plans/quickstart.yaml,line=42,title=quickstart failed%3A success >= 70%25::got 89.7%25, wanted >= 70%25";
        assert_eq!(of(&suites), [want]);
        let advice = of(&Suites { advisory: true, ..suites.clone() });
        assert_eq!(advice, [want.replace("::error", "::warning")]);
        let stdin = of(&Suites { file: None, ..suites });
        assert!(stdin[0].starts_with("::error title=quickstart failed%3A "), "{stdin:?}");
        let lines = of(&of_run(&sample::inconclusive()));
        assert!(lines[0].starts_with("::error file=plans/quickstart.yaml,line=61,"), "{lines:#?}");
        assert_eq!((lines.len(), lines.iter().filter(|line| line.starts_with("::warning ")).count()), (6, 5), "{lines:#?}");
    }

    #[test]
    fn the_class_of_many_runs_is_said_with_the_runs() {
        let lines = of(&of_seeds(&sample::seeds_fail()));
        assert!(
            lines[0].contains("title=quickstart failed%3A recovery is RECOVERED in every seed::3 of 6 recovered"),
            "{lines:#?}"
        );
        assert!(lines[0].contains("%0Aseed 3%3A STUCK") || lines[0].contains("%0Aseed 3: STUCK"), "{lines:#?}");
        let lines = of(&of_comparison(&sample::comparison()));
        assert!(lines[0].contains(",line=52,") && lines[0].contains("backoff%3A recovered"), "{lines:#?}");
    }

    #[test]
    fn the_number_is_bounded_and_nothing_ends_a_command_early() {
        let mut result = sample::pass();
        result.outcome = RunOutcome::Fail;
        result.plan.path = "a,b:c\n%.yaml".into();
        result.findings[0].gate = "::error::x\r\n::set-output name=a::b,line=1".repeat(20);
        result.findings = vec![result.findings[0].clone(); 500];
        result.findings.iter_mut().for_each(|finding| finding.status = GateStatus::Fail);
        let lines = of(&of_run(&result));
        assert_eq!(lines.len(), MOST);
        assert!(lines[9].ends_with("::and 491 more that did not hold; all are in the report"), "{}", lines[9]);
        for line in &lines {
            assert!(line.starts_with("::error file=a%2Cb%3Ac%0A%25.yaml,"), "{line}");
            assert!(line.chars().count() < 2_000 && !line.contains('\r'));
            let (head, _) = line.strip_prefix("::").unwrap().split_once("::").unwrap();
            assert!(head.matches(',').count() <= 2, "{head}");
        }
    }

    #[test]
    fn files_are_seen_from_the_workspace() {
        let at = |file: &str, root: &str, current: &str| {
            relative(file, Workspace { root: Some(Path::new(root)), current: Some(Path::new(current)) })
        };
        assert_eq!(at("/w/repo/plans/a.yaml", "/w/repo", "/w/repo"), "plans/a.yaml");
        assert_eq!(at("plans/a.yaml", "/w/repo/", "/w/repo"), "plans/a.yaml");
        assert_eq!(at("./../plans/a.yaml", "/w/repo", "/w/repo/sub"), "plans/a.yaml");
        assert_eq!(at("/elsewhere/a.yaml", "/w/repo", "/w/repo"), "/elsewhere/a.yaml");
        assert_eq!(at("../../a.yaml", "/w/repo", "/w/repo"), "../../a.yaml");
        assert_eq!(at("/plans/a.yaml", "/", "/"), "/plans/a.yaml");
        assert_eq!(relative("plans/a.yaml", Workspace::default()), "plans/a.yaml");
    }
}
