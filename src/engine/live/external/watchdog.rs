//! The watchdog's leash: a process of its own that removes a run's faults when the run is killed, and the pipe by which it knows.
//!
//! What is said through the pipe: first a line of JSON with what to watch ([`Charge`]s), then words, a line each: `beat` once a second, `down N`
//! before the N-th proxy is disabled, `up N` once it was seen to be enabled again, `done` when the run has confirmed that nothing is left. Where the pipe ends without that, it removes what there is.
//! The other end is [`guard`](super::guard).

use super::client::Endpoint;
use crate::time::Span;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use tracing::{info, warn};

/// How long it may take to be ready.
const READY: Span = Span::from_secs(5);
/// How long it may take to end.
const END: Span = Span::from_secs(1);
/// How often it is told that all is well.
pub const BEAT: Span = Span::from_secs(1);
/// What it says when it watches.
pub const WATCHING: &str = "watching";
/// The hidden command that it is.
pub const COMMAND: &str = "watchdog";

/// What it watches over: a run's faults in one proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// Where they are.
    pub endpoint: Endpoint,
    /// The run's name there.
    pub run: String,
}

/// A watchdog that runs. Dropped without [`Watchdog::dismiss`], it removes whatever is left.
pub struct Watchdog {
    child: Mutex<Child>,
    pipe: Mutex<Option<ChildStdin>>,
}

impl Watchdog {
    /// Starts `program watchdog`, and waits until it watches.
    ///
    /// # Errors
    /// When it cannot be started, or does not watch within 5 s.
    pub async fn start(program: &Path, charges: &[Charge]) -> Result<Self, String> {
        let mut command = Command::new(program);
        command.arg(COMMAND).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().map_err(|error| format!("it cannot be started: {error}"))?;
        info!(pid = child.id(), charges = charges.len(), "the watchdog was started");
        let missing = "both are piped, and taken once";
        let (pipe, says) = (child.stdin.take().expect(missing), child.stdout.take().expect(missing));
        // A write must not wait for a watchdog that is stuck.
        let unblocked = rustix::io::ioctl_fionbio(&pipe, true);
        let watchdog = Self { child: Mutex::new(child), pipe: Mutex::new(Some(pipe)) };
        unblocked.map_err(|error| error.to_string())?;
        let charges = serde_json::to_string(charges).map_err(|error| error.to_string())?;
        let told = watchdog.say(&charges);
        let hears = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            let read = BufReader::new(io::Read::take(says, 1 << 10)).read_line(&mut line);
            read.is_ok() && line.trim() == WATCHING
        });
        let hears = tokio::time::timeout(READY.to_std(), hears).await;
        let problem = match (told, hears) {
            (Err(error), _) => error,
            (Ok(()), Ok(Ok(true))) => return Ok(watchdog),
            (Ok(()), Ok(_)) => "it ended before it watched".to_string(),
            (Ok(()), Err(_)) => format!("it did not watch within {READY}"),
        };
        watchdog.kill();
        Err(problem)
    }

    /// Tells it that the run lives.
    ///
    /// # Errors
    /// When nobody watches any more.
    pub fn beat(&self) -> Result<(), String> {
        self.say("beat")
    }

    /// Tells it whether a proxy is down, or about to be, by this run's doing.
    ///
    /// # Errors
    /// When nobody watches any more.
    pub fn holds_down(&self, number: usize, down: bool) -> Result<(), String> {
        self.say(&format!("{} {number}", if down { "down" } else { "up" }))
    }

    /// Leaves to it what could not be removed: it goes on trying for a while, whatever becomes of the run.
    pub fn leave(&self) {
        self.pipe.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Tells it that nothing is left to remove, and waits until it has gone.
    pub async fn dismiss(&self) {
        let told = self.say("done");
        info!(told = told.is_ok(), "the watchdog is dismissed: nothing is left");
        self.leave();
        let gone = async {
            while matches!(self.child.lock().unwrap_or_else(PoisonError::into_inner).try_wait(), Ok(None)) {
                tokio::time::sleep(Span::from_millis(5).to_std()).await;
            }
        };
        if tokio::time::timeout(END.to_std(), gone).await.is_err() {
            warn!("the watchdog does not end by itself: it is killed");
            self.kill();
        }
    }

    fn kill(&self) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        // It fails where it has gone already.
        let _ = child.kill();
        let _ = child.wait();
    }

    fn say(&self, line: &str) -> Result<(), String> {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        let pipe = pipe.as_mut().ok_or("the watchdog was dismissed")?;
        pipe.write_all(format!("{line}\n").as_bytes()).map_err(|error| format!("the watchdog has gone: {error}"))
    }
}
