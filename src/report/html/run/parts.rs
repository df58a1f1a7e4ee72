//! The parts of a run: proxies of a plan where there are any, fleets, destinations.

use super::super::super::layout::{count, factor, percent, total};
use super::super::super::result::{FleetResult, ProxyResult, ProxyWindow};
use super::super::chart::{Backdrop, Colour, Dash, Series, TimeChart, Unit, multiples};
use super::super::frame::Section;
use super::super::table::{Cell, Table, pair, paragraph};
use super::super::words::{known, name};
use super::inside::wave_row;
use super::latency::quantile_row;
use super::load::series;
use super::view::View;

/// Proxies that are drawn; the table has more.
const PROXIES: usize = 4;
/// Destinations that are drawn; the table has more.
const DESTINATIONS: usize = 24;
/// Columns of a small chart.
const SMALL_COLUMNS: usize = 150;

/// What passed the plan's proxies; none where it has none.
pub fn proxies(view: &View) -> Option<Section> {
    let proxies = &view.result.proxies;
    if proxies.is_empty() {
        return None;
    }
    let lead =
        "What a service sent to what it depends on. A repeat is a request like one that came before: a retry of the service's.";
    let head = [
        "proxy",
        "#requests",
        "#repeats",
        "#share",
        "#amplification",
        "#peak/s",
        "#p50",
        "#p99",
        "#resets",
        "#unanswered",
        "#unreached",
    ];
    let mut table = Table::new("Totals by proxy", &head);
    proxies.iter().for_each(|proxy| table.row(totals(proxy)));
    let mut waves =
        Table::new("Waves by proxy", &["proxy", "verdict", "#period", "#peak / mean", "#correlation", "#periods seen", "from"]);
    proxies.iter().for_each(|proxy| waves.row(wave_row(&proxy.name, proxy.wave.as_ref())));
    let mut section = Section::new("proxies", "Proxies", lead);
    for (number, proxy) in proxies.iter().take(PROXIES).enumerate() {
        section = section.with(drawn(view, number, proxy));
    }
    Some(section.with(table.html()).with(waves.html()))
}

fn totals(proxy: &ProxyResult) -> Vec<Cell> {
    let figure = |value: Option<f64>, show: fn(Option<f64>) -> String| Cell::figure(known(value, |x| show(Some(x))));
    vec![
        Cell::text(&proxy.name),
        Cell::figure(count(proxy.requests)),
        Cell::figure(count(proxy.repeats)),
        figure(proxy.retry_share, percent),
        figure(proxy.amplification, factor),
        Cell::figure(known(proxy.peak_requests, super::super::super::layout::number)),
        figure(proxy.p50_ms, super::super::super::layout::millis),
        figure(proxy.p99_ms, super::super::super::layout::millis),
        Cell::figure(count(proxy.resets)),
        Cell::figure(count(proxy.unanswered)),
        Cell::figure(count(proxy.unreached)),
    ]
}

fn drawn(view: &View, number: usize, proxy: &ProxyResult) -> String {
    let seconds = view.result.window_ms.max(1) as f64 / 1e3;
    let windows = &proxy.windows[..proxy.windows.len().min(view.windows.len().max(1))];
    let rate = |of: &dyn Fn(&ProxyWindow) -> u64| -> Vec<Option<f64>> {
        windows.iter().map(|window| Some(of(window) as f64 / seconds)).collect()
    };
    let class = |class: u16| {
        move |window: &ProxyWindow| total(window.statuses.iter().filter(|(s, _)| **s / 100 == class).map(|(_, n)| *n))
    };
    let came = vec![
        Series { filled: true, ..series("requests", Colour::Vermilion, Dash::Solid, rate(&|w| w.requests)) },
        series("repeats", Colour::Orange, Dash::Dashed, rate(&|w| w.repeats)),
    ];
    let answers = vec![
        series("2xx", Colour::Blue, Dash::Solid, rate(&class(2))),
        series("4xx", Colour::Orange, Dash::Dashed, rate(&class(4))),
        series("5xx", Colour::Vermilion, Dash::Long, rate(&class(5))),
        series("no answer", Colour::Grey, Dash::Dotted, rate(&|w| total([w.resets, w.unanswered, w.unreached]))),
    ];
    let chart = |id: String, title: String, series: Vec<Series>| {
        let mut chart = TimeChart::new(&id, &title, Unit::Rate, &view.aside);
        chart.gist = series.iter().map(|series| view.gist(&series.name, Unit::Rate, &series.values)).collect();
        chart.series = series;
        chart.fitted().html()
    };
    let name = name(&proxy.name);
    pair(&[
        chart(format!("c-proxy-{number}"), format!("{name}: requests, per second"), came),
        chart(format!("c-answers-{number}"), format!("{name}: answers by class, per second"), answers),
    ])
}

/// Fleets, and the destinations of those that have any.
pub fn fleets(view: &View) -> Section {
    let result = view.result;
    let head = [
        "fleet",
        "policy",
        "#offered",
        "#attempts",
        "#retry share",
        "#amplification",
        "#succeeded",
        "#failed",
        "#unresolved",
        "#otherwise",
    ];
    let mut table = Table::new("Totals by fleet", &head);
    let latency_head = ["fleet", "#succeeded", "#p50", "#p90", "#p99", "#p99.9", "#max"];
    let mut latency = Table::new("Operation latency by fleet", &latency_head);
    for fleet in &result.fleets {
        table.row(fleet_row(fleet));
        latency.row(quantile_row(&fleet.name, &fleet.latency));
    }
    let lead = "Otherwise: refused at ingress, dropped, superseded by a newer one, or put aside.";
    let section = Section::new("fleets", "Fleets", lead);
    if result.fleets.is_empty() {
        return section.with(paragraph("Unknown: the plan has no fleet of its own."));
    }
    let section = section.with(table.html()).with(latency.html());
    if result.destinations.is_empty() { section } else { section.with(destinations(view)).with(destination_charts(view)) }
}

fn fleet_row(fleet: &FleetResult) -> Vec<Cell> {
    let otherwise = fleet.refused + fleet.dropped + fleet.superseded + fleet.dead_lettered;
    vec![
        Cell::text(&fleet.name),
        Cell::text(if fleet.policy.is_empty() { "unknown" } else { &fleet.policy }),
        Cell::figure(count(fleet.operations)),
        Cell::figure(count(fleet.attempts)),
        Cell::figure(known(fleet.retry_share, |x| percent(Some(x)))),
        Cell::figure(known(fleet.amplification, |x| factor(Some(x)))),
        Cell::figure(count(fleet.succeeded)),
        Cell::figure(count(fleet.failed)),
        Cell::figure(count(fleet.unresolved)),
        Cell::figure(count(otherwise)),
    ]
}

fn destinations(view: &View) -> String {
    let head = [
        "destination",
        "#offered",
        "#attempts",
        "#retries",
        "#succeeded",
        "#p50",
        "#backlog at the end",
        "#share of it",
        "#most",
    ];
    let mut table = Table::new("Destinations", &head);
    for of in &view.result.destinations {
        table.row(vec![
            Cell::text(format!("{} / {}", name(&of.fleet), name(&of.name))),
            Cell::figure(count(of.operations)),
            Cell::figure(count(of.attempts)),
            Cell::figure(count(of.retries)),
            Cell::figure(count(of.succeeded)),
            Cell::figure(known(of.p50_ms, |ms| super::super::super::layout::millis(Some(ms)))),
            Cell::figure(count(of.backlog)),
            Cell::figure(known(of.backlog_share, |x| percent(Some(x)))),
            Cell::figure(count(of.peak_backlog)),
        ]);
    }
    table.html()
}

fn destination_charts(view: &View) -> String {
    let quiet = Backdrop { marks: Vec::new(), ..view.aside.clone() };
    let charts = view.result.destinations.iter().enumerate().take(DESTINATIONS).map(|(number, of)| {
        let at = |window: &super::super::super::result::WindowResult| window.destinations.get(number).map(|of| of.backlog as f64);
        let backlog = view.figure(at);
        let title = format!("{} / {}: backlog", name(&of.fleet), name(&of.name));
        let mut chart = TimeChart::new(&format!("c-destination-{number}"), &title, Unit::Count, &quiet);
        chart.gist = view.gist("Backlog", Unit::Count, &backlog);
        chart.series = vec![Series { filled: true, ..series("backlog", Colour::Blue, Dash::Solid, backlog) }];
        (chart.small, chart.height, chart.most) = (true, super::super::chart::SMALL, SMALL_COLUMNS);
        chart.fitted().html()
    });
    multiples(&charts.collect::<Vec<_>>())
}
