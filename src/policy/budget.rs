//! The retry budget: retries earned by first attempts.

use crate::time::{Share, Span};
use crate::{keyword, record};

keyword! {
    /// Who shares a budget.
    pub enum Tier {
        /// Each client has its own.
        client => Client,
        /// The fleet shares one.
        fleet => Fleet,
    }
}

record! {
    /// Retries within the window may be at most `ratio` of the first attempts within it, plus `min_per_second`.
    pub struct BudgetConfig {
        /// Retries earned per first attempt, such as `10%`.
        ratio: Share,
        /// How far back first attempts and retries count.
        window: Span = Span::from_secs(10),
        /// Retries per second that need not be earned.
        min_per_second: f64 = 0.0,
        /// Who shares it: `client` or `fleet`. It decides: per client the same budget dilutes as clients multiply.
        tier: Tier,
    }
}
/// scaffold
pub struct Budget;
impl Budget {
    /// scaffold
    pub fn new(_config: &BudgetConfig) -> Self { Self }
}
