//! When a network comes back: two million operations are sent within one second to a service that does a thousand a second, by clients that
//! wait for half a minute and send again at once. Every row of its table; at full scale where the service gets over it.

use crate::simulated::{plan, seeds};
use std::sync::atomic::AtomicI32;
use stormwake::engine::Unobserved;
use stormwake::engine::sim::{Buckets, EventList, run_on};
use stormwake::event::Event;
use stormwake::metrics::{RunRecord, Window};

/// Operations, and how many the service does in a second, at full scale.
const OPERATIONS: f64 = 2_000_000.0;
const RATE: f64 = 1_000.0;

/// The set-up at a scale: every number of it, and nothing of its times.
fn text(scale: f64, queue: &str, service: &str, policy: &str, fleet: &str, length: u32) -> String {
    let (clients, rate) = (OPERATIONS * scale, RATE * scale);
    format!(
        "version: 1\nname: returns\ngates: [{{ success: '>= 0%' }}]\n\
         target: {{ service: {{ rate: {rate}/s, queue: {queue}{service} }} }}\n\
         network: {{ latency: 0s, upstream: 0s, connect: 0s }}\n\
         policies: {{ p: {{ attempts: unlimited, timeout: 30s, backoff: none, retry_on: [timeout, 503]{policy} }} }}\n\
         fleets: {{ mobile: {{ clients: {clients}, policy: p, load: {{ trigger: {{ at: 0s, spread: 1s }} }}{fleet} }} }}\n\
         length: {length}s\n"
    )
}

fn run(text: &str) -> RunRecord {
    seeds(&plan(text), &[1], |record| record).pop().expect("one seed, one record")
}

fn sum(windows: &[Window], of: impl Fn(&Window) -> u64) -> f64 {
    windows.iter().map(of).sum::<u64>() as f64
}

/// The second in which the last operation succeeded, all of them having done so.
fn all_done(record: &RunRecord, scale: f64) -> f64 {
    assert_eq!(sum(&record.windows, |w| w.all.succeeded), OPERATIONS * scale, "every operation succeeds, once");
    let last = record.windows.iter().rposition(|w| w.all.succeeded > 0).expect("some succeeded");
    (last + 1) as f64
}

fn close(what: &str, found: f64, wanted: f64, within: f64) {
    println!("{what}: {found:.1}, wanted {wanted} within {:.0}%", within * 100.0);
    assert!((found / wanted - 1.0).abs() <= within, "{what}: {found}, wanted {wanted} within {within}");
}

/// Two thousand seconds of nearly nothing but waste, and the same growth of the queue in each of them.
fn never_drains(scale: f64, service: &str, fleet: &str) {
    let record = run(&text(scale, "unlimited", service, "", fleet, 6000));
    let useful = sum(&record.windows[..2000], |w| w.all.succeeded) / (2000.0 * RATE * scale);
    assert!(useful <= 0.02, "{useful} of the service's work was of use in 2000 s");
    let done = sum(&record.windows, |w| w.all.succeeded) / (OPERATIONS * scale);
    assert!(done < 0.02, "{done} of the operations were done in 6000 s");
    // What comes and is not served, waits.
    let grows = sum(&record.windows[100..2000], |w| w.all.arrived) / 1900.0 - RATE * scale;
    close("the queue grows by, a second", grows / scale, 65_000.0, 0.03);
    let service = record.service.as_ref().expect("the built-in target counts its work");
    assert!(service.of.wasted_share().is_some_and(|wasted| wasted >= 0.98), "{service:?}");
}

#[test]
fn without_control_a_backlog_never_drains() {
    never_drains(0.01, "", "");
}

#[test]
fn a_key_made_when_a_request_is_sent_is_no_cure() {
    never_drains(0.01, ", deduplicate: { ttl: 10m }", ", idempotency_key: attempt");
}

#[test]
fn a_key_made_when_an_operation_is_enqueued_clears_the_backlog_without_waste() {
    let record = run(&text(1.0, "unlimited", ", deduplicate: { ttl: 10m, keep: 2000000 }", "", "", 2100));
    close("all done after, s", all_done(&record, 1.0), 1998.0, 0.03);
    let service = record.service.as_ref().expect("the built-in target counts its work");
    assert_eq!((service.of.duplicates_executed, service.of.served), (0, 2_000_000));
}

#[test]
fn an_age_a_little_shorter_than_the_clients_patience_clears_it() {
    let record = run(&text(1.0, "{ bound: unlimited, expire_after: { age: 29s, answer: silent } }", "", "", "", 2200));
    close("all done after, s", all_done(&record, 1.0), 2028.0, 0.03);
}

#[test]
fn a_bounded_queue_and_a_hint_that_clients_spread_clear_it() {
    let hint = ", retry_after: { honor: { spread: { factor: [0.5, 1.5] } } }";
    let record = run(&text(1.0, "{ bound: 5000, retry_after: 60s }", "", hint, "", 2200));
    close("all done after, s", all_done(&record, 1.0), 2044.0, 0.03);
}

#[test]
fn without_cancellation_noticed_it_never_drains_and_with_it_in_two_thousand_seconds() {
    let record = run(&text(0.01, "unlimited", ", notices_cancel: true", "", "", 2200));
    close("all done after, s", all_done(&record, 0.01), 2000.0, 0.03);
}

/// Additive jitter of a tenth of the interval, 20,000 clients that all fail at once: the first retries fall within a tenth of it.
#[test]
fn additive_jitter_lowers_the_peak_to_interval_over_range() {
    let text = "version: 1\nname: jitter\ngates: [{ success: '>= 0%' }]\n\
         target: { service: { servers: unlimited, service_time: 0s, limiter: { token_bucket: { rate: 1/h, burst: 1 } } } }\n\
         network: { latency: 0s, upstream: 0s, connect: 0s }\n\
         policies: { p: { attempts: 2, timeout: 30s, backoff: { fixed: { delay: 30s, jitter: { additive: { range: 3s } } } }, retry_on: [429] } }\n\
         fleets: { mobile: { clients: 20000, policy: p, load: { trigger: { at: 0s, spread: 0s } } } }\n\
         length: 1m\n";
    let (record, _, EventList(events)) =
        run_on::<Buckets, _>(&plan(text), &mut Unobserved, &AtomicI32::new(0), EventList::default())
            .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(sum(&record.windows, |w| w.all.retries), 19_999.0, "all but the one that the bucket let through");
    let mut tenths = vec![0u32; 300];
    for event in events {
        if let Event::Sent { at, retry: true, .. } = event {
            tenths[at.as_millis() as usize / 100 - 300] += 1;
        }
    }
    let (peak, mean) = (tenths.iter().max().copied().unwrap_or(0), 19_999.0 / 300.0);
    close("peak / mean after one retry", f64::from(peak) / mean, 10.7, 0.10);
}
