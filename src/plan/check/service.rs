//! Checks of a service: the built-in target, or the model of somebody else's.

use super::target::whole_seconds;
use super::{Context, MAX_LENGTH};
use crate::plan::arithmetic;
use crate::service::ServiceConfig;
use crate::service::limiter::{LimiterConfig, LimitersConfig};

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
}

/// Checks limiters that stand under `limiter` at `path`.
pub(super) fn limiters(all: &LimitersConfig, path: &[&str], cx: &mut Context) {
    for (index, one) in all.0.iter().enumerate() {
        let number = index.to_string();
        // One limiter stands there as it is, several in a list.
        let alone = [path, &["limiter"]].concat();
        let listed = [path, &["limiter", &number]].concat();
        limiter(one, if cx.at(&listed) == cx.at(&[]) { &alone } else { &listed }, cx);
    }
}

fn limiter(limiter: &LimiterConfig, path: &[&str], cx: &mut Context) {
    let at = |cx: &Context, key: &str| cx.at(&[path, &[limiter.key(), key]].concat());
    match limiter {
        LimiterConfig::TokenBucket(bucket) => {
            if bucket.rate.get() <= 0.0 {
                let place = cx.at(&[path, &[limiter.key()]].concat());
                cx.error(place, "a token bucket without tokens refuses everything", "give it a `rate` above 0");
            }
            let place = at(cx, "retry_after");
            whole_seconds(bucket.retry_after, bucket.hint, place, cx);
        }
        LimiterConfig::SlidingLog(log) => {
            let place = at(cx, "retry_after");
            whole_seconds(log.retry_after, log.hint, place, cx);
        }
    }
}
