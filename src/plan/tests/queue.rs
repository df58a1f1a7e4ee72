//! What a plan may get wrong about the built-in target: its servers and limiter, its queue, deduplication, and the rule on its backlog.

const URL: &str = "url: http://127.0.0.1:8080/x";

/// As the table beside it.
pub(super) const ERRORS: &[(&str, &str, &str)] = &[
    (URL, "service: { servers: ¶0, service_time: 1ms }", "number of servers from 1"),
    (
        URL,
        "service: { servers: 1, service_time: 1ms, limiter: { token_bucket: { rate: 1/s, retry_after: ¶1500ms } } }",
        "whole seconds|such as `retry_after: 2s`",
    ),
    (URL, "service: { servers: 1, service_time: 1ms, queue: { order: ¶lifoo } }", "unknown word `lifoo`|did you mean `lifo`?"),
    (URL, "service: { servers: 1, service_time: 1ms, queue: { adaptive_after: ¶50ms } }", "is for `order: adaptive_lifo`"),
    (
        URL,
        "service: { servers: 1, service_time: 1ms, queue: { expire_after: ¶0s } }",
        "must be above zero|shorter than the clients' timeout",
    ),
    (URL, "service: { servers: 1, service_time: 1ms, queue: { expire_after: { age: ¶0s } } }", "must be above zero"),
    (URL, "service: { servers: 1, service_time: 1ms, queue: { expire_after: ¶{ answer: silent } } }", "`age` is missing"),
    (
        URL,
        "service: { servers: 1, service_time: 1ms, queue: { expire_after: { age: 9s, checked: ¶late } } }",
        "expected one of: on_time, at_dequeue",
    ),
    (URL, "service: { servers: 1, service_time: 1ms, queue: { codel: { target: ¶0s } } }", "must be above zero"),
    (
        URL,
        "service: { servers: 1, service_time: 1ms, queue: { codel: { target: 200ms, interval: ¶100ms } } }",
        "longer than `target`",
    ),
    (URL, "service: { servers: 1, service_time: 1ms, queue: { shed: ¶[] } }", "what goes first"),
    (URL, "service: { servers: 1, service_time: 1ms, queue: { shed: ¶[age, priority, age] } }", "names `age` twice"),
    (URL, "service: { servers: 1, service_time: 1ms, queue: { shed: ¶age } }", "expected a list"),
    (URL, "service: { servers: 1, service_time: 1ms, queue: { bound: 0, shed: ¶[age] } }", "needs somebody who waits"),
    (URL, "service: { servers: 1, service_time: 1ms, deduplicate: { keep: ¶10000001 } }", "must be 10000000 or less"),
    (URL, "service: { servers: 1, service_time: 1ms, reject_backlog: ¶{ retry_after: backlog } }", "give `older_than`"),
    (URL, "service: { servers: 1, service_time: 1ms, reject_backlog: { older_than: ¶0s } }", "must be above zero"),
];
