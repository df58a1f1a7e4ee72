//! Recovery curves over each other, and side by side.

use super::super::super::curves::CurveResult;
use super::super::super::seeds_text::class_word;
use super::super::chart::{Backdrop, Colour, Dash, Ranges, SMALL, Scale, Series, TALL, TimeChart, Unit, multiples};
use super::super::words::name;
use super::{Runs, Time, backdrop, outcome, small_backdrop};
use crate::stats;

/// The range in which most runs lie.
const MOST_RUNS: (f64, f64) = (0.1, 0.9);
/// Curves that are drawn over each other, the worst apart.
const LINES: usize = 40;

/// Columns of a small chart; the lowest and the highest of what shares one both stay.
const SMALL_COLUMNS: usize = 60;

/// Values over time, one for each column.
type Values = Vec<Option<f64>>;

/// In how many columns a point of these runs is drawn: two where it has a lowest and a highest value.
pub fn columns_of(runs: &[Runs]) -> usize {
    if runs.iter().flat_map(Runs::drawn).any(|(_, curve)| !curve.lowest.is_empty()) { 2 } else { 1 }
}

/// Goodput of one run: where several windows share a point, the least and the most of them.
fn goodput(curve: &CurveResult) -> Values {
    if curve.lowest.len() != curve.goodput.len() || curve.highest.len() != curve.goodput.len() {
        return curve.goodput.iter().copied().map(Some).collect();
    }
    curve.lowest.iter().zip(&curve.highest).flat_map(|(low, high)| [Some(*low), Some(*high)]).collect()
}

fn each(values: impl Iterator<Item = Option<f64>>, columns: usize) -> Values {
    values.flat_map(|value| std::iter::repeat_n(value, columns)).collect()
}

/// What is drawn of a run: its goodput, or its retry share.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Drawn {
    /// Operations per second.
    Goodput,
    /// Retries / attempts.
    RetryShare,
}

impl Drawn {
    fn of_run(self, curve: &CurveResult, columns: usize) -> Values {
        match self {
            Self::Goodput => goodput(curve),
            Self::RetryShare => each(curve.retry_share.iter().copied(), columns),
        }
    }

    fn at(self, curve: &CurveResult, point: usize) -> Option<f64> {
        match self {
            Self::Goodput => curve.goodput.get(point).copied(),
            Self::RetryShare => curve.retry_share.get(point).copied().flatten(),
        }
    }

    fn unit(self) -> Unit {
        if self == Self::Goodput { Unit::Rate } else { Unit::Share }
    }

    fn word(self) -> &'static str {
        if self == Self::Goodput { "goodput" } else { "retry share" }
    }
}

/// The median of runs at each point, and the range in which most of them lie.
pub struct Middle {
    median: Values,
    most: Ranges,
}

/// The middle of these runs.
pub fn middle(runs: &Runs, drawn: Drawn) -> Middle {
    let points = runs.drawn().map(|(_, curve)| curve.goodput.len()).max().unwrap_or(0);
    let at = |point: usize, q: f64| {
        let values: Vec<f64> = runs.drawn().filter_map(|(_, curve)| drawn.at(curve, point)).collect();
        stats::quantile(&values, q)
    };
    Middle {
        median: (0..points).map(|point| at(point, 0.5)).collect(),
        most: (0..points).map(|point| at(point, MOST_RUNS.0).zip(at(point, MOST_RUNS.1))).collect(),
    }
}

impl Middle {
    fn series(&self, runs: &Runs, label: &str, columns: usize) -> Series {
        let values = each(self.median.iter().copied(), columns);
        Series { name: name(label), colour: runs.colour, dash: runs.dash, values, ..Series::default() }
    }

    fn band(&self, columns: usize) -> Ranges {
        self.most.iter().flat_map(|range| std::iter::repeat_n(*range, columns)).collect()
    }

    fn last(&self) -> Option<f64> {
        self.median.iter().flatten().next_back().copied()
    }
}

fn offered(runs: &Runs, columns: usize) -> Series {
    let offered = runs.curves.iter().flat_map(|curves| &curves.offered).copied().map(Some);
    let values = each(offered, columns);
    Series { name: "offered".into(), colour: Colour::Grey, dash: Dash::Dashed, values, ..Series::default() }
}

/// Median lines of several policies on one chart, each with the range of most of its runs.
pub fn overlaid(id: &str, runs: &[Runs], drawn: Drawn) -> String {
    let columns = columns_of(runs);
    let Some(common) = runs.iter().find_map(|runs| runs.curves) else { return String::new() };
    let behind = backdrop(common, columns);
    let middles: Vec<Middle> = runs.iter().map(|runs| middle(runs, drawn)).collect();
    let mut chart = TimeChart::new(id, &titled(drawn), drawn.unit(), &behind);
    chart.height = if drawn == Drawn::Goodput { TALL } else { chart.height };
    chart.hint = "the line is the median of a policy's seeds; 80% of them lie in the shade".into();
    let ends = runs
        .iter()
        .zip(&middles)
        .filter_map(|(runs, middle)| Some(format!("{} {}", name(runs.name), drawn.unit().show(middle.last()?))));
    chart.gist = format!("Median {} at the end of the run: {}.", drawn.word(), ends.take(12).collect::<Vec<_>>().join(", "));
    if drawn == Drawn::Goodput {
        chart.series.extend(runs.first().map(|runs| offered(runs, columns)));
    }
    let lines = runs.iter().zip(&middles);
    chart.series.extend(lines.map(|(runs, middle)| middle.series(runs, runs.name, columns)));
    chart.bands = runs.iter().zip(&middles).map(|(runs, middle)| (runs.colour, middle.band(columns))).collect();
    scaled(chart, drawn).html()
}

fn titled(drawn: Drawn) -> String {
    if drawn == Drawn::Goodput { "Goodput".into() } else { "Retry share".into() }
}

fn scaled(chart: TimeChart, drawn: Drawn) -> TimeChart {
    if drawn == Drawn::RetryShare { TimeChart { scale: Scale::share(), ..chart } } else { linear(chart) }
}

/// From zero: what users lost is a gap, and a logarithm would hide it.
fn linear(chart: TimeChart) -> TimeChart {
    let lines = chart.series.iter().flat_map(|series| series.values.iter().flatten().copied());
    let ranges = chart.bands.iter().flat_map(|(_, band)| band.iter().flatten().map(|(_, high)| *high));
    let top = lines.chain(ranges).fold(0.0, f64::max);
    TimeChart { scale: Scale::linear(top), ..chart }
}

/// The curves of all seeds, thin; their median, and the worst of them.
pub fn bundle(id: &str, runs: &Runs, drawn: Drawn) -> String {
    let columns = columns_of(&[*runs]);
    let Some(common) = runs.curves else { return String::new() };
    let behind = backdrop(common, columns);
    let middle = middle(runs, drawn);
    let mut chart = TimeChart::new(id, &titled(drawn), drawn.unit(), &behind);
    chart.height = if drawn == Drawn::Goodput { TALL } else { chart.height };
    let all = runs.drawn().count();
    chart.hint = match all {
        _ if all > LINES => format!("thin lines: the first {LINES} of {all} seeds; 80% of all lie in the shade"),
        _ => "a thin line for each seed; 80% of them lie in the shade".into(),
    };
    let end = middle.last().map_or("unknown".into(), |value| drawn.unit().show(value));
    chart.gist = format!("{all} curves; median {} at the end of the run: {end}.", drawn.word());
    let faint = |(_, curve): (_, &CurveResult)| {
        let values = drawn.of_run(curve, columns);
        Series { colour: Colour::Grey, faint: true, values, ..Series::default() }
    };
    chart.series = runs.drawn().take(LINES).map(faint).collect();
    if drawn == Drawn::Goodput {
        chart.series.push(offered(runs, columns));
    }
    chart.series.extend(worst(runs, drawn, columns));
    chart.series.push(middle.series(runs, "median of the seeds", columns));
    chart.bands = vec![(runs.colour, middle.band(columns))];
    scaled(chart, drawn).html()
}

/// The curve of the worst run.
fn worst(runs: &Runs, drawn: Drawn, columns: usize) -> Option<Series> {
    let (row, curve) = runs.drawn().find(|(row, _)| Some(row.seed) == runs.worst)?;
    let values = drawn.of_run(curve, columns);
    let name = format!("the worst, seed {}", row.seed);
    Some(Series { name, colour: Colour::Vermilion, dash: Dash::Dotted, values, ..Series::default() })
}

/// One chart for each policy: median, where most runs lie, the worst.
pub fn panels(id: &str, runs: &[Runs]) -> String {
    let columns = columns_of(runs);
    let top = peak(runs);
    let charts: Vec<String> = runs
        .iter()
        .enumerate()
        .filter_map(|(index, runs)| {
            let behind = small_backdrop(runs.curves?, columns);
            let middle = middle(runs, Drawn::Goodput);
            let mut chart = small(format!("{id}-{index}"), name(runs.name), &behind, top);
            (chart.height, chart.most) = (110.0, SMALL_COLUMNS * 2);
            let end = middle.last().map_or("unknown".into(), |value| Unit::Rate.show(value));
            chart.gist = format!("Median goodput at the end of the run: {end}.");
            let median = middle.series(runs, "median", columns);
            chart.series =
                [offered(runs, columns)].into_iter().chain(worst(runs, Drawn::Goodput, columns)).chain([median]).collect();
            chart.bands = vec![(runs.colour, middle.band(columns))];
            Some(chart.html())
        })
        .collect();
    multiples(&charts)
}

fn peak(runs: &[Runs]) -> f64 {
    let goodput = runs.iter().flat_map(Runs::drawn).flat_map(|(_, curve)| curve.goodput.iter().chain(&curve.highest));
    let offered = runs.iter().filter_map(|runs| runs.curves).flat_map(|curves| &curves.offered);
    goodput.chain(offered).copied().fold(0.0, f64::max)
}

fn small<'a>(id: String, title: String, behind: &'a Backdrop, top: f64) -> TimeChart<'a> {
    let chart = TimeChart::new(&id, &title, Unit::Rate, behind);
    TimeChart { small: true, height: SMALL, most: SMALL_COLUMNS, scale: Scale::linear(top), ..chart }
}

/// One small chart for each seed whose curve is there, the worst first, at most so many.
pub fn seeds(id: &str, runs: &Runs, most: usize) -> String {
    let (columns, top) = (columns_of(&[*runs]), peak(&[*runs]));
    let Some(common) = runs.curves else { return String::new() };
    let behind = small_backdrop(common, columns);
    let rows = runs.worst_first().into_iter().filter_map(|row| row.curve.as_ref().map(|curve| (row, curve)));
    let chart = |(row, curve): (&super::super::super::seeds::SeedRow, &CurveResult)| {
        let (tone, word) = outcome(row.outcome);
        let class = row.class.map_or_else(|| word.to_string(), class_word);
        let time = match Time::of(row) {
            Time::Unknown => String::new(),
            time => format!(", {}", time.words()),
        };
        let mut chart =
            small(format!("{id}-{}", row.seed), format!("{} seed {}: {class}{time}", tone.sign(), row.seed), &behind, top);
        let last = curve.goodput.last().map_or("unknown".into(), |value| Unit::Rate.show(*value));
        chart.gist = format!("Goodput at the end of the run: {last}.");
        let values = goodput(curve);
        chart.series = vec![Series { name: "goodput".into(), colour: runs.colour, values, ..Series::default() }];
        chart.html()
    };
    multiples(&rows.take(most).map(chart).collect::<Vec<_>>())
}
