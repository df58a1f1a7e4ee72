//! Queueing truth: the mean waits of M/M/1 and M/D/1, as Pollaczek and Khinchine's formula has them.

use std::collections::VecDeque;
use stormwake::rng::{Key, Purpose};
use stormwake::service::config::{Servers, ServiceConfig};
use stormwake::service::time::ExponentialTime;
use stormwake::service::{Arrival, Service, ServiceTime};
use stormwake::time::{Span, Timestamp};

const MEAN: Span = Span::from_millis(10);

/// How many customers the mean wait of M/M/1 needs for a standard error of 0.75% of itself, a quarter of what is allowed. Waits
/// depend on each other, the more so the higher the load: the variance of the sum, for a service time of one, is
/// ρ(2 + 5ρ − 4ρ² + ρ³)/(1 − ρ)⁴ a customer (Daley 1968), the mean ρ/(1 − ρ). M/D/1 needs half as many.
fn enough(rho: f64) -> u64 {
    let variance = rho * (2.0 + 5.0 * rho - 4.0 * rho * rho + rho * rho * rho) / (1.0 - rho).powi(4);
    let mean = rho / (1.0 - rho);
    (variance / (mean * 0.0075).powi(2)).ceil() as u64
}

/// The mean wait in the queue of one server, in service times, over `n` arrivals of a Poisson process.
fn mean_wait(time: ServiceTime, rho: f64, n: u64) -> f64 {
    let config =
        ServiceConfig { servers: Servers::Limited(1), service_time: time, queue: u32::MAX, limiter: None, notices_cancel: false };
    let mut service = Service::new(&config);
    let (mut now, mut waiting, mut out, mut total) = (Timestamp::ZERO, VecDeque::new(), Vec::new(), 0.0);
    for id in 0..n {
        let key = Key { seed: 3, operation: id, attempt: 1, ..Key::default() };
        now += MEAN.scale(key.stream(Purpose::Arrival).exponential() / rho);
        waiting.push_back(now);
        service.arrive(now, Arrival { id, key }, &mut out);
        for answer in out.drain(..) {
            total += answer.at.since(waiting.pop_front().expect("who is answered has arrived")).as_secs_f64();
        }
    }
    let counts = service.counts();
    assert_eq!(counts.queue_full + counts.limited, 0, "an unbounded queue refuses nobody");
    (total - counts.useful.as_secs_f64()) / counts.served as f64 / MEAN.as_secs_f64()
}

/// Compares with the formula: ρ/(1 − ρ) service times for exponential ones, half of it for constant ones.
fn check(name: &str, time: ServiceTime, share: f64) {
    let mut wrong = Vec::new();
    for rho in [0.5, 0.8, 0.9] {
        let seen = mean_wait(time.clone(), rho, (enough(rho) as f64 * share) as u64);
        let want = share * rho / (1.0 - rho);
        if (seen / want - 1.0).abs() > 0.03 {
            wrong.push(format!("{name} at a load of {rho}: a wait of {seen:.3} service times, not {want:.3}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn exponential_service_waits_as_the_formula_says() {
    check("M/M/1", ServiceTime::Exponential(ExponentialTime { mean: MEAN }), 1.0);
}

#[test]
fn constant_service_waits_half_as_long() {
    check("M/D/1", ServiceTime::Constant(MEAN), 0.5);
}
