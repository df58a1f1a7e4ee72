//! `-v`: what the program does, on stderr, a line each.
//!
//! Only stormwake's own modules speak. Lines are written by a thread of their own, through a bounded queue: a terminal that is stopped holds
//! up nobody, and lines that find no room are counted. The time is the machine's, in UTC. What may be logged of headers, URLs and commands
//! says [`Redacted`].

use crate::engine::Observer;
use crate::engine::live::clock::{Clock, LiveClock};
use crate::engine::live::redacted::Redacted;
use crate::metrics::{ActionOutcome, RunEvent, Window};
use crate::plan::{HeaderValue, Loaded};
use crate::time::Timestamp;
use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tracing::{Level, debug, info, trace, warn};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt;

/// The variable that says a level where no flag can be given.
const VARIABLE: &str = "STORMWAKE_LOG";
/// How many lines may wait to be written.
const WAITING: usize = 4096;
/// The longest line, in bytes.
const LONGEST: usize = 4096;
/// How long the last lines may take.
const LAST: Duration = Duration::from_millis(500);

/// What it is given.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Verbose {
    /// Say on stderr what is done: -v each step, -vv with details, -vvv with every connection. Values of headers and queries of URLs
    /// are left out. Where no flag can be given, STORMWAKE_LOG=info, debug or trace does the same.
    #[arg(long, short, action = clap::ArgAction::Count)]
    verbose: u8,
}

/// Where lines go; none before a log has begun.
static LINES: OnceLock<SyncSender<Entry>> = OnceLock::new();

enum Entry {
    Line(Vec<u8>),
    /// Everything before it is to be written.
    End(SyncSender<()>),
}

impl Verbose {
    /// Begins to log, where that is asked for. A second call changes nothing.
    pub fn start(self) {
        let Some(level) = self.level() else { return };
        let (lines, waiting) = sync_channel(WAITING);
        let lost = Arc::<AtomicU64>::default();
        if LINES.set(lines.clone()).is_err() {
            return;
        }
        let told = lost.clone();
        let started = std::thread::Builder::new().name("log".into()).spawn(move || write(&waiting, &told, &mut io::stderr()));
        if started.is_ok() {
            let layer = tracing_subscriber::fmt::layer().with_writer(Queue { lines, lost }).with_timer(Utc);
            let own = Targets::new().with_target(env!("CARGO_PKG_NAME"), level);
            // There is none yet: this is the only place that sets one.
            let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(own).with(layer));
        }
    }

    /// Whether anything is logged.
    pub fn is_on(self) -> bool {
        self.level().is_some()
    }

    fn level(self) -> Option<Level> {
        level(self.verbose, std::env::var(VARIABLE).ok().as_deref())
    }
}

/// A flag goes before the variable, and what is no level is none.
fn level(verbose: u8, variable: Option<&str>) -> Option<Level> {
    match (verbose, variable) {
        (0, Some(word)) => word.trim().parse().ok().filter(|_| word.trim().parse::<u8>().is_err()),
        (0, None) => None,
        (1, _) => Some(Level::INFO),
        (2, _) => Some(Level::DEBUG),
        _ => Some(Level::TRACE),
    }
}

/// Waits, for a bounded time, until everything is written.
pub fn end() {
    if let Some(lines) = LINES.get() {
        let (done, written) = sync_channel(1);
        if lines.try_send(Entry::End(done)).is_ok() {
            let _ = written.recv_timeout(LAST);
        }
    }
}

fn write(waiting: &Receiver<Entry>, lost: &AtomicU64, out: &mut impl Write) {
    for entry in waiting {
        // A stream that takes no more is no reason to end a run.
        let _ = match entry {
            Entry::Line(line) => out.write_all(&line),
            Entry::End(done) => {
                let flushed = out.flush();
                // Who asked may have gone.
                let _ = done.try_send(());
                flushed
            }
        };
        let lost = lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let _ = writeln!(out, "{lost} lines of the log found no room");
        }
    }
}

/// Hands lines to the thread that writes them.
#[derive(Clone)]
struct Queue {
    lines: SyncSender<Entry>,
    lost: Arc<AtomicU64>,
}

/// One line.
struct Line<'a> {
    text: Vec<u8>,
    queue: &'a Queue,
}

impl<'a> MakeWriter<'a> for Queue {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line { text: Vec::new(), queue: self }
    }
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = LONGEST.saturating_sub(self.text.len());
        self.text.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let mut text = std::mem::take(&mut self.text);
        if text.last().is_some_and(|last| *last != b'\n') {
            text.push(b'\n');
        }
        if self.queue.lines.try_send(Entry::Line(text)).is_err() {
            self.queue.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The machine's time, in UTC to the millisecond.
struct Utc;

impl FormatTime for Utc {
    fn format_time(&self, w: &mut Writer<'_>) -> fmt::Result {
        let now = jiff::Timestamp::from_millisecond(LiveClock::waiting().wall_millis()).unwrap_or_default();
        write!(w, "{now:.3}")
    }
}

/// Says which plan it is that was loaded, and what the command line changed of it.
pub fn plan_loaded(path: &str, loaded: &Loaded, overrides: &[String]) {
    let keys: Vec<String> = overrides.iter().map(|text| Redacted::Override(text).to_string()).collect();
    let Loaded { plan, sha256, .. } = loaded;
    let (fleets, faults, actions) = (plan.fleets.len(), plan.timeline.len(), plan.actions.len());
    info!(?path, name = ?plan.name, sha256 = %sha256, seed = plan.seed, length = %plan.length, ?keys, fleets, faults, actions, "plan loaded");
    if let Some(url) = &plan.target.url {
        let url = format!("{}://{}{}", url.value.scheme.word(), url.value.authority(), url.value.path);
        debug!(url = %Redacted::Url(&url), "the plan's target");
    }
    for entry in &plan.target.headers.0 {
        let secret = matches!(entry.value, HeaderValue::Secret(_));
        debug!(header = %Redacted::Header(&entry.name), secret, "sent with every request");
    }
}

/// Logs what happens to a run.
pub struct Logged;

impl Observer for Logged {
    fn event(&mut self, at: Timestamp, event: &RunEvent) {
        let at = format_args!("{:.3}s", at.as_secs_f64()).to_string();
        match event {
            RunEvent::Started => info!(%at, "the run begins"),
            RunEvent::PhaseStarted { phase } => info!(%at, ?phase, "a phase began"),
            RunEvent::FaultStarted { fault } => info!(%at, ?fault, "a fault was applied"),
            RunEvent::FaultEnded { fault, touched } => info!(%at, ?fault, touched, "a fault was removed"),
            RunEvent::Acted { action } => {
                let (name, kind, affected) = (&action.name, action.kind, action.affected);
                match action.outcome {
                    ActionOutcome::Done => info!(%at, action = ?name, kind, affected, "an action was done"),
                    ActionOutcome::Failed => warn!(%at, action = ?name, kind, "an action failed"),
                    ActionOutcome::Skipped => info!(%at, action = ?name, kind, "an action was left out"),
                }
            }
            RunEvent::Undone { action, confirmed: true, .. } => info!(%at, ?action, "an action was undone"),
            RunEvent::Undone { action, confirmed: false, .. } => warn!(%at, ?action, "an action could not be undone"),
            RunEvent::Stopping { reason } => warn!(%at, ?reason, "the run is being stopped"),
            RunEvent::Check { check, passed, .. } => info!(%at, ?check, passed, "a check of stop_if changed its mind"),
            RunEvent::FaultCutShort { fault } => info!(%at, ?fault, "the operator ended a fault early"),
            RunEvent::Note { text } => info!(%at, ?text, "a note"),
            RunEvent::Noted { text } => info!(%at, ?text, "the operator noted something"),
            RunEvent::Refused { text } => warn!(%at, ?text, "what the operator asked for was refused"),
            RunEvent::Warning { text } => warn!(%at, ?text, "a warning"),
            RunEvent::Ended => info!(%at, "the run is over"),
        }
    }

    fn window(&mut self, window: &Window, phase: &str) {
        let all = &window.all;
        debug!(
            t = window.start.as_secs_f64(),
            ?phase,
            offered = all.offered,
            attempts = all.attempts,
            retries = all.retries,
            succeeded = all.succeeded,
            failed = all.failed,
            in_flight = all.in_flight,
            backlog = all.backlog,
            "a window is complete"
        );
        trace!(t = window.start.as_secs_f64(), by_outcome = ?all.by_outcome, "how its attempts ended");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_go_before_the_variable() {
        for (flags, variable, wanted) in [
            (0, None, None),
            (1, None, Some(Level::INFO)),
            (2, None, Some(Level::DEBUG)),
            (3, None, Some(Level::TRACE)),
            (255, None, Some(Level::TRACE)),
            (0, Some("debug"), Some(Level::DEBUG)),
            (0, Some("TRACE "), Some(Level::TRACE)),
            (1, Some("trace"), Some(Level::INFO)),
            (0, Some("off"), None),
            (0, Some("stormwake=debug"), None),
            (0, Some("3"), None),
        ] {
            assert_eq!(level(flags, variable), wanted, "{flags} {variable:?}");
        }
    }

    #[test]
    fn a_stream_that_stands_still_costs_lines_and_holds_up_nobody() {
        let (lines, waiting) = sync_channel(2);
        let queue = Queue { lines, lost: Arc::default() };
        for n in 0..5 {
            writeln!(queue.make_writer(), "line {n}").unwrap();
        }
        queue.make_writer().write_all(&[b'x'; 2 * LONGEST]).unwrap();
        let lost = queue.lost.clone();
        drop(queue);
        let mut out = Vec::new();
        write(&waiting, &lost, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "line 0\n4 lines of the log found no room\nline 1\n");
    }

    #[test]
    fn a_line_is_bounded() {
        let (lines, waiting) = sync_channel(2);
        let queue = Queue { lines, lost: Arc::default() };
        queue.make_writer().write_all(&[b'x'; 2 * LONGEST]).unwrap();
        let Entry::Line(line) = waiting.recv().unwrap() else { panic!("a line") };
        assert!(line.len() == LONGEST + 1 && line.ends_with(b"\n"));
    }
}
