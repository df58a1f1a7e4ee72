//! Everything that must be true before the clock starts; and what is built once it is.

use super::coordinator::{Coordinator, Parts};
use super::hearing::Hearing;
use super::proxies::{self, Proxies, Upstreams};
use super::{RunError, RunSetup};
use crate::engine::live::actions::{self, Outside};
use crate::engine::live::clock::{Clock, LiveClock};
use crate::engine::live::external::{self, External};
use crate::engine::live::guard::{Allowed, Dialler};
use crate::engine::live::limits;
use crate::engine::live::proxy::{Entrance, Protocol, Proxy, ProxySetup, Upstream};
use crate::engine::live::shard::{Message, Shard, ShardSetup};
use crate::engine::live::signal::Signals;
use crate::engine::live::stop::{self, Checks};
use crate::engine::live::target::{TargetError, TargetProcess};
use crate::engine::live::tls;
use crate::engine::live::transport::Requests;
use crate::engine::shared::{WINDOW, fleet_number, origins, shared_state};
use crate::fault::{Phase, Timeline};
use crate::fleet::Connections;
use crate::fleet::workers::config::LIVE_UNLIMITED;
use crate::load::Load;
use crate::metrics::Series;
use crate::plan::external::witnessed;
use crate::plan::{Plan, Scheme};
use crate::time::Span;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc;
use tracing::{debug, info};

/// How long connecting all clients may take.
const WARM_UP_LIMIT: Span = Span::from_secs(60);

/// Checks, starts the target, the proxy and the shards, and connects the clients.
pub async fn prepare(setup: RunSetup, mut signals: Signals) -> Result<Coordinator, RunError> {
    let mut plan = setup.plan;
    let bounded = plan.bound_workers();
    let plan = Arc::new(plan);
    let shards = shard_count(&plan, setup.shards);
    let mut warnings = fit(&plan, shards)?;
    let few = |fleet| format!("the unlimited workers of `{fleet}` are {LIVE_UNLIMITED} on real sockets: simulate it for more");
    warnings.extend(bounded.into_iter().map(few));
    let clock = LiveClock::waiting();
    let allowed = Allowed::new(plan.target.allow.iter().map(|host| host.value.clone()), setup.approve);
    // The resolver may hang: a thread of its own waits for it.
    let aiming = tokio::task::spawn_blocking({
        let (plan, clock) = (plan.clone(), clock.clone());
        move || dialled(&plan, &allowed, setup.approve, &clock)
    });
    let aimed = unless_interrupted(&mut signals, aiming).await?.map_err(|error| RunError::WarmUp(error.to_string()))?;
    let Aimed { aim, upstreams, checks, outside, external } = aimed?;
    warnings.extend(aim.warning);
    warnings.extend(upstreams.warnings);
    let taking = take_external(external, &plan, &setup.program, &clock);
    let (external, notices) = unless_interrupted(&mut signals, taking).await??;
    warnings.extend(notices.warnings);
    let requests = Arc::new(Requests::new(&plan, &aim.authority, &aim.path)?);
    let starting = start_target(aim.upstream, &setup.program, &setup.effective_yaml);
    let (target, upstream) = unless_interrupted(&mut signals, starting).await??;
    let timeline = Timeline::new(witnessed(&plan.timeline, &plan.external), plan.seed);
    let origins = origins(&plan);
    let (nothing, entrances) = (timeline.nothing(), origins.into_iter().map(Entrance::from).collect());
    let protocol = Protocol::Http;
    let setup_of_proxy = ProxySetup { nothing, entrances, protocol, shards, upstream, clock: clock.clone() };
    let proxy = Arc::new(Proxy::bind(setup_of_proxy)?);
    let backlog = note_backlog(&proxy, &plan, &mut warnings);
    let (proxies, told) = Proxies::open(proxy, &plan, upstreams.all, &timeline, shards, &clock)?;
    log_listening(&plan, &proxies);
    let notes = backlog.into_iter().chain(notices.notes).chain(told).collect();
    let phases = timeline.phases(plan.length);
    let (heard, mut messages) = mpsc::unbounded_channel();
    let shards = spawn_shards(shards, &plan, &requests, &proxies, &clock, &phases, &heard)?;
    drop(heard);
    let unconnected = unless_interrupted(&mut signals, warm_up(shards.len(), &mut messages)).await??;
    warnings.extend(not_connected(unconnected, shards.len()));
    let shared_clock: Arc<dyn Clock> = clock.clone();
    let checks = Checks::start(checks, &shared_clock);
    let outside = Outside::new(outside, shared_clock);
    let series = Series::new(shards.len(), plan.fleets.len(), &phases, WINDOW).with_producers(plan.producers());
    Coordinator::new(Parts {
        plan,
        clock,
        timeline,
        proxies,
        phases,
        requests,
        shards,
        messages,
        series,
        checks,
        outside: Some(outside),
        external,
        target,
        signals,
        warnings,
        notes,
        commands: setup.commands,
        hearing: Hearing::start(setup.observer)?,
    })
}

/// What is said of clients that the warm-up could not connect; nothing where there are none.
fn not_connected(clients: usize, shards: usize) -> Option<String> {
    info!(shards, unconnected = clients, "the clients are connected");
    let text = format!("{clients} clients could not connect before the run began; they will try with their first attempt");
    (clients > 0).then_some(text)
}

fn log_listening(plan: &Plan, proxies: &Proxies) {
    for (fleet, of) in plan.fleets.iter().enumerate() {
        debug!(fleet = ?of.name, at = %proxies.main.addr(fleet_number(fleet)), "a proxy listens for a fleet");
    }
}

/// Starts the built-in target, where there is no other to go to.
async fn start_target(
    upstream: Option<Upstream>,
    program: &Path,
    plan_yaml: &str,
) -> Result<(Option<TargetProcess>, Upstream), TargetError> {
    if let Some(upstream) = upstream {
        return Ok((None, upstream));
    }
    let target = TargetProcess::spawn(program, plan_yaml).await?;
    let addr = target.addr();
    Ok((Some(target), Upstream::at(addr)))
}

/// Waits for something, unless a signal comes or has come: then nothing is to begin.
async fn unless_interrupted<F: Future>(signals: &mut Signals, work: F) -> Result<F::Output, RunError> {
    tokio::select! {
        biased;
        number = signals.first() => Err(RunError::Interrupted(number)),
        output = work => Ok(output),
    }
}

/// A listen backlog that is smaller than a fleet is a warning; smaller than we asked for, a note.
fn note_backlog(proxy: &Proxy, plan: &Plan, warnings: &mut Vec<String>) -> Option<String> {
    let (backlog, notice) = proxy.backlog();
    let notice = notice?.to_string();
    if plan.fleets.iter().any(|fleet| fleet.connections() > backlog) {
        warnings.push(notice);
        return None;
    }
    Some(notice)
}

/// Everything that is dialled, or run, outside: the target, what the plan's proxies lead to, the checks of `stop_if`, the actions of the timeline,
/// Toxiproxies.
struct Aimed {
    aim: Aim,
    upstreams: Upstreams,
    checks: stop::Prepared,
    outside: actions::Prepared,
    external: Vec<external::Prepared>,
}

fn dialled(plan: &Plan, allowed: &Allowed, approved: bool, clock: &Arc<LiveClock>) -> Result<Aimed, RunError> {
    let aim = aim(plan, allowed, clock)?;
    let upstreams = proxies::upstreams(plan, allowed, clock)?;
    let checks = Checks::prepare(&plan.stop_if, allowed, plan.target.ca_file.as_deref())?;
    let outside = Outside::prepare(plan, allowed, approved)?;
    Ok(Aimed { aim, upstreams, checks, outside, external: External::prepare(plan, allowed)? })
}

/// Takes the plan's Toxiproxies for this run; none, where it has none.
async fn take_external(
    prepared: Vec<external::Prepared>,
    plan: &Plan,
    program: &Path,
    clock: &Arc<LiveClock>,
) -> Result<(Option<External>, external::Notices), RunError> {
    if prepared.is_empty() {
        return Ok((None, external::Notices::default()));
    }
    let run = format!("{:x}{:x}", clock.wall_millis(), std::process::id());
    let target = plan.target.url.as_ref().map(|url| &url.value);
    let shared: Arc<dyn Clock> = clock.clone();
    let (external, notices) = External::begin(prepared, program, &run, target, &shared).await?;
    Ok((Some(external), notices))
}

/// Where the requests go.
struct Aim {
    authority: String,
    path: String,
    /// None for the built-in target, which is not there yet.
    upstream: Option<Upstream>,
    warning: Option<String>,
}

fn aim(plan: &Plan, allowed: &Allowed, clock: &Arc<LiveClock>) -> Result<Aim, RunError> {
    let Some(url) = plan.target.url.as_ref().map(|url| &url.value) else {
        return Ok(Aim { authority: "stormwake.target".into(), path: "/".into(), upstream: None, warning: None });
    };
    let (dialler, warning) = Dialler::new(url, allowed.clone(), clock.clone())?;
    let mut upstream = Upstream::resolved_by(Arc::new(move || dialler.dial().map_err(|error| error.to_string())));
    if url.scheme == Scheme::Https {
        let (config, name) = tls::client(&url.host, plan.target.ca_file.as_deref())?;
        upstream = upstream.with_tls(config, name);
    }
    Ok(Aim { authority: url.authority(), path: url.path.clone(), upstream: Some(upstream), warning })
}

/// Checks that the plan fits this machine; what is doubtful is returned.
fn fit(plan: &Plan, shards: usize) -> Result<Vec<String>, RunError> {
    let clients = plan.fleets.iter().map(|fleet| u64::from(fleet.connections())).sum();
    // The proxy listens for each origin and shard, and holds each origin's port.
    let listeners = (origins(plan).len() + plan.own_proxies().count()) * (shards + 1);
    limits::check(clients, listeners as u64, limits::raise())?;
    let per_attempt = plan.fleets.iter().filter(|fleet| fleet.config.connections == Connections::PerAttempt);
    let churn = per_attempt.map(|fleet| first_attempts_per_second(&fleet.config.load, fleet.config.clients)).sum();
    Ok(limits::port_warning(clients, churn).into_iter().collect())
}

/// How many first attempts a second a load shape makes; 0 where it depends on the target.
fn first_attempts_per_second(load: &Load, clients: u32) -> f64 {
    let of = |rate: Option<crate::time::Rate>, each: Option<crate::time::Rate>| {
        rate.map_or(0.0, |r| r.get()) + each.map_or(0.0, |r| r.get() * f64::from(clients))
    };
    match load {
        Load::Constant(shape) => of(shape.rate, shape.each),
        Load::Poisson(shape) => of(shape.rate, shape.each),
        Load::Ramp(shape) => shape.from.get().max(shape.to.get()),
        Load::Spike(shape) => shape.rate.get().max(shape.peak.get()),
        Load::DayCurve(curve) => curve.peak().get(),
        Load::Foreground(shape) => shape.operations_per_second(f64::from(clients)),
        Load::Schedule(schedule) => f64::from(clients) / schedule.every.as_secs_f64(),
        Load::Closed(_) | Load::Trigger(_) | Load::OnReconnect(_) => 0.0,
    }
}

fn shard_count(plan: &Plan, wanted: Option<usize>) -> usize {
    let clients: u64 = plan.fleets.iter().map(|fleet| u64::from(fleet.config.clients)).sum();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    wanted.unwrap_or(cores).clamp(1, 64).min(usize::try_from(clients).unwrap_or(usize::MAX).max(1))
}

fn spawn_shards(
    count: usize,
    plan: &Arc<Plan>,
    requests: &Arc<Requests>,
    proxies: &Proxies,
    clock: &Arc<LiveClock>,
    phases: &[Phase],
    messages: &mpsc::UnboundedSender<Message>,
) -> Result<Vec<Shard>, RunError> {
    let shared = shared_state(plan);
    let shards = (0..count).map(|index| {
        let setup = ShardSetup {
            index,
            shards: count,
            plan: plan.clone(),
            shared: shared.clone(),
            requests: requests.clone(),
            proxy: proxies.main.clone(),
            named: proxies.named(),
            clock: clock.clone(),
            phases: phases.to_vec(),
        };
        Shard::spawn(setup, messages.clone()).map_err(|source| RunError::System { what: "no thread for a shard", source })
    });
    shards.collect()
}

/// Waits until every shard has connected its clients; how many clients could not.
async fn warm_up(shards: usize, messages: &mut mpsc::UnboundedReceiver<Message>) -> Result<usize, RunError> {
    let all = async {
        let mut unconnected = 0;
        for _ in 0..shards {
            match messages.recv().await {
                Some(Message::Warm { failed }) => unconnected += failed,
                Some(Message::Died { shard, why }) => return Err(RunError::WarmUp(format!("shard {shard} ended: {why}"))),
                Some(Message::Slice(_) | Message::Finished { .. }) | None => {
                    return Err(RunError::WarmUp("a shard ended early".into()));
                }
            }
        }
        Ok(unconnected)
    };
    match tokio::time::timeout(WARM_UP_LIMIT.to_std(), all).await {
        Ok(warm) => warm,
        Err(_) => Err(RunError::WarmUp(format!(
            "its clients did not connect to the proxy, which is this process, within {WARM_UP_LIMIT}: \
             the machine is overloaded; free its cores, or use fewer clients"
        ))),
    }
}
