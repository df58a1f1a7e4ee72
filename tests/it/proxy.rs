//! `stormwake proxy` as a process: what it serves, what its API changes, and how it ends.

use crate::plane::{Plane, listen_of};
use crate::support::{Folder, Server, alone, read_head, shared, stormwake};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Longer than anything takes that happens at all.
const LONG: Duration = Duration::from_secs(10);
/// As long as a call may take.
const SOON: Duration = Duration::from_millis(50);

/// A service that answers each request with its name.
pub fn named(name: &str) -> (Server, SocketAddr) {
    let server = Server::answering(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{name}", name.len()));
    let addr = server.url().trim_start_matches("http://").trim_end_matches('/').parse().expect("an address");
    (server, addr)
}

pub fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).expect("it listens");
    stream.set_read_timeout(Some(LONG)).expect("a socket");
    stream
}

/// Sends a request and gives the last bytes of the answer.
pub fn get(stream: &mut TcpStream, length: usize) -> std::io::Result<String> {
    stream.write_all(b"GET / HTTP/1.1\r\nhost: t\r\n\r\n")?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(String::from_utf8(body).expect("text"))
}

fn is_closed(mut stream: TcpStream) -> bool {
    let end = stream.read(&mut [0; 16]);
    matches!(&end, Ok(0)) || end.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
}

#[test]
fn pairs_and_files_are_served_and_announced() {
    let (_one, one) = named("one");
    let (_two, two) = named("two");
    let folder = Folder::new("proxy-config");
    let yaml = format!(
        "- {{ name: b, listen: '127.0.0.1:0', upstream: '{two}' }}\n- {{ name: off, upstream: '{two}', enabled: false }}\n"
    );
    let file = folder.write("proxies.yaml", yaml);
    let upstream = format!("http://{one}");
    let plane = Plane::start(&["--listen", "127.0.0.1:0", "--upstream", &upstream, "--config", file.to_str().expect("text")]);
    let shown: Vec<&str> = plane.said.iter().map(|line| line.split(": ").next().expect("a part")).collect();
    assert_eq!(shown[..3], ["proxy b", "proxy off", "proxy proxy-1"], "{:?}", plane.said);
    assert!(plane.said[1].ends_with("(tcp, disabled)") && plane.said[2].ends_with("(http)"), "{:?}", plane.said);
    let listen = |path: &str| listen_of(&plane.does("GET", path, ""));
    assert_eq!(get(&mut connect(listen("/proxies/proxy-1")), 3).expect("an answer"), "one");
    assert_eq!(get(&mut connect(listen("/proxies/b")), 3).expect("an answer"), "two");
    assert!(TcpStream::connect(listen("/proxies/off")).is_err());
    plane.does("POST", "/reset", "");
    assert_eq!(get(&mut connect(listen("/proxies/off")), 3).expect("an answer"), "two");
}

#[test]
fn what_is_wrong_ends_it_with_its_code_and_a_remedy() {
    let folder = Folder::new("proxy-wrong");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let held = TcpListener::bind(taken).expect("it is free again");
    let json = |more: &str| format!(r#"[{{"name": "a", "listen": "{taken}", "upstream": "127.0.0.1:1"{more}}}]"#);
    folder.write("taken.json", json(""));
    folder.write("toxic.json", json(r#", "toxics": [{"type": "slicer"}]"#));
    folder.write("far.yaml", "- name: a\n  upstream: 192.0.2.1:80\n");
    folder.write("key.yaml", "- name: a\n  upstrem: h:80\n");
    let taken = taken.to_string();
    for (args, code, parts) in [
        (vec!["--listen", "127.0.0.1:0"], 2, vec!["1 `--listen` and 0 `--upstream`"]),
        (vec!["--api", "none"], 2, vec!["nothing to do"]),
        (vec!["--api", "nowhere"], 2, vec!["such as 127.0.0.1:8474, or `none`"]),
        (vec!["--listen", "x", "--upstream", "h:1"], 2, vec!["--listen: listen tcp: address x: missing port", "write it like"]),
        (vec!["--listen", ":0", "--upstream", "ftp://h:1"], 2, vec!["--upstream: invalid upstream: ftp:// is not spoken"]),
        (vec!["--listen", "0.0.0.0:0", "--upstream", "127.0.0.1:1"], 5, vec!["not loopback", "--expose"]),
        (vec!["--listen", ":0", "--upstream", "192.0.2.1:80"], 5, vec!["--upstream: refused: 192.0.2.1", "--allow 192.0.2.1"]),
        (vec!["--api", "0.0.0.0:0"], 5, vec!["--expose"]),
        (vec!["--api", &taken], 6, vec!["cannot listen on", "--api"]),
        (vec!["--listen", &taken, "--upstream", "h:1"], 6, vec!["bind: address already in use", "choose another port"]),
        (vec!["--config", "taken.json"], 6, vec!["taken.json:1:26: error: listen tcp", "choose another port"]),
        (vec!["--config", "toxic.json"], 2, vec!["toxic.json:1:", "attribute average_size of slicer: expected 1"]),
        (vec!["--config", "far.yaml"], 5, vec!["far.yaml:2:13", "--allow 192.0.2.1"]),
        (vec!["--config", "key.yaml"], 2, vec!["key.yaml:2:3", "did you mean `upstream`?"]),
        (vec!["--config", "none.yaml"], 2, vec!["none.yaml"]),
    ] {
        let api = if args.contains(&"--api") { vec![] } else { vec!["--api", "127.0.0.1:0"] };
        let said = stormwake(&folder, &[vec!["proxy"], api, args.clone()].concat());
        assert_eq!(said.code, Some(code), "{args:?}: {said:#?}");
        assert!(parts.iter().all(|part| said.err.contains(part)), "{args:?}: {said:#?}");
    }
    drop(held);
}

#[test]
fn a_disabled_proxy_has_no_connections_and_a_removed_one_no_port() {
    let (_one, one) = named("one");
    let plane = Plane::start(&[]);
    let addr = plane.proxy("p", one);
    let mut client = connect(addr);
    assert_eq!(get(&mut client, 3).expect("an answer"), "one");
    plane.does("POST", "/proxies/p", r#"{"enabled":false}"#);
    assert!(is_closed(client) && TcpStream::connect(addr).is_err());
    assert!(TcpListener::bind(addr).is_err(), "its port stays its own");
    plane.does("POST", "/proxies/p", r#"{"enabled":true}"#);
    let mut client = connect(addr);
    assert_eq!(get(&mut client, 3).expect("an answer"), "one");
    plane.does("DELETE", "/proxies/p", "");
    assert!(TcpStream::connect(addr).is_err());
    let body = format!(r#"{{"name":"q","listen":"{addr}","upstream":"{one}"}}"#);
    plane.does("POST", "/proxies", &body);
    assert_eq!(get(&mut connect(addr), 3).expect("an answer"), "one");
    assert!(is_closed(client));
}

#[test]
fn a_proxy_moves_whole_or_not_at_all() {
    let (_one, one) = named("one");
    let (_two, two) = named("two");
    let plane = Plane::start(&[]);
    let (p, q) = (plane.proxy("p", one), plane.proxy("q", two));
    plane.does("POST", "/proxies/p/toxics", r#"{"type":"noop"}"#);
    let mut client = connect(p);
    assert_eq!(get(&mut client, 3).expect("an answer"), "one");
    let (status, _, said) = plane.ask("POST", "/proxies/p", &format!(r#"{{"listen":"{q}","enabled":false}}"#));
    assert!(status == 500 && said.contains("address already in use"), "{said}");
    assert_eq!(get(&mut client, 3).expect("it is as it was"), "one");
    plane.does("POST", "/proxies/p", &format!(r#"{{"upstream":"{two}"}}"#));
    assert!(is_closed(client), "what is there goes with the old upstream");
    assert_eq!(get(&mut connect(p), 3).expect("an answer"), "two");
    assert!(plane.does("GET", "/proxies/p/toxics", "").contains("noop_downstream"), "toxics move with it");
    let swap = format!(r#"[{{"name":"p","listen":"{q}","upstream":"{one}"}},{{"name":"q","listen":"{p}","upstream":"{two}"}}]"#);
    plane.does("POST", "/populate", &swap);
    assert_eq!([p, q].map(|addr| get(&mut connect(addr), 3).expect("an answer")), ["two", "one"]);
    let both =
        format!(r#"[{{"name":"r","listen":"127.0.0.1:0","upstream":"{one}"}},{{"name":"s","listen":"{p}","upstream":"{one}"}}]"#);
    assert_eq!(plane.ask("POST", "/populate", &both).0, 500);
    assert_eq!(plane.ask("GET", "/proxies/r", "").0, 404, "none or all");
}

#[test]
fn a_list_brings_its_toxics_and_they_are_counted_by_name() {
    let (_one, one) = named("one");
    let plane = Plane::start(&[]);
    let toxics = r#"[{"type":"latency","stream":"upstream","attributes":{"latency":1}},{"type":"noop"}]"#;
    let list = |more: &str| format!(r#"[{{"name":"p","listen":"127.0.0.1:0","upstream":"{one}"{more}}}]"#);
    plane.does("POST", "/populate", &list(&format!(r#","toxics":{toxics}"#)));
    let addr = listen_of(&plane.does("GET", "/proxies/p", ""));
    let same = format!(r#"[{{"name":"p","listen":"{addr}","upstream":"{one}","toxics":[]}}]"#);
    assert!(plane.does("POST", "/populate", &same).contains("latency_upstream"), "nothing said of toxics leaves them");
    assert_eq!(get(&mut connect(addr), 3).expect("an answer"), "one");
    let (status, kind, metrics) = plane.ask("GET", "/metrics", "");
    assert!(status == 200 && kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    for line in [
        r#"stormwake_proxy_enabled{proxy="p"} 1"#,
        r#"stormwake_proxy_connects_total{proxy="p"} 1"#,
        r#"stormwake_toxic_touched_total{proxy="p",toxic="latency_upstream",type="latency"} "#,
        r#"stormwake_toxic_touched_total{proxy="p",toxic="noop_downstream",type="noop"} "#,
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

#[test]
fn a_toxic_strikes_what_is_connected_already_and_is_counted() {
    let (_one, one) = named("one");
    let plane = Plane::start(&[]);
    let addr = plane.proxy("p", one);
    let (mut busy, idle) = (connect(addr), connect(addr));
    assert_eq!(get(&mut busy, 3).expect("an answer"), "one");
    plane.does("POST", "/proxies/p/toxics", r#"{"type":"latency","attributes":{"latency":200}}"#);
    let start = Instant::now();
    assert_eq!(get(&mut busy, 3).expect("an answer"), "one");
    assert!(start.elapsed() >= Duration::from_millis(200), "{:?}", start.elapsed());
    plane.does("POST", "/proxies/p/toxics/latency_downstream", r#"{"attributes":{"latency":1}}"#);
    let start = Instant::now();
    assert_eq!(get(&mut busy, 3).expect("an answer"), "one");
    assert!(start.elapsed() < Duration::from_millis(200), "{:?}", start.elapsed());
    let touched = |plane: &Plane, toxic: &str| -> u64 {
        let metrics = plane.does("GET", "/metrics", "");
        let line = metrics.lines().find(|line| line.contains(&format!("toxic=\"{toxic}\""))).expect("its count");
        line.rsplit(' ').next().and_then(|count| count.parse().ok()).expect("a number")
    };
    assert!(touched(&plane, "latency_downstream") >= 1, "a change keeps the count");
    plane.does("POST", "/proxies/p/toxics", r#"{"type":"reset_peer","name":"cut"}"#);
    for mut client in [busy, idle] {
        let end = client.read(&mut [0; 16]).expect_err("a reset").kind();
        assert_eq!(end, std::io::ErrorKind::ConnectionReset);
    }
    assert_eq!(touched(&plane, "cut"), 2);
}

/// A service that reads requests and answers none, until it is told to.
fn mute() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address");
    (listener, addr)
}

#[test]
fn the_first_signal_lets_what_is_there_finish_and_the_second_does_not() {
    let _machine = shared();
    for (signals, answered, code) in [(1, true, Some(0)), (2, false, Some(143)), (1, false, Some(0))] {
        let (upstream, addr) = mute();
        let mut plane = Plane::start(&["--drain", if answered || signals == 2 { "1m" } else { "300ms" }]);
        let listen = plane.proxy("p", addr);
        let mut client = connect(listen);
        client.write_all(b"GET / HTTP/1.1\r\nhost: t\r\n\r\n").expect("it reads");
        let (mut service, _) = upstream.accept().expect("a connection");
        read_head(&mut service).expect("the request");
        plane.signal("-TERM");
        let start = Instant::now();
        while let Ok(late) = TcpStream::connect(listen) {
            // With a mere close the proxy would wait for the service's answer to it.
            rustix::net::sockopt::set_socket_linger(&late, Some(Duration::ZERO)).expect("a socket");
            assert!(start.elapsed() < LONG, "it lets nobody more in");
        }
        if answered {
            service.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok").expect("it reads");
            service.shutdown(Shutdown::Write).expect("it is open");
            let mut text = String::new();
            client.read_to_string(&mut text).expect("the answer");
            assert!(text.ends_with("\r\n\r\nok"), "{text}");
            drop((client, service));
        } else if signals == 2 {
            plane.signal("-TERM");
        }
        assert_eq!(plane.ended().code(), code, "{signals} {answered}");
    }
}

/// The longest of these calls.
fn slowest(plane: &Plane, calls: &[(&str, &str, &str)]) -> (Duration, String) {
    let mut slowest = (Duration::ZERO, String::new());
    for (method, path, body) in calls {
        let start = Instant::now();
        plane.does(method, path, body);
        let took = start.elapsed();
        if took > slowest.0 {
            slowest = (took, format!("{method} {path} {body}"));
        }
    }
    slowest
}

#[test]
fn calls_are_answered_whatever_the_connections_do() {
    let _machine = alone();
    stormwake::engine::live::target::raise_file_limit();
    let (_upstream, mute) = mute();
    // Sends more than anybody reads.
    let flood = Server::start(|mut stream| while stream.write_all(&[b'x'; 1 << 16]).is_ok() {});
    let flood = flood.url().trim_start_matches("http://").trim_end_matches('/').parse().expect("an address");
    let plane = Plane::start(&[]);
    let (hung, fine) = (plane.proxy("hung", mute), plane.proxy("fine", flood));
    let request = b"POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 1000000\r\n\r\n";
    let hang = |addr| {
        let mut client = connect(addr);
        client.write_all(request).expect("it is connected");
        client
    };
    let _clients: Vec<TcpStream> = (0..1_000).map(|n| hang(if n % 2 == 0 { hung } else { fine })).collect();
    // Connections to the API that say nothing, or half of something, more than it takes.
    let half = |n| {
        let mut client = connect(plane.api);
        client
            .write_all(if n % 2 == 0 { b"" } else { b"POST /populate HTTP/1.1\r\ncontent-length: 9\r\n\r\n[" })
            .expect("it reads");
        client
    };
    let _slow: Vec<TcpStream> = (0..300).map(half).collect();
    let calls = [
        ("GET", "/proxies", ""),
        ("POST", "/proxies/hung/toxics", r#"{"type":"latency","attributes":{"latency":10000}}"#),
        ("POST", "/proxies/hung/toxics/latency_downstream", r#"{"attributes":{"latency":5}}"#),
        ("DELETE", "/proxies/hung/toxics/latency_downstream", ""),
        ("POST", "/proxies/hung", r#"{"enabled":false}"#),
        ("POST", "/proxies/hung", r#"{"enabled":true}"#),
        ("POST", "/proxies/fine/toxics", r#"{"type":"bandwidth","attributes":{"rate":1}}"#),
        ("DELETE", "/proxies/fine/toxics/bandwidth_downstream", ""),
        ("GET", "/metrics", ""),
        ("POST", "/proxies/fine", r#"{"listen":"127.0.0.1:0"}"#),
        ("POST", "/proxies/fine", r#"{"upstream":"localhost:9"}"#),
        ("POST", "/proxies", r#"{"name":"more","upstream":"127.0.0.1:9"}"#),
        ("DELETE", "/proxies/more", ""),
        ("PUT", "/v1/proxies/hung/faults/out", r#"{"fault":{"hang":{}}}"#),
        ("PUT", "/v1/proxies/hung/faults/out", r#"{"fault":{"reset":{}},"for":"30s"}"#),
        ("GET", "/v1/proxies", ""),
        ("PUT", "/v1/faults", r#"{"fine":{"thin":{"fault":{"bandwidth":{"rate":"1KB/s"}}}}}"#),
        ("POST", "/v1/leases", ""),
        ("GET", "/v1/leases", ""),
        ("POST", "/reset", ""),
    ];
    // Three tries: what else the machine does for a moment must not decide.
    let tries: Vec<_> = (0..3).map(|_| slowest(&plane, &calls)).collect();
    assert!(tries.iter().any(|(took, _)| *took < SOON), "{tries:?}");
}

#[test]
fn a_client_of_the_api_that_closes_its_side_is_answered_to_the_end() {
    let _others = shared();
    let plane = Plane::start(&[]);
    let whole = plane.does("GET", "/v1/openapi.json", "");
    let mut stream = connect(plane.api);
    // More than the buffers in between hold.
    let calls = 8_000_000 / whole.len();
    stream.write_all("GET /v1/openapi.json HTTP/1.1\r\nhost: t\r\n\r\n".repeat(calls).as_bytes()).expect("it reads");
    stream.shutdown(Shutdown::Write).expect("a socket");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("text");
    assert_eq!(said.matches(&whole).count(), calls);
}

#[test]
fn nothing_that_is_sent_to_the_api_ends_it() {
    let plane = Plane::start(&[]);
    let big = "x".repeat((1 << 20) + 1);
    assert_eq!(plane.ask("POST", "/proxies", &big).0, 413);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(plane.ask("POST", "/populate", &deep).2.contains("exceeded max depth"));
    let pieces: Vec<Vec<u8>> = [
        "POST /proxies HTTP/1.1\r\n",
        "GET /proxies/%00%ff%zz HTTP/1.1\r\n",
        "PUT /v1/faults HTTP/1.1\r\n",
        "POST /v1/leases HTTP/1.1\r\n",
        "stormwake-lease: \u{ff}\r\n",
        "host: t\r\n",
        "content-length: 4\r\n",
        "\r\n",
        "{\"na",
        "[1]}",
        "\0\u{7f}",
        "transfer-encoding: chunked\r\n",
        "ffffffffffffffff\r\n",
        "PATCH /proxies/a/toxics/b HTTP/9.9\r\n",
        "expect: 100-continue\r\n",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    for case in 0..200u64 {
        let mut client = connect(plane.api);
        let mut draws = stormwake::rng::Key { operation: case, ..Default::default() }.stream(stormwake::rng::Purpose::Kind);
        for _ in 0..1 + case % 7 {
            let _ = client.write_all(&pieces[draws.bits() as usize % pieces.len()]);
        }
        let _ = client.shutdown(Shutdown::Write);
        let mut rest = Vec::new();
        let _ = client.read_to_end(&mut rest);
    }
    assert_eq!(plane.ask("GET", "/version", "").0, 200);
}
