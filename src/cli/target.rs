//! `stormwake target`: the built-in target alone, or as the child of a run.

use super::exit::Code;
use super::logging::Verbose;
use crate::config::{Key, Node, Place, Problems, Read, Value};
use crate::engine::live::clock::LiveClock;
use crate::engine::live::target::{
    CallStats, Change, Changed, Handle, PLAN_END, Ready, Server, Stats, TargetError, TargetStats, raise_file_limit,
};
use crate::plan;
use crate::service::change::FRONT;
use crate::service::limiter::AdaptiveConcurrency;
use crate::service::{ServiceChange, ServiceConfig, SystemConfig};
use anyhow::{Context, anyhow, bail};
use serde::Serialize;
use std::io::{self, BufRead, Read as _, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// The longest plan that is read, in bytes.
const MAX_PLAN: u64 = 4 << 20;
/// The longest line after it, in bytes.
const MAX_ORDER: u64 = 1 << 10;
/// How often a child tells its counts.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// What it is given.
#[derive(clap::Args)]
pub struct Args {
    /// Take the service from this plan's `target`.
    #[arg(long, value_name = "PLAN", conflicts_with_all = FLAGS.map(|(flag, _)| flag))]
    plan: Option<PathBuf>,
    #[command(flatten)]
    service: ServiceArgs,
    /// Drives the random service times [default: the plan's, or 1].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Where to listen. Loopback unless you say otherwise; port 0 takes any that is free.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Serve a run: the plan on stdin, the counts on stdout, the end with stdin's.
    #[arg(long, hide = true)]
    child: bool,
    #[command(flatten)]
    verbose: Verbose,
}

/// The service as flags.
#[derive(clap::Args, Default)]
struct ServiceArgs {
    /// How many requests are served at once, or `unlimited`.
    #[arg(long, value_name = "N", required_unless_present_any = ["plan", "child"])]
    servers: Option<String>,
    /// How long each is served: `10ms`, `uniform:5ms,15ms`, `exponential:10ms` or `lognormal:P50,P99`.
    #[arg(long, value_name = "TIME", required_unless_present_any = ["plan", "child"])]
    service_time: Option<String>,
    /// How many may wait; more are refused with 503 [default: 1000].
    #[arg(long, value_name = "N")]
    queue: Option<String>,
    /// Give up the work for clients that have gone.
    #[arg(long)]
    notices_cancel: bool,
    /// Refuse requests above this limit: a rate, such as `100/s`; of a `concurrency` kind a number.
    #[arg(long, value_name = "LIMIT")]
    limit: Option<String>,
    /// How the limit is kept: `token_bucket`, `fixed_window`, `sliding_log`, `concurrency` or `adaptive_concurrency`.
    #[arg(long, value_name = "KIND", requires = "limit", default_value = "token_bucket")]
    limiter: String,
    /// Whose limit it is: `global`, or one for each `client` or `fleet` [default: global].
    #[arg(long, value_name = "WHOM", requires = "limit")]
    per: Option<String>,
    /// How many tokens the bucket holds [default: 1].
    #[arg(long, value_name = "N", requires = "limit")]
    burst: Option<String>,
    /// Count refused requests against the limit too.
    #[arg(long, requires = "limit")]
    count_rejected: bool,
    /// The status of a refusal [default: 429].
    #[arg(long, value_name = "STATUS", requires = "limit")]
    reject: Option<String>,
    /// The Retry-After of a refusal: such as `1s`, or `backlog` for what is ahead of it.
    #[arg(long, value_name = "TIME", requires = "limit")]
    retry_after: Option<String>,
    /// In which form a refusal says it, such as `http_date` or `retry_after_ms` [default: retry_after].
    #[arg(long, value_name = "FORM", requires = "limit")]
    hint: Option<String>,
}

/// Each flag of the service and the key of the plan that it stands for. A problem is found at its place's line,
/// which counts in this table from 1.
const FLAGS: [(&str, &str); 12] = [
    ("servers", "servers"),
    ("service_time", "service_time"),
    ("queue", "queue"),
    ("notices_cancel", "notices_cancel"),
    ("limit", "rate"),
    ("limiter", "limiter"),
    ("per", "per"),
    ("burst", "burst"),
    ("count_rejected", "count_rejected"),
    ("reject", "reject"),
    ("retry_after", "retry_after"),
    ("hint", "hint"),
];

/// A service and the seed of its draws.
struct Setup {
    config: SystemConfig,
    seed: u64,
    /// By the plan's action, what it changes of the service; none where it does something else.
    changes: Vec<Option<ServiceChange>>,
}

/// Runs the command.
pub fn run(args: Args) -> Code {
    let ended = if args.child { child() } else { alone(&args) };
    match ended {
        Ok(()) => Code::Pass,
        Err(Ended { code, error }) => {
            let _ = writeln!(io::stderr().lock(), "stormwake target: {error:#}");
            code
        }
    }
}

/// Why the command failed.
struct Ended {
    code: Code,
    error: anyhow::Error,
}

/// The plan or the flags are wrong.
fn usage(error: anyhow::Error) -> Ended {
    Ended { code: Code::Usage, error }
}

/// The environment does not give what is needed.
fn environment(error: impl Into<anyhow::Error>) -> Ended {
    Ended { code: Code::Internal, error: error.into() }
}

/// Serves until Ctrl-C or SIGTERM, and sums up.
fn alone(args: &Args) -> Result<(), Ended> {
    // Of a child nobody reads the log: its stderr is kept for its last words.
    args.verbose.start();
    let mut setup = match &args.plan {
        Some(path) => setup_of_file(path),
        None => args.service.read().map(|front| Setup { config: SystemConfig::of(front), seed: 1, changes: Vec::new() }),
    }
    .map_err(usage)?;
    setup.seed = args.seed.unwrap_or(setup.seed);
    let mut stderr = io::stderr();
    if !args.listen.ip().is_loopback() {
        let _ = writeln!(stderr, "warning: {} is not loopback: whoever reaches this machine can use this target", args.listen);
    }
    let stats = on_runtime(setup, args.listen, async |server: Server| {
        let (mut interrupt, mut terminate) = (heard(SignalKind::interrupt())?, heard(SignalKind::terminate())?);
        let _ = writeln!(
            io::stderr(),
            "listening on http://{} (counts at /stormwake/stats and /metrics, changes at /stormwake/service; Ctrl-C ends it)",
            server.addr()
        );
        let stats = server.handle();
        let stop = async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        };
        server.serve(stop).await.map_err(environment)?;
        Ok(stats.read_all())
    })?;
    super::output::print(summary(&stats).as_bytes())
        .map_err(|code| Ended { code, error: anyhow!("the summary could not be printed") })
}

/// Serves a run: until stdin ends (the parent has gone or wants no more) or SIGTERM.
fn child() -> Result<(), Ended> {
    let (plan, mut orders) = read_stdin();
    let mut setup = plan.and_then(|text| service_of("the plan on stdin", &text)).map_err(usage)?;
    let changes = std::mem::take(&mut setup.changes);
    let (lines, writer) = write_stdout();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let told = on_runtime(setup, any, async |server: Server| {
        // Ctrl-C goes to the whole process group; the parent removes its faults first, and then ends this process.
        let (_interrupt, mut terminate) = (heard(SignalKind::interrupt())?, heard(SignalKind::terminate())?);
        say(&lines, &Ready { ready: server.addr() });
        let stats = server.handle();
        let stop = async {
            tokio::select! {
                () = obey(&mut orders, &changes, &stats, &lines) => {}
                _ = terminate.recv() => {}
                () = tell(&lines, &stats) => {}
            }
        };
        server.serve(stop).await.map_err(environment)?;
        say(&lines, &stats.read_all());
        drop(lines);
        Ok(())
    });
    // The last line is worth waiting for; a parent that reads no more ends this process by killing it.
    let _ = writer.join();
    told
}

/// Runs a server on a runtime of its own.
fn on_runtime<T>(setup: Setup, listen: SocketAddr, serve: impl AsyncFnOnce(Server) -> Result<T, Ended>) -> Result<T, Ended> {
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start a runtime");
    let runtime = runtime.map_err(environment)?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let bound = Server::bind(listen, &setup.config, setup.seed, LiveClock::starting_now());
        // As one message: it names its cause already.
        serve(bound.map_err(|error: TargetError| environment(anyhow!(error.to_string())))?).await
    })
}

fn heard(kind: SignalKind) -> Result<Signal, Ended> {
    signal(kind).context("cannot listen for signals").map_err(environment)
}

/// Makes the changes that it is told to make, and says so, until nobody tells it anything more.
async fn obey(
    orders: &mut UnboundedReceiver<Change>,
    changes: &[Option<ServiceChange>],
    service: &Handle,
    lines: &SyncSender<String>,
) {
    while let Some(Change { change: action }) = orders.recv().await {
        if let Some(Some(change)) = changes.get(action) {
            service.change(change);
            say(lines, &Changed { changed: action });
        }
    }
}

/// Tells the counts once a second, for ever.
async fn tell(lines: &SyncSender<String>, stats: &Handle) {
    let mut ticks = tokio::time::interval(TELL_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        say(lines, &stats.read_all());
    }
}

/// Says a line. Where nobody has read the last ones it is left out: each holds the totals so far.
fn say(lines: &SyncSender<String>, what: &impl Serialize) {
    let json = serde_json::to_string(what).expect("numbers and addresses become JSON");
    let _ = lines.try_send(json + "\n");
}

/// Writes lines to stdout from a thread of its own, so that a parent that does not read stalls no request.
fn write_stdout() -> (SyncSender<String>, std::thread::JoinHandle<()>) {
    let (sender, lines) = sync_channel::<String>(16);
    let writer = std::thread::spawn(move || {
        let mut stdout = io::stdout();
        for line in lines {
            if stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush()).is_err() {
                return;
            }
        }
    });
    (sender, writer)
}

/// Reads the plan from stdin up to its end mark; the receiver then has what changes are to be made, and ends when stdin does. A thread of
/// its own reads on, which the end of the process ends.
fn read_stdin() -> (anyhow::Result<String>, UnboundedReceiver<Change>) {
    let (sender, orders) = unbounded_channel();
    let (plan_sender, plan) = sync_channel(1);
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        let _ = plan_sender.send(read_plan(&mut stdin));
        let mut line = Vec::new();
        while stdin.by_ref().take(MAX_ORDER).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            // Anything else is no order.
            let _ = serde_json::from_slice(&line).map(|order| sender.send(order));
            line.clear();
        }
    });
    let text = plan.recv().unwrap_or_else(|_| Err(anyhow!("stdin could not be read")));
    (text, orders)
}

/// Reads lines up to [`PLAN_END`].
fn read_plan(stdin: &mut impl BufRead) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut stdin = stdin.take(MAX_PLAN);
    loop {
        let start = text.len();
        if stdin.read_line(&mut text).context("cannot read the plan from stdin")? == 0 {
            bail!("the plan on stdin does not end: expected a line `{PLAN_END}` after it, within {MAX_PLAN} bytes");
        }
        if text[start..].trim_end() == PLAN_END {
            text.truncate(start);
            return Ok(text);
        }
    }
}

fn setup_of_file(path: &std::path::Path) -> anyhow::Result<Setup> {
    let shown = path.display().to_string();
    let file = std::fs::File::open(path).with_context(|| format!("cannot read {shown}"))?;
    let mut text = String::new();
    file.take(MAX_PLAN).read_to_string(&mut text).with_context(|| format!("cannot read {shown}"))?;
    service_of(&shown, &text)
}

/// What came, and what became of it: every request is in one part of its line, up to `in service`.
fn summary(stats: &TargetStats) -> String {
    let Stats { useful_seconds, wasted_seconds, refusing_seconds, .. } = stats.front;
    let refusing = if refusing_seconds > 0.0 { format!(", {refusing_seconds:.1} s spent on refusals") } else { String::new() };
    let mut lines = if stats.services.is_empty() { vec![books(&stats.front)] } else { Vec::new() };
    // Where there are several the front one is among them, and goes first.
    let (front, others): (Vec<_>, Vec<_>) = stats.services.iter().partition(|(name, _)| *name == FRONT);
    lines.extend(front.iter().chain(&others).map(|(name, of)| format!("{name}: {}", books(of))));
    lines.extend(stats.calls.iter().map(calls));
    lines.push(format!("work: {useful_seconds:.1} s useful, {wasted_seconds:.1} s wasted{refusing}"));
    lines.join("\n") + "\n"
}

/// `9 requests: 6 served (1 for nobody), 2 limited, 1 waiting; 1 whose client had gone`.
fn books(stats: &Stats) -> String {
    let ended = [
        (stats.limited, "limited"),
        (stats.queue_full, "refused by a full queue"),
        (stats.memory_full, "refused by a full memory"),
        (stats.not_admitted, "not admitted"),
        (stats.shed, "shed"),
        (stats.expired, "expired"),
        (stats.dropped_by_codel, "dropped by CoDel"),
        (stats.backlog_rejected, "refused with the backlog"),
        (stats.lost, "lost in a restart"),
        (stats.duplicates_suppressed, "duplicates suppressed"),
        (stats.given_up, "given up for a client that had gone"),
        (stats.queued, "waiting"),
        (stats.in_service, "in service"),
    ];
    let beside = [
        (stats.cancelled, "whose client had gone"),
        (stats.duplicates_executed, "done again"),
        (stats.superseded, "superseded by a newer one"),
    ];
    let served = [(stats.served_for_nobody, "for nobody"), (stats.failed, "failed")];
    let served = Some(some(&served)).filter(|of| !of.is_empty()).map_or(String::new(), |of| format!(" ({of})"));
    let ended = [format!("{} served{served}", stats.served), some(&ended)];
    let parts = [ended.join(", ").trim_end_matches(", ").to_string(), some(&beside)];
    format!("{} requests: {}", stats.arrived, parts.join("; ").trim_end_matches("; "))
}

/// Those of the counts that are above 0.
fn some(counts: &[(u64, &str)]) -> String {
    let some = counts.iter().filter(|(count, _)| *count > 0);
    some.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
}

/// `service to db: 5 calls, 9 attempts, 4 timed out`.
fn calls(calls: &CallStats) -> String {
    let CallStats { from, to, attempts, timed_out, failed, abandoned, .. } = calls;
    let parts = [(*attempts, "attempts"), (*timed_out, "timed out"), (*failed, "failed"), (*abandoned, "abandoned")];
    format!("{from} to {to}: {} calls, {}", calls.calls, some(&parts)).trim_end_matches(", ").to_string()
}

/// The service of a plan.
fn service_of(file: &str, text: &str) -> anyhow::Result<Setup> {
    let env = |name: &str| std::env::var(name).ok();
    let loaded = plan::load(&plan::Source { file, text, overrides: &[], env: &env })?;
    let service = loaded.plan.target.service.is_some().then(|| loaded.plan.target.system()).flatten();
    let config = service.with_context(|| format!("{file}: its target is a URL; only `target.service` can be run here"))?;
    let changes = loaded.plan.actions.iter().map(|action| match &action.what {
        plan::Deed::Service { change, .. } => Some((**change).clone()),
        _ => None,
    });
    Ok(Setup { config, seed: loaded.plan.seed, changes: changes.collect() })
}

impl ServiceArgs {
    /// The service that the flags describe, read as a plan's would be: the same words, checks and defaults.
    fn read(&self) -> anyhow::Result<ServiceConfig> {
        let mut service = vec![
            text_entry("servers", self.servers.as_deref()),
            self.service_time.as_deref().map(service_time_entry),
            text_entry("queue", self.queue.as_deref()),
            self.notices_cancel.then(|| text_entry("notices_cancel", Some("true"))).flatten(),
        ];
        if let Some(limit) = &self.limit {
            service.push(Some(self.limiter_entry(limit)?));
        }
        let mut problems = Problems::default();
        // An unknown key is reported, and does not keep the rest from being read.
        let config = ServiceConfig::read(&map("servers", service), &mut problems).filter(|_| !problems.any_error());
        config.ok_or_else(|| anyhow!(said(&problems, flag_of)))
    }

    fn limiter_entry(&self, limit: &str) -> anyhow::Result<(Key, Node)> {
        let (mut fields, kind) = match self.limiter.as_str() {
            kind @ ("sliding_log" | "fixed_window") => (window_entries(limit)?, kind),
            kind @ "concurrency" => (vec![limit_entry("limit", limit)], kind),
            kind @ "adaptive_concurrency" => (adaptive_entries(limit), kind),
            other => (vec![text_entry("rate", Some(limit))], other),
        };
        fields.push(text_entry("per", self.per.as_deref()));
        fields.push(text_entry("burst", self.burst.as_deref()));
        fields.push(self.count_rejected.then(|| text_entry("count_rejected", Some("true"))).flatten());
        fields.push(text_entry("reject", self.reject.as_deref()));
        fields.push(text_entry("retry_after", self.retry_after.as_deref()));
        fields.push(text_entry("hint", self.hint.as_deref()));
        let kind = Key { name: kind.to_string(), place: place_of("limiter") };
        let limiter = Value::Map(vec![(kind, map("rate", fields))]);
        Ok((Key { name: "limiter".into(), place: place_of("limiter") }, Node { value: limiter, place: place_of("limiter") }))
    }
}

/// `100/s` as a sliding log or a fixed window: 100 in a second.
fn window_entries(limit: &str) -> anyhow::Result<Vec<Option<(Key, Node)>>> {
    let (count, unit) = limit.split_once('/').with_context(|| format!("--limit: `{limit}` is not a rate: write `100/s`"))?;
    let window = format!("1{}", unit.trim());
    Ok(vec![limit_entry("limit", count), limit_entry("window", &window)])
}

/// `100` as the largest limit; where it is under the usual first or smallest one, as that too.
fn adaptive_entries(limit: &str) -> Vec<Option<(Key, Node)>> {
    let usual = AdaptiveConcurrency::default();
    let under = |usual: u32| limit.trim().parse::<u32>().is_ok_and(|limit| limit < usual);
    let also = |key, usual| under(usual).then(|| limit_entry(key, limit)).flatten();
    vec![limit_entry("max", limit), also("initial", usual.initial), also("min", usual.min)]
}

/// A field of the limiter that `--limit` says.
fn limit_entry(key: &str, text: &str) -> Option<(Key, Node)> {
    let place = place_of("rate");
    Some((Key { name: key.into(), place }, Node { value: Value::Text(text.trim().into()), place }))
}

/// `exponential:10ms` and its like as a plan's map.
fn service_time_entry(text: &str) -> (Key, Node) {
    let (kind, times) = text.split_once(':').unwrap_or(("", text));
    let names: &[&str] = match kind {
        "uniform" => &["from", "to"],
        "exponential" => &["mean"],
        "lognormal" => &["p50", "p99"],
        _ => return entry("service_time", Value::Text(text.to_string())),
    };
    let place = place_of("service_time");
    let field = |(n, time): (usize, &str)| {
        let name = names.get(n).copied().unwrap_or("a third time").to_string();
        (Key { name, place }, Node { value: Value::Text(time.trim().to_string()), place })
    };
    let fields = Value::Map(times.split(',').enumerate().map(field).collect());
    entry("service_time", Value::Map(vec![(Key { name: kind.to_string(), place }, Node { value: fields, place })]))
}

fn text_entry(key: &str, text: Option<&str>) -> Option<(Key, Node)> {
    text.map(|text| entry(key, Value::Text(text.trim().to_string())))
}

fn entry(key: &str, value: Value) -> (Key, Node) {
    (Key { name: key.to_string(), place: place_of(key) }, Node { value, place: place_of(key) })
}

fn map(place: &str, entries: Vec<Option<(Key, Node)>>) -> Node {
    Node { value: Value::Map(entries.into_iter().flatten().collect()), place: place_of(place) }
}

fn place_of(key: &str) -> Place {
    let line = FLAGS.iter().position(|(_, of)| *of == key).map_or(0, |index| index as u32 + 1);
    Place { line, ..Place::default() }
}

fn flag_of(line: u32) -> String {
    let flag = (line as usize).checked_sub(1).and_then(|index| FLAGS.get(index));
    flag.map_or_else(String::new, |(flag, _)| format!("--{}", flag.replace('_', "-")))
}

/// All problems, one a line.
fn said(problems: &Problems, place: impl Fn(u32) -> String) -> String {
    let line = |problem: &&crate::config::Problem| {
        let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{}: {}{hint}", place(problem.place.line), problem.message)
    };
    problems.sorted().iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::hint::HintForm;
    use crate::service::CallCounts;
    use crate::service::config::Servers;
    use crate::service::limiter::{Concurrency, FixedWindow, LimiterConfig, Per, Shared, SlidingLog, TokenBucket};
    use crate::service::refusal::{Refusing, RetryAfter};
    use crate::service::time::{ExponentialTime, Lognormal, ServiceTime, Uniform};
    use crate::time::{Rate, Span};
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn read(line: &str) -> anyhow::Result<ServiceConfig> {
        let line = Line::try_parse_from(std::iter::once("target").chain(line.split_whitespace()))?;
        line.args.service.read()
    }

    #[test]
    fn flags_say_what_a_plan_says() {
        const MS: fn(u64) -> Span = Span::from_millis;
        let plain = read("--servers 6 --service-time 10ms --queue 2000").unwrap();
        assert_eq!(
            (plain.servers(), plain.time(), plain.queue.bound()),
            (Servers::Limited(6), ServiceTime::Constant(MS(10)), 2000)
        );
        assert_eq!((plain.limiter, plain.notices_cancel), (None, false));
        let time = |text: &str| read(&format!("--servers unlimited --service-time {text}")).unwrap().time();
        assert_eq!(time("uniform:5ms,15ms"), ServiceTime::Uniform(Uniform { from: MS(5), to: MS(15) }));
        assert_eq!(time("exponential:5ms"), ServiceTime::Exponential(ExponentialTime { mean: MS(5) }));
        assert_eq!(time("lognormal:5ms,15ms"), ServiceTime::Lognormal(Lognormal { p50: MS(5), p99: MS(15) }));
        let limited = |text: &str| {
            read(&format!("--servers 1 --service-time 1ms --limit 100/m {text}")).unwrap().limiter.unwrap().0.remove(0)
        };
        let refusing = Refusing { reject: Some(503), retry_after: Some(RetryAfter::Constant(MS(1000))), hint: None };
        let log =
            SlidingLog { limit: 100, window: MS(60_000), shared: Shared { count_rejected: true, refusing, ..Shared::plain() } };
        let flags = "--limiter sliding_log --count-rejected --reject 503 --retry-after 1s";
        assert_eq!(limited(flags), LimiterConfig::SlidingLog(log));
        let rate = Rate::parse("100/m").unwrap();
        let (retry_after, hint) = (Some(RetryAfter::Constant(MS(1_500))), Some(HintForm::RetryAfterMs));
        let shared = Shared { refusing: Refusing { reject: None, retry_after, hint }, ..Shared::plain() };
        let bucket = TokenBucket { rate, burst: 7, shared };
        assert_eq!(limited("--burst 7 --retry-after 1500ms --hint retry_after_ms"), LimiterConfig::TokenBucket(bucket));
        let shared = Shared { per: Per::Client, ..Shared::plain() };
        let fixed = FixedWindow { limit: 100, window: MS(60_000), shared: shared.clone() };
        assert_eq!(limited("--limiter fixed_window --per client"), LimiterConfig::FixedWindow(fixed));
        let inside =
            |text: &str| read(&format!("--servers 1 --service-time 1ms --limit 9 {text}")).unwrap().limiter.unwrap().0.remove(0);
        assert_eq!(inside("--limiter concurrency --per client"), LimiterConfig::Concurrency(Concurrency { limit: 9, shared }));
        let adaptive = AdaptiveConcurrency { max: 9, initial: 9, ..AdaptiveConcurrency::default() };
        assert_eq!(inside("--limiter adaptive_concurrency"), LimiterConfig::AdaptiveConcurrency(adaptive));
    }

    #[test]
    fn what_is_wrong_names_its_flag() {
        let table = [
            ("--service-time 1ms", "--servers"),
            ("--servers 0 --service-time 1ms", "--servers: expected a number of servers"),
            ("--servers 1 --service-time 10", "--service-time: a duration needs a unit"),
            ("--servers 1 --service-time uniform:9ms,5ms", "--service-time: `from` must not be longer"),
            ("--servers 1 --service-time lognormal:9ms", "--service-time: `p99` is missing"),
            ("--servers 1 --service-time uniform:1ms,2ms,3ms", "--service-time: unknown key"),
            ("--servers 1 --service-time normal:1ms", "--service-time"),
            ("--servers 1 --service-time 1ms --queue many", "--queue: expected a number of requests"),
            ("--servers 1 --service-time 1ms --burst 3", "--limit"),
            ("--servers 1 --service-time 1ms --limit 100", "--limit: a rate needs a unit"),
            ("--servers 1 --service-time 1ms --limit 9/s --burst 0", "--burst: `burst` must be 1 or more"),
            ("--servers 1 --service-time 1ms --limit 9/s --hint http_date", "--hint: `hint` says how"),
            ("--servers 1 --service-time 1ms --limit 9/s --hint soon", "--hint: unknown word"),
            (
                "--servers 1 --service-time 1ms --limit 9/s --reject 42",
                "--reject: `reject` is 42: expected the status of a failure",
            ),
            ("--servers 1 --service-time 1ms --limit 9/s --limiter token_bukket", "did you mean `token_bucket`?"),
            ("--servers 1 --service-time 1ms --limit 0/s --limiter sliding_log", "`limit` must lie between"),
            (
                "--servers 1 --service-time 1ms --limit 9 --limiter concurrency --count-rejected",
                "--count-rejected: `count_rejected` goes",
            ),
            ("--servers 1 --service-time 1ms --limit 9/s --limiter concurrency", "--limit: expected a whole number"),
            ("--servers 1 --service-time 1ms --limit 9/s --per clients", "--per: unknown word"),
            ("--servers 1 --service-time 1ms --plan x.yaml", "cannot be used with"),
        ];
        for (line, expected) in table {
            let message = read(line).expect_err(line).to_string();
            assert!(message.contains(expected), "{line}: {message}");
        }
    }

    #[test]
    fn the_summary_leaves_no_request_unexplained() {
        let front = Stats { arrived: 3, served: 3, ..Stats::default() };
        let alone = TargetStats { front, ..TargetStats::default() };
        assert_eq!(summary(&alone), "3 requests: 3 served\nwork: 0.0 s useful, 0.0 s wasted\n");
        // Of whatever ends a request there is one.
        let one = Stats {
            arrived: 14,
            served: 1,
            limited: 1,
            queue_full: 1,
            memory_full: 1,
            not_admitted: 1,
            shed: 1,
            expired: 1,
            dropped_by_codel: 1,
            backlog_rejected: 1,
            lost: 1,
            duplicates_suppressed: 1,
            given_up: 1,
            queued: 1,
            in_service: 1,
            ..Stats::default()
        };
        let (_, parts) = books(&one).split_once(": ").map(|(head, parts)| (head.to_string(), parts.to_string())).unwrap();
        assert_eq!(parts.split(", ").filter(|part| part.starts_with("1 ")).count(), 14, "{parts}");
        let db = Stats { arrived: 2, served: 2, failed: 1, cancelled: 1, duplicates_executed: 1, ..Stats::default() };
        let services = [("db".to_string(), db), ("service".to_string(), front)].into();
        let call = CallStats::new("service", "db", &CallCounts { calls: 1, attempts: 2, timed_out: 1, ..CallCounts::default() });
        let said = summary(&TargetStats { front, services, calls: vec![call] });
        let lines: Vec<&str> = said.lines().take(3).collect();
        let of_db = "db: 2 requests: 2 served (1 failed); 1 whose client had gone, 1 done again";
        assert_eq!(lines, ["service: 3 requests: 3 served", of_db, "service to db: 1 calls, 2 attempts, 1 timed out"]);
    }

    #[test]
    fn the_plan_on_stdin_ends_at_its_mark() {
        let read = |text: &str| read_plan(&mut text.as_bytes()).map_err(|error| error.to_string());
        assert_eq!(read("a: 1\nb: ...\n...\nrest").unwrap(), "a: 1\nb: ...\n");
        assert_eq!(read("a: 1\r\n...\r\n").unwrap(), "a: 1\r\n");
        assert!(read("a: 1\n").unwrap_err().contains("expected a line `...`"));
    }
}
