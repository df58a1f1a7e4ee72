//! The answers of a real Toxiproxy 2.12, asked of ours: the same but for the differences that are meant.

use crate::plane::{Answer, Plane};
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use stormwake::engine::live::plane::DIFFERENCES;

const RECORDED: &str = include_str!("../fixtures/toxiproxy-2.12.txt");

/// A request, and what is to be answered.
struct Exchange<'a> {
    request: &'a str,
    answer: Answer,
    /// The differences that account for that answer; none where it is the recorded one.
    differences: Vec<&'a str>,
}

fn exchanges() -> Vec<Exchange<'static>> {
    let parts = RECORDED.split("\n\n").skip(1);
    parts.map(|part| exchange(part.trim_end_matches('\n'))).collect()
}

fn exchange(part: &'static str) -> Exchange<'static> {
    let (request, rest) = part.strip_prefix("> ").and_then(|part| part.split_once('\n')).expect("a request");
    let (recorded, meant) = match rest.split_once("\n! ") {
        Some((recorded, meant)) => (recorded, Some(meant.split_once('\n').expect("an answer"))),
        None => (rest, None),
    };
    let differences = meant.map_or(Vec::new(), |(ids, _)| ids.split(' ').collect());
    let (recorded, answer) = (answer(recorded), answer(meant.map_or(recorded, |(_, answer)| answer)));
    assert_eq!(recorded == answer, differences.is_empty(), "a difference differs: {request}");
    Exchange { request, answer, differences }
}

fn answer(text: &str) -> Answer {
    let (head, body) = text.split_once('\n').unwrap_or((text, ""));
    let (status, kind) = head.strip_prefix("< ").and_then(|head| head.split_once(' ')).expect("a status and a content type");
    let line =
        |line: &'static str| line.strip_prefix('|').map(|line| line.strip_prefix(' ').unwrap_or(line)).expect("a line of a body");
    let body: &'static str = Box::leak(body.to_string().into_boxed_str());
    (status.parse().expect("a status"), kind.into(), body.lines().map(line).collect::<Vec<_>>().join("\n"))
}

/// Free ports for those of the record: outside of what the system gives away by itself.
fn free_ports(names: &BTreeSet<String>) -> BTreeMap<String, String> {
    let start = 20_000 + (std::process::id() as u16 % 500) * 20;
    let free = (start..32_000).filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    let ports: BTreeMap<_, _> = names.iter().cloned().zip(free.map(|port| port.to_string())).collect();
    assert_eq!(ports.len(), names.len(), "there are ports");
    ports
}

/// The names in braces that are numbers.
fn names() -> BTreeSet<String> {
    let names = RECORDED.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name);
    names.filter(|name| name.parse::<u16>().is_ok()).map(str::to_string).collect()
}

/// A text with what is known put in.
fn filled(text: &str, known: &BTreeMap<String, String>) -> String {
    known.iter().fold(text.to_string(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

/// Learns the port that the server chose, from where its name stands.
fn learn(name: &str, wanted: &str, got: &str, known: &mut BTreeMap<String, String>) {
    let Some((before, _)) = wanted.split_once(&format!("{{{name}}}")) else { return };
    if let Some(rest) = got.strip_prefix(before) {
        let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
        known.insert(name.into(), port);
    }
}

#[test]
fn a_recorded_toxiproxy_is_answered_alike_but_for_what_is_meant() {
    let plane = Plane::start(&[]);
    let mut known = free_ports(&names());
    let mut used = BTreeSet::new();
    let all = exchanges();
    assert!(all.len() > 70, "{}", all.len());
    for Exchange { request, answer: (status, kind, body), differences } in all {
        let request = filled(request, &known);
        let mut parts = request.splitn(3, ' ');
        let (method, path, sent) = (parts.next().expect("a method"), parts.next().expect("a path"), parts.next().unwrap_or(""));
        let got = if sent == "AGENT" { plane.ask_as("Mozilla/5.0", method, path, "") } else { plane.ask(method, path, sent) };
        for name in ["a", "e"] {
            if !known.contains_key(name) {
                let wanted = filled(&body, &known);
                learn(name, &wanted, &got.2, &mut known);
            }
        }
        assert_eq!(got, (status, kind, filled(&body, &known)), "{request}");
        used.extend(differences);
    }
    let unknown: Vec<_> = used.iter().filter(|id| !DIFFERENCES.iter().any(|known| known.id == **id)).collect();
    assert!(unknown.is_empty(), "differences without a reason: {unknown:?}");
    assert!(used.len() >= 4, "{used:?}");
}

#[test]
fn every_difference_is_in_the_architecture_with_its_reason() {
    let text = include_str!("../../ARCHITECTURE.md");
    for difference in DIFFERENCES {
        let row = format!("| {} | {} |", difference.what, difference.why);
        assert!(text.contains(&row), "ARCHITECTURE.md lacks the row\n{row}");
    }
}
