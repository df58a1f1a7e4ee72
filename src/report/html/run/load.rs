//! What was asked for, what was sent, what came of it; and how much of it was retries.

use super::super::super::layout::{count, factor, percent, total};
use super::super::super::result::WindowResult;
use super::super::chart::{Bar, Bars, Colour, Dash, Scale, Series, TALL, TimeChart, Unit};
use super::super::frame::Section;
use super::super::table::{Facts, pair};
use super::super::words::{UNKNOWN, known};
use super::view::View;

/// A line.
pub fn series(name: &str, colour: Colour, dash: Dash, values: Vec<Option<f64>>) -> Series {
    Series { name: name.into(), colour, dash, values, ..Series::default() }
}

/// Offered load and goodput, and beneath them what the target was sent.
pub fn load(view: &View) -> Section {
    let lead =
        "What clients wanted, what they got, and what that came to on the wire. Shaded: faults, and the baseline with its range.";
    Section::new("load", "Load and goodput", lead).with(goodput(view)).with(sent(view))
}

fn goodput(view: &View) -> String {
    let (offered, goodput) = (view.rate(|window| window.offered), view.rate(|window| window.succeeded));
    let baseline = view.result.baseline.as_ref().and_then(|baseline| baseline.goodput);
    let mut chart = TimeChart::new("c-goodput", "Offered load and goodput, operations per second", Unit::Rate, &view.backdrop);
    chart.gist = view.gist("Offered", Unit::Rate, &offered) + &view.gist("Goodput", Unit::Rate, &goodput) + &faults(view);
    chart.height = TALL;
    chart.level = view.usual(|window| window.succeeded, baseline);
    let filled = Series { filled: true, ..series("goodput", Colour::Blue, Dash::Solid, goodput) };
    chart.series = vec![filled, series("offered", Colour::Grey, Dash::Dashed, offered)];
    chart.fitted().html()
}

/// The faults in words.
fn faults(view: &View) -> String {
    let marks = view.backdrop.marks.iter().filter(|mark| mark.kind == super::super::chart::MarkKind::Recovery);
    let bands = view.backdrop.bands.iter().take(5).map(|band| {
        let moment = super::super::chart::moment;
        format!(
            "Fault {} from {} to {}. ",
            super::super::words::name(&band.name),
            moment(band.from_ms as u64),
            moment(band.to_ms as u64)
        )
    });
    bands.chain(marks.map(|mark| format!("{}.", mark.label))).collect()
}

fn answered(window: &WindowResult) -> u64 {
    let is_answer = |outcome: &str| outcome == "success" || outcome == "unexpected" || outcome.starts_with("status_");
    total(window.by_outcome.iter().filter(|(outcome, _)| is_answer(outcome)).map(|(_, n)| *n))
}

fn sent(view: &View) -> String {
    let sent = view.rate(|window| window.attempts);
    let arrived = view.rate(|window| window.arrived);
    let answered = view.rate(answered);
    let mut chart = TimeChart::new("c-sent", "Attempts sent, arrived and answered, per second", Unit::Rate, &view.backdrop);
    chart.gist = view.gist("Sent", Unit::Rate, &sent);
    chart.series = vec![series("sent", Colour::Vermilion, Dash::Solid, sent)];
    // Documents of versions before it was kept have nothing but zeros.
    if view.windows.iter().any(|window| window.arrived > 0) {
        chart.gist += &view.gist("Arrived at the proxy", Unit::Rate, &arrived);
        chart.series.push(series("arrived at the proxy", Colour::Purple, Dash::Dotted, arrived));
    }
    chart.gist += &view.gist("Answered", Unit::Rate, &answered);
    chart.series.push(series("answered", Colour::Blue, Dash::Long, answered));
    let usual = view.result.baseline.as_ref().and_then(|baseline| baseline.attempts);
    chart.level = view.usual(|window| window.attempts, usual);
    chart.fitted().html()
}

/// Retry share over time, attempts for each operation, and the histogram.
pub fn retries(view: &View) -> Section {
    let lead = "Retry share is retries / attempts. A storm shows as a share that stays high after the fault is gone.";
    Section::new("retries", "Retries", lead)
        .with(share(view))
        .with(pair(&[amplification(view), histogram(view)]))
        .with(figures(view))
}

fn share(view: &View) -> String {
    let shares = view.figure(|window| window.retry_share);
    let mut chart = TimeChart::new("c-share", "Retry share", Unit::Share, &view.backdrop);
    chart.gist = view.gist("Retry share", Unit::Share, &shares);
    chart.scale = Scale::share();
    chart.series = vec![Series { filled: true, ..series("retry share", Colour::Orange, Dash::Solid, shares) }];
    chart.html()
}

fn amplification(view: &View) -> String {
    let ratio = |window: &WindowResult| (window.offered > 0).then(|| window.attempts as f64 / window.offered as f64);
    let ratios = view.figure(ratio);
    let title = "Attempts sent / operations offered";
    let mut chart = TimeChart::new("c-amplification", title, Unit::Factor, &view.aside);
    chart.gist = view.gist(title, Unit::Factor, &ratios);
    chart.series = vec![series("attempts / operations", Colour::Vermilion, Dash::Solid, ratios)];
    chart.fitted().html()
}

/// Bars of the histogram.
const BINS: u64 = 20;

fn histogram(view: &View) -> String {
    let samples = &view.result.totals.retry_share_histogram;
    let mut bins = [0u64; BINS as usize];
    for sample in samples {
        let bin = &mut bins[(sample.basis_points.min(9_999) * BINS / 10_000) as usize];
        *bin = bin.saturating_add(sample.windows);
    }
    let all = total(bins);
    let bar = |(n, windows): (usize, &u64)| {
        let (from, to) = (n * 5, n * 5 + 5);
        let label = if from % 25 == 0 { format!("{from}%") } else { String::new() };
        Bar { label, value: *windows as f64, detail: format!("{from}% to {to}%: {} windows", count(*windows)) }
    };
    let high = total(bins[BINS as usize / 2..].iter().copied());
    let gist = if all == 0 { UNKNOWN.to_string() } else { format!("{high} of {all} windows had a retry share of 50% or more.") };
    let bars = Bars {
        id: "c-share-histogram".into(),
        title: "Histogram of retry share, windows".into(),
        hint: String::new(),
        gist,
        unit: Unit::Count,
        colour: Colour::Orange,
        bars: bins.iter().enumerate().map(bar).collect(),
        edges: true,
    };
    bars.html()
}

fn figures(view: &View) -> String {
    let totals = &view.result.totals;
    let mut facts = Facts::default();
    facts.add("retries / attempts", format!("{} / {}", count(totals.retries), count(totals.attempts)));
    facts.add("retry share", known(totals.retry_share, |x| percent(Some(x))));
    facts.add("amplification", known(totals.amplification, |x| factor(Some(x)).replace('x', "×")));
    facts.add("laundered retries", known(totals.laundered_retries, |x| format!("{x:.2} per operation")));
    facts.add("refused by a budget", count(totals.budget_refused));
    facts.add("held by a breaker or throttle", count(totals.throttled));
    facts.html()
}
