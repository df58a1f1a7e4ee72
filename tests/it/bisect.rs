//! The tipping point of a plan, through the binary: a small service that recovers from a short outage, and not from a long one.

use crate::support::{Folder, Said, shared, stormwake};

/// The quickstart at a third of its size.
const PLAN: &str = "
version: 1
name: tip
seed: 1
target: { service: { servers: 2, service_time: 10ms, queue: 700 } }
policies:
  app: { attempts: 4, timeout: 1s, retry_on: [connect, reset, timeout, 5xx], backoff: none }
fleets:
  app: { clients: 400, policy: app, load: { poisson: { rate: 130/s } } }
steady_state: { for: 4s }
timeline:
  - { at: 5s, for: 3s, name: outage, fault: { blackhole: {} } }
recovery: { after: outage, within: 5s, hold: 3s }
length: 26s
";

fn bisect(folder: &Folder, args: &[&str]) -> Said {
    let plan = folder.write("tip.yaml", PLAN);
    let _machine = shared();
    let seeds: &[&str] = if args.contains(&"--seeds") { &[] } else { &["--seeds", "8"] };
    stormwake(folder, &[&["bisect", plan.to_str().expect("UTF-8"), "--quiet"], seeds, args].concat())
}

/// A text without its line breaks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const OUTAGE: [&str; 4] = ["--tolerance", "20%", "--vary", "timeline.outage.for=100ms..5s"];

#[test]
fn the_length_of_an_outage_has_a_tipping_point_on_any_number_of_threads() {
    let folder = Folder::new("bisect-outage");
    let said = bisect(&folder, &[&OUTAGE[..], &["--json", "--threads", "1"]].concat());
    assert_eq!(said.code, Some(0), "{said:#?}");
    let document = said.result();
    let point = &document["tipping_point"];
    let number = |key: &str| point[key].as_f64().unwrap_or_else(|| panic!("{key}: {document:#}"));
    let (from, value, to) = (number("from"), number("value"), number("to"));
    assert!(0.1 <= from && from <= value && value <= to && to <= 5.0, "{point}");
    assert_eq!((point["stuck"].as_str(), point["monotone"].as_bool()), (Some("above"), Some(true)));
    assert_eq!(document["plan_value"], 3.0);
    for tried in document["values"].as_array().expect("values") {
        assert!(tried["runs"].as_u64() <= Some(8) && tried["stuck"].as_u64() <= tried["runs"].as_u64(), "{tried}");
        assert_eq!(tried["classes"].as_object().expect("classes").values().filter_map(|n| n.as_u64()).sum::<u64>(), 8);
    }
    let again = bisect(&folder, &[&OUTAGE[..], &["--json", "--threads", "3"]].concat());
    assert_eq!(again.out, said.out);
    let text = bisect(&folder, &OUTAGE);
    let said = words(&text.out);
    assert!(said.contains("tipping point: ") && said.contains("the plan's 3s "), "{text:#?}");
    assert!(text.out.contains("0 of 8") && text.out.contains("8 of 8"), "{text:#?}");
}

#[test]
fn where_all_recover_there_is_no_tipping_point_and_no_pass() {
    let folder = Folder::new("bisect-none");
    let said = bisect(&folder, &["--vary", "timeline.outage.for=100ms..200ms"]);
    assert_eq!(said.code, Some(3), "{said:#?}");
    assert!(words(&said.out).contains("no tipping point between 100ms and 200ms"), "{said:#?}");
}

#[test]
fn a_value_of_the_range_that_makes_no_plan_is_named() {
    let folder = Folder::new("bisect-bad");
    for (args, wanted) in [
        (&["--vary", "timeline.outage.for=1s..100s"][..], &["with `timeline.outage.for=100s`", "`--set length=10m`"][..]),
        (&["--vary", "policies.app.attempts=0..4"], &["with `policies.app.attempts=0`"]),
        (&["--vary", "timeline.block.for=1s..2s"], &["has no `block`"]),
        (&["--vary", "timeline.outage.for=1s..900/s"], &["both ends of a range have one unit"]),
        (&["--vary", "timeline.outage.for=2s..1s"], &["smaller value first"]),
        (&["--vary", "length=26s..30s", "--seeds", "5"], &["5 is not in 6..=1000"]),
        (&["--vary", "length=26s..30s", "--tolerance", "0%"], &["between 0.1% and 50%"]),
        (&["--vary", "fleets.app.clients=100..200", "--set", "recovery="], &["recovery"]),
    ] {
        let said = bisect(&folder, args);
        assert_eq!(said.code, Some(2), "{args:?}: {said:#?}");
        for part in wanted {
            assert!(said.err.contains(part), "{args:?}: {part}: {said:#?}");
        }
    }
}
