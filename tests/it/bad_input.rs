//! Bad input of every kind: the right exit code, one clear message, no panic.

use crate::support::{BINARY, Folder, Said, Server, command, read_head, shared, stormwake};
use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Stdio};

/// A plan that is good; each case spoils one thing.
const GOOD: &str = "\
version: 1
name: good
target:
  url: 'http://127.0.0.1:1/'
policies:
  app: { attempts: 2, timeout: 200ms, backoff: { fixed: { delay: 50ms } } }
fleets:
  app: { clients: 4, policy: app, load: { constant: { rate: 20/s } } }
steady_state: { for: 1s }
timeline:
  - { at: 1s, for: 500ms, name: outage, fault: { blackhole: {} } }
recovery: { after: outage, within: 1s, hold: 1s }
gates:
  - { amplification: '<= 3x' }
length: 4s
";

/// What is spoiled, how, and what must be said of it.
struct Case {
    name: &'static str,
    from: &'static str,
    to: &'static str,
    says: &'static [&'static str],
}

const fn case(name: &'static str, from: &'static str, to: &'static str, says: &'static [&'static str]) -> Case {
    Case { name, from, to, says }
}

const PLANS: &[Case] = &[
    case("unknown top-level key", "gates:", "gatse:", &[":13:1", "gatse", "gates"]),
    case("unknown policy key", "timeout: 200ms", "timout: 200ms", &[":6:", "timout", "timeout"]),
    case("unknown fault", "blackhole: {}", "blackhle: {}", &[":11:", "blackhle", "blackhole"]),
    case("unknown load", "constant:", "konstant:", &[":8:", "konstant", "constant"]),
    case("unknown backoff", "fixed:", "fixd:", &["fixd", "fixed"]),
    case("unknown figure", "amplification:", "amplificaton:", &[":14:", "amplification"]),
    case("unknown policy name", "policy: app", "policy: ap", &[":8:", "`ap`", "app"]),
    case("unknown step", "after: outage", "after: outge", &[":12:", "outge", "outage"]),
    case("missing version", "version: 1\n", "", &["version", "missing"]),
    case("future version", "version: 1", "version: 2", &[":1:", "version"]),
    case("missing target", "target:\n  url: 'http://127.0.0.1:1/'\n", "", &["target", "missing"]),
    case(
        "missing fleets",
        "fleets:\n  app: { clients: 4, policy: app, load: { constant: { rate: 20/s } } }\n",
        "",
        &["fleets", "missing"],
    ),
    case("missing length", "length: 4s\n", "", &["length", "missing"]),
    case("missing timeout", "timeout: 200ms, ", "", &["timeout", "missing"]),
    case("duration without unit", "timeout: 200ms", "timeout: 200", &[":6:", "unit", "200s"]),
    case("duration in M", "length: 4s", "length: 4M", &[":15:", "`m`"]),
    case("rate without unit", "rate: 20/s", "rate: 20", &[":8:", "20/s"]),
    case("negative rate", "rate: 20/s", "rate: -20/s", &[":8:", "rate"]),
    case("both rates", "rate: 20/s", "rate: 20/s, each: 1/s", &["rate", "each"]),
    case("no rate", "{ rate: 20/s }", "{}", &["rate"]),
    case("no clients", "clients: 4", "clients: 0", &[":8:", "clients"]),
    case("too many clients", "clients: 4", "clients: 99999999999", &[":8:"]),
    case("clients as text", "clients: 4", "clients: four", &[":8:", "whole number", "four"]),
    case("no attempts", "attempts: 2", "attempts: 0", &[":6:", "attempts"]),
    case("zero timeout", "timeout: 200ms", "timeout: 0", &["timeout"]),
    case("list for map", "target:\n  url: 'http://127.0.0.1:1/'", "target:\n  - url", &["map", "list"]),
    case("map for list", "timeline:\n  - { at", "timeline:\n  { at", &["list"]),
    case("text for map", "steady_state: { for: 1s }", "steady_state: soon", &[":9:", "map"]),
    case("two faults in one step", "{ blackhole: {} }", "{ blackhole: {}, hang: {} }", &[":11:", "exactly one"]),
    case("comparison without operator", "'<= 3x'", "'3x'", &[":14:", "comparison"]),
    case("comparison in another unit", "'<= 3x'", "'<= 5%'", &[":14:", "amplification"]),
    case("share without unit", "blackhole: {}", "blackhole: { share: 0.5 }", &[":11:", "50%"]),
    case("share above all", "blackhole: {}", "blackhole: { share: 150% }", &[":11:", "100%"]),
    case("status out of range", "{ blackhole: {} }", "{ status: { code: 99 } }", &[":11:", "99"]),
    case("retry on nothing known", "attempts: 2,", "attempts: 2, retry_on: [timeouts],", &[":6:", "timeouts"]),
    case("budget without tier", "attempts: 2,", "attempts: 2, budget: { ratio: 10% },", &[":6:", "tier"]),
    case("step beyond the end", "at: 1s", "at: 10s", &[":11:", "length"]),
    case("no room for the baseline", "steady_state: { for: 1s }", "steady_state: { for: 3s }", &["steady_state"]),
    case("bad scheme", "http://127", "ftp://127", &[":4:", "http"]),
    case("url without host", "'http://127.0.0.1:1/'", "'http:///x'", &[":4:", "host"]),
    case("bad method", "target:\n", "target:\n  method: 'GE T'\n", &["method"]),
    case("bad header name", "target:\n", "target:\n  headers: { 'a b': c }\n", &["header"]),
    case("url and service", "target:\n", "target:\n  service: { servers: 1, service_time: 1ms }\n", &["url", "service"]),
    case("zero servers", "url: 'http://127.0.0.1:1/'", "service: { servers: 0, service_time: 1ms }", &["servers"]),
    case(
        "p50 above p99",
        "url: 'http://127.0.0.1:1/'",
        "service: { servers: 1, service_time: { p50: 9ms, p99: 1ms } }",
        &["p99"],
    ),
    case("duplicate key", "name: good", "name: good\nname: again", &[":3:", "name", "twice"]),
    case("a name that is a path", "name: good", "name: ../../etc", &[":2:", "name"]),
    case("missing variable", "127.0.0.1:1/", "${STORMWAKE_TEST_NOWHERE}/", &[":4:", "STORMWAKE_TEST_NOWHERE"]),
    case(
        "missing variable with a message",
        "'http://127.0.0.1:1/'",
        "'${STORMWAKE_TEST_NOWHERE:?say where}'",
        &[":4:", "say where"],
    ),
    case("unclosed bracket", "{ for: 1s }", "{ for: 1s", &["bad.yaml:"]),
    case("unclosed quote", "'http://127.0.0.1:1/'", "'http://127.0.0.1:1/", &["bad.yaml:"]),
    case("tab for indentation", "  url:", "\turl:", &["bad.yaml:"]),
    case("unknown alias", "policy: app", "policy: *app", &["app"]),
    case("gate during nothing", "'<= 3x' }", "'<= 3x', during: nothing }", &[":14:", "nothing"]),
    case("gate of no fleet", "'<= 3x' }", "'<= 3x', fleet: nobody }", &[":14:", "nobody"]),
    case("unknown class", "length: 4s", "expect: { class: FINE }\nlength: 4s", &["FINE", "RECOVERED"]),
    case("compare nothing", "length: 4s", "compare: {}\nlength: 4s", &["fleet", "reference", "candidates", "missing"]),
    case(
        "compare an unknown policy",
        "length: 4s",
        "compare: { fleet: app, reference: app, candidates: [ap] }\nlength: 4s",
        &[":15:", "`ap`", "app"],
    ),
    case(
        "compare a policy with itself",
        "length: 4s",
        "compare: { fleet: app, reference: app, candidates: [app] }\nlength: 4s",
        &[":15:", "reference"],
    ),
    case("a share of no seeds", "amplification: '<= 3x'", "recovered: '<= 95% of seeds'", &[":14:", ">= 95% of seeds"]),
    case(
        "a budget of two kinds",
        "attempts: 2,",
        "attempts: 2, budget: { ratio: 10%, bucket: { deposit: 10%, burst: 5 }, tier: fleet },",
        &[":6:", "bucket", "ratio"],
    ),
    case(
        "a spike after the end",
        "constant: { rate: 20/s }",
        "spike: { rate: 9/s, peak: 30/s, at: 1m, for: 5s }",
        &[":8:", "1m"],
    ),
    case("unknown network", "policies:", "network: moon\npolicies:", &[":5:", "moon", "loopback"]),
    case("a length of days", "length: 4s", "length: 900h", &[":15:", "length"]),
];

fn check_message(name: &str, said: &Said, code: i32, says: &[&str]) {
    assert_eq!(said.code, Some(code), "{name}: {said:#?}");
    assert!(!said.err.contains("panicked"), "{name}: {said:#?}");
    for word in says {
        assert!(said.err.contains(word), "{name}: stderr does not say `{word}`:\n{}", said.err);
    }
}

#[test]
fn the_plan_that_the_cases_spoil_is_good() {
    let folder = Folder::new("good");
    let said = stormwake(&folder, &["check", folder.write("good.yaml", GOOD).to_str().expect("UTF-8")]);
    assert_eq!(said.code, Some(0), "{said:#?}");
}

#[test]
fn every_spoiled_plan_is_refused_with_its_place_and_a_remedy() {
    let folder = Folder::new("spoiled");
    for case in PLANS {
        assert!(GOOD.contains(case.from), "{}: nothing to spoil", case.name);
        folder.write("bad.yaml", GOOD.replacen(case.from, case.to, 1));
        for verb in ["check", "run"] {
            check_message(case.name, &stormwake(&folder, &[verb, "bad.yaml"]), 2, case.says);
        }
    }
}

#[test]
fn hostile_files_are_refused_in_bounded_time() {
    let folder = Folder::new("hostile");
    let bomb: String = (1..40).fold("a0: &a0 [x]\n".to_string(), |s, i| {
        let before = format!("*a{}", i - 1);
        s + &format!("a{i}: &a{i} [{}]\n", [before.as_str(); 9].join(","))
    });
    let files: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("only a comment", b"# nothing\n".to_vec()),
        ("not UTF-8", vec![0x66, 0xff, 0xfe, 0x00]),
        ("null bytes", b"version: 1\0\n".to_vec()),
        ("alias bomb", bomb.into_bytes()),
        ("deep nesting", format!("version: {}1{}", "[".repeat(5000), "]".repeat(5000)).into_bytes()),
        ("a huge scalar", format!("version: '{}'", "x".repeat(3_000_000)).into_bytes()),
        ("a million keys", (0..1_000_000).map(|i| format!("k{i}: 1\n")).collect::<String>().into_bytes()),
        ("two documents", format!("{GOOD}---\n{GOOD}").into_bytes()),
        ("a list", b"- version: 1\n".to_vec()),
        ("a word", b"hello\n".to_vec()),
    ];
    for (name, bytes) in files {
        folder.write("hostile.yaml", bytes);
        check_message(name, &stormwake(&folder, &["check", "hostile.yaml"]), 2, &["hostile.yaml"]);
    }
}

#[test]
fn bad_usage_is_told() {
    let folder = Folder::new("usage");
    folder.write("good.yaml", GOOD);
    let cases: &[(&[&str], &[&str])] = &[
        (&["run"], &["PLAN"]),
        (&["rnu", "good.yaml"], &["rnu"]),
        (&["run", "nowhere.yaml"], &["nowhere.yaml"]),
        (&["run", "."], &["directory"]),
        (&["run", "good.yaml", "--sett", "a=b"], &["--sett"]),
        (&["run", "good.yaml", "--set", "length"], &["--set", "="]),
        (&["run", "good.yaml", "--set", "lenght=9s"], &["--set", "lenght", "length"]),
        (&["run", "good.yaml", "--set", "length=nine"], &["--set", "nine"]),
        (&["run", "good.yaml", "--set", "timeline.outge.for=1s"], &["--set", "outge", "outage"]),
        (&["run", "good.yaml", "--seed", "many"], &["--seed"]),
        (&["init", "--template", "none", "x.yaml"], &["none"]),
    ];
    for (args, says) in cases {
        check_message(&args.join(" "), &stormwake(&folder, args), 2, says);
    }
}

/// Runs the good plan against a URL.
fn run_against(folder: &Folder, url: &str, args: &[&str]) -> Said {
    let plan = GOOD.replace("http://127.0.0.1:1/", url);
    folder.write("live.yaml", plan);
    stormwake(folder, &[&["run", "live.yaml"], args].concat())
}

#[test]
fn a_target_elsewhere_is_refused_by_the_guard() {
    let folder = Folder::new("guard");
    // Documentation addresses (RFC 5737): refused before anything is dialled.
    for (url, says) in [("http://192.0.2.1/", "192.0.2.1"), ("http://[2001:db8::1]/", "2001:db8::1")] {
        check_message(url, &run_against(&folder, url, &[]), 5, &[says, "allow", "--approve"]);
    }
    check_message("approved, not allowed", &run_against(&folder, "http://192.0.2.1/", &["--approve"]), 5, &["allow"]);
}

#[test]
fn an_unknown_host_is_an_environment_error() {
    let folder = Folder::new("unknown-host");
    let said =
        run_against(&folder, "http://stormwake-test.invalid/", &["--set", "target.allow=[stormwake-test.invalid]", "--approve"]);
    check_message("unknown host", &said, 6, &["stormwake-test.invalid"]);
}

#[test]
fn a_target_that_is_down_or_broken_is_no_healthy_baseline() {
    let folder = Folder::new("broken-targets");
    let _machine = shared();
    let unused = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let huge = format!("HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\n{}", "x".repeat(4_000_000));
    let servers: Vec<(&str, Server)> = vec![
        ("garbage", Server::answering(*b"\x00\xff\x17 this is not HTTP at all\r\n\r\n")),
        ("a body above the bound", Server::answering(huge)),
        (
            "a head without end",
            Server::start(|mut stream| {
                let _ = read_head(&mut stream);
                while stream.write_all(&[b'x'; 4096]).is_ok() {}
            }),
        ),
        ("closes at once", Server::start(drop)),
        ("a contradictory length", Server::answering(*b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 9\r\n\r\nhello")),
        (
            "half a chunk",
            Server::start(|mut stream| {
                let _ = read_head(&mut stream);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\nabc");
            }),
        ),
        (
            "a trickle",
            Server::start(|mut stream| {
                let _ = read_head(&mut stream);
                for byte in b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok" {
                    if stream.write_all(&[*byte]).is_err() {
                        return;
                    }
                    std::thread::sleep(std::time::Duration::from_millis(50));
                }
            }),
        ),
        ("never a word", Server::start(|mut stream| while read_head(&mut stream).is_some() {})),
        ("a failure each time", Server::answering(*b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")),
    ];
    check_message("nobody listens", &run_against(&folder, &format!("http://{unused}/"), &["--quiet"]), 3, &[]);
    std::thread::scope(|scope| {
        for (number, (name, server)) in servers.iter().enumerate() {
            scope.spawn(move || {
                let folder = Folder::new(&format!("broken-target-{number}"));
                check_broken_target(name, &run_against(&folder, &server.url(), &["--json", "--quiet"]));
            });
        }
    });
}

fn check_broken_target(name: &str, said: &Said) {
    check_message(name, said, 3, &[]);
    let result = said.result();
    assert_eq!(result["outcome"], "inconclusive", "{name}");
    let totals = &result["totals"];
    let count = |key: &str| totals[key].as_u64().unwrap_or_else(|| panic!("{name}: {key} of {totals}"));
    let ended = ["succeeded", "failed", "unresolved", "refused", "dropped"].map(count).iter().sum::<u64>();
    assert_eq!(count("operations"), ended, "{name}: the books: {totals}");
}

#[test]
fn results_that_cannot_be_written_are_told_before_the_run() {
    let folder = Folder::new("unwritable");
    folder.write("good.yaml", GOOD);
    folder.write("file", "not a folder");
    check_message("a file for a folder", &stormwake(&folder, &["run", "good.yaml", "--out", "file"]), 6, &["file"]);
    check_message("no such device", &stormwake(&folder, &["run", "good.yaml", "--out", "/proc/nowhere"]), 6, &["/proc/nowhere"]);
}

#[test]
fn a_full_disk_is_told() {
    let folder = Folder::new("full-disk");
    folder.write("good.yaml", GOOD);
    // `ulimit -f 0` lets no file grow, as a full disk does: EFBIG for ENOSPC, SIGXFSZ ignored.
    let script = format!("trap '' XFSZ; ulimit -f 0; exec '{BINARY}' run good.yaml --quiet");
    let said: Said = Command::new("bash").args(["-c", &script]).current_dir(folder.path()).output().expect("bash starts").into();
    check_message("no file may grow", &said, 6, &["reports"]);
}

#[test]
fn too_few_file_descriptors_are_told_before_the_run() {
    let folder = Folder::new("descriptors");
    folder.write("many.yaml", GOOD.replace("clients: 4", "clients: 400"));
    let script = format!("ulimit -n 256; exec '{BINARY}' run many.yaml");
    let said: Said = Command::new("bash").args(["-c", &script]).current_dir(folder.path()).output().expect("bash starts").into();
    check_message("ulimit -n 256", &said, 6, &["256", "ulimit -n"]);
}

#[test]
fn a_port_in_use_is_told() {
    let folder = Folder::new("port");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = taken.local_addr().expect("an address").to_string();
    let said = stormwake(&folder, &["target", "--servers", "1", "--service-time", "1ms", "--listen", &addr]);
    check_message("port in use", &said, 6, &[&addr]);
    assert_eq!(said.err.matches("os error").count(), 1, "once is enough: {}", said.err);
}

#[test]
fn a_closed_stdout_is_no_error() {
    let folder = Folder::new("closed-pipe");
    folder.write("good.yaml", GOOD);
    for args in [&["schema"][..], &["check", "good.yaml"], &["--help"]] {
        let mut child = command(&folder, args).stdout(Stdio::piped()).spawn().expect("the binary starts");
        drop(child.stdout.take());
        let said: Said = child.wait_with_output().expect("it ends").into();
        check_message(&args.join(" "), &said, 0, &[]);
    }
}

#[test]
fn lost_output_is_an_error() {
    let folder = Folder::new("dev-full");
    folder.write("good.yaml", GOOD);
    for args in [&["schema"][..], &["check", "good.yaml"], &["check", "good.yaml", "--json"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
        let said: Said = command(&folder, args).stdout(full).output().expect("the binary starts").into();
        check_message(&args.join(" "), &said, 6, &["stdout"]);
    }
}
