//! SIGINT, SIGTERM, SIGHUP and SIGQUIT: the first asks for an orderly end, the second ends the process at once. While something
//! outside is to be undone, the second says so, and the third leaves it undone: exit code 7, within a second.
//!
//! SIGHUP is the first or nothing: a terminal that closes says it more than once, by itself and by its shell, and nobody sits there who has
//! lost patience.

use super::group::Group;
use crate::time::Span;
use std::future::poll_fn;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Hears the signals that end a run.
#[derive(Clone, Debug)]
pub struct Signals {
    first: watch::Receiver<i32>,
    left: watch::Receiver<bool>,
}

/// Something outside that is to be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owing {
    /// The action's name.
    pub name: String,
    /// How long the undoing may take.
    pub within: Span,
    /// Whether it is being undone.
    pub begun: bool,
}

/// How long a run whose undoing is left may take to write its result.
const LAST: Span = Span::from_secs(1);
/// The exit code where something is left undone.
const LEFT_UNDONE: i32 = 7;
/// The number of SIGHUP.
const HANGUP: i32 = 1;
/// How long a message may take.
const PATIENCE: Span = Span::from_millis(200);

/// Whether nothing is left that an end would have to put in order.
static OVER: AtomicBool = AtomicBool::new(false);
/// The number of the first signal; 0 until one has come.
static HEARD: AtomicI32 = AtomicI32::new(0);
/// Whether somebody has asked for an end otherwise: then the first signal counts as the second.
static ASKED: AtomicBool = AtomicBool::new(false);
/// What is to be undone, in the order in which it was begun: then the second signal waits for it, and the third does not.
static OWED: Mutex<Vec<Owing>> = Mutex::new(Vec::new());
/// The same of what runs elsewhere, each with its number.
static OWED_REMOTE: Mutex<Vec<(usize, Owing)>> = Mutex::new(Vec::new());
static INSTALLED: Mutex<Option<Signals>> = Mutex::new(None);
/// Who has taken over the terminal.
static SCREEN: Mutex<Option<Arc<dyn Screen>>> = Mutex::new(None);

/// Whoever has taken over the terminal, so that it is given back before the process ends at a signal.
pub trait Screen: Send + Sync {
    /// Shows a sentence. Never waits.
    fn say(&self, text: &str);

    /// Gives the terminal back. May block, as long as a terminal that takes nothing.
    fn leave(&self);
}

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
        let ((heard, first), (leave, left)) = (watch::channel(0), watch::channel(false));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut ends = {
            let _inside = runtime.enter();
            listen()?
        };
        let hearing = async move {
            let number = next(&mut ends).await;
            if !OVER.load(Ordering::SeqCst) {
                let second = if ASKED.load(Ordering::SeqCst) && number != HANGUP {
                    number
                } else {
                    HEARD.store(number, Ordering::SeqCst);
                    heard.send_replace(number);
                    next_impatient(&mut ends).await
                };
                end(second, &mut ends, &leave).await;
            }
            leave_with(128 + number)
        };
        std::thread::Builder::new().name("signals".into()).spawn(move || runtime.block_on(hearing))?;
        let signals = Self { first, left };
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

    /// What outside is still to be undone, in the order in which it was begun.
    pub fn owe(all: Vec<Owing>) {
        *OWED.lock().unwrap_or_else(PoisonError::into_inner) = all;
    }

    /// What is still to be undone elsewhere, by a number of its own; none where nothing is.
    pub fn owe_remote(number: usize, owing: Option<Owing>) {
        let mut all = OWED_REMOTE.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(known, _)| *known != number);
        all.extend(owing.map(|owing| (number, owing)));
    }

    /// Whether a signal has said to leave undone what is.
    pub fn leaves() -> bool {
        Self::installed().is_some_and(|signals| *signals.left.borrow())
    }

    /// Returns once a signal says to leave undone what is. Cancel safe.
    pub async fn left() {
        if let Some(mut signals) = Self::installed()
            && signals.left.wait_for(|left| *left).await.is_ok()
        {
            return;
        }
        std::future::pending().await
    }

    fn installed() -> Option<Self> {
        INSTALLED.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Somebody has asked for an orderly end, otherwise than by a signal: the first signal ends the process at once, as the second does else.
    pub fn asked_otherwise() {
        ASKED.store(true, Ordering::SeqCst);
    }

    /// Tells who has the terminal; none once it is given back.
    pub fn take_screen(screen: Option<Arc<dyn Screen>>) {
        *SCREEN.lock().unwrap_or_else(PoisonError::into_inner) = screen;
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

/// What follows the second signal: ends the process at it or at the third, unless that ends by itself before.
async fn end(mut number: i32, ends: &mut [(i32, Signal)], leave: &watch::Sender<bool>) -> ! {
    if let Some(text) = waits_for(&owed()) {
        say(&text);
        number = next_impatient(ends).await;
    }
    let code = match left_undone(&owed()) {
        Some(text) => {
            say(&text);
            leave.send_replace(true);
            // The run writes its result and ends by itself, unless it is stuck or nobody wants to wait.
            let _ = tokio::time::timeout(LAST.to_std(), next_impatient(ends)).await;
            LEFT_UNDONE
        }
        None => 128 + number,
    };
    leave_with(code)
}

/// Ends the process, and every command that still runs.
fn leave_with(code: i32) -> ! {
    Group::kill_all();
    if let Some(screen) = screen() {
        bounded("leaving", move || screen.leave());
    }
    std::process::exit(code)
}

fn owed() -> Vec<Owing> {
    let mut all = OWED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    all.extend(OWED_REMOTE.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|(_, owing)| owing.clone()));
    all
}

/// What the second signal waits for, in words.
fn waits_for(owed: &[Owing]) -> Option<String> {
    let (last, before) = owed.split_last()?;
    let (more, them) = if before.is_empty() { (String::new(), "it") } else { (format!(", then {} more", before.len()), "them") };
    Some(format!("undoing {}, up to {}{more}; once more leaves {them} undone", last.name, last.within))
}

/// What the third signal leaves undone, in words.
fn left_undone(owed: &[Owing]) -> Option<String> {
    let how = |begun| if begun { "cut short" } else { "not begun" };
    let names: Vec<String> = owed.iter().rev().map(|owing| format!("{} ({})", owing.name, how(owing.begun))).collect();
    (!names.is_empty()).then(|| format!("error: left undone: {}", names.join(", ")))
}

/// Says something on stderr, for as long as that takes within bounds: whoever reads it may be stuck.
fn say(text: &str) {
    if let Some(screen) = screen() {
        return screen.say(text);
    }
    // A line of progress may stand there, and what the terminal shows for the key.
    let text = if io::stderr().is_terminal() {
        format!(
            "
{text}
"
        )
    } else {
        format!(
            "{text}
"
        )
    };
    bounded("said", move || drop(io::stderr().write_all(text.as_bytes())));
}

fn screen() -> Option<Arc<dyn Screen>> {
    SCREEN.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Does something that a terminal may keep from coming to its end, and waits for it within bounds.
fn bounded(name: &str, work: impl FnOnce() + Send + 'static) {
    let (done, heard) = std::sync::mpsc::channel();
    let working = std::thread::Builder::new().name(name.into()).spawn(move || {
        work();
        let _ = done.send(());
    });
    if working.is_ok() {
        let _ = heard.recv_timeout(PATIENCE.to_std());
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

/// The number of the next signal that asks for more than an orderly end. Cancel safe.
async fn next_impatient(ends: &mut [(i32, Signal)]) -> i32 {
    loop {
        let number = next(ends).await;
        if number != HANGUP || OVER.load(Ordering::SeqCst) {
            return number;
        }
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
    fn what_is_owed_is_named_the_last_begun_first() {
        let owing = |name: &str, begun| Owing { name: name.into(), within: Span::from_secs(300), begun };
        assert_eq!((waits_for(&[]), left_undone(&[])), (None, None));
        let one = [owing("stop", true)];
        assert_eq!(waits_for(&one).unwrap(), "undoing stop, up to 5m; once more leaves it undone");
        let three = [owing("a", false), owing("b", false), owing("c", true)];
        assert_eq!(waits_for(&three).unwrap(), "undoing c, up to 5m, then 2 more; once more leaves them undone");
        assert_eq!(left_undone(&three).unwrap(), "error: left undone: c (cut short), b (not begun), a (not begun)");
    }

    #[test]
    fn an_ignored_signal_is_known_by_its_bit() {
        let status = |mask: &str| format!("Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t{mask}\nSigCgt:\t0000000000000001\n");
        assert!(is_ignored(&status("0000000000001001"), SignalKind::hangup()));
        assert!(!is_ignored(&status("0000000000001000"), SignalKind::hangup()));
        assert!(is_ignored(&status("0000000000004000"), SignalKind::terminate()));
        assert!(!is_ignored("", SignalKind::hangup()));
    }
}
