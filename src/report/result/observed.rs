//! What a run showed of each rule of arithmetic: one sentence with the run's numbers, or nothing where it cannot show any.
//!
//! Made from the run's document. A run that was ended before its time or has no evidence shows nothing, nor does one whose faults struck nobody; but that a
//! target is overloaded shows in spite of that, for such a run has no healthy baseline and no verdict.

use super::super::layout::{clock, count, millis, number, percent, rate};
use super::super::seeds_text::class_word;
use super::{FaultResult, RunOutcome, RunResult, WaveVerdict, WindowResult};

/// What became of the rule that goes by this key.
pub(super) fn observed(key: &str, run: &RunResult) -> Option<String> {
    if key == "overload" {
        return overload(run);
    }
    let shows = run.stopped.is_none() && !matches!(run.outcome, RunOutcome::Aborted | RunOutcome::Inconclusive);
    let struck = run.faults.is_empty() || run.faults.iter().any(|fault| fault.touched > 0);
    if !shows || !struck {
        return None;
    }
    match key {
        "retry_storm" => storm(run),
        "budget" => budget(run),
        "open_load" => spreading(run),
        "drain" => drain(run),
        "spike" | "burst" => backlog(run),
        "queue_age" => wasted(run),
        "no_jitter" | "additive_jitter" | "cap_after_jitter" | "same_hint" => waves(run),
        _ => None,
    }
}

/// Counts of some windows together.
#[derive(Default)]
struct Sum {
    offered: u64,
    attempts: u64,
    retries: u64,
    succeeded: u64,
    budget_refused: u64,
    ms: u64,
}

impl Sum {
    fn of(run: &RunResult, within: impl Fn(&WindowResult) -> bool) -> Self {
        run.windows.iter().filter(|window| within(window)).fold(Self::default(), |sum, window| Self {
            offered: sum.offered + window.offered,
            attempts: sum.attempts + window.attempts,
            retries: sum.retries + window.retries,
            succeeded: sum.succeeded + window.succeeded,
            budget_refused: sum.budget_refused + window.budget_refused,
            ms: sum.ms + run.window_ms.min(run.duration_ms.saturating_sub(window.t_ms)),
        })
    }

    /// Of a stretch; none where the run had none.
    fn of_stretch(run: &RunResult, name: &str) -> Option<Self> {
        let stretch = run.stretches.iter().find(|stretch| stretch.name == name)?;
        Some(Self::of(run, |window| (stretch.from_ms..stretch.to_ms).contains(&window.t_ms)))
    }

    fn rate(&self, of: u64) -> Option<f64> {
        (self.ms > 0).then(|| of as f64 * 1e3 / self.ms as f64)
    }

    fn retry_share(&self) -> Option<f64> {
        (self.attempts > 0).then(|| self.retries as f64 / self.attempts as f64)
    }

    /// Retries / first attempts.
    fn retry_ratio(&self) -> Option<f64> {
        let first = self.attempts - self.retries.min(self.attempts);
        (first > 0).then(|| self.retries as f64 / first as f64)
    }
}

fn overload(run: &RunResult) -> Option<String> {
    if run.stopped.is_some() {
        return None;
    }
    let before = match &run.baseline {
        Some(baseline) => Sum::of(run, |window| (baseline.from_ms..baseline.to_ms).contains(&window.t_ms)),
        None => Sum::of_stretch(run, "before")?,
    };
    let (offered, goodput) = (before.rate(before.offered)?, before.rate(before.succeeded)?);
    Some(format!("before any fault {} were offered, and {} succeeded", rate(Some(offered)), rate(Some(goodput))))
}

fn storm(run: &RunResult) -> Option<String> {
    let peak = run.totals.peak_attempts?;
    let of = run.baseline.as_ref().and_then(|baseline| baseline.attempts).filter(|attempts| *attempts > 0.0);
    let against =
        of.map_or(String::new(), |attempts| format!(", {} the baseline's {}", times(peak / attempts), rate(Some(attempts))));
    let (when, share) = match Sum::of_stretch(run, "after") {
        Some(after) => ("after the faults", after.retry_share()),
        None => ("over the run", run.totals.retry_share),
    };
    let share = share.map_or(String::new(), |share| format!("; {when} {} of attempts were retries", percent(Some(share))));
    let class = run.recovery.as_ref().map_or(String::new(), |recovery| format!(": {}", class_word(recovery.class)));
    Some(format!("attempts peaked at {}{against}{share}{class}", rate(Some(peak))))
}

/// In the budget's own measure, which is a ratio.
fn budget(run: &RunResult) -> Option<String> {
    let (when, sum) = match Sum::of_stretch(run, "during") {
        Some(during) => ("while faults acted", during),
        None => ("over the run", Sum::of(run, |_| true)),
    };
    let whose = if run.fleets.len() > 1 { " of all fleets" } else { "" };
    let ratio = percent(Some(sum.retry_ratio()?));
    let class = run.recovery.as_ref().map_or(String::new(), |recovery| format!(": {}", class_word(recovery.class)));
    Some(format!(
        "{when} retries{whose} were {ratio} of first attempts, and {} were refused by a budget{class}",
        count(sum.budget_refused)
    ))
}

fn spreading(run: &RunResult) -> Option<String> {
    let (amplification, share) = (run.totals.amplification?, run.totals.retry_share?);
    Some(format!("{} attempts an operation; {} of all attempts were retries", trimmed(amplification), percent(Some(share))))
}

/// How long it took in truth.
fn drain(run: &RunResult) -> Option<String> {
    let recovery = run.recovery.as_ref()?;
    let fault = run.faults.iter().find(|fault| Some(&fault.name) == recovery.fault.as_ref())?;
    let waited = backlog_at_end(run, fault)?;
    let came = match recovery.recovery_time_ms {
        Some(ms) => format!("healthy again {} later", millis(Some(ms))),
        None => format!("not healthy again in the {} that followed", millis(Some(recovery.unrecovered_for_ms))),
    };
    Some(format!("{} operations waited when `{}` ended; {came}: {}", count(waited), fault.name, class_word(recovery.class)))
}

fn backlog_at_end(run: &RunResult, fault: &FaultResult) -> Option<u64> {
    run.windows.iter().rfind(|window| window.t_ms < fault.to_ms).map(|window| window.backlog)
}

/// How large the backlog became, and how long it took to be gone: down to the baseline's, or a hundredth of what it was.
fn backlog(run: &RunResult) -> Option<String> {
    let most = run.windows.iter().map(|window| window.backlog).max().filter(|&most| most > 0)?;
    // It may stay there, and creep: where it was all but reached is where it peaked.
    let peak = run.windows.iter().find(|window| window.backlog >= most - most / 100)?;
    let usual = run.baseline.as_ref().and_then(|baseline| baseline.backlog).map_or(0, |backlog| backlog as u64);
    let level = usual.max(most / 100);
    let gone = run.windows.iter().find(|window| window.t_ms > peak.t_ms && window.backlog <= level);
    let then = match gone {
        Some(window) => format!("was down at {} {} later", count(window.backlog), clock((window.t_ms - peak.t_ms) / 1_000)),
        None => format!(
            "had not come down to {} by the end, {} later",
            count(level),
            clock((run.duration_ms.saturating_sub(peak.t_ms)) / 1_000)
        ),
    };
    Some(format!("the backlog rose to {} operations {} into the run, and {then}", count(most), clock(peak.t_ms / 1_000)))
}

fn wasted(run: &RunResult) -> Option<String> {
    let wasted = run.service.as_ref()?.wasted_work?;
    Some(format!("{} of the target's work was for clients that had gone", percent(Some(wasted))))
}

fn waves(run: &RunResult) -> Option<String> {
    let wave = run.waves.as_ref()?.all.arrived.as_ref()?;
    let (peak, period) = (times(wave.peak_to_mean), millis(Some(wave.period_ms as f64)));
    Some(match wave.verdict {
        WaveVerdict::Waves => format!("requests arrived in waves: {peak} the mean every {period}, over {} periods", wave.periods),
        WaveVerdict::Weak => {
            format!("requests arrived in weak waves: {peak} the mean every {period}, over {} periods", wave.periods)
        }
        WaveVerdict::None => "requests arrived without waves".to_string(),
    })
}

/// A factor.
fn times(x: f64) -> String {
    format!("{}x", number(x))
}

/// Two decimals at most.
fn trimmed(x: f64) -> String {
    format!("{}", (x * 100.0).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::super::super::sample;
    use super::super::{TapsResult, WaveResult, WavesResult};
    use super::*;
    use crate::report::result::RecoveryClass;

    const KEYS: [&str; 11] = [
        "retry_storm",
        "budget",
        "open_load",
        "drain",
        "spike",
        "burst",
        "queue_age",
        "no_jitter",
        "additive_jitter",
        "cap_after_jitter",
        "same_hint",
    ];

    fn wave(verdict: WaveVerdict) -> WavesResult {
        let arrived =
            Some(WaveResult { verdict, period_ms: 2_000, implied: true, peak_to_mean: 3.2, autocorrelation: 0.9, periods: 17 });
        WavesResult { from_ms: 0, score: Some(3.2), all: TapsResult { arrived, ..TapsResult::default() }, fleets: Vec::new() }
    }

    /// A run in which the backlog of the outage drained.
    fn recovered() -> RunResult {
        let mut run = sample::pass();
        run.waves = Some(wave(WaveVerdict::Waves));
        run
    }

    fn stuck() -> RunResult {
        let mut run = sample::stuck();
        run.recovery.as_mut().unwrap().unrecovered_for_ms = 35_000.0;
        run.waves = Some(wave(WaveVerdict::None));
        run
    }

    #[test]
    fn each_rule_is_told_with_the_numbers_of_the_run() {
        let (good, bad) = (recovered(), stuck());
        for (key, run, wanted) in [
            ("overload", &bad, "before any fault 400/s were offered, and 400/s succeeded"),
            (
                "retry_storm",
                &bad,
                "attempts peaked at 1.6k/s, 4x the baseline's 400/s; after the faults 75% of attempts were retries: STUCK",
            ),
            (
                "retry_storm",
                &good,
                "attempts peaked at 1.6k/s, 4x the baseline's 400/s; after the faults 12% of attempts were retries: RECOVERED",
            ),
            ("budget", &bad, "while faults acted retries were 165% of first attempts, and 0 were refused by a budget: STUCK"),
            ("open_load", &good, "1.36 attempts an operation; 26% of all attempts were retries"),
            ("drain", &good, "3,600 operations waited when `blackhole` ended; healthy again 8s later: RECOVERED"),
            ("drain", &bad, "3,600 operations waited when `blackhole` ended; not healthy again in the 35s that followed: STUCK"),
            ("spike", &good, "the backlog rose to 3,600 operations 24s into the run, and was down at 5 9s later"),
            (
                "burst",
                &bad,
                "the backlog rose to 3,600 operations 24s into the run, and had not come down to 36 by the end, 36s later",
            ),
            ("queue_age", &good, "75% of the target's work was for clients that had gone"),
            ("no_jitter", &good, "requests arrived in waves: 3.2x the mean every 2s, over 17 periods"),
            ("same_hint", &bad, "requests arrived without waves"),
        ] {
            assert_eq!(observed(key, run).as_deref(), Some(wanted), "{key}");
        }
    }

    #[test]
    fn a_run_that_cannot_show_a_rule_says_nothing() {
        let mut untouched = recovered();
        untouched.faults[0].touched = 0;
        for (what, run) in
            [("aborted", sample::aborted()), ("inconclusive", sample::inconclusive()), ("nobody was struck", untouched)]
        {
            for key in KEYS {
                assert_eq!(observed(key, &run), None, "{key} of a run that is {what}");
            }
        }
        assert_eq!(observed("overload", &sample::aborted()), None);
        assert!(observed("overload", &sample::inconclusive()).is_some(), "an overloaded target has no healthy baseline");
        assert_eq!(observed("a rule to come", &recovered()), None);

        let mut bare = recovered();
        (bare.service, bare.waves, bare.recovery) = (None, None, None);
        bare.windows.clear();
        for key in ["queue_age", "no_jitter", "drain", "spike", "overload", "budget"] {
            assert_eq!(observed(key, &bare), None, "{key} without its evidence");
        }
    }

    #[test]
    fn a_run_without_faults_is_told_as_a_whole() {
        let mut run = recovered();
        run.faults.clear();
        run.stretches.truncate(1);
        run.baseline = None;
        run.recovery.as_mut().unwrap().class = RecoveryClass::RecoveredLate;
        let said = observed("retry_storm", &run).unwrap();
        assert!(said.starts_with("attempts peaked at 1.6k/s; over the run ") && said.ends_with(": RECOVERED_LATE"), "{said}");
        assert!(observed("budget", &run).unwrap().starts_with("over the run retries were "));
    }
}
