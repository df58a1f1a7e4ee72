//! `stormwake bisect`: simulates a plan at one value of a setting after the other, until it is known where half of the seeds stay stuck.

use super::exit::Code;
use super::finish::with_scale;
use super::{check, output, terminal};
use crate::engine::sim::many::many;
use crate::gate::tipping::{Found, LEAST_RUNS, Search};
use crate::gate::{Class, judge};
use crate::plan::{Loaded, Plan, PlanError, value_of};
use crate::report::bisect::vary::{Unit, Vary};
use crate::report::bisect::{self as report, Outcomes};
use crate::time::Timestamp;
use std::io::Write;
use std::sync::atomic::AtomicI32;

/// What it is given.
#[derive(clap::Args)]
pub struct Args {
    /// The plan; `-` reads it from stdin.
    plan: String,
    /// What varies, and between which values: `timeline.block.for=1s..120s`, `fleets.app.load.poisson.rate=100/s..900/s`,
    /// `fleets.app.clients=100..5000`, `policies.app.budget.ratio=1%..50%`.
    #[arg(long, value_name = "KEY=FROM..TO", value_parser = Vary::parse)]
    vary: Vary,
    /// How many seeds run at every value, from the plan's seed on; fewer than 6 cannot be told from half.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(LEAST_RUNS..=1000))]
    seeds: u64,
    /// How near the search comes: the width of a bracket against its upper end.
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = tolerance)]
    tolerance: f64,
    /// Override a value of the plan at every value of the range: `--set length=4m`. Repeatable.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Run the plan at another speed: `1/20` divides its durations by twenty and multiplies its rates.
    #[arg(long, value_name = "SCALE")]
    time_scale: Option<String>,
    /// How many threads simulate; as many as cores where nothing is said.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    /// Show no progress: only what was found.
    #[arg(long, short)]
    quiet: bool,
    /// Print a JSON document instead of text.
    #[arg(long)]
    json: bool,
}

fn tolerance(text: &str) -> Result<f64, String> {
    let share = crate::time::parse_percent(text)?;
    if (0.001..=0.5).contains(&share) { Ok(share) } else { Err("a tolerance lies between 0.1% and 50%".into()) }
}

/// Runs the command.
pub fn run(args: Args) -> Code {
    find(&args).unwrap_or_else(|code| code)
}

/// The plan as text, and what every value has in common.
struct Task<'a> {
    args: &'a Args,
    text: String,
    seeds: Vec<u64>,
    threads: usize,
}

fn find(args: &Args) -> Result<Code, Code> {
    let text = check::text_of(&args.plan)?;
    let overrides = with_scale(&args.overrides, args.time_scale.as_deref());
    let base = check::load(&args.plan, &text, &overrides).map_err(|error| check::refuse(&error))?;
    if base.plan.recovery.is_none() {
        return Err(usage("the plan does not say what counts as recovered: add `recovery: { within: 1m, hold: 20s }`"));
    }
    let seeds = (0..args.seeds).map(|n| base.plan.seed.wrapping_add(n)).collect();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let task = Task { args, text, seeds, threads: args.threads.map_or(cores, usize::from) };
    task.check_ends(&base)?;
    let own = own_value(&base, &args.vary);
    let (values, found) = task.search()?;
    let search = report::Search {
        plan: &base.plan.name,
        vary: &args.vary,
        seeds: &task.seeds,
        tolerance: args.tolerance,
        own,
        values: &values,
        found,
    };
    let bytes = if args.json {
        report::json(&report::document(&search))
    } else {
        report::text(&search, &terminal::style(terminal::Stream::Out)).into_bytes()
    };
    output::print(&bytes)?;
    Ok(if matches!(found, Found::Tipping(_)) { Code::Pass } else { Code::Inconclusive })
}

/// The plan's own value, where it has one in the unit of the range.
fn own_value(base: &Loaded, vary: &Vary) -> Option<f64> {
    let (unit, value) = Unit::of(&value_of(&base.effective, &vary.key)?).ok()?;
    let bare = |unit| matches!(unit, Unit::Count | Unit::Number);
    (unit == vary.unit || bare(unit) && bare(vary.unit)).then_some(value)
}

impl Task<'_> {
    /// Both ends make a plan; what they are warned of is said.
    fn check_ends(&self, base: &Loaded) -> Result<(), Code> {
        if !base.simulated_warnings.is_empty() {
            note(&base.simulated_warnings);
        }
        let mut said = base.simulated_warnings.clone();
        let mut lefts = Vec::new();
        for end in [self.args.vary.from, self.args.vary.to] {
            let loaded = self.at(end)?;
            if !loaded.simulated_warnings.is_empty() && loaded.simulated_warnings != said {
                note(&format!("at `{}`:\n{}", self.args.vary.set(end), loaded.simulated_warnings));
                said.clone_from(&loaded.simulated_warnings);
            }
            lefts.push(left(&loaded.plan));
        }
        if let [low, high] = lefts[..]
            && low != high
            && !self.args.quiet
        {
            let [from, to] = [self.args.vary.from, self.args.vary.to].map(|end| self.args.vary.unit.show(end));
            note(&format!(
                "the run is as long at every value: after the last fault it has {low} left at {from}, and {high} at {to}; \
                 `--set length=…` gives more"
            ));
        }
        Ok(())
    }

    /// The plan with a value.
    fn at(&self, value: f64) -> Result<Loaded, Code> {
        let set = self.args.vary.set(value);
        let mut overrides = with_scale(&self.args.overrides, self.args.time_scale.as_deref());
        overrides.push(set.clone());
        check::load(&self.args.plan, &self.text, &overrides).map_err(|error| {
            let _ = writeln!(std::io::stderr().lock(), "error: with `{set}`, a value of the range, the plan cannot be run:");
            let code = check::refuse(&error);
            if is_about_length(&error) {
                note("the run is as long at every value: make it long enough for the longest, as with `--set length=10m`");
            }
            code
        })
    }

    fn search(&self) -> Result<(Vec<(f64, Outcomes)>, Found), Code> {
        let vary = &self.args.vary;
        let mut search = Search::new(vary.range(self.args.tolerance)).map_err(|error| usage(&error))?;
        let mut values: Vec<(f64, Outcomes)> = Vec::new();
        while let Some(value) = search.next() {
            let outcomes = self.outcomes(&self.at(value)?.plan)?;
            if !self.args.quiet {
                note(&report::line(vary.unit, value, &outcomes));
            }
            if outcomes.runs() < LEAST_RUNS {
                return Err(self.no_evidence(value, &outcomes));
            }
            search.tried(outcomes.tried(value));
            let place = values.partition_point(|(known, _)| *known < value);
            values.insert(place, (value, outcomes));
        }
        let found = search.found().expect("a search that is over has tried both ends");
        Ok((values, found))
    }

    fn outcomes(&self, plan: &Plan) -> Result<Outcomes, Code> {
        let judgement = plan.judgement();
        let class = |_, record| {
            let recovery = judge(&record, &judgement).recovery;
            recovery.map_or((Class::Inconclusive, "no fault took place".to_string()), |r| (r.class, r.sentence))
        };
        let mut outcomes = Outcomes::default();
        let classes = many(plan, &self.seeds, self.threads, &AtomicI32::new(0), &class, &|_| ())
            .map_err(|error| usage(&error.to_string()))?;
        classes.iter().for_each(|(class, sentence)| outcomes.count(*class, sentence));
        Ok(outcomes)
    }

    fn no_evidence(&self, value: f64, outcomes: &Outcomes) -> Code {
        let why = outcomes.why.as_deref().unwrap_or("nothing is known of them");
        let (set, runs, all) = (self.args.vary.set(value), outcomes.runs(), self.seeds.len());
        note(&format!("no evidence: with `{set}` only {runs} of {all} runs showed anything; of the first that did not: {why}"));
        note("a longer run may show it (`--set length=…`), or a narrower range");
        Code::Inconclusive
    }
}

/// What a run has left after its last fault.
fn left(plan: &Plan) -> crate::time::Span {
    let last = plan.timeline.iter().map(|step| step.to).max().unwrap_or_default();
    (Timestamp::ZERO + plan.length).since(last)
}

fn is_about_length(error: &PlanError) -> bool {
    let found = error.diagnostics().problems.sorted();
    found.iter().any(|problem| problem.hint.as_ref().is_some_and(|hint| hint.contains("`length`")))
}

fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

fn usage(text: &str) -> Code {
    note(&format!("error: {text}"));
    Code::Usage
}
