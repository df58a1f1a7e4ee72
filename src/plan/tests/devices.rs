//! What is wrong with the plans of devices.

/// As the other errors: what is replaced in the base, by what, and a part of the message.
pub const ERRORS: &[(&str, &str, &str)] = &[
    ("poisson: { rate: 100/s }", "schedule: { every: ¶0s }", "must be longer than nothing"),
    ("poisson: { rate: 100/s }", "schedule: { every: 1m, spread: ¶2m }", "periods would overtake"),
    ("poisson: { rate: 100/s }", "schedule: { every: ¶1h }", "not within the run"),
    ("poisson: { rate: 100/s }", "day_curve: { points: ¶[] }", "is empty"),
    (
        "poisson: { rate: 100/s }",
        "day_curve: { points: ¶[{ at: 2s, rate: 1/s }, { at: 1s, rate: 1/s }] }",
        "in the order of time",
    ),
    ("poisson: { rate: 100/s }", "day_curve: { points: ¶[{ at: 2s, rate: 0/s }] }", "offers nothing"),
    ("poisson: { rate: 100/s }", "foreground: ¶{ operations: 2, within: 1s }", "a rate is missing"),
    ("poisson: { rate: 100/s }", "foreground: { each: 1/s, operations: ¶0, within: 0s }", "1 to 1000"),
    ("poisson: { rate: 100/s }", "foreground: { each: 1/s, operations: 2, within: ¶1s }", "no pause"),
    ("poisson: { rate: 100/s }", "foreground: { rate: ¶20/s, operations: 2, within: 1s }", "one at a time"),
    ("poisson: { rate: 100/s }", "foreground: { operations: 2, within: 1s, first: { at: ¶3m } }", "not within the run"),
    ("poisson: { rate: 100/s }", "on_reconnect: { after: ¶outrage }", "no step of the timeline is called `outrage`"),
    ("poisson: { rate: 100/s } } }", "on_reconnect: { after: out } }, regions: { eu: 50%, ¶a b: 50% } }", "cannot name a region"),
    ("poisson: { rate: 100/s } } }", "poisson: { rate: 100/s } }, regions: ¶{ eu: 50%, us: 40% } }", "90% together"),
    ("poisson: { rate: 100/s } } }", "poisson: { rate: 100/s } }, link: { loss: ¶95% } }", "90% at most"),
    ("poisson: { rate: 100/s } } }", "poisson: { rate: 100/s } }, link: { latency: 1s, share: ¶0% } }", "no client has"),
    ("poisson: { rate: 100/s } } }", "poisson: { rate: 100/s } }, operations: ¶{ a: { share: 50% } } }", "50% together"),
    (
        "poisson: { rate: 100/s } } }",
        "poisson: { rate: 100/s } }, operations: { ¶\"a b\": { share: 100% } } }",
        "cannot name an operation",
    ),
    ("poisson: { rate: 100/s } } }", "poisson: { rate: 100/s } }, operations: { a: { share: 100%, keys: ¶0 } } }", "1 or more"),
    (
        "poisson: { rate: 100/s } } }",
        "poisson: { rate: 100/s } }, operations: { a: { share: 100% } }, priority: ¶u=1 }",
        "a priority of its own",
    ),
    ("poisson: { rate: 100/s } } }", "poisson: { rate: 100/s } }, drain_rate: ¶0/s }", "never sends"),
    ("poisson: { rate: 100/s } } }", "poisson: { rate: 100/s } }, defer: { after: ¶0, probe_every: 1s } }", "1 or more"),
    ("fault: { hang: {} }", "fault: { hang: {} }, regions: [¶eu]", "no region of those fleets is called `eu`"),
];
