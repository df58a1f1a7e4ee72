//! The banner of a run: outcome, class, sentence, and the figures that people ask for first.

use super::super::super::layout::{count, factor, millis, percent, rate};
use super::super::super::result::{Engine, RunOutcome, RunResult, StoppedBy};
use super::super::super::text::headline;
use super::super::frame::{Banner, Tile, Tone};
use super::super::words::{UNKNOWN, known};
use super::view::{View, peak};

/// The banner.
pub fn banner(view: &View) -> Banner {
    let result = view.result;
    let (tone, word) = match result.outcome {
        RunOutcome::Pass => (Tone::Good, "PASS"),
        RunOutcome::Fail => (Tone::Bad, "FAIL"),
        RunOutcome::Inconclusive => (Tone::Unsure, "INCONCLUSIVE"),
        RunOutcome::Aborted => (Tone::Muted, "ABORTED"),
    };
    let mut class: Vec<String> = headline::class(result).1.into_iter().collect();
    class.extend((!result.cleanup_confirmed).then(|| "CLEANUP NOT CONFIRMED".to_string()));
    let sentence = result.recovery.as_ref().map(|recovery| recovery.sentence.clone()).unwrap_or_default();
    // What the sentence says is not said again.
    let again = |reason: &String| !sentence.is_empty() && reason.ends_with(&sentence);
    let reasons = result.reasons.iter().filter(|reason| !again(reason)).cloned().collect();
    Banner {
        tone,
        word: word.into(),
        class: class.join(" · "),
        name: result.plan.name.clone(),
        sentence,
        reasons,
        origin: origin(result),
        tiles: tiles(view),
    }
}

fn origin(result: &RunResult) -> String {
    let engine = match result.engine {
        Engine::Live => "live, on real sockets",
        Engine::Sim => "simulated, in virtual time",
    };
    let length = |ms: u64| millis(Some(ms as f64));
    let ran = if result.duration_ms == result.length_ms {
        length(result.duration_ms)
    } else {
        format!("{} of {}", length(result.duration_ms), length(result.length_ms))
    };
    let stopped = result.stopped.as_ref().map(|stopped| match stopped.by {
        StoppedBy::StopCondition => format!("stopped by a stop condition: {}", stopped.detail),
        StoppedBy::Signal => format!("stopped by {}", stopped.detail),
        StoppedBy::Operator => "stopped by its operator".to_string(),
        StoppedBy::Internal => format!("stopped by an error: {}", stopped.detail),
    });
    let parts = [
        Some(result.plan.path.clone()),
        Some(engine.to_string()),
        Some(format!("seed {}", result.seed)),
        Some(ran),
        result.plan.time_scale.as_ref().map(|scale| format!("time scale {scale}")),
        stopped,
        result.operator.as_ref().map(|operator| format!("run by {operator}")),
        result.note.clone(),
        Some(ended(result.exit_code, result.advisory)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// What the process ended with.
pub fn ended(exit_code: u8, advisory: bool) -> String {
    let why = if advisory { ", advisory: whatever the outcome" } else { "" };
    format!("exit code {exit_code}{why}")
}

fn tiles(view: &View) -> Vec<Tile> {
    let mut tiles: Vec<Tile> = recovery(view.result);
    tiles.push(goodput(view));
    tiles.extend(traffic(view));
    tiles.extend(lost(view.result));
    tiles
}

fn recovery(result: &RunResult) -> Vec<Tile> {
    let Some(recovery) = &result.recovery else { return Vec::new() };
    let note = match (&recovery.last_clause, recovery.recovery_time_ms) {
        (Some(clause), _) => format!("{clause} cleared last"),
        (None, None) if recovery.unrecovered_for_ms > 0.0 => {
            format!("not within the {} seen", millis(Some(recovery.unrecovered_for_ms)))
        }
        _ => String::new(),
    };
    let none = if recovery.unrecovered_for_ms > 0.0 { "no" } else { UNKNOWN };
    let healthy = recovery.recovery_time_ms.map_or_else(|| none.to_string(), |ms| format!("after {}", millis(Some(ms))));
    let ratio = recovery.error_window_ratio.map_or(String::new(), |ratio| format!("{ratio:.1}× the fault"));
    vec![
        Tile::new("healthy again", healthy, note),
        Tile::new("error window", known(recovery.error_window_ms, |ms| millis(Some(ms))), ratio),
    ]
}

fn goodput(view: &View) -> Tile {
    let end = view.at_the_end(&view.rate(|window| window.succeeded));
    let baseline = view.result.baseline.as_ref().and_then(|baseline| baseline.goodput);
    let note = baseline.map_or(String::new(), |goodput| format!("baseline {}", rate(Some(goodput))));
    Tile::new("goodput at end", known(end, |x| rate(Some(x))), note)
}

fn traffic(view: &View) -> Vec<Tile> {
    let totals = &view.result.totals;
    let usual = view.result.baseline.as_ref().and_then(|baseline| baseline.attempts).filter(|usual| *usual > 0.0);
    let times = totals.peak_attempts.zip(usual).map(|(peak, usual)| peak / usual).filter(|times| times.is_finite());
    let times = times.map(|times| format!("{times:.1}× the baseline"));
    let shares = peak(&view.figure(|window| window.retry_share));
    let stretch = |name: &str| view.result.stretches.iter().find(|stretch| stretch.name == name).and_then(|s| s.latency.p99_ms);
    let (before, after) = (stretch("before"), stretch("after"));
    let mut tiles = vec![
        Tile::new("peak attempts", known(totals.peak_attempts, |x| rate(Some(x))), times.unwrap_or_default()),
        Tile::new(
            "retry share",
            known(totals.retry_share, |x| percent(Some(x))),
            shares.map_or(String::new(), |x| format!("at most {}", percent(Some(x)))),
        ),
        Tile::new("amplification", known(totals.amplification, |x| factor(Some(x)).replace('x', "×")), "attempts / operations"),
    ];
    if view.result.stretches.len() > 1 {
        let before = before.map_or(String::new(), |ms| format!("before {}", millis(Some(ms))));
        tiles.push(Tile::new("p99 after fault", known(after, |ms| millis(Some(ms))), before));
    }
    tiles
}

fn lost(result: &RunResult) -> Vec<Tile> {
    let totals = &result.totals;
    let slope = result.recovery.as_ref().and_then(|recovery| recovery.backlog_slope);
    let slope = slope.map_or(String::new(), |slope| format!("{slope:+.1}/s"));
    let of = format!("{} failed", count(totals.failed));
    vec![
        Tile::new("backlog at end", known(totals.backlog, count), slope),
        Tile::new("success", known(totals.success, |x| percent(Some(x))), of),
    ]
}
