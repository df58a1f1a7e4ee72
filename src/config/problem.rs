//! What is wrong with a configuration: all of it, each with its place and a remedy.

use super::Place;

/// Whether a problem forbids a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The plan cannot be run.
    Error,
    /// The plan can be run, and probably does not do what its author thinks.
    Warning,
}

/// Which runs of a plan a problem concerns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Concerns {
    /// All of them.
    #[default]
    Every,
    /// Those on real sockets.
    Live,
    /// Those in virtual time.
    Simulated,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Whether it forbids a run.
    pub severity: Severity,
    /// Where.
    pub place: Place,
    /// What is wrong and what was expected, in one sentence.
    pub message: String,
    /// How to mend it.
    pub hint: Option<String>,
    /// Which runs it concerns.
    pub concerns: Concerns,
}

/// Everything found so far, in the order of discovery. Bounded: past [`Problems::MAX`] they are only counted.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    found: Vec<Problem>,
    errors: usize,
}

impl Problems {
    /// How many problems are kept; a hostile file must not make an endless report.
    pub const MAX: usize = 100;

    /// An error at a place.
    pub fn error(&mut self, place: Place, message: impl Into<String>) {
        self.push(Severity::Error, place, message.into(), None);
    }

    /// An error with a remedy.
    pub fn error_with_hint(&mut self, place: Place, message: impl Into<String>, hint: impl Into<String>) {
        self.push(Severity::Error, place, message.into(), Some(hint.into()));
    }

    /// A warning with a remedy.
    pub fn warning(&mut self, place: Place, message: impl Into<String>, hint: impl Into<String>) {
        self.push(Severity::Warning, place, message.into(), Some(hint.into()));
    }

    /// A warning, with a remedy, that concerns some runs of the plan and not others.
    pub fn warning_of(&mut self, concerns: Concerns, place: Place, message: impl Into<String>, hint: impl Into<String>) {
        let kept = self.found.len();
        self.warning(place, message, hint);
        self.found.iter_mut().skip(kept).for_each(|problem| problem.concerns = concerns);
    }

    /// What concerns a run of this kind, in the order of discovery.
    pub fn concerning(&self, run: Concerns) -> Self {
        let concerns = |problem: &&Problem| problem.concerns == Concerns::Every || problem.concerns == run;
        Self { found: self.found.iter().filter(concerns).cloned().collect(), errors: self.errors }
    }

    fn push(&mut self, severity: Severity, place: Place, message: String, hint: Option<String>) {
        self.errors += usize::from(severity == Severity::Error);
        if self.found.len() < Self::MAX {
            self.found.push(Problem { severity, place, message, hint, concerns: Concerns::Every });
        }
    }

    /// Whether anything forbids a run.
    pub fn any_error(&self) -> bool {
        self.errors > 0
    }

    /// How many errors there are, those past [`Problems::MAX`] included.
    pub fn error_count(&self) -> usize {
        self.errors
    }

    /// What was kept, sorted by place.
    pub fn sorted(&self) -> Vec<&Problem> {
        let mut all: Vec<&Problem> = self.found.iter().collect();
        all.sort_by_key(|p| (p.place, p.severity));
        all
    }
}

/// The candidate that `word` was probably meant to be, if any is near enough.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: String = word.chars().take(64).collect::<String>().to_lowercase().replace('-', "_");
    let allowed = word.chars().count().div_ceil(3).clamp(1, 4);
    candidates
        .into_iter()
        .map(|c| (strsim::damerau_levenshtein(&word, &c.to_lowercase().replace('-', "_")), c))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_offered_and_a_far_one_is_not() {
        let words = ["timeout", "attempts", "backoff"];
        assert_eq!(closest("timout", words), Some("timeout"));
        assert_eq!(closest("Attempt", words), Some("attempts"));
        assert_eq!(closest("zebra", words), None);
    }
}
