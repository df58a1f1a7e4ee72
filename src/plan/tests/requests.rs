//! What is wrong with faults of requests and answers, with which requests they strike, and with their shape in time.

/// As the other errors: what is replaced in the base, by what, and a part of the message.
pub const ERRORS: &[(&str, &str, &str)] = &[
    ("hang: {} }", "hang: {} }, every: ¶0", "`every` is 0|leave it out"),
    ("hang: {} }", "hang: {} }, first: ¶3", "`per: client`"),
    ("hang: {} }", "hang: {} }, first: ¶0, per: run", "would strike nothing"),
    ("hang: {} }", "hang: {} }, per: ¶client", "neither is there"),
    ("hang: {} }", "hang: {} }, first: 3, per: ¶clients", "did you mean `client`?"),
    ("hang: {} }", "hang: {} }, match: ¶{}", "`match: { path: /pay* }`"),
    ("hang: {} }", "hang: {} }, match: { method: ¶get }", "capitals"),
    ("hang: {} }", "hang: {} }, match: { path: ¶pay }", "begins with `/`"),
    ("hang: {} }", "hang: {} }, match: { ¶status: 503 }", "unknown key"),
    ("hang: {} }", "refuse: {} }, match: ¶{ method: GET }", "before there is a request"),
    ("hang: {} }", "refuse: {} }, every: ¶2", "use `reset`, `hang` or `status`"),
    ("hang: {} }", "refuse: {} }, ramp: ¶{ in: 1s }", "before there is a request"),
    ("hang: {} }", "hang: {} }, ramp: ¶{}", "`ramp: { in: 10s }`"),
    ("hang: {} }", "hang: {} }, ramp: ¶{ in: 6s, out: 5s }", "a ramp of 11s on a fault of 10s"),
    ("hang: {} }", "hang: {} }, flap: { on: ¶0s, off: 1s }", "never act"),
    ("hang: {} }", "hang: {} }, flap: { on: 1s, off: ¶0s }", "never rest"),
    ("hang: {} }", "hang: {} }, flap: ¶{ on: 10s, off: 1s }", "it would never rest"),
    ("hang: {} }", "hang: {} }, flap: ¶{ on: 1ms, off: 500us }", "10000 at most"),
    ("hang: {} }", "hang: {} }, repeat: { every: 20s, times: ¶1 }", "2 or more"),
    ("hang: {} }", "hang: {} }, repeat: ¶{ every: 10s, times: 3 }", "it would never end"),
    ("hang: {} }", "hang: {} }, repeat: ¶{ every: 20s, times: 6 }", "the last of 6 ends at 2m10s, after the run"),
    ("hang: {} }", "hang: {} }, repeat: ¶{ every: 20s, times: 300 }", "more steps fit"),
    (
        "for: 10s, name: out, fault: { hang: {} }",
        "name: out, fault: { hang: {} }, repeat: ¶{ every: 20s, times: 2 }",
        "cannot come again",
    ),
    (
        "hang: {} } }",
        "hang: {} } }\n  - { at: 40s, every: ¶2, action: { restart: { fleet: a } } }",
        "`every` is of faults: `action` does not take it",
    ),
    ("hang: {} }", "status: { code: 503, headers: ¶{ retry-after: 2 } } }", "say it with `retry_after`"),
    ("hang: {} }", "status: { code: 503, headers: ¶{ \"a b\": c } } }", "not the name of a header"),
    ("hang: {} }", "status: { code: 503, headers: ¶{ content-length: 9 } } }", "says itself"),
    ("hang: {} }", "status: { code: 503, when: ¶afterwards } }", "unknown word `afterwards`"),
    ("hang: {} }", "blackhole: { when: after, release: ¶true } }", "leave it out with `when: after`"),
    ("hang: {} }", "rate_limit: ¶{ rate: 1/s, status: 99 } }", "expected 200 to 599"),
    ("hang: {} }", "limit_concurrency: { limit: ¶0 } }", "nothing would pass"),
    ("hang: {} }", "limit_concurrency: { limit: 1, queue: 2, wait: ¶0s } }", "leave `queue` out"),
    ("hang: {} }", "limit_concurrency: { limit: 1, retry_after: ¶1500ms } }", "whole seconds"),
    ("hang: {} }", "truncate: { keep: 50%, bytes: ¶3 } }", "exclude each other"),
    ("hang: {} }", "truncate: { keep: ¶100% } }", "the whole body would pass"),
    ("hang: {} }", "truncate: { share: ¶0% } }", "strikes nothing"),
    ("hang: {} }", "slow_body: { every: ¶0s } }", "would not be slow"),
    ("hang: {} }", "slow_body: { every: 1s, bytes: ¶0 } }", "never end"),
    ("hang: {} }", "malformed: { kind: ¶status } }", "unknown word `status`"),
];

/// Warnings, in the same form.
pub const WARNINGS: &[(&str, &str, &str)] = &[
    ("hang: {} }", "hang: {} }, match: { path: ¶/pay* }", "no request of this plan has a path like `/pay*`|`/x`"),
    ("hang: {} }", "hang: {} }, match: { method: ¶POST }", "no request of this plan is a `POST`"),
    ("hang: {} }", "hang: {} }, match: { header: { ¶Idempotency-Key: abc } }", "only a live run knows"),
];
