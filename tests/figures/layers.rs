//! Retry layers multiply: services that call services, each with a retry policy of its own, against the closed form.

use crate::simulated::{plan, seeds};
use stormwake::metrics::{Counts, RunRecord};
use stormwake::time::Span;

/// How long a request is served at the bottom. The layers above take no time of their servers, so that all work is the bottom's.
const SERVED: Span = Span::from_millis(1);

/// Clients with `r` attempts on a chain of services of `r` attempts each, the last of which fails a share of its requests. The clients are the
/// first layer: 100,000 operations in 100 s, and time to end for the last of them.
fn text(layers: usize, r: u32, p: f64) -> String {
    let call = |to: usize| format!("calls: {{ service: s{to}, policy: r }}");
    let middle = |n: usize| format!("    s{n}: {{ servers: unlimited, service_time: 0s, {} }}\n", call(n + 1));
    let between: String = (1..layers - 1).map(middle).collect();
    format!(
        "version: 1\nname: layers\ntarget:\n  service: {{ servers: unlimited, service_time: 0s, {} }}\n  services:\n{between}    \
         s{}: {{ servers: unlimited, service_time: 1ms, fails: {{ share: {}% }} }}\n\
         policies: {{ r: {{ attempts: {r}, timeout: 1s }} }}\n\
         fleets: {{ all: {{ clients: 100000, policy: r, load: {{ trigger: {{ at: 0s, spread: 100s }} }} }} }}\n\
         gates: [{{ success: '>= 0%' }}]\nlength: 102s\n",
        call(1),
        layers - 1,
        p * 100.0
    )
}

/// Attempts at the bottom for each operation. A layer of r attempts, each of which fails with probability p, makes (1 - p^r) / (1 - p) of them
/// and fails with p^r, which is the p of the layer above. r^layers where p is 1.
fn closed_form(layers: usize, r: u32, p: f64) -> f64 {
    let layer = |(p, product): (f64, f64), _| {
        let failed = p.powi(r as i32);
        (failed, product * if p < 1.0 { (1.0 - failed) / (1.0 - p) } else { f64::from(r) })
    };
    (0..layers).fold((p, 1.0), layer).1
}

/// Requests served at the bottom / operations.
fn amplification(record: &RunRecord) -> f64 {
    let offered: u64 = record.windows.iter().map(|window| window.all.offered).sum();
    let service = record.service.as_ref().expect("the target counts").of;
    assert!(offered == 100_000 && service.wasted.is_zero(), "{offered} {service:?}");
    (service.useful.0 / SERVED.0) as f64 / offered as f64
}

#[test]
fn retry_layers_multiply_as_the_closed_form_has_it() {
    let mut wrong = Vec::new();
    for (layers, r, p) in [(2, 3, 0.5), (3, 3, 0.3), (3, 3, 0.8), (3, 3, 0.9), (4, 2, 0.8), (3, 3, 1.0), (4, 2, 1.0)] {
        let seen = seeds(&plan(&text(layers, r, p)), &[1], |record| amplification(&record))[0];
        let want = closed_form(layers, r, p);
        let off = if p < 1.0 { 0.01 } else { 0.0 };
        println!("{layers} layers of {r}, p {p}: {seen:.4}, closed form {want:.4}");
        if (seen / want - 1.0).abs() > off {
            wrong.push(format!("{layers} layers of {r}, p {p}: {seen}, not {want}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(closed_form(3, 3, 1.0), 27.0);
}

/// The shipped plans: goodput of the last ten seconds against what was offered in them.
#[test]
fn three_layers_of_retries_are_stuck_and_one_recovers() {
    for (name, stuck) in [("retry-layers", true), ("retry-layers-edge", false)] {
        let file = format!("{}/plans/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        let plan = plan(&std::fs::read_to_string(file).expect("a shipped plan"));
        let seeds = seeds(&plan, &(1..=4).collect::<Vec<_>>(), |record| {
            let last = &record.windows[record.windows.len() - 10..];
            let sum = |of: fn(&Counts) -> u64| last.iter().map(|window| of(&window.all)).sum::<u64>() as f64;
            sum(|c| c.succeeded) / sum(|c| c.offered)
        });
        assert!(seeds.iter().all(|share| if stuck { *share < 0.05 } else { *share > 0.95 }), "{name}: {seeds:?}");
    }
}
