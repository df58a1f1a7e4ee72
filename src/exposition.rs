//! Figures for monitoring systems: families of samples with labels, and how Prometheus reads them as text (format 0.0.4).
//!
//! Owns the data and that format. Leaves to others which figures there are, and how they are served or sent.

use std::fmt::Write;

/// The media type of [`text`].
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What a family's samples are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Grows, and starts again at 0 with its process.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by size.
    Histogram,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// All samples of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Its name: letters, digits and underscores, the unit at the end, a counter's with `_total` after it.
    pub name: String,
    /// What the samples are.
    pub kind: Kind,
    /// What it says, in a sentence.
    pub help: &'static str,
    /// By labels, each combination once.
    pub samples: Vec<Sample>,
}

/// One value and what it is of.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Names and values of its labels, in order.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: Value,
}

/// The value of a sample.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number of things.
    Count(u64),
    /// A measure.
    Level(f64),
    /// Counts by size.
    Buckets(Buckets),
}

/// Counts by size.
#[derive(Clone, Debug, PartialEq)]
pub struct Buckets {
    /// The upper edge of each bucket but the last, included, from the smallest.
    pub bounds: &'static [f64],
    /// How many lie in each; one more than there are bounds.
    pub counts: Vec<u64>,
    /// The sum of all.
    pub sum: f64,
}

impl Family {
    /// A family of this name.
    pub fn new(name: impl Into<String>, kind: Kind, help: &'static str, samples: Vec<Sample>) -> Self {
        Self { name: name.into(), kind, help, samples }
    }
}

impl Sample {
    /// A count with these labels.
    pub fn count(labels: Vec<(&'static str, String)>, count: u64) -> Self {
        Self { labels, value: Value::Count(count) }
    }

    /// A measure with these labels.
    pub fn level(labels: Vec<(&'static str, String)>, level: f64) -> Self {
        Self { labels, value: Value::Level(level) }
    }
}

/// The families as Prometheus reads them; those without a sample are left out.
pub fn text(families: &[Family]) -> String {
    let mut text = String::new();
    for Family { name, kind, help, samples } in families.iter().filter(|family| !family.samples.is_empty()) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {}", kind.word());
        for Sample { labels, value } in samples {
            match value {
                Value::Count(count) => line(&mut text, name, labels, None, count),
                Value::Level(level) => line(&mut text, name, labels, None, level),
                Value::Buckets(buckets) => histogram(&mut text, name, labels, buckets),
            }
        }
    }
    text
}

type Labels = [(&'static str, String)];

fn histogram(text: &mut String, name: &str, labels: &Labels, Buckets { bounds, counts, sum }: &Buckets) {
    let edges = bounds.iter().map(ToString::to_string).chain(["+Inf".to_string()]);
    let mut so_far = 0;
    for (edge, count) in edges.zip(counts) {
        so_far += count;
        line(text, &format!("{name}_bucket"), labels, Some(&edge), so_far);
    }
    line(text, &format!("{name}_sum"), labels, None, sum);
    line(text, &format!("{name}_count"), labels, None, so_far);
}

fn line(text: &mut String, name: &str, labels: &Labels, edge: Option<&str>, value: impl std::fmt::Display) {
    text.push_str(name);
    let all = labels.iter().map(|(label, value)| (*label, value.as_str())).chain(edge.map(|edge| ("le", edge)));
    let mut before = "{";
    for (label, value) in all {
        let _ = write!(text, "{before}{label}=\"{}\"", escaped(value));
        before = ",";
    }
    text.push_str(if before == "{" { "" } else { "}" });
    let _ = writeln!(text, " {value}");
}

/// A label's value between quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_written_as_prometheus_reads_them() {
        let of = |name: &str| vec![("fleet", name.to_string())];
        let buckets = Buckets { bounds: &[0.005, 1.0], counts: vec![2, 0, 1], sum: 7.5 };
        let families = [
            Family::new(
                "a_total",
                Kind::Counter,
                "How many.",
                vec![Sample::count(of("x\\\"\n</é"), 3), Sample::count(Vec::new(), 4)],
            ),
            Family::new("b", Kind::Gauge, "How much.", vec![Sample::level(Vec::new(), 0.25)]),
            Family::new("c", Kind::Gauge, "Nothing.", Vec::new()),
            Family::new(
                "d_seconds",
                Kind::Histogram,
                "How long.",
                vec![Sample { labels: of("y"), value: Value::Buckets(buckets) }],
            ),
        ];
        let wanted = "# HELP a_total How many.\n# TYPE a_total counter\na_total{fleet=\"x\\\\\\\"\\n</é\"} 3\na_total 4\n\
            # HELP b How much.\n# TYPE b gauge\nb 0.25\n\
            # HELP d_seconds How long.\n# TYPE d_seconds histogram\n\
            d_seconds_bucket{fleet=\"y\",le=\"0.005\"} 2\nd_seconds_bucket{fleet=\"y\",le=\"1\"} 2\nd_seconds_bucket{fleet=\"y\",le=\"+Inf\"} 3\n\
            d_seconds_sum{fleet=\"y\"} 7.5\nd_seconds_count{fleet=\"y\"} 3\n";
        assert_eq!(text(&families), wanted);
    }
}
