//! How long operations took: over time as a map, and before, during and after the faults as curves.

use super::super::super::layout::{count, millis};
use super::super::super::result::{HeatMap, Latency};
use super::super::chart::{Colour, Curve, CurveLine, Dash, Heat, Unit, quantiles};
use super::super::frame::Section;
use super::super::table::{Cell, Table, paragraph};
use super::super::words::known;
use super::view::View;

/// The map.
pub fn map(view: &View) -> Section {
    let lead = "From the intended start of an operation to its success, retries and waiting included. The scale is logarithmic; a \
                darker cell holds more operations. An operation stands where it succeeded, as in every window; in the spectrum, where it began.";
    let section = Section::new("latency", "Latency", lead);
    match &view.result.heat {
        Some(heat) if heat.edges_ms.len() > 1 => section.with(drawn(view, heat)),
        _ => section.with(paragraph("Unknown: no operation succeeded, or the document keeps no map.")),
    }
}

fn drawn(view: &View, map: &HeatMap) -> String {
    let (p50, p99) = (view.figure(|window| window.p50_ms), view.figure(|window| window.p99_ms));
    let gist = view.gist("p50", Unit::Millis, &p50) + &view.gist("p99", Unit::Millis, &p99);
    let cells =
        map.columns.iter().map(|column| column.counts.iter().enumerate().map(|(n, of)| (column.first + n, *of)).collect());
    let heat = Heat {
        id: "c-heat".into(),
        title: "Operation latency over time".into(),
        hint: String::new(),
        gist,
        unit: Unit::Millis,
        backdrop: &view.backdrop,
        column_ms: map.column_ms as f64,
        edges: map.edges_ms.clone(),
        cells: cells.collect(),
        lines: quantiles(p50, p99),
    };
    heat.html()
}

/// The curves.
pub fn spectrum(view: &View) -> Section {
    let lead = "So many percent of operations took no longer. To the right each mark is one more nine.";
    let section = Section::new("spectrum", "Latency spectrum", lead);
    let stretches = &view.result.stretches;
    let mut table =
        Table::new("Operation latency by stretch", &["stretch", "#succeeded", "#p50", "#p90", "#p99", "#p99.9", "#max"]);
    for stretch in stretches {
        table.row(quantile_row(&stretch.name, &stretch.latency));
    }
    let looks = [(Colour::Green, Dash::Solid), (Colour::Vermilion, Dash::Dashed), (Colour::Blue, Dash::Long)];
    let lines = stretches.iter().zip(looks).filter(|(stretch, _)| !stretch.spectrum.is_empty());
    let lines: Vec<CurveLine> = lines
        .map(|(stretch, (colour, dash))| CurveLine {
            name: super::super::words::name(&stretch.name),
            colour,
            dash,
            points: stretch.spectrum.iter().map(|point| (point.percent, point.ms)).collect(),
        })
        .collect();
    let gist = |stretch: &super::super::super::result::Stretch| {
        let of = |ms: Option<f64>| known(ms, |ms| millis(Some(ms)));
        format!(
            "{}: p50 {}, p99 {}. ",
            super::super::words::name(&stretch.name),
            of(stretch.latency.p50_ms),
            of(stretch.latency.p99_ms)
        )
    };
    let curve = Curve {
        id: "c-spectrum".into(),
        title: "Operation latency by percentile".into(),
        hint: String::new(),
        gist: stretches.iter().map(gist).collect(),
        unit: Unit::Millis,
        lines,
    };
    let drawn = if curve.lines.is_empty() { paragraph("Unknown: no operation succeeded.") } else { curve.html() };
    section.with(drawn).with(table.html())
}

/// A name and its quantiles.
pub fn quantile_row(name: &str, latency: &Latency) -> Vec<Cell> {
    let of = |ms: Option<f64>| Cell::figure(known(ms, |ms| millis(Some(ms))));
    let figures = [latency.p50_ms, latency.p90_ms, latency.p99_ms, latency.p999_ms, latency.max_ms].map(of);
    [Cell::text(name), Cell::figure(count(latency.count))].into_iter().chain(figures).collect()
}
