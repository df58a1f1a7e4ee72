//! The watchdog itself: waits at the end of a pipe, and removes a run's faults when the run is gone, or says nothing for the length of its lease.
//!
//! It has a session of its own and ignores the signals that end a run, because the run tells it what to do; so it lives until the pipe says that
//! it may go, or is closed. Then it tries for half a minute, and says how to remove by hand what it could not. Nothing survives that
//! kills both, as the end of a container or a machine does.

use super::client::ApiError;
use super::watchdog::{Charge, WATCHING};
use crate::fault::external::{Call, Hand, Held, MARK, Server, Wish};
use crate::time::Span;
use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

/// A run that says nothing for so long is taken for dead.
const LEASE: Span = Span::from_secs(5);
/// How long it tries to remove what a run has left.
pub const PERSISTENCE: Span = Span::from_secs(30);
/// The pause between two tries.
const AGAIN: Span = Span::from_millis(200);
/// The longest line that it reads, in bytes.
const MAX_LINE: u64 = 1 << 20;
/// So many lines may wait.
const WAITING: usize = 64;

/// Watches until it is told to go, or has done what it is for; whether nothing is left. `input` is the pipe, `output` where it says that
/// it watches.
///
/// # Errors
/// When it cannot begin: a line that makes no sense, or no runtime.
pub fn watch(input: impl io::Read + Send + 'static, output: &mut dyn Write) -> io::Result<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    {
        let _inside = runtime.enter();
        for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::quit(), SignalKind::hangup()] {
            // Taken, and never looked at: dropping this leaves the handler.
            drop(signal(kind)?);
        }
    }
    // The terminal's Ctrl-C is for the run. It fails where this leads a group already, which keeps the keys away as well.
    let _ = rustix::process::setsid();
    let lines = lines_of(input);
    let first = lines.recv().map_err(|_| io::Error::other("nothing was said"))?;
    let charges: Vec<Charge> = serde_json::from_str(&first)?;
    writeln!(output, "{WATCHING}")?;
    output.flush()?;
    Ok(Guard { runtime, charges, down: BTreeSet::new() }.keep(&lines))
}

/// The lines of a pipe, read by a thread of their own; they end with it.
fn lines_of(input: impl io::Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = sync_channel(WAITING);
    std::thread::spawn(move || {
        let mut input = io::BufReader::new(input);
        loop {
            let mut line = Vec::new();
            match io::Read::take(&mut input, MAX_LINE).read_until(b'\n', &mut line) {
                Ok(1..) if line.ends_with(b"\n") => {}
                _ => return,
            }
            if sender.send(String::from_utf8_lossy(&line).trim().to_string()).is_err() {
                return;
            }
        }
    });
    lines
}

struct Guard {
    runtime: Runtime,
    charges: Vec<Charge>,
    /// The proxies that the run has disabled, or was about to.
    down: BTreeSet<usize>,
}

impl Guard {
    fn keep(mut self, lines: &Receiver<String>) -> bool {
        let mut expired = false;
        loop {
            match lines.recv_timeout(LEASE.to_std()) {
                Ok(line) if line == "done" => return true,
                Ok(line) => {
                    expired = false;
                    self.hear(&line);
                }
                Err(RecvTimeoutError::Timeout) if expired => {}
                Err(RecvTimeoutError::Timeout) => {
                    expired = true;
                    self.clear(&format!("the run has said nothing for {LEASE}"));
                }
                Err(RecvTimeoutError::Disconnected) => return self.clear("the run has gone"),
            }
        }
    }

    fn hear(&mut self, line: &str) {
        let (word, number) = line.split_once(' ').unwrap_or((line, ""));
        if let Ok(number) = number.parse() {
            match word {
                "down" => drop(self.down.insert(number)),
                "up" => drop(self.down.remove(&number)),
                _ => {}
            }
        }
    }

    /// Removes everything of all charges, side by side; whether nothing is left.
    fn clear(&mut self, why: &str) -> bool {
        let cleared = self.runtime.block_on(async {
            let mut clearing = JoinSet::new();
            for (number, charge) in self.charges.iter().enumerate() {
                clearing.spawn(clear(charge.clone(), self.down.contains(&number), why.to_string()));
            }
            clearing.join_all().await
        });
        let all = cleared.iter().all(|cleared| *cleared);
        if all {
            self.down.clear();
        }
        all
    }
}

/// Removes everything of a charge, and says what came of it where there was anything; whether nothing is left.
async fn clear(Charge { endpoint, run }: Charge, down: bool, why: String) -> bool {
    let mut hand = Hand::new(&run, Server::Toxiproxy).having_taken_down(down);
    let (mut calls, mut left, mut problem) = (0, Vec::new(), None);
    let tries = async {
        loop {
            let found = |hand: &Hand, held: &Held| left = hand.calls(held, &Wish::default());
            let counted = |_: &Call| {
                calls += 1;
                Ok(())
            };
            match endpoint.reach(&mut hand, &Wish::default(), counted, found).await {
                Ok(_) | Err(ApiError::NoProxy { .. }) => return,
                Err(error) => problem = Some(error),
            }
            tokio::time::sleep(AGAIN.to_std()).await;
        }
    };
    let cleared = tokio::time::timeout(PERSISTENCE.to_std(), tries).await.is_ok();
    let at = format!("the proxy `{}` of the Toxiproxy at {}", endpoint.proxy, endpoint.authority);
    if cleared && calls > 0 {
        say(&format!("{why}: its faults were removed from {at}"));
    } else if !cleared {
        let problem = problem.map(|problem| format!(": {problem}")).unwrap_or_default();
        say(&format!("{why}: its faults could not be removed from {at}{problem}"));
        if left.is_empty() {
            say(&format!("by hand: {}, then remove what begins with {MARK}{run}-, and enable it", endpoint.by_hand_shown()));
        }
        left.iter().for_each(|call| say(&format!("by hand: {}", endpoint.by_hand(call))));
    }
    cleared
}

fn say(text: &str) {
    // Where nobody reads it, nothing can be done about that.
    let _ = writeln!(io::stderr(), "stormwake watchdog: {text}");
}
