//! `latency.hgrm` and its kin: percentiles as the text that HdrHistogram's own tools write and its plotters read.
//!
//! Operation latency from the intended start, of operations that succeeded, in milliseconds: `latency.hgrm` of the whole run, and
//! `latency-before.hgrm`, `latency-during.hgrm` and `latency-after.hgrm` of the stretches of `result.json`, so that a plotter lays them over one
//! another. A histogram without values leaves no file. The text is, to the byte, what HdrHistogram's Java tool makes of the same
//! histograms: `tests/conformance/hdr` compares them. So the steps are counted here and not by the histogram's own iterator, whose levels
//! are sums of tenths that no binary fraction meets: it leaves out a step where a share is a round one.

use super::result::stretch_phases;
use crate::metrics::{RunRecord, Summary};
use hdrhistogram::Histogram;
use std::fmt::Write;
use std::ops::Range;

/// How a file's name begins.
const STEM: &str = "latency";
/// How many steps there are for each halving of what is left to 100%: as many as the tools of HdrHistogram have.
const STEPS_PER_HALVING: f64 = 5.0;

/// The files of a run: names and texts. Those of the stretches come after the one of the whole, in their order.
pub fn files(record: &RunRecord) -> Vec<(String, String)> {
    let whole = (format!("{STEM}.hgrm"), 0..usize::MAX);
    let stretches = stretch_phases(record).into_iter().map(|of| (format!("{STEM}-{}.hgrm", of.name), of.phases));
    let files = std::iter::once(whole).chain(stretches).map(|(name, phases)| (name, together(record, &phases)));
    files.filter(|(_, histogram)| !histogram.is_empty()).map(|(name, histogram)| (name, text(&histogram))).collect()
}

fn together(record: &RunRecord, phases: &Range<usize>) -> Histogram<u64> {
    let mut all = Histogram::<u64>::new(3).expect("3 significant digits are within bounds");
    let within = |summary: &&Summary| phases.contains(&summary.phase);
    for summary in record.summaries_of_all().filter(within) {
        all.add(&summary.succeeded).expect("a histogram that resizes itself takes every value");
    }
    all
}

/// The text of one histogram of microseconds, in milliseconds.
fn text(histogram: &Histogram<u64>) -> String {
    let mut out = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
    for step in steps(histogram) {
        let (value, share) = (milliseconds(step.micros), decimal(step.level / 100.0, 12));
        let odds =
            if step.level < 100.0 { format!(" {:>14}", decimal(1.0 / (1.0 - step.level / 100.0), 2)) } else { String::new() };
        put(&mut out, format_args!("{value:>12} {share} {:>10}{odds}\n", step.count));
    }
    let (mean, deviation) = (decimal(histogram.mean() / 1e3, 3), decimal(histogram.stdev() / 1e3, 3));
    let (max, count) = (milliseconds(histogram.max()), histogram.len());
    let (buckets, parts) = (histogram.buckets(), PARTS);
    put(&mut out, format_args!("#[Mean    = {mean:>12}, StdDeviation   = {deviation:>12}]\n"));
    put(&mut out, format_args!("#[Max     = {max:>12}, Total count    = {count:>12}]\n"));
    put(&mut out, format_args!("#[Buckets = {buckets:>12}, SubBuckets     = {parts:>12}]\n"));
    out
}

/// Sub-buckets of a histogram of three digits.
const PARTS: u32 = 2048;

/// One line.
struct Step {
    /// The percentile that it stands for.
    level: f64,
    /// The value at it, the highest that the histogram does not tell apart from it.
    micros: u64,
    /// How many values are no larger.
    count: u64,
}

/// Steps that come closer the nearer they are to 100: at each value as many as its count reaches, and one more for all.
fn steps(histogram: &Histogram<u64>) -> Vec<Step> {
    let (total, mut count, mut level, mut steps) = (histogram.len(), 0, 0.0, Vec::new());
    for recorded in histogram.iter_recorded() {
        count += recorded.count_at_value();
        let micros = histogram.highest_equivalent(recorded.value_iterated_to());
        while 100.0 * count as f64 / total as f64 >= level {
            steps.push(Step { level, micros, count });
            // The last value needs no step but the first that it reaches.
            if count == total {
                steps.push(Step { level: 100.0, micros, count });
                return steps;
            }
            level += 100.0 / (STEPS_PER_HALVING * next_halving(level));
        }
    }
    steps
}

/// The power of two by which what is left to 100 is halved next.
fn next_halving(level: f64) -> f64 {
    let mut power = 2.0;
    while 100.0 / (100.0 - level) >= power {
        power *= 2.0;
    }
    power
}

fn milliseconds(micros: u64) -> String {
    format!("{}.{:03}", micros / 1_000, micros % 1_000)
}

/// A number that is not negative with so many decimals, a half rounded up: by its shortest decimal form, as Java rounds.
fn decimal(x: f64, places: usize) -> String {
    let shortest = x.to_string();
    let (whole, fraction) = shortest.split_once('.').unwrap_or((&shortest, ""));
    let kept: String = fraction.chars().chain(std::iter::repeat('0')).take(places).collect();
    let up = fraction.as_bytes().get(places).is_some_and(|&digit| digit >= b'5');
    let digits: Option<u128> = format!("{whole}{kept}").parse().ok();
    let Some(digits) = digits else { return format!("{x:.places$}") };
    let scale = 10u128.pow(places as u32);
    let digits = digits + u128::from(up);
    format!("{}.{:0places$}", digits / scale, digits % scale)
}

fn put(out: &mut String, line: std::fmt::Arguments) {
    out.write_fmt(line).expect("a string takes every text");
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn histogram(values: impl IntoIterator<Item = (u64, u64)>) -> Histogram<u64> {
        let mut histogram = Histogram::new(3).unwrap();
        values.into_iter().for_each(|(value, count)| histogram.record_n(value, count).unwrap());
        histogram
    }

    /// As `HistogramLogProcessor` of HdrHistogram 2.1.11 writes these values with a unit ratio of 1000.
    #[test]
    fn the_text_is_that_of_the_java_tool() {
        let text = text(&histogram([(1_000, 3), (2_000, 3), (40_000, 4)]));
        assert_eq!(
            text,
            "       Value     Percentile TotalCount 1/(1-Percentile)

       1.000 0.000000000000          3           1.00
       1.000 0.100000000000          3           1.11
       1.000 0.200000000000          3           1.25
       1.000 0.300000000000          3           1.43
       2.000 0.400000000000          6           1.67
       2.000 0.500000000000          6           2.00
       2.000 0.550000000000          6           2.22
       2.000 0.600000000000          6           2.50
      40.031 0.650000000000         10           2.86
      40.031 1.000000000000         10
#[Mean    =       16.906, StdDeviation   =       18.873]
#[Max     =       40.031, Total count    =           10]
#[Buckets =            6, SubBuckets     =         2048]
"
        );
    }

    #[test]
    fn halves_are_rounded_up_as_they_are_written() {
        for (x, places, wanted) in [
            (0.0, 12, "0.000000000000"),
            (1.0, 12, "1.000000000000"),
            (0.9997802734375, 12, "0.999780273438"),
            (11.2605, 3, "11.261"),
            (0.9995, 3, "1.000"),
            (1e-7, 3, "0.000"),
            (2560.0, 2, "2560.00"),
            (1e15 / 3.0, 2, "333333333333333.30"),
        ] {
            assert_eq!(decimal(x, places), wanted, "{x}");
        }
        assert_eq!([0.0, 49.9, 50.0, 75.0, 99.9].map(next_halving), [2.0, 2.0, 4.0, 8.0, 1024.0]);
    }

    #[test]
    fn each_stretch_with_values_has_a_file() {
        let record = sample::record();
        let names: Vec<String> = files(&record).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["latency.hgrm", "latency-before.hgrm", "latency-after.hgrm"], "nothing succeeds in the outage");
        let count = |name: &str| {
            let (_, text) = files(&record).into_iter().find(|(known, _)| known == name).expect("it is there");
            text.split("Total count    = ").nth(1).and_then(|rest| rest[..12].trim().parse::<u64>().ok()).expect("a count")
        };
        let succeeded: u64 = record.windows.iter().map(|window| window.all.succeeded).sum();
        assert_eq!(count("latency.hgrm"), succeeded);
        assert_eq!(count("latency-before.hgrm") + count("latency-after.hgrm"), succeeded);
        assert!(files(&RunRecord::default()).is_empty());
    }

    #[test]
    fn a_long_run_has_bounded_lines() {
        let many = histogram((1..=2_000).map(|n| (n * 1_000, u64::MAX / 4_000)));
        let lines = text(&many).lines().count();
        assert!(lines < 500, "{lines}");
    }
}
