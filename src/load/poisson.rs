//! Operations at random, independently of each other.

use super::constant::one_rate;
use crate::record;
use crate::time::Rate;

record! {
    /// A Poisson process; `rate` is for the fleet, `each` for every client.
    pub struct Poisson {
        /// Operations per second of the whole fleet.
        rate: Option<Rate>,
        /// Operations per second of each client.
        each: Option<Rate>,
    } => |p: &Poisson| one_rate(p.rate, p.each)
}
