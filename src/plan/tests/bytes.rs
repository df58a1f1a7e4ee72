//! Plans with faults of bytes: what is read, and what is said of what is wrong.

use super::{load_with, with};

/// What is replaced in the base, by what (the mark stands where the problem is), and a part of the message.
pub(super) const ERRORS: &[(&str, &str, &str)] = &[
    ("hang: {}", "bandwidth: { rate: ¶500 }", "such as `500KB/s`"),
    ("hang: {}", "bandwidth: { rate: ¶500KB }", "write `500KB/s`"),
    ("hang: {}", "bandwidth: { rate: ¶0B/s }", "use `stall` or `half_open`"),
    ("hang: {}", "bandwidth: { rate: 1KB/s, stream: ¶up }", "expected one of: upstream, downstream, both"),
    ("hang: {}", "slicer: { size: ¶0B }", "at least `1B`"),
    ("hang: {}", "slicer: { size: 10B, variation: ¶10B }", "less than `size`"),
    ("hang: {}", "limit_data: { bytes: ¶64 }", "write `64B`, `64KB` or `64KiB`"),
    ("hang: {}", "loss: { share: ¶100% }", "use `blackhole` or `half_open`"),
    ("hang: {}", "loss: { share: ¶0% }", "strikes nothing"),
    ("hang: {}", "stall: { timeout: 5s, measure: ¶total }", "silence, absolute"),
    ("hang: {}", "latency: { add: 1s, jitter: 1s, distribution: ¶gauss }", "uniform, normal, lognormal, pareto"),
    ("hang: {} }", "loss: { share: 1% } }, destinations: ¶[x]", "strikes connections"),
];

/// The same, of warnings.
pub(super) const WARNINGS: &[(&str, &str, &str)] = &[
    ("hang: {}", "slow_close: { delay: ¶0s }", "harms nobody"),
    ("hang: {}", "latency: { add: 10ms, jitter: ¶20ms, distribution: normal }", "below zero counts as zero"),
];

#[test]
fn faults_of_bytes_are_read_and_warn_of_nothing() {
    for fault in [
        "close: {}",
        "bandwidth: { rate: 500KB/s, stream: downstream, overall: true }",
        "slicer: { size: 1KiB, variation: 100B, delay: 5ms }",
        "limit_data: { bytes: 1MiB, stream: upstream }",
        "slow_close: { delay: 5s }",
        "loss: { share: 2% }",
        "half_open: {}",
        "half_open: { stream: both }",
        "stall: { timeout: 5s, measure: absolute }",
        "latency: { add: 100ms, jitter: 300ms, distribution: pareto }",
    ] {
        let loaded = load_with(&with("hang: {}", fault), &[]);
        let loaded = loaded.unwrap_or_else(|shown| panic!("{fault}\n{shown}"));
        assert_eq!(loaded.warnings_text, "", "{fault}");
    }
}
