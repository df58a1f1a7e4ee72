//! Queueing truth: the mean waits of M/M/1 and M/D/1, as Pollaczek and Khinchine's formula has them. Loads of 0.5 and 0.8 go through the
//! whole simulator; 0.9 needs three times the customers of both, so these
//! go to the service that the simulator asks.

use crate::simulated::{plan, seeds};
use std::collections::VecDeque;
use stormwake::metrics::RunRecord;
use stormwake::rng::{Key, Purpose};
use stormwake::service::config::{Servers, ServiceConfig};
use stormwake::service::job::NO_SLOT;
use stormwake::service::queue::{Bound, QueueConfig};
use stormwake::service::time::ExponentialTime;
use stormwake::service::{Arrival, Metadata, Service, ServiceTime};
use stormwake::time::{Span, Timestamp};

/// Runs of a case; together they have the customers that the case needs.
const SEEDS: u64 = 8;
/// The mean service time in seconds.
const SERVICE: f64 = 0.01;
/// By how much a start is later than intended on average: half a timer grain of 50 µs, up to which moments are rounded.
const LATE: f64 = 25e-6;

/// How many customers the mean wait of M/M/1 needs for a standard error of 0.75% of itself, a quarter of what is allowed.
/// Waits depend on each other, the more so the higher the load: the variance of their sum, for a service time of one, is
/// ρ(2 + 5ρ − 4ρ² + ρ³)/(1 − ρ)⁴ a customer (Daley 1968), the mean ρ/(1 − ρ). M/D/1 needs half as many.
fn enough(rho: f64) -> f64 {
    let variance = rho * (2.0 + 5.0 * rho - 4.0 * rho * rho + rho * rho * rho) / (1.0 - rho).powi(4);
    let mean = rho / (1.0 - rho);
    variance / (mean * 0.0075).powi(2)
}

/// One server, Poisson arrivals for so many seconds, a network that takes no time, and so many clients that hardly one is busy.
fn text(service_time: &str, rate: f64, seconds: f64) -> String {
    format!(
        "version: 1\nname: queueing\n\
         target: {{ service: {{ servers: 1, service_time: {service_time}, queue: 1000000 }} }}\n\
         network: {{ latency: 0s, upstream: 0s, connect: 0s }}\n\
         fleets: {{ all: {{ clients: 10000, policy: {{ attempts: 1, timeout: 30s }}, load: {{ poisson: {{ rate: {rate}/s }} }} }} }}\n\
         gates: [{{ success: '>= 0%' }}]\ntimer_grain: 50us\nlength: {seconds:.0}s\n"
    )
}

/// How many operations were served, and the sum of their waits in seconds.
fn sums(record: &RunRecord) -> [f64; 2] {
    let service = record.service.as_ref().expect("the built-in target counts").of;
    assert_eq!((service.queue_full, service.wasted.is_zero(), service.arrived - service.served < 1000), (0, true, true));
    let latency: f64 = record.summaries.iter().map(|s| s.succeeded.mean() * s.succeeded.len() as f64 / 1e6).sum();
    [service.served as f64, latency - service.useful.as_secs_f64()]
}

/// The mean wait, in service times, over as many customers as `share` of those that M/M/1 needs.
fn mean_wait(service_time: &str, rho: f64, share: f64) -> f64 {
    let rate = rho / SERVICE;
    let plan = plan(&text(service_time, rate, enough(rho) * share / rate / SEEDS as f64));
    let all = seeds(&plan, &(1..=SEEDS).collect::<Vec<_>>(), |record| sums(&record));
    let sum = |figure: usize| all.iter().map(|sums| sums[figure]).sum::<f64>();
    (sum(1) / sum(0) - LATE) / SERVICE
}

/// The same, of a service alone.
fn mean_wait_of_service(time: ServiceTime, rho: f64, share: f64) -> f64 {
    let queue = QueueConfig::of(Bound::Unlimited);
    let config = ServiceConfig { queue, ..ServiceConfig::new(Servers::Limited(1), time) };
    let mut service = Service::new(&config);
    let (mut now, mut waiting, mut out, mut total) = (Timestamp::ZERO, VecDeque::new(), Vec::new(), 0.0);
    for id in 0..(enough(rho) * share) as u64 {
        let key = Key { seed: 3, operation: id, attempt: 1, ..Key::default() };
        now += Span::from_secs_f64(SERVICE * key.stream(Purpose::Arrival).exponential() / rho);
        waiting.push_back(now);
        service.arrive(now, Arrival { id, key, destination: 0, before: NO_SLOT, of: Metadata::nothing(now) }, &mut out);
        for answer in out.drain(..) {
            total += answer.at.since(waiting.pop_front().expect("who is answered has arrived")).as_secs_f64();
        }
    }
    let counts = service.counts();
    assert_eq!(counts.queue_full, 0);
    (total - counts.useful.as_secs_f64()) / counts.served as f64 / SERVICE
}

/// Compares with the formula: ρ/(1 − ρ) service times for exponential ones, half of it for constant ones.
fn check(rho: f64, share: f64, seen: f64) {
    let want = share * rho / (1.0 - rho);
    assert!((seen / want - 1.0).abs() < 0.03, "at a load of {rho}: a wait of {seen:.3} service times, not {want:.3}");
}

#[test]
fn exponential_service_waits_as_the_formula_says() {
    [0.5, 0.8].into_iter().for_each(|rho| check(rho, 1.0, mean_wait("{ exponential: { mean: 10ms } }", rho, 1.0)));
    let time = ServiceTime::Exponential(ExponentialTime { mean: Span::from_secs_f64(SERVICE) });
    check(0.9, 1.0, mean_wait_of_service(time, 0.9, 1.0));
}

#[test]
fn constant_service_waits_half_as_long() {
    [0.5, 0.8].into_iter().for_each(|rho| check(rho, 0.5, mean_wait("10ms", rho, 0.5)));
    let time = ServiceTime::Constant(Span::from_secs_f64(SERVICE));
    check(0.9, 0.5, mean_wait_of_service(time, 0.9, 0.5));
}
