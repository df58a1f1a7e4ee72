//! The page of many seeds of one plan: how many recovered, what differs between them, and each of the worst.

use super::super::layout::{count, millis};
use super::super::result::Engine;
use super::super::seeds::{FigureSpread, SeedsResult};
use super::super::seeds_text::{self, class_counts, headline, middle, range, said, spaced, wave_counts};
use super::chart::{Colour, Dash};
use super::frame::{Banner, Section, Tile, page_of};
use super::many::curves::{self, Drawn};
use super::many::setup::Origin;
use super::many::{Runs, outcome, rows, times};
use super::run::setup;
use super::table::{Cell, Facts, Table};
use crate::metrics::Figure;

/// The document that the page is made from.
const DOCUMENT: &str = "seeds.json";
/// Small charts of seeds.
const SMALL_CHARTS: usize = 24;
/// Figures of the banner.
const TILES: [Figure; 5] = [Figure::RecoveryTime, Figure::Amplification, Figure::PeakAttempts, Figure::RetryShare, Figure::Lost];

/// The page of many seeds. `plan` is the effective plan as YAML.
pub fn seeds(result: &SeedsResult, plan: &str) -> String {
    let runs = Runs {
        name: "",
        rows: &result.seeds,
        curves: result.curves.as_ref(),
        worst: result.worst,
        colour: Colour::Blue,
        dash: Dash::Solid,
    };
    let all = [runs];
    let origin = Origin {
        plan: &result.plan,
        engine: Engine::Sim,
        runs: &all,
        planned: result.planned,
        stopped: result.stopped.as_ref(),
        exit_code: result.exit_code,
        advisory: result.advisory,
        operator: result.operator.as_deref(),
        note: result.note.as_deref(),
    };
    let sections = [
        drawn(&runs).into_iter().chain([figures(result)]).chain(gates(result)).collect(),
        times::section(&all, "", "").into_iter().collect(),
        multiples(&runs, result).into_iter().collect(),
        vec![rows::seeds(&runs, DOCUMENT), origin.section(&result.stormwake, &[]), setup::plan(plan)],
    ];
    page_of(DOCUMENT, banner(result, &origin), &sections.concat(), &result.stormwake)
}

fn banner(result: &SeedsResult, origin: &Origin) -> Banner {
    let (tone, word) = outcome(result.outcome);
    let worst = result.seeds.iter().find(|row| Some(row.seed) == result.worst);
    let classes = if result.classes.is_empty() { None } else { Some(class_counts(&result.classes)) };
    Banner {
        tone,
        word: word.into(),
        class: classes.unwrap_or_default(),
        name: result.plan.name.clone(),
        sentence: sentence(&headline(&result.recovered, result.plan.expect.is_some())),
        reasons: worst.map(|row| format!("the worst: {}", said(row))).into_iter().collect(),
        origin: origin.line(),
        tiles: tiles(result),
    }
}

fn sentence(text: &str) -> String {
    let interval = text.replace(" (", ": ").replace(')', "").replace("interval", "interval of the share");
    format!("{interval}.")
}

fn tiles(result: &SeedsResult) -> Vec<Tile> {
    let recovered = &result.recovered;
    let what = if recovered.class.is_some() && result.plan.expect.is_none() { "recovered" } else { "as wanted" };
    let bounds = seeds_text::interval(recovered);
    let mut tiles = vec![Tile::new(what, format!("{} of {}", count(recovered.runs), count(recovered.of)), bounds)];
    let spread = |figure: &Figure| result.figures.iter().find(|spread| spread.figure == figure.word() && spread.runs > 0);
    tiles.extend(TILES.iter().filter_map(spread).map(|spread| {
        let never = if spread.never > 0 { format!(", {} never", count(spread.never)) } else { String::new() };
        let note = range(spread).map_or_else(|| "in every run".into(), |range| range + &never);
        Tile::new(&format!("{}, median", spaced(&spread.figure)), middle(spread), note)
    }));
    tiles
}

fn figures(result: &SeedsResult) -> Section {
    let lead = "Over the runs with evidence. A recovery that did not come counts as longer than any.";
    let mut table = Table::new("Figures", &["figure", "#median", "range", "#seeds", "#never"]).of(DOCUMENT);
    let of = |figure: &Figure| result.figures.iter().find(|spread| spread.figure == figure.word());
    for spread in seeds_text::SHOWN.iter().filter_map(of) {
        table.row(figure_row(spread, result));
    }
    let mut facts = Facts::default();
    facts.add("classes", class_counts(&result.classes));
    let waves = wave_counts(result);
    facts.add("waves of load", if waves.is_empty() { "unknown".into() } else { waves.trim_start_matches(": ").to_string() });
    for action in result.actions.iter().take(12) {
        let done = match (action.left_out > 0, action.median) {
            (true, _) => "left out in virtual time".into(),
            (false, Some(median)) => format!("{} affected, median of {} runs", count(median as u64), count(action.runs)),
            (false, None) => format!("done in {} runs", count(action.runs)),
        };
        facts.add(
            &format!("action at {}", millis(Some(action.at_ms as f64))),
            format!("{} ({}): {done}", action.name, action.kind),
        );
    }
    Section::new("figures", "What the seeds came to", lead).with(table.html()).with(facts.html())
}

fn figure_row(spread: &FigureSpread, result: &SeedsResult) -> Vec<Cell> {
    let of = |runs: u64| {
        if runs < result.recovered.of { format!("{} of {}", count(runs), count(result.recovered.of)) } else { count(runs) }
    };
    let range = if spread.runs == 0 { String::new() } else { range(spread).unwrap_or_else(|| "the same in all".into()) };
    let middle = if spread.runs == 0 { super::words::UNKNOWN.to_string() } else { middle(spread) };
    vec![
        Cell::text(spaced(&spread.figure)),
        Cell::figure(middle),
        Cell::text(range),
        Cell::figure(of(spread.runs)),
        Cell::figure(if spread.figure == Figure::RecoveryTime.word() { count(spread.never) } else { String::new() }),
    ]
}

fn gates(result: &SeedsResult) -> Option<Section> {
    let share: Vec<_> = result.share_gate.iter().cloned().collect();
    let lead = "What the plan asks for. A gate without evidence is inconclusive, and never a pass.";
    let mut section = Section::new("gates", "Gates", lead);
    if !share.is_empty() {
        section = section.with(rows::findings("On all seeds together", &share, DOCUMENT));
    }
    if !result.gates.is_empty() {
        section = section.with(rows::gate_counts("On each seed", result.gates.iter().map(|gate| ("", gate)), DOCUMENT));
    }
    (!section.blocks.is_empty()).then_some(section)
}

fn drawn(runs: &Runs) -> Option<Section> {
    let section = Section::new("curves", "Recovery, all seeds over each other", "When the fault ends, does the incident end?");
    let charts = [("goodput", Drawn::Goodput), ("retries", Drawn::RetryShare)];
    let blocks = charts.map(|(id, drawn)| curves::bundle(&format!("chart-{id}"), runs, drawn));
    (runs.drawn().count() > 0).then(|| blocks.into_iter().fold(section, Section::with))
}

fn multiples(runs: &Runs, result: &SeedsResult) -> Option<Section> {
    let drawn = runs.drawn().count();
    let lead =
        format!("Goodput of each on one scale, {} of {} seeds.", drawn.min(SMALL_CHARTS), count(result.seeds.len() as u64));
    let section = Section::new("each", "Seed by seed, the worst first", lead);
    (drawn > 0).then(|| section.with(curves::seeds("seed", runs, SMALL_CHARTS)))
}
