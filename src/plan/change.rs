//! A change of a service by itself, as the control API takes it: read and checked as in a plan, so that its errors are the same.

use super::error::{Diagnostics, PlanError};
use super::{check, yaml};
use crate::config::{Read, Source};
use crate::service::ServiceChange;

/// A service that can be changed.
#[derive(Clone, Copy, Debug)]
pub struct Changeable<'a> {
    /// What it is called; the front one is `service`.
    pub name: &'a str,
    /// Whether it has a `cold_cache`.
    pub has_cache: bool,
}

/// Reads a change of one of these services from YAML, which JSON is. `file` is what messages call it.
///
/// # Errors
/// Everything that is wrong with it, in one [`PlanError`].
pub fn service_change(file: &str, text: &str, services: &[Changeable]) -> Result<ServiceChange, PlanError> {
    let mut diagnostics = Diagnostics { file: file.to_string(), text: text.to_string(), ..Diagnostics::default() };
    let problems = &mut diagnostics.problems;
    let read = yaml::parse(text, Source::File, problems).and_then(|document| {
        diagnostics.uses = document.uses;
        let change = ServiceChange::read(&document.root, problems)?;
        check::change(&change, services, &document.root, problems);
        Some(change)
    });
    match read {
        Some(change) if !diagnostics.problems.any_error() => Ok(change),
        _ => Err(PlanError::Invalid(Box::new(diagnostics))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::change::Setting;
    use crate::time::Share;

    #[test]
    fn json_and_yaml_say_the_same_and_every_problem_is_told() {
        let twenty = ServiceChange { capacity: Share::new(0.2).ok(), ..ServiceChange::nothing() };
        let services = ["service", "db"].map(|name| Changeable { name, has_cache: name == "db" });
        let read = |text: &str| service_change("body", text, &services);
        for text in ["capacity: 20%", "{\"capacity\": \"20%\"}"] {
            assert_eq!(read(text).unwrap(), twenty);
        }
        assert_eq!(read("limiter: off").unwrap().limiter, Some(Setting::Off));
        assert_eq!(read("{ of: service, drain: off }").unwrap().whose(), "service");
        assert!(read("{ of: db, cache: cold }").is_ok());
        let said = |text: &str| read(text).expect_err(text).to_string();
        for (text, parts) in [
            (
                "capacity: 20\ncache: tepid\nlimitr: off\n",
                &["body:1:11", "body:2:8", "body:3:1", "did you mean `limiter`?"] as &[&str],
            ),
            ("{}", &["nothing changes"]),
            ("", &["nothing changes"]),
            ("[1, 2]", &["expected a map"]),
            ("capacity: [", &["body:1"]),
            ("of: dv\ncache: cold", &["body:1:5", "no service is called `dv`", "did you mean `db`?"]),
            ("cache: cold", &["body:1:8", "this service has no `cold_cache`", "or remove `cache`"]),
            ("capacity: 50%, over: 5s", &["body:1", "stand in braces: `{ capacity: 50%, over: 5s }`"]),
        ] {
            let said = said(text);
            assert!(parts.iter().all(|part| said.contains(part)), "{text}: {said}");
        }
    }
}
