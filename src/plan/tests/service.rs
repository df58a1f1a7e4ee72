//! Steps of the timeline that change the service: what is wrong with them, and what they come to.

use super::*;
use crate::plan::action::Deed;
use crate::service::{ServiceChange, change::Setting};
use crate::time::{Share, Span};

/// A plan of the built-in target with steps; its front service has a cache, `db` has none.
fn text(steps: &[&str], more: &str) -> String {
    let steps: String = steps.iter().map(|step| format!("  - {step}\n")).collect();
    format!(
        "version: 1\nname: s\ntarget:
  service: {{ servers: 4, service_time: 10ms, drain: 300/s, cold_cache: {{ hits: 90%, miss_costs: 10x, warms_after: 100 }} }}
  services: {{ db: {{ rate: 9/s }} }}
fleets: {{ a: {{ clients: 10, policy: {{ attempts: 3, timeout: 1s }}, load: {{ poisson: {{ rate: 100/s }} }} }} }}
timeline:\n{steps}{more}length: 3m\n"
    )
}

fn loaded(steps: &[&str], more: &str) -> Loaded {
    load_with(&text(steps, more), &[]).unwrap_or_else(|error| panic!("{error}"))
}

const SLOW: &str = "{ at: 60s, for: 10s, name: slow, service: { capacity: 20%, over: 2s, drain: off } }";

#[test]
fn a_change_that_lasts_is_put_back_and_can_be_recovered_from() {
    let plan = loaded(&[SLOW], "recovery: { after: slow, within: 30s, hold: 10s }\n").plan;
    let step = &plan.timeline[0];
    assert_eq!((step.kind(), step.from.as_millis(), step.to.as_millis()), ("service", 60_000, 70_000));
    assert_eq!(plan.baseline().map(|(_, to)| to.as_millis()), Some(60_000), "the baseline ends where it begins");
    let done: Vec<_> = plan.actions.iter().map(|action| (action.name.as_str(), action.at.as_millis(), &action.what)).collect();
    let change = |capacity, drain| {
        let over = Span::from_secs(2);
        Box::new(ServiceChange { capacity: Share::new(capacity).ok(), over, drain: Some(drain), ..ServiceChange::nothing() })
    };
    let begins = Deed::Service { change: change(0.2, Setting::Off), ends: false };
    let ends = Deed::Service { change: change(1.0, Setting::To(crate::time::Rate::per_second(300.0).unwrap())), ends: true };
    assert_eq!(done, [("slow", 60_000, &begins), ("slow-end", 70_000, &ends)]);
}

#[test]
fn what_bears_witness_is_what_weakens_and_ends() {
    // The step, and when what bears witness of it ends, in milliseconds.
    for (step, until) in [
        ("{ at: 60s, for: 5s, service: { limiter: { token_bucket: { rate: 9/s } } } }", Some(65_000)),
        ("{ at: 60s, service: { limiter: { token_bucket: { rate: 9/s } } } }", None),
        ("{ at: 60s, for: 5s, service: { limiter: off } }", None),
        ("{ at: 60s, for: 5s, service: { drain: 9/s } }", None),
        ("{ at: 60s, service: { restart: { down_for: 7s } } }", Some(67_000)),
        ("{ at: 60s, service: { restart: {} } }", Some(61_000)),
        ("{ at: 60s, service: { cache: cold } }", Some(61_000)),
        ("{ at: 60s, service: { of: service, cache: cold } }", Some(61_000)),
        ("{ at: 60s, service: { cache: warm } }", None),
        ("{ at: 60s, service: { reject_backlog: { retry_after: 1s } } }", None),
        ("{ at: 60s, service: { capacity: 50% } }", None),
    ] {
        let plan = loaded(&[step], "").plan;
        assert_eq!(plan.timeline.first().map(|step| step.to.as_millis()), until, "{step}");
        assert_eq!((plan.actions[0].name.as_str(), plan.actions[0].kind()), ("service", "service"));
        assert_eq!(plan.actions.len(), 1 + usize::from(step.contains(" for:")), "{step}");
    }
}

#[test]
fn at_one_moment_ends_come_before_starts() {
    let next = "{ at: 70s, for: 10s, name: next, service: { capacity: 50% } }";
    let plan = loaded(&[next, SLOW], "").plan;
    let names: Vec<&str> = plan.actions.iter().map(|action| action.name.as_str()).collect();
    assert_eq!(names, ["slow", "slow-end", "next", "next-end"]);
}

#[test]
fn what_is_wrong_with_a_change_is_said_at_its_place() {
    const RECOVERY: &str = "recovery: ¶{ after: slow, within: 30s, hold: 10s }\n";
    const AFTER: &str = "recovery: { after: ¶slow, within: 30s, hold: 10s }\n";
    for (step, more, expected) in [
        ("{ at: 1s, service: ¶{} }", "", "nothing changes"),
        ("{ at: 1s, service: ¶{ cache: cold }, fault: hang }", "", "`service` and `fault` exclude each other"),
        ("{ at: 1s, service: { capacity: ¶20 } }", "", "%"),
        ("{ at: 1s, service: { cache: cold, ¶over: 2s } }", "", "`over` says how long"),
        ("{ at: 1s, service: { ¶capasity: 20% } }", "", "did you mean `capacity`?"),
        ("{ at: 1s, for: ¶5s, service: { restart: {} } }", "", "`restart` happens once|`down_for` says"),
        ("{ at: 1s, for: ¶5s, service: { cache: cold } }", "", "`cache` happens once"),
        ("{ at: 1s, fleets: ¶[a], service: { cache: cold } }", "", "one for all"),
        ("{ at: 1s, service: { of: db, cache: ¶cold } }", "", "`db` has no `cold_cache`|or remove `cache`"),
        ("{ at: 1s, service: { of: db, cache: ¶warm } }", "", "`db` has no `cold_cache`"),
        ("{ at: 1s, service: { of: ¶dp, cache: cold } }", "", "did you mean `db`?"),
        ("{ at: 1s, service: { drain: ¶0/s } }", "", "`drain` must be above 0"),
        ("{ at: 1s, service: { limiter: { token_bucket: { rate: ¶0/s } } } }", "", ""),
        ("{ at: 60s, name: slow, service: { capacity: 20% } }", RECOVERY, "nothing can recover from it|give it a `for`"),
        ("{ at: 60s, for: 9s, name: slow, service: { drain: 9/s } }", RECOVERY, "nothing can recover from it"),
        (
            "{ at: 60s, name: slow, service: { capacity: 20% } }\n  - { at: 90s, for: 1s, fault: hang }",
            AFTER,
            "`slow` has no end|give it a `for`",
        ),
    ] {
        let (text, line, column) = unmark(&text(&[step], more));
        let error = load_with(&text, &[]).expect_err(step);
        assert!(expected.split('|').all(|part| error.contains(part)), "{step}: {error}");
        assert!(
            error.contains(&format!("plan.yaml:{line}:{column}")) || error.contains(&format!("plan.yaml:{line}:")),
            "{step}: {error}"
        );
    }
}

/// The rest of the plan is judged by the steps that could be: one that could not may be the one that was meant.
#[test]
fn one_mistake_beside_a_step_is_one_error() {
    let more = "steady_state: { for: 30s }\nrecovery: { within: 30s, hold: 10s }\n";
    let implied = "recovery: { within: 30s, hold: 10s }\ngates: [{ p99: '<= 2x baseline', during: recovery }]\n";
    let slow_of = |of: &str| SLOW.replace("{ capacity", &format!("{{ of: {of}, capacity"));
    for (text, expected) in [
        (text(&[SLOW], more).replace("service_time: 10ms", "service_time: { p50: 20ms }"), "`p99` is missing"),
        (text(&[SLOW], implied).replace("service_time: 10ms", "service_time: { p50: 20ms }"), "exponential: { mean: 20ms }"),
        (text(&[SLOW], more).replace("drain: 300/s", "limiter: { token_bucket: {} }"), "`rate` is missing"),
        (text(&[&slow_of("dbx")], more), "no service is called `dbx`"),
    ] {
        let error = load_with(&text, &[]).expect_err(expected);
        assert!(error.contains(expected) && error.matches("error: ").count() == 1, "{expected}\n{error}");
    }
}

#[test]
fn changes_of_one_part_that_overlap_are_warned_of() {
    let warned = |other: &str| loaded(&[SLOW, other], "").warnings_text;
    let both = warned("{ at: 65s, name: half, service: { capacity: 50% } }");
    assert!(both.contains("`half` changes `capacity` while `slow` does") && both.contains("at 1m10s or later"), "{both}");
    let named = warned("{ at: 65s, name: half, service: { of: service, capacity: 50% } }");
    assert!(named.contains("`half` changes `capacity` while `slow` does"), "{named}");
    assert!(!warned("{ at: 65s, name: half, service: { of: db, capacity: 50% } }").contains(" while "));
    assert!(!warned("{ at: 70s, name: half, service: { capacity: 50% } }").contains(" while "));
    assert!(!warned("{ at: 65s, name: half, service: { limiter: off } }").contains(" while "));
}
