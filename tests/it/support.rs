//! What the tests share: the binary, run within bounds, and small servers that behave as told.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::Duration;

/// The binary under test.
pub const BINARY: &str = env!("CARGO_BIN_EXE_stormwake");

/// A folder that goes with the value.
pub struct Folder(PathBuf);

impl Folder {
    /// A new folder, named after a test.
    pub fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file into it.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file of the test");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs under load need the machine for themselves; those that only need it to be there share it.
static MACHINE: RwLock<()> = RwLock::new(());

/// Holds the machine alone, for a run whose timing is judged.
pub fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// Holds the machine with others, for a run whose timing is not.
pub fn shared() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// What a finished command said.
#[derive(Debug)]
pub struct Said {
    /// Its exit code; none where a signal ended it.
    pub code: Option<i32>,
    /// Its stdout.
    pub out: String,
    /// Its stderr.
    pub err: String,
}

impl Said {
    /// The result that `--json` printed.
    pub fn result(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("stdout is no result: {e}\n{self:#?}"))
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// The binary with these arguments, in a folder, without a terminal, and without the job that these tests may be a step of.
pub fn command(folder: &Folder, args: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    ["GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"].iter().for_each(|name| _ = command.env_remove(name));
    command.args(args).current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the binary to its end.
pub fn stormwake(folder: &Folder, args: &[&str]) -> Said {
    command(folder, args).output().expect("the binary starts").into()
}

/// Runs until the run has evidence, three times at most: on a busy machine the generator may lag, and then
/// the run judges nothing (code 3), which is neither a pass nor a failure of what is tested.
pub fn with_evidence(mut run: impl FnMut() -> Said) -> Said {
    let _machine = alone();
    let mut said = run();
    for _ in 0..2 {
        if said.code != Some(3) || !said.out.contains("the generator lagged") {
            break;
        }
        let _ = writeln!(std::io::stderr(), "the machine was too busy to judge anything; once more");
        said = run();
    }
    said
}

/// A server on loopback, one thread a connection, that ends with the value.
pub struct Server {
    addr: SocketAddr,
    ending: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves each connection with `serve`.
    pub fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("an address");
        let ending = Arc::new(AtomicBool::new(false));
        let (serve, flag) = (Arc::new(serve), ending.clone());
        let acceptor = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if flag.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                // A peer that never speaks must not keep a thread for ever.
                let _ = stream.set_read_timeout(Some(Duration::from_secs(20)));
                let serve = serve.clone();
                std::thread::spawn(move || serve(stream));
            }
        });
        Self { addr, ending, acceptor: Some(acceptor) }
    }

    /// A server that answers each request with these bytes.
    pub fn answering(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |mut stream| {
            while read_head(&mut stream).is_some() {
                if stream.write_all(&bytes).is_err() {
                    return;
                }
            }
        })
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}/", self.addr)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.addr);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// Reads to the end of one request head; none where the peer went.
pub fn read_head(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    let mut byte = [0u8; 1024];
    while !head.windows(4).any(|w| w == b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(n) if n > 0 && head.len() < 65_536 => head.extend_from_slice(&byte[..n]),
            _ => return None,
        }
    }
    Some(head)
}
