//! The rules of arithmetic that apply to a plan, each with the plan's numbers.

use super::hints::hints;
use super::layers::{Layer, layers};
use super::patience::patience;
use super::{
    Offered, WorstAttempts, most_offered, offered, offered_total, policies_of, requeues, worst_attempts, worst_attempts_of,
    worst_load,
};
use crate::fault::{Fault, Origin, Step, TimeShape};
use crate::load::Load as Shape;
use crate::plan::{Fleet, Plan};
use crate::policy::backoff::{Backoff, Clamp, Exponential, Jitter, WaitInput};
use crate::policy::budget::{Tier, WhenSpent};
use crate::policy::{Attempts, Policy};
use crate::time::Span;

/// What a rule says of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The rule's name.
    pub key: &'static str,
    /// Whether it foretells trouble.
    pub danger: bool,
    /// What it says, with the plan's numbers.
    pub sentence: String,
}

/// The rules that apply to a plan, in the order of importance.
pub fn rules(plan: &Plan) -> Vec<Rule> {
    let load = Load::of(plan);
    let mut rules = Vec::new();
    rules.extend(unknown_capacity(plan));
    rules.extend(load.as_ref().and_then(overload));
    rules.extend(load.as_ref().and_then(|load| storm(plan, load)));
    rules.extend(load.as_ref().map(|load| budgets(plan, load)).unwrap_or_default());
    rules.extend(load.as_ref().and_then(|load| spreading(plan, load)));
    rules.extend(load.as_ref().and_then(|load| drain(plan, load)));
    rules.extend(load.as_ref().map(|load| spikes(plan, load)).unwrap_or_default());
    rules.extend(bursts(plan));
    rules.extend(plan.target.behaviour().and_then(|service| patience(plan, service)));
    for fleet in &plan.fleets {
        rules.extend(shape(fleet, plan));
    }
    rules.extend(hints(plan));
    rules
}

/// Load against capacity.
struct Load {
    /// Operations per second offered, λ.
    offered: f64,
    /// Requests per second served, μ: by the least of the services that each of them passes.
    capacity: f64,
}

impl Load {
    /// None where nothing goes on coming.
    fn of(plan: &Plan) -> Option<Self> {
        Self::or_none(plan).filter(|load| load.offered > 0.0)
    }

    /// None where either is not known: somebody else's target has a capacity, and a plan without a model does not say which.
    fn or_none(plan: &Plan) -> Option<Self> {
        let capacity = layers(plan).into_iter().filter_map(|layer| layer.capacity).min_by(f64::total_cmp)?;
        let offered = offered_total(plan)?;
        (capacity > 0.0).then_some(Self { offered, capacity })
    }
}

pub(super) fn rule(key: &'static str, danger: bool, sentence: String) -> Rule {
    Rule { key, danger, sentence }
}

/// λ·(R+1) for somebody else's target: what it would have to serve.
fn unknown_capacity(plan: &Plan) -> Option<Rule> {
    if plan.target.behaviour().is_some() {
        return None;
    }
    let worst = worst_load(plan).attempted?;
    let offered: f64 = plan.senders().map(|fleet| offered(&fleet.config).rate()).sum();
    (offered > 0.0 && worst > offered).then(|| {
        let sentence = format!(
            "a target that serves less than {}/s is vulnerable to a retry storm: {}/s are offered, and every retry comes on top (λ·(R+1) > μ)",
            n(worst),
            n(offered)
        );
        rule("retry_storm", false, sentence)
    })
}

fn overload(load: &Load) -> Option<Rule> {
    let Load { offered, capacity } = load;
    (offered >= capacity).then(|| {
        let sentence =
            format!("overloaded without any fault: {}/s are offered, and the target serves {}/s", n(*offered), n(*capacity));
        rule("overload", true, sentence)
    })
}

/// λ·(R+1) > μ, behind the front service: where calls are retried, attempts multiply from layer to layer. `worst`: attempts per second of
/// all clients.
fn layered(plan: &Plan, worst: f64) -> Option<Rule> {
    let layers = layers(plan);
    let of = |layer: &Layer| layer.capacity.map(|capacity| (worst * layer.most / capacity, capacity));
    let behind = layers.iter().filter(|layer| layer.most > 1.0).filter_map(|layer| Some((layer, of(layer)?)));
    let (layer, (ratio, capacity)) = behind.max_by(|(_, a), (_, b)| a.0.total_cmp(&b.0))?;
    let name = layer.name.as_deref().unwrap_or_default();
    if ratio <= 1.0 {
        return None;
    }
    let sentence = if layer.most.is_finite() {
        format!(
            "vulnerable to a retry storm: {}/s with every retry of the clients, times {} of the calls behind one another, are {}/s at `{name}`, \
             more than the {}/s that it serves (λ·(R+1) > μ in layers: retry in one of them only)",
            n(worst),
            n(layer.most),
            n(worst * layer.most),
            n(capacity)
        )
    } else {
        format!("vulnerable to a retry storm: calls are retried without limit, and `{name}` serves {}/s", n(capacity))
    };
    Some(rule("retry_storm", true, sentence))
}

/// λ·(R+1) > μ.
fn storm(plan: &Plan, load: &Load) -> Option<Rule> {
    if load.offered >= load.capacity {
        return None;
    }
    let budgeted = plan.senders().all(|fleet| is_budgeted(fleet, plan));
    let mut worst = 0.0;
    for fleet in plan.senders() {
        let WorstAttempts::AtMost(attempts) = worst_attempts_of(fleet, plan) else {
            let sentence = format!(
                "{}vulnerable to a retry storm: fleet `{}` retries without limit, so attempts can exceed the {}/s that the target serves",
                if budgeted { "without its budget, " } else { "" },
                fleet.name,
                n(load.capacity)
            );
            return Some(rule("retry_storm", !budgeted, sentence));
        };
        worst += most_of(fleet, plan, load) * attempts;
    }
    if let Some(rule) = layered(plan, worst) {
        return Some(rule);
    }
    let set = plan.senders().any(|fleet| most_offered(fleet, plan).rate() > offered(&fleet.config).rate());
    let danger = worst > load.capacity;
    let senders: Vec<&Fleet> = plan.senders().collect();
    let sum = if let [fleet] = senders[..]
        && !set
        && let WorstAttempts::AtMost(attempts) = worst_attempts_of(fleet, plan)
    {
        format!("{}/s × {} attempts = {}/s", n(load.offered), n(attempts), n(worst))
    } else {
        let at_most = if set { " and at the highest rate that an action sets" } else { "" };
        format!("{}/s offered, {}/s with every retry{at_most}", n(load.offered), n(worst))
    };
    let sentence = match (danger, budgeted) {
        (true, false) => format!(
            "vulnerable to a retry storm: {sum}, more than the {}/s that the target serves (λ·(R+1) > μ)",
            n(load.capacity)
        ),
        (true, true) => format!(
            "without its budget, vulnerable to a retry storm: {sum}, more than the {}/s that the target serves",
            n(load.capacity)
        ),
        (false, _) => format!(
            "no retry storm can outgrow the target: {sum}, within the {}/s that it serves (λ·(R+1) ≤ μ)",
            n(load.capacity)
        ),
    };
    Some(rule("retry_storm", danger && !budgeted, sentence))
}

/// Whether a budget caps the retries of a fleet, under every policy that it has.
fn is_budgeted(fleet: &Fleet, plan: &Plan) -> bool {
    policies_of(fleet, plan).all(|policy| policy.budget.is_some() && !is_laundered(fleet, policy))
}

/// Whether retries that the budget refuses come back as first attempts, which no budget refuses.
fn is_laundered(fleet: &Fleet, policy: &Policy) -> bool {
    let gives_up = policy.budget.as_ref().is_some_and(|budget| budget.value.when_spent == WhenSpent::GiveUp);
    requeues(fleet) && (gives_up || policy.attempts == Attempts::Limited(1))
}

/// What a fleet offers at the highest rate that an action sets.
fn most_of(fleet: &Fleet, plan: &Plan, load: &Load) -> f64 {
    let more = most_offered(fleet, plan).rate() - offered(&fleet.config).rate();
    share_of(fleet, plan, load) + more
}

fn share_of(fleet: &Fleet, plan: &Plan, load: &Load) -> f64 {
    match offered(&fleet.config) {
        Offered::Rate(rate) | Offered::Spike { rate, .. } => rate,
        Offered::Burst { .. } => 0.0,
        Offered::Closed { .. } => {
            let open: f64 = plan.senders().map(|other| offered(&other.config).rate()).sum();
            let closed = plan.senders().filter(|other| matches!(offered(&other.config), Offered::Closed { .. }));
            let clients: f64 = closed.map(|other| f64::from(other.config.clients)).sum();
            (load.offered - open) * f64::from(fleet.config.clients) / clients.max(1.0)
        }
    }
}

/// β < 1/ρ − 1.
fn budgets(plan: &Plan, load: &Load) -> Vec<Rule> {
    let room = load.capacity / load.offered - 1.0;
    if room <= 0.0 {
        return Vec::new();
    }
    let one = |fleet: &Fleet| {
        let budget = fleet.policy.budget.as_ref()?;
        if is_laundered(fleet, &fleet.policy) {
            return Some(rule("budget", true, laundered(&fleet.name)));
        }
        let share = share_of(fleet, plan, load);
        // What comes once has no rate that tokens of every second could be measured by.
        if share <= 0.0 {
            return None;
        }
        let sharers = if budget.value.tier == Tier::Client { f64::from(fleet.config.clients) } else { 1.0 };
        let unearned = budget.value.kind.unearned() * sharers / share;
        let ratio = budget.value.kind.ratio().filter(|_| budget.value.tier != Tier::Operation)?.get() + unearned;
        let holds = ratio < room;
        let verdict = if holds { "protects" } else { "does not protect" };
        let sign = if holds { "<" } else { "≥" };
        let sentence = format!(
            "the budget of `{}` {verdict}: {} of first attempts {sign} {} of room above the load (β < 1/ρ − 1, ρ = {})",
            fleet.name,
            percent(ratio),
            percent(room),
            percent(load.offered / load.capacity)
        );
        Some(rule("budget", !holds, sentence))
    };
    plan.senders().filter_map(one).collect()
}

fn laundered(fleet: &str) -> String {
    format!(
        "the budget of `{fleet}` does not protect: an operation whose retry it refuses goes back to the queue (`on_give_up: requeue`), and comes again as the first attempt of a new pass, which no budget refuses; with `when_spent: park` it waits until the budget has earned it"
    )
}

/// Backoff does not make open load less.
fn spreading(plan: &Plan, load: &Load) -> Option<Rule> {
    let waits = |fleet: &&Fleet| !matches!(fleet.policy.backoff, Backoff::None(_)) && fleet.policy.budget.is_none();
    let open = |fleet: &&Fleet| offered(&fleet.config).is_open();
    let fleet = plan.senders().filter(open).find(waits)?;
    let WorstAttempts::AtMost(attempts) = worst_attempts_of(fleet, plan) else { return None };
    (attempts > 1.0 && load.offered < load.capacity && load.offered * attempts > load.capacity).then(|| {
        let sentence = format!(
            "the load is open: backoff and jitter of `{}` spread its retries out, they do not make them fewer",
            fleet.name
        );
        rule("open_load", false, sentence)
    })
}

/// N / (C − λ).
fn drain(plan: &Plan, load: &Load) -> Option<Rule> {
    if load.offered >= load.capacity {
        return None;
    }
    let step = plan.timeline.iter().filter(|step| step.on == 0).max_by_key(|step| step.to.since(step.from))?;
    let total = matches!(step.fault, Some(Fault::Refuse(_) | Fault::Close(_) | Fault::Hang(_) | Fault::Blackhole(_)))
        && step.shape == TimeShape::FULL;
    // How much of a queue goes to some of its destinations is not known here.
    if !total || step.destinations.is_some() || !step.which.is_all() {
        return None;
    }
    let lasting = step.to.since(step.from);
    let held: f64 = plan
        .senders()
        .map(|fleet| {
            let kept = fleet.policy.deadline.map_or(lasting, |deadline| deadline.min(lasting)).as_secs_f64();
            let most = f64::from(fleet.config.clients) * f64::from(fleet.config.outbox);
            (share_of(fleet, plan, load) * kept).min(most) * struck(fleet, plan, step)
        })
        .sum();
    if held < 1.0 {
        return None;
    }
    let seconds = held / (load.capacity - load.offered);
    let sentence = format!(
        "if every operation of `{}` ({lasting}) waits for its end, {} of them drain in {} (N / (C − λ)), with no retry wasted",
        step.name,
        n(held),
        span(seconds)
    );
    Some(rule("drain", false, sentence))
}

/// How much of a fleet a step strikes.
fn struck(fleet: &Fleet, plan: &Plan, step: &Step) -> f64 {
    let number = plan.fleets.iter().position(|known| known.name == fleet.name).and_then(|number| u16::try_from(number).ok());
    let Some(number) = number else { return 0.0 };
    let (regions, clients) = (&fleet.config.regions, fleet.config.clients);
    let cut_off = (0..regions.count()).filter(|&region| step.strikes(Origin { fleet: number, region }));
    cut_off.map(|region| regions.turns(region, clients).len() as f64).sum::<f64>() / f64::from(clients.max(1))
}

/// N / (C − λ), for what a spike brings above the capacity.
fn spikes(plan: &Plan, load: &Load) -> Vec<Rule> {
    let one = |fleet: &Fleet| {
        let Offered::Spike { rate, peak, lasting } = offered(&fleet.config) else { return None };
        let above = load.offered - rate + peak - load.capacity;
        if above <= 0.0 || load.offered >= load.capacity {
            return None;
        }
        let sentence = format!(
            "the spike of `{}` brings {}/s for {}, {}/s more than the target serves: the {} that wait drain in {} (N / (C − λ)), with no retry on top",
            fleet.name,
            n(peak),
            span(lasting),
            n(above),
            n(above * lasting),
            span(above * lasting / (load.capacity - load.offered))
        );
        Some(rule("spike", false, sentence))
    };
    plan.senders().filter_map(one).collect()
}

/// N / (C − λ), for what comes once and faster than the target has room for.
fn bursts(plan: &Plan) -> Vec<Rule> {
    let Some(load) = Load::or_none(plan) else { return Vec::new() };
    let room = load.capacity - load.offered;
    let one = |fleet: &Fleet| {
        let Offered::Burst { operations, lasting } = offered(&fleet.config) else { return None };
        if room <= 0.0 || operations <= room * lasting.max(1.0) {
            return None;
        }
        let within = if lasting > 0.0 { format!("within {}", span(lasting)) } else { "at once".to_string() };
        let when = match &fleet.config.load {
            Shape::OnReconnect(reconnect) => format!(" after `{}`", reconnect.config.after.value),
            Shape::Trigger(trigger) => format!(" at {}", trigger.at),
            _ => String::new(),
        };
        let beside = if load.offered > 0.0 { format!("beside the {}/s ", n(load.offered)) } else { String::new() };
        let sentence = format!(
            "{} operations of `{}` come {within}{when}: {beside}they drain in {} (N / (C − λ)), with no retry on top",
            n(operations),
            fleet.name,
            span(operations / room)
        );
        Some(rule("burst", false, sentence))
    };
    plan.senders().filter_map(one).collect()
}

/// What follows from the shape of a fleet's backoff.
fn shape(fleet: &Fleet, plan: &Plan) -> Vec<Rule> {
    let name = &fleet.name;
    let WorstAttempts::AtMost(attempts) = worst_attempts_of(fleet, plan) else { return march(fleet) };
    if attempts < 2.0 {
        return Vec::new();
    }
    let mut rules = march(fleet);
    if let Backoff::Fixed(fixed) = &fleet.policy.backoff
        && let Jitter::Additive(jitter) = &fixed.jitter
        && !jitter.range.is_zero()
    {
        let peak = fixed.delay.as_secs_f64() / jitter.range.as_secs_f64();
        if peak > 1.5 {
            let sentence = format!(
                "a jitter of {} on an interval of {} leaves peaks of about {}x the mean after one retry of `{name}`",
                jitter.range,
                fixed.delay,
                n(peak)
            );
            rules.push(rule("additive_jitter", true, sentence));
        }
    }
    if let Backoff::Exponential(exponential) = &fleet.policy.backoff {
        rules.extend(late_cap(fleet, exponential));
    }
    rules
}

/// Without jitter, clients that fail together retry together.
fn march(fleet: &Fleet) -> Vec<Rule> {
    let backoff = &fleet.policy.backoff;
    if !matches!(backoff.jitter(), Jitter::None(_)) {
        return Vec::new();
    }
    let waits = (1..=2).filter_map(|failed_attempt| backoff.wait(WaitInput { failed_attempt, previous: None, draw: 0.5 }));
    let Some(wait) = waits.into_iter().find(|wait| !wait.is_zero()) else { return Vec::new() };
    let sentence = format!(
        "`{}` has no jitter: clients that fail together come back together, first after {wait}, and stay in step",
        fleet.name
    );
    vec![rule("no_jitter", true, sentence)]
}

/// A cap after jitter removes the jitter when the outage is long.
fn late_cap(fleet: &Fleet, e: &Exponential) -> Option<Rule> {
    let cap = e.cap.filter(|_| e.clamp == Clamp::AfterJitter && !matches!(e.jitter, Jitter::None(_) | Jitter::Full(_)))?;
    let mut wait = e.base.as_secs_f64() * libm::pow(e.multiplier, f64::from(e.first_exponent.min(64)));
    let mut failure = 1;
    while wait < cap.as_secs_f64() && failure < 64 && e.multiplier > 1.0 {
        wait *= e.multiplier;
        failure += 1;
    }
    // Only a retry that is made can lose its jitter.
    if matches!(worst_attempts(&fleet.policy), WorstAttempts::AtMost(attempts) if f64::from(failure) >= attempts) {
        return None;
    }
    let sentence = format!(
        "`{}` caps its wait at {cap} after the jitter: from the {failure}. retry on the jitter is gone, and clients march in step",
        fleet.name
    );
    Some(rule("cap_after_jitter", true, sentence))
}

/// A number as a person writes it.
pub(super) fn n(value: f64) -> String {
    if value >= 1e6 {
        format!("{}M", (value / 1e4).round() / 100.0)
    } else if value >= 100.0 {
        format!("{value:.0}")
    } else {
        format!("{}", (value * 100.0).round() / 100.0)
    }
}

fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent >= 10.0 { format!("{percent:.0}%") } else { format!("{}%", (percent * 10.0).round() / 10.0) }
}

/// A time to three figures or so.
pub(super) fn span(seconds: f64) -> String {
    if seconds < 60.0 {
        format!("{}s", (seconds * 10.0).round() / 10.0)
    } else {
        Span::from_secs(seconds.round() as u64).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Source, load};

    const STORM: &str = "version: 1
target: { service: { servers: 6, service_time: 10ms, queue: 2000 } }
policies:
  p: { attempts: 4, timeout: 1s POLICY }
fleets:
  app: { clients: 2000, policy: p, load: { poisson: { rate: 400/s } } }
steady_state: { for: 10s }
timeline: [{ at: 12s, for: 10s, name: outage, fault: { FAULT } }]
length: 60s
";

    fn of(policy: &str, fault: &str) -> Vec<Rule> {
        let text = STORM.replace("POLICY", policy).replace("FAULT", fault);
        let loaded = load(&Source { file: "p.yaml", text: &text, overrides: &[], env: &|_| None });
        rules(&loaded.unwrap_or_else(|error| panic!("{error}")).plan)
    }

    #[test]
    fn every_rule_says_its_numbers() {
        for (policy, fault, key, danger, want) in [
            ("", "blackhole: {}", "retry_storm", true, "400/s × 4 attempts = 1600/s, more than the 600/s"),
            (", budget: { ratio: 10%, tier: fleet }", "hang: {}", "retry_storm", false, "without its budget"),
            (", budget: { ratio: 10%, tier: fleet }", "hang: {}", "budget", false, "protects: 10% of first attempts < 50%"),
            (
                ", budget: { ratio: 60%, tier: fleet }",
                "hang: {}",
                "budget",
                true,
                "does not protect: 60% of first attempts ≥ 50%",
            ),
            (", budget: { ratio: 10%, tier: client, min_per_second: 1 }", "hang: {}", "budget", true, "does not protect: 510%"),
            (", backoff: { fixed: { delay: 1s } }", "hang: {}", "open_load", false, "they do not make them fewer"),
            (", backoff: { fixed: { delay: 1s } }", "hang: {}", "no_jitter", true, "first after 1s, and stay in step"),
            (
                ", backoff: { fixed: { delay: 10s, jitter: { additive: { range: 1s } } } }",
                "hang: {}",
                "additive_jitter",
                true,
                "a jitter of 1s on an interval of 10s leaves peaks of about 10x",
            ),
            (
                ", backoff: { exponential: { base: 1s, cap: 4s, jitter: equal, clamp: after_jitter } }",
                "hang: {}",
                "cap_after_jitter",
                true,
                "from the 3. retry on the jitter is gone",
            ),
            (
                ", retry_after: honor",
                "status: { code: 503, retry_after: 2s }",
                "same_hint",
                true,
                "`outage` tells everybody the same Retry-After of 2s",
            ),
            (
                ", retry_after: honor",
                "status: { code: 503, retry_after: 2s, hint: http_date }",
                "same_hint",
                true,
                "`outage` tells everybody one moment to come back, in about 2s",
            ),
            ("", "blackhole: {}", "queue_age", true, "a full queue of 2000 is 3.3s long, more than the timeout of `app` (1s)"),
            ("", "blackhole: {}", "drain", false, "4000 of them drain in 20s"),
        ] {
            let rules = of(policy, fault);
            let found = rules.iter().any(|rule| rule.key == key && rule.danger == danger && rule.sentence.contains(want));
            assert!(found, "{policy} {fault}: {key} {danger} {want}\n{rules:#?}");
        }
    }

    #[test]
    fn a_spike_and_a_bucket_are_counted_with() {
        let text = STORM
            .replace("servers: 6, service_time: 10ms, queue: 2000", "servers: 1, service_time: { exponential: { mean: 10ms } }")
            .replace("POLICY", ", budget: { bucket: { deposit: 10%, burst: 5 }, tier: fleet }")
            .replace("FAULT", "hang: {}")
            .replace("poisson: { rate: 400/s }", "spike: { rate: 93/s, peak: 300/s, at: 40s, for: 5s }");
        for text in [text.clone(), text.replace("service:", "url: http://127.0.0.1:1/, model:")] {
            let plan = load(&Source { file: "p.yaml", text: &text, overrides: &[], env: &|_| None }).unwrap().plan;
            let rules = rules(&plan);
            for (key, want) in [
                ("budget", "does not protect: 10% of first attempts ≥ 7.5% of room"),
                ("spike", "brings 300/s for 5s, 200/s more than the target serves: the 1000 that wait drain in 2m23s"),
                ("retry_storm", "93/s × 4 attempts = 372/s, more than the 100/s"),
            ] {
                assert!(rules.iter().any(|rule| rule.key == key && rule.sentence.contains(want)), "{want}\n{rules:#?}");
            }
            assert_eq!(worst_load(&plan).attempted, Some(1200.0), "the peak is what counts at worst");
        }
    }

    #[test]
    fn what_comes_once_is_a_backlog_and_no_overload() {
        for (loads, wanted) in [
            (
                "app: { clients: 9, policy: p, load: { poisson: { rate: 6/s } } }, mobile: { clients: 6000, policy: p, load: { on_reconnect: { after: network, spread: 1s } } }",
                "6000 operations of `mobile` come within 1s after `network`: beside the 6/s they drain in 4m10s (N / (C − λ))",
            ),
            (
                "mobile: { clients: 300, policy: p, load: { trigger: { at: 20s } } }",
                "300 operations of `mobile` come at once at 20s: they drain in 10s",
            ),
            // Slower than the 24/s that are free, nothing piles up.
            (
                "app: { clients: 9, policy: p, load: { poisson: { rate: 6/s } } }, mobile: { clients: 600, policy: p, load: { trigger: { at: 20s, spread: 30s } } }",
                "",
            ),
        ] {
            let text = format!(
                "version: 1\ntarget: {{ service: {{ rate: 30/s }} }}\npolicies: {{ p: {{ attempts: 1, timeout: 5s }} }}\nfleets: {{ {loads} }}\n\
                 timeline: [{{ at: 9s, for: 9s, name: network, fault: refuse }}]\nlength: 9m\n"
            );
            let loaded = load(&Source { file: "p.yaml", text: &text, overrides: &[], env: &|_| None });
            let rules = rules(&loaded.unwrap_or_else(|error| panic!("{error}")).plan);
            assert!(!rules.iter().any(|rule| rule.key == "overload"), "{loads}: {rules:#?}");
            let said = rules.iter().find(|rule| rule.key == "burst").map_or("", |rule| &rule.sentence);
            assert_eq!(said.is_empty(), wanted.is_empty(), "{loads}: {said}");
            assert!(said.contains(wanted), "{loads}: {said}");
        }
    }

    #[test]
    fn rules_that_do_not_apply_are_silent() {
        let keys: Vec<&str> = of(", backoff: { exponential: { base: 1s, cap: 4s, jitter: full } }", "status: { code: 503 }")
            .iter()
            .map(|rule| rule.key)
            .collect();
        assert_eq!(keys, ["retry_storm", "open_load", "queue_age"]);
    }
}
