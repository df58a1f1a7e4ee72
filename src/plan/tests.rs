//! Plans that are wrong, and what is said of each; plans that are hostile, and what that costs.

mod bytes;
mod devices;
mod evidence;
mod external;
mod proxies;
mod queue;
mod requests;
mod service;
mod services;
mod warnings;
mod workers;

use super::*;
use crate::gate::Against;
use crate::time::Timestamp;

const BASE: &str = r#"version: 1
name: base
seed: 1
target:
  url: http://127.0.0.1:8080/x
policies:
  p: { attempts: 3, timeout: 1s }
fleets:
  a: { clients: 10, policy: p, load: { poisson: { rate: 100/s } } }
steady_state: { for: 10s }
timeline:
  - { at: 20s, for: 10s, name: out, fault: { hang: {} } }
recovery: { after: out, within: 20s, hold: 10s }
gates:
  - { errors: "<= 1%" }
length: 2m
"#;

/// A model with these settings, in the place of a line's end.
macro_rules! limits {
    ($settings:literal) => {
        concat!("/x\n  model: { servers: 1, service_time: 1ms, ", $settings, " }\n")
    };
}

/// What makes [`BASE`] a plan with a fault.
const FAULT: &str = "steady_state: { for: 10s }
timeline:
  - { at: 20s, for: 10s, name: out, fault: { hang: {} } }
recovery: { after: out, within: 20s, hold: 10s }
";

fn env(name: &str) -> Option<String> {
    match name {
        "PORT" => Some("8080".into()),
        "WORD" => Some("soon".into()),
        _ => None,
    }
}

fn load_with(text: &str, overrides: &[&str]) -> Result<Loaded, String> {
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    load(&Source { file: "plan.yaml", text, overrides: &overrides, env: &env }).map_err(|error| error.to_string())
}

/// The base plan with one stretch of it replaced.
fn with(old: &str, new: &str) -> String {
    assert_eq!(BASE.matches(old).count(), 1, "{old:?} must be there once");
    BASE.replace(old, new)
}

/// Takes the mark `¶` out of a text: the place of a problem, from 1.
fn unmark(marked: &str) -> (String, usize, usize) {
    let at = marked.find('¶').unwrap_or_else(|| panic!("no mark in {marked:?}"));
    let before = &marked[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
    (marked.replacen('¶', "", 1), line, column)
}

#[test]
fn the_base_is_sound() {
    let loaded = load_with(BASE, &[]).unwrap();
    assert_eq!(loaded.warnings_text, "");
    assert_eq!(loaded.plan.fleets[0].policy_name, "p");
    assert_eq!(loaded.plan.timeline[0].to, Timestamp(30_000_000_000));
    assert_eq!(loaded.sha256.len(), 64);
}

/// What is replaced in the base, by what (the mark stands where the problem is), and a part of the message.
const ERRORS: &[(&str, &str, &str)] = &[
    // Words and units.
    ("length: 2m", "¶lenght: 2m", "unknown key `lenght`|did you mean `length`?"),
    ("timeout: 1s", "¶timout: 1s", "did you mean `timeout`?"),
    ("timeout: 1s", "timeout: ¶1", "write `1s` or `1ms`"),
    ("length: 2m", "length: ¶2M", "minutes are `m`"),
    ("rate: 100/s", "rate: ¶100", "write `100/s`"),
    ("hang: {}", "blackhole: { share: ¶0.5 }", "write `50%`"),
    ("hang: {}", "¶hand: {}", "did you mean `hang`?"),
    ("fault: { hang: {} }", "fault: ¶{ hang: {}, refuse: {} }", "expected exactly one key, found 2"),
    ("attempts: 3", "attempts: ¶0", "from 1 to 1000000"),
    ("attempts: 3", "attempts: ¶1e3", "found `1e3`"),
    ("clients: 10", "clients: ¶-1", "from 0 to 4294967295, found `-1`"),
    ("clients: 10", "clients: ¶010x", "found `010x`"),
    ("seed: 1", "seed: ¶99999999999999999999", "expected a whole number"),
    ("seed: 1", "seed¶:", "found nothing"),
    ("timeout: 1s", "timeout: ¶[1s]", "found a list"),
    ("attempts: 3", "attempts: ¶{}", "found a map"),
    ("{ errors: \"<= 1%\" }", "{ errors: ¶\"1%\" }", "is not a comparison"),
    ("{ errors: \"<= 1%\" }", "{ errors: ¶\"<= 1s\" }", "does not fit `errors`"),
    ("{ errors: \"<= 1%\" }", "{ ¶eror: \"<= 1%\" }", "did you mean `errors`?"),
    ("{ errors: \"<= 1%\" }", "¶{ errors: \"<= 1%\", p99: \"<= 1s\" }", "exactly one figure"),
    ("attempts: 3,", "attempts: 3, retry_on: [5xx, ¶tiemout],", "nothing to retry on"),
    // The top.
    ("version: 1", "version: ¶2", "expected 1"),
    ("name: base", "name: ¶../etc", "cannot name a plan|such as `etc`"),
    ("name: base", "name: ¶\"\"", "cannot name a plan"),
    ("length: 2m", "length: ¶25h", "expected 1s to 24h"),
    ("length: 2m", "length: ¶10ms", "expected 1s to 24h"),
    ("length: 2m", "length: 2m\ntimer_grain: ¶1s", "expected 50us to 50ms"),
    ("length: 2m", "length: 2m\n¶compares: {}", "did you mean `compare`?"),
    ("length: 2m", "length: 2m\ncompare: ¶{}", "`reference` is missing: expected the name of a policy"),
    // Target.
    ("url: http://127.0.0.1:8080/x", "url: ¶127.0.0.1:8080", "write `http://127.0.0.1:8080`"),
    ("url: http://127.0.0.1:8080/x", "url: ¶ftp://h/", "only http:// and https://"),
    ("url: http://127.0.0.1:8080/x", "url: ¶http://u:p@h/", "no user or password"),
    ("url: http://127.0.0.1:8080/x", "url: ¶http://h:99999/", "not a port"),
    ("  url: http://127.0.0.1:8080/x", "  ¶method: GET", "the target is missing"),
    ("/x\n", "/x\n  method: ¶get\n", "write `GET`"),
    ("/x\n", "/x\n  method: ¶\"GET /\"\n", "is not a method"),
    ("/x\n", "/x\n  headers: { ¶\"a b\": c }\n", "not the name of a header"),
    ("/x\n", "/x\n  headers: { ¶Idempotency-Key: c }\n", "set by stormwake"),
    ("/x\n", "/x\n  headers: { a: 1, ¶A: 2 }\n", "there twice"),
    ("/x\n", "/x\n  headers: { a: ¶\"b\\nc\" }\n", "cannot be sent"),
    ("/x\n", "/x\n  headers: { a: ¶{ from_env: X, from_file: Y } }\n", "exactly one of `from_env` and `from_file`"),
    ("/x\n", "/x\n  routes: [{ path: ¶items }]\n", "is not a path"),
    ("/x\n", "/x\n  routes: [{ path: /a, weight: ¶-1 }]\n", "a weight of -1"),
    ("/x\n", "/x\n  routes: ¶[{ path: /a, weight: 0 }]\n", "every route has weight 0"),
    ("/x\n", "/x\n  success: { status: [¶2x] }\n", "is not a status"),
    ("/x\n", "/x\n  success: { status: ¶[] }\n", "no status counts as success"),
    ("/x\n", "/x\n  success: { within: ¶0 }\n", "within nothing"),
    ("/x\n", "/x\n  allow: [¶\"*\"]\n", "everything at once is never allowed"),
    ("/x\n", "/x\n  allow: [¶http://h/]\n", "without scheme and path"),
    ("/x\n", "/x\n  allow: [¶h:80]\n", "without its port"),
    ("/x\n", "/x\n  max_attempts: ¶0/s\n", "sends nothing"),
    (
        "/x\n",
        "/x\n  model: { servers: 1, service_time: 1ms, limiter: { token_bucket: { rate: 1/s, retry_after: ¶1500ms } } }\n",
        "whole seconds|such as `retry_after: 2s`",
    ),
    ("/x\n", "/x\n  model: { servers: 1, service_time: ¶25h }\n", "a service time longer than"),
    ("/x\n", limits!("limiter: [fixed_window: { limit: ¶0 }]"), "`limit` must be 1 or more"),
    (
        "/x\n",
        limits!("limiter: [token_bucket: { rate: 9/s }, fixed_window: { limit: 1, retry_after: ¶1500ms }]"),
        "whole seconds",
    ),
    ("/x\n", limits!("limiter: { concurrency: { limit: 5, count_rejected: ¶true } }"), "is not in the service"),
    ("/x\n", limits!("limiter: { adaptive_concurrency: { min: 30, initial: ¶20 } }"), "between `min` (30) and `max` (1000)"),
    ("/x\n", limits!("limiter: { sliding_log: { limit: ¶1001, per: client } }"), "between 1 and 1000 in a log for each"),
    (
        "/x\n",
        limits!("limiter: { fixed_window: { limit: 9, penalty_box: { ban: 5s, cap: ¶4s } } }"),
        "shorter than the ban of 5s",
    ),
    ("/x\n", limits!("limiter: { fixed_window: { limit: 9, per: ¶klient } }"), "did you mean `client`?"),
    (
        "/x\n",
        limits!("admission: { shares: { normal: 50%, best_effort: ¶60% } }"),
        "let in further (60%) than `background` (50%)",
    ),
    ("/x\n", limits!("admission: { max_attempt: ¶0 }"), "`max_attempt` must be 1 or more"),
    ("/x\n", limits!("admission: { max_age: 1m, retry_after: ¶1500ms }"), "whole seconds"),
    ("/x\n", limits!("admission: { fleets: { ¶legacy: 20% } }"), "no fleet is called `legacy`|the plan has: a"),
    ("/x\n", limits!("queue: unlimited, admission: { shares: ¶{ normal: 50% } }"), "shares of a queue that has no bound"),
    (
        "url: http://127.0.0.1:8080/x",
        "service: { servers: 1, service_time: 1ms }\n  model: ¶{ servers: 1, service_time: 1ms }",
        "the built-in target is its own model",
    ),
    // Network.
    ("policies:", "network: ¶moon\npolicies:", "unknown word `moon`"),
    ("policies:", "network: { latency: ¶25h }\npolicies:", "a hop that takes longer than"),
    ("policies:", "network: { ¶latencie: 1ms }\npolicies:", "did you mean `latency`?"),
    // Policies.
    ("timeout: 1s", "timeout: 1s, backoff: { exponential: { base: 2s, cap: ¶1s } }", "shorter than the base"),
    ("timeout: 1s", "timeout: 1s, backoff: { exponential: { base: ¶0 } }", "never grows"),
    ("timeout: 1s", "timeout: 1s, backoff: { exponential: { base: 1s, multiplier: ¶0.5 } }", "it must be 1 or more"),
    ("timeout: 1s", "timeout: 1s, budget: ¶{ ratio: 10% }", "`tier` is missing: expected one of operation, client, fleet"),
    ("timeout: 1s", "timeout: 1s, budget: { ratio: 10%, tier: fleet, window: ¶0 }", "longer than nothing"),
    ("timeout: 1s", "timeout: 1s, budget: { ratio: 10%, tier: fleet, min_per_second: ¶-1 }", "it must be 0 or more"),
    ("timeout: 1s", "timeout: 1s, budget: ¶{ tier: fleet }", "a budget needs `ratio: 10%`, `bucket"),
    (
        "timeout: 1s",
        "timeout: 1s, budget: { ratio: 1%, bucket: ¶{ deposit: 10%, burst: 5 }, tier: fleet }",
        "`bucket` and `ratio` exclude each other",
    ),
    (
        "timeout: 1s",
        "timeout: 1s, budget: { bucket: { deposit: 10%, burst: 5 }, window: ¶10s, tier: fleet }",
        "`window` goes with `ratio`",
    ),
    (
        "timeout: 1s",
        "timeout: 1s, budget: { bucket: { deposit: 10%, burst: 5 }, min_per_second: ¶1, tier: fleet }",
        "`min_per_second` goes with `ratio`",
    ),
    ("timeout: 1s", "timeout: 1s, budget: { bucket: { deposit: 10%, burst: ¶0 }, tier: fleet }", "expected 1 to 1000000"),
    ("timeout: 1s", "timeout: 1s, budget: { bucket: { deposit: ¶0.1, burst: 5 }, tier: fleet }", "write `10%`"),
    ("timeout: 1s", "timeout: 1s, budget: { bucket: ¶{ burst: 5 }, tier: fleet }", "`deposit` is missing"),
    ("timeout: 1s", "timeout: 1s, deadline: ¶0", "longer than nothing"),
    ("timeout: 1s", "timeout: 1s, preset: ¶aws-standart-2.1", "no preset is called `aws-standart-2.1`"),
    (
        "timeout: 1s",
        "timeout: 1s, backoff: { linear: { base: 1s, cap: 5s, floor: ¶6s } }",
        "the floor of 6s is above the cap of 5s",
    ),
    (
        "timeout: 1s",
        "timeout: 1s, backoff: { fibonacci: { base: 9s, cap: ¶5s } }",
        "the cap of 5s is shorter than the base of 9s",
    ),
    ("timeout: 1s", "timeout: 1s, backoff: { schedule: { waits: ¶[] } }", "expected 1 to 1000"),
    ("timeout: 1s", "timeout: 1s, backoff: { schedule: { waits: ¶[1s, 2d] } }", "a wait longer than 24h"),
    ("  p: {", "  ¶p.q: { attempts: 1, timeout: 1s }\n  p: {", "cannot name a policy|such as `p-q`"),
    // Fleets.
    ("policy: p", "policy: ¶q", "no policy is called `q`"),
    ("policy: p", "¶polcy: p", "did you mean `policy`?"),
    ("policy: p, ", "", ""),
    ("  a: {", "  ¶a b: {", "cannot name a fleet"),
    ("rate: 100/s", "rate: ¶0/s", "offers nothing"),
    ("rate: 100/s", "rate: ¶1e300/s", "10000000/s at most"),
    ("{ rate: 100/s }", "{ rate: ¶100/s, each: 1/s }", "exclude each other"),
    ("clients: 10", "clients: 10, outbox: ¶0", "must be 1 or more"),
    ("{ poisson: { rate: 100/s } }", "{ trigger: { at: ¶3m } }", "not within the run"),
    ("poisson: { rate: 100/s }", "spike: { rate: 93/s, peak: 300/s, at: ¶3m, for: 5s }", "not within the run"),
    ("poisson: { rate: 100/s }", "spike: { rate: 93/s, peak: 300/s, at: 1m, for: ¶0 }", "longer than nothing"),
    ("poisson: { rate: 100/s }", "spike: { rate: 0/s, peak: ¶100000000/s, at: 1m, for: 5s }", "10000000/s at most"),
    ("poisson: { rate: 100/s }", "spike: { rate: ¶0/s, peak: 0/s, at: 1m, for: 5s }", "offers nothing"),
    ("poisson: { rate: 100/s }", "spike: ¶{ rate: 93/s, at: 1m, for: 5s }", "`peak` is missing"),
    // Timeline.
    ("at: 20s", "at: ¶3m", "the run ends at 2m"),
    ("for: 10s, name", "for: ¶2m, name", "after the run"),
    ("for: 10s, name", "for: ¶0s, name", "lasts for nothing"),
    ("name: out", "name: ¶recovery", "gates give it a meaning"),
    ("name: out", "name: ¶\"a/b\"", "cannot name a step"),
    ("hang: {} } }", "hang: {} } }\n  - { at: 40s, for: 1s, name: ¶out, fault: { hang: {} } }", "another step is called `out`"),
    ("name: out", "name: out, fleets: [¶b]", "no fleet is called `b`"),
    ("name: out", "name: out, fleets: ¶[]", "no fleet is named"),
    ("hang: {}", "status: { code: ¶99 }", ""),
    ("hang: {}", "status: { code: 503, retry_after: ¶500ms }", "whole seconds"),
    ("hang: {}", "status: { code: 503, retry_after: ¶500ms, hint: ratelimit }", "whole seconds"),
    ("hang: {}", "status: { code: 503, hint: ¶http_date }", "there is none"),
    ("timeout: 1s", "timeout: 1s, retry_after: { honor: { reads: ¶[] } }", "`reads` is empty"),
    ("timeout: 1s", "timeout: 1s, retry_after: { honor: { spread: { factor: ¶[2, 1] } } }", "the lesser first"),
    ("timeout: 1s", "timeout: 1s, breaker: { failures: 5, calls: ¶9, tier: fleet }", "`calls` goes with"),
    ("timeout: 1s", "timeout: 1s, throttle: { sre: { k: ¶0.5, tier: fleet } }", "`k` is 0.5"),
    ("timeout: 1s", "timeout: 1s, budget: { ratio: 10%, tier: ¶operation }", "no ratio"),
    ("hang: {}", "blackhole: { share: ¶0% }", "strikes nothing"),
    ("hang: {}", "rate_limit: { rate: 1/s, burst: ¶x }", "expected a whole number"),
    ("{ hang: {} }", "¶{ certificate: { kind: expired } }", "speaks plain HTTP to its clients|tls: {}"),
    ("{ hang: {} }", "¶{ handshake_hang: {} }", "speaks plain HTTP to its clients"),
    ("hang: {}", "certificate: { kind: ¶expred }", "expired"),
    ("hang: {}", "certificate: { kind: untrusted, share: ¶0% }", "strikes nothing"),
    ("hang: {}", "handshake_hang: { share: ¶0% }", "strikes nothing"),
    ("fault: { hang: {} }", "service: ¶{ capacity: 20% }", "nothing here can change somebody's server|exec"),
    // Judging.
    ("steady_state: { for: 10s }", "steady_state: { for: ¶21s }", "does not fit before the first fault, `out` at 20s"),
    ("steady_state: { for: 10s }", "steady_state: { for: ¶0 }", "expected 1s or more"),
    (
        "steady_state: { for: 10s }",
        "steady_state: { for: 10s, require: { p99: ¶\"<= 2x baseline\" } }",
        "cannot be compared with itself",
    ),
    ("after: out", "after: ¶oat", "did you mean `out`?"),
    ("hold: 10s", "hold: ¶0", "expected 1s or more"),
    (
        "name: out, fault: { hang: {} } }\nrecovery: { after: out",
        "name: out, fault: { hang: {} } }\n  - { at: 30s, for: 5s, name: next, fault: refuse }\nrecovery: { after: ¶out",
        "`next` acts when `out` ends|write `after: next`",
    ),
    (
        "name: out, fault: { hang: {} } }\nrecovery: { after: out",
        "name: out, fault: { hang: {} } }\n  - { at: 5s, for: 50s, name: wide, fault: refuse }\nrecovery: { after: ¶out",
        "`wide` acts when `out` ends",
    ),
    (FAULT, "steady_state: { for: ¶10s }\n", "the timeline has none|add a fault to `timeline`, or remove `steady_state`"),
    (FAULT, "stop_if:\n  - { p99: ¶\"> 5x baseline\" }\n", "the plan has none|add a fault to `timeline`"),
    ("within: 20s, hold: 10s", "within: ¶20s, hold: 100s", "too little to hold"),
    ("  - { errors", "  - { errors: \"<= 1%\", during: ¶outt }\n  - { errors", "did you mean `out`?"),
    ("  - { errors", "  - { errors: \"<= 1%\", fleet: ¶b }\n  - { errors", "no fleet is called `b`"),
    ("  - { errors", "  - { relapses: ¶\"== 0\", fleet: a }\n  - { errors", ""),
    ("  - { errors", "  - { wasted_work: ¶\"<= 1%\" }\n  - { errors", "built-in target only"),
    ("length: 2m", "length: 2m\nexpect: { class: ¶STUKC }", "did you mean `STUCK`?"),
    ("length: 2m", "length: 2m\nstop_if: [{ recovery_time: ¶\"> 1s\" }]", "known only when the run has ended"),
    ("length: 2m", "length: 2m\nstop_if: [{ check: { http: ¶nowhere, every: 5s } }]", "has no scheme"),
    ("length: 2m", "length: 2m\nstop_if: [{ check: { command: ¶[] } }]", "the command is empty"),
    ("length: 2m", "length: 2m\nstop_if: [{ check: { command: [x], every: ¶0 } }]", "expected 100ms to 1h"),
    // Comparing.
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: ¶b, reference: p, candidates: [{ q: { attempts: 1, timeout: 1s } }] }",
        "no fleet is called `b`",
    ),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: ¶pp, candidates: [{ q: { attempts: 1, timeout: 1s } }] }",
        "did you mean `p`?",
    ),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: p, candidates: [¶nope] }",
        "no policy is called `nope`|the plan has: p",
    ),
    ("length: 2m", "length: 2m\ncompare: { fleet: a, reference: p, candidates: ¶[] }", "0 candidates: expected 1 to 64"),
    ("length: 2m", "length: 2m\ncompare: { fleet: a, reference: p, candidates: ¶none }", "expected a list"),
    ("length: 2m", "length: 2m\ncompare: { fleet: a, reference: p, candidates: [¶p] }", "`p` is the reference"),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: p, candidates: [{ q: { attempts: 1, timeout: 1s } }, ¶{ q: { attempts: 1, timeout: 1s } }] }",
        "`q` is there twice",
    ),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: p, candidates: [¶[q]] }",
        "or a policy under a name, found a list",
    ),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: p, candidates: [¶{ q: {}, r: {} }] }",
        "one policy under its name, found 2 keys",
    ),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: p, candidates: [{ q: ¶{ attempts: 1 } }] }",
        "`timeout` is missing",
    ),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: p, candidates: [¶{ \"a b\": { attempts: 1, timeout: 1s } }] }",
        "cannot name a policy",
    ),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: p, candidates: [{ q: { attempts: 2, timeout: 1s, backoff: { exponential: { base: 2s, cap: ¶1s } } } }] }",
        "shorter than the base",
    ),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: ¶{ p: { attempts: 1, timeout: 1s } }, candidates: [{ q: { attempts: 1, timeout: 1s } }] }",
        "another policy of the plan has that name",
    ),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: p, candidates: [{ q: { attempts: 1, timeout: 1s } }], seeds: ¶0 }",
        "expected 1 to 1000",
    ),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: p, candidates: [{ q: { attempts: 1, timeout: 1s } }], seeds: ¶1001 }",
        "expected 1 to 1000",
    ),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: p, candidates: [{ q: { attempts: 1, timeout: 1s } }], ¶seed: 3 }",
        "did you mean `seeds`?",
    ),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: p, candidates: [{ q: { attempts: 1, timeout: 1s } }], gates: [{ policy: ¶qq, lost: \"== 0\" }] }",
        "no candidate is called `qq`|did you mean `q`?",
    ),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: p, candidates: [{ q: { attempts: 1, timeout: 1s } }], gates: [{ policy: ¶p, lost: \"== 0\" }] }",
        "`p` is the reference: a gate looks at a candidate",
    ),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: p, candidates: [{ q: { attempts: 1, timeout: 1s } }], gates: [¶{ lost: \"== 0\" }] }",
        "`policy` is missing",
    ),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: p, candidates: [{ q: { attempts: 1, timeout: 1s } }], gates: [¶{ policy: q }] }",
        "exactly one figure, found 0",
    ),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: p, candidates: [{ q: { attempts: 1, timeout: 1s } }], gates: [¶{ policy: q, lost: \"== 0\", errors: \"<= 1%\" }] }",
        "exactly one figure, found 2",
    ),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: p, candidates: [{ q: { attempts: 1, timeout: 1s } }], gates: [{ policy: q, ¶recoverd: \">= 95%\" }] }",
        "did you mean `recovered`?",
    ),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: p, candidates: [{ q: { attempts: 1, timeout: 1s } }], gates: [{ policy: q, lost: ¶\"<= 2x baseline\" }] }",
        "is not a comparison of policies|<= 60% of reference",
    ),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: p, candidates: [{ q: { attempts: 1, timeout: 1s } }], gates: [{ policy: q, recovered: ¶\">= 3\" }] }",
        "does not fit `recovered`: write it like `<= 5%`",
    ),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: p, candidates: [{ q: { attempts: 1, timeout: 1s } }], gates: [{ policy: q, p99: ¶\"<= 20\" }] }",
        "or as a multiple such as `<= 60% of reference`",
    ),
    (
        "length: 2m",
        "length: 2m\ncompare: { fleet: a, reference: p, candidates: [{ q: { attempts: 1, timeout: 1s } }], gates: [{ policy: q, wasted_work: ¶\"<= 5%\" }] }",
        "built-in target only",
    ),
    (
        "recovery: { after: out, within: 20s, hold: 10s }",
        "compare: { fleet: a, reference: p, candidates: [{ q: { attempts: 1, timeout: 1s } }], gates: [{ policy: q, recovered: ¶\">= 95%\" }] }",
        "`recovered` needs `recovery`, and the plan has none",
    ),
    // Many seeds.
    ("  - { errors", "  - { recovered: ¶\"95%\" }\n  - { errors", "is not a share of seeds|write `>= 95% of seeds`"),
    ("  - { errors", "  - { recovered: ¶\"<= 95%\" }\n  - { errors", "no demand on how many seeds recover"),
    ("  - { errors", "  - { recovered: ¶\">= 195%\" }\n  - { errors", "between 0% and 100%"),
    ("  - { errors", "  - { recovered: ¶[1] }\n  - { errors", "expected a share of seeds, such as `>= 95% of seeds`"),
    ("  - { errors", "  - { recovered: \">= 95%\", ¶during: recovery }\n  - { errors", "does not go with `recovered`"),
    ("  - { errors", "  - { recovered: \">= 9%\" }\n  - { recovered: ¶\">= 8%\" }\n  - { errors", "another gate says|keep one"),
    (
        "recovery: { after: out, within: 20s, hold: 10s }\ngates:\n",
        "gates:\n  - { recovered: ¶\">= 95% of seeds\" }\n",
        "nothing says what counts as recovered",
    ),
    ("  - { errors", "  - { eror: \"<= 1%\" }\n  - { errors: \"<= 1%\", fleet: ¶b }\n  - { errors", "no fleet is called `b`"),
    // Variables.
    ("timeout: 1s", "timeout: ¶\"${WAIT}\"", ""),
    ("http://127.0.0.1:8080/x", "http://127.0.0.1:¶${PORTT}/x", "the variable `PORTT` is not set"),
    ("http://127.0.0.1:8080/x", "http://127.0.0.1:¶${PORTT:?which port}/x", "which port"),
    ("http://127.0.0.1:8080/x", "¶http://127.0.0.1:${WORD}/x", "`soon` is not a port"),
    ("timeout: 1s", "timeout: ¶\"1s ${WORD}\"", "not a duration"),
    ("errors: \"<= 1%\"", "wave_score: ¶\"<= 2x baseline\"", "has no baseline"),
    ("errors: \"<= 1%\"", "wave_score: \"<= 1.3x\", during: ¶recovery", "no other"),
    // YAML.
    ("seed: 1", "seed: 1\n¶seed: 2", "the key `seed` is there twice|line 3 already"),
    ("seed: 1", "seed: ¶*nobody", "names no anchor"),
    ("timeout: 1s }", "timeout: 1s, <<: ¶word }", "merges maps"),
];

#[test]
fn every_error_is_found_at_its_place() {
    let mut missed = Vec::new();
    for (old, new, wants) in ERRORS
        .iter()
        .chain(devices::ERRORS)
        .chain(workers::ERRORS)
        .chain(services::errors())
        .chain(external::ERRORS)
        .chain(bytes::ERRORS)
        .chain(requests::ERRORS)
    {
        // Cases without a message only fix that there is an error in that line.
        if !new.contains('¶') {
            assert!(load_with(&with(old, new), &[]).is_err(), "{new}");
            continue;
        }
        let (text, line, column) = unmark(&with(old, new));
        let shown = match load_with(&text, &[]) {
            Ok(_) => "no error".to_string(),
            Err(shown) => shown,
        };
        let place = if wants.is_empty() { format!("plan.yaml:{line}:") } else { format!("plan.yaml:{line}:{column}: error: ") };
        let found = shown.split("plan.yaml:").any(|problem| {
            format!("plan.yaml:{problem}").starts_with(&place) && wants.split('|').all(|want| problem.contains(want))
        });
        if !found {
            missed.push(format!("{new}\nwanted {place}{wants}\n{shown}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n\n"));
    assert!(ERRORS.len() >= 45);
}

#[test]
fn a_comparison_resolves_its_names() {
    let section = r#"compare:
  fleet: a
  reference: p
  candidates: [q, { own: { attempts: 2, timeout: 500ms } }]
  gates:
    - { policy: own, recovery_time: "<= reference" }
    - { policy: q, peak_attempts: "< 60% of reference" }
    - { policy: q, recovered: ">= 95%" }
    - { policy: q, recovery_time: "<= 20s" }
length: 2m"#;
    let text = with("length: 2m", section)
        .replace("  p: {", "  q: { attempts: 2, timeout: 2s }\n  p: {")
        .replace("gates:\n  - { errors", "gates:\n  - { recovered: \">= 90% of seeds\" }\n  - { errors");
    let loaded = load_with(&text, &[]).unwrap();
    assert_eq!(loaded.warnings_text, "", "what is compared is used");
    let compare = loaded.plan.compare.unwrap();
    assert_eq!((compare.fleet, compare.reference.name.as_str(), compare.seeds, compare.runs()), (0, "p", 20, 60));
    let names: Vec<&str> = compare.candidates.iter().map(|candidate| candidate.name.as_str()).collect();
    assert_eq!(names, ["q", "own"]);
    assert_eq!(compare.candidates[1].policy.timeout, Span::from_millis(500));
    let gates: Vec<_> =
        compare.gates.iter().map(|gate| (gate.policy, gate.figure.word(), gate.operator.sign(), gate.against)).collect();
    let (reference, absolute) = (Against::Reference, Against::Absolute);
    assert_eq!(
        gates,
        [
            (1, "recovery_time", "<=", reference(1.0)),
            (0, "peak_attempts", "<", reference(0.6)),
            (0, "recovered", ">=", absolute(0.95)),
            (0, "recovery_time", "<=", absolute(20.0)),
        ]
    );
    let recovered = loaded.plan.recovered.unwrap();
    assert!((recovered.at_least.get() - 0.9).abs() < 1e-12 && recovered.holds(18, 20));
    assert_eq!(loaded.plan.gates.len(), 1, "it is no gate of a single run");
}

#[test]
fn all_errors_are_reported_at_once() {
    let text = BASE
        .replace("timeout: 1s", "timeout: 1")
        .replace("length: 2m", "length: 2M")
        .replace("after: out", "after: oat")
        .replace("rate: 100/s", "rate: 100")
        .replace("version: 1", "version: 9");
    let shown = load_with(&text, &[]).unwrap_err();
    for want in ["plan.yaml:1:", "plan.yaml:7:", "plan.yaml:9:", "plan.yaml:13:", "plan.yaml:16:"] {
        assert!(shown.contains(want), "{want}\n{shown}");
    }
}

#[test]
fn one_mistake_is_one_error() {
    for (old, new) in
        [("timeout: 1s", "timeout: 1"), ("hang: {}", "hand: {}"), ("rate: 100/s", "rate: 100"), ("length: 2m", "length: 2")]
    {
        let shown = load_with(&with(old, new), &[]).unwrap_err();
        assert_eq!(shown.matches(": error: ").count(), 1, "{new}\n{shown}");
    }
}

#[test]
fn what_an_anchor_holds_is_reported_once_where_it_is_written() {
    let text = BASE
        .replace(
            "policies:\n",
            "x-common: &common { timeout: 1, retry_on: [timeout] }\npolicies:\n  q: { <<: *common, attempts: 2 }\n",
        )
        .replace("p: { attempts: 3, timeout: 1s }", "p: { <<: *common, attempts: 3 }");
    let shown = load_with(&text, &[]).unwrap_err();
    assert_eq!(shown.matches(": error: ").count(), 1, "{shown}");
    assert!(shown.contains("plan.yaml:6:30: error: a duration needs a unit"), "{shown}");
    assert!(shown.contains("used through an alias in line 8, 9"), "{shown}");
}

#[test]
fn merge_keys_anchors_and_variables_work() {
    let text = BASE
        .replace("policies:\n", "x-common: &common { timeout: 3s, retry_on: [timeout] }\nx-note: anything\npolicies:\n")
        .replace("p: { attempts: 3, timeout: 1s }", "p: { <<: *common, attempts: 3, retry_on: [5xx] }")
        .replace("127.0.0.1:8080/x", "127.0.0.1:${PORT}/${NONE:-y}");
    let loaded = load_with(&text, &[]).unwrap();
    let policy = &loaded.plan.fleets[0].policy;
    assert_eq!(policy.timeout, Span::from_secs(3));
    assert_eq!(policy.retry_on.len(), 1);
    assert_eq!(loaded.plan.target.url.as_ref().unwrap().value.to_string(), "http://127.0.0.1:8080/y");
}

#[test]
fn the_effective_plan_is_the_same_plan() {
    let text = BASE.replace("8080/x", "${PORT}/x\n  body: 'literal $${PORT}\n\n    next'");
    let first = load_with(&text, &["length=3m", "timeline.out.for=12s"]).unwrap();
    let second = load_with(&first.effective, &[]).unwrap_or_else(|shown| panic!("{shown}\n{}", first.effective));
    assert_eq!(second.effective, first.effective);
    assert_eq!(second.plan.target.body, "literal ${PORT}\nnext");
    assert_eq!((second.plan.length, second.plan.timeline[0].to), (Span::from_secs(180), Timestamp(32_000_000_000)));
}

#[test]
fn overrides_are_checked_like_the_file() {
    for (text, wants) in [
        ("length=3", "--set length=3: error: a duration needs a unit|     |        ^"),
        ("timeline.out.for=5m", "--set timeline.out.for=5m: error: `out` ends at|     |                  ^^"),
        ("timeline.bout.for=5s", "did you mean `out`?"),
        ("fleets.a.policy=${NOPE}", "the variable `NOPE` is not set"),
        ("lenght=3m", "unknown key `lenght`|did you mean `length`?"),
        ("length", "expected `key=value`"),
    ] {
        let shown = load_with(BASE, &[text]).unwrap_err();
        assert!(wants.split('|').all(|want| shown.contains(want)), "{text}\n{shown}");
    }
    let loaded = load_with(BASE, &["length=3m", "policies.p.backoff={fixed: {delay: 1s}}", "gates.0.errors=<= 2%"]).unwrap();
    assert_eq!(loaded.plan.length, Span::from_secs(180));
    assert_eq!(loaded.plan.gates[0].condition.comparison.text, "<= 2%");
}

#[test]
fn steps_without_a_name_are_called_after_their_fault() {
    let text = with(
        "hang: {} } }",
        "hang: {} } }\n  - { at: 31s, for: 1s, fault: refuse }\n  - { at: 33s, for: 1s, fault: refuse }\n  - { at: 35s, for: 1s, name: refuse-2, fault: refuse }",
    );
    let names: Vec<String> = load_with(&text, &[]).unwrap().plan.timeline.into_iter().map(|step| step.name).collect();
    assert_eq!(names, ["out", "refuse", "refuse-3", "refuse-2"]);
}

#[test]
fn a_recovery_gets_a_baseline_and_a_fault() {
    let text = BASE.replace("steady_state: { for: 10s }\n", "").replace("after: out, ", "");
    let plan = load_with(&text, &[]).unwrap().plan;
    assert_eq!(plan.steady_state.unwrap().r#for, Span::from_secs(20));
    assert_eq!(plan.recovery.unwrap().after.unwrap().value, "out");
}

#[test]
fn files_that_are_no_plan_say_so() {
    for (text, want) in [
        ("", "the file is empty"),
        ("\n# nothing\n", "the file is empty"),
        ("hello", "expected a plan: a map"),
        ("- a\n- b\n", "found a list"),
        ("version: 1\n---\nversion: 1\n", "more than one document"),
        ("version: 1\n\tname: x\n", "YAML does not allow tabs|spaces"),
        ("a: [1, 2\n", "plan.yaml:"),
        ("a: \"x\n", "plan.yaml:"),
        ("a: b: c\n", "plan.yaml:1:"),
        ("[a]: 1\n", "a key must be a single value"),
        ("? {a: 1}\n: 2\n", "a key must be a single value"),
        ("a: &x [*x]\n", "plan.yaml:1:"),
        ("a: %x\n", "plan.yaml:1:"),
    ] {
        let shown = load_with(text, &[]).unwrap_err();
        assert!(want.split('|').any(|want| shown.contains(want)), "{text:?}\n{shown}");
    }
    let wrong = decode(b"version: 1\nname: \xff\n".to_vec(), "plan.yaml").unwrap_err().to_string();
    assert!(wrong.starts_with("plan.yaml:2:7: error: this byte is not UTF-8"), "{wrong}");
}

#[test]
fn hostile_files_get_a_clear_error_in_bounded_memory() {
    let bomb = {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_string();
        for n in 1..9 {
            let aliases = vec![format!("*a{}", n - 1); 10].join(", ");
            text.push_str(&format!("a{n}: &a{n} [{aliases}]\n"));
        }
        text
    };
    let fat = format!("a: &a \"{}\\n\"\nb: [{}]\n", "x".repeat(30_000), vec!["*a"; 3_000].join(", "));
    let merges = format!("a: &a {{ x: 1 }}\nb:\n{}", "  - { <<: *a }\n".repeat(5_000));
    for (what, text, wants) in [
        ("alias bomb", bomb, "aliases|repeat"),
        ("fat aliases", fat, "too much|aliases"),
        ("merge flood", merges, "aliases|too many|too much"),
        ("deep flow", "[".repeat(100_000), "deep|nest|not YAML"),
        ("deep block", (0..1_000).map(|n| format!("{}a:\n", " ".repeat(n))).collect::<String>(), "deep|nest"),
        ("deep lists", format!("a: {}", "- ".repeat(5_000)), "deep|nest|not YAML"),
        ("giant scalar", format!("a: {}\n", "x".repeat(40_000)), "32768"),
        ("too many values", "- a\n".repeat(100_000), "too many values"),
        ("too many keys", (0..60_000).map(|n| format!("k{n}: 1\n")).collect::<String>(), "too many values"),
        ("giant file", "#".repeat(yaml::MAX_BYTES + 1), "1048576 at most"),
        ("giant line", format!("a: {{ {} }}", "b: c, ".repeat(170_000)), "too many values|there twice"),
        (
            "many errors",
            format!("version: 1\n{}", (0..9_000).map(|n| format!("k{n}: 1\n")).collect::<String>()),
            "unknown key `k0`",
        ),
        ("long key", format!("{}: 1\n", "k".repeat(100_000)), "plan.yaml:"),
    ] {
        let shown = match load_with(&text, &[]) {
            Ok(_) => panic!("{what} was read"),
            Err(shown) => shown,
        };
        assert!(wants.split('|').any(|want| shown.contains(want)), "{what}\n{}", &shown[..shown.len().min(2_000)]);
        assert!(shown.len() < 60_000, "{what}: {} bytes", shown.len());
    }
}
