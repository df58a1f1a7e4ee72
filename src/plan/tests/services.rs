//! Services behind a target, and their calls, that are wrong.

use super::*;
use crate::service::system::CallConfig;

const TARGET: &str = "  url: http://127.0.0.1:8080/x";

/// The targets that are wrong: by their queues, and by these.
pub(super) fn errors() -> impl Iterator<Item = &'static (&'static str, &'static str, &'static str)> {
    queue::ERRORS.iter().chain(ERRORS)
}

const ERRORS: &[(&str, &str, &str)] = &[
    (TARGET, "  url: http://127.0.0.1:8080/x\n  services: ¶{ db: { rate: 9/s } }", "stand beside a `model`"),
    (
        TARGET,
        "  service: { rate: 9/s, calls: { service: ¶d, policy: p } }\n  services: { db: { rate: 9/s } }",
        "no service is called `d`|did you mean `db`?",
    ),
    (TARGET, "  service: { rate: 9/s, calls: { service: ¶db, policy: p } }", "no service is called `db`|the plan has no service"),
    (
        TARGET,
        "  services: { db: { rate: 9/s, calls: { service: ¶db, policy: p } } }\n  service: { rate: 9/s }",
        "`db` calls itself",
    ),
    (
        TARGET,
        "  service: { rate: 9/s, calls: { service: a, policy: p } }\n  services: { a: { rate: 9/s, calls: { service: ¶b, policy: p } }, b: { rate: 9/s, calls: { service: a, policy: p } } }",
        "calls go round: a -> b -> a|take one of the calls out",
    ),
    (TARGET, "  service: { rate: 9/s }\n  services: { ¶service: { rate: 9/s } }", "what the front one is called"),
    (TARGET, "  service: { rate: 9/s }\n  services: { ¶d b: { rate: 9/s } }", "cannot name a service"),
    (TARGET, "  service: { rate: 9/s }\n  services: { db: ¶{ servers: 4 } }", "the capacity is missing"),
    (
        TARGET,
        "  service: { rate: 9/s, calls: { service: db, policy: ¶q } }\n  services: { db: { rate: 9/s } }",
        "no policy is called `q`|did you mean `p`?",
    ),
    (
        TARGET,
        "  service: { rate: 9/s, calls: { service: db, policy: p, latency: ¶0s } }\n  services: { db: { rate: 9/s } }",
        "`latency` must be 1us or more",
    ),
    (
        TARGET,
        "  service: { rate: 9/s, calls: { service: db, policy: p, on_failure: ¶200 } }\n  services: { db: { rate: 9/s } }",
        "`on_failure` is 200",
    ),
    (
        TARGET,
        "  service: { rate: 9/s, calls: { service: db, policy: ¶{ attempts: 2, timeout: 1s, hedge: { after: 100ms } } } }\n  services: { db: { rate: 9/s } }",
        "has a `hedge`, which the calls of a service cannot have",
    ),
    (
        TARGET,
        "  service: { rate: 9/s, calls: { service: db, policy: ¶resilience4j-breaker } }\n  services: { db: { rate: 9/s } }",
        "has a `breaker`",
    ),
    (
        TARGET,
        "  service: { rate: 9/s, calls: { service: db, policy: { attempts: ¶0, timeout: 1s } } }\n  services: { db: { rate: 9/s } }",
        "from 1 to 1000000",
    ),
    (TARGET, "  service: { rate: 9/s, fails: { share: 10%, status: ¶200 } }", "`status` is 200"),
    (
        TARGET,
        "  model: { rate: ¶0/s }\n  url: http://127.0.0.1:8080/x\n  services: { db: { rate: 9/s } }",
        "`rate` must be above 0",
    ),
];

/// The same for warnings.
pub(super) const WARNINGS: &[(&str, &str, &str)] = &[
    (TARGET, "  service: { rate: 900/s }\n  services: { ¶db: { rate: 900/s } }", "no request reaches the service `db`"),
    (
        TARGET,
        "  service: { rate: 900/s, calls: { service: db, policy: { attempts: 1, timeout: 1s, backoff: ¶{ fixed: { delay: 1s } } } } }\n  services: { db: { rate: 900/s } }",
        "`backoff` does nothing",
    ),
];

/// Services a0, a1 and so on, each calling the next.
fn chain(length: usize) -> String {
    let one = |n: usize| match n + 1 < length {
        true => format!("a{n}: {{ rate: 900/s, calls: {{ service: a{}, policy: p }} }}", n + 1),
        false => format!("a{n}: {{ rate: 900/s }}"),
    };
    let all: Vec<String> = (0..length).map(one).collect();
    with(
        TARGET,
        &format!("  service: {{ rate: 900/s, calls: {{ service: a0, policy: p }} }}\n  services: {{ {} }}", all.join(", ")),
    )
}

#[test]
fn calls_are_so_deep_at_most_and_services_so_many() {
    assert!(load_with(&chain(7), &[]).is_ok(), "eight with the front one");
    assert!(load_with(&chain(8), &[]).unwrap_err().contains("a request passes 9 services"));
    assert!(load_with(&chain(33), &[]).unwrap_err().contains("33 services: 32 at most"));
}

#[test]
fn calls_are_resolved_presets_included_and_at_the_speed_of_the_plan() {
    let target = "  service: { rate: 900/s, calls: { service: db, policy: q, latency: 2ms } }
  services:
    cache: { rate: 900/s }
    db: { rate: 900/s, fails: { share: 5% }, calls: { service: cache, policy: aws-standard-2.1, on_failure: 500 } }
policies:
  q: { attempts: 2, timeout: 10s }";
    let text = with(TARGET, target).replace("policies:\n  p: {", "  p: {");
    let loaded = load_with(&text, &["time_scale=1/2"]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(loaded.warnings_text, "");
    let system = loaded.plan.target.system().expect("a built-in target");
    let CallConfig { to, policy, latency, on_failure } = system.front.calls.expect("it calls");
    assert_eq!((to, policy.timeout.as_millis(), latency.as_millis(), on_failure), (1, 5_000, 1, 503));
    let (name, db) = &system.services[1];
    let calls = db.calls.as_ref().expect("it calls");
    assert_eq!((name.as_str(), calls.to, calls.on_failure), ("db", 0, 500));
    assert_eq!(calls.policy.attempts, crate::policy::Attempts::Limited(3), "the preset's own");
    assert_eq!(db.fails.as_ref().map(|fails| (fails.share.get(), fails.status)), Some((0.05, 500)));
    let again = load_with(&loaded.effective, &["time_scale=1/2"]).unwrap_or_else(|error| panic!("{error}"));
    let again = again.plan.target.system().and_then(|system| system.services[1].1.calls.clone()).expect("it calls");
    assert_eq!((again.latency, again.policy.backoff), (calls.latency, calls.policy.backoff.clone()), "spelled out");
}

#[test]
fn arithmetic_follows_the_calls() {
    use crate::plan::arithmetic::{layers::layers, rules};
    let target = |attempts: u32| {
        format!(
            "  service: {{ servers: 5000, service_time: 1ms, calls: {{ service: mid, policy: {{ attempts: {attempts}, timeout: 1s }} }} }}
  services:
    mid: {{ servers: 60, service_time: 2ms, calls: {{ service: db, policy: {{ attempts: {attempts}, timeout: 1s }}, latency: 4ms }} }}
    db: {{ servers: 6, service_time: 10ms }}"
        )
    };
    let said = |attempts| {
        let plan = load_with(&with(TARGET, &target(attempts)), &[]).unwrap_or_else(|error| panic!("{error}")).plan;
        let seen: Vec<(Option<u64>, f64)> =
            layers(&plan).iter().map(|l| (l.capacity.map(|c| c.round() as u64), l.most)).collect();
        let rules = rules(&plan).into_iter().filter(|rule| rule.key == "retry_storm").map(|rule| (rule.danger, rule.sentence));
        (seen, rules.collect::<Vec<_>>())
    };
    let (layers, rules) = said(3);
    // 1 + 1 + 20 ms, 2 + 8 + 10 ms, and 10 ms.
    assert_eq!(layers, [(Some(227_273), 1.0), (Some(3_000), 3.0), (Some(600), 9.0)]);
    assert!(rules.len() == 1 && rules[0].0, "{rules:?}");
    assert!(
        rules[0].1.contains("300/s with every retry of the clients, times 9") && rules[0].1.contains("2700/s at `db`"),
        "{rules:?}"
    );
    let (_, rules) = said(1);
    assert!(rules.len() == 1 && !rules[0].0 && rules[0].1.contains("within the 600/s that it serves"), "{rules:?}");
}
