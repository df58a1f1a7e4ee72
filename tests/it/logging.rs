//! `-v`: what is logged, and what never is.

use crate::support::{Folder, Server, command, shared, stormwake};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Secrets wherever a plan may hold one; each begins with `hush`.
fn plan(target: &str) -> String {
    format!(
        "version: 1\nname: secrets\nseed: 1\n\
        target:\n  url: '{target}/pay?key=hush-target'\n  headers:\n    authorization: 'Bearer hush-plain'\n    cookie: {{ from_env: STORMWAKE_TEST_SECRET }}\n  success: {{ status: [2xx] }}\n\
        fleets:\n  app: {{ clients: 5, policy: {{ attempts: 2, timeout: 200ms, backoff: none, retry_on: [connect, reset, timeout, 5xx] }}, load: {{ constant: {{ rate: 40/s }} }} }}\n\
        timeline:\n  - {{ at: 1s, for: 500ms, name: outage, fault: {{ refuse: {{}} }} }}\n  \
        - {{ at: 1s, name: call, action: {{ http: {{ url: '{target}/hook?token=hush-hook', method: POST, headers: {{ x-key: hush-header }}, body: hush-body, expect: [5xx] }} }} }}\n  \
        - {{ at: 1s, name: script, action: {{ exec: {{ command: ['true', --password, an-argument] }} }} }}\n\
        stop_if:\n  - {{ check: {{ http: '{target}/health?token=hush-check', every: 500ms }}, failing_for: 2s }}\n\
        length: 2500ms\n"
    )
}

#[test]
fn the_log_says_what_is_done_and_no_secret() {
    let _machine = shared();
    let folder = Folder::new("logging");
    let server = Server::answering(OK);
    folder.write("plan.yaml", plan(server.url().trim_end_matches('/')));
    let run = |more: &[&str]| {
        let args = ["run", "plan.yaml", "--approve", "--set", "target.headers.x-more=hush-override", "--out", "reports"];
        let mut command = command(&folder, &[&args[..], more].concat());
        let output = command.env("STORMWAKE_TEST_SECRET", "hush-environment").output().expect("the binary starts");
        crate::support::Said::from(output)
    };
    let said = run(&["-vvv"]);
    assert!(said.code.is_some_and(|code| [0, 3].contains(&code)), "{said:#?}");
    for words in [
        "plan loaded",
        "target.headers.x-more=***",
        "header=authorization: *** secret=false",
        "header=cookie: *** secret=true",
        "a host may be dialled",
        "a proxy listens for a fleet",
        "the clients are connected",
        "a phase began",
        "a fault was applied at=1.",
        "a fault was removed",
        "an action begins action=\"call\" what=POST 127.0.0.1:",
        "/hook?***",
        "an action begins action=\"script\" what=true ***",
        "an action failed",
        "a check of stop_if was asked",
        "connected to an upstream",
        "a client could not connect",
        "a window is complete",
        "the run is over",
        "the report is written",
    ] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    assert!(!said.err.contains("hush") && !said.out.contains("hush"), "{said:#?}");
    assert!(!said.err.contains(['\r', '\u{1b}']), "no line is rewritten under the log");
    let logged: Vec<&str> = said.err.lines().filter(|line| line.contains(" stormwake::")).collect();
    assert!(!logged.concat().contains("an-argument"), "a command's arguments stand in the plan and its report: {}", said.err);
    let level = |word: &str| logged.iter().filter(|line| line.contains(&format!(" {word} stormwake::"))).count();
    assert!(level("INFO") > 5 && level("DEBUG") > 5 && level("TRACE") > 5, "{}", said.err);
    let stamped = |line: &&&str| line.len() > 25 && line.as_bytes()[10] == b'T' && line.as_bytes()[23] == b'Z';
    assert_eq!(logged.iter().filter(stamped).count(), logged.len(), "{logged:#?}");

    let quiet = run(&["--quiet"]);
    assert!(quiet.err.is_empty(), "nobody asked: {}", quiet.err);
}

#[test]
fn the_simulator_says_its_events_and_its_report_is_the_same() {
    let folder = Folder::new("logging-sim");
    folder.write(
        "plan.yaml",
        "version: 1\nname: sim\nseed: 1\ntarget: { service: { servers: 2, service_time: 5ms } }\n\
         fleets:\n  app: { clients: 5, policy: { attempts: 2, timeout: 200ms }, load: { constant: { rate: 40/s } } }\n\
         timeline: [{ at: 1s, for: 1s, name: outage, fault: { refuse: {} } }]\nlength: 4s\n",
    );
    let args = ["simulate", "plan.yaml", "--seed", "1", "--json", "--out", "reports"];
    let (silent, loud) = (stormwake(&folder, &args), stormwake(&folder, &[&args[..], &["-vv"]].concat()));
    assert_eq!((silent.code, &silent.out), (loud.code, &loud.out), "a log changes nothing");
    assert!(silent.err.is_empty(), "{}", silent.err);
    assert!(loud.err.contains("a fault was applied at=1.000s fault=\"outage\""), "{}", loud.err);
    let by_variable = command(&folder, &args).env("STORMWAKE_LOG", "info").output().expect("the binary starts");
    assert!(String::from_utf8_lossy(&by_variable.stderr).contains("a fault was removed"));
}
