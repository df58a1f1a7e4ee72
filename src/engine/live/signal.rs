//! SIGINT, SIGTERM, SIGHUP and SIGQUIT: the first asks for an orderly end, the second ends the process at once; while something
//! outside is to be undone, the third.

use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
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
        let mut ends = {
            let _inside = runtime.enter();
            listen()?
        };
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            runtime.block_on(async {
                let mut waits = true;
                loop {
                    let number = next(&mut ends).await;
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

    /// Returns with the number of the first signal, 1, 2, 3 or 15, once it has come. Cancel safe.
    pub async fn first(&mut self) -> i32 {
        match self.first.wait_for(|number| *number != 0).await {
            Ok(number) => *number,
            // The thread lives as long as the process; were it gone, no signal could come.
            Err(_) => std::future::pending().await,
        }
    }
}

/// Begins to listen to every signal that ends a run, each with its number.
fn listen() -> io::Result<Vec<(i32, Signal)>> {
    // Whoever started this under `nohup` does not want it to end with the terminal.
    let hangup = Some(SignalKind::hangup()).filter(|_| !ignores_hangup());
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::quit()].into_iter().chain(hangup);
    kinds.map(|kind| Ok((kind.as_raw_value(), signal(kind)?))).collect()
}

/// The number of the next signal. Cancel safe.
async fn next(ends: &mut [(i32, Signal)]) -> i32 {
    poll_fn(|cx| {
        let came = ends.iter_mut().find_map(|(number, signal)| signal.poll_recv(cx).is_ready().then_some(*number));
        came.map_or(Poll::Pending, Poll::Ready)
    })
    .await
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
