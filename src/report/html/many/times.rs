//! How long recovery took, seed by seed.

use super::super::super::layout::{count, total};
use super::super::chart::{Times, TimesRow};
use super::super::frame::Section;
use super::{Runs, Time};
use crate::stats;

/// The recovery times of these runs; none where none of them asks for a recovery. `whose` they are is empty for one plan's; `more` says what else there is.
pub fn section(runs: &[Runs], whose: &str, more: &str) -> Option<Section> {
    let asked = runs.iter().flat_map(|runs| runs.rows).any(|row| row.class.is_some());
    let rows: Vec<TimesRow> = runs.iter().map(row).collect();
    let never = total(rows.iter().map(|row| row.never));
    let all: usize = runs.iter().map(|runs| runs.rows.len()).sum();
    let lead = format!("From the end of the fault to the begin of the first stretch that stayed healthy.{more}");
    let chart = Times {
        id: "chart-times".into(),
        title: if whose.is_empty() { "Recovery times".into() } else { format!("Recovery times, {whose}") },
        hint: "never: not healthy again as long as the run lasted; unknown: without evidence".into(),
        gist: format!("{} of {} runs were never healthy again.", count(never), count(all as u64)),
        rows,
    };
    asked.then(|| Section::new("times", "How long recovery took", lead).with(chart.html()))
}

fn row(runs: &Runs) -> TimesRow {
    let times: Vec<Time> = runs.rows.iter().map(Time::of).collect();
    let of = |what: Time| times.iter().filter(|time| **time == what).count() as u64;
    let seconds: Vec<f64> = times.iter().filter_map(|time| if let Time::After(s) = time { Some(*s) } else { None }).collect();
    let note = match stats::spread(&seconds) {
        None => String::new(),
        Some(spread) => {
            let [median, min, max] = [spread.median, spread.min, spread.max].map(|time| Time::After(time).words());
            let which = if of(Time::Never) > 0 { "of those that did: " } else { "" };
            if min == max { format!("{which}{median}") } else { format!("{which}median {median}, {min} to {max}") }
        }
    };
    let name = if runs.name.is_empty() { "all seeds".to_string() } else { runs.name.to_string() };
    TimesRow { name, note, colour: runs.colour, seconds, never: of(Time::Never), unknown: of(Time::Unknown) }
}
