//! The page of a comparison: which policy is better, by how much, and whether that is shown.

use super::super::compare::{CompareResult, Difference, EffectResult, PolicyResult};
use super::super::compare_text::{SHOWN, bounds, changed, short, worth};
use super::super::layout::count;
use super::super::result::RunOutcome;
use super::super::seeds_text::{class_counts, spaced};
use super::chart::{Colour, Dash};
use super::frame::{Banner, Section, Tile, Tone, page_of};
use super::many::curves::{self, Drawn};
use super::many::setup::Origin;
use super::many::{Runs, outcome, rows, times};
use super::run::setup;
use super::table::{Cell, Table, paragraph};
use super::words::{UNKNOWN, name};
use crate::metrics::Figure;

/// The document that the page is made from.
const DOCUMENT: &str = "compare.json";
/// Policies whose curves are drawn, the reference among them.
const POLICIES: usize = 8;
/// Policies that have a column in the table.
const COLUMNS: usize = 18;
/// Columns that a sheet of paper has room for; more policies stand in further tables.
const BESIDE: usize = 6;
/// Small charts of seeds, all policies together.
const SMALL_CHARTS: usize = 24;
/// The colours of policies, the reference first; with more of them the same come again, in other dashes.
const COLOURS: [Colour; 5] = [Colour::Purple, Colour::Blue, Colour::Green, Colour::Orange, Colour::Vermilion];
/// Lines that lie on each other must both be seen.
const DASHES: [Dash; 4] = [Dash::Solid, Dash::Solid, Dash::Dashed, Dash::Dotted];

/// The page of a comparison. `plan` is the effective plan as YAML.
pub fn compare(result: &CompareResult, plan: &str) -> String {
    let all: Vec<Runs> = result.policies.iter().enumerate().map(runs).collect();
    let origin = Origin {
        plan: &result.plan,
        engine: result.engine,
        runs: &all,
        planned: result.planned,
        stopped: result.stopped.as_ref(),
        exit_code: result.exit_code,
        advisory: result.advisory,
        operator: result.operator.as_deref(),
        note: result.note.as_deref(),
    };
    let drawn = &all[..all.len().min(POLICIES)];
    let more = if all.len() > POLICIES {
        format!(" The first {POLICIES} of {} policies; the others are in {DOCUMENT}.", all.len())
    } else {
        String::new()
    };
    let facts = [("fleet", result.fleet.clone()), ("policies", count(all.len() as u64))];
    let sections = [
        overlaid(drawn, &more).into_iter().chain([policies(result)]).chain(gates(result)).collect(),
        times::section(drawn, "by policy", &more).into_iter().chain(each(drawn, &more)).collect(),
        own_gates(result).into_iter().collect(),
        vec![rows::paired(drawn, &more, DOCUMENT), origin.section(&result.stormwake, &facts), setup::plan(plan)],
    ];
    page_of(DOCUMENT, banner(result, &origin), &sections.concat(), &result.stormwake)
}

fn runs((index, policy): (usize, &PolicyResult)) -> Runs<'_> {
    Runs {
        name: &policy.name,
        rows: &policy.seeds,
        curves: policy.curves.as_ref(),
        worst: policy.worst,
        colour: COLOURS[index % COLOURS.len()],
        // A colour that comes again must not be taken for the first.
        dash: if index < COLOURS.len() { DASHES[index % DASHES.len()] } else { Dash::Long },
    }
}

fn banner(result: &CompareResult, origin: &Origin) -> Banner {
    let (tone, word) = outcome(result.outcome);
    // Without gates nothing is judged, and what is called a pass is no verdict.
    let (tone, word) = match (result.outcome, result.gates.is_empty()) {
        (RunOutcome::Pass, true) => (Tone::Muted, "COMPARED"),
        _ => (tone, word),
    };
    Banner {
        tone,
        word: word.into(),
        class: format!("{} policies of fleet {}", result.policies.len(), result.fleet),
        name: result.plan.name.clone(),
        sentence: sentence(result),
        reasons: result.policies.iter().skip(1).map(reason).collect(),
        origin: origin.line(),
        tiles: tiles(result),
    }
}

/// Policies in the banner.
const TILES: usize = 8;

fn tiles(result: &CompareResult) -> Vec<Tile> {
    let more = result.policies.len().saturating_sub(TILES);
    let others = (more > 0).then(|| Tile::new("others", format!("{more} more"), format!("in {DOCUMENT}")));
    result.policies.iter().take(TILES).map(tile).chain(others).collect()
}

/// Who recovers, and whether that differs from the reference.
fn sentence(result: &CompareResult) -> String {
    let (sooner, later, level) = result.policies.iter().skip(1).fold((vec![], vec![], vec![]), |mut all, policy| {
        let difference = effect(policy, Figure::RecoveryTime).map(|effect| effect.difference);
        let list = match difference {
            Some(Difference::Less) => &mut all.0,
            Some(Difference::More) => &mut all.1,
            _ => &mut all.2,
        };
        list.push(name(&policy.name));
        all
    });
    let reference = result.policies.first().map_or(String::new(), |policy| name(&policy.name));
    let parts = [
        (sooner, ["is", "are"], "shown to recover sooner than"),
        (later, ["is", "are"], "shown to recover later than"),
        (level, ["shows", "show"], "no difference in recovery time against"),
    ];
    let said = |(names, verb, what): (Vec<String>, [&str; 2], &str)| {
        let verb = verb[usize::from(names.len() > 1)];
        (!names.is_empty()).then(|| format!("{} {verb} {what} {reference}", listed(&names)))
    };
    let said: Vec<String> = parts.into_iter().filter_map(said).collect();
    if said.is_empty() { "There is no candidate.".into() } else { format!("{}.", said.join("; ")) }
}

/// `a, b and c`; of many the first few, and how many more.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] if names.len() <= TILES => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {} more", names[..TILES].join(", "), names.len() - TILES),
    }
}

fn effect(policy: &PolicyResult, figure: Figure) -> Option<&EffectResult> {
    policy.effects.iter().find(|effect| effect.figure == figure.word())
}

/// What is shown of a candidate.
fn reason(policy: &PolicyResult) -> String {
    let with = |difference: Difference| {
        let figures =
            SHOWN.iter().filter(|figure| effect(policy, **figure).is_some_and(|effect| effect.difference == difference));
        figures.map(|figure| spaced(figure.word())).collect::<Vec<_>>().join(", ")
    };
    let parts = [("less", Difference::Less), ("more", Difference::More), ("no difference shown in", Difference::None)];
    let said = |(what, difference)| Some((what, with(difference))).filter(|(_, figures)| !figures.is_empty());
    let said: Vec<String> = parts.into_iter().filter_map(said).map(|(what, figures)| format!("{what} {figures}")).collect();
    let said = if said.is_empty() { "no evidence in common".to_string() } else { said.join("; ") };
    format!("{}: {said}", name(&policy.name))
}

/// A policy's name, and whether it is the reference.
fn labelled(policy: &PolicyResult) -> String {
    if policy.reference { format!("{} (reference)", name(&policy.name)) } else { name(&policy.name) }
}

fn tile(policy: &PolicyResult) -> Tile {
    let label = labelled(policy);
    let value = format!("{} of {}", count(policy.recovered.runs), count(policy.recovered.of));
    let time = spread(policy, Figure::RecoveryTime).map_or_else(String::new, |time| match time.median {
        Some(_) => format!(", median after {}", short(Figure::RecoveryTime, time.median)),
        None => ", most never".into(),
    });
    Tile::new(&label, value, format!("recovered{time}"))
}

fn spread(policy: &PolicyResult, figure: Figure) -> Option<&super::super::seeds::FigureSpread> {
    policy.figures.iter().find(|spread| spread.figure == figure.word() && spread.runs > 0)
}

/// Policies as columns, figures as rows: the reference and what each changes against it.
fn policies(result: &CompareResult) -> Section {
    let lead = "Medians and ranges over the seeds; below, what a policy changes against the reference on the same seed, \
                and between which bounds that lies.";
    let shown = &result.policies[..result.policies.len().min(COLUMNS)];
    let tables = shown.chunks(BESIDE).enumerate().map(|(index, some)| table(result, some, index * BESIDE));
    let section = tables.fold(Section::new("policies", "Which policy is better", lead), Section::with);
    let worth = worth(result.policies.get(1..).unwrap_or_default());
    let more = result.policies.len() - shown.len();
    let more = (more > 0).then(|| format!("… and {more} more policies, in {DOCUMENT}"));
    worth.into_iter().chain(more).fold(section, |section, worth| section.with(paragraph(&worth)))
}

/// These policies beside each other; so many stand in tables before.
fn table(result: &CompareResult, shown: &[PolicyResult], before: usize) -> String {
    let caption = match (before, shown.len()) {
        (0, _) => "Policies".to_string(),
        (_, 1) => format!("Policy {}", before + 1),
        (_, more) => format!("Policies {} to {}", before + 1, before + more),
    };
    let mut head = vec!["figure".to_string()];
    head.extend(shown.iter().map(labelled));
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new(&caption, &head).of(DOCUMENT);
    let cells = |label: &str, of: &dyn Fn(&PolicyResult) -> Cell| {
        std::iter::once(Cell::text(label)).chain(shown.iter().map(of)).collect::<Vec<_>>()
    };
    table.row(cells("recovered", &|policy| {
        let share = format!("{} of {}", count(policy.recovered.runs), count(policy.recovered.of));
        Cell::Stacked(share, vec![(None, format!("95% interval {}", bounds(policy))), (None, class_counts(&policy.classes))])
    }));
    if result.plan.expect.is_some() || result.policies.iter().any(|policy| !policy.gates.is_empty()) {
        let passed = |policy: &PolicyResult| format!("{} of {}", count(policy.passed), count(policy.seeds.len() as u64));
        table.row(cells("plan passed", &|policy| Cell::Stacked(passed(policy), Vec::new())));
    }
    for figure in SHOWN {
        table.row(cells(&spaced(figure.word()), &|policy| figure_cell(policy, figure)));
    }
    table.html()
}

fn figure_cell(policy: &PolicyResult, figure: Figure) -> Cell {
    let Some(spread) = spread(policy, figure) else { return Cell::Stacked(UNKNOWN.into(), Vec::new()) };
    let [median, min, max] = [spread.median, spread.min, spread.max].map(|value| short(figure, value));
    let mut lines = Vec::new();
    if min != max {
        lines.push((None, format!("{min} to {max}")));
    }
    if spread.never > 0 && spread.never < spread.runs {
        lines.push((None, format!("{} of {} never", count(spread.never), count(spread.runs))));
    }
    lines.extend(effect(policy, figure).map(|effect| effect_line(effect, figure)));
    Cell::Stacked(median, lines)
}

/// In all of these figures less is better.
fn effect_line(effect: &EffectResult, figure: Figure) -> (Option<Tone>, String) {
    match effect.difference {
        Difference::Less => (Some(Tone::Good), format!("shown: {}", changed(effect, figure))),
        Difference::More => (Some(Tone::Bad), format!("shown: {}", changed(effect, figure))),
        Difference::None => (None, "no difference shown".into()),
        Difference::Unknown => (None, UNKNOWN.into()),
    }
}

fn gates(result: &CompareResult) -> Option<Section> {
    let section = Section::new("gates", "Gates of the comparison", "A gate without evidence is inconclusive, and never a pass.");
    (!result.gates.is_empty()).then(|| section.with(rows::findings("Findings", &result.gates, DOCUMENT)))
}

fn own_gates<'a>(result: &'a CompareResult) -> Option<Section> {
    let section = Section::new("own-gates", "The plan's own gates, by policy", "What each run was judged by.");
    let of = |policy: &'a PolicyResult| policy.gates.iter().map(|gate| (policy.name.as_str(), gate)).collect::<Vec<_>>();
    let gates: Vec<_> = result.policies.iter().flat_map(of).collect();
    (!gates.is_empty()).then(|| section.with(rows::gate_counts("In the runs of each policy", gates.into_iter(), DOCUMENT)))
}

fn overlaid(runs: &[Runs], more: &str) -> Option<Section> {
    let lead = format!("When the fault ends, does the incident end?{more}");
    let section = Section::new("curves", "Recovery, policies over each other", lead);
    let charts = [("goodput", Drawn::Goodput), ("retries", Drawn::RetryShare)];
    let any = runs.iter().any(|runs| runs.drawn().next().is_some());
    let blocks = || charts.map(|(id, drawn)| curves::overlaid(&format!("chart-{id}"), runs, drawn));
    any.then(|| blocks().into_iter().fold(section, Section::with))
}

/// A chart for each policy, and a small one for each of its worst seeds.
fn each(runs: &[Runs], more: &str) -> Option<Section> {
    let most = (SMALL_CHARTS / runs.len().max(1)).clamp(2, 12);
    let lead = format!(
        "Goodput on one scale: the median of each policy, 80% of its seeds in the shade, its worst seed in dots; then the {most} worst seeds of each.{more}"
    );
    let section = Section::new("each", "Policy by policy", lead).with(curves::panels("policy", runs));
    let heading = |runs: &Runs| paragraph(&format!("{}, the worst seeds first", runs.name));
    let with = |section: Section, (index, runs): (usize, &Runs)| {
        section.with(heading(runs)).with(curves::seeds(&format!("seed-{index}"), runs, most))
    };
    let any = runs.iter().any(|runs| runs.drawn().next().is_some());
    any.then(|| runs.iter().enumerate().fold(section, with))
}
