//! What charts have in common: the frame of the drawing, its axes, and what stands behind series over time.

use super::super::words::{UNKNOWN, escape, plain};
use super::scale::{Scale, Unit, moment, time_ticks};
use super::{Colour, px, share_of};
use std::fmt::Write;

/// A stretch that is shaded, with a name above it: a fault.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// When it begins, in milliseconds.
    pub from_ms: f64,
    /// When it ends.
    pub to_ms: f64,
    /// What it is called.
    pub name: String,
}

/// What a mark stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// Health came back: a line through the chart with its label.
    Recovery,
    /// Something happened: a thin line with a short label at its foot.
    Event,
}

/// A moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// When, in milliseconds.
    pub at_ms: f64,
    /// What for.
    pub kind: MarkKind,
    /// What is written beside it: a few characters for an event.
    pub label: String,
    /// The whole of it, shown when pointed at.
    pub detail: String,
}

/// What stands behind every series of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Backdrop {
    /// How much time is shown, in milliseconds: more than nothing.
    pub span_ms: f64,
    /// How long a window is.
    pub window_ms: f64,
    /// Faults.
    pub bands: Vec<Band>,
    /// The stretch that is the baseline.
    pub baseline: Option<(f64, f64)>,
    /// Moments.
    pub marks: Vec<Mark>,
}

/// Faults whose names stand above each other; the others are shaded without a name.
const LANES: usize = 3;
/// The height of a name.
const LANE: f64 = 17.0;
/// Bands and marks that are drawn.
const MOST_DRAWN: usize = 300;
/// Bands that are named.
const NAMED: usize = 12;

impl Backdrop {
    /// The row in which a band's name stands; none where all are taken.
    fn lanes(&self) -> Vec<Option<usize>> {
        let mut ends = [f64::MIN; LANES];
        let place = |band: &Band| {
            let lane = ends.iter().position(|&end| end <= band.from_ms)?;
            ends[lane] = band.to_ms;
            Some(lane)
        };
        self.bands.iter().take(MOST_DRAWN).map(place).collect()
    }
}

/// Where labels of events end, as shares of the width: on a desk's screen, and on a telephone's.
#[derive(Default)]
struct Labels {
    desk: f64,
    phone: f64,
}

impl Labels {
    /// Whether the next label stands left of its mark, and the class it is shown with; none where it would meet the one before.
    fn place(&mut self, at: f64, label: &str) -> (bool, Option<&'static str>) {
        let pixels = 10.0 + 7.5 * label.chars().count() as f64;
        let (desk, phone) = (pixels / 1_000.0, pixels / 310.0);
        let left = at + phone > 1.0;
        let start = |width: f64| if left { (at - width).max(0.0) } else { at };
        if start(desk) < self.desk {
            return (left, None);
        }
        self.desk = start(desk) + desk;
        if start(phone) < self.phone {
            return (left, Some(" alt"));
        }
        self.phone = start(phone) + phone;
        (left, Some(""))
    }
}

/// A drawing in the making: what is stretched with the width, and what is not.
pub struct Plot<'a> {
    pub id: &'a str,
    pub title: &'a str,
    pub gist: &'a str,
    pub height: f64,
    /// Attributes for the script.
    pub data: String,
    /// Behind the lines, positions as shares of the width.
    behind: String,
    /// In a view of 1000 by `height`.
    pub stretched: String,
    /// Before the lines, positions as shares of the width.
    front: String,
    top: f64,
    bottom: f64,
    bare: bool,
    wide: bool,
}

impl<'a> Plot<'a> {
    /// An empty one; `bare` has no axes.
    pub fn new(id: &'a str, title: &'a str, gist: &'a str, height: f64, bare: bool) -> Self {
        let (data, behind, stretched, front) = Default::default();
        Self {
            id,
            title,
            gist,
            height,
            data,
            behind,
            stretched,
            front,
            top: if bare { 2.0 } else { 8.0 },
            bottom: 4.0,
            bare,
            wide: false,
        }
    }

    /// Nothing stands left of it.
    pub fn wide(&mut self) {
        self.wide = true;
    }

    /// Something behind the lines.
    pub fn behind(&mut self, markup: &str) {
        self.behind.push_str(markup);
    }

    /// Something before the lines.
    pub fn front(&mut self, markup: &str) {
        self.front.push_str(markup);
    }

    /// Horizontal lines and what they stand for.
    pub fn rungs(&mut self, scale: &Scale, unit: Unit) {
        self.levels(&scale.labels(unit));
    }

    /// Horizontal lines at shares of the height, with labels.
    pub fn levels(&mut self, labels: &[(f64, String)]) {
        let last = labels.len().saturating_sub(1);
        for (index, (at, label)) in labels.iter().enumerate() {
            if self.bare && index != 0 && index != last {
                continue;
            }
            let y = self.height * (1.0 - at);
            let _ = write!(self.behind, "<path d=\"M0 {0}h9999\" class=\"rung\" stroke=\"#d9dde3\"/>", px(y));
            let _ =
                write!(self.front, "<text x=\"-6\" y=\"{}\" text-anchor=\"end\" {LABEL}>{}</text>", px(y + 4.0), escape(label));
        }
    }

    /// Labels below, at shares of the width. Every other one gives way where there is little room.
    pub fn below(&mut self, labels: &[(f64, String)]) {
        if self.bare {
            return;
        }
        self.bottom = 22.0;
        let y = px(self.height + 16.0);
        for (index, (at, label)) in labels.iter().enumerate() {
            let anchor = if *at < 0.01 {
                "start"
            } else if *at > 0.97 {
                "end"
            } else {
                "middle"
            };
            let class = if index % 2 == 1 { " alt" } else { "" };
            let x = share_of(*at);
            let _ = write!(
                self.front,
                "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" class=\"lab{class}\" fill=\"#4b5563\">{}</text>",
                escape(label)
            );
        }
    }

    /// The time axis, and what stands behind series.
    pub fn time(&mut self, backdrop: &Backdrop) {
        let span = backdrop.span_ms.max(1.0);
        let ticks = time_ticks(span as u64);
        let place = |(ms, label): &(u64, String)| (*ms as f64 / span, label.clone());
        self.below(&ticks.iter().map(place).collect::<Vec<_>>());
        if let Some((from, to)) = backdrop.baseline {
            let detail = format!("baseline, from {} to {}", moment(from as u64), moment(to as u64));
            let area = self.area(from / span, to / span);
            let _ =
                write!(self.behind, "<rect {area} {} fill-opacity=\".09\"><title>{detail}</title></rect>", Colour::Green.fill());
            self.strip((from / span, to / span), 0, Colour::Green, "baseline", &detail);
        }
        self.bands(backdrop, span);
        let mut marks: Vec<&Mark> = backdrop.marks.iter().take(MOST_DRAWN).collect();
        marks.sort_by(|a, b| a.at_ms.total_cmp(&b.at_ms));
        let mut labels = Labels::default();
        for mark in marks {
            self.mark(mark, span, &mut labels);
        }
    }

    fn area(&self, from: f64, to: f64) -> String {
        let width = share_of((to - from).max(0.001));
        format!("x=\"{}\" width=\"{width}\" height=\"{}\"", share_of(from), px(self.height))
    }

    /// The shades are one path, and their edges another: a day of faults costs little.
    fn bands(&mut self, backdrop: &Backdrop, span: f64) {
        if backdrop.bands.is_empty() {
            return;
        }
        let (mut areas, mut edges) = (String::new(), String::new());
        let h = px(self.height);
        let x = |ms: f64| (ms / span).clamp(0.0, 1.0) * 1_000.0;
        for band in backdrop.bands.iter().take(MOST_DRAWN) {
            let (from, to) = (x(band.from_ms), x(band.to_ms));
            let _ = write!(areas, "M{} 0h{}v{h}h-{}z", px(from), px(to - from), px(to - from));
            let _ = write!(edges, "M{} 0v{h}M{} 0v{h}", px(from), px(to));
        }
        let _ = write!(
            self.behind,
            "<svg width=\"100%\" height=\"{h}\" viewBox=\"0 0 1000 {h}\" preserveAspectRatio=\"none\"><path d=\"{areas}\" {} \
             fill-opacity=\".11\"/><path d=\"{edges}\" {} stroke-opacity=\".7\" stroke-dasharray=\"3 3\" \
             vector-effect=\"non-scaling-stroke\"/></svg>",
            Colour::Vermilion.fill(),
            Colour::Vermilion.stroke(),
        );
        for (band, lane) in backdrop.bands.iter().zip(backdrop.lanes()).take(NAMED) {
            let Some(lane) = lane else { continue };
            let label = plain(&band.name, 40);
            let detail = format!("{label}: {} to {}", moment(band.from_ms as u64), moment(band.to_ms as u64));
            self.strip((band.from_ms / span, (band.to_ms / span).min(1.0)), lane, Colour::Vermilion, &label, &escape(&detail));
        }
    }

    /// A name above the plot, as wide as what it names.
    fn strip(&mut self, (from, to): (f64, f64), lane: usize, colour: Colour, label: &str, detail: &str) {
        if self.bare {
            return;
        }
        self.top = self.top.max(8.0 + (lane + 1) as f64 * LANE);
        let y = px(-(LANE * (lane as f64 + 1.0)) - 1.0);
        let _ = write!(
            self.front,
            "<svg x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{}\"><rect width=\"100%\" height=\"100%\" {} fill-opacity=\".25\"/><text x=\"4\" \
             y=\"12\" class=\"ink\" fill=\"#1b2430\">{}</text><title>{detail}</title></svg>",
            share_of(from),
            share_of((to - from).max(0.001)),
            px(LANE - 1.0),
            colour.fill(),
            escape(label),
        );
    }

    fn mark(&mut self, mark: &Mark, span: f64, labels: &mut Labels) {
        let at = mark.at_ms / span;
        if !(0.0..=1.0).contains(&at) {
            return;
        }
        let (x, foot) = (share_of(at), px(self.height));
        let detail = escape(&plain(&mark.detail, 80));
        let (colour, dash, y) = match mark.kind {
            MarkKind::Recovery => (Colour::Green, "", px(13.0)),
            MarkKind::Event => (Colour::Grey, " stroke-dasharray=\"1 3\"", px(self.height - 6.0)),
        };
        let width = if mark.kind == MarkKind::Recovery { 2 } else { 1 };
        let label = plain(&mark.label, 40);
        let (left, class) = match mark.kind {
            MarkKind::Recovery => (at > 0.55, Some("")),
            MarkKind::Event => labels.place(at, &label),
        };
        let (anchor, shift) = if left { ("end", -5) } else { ("start", 5) };
        let _ = write!(
            self.front,
            "<g><title>{detail}</title><line x1=\"{x}\" x2=\"{x}\" y1=\"0\" y2=\"{foot}\" {}{dash} stroke-width=\"{width}\"/>",
            colour.stroke()
        );
        if let Some(class) = class.filter(|_| !self.bare) {
            let _ = write!(
                self.front,
                "<text x=\"{x}\" dx=\"{shift}\" y=\"{y}\" text-anchor=\"{anchor}\" class=\"ink halo{class}\" fill=\"#1b2430\" stroke=\"#fff\" \
                 stroke-width=\"3\" paint-order=\"stroke\">{}</text>",
                escape(&label)
            );
        }
        self.front.push_str("</g>");
    }

    /// Says that there is nothing to draw.
    pub fn unknown(&mut self) {
        let y = px(self.height / 2.0);
        let _ = write!(self.front, "<text x=\"50%\" y=\"{y}\" text-anchor=\"middle\" {LABEL}>{UNKNOWN}</text>");
    }

    /// Opens a group in which x counts columns and y is a scale's coordinate.
    pub fn values(&mut self, columns: f64, scale: &Scale) {
        let (low, high) = scale.coordinates();
        let (x, y) = (1_000.0 / columns.max(1e-9), self.height / (high - low).max(1e-9));
        let down = self.height + low * y;
        let _ = write!(self.stretched, "<g transform=\"matrix({} 0 0 {} 0 {})\">", precise(x), precise(-y), precise(down));
    }

    /// Closes it.
    pub fn end(&mut self) {
        self.stretched.push_str("</g>");
    }

    /// The markup.
    pub fn svg(self) -> String {
        let Self { id, data, behind, stretched, front, height, .. } = &self;
        let whole = px(self.top + height + self.bottom);
        let class = if self.wide { "chart whole" } else { "chart" };
        // Labels on the left stand in the figure's margin, which a browser gives it even without a style sheet.
        format!(
            "<svg class=\"{class}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\" width=\"100%\" height=\"{whole}\" overflow=\"visible\" \
             font-family=\"system-ui,sans-serif\" font-size=\"12\"{data}><title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>\
             <svg class=\"plot\" y=\"{}\" width=\"100%\" height=\"{h}\" overflow=\"visible\"><svg width=\"100%\" height=\"{h}\" \
             overflow=\"hidden\">{behind}</svg><svg class=\"lines\" width=\"100%\" y=\"-2\" height=\"{tall}\" viewBox=\"0 -2 1000 {tall}\" \
             preserveAspectRatio=\"none\" overflow=\"hidden\">{stretched}</svg>{front}</svg></svg>",
            escape(self.title),
            escape(self.gist),
            px(self.top),
            h = px(*height),
            tall = px(*height + 4.0),
        )
    }
}

/// Labels of axes.
const LABEL: &str = "class=\"lab\" fill=\"#4b5563\"";

/// A factor with six digits.
fn precise(x: f64) -> String {
    let size = if x == 0.0 { 0 } else { libm::floor(libm::log10(x.abs())) as i32 };
    let decimals = usize::try_from(5 - size).unwrap_or(0).min(15);
    let text = format!("{x:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}
