//! Charts as inline SVG: one file per kind.
//!
//! Every chart is a struct that is filled and turned into markup by `html()`: a `<figure>` with its heading, its legend
//! and one `<svg role="img">`. It says itself in words: `title` is what it shows, `gist` what there is to see, with
//! numbers. `id` must be unique on the page.
//!
//! - [`TimeChart`]: series over time. Values are one for each window; where windows share a column ([`columns`]), lowest
//!   and highest both stay. Its [`Backdrop`] (faults, baseline, recovery, notes) is made once and shared by all.
//! - [`Bars`]: a histogram. [`Stack`]: parts of a whole, a bar for each row. [`Heat`]: counts over time and size.
//! - [`Times`]: how long something took in many runs, with those to which it never came. [`Curve`]: a percentile curve. [`multiples`]: many small charts side by side.
//! - [`Scale`] and [`Unit`] say how values lie and are written; [`Scale::fit`] chooses.
//!
//! The drawing has no width of its own: it takes what there is, positions are percentages, and only lines are stretched,
//! so that text keeps its size on a phone. All is said by presentation attributes first, for a page whose style sheet is
//! refused; classes let the style sheet replace colours in the dark.

mod bars;
pub mod columns;
mod curve;
mod heat;
mod multiples;
mod plot;
mod scale;
mod stack;
mod time;
mod times;

pub use bars::{Bar, Bars};
pub use curve::{Curve, CurveLine};
pub use heat::{Heat, quantiles};
pub use multiples::multiples;
pub use plot::{Backdrop, Band, Mark, MarkKind};
pub use scale::{Scale, Unit, moment};
pub use stack::{Part, Row, Stack};
pub use time::{Level, Ranges, Series, TimeChart};
pub use times::{Times, TimesRow};

use super::words::{broken, escape};
use askama::Template;
use std::fmt::Write;

/// Colours that differ to every kind of eye, each in a light and a dark variant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    /// Goodput, and what is good.
    #[default]
    Blue,
    /// Attempts and faults.
    Vermilion,
    /// Recovery.
    Green,
    /// What reached the target.
    Purple,
    /// Retries.
    Orange,
    /// What was offered, and what else is beside the point.
    Grey,
}

impl Colour {
    /// In their order for series that have no meaning of their own.
    pub const ALL: [Self; 6] = [Self::Blue, Self::Vermilion, Self::Green, Self::Purple, Self::Orange, Self::Grey];

    /// The colour on white.
    pub fn hex(self) -> &'static str {
        match self {
            Self::Blue => "#0068a8",
            Self::Vermilion => "#c44e00",
            Self::Green => "#007a58",
            Self::Purple => "#9c4a84",
            Self::Orange => "#a86800",
            Self::Grey => "#5a6472",
        }
    }

    /// The name that the style sheet knows it by.
    pub fn class(self) -> &'static str {
        match self {
            Self::Blue => "blue",
            Self::Vermilion => "verm",
            Self::Green => "green",
            Self::Purple => "purple",
            Self::Orange => "orange",
            Self::Grey => "grey",
        }
    }

    /// Attributes of a line in this colour.
    pub fn stroke(self) -> String {
        format!("class=\"s-{}\" stroke=\"{}\"", self.class(), self.hex())
    }

    /// Attributes of an area in this colour.
    pub fn fill(self) -> String {
        format!("class=\"f-{}\" fill=\"{}\"", self.class(), self.hex())
    }
}

/// How a line is drawn, so that colour is not all that tells lines apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Dash {
    /// Whole.
    #[default]
    Solid,
    /// In dashes.
    Dashed,
    /// In dots.
    Dotted,
    /// In long dashes.
    Long,
}

impl Dash {
    fn attribute(self) -> &'static str {
        match self {
            Self::Solid => "",
            Self::Dashed => " stroke-dasharray=\"6 3\"",
            Self::Dotted => " stroke-dasharray=\"2 2.5\"",
            Self::Long => " stroke-dasharray=\"11 4\"",
        }
    }
}

/// The height of the main charts, in pixels.
pub const TALL: f64 = 240.0;
/// The height of the others.
pub const MIDDLE: f64 = 150.0;
/// The height of one of many.
pub const SMALL: f64 = 64.0;

/// A position or a length as a share of the width.
fn share_of(x: f64) -> String {
    let text = format!("{:.3}", x.clamp(-1.0, 2.0) * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A length in pixels.
fn px(x: f64) -> String {
    let text = format!("{x:.1}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// A chart with its heading.
#[derive(Template)]
#[template(path = "report/figure.html")]
struct Figure<'a> {
    title: &'a str,
    hint: &'a str,
    /// What the colours and dashes mean, as markup.
    legend: &'a str,
    svg: &'a str,
    small: bool,
}

impl Figure<'_> {
    fn html(&self) -> String {
        self.render().expect("a string takes every write")
    }
}

/// What stands in a legend before a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// A line.
    Line,
    /// A line above an area.
    Filled,
    /// An area without a line.
    Area,
}

/// What the lines mean: a swatch and a name each. The script makes switches of them.
fn legend(entries: &[(Colour, Dash, Sign, &str)]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let mut text = String::from("<ul class=\"legend\">");
    for (index, (colour, dash, sign, name)) in entries.iter().enumerate() {
        let swatch = if *sign != Sign::Line {
            format!("<rect width=\"22\" height=\"10\" {} fill-opacity=\".3\"/>", colour.fill())
        } else {
            String::new()
        };
        let line = if *sign == Sign::Area {
            String::new()
        } else {
            format!("<path d=\"M0 5h22\" {} stroke-width=\"2\"{}/>", colour.stroke(), dash.attribute())
        };
        let _ = write!(
            text,
            "<li data-s=\"{index}\"><svg aria-hidden=\"true\" width=\"22\" height=\"10\">{swatch}{line}</svg> <span>{}</span></li>",
            broken(name)
        );
    }
    text + "</ul>"
}
