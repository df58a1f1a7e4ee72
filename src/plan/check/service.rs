//! Checks of a service: the built-in target, or the model of somebody else's.

use super::names::unknown;
use super::target::whole_seconds;
use super::{Context, MAX_LENGTH};
use crate::config::Entry;
use crate::plan::arithmetic;
use crate::service::ServiceConfig;
use crate::service::admission::AdmissionConfig;
use crate::service::limiter::{LimiterConfig, LimitersConfig};
use crate::service::queue::{Bound, Order, QueueConfig};
use crate::service::refusal::{Refusing, RetryAfter};

/// Checks a service that stands at `path`.
pub(super) fn check(service: &ServiceConfig, path: &[&str], cx: &mut Context) {
    let at = |cx: &Context, keys: &[&str]| cx.at(&[path, keys].concat());
    if arithmetic::mean_service_time(&service.time()) > MAX_LENGTH.as_secs_f64() {
        let place = at(cx, &["service_time"]);
        cx.error(place, format!("a service time longer than {MAX_LENGTH}"), "such as `service_time: 10ms`");
    }
    if let Some(all) = &service.limiter {
        limiters(all, path, cx);
    }
    refusing(&service.queue.0.refusing, &[path, &["queue"]].concat(), cx);
    if service.queue.0.codel.is_some() && matches!(service.queue.0.order, Order::Lifo | Order::AdaptiveLifo) {
        let order = service.queue.0.order.word();
        let message = format!(
            "`codel` goes by how long those waited who are taken out: with `order: {order}` these are the newest, and it hardly ever drops one"
        );
        cx.warn(at(cx, &["queue", "codel"]), message, "use `order: fifo`, or `expire_after` in its place");
    }
    if let Some(rule) = &service.reject_backlog {
        refusing(&rule.refusing, &[path, &["reject_backlog"]].concat(), cx);
    }
    if let Some(config) = &service.admission {
        admission(config, &service.queue, &[path, &["admission"]].concat(), cx);
    }
}

/// Checks limiters that stand under `limiter` at `path`.
pub(super) fn limiters(all: &LimitersConfig, path: &[&str], cx: &mut Context) {
    for (index, one) in all.0.iter().enumerate() {
        let number = index.to_string();
        // One limiter stands there as it is, several in a list.
        let alone = [path, &["limiter"]].concat();
        let listed = [path, &["limiter", &number]].concat();
        limiter(one, if cx.at(&listed) == cx.at(&alone) { &alone } else { &listed }, cx);
    }
}

fn limiter(limiter: &LimiterConfig, path: &[&str], cx: &mut Context) {
    let path = [path, &[limiter.key()]].concat();
    if let LimiterConfig::TokenBucket(bucket) = limiter
        && bucket.rate.get() <= 0.0
    {
        cx.error(cx.at(&path), "a token bucket without tokens refuses everything", "give it a `rate` above 0");
    }
    refusing(&limiter.shared().refusing, &path, cx);
}

fn admission(config: &AdmissionConfig, queue: &QueueConfig, path: &[&str], cx: &mut Context) {
    let place = |cx: &Context, keys: &[&str]| cx.at(&[path, keys].concat());
    if config.shares_the_queue() && queue.bound() == Bound::Unlimited.get() {
        let key = if config.shares.is_some() { "shares" } else { "fleets" };
        cx.error(place(cx, &[key]), "shares of a queue that has no bound", "give the queue one, such as `queue: 1000`");
    }
    let known = cx.keys("fleets");
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    for Entry { name, place, .. } in config.fleets.0.iter().filter(|entry| !known.contains(&entry.name.as_str())) {
        unknown("fleet", name, *place, &known, cx);
    }
    refusing(&config.refusing, path, cx);
}

/// Checks what a refusal says that stands at `path`.
pub(super) fn refusing(refusing: &Refusing, path: &[&str], cx: &mut Context) {
    if let Some(RetryAfter::Constant(wait)) = refusing.retry_after {
        whole_seconds(Some(wait), refusing.hint, cx.at(&[path, &["retry_after"]].concat()), cx);
    }
}
