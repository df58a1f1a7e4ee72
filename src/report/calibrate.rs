//! The report of `stormwake calibrate`: from the document of a live run to the `model:` and `network:` of a plan.
//!
//! Owns what counts as evidence and how the outcome is written; how a service is estimated stands in `service::estimate`.
//! No evidence, no model: a simulated run, no baseline, too few attempts, an unhealthy baseline, a generator that lagged.

use super::layout;
use super::result::{Distribution, Engine, RunResult, WindowResult};
use crate::network::Network;
use crate::service::ServiceTime;
use crate::service::estimate::{Limit, Slice, limit, service_time};
use crate::service::time::point_name;
use crate::time::Span;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// Attempts that a baseline must have.
const LEAST_ATTEMPTS: u64 = 200;
/// Attempts that must lie beyond a percentile for it to be kept.
const BEYOND: f64 = 5.0;
/// A generator later than this measures itself.
const MOST_LAG_MS: f64 = 20.0;

/// A setting of the model, and how it was come by.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its key.
    pub key: &'static str,
    /// Its value, as a plan takes it.
    pub value: Value,
    /// How it was derived, and how sure it is.
    pub why: String,
}

/// A model of a target.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// What it rests on, in a sentence.
    pub basis: String,
    /// What else its reader should know.
    pub doubts: Vec<String>,
    /// The settings of `target.model`.
    pub model: Vec<Setting>,
    /// The settings of `network`.
    pub network: Vec<Setting>,
}

/// Derives a model from a run. `round_trip` is the time to the target and back, where the user knows it better than the run.
///
/// # Errors
/// Why the run is no evidence, and what would be.
pub fn calibrate(run: &RunResult, round_trip: Option<Span>) -> Result<Calibration, String> {
    let (distribution, baseline) = evidence(run)?;
    let loopback = Network::loopback().config;
    let clients = loopback.latency.mean();
    let (upstream, upstream_why) = upstream(run, round_trip, loopback.upstream.mean());
    let network = (clients + upstream) * 2;
    let mut doubts = Vec::new();
    let percentiles = percentiles(distribution, baseline.1, &mut doubts);
    let mean = ms(distribution.mean_ms.unwrap_or(0.0));
    let time = service_time(&percentiles, mean, network)
        .map_err(|wrong| format!("the percentiles of the baseline make no distribution: {wrong}"))?;
    lag_doubt(run, distribution, &mut doubts);
    connect_doubt(run, distribution, &mut doubts);
    let basis = format!(
        "{} attempts in the baseline of a live run of `{}` (seed {}), {} to {} after its start; attempt latency from the send, mean {}",
        distribution.count,
        run.plan.name,
        run.seed,
        Span::from_millis(baseline.0.start),
        Span::from_millis(baseline.0.end),
        mean.about_micros(),
    );
    let why = time_why(&time, mean, network, distribution.count);
    let mut model = vec![Setting { key: "service_time", value: time_value(&time), why }];
    let p99 = percentiles.iter().find(|(percent, _)| *percent >= 99.0).map_or(mean, |(_, value)| *value);
    let slices = slices(run);
    let limit = limit(&slices, p99, time.mean());
    limit_doubt(run, &limit, &mut doubts);
    round_trip_doubt(round_trip, &percentiles)?;
    model.extend(limits(&limit, time.mean(), most_in_flight(run)));
    let network = vec![
        Setting {
            key: "latency",
            value: text(clients),
            why: "the default: clients and proxy share a machine in a live run".into(),
        },
        Setting { key: "upstream", value: text(upstream), why: upstream_why },
    ];
    Ok(Calibration { basis, doubts, model, network })
}

/// The YAML, ready to be pasted: `model` belongs under `target`, beside its `url`.
pub fn yaml(found: &Calibration) -> String {
    let mut out = String::new();
    comment(&mut out, 0, &format!("Derived by stormwake calibrate {} from {}.", env!("CARGO_PKG_VERSION"), found.basis));
    found.doubts.iter().for_each(|doubt| comment(&mut out, 0, &format!("Doubt: {doubt}.")));
    comment(&mut out, 0, "Put `model:` beside the `url:` of your plan's target.");
    out.push_str("target:\n  model:\n");
    found.model.iter().for_each(|setting| lines(&mut out, 4, setting));
    out.push_str("network:\n");
    found.network.iter().for_each(|setting| lines(&mut out, 2, setting));
    out
}

/// The same as JSON: `target.model` and `network` as a plan takes them, and `why` for each key.
pub fn json(found: &Calibration) -> Vec<u8> {
    let values = |settings: &[Setting]| settings.iter().map(|s| (s.key.to_string(), s.value.clone())).collect::<Map<_, _>>();
    let why = |settings: &[Setting]| settings.iter().map(|s| (s.key.to_string(), json!(s.why))).collect::<Map<_, _>>();
    let document = json!({
        "stormwake": env!("CARGO_PKG_VERSION"),
        "basis": found.basis,
        "doubts": found.doubts,
        "target": { "model": values(&found.model) },
        "network": values(&found.network),
        "why": { "model": why(&found.model), "network": why(&found.network) },
    });
    format!("{document:#}\n").into_bytes()
}

/// The baseline's distribution, its place in milliseconds, and the share of its attempts that failed.
fn evidence(run: &RunResult) -> Result<(&Distribution, (std::ops::Range<u64>, f64)), String> {
    if run.engine == Engine::Sim {
        return Err(
            "the run was simulated: it shows its own model, and nothing of a target. Calibrate from `stormwake run`".into()
        );
    }
    let Some(baseline) = &run.baseline else {
        return Err(
            "the run has no baseline: give the plan a fault with some healthy seconds before it (`steady_state: { for: 30s }`)"
                .into(),
        );
    };
    let Some(distribution) = &baseline.attempt_latency else {
        return Err(format!(
            "version {} wrote this document and kept too little of the baseline: run the plan again",
            run.stormwake
        ));
    };
    if distribution.count < LEAST_ATTEMPTS {
        let count = distribution.count;
        return Err(format!(
            "only {count} attempts ended in the baseline, and it takes {LEAST_ATTEMPTS}: make it longer, or the load larger"
        ));
    }
    let (success, errors) = (baseline.success.unwrap_or(0.0), baseline.errors.unwrap_or(1.0));
    if success < 0.99 || errors > 0.01 {
        let (success, errors) = (layout::percent(Some(success)), layout::percent(Some(errors)));
        return Err(format!(
            "the baseline was not healthy: {success} of operations succeeded and {errors} of attempts failed; 99% and 1% are wanted"
        ));
    }
    let place = baseline.from_ms..baseline.to_ms;
    if let Some(lag) = lag(run, &place).filter(|lag| *lag > MOST_LAG_MS) {
        return Err(format!(
            "the generator lagged in the baseline (p99 {}), so that it measured itself: use a machine with more to spare, or less load",
            layout::millis(Some(lag))
        ));
    }
    Ok((distribution, (place, errors)))
}

/// The median over the baseline's windows of the 99th percentile of lag.
fn lag(run: &RunResult, place: &std::ops::Range<u64>) -> Option<f64> {
    let lags: Vec<f64> = run.windows.iter().filter(|w| place.contains(&w.t_ms)).filter_map(|w| w.lag_p99_ms).collect();
    crate::stats::median(&lags)
}

fn lag_doubt(run: &RunResult, distribution: &Distribution, doubts: &mut Vec<String>) {
    let place = run.baseline.as_ref().map_or(0..0, |baseline| baseline.from_ms..baseline.to_ms);
    let median = distribution.percentiles.iter().find(|p| p.percent >= 50.0).map_or(0.0, |p| p.ms);
    if let Some(lag) = lag(run, &place).filter(|lag| *lag > median / 10.0) {
        let (lag, median) = (layout::millis(Some(lag)), layout::millis(Some(median)));
        doubts.push(format!(
            "the generator's lag (p99 {lag}) is more than a tenth of the median latency ({median}), and may be in it"
        ));
    }
}

/// A model without a limit cannot be overloaded: what a storm does to the target is not in it.
fn limit_doubt(run: &RunResult, limit: &Limit, doubts: &mut Vec<String>) {
    if matches!(limit, Limit::NotSeen(_)) {
        let timeouts = run.totals.by_outcome.get("timeout").copied().unwrap_or(0);
        let seen = match timeouts {
            0 => String::new(),
            n => format!("; {n} attempts of this run timed out, and may have met one"),
        };
        doubts.push(format!(
            "no limit of the target was told apart from its service time{seen}: this model cannot be overloaded, so a storm that keeps the target \
             stuck would recover on it; set `servers` and `queue` to what you know before you trust a recovery"
        ));
    }
}

/// A way that takes longer than the fastest attempt leaves no time for the service.
fn round_trip_doubt(round_trip: Option<Span>, percentiles: &[(f64, Span)]) -> Result<(), String> {
    let fastest = percentiles.first().map_or(Span::ZERO, |(_, fastest)| *fastest);
    match round_trip {
        Some(given) if given > fastest => Err(format!(
            "a round trip of {given} is longer than the fastest attempt of the baseline ({}): give a shorter one, or leave it out",
            fastest.about_micros()
        )),
        _ => Ok(()),
    }
}

/// The most attempts that were on the wire at the end of a window.
fn most_in_flight(run: &RunResult) -> u64 {
    run.windows.iter().map(|window| window.in_flight).max().unwrap_or(0)
}

fn connect_doubt(run: &RunResult, distribution: &Distribution, doubts: &mut Vec<String>) {
    let Some(connects) = &run.connects else { return };
    if connects.count * 10 > distribution.count && connects.fastest_ms * 20.0 > distribution.mean_ms.unwrap_or(0.0) {
        doubts.push(format!(
            "{} connects to the target were made in the run, some of them in the baseline, and those times are in the latencies: use fewer clients or a longer warm-up",
            connects.count
        ));
    }
}

/// One way between proxy and target.
fn upstream(run: &RunResult, round_trip: Option<Span>, default: Span) -> (Span, String) {
    if let Some(known) = round_trip {
        return (known / 2, format!("half of the round trip of {known} that was given"));
    }
    match &run.connects {
        Some(connects) => {
            let fastest = ms(connects.fastest_ms);
            let why = format!(
                "half of the fastest of {} connects to the target ({}); what slower ways add is in service_time",
                connects.count,
                fastest.about_micros()
            );
            (fastest / 2, why)
        }
        None => (default, "the default: the run counted no connect to the target; give `--round-trip`".into()),
    }
}

/// Percentiles with enough attempts beyond them, failures cut off at the top.
fn percentiles(of: &Distribution, errors: f64, doubts: &mut Vec<String>) -> Vec<(f64, Span)> {
    let resting = |percent: f64| of.count as f64 * (100.0 - percent) / 100.0 >= BEYOND;
    let good = 100.0 * (1.0 - errors);
    let mut kept: Vec<(f64, Span)> = Vec::new();
    for point in &of.percentiles {
        let is_end = point.percent >= 100.0;
        let failed = errors > 0.0 && point.percent > good;
        match kept.last() {
            Some(&(_, last)) if failed && is_end => kept.push((point.percent, last)),
            _ if failed || !(is_end || resting(point.percent)) => {}
            _ => kept.push((point.percent, ms(point.ms))),
        }
    }
    if errors > 0.0 {
        doubts.push(format!(
            "{} of attempts failed in the baseline; the slowest of its attempts are left out for them",
            layout::percent(Some(errors))
        ));
    }
    kept
}

/// The windows in which no fault acted.
fn slices(run: &RunResult) -> Vec<Slice> {
    let whole = |window: &&WindowResult| window.t_ms + run.window_ms <= run.duration_ms;
    let struck = |window: &WindowResult| {
        run.faults.iter().any(|fault| fault.from_ms < window.t_ms + run.window_ms && window.t_ms < fault.to_ms)
    };
    run.windows.iter().filter(whole).filter(|window| !struck(window)).map(|window| slice(window, run.window_ms)).collect()
}

fn slice(window: &WindowResult, window_ms: u64) -> Slice {
    let of = |name: &str| window.by_outcome.get(name).copied().unwrap_or(0);
    let (succeeded, limited, unavailable) = (of("success"), of("status_429"), of("status_503"));
    Slice {
        length: Span::from_millis(window_ms),
        succeeded,
        refused: limited + unavailable,
        status: if limited >= unavailable { 429 } else { 503 },
        lost: window.by_outcome.values().sum::<u64>() - succeeded - limited - unavailable,
        p99: window.attempt_p99_ms.map(ms),
        in_flight: window.in_flight,
    }
}

fn limits(limit: &Limit, mean: Span, most_in_flight: u64) -> Vec<Setting> {
    let setting = |key, value, why| Setting { key, value, why };
    match *limit {
        Limit::NotSeen(why) => {
            let why = format!(
                "not known: {why}. A light load does not show how many are served at once; the model has no limit, and cannot be overloaded"
            );
            vec![setting("servers", json!("unlimited"), why)]
        }
        Limit::Limiter { rate, status, slices } => {
            let why = format!(
                "seen in {slices} windows: no more than this succeeded, the rest got {status} at once. The burst is not known"
            );
            let bucket = json!({ "rate": format!("{}/s", (rate.get() * 10.0).round() / 10.0), "reject": status });
            let servers = "not known: a limiter stands before them".to_string();
            vec![setting("servers", json!("unlimited"), servers), setting("limiter", json!({ "token_bucket": bucket }), why)]
        }
        Limit::Servers { capacity, servers, queue, slices } => {
            let model = f64::from(servers) / mean.as_secs_f64().max(1e-9);
            let why = format!(
                "in {slices} windows {} came back whatever waited: times the mean service time of {} that is {:.1} servers; the model serves {}",
                layout::rate(Some(capacity.get())),
                mean.about_micros(),
                capacity.get() * mean.as_secs_f64(),
                layout::rate(Some(model))
            );
            let (queue, queue_why) = match queue {
                Some(queue) => (queue, "the most that was on the wire when attempts were refused, less those in service"),
                None => {
                    let seen = u32::try_from(most_in_flight).unwrap_or(u32::MAX).saturating_mul(2);
                    (seen.max(1000), "not known: it was not seen to overflow; twice the most that was on the wire, 1000 at least")
                }
            };
            vec![setting("servers", json!(servers), why), setting("queue", json!(queue), queue_why.into())]
        }
    }
}

fn time_why(time: &ServiceTime, mean: Span, network: Span, count: u64) -> String {
    let less = format!("attempt latency less {} of network", network.about_micros());
    match time {
        ServiceTime::Percentiles(points) => {
            let error = spread(points) / libm::sqrt(count as f64);
            format!(
                "{less}; mean {} ± {} (95%, as far as the baseline is typical), {} by the attempts themselves; p100 is lowered towards it; waiting in a queue during the baseline is in it",
                points.mean().about_micros(),
                Span::from_secs_f64(1.96 * error).about_micros(),
                Span(mean.0.saturating_sub(network.0)).about_micros()
            )
        }
        _ => format!("{less}; most attempts took the same time, so what lies above is taken for waiting in a queue"),
    }
}

/// The standard deviation, in seconds, of a distribution that is even between its points.
fn spread(points: &crate::service::time::Percentiles) -> f64 {
    let all: Vec<(f64, f64)> = points.points().map(|(percent, time)| (percent / 100.0, time.as_secs_f64())).collect();
    let square = |p: &[(f64, f64)]| (p[1].0 - p[0].0) * (p[0].1 * p[0].1 + p[0].1 * p[1].1 + p[1].1 * p[1].1) / 3.0;
    let mean = points.mean().as_secs_f64();
    libm::sqrt((all.windows(2).map(square).sum::<f64>() - mean * mean).max(0.0))
}

fn time_value(time: &ServiceTime) -> Value {
    match time {
        ServiceTime::Percentiles(points) => {
            let points = points.points().map(|(percent, time)| (point_name(percent / 100.0), text(time)));
            json!({ "percentiles": points.collect::<Map<_, _>>() })
        }
        time => text(time.mean()),
    }
}

fn text(span: Span) -> Value {
    Value::String(span.about_micros().to_string())
}

fn ms(millis: f64) -> Span {
    Span::from_secs_f64(millis / 1e3)
}

fn lines(out: &mut String, indent: usize, setting: &Setting) {
    comment(out, indent, &setting.why);
    let _ = writeln!(out, "{}{}: {}", " ".repeat(indent), setting.key, flow(&setting.value));
}

/// A value in YAML's flow style. Texts here are times, rates and words, which need no quotes.
fn flow(value: &Value) -> String {
    match value {
        Value::Object(entries) => {
            let entries: Vec<String> = entries.iter().map(|(key, value)| format!("{key}: {}", flow(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A comment, wrapped.
fn comment(out: &mut String, indent: usize, text: &str) {
    for line in layout::Style::default().wrap(text, 110 - indent, usize::MAX) {
        let _ = writeln!(out, "{}# {line}", " ".repeat(indent));
    }
}

#[cfg(test)]
mod tests {
    use super::super::result::{BaselineResult, ConnectsResult, Percentile};
    use super::super::sample;
    use super::*;

    /// A live run with a baseline of 10 s whose latencies are even between `low` and `high` milliseconds.
    fn run(count: u64, low: f64, high: f64) -> RunResult {
        let mut run = sample::stuck();
        let point = |percent: f64| Percentile { percent, ms: low + (high - low) * percent / 100.0 };
        let percentiles = [0.0, 5.0, 50.0, 90.0, 95.0, 99.0, 99.9, 100.0].map(point).to_vec();
        let attempt_latency = Some(Distribution { count, mean_ms: Some((low + high) / 2.0), percentiles });
        let baseline = run.baseline.take().unwrap();
        run.baseline = Some(BaselineResult { success: Some(1.0), errors: Some(0.0), attempt_latency, ..baseline });
        run.connects = Some(ConnectsResult { count: 40, fastest_ms: 2.0 });
        run
    }

    fn value(found: &Calibration, key: &str) -> String {
        let setting = found.model.iter().chain(&found.network).find(|setting| setting.key == key);
        setting.map(|setting| flow(&setting.value)).unwrap_or_default()
    }

    #[test]
    fn a_model_is_what_is_left_of_latency_without_the_network() {
        let found = calibrate(&run(4_000, 12.12, 42.12), None).unwrap();
        assert_eq!((value(&found, "latency"), value(&found, "upstream")), ("60us".into(), "1ms".into()));
        let time = value(&found, "service_time");
        assert!(
            time.starts_with("{ percentiles: { p0: 10ms, p5: 11ms500us, p50: 25ms, ") && time.ends_with("p100: 40ms } }"),
            "{time}"
        );
        assert!(!time.contains("p99.9"), "too few attempts beyond it: {time}");
        assert_eq!(value(&found, "servers"), "unlimited");
        let yaml = yaml(&found);
        for part in
            ["target:\n  model:\n", "\n    service_time: {", "\n    servers: unlimited\n", "\nnetwork:\n", "\n  upstream: 1ms\n"]
        {
            assert!(yaml.contains(part), "{part}:\n{yaml}");
        }
        let document: Value = serde_json::from_slice(&json(&found)).unwrap();
        assert_eq!(document["target"]["model"]["service_time"]["percentiles"]["p50"], "25ms");
        assert_eq!(value(&calibrate(&run(4_000, 12.12, 42.12), Some(Span::from_millis(6))).unwrap(), "upstream"), "3ms");
        assert_eq!(value(&calibrate(&run(4_000, 12.12, 12.2), None).unwrap(), "service_time"), "10ms40us");
    }

    #[test]
    fn no_evidence_gives_no_model() {
        let spoil = |change: &dyn Fn(&mut RunResult, &mut BaselineResult)| {
            let mut run = run(4_000, 12.0, 42.0);
            let mut baseline = run.baseline.take().unwrap();
            change(&mut run, &mut baseline);
            run.baseline = Some(baseline);
            calibrate(&run, None).unwrap_err()
        };
        assert!(spoil(&|run, _| run.engine = Engine::Sim).contains("was simulated"));
        assert!(spoil(&|_, baseline| baseline.success = Some(0.9)).contains("not healthy"));
        assert!(spoil(&|_, baseline| baseline.errors = Some(0.02)).contains("not healthy"));
        assert!(spoil(&|_, baseline| baseline.attempt_latency = None).contains("run the plan again"));
        assert!(spoil(&|_, baseline| baseline.attempt_latency.as_mut().unwrap().count = 199).contains("only 199 attempts"));
        assert!(spoil(&|run, _| run.windows.iter_mut().for_each(|w| w.lag_p99_ms = Some(40.0))).contains("generator lagged"));
        let mut bare = run(4_000, 12.0, 42.0);
        bare.baseline = None;
        assert!(calibrate(&bare, None).unwrap_err().contains("has no baseline"));
    }

    #[test]
    fn doubts_are_said() {
        let mut doubtful = run(4_000, 12.0, 42.0);
        doubtful.windows.iter_mut().for_each(|w| w.lag_p99_ms = Some(5.0));
        doubtful.connects = Some(ConnectsResult { count: 2_000, fastest_ms: 4.0 });
        doubtful.baseline.as_mut().unwrap().errors = Some(0.004);
        let found = calibrate(&doubtful, None).unwrap();
        let doubts = found.doubts.join("\n");
        for part in ["lag (p99 5ms)", "2000 connects", "0.4% of attempts failed"] {
            assert!(doubts.contains(part), "{part}: {doubts}");
        }
        assert!(yaml(&found).contains("# Doubt: "));
    }

    #[test]
    fn a_target_at_its_limit_gives_its_servers() {
        let mut run = run(4_000, 10.2, 10.6);
        run.connects = Some(ConnectsResult { count: 40, fastest_ms: 0.08 });
        let last = run.faults.iter().map(|fault| fault.to_ms).max().unwrap();
        for window in run.windows.iter_mut().filter(|window| window.t_ms >= last) {
            window.by_outcome = [("success".to_string(), 600)].into();
            window.attempt_p99_ms = Some(800.0);
        }
        let found = calibrate(&run, None).unwrap();
        // It held 1610 at once, and never refused one.
        assert_eq!((value(&found, "servers"), value(&found, "queue")), ("6".into(), "3220".into()));
    }
}
