//! What is shown while a run goes on: on a terminal one line, rewritten each second; elsewhere a plain line every 5 s.
//!
//! Nothing but carriage returns and spaces moves the cursor, so that a line without colours is without escape
//! sequences. A stream that takes no more is left alone: progress is no reason to end a run.

use super::layout::{Colour, Style, clock, columns, millis, number, percent, rate};
use crate::engine::Observer;
use crate::metrics::{ActionOutcome, ActionRecord, RunEvent, Sketch, Window};
use crate::time::{Span, Timestamp};
use std::io::Write;

/// Several observers as one; each is told in turn.
pub struct Observers(pub Vec<Box<dyn Observer>>);

impl Observer for Observers {
    fn event(&mut self, at: Timestamp, event: &RunEvent) {
        self.0.iter_mut().for_each(|observer| observer.event(at, event));
    }

    fn window(&mut self, window: &Window, phase: &str) {
        self.0.iter_mut().for_each(|observer| observer.window(window, phase));
    }
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// One line, rewritten each second of the run.
    Rewritten,
    /// A line every 5 s of the run.
    Plain,
}

/// Shows a run's progress to people.
pub struct Progress<W: Write> {
    out: W,
    manner: Manner,
    style: Style,
    width: Box<dyn Fn() -> usize + Send>,
    window: Span,
    length: Span,
    since: Since,
    /// Columns of the line that stands unfinished on the terminal.
    standing: usize,
    broken: bool,
}

/// What came since the last line.
#[derive(Default)]
struct Since {
    windows: u64,
    offered: u64,
    attempts: u64,
    retries: u64,
    succeeded: u64,
    latency: Sketch,
}

impl<W: Write + Send> Progress<W> {
    /// Progress of a run of this `length` in windows of this length. `width` is asked before each line, since a
    /// terminal may be resized; `style.width` is not used.
    pub fn new(out: W, manner: Manner, style: Style, width: Box<dyn Fn() -> usize + Send>, window: Span, length: Span) -> Self {
        Self { out, manner, style, width, window, length, since: Since::default(), standing: 0, broken: false }
    }

    fn every(&self) -> Span {
        match self.manner {
            Manner::Rewritten => Span::from_secs(1),
            Manner::Plain => Span::from_secs(5),
        }
    }

    /// A terminal that is written to in its last column may wrap, so that one is left free.
    fn room(&self) -> usize {
        (self.width)().max(2) - 1
    }

    /// Each figure with its name, and with a short one for narrow terminals.
    fn figures(&self, window: &Window) -> Vec<(String, String)> {
        let seconds = self.window.times(self.since.windows).as_secs_f64();
        let per_second = |n: u64| rate((seconds > 0.0).then(|| n as f64 / seconds));
        let share = (self.since.attempts > 0).then(|| self.since.retries as f64 / self.since.attempts as f64);
        let p99 = self.since.latency.quantile(990).map(|span| span.as_secs_f64() * 1e3);
        let named = |long: &str, short: &str, value: String| {
            (format!("{long} {value}"), format!("{short} {}", value.trim_end_matches("/s")))
        };
        vec![
            named("goodput", "good", per_second(self.since.succeeded)),
            named("offered", "off", per_second(self.since.offered)),
            named("attempted", "att", per_second(self.since.attempts)),
            named("retries", "ret", percent(share)),
            named("p99", "p99", millis(p99)),
            named("in flight", "fly", number(window.all.in_flight as f64)),
        ]
    }

    fn show(&mut self, window: &Window, phase: &str) {
        let now = window.start + self.window;
        let figures = self.figures(window);
        match self.manner {
            Manner::Rewritten => self.rewrite(now, phase, &figures),
            Manner::Plain => {
                let time = format!("{} of {}", clock(now.0 / 1_000_000_000), clock(self.length.0 / 1_000_000_000));
                let figures: Vec<String> = figures.into_iter().map(|(long, _)| long).collect();
                let line = format!("{time}  {}  {}", self.style.clean(phase), figures.join("  "));
                self.put(&format!("{line}\n"));
            }
        }
    }

    /// Bar, time left, phase, figures: under short names where the long ones do not fit, and as many as fit.
    fn rewrite(&mut self, now: Timestamp, phase: &str, figures: &[(String, String)]) {
        let room = self.room();
        let done = (now.as_secs_f64() / self.length.as_secs_f64().max(1e-9)).min(1.0);
        let left = Span(self.length.0.saturating_sub(now.0)).as_secs_f64().ceil() as u64;
        let bar = |cells: usize| bar(done, cells, &self.style);
        let wide = format!("{} {:>5} left  {}", bar((room / 8).clamp(4, 20)), clock(left), self.style.fit(phase, 20));
        let fits = columns(&wide) + figures.iter().map(|(long, _)| columns(long) + 2).sum::<usize>() <= room;
        let narrow = || format!("{} {:>5}  {}", bar(4), clock(left), self.style.fit(phase, 14));
        let mut line = if fits { wide } else { narrow() };
        for (long, short) in figures {
            let (gap, part) = if fits { ("  ", long) } else { (" ", short) };
            if columns(&line) + columns(gap) + columns(part) > room {
                break;
            }
            line = line + gap + part;
        }
        let line = self.style.fit(&line, room);
        let width = columns(&line);
        let blank = " ".repeat(self.standing.min(room).saturating_sub(width));
        self.put(&format!("\r{line}{blank}"));
        self.standing = width;
    }

    /// Something worth a line of its own, which stays.
    fn note(&mut self, at: Timestamp, colour: Colour, text: &str) {
        let line = format!("{:>6}  {}", clock(at.0 / 1_000_000_000), self.style.clean(text));
        let line = match self.manner {
            Manner::Rewritten => self.style.fit(&line, self.room()),
            Manner::Plain => line,
        };
        self.clear();
        let line = self.style.paint(colour, &line);
        self.put(&format!("{line}\n"));
    }

    fn clear(&mut self) {
        if self.standing > 0 {
            let blank = " ".repeat(self.standing.min(self.room()));
            self.put(&format!("\r{blank}\r"));
            self.standing = 0;
        }
    }

    fn put(&mut self, text: &str) {
        if !self.broken {
            self.broken = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).is_err();
        }
    }
}

impl<W: Write + Send> Observer for Progress<W> {
    fn event(&mut self, at: Timestamp, event: &RunEvent) {
        match event {
            RunEvent::FaultStarted { fault } => self.note(at, Colour::Red, &format!("fault {fault} began")),
            RunEvent::FaultEnded { fault, touched } => {
                self.note(at, Colour::Green, &format!("fault {fault} ended; it touched {touched} requests"));
            }
            RunEvent::Acted { action } => {
                let (colour, text) = acted(action);
                self.note(at, colour, &text);
            }
            RunEvent::Undone { action, confirmed: true, .. } => self.note(at, Colour::Green, &format!("{action} was undone")),
            RunEvent::Undone { action, confirmed: false, detail } => {
                self.note(at, Colour::Red, &format!("{action} COULD NOT BE UNDONE: {detail}"));
            }
            RunEvent::Stopping { reason } => self.note(at, Colour::Yellow, &format!("stopping: {reason}")),
            RunEvent::Check { check, passed: false, detail } => {
                self.note(at, Colour::Yellow, &format!("check {check} failed: {detail}"));
            }
            RunEvent::Check { check, passed: true, .. } => self.note(at, Colour::Green, &format!("check {check} passed again")),
            RunEvent::FaultCutShort { fault } => self.note(at, Colour::Yellow, &format!("the operator ends fault {fault}")),
            RunEvent::Noted { text } => self.note(at, Colour::Dim, &format!("note: {text}")),
            RunEvent::Refused { text } => self.note(at, Colour::Yellow, text),
            RunEvent::Warning { text } => self.note(at, Colour::Yellow, &format!("warning: {text}")),
            RunEvent::Ended => self.clear(),
            RunEvent::Started | RunEvent::PhaseStarted { .. } | RunEvent::Note { .. } => {}
        }
    }

    fn window(&mut self, window: &Window, phase: &str) {
        self.since.windows += 1;
        self.since.offered += window.all.offered;
        self.since.attempts += window.all.attempts;
        self.since.retries += window.all.retries;
        self.since.succeeded += window.all.succeeded;
        self.since.latency.merge(&window.all.latency);
        if self.window.times(self.since.windows) >= self.every() || self.window.is_zero() {
            self.show(window, phase);
            self.since = Since::default();
        }
    }
}

/// What an action came to, for a line.
pub(super) fn acted(action: &ActionRecord) -> (Colour, String) {
    let what = match &action.fleet {
        Some(fleet) => format!("{} ({} of {fleet})", action.name, action.kind),
        None => format!("{} ({})", action.name, action.kind),
    };
    match (action.outcome, action.affected) {
        (ActionOutcome::Done, Some(affected)) => (Colour::Green, format!("{what} done: {affected} affected")),
        (ActionOutcome::Done, None) => (Colour::Green, format!("{what} done: {}", action.detail)),
        (ActionOutcome::Failed, _) => (Colour::Yellow, format!("{what} failed: {}", action.detail)),
        (ActionOutcome::Skipped, _) => (Colour::Yellow, format!("{what} was left out: {}", action.detail)),
    }
}

impl<W: Write> Drop for Progress<W> {
    /// A run that fails leaves no half line for its error to stand on.
    fn drop(&mut self) {
        if self.standing > 0 && !self.broken {
            // The stream may be gone, and nobody is left to be told.
            let _ = self.out.write_all(b"\n");
        }
    }
}

fn bar(done: f64, width: usize, style: &Style) -> String {
    let full = (done * width as f64).round() as usize;
    let (on, off) = if style.ascii { ("#", ".") } else { ("█", "░") };
    format!("{}{}", on.repeat(full), off.repeat(width - full.min(width)))
}

/// The columns of a terminal: what it says itself, else the variable `COLUMNS`, else 80.
pub fn terminal_width(reported: Option<usize>, columns: Option<&str>) -> usize {
    let plausible = |width: &usize| (1..=10_000).contains(width);
    reported.filter(plausible).or_else(|| columns?.trim().parse().ok().filter(plausible)).unwrap_or(80)
}

/// Whether a locale (the first of `LC_ALL`, `LC_CTYPE` and `LANG` that is set and not empty) writes UTF-8.
pub fn is_utf8_locale(lc_all: Option<&str>, lc_ctype: Option<&str>, lang: Option<&str>) -> bool {
    let locale = [lc_all, lc_ctype, lang].into_iter().flatten().find(|value| !value.is_empty()).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Screen(Arc<Mutex<Vec<u8>>>);

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Screen {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn window(second: u64, millis: u64) -> Window {
        let mut window = Window { start: Timestamp(second * 1_000_000_000), ..Window::default() };
        window.all.offered = 400 * millis / 1_000;
        window.all.attempts = 1_600 * millis / 1_000;
        window.all.retries = 1_200 * millis / 1_000;
        window.all.succeeded = 20;
        window.all.in_flight = 1_950;
        window.all.latency.record(Span::from_millis(900));
        window
    }

    fn progress(manner: Manner, width: usize, style: Style) -> (Progress<Screen>, Screen) {
        let screen = Screen::default();
        let width = Box::new(move || width);
        (Progress::new(screen.clone(), manner, style, width, Span::from_secs(1), Span::from_secs(60)), screen)
    }

    #[test]
    fn a_terminal_has_one_line_a_second_that_never_wraps() {
        for width in [1, 2, 5, 20, 40, 80, 133, 400] {
            let (mut progress, screen) = progress(Manner::Rewritten, width, Style::default());
            for second in 0..30 {
                progress.window(&window(second, 1_000), "a phase with a very long name 漢字漢字");
            }
            let text = screen.text();
            assert!(!text.contains('\u{1b}') && !text.contains('\n'), "{text}");
            let lines: Vec<&str> = text.split('\r').skip(1).collect();
            assert_eq!(lines.len(), 30);
            assert!(lines.iter().all(|line| columns(line) < width.max(2)), "{width}: {lines:?}");
        }
        let (mut progress, screen) = progress(Manner::Rewritten, 133, Style::default());
        progress.window(&window(29, 1_000), "blackhole");
        for name in ["good ", "off ", "att ", "ret ", "p99 ", "fly "] {
            let (mut narrow, screen) = self::progress(Manner::Rewritten, 80, Style::default());
            narrow.window(&window(29, 1_000), "after outage");
            assert!(screen.text().contains(name), "80 columns hold every figure: {}", screen.text());
        }
        let want = "\r████████░░░░░░░░   30s left  blackhole  goodput 20/s  offered 400/s  attempted 1.6k/s  retries 75%  p99 ";
        assert!(screen.text().starts_with(want), "{}", screen.text());
        assert!(screen.text().ends_with("in flight 1.9k") || screen.text().ends_with("in flight 2k"), "{}", screen.text());
    }

    #[test]
    fn a_note_stays_and_the_end_leaves_a_clean_line() {
        let (mut progress, screen) = progress(Manner::Rewritten, 80, Style::default());
        progress.window(&window(9, 1_000), "steady");
        progress.event(Timestamp(10_000_000_000), &RunEvent::FaultStarted { fault: "hole\u{1b}[2J\n".into() });
        progress.window(&window(10, 1_000), "hole");
        progress.event(Timestamp(11_000_000_000), &RunEvent::Ended);
        drop(progress);
        let text = screen.text();
        assert!(text.contains("\r   10s  fault hole?[2J  began\n"), "{text:?}");
        assert!(text.ends_with(" \r"), "{text:?}");
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn a_run_that_fails_leaves_no_half_line() {
        let (mut progress, screen) = progress(Manner::Rewritten, 80, Style::default());
        progress.window(&window(0, 1_000), "steady");
        drop(progress);
        assert!(screen.text().ends_with('\n'));
    }

    #[test]
    fn elsewhere_a_plain_line_every_five_seconds() {
        let (mut progress, screen) = progress(Manner::Plain, 10, Style::default());
        for second in 0..12 {
            progress.window(&window(second, 1_000), "steady");
        }
        progress.event(Timestamp(12_000_000_000), &RunEvent::Ended);
        drop(progress);
        let text = screen.text();
        assert!(!text.contains(['\r', '\u{1b}']), "{text}");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[1].starts_with("10s of 1m  steady  goodput 20/s  offered 400/s  attempted 1.6k/s  retries 75%"), "{text}");
    }

    #[test]
    fn short_windows_are_gathered_to_a_second() {
        let screen = Screen::default();
        let tenth = Span::from_millis(100);
        let width = Box::new(|| 200);
        let mut progress = Progress::new(screen.clone(), Manner::Rewritten, Style::default(), width, tenth, Span::from_secs(60));
        for second in 0..20 {
            progress.window(&window(second / 10, 100), "steady");
        }
        let text = screen.text();
        assert_eq!(text.matches('\r').count(), 2, "{text}");
        assert!(text.contains("offered 400/s"), "{text}");
    }

    #[test]
    fn widths_and_locales() {
        assert_eq!(terminal_width(Some(132), Some("40")), 132);
        assert_eq!(terminal_width(None, Some("40")), 40);
        assert_eq!(terminal_width(Some(0), Some("no")), 80);
        assert!(is_utf8_locale(None, None, Some("en_GB.UTF-8")));
        assert!(is_utf8_locale(Some(""), Some("C.utf8"), Some("C")));
        assert!(!is_utf8_locale(Some("C"), None, Some("en_GB.UTF-8")));
        assert!(!is_utf8_locale(None, None, None));
    }
}
