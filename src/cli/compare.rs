//! `stormwake compare`: the policies of a plan's `compare` section against each other, on the same seeds.

use super::exit::Code;
use super::finish::{Common, fail, folder, info, logged, progress, say_left, wall_millis, worse};
use super::metrics::{MetricsArgs, Watched};
use super::run::{code_of_error, program};
use super::simulate::{Going, Kept, frame, keep, not_simulated, phases, reseeded, seeds_of, stopped, threads_of};
use super::{ci, output, terminal};
use crate::engine::live::run::{RunSetup, run as run_live};
use crate::engine::live::signal::Signals;
use crate::engine::sim::{self, many::many};
use crate::engine::{Observer, Unobserved};
use crate::gate::{Contestant, Curve, Outcome, judge_contest, worst};
use crate::metrics::{RunRecord, StopReason};
use crate::plan::{Candidate, Compare, Loaded, Plan};
use crate::report::compare::{self, CompareInfo, CompareResult};
use crate::report::folder::ReportFolder;
use crate::report::progress::Observers;
use crate::report::prometheus::Subject;
use crate::report::result::Engine;
use crate::report::{cases, compare_text, markdown};
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How often each policy is run live where nothing is said.
const REPEATS: u32 = 3;

/// What it is given.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    common: Common,
    /// The first seed, instead of the plan's.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How many seeds each policy is run with, instead of what the plan says.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), conflicts_with = "live")]
    seeds: Option<u32>,
    /// How many threads run seeds; as many as cores where nothing is said. It changes no result.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), conflicts_with = "live")]
    threads: Option<u16>,
    /// Run on real sockets, the policies in turns.
    #[arg(long)]
    live: bool,
    /// How often each policy is run, each time with another seed. It takes 6 to show a difference with 95%.
    #[arg(long, value_name = "N", default_value_t = REPEATS, requires = "live", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: u32,
    /// Dial hosts beyond this machine, where the plan's `allow` names them, and run the commands of its `exec` actions on this one.
    #[arg(long, requires = "live")]
    approve: bool,
    /// How many threads carry the load; as many as cores where nothing is said.
    #[arg(long, value_name = "N", requires = "live", value_parser = clap::value_parser!(u16).range(1..=64))]
    shards: Option<u16>,
    #[command(flatten)]
    metrics: MetricsArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Code {
    let engine = if args.live { Engine::Live } else { Engine::Sim };
    let loaded = match args.common.open(engine, args.seed) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let Some(compare) = &loaded.plan.compare else {
        fail(&format!(
            "{} compares nothing: add `compare: {{ fleet: NAME, reference: POLICY, candidates: [POLICY] }}`",
            args.common.plan
        ));
        return Code::Usage;
    };
    if args.metrics.is_some() && !args.live {
        fail(&"--metrics needs --live: in virtual time there is nothing to watch");
        return Code::Usage;
    }
    let watched = match args.metrics.start(&loaded.plan, args.approve) {
        Ok(watched) => watched,
        Err(code) => return code,
    };
    let now = wall_millis();
    let folder = match folder(&args.common, &loaded, now) {
        Ok(folder) => folder,
        Err(error) => return fail(&error),
    };
    let contest = Contest { args: &args, loaded: &loaded, compare };
    match if args.live { contest.live(&watched) } else { contest.simulated() } {
        Ok(kept) => {
            let code = contest.conclude(kept, folder, now);
            watched.end();
            code
        }
        Err(code) => {
            folder.discard();
            code
        }
    }
}

struct Contest<'a> {
    args: &'a Args,
    loaded: &'a Loaded,
    compare: &'a Compare,
}

impl Contest<'_> {
    /// The reference, and then the candidates.
    fn policies(&self) -> Vec<&Candidate> {
        std::iter::once(&self.compare.reference).chain(&self.compare.candidates).collect()
    }

    fn engine(&self) -> Engine {
        if self.args.live { Engine::Live } else { Engine::Sim }
    }

    /// How many runs each policy is to have.
    fn planned(&self) -> u32 {
        if self.args.live { self.args.repeats } else { self.args.seeds.unwrap_or(self.compare.seeds) }
    }

    /// Each policy with every seed, in virtual time.
    fn simulated(&self) -> Result<Vec<Vec<Kept>>, Code> {
        let plan = &self.loaded.plan;
        let seeds = seeds_of(plan, self.planned());
        let policies = self.policies();
        let (done, going) = (AtomicUsize::new(0), Going::new(&self.args.common));
        let all = seeds.len() * policies.len();
        let one = |policy: &&Candidate| {
            let plan = with_policy(plan, self.compare, policy);
            let each = |seed, record: RunRecord| keep(&plan, seed, &record);
            let told = |_| going.tell(&format!("{}/{all} runs, {}", done.fetch_add(1, Ordering::Relaxed) + 1, policy.name));
            many(&plan, &seeds, threads_of(self.args.threads), Signals::flag(), &each, &told)
        };
        policies.iter().map(one).collect::<Result<_, _>>().map_err(|error| not_simulated(&error))
    }

    /// Each policy in turn on real sockets, and again: what changes on the machine meanwhile strikes all alike.
    fn live(&self, watched: &Watched) -> Result<Vec<Vec<Kept>>, Code> {
        let policies = self.policies();
        let mut kept: Vec<Vec<Kept>> = policies.iter().map(|_| Vec::new()).collect();
        let all = self.args.repeats as usize * policies.len();
        for (repeat, seed) in seeds_of(&self.loaded.plan, self.args.repeats).into_iter().enumerate() {
            for (index, policy) in policies.iter().enumerate() {
                if !self.args.common.quiet {
                    let run = repeat * policies.len() + index + 1;
                    let _ = writeln!(std::io::stderr().lock(), "run {run} of {all}: {}, seed {seed}", policy.name);
                }
                let plan = Plan { seed, ..with_policy(&self.loaded.plan, self.compare, policy) };
                let record = match self.run_live(plan.clone(), &policy.name, watched) {
                    // Between two runs: what there is is shown.
                    Err(Code::Interrupted(_)) => return Ok(kept),
                    run => run?,
                };
                record.left.iter().for_each(say_left);
                let cut_short = matches!(record.stopped, Some(StopReason::Signal(_)));
                // Faults that may still act are news, whatever the run is worth.
                if !cut_short || !record.cleanup_confirmed {
                    kept[index].push(keep(&plan, seed, &record));
                }
                if cut_short {
                    return Ok(kept);
                }
            }
        }
        Ok(kept)
    }

    fn run_live(&self, plan: Plan, policy: &str, watched: &Watched) -> Result<RunRecord, Code> {
        let (name, sha256) = (plan.name.clone(), self.loaded.sha256.clone());
        watched.begin(Subject { plan: name, sha256, seed: plan.seed, policy: Some(policy.into()) }, &plan);
        let progress = progress(&self.args.common, self.loaded, Engine::Live);
        let observer: Box<dyn Observer> =
            Box::new(Observers(progress.into_iter().chain(watched.observer()).chain(logged(&self.args.common)).collect()));
        // The built-in target draws its service times by the seed too.
        let seeded = reseeded(self.loaded, plan.seed).map_err(|problem| fail(&problem))?;
        run_live(RunSetup {
            plan,
            effective_yaml: seeded.effective,
            program: program(),
            approve: self.args.approve,
            shards: self.args.shards.map(usize::from),
            observer,
            commands: None,
        })
        .inspect(|record| watched.settle(record))
        .map_err(|error| {
            fail(&error);
            code_of_error(&error)
        })
    }

    fn conclude(&self, kept: Vec<Vec<Kept>>, folder: ReportFolder, now: u64) -> Code {
        let plan = &self.loaded.plan;
        let unconfirmed = kept.iter().flatten().any(|(_, code)| *code == Code::CleanupUnconfirmed);
        let halted = kept.iter().flatten().filter(|(_, code)| *code == Code::Stopped).count();
        let named = |(policy, kept): (&Candidate, Vec<Kept>)| Contestant {
            name: policy.name.clone(),
            runs: kept.into_iter().map(|(run, _)| run).collect(),
        };
        let mut contestants: Vec<Contestant> = self.policies().into_iter().zip(kept).map(named).collect();
        if let Err(code) = self.draw_worst(&mut contestants) {
            folder.discard();
            return code;
        }
        let planned = u64::from(self.planned());
        let done = contestants.iter().map(|contestant| contestant.runs.len() as u64).sum();
        let stopped = stopped(planned * contestants.len() as u64, done);
        let findings = judge_contest(&self.compare.gates, &contestants[0], &contestants[1..]);
        let outcome = compare::conclude(&findings, &contestants, stopped.is_some() || halted > 0);
        let mut code = code_of(outcome, stopped.as_ref(), unconfirmed, halted > 0).advised(self.args.common.advisory);
        if halted > 0 {
            let _ = writeln!(std::io::stderr().lock(), "{halted} of {done} runs were ended by a stop condition of the plan");
        }
        let mut info = info(&self.args.common, self.loaded, self.engine(), now);
        info.exit_code = code.number();
        let fleet = plan.fleets.get(usize::from(self.compare.fleet)).map_or("", |fleet| fleet.name.as_str());
        let phases = phases(plan);
        let frame = frame(plan, &phases);
        let info = CompareInfo { plan: &info, gates: &plan.gates, fleet, planned, stopped: stopped.as_ref(), frame };
        let result = compare::result(&contestants, &findings, info);
        if let Err(error) = folder.write_compare(&result) {
            code = worse(code, fail(&error));
        }
        Signals::release();
        ci::tell(&cases::of_comparison(&result), &markdown::of_comparison(&result));
        self.show(&result, &folder).map_or_else(|lost| worse(code, lost), |()| code)
    }

    /// Makes the worst run of a policy again where its curve was not kept: cheaper than to keep each. Not where a signal came.
    fn draw_worst(&self, contestants: &mut [Contestant]) -> Result<(), Code> {
        for (policy, contestant) in self.policies().into_iter().zip(contestants) {
            let Some(index) = worst(&contestant.runs).filter(|&index| contestant.runs[index].curve.is_none()) else { continue };
            let plan = Plan { seed: contestant.runs[index].seed, ..with_policy(&self.loaded.plan, self.compare, policy) };
            let record = sim::run(&plan, &mut Unobserved, Signals::flag()).map_err(|error| not_simulated(&error))?;
            let whole = !matches!(record.stopped, Some(StopReason::Signal(_)));
            contestant.runs[index].curve = whole.then(|| Curve::of(&record));
        }
        Ok(())
    }

    fn show(&self, result: &CompareResult, folder: &ReportFolder) -> Result<(), Code> {
        if self.args.common.json {
            return output::print(&compare::json(result));
        }
        let style = terminal::style(terminal::Stream::Out);
        output::print(compare_text::table(result, &style, Some(&folder.path().display().to_string())).as_bytes())
    }
}

/// The plan with another policy for the fleet that is looked at, and nothing else changed.
fn with_policy(plan: &Plan, compare: &Compare, candidate: &Candidate) -> Plan {
    let mut plan = plan.clone();
    if let Some(fleet) = plan.fleets.get_mut(usize::from(compare.fleet)) {
        fleet.policy = candidate.policy.clone();
        fleet.policy_name = candidate.name.clone();
    }
    plan
}

fn code_of(outcome: Outcome, stopped: Option<&StopReason>, unconfirmed: bool, halted: bool) -> Code {
    match (stopped, outcome) {
        _ if unconfirmed => Code::CleanupUnconfirmed,
        (Some(StopReason::Signal(number)), _) => Code::Interrupted(u8::try_from(*number).unwrap_or(0)),
        _ if halted => Code::Stopped,
        (_, Outcome::Pass) => Code::Pass,
        (_, Outcome::Fail) => Code::Fail,
        (_, Outcome::Inconclusive) => Code::Inconclusive,
        (_, Outcome::Aborted) => Code::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_follow_the_gates_and_what_is_worse_than_they() {
        for (outcome, signal, unconfirmed, halted, number) in [
            (Outcome::Pass, None, false, false, 0),
            (Outcome::Fail, None, false, false, 1),
            (Outcome::Inconclusive, None, false, false, 3),
            (Outcome::Aborted, Some(2), false, false, 130),
            (Outcome::Aborted, Some(15), false, true, 143),
            (Outcome::Aborted, None, false, true, 4),
            (Outcome::Pass, None, true, false, 7),
            (Outcome::Aborted, Some(2), true, true, 7),
        ] {
            let stopped = signal.map(StopReason::Signal);
            assert_eq!(code_of(outcome, stopped.as_ref(), unconfirmed, halted).number(), number, "{outcome:?}");
        }
    }
}
