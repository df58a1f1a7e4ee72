//! The plan's own proxies: what is read, what is refused, and what is said of it.

use super::*;

const BASE: &str = "version: 1\ntarget: { url: 'http://127.0.0.1:8080/' }\n\
     fleets: { a: { clients: 10, policy: { attempts: 1, timeout: 1s }, load: { constant: { rate: 50/s } } } }\nlength: 2m\n";
const PROXY: &str = "proxies: { provider: { listen: 127.0.0.1:9001, upstream: 127.0.0.1:9000 }, bytes: { listen: 127.0.0.1:9002, upstream: 127.0.0.1:9000, protocol: tcp } }\n";
const TOXIC: &str = "toxiproxy: 'http://127.0.0.1:8474', name: payments";
const OUTAGE: &str = "timeline: [{ at: 40s, for: 10s, name: out, on: provider, fault: reset }]\n";

fn read(rest: &str) -> Result<crate::plan::Loaded, crate::plan::PlanError> {
    let text = format!("{BASE}{rest}");
    load(&Source { file: "plan.yaml", text: &text, overrides: &[], env: &|_| None })
}

#[test]
fn proxies_have_the_numbers_of_their_order_and_steps_act_at_one() {
    let more = "  - { at: 60s, for: 5s, name: cut, on: bytes, fault: reset }\n  - { at: 70s, for: 5s, name: near, on: target, fault: reset }\n";
    let timeline = format!("timeline:\n  - {{ at: 40s, for: 10s, name: out, on: provider, fault: reset }}\n{more}");
    let loaded = read(&format!("{PROXY}{timeline}gates: [{{ retry_share: '<= 30%', at: provider }}]\n")).expect("a plan");
    assert_eq!(loaded.warnings_text, "");
    let plan = loaded.plan;
    assert_eq!(plan.timeline.iter().map(|step| step.on).collect::<Vec<_>>(), [1, 2, 0]);
    assert_eq!((plan.proxy_of(1), plan.proxy_of(2), plan.proxy_of(0)), (Some("provider"), Some("bytes"), None));
    assert!(plan.live_only().is_some_and(|why| why.contains("`out` strikes at the proxy `provider`")));
}

#[test]
fn proxies_that_nothing_uses_leave_a_plan_to_the_simulator() {
    let plan =
        |rest: &str| read(&format!("{PROXY}timeline: [{{ at: 40s, for: 10s, fault: reset }}]\n{rest}")).expect("a plan").plan;
    assert_eq!(plan("gates: [{ errors: '<= 90%' }]\n").live_only(), None);
    assert!(plan("gates: [{ errors: '<= 90%', at: provider }]\n").live_only().is_some_and(|why| why.contains("a gate looks at")));
    let judged = "recovery: { at: provider, within: 20s }\n";
    assert!(plan(judged).live_only().is_some_and(|why| why.contains("the recovery is judged at")));
}

#[test]
fn what_makes_no_sense_is_refused_with_a_remedy() {
    let proxy =
        |listen: &str, upstream: &str| format!("proxies: {{ provider: {{ listen: '{listen}', upstream: '{upstream}' }} }}\n");
    let more = |keys: &str| format!("proxies: {{ provider: {{ listen: 127.0.0.1:9001, upstream: 127.0.0.1:9000, {keys} }} }}\n");
    let toxic = |others: &str| format!("proxies: {{ provider: {{ {TOXIC} }}{others} }}\n");
    let struck = |proxies: &str, fault: &str| format!("{proxies}timeline: [{{ at: 40s, for: 10s, on: provider, {fault} }}]\n");
    let step = |scope: &str| format!("{PROXY}timeline: [{{ at: 40s, for: 10s, fault: reset, {scope} }}]\n");
    let gate = |gate: &str| format!("{PROXY}{OUTAGE}gates: [{{ {gate} }}]\n");
    for (rest, message, hint) in [
        (proxy("0.0.0.0:9001", "127.0.0.1:9000"), "is not of loopback", ""),
        (proxy("127.0.0.1:9001", "127.0.0.1:9001"), "would call itself", "what the service really calls"),
        (proxy("127.0.0.1:8080", "127.0.0.1:9000"), "the load would pass by the service", "stands behind it"),
        (
            "proxies: { a: { listen: 127.0.0.1:9001, upstream: 127.0.0.1:9000 }, b: { listen: 127.0.0.1:9001, upstream: 127.0.0.1:9000 } }\n".into(),
            "`a` listens on port 9001 already",
            "a port of its own",
        ),
        ("proxies: { target: { listen: 127.0.0.1:9001, upstream: 127.0.0.1:9000 } }\n".into(), "cannot name a proxy", "provider"),
        (
            "proxies: { p: { listen: 127.0.0.1:9001, upstream: 127.0.0.1:9000, repeats: { within: 0s } } }\n".into(),
            "repeats within 0",
            "60s is usual",
        ),
        (step("on: provder"), "no proxy is called `provder`", "did you mean `provider`?"),
        (step("on: provider, fleets: [a]"), "`fleets` with `on: provider`", "remove `fleets`, or `on`"),
        (
            format!("{PROXY}timeline: [{{ at: 40s, for: 10s, on: bytes, fault: {{ status: {{ code: 503 }} }} }}]\n"),
            "`status` needs to know requests, and `bytes` sees bytes",
            "protocol: http",
        ),
        (
            format!("{PROXY}timeline: [{{ at: 40s, for: 10s, on: bytes, fault: hang, match: {{ path: /a }} }}]\n"),
            "`match` needs to know requests, and `bytes` sees bytes",
            "protocol: http",
        ),
        (
            format!("{PROXY}timeline: [{{ at: 40s, for: 10s, on: bytes, fault: {{ truncate: {{ after: 5 }} }} }}]\n"),
            "truncate",
            "",
        ),
        (
            format!("{PROXY}timeline: [{{ at: 40s, on: provider, action: {{ pause: {{ fleet: a }} }} }}]\n"),
            "only a fault acts at a proxy",
            "remove `on`",
        ),
        (gate("retry_share: '<= 30%', at: provder"), "no proxy is called `provder`", "did you mean `provider`?"),
        (gate("unresolved: '<= 30', at: provider"), "`unresolved` is not known at `provider`", "retry_share"),
        (gate("retry_share: '<= 30%', at: bytes"), "sees bytes and no requests", "protocol: http"),
        (gate("retry_share: '<= 30%', at: target"), "our own clients", "remove `at`"),
        (gate("retry_share: '<= 30%', at: provider, fleet: a"), "belong to no fleet", "remove `fleet`"),
        (
            format!("{PROXY}{OUTAGE}recovery: {{ within: 20s }}\ngates: [{{ recovery_time: '<= 9s', at: provider }}]\n"),
            "which is not judged at `provider`",
            "recovery: { at: provider",
        ),
        (
            format!("{PROXY}{OUTAGE}recovery: {{ at: provider, within: 20s, require: {{ oldest_age: '<= 9s' }} }}\n"),
            "`oldest_age` is not known at `provider`",
            "in_flight",
        ),
        (proxy("127.0.0.1:9001", "https://127.0.0.1:9000/"), "has a path", "https://127.0.0.1:9000"),
        (more("upstream_tls: { ca_file: x.pem }"), "`upstream_tls` says how TLS is spoken", "upstream: https://127.0.0.1:9000"),
        (more("tls: { names: ['a b'] }"), "`a b`, which no certificate can name", "provider.test"),
        (struck(&more("tls: {}"), "fault: { status: { code: 99 } }"), "99", ""),
        (
            struck(&more("tls: {}"), "every: 2, fault: { certificate: { kind: expired } }"),
            "`certificate` strikes connections, and not the requests that `every` asks for",
            "",
        ),
        (struck(&more("protocol: http"), "fault: { certificate: { kind: expired } }"), "`certificate` strikes TLS handshakes", "`tls: {}`"),
        (struck(&more("name: payments"), "fault: reset"), "leave it out, or give `toxiproxy` too", ""),
        (struck(&more(TOXIC), "fault: reset"), "`listen` is of a proxy of ours", ""),
        (struck("proxies: { provider: { toxiproxy: 'http://127.0.0.1:8474' } }\n", "fault: reset"), "`name` is missing", ""),
        (struck("proxies: { provider: { upstream: 127.0.0.1:9000 } }\n", "fault: reset"), "a proxy needs `listen` and `upstream`", ""),
        (struck(&toxic(""), "fault: { status: { code: 503 } }"), "the Toxiproxy of `proxies.provider` cannot do `status`", "our own proxy"),
        (struck(&toxic(""), "fault: reset, fleets: [a]"), "`fleets` with `on: provider`", "remove `fleets`"),
        (
            struck(&toxic(&format!(", other: {{ {} }}", TOXIC.replace("127.0.0.1", "localhost"))), "fault: reset"),
            "`proxies.provider` has `payments` of that Toxiproxy already",
            "name each proxy once",
        ),
        (
            struck(&toxic(""), "fault: reset") + "recovery: { at: provider, within: 20s }\n",
            "`provider` is a Toxiproxy's, which counts nothing",
            "with `listen` and `upstream` at `proxies.provider`",
        ),
        (format!("{PROXY}{OUTAGE}recovery: {{ at: upstream, within: 20s }}\n"), "no proxy is called `upstream`", "the plan has"),
    ] {
        let error = read(&rest).expect_err(&rest).to_string();
        assert!(error.contains(message) && error.contains(hint), "{rest}\n{error}");
    }
}

#[test]
fn what_may_surprise_is_warned_of() {
    let refuse =
        format!("{PROXY}timeline: [{{ at: 40s, for: 10s, on: provider, fault: refuse }}]\ngates: [{{ errors: '<= 9%' }}]\n");
    let far = "proxies: { p: { listen: 127.0.0.1:9001, upstream: 'https://provider.internal' } }\n";
    let secret = "proxies: { p: { listen: 127.0.0.1:9001, upstream: 127.0.0.1:9000, tls: {} } }\n";
    let open = "proxies: { p: { listen: 127.0.0.1:9001, upstream: 'https://127.0.0.1:9000', upstream_tls: { insecure_accept_any_certificate: true } } }\n";
    let idle = format!("proxies: {{ p: {{ {TOXIC} }} }}\n");
    for (rest, message) in [
        (refuse.as_str(), "nobody counts them"),
        (far, "`provider.internal` is not in `allow`"),
        (secret, "nobody can trust `p`"),
        (open, "anybody can pass for the upstream of `p`"),
        (&idle, "leave `proxies.p` out"),
    ] {
        let warnings = read(rest).expect("a plan").warnings_text;
        assert!(warnings.contains(message), "{warnings}");
    }
}

#[test]
fn a_toxiproxy_has_a_proxy_behind_the_service_and_our_own_before_it_only_witnesses() {
    let ours = "ours: { listen: 127.0.0.1:9001, upstream: 'https://127.0.0.1:9000', tls: { ca_file: ca.pem }, upstream_tls: { server_name: a.test } }";
    let timeline = "timeline:\n  - { at: 40s, for: 10s, name: out, on: theirs, fault: hang }\n  - { at: 60s, for: 5s, name: bad, on: ours, fault: { certificate: { kind: expired } } }\n";
    let loaded = read(&format!("proxies: {{ theirs: {{ {TOXIC} }}, {ours} }}\n{timeline}")).expect("a plan");
    assert_eq!(loaded.warnings_text, "");
    let plan = loaded.plan;
    let own: Vec<_> = plan.own_proxies().map(|(number, name, config)| (number, name, config.address())).collect();
    assert_eq!(own, [(2, "ours", "https://127.0.0.1:9001".to_string())]);
    let external: Vec<_> = plan.external.iter().map(|external| (external.on, external.name.as_str())).collect();
    assert_eq!((external, plan.remote_steps()), (vec![(1, "payments")], vec![0]));
    let seen = crate::plan::external::witnessed(&plan.timeline, &plan.external);
    let seen: Vec<_> = seen.iter().map(|step| (step.on, step.fault.is_some())).collect();
    assert_eq!(seen, [(0, false), (2, true)]);
    assert!(plan.live_only().is_some());
}
