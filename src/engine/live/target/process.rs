//! The child process: starting it, hearing of it, and ending it, whatever happens.
//!
//! Its pipes are read by two threads of their own, not by a runtime: the child is drained and its last words are
//! kept whether or not the runtime that started it still turns.

use super::error::TargetError;
use super::wire::{Change, Changed, PLAN_END, Ready, TargetStats};
use crate::metrics::record::ServiceCounts;
use crate::time::Span;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{debug, info, warn};

/// How long a child may take to be ready: it has a plan to read and a port to open.
const READY: Span = Span::from_secs(10);
/// How long a child may take to end once it is told to.
const END: Span = Span::from_secs(2);
/// How long the last words of a child that has ended may take to come through its pipe.
const LAST_WORDS: Span = Span::from_secs(1);
/// The longest line that a child may say, in bytes.
const MAX_LINE: u64 = 64 << 10;
/// How much of a child's stderr is kept, in bytes.
const MAX_STDERR: usize = 8 << 10;

/// A running child with the built-in target. Dropped, it is killed and collected.
pub struct TargetProcess {
    running: Running,
    /// Lines for its stdin; their end is the child's.
    stdin: Sender<String>,
    addr: SocketAddr,
}

/// A child and what it has said so far. Dropped, it is killed and collected.
struct Running {
    child: Child,
    stats: Arc<Mutex<Option<TargetStats>>>,
    stderr: Arc<Mutex<String>>,
    /// Turns true once the child's stdout and stderr have ended, and all of both is heard.
    silent: watch::Receiver<bool>,
    /// The changes that it has made.
    changed: mpsc::UnboundedReceiver<usize>,
}

impl TargetProcess {
    /// Starts `program target --child` with a plan and waits until it listens. The child has a process group of
    /// its own, so that the terminal's Ctrl-C does not reach it: its parent decides when it ends. Needs a runtime
    /// with time enabled, as [`TargetProcess::stop`] does.
    ///
    /// # Errors
    /// When the program cannot be started, ends with an error (which the message passes on), or is not ready
    /// within 10 s. No child is left behind then.
    pub async fn spawn(program: &Path, plan_yaml: &str) -> Result<Self, TargetError> {
        let mut command = Command::new(program);
        command.args(["target", "--child"]);
        Self::spawn_command(command, plan_yaml, READY).await
    }

    async fn spawn_command(command: Command, plan_yaml: &str, patience: Span) -> Result<Self, TargetError> {
        let shown = command.get_program().display().to_string();
        let (mut running, pipe, first) =
            Running::start(command).map_err(|source| TargetError::Start { program: shown.clone(), source })?;
        let given = give_plan(pipe, plan_yaml);
        let (stdin, line) = match tokio::time::timeout(patience.to_std(), async { tokio::join!(given, first) }).await {
            Ok((Ok(stdin), Ok(line))) => (stdin, line),
            Ok(_) => return Err(running.ended().await),
            Err(_) => return Err(TargetError::NotReady { patience, stderr: running.stderr() }),
        };
        match serde_json::from_str::<Ready>(&line) {
            Ok(Ready { ready: addr }) => {
                info!(pid = running.child.id(), %addr, "the built-in target has started");
                Ok(Self { running, stdin, addr })
            }
            Err(_) => {
                let line = line.trim().chars().take(200).collect();
                Err(TargetError::Protocol { program: shown, line })
            }
        }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.running.child.id()
    }

    /// Has it make a change: the plan's action of this number. Never waits.
    pub fn change(&self, action: usize) {
        debug!(action, "the built-in target is told to make a change");
        let line = serde_json::to_string(&Change { change: action }).expect("a number becomes JSON");
        // One that has ended makes no change, and does not say that it did.
        let _ = self.stdin.send(line + "\n");
    }

    /// The next change that it says it has made; never, where it says nothing more.
    pub async fn changed(&mut self) -> usize {
        match self.running.changed.recv().await {
            Some(action) => action,
            None => std::future::pending().await,
        }
    }

    /// What it and its server counted up to its last line, at most about a second ago; none before the first line.
    pub fn stats(&self) -> Option<TargetStats> {
        self.running.stats()
    }

    /// Why it is no longer running, in a sentence; none while it is.
    pub fn died(&mut self) -> Option<String> {
        let status = self.running.child.try_wait().ok().flatten()?;
        warn!(pid = self.running.child.id(), %status, "the built-in target has died");
        // It ends in good order only where it is told to, and nobody here has told it.
        let status = if status.success() { "told to by someone else, as with SIGTERM".into() } else { status.to_string() };
        let stderr = self.running.stderr();
        Some(TargetError::Died { status, stderr }.to_string())
    }

    /// Ends it: closes its stdin, waits up to 2 s for its last counts, then kills it. It is gone when this returns.
    pub async fn stop(self) -> Option<ServiceCounts> {
        self.stop_within(END).await
    }

    async fn stop_within(self, patience: Span) -> Option<ServiceCounts> {
        let Self { mut running, stdin, .. } = self;
        drop(stdin);
        let status = running.collect(patience).await.map(|status| status.to_string());
        info!(pid = running.child.id(), status, "the built-in target has ended");
        running.stats().map(Into::into)
    }
}

impl Running {
    /// Starts the child and its two readers; gives its stdin and its first line to come.
    fn start(mut command: Command) -> io::Result<(Self, ChildStdin, oneshot::Receiver<String>)> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn()?;
        let missing = "each of the three is piped, and taken once";
        let stdin = child.stdin.take().expect(missing);
        let (stdout, stderr) = (child.stdout.take().expect(missing), child.stderr.take().expect(missing));
        let (first, first_line) = oneshot::channel();
        let (silence, silent) = watch::channel(false);
        let (made, changed) = mpsc::unbounded_channel();
        let running = Self { child, stats: Arc::default(), stderr: Arc::default(), silent, changed };
        let (stats, words) = (running.stats.clone(), running.stderr.clone());
        let errors = std::thread::spawn(move || keep_last(stderr, &words));
        std::thread::spawn(move || {
            hear(stdout, first, &stats, &made);
            let _ = errors.join();
            let _ = silence.send(true);
        });
        Ok((running, stdin, first_line))
    }

    fn stats(&self) -> Option<TargetStats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn stderr(&self) -> String {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for a child that is about to end, kills it where it does not, and hears it out.
    async fn collect(&mut self, patience: Span) -> Option<ExitStatus> {
        let ended = async {
            while matches!(self.child.try_wait(), Ok(None)) {
                tokio::time::sleep(Span::from_millis(2).to_std()).await;
            }
        };
        if tokio::time::timeout(patience.to_std(), ended).await.is_err() {
            let _ = self.child.kill();
        }
        let status = self.child.wait().ok();
        // Bounded, for a grandchild could hold the pipe open.
        let _ = tokio::time::timeout(LAST_WORDS.to_std(), self.silent.wait_for(|silent| *silent)).await;
        status
    }

    /// The error of a child that closed its pipes before it was ready.
    async fn ended(&mut self) -> TargetError {
        let status = self.collect(END).await.map_or_else(|| "its status is lost".to_string(), |status| status.to_string());
        TargetError::Ended { status, stderr: self.stderr() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both do nothing to a child that was collected already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes the plan and then lines, from a thread of its own, for a child that does not read must not stall its parent. Gives the way to
/// the lines; dropped, it ends the child.
fn give_plan(mut stdin: ChildStdin, plan_yaml: &str) -> oneshot::Receiver<Sender<String>> {
    let text = format!("{}\n{PLAN_END}\n", plan_yaml.trim_end_matches('\n'));
    let (sender, given) = oneshot::channel();
    std::thread::spawn(move || {
        let (lines, waiting): (Sender<String>, Receiver<String>) = channel();
        if stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush()).is_err() || sender.send(lines).is_err() {
            return;
        }
        for line in waiting {
            if stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush()).is_err() {
                return;
            }
        }
    });
    given
}

/// Reads the child's lines to the end: the first goes to who waits for it, the others are counts, or changes made.
fn hear(
    stdout: impl Read,
    first: oneshot::Sender<String>,
    stats: &Mutex<Option<TargetStats>>,
    made: &mpsc::UnboundedSender<usize>,
) {
    let mut reader = BufReader::new(stdout);
    let mut first = Some(first);
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        match first.take() {
            Some(sender) => drop(sender.send(String::from_utf8_lossy(&line).into_owned())),
            None => {
                if let Ok(Changed { changed }) = serde_json::from_slice(&line) {
                    let _ = made.send(changed);
                } else if let Ok(heard) = serde_json::from_slice(&line) {
                    *stats.lock().unwrap_or_else(PoisonError::into_inner) = Some(heard);
                }
            }
        }
    }
}

/// Reads stderr to its end, and keeps the last of it.
fn keep_last(mut stderr: impl Read, words: &Mutex<String>) {
    let mut chunk = [0u8; 1024];
    while let Ok(read @ 1..) = stderr.read(&mut chunk) {
        let mut kept = words.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_str(&String::from_utf8_lossy(&chunk[..read]));
        let surplus = kept.len().saturating_sub(MAX_STDERR);
        let cut = (surplus..=kept.len()).find(|at| kept.is_char_boundary(*at)).unwrap_or(0);
        kept.drain(..cut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a shell script in the child's place, with 300 ms to be ready.
    fn spawn(script: &str) -> (tokio::runtime::Runtime, Result<TargetProcess, TargetError>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        let patience = Span::from_millis(300);
        let spawned = runtime.block_on(TargetProcess::spawn_command(command, "version: 1", patience));
        (runtime, spawned)
    }

    fn message(script: &str) -> String {
        spawn(script).1.map(|_| ()).expect_err(script).to_string()
    }

    #[test]
    fn whatever_a_child_does_instead_of_getting_ready_is_said() {
        let hangs = message("echo busy >&2; exec sleep 60");
        assert!(hangs.contains("was not ready within 300ms; it said: busy"), "{hangs}");
        let ends = message("cat > /dev/null & echo broken >&2; exit 9");
        assert!(ends.contains("before it was ready (exit status: 9); it said: broken"), "{ends}");
        let babbles = message("exec yes");
        assert!(babbles.contains("answered `y` where it should say where it listens"), "{babbles}");
        let floods = message("head -c 1000000 /dev/zero; exec sleep 60");
        assert!(floods.len() < 1000 && floods.contains("answered `"), "{floods}");
    }

    #[test]
    fn a_child_that_somebody_else_ended_says_so() {
        let (runtime, spawned) = spawn(r#"echo '{"ready":"127.0.0.1:9"}'; trap 'exit 0' TERM; while :; do sleep 0.01; done"#);
        let mut target = spawned.unwrap();
        let pid = rustix::process::Pid::from_raw(i32::try_from(target.id()).unwrap()).unwrap();
        assert_eq!(target.died(), None);
        runtime.block_on(async {
            for _ in 0..500 {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                if let Some(why) = target.died() {
                    // A shell that had not come to its trap dies of the signal itself.
                    assert!(why.contains("SIGTERM"), "{why}");
                    return;
                }
            }
            panic!("it does not end");
        });
    }

    #[test]
    fn a_child_that_does_not_end_by_itself_is_killed() {
        let script = r#"echo '{"ready":"127.0.0.1:9"}'; echo '{"arrived":3'; exec sleep 60"#;
        let (runtime, spawned) = spawn(script);
        let target = spawned.unwrap();
        assert_eq!(target.addr(), SocketAddr::from(([127, 0, 0, 1], 9)));
        let pid = target.id();
        let counts = runtime.block_on(target.stop_within(Span::from_millis(20)));
        assert_eq!(counts, None, "a broken line counts for nothing");
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
}
