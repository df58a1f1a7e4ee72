//! The plan as written, before names are resolved and numbers are checked against each other.

use super::action::RawAction;
use super::compare::RawCompare;
use super::external::ExternalProxy;
use super::fleet::RawFleet;
use super::presets::PolicySpec;
use super::proxy::RawProxy;
use super::target::TargetConfig;
use crate::config::{At, Lenient, Read, Table, TimeScale};
use crate::fault::{Fault, Repeat, TimeShape, Which};
use crate::gate::{Expect, RecoveryConfig, RunGate, SteadyState, StopConfig};
use crate::network::Network;
use crate::record;
use crate::service::ServiceChange;
use crate::time::Span;

/// How long the windows are by which a run is judged, at any speed.
const WINDOW: Span = Span::from_secs(1);

record! {
    /// A step of the timeline: a fault, or a change of the service, at a time for a duration; or an action at a time.
    pub struct RawStep {
        /// When it begins, from the start of the run.
        at: At<Span>,
        /// How long it lasts; to the end of the run where nothing is said. Of actions, `pause` alone can last. A change of the service that
        /// lasts is put back at its end to what the plan's `service` says.
        r#for: Option<At<Span>>,
        /// Its name, for `recovery`, gates and reports; the fault's or action's own where nothing is said, or `service`.
        name: Option<At<String>>,
        /// The harm that it does; or, in its place, `action` or `service`.
        fault: Option<At<Fault>>,
        /// What it does beside harm.
        action: Option<At<RawAction>>,
        /// What changes of the built-in target, or of the `model` of a URL in a simulated run.
        service: Option<At<ServiceChange>>,
        /// The proxy of `proxies` at which the fault acts; `target`, the one between clients and target, where nothing is said.
        on: Option<At<String>>,
        /// The fleets that the fault strikes; all of them where nothing is said.
        fleets: Option<At<Vec<At<String>>>>,
        /// The destinations of workers' queues whose requests it strikes; all requests where nothing is said.
        destinations: Option<At<Vec<At<String>>>>,
        /// The regions it strikes, of the fleets that it strikes; all of them where nothing is said.
        regions: Option<At<Vec<At<String>>>>,
        /// The fault comes again, each time as a step of its own, with a number behind its name.
        repeat: Option<At<Repeat>>,
        ; with
        /// Which requests it strikes, of all those.
        which: Which,
        /// Its shape in time.
        shape: TimeShape,
    } => |s: &RawStep| {
        let keys = [("fault", s.fault.is_some()), ("action", s.action.is_some()), ("service", s.service.is_some())];
        let mut given = keys.into_iter().filter(|(_, there)| *there).map(|(key, _)| key);
        match (given.next(), given.next()) {
            (Some(_), None) => Ok(()),
            (Some(one), Some(other)) => Err(format!("`{other}` and `{one}` exclude each other: make two steps of it")),
            (None, _) => Err("a step needs a `fault`, an `action` or a `service`: such as `fault: { blackhole: {} }`".to_string()),
        }
    }
}

record! {
    /// A stormwake plan: top to bottom like a game day.
    pub struct RawPlan {
        /// The version of the plan's language: 1.
        version: Lenient<At<u32>>,
        /// What reports and folders are named after; the file's name where nothing is said.
        name: Option<Lenient<At<String>>>,
        /// Drives every random choice of the run.
        seed: Lenient<u64> = Lenient(Some(1)),
        /// Where the load goes.
        target: Lenient<At<TargetConfig>>,
        /// The network of a simulated run, as settings or as a word: `loopback`, `wan`. A live run has its own.
        network: Lenient<Network> = Lenient(Some(Network::loopback())),
        /// Proxies by name, each between a service of yours and what it calls. Live only.
        proxies: Lenient<Table<Lenient<At<RawProxy>>>> = Lenient(Some(Table::default())),
        /// Policies by name.
        policies: Lenient<Table<Lenient<PolicySpec>>> = Lenient(Some(Table::default())),
        /// Fleets by name.
        fleets: Lenient<At<Table<Lenient<At<RawFleet>>>>>,
        /// The baseline: the stretch before the first fault (30s of it at most) where nothing is said and `recovery` needs one.
        steady_state: Option<Lenient<At<SteadyState>>>,
        /// The faults, and what else happens.
        timeline: Lenient<Vec<Lenient<At<RawStep>>>> = Lenient(Some(Vec::new())),
        /// A Toxiproxy, or a `stormwake proxy`, that carries out the faults of the timeline in a live run; our own proxy where nothing is said.
        proxy: Option<Lenient<At<ExternalProxy>>>,
        /// What counts as recovered.
        recovery: Option<Lenient<At<RecoveryConfig>>>,
        /// Checks on the run, and on the seeds of many.
        gates: Lenient<Vec<Lenient<RunGate>>> = Lenient(Some(Vec::new())),
        /// When the run is stopped before its end.
        stop_if: Lenient<Vec<Lenient<StopConfig>>> = Lenient(Some(Vec::new())),
        /// What a plan that shows a failure expects; it passes when it gets that.
        expect: Option<Lenient<At<Expect>>>,
        /// Policies to compare on this plan, with `stormwake compare`.
        compare: Option<Lenient<At<RawCompare>>>,
        /// How long the run is.
        length: Lenient<At<Span>>,
        /// Puts the plan at another speed: `1/20` divides every duration by twenty and multiplies every rate.
        time_scale: Option<Lenient<TimeScale>>,
        /// What deadlines are rounded up to; no time scale changes it.
        timer_grain: Lenient<At<Span>> = Lenient(Some(At { value: Span::from_micros(250), place: Default::default() })),
    }
}

impl RawPlan {
    /// The plan at the speed that it asks for, and which that is; none where that is its own.
    pub(super) fn at_its_speed(mut self) -> (Self, Option<TimeScale>) {
        let scale = self.time_scale.as_ref().and_then(|scale| scale.0).filter(|scale| !scale.is_none());
        if let Some(scale) = scale {
            // The grain is the machine's, not the plan's.
            let grain = self.timer_grain.clone();
            self.rescale(scale);
            self.timer_grain = grain;
            self.judged().into_iter().for_each(|span| *span = (*span).max(WINDOW));
        }
        (self, scale)
    }

    /// What is judged by windows, and so cannot be shorter than one.
    fn judged(&mut self) -> Vec<&mut Span> {
        let steady = self.steady_state.as_mut().and_then(|steady| steady.0.as_mut());
        let recovery = self.recovery.as_mut().and_then(|recovery| recovery.0.as_mut());
        let mut all: Vec<&mut Span> = steady.map(|steady| &mut steady.value.r#for).into_iter().collect();
        all.extend(recovery.into_iter().flat_map(|At { value, .. }| [&mut value.span, &mut value.hold]));
        all.into_iter().filter(|span| !span.is_zero()).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::{Plan, Source, load};

    fn plan(text: &str, overrides: &[&str]) -> Plan {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        let source = Source { file: "plan.yaml", text, overrides: &overrides, env: &|_| None };
        load(&source).unwrap_or_else(|error| panic!("{error}")).plan
    }

    /// What a time scale of 1/20 makes of a plan, written by hand: each figure at its own speed, and twenty times as fast.
    const SCALED: &[(&str, &str)] = &[
        ("version: 1\nname: scaled\nlength: {}\n", "10m|30s"),
        ("network: {}\n", "loopback|{ latency: 3us, upstream: 3us, connect: 6us }"),
        ("target:\n  max_attempts: {}\n  success: { within: {} }\n", "1000/s|20000/s 4s|200ms"),
        (
            "  service: { servers: 4, service_time: { p50: {}, p99: {} }, queue: { order: adaptive_lifo, adaptive_after: {} }, limiter: [sliding_log: { limit: 9, window: {}, retry_after: {}, penalty_box: { ban: {} } }, fixed_window: { limit: 9, window: {} }, concurrency: { limit: 9 }], admission: { max_age: {} } }\n",
            "40ms|2ms 80ms|4ms 100ms|5ms 2s|100ms 20s|1s 4s|200ms 1m|3s 60s|3s",
        ),
        (
            "  services: { db: { rate: {}, queue: { order: adaptive_lifo, adaptive_after: {} }, calls: { service: cache, policy: q, latency: {} } }, cache: { rate: {}, queue: { order: adaptive_lifo, adaptive_after: {} } } }\n",
            "900/s|18000/s 100ms|5ms 2ms|100us 50/s|1000/s 100ms|5ms",
        ),
        ("proxies: { provider: { listen: 127.0.0.1:9, upstream: 127.0.0.1:10, repeats: { within: {} } } }\n", "60s|3s"),
        ("policies:\n  p:\n    attempts: 3\n    timeout: {}\n    deadline: {}\n", "1s|50ms 30s|1500ms"),
        (
            "    backoff: { exponential: { base: {}, cap: {}, jitter: { additive: { range: {} } } } }\n",
            "100ms|5ms 1m|3s 50ms|2500us",
        ),
        ("    on: { 429: { backoff: { fixed: { delay: {} } } } }\n", "5s|250ms"),
        ("    retry_after: { honor: { cap: {} } }\n", "300s|15s"),
        ("    budget: { ratio: 10%, window: {}, min_per_second: {}, tier: fleet }\n", "10s|500ms 2|40"),
        ("    breaker: { rate: 50%, window: {}, open_for: {}, tier: client }\n", "1m|3s 30s|1500ms"),
        ("  q: { attempts: 2, timeout: {} }\nfleets:\n", "2s|100ms"),
        (
            "  a: { clients: 10, policy: p, load: { poisson: { rate: {} } }, late_starts: { bounded_catchup: { within: {} } } }\n",
            "100/s|2000/s 1s|50ms",
        ),
        ("  b: { clients: 10, policy: q, load: { ramp: { from: {}, to: {}, over: {} } } }\n", "6/m|2/s 20/s|400/s 1m|3s"),
        ("  c: { clients: 10, policy: q, load: { closed: { think: {} } } }\n", "3s|150ms"),
        (
            "timeline:\n  - { at: {}, for: {}, name: out, fault: { status: { code: 503, retry_after: {} } } }\n",
            "2m|6s 1m|3s 40s|2s",
        ),
        (
            "  - { at: {}, for: {}, name: often, ramp: { in: {}, out: {} }, flap: { on: {}, off: {} }, fault: { slow_body: { every: {} } } }\n",
            "130s|6500ms 20s|1s 8s|400ms 4s|200ms 4s|200ms 6s|300ms 100ms|5ms",
        ),
        (
            "  - { at: {}, for: {}, name: again, repeat: { every: {}, times: 2 }, fault: { limit_concurrency: { limit: 3, queue: 2, wait: {}, retry_after: {} } } }\n",
            "125s|6250ms 10s|500ms 20s|1s 2s|100ms 40s|2s",
        ),
        (
            "  - { at: {}, for: {}, name: late, fault: { latency: { add: {}, jitter: {}, distribution: normal } } }\n",
            "160s|8s 4s|200ms 2s|100ms 1s|50ms",
        ),
        ("  - { at: {}, for: {}, name: thin, fault: { bandwidth: { rate: {} } } }\n", "165s|8250ms 4s|200ms 50KB/s|1MB/s"),
        ("  - { at: {}, for: {}, name: cut, fault: { slicer: { size: 1KB, delay: {} } } }\n", "170s|8500ms 4s|200ms 200ms|10ms"),
        ("  - { at: {}, for: {}, name: stuck, fault: { stall: { timeout: {} } } }\n", "175s|8750ms 4s|200ms 2s|100ms"),
        ("  - { at: {}, for: {}, name: slow, fault: { slow_close: { delay: {} } } }\n", "176s|8800ms 3s|150ms 2s|100ms"),
        ("  - { at: {}, action: { restart: { fleet: a, policy: q, stagger: {} } } }\n", "3m|9s 30s|1500ms"),
        (
            "  - { at: {}, for: {}, name: weak, service: { capacity: 20%, over: {}, drain: {} } }\n",
            "190s|9500ms 10s|500ms 2s|100ms 50/s|1000/s",
        ),
        ("  - { at: {}, action: { set_rate: { fleet: a, to: {} } } }\n", "4m|12s 50/s|1000/s"),
        ("  - { at: {}, action: { exec: { command: [x], within: {} } } }\n", "5m|15s 10s|10s"),
        ("steady_state: { for: {}, require: { p99: '<= {}' } }\n", "100s|5s 1s|50ms"),
        ("recovery: { within: {}, hold: {}, span: {} }\n", "4m|12s 20s|1s 5s|1s"),
        ("gates:\n  - { p99: '<= {}' }\n  - { goodput: '>= {}' }\n  - { errors: '<= 5%' }\n", "400ms|20ms 90/s|1800/s"),
        ("stop_if:\n  - { attempts: '> {}', for: {} }\n", "900/s|18000/s 20s|1s"),
        ("  - { check: { command: [x], every: {} }, failing_for: {} }\n", "5s|250ms 20s|1s"),
        ("compare: { fleet: a, reference: p, candidates: [q], gates: [ { policy: q, recovery_time: '<= {}' } ] }\n", "20s|1s"),
    ];

    #[test]
    fn a_time_scale_is_every_figure_divided_by_hand() {
        let text = |fast: usize| -> String {
            let fill = |(line, figures): &(&str, &str)| {
                let pairs = figures.split_inclusive([' ']).collect::<String>();
                let mut line = (*line).to_string();
                // A map holds spaces of its own, and is the only figure of its line.
                let figures: Vec<&str> = if pairs.contains('{') { vec![figures] } else { figures.split(' ').collect() };
                for pair in figures {
                    let value = pair.split_once('|').map(|(slow, quick)| [slow, quick][fast]).expect("two speeds");
                    line = line.replacen("{}", value, 1);
                }
                line
            };
            SCALED.iter().map(fill).collect()
        };
        let scaled = plan(&text(0), &["time_scale=1/20"]);
        let by_hand = plan(&text(1), &[]);
        assert_eq!(scaled.time_scale.map(|scale| scale.to_string()).as_deref(), Some("1/20"));
        // The same but for where each thing stands, and for the scale itself.
        let told = |plan: Plan| {
            let text = format!("{:#?}", Plan { time_scale: None, ..plan });
            let mut lines: Vec<String> = Vec::new();
            let mut inside = 0;
            for line in text.lines() {
                inside += usize::from(line.contains("Place {"));
                if inside == 0 {
                    lines.push(line.to_string());
                }
                inside -= usize::from(inside > 0 && line.trim() == "},");
            }
            lines
        };
        let (scaled, by_hand) = (told(scaled), told(by_hand));
        assert!(scaled.len() == by_hand.len() && scaled.len() > 300, "{} and {} lines", scaled.len(), by_hand.len());
        scaled.iter().zip(&by_hand).for_each(|(a, b)| assert_eq!(a, b));
        let plain = plan(&text(0), &[]);
        assert_eq!((plain.time_scale, plan(&text(0), &["time_scale=1"])), (None, plain));
    }
}
