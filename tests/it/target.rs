//! The built-in target as a process: alone, and as a run's child.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use stormwake::engine::live::target::{TargetError, TargetProcess};

const PROGRAM: &str = env!("CARGO_BIN_EXE_stormwake");

/// A plan as JSON, which is YAML too.
fn plan(service: &str) -> String {
    format!(
        r#"{{"version": 1, "seed": 7, "length": "10s",
            "target": {{"service": {service}}},
            "fleets": {{"phones": {{"clients": 1, "policy": {{"attempts": 1, "timeout": "1s"}}, "load": {{"constant": {{"rate": "1/s"}}}}}}}}}}"#
    )
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// One request on a connection of its own; the whole answer.
fn ask(addr: std::net::SocketAddr) -> String {
    let mut stream = TcpStream::connect(addr).expect("it listens");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn is_running(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok()
}

#[test]
fn a_child_serves_counts_and_ends_with_its_last_counts() {
    block_on(async {
        let plan = plan(r#"{"servers": 1, "service_time": "1ms"}"#);
        let mut target = TargetProcess::spawn(Path::new(PROGRAM), &plan).await.expect("it starts");
        assert!(ask(target.addr()).starts_with("HTTP/1.1 200"));
        assert_eq!(target.died(), None);
        let addr = target.addr();
        let pid = target.id();
        let counts = target.stop().await.expect("it has spoken");
        assert_eq!((counts.of.arrived, counts.of.served), (1, 1));
        assert!(TcpStream::connect(addr).is_err() && !is_running(pid), "it is gone");
    });
}

#[test]
fn a_dropped_child_is_killed_and_collected() {
    block_on(async {
        let plan = plan(r#"{"servers": 1, "service_time": "1ms"}"#);
        let target = TargetProcess::spawn(Path::new(PROGRAM), &plan).await.expect("it starts");
        let pid = target.id();
        drop(target);
        assert!(!is_running(pid));
    });
}

#[test]
fn a_child_that_dies_is_noticed() {
    block_on(async {
        let plan = plan(r#"{"servers": 1, "service_time": "1ms"}"#);
        let mut target = TargetProcess::spawn(Path::new(PROGRAM), &plan).await.expect("it starts");
        signal(target.id(), rustix::process::Signal::KILL);
        let mut said = None;
        for _ in 0..1000 {
            said = target.died();
            if said.is_some() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        let said = said.expect("noticed within 2 s");
        assert!(said.contains("ended while it was needed") && said.contains("signal: 9"), "{said}");
        target.stop().await;
    });
}

#[test]
fn what_keeps_a_child_from_starting_is_passed_on() {
    let message = |program: &str, plan: &str| {
        block_on(async { TargetProcess::spawn(Path::new(program), plan).await }).map(|_| ()).expect_err(plan).to_string()
    };
    let wrong = message(PROGRAM, &plan(r#"{"servers": 0, "service_time": "1ms"}"#));
    assert!(wrong.contains("before it was ready (exit status: 2)") && wrong.contains("number of servers"), "{wrong}");
    let missing = message("/nonexistent/stormwake", "{}");
    assert!(missing.contains("cannot start the built-in target, /nonexistent/stormwake target --child"), "{missing}");
    let other = block_on(async { TargetProcess::spawn(Path::new("/bin/echo"), "{}").await }).map(|_| ());
    assert!(matches!(other, Err(TargetError::Protocol { .. } | TargetError::Ended { .. })), "{other:?}");
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// A child's first lines on stdout, its stdin kept open.
fn child(plan: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut command = Command::new(PROGRAM);
    command.args(["target", "--child"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(format!("{plan}\n...\n").as_bytes()).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut ready = String::new();
    lines.read_line(&mut ready).unwrap();
    assert!(ready.starts_with(r#"{"ready":"127.0.0.1:"#), "{ready}");
    (child, lines)
}

#[test]
fn a_child_ignores_ctrl_c_and_ends_on_sigterm_or_with_its_parent() {
    let plan = plan(r#"{"servers": 1, "service_time": "1ms"}"#);
    let (mut terminated, lines) = child(&plan);
    signal(terminated.id(), rustix::process::Signal::INT);
    // The counts of the next second show that it lives on.
    let told: Vec<String> = lines.lines().take(2).map(Result::unwrap).collect();
    assert!(told[1].contains(r#""arrived":0"#) && terminated.try_wait().unwrap().is_none(), "{told:?}");
    signal(terminated.id(), rustix::process::Signal::TERM);
    assert!(terminated.wait().unwrap().success());

    let (mut orphan, lines) = child(&plan);
    drop(orphan.stdin.take());
    let last = lines.lines().map(Result::unwrap).last().expect("its last counts");
    assert!(last.contains(r#""served":0"#), "{last}");
    assert!(orphan.wait().unwrap().success());
}

#[test]
fn alone_it_says_where_it_listens_and_sums_up_on_ctrl_c() {
    let mut command = Command::new(PROGRAM);
    command.args("target --servers 2 --service-time 1ms --listen 127.0.0.1:0".split(' '));
    let mut alone = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(alone.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let addr = said.split(['/', ' ']).find(|part| part.starts_with("127.0.0.1:")).expect("an address").parse().unwrap();
    assert!(ask(addr).starts_with("HTTP/1.1 200"));
    signal(alone.id(), rustix::process::Signal::INT);
    let output = alone.wait_with_output().unwrap();
    let summary = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && summary.starts_with("1 requests: 1 served"), "{summary}");
}

#[test]
fn alone_a_port_in_use_is_an_error_of_the_environment_and_a_bad_flag_one_of_usage() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let run = |args: String| {
        let output = Command::new(PROGRAM).args(args.split(' ')).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = run(format!("target --servers 1 --service-time 1ms --listen {}", taken.local_addr().unwrap()));
    assert!(code == Some(6) && said.contains("choose another port"), "{code:?} {said}");
    let (code, said) = run("target --servers 1 --service-time 10 --listen 127.0.0.1:0".into());
    assert!(code == Some(2) && said.contains("--service-time: a duration needs a unit"), "{code:?} {said}");
    let (code, said) = run("target --plan /nonexistent/plan.yaml".into());
    assert!(code == Some(2) && said.contains("cannot read /nonexistent/plan.yaml"), "{code:?} {said}");
    let (code, said) = run("target --child".into());
    assert!(code == Some(2) && said.contains("expected a line `...`"), "{code:?} {said}");
}

#[test]
fn without_file_descriptors_it_rests_and_serves_again_once_there_are_some() {
    let mut command = Command::new("/bin/sh");
    let script = "ulimit -n 32; exec \"$0\" target --servers 2 --service-time 1ms --listen 127.0.0.1:0";
    let mut alone = command.args(["-c", script, PROGRAM]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(alone.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let addr: std::net::SocketAddr =
        said.split(['/', ' ']).find(|part| part.starts_with("127.0.0.1:")).expect("an address").parse().unwrap();
    let mut early = TcpStream::connect(addr).unwrap();
    let mut errors = || {
        early.write_all(b"GET /stormwake/stats HTTP/1.1\r\nHost: t\r\n\r\n").unwrap();
        let mut chunk = [0; 2048];
        let read = early.read(&mut chunk).unwrap();
        let text = String::from_utf8_lossy(&chunk[..read]).into_owned();
        let (_, count) = text.split_once(r#""accept_errors":"#).expect("its counts");
        count.trim_end_matches(['}', '\n']).parse::<u64>().unwrap()
    };
    assert_eq!(errors(), 0);
    let idle: Vec<TcpStream> = (0..60).map(|_| TcpStream::connect(addr).expect("the backlog takes it")).collect();
    let seen = (0..50_000).map(|_| (std::thread::yield_now(), errors()).1).find(|n| *n >= 2).expect("it ran out");
    assert!(seen < 20, "it does not spin: {seen}");
    drop(idle);
    assert!(ask(addr).starts_with("HTTP/1.1 200"));
    signal(alone.id(), rustix::process::Signal::TERM);
    assert!(alone.wait().unwrap().success());
}
