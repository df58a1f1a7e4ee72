//! The terminal under the live view: raw mode, the alternate screen, keys, and that all of it is put back.
//!
//! A thread of its own draws, ten times a second at most, and reads keys: a terminal that takes nothing keeps neither the run nor who hears it
//! waiting. Signals stay what they are without a view: raw mode leaves Ctrl-C, Ctrl-\ and Ctrl-Z to the system. The terminal is given back at
//! the end, at an error, at a panic, before the process ends at a second signal, and while the process is stopped; only SIGKILL leaves it
//! as it is (`reset` helps).

use super::terminal::{self, Stream};
use crate::engine::Observer;
use crate::engine::live::clock::{Clock, LiveClock};
use crate::engine::live::run::commands::Commander;
use crate::engine::live::signal::{Screen, Signals};
use crate::metrics::{RunEvent, Window};
use crate::plan::Plan;
use crate::report::tui::{Deed, Desk, Facts, Key, View, draw};
use crate::time::{Span, Timestamp};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{
    self, DisableBracketedPaste, EnableBracketedPaste, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers,
};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::io::{self, BufWriter, IsTerminal, Stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::signal::unix::{SignalKind, signal};

/// How long a picture stands, unless a key is pressed.
const FRAME: Span = Span::from_millis(100);
/// How long the last picture may take at the end of a run.
const PATIENCE: Span = Span::from_millis(500);
/// How often, and for how long each time, it is waited for a picture that is being painted before the terminal is given back.
const TRIES: (u32, Span) = (15, Span::from_millis(10));

/// The view of one run.
pub struct Tui(Arc<Shared>);

/// A view that has the terminal.
pub struct Shown {
    shared: Arc<Shared>,
    ended: Receiver<()>,
}

struct Shared {
    state: Mutex<State>,
    commander: Commander,
    clock: Arc<LiveClock>,
    /// Held while a picture goes out.
    painting: Mutex<()>,
    /// Whether the terminal is ours.
    taken: AtomicBool,
    over: AtomicBool,
    /// Whether the process is to be stopped, as Ctrl-Z asks.
    suspend: AtomicBool,
    /// Whether it goes on after that.
    resumed: AtomicBool,
}

struct State {
    view: View,
    desk: Desk,
}

/// Tells the view what happens.
struct Heard(Arc<Shared>);

impl Tui {
    /// Why there can be no view; none where there can be one.
    pub fn impossible() -> Option<String> {
        let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        (dumb || !io::stderr().is_terminal()).then(|| {
            "`--tui` needs a terminal on stderr, and one that moves its cursor; leave it out for progress in plain lines".into()
        })
    }

    /// Of a run of this plan, which may be asked for something through `commander`.
    pub fn new(plan: &Plan, facts: Facts, commander: Commander) -> Self {
        let view = View::new(plan, facts, terminal::style(Stream::Err));
        Self(Arc::new(Shared {
            state: Mutex::new(State { view, desk: Desk::default() }),
            commander,
            clock: LiveClock::waiting(),
            painting: Mutex::new(()),
            taken: AtomicBool::new(false),
            over: AtomicBool::new(false),
            suspend: AtomicBool::new(false),
            resumed: AtomicBool::new(false),
        }))
    }

    /// Who tells it what happens.
    pub fn observer(&self) -> Box<dyn Observer> {
        Box::new(Heard(self.0.clone()))
    }

    /// Takes the terminal.
    ///
    /// # Errors
    /// A terminal that does not let itself be taken; no thread.
    pub fn begin(self) -> io::Result<Shown> {
        let shared = self.0;
        shared.take().inspect_err(|_| shared.give_back())?;
        Signals::take_screen(Some(shared.clone()));
        give_back_at_a_panic(&shared);
        let (done, ended) = channel();
        let painter = shared.clone();
        let started = follow_stops(&shared).and_then(|()| {
            std::thread::Builder::new().name("view".into()).spawn(move || {
                painter.paint();
                painter.give_back();
                let _ = done.send(());
            })
        });
        started.inspect_err(|_| shared.give_back())?;
        Ok(Shown { shared, ended })
    }
}

impl Shown {
    /// Gives the terminal back, within bounds.
    pub fn end(self) {
        self.shared.over.store(true, Ordering::SeqCst);
        // A terminal that takes nothing is left as it is, but for its mode.
        if self.ended.recv_timeout(PATIENCE.to_std()).is_err() {
            let _ = disable_raw_mode();
        }
        Signals::take_screen(None);
    }
}

impl Observer for Heard {
    fn event(&mut self, at: Timestamp, event: &RunEvent) {
        if *event == RunEvent::Started {
            self.0.clock.begin_in(Span::ZERO);
        }
        self.0.state().view.event(at, event);
    }

    fn window(&mut self, window: &Window, phase: &str) {
        self.0.state().view.window(window, phase);
    }
}

impl Screen for Shared {
    fn say(&self, text: &str) {
        self.state().view.log(self.clock.now(), text);
    }

    fn leave(&self) {
        self.over.store(true, Ordering::SeqCst);
        self.give_back();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> io::Result<()> {
        self.taken.store(true, Ordering::SeqCst);
        enable_raw_mode()?;
        keep_signals()?;
        execute!(io::stderr(), EnterAlternateScreen, EnableBracketedPaste, Hide)
    }

    /// Gives the terminal back, once. Whoever paints at the moment is waited for, but not for long: it may be this very thread.
    fn give_back(&self) {
        if !self.taken.swap(false, Ordering::SeqCst) {
            return;
        }
        let _ = disable_raw_mode();
        for _ in 0..TRIES.0 {
            match self.painting.try_lock() {
                Err(std::sync::TryLockError::WouldBlock) => std::thread::park_timeout(TRIES.1.to_std()),
                _ => break,
            }
        }
        // It may have gone.
        let _ = execute!(io::stderr(), Show, DisableBracketedPaste, LeaveAlternateScreen);
    }

    /// Paints until the run is over, or the terminal is gone.
    fn paint(&self) {
        let Ok(mut terminal) = Terminal::new(CrosstermBackend::new(BufWriter::new(io::stderr()))) else { return };
        while !self.over.load(Ordering::SeqCst) {
            if self.suspend.swap(false, Ordering::SeqCst) && self.stop(&mut terminal).is_err() {
                return;
            }
            if self.picture(&mut terminal).is_err() || self.keys(&mut terminal).is_err() {
                return;
            }
        }
        let _ = self.picture(&mut terminal);
    }

    fn picture(&self, terminal: &mut Terminal<CrosstermBackend<BufWriter<Stderr>>>) -> io::Result<()> {
        let _painting = self.painting.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.taken.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        // The state is held while the picture is made, and not while it goes out.
        let painted = terminal.draw(|frame| {
            let State { view, desk } = &*self.state();
            draw(view, desk, self.clock.now(), frame);
        });
        painted.map(drop)
    }

    /// Takes the keys that come within one picture's time.
    fn keys(&self, terminal: &mut Terminal<CrosstermBackend<BufWriter<Stderr>>>) -> io::Result<()> {
        let mut patience = FRAME.to_std();
        while event::poll(patience)? {
            match event::read()? {
                Event::Key(pressed) if pressed.kind != KeyEventKind::Release => match key(pressed) {
                    Some(Key::Ctrl('l')) => afresh(terminal)?,
                    Some(key) => self.press(key),
                    None => {}
                },
                Event::Paste(text) => self.state().desk.paste(&text),
                _ => {}
            }
            patience = std::time::Duration::ZERO;
        }
        Ok(())
    }

    fn press(&self, key: Key) {
        let State { view, desk } = &mut *self.state();
        match desk.press(key, view) {
            Some(Deed::Tell(command)) if !self.commander.send(command.clone()) => desk.not_taken(),
            // As if the key had gone to the system: the first is heard, and the second ends the process.
            Some(Deed::Interrupt) => drop(kill_process(getpid(), Signal::INT)),
            Some(Deed::Tell(_)) | None => {}
        }
    }

    /// Stops the process as Ctrl-Z does, with the terminal as it was; goes on when it is continued.
    fn stop(&self, terminal: &mut Terminal<CrosstermBackend<BufWriter<Stderr>>>) -> io::Result<()> {
        self.give_back();
        self.resumed.store(false, Ordering::SeqCst);
        kill_process(getpid(), Signal::STOP)?;
        // Another thread may be the one that hears it: this one must not go on before.
        while !self.resumed.load(Ordering::SeqCst) && !self.over.load(Ordering::SeqCst) {
            std::thread::park_timeout(TRIES.1.to_std());
        }
        self.take()?;
        afresh(terminal)
    }
}

/// Has the next picture painted whole. (`Terminal::clear` would ask the terminal where its cursor is, and wait for the answer among the keys.)
fn afresh(terminal: &mut Terminal<CrosstermBackend<BufWriter<Stderr>>>) -> io::Result<()> {
    let size = terminal.size()?;
    terminal.resize(size.into())
}

/// Raw mode, but for the keys that make signals.
fn keep_signals() -> io::Result<()> {
    let stdin = io::stdin();
    let set = |mut modes: rustix::termios::Termios, set: &dyn Fn(&rustix::termios::Termios) -> rustix::io::Result<()>| {
        modes.local_modes |= LocalModes::ISIG;
        set(&modes)
    };
    if stdin.is_terminal() {
        set(tcgetattr(&stdin)?, &|modes| tcsetattr(&stdin, OptionalActions::Now, modes))?;
    } else {
        let tty = std::fs::File::open("/dev/tty")?;
        set(tcgetattr(&tty)?, &|modes| tcsetattr(&tty, OptionalActions::Now, modes))?;
    }
    Ok(())
}

/// Hears Ctrl-Z, so that the terminal is given back before the process stops, and that it goes on.
fn follow_stops(shared: &Arc<Shared>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut stops, mut goes_on) = {
        let _inside = runtime.enter();
        let heard = |kind: Signal| signal(SignalKind::from_raw(kind.as_raw()));
        (heard(Signal::TSTP)?, heard(Signal::CONT)?)
    };
    let shared = shared.clone();
    let hearing = async move {
        loop {
            tokio::select! {
                Some(()) = goes_on.recv() => shared.resumed.store(true, Ordering::SeqCst),
                Some(()) = stops.recv() => match shared.taken.load(Ordering::SeqCst) {
                    true => shared.suspend.store(true, Ordering::SeqCst),
                    false => drop(kill_process(getpid(), Signal::STOP)),
                },
                else => return,
            }
        }
    };
    std::thread::Builder::new().name("stops".into()).spawn(move || runtime.block_on(hearing)).map(drop)
}

/// A panic is told on the terminal as it was before.
fn give_back_at_a_panic(shared: &Arc<Shared>) {
    let (shared, before) = (shared.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        shared.over.store(true, Ordering::SeqCst);
        shared.give_back();
        before(panic);
    }));
}

/// A key as the view knows it.
fn key(pressed: KeyEvent) -> Option<Key> {
    let ctrl = pressed.modifiers.contains(KeyModifiers::CONTROL);
    Some(match pressed.code {
        KeyCode::Char(c) if ctrl => Key::Ctrl(c.to_ascii_lowercase()),
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Esc,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Delete => Key::Delete,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    })
}
