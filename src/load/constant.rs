//! Evenly spaced operations.

use crate::record;
use crate::time::Rate;

record! {
    /// Evenly spaced operations; `rate` is for the fleet, `each` for every client.
    pub struct Constant {
        /// Operations per second of the whole fleet.
        rate: Option<Rate>,
        /// Operations per second of each client.
        each: Option<Rate>,
    } => |c: &Constant| one_rate(c.rate, c.each)
}

/// Exactly one of `rate` and `each` must be there.
pub(super) fn one_rate(rate: Option<Rate>, each: Option<Rate>) -> Result<(), String> {
    match (rate, each) {
        (Some(_), None) | (None, Some(_)) => Ok(()),
        (None, None) => Err("a rate is missing: write `rate: 600/s` for the fleet, or `each: 0.2/s` for every client".into()),
        (Some(_), Some(_)) => Err("`rate` and `each` exclude each other: keep one".into()),
    }
}
