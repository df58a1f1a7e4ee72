//! Harmed messages for the proxy: its API, its HTTP path from both sides, its TCP path, while faults come and go; and a run's proxies with all faults of
//! requests and answers in force, in TLS to the upstream too.
//!
//! `cargo run --release --example proxy_fuzz -- target/release/stormwake [SECONDS] [SEED]`: 20 seconds and seed 1 where nothing is said. Each message is
//! drawn by (seed, number). The process must neither end nor panic, must go on serving those who do nothing wrong, answer every call with well-formed HTTP
//! and a status that the API has, stay within its memory, and hold nothing once everybody has gone. Ends with 1 and says why where it does not.
#![allow(clippy::disallowed_methods, reason = "it waits for another process")]

mod corpus;
mod mutate;
#[path = "../../tests/it/plane.rs"]
mod plane;
mod struck;
mod upstream;
mod verify;

use corpus::REQUESTS;
use mutate::Dice;
use plane::Plane;
use socket2::SockRef;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use struck::Struck;
use upstream::Upstream;

const WORKERS: usize = 4;
/// How long an answer may take whose asker has said all.
const ANSWER: Duration = Duration::from_secs(5);
/// How long is listened to what is not judged.
const GLANCE: Duration = Duration::from_millis(5);
/// The most memory of a process, in KiB.
const MEMORY: u64 = 256 * 1024;
/// How long until everything is gone, once everybody has gone.
const GONE: Duration = Duration::from_secs(15);

/// Faults that come and go on the paths that are fuzzed.
const TOXICS: &[&str] = &[
    r#"{"type":"latency","attributes":{"latency":2,"jitter":2}}"#,
    r#"{"type":"slicer","attributes":{"average_size":7,"size_variation":3,"delay":100}}"#,
    r#"{"type":"bandwidth","stream":"upstream","attributes":{"rate":50}}"#,
    r#"{"type":"limit_data","attributes":{"bytes":100}}"#,
    r#"{"type":"timeout","toxicity":0.3,"attributes":{"timeout":3}}"#,
    r#"{"type":"reset_peer","toxicity":0.3,"attributes":{"timeout":1}}"#,
    r#"{"type":"slow_close","attributes":{"delay":5}}"#,
];

/// What all threads share.
struct Field {
    seed: u64,
    api: SocketAddr,
    http: SocketAddr,
    tcp: SocketAddr,
    struck: [SocketAddr; 2],
    next: AtomicU64,
    /// How many answers of the API were judged.
    judged: AtomicU64,
    over: AtomicBool,
    wrong: Mutex<Vec<String>>,
}

impl Field {
    fn report(&self, what: String) {
        self.wrong.lock().expect("nobody panics while holding it").push(what);
        self.over.store(true, Ordering::SeqCst);
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(program) = args.next() else { return usage() };
    let mut number = |default: u64| args.next().map_or(Some(default), |text| text.parse().ok());
    let (Some(seconds), Some(seed)) = (number(20), number(1)) else { return usage() };
    let (hostile, behind, fine) = (Upstream::hostile(seed), Upstream::hostile(seed ^ 1), Upstream::fine());
    // One for calls alone, since they remove and redirect whatever they find; and one for traffic.
    let (mut called, mut passed) = (Plane::run(&program, &[]), Plane::run(&program, &["--threads", "2"]));
    let mut struck = Struck::start(&program, seconds, fine.addr, behind.addr);
    let proxy = |name: &str, upstream: String| {
        let body = format!(r#"{{"name":"{name}","listen":"127.0.0.1:0","upstream":"{upstream}"}}"#);
        plane::listen_of(&passed.does("POST", "/proxies", &body))
    };
    let field = Field {
        seed,
        api: called.api,
        http: proxy("http", format!("http://{}", hostile.addr)),
        tcp: proxy("tcp", hostile.addr.to_string()),
        struck: [struck.http, struck.tls],
        next: AtomicU64::new(0),
        judged: AtomicU64::new(0),
        over: AtomicBool::new(false),
        wrong: Mutex::default(),
    };
    let honest = [proxy("fine-http", format!("http://{}", fine.addr)), proxy("fine-tcp", fine.addr.to_string())];
    let nobody = [called.descriptors(), passed.descriptors()];
    let peak = std::thread::scope(|scope| {
        (0..WORKERS).for_each(|_| drop(scope.spawn(|| work(&field))));
        let peak = watch(&field, [&mut called, &mut passed], &mut struck, honest, Duration::from_secs(seconds));
        field.over.store(true, Ordering::SeqCst);
        peak
    });
    empty(&called, &field);
    // What a fault holds back goes on.
    passed.does("POST", "/reset", "");
    for (plane, nobody, name) in [(&called, nobody[0], "the API's"), (&passed, nobody[1], "the proxies'")] {
        until_gone(plane, nobody, name, &field);
    }
    if let Err(why) = struck.end() {
        field.report(why);
    }
    let (messages, judged) = (field.next.load(Ordering::SeqCst), field.judged.load(Ordering::SeqCst));
    let wrong = field.wrong.into_inner().expect("nobody panics while holding it");
    let reached = hostile.reached().min(behind.reached());
    say(&format!(
        "{messages} messages of seed {seed}: {judged} answers of the API judged, {reached} connections or more to each upstream, {peak} KiB of memory at most"
    ));
    wrong.iter().for_each(|what| say(what));
    if wrong.is_empty() && judged > 0 && reached > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

fn usage() -> ExitCode {
    say("usage: proxy_fuzz PATH-OF-STORMWAKE [SECONDS] [SEED]");
    ExitCode::FAILURE
}

/// Sends one message after another, and keeps some of the connections for a while.
fn work(field: &Field) {
    let mut kept = VecDeque::new();
    while !field.is_over() {
        let number = field.next.fetch_add(1, Ordering::SeqCst);
        let mut dice = Dice::of(field.seed, number);
        let (at, bytes) = match dice.below(20) {
            0..8 => (field.api, dice.calls()),
            8..9 => (field.api, dice.harmed(REQUESTS)),
            9..12 => (field.http, dice.harmed(REQUESTS)),
            12..14 => (field.http, dice.http2()),
            14..16 => (field.struck[0], dice.harmed(REQUESTS)),
            16..17 => (field.struck[0], dice.http2()),
            17..18 => (field.struck[1], dice.harmed(REQUESTS)),
            _ => (field.tcp, dice.harmed(REQUESTS)),
        };
        // A proxy that is closed just now refuses, and the API must not.
        let Ok(mut stream) = TcpStream::connect(at) else {
            if at == field.api {
                field.report(format!("message {number}: the API refuses connections"));
            }
            continue;
        };
        send(&mut stream, &bytes, &mut dice);
        if at == field.api {
            judge(&mut stream, &bytes, number, field);
        } else {
            let _ = stream.set_read_timeout(Some(GLANCE));
            let _ = stream.read(&mut [0; 4096]);
        }
        match dice.below(4) {
            0 => drop(SockRef::from(&stream).set_linger(Some(Duration::ZERO))),
            1 => drop(stream.shutdown(Shutdown::Write)),
            _ => {}
        }
        if dice.one_in(2) {
            kept.push_back(stream);
        }
        if kept.len() > 32 {
            kept.pop_front();
        }
    }
}

/// Whole, or in pieces. The other side may have had enough of it.
fn send(stream: &mut TcpStream, bytes: &[u8], dice: &mut Dice) {
    let _ = stream.set_nodelay(true);
    let _ = stream.set_write_timeout(Some(GLANCE));
    let pieces = if dice.one_in(2) { 1 } else { 1 + dice.below(4) };
    for piece in bytes.chunks(bytes.len() / pieces + 1) {
        if stream.write_all(piece).is_err() {
            return;
        }
    }
}

/// Says that nothing more comes, and judges all that is answered.
fn judge(stream: &mut TcpStream, asked: &[u8], number: u64, field: &Field) {
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.set_read_timeout(Some(ANSWER));
    let (mut answer, mut buffer) = (Vec::new(), [0; 16 * 1024]);
    let cut = loop {
        match stream.read(&mut buffer) {
            Ok(0) => break false,
            Ok(n) => answer.extend_from_slice(&buffer[..n]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break true,
            Err(error) => return field.report(format!("message {number} to the API: nothing for {ANSWER:?}: {error}")),
        }
    };
    match verify::answers(&answer, asked, cut) {
        Ok(count) => drop(field.judged.fetch_add(count, Ordering::SeqCst)),
        Err(why) => field.report(format!("message {number} to the API: {why} in {:?}", String::from_utf8_lossy(&answer))),
    }
}

/// Lets faults come and go, and looks whether all is well; gives the most memory that was seen.
fn watch(field: &Field, planes: [&mut Plane; 2], struck: &mut Struck, honest: [SocketAddr; 2], length: Duration) -> u64 {
    let (began, [called, passed]) = (Instant::now(), planes);
    let mut dice = Dice::of(field.seed, u64::MAX);
    let mut peak = 0;
    while began.elapsed() < length && !field.is_over() {
        let (name, toxic) = (*dice.pick(&["http", "tcp"]), dice.pick(TOXICS));
        match dice.below(8) {
            0 => drop(passed.does("POST", "/reset", "")),
            1 => drop(passed.does("POST", &format!("/proxies/{name}"), r#"{"enabled":false}"#)),
            2 => drop(passed.does("POST", &format!("/proxies/{name}"), r#"{"enabled":true}"#)),
            // It may be there already.
            _ => drop(passed.ask("POST", &format!("/proxies/{name}/toxics"), toxic)),
        }
        if dice.one_in(20) {
            empty(called, field);
        }
        for addr in honest {
            if let Err(why) = verify::is_served(addr, ANSWER) {
                field.report(format!("somebody who does nothing wrong is not served: {why}"));
            }
        }
        for (name, id, (runs, said)) in [
            ("the API's", called.id(), called.state()),
            ("the proxies'", passed.id(), passed.state()),
            ("the run's", struck.id(), struck.state()),
        ] {
            if !runs || said.iter().any(|line| line.contains("panicked")) {
                field.report(format!("{name} process {}: {said:?}", if runs { "panicked" } else { "has ended" }));
                continue;
            }
            let memory = plane::resident(id);
            peak = peak.max(memory);
            if memory > MEMORY {
                field.report(format!("{name} process holds {memory} KiB"));
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    peak
}

/// Removes every proxy, by names that may be anything.
fn empty(plane: &Plane, field: &Field) {
    let (status, _, body) = plane.ask("GET", "/proxies", "");
    let Ok(serde_json::Value::Object(proxies)) = serde_json::from_str(&body) else {
        return field.report(format!("the list of proxies is no JSON: {status} {body}"));
    };
    for name in proxies.keys() {
        let path: String = name.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let (status, _, said) = plane.ask("DELETE", &format!("/proxies/{path}"), "");
        // Another call may have been quicker.
        if status != 204 && status != 404 {
            field.report(format!("a proxy named {name:?} cannot be removed: {status} {said}"));
        }
    }
}

/// Waits until a process has no more descriptors than before anybody came.
fn until_gone(plane: &Plane, nobody: usize, name: &str, field: &Field) {
    let began = Instant::now();
    while plane.descriptors() > nobody {
        if began.elapsed() > GONE {
            let left = plane.descriptors() - nobody;
            let metrics = plane.does("GET", "/metrics", "");
            return field.report(format!("{name} process still has {left} descriptors more than at the start: {metrics}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
