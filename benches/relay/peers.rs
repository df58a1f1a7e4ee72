//! The processes that are measured: nginx behind, HAProxy and stormwake in between, wrk in front. All on loopback, ended with the value.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How many connections are idle at once.
const IDLE: usize = 2_000;
/// How long a process may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long one may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);
/// Four faults that are installed and hold nothing back.
const FAULTS: [&str; 4] = [
    r#"{"type":"latency","attributes":{"latency":0}}"#,
    r#"{"type":"bandwidth","attributes":{"rate":100000000}}"#,
    r#"{"type":"limit_data","attributes":{"bytes":1000000000}}"#,
    r#"{"type":"slow_close","attributes":{"delay":0}}"#,
];

/// What the command line asks for.
pub struct Options {
    pub rounds: usize,
    pub seconds: u64,
    pub gate: bool,
}

impl Options {
    pub fn from_args() -> Result<Self, String> {
        let mut options = Self { rounds: 5, seconds: 3, gate: false };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            let mut number = || args.next().and_then(|text| text.parse::<u64>().ok()).ok_or(format!("{arg} needs a number"));
            match arg.as_str() {
                "--rounds" => options.rounds = number()?.max(1) as usize,
                "--seconds" => options.seconds = number()?.max(1),
                "--gate" => options.gate = true,
                "--bench" => {}
                other => return Err(format!("unknown argument {other}: expected --rounds N, --seconds N or --gate")),
            }
        }
        Ok(options)
    }
}

/// A process that this one started.
pub struct Peer(Child);

impl Peer {
    fn start(command: &mut Command) -> Result<Self, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(Self).map_err(|error| format!("{name}: {error}"))
    }

    /// Seconds that it has spent on processors.
    pub fn processor_seconds(&self) -> f64 {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap_or_default();
        // Behind the name, which may hold anything: user and system time are the 12th and 13th field, in hundredths.
        let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |n: usize| fields.get(n).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        (ticks(11) + ticks(12)) / 100.0
    }

    fn resident_kilobytes(&self) -> f64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0.0)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // nginx ends its workers only where it is asked to end.
        let asked = Command::new("kill").arg(self.0.id().to_string()).status().is_ok();
        let began = Instant::now();
        while asked && began.elapsed() < GRACE && matches!(self.0.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// All of them, and where each listens.
pub struct Peers {
    pub haproxy: Peer,
    pub stormwake: Peer,
    _nginx: Peer,
    pub nginx_addr: String,
    pub nginx_proxy: String,
    pub haproxy_tcp: String,
    pub haproxy_http: String,
    pub plain: String,
    pub faulty: String,
    pub http: String,
}

impl Peers {
    /// Starts them all and installs the faults.
    pub fn start() -> Result<Self, String> {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("relay");
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let [nginx_addr, nginx_proxy, haproxy_tcp, haproxy_http, plain, faulty, http, api] = free_addresses()?;
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).map(|()| path).map_err(|error| error.to_string())
        };
        file("1k", &"x".repeat(1024))?;
        file("1m", &"x".repeat(1024 * 1024))?;
        let conf = file("nginx.conf", &nginx_conf(&folder, &nginx_addr, &nginx_proxy))?;
        let nginx = Peer::start(Command::new(tool("nginx")?).arg("-p").arg(&folder).arg("-c").arg(&conf))?;
        let conf = file("haproxy.cfg", &haproxy_conf(&nginx_addr, &haproxy_tcp, &haproxy_http))?;
        let haproxy = Peer::start(Command::new(tool("haproxy")?).arg("-db").arg("-f").arg(&conf))?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_stormwake"));
        command.args(["proxy", "--threads", "2", "--api", &api]);
        for (listen, upstream) in
            [(&plain, nginx_addr.clone()), (&faulty, nginx_addr.clone()), (&http, format!("http://{nginx_addr}"))]
        {
            command.args(["--listen", listen, "--upstream", &upstream]);
        }
        let stormwake = Peer::start(&mut command)?;
        tool("wrk")?;
        for addr in [&nginx_addr, &nginx_proxy, &haproxy_tcp, &haproxy_http, &plain, &faulty, &http, &api] {
            until_it_listens(addr)?;
        }
        install(&api, &faulty)?;
        Ok(Self { haproxy, stormwake, _nginx: nginx, nginx_addr, nginx_proxy, haproxy_tcp, haproxy_http, plain, faulty, http })
    }
}

/// Installs the faults on the proxy that listens there.
fn install(api: &str, listen: &str) -> Result<(), String> {
    let all: serde_json::Value = serde_json::from_str(&call(api, "GET", "/proxies", "")?).map_err(|e| e.to_string())?;
    let named = all.as_object().and_then(|all| all.iter().find(|(_, proxy)| proxy["listen"] == listen));
    let (name, _) = named.ok_or("stormwake does not list its proxy")?;
    for fault in FAULTS {
        let answer = call(api, "POST", &format!("/proxies/{name}/toxics"), fault)?;
        if !answer.contains("\"toxicity\"") {
            return Err(format!("a fault was refused: {answer}"));
        }
    }
    Ok(())
}

/// Asks for something over HTTP; gives the body.
fn call(addr: &str, method: &str, path: &str, body: &str) -> Result<String, String> {
    let talk = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(addr)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {addr}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    let text = talk().map_err(|error| format!("{method} {path}: {error}"))?;
    Ok(text.split_once("\r\n\r\n").map(|(_, body)| body.to_string()).unwrap_or_default())
}

fn nginx_conf(folder: &std::path::Path, addr: &str, proxy: &str) -> String {
    let root = folder.display();
    format!(
        "daemon off; master_process on; worker_processes 2; worker_rlimit_nofile 20000; pid {root}/nginx.pid; error_log {root}/error.log crit;\n\
         events {{ worker_connections 9000; }}\n\
         http {{ access_log off; keepalive_requests 100000000; sendfile on; tcp_nodelay on; client_body_temp_path {root}/body;\n\
         proxy_temp_path {root}/proxy; fastcgi_temp_path {root}/fastcgi; uwsgi_temp_path {root}/uwsgi; scgi_temp_path {root}/scgi;\n\
         upstream behind {{ server {addr}; keepalive 64; keepalive_requests 100000000; }}\n\
         server {{ listen {addr} backlog=8192 reuseport; root {root}; }}\n\
         server {{ listen {proxy} backlog=8192 reuseport; location / {{ proxy_pass http://behind; proxy_http_version 1.1; proxy_set_header Connection \"\"; }} }} }}\n"
    )
}

fn haproxy_conf(upstream: &str, tcp: &str, http: &str) -> String {
    let mut text =
        "global\n maxconn 9000\n nbthread 2\ndefaults\n timeout connect 10s\n timeout client 10m\n timeout server 10m\n"
            .to_string();
    for (mode, addr) in [("tcp", tcp), ("http", http)] {
        let _ = write!(text, "listen {mode}\n mode {mode}\n bind {addr} backlog 8192\n server one {upstream}\n");
    }
    text
}

/// A program by its name, where packages put it.
fn tool(name: &str) -> Result<PathBuf, String> {
    let places = std::env::var("PATH").unwrap_or_default();
    let places = places.split(':').chain(["/usr/sbin", "/usr/local/sbin"]);
    let found = places.map(|place| PathBuf::from(place).join(name)).find(|path| path.is_file());
    found.ok_or(format!("{name} is not installed (Debian's package of that name)"))
}

fn free_addresses<const N: usize>() -> Result<[String; N], String> {
    let listeners: Result<Vec<_>, _> = (0..N).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
    let listeners = listeners.map_err(|error| error.to_string())?;
    let addresses: Result<Vec<_>, _> =
        listeners.iter().map(|listener| listener.local_addr().map(|addr| addr.to_string())).collect();
    Ok(addresses.map_err(|error| error.to_string())?.try_into().expect("as many as were asked for"))
}

fn until_it_listens(addr: &str) -> Result<(), String> {
    let began = Instant::now();
    while TcpStream::connect(addr).is_err() {
        if began.elapsed() > PATIENCE {
            return Err(format!("nobody listens on {addr}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// How wrk is run.
pub struct Wrk {
    pub path: &'static str,
    pub connections: usize,
    pub seconds: u64,
    /// Whether each request has a connection of its own.
    pub close: bool,
}

/// What wrk measured.
pub struct Load {
    pub rate: f64,
    pub requests: f64,
    pub p99_ms: f64,
}

impl Wrk {
    pub fn run(&self, addr: &str) -> Load {
        let mut command = Command::new(tool("wrk").expect("it was there at the start"));
        command.arg("-t2").arg(format!("-c{}", self.connections)).arg(format!("-d{}s", self.seconds)).arg("--latency");
        if self.close {
            command.args(["-H", "Connection: close"]);
        }
        let output = command.arg(format!("http://{addr}{}", self.path)).output().expect("wrk runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let word_behind = |mark: &str| Some(text.split_once(mark)?.1.split_whitespace().next()?.to_string());
        let rate = word_behind("Requests/sec:").and_then(|word| word.parse().ok()).unwrap_or(0.0);
        let requests = text.split_once(" requests in").and_then(|(before, _)| before.split_whitespace().last()?.parse().ok());
        let p99_ms = word_behind("99%").map_or(f64::NAN, |word| milliseconds(&word));
        if let Some((_, errors)) = text.split_once("Socket errors:").or(text.split_once("Non-2xx")) {
            super::say(&format!("note: wrk on {addr} met errors: {}", errors.lines().next().unwrap_or_default().trim()));
        }
        Load { rate, requests: requests.unwrap_or(rate * self.seconds as f64), p99_ms }
    }
}

/// A time as wrk writes it.
fn milliseconds(word: &str) -> f64 {
    let (number, factor) = match word {
        _ if word.ends_with("us") => (&word[..word.len() - 2], 0.001),
        _ if word.ends_with("ms") => (&word[..word.len() - 2], 1.0),
        _ => (word.trim_end_matches('s'), 1000.0),
    };
    number.parse::<f64>().unwrap_or(f64::NAN) * factor
}

/// Many connections that do nothing.
pub struct Idle {
    pub kilobytes_each: f64,
    _kept: Vec<TcpStream>,
}

impl Idle {
    /// Opens them, asks for something once on each, and looks at what the process in between has grown by.
    pub fn through(addr: &str, peer: &Peer) -> Self {
        let before = peer.resident_kilobytes();
        let mut kept = Vec::with_capacity(IDLE);
        for _ in 0..IDLE {
            let mut stream = TcpStream::connect(addr).expect("it listens");
            stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
            write!(stream, "GET /1k HTTP/1.1\r\nhost: {addr}\r\n\r\n").expect("it takes a request");
            let (mut seen, mut buffer) = (0, [0; 4096]);
            // The head is longer than nothing and the body has 1,024 bytes.
            while seen < 1_100 {
                match stream.read(&mut buffer) {
                    Ok(n @ 1..) => seen += n,
                    _ => break,
                }
            }
            kept.push(stream);
        }
        Self { kilobytes_each: (peer.resident_kilobytes() - before) / IDLE as f64, _kept: kept }
    }
}
