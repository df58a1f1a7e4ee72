//! `latency.hlog`: the run's histograms as an HdrHistogram interval log, which HdrHistogram's own tools read.
//!
//! One line for each phase, fleet and kind: the tag is `phase/fleet/kind`, with `kind` one of [`KINDS`]. Phase and fleet are written as in a URL
//! (`after%20outage`): a tag can hold no space and no comma, what reads it may not know an alphabet but ASCII, and two names must not
//! become one. A phase that comes again has a line for each time. Values, the column of maxima among them, are microseconds. Empty
//! histograms are left out.

use crate::metrics::{RunRecord, Summary};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriter, IntervalLogWriterBuilder, IntervalLogWriterError, Tag};
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

/// What HdrHistogram's own writers put above the lines; a reader takes it for a comment.
const LEGEND: &str = "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";

/// The kinds of histogram, and what each holds.
pub const KINDS: [(&str, &str); 5] = [
    ("operation.succeeded", "Latency of operations that succeeded, from the intended start, by the phase of that."),
    ("operation.failed", "The same of operations whose client gave up or put them aside."),
    ("attempt.succeeded", "Latency of attempts that succeeded, from the send, by the phase of that."),
    (
        "attempt.failed",
        "The same of attempts that failed; those that their own client cancelled, hedges that lost, are left out.",
    ),
    ("lag", "Actual minus intended send, of attempts that nothing of the plan held back: how late the load generator was."),
];

/// Writes the log. `started_unix_ms` is when the run started, since the Unix epoch; the epoch itself in virtual time.
///
/// # Errors
/// Those of the writer.
pub fn write<W: Write>(out: &mut W, record: &RunRecord, started_unix_ms: Option<u64>) -> io::Result<()> {
    let started = SystemTime::UNIX_EPOCH + Duration::from_millis(started_unix_ms.unwrap_or(0).min(MAX_UNIX_MS));
    let mut serializer = V2DeflateSerializer::new();
    IntervalLogWriterBuilder::new()
        .add_comment("[Histogram log format version 1.3]")
        .add_comment("[stormwake: values in microseconds; tags are phase/fleet/kind]")
        .with_start_time(started)
        .with_base_time(started)
        .begin_log_with(out, &mut serializer)?;
    out.write_all(LEGEND.as_bytes())?;
    let mut log = IntervalLogWriterBuilder::new().begin_log_with(out, &mut serializer)?;
    let mut summaries: Vec<&Summary> = record.summaries.iter().collect();
    summaries.sort_by_key(|summary| (summary.phase, summary.fleet));
    for summary in summaries {
        write_summary(&mut log, record, summary)?;
    }
    Ok(())
}

/// The year 9999: no clock says more, and no reader's arithmetic ends before it.
const MAX_UNIX_MS: u64 = 253_402_300_799_000;

fn write_summary<W: Write>(
    log: &mut IntervalLogWriter<'_, '_, W, V2DeflateSerializer>,
    record: &RunRecord,
    summary: &Summary,
) -> io::Result<()> {
    let (name, from, to) = match record.phases.get(summary.phase) {
        Some(phase) => (phase.name.as_str(), phase.from, phase.to.min(record.ended).max(phase.from)),
        None => ("unknown", record.ended, record.ended),
    };
    let fleet = record.fleets.get(summary.fleet).map_or("unknown", String::as_str);
    let histograms: [&Histogram<u64>; KINDS.len()] =
        [&summary.succeeded, &summary.failed, &summary.attempt_succeeded, &summary.attempt_failed, &summary.lag];
    for ((kind, _), histogram) in KINDS.into_iter().zip(histograms).filter(|(_, histogram)| !histogram.is_empty()) {
        let tag = format!("{}/{}/{kind}", word(name), word(fleet));
        let start = Duration::from_nanos(from.0);
        log.write_histogram(histogram, start, to.since(from).to_std(), Tag::new(&tag)).map_err(as_io)?;
    }
    Ok(())
}

/// A name as a URL writes it: what is no letter, digit, `-`, `_`, `.`, `~` or `+` of ASCII by the bytes of its UTF-8.
fn word(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~+".contains(&byte);
    name.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn as_io<E: std::error::Error + Send + Sync + 'static>(error: IntervalLogWriterError<E>) -> io::Error {
    match error {
        IntervalLogWriterError::IoError(error) => error,
        IntervalLogWriterError::SerializeError(error) => io::Error::other(error),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    fn written(record: &RunRecord, started: Option<u64>) -> String {
        let mut bytes = Vec::new();
        write(&mut bytes, record, started).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// Standard base64, so that the test need not trust the writer's own coder.
    fn decode(text: &str) -> Vec<u8> {
        const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let (mut out, mut bits, mut held) = (Vec::new(), 0u32, 0);
        for c in text.bytes().filter(|&c| c != b'=') {
            bits = bits << 6 | ALPHABET.iter().position(|&a| a == c).unwrap() as u32;
            held += 6;
            if held >= 8 {
                held -= 8;
                out.push((bits >> held) as u8);
                bits &= (1 << held) - 1;
            }
        }
        out
    }

    #[test]
    fn hdrhistogram_reads_it_back() {
        let mut record = sample::record();
        record.phases[1].name = "black hole, größe/100%\n".into();
        record.phases[2].name = "\u{202e}after".into();
        let text = written(&record, Some(1_796_000_000_123));
        assert!(text.starts_with("#[Histogram log format version 1.3]\n"), "{text}");
        assert!(text.contains("\n#[StartTime: 1796000000.123 "), "{text}");
        assert!(text.contains("\n#[BaseTime: 1796000000.123 "), "{text}");
        assert!(text.contains(LEGEND));

        let entries: Vec<_> = IntervalLogIterator::new(text.as_bytes()).collect::<Result<_, _>>().unwrap();
        let intervals: Vec<_> = entries
            .iter()
            .filter_map(|entry| if let LogEntry::Interval(interval) = entry { Some(interval) } else { None })
            .collect();
        let tags: Vec<&str> = intervals.iter().map(|interval| interval.tag().unwrap().as_str()).collect();
        assert!(tags.contains(&"steady/devices/operation.succeeded"), "{tags:?}");
        assert!(tags.contains(&"black%20hole%2C%20gr%C3%B6%C3%9Fe%2F100%25%0A/devices/attempt.failed"), "{tags:?}");
        assert!(tags.contains(&"%E2%80%AEafter/devices/lag"), "{tags:?}");

        let summary = &record.summaries[0];
        let read: Histogram<u64> =
            Deserializer::new().deserialize(&mut decode(intervals[0].encoded_histogram()).as_slice()).unwrap();
        assert_eq!(read, summary.succeeded);
        assert_eq!(intervals[0].start_timestamp(), Duration::ZERO);
        assert_eq!(intervals[0].duration(), record.phases[0].to.since(record.phases[0].from).to_std());
        let kinds =
            |s: &Summary| [&s.succeeded, &s.failed, &s.attempt_succeeded, &s.attempt_failed, &s.lag].map(|h| !h.is_empty());
        assert_eq!(intervals.len(), record.summaries.iter().flat_map(kinds).filter(|&some| some).count());
    }

    #[test]
    fn equal_runs_give_equal_bytes_and_times_stay_in_order() {
        let record = sample::record();
        assert_eq!(written(&record, None), written(&record, None));
        let text = written(&record, None);
        let starts: Vec<Duration> = IntervalLogIterator::new(text.as_bytes())
            .filter_map(
                |entry| if let LogEntry::Interval(interval) = entry.unwrap() { Some(interval.start_timestamp()) } else { None },
            )
            .collect();
        assert!(starts.len() > 3 && starts.is_sorted());
        // A hostile clock makes no panic.
        written(&record, Some(u64::MAX));
    }
}
