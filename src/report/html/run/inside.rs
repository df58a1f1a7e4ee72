//! What piled up meanwhile: in flight, backlog and its age, connects; attempts for each operation; waves.

use super::super::super::layout::{count, millis, total};
use super::super::super::result::{AttemptsCount, PhaseResult, TapsResult, WaveResult, WaveVerdict};
use super::super::chart::{Colour, Dash, Part, Row, Series, Stack, TimeChart, Unit};
use super::super::frame::{Section, Tone};
use super::super::table::{Cell, Table, pair, paragraph};
use super::super::words::{UNKNOWN, known};
use super::load::series;
use super::view::View;

/// What piled up.
pub fn inside(view: &View) -> Section {
    let lead = "Backlog is what was offered and not finished: waiting, in backoff, or in flight. When it does not fall after the fault, \
                nothing has recovered.";
    let blocks = [backlog(view), age(view), in_flight(view), connects(view)];
    Section::new("backlog", "Backlog and connections", lead).with(pair(&blocks))
}

fn backlog(view: &View) -> String {
    let backlog = view.figure(|window| Some(window.backlog as f64));
    let late = view.figure(|window| Some(window.late as f64));
    let mut chart = TimeChart::new("c-backlog", "Backlog, operations", Unit::Count, &view.aside);
    chart.gist = view.gist("Backlog", Unit::Count, &backlog);
    chart.series = vec![Series { filled: true, ..series("backlog", Colour::Blue, Dash::Solid, backlog) }];
    if view.windows.iter().any(|window| window.late > 0) {
        chart.series.push(series("past their deadline", Colour::Vermilion, Dash::Dashed, late));
    }
    chart.fitted().html()
}

fn age(view: &View) -> String {
    let age = view.figure(|window| window.oldest_age_ms);
    let mut chart = TimeChart::new("c-age", "Age of the oldest operation in it", Unit::Millis, &view.aside);
    chart.gist = view.gist("Age of the oldest", Unit::Millis, &age);
    chart.series = vec![series("oldest", Colour::Purple, Dash::Solid, age)];
    chart.fitted().html()
}

fn in_flight(view: &View) -> String {
    let in_flight = view.figure(|window| Some(window.in_flight as f64));
    let mut chart = TimeChart::new("c-flight", "Attempts in flight", Unit::Count, &view.aside);
    chart.gist = view.gist("In flight", Unit::Count, &in_flight);
    chart.series = vec![series("in flight", Colour::Vermilion, Dash::Solid, in_flight)];
    chart.fitted().html()
}

fn connects(view: &View) -> String {
    if view.windows.iter().all(|window| window.connects == 0) {
        return paragraph("Connects to the proxy, per second: none were counted.");
    }
    let connects = view.rate(|window| window.connects);
    let mut chart = TimeChart::new("c-connects", "Connects to the proxy, per second", Unit::Rate, &view.aside);
    chart.gist = view.gist("Connects", Unit::Rate, &connects);
    chart.series = vec![series("connects", Colour::Grey, Dash::Solid, connects)];
    chart.fitted().html()
}

/// Phases that have a row; the document has the others.
const PHASES: usize = 12;
/// The most attempts of each group.
const GROUPS: [(u32, &str); 8] =
    [(1, "1"), (2, "2"), (3, "3"), (4, "4"), (8, "5–8"), (16, "9–16"), (64, "17–64"), (u32::MAX, "65+")];

/// How many operations ended after how many attempts.
pub fn attempts(view: &View) -> Section {
    let lead =
        "How many attempts an operation had behind it when it ended, as shares of the operations that ended in each phase.";
    let phases = &view.result.phases;
    let stack = Stack {
        id: "c-attempts".into(),
        title: "Attempts for each operation, by phase".into(),
        hint: "their number is written into the bars; beside a phase: operations ended, attempts of each on average".into(),
        gist: phases.iter().take(PHASES).map(in_words).collect(),
        rows: phases.iter().take(PHASES).map(row).collect(),
    };
    let section = Section::new("attempts", "Attempts per operation", lead);
    let section =
        if phases.is_empty() { section.with(paragraph("Unknown: no phase was reached.")) } else { section.with(stack.html()) };
    match phases.len().saturating_sub(PHASES) {
        0 => section,
        more => section.with(paragraph(&format!("… and {more} phases more, in result.json"))),
    }
}

fn ended(counts: &[AttemptsCount]) -> u64 {
    total(counts.iter().map(|of| of.operations))
}

fn mean(counts: &[AttemptsCount]) -> Option<f64> {
    let attempts = total(counts.iter().map(|of| u64::from(of.attempts).saturating_mul(of.operations)));
    let ended = ended(counts);
    (ended > 0).then(|| attempts as f64 / ended as f64)
}

fn note(phase: &PhaseResult) -> String {
    let counts = &phase.attempts_per_operation;
    known(mean(counts), |mean| format!("{} ended, {mean:.1} each", count(ended(counts))))
}

fn in_words(phase: &PhaseResult) -> String {
    format!("{}: {}. ", super::super::words::name(&phase.name), note(phase))
}

fn row(phase: &PhaseResult) -> Row {
    let counts = &phase.attempts_per_operation;
    let all = ended(counts);
    let mut least = 0;
    let groups = GROUPS.iter().enumerate().filter_map(|(shade, (most, label))| {
        let within = counts.iter().filter(|of| of.attempts > least && of.attempts <= *most);
        let operations = total(within.map(|of| of.operations));
        least = *most;
        let share = operations as f64 / all.max(1) as f64;
        let detail = format!("{label} attempts: {} operations, {}", count(operations), Unit::Share.show(share));
        (operations > 0).then(|| Part { label: label.to_string(), share, detail, shade })
    });
    Row { name: phase.name.clone(), note: note(phase), parts: groups.collect() }
}

/// Whether the load came back in step.
pub fn waves(view: &View) -> Section {
    let lead = "Whether the load came back in step, at three taps: when operations were due, when attempts were sent, when they \
                arrived at the proxy.";
    let section = Section::new("waves", "Waves", lead);
    let Some(waves) = &view.result.waves else { return section.with(paragraph("Unknown: nobody looked for waves in this run.")) };
    let mut table =
        Table::new("Waves by tap", &["tap", "verdict", "#period", "#peak / mean", "#correlation", "#periods seen", "from"]);
    taps(&mut table, "", &waves.all);
    if view.result.fleets.len() > 1 {
        for (fleet, of) in view.result.fleets.iter().zip(&waves.fleets) {
            taps(&mut table, &format!("{}: ", fleet.name), of);
        }
    }
    let score = format!("Wave score, peak / mean at the arrived tap: {}.", known(waves.score, |score| format!("{score:.2}")));
    section.with(drawn(view)).with(table.html()).with(paragraph(&score))
}

fn drawn(view: &View) -> String {
    let all = [
        ("scheduled", Colour::Grey, Dash::Dashed, view.rate(|window| window.scheduled)),
        ("dispatched", Colour::Vermilion, Dash::Solid, view.rate(|window| window.attempts)),
        ("arrived", Colour::Purple, Dash::Dotted, view.rate(|window| window.arrived)),
    ];
    let mut chart = TimeChart::new("c-waves", "Scheduled, dispatched, arrived, per second", Unit::Rate, &view.backdrop);
    chart.gist = all.iter().map(|(name, _, _, values)| view.gist(name, Unit::Rate, values)).collect();
    chart.series = all.into_iter().map(|(name, colour, dash, values)| series(name, colour, dash, values)).collect();
    chart.fitted().html()
}

fn taps(table: &mut Table, before: &str, taps: &TapsResult) {
    for (name, wave) in [("scheduled", &taps.scheduled), ("dispatched", &taps.dispatched), ("arrived", &taps.arrived)] {
        table.row(wave_row(&format!("{before}{name}"), wave.as_ref()));
    }
}

/// The strongest period of a tap as a row.
pub fn wave_row(name: &str, wave: Option<&WaveResult>) -> Vec<Cell> {
    let Some(wave) = wave else {
        let unknown = std::iter::repeat_n(Cell::figure(UNKNOWN), 4);
        return [Cell::text(name), Cell::Status(Tone::Unsure, UNKNOWN.into())]
            .into_iter()
            .chain(unknown)
            .chain([Cell::text("")])
            .collect();
    };
    let (tone, word) = match wave.verdict {
        WaveVerdict::None => (Tone::Good, "none"),
        WaveVerdict::Weak => (Tone::Unsure, "weak"),
        WaveVerdict::Waves => (Tone::Bad, "WAVES"),
    };
    let from = if wave.implied { "a policy's period" } else { "the series" };
    vec![
        Cell::text(name),
        Cell::Status(tone, word.into()),
        Cell::figure(millis(Some(wave.period_ms as f64))),
        Cell::figure(format!("{:.2}", wave.peak_to_mean)),
        Cell::figure(format!("{:.2}", wave.autocorrelation)),
        Cell::figure(count(wave.periods)),
        Cell::text(from),
    ]
}
