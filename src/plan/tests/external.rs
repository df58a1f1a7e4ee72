//! Plans whose faults a Toxiproxy carries out.

use super::*;
use crate::fault::Fault;
use crate::plan::external::witnessed;

/// A fault, and the Toxiproxy that is to do it.
macro_rules! by_toxiproxy {
    ($fault:literal) => {
        by_toxiproxy!($fault, "toxiproxy: http://127.0.0.1:8474, name: pay")
    };
    ($fault:literal, $proxy:literal) => {
        concat!("timeline:\n  - { at: 20s, for: 10s, name: out, ", $fault, " }\nproxy: { ", $proxy, " }\n")
    };
}

const TIMELINE: &str = "timeline:\n  - { at: 20s, for: 10s, name: out, fault: { hang: {} } }\n";

pub(super) const ERRORS: &[(&str, &str, &str)] = &[
    (TIMELINE, by_toxiproxy!("fault: ¶{ status: { code: 503 } }"), "cannot do `status`|moves bytes|our own proxy"),
    (TIMELINE, by_toxiproxy!("fault: ¶{ rate_limit: { rate: 5/s } }"), "cannot do `rate_limit`|our own proxy"),
    (TIMELINE, by_toxiproxy!("fault: ¶{ hang: { release: true } }"), "cannot do `hang`|nothing to let go|leave `release` out"),
    (
        TIMELINE,
        by_toxiproxy!("fault: { refuse: {} }, fleets: ¶[a]"),
        "`fleets` limits `out`|cannot tell whose it is|leave `fleets` out",
    ),
    (
        TIMELINE,
        by_toxiproxy!("fault: { hang: {} }", "toxiproxy: ¶https://127.0.0.1:8474, name: pay"),
        "speaks no TLS|`http://127.0.0.1:8474`",
    ),
    (
        TIMELINE,
        by_toxiproxy!("fault: { hang: {} }", "toxiproxy: ¶http://127.0.0.1:8474/proxies, name: pay"),
        "expected scheme, host and port",
    ),
    (TIMELINE, by_toxiproxy!("fault: { hang: {} }", "toxiproxy: http://127.0.0.1:8474, name: ¶a/b"), "no `/`|lists them"),
    (TIMELINE, by_toxiproxy!("fault: { hang: {} }", "toxiproxy: http://127.0.0.1:8474, name: ¶\"\""), "the name of a proxy"),
    ("length: 2m", "length: 2m\nproxy: ¶{ toxiproxy: http://127.0.0.1:8474 }", "`name` is missing"),
    (
        "  url: http://127.0.0.1:8080/x",
        "  service: { servers: 1, service_time: 1ms }\nproxy: ¶{ toxiproxy: http://127.0.0.1:8474, name: pay }",
        "the built-in target|as a `url`",
    ),
];

pub(super) const WARNINGS: &[(&str, &str, &str)] = &[
    (TIMELINE, by_toxiproxy!("fault: ¶{ reset: { share: 40% } }"), "once for each connection"),
    (TIMELINE, by_toxiproxy!("fault: ¶{ latency: { add: 1500us } }"), "whole milliseconds"),
    (
        TIMELINE,
        by_toxiproxy!("fault: { hang: {} }", "toxiproxy: ¶http://toxi.internal:8474, name: pay"),
        "`toxi.internal` is not in `allow`",
    ),
    (FAULT, "proxy: ¶{ toxiproxy: http://127.0.0.1:8474, name: pay }\n", "no fault of the timeline goes to the Toxiproxy"),
];

#[test]
fn what_a_toxiproxy_carries_out_our_own_proxy_only_witnesses() {
    let text = with(TIMELINE, by_toxiproxy!("fault: { latency: { add: 800ms } }"));
    let loaded = load_with(&text, &[]).unwrap();
    assert_eq!(loaded.warnings_text, "");
    let plan = loaded.plan;
    let [external] = &plan.external[..] else { panic!("{:?}", plan.external) };
    assert_eq!((external.on, external.name.as_str(), external.toxiproxy.port), (0, "pay", 8474));
    assert_eq!(plan.remote_steps(), [0]);
    let remotes = external.remotes(&plan.timeline);
    assert!(matches!((remotes[0].step, &remotes[0].fault), (0, Fault::Latency(_))), "{remotes:?}");
    let witness = &witnessed(&plan.timeline, &plan.external)[0];
    assert_eq!((&witness.fault, &witness.name), (&None, &"out".to_string()));
    assert_eq!(witnessed(&plan.timeline, &[]), plan.timeline);
}
