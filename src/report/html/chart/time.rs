//! Series over time, with what happened meanwhile behind them.

use super::columns::{MOST, area, band, columns, line, together};
use super::plot::{Backdrop, Plot};
use super::{Colour, Dash, Figure, Scale, Sign, Unit, legend, px};
use std::fmt::Write;

/// The lowest and the highest value of each window; none without evidence.
pub type Ranges = Vec<Option<(f64, f64)>>;

/// One line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// What it is.
    pub name: String,
    /// Its colour.
    pub colour: Colour,
    /// How it is drawn.
    pub dash: Dash,
    /// One value for each window; none without evidence.
    pub values: Vec<Option<f64>>,
    /// Whether the area beneath is filled.
    pub filled: bool,
    /// Whether it is one of many: thin, and half transparent.
    pub faint: bool,
}

/// A band from left to right: the range that was usual.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// The lowest value of it.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// What it is.
    pub name: String,
}

/// Series over time.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeChart<'a> {
    /// Unique on the page.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// A remark under the title; empty for none.
    pub hint: String,
    /// What there is to see, in words and numbers.
    pub gist: String,
    /// What the values are.
    pub unit: Unit,
    /// How they become heights.
    pub scale: Scale,
    /// The height in pixels.
    pub height: f64,
    /// What stands behind.
    pub backdrop: &'a Backdrop,
    /// The usual range.
    pub level: Option<Level>,
    /// A range that changes over time (lowest and highest for each window), and what it is; drawn beneath the lines.
    pub range: Option<(Ranges, String)>,
    /// Ranges that change over time and have the colour of a line, such as where most runs of a policy lie.
    pub bands: Vec<(Colour, Ranges)>,
    /// The lines, the last on top.
    pub series: Vec<Series>,
    /// The most columns; more windows share them.
    pub most: usize,
    /// Whether it is one of many: no axes, no legend, a small heading.
    pub small: bool,
}

impl<'a> TimeChart<'a> {
    /// One without series.
    pub fn new(id: &str, title: &str, unit: Unit, backdrop: &'a Backdrop) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            hint: String::new(),
            gist: String::new(),
            unit,
            scale: Scale::linear(1.0),
            height: super::MIDDLE,
            backdrop,
            level: None,
            range: None,
            bands: Vec::new(),
            series: Vec::new(),
            most: MOST,
            small: false,
        }
    }

    /// Chooses the scale that shows all series.
    pub fn fitted(mut self) -> Self {
        let values = self.series.iter().flat_map(|series| series.values.iter().flatten().copied());
        let ranges = self.range.iter().map(|(range, _)| range).chain(self.bands.iter().map(|(_, band)| band));
        let range = ranges.flat_map(|range| range.iter().flatten().flat_map(|(low, high)| [*low, *high]));
        let fit = Scale::fit(values.chain(range).chain(self.level.iter().map(|level| level.high)));
        self.scale = match fit {
            Scale::Linear { .. } if self.unit == Unit::Millis => Scale::time(self.highest()),
            Scale::Log { .. } if self.unit == Unit::Millis => fit,
            Scale::Log { .. } => {
                self.hint = "log scale, 0 at the foot".into();
                fit
            }
            fit => fit,
        };
        self
    }

    fn highest(&self) -> f64 {
        let values = self.series.iter().flat_map(|series| series.values.iter().flatten().copied());
        let range = self.range.iter().flat_map(|(range, _)| range.iter().flatten().map(|(_, high)| *high));
        values.chain(range).chain(self.level.iter().map(|level| level.high)).fold(0.0, f64::max)
    }

    /// The markup.
    pub fn html(&self) -> String {
        let svg = self.svg();
        let sign = |series: &Series| if series.filled { Sign::Filled } else { Sign::Line };
        let mut entries: Vec<_> =
            self.series.iter().filter(|s| !s.faint).map(|s| (s.colour, s.dash, sign(s), s.name.as_str())).collect();
        if let Some((_, name)) = &self.range {
            entries.push((Colour::Grey, Dash::Solid, Sign::Area, name));
        }
        if let Some(level) = &self.level {
            entries.push((Colour::Green, Dash::Solid, Sign::Area, &level.name));
        }
        let legend = if self.small { String::new() } else { legend(&entries) };
        Figure { title: &self.title, hint: &self.hint, legend: &legend, svg: &svg, small: self.small }.html()
    }

    /// The drawing alone.
    pub fn svg(&self) -> String {
        let windows = self.series.iter().map(|series| series.values.len()).max().unwrap_or(0);
        let windows = windows.max(self.range.as_ref().map_or(0, |(range, _)| range.len()));
        let each = together(windows, self.most);
        let shown = self.backdrop.span_ms.max(1.0) / (self.backdrop.window_ms.max(1.0) * each as f64);
        let mut plot = Plot::new(&self.id, &self.title, &self.gist, self.height, self.small);
        let window = px(self.backdrop.window_ms * each as f64);
        let log = if self.scale.is_log() { format!(" data-log=\"{}\"", self.scale.coordinate(0.0)) } else { String::new() };
        let _ = write!(plot.data, " data-step=\"{window}\" data-unit=\"{}\" data-columns=\"{shown:.3}\"{log}", self.unit.key());
        plot.rungs(&self.scale, self.unit);
        plot.time(self.backdrop);
        self.usual(&mut plot);
        plot.values(shown, &self.scale);
        let range = self.range.iter().map(|(range, _)| (Colour::Grey, range, ".22"));
        for (colour, range, opacity) in range.chain(self.bands.iter().map(|(colour, band)| (*colour, band, ".16"))) {
            let all = range.chunks(each).map(|chunk| chunk.iter().flatten().copied().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))));
            let path = band(&all.collect::<Vec<_>>(), &self.scale);
            let _ = write!(plot.stretched, "<path d=\"{path}\" {} fill-opacity=\"{opacity}\"/>", colour.fill());
        }
        let lines: Vec<_> = self.series.iter().map(|series| (series, columns(&series.values, each))).collect();
        for (series, columns) in lines.iter().filter(|(series, _)| series.filled) {
            let path = area(columns, &self.scale);
            let _ = write!(plot.stretched, "<path d=\"{path}\" {} fill-opacity=\".16\"/>", series.colour.fill());
        }
        // One of many has no number: there is no switch for it, and it is not read out.
        let mut number = 0;
        for (series, columns) in &lines {
            let key = if series.faint { String::new() } else { format!(" data-s=\"{number}\"") };
            number += usize::from(!series.faint);
            let path = line(columns, &self.scale);
            let width = if series.faint {
                ".9"
            } else if self.small {
                "1.2"
            } else {
                "1.8"
            };
            let opacity = if series.faint { " stroke-opacity=\".35\"" } else { "" };
            let _ = write!(
                plot.stretched,
                "<path{key} d=\"{path}\" fill=\"none\" {} stroke-width=\"{width}\"{opacity}{} \
                 vector-effect=\"non-scaling-stroke\" stroke-linejoin=\"round\"/>",
                series.colour.stroke(),
                series.dash.attribute(),
            );
        }
        plot.end();
        if lines.iter().all(|(_, columns)| columns.iter().all(Option::is_none)) && self.range.is_none() {
            plot.unknown();
        }
        plot.svg()
    }

    fn usual(&self, plot: &mut Plot) {
        let Some(level) = &self.level else { return };
        let (foot, top) = (self.scale.place(level.low), self.scale.place(level.high));
        let height = ((top - foot) * self.height).max(2.0);
        let y = self.height * (1.0 - top);
        plot.behind(&format!(
            "<rect x=\"0\" y=\"{}\" width=\"100%\" height=\"{}\" {} fill-opacity=\".16\"/>",
            px(y),
            px(height),
            Colour::Green.fill()
        ));
    }
}
