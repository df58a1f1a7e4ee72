//! Where many runs come from: the plan, the engine, the seeds, what was left out.

use super::super::super::layout::{count, total};
use super::super::super::result::{Engine, PlanRef, Stopped};
use super::super::frame::Section;
use super::super::run::banner::ended;
use super::super::table::Facts;
use super::Runs;

/// What the page is of.
pub struct Origin<'a> {
    /// The plan.
    pub plan: &'a PlanRef,
    /// What carried the runs out.
    pub engine: Engine,
    /// The runs, by policy.
    pub runs: &'a [Runs<'a>],
    /// How many runs each policy was to have.
    pub planned: u64,
    /// Why not all were made.
    pub stopped: Option<&'a Stopped>,
    /// What the process ended with.
    pub exit_code: u8,
    /// Whether it ends with 0 whatever the outcome.
    pub advisory: bool,
    /// Who ran them.
    pub operator: Option<&'a str>,
    /// Why.
    pub note: Option<&'a str>,
}

impl Origin<'_> {
    /// `1 to 20`, of the policy that has the most.
    pub fn seeds(&self) -> String {
        let rows = self.runs.iter().map(|runs| runs.rows).max_by_key(|rows| rows.len()).unwrap_or_default();
        match (rows.first(), rows.last()) {
            (Some(first), Some(last)) if first.seed != last.seed => format!("{} to {}", first.seed, last.seed),
            (Some(only), _) => only.seed.to_string(),
            _ => "none".into(),
        }
    }

    fn engine(&self) -> &'static str {
        match self.engine {
            Engine::Live => "live, on real sockets",
            Engine::Sim => "simulated, in virtual time",
        }
    }

    /// Why not every run was made.
    pub fn interrupted(&self) -> Option<String> {
        let done: usize = self.runs.iter().map(|runs| runs.rows.len()).sum();
        let planned = self.planned * self.runs.len() as u64;
        self.stopped
            .map(|stopped| format!("stopped by {} after {} of {} runs", stopped.detail, count(done as u64), count(planned)))
    }

    /// A line about where the page comes from.
    pub fn line(&self) -> String {
        let scale = self.plan.time_scale.as_ref().map(|scale| format!("time scale {scale}"));
        let parts = [
            Some(self.plan.path.clone()),
            Some(self.engine().to_string()),
            Some(format!("seeds {}", self.seeds())),
            scale,
            self.interrupted(),
            self.operator.map(|operator| format!("run by {operator}")),
            self.note.map(str::to_string),
            Some(ended(self.exit_code, self.advisory)),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }

    /// The same as facts.
    pub fn section(&self, version: &str, more: &[(&str, String)]) -> Section {
        let mut facts = Facts::default();
        facts.add("plan", format!("{} ({})", self.plan.name, self.plan.path));
        facts.add("plan SHA-256", self.plan.sha256.clone());
        facts.add("engine", self.engine());
        facts.add("seeds", self.seeds());
        more.iter().for_each(|(label, value)| facts.add(label, value.clone()));
        facts.add("time scale", self.plan.time_scale.clone().unwrap_or_else(|| "1".into()));
        let left_out = total(self.runs.iter().filter_map(|runs| runs.curves).map(|curves| curves.left_out));
        let kept = if left_out == 0 {
            "of every run".into()
        } else {
            format!("not of {} runs: those after the first 200 of a policy, its worst apart", count(left_out))
        };
        facts.add("curves", kept);
        facts.add("not run", self.interrupted().unwrap_or_else(|| "nothing".into()));
        facts.add("run by", self.operator.unwrap_or("nobody said"));
        facts.add("why", self.note.unwrap_or("nobody said"));
        facts.add("exit code", ended(self.exit_code, self.advisory));
        facts.add("stormwake", version);
        Section::new("setup", "Where this comes from", "").with(facts.html())
    }
}
