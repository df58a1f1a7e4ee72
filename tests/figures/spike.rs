//! A spike into a queue: the example's rows, on fewer seeds than the example takes.

#[path = "../../examples/spike_table/model.rs"]
mod model;

use model::{ROWS, Seen, summary};

/// A tenth of the example's: one arrival in a dozen meets a client that is busy, which moves no figure by as much as a seed does.
const CLIENTS: u32 = 20_000;

/// How many seeds of a row, and by which share the mean recovery time may differ: three standard errors. A backlog of 600 that
/// drains at a mean of d/s with a variance of about 195/s takes 600/d s with a standard deviation of √(600 · 195/d³) s: 18 s where d is
/// 7 (no retry), 95 s where it is 2.35 (5% bucket). So few seeds cannot show 5% and 10%; the example's 200 do. Stuck or not, and
/// the amplification, hardly vary.
const SEEDS: [(&str, u64, f64); 6] = [
    ("no retry", 12, 0.18),
    ("3 retries, immediate", 3, 0.0),
    ("3 retries, full jitter", 3, 0.0),
    ("10% bucket", 6, 0.0),
    ("5% bucket", 8, 0.4),
    ("AWS standard 2.1", 12, 0.18),
];

/// What is wrong with a row.
fn check(name: &str, count: u64, within: f64) -> Vec<String> {
    let row = ROWS.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("there is no row {name}"));
    let plan = row.plan(CLIENTS).unwrap_or_else(|error| panic!("{error}"));
    let seen: Vec<Seen> = row.run(&plan, &(1..=count).collect::<Vec<_>>()).unwrap_or_else(|error| panic!("{error}"));
    let mut wrong = Vec::new();
    let stuck = seen.iter().filter(|seen| seen.stuck).count();
    if stuck != if row.stuck { seen.len() } else { 0 } {
        wrong.push(format!("{name}: {stuck} of {count} are stuck"));
    }
    if let Some((want, _)) = row.recovery {
        let times: Vec<f64> = seen.iter().filter_map(|seen| seen.recovery).collect();
        let (mean, ..) = summary(&times);
        if times.len() < seen.len() || (mean / want - 1.0).abs() > within {
            wrong.push(format!("{name}: recovered after {times:?}, not after about {want} s"));
        }
    }
    if let Some(want) = row.amplification {
        let (mean, ..) = summary(&seen.iter().map(|seen| seen.amplification).collect::<Vec<_>>());
        if (mean / want - 1.0).abs() > 0.01 {
            wrong.push(format!("{name}: an amplification of {mean}, not {want}"));
        }
    }
    wrong
}

#[test]
fn the_policy_decides_whether_a_spike_is_ever_over() {
    assert_eq!(SEEDS.len(), ROWS.len(), "every row is tried");
    let wrong: Vec<String> = SEEDS.into_iter().flat_map(|(name, count, within)| check(name, count, within)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
