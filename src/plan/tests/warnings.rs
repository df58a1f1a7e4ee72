//! What is no mistake and should be said all the same, each at its place.

use super::{bytes, evidence, external, load_with, requests, services, unmark, with};

/// A line, what takes its place with `¶` where the warning points, and what it says. Such a plan runs.
const WARNINGS: &[(&str, &str, &str)] = &[
    ("  p: {", "  ¶q: { attempts: 1, timeout: 1s }\n  p: {", "no fleet uses the policy `q`"),
    ("timeout: 1s", "timeout: 1s, deadline: ¶500ms", "shorter than the timeout"),
    (
        "a: { clients: 10, policy: p, load: { poisson: { rate: 100/s } } }",
        "a: { workers: 5, policy: ¶{ attempts: 3, timeout: 1s, on: { 429: { lane: slow } } }, queue: { arrivals: { constant: { rate: 100/s } }, hold_while_waiting: true, lanes: { slow: { concurrency: 1 } } } }\n  b: { clients: 10, policy: p, load: { poisson: { rate: 100/s } } }",
        "no retry goes to the lane `slow`",
    ),
    ("timeout: 1s", "timeout: 1s, max_elapsed: ¶500ms", "it is not retried"),
    ("attempts: 3, timeout: 1s", "attempts: 1, timeout: 1s, backoff: ¶{ fixed: { delay: 1s } }", "`backoff` does nothing"),
    ("timeout: 1s", "timeout: 1s, retry_on: ¶[]", "nothing is retried"),
    ("timeout: 1s", "timeout: 1s, budget: ¶{ ratio: 0%, tier: fleet }", "never permits a retry"),
    ("timeout: 1s", "timeout: 1s, budget: ¶{ ratio: 10%, window: 100ms, tier: client }", "never permits a retry: a client of"),
    ("timeout: 1s", "timeout: 1s, budget: ¶{ bucket: { deposit: 0%, burst: 3 }, tier: fleet }", "3 retries in the whole run"),
    ("timeout: 1s", "timeout: 1s, budget: ¶{ quota: { capacity: 4 }, tier: fleet }", "never permits a retry: one costs 5"),
    ("timeout: 1s", "timeout: 1s, budget: ¶{ grpc: { tokens: 2 }, tier: fleet }", "no more than half of its tokens"),
    ("timeout: 1s", "timeout: 1s, budget: ¶{ concurrent: { share: 20%, at_least: 0 }, tier: client }", "hardly ever"),
    ("timeout: 1s", "timeout: 1s, on: { 429: { cost: 9 } }, budget: ¶{ quota: { capacity: 8 }, tier: fleet }", "retry after 429"),
    ("timeout: 1s", "timeout: 1s, on: { 429: { cost: 9 } }, budget: ¶{ grpc: {}, tier: fleet }", "has no prices"),
    ("timeout: 1s", "timeout: 1s, breaker: ¶{ rate: 50%, window: 100ms, tier: fleet }", "this breaker never opens"),
    (
        "attempts: 3, timeout: 1s",
        "attempts: 1, timeout: 1s, breaker: ¶{ failures: 5, suppresses: retries, tier: fleet }",
        "suppresses nothing else",
    ),
    ("timeout: 1s", "timeout: 1s, throttle: ¶{ adaptive: { throttled_by: [refused], tier: fleet } }", "the client's own doing"),
    ("poisson: { rate: 100/s }", "spike: { rate: 93/s, peak: 300/s, at: 118s, for: ¶5s }", "beyond the end of the run"),
    ("poisson: { rate: 100/s }", "spike: { rate: 93/s, peak: ¶3/s, at: 10s, for: 5s }", "this is no spike"),
    (
        "policies:",
        "network: { latency: ¶400ms, upstream: 100ms }\npolicies:",
        "a round trip through the network takes 1s on average",
    ),
    ("policies:", "network: { connect: ¶{ exponential: { mean: 2s } } }\npolicies:", "opening a connection takes 2s"),
    ("policies:", "network: { reset: ¶60% }\npolicies:", "resets 60% of all attempts"),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: p, candidates: [{ q: { attempts: 3, timeout: 1s, budget: ¶{ ratio: 0%, tier: fleet } } }] }",
        "never permits a retry: fleet `a`",
    ),
    ("http://127.0.0.1:8080/x", "¶http://api.example.com/", "not in `allow`"),
    ("/x\n", "/x\n  max_attempts: ¶50/s\n", "below the offered load of 100/s"),
    ("/x\n", "/x\n  success: { within: ¶2s }\n", "adds nothing"),
    ("hang: {}", "latency: { add: 10ms, jitter: ¶20ms }", "below zero counts as zero"),
    ("within: 20s, hold: 10s", "within: ¶85s, hold: 10s", "cannot be seen to hold|make `length` 2m5s or longer"),
    ("hang: {} } }", "hang: {} } }\n  - { at: 40s, for: 1s, fault: { hang: {} } }", ""),
    ("after: out", "after: out, operations: ¶100000", ""),
    ("length: 2m", "length: 2m\nstop_if: [{ errors: \"> 50%\", for: ¶3m }]", "never stops it"),
    ("{ poisson: { rate: 100/s } }", "{ ramp: { from: 1/s, to: 100/s, over: ¶3m } }", "longer than the run"),
];

#[test]
fn every_warning_is_found_at_its_place() {
    let warnings = WARNINGS.iter().chain(services::WARNINGS).chain(requests::WARNINGS);
    for (old, new, wants) in warnings.chain(external::WARNINGS).chain(bytes::WARNINGS).chain(evidence::WARNINGS) {
        let marked = with(old, new);
        let (text, line, column) = if marked.contains('¶') { unmark(&marked) } else { (marked, 0, 0) };
        let loaded = load_with(&text, &[]).unwrap_or_else(|shown| panic!("{new}\n{shown}"));
        let shown = loaded.warnings_text;
        assert!(wants.split('|').all(|want| shown.contains(want)) && shown.contains("warning: "), "{new}\n{shown}");
        if line > 0 && !wants.is_empty() {
            assert!(shown.contains(&format!("plan.yaml:{line}:{column}: warning: ")), "{new}\n{shown}");
        }
    }
}
