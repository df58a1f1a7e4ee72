//! `stormwake proxy` as a process, for every test of it.
#![allow(dead_code, reason = "no test binary needs all of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Longer than anything takes that happens at all.
const LONG: Duration = Duration::from_secs(10);

/// The proxy, ended with the value.
pub struct Plane {
    child: Child,
    /// What it said up to and including its API's address.
    pub said: Vec<String>,
    pub api: SocketAddr,
    /// What it has said since.
    later: Arc<Mutex<Vec<String>>>,
}

/// Status, content type (`-`: none) and body.
pub type Answer = (u16, String, String);

impl Plane {
    /// Starts it with an API on a free port.
    pub fn start(args: &[&str]) -> Self {
        let Some(program) = option_env!("CARGO_BIN_EXE_stormwake") else { panic!("only a test knows where it is") };
        Self::run(program, args)
    }

    /// Starts this program.
    pub fn run(program: &str, args: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(["proxy", "--api", "127.0.0.1:0"]).args(args);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let mut said = Vec::new();
        let api = loop {
            let line = lines.next().unwrap_or_else(|| panic!("it ended: {said:?}")).expect("text");
            let api = line.strip_prefix("API at http://").and_then(|rest| rest.split(',').next()?.parse().ok());
            said.push(line);
            if let Some(api) = api {
                break api;
            }
        };
        // What it says later must not fill the pipe.
        let later = Arc::<Mutex<Vec<String>>>::default();
        let kept = later.clone();
        let keep = move |line: String| kept.lock().expect("nobody panics while holding it").push(line);
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(keep));
        Self { child, said, api, later }
    }

    pub fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        self.ask_as("test", method, path, body)
    }

    pub fn ask_as(&self, agent: &str, method: &str, path: &str, body: &str) -> Answer {
        self.ask_with(&format!("user-agent: {agent}"), method, path, body)
    }

    /// Asks with one header more.
    pub fn ask_with(&self, header: &str, method: &str, path: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.api).expect("the API listens");
        stream.set_read_timeout(Some(LONG)).expect("a socket");
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: t\r\n{header}\r\nconnection: close\r\ncontent-length: {length}");
        stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let kind = head.lines().find_map(|line| line.strip_prefix("content-type: ")).unwrap_or("-");
        (head[9..12].parse().expect("a status"), kind.into(), body.into())
    }

    /// Asks for what must be granted; the body.
    pub fn does(&self, method: &str, path: &str, body: &str) -> String {
        let (status, _, said) = self.ask(method, path, body);
        assert!((200..300).contains(&status), "{method} {path} {body}: {status} {said}");
        said
    }

    /// Makes a proxy on a free port; where it listens.
    pub fn proxy(&self, name: &str, upstream: SocketAddr) -> SocketAddr {
        let body = format!(r#"{{"name":"{name}","listen":"127.0.0.1:0","upstream":"{upstream}"}}"#);
        listen_of(&self.does("POST", "/proxies", &body))
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status().expect("kill is there");
        assert!(status.success());
    }

    pub fn ended(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it is ours") {
                return status;
            }
            assert!(start.elapsed() < LONG, "it does not end");
            std::thread::yield_now();
        }
    }

    /// Whether it still runs, and what it has said since it was ready.
    pub fn state(&mut self) -> (bool, Vec<String>) {
        let runs = self.child.try_wait().expect("it is ours").is_none();
        (runs, self.later.lock().expect("nobody panics while holding it").clone())
    }

    /// How many file descriptors it has open.
    pub fn descriptors(&self) -> usize {
        descriptors(self.child.id())
    }

    /// How much memory it holds, in KiB.
    pub fn resident(&self) -> u64 {
        resident(self.child.id())
    }
}

/// How many file descriptors a process has open.
pub fn descriptors(id: u32) -> usize {
    std::fs::read_dir(format!("/proc/{id}/fd")).expect("it runs").count()
}

/// How much memory a process holds, in KiB.
pub fn resident(id: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
    line.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a number")
}

impl Drop for Plane {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn listen_of(json: &str) -> SocketAddr {
    let json: serde_json::Value = serde_json::from_str(json).expect("JSON");
    json["listen"].as_str().expect("an address").parse().expect("an address")
}
