//! `/v1` of `stormwake proxy`: what each call answers, that the OpenAPI file says so, and leases.

use crate::plane::{Answer, Plane, listen_of};
use crate::proxy::{connect, get, named};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use stormwake::engine::live::plane::api::v1::{OPENAPI, ROUTES};
use stormwake::report::schema;

/// Longer than anything takes that happens at all.
const LONG: Duration = Duration::from_secs(10);

fn read(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"))
}

/// A proxy of requests on a free port; where it listens.
fn http(plane: &Plane, name: &str, upstream: SocketAddr) -> SocketAddr {
    let body = json!({ "name": name, "listen": "127.0.0.1:0", "upstream": upstream.to_string(), "protocol": "http" });
    listen_of(&plane.does("POST", "/v1/proxies", &body.to_string()))
}

fn under(plane: &Plane, lease: &str, method: &str, path: &str, body: &str) -> Answer {
    plane.ask_with(&format!("stormwake-lease: {lease}"), method, path, body)
}

fn lease(plane: &Plane, ttl: &str) -> String {
    let lease = read(&plane.does("POST", "/v1/leases", &json!({ "ttl": ttl }).to_string()));
    lease["id"].as_str().expect("a name").to_string()
}

/// Waits until something is so; how long that took.
fn until(what: &str, mut is: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < LONG, "not within {LONG:?}: {what}");
        std::thread::yield_now();
    }
    start.elapsed()
}

/// The status of the first answer on a connection.
fn status(addr: SocketAddr) -> u16 {
    use std::io::{Read, Write};
    let mut client = connect(addr);
    client.write_all(b"GET / HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n").expect("it reads");
    let mut head = [0; 12];
    client.read_exact(&mut head).expect("an answer");
    String::from_utf8_lossy(&head[9..]).parse().expect("a status")
}

#[test]
fn every_route_is_in_the_openapi_file_and_no_other() {
    let file = read(OPENAPI);
    let mut told = BTreeSet::new();
    for (path, item) in file["paths"].as_object().expect("paths") {
        let methods = item.as_object().expect("operations").keys().filter(|key| *key != "parameters");
        told.extend(methods.map(|method| (path.clone(), method.to_uppercase())));
    }
    let known = ROUTES.iter().flat_map(|(path, methods)| methods.iter().map(|method| (path.to_string(), method.to_string())));
    assert_eq!(told, known.collect());
    let plane = Plane::start(&[]);
    for (path, methods) in ROUTES {
        let path = path.replace(['{', '}'], "");
        for method in ["GET", "PUT", "POST", "PATCH", "DELETE"] {
            let (status, kind, _) = plane.ask(method, &path, "");
            assert_eq!(status == 405, !methods.contains(&method), "{method} {path}: {status}");
            assert!(status == 204 || kind == "application/json", "{method} {path}: {kind}");
        }
    }
    assert_eq!(plane.does("GET", "/v1/openapi.json", ""), OPENAPI);
}

/// `UPDATE_GOLDEN=1 cargo test` rewrites the part of the file that is made from the types.
#[test]
fn the_openapi_file_has_the_faults_that_are_read() {
    let mut fault = schema::proxy_fault();
    let defs = fault.as_object_mut().and_then(|fault| fault.remove("$defs")).expect("definitions");
    let name = |name: &str| name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "_").to_lowercase();
    let mut file = read(OPENAPI);
    let schemas = file["components"]["schemas"].as_object_mut().expect("schemas");
    // By hand are those that begin with a capital letter.
    schemas.retain(|name, _| name.starts_with(char::is_uppercase));
    schemas.insert("ProxyFault".into(), fault);
    schemas.extend(defs.as_object().expect("a map").iter().map(|(key, value)| (name(key), value.clone())));
    let text = serde_json::to_string_pretty(&file).expect("JSON") + "\n";
    let parts = text.split("\"#/$defs/");
    let moved = parts.enumerate().map(|(n, part)| match part.split_once('"') {
        Some((key, rest)) if n > 0 => format!("\"#/components/schemas/{}\"{rest}", name(key)),
        _ => part.to_string(),
    });
    let text: String = moved.collect();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine/live/plane/openapi.json");
        std::fs::write(path, text).expect("the file can be written");
    } else {
        assert!(text == OPENAPI, "openapi.json does not say what is read: UPDATE_GOLDEN=1 rewrites it");
    }
}

/// Whether a body is what the file says that an operation answers with this status, or takes where there is none.
fn check(method: &str, path: &str, status: Option<u16>, body: &str) {
    let file = read(OPENAPI);
    let parts: Vec<&str> = path.split('/').collect();
    let fits = |route: &&str| {
        let known: Vec<&str> = route.split('/').collect();
        known.len() == parts.len() && known.iter().zip(&parts).all(|(known, part)| known.starts_with('{') || known == part)
    };
    let route = ROUTES.iter().map(|(route, _)| *route).find(fits).unwrap_or_else(|| panic!("no route for {path}"));
    let mut pointer = format!("/paths/{}/{}", route.replace('/', "~1"), method.to_lowercase());
    pointer += &status.map_or("/requestBody".to_string(), |status| format!("/responses/{status}"));
    let mut told = file.pointer(&pointer).unwrap_or_else(|| panic!("the file lacks {method} {route} {status:?}")).clone();
    if let Some(reference) = told["$ref"].as_str() {
        told = file.pointer(reference.trim_start_matches('#')).expect("it is there").clone();
    }
    let mut schema = told["content"]["application/json"]["schema"].clone();
    if status == Some(204) {
        assert!(body.is_empty() && schema.is_null());
        return;
    }
    schema["components"] = file["components"].clone();
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let body = read(body);
    let errors: Vec<String> = validator.iter_errors(&body).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{method} {path} {status:?}: {body}\n{}", errors.join("\n"));
}

/// Calls in their order: method, path, body, status, and what the answer holds at some pointers.
type Row<'a> = (&'a str, &'a str, String, u16, Vec<(&'a str, Value)>);

fn table(upstream: SocketAddr) -> Vec<Row<'static>> {
    let new = |name: &str, more: &str| format!(r#"{{"name":"{name}","listen":"127.0.0.1:0","upstream":"{upstream}"{more}}}"#);
    let out = r#"{"fault":{"status":{"code":503,"share":"20%","retry_after":"2s"}}}"#;
    let none = String::new;
    let place = |place: &str| ("/error/place", json!(place));
    vec![
        ("GET", "/v1/proxies", none(), 200, vec![("", json!([]))]),
        (
            "POST",
            "/v1/proxies",
            new("pay", r#","protocol":"http""#),
            201,
            vec![("/protocol", json!("http")), ("/faults", json!({}))],
        ),
        ("POST", "/v1/proxies", new("pay", ""), 409, vec![place("name")]),
        (
            "POST",
            "/v1/proxies",
            new("raw", r#","enabled":false"#),
            201,
            vec![("/protocol", json!("tcp")), ("/enabled", json!(false))],
        ),
        ("POST", "/v1/proxies", new("x", r#","toxics":[]"#), 400, vec![place("toxics")]),
        ("POST", "/v1/proxies", "{}".into(), 400, vec![("/also/0/message", json!("`upstream` is missing: expected a text"))]),
        ("POST", "/v1/proxies", r#"{"name":"x","upstream":"nowhere"}"#.into(), 400, vec![place("upstream")]),
        ("POST", "/v1/proxies", r#"{"name":"x","upstream":"h:1","listen":"nowhere"}"#.into(), 400, vec![place("listen")]),
        ("POST", "/v1/proxies", r#"{"name":"x","upstream":"192.0.2.1:1"}"#.into(), 403, vec![place("upstream")]),
        ("GET", "/v1/proxies/pay", none(), 200, vec![("/counters/connections", json!(0)), ("/lease", Value::Null)]),
        ("GET", "/v1/proxies/nobody", none(), 404, vec![("/error/remedy", json!("GET /v1/proxies lists them"))]),
        ("PATCH", "/v1/proxies/raw", r#"{"enabled":true}"#.into(), 200, vec![("/enabled", json!(true))]),
        ("PATCH", "/v1/proxies/raw", r#"{"name":"new"}"#.into(), 400, vec![place("name")]),
        ("PUT", "/v1/proxies/pay/faults/out", out.into(), 201, vec![("/touched", json!(0)), ("/ends_in_ms", Value::Null)]),
        ("PUT", "/v1/proxies/pay/faults/out", out.into(), 200, vec![("/step/fault/status/code", json!("503"))]),
        (
            "PUT",
            "/v1/proxies/pay/faults/a%2Fb%20%C3%A4",
            r#"{"fault":"hang","for":"1m"}"#.into(),
            201,
            vec![("/name", json!("a/b ä"))],
        ),
        ("GET", "/v1/proxies/pay/faults/a%2Fb%20%C3%A4", none(), 200, vec![("/step/for", json!("1m"))]),
        ("GET", "/v1/proxies/pay/faults/none", none(), 404, vec![("/error/message", json!("fault not found"))]),
        ("GET", "/v1/proxies/pay/faults", none(), 200, vec![("/out/proxy", json!("pay"))]),
        ("PUT", "/v1/proxies/raw/faults/out", out.into(), 400, vec![place("fault")]),
        ("PUT", "/v1/proxies/pay/faults/x", r#"{"fault":{"status":{"code":99}}}"#.into(), 400, vec![place("fault.status")]),
        ("PATCH", "/v1/proxies/pay", r#"{"protocol":"tcp"}"#.into(), 400, vec![place("protocol")]),
        (
            "PUT",
            "/v1/faults",
            format!(r#"{{"raw":{{"a":{{"fault":"reset"}}}},"pay":{{"b":{out}}},"x":{{}}}}"#),
            404,
            vec![place("x")],
        ),
        ("PUT", "/v1/faults", format!(r#"{{"pay":{{}},"raw":{{"a":{out}}}}}"#), 400, vec![place("raw.a.fault")]),
        ("GET", "/v1/faults", none(), 200, vec![("/pay/out/name", json!("out")), ("/raw", json!({}))]),
        (
            "PUT",
            "/v1/faults",
            format!(r#"{{"raw":{{"a":{{"fault":"reset"}}}},"pay":{{"b":{out}}}}}"#),
            200,
            vec![("/raw/a/touched", json!(0))],
        ),
        ("GET", "/v1/proxies/pay/faults/out", none(), 404, vec![]),
        ("DELETE", "/v1/proxies/pay/faults/b", none(), 200, vec![("/name", json!("b"))]),
        ("DELETE", "/v1/proxies/pay/faults/b", none(), 404, vec![]),
        ("PUT", "/v1/proxies/raw/faults/a", r#"{"fault":"hang","time_scale":"1/20"}"#.into(), 200, vec![]),
        ("POST", "/v1/leases", none(), 201, vec![("/ttl", json!("5s")), ("/ttl_ms", json!(5000)), ("/holds", json!([]))]),
        ("POST", "/v1/leases", r#"{"ttl":"10ms"}"#.into(), 400, vec![place("ttl")]),
        ("POST", "/v1/leases", r#"{"ttl":"2h"}"#.into(), 400, vec![place("ttl")]),
        ("POST", "/v1/leases", r#"{"ttl":5}"#.into(), 400, vec![place("ttl")]),
        ("GET", "/v1/leases/gone", none(), 404, vec![place("lease")]),
        ("PUT", "/v1/leases/gone", none(), 404, vec![]),
        ("DELETE", "/v1/leases/gone", none(), 404, vec![]),
        ("GET", "/v1/leases", none(), 200, vec![("/0/ttl", json!("5s"))]),
        ("DELETE", "/v1/proxies/raw", none(), 204, vec![]),
        ("DELETE", "/v1/proxies/raw", none(), 404, vec![]),
    ]
}

#[test]
fn each_call_is_answered_as_the_table_and_the_openapi_file_say() {
    let (_server, upstream) = named("one");
    let plane = Plane::start(&[]);
    for (method, path, body, status, holds) in table(upstream) {
        let (got, kind, answer) = plane.ask(method, path, &body);
        assert_eq!(got, status, "{method} {path} {body}: {answer}");
        assert_eq!(kind, if status == 204 { "-" } else { "application/json" });
        check(method, path, Some(status), &answer);
        if status < 300 && !body.is_empty() {
            check(method, path, None, &body);
        }
        for (pointer, wanted) in holds {
            assert_eq!(read(&answer).pointer(pointer), Some(&wanted), "{method} {path} {body}: {pointer} of {answer}");
        }
        if status >= 400 {
            let wrong = read(&answer);
            let text = |key: &str| wrong["error"][key].as_str().expect("text").len();
            assert!(text("message") > 5 && text("remedy") > 5, "{answer}");
        }
    }
    for path in ["/v1", "/v1/", "/v1/proxies/", "/v1/proxies//faults", "/v1/proxies/pay/faults/", "/v1/nothing"] {
        let (status, kind, body) = plane.ask("GET", path, "");
        assert_eq!((status, kind.as_str()), (404, "application/json"), "{path}: {body}");
    }
}

#[test]
fn hostile_bodies_are_refused_and_change_nothing() {
    let (_server, upstream) = named("one");
    let plane = Plane::start(&[]);
    http(&plane, "p", upstream);
    let deep = format!(r#"{{"fault":{}1{}}}"#, "[".repeat(99), "]".repeat(99));
    let wide = format!(r#"{{"fault":[{}1]}}"#, "1,".repeat(100_000));
    let long = format!(r#"{{"fault":{{"status":{{"code":503,"body":"{}"}}}}}}"#, "x".repeat(100_000));
    let twice = r#"{"fault":"hang","fault":"reset"}"#.to_string();
    let unknown = format!(r#"{{"fault":{{"{}":1}}}}"#, "k".repeat(900));
    for body in [
        deep,
        wide,
        long,
        twice,
        unknown,
        "nul".into(),
        "&a [*a]".into(),
        "fault: hang".into(),
        "null".into(),
        "\"\\ud800".into(),
    ] {
        let (status, _, answer) = plane.ask("PUT", "/v1/proxies/p/faults/x", &body);
        assert_eq!(status, 400, "{answer}");
        check("PUT", "/v1/proxies/p/faults/x", Some(400), &answer);
        assert!(answer.len() < 4_000, "{}", answer.len());
    }
    let big = "x".repeat((1 << 20) + 1);
    let (status, kind, _) = plane.ask("PUT", "/v1/faults", &big);
    assert_eq!((status, kind.as_str()), (413, "application/json"));
    let long = "n".repeat(201);
    assert_eq!(plane.ask("PUT", &format!("/v1/proxies/p/faults/{long}"), r#"{"fault":"hang"}"#).0, 400);
    let many: Map<String, Value> = (0..101).map(|n| (n.to_string(), json!({ "fault": "hang" }))).collect();
    assert_eq!(plane.ask("PUT", "/v1/faults", &json!({ "p": many }).to_string()).0, 400);
    assert_eq!(read(&plane.does("GET", "/v1/faults", "")), json!({ "p": {} }));
}

#[test]
fn a_fault_strikes_what_is_connected_is_counted_and_ends_by_itself() {
    let (_server, upstream) = named("one");
    let plane = Plane::start(&[]);
    let addr = http(&plane, "p", upstream);
    let mut client = connect(addr);
    assert_eq!(get(&mut client, 3).expect("an answer"), "one");
    let start = Instant::now();
    plane.does("PUT", "/v1/proxies/p/faults/out", r#"{"fault":{"status":{"code":503,"body":"out"}},"for":"700ms"}"#);
    assert_eq!(get(&mut client, 3).expect("an answer"), "out");
    let shown = read(&plane.does("GET", "/v1/proxies/p", ""));
    assert_eq!((&shown["faults"]["out"]["touched"], &shown["counters"]["requests"]), (&json!(1), &json!(2)), "{shown}");
    assert_eq!((&shown["counters"]["connections"], &shown["counters"]["connected"]), (&json!(1), &json!(1)), "{shown}");
    until("the end of the fault", || get(&mut client, 3).expect("an answer") == "one");
    assert!(
        start.elapsed() >= Duration::from_millis(700) && start.elapsed() < Duration::from_millis(1_500),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(read(&plane.does("GET", "/v1/faults", "")), json!({ "p": {} }));
    plane.does("PUT", "/v1/proxies/p/faults/out", r#"{"fault":{"status":{"code":503}}}"#);
    assert_eq!(status(addr), 503);
    let gone = read(&plane.does("DELETE", "/v1/proxies/p/faults/out", ""));
    assert_eq!((&gone["touched"], status(addr)), (&json!(1), 200), "{gone}");
    plane.does("PUT", "/v1/proxies/p/faults/out", r#"{"fault":{"status":{"code":503}}}"#);
    plane.does("POST", "/reset", "");
    assert_eq!(status(addr), 200, "a reset takes faults out too");
}

#[test]
fn what_is_changed_under_a_lease_is_undone_when_it_ends() {
    let (_server, upstream) = named("one");
    let plane = Plane::start(&[]);
    let addr = http(&plane, "p", upstream);
    plane.does("POST", "/proxies/p/toxics", r#"{"name":"slow","type":"latency","attributes":{"latency":1}}"#);
    plane.does("PUT", "/v1/proxies/p/faults/kept", r#"{"fault":{"latency":{"add":"1ms"}}}"#);
    let before = |plane: &Plane| {
        (plane.does("GET", "/proxies", ""), read(&plane.does("GET", "/v1/faults", ""))["p"]["kept"]["step"].clone())
    };
    let was = before(&plane);
    let one = lease(&plane, "1m");
    for (method, path, body) in [
        ("POST", "/proxies/p/toxics", r#"{"type":"noop"}"#),
        ("POST", "/proxies/p/toxics/slow", r#"{"attributes":{"latency":2}}"#),
        ("POST", "/proxies/p/toxics/slow", r#"{"attributes":{"latency":3}}"#),
        ("PUT", "/v1/proxies/p/faults/out", r#"{"fault":{"status":{"code":503}}}"#),
        ("PUT", "/v1/proxies/p/faults/kept", r#"{"fault":{"latency":{"add":"2ms"}}}"#),
        ("POST", "/proxies/p", r#"{"enabled":false}"#),
        ("PATCH", "/v1/proxies/p", r#"{"enabled":true}"#),
        ("PATCH", "/v1/proxies/p", r#"{"enabled":false}"#),
        ("POST", "/proxies", r#"{"name":"more","upstream":"127.0.0.1:9"}"#),
    ] {
        let (status, _, said) = under(&plane, &one, method, path, body);
        assert!((200..300).contains(&status), "{method} {path} {body}: {said}");
    }
    let held = read(&plane.does("GET", &format!("/v1/leases/{one}"), ""))["holds"].clone();
    let all = ["more", "p/enabled", "p/toxics/slow", "p/toxics/noop_downstream", "p/faults/kept", "p/faults/out"];
    assert_eq!(held, json!(all));
    assert_eq!(read(&plane.does("GET", "/v1/proxies/p", ""))["lease"], json!(one));
    let two = lease(&plane, "1m");
    for (method, path, body) in [
        ("DELETE", "/proxies/p/toxics/slow", ""),
        ("PATCH", "/v1/proxies/p", r#"{"enabled":true}"#),
        ("PUT", "/v1/proxies/p/faults/out", r#"{"fault":"hang"}"#),
        ("DELETE", "/v1/proxies/p/faults/out", ""),
        ("PUT", "/v1/faults", "{}"),
    ] {
        let (status, _, said) = under(&plane, &two, method, path, body);
        assert!(status == 409 && said.contains(&one), "{method} {path}: {status} {said}");
    }
    let (status, _, said) = under(&plane, &two, "PATCH", "/v1/proxies/p", r#"{"listen":"127.0.0.1:0"}"#);
    assert!(status == 400 && said.contains("Stormwake-Lease"), "{said}");
    assert!(std::net::TcpStream::connect(addr).is_err());
    plane.does("DELETE", &format!("/v1/leases/{one}"), "");
    assert_eq!(before(&plane), was);
    assert_eq!(self::status(addr), 200);
    let (status, _, said) = under(&plane, &one, "POST", "/proxies/p/toxics", r#"{"type":"noop"}"#);
    assert!(status == 412 && said.contains("has ended"), "{said}");
    assert_eq!(under(&plane, &one, "PUT", "/v1/proxies/p/faults/x", r#"{"fault":"hang"}"#).0, 412);
    assert_eq!(under(&plane, &one, "DELETE", "/v1/proxies/p", "").0, 412);
}

#[test]
fn somebody_without_a_lease_may_put_right_what_one_holds() {
    let (_server, upstream) = named("one");
    let plane = Plane::start(&[]);
    http(&plane, "p", upstream);
    let one = lease(&plane, "1m");
    under(&plane, &one, "PATCH", "/v1/proxies/p", r#"{"enabled":false}"#);
    under(&plane, &one, "PUT", "/v1/proxies/p/faults/out", r#"{"fault":"hang"}"#);
    plane.does("PATCH", "/v1/proxies/p", r#"{"enabled":true}"#);
    plane.does("PATCH", "/v1/proxies/p", r#"{"enabled":false}"#);
    plane.does("PUT", "/v1/proxies/p/faults/out", r#"{"fault":"reset"}"#);
    plane.does("DELETE", &format!("/v1/leases/{one}"), "");
    let left = read(&plane.does("GET", "/v1/proxies/p", ""));
    assert_eq!((&left["enabled"], &left["faults"]), (&json!(false), &json!({})), "{left}");
}

/// Nothing but time ends it: the only traffic is a connection that the fault holds, and that goes on when it is over.
#[test]
fn a_lease_ends_at_its_time_without_traffic_and_is_kept_by_renewals() {
    let (_server, upstream) = named("one");
    let plane = Plane::start(&[]);
    let addr = http(&plane, "p", upstream);
    let mut late = Vec::new();
    // Three tries: what else the machine does for a moment must not decide.
    for _ in 0..3 {
        let id = lease(&plane, "1s");
        let begun = Instant::now();
        let (status, ..) = under(&plane, &id, "PUT", "/v1/proxies/p/faults/out", r#"{"fault":{"hang":{"release":true}}}"#);
        assert_eq!(status, 201);
        assert_eq!(get(&mut connect(addr), 3).expect("it goes on when the fault ends"), "one");
        let took = begun.elapsed();
        assert!(took > Duration::from_millis(950), "{took:?}");
        late.push(took.saturating_sub(Duration::from_secs(1)));
        assert_eq!(plane.ask("PUT", &format!("/v1/leases/{id}"), "").0, 404, "what has ended is not renewed");
    }
    assert!(late.iter().any(|late| *late < Duration::from_millis(50)), "{late:?}");
    let id = lease(&plane, "1s");
    under(&plane, &id, "PUT", "/v1/proxies/p/faults/out", r#"{"fault":{"status":{"code":503}}}"#);
    let start = Instant::now();
    until("two of its times, renewed", || {
        plane.does("PUT", &format!("/v1/leases/{id}"), "");
        assert_eq!(status(addr), 503);
        start.elapsed() > Duration::from_millis(2_200)
    });
    until("its end", || status(addr) == 200);
    assert_eq!(read(&plane.does("GET", "/v1/leases", "")), json!([]));
    for _ in 0..1_000 {
        plane.does("POST", "/v1/leases", "");
    }
    assert_eq!(plane.ask("POST", "/v1/leases", "").0, 429, "they are bounded");
}

/// A fault of `/v1` says which requests it strikes, and when, as a plan does.
#[test]
fn a_fault_chooses_its_requests_and_rests_as_in_a_plan() {
    let (_server, upstream) = named("one");
    let plane = Plane::start(&[]);
    let addr = http(&plane, "p", upstream);
    let put = |name: &str, body: &str| plane.does("PUT", &format!("/v1/proxies/p/faults/{name}"), body);
    put("other", r#"{"fault":{"status":{"code":500}},"match":{"path":"/pay*"}}"#);
    put("third", r#"{"fault":{"status":{"code":503}},"match":{"path":"/"},"every":3}"#);
    let answers: Vec<u16> = (0..6).map(|_| status(addr)).collect();
    assert_eq!(answers, [200, 200, 503, 200, 200, 503]);
    plane.does("DELETE", "/v1/proxies/p/faults/other", "");
    put("late", r#"{"fault":{"status":{"code":502}},"match":{"path":"/","header":{"host":"t"}}}"#);
    let answers: Vec<u16> = (0..3).map(|_| status(addr)).collect();
    assert_eq!(answers, [502, 502, 503], "what stays counts on, and what is new looks at heads too");
    plane.does("PUT", "/v1/faults", r#"{"p":{"flaps":{"fault":{"status":{"code":503}},"flap":{"on":"100ms","off":"100ms"}}}}"#);
    for _ in 0..3 {
        until("it acts", || status(addr) == 503);
        until("it rests", || status(addr) == 200);
    }
    let many = |n: usize| {
        let one = |n: usize| (n.to_string(), json!({ "fault": "hang", "match": { "path": format!("/{n}") } }));
        json!({ "p": (0..n).map(one).collect::<Map<_, _>>() }).to_string()
    };
    assert_eq!((plane.ask("PUT", "/v1/faults", &many(64)).0, plane.ask("PUT", "/v1/faults", &many(65)).0), (200, 400));
    let raw = r#"{"name":"raw","upstream":"127.0.0.1:9"}"#;
    plane.does("POST", "/v1/proxies", raw);
    for (proxy, body, place) in [
        ("raw", r#"{"fault":"hang","every":2}"#, "fault"),
        ("raw", r#"{"fault":{"reset":{"when":"after"}}}"#, "fault"),
        ("p", r#"{"fault":"refuse","every":2}"#, "every"),
        ("p", r#"{"fault":"hang","flap":{"on":"1ms","off":"1s"}}"#, "flap"),
        ("p", r#"{"fault":"hang","for":"1s","ramp":{"in":"2s"}}"#, "ramp"),
        ("p", r#"{"fault":"hang","repeat":{"every":"2s","times":2}}"#, "repeat"),
    ] {
        let (status, _, said) = plane.ask("PUT", &format!("/v1/proxies/{proxy}/faults/x"), body);
        assert_eq!((status, &read(&said)["error"]["place"]), (400, &json!(place)), "{body}: {said}");
    }
}
