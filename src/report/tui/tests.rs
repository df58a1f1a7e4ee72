use super::keys::Mode;
use super::*;
use crate::engine::live::run::commands::{Command, NOTE_LENGTH};
use crate::engine::{Observer, sim};
use crate::metrics::{RunEvent, Window};
use crate::plan::{Plan, Source, load};
use crate::report::layout::Style;
use crate::report::sample::golden;
use crate::time::{Span, Timestamp};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;
use std::sync::OnceLock;
use std::sync::atomic::AtomicI32;

/// What an observer heard, to be told again up to any moment.
#[derive(Default)]
struct Tape(Vec<News>);

enum News {
    Event(Timestamp, RunEvent),
    Window(Box<Window>, String),
}

impl Observer for Tape {
    fn event(&mut self, at: Timestamp, event: &RunEvent) {
        self.0.push(News::Event(at, event.clone()));
    }
    fn window(&mut self, window: &Window, phase: &str) {
        self.0.push(News::Window(Box::new(window.clone()), phase.to_string()));
    }
}

fn plan(text: &str) -> Plan {
    load(&Source { file: "x.yaml", text, overrides: &[], env: &|_| None }).unwrap_or_else(|e| panic!("{e}")).plan
}

fn quickstart() -> Plan {
    plan(include_str!("../../../plans/quickstart.yaml"))
}

/// The quickstart, run once in virtual time.
fn tape() -> &'static Tape {
    static TAPE: OnceLock<Tape> = OnceLock::new();
    TAPE.get_or_init(|| {
        let mut tape = Tape::default();
        sim::run(&quickstart(), &mut tape, &AtomicI32::new(0)).expect("it has a service");
        tape
    })
}

fn at(tenths: u64) -> Timestamp {
    Timestamp::ZERO + Span::from_millis(tenths * 100)
}

fn facts() -> Facts {
    Facts { operator: Some("ada".into()), note: Some("monthly game day".into()) }
}

/// The quickstart as it is seen after so many tenths of a second.
fn seen(tenths: u64, style: Style) -> View {
    let mut view = View::new(&quickstart(), facts(), style);
    for news in &tape().0 {
        match news {
            News::Event(when, event) if *when <= at(tenths) => view.event(*when, event),
            News::Window(window, phase) if window.start + Span::from_secs(1) <= at(tenths) => view.window(window, phase),
            _ => {}
        }
    }
    view
}

fn buffer(view: &View, desk: &Desk, (width, height): (u16, u16), now: Timestamp) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(view, desk, now, frame)).unwrap();
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> String {
    let area = buffer.area;
    let line = |y| (0..area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_string() + "\n";
    (0..area.height).map(line).collect()
}

fn screen(view: &View, desk: &Desk, size: (u16, u16), now: Timestamp) -> String {
    text(&buffer(view, desk, size, now))
}

#[test]
fn screens_of_every_size_are_as_they_were_approved() {
    let desk = Desk::default();
    for (width, height) in [(80, 24), (200, 60), (40, 12), (20, 5)] {
        let mut view = seen(174, Style::default());
        view.event(at(170), &RunEvent::Noted { text: "pager fired".into() });
        golden(&format!("tui-{width}x{height}.txt"), &screen(&view, &desk, (width, height), at(174)));
    }
    let ascii = Style { ascii: true, ..Style::default() };
    let mut view = seen(174, ascii);
    view.event(at(175), &RunEvent::FaultCutShort { fault: "outage".into() });
    view.event(at(176), &RunEvent::FaultEnded { fault: "outage".into(), touched: 4_321 });
    let drawn = screen(&view, &desk, (80, 24), at(180));
    assert!(drawn.is_ascii(), "{drawn}");
    golden("tui-80x24-ascii.txt", &drawn);
    let near = Desk { near: true, ..Desk::default() };
    golden("tui-end.txt", &screen(&seen(600, Style::default()), &near, (100, 30), at(600)));
}

#[test]
fn before_the_first_window_nothing_is_made_up() {
    let drawn =
        screen(&View::new(&quickstart(), Facts::default(), Style::default()), &Desk::default(), (80, 24), Timestamp::ZERO);
    assert!(drawn.contains("not a window yet") && drawn.contains("goodput n/a of n/a"), "{drawn}");
    assert!(drawn.contains("begins in 12s, for 10s"), "{drawn}");
}

#[test]
fn a_countdown_follows_the_clock_between_windows() {
    let view = seen(174, Style::default());
    for (tenths, says) in [(174, "ends in 5s"), (199, "ends in 3s"), (219, "ends in 1s"), (225, "is due to end")] {
        let drawn = screen(&view, &Desk::default(), (80, 24), at(tenths));
        assert!(drawn.contains(says), "{tenths}: {drawn}");
    }
}

#[test]
fn nothing_is_said_by_colour_alone_and_none_is_used_where_none_is_wanted() {
    let now = at(174);
    let plain = buffer(&seen(174, Style::default()), &Desk::default(), (100, 30), now);
    let coloured = buffer(&seen(174, Style { colour: true, ..Style::default() }), &Desk::default(), (100, 30), now);
    assert_eq!(text(&plain), text(&coloured));
    let hues = |buffer: &Buffer| buffer.content.iter().filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset).count();
    assert!(hues(&plain) == 0 && hues(&coloured) > 100);
}

/// Names and texts that a terminal might obey, or that fill it.
#[test]
fn hostile_names_stay_within_their_places() {
    let long = "x".repeat(300);
    for name in ["<script>alert(1)</script>", long.as_str(), "שלום \u{202e}abc", "🔥🔥🔥 pager 漢字", "a\u{1b}[2J\u{9b}31m\r\nb"]
    {
        let mut hostile = quickstart();
        hostile.name = name.to_string();
        hostile.timeline[0].name = name.to_string();
        let facts = Facts { operator: Some(name.into()), note: Some(name.into()) };
        let mut view = View::new(&hostile, facts, Style::default());
        view.event(at(10), &RunEvent::FaultStarted { fault: name.into() });
        view.event(at(10), &RunEvent::PhaseStarted { phase: name.into() });
        view.event(at(11), &RunEvent::Noted { text: name.into() });
        let mut desk = Desk::default();
        for size in [(1, 1), (5, 2), (20, 5), (39, 9), (40, 10), (41, 13), (80, 24), (133, 50), (255, 70)] {
            for mode in [Mode::Watching, Mode::EndFault(0), Mode::Help, Mode::Stop, Mode::Writing(Default::default())] {
                desk.mode = mode;
                let drawn = screen(&view, &desk, size, at(130));
                assert!(!drawn.contains(['\u{1b}', '\u{9b}', '\r', '\u{202e}']), "{drawn:?}");
                assert_eq!(drawn.lines().count(), usize::from(size.1));
            }
        }
        desk.mode = Mode::Watching;
        let drawn = screen(&view, &desk, (80, 24), at(130));
        assert!(drawn.contains(" of 1m ") && drawn.contains(" ACTS    ends in "), "{drawn}");
    }
}

fn two_faults() -> View {
    let text = "version: 1\ntarget: { url: 'http://127.0.0.1:1/' }\nlength: 9s\n\
         fleets: { a: { clients: 1, policy: { attempts: 1, timeout: 1s }, load: { constant: { rate: 1/s } } } }\n\
         timeline:\n  - { at: 5s, for: 2s, name: later, fault: { hang: {} } }\n  - { at: 1s, for: 3s, name: sooner, fault: { hang: {} } }\n";
    let mut view = View::new(&plan(text), Facts::default(), Style::default());
    view.event(at(10), &RunEvent::FaultStarted { fault: "sooner".into() });
    view
}

/// What is pressed, and what that asks of the run.
#[test]
fn every_key_does_what_the_help_says() {
    let end = || vec![Deed::Tell(Command::EndFault(1))];
    let note = |text: &str| vec![Deed::Tell(Command::Note(text.into()))];
    let stop = || vec![Deed::Tell(Command::Stop)];
    let cases: Vec<(&str, Vec<Deed>, &str)> = vec![
        // Rows stand in the order of time: the plan's second fault is the first.
        ("e", vec![], "end sooner now?"),
        ("ey", end(), "end fault"),
        ("en", vec![], "end fault"),
        ("exy", end(), "end fault"),
        ("e<", vec![], "end fault"),
        ("de", vec![], "later has not begun yet"),
        ("dddude", vec![], "later has not begun yet"),
        ("duey", end(), "end fault"),
        ("nhi<", vec![], "end fault"),
        ("nqey>", note("qey"), "end fault"),
        ("n>", vec![], "end fault"),
        ("n  >", vec![], "end fault"),
        ("nab\u{8}c>", note("ac"), "end fault"),
        ("nbcLLa>", note("abc"), "end fault"),
        ("q", vec![], "stop the run?"),
        ("qy", stop(), "end fault"),
        ("qq", vec![], "end fault"),
        ("?", vec![], "any key goes back"),
        ("?q", vec![], "end fault"),
        ("C", vec![Deed::Interrupt], "end fault"),
        ("nabC", vec![Deed::Interrupt], "note: ab"),
    ];
    for (pressed, wanted, shows) in cases {
        let (view, mut desk) = (two_faults(), Desk::default());
        let deeds: Vec<Deed> = pressed.chars().filter_map(|c| desk.press(key(c), &view)).collect();
        let drawn = screen(&view, &desk, (80, 24), at(12));
        assert_eq!(deeds, wanted, "{pressed}");
        assert!(drawn.lines().last().is_some_and(|line| line.contains(shows)), "{pressed}: {drawn}");
    }
}

fn key(c: char) -> Key {
    match c {
        'u' => Key::Up,
        'd' => Key::Down,
        'L' => Key::Left,
        '<' => Key::Esc,
        '>' => Key::Enter,
        '\u{8}' => Key::Backspace,
        'C' => Key::Ctrl('c'),
        c => Key::Char(c),
    }
}

#[test]
fn what_is_over_or_ends_is_not_ended_again() {
    let (mut view, mut desk) = (two_faults(), Desk::default());
    let mut said = |view: &View| {
        assert_eq!(desk.press(Key::Char('e'), view), None);
        desk.said.clone().unwrap_or_default()
    };
    view.event(at(20), &RunEvent::FaultCutShort { fault: "sooner".into() });
    assert_eq!(said(&view), "sooner is being ended already");
    let drawn = screen(&view, &Desk::default(), (80, 24), at(21));
    assert!(drawn.contains("ENDING") && drawn.contains("after sooner"), "{drawn}");
    view.event(at(21), &RunEvent::FaultEnded { fault: "sooner".into(), touched: 7 });
    assert_eq!(said(&view), "sooner has ended already");
    let drawn = screen(&view, &Desk::default(), (80, 24), at(22));
    assert!(drawn.contains("over    ended by hand at 2s, touched 7"), "{drawn}");
    view.event(at(30), &RunEvent::Stopping { reason: "the operator".into() });
    assert_eq!(said(&view), "the run is ending, and every fault with it");
    assert_eq!((desk.press(Key::Char('q'), &view), desk.press(Key::Char('y'), &view)), (None, Some(Deed::Interrupt)));
    assert_eq!((desk.press(Key::Char('n'), &view), desk.mode), (None, Mode::Watching));
}

#[test]
fn what_is_pasted_is_never_a_key() {
    let (view, mut desk) = (two_faults(), Desk::default());
    desk.paste("qy\n");
    assert_eq!(desk, Desk::default());
    desk.press(Key::Char('n'), &view);
    desk.paste("down\nqy");
    assert_eq!(desk.press(Key::Enter, &view), Some(Deed::Tell(Command::Note("down qy".into()))));
}

#[test]
fn a_note_that_is_typed_is_bounded_and_its_cursor_is_seen() {
    let (view, mut desk) = (two_faults(), Desk::default());
    desk.press(Key::Char('n'), &view);
    for _ in 0..NOTE_LENGTH + 50 {
        desk.press(Key::Char('漢'), &view);
    }
    desk.press(Key::Char('\u{1b}'), &view);
    desk.paste("no room");
    let last = screen(&view, &desk, (60, 12), at(12)).lines().last().unwrap_or_default().to_string();
    assert!(last.starts_with(" note: 漢"), "{last}");
    let Some(Deed::Tell(Command::Note(text))) = desk.press(Key::Enter, &view) else { panic!("a note") };
    assert_eq!(text.chars().count(), NOTE_LENGTH);
}
