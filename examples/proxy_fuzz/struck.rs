//! A run whose proxies have every fault of requests and answers in force: the way to what `stormwake proxy` does not install.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long it may take to begin, and to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much longer it runs than it is fuzzed.
const BEHIND: u64 = 3;

/// They act from beginning to end; some by turns.
const FAULTS: &[&str] = &[
    "on: struck, fault: { status: { code: 503, share: 5%, retry_after: 2s, headers: { x-a: b }, body: down } }",
    "on: struck, fault: { status: { code: 200, share: 5%, when: after } }",
    "on: struck, fault: { truncate: { share: 15% } }",
    "on: struck, fault: { truncate: { bytes: 1, end: rst, share: 10% } }",
    "on: struck, fault: { slow_body: { bytes: 3, every: 1ms, share: 15% } }",
    "on: struck, fault: { malformed: { kind: status_line, share: 3% } }",
    "on: struck, fault: { malformed: { kind: content_length, when: after, share: 5% } }",
    "on: struck, fault: { malformed: { kind: chunk_size, when: after, share: 5% } }",
    "on: struck, fault: { rate_limit: { rate: 2000/s, burst: 50 } }",
    "on: struck, fault: { limit_concurrency: { limit: 20, queue: 10, wait: 20ms } }",
    "on: struck, fault: { blackhole: { when: after, share: 2% } }",
    "on: struck, flap: { on: 200ms, off: 300ms }, fault: { hang: { release: true } }",
    "on: struck, every: 7, fault: { latency: { add: 3ms } }",
];

/// The process, ended with the value.
pub struct Struck {
    child: Child,
    /// What it says.
    log: PathBuf,
    folder: PathBuf,
    /// What speaks HTTP to a hostile upstream, and what speaks TLS to it.
    pub http: SocketAddr,
    pub tls: SocketAddr,
}

impl Struck {
    /// Starts a run of so many seconds and a few more, and waits until its proxies listen.
    pub fn start(program: &str, seconds: u64, fine: SocketAddr, hostile: SocketAddr) -> Self {
        let folder = std::env::temp_dir().join(format!("stormwake-proxy-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let [http, tls] = [free_port(), free_port()];
        let length = seconds + BEHIND;
        let steps: Vec<String> = FAULTS.iter().map(|fault| format!("  - {{ at: 0s, for: {length}s, {fault} }}\n")).collect();
        let plan = format!(
            "version: 1\nname: fuzz\nlength: {length}s\ntarget: {{ url: 'http://{fine}/' }}\n\
             policies: {{ app: {{ attempts: 1, timeout: 1s }} }}\n\
             fleets: {{ app: {{ clients: 1, policy: app, load: {{ constant: {{ rate: 1/s }} }} }} }}\n\
             proxies:\n  struck: {{ listen: {http}, upstream: {hostile} }}\n  sealed: {{ listen: {tls}, upstream: 'https://{hostile}' }}\n\
             timeline:\n{}",
            steps.concat()
        );
        let (file, log) = (folder.join("plan.yaml"), folder.join("log"));
        std::fs::write(&file, plan).expect("a file");
        let output = File::create(&log).expect("a file");
        let mut command = Command::new(program);
        command.arg("run").arg(file).arg("--out").arg(folder.join("out")).stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(output).spawn().expect("it starts");
        let mut started = Self { child, log, folder, http, tls };
        let began = Instant::now();
        while TcpStream::connect(http).is_err() || TcpStream::connect(tls).is_err() {
            let ended = started.child.try_wait().expect("it is ours");
            assert!(ended.is_none() && began.elapsed() < PATIENCE, "the run does not begin: {}", started.said());
            std::thread::sleep(Duration::from_millis(10));
        }
        started
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// All that it has said.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Whether it still runs, and what it has said.
    pub fn state(&mut self) -> (bool, Vec<String>) {
        let runs = self.child.try_wait().expect("it is ours").is_none();
        (runs, self.said().lines().map(ToString::to_string).collect())
    }

    /// Waits for its end, which is that of a run that was judged or could not be: never that of a panic or a signal.
    pub fn end(&mut self) -> Result<(), String> {
        let began = Instant::now();
        loop {
            match self.child.try_wait().expect("it is ours").map(|status| status.code()) {
                Some(Some(0..=7)) if !self.said().contains("panicked") => return Ok(()),
                Some(code) => return Err(format!("the run ended with {code:?}: {}", self.said())),
                None if began.elapsed() > PATIENCE + Duration::from_secs(BEHIND) => return Err("the run does not end".into()),
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

impl Drop for Struck {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn free_port() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr()).expect("a port")
}
