//! The bounds that a run reached.

use crate::metrics::{LimitReached, RunRecord};

/// Requests that a fault left alone, because it counts by more clients or connections than it can keep apart.
pub const UNCOUNTED: &str = "clients that a fault counts by";

/// Every bound that was reached: those that the record tells of, then `others`, which an engine counted itself.
pub fn limits_reached(record: &RunRecord, others: impl IntoIterator<Item = (&'static str, u64)>) -> Vec<LimitReached> {
    let service = record.service.clone().unwrap_or_default();
    let here = [
        ("outbox or queue", record.windows.iter().map(|window| window.all.refused).sum()),
        ("built-in target's accepts", service.accept_errors),
        ("built-in target's requests", service.of.bound_reached),
        ("built-in target's finished keys", service.of.keys_forgotten),
        ("built-in target's limits for each client", service.of.limits_shared),
    ];
    let reached = here.into_iter().chain(others).filter(|(_, count)| *count > 0);
    reached.map(|(limit, count)| LimitReached { limit: limit.to_string(), count }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Counts, ServiceCounts, Window};

    #[test]
    fn every_bound_that_was_reached_is_named() {
        let window = |refused| Window { all: Counts { refused, ..Counts::default() }, ..Window::default() };
        let service = ServiceCounts {
            accept_errors: 3,
            of: crate::service::Counts { bound_reached: 4, ..Default::default() },
            ..Default::default()
        };
        let record = RunRecord { windows: vec![window(1), window(1)], service: Some(service), ..RunRecord::default() };
        let named = limits_reached(&record, [("ephemeral ports", 5), ("guard", 6), ("request head", 0)]);
        let named: Vec<_> = named.iter().map(|reached| (reached.limit.as_str(), reached.count)).collect();
        let target = ["built-in target's accepts", "built-in target's requests"];
        assert_eq!(named, [("outbox or queue", 2), (target[0], 3), (target[1], 4), ("ephemeral ports", 5), ("guard", 6)]);
        assert!(limits_reached(&RunRecord::default(), []).is_empty());
    }
}
