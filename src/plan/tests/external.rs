//! Plans whose faults a Toxiproxy or a `stormwake proxy` carries out.

use super::*;
use crate::fault::Fault;
use crate::plan::Sees;
use crate::plan::external::witnessed;

/// As much as a proxy can.
const SEES: Sees = Sees { requests: true, handshakes: false };

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
        TIMELINE,
        by_toxiproxy!("fault: { status: { code: 503 } }, fleets: ¶[a]", "stormwake: http://127.0.0.1:8474, name: pay"),
        "`fleets` limits `out`|a stormwake proxy cannot tell whose it is|leave `fleets` out",
    ),
    (
        TIMELINE,
        by_toxiproxy!("fault: { hang: {} }", "stormwake: ¶https://127.0.0.1:8474, name: pay"),
        "a stormwake proxy's control API speaks no TLS",
    ),
    (
        TIMELINE,
        by_toxiproxy!("fault: ¶{ handshake_hang: {} }", "stormwake: http://127.0.0.1:8474, name: pay"),
        "strikes TLS handshakes",
    ),
    (
        TIMELINE,
        by_toxiproxy!("fault: { hang: {} }", "toxiproxy: http://127.0.0.1:1, stormwake: ¶http://127.0.0.1:2, name: pay"),
        "exclude each other",
    ),
    ("length: 2m", "length: 2m\nproxy: ¶{ name: pay }", "a `toxiproxy` or a `stormwake`"),
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
    assert_eq!((external.on, external.name.as_str(), external.api.port), (0, "pay", 8474));
    assert_eq!(plan.remote_steps(), [0]);
    let remotes = external.remotes(&plan.timeline);
    assert!(matches!((remotes[0].step, &remotes[0].fault), (0, Fault::Latency(_))), "{remotes:?}");
    let witness = &witnessed(&plan.timeline, &plan.external)[0];
    assert_eq!((&witness.fault, &witness.name), (&None, &"out".to_string()));
    assert_eq!(witnessed(&plan.timeline, &[]), plan.timeline);
}

/// A fault goes to a `stormwake proxy` as it stands in the plan, and means there what it means here, at the plan's speed.
#[test]
fn a_stormwake_proxy_is_told_what_the_plan_says() {
    use crate::config::{Node, Place, Problems, Value};
    use crate::plan::ProxyFault;
    let fault = "fault: { status: { code: 503, share: 20%, retry_after: 20s } }";
    let text = with(TIMELINE, by_toxiproxy!("FAULT", "stormwake: http://127.0.0.1:8474, name: pay")).replace("FAULT", fault);
    let told = |overrides: &[&str]| {
        let plan = load_with(&text, overrides).unwrap().plan;
        let remote = plan.external[0].remotes(&plan.timeline).remove(0);
        assert!(!remote.ends);
        (remote.text, remote.fault)
    };
    let (text, fault) = told(&[]);
    assert_eq!(text, r#"{"fault":{"status":{"code":"503","share":"20%","retry_after":"20s"}}}"#);
    let (scaled, faster) = told(&["time_scale=1/20"]);
    assert_eq!(scaled, text.replace("}}}", r#"}},"time_scale":"1/20"}"#));
    assert_ne!(fault, faster);
    for (text, wanted) in [(text, fault), (scaled, faster)] {
        let mut problems = Problems::default();
        let node = crate::plan::yaml::parse(&text, Default::default(), &mut problems).unwrap().root;
        let read = ProxyFault::sound(&node, SEES, &mut problems).unwrap_or_else(|| panic!("{problems:?}"));
        assert_eq!(read.fault.value, wanted);
        assert!(ProxyFault::sound(&node, Sees { requests: false, ..SEES }, &mut problems).is_none(), "it answers requests");
    }
    let shaped = with(
        TIMELINE,
        by_toxiproxy!(
            "fault: { hang: {} }, match: { path: '/x' }, every: 2, ramp: { out: 2s }",
            "stormwake: http://127.0.0.1:8474, name: pay"
        ),
    );
    let plan = load_with(&shaped, &[]).unwrap().plan;
    let remote = plan.external[0].remotes(&plan.timeline).remove(0);
    let told = r#"{"for":"10s","fault":{"hang":{}},"match":{"path":"/x"},"every":"2","ramp":{"out":"2s"}}"#;
    assert_eq!((remote.text.as_str(), remote.ends, remote.of_requests), (told, true, true), "a ramp needs to know its end");
    let empty = Node { value: Value::Map(Vec::new()), place: Place::default() };
    assert!(ProxyFault::sound(&empty, SEES, &mut Problems::default()).is_none());
}
