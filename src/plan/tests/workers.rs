//! Fleets of workers, their queues and producers, that are wrong.

const FLEET: &str = "a: { clients: 10, policy: p, load: { poisson: { rate: 100/s } } }";
const STEP: &str = "{ at: 20s, for: 10s, name: out, fault: { hang: {} } }";

/// As the table beside it.
pub(super) const ERRORS: &[(&str, &str, &str)] = &[
    (
        FLEET,
        "a: { workers: ¶0, policy: p, queue: { arrivals: { constant: { rate: 1/s } } } }",
        "from 1 to 1000000, or `unlimited`",
    ),
    (FLEET, "a: ¶{ workers: 5, policy: p }", "`queue` is missing"),
    (
        FLEET,
        "a: { workers: 5, policy: p, ¶clients: 4, queue: { arrivals: { constant: { rate: 1/s } } } }",
        "unknown key `clients`",
    ),
    (FLEET, "¶a: { workers: 5, policy: p, queue: {} }", "nothing comes into the queue of `a`"),
    (FLEET, "a: { workers: 5, policy: p, queue: { arrivals: ¶{ closed: {} } } }", "`closed` is no stream"),
    (FLEET, "a: { workers: 5, policy: p, queue: { arrivals: { constant: { rate: ¶0/s } } } }", "a rate of 0 offers nothing"),
    (
        FLEET,
        "a: { workers: 5, policy: p, queue: { arrivals: ¶{ constant: { rate: 1/s } }, destinations: { b: {} } } }",
        "exclude each other",
    ),
    (
        FLEET,
        "a: { workers: 5, policy: p, queue: { destinations: { b: { backlog: 9 } }, bound: ¶8 } }",
        "9 operations stand in the queue",
    ),
    (FLEET, "a: { workers: 5, policy: p, queue: { destinations: { ¶b c: { backlog: 9 } } } }", "cannot name a destination"),
    (FLEET, "a: { workers: 5, policy: p, queue: { destinations: { b: { backlog: 9, concurrency: ¶0 } } } }", "must be 1 or more"),
    (
        FLEET,
        "a: { workers: 5, policy: p, queue: { destinations: { b: { backlog: 9, rate: ¶{ rate: 0/s } } } } }",
        "nothing is ever dispatched",
    ),
    (
        FLEET,
        "a: { workers: 5, policy: p, queue: { destinations: { b: { backlog: 9 } }, on_give_up: ¶lose } }",
        "unknown word `lose`",
    ),
    (
        FLEET,
        "a: { workers: 5, policy: ¶{ attempts: 3, timeout: 1s, hedge: { after: 100ms } }, queue: { arrivals: { constant: { rate: 1/s } } } }",
        "one attempt at a time",
    ),
    (
        FLEET,
        "a: { workers: 5, policy: ¶{ attempts: 3, timeout: 1s, on: { 429: { lane: slow } } }, queue: { arrivals: { constant: { rate: 1/s } } } }",
        "no lane is called `slow`",
    ),
    (
        FLEET,
        "a: { workers: 5, policy: ¶{ attempts: 3, timeout: 1s, on: { 429: { lane: slwo } } }, queue: { arrivals: { constant: { rate: 1/s } }, lanes: { slow: { concurrency: 1 } } } }",
        "no lane is called `slwo`|did you mean `slow`?",
    ),
    (
        FLEET,
        "a: { clients: 10, policy: ¶{ attempts: 3, timeout: 1s, on: { 429: { lane: slow } } }, load: { poisson: { rate: 1/s } } }",
        "no queue with lanes",
    ),
    (
        STEP,
        "{ at: 20s, name: out, action: { set_policy: { fleet: a, policy: ¶{ attempts: 3, timeout: 1s, on: { 429: { lane: slow } } } } } }",
        "no queue with lanes",
    ),
    (
        "length: 2m",
        "compare: { fleet: a, reference: p, candidates: [¶{ q: { attempts: 3, timeout: 1s, on: { 429: { lane: slow } } } }] }\nlength: 2m",
        "no queue with lanes",
    ),
    (
        "policy: p, load: { poisson: { rate: 100/s } } }\nsteady_state: { for: 10s }\ntimeline:\n  - { at: 20s, for: 10s, name: out, fault: { hang: {} } }",
        "policy: p, load: { poisson: { rate: 100/s } }, into: w }\n  w: { workers: 2, policy: p, queue: {} }\nsteady_state: { for: 10s }\ntimeline:\n  - { at: 20s, for: 10s, name: out, fault: { hang: {} }, fleets: [¶a] }",
        "fleet `a` fills a queue",
    ),
    (FLEET, "a: { clients: 10, policy: p, load: { poisson: { rate: 100/s } }, into: ¶b }", "no fleet of workers is called `b`"),
    (FLEET, "a: { clients: 10, policy: p, load: { poisson: { rate: 100/s } }, into: ¶a }", "no fleet of workers is called `a`"),
    (FLEET, "a: { clients: 10, policy: p, load: { poisson: { rate: 100/s } }, destination: ¶b }", "says nothing without `into`"),
    (
        FLEET,
        "a: { clients: 10, policy: p, load: { poisson: { rate: 100/s } }, into: ¶w }\n  w: { workers: 2, policy: p, queue: { destinations: { b: {}, c: {} } } }",
        "to which do the operations of `a` go",
    ),
    (
        FLEET,
        "a: { clients: 10, policy: p, load: { poisson: { rate: 100/s } }, into: w, destination: ¶bb }\n  w: { workers: 2, policy: p, queue: { destinations: { b: {}, c: {} } } }",
        "did you mean `b`?",
    ),
    (STEP, "{ at: 20s, for: 10s, name: out, fault: { hang: {} }, destinations: [¶big] }", "no destination is called `big`"),
    (STEP, "{ at: 20s, for: 10s, name: out, fault: { refuse: {} }, destinations: ¶[] }", "no destination is named"),
    (STEP, "{ at: 20s, for: 10s, name: out, fault: { refuse: {} }, destinations: ¶[b] }", "strikes connections"),
    (STEP, "{ at: 20s, name: out, action: { set_limit: { fleet: ¶a } } }", "no workers on a queue"),
];
