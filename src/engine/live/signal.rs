//! SIGINT, SIGTERM and SIGHUP: the first asks for an orderly end, the second ends the process at once; while something outside is
//! to be undone, the third.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Hears the signals that end a run.
#[derive(Clone, Debug)]
pub struct Signals {
    first: watch::Receiver<i32>,
}

/// Whether nothing is left that an end would have to put in order.
static OVER: AtomicBool = AtomicBool::new(false);
/// The number of the first signal; 0 until one has come.
static HEARD: AtomicI32 = AtomicI32::new(0);
/// Whether something outside is still to be undone: then the second signal waits for it, and the third does not.
static OWED: AtomicBool = AtomicBool::new(false);
static INSTALLED: Mutex<Option<Signals>> = Mutex::new(None);

impl Signals {
    /// Takes the signals over, for as long as the process lives. A thread of their own waits for them, so that the
    /// second one ends the process whatever else is stuck.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn install() -> io::Result<Self> {
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(signals) = &*installed {
            return Ok(signals.clone());
        }
        let (heard, first) = watch::channel(0);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (mut interrupt, mut terminate, mut hangup) = {
            let _inside = runtime.enter();
            // Whoever started this under `nohup` does not want it to end with the terminal.
            let hangup = if ignores_hangup() { None } else { Some(signal(SignalKind::hangup())?) };
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, hangup)
        };
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            runtime.block_on(async {
                let mut waits = true;
                loop {
                    let number = tokio::select! {
                        _ = interrupt.recv() => SignalKind::interrupt().as_raw_value(),
                        _ = terminate.recv() => SignalKind::terminate().as_raw_value(),
                        () = next(&mut hangup) => SignalKind::hangup().as_raw_value(),
                    };
                    if *heard.borrow() != 0 && OWED.load(Ordering::SeqCst) && std::mem::take(&mut waits) {
                        continue;
                    }
                    if *heard.borrow() != 0 || OVER.load(Ordering::SeqCst) {
                        std::process::exit(128 + number);
                    }
                    HEARD.store(number, Ordering::SeqCst);
                    heard.send_replace(number);
                }
            });
        })?;
        let signals = Self { first };
        *installed = Some(signals.clone());
        Ok(signals)
    }

    /// The number of the first signal, if one has come.
    pub fn heard(&self) -> Option<i32> {
        Some(*self.first.borrow()).filter(|number| *number != 0)
    }

    /// Becomes the number of the first signal, for work that waits for nothing and only looks.
    pub fn flag() -> &'static AtomicI32 {
        &HEARD
    }

    /// Whether something outside is still to be undone.
    pub fn owe(something: bool) {
        OWED.store(something, Ordering::SeqCst);
    }

    /// The run is over and its report is written: from here on the first signal ends the process.
    pub fn release() {
        OVER.store(true, Ordering::SeqCst);
    }

    /// Returns with the number of the first signal, 1, 2 or 15, once it has come. Cancel safe.
    pub async fn first(&mut self) -> i32 {
        match self.first.wait_for(|number| *number != 0).await {
            Ok(number) => *number,
            // The thread lives as long as the process; were it gone, no signal could come.
            Err(_) => std::future::pending().await,
        }
    }
}

/// Returns at the next signal; never, where it is not listened to.
async fn next(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

fn ignores_hangup() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| is_ignored(&status, SignalKind::hangup()))
}

/// Whether a process ignores a signal, by its `/proc/PID/status`.
fn is_ignored(status: &str, signal: SignalKind) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal.as_raw_value() - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_signal_is_known_by_its_bit() {
        let status = |mask: &str| format!("Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t{mask}\nSigCgt:\t0000000000000001\n");
        assert!(is_ignored(&status("0000000000001001"), SignalKind::hangup()));
        assert!(!is_ignored(&status("0000000000001000"), SignalKind::hangup()));
        assert!(is_ignored(&status("0000000000004000"), SignalKind::terminate()));
        assert!(!is_ignored("", SignalKind::hangup()));
    }
}
