//! What a CI system is told, by the command line: files, a step's summary, annotations, advice; and reports made again.

use crate::support::{Folder, Said, command, stormwake};
use std::path::{Path, PathBuf};

/// An outage that it recovers from; the second gate does not hold.
const PLAN: &str = "\
version: 1
name: small
target: { service: { servers: 4, service_time: 5ms } }
policies: { p: { attempts: 2, timeout: 500ms, backoff: none } }
fleets: { app: { clients: 20, policy: p, load: { constant: { rate: 100/s } } } }
steady_state: { for: 3s }
timeline: [{ at: 4s, for: 2s, name: outage, fault: { status: { code: 503 } } }]
recovery: { after: outage, within: 5s, hold: 3s }
gates:
  - { success: '>= 50%' }
  - { success: '>= 99.9%' }
length: 16s
";

fn folder(test: &str) -> Folder {
    let folder = Folder::new(test);
    folder.write("small.yaml", PLAN);
    folder
}

/// A run as a step of a job: what the environment says is given, and nothing else of that kind.
fn step(folder: &Folder, args: &[&str], environment: &[(&str, &str)]) -> Said {
    let mut command = command(folder, args);
    command.envs(environment.iter().copied());
    command.output().expect("the binary starts").into()
}

/// The only folder of a report below `out`.
fn report(folder: &Folder, out: &str) -> PathBuf {
    let only = |path: &Path| -> PathBuf {
        let all: Vec<PathBuf> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(all.len(), 1, "{all:?}");
        all[0].clone()
    };
    only(&only(&folder.path().join(out)))
}

fn read(path: &Path, name: &str) -> String {
    std::fs::read_to_string(path.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

const ONE: [&str; 6] = ["simulate", "small.yaml", "--seed", "1", "--out", "out"];

#[test]
fn a_step_is_told_beside_the_report_and_stdout_stays_data() {
    let folder = folder("ci-step");
    let summary = folder.write("summary", "before\n");
    let workspace = folder.path().to_str().unwrap().to_string();
    let there = [
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_STEP_SUMMARY", summary.to_str().unwrap()),
        ("GITHUB_WORKSPACE", workspace.as_str()),
    ];
    let plan = folder.path().join("small.yaml");
    let said = step(&folder, &["simulate", plan.to_str().unwrap(), "--seed", "1", "--out", "out", "--json"], &there);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert_eq!(said.result()["exit_code"], 1);
    let annotations: Vec<&str> = said.err.lines().filter(|line| line.starts_with("::")).collect();
    let [only] = annotations.as_slice() else { panic!("{said:?}") };
    assert!(only.starts_with("::error file=small.yaml,line=11,title=small failed%3A success >= 99.9%25::got "), "{only}");
    let report = report(&folder, "out");
    assert_eq!(std::fs::read_to_string(&summary).unwrap(), format!("before\n{}\n", read(&report, "summary.md")));
    let junit = read(&report, "junit.xml");
    assert!(
        junit.contains("tests=\"4\" skipped=\"0\" failures=\"1\" errors=\"0\"") && junit.contains("small.yaml:11"),
        "{junit}"
    );

    for unwritable in [workspace.as_str(), "/no/such/folder/summary"] {
        let said = step(&folder, &[&ONE[..4], &["--out", "again"]].concat(), &[("GITHUB_STEP_SUMMARY", unwritable)]);
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.err.contains("warning: cannot add the summary") && !said.err.contains("::error"), "{said:?}");
    }
    let quiet = stormwake(&folder, &[&ONE[..4], &["--out", "alone"]].concat());
    assert!(!quiet.err.contains("::") && !quiet.err.contains("warning"), "{quiet:?}");
}

#[test]
fn advice_is_told_in_full_and_ends_with_0() {
    let folder = folder("ci-advice");
    let there = [("GITHUB_ACTIONS", "true")];
    let said = step(&folder, &[&ONE[..], &["--advisory"]].concat(), &there);
    assert_eq!(said.code, Some(0), "{said:?}");
    let headline = "FAIL: 1 of 2 gates failed · RECOVERED · small · seed 1 · advisory · exit 0\n";
    assert!(said.out.starts_with(headline), "{said:?}");
    assert!(said.err.contains("::warning file=small.yaml,line=11,") && !said.err.contains("::error"), "{said:?}");
    let report = report(&folder, "out");
    let result: serde_json::Value = serde_json::from_str(&read(&report, "result.json")).unwrap();
    assert_eq!((&result["exit_code"], &result["outcome"], &result["advisory"]), (&0.into(), &"fail".into(), &true.into()));
    assert!(read(&report, "junit.xml").contains("<failure message=\"got "));
    let many = stormwake(&folder, &["simulate", "small.yaml", "--seeds", "3", "--advisory", "--json", "--out", "many"]);
    assert_eq!((many.code, &many.result()["exit_code"]), (Some(0), &0.into()), "{many:?}");
    // A plan that cannot be read is no verdict.
    let bad = stormwake(&folder, &["simulate", "gone.yaml", "--advisory"]);
    assert_eq!(bad.code, Some(2), "{bad:?}");
    let refused = ["run", "small.yaml", "--advisory", "--set", "target={url: 'http://192.0.2.1/'}", "--out", "refused"];
    let refused = stormwake(&folder, &refused);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    let left = std::fs::read_dir(folder.path().join("refused")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "a run that was refused leaves no report");
}

#[test]
fn reports_are_made_again_from_their_document() {
    let folder = folder("ci-again");
    assert_eq!(stormwake(&folder, &ONE).code, Some(1));
    assert_eq!(stormwake(&folder, &["simulate", "small.yaml", "--seeds", "3", "--out", "many"]).code, Some(1));
    let made = ["junit.xml", "report.html", "summary.md", "windows.csv"];
    for (out, names) in [("out", &made[..]), ("many", &made[..3])] {
        let report = report(&folder, out);
        let before: Vec<String> = names.iter().map(|name| read(&report, name)).collect();
        names.iter().for_each(|name| std::fs::remove_file(report.join(name)).unwrap());
        let said = stormwake(&folder, &["report", report.to_str().unwrap()]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(said.out.lines().count(), names.len());
        assert_eq!(names.iter().map(|name| read(&report, name)).collect::<Vec<_>>(), before);
        let said = stormwake(&folder, &["report", report.to_str().unwrap(), "--out", "elsewhere"]);
        assert_eq!((said.code, said.out.lines().next()), (Some(0), Some("elsewhere/junit.xml")), "{said:?}");
    }
    let truncated = read(&report(&folder, "out"), "result.json");
    folder.write("result.json", &truncated[..truncated.len() / 2]);
    let said = stormwake(&folder, &["report", "result.json"]);
    assert!(said.code == Some(2) && said.err.contains("result.json: ends in the middle"), "{said:?}");
    let said = stormwake(&folder, &["report", "gone"]);
    assert!(said.code == Some(2) && said.err.contains("cannot read gone"), "{said:?}");
}

/// The jobs of the README's section on CI, as YAML.
fn jobs() -> Vec<serde_json::Value> {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let (_, section) = readme.split_once("\n## In CI\n").expect("a section on CI");
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```yaml\n").skip(1).map(|block| block.split("```").next().unwrap());
    blocks.map(|block| serde_saphyr::from_str(block).unwrap_or_else(|error| panic!("{error}\n{block}"))).collect()
}

#[test]
fn the_jobs_of_the_readme_are_jobs_and_their_commands_exist() {
    let jobs = jobs();
    let [github, gitlab] = jobs.as_slice() else { panic!("{jobs:#?}") };
    let steps = github["jobs"]["recovery"]["steps"].as_array().unwrap();
    assert_eq!(steps.last().unwrap()["if"], "always()");
    assert_eq!(gitlab["recovery"]["artifacts"]["reports"]["junit"], "reports/**/junit.xml");
    let scripts = steps.iter().map(|step| &step["run"]).chain(gitlab["recovery"]["script"].as_array().unwrap());
    let lines = scripts.filter_map(|script| script.as_str()).flat_map(str::lines).map(str::trim);
    let commands: Vec<&str> = lines.filter(|line| line.starts_with("stormwake ")).collect();
    assert_eq!(commands.len(), 4, "{commands:?}");
    let folder = Folder::new("ci-readme");
    for command in commands {
        let args: Vec<&str> = command.split(' ').skip(1).collect();
        let said = stormwake(&folder, &args);
        // The command is understood as far as the plan, which is the reader's.
        assert!(said.code == Some(2) && said.err.contains(args[1]) && !said.err.contains("Usage:"), "{command}: {said:?}");
    }
}
