//! A game day: load goes to a real service that retries, and the fault strikes the link to *its* provider. What the tap there says is held
//! against what the service and the provider themselves have counted.

use crate::external::fake::Fake;
use crate::plane::Plane;
use crate::support::{Folder, Said, Server, stormwake, with_evidence};
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// One HTTP message: its first line, whether it says `close`, and its key.
struct Message {
    status: u16,
    key: Option<String>,
}

/// Reads a message with its body off a connection; none where the peer went, or was too slow.
fn read_message(stream: &mut TcpStream) -> Option<Message> {
    let mut bytes = Vec::new();
    let mut buffer = [0u8; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_string());
            let length: usize = field("content-length:").and_then(|n| n.parse().ok()).unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
                return Some(Message { status, key: field("idempotency-key:") });
            }
        }
        match stream.read(&mut buffer) {
            Ok(n) if n > 0 && bytes.len() < 65_536 => bytes.extend_from_slice(&buffer[..n]),
            _ => return None,
        }
    }
}

fn answer(stream: &mut TcpStream, status: u16) -> bool {
    stream.write_all(format!("HTTP/1.1 {status} X\r\ncontent-length: 2\r\n\r\nok").as_bytes()).is_ok()
}

/// What the provider has counted.
#[derive(Default)]
struct Ledger {
    /// Requests that it answered with 200.
    served: AtomicU64,
    /// Of them, those whose key it had served before.
    again: AtomicU64,
    keys: Mutex<std::collections::BTreeSet<String>>,
}

impl Ledger {
    fn book(&self, key: &str) {
        let is_new = self.keys.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_string());
        self.served.fetch_add(1, Ordering::SeqCst);
        self.again.fetch_add(u64::from(!is_new), Ordering::SeqCst);
    }
}

/// So many at once; the others wait in the line of their arrival, which may be so long.
struct Counter {
    servers: u64,
    room: u64,
    /// Tickets given out, and requests that are done.
    line: Mutex<(u64, u64)>,
    moved: Condvar,
}

impl Counter {
    fn new(servers: u64, room: u64) -> Self {
        Self { servers, room, line: Mutex::default(), moved: Condvar::new() }
    }

    /// Works for a request; false where it found no room to wait.
    fn serve(&self, takes: Duration) -> bool {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let (ticket, done) = *line;
        if ticket - done >= self.room {
            return false;
        }
        line.0 += 1;
        drop(self.moved.wait_while(line, |(_, done)| ticket >= *done + self.servers).unwrap_or_else(PoisonError::into_inner));
        std::thread::sleep(takes);
        self.line.lock().unwrap_or_else(PoisonError::into_inner).1 += 1;
        self.moved.notify_all();
        true
    }
}

/// A provider with a counter: it works on what its callers have given up on, as most do.
fn provider(ledger: Arc<Ledger>, servers: u64, room: u64, takes: Duration) -> Server {
    let counter = Counter::new(servers, room);
    Server::start(move |mut stream| {
        let _ = stream.set_nodelay(true);
        while let Some(request) = read_message(&mut stream) {
            let served = counter.serve(takes);
            if served {
                ledger.book(&request.key.unwrap_or_default());
            }
            if !answer(&mut stream, if served { 200 } else { 503 }) {
                return;
            }
        }
    })
}

/// How the service calls its provider.
#[derive(Clone, Copy)]
struct Calls {
    /// Tries of each operation.
    attempts: u64,
    /// How long each may take.
    timeout: Duration,
    /// How long it waits between them.
    wait: Duration,
    /// Operations that it has at hand at once; it refuses more.
    most: usize,
}

/// What the service has counted.
#[derive(Default)]
struct Counts {
    operations: AtomicU64,
    attempts: AtomicU64,
    hands: AtomicUsize,
}

/// A call to the provider: one connection, one request.
fn call(at: SocketAddr, key: &str, timeout: Duration) -> Option<u16> {
    let mut stream = TcpStream::connect_timeout(&at, timeout).ok()?;
    let _ = (stream.set_nodelay(true), stream.set_read_timeout(Some(timeout)));
    let head = format!(
        "POST /charge HTTP/1.1\r\nhost: provider\r\nidempotency-key: {key}\r\ncontent-length: 4\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(format!("{head}{{1}}\n").as_bytes()).ok()?;
    read_message(&mut stream).map(|answer| answer.status)
}

/// A service that makes one call of each request that it gets, again and again where that fails, always with the same key.
fn service(counts: Arc<Counts>, calls: Calls, provider: SocketAddr) -> Server {
    Server::start(move |mut stream| {
        let _ = stream.set_nodelay(true);
        while read_message(&mut stream).is_some() {
            if counts.hands.fetch_add(1, Ordering::SeqCst) >= calls.most {
                counts.hands.fetch_sub(1, Ordering::SeqCst);
                answer(&mut stream, 503);
                continue;
            }
            let key = format!("op-{}", counts.operations.fetch_add(1, Ordering::SeqCst));
            let tried = (0..calls.attempts).any(|n| {
                if n > 0 {
                    std::thread::sleep(calls.wait);
                }
                counts.attempts.fetch_add(1, Ordering::SeqCst);
                call(provider, &key, calls.timeout) == Some(200)
            });
            counts.hands.fetch_sub(1, Ordering::SeqCst);
            if !answer(&mut stream, if tried { 200 } else { 502 }) {
                return;
            }
        }
    })
}

fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port")
}

fn addr(server: &Server) -> String {
    server.url().trim_start_matches("http://").trim_end_matches('/').to_string()
}

/// A plan before a service and a provider.
fn plan(listen: SocketAddr, target: &Server, upstream: &Server, rest: &str) -> String {
    format!(
        "version: 1\nname: gameday\ntarget: {{ url: '{}pay', method: POST, body: '{{}}' }}\n\
         proxies: {{ provider: {{ listen: {listen}, upstream: {} }} }}\n\
         policies: {{ app: {{ attempts: 1, timeout: 4s }} }}\n{rest}",
        target.url(),
        addr(upstream)
    )
}

fn run(folder: &Folder, text: &str) -> Said {
    let file = folder.write("gameday.yaml", text);
    stormwake(folder, &["run", file.to_str().expect("UTF-8"), "--json"])
}

/// The sum of a figure over the windows of the tap from one second to another.
fn between(result: &Value, figure: &str, from: u64, to: u64) -> u64 {
    let windows = result["proxies"][0]["windows"].as_array().expect("windows");
    let within = |w: &&Value| (from * 1000..to * 1000).contains(&w["from_ms"].as_u64().expect("a moment"));
    windows.iter().filter(within).map(|w| w[figure].as_u64().expect("a count")).sum()
}

const RETRYING: &str = "\
fleets: { app: { clients: 40, policy: app, load: { constant: { rate: 60/s } } } }
steady_state: { for: 4s }
timeline: [{ at: 5s, for: 3s, name: outage, on: provider, fault: FAULT }]
recovery: { at: provider, within: 4s, hold: 3s, span: 2s, operations: 100, require: { p99: '<= 400ms' } }
gates:
  - { amplification: '>= 2.7x', at: provider, during: outage }
  - { amplification: '<= 3.3x', at: provider, during: outage }
  - { retry_share: '<= 70%', at: provider, during: outage }
  - { retry_share: '== 0%', at: provider, during: baseline }
  - { recovery_time: '<= 4s', at: provider }
  - { amplification: '== 1x' }
length: 14s
";

/// A service that tries three times, in an outage of this kind.
fn retries_three_times(fault: &str) -> (Said, Arc<Ledger>, Arc<Counts>) {
    let mut books = None;
    let said = with_evidence(|| {
        let folder = Folder::new("gameday");
        let (ledger, counts, listen) = (Arc::<Ledger>::default(), Arc::<Counts>::default(), free_port());
        let upstream = provider(ledger.clone(), 64, 1000, Duration::from_millis(2));
        let (timeout, wait) = (Duration::from_secs(2), Duration::from_millis(50));
        let target = service(counts.clone(), Calls { attempts: 3, timeout, wait, most: 1000 }, listen);
        let said = run(&folder, &plan(listen, &target, &upstream, &RETRYING.replace("FAULT", fault)));
        books = Some((ledger, counts));
        said
    });
    let (ledger, counts) = books.expect("it was run");
    (said, ledger, counts)
}

#[test]
fn a_service_s_retries_are_measured_where_it_sends_them_and_its_recovery_is_judged_there() {
    for (fault, ends) in [("{ status: { code: 503 } }", "statuses"), ("{ reset: {} }", "resets")] {
        let (said, ledger, counts) = retries_three_times(fault);
        assert_eq!(said.code, Some(0), "{fault}: {said:#?}");
        let result = said.result();
        assert_eq!((&result["recovery"]["class"], &result["recovery"]["at"]), (&"RECOVERED".into(), &"provider".into()));
        let proxy = &result["proxies"][0];
        // What was under way when the run ended is on one side's books alone.
        let same = |what: &str, tap: u64, theirs: u64| {
            assert!(theirs.abs_diff(tap) <= 5, "{fault}: {what}: {tap} and {theirs}; {proxy}")
        };
        let of = |key: &str| proxy[key].as_u64().expect("a count");
        let load = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        same("requests", of("requests"), load(&counts.attempts));
        same("repeats", of("repeats"), load(&counts.attempts) - load(&counts.operations));
        same("good answers", proxy["statuses"]["200"].as_u64().expect("answers"), load(&ledger.served));
        let touched = result["faults"][0]["touched"].as_u64().expect("a count");
        let harmed = if ends == "resets" { of("resets") } else { proxy["statuses"]["503"].as_u64().expect("answers") };
        assert_eq!(harmed, touched, "{proxy}");
        assert_eq!((of("unknown"), of("unreached"), load(&ledger.again)), (0, 0, 0));
        // Second by second, before the outage: what the tap saw is what was offered, and none of it again.
        assert_eq!((between(&result, "requests", 1, 5), between(&result, "repeats", 0, 5)), (240, 0), "{proxy}");
        let (requests, repeats) = (between(&result, "requests", 6, 7), between(&result, "repeats", 6, 7));
        assert!((170..=190).contains(&requests) && (110..=130).contains(&repeats), "{requests}, {repeats}");
    }
}

const STUCK: &str = "\
fleets: { app: { clients: 200, policy: app, load: { constant: { rate: 30/s } } } }
steady_state: { for: 2s }
timeline: [{ at: 3s, for: 2s, name: outage, on: provider, fault: { hang: {} } }]
recovery: { at: provider, within: 3s, hold: 2s, span: 2s, operations: 50 }
gates: [{ retry_share: '>= 80%', at: provider, during: recovery }]
expect: { class: STUCK }
length: 17s
";

/// A service that hardly ever gives up: its provider stays busy with what it was given up on for.
#[test]
fn a_service_that_retries_for_ever_keeps_its_provider_down_and_the_tap_says_so() {
    let said = with_evidence(|| {
        let folder = Folder::new("gameday-stuck");
        let (ledger, counts, listen) = (Arc::<Ledger>::default(), Arc::<Counts>::default(), free_port());
        // 50 a second at most, and a line of two seconds, in which everybody is given up on.
        let upstream = provider(ledger, 1, 100, Duration::from_millis(20));
        let (timeout, wait) = (Duration::from_millis(250), Duration::from_millis(100));
        let target = service(counts, Calls { attempts: 400, timeout, wait, most: 60 }, listen);
        run(&folder, &plan(listen, &target, &upstream, STUCK))
    });
    assert_eq!(said.code, Some(0), "{said:#?}");
    let result = said.result();
    assert_eq!(result["recovery"]["class"], "STUCK");
    let proxy = &result["proxies"][0];
    let given_up = proxy["unanswered"].as_u64().expect("a count");
    assert!(given_up > 300, "{proxy}");
    assert!(result["recovery"]["sentence"].as_str().is_some_and(|said| said.starts_with("at provider: ")), "{result}");
}

#[test]
fn what_no_simulator_has_is_refused_and_check_draws_it() {
    let folder = Folder::new("gameday-check");
    let nobody = Server::start(|_| {});
    let text = plan(free_port(), &nobody, &nobody, &RETRYING.replace("FAULT", "reset"));
    let model = text.replace("method: POST", "method: POST, model: { servers: 8, service_time: 5ms }");
    let model = model.replace("attempts: 1, timeout: 4s }", "attempts: 1, timeout: 4s }, other: { attempts: 2, timeout: 4s }");
    let model = model + "compare: { fleet: app, reference: app, candidates: [other] }\n";
    let file = folder.write("plan.yaml", model);
    let path = file.to_str().expect("UTF-8");
    let checked = stormwake(&folder, &["check", path]);
    assert_eq!(checked.code, Some(0), "{checked:#?}");
    for part in [
        "proxy    provider: 127.0.0.1:",
        "live only: `outage` strikes at the proxy `provider`",
        "reset, on provider",
        "at provider",
    ] {
        assert!(checked.out.contains(part), "{part}: {}", checked.out);
    }
    for args in [
        &["simulate", path, "--seeds", "2"][..],
        &["simulate", path, "--seed", "1"],
        &["compare", path],
        &["bisect", path, "--vary", "timeline.outage.for=1s..3s"],
    ] {
        let said = stormwake(&folder, args);
        assert_eq!(said.code, Some(2), "{said:#?}");
        assert!(said.err.contains("run the plan live (`stormwake run`)"), "{said:#?}");
    }
}

#[test]
fn an_upstream_beyond_this_machine_is_refused_like_a_target() {
    let folder = Folder::new("gameday-guard");
    let nobody = Server::start(|_| {});
    let text = plan(free_port(), &nobody, &nobody, &RETRYING.replace("FAULT", "reset"));
    let said = run(&folder, &text.replace(&format!("upstream: {}", addr(&nobody)), "upstream: 192.0.2.7:9000"));
    assert_eq!(said.code, Some(5), "{said:#?}");
    assert!(said.err.contains("allow: [192.0.2.7]"), "{said:#?}");
}

#[test]
fn a_port_that_is_taken_is_said_with_a_remedy_before_anything_is_sent() {
    let folder = Folder::new("gameday-port");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let nobody = Server::start(|_| {});
    let said =
        run(&folder, &plan(taken.local_addr().expect("an address"), &nobody, &nobody, &RETRYING.replace("FAULT", "reset")));
    assert_eq!(said.code, Some(6), "{said:#?}");
    assert!(said.err.contains("`proxies.provider` cannot listen") && said.err.contains("choose another port"), "{said:#?}");
    taken.set_nonblocking(true).expect("a socket");
    assert_eq!(taken.accept().map(drop).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock), "nobody came");
}

/// A plan whose fault a Toxiproxy carries out, behind the service.
fn remote_plan(target: &Server, api: &str, name: &str, fault: &str) -> String {
    format!(
        "version: 1\nname: gameday\ntarget: {{ url: '{}pay', method: POST, body: '{{}}' }}\n\
         proxies: {{ provider: {{ toxiproxy: '{api}', name: {name} }} }}\n\
         fleets: {{ app: {{ clients: 40, policy: {{ attempts: 1, timeout: 4s }}, load: {{ constant: {{ rate: 60/s }} }} }} }}\n\
         steady_state: {{ for: 3s }}\n\
         timeline: [{{ at: 4s, for: 2s, name: outage, on: provider, fault: {fault} }}]\n\
         recovery: {{ within: 5s, hold: 2s, span: 2s, operations: 100, require: {{ p99: '<= 500ms' }} }}\nlength: 14s\n",
        target.url()
    )
}

/// What a run with a Toxiproxy behind the service has to show: the fault took place, our clients' requests are its evidence, and it is over.
fn carried_out(said: &Said, kind: &str, operations: &AtomicU64, attempts: &AtomicU64) {
    let result = said.result();
    assert_eq!((said.code, &result["recovery"]["class"]), (Some(0), &"RECOVERED".into()), "{said:#?}");
    let outage = &result["faults"][0];
    assert!(outage.get("failed").is_none() && outage["kind"] == kind, "{outage}");
    assert!((100..=140).contains(&outage["touched"].as_u64().expect("a count")), "60 a second, for two seconds: {outage}");
    let failed = result["totals"]["failed"].as_u64().expect("a count");
    assert!(failed > 60, "it had an effect: {}", result["totals"]);
    let [operations, attempts] = [operations, attempts].map(|count| count.load(Ordering::SeqCst));
    assert!(attempts >= operations + 2 * failed, "the service has tried again: {operations}, {attempts}");
    assert!(result["proxies"].as_array().is_none_or(Vec::is_empty), "nothing is counted there");
}

#[test]
fn a_toxiproxy_behind_the_service_strikes_there_and_our_own_clients_requests_are_the_evidence() {
    let (timeout, wait) = (Duration::from_millis(200), Duration::from_millis(20));
    let calls = Calls { attempts: 3, timeout, wait, most: 1000 };
    let mut counts = Arc::<Counts>::default();
    let said = with_evidence(|| {
        let folder = Folder::new("gameday-remote");
        let upstream = provider(Arc::default(), 64, 1000, Duration::from_millis(2));
        let fake = Fake::new(&upstream);
        let listen = fake.listen().trim_start_matches("http://").trim_end_matches('/').parse().expect("an address");
        counts = Arc::default();
        let target = service(counts.clone(), calls, listen);
        let said = run(&folder, &remote_plan(&target, &fake.url(), "payments", "{ blackhole: {} }"));
        let calls = fake.state().calls.len();
        assert_eq!((fake.toxics(), fake.state().enabled, calls), (vec![], true, 4), "left as it was");
        said
    });
    carried_out(&said, "blackhole", &counts.operations, &counts.attempts);

    // The same with ours in the place of the Toxiproxy, on another machine's word so to speak.
    let said = with_evidence(|| {
        let folder = Folder::new("gameday-own");
        let upstream = provider(Arc::default(), 64, 1000, Duration::from_millis(2));
        let plane = Plane::start(&[]);
        let listen = plane.proxy("charges", addr(&upstream).parse().expect("an address"));
        counts = Arc::default();
        let target = service(counts.clone(), calls, listen);
        let said = run(&folder, &remote_plan(&target, &format!("http://{}", plane.api), "charges", "refuse"));
        let (_, _, shown) = plane.ask("GET", "/proxies/charges", "");
        assert!(shown.contains(r#""enabled":true"#) && shown.contains(r#""toxics":[]"#), "{shown}");
        said
    });
    carried_out(&said, "refuse", &counts.operations, &counts.attempts);
}

/// Faults of bytes at a proxy that sees requests: what they do to the service's calls, second by second, by the service's own books.
#[test]
fn faults_of_bytes_strike_the_calls_of_a_service_as_their_figures_say() {
    let timeline = "timeline:\n\
         \x20 - { at: 2s, for: 2s, name: thin, on: provider, fault: { bandwidth: { rate: 16KB/s, stream: downstream } } }\n\
         \x20 - { at: 6s, for: 2s, name: lossy, on: provider, fault: { loss: { share: 50%, stream: downstream } } }\n\
         \x20 - { at: 10s, for: 2s, name: shut, on: provider, fault: close }\n";
    let rest = "fleets: { app: { clients: 40, policy: app, load: { constant: { rate: 20/s } } } }\n";
    let mut books = Arc::<Mutex<Vec<(Duration, Duration, bool)>>>::default();
    let said = with_evidence(|| {
        let (folder, listen) = (Folder::new("gameday-bytes"), free_port());
        let body = "x".repeat(8_000);
        let upstream = Server::answering(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()));
        let (began, calls) = (Arc::<Mutex<Option<Instant>>>::default(), Arc::<Mutex<Vec<_>>>::default());
        books = calls.clone();
        let target = Server::start(move |mut stream| {
            while read_message(&mut stream).is_some() {
                let start = Instant::now();
                let first = *began.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(start);
                let worked = call(listen, "a", Duration::from_secs(3)) == Some(200);
                calls.lock().unwrap_or_else(PoisonError::into_inner).push((start - first, start.elapsed(), worked));
                if !answer(&mut stream, if worked { 200 } else { 502 }) {
                    return;
                }
            }
        });
        run(&folder, &plan(listen, &target, &upstream, &format!("{rest}{timeline}length: 14s\n")))
    });
    let result = said.result();
    let faults: Vec<u64> = (0..3).map(|n| result["faults"][n]["touched"].as_u64().expect("a count")).collect();
    assert!(faults.iter().all(|touched| (25..=60).contains(touched)), "20 connections a second, for two seconds: {faults:?}");
    let books = books.lock().unwrap_or_else(PoisonError::into_inner);
    // Half a second from the edges of each.
    let during = |from: u64, to: u64| {
        let of = (Duration::from_millis(from)..Duration::from_millis(to), books.iter());
        let mut calls: Vec<(u128, bool)> =
            of.1.filter(|(at, ..)| of.0.contains(at)).map(|(_, took, worked)| (took.as_millis(), *worked)).collect();
        calls.sort_unstable();
        assert!(calls.len() >= 15, "{from}: {calls:?}");
        calls
    };
    let median = |calls: &[(u128, bool)]| calls[calls.len() / 2].0;
    for (from, to) in [(300, 1_500), (4_500, 5_500), (8_700, 9_500), (12_500, 13_500)] {
        let calls = during(from, to);
        assert!(median(&calls) < 150 && calls.iter().all(|(_, worked)| *worked), "nothing acts: {calls:?}");
    }
    let thin = during(2_500, 3_500);
    assert!((480..=800).contains(&median(&thin)) && thin.iter().all(|(_, worked)| *worked), "8 KB at 16 KB/s: {thin:?}");
    assert!(thin[0].0 >= 450, "nobody is quicker: {thin:?}");
    // Six segments: 98% of the answers have lost one, which takes 200 ms at least, and half of them one twice.
    let lossy = during(6_500, 7_300);
    assert!((200..=2_500).contains(&median(&lossy)), "{lossy:?}");
    assert!(lossy.iter().filter(|(took, _)| *took >= 190).count() * 10 >= lossy.len() * 8, "{lossy:?}");
    let shut = during(10_500, 11_500);
    assert!(shut.iter().all(|(took, worked)| !worked && *took < 500), "each is closed at once: {shut:?}");
}
