//! What of a service can be changed while it runs, as it is at a moment.

/// What holds of a service now, whatever the plan and its changes say.
#[derive(Clone, Debug, PartialEq)]
pub struct Holding {
    /// The share of its capacity that is there, on its way where a ramp or a slow start is under way. While the service is down it
    /// serves nothing, and this is what it would have.
    pub capacity: f64,
    /// The share that it was last told to reach; that is what it has, unless a ramp or a slow start is under way.
    pub capacity_goal: f64,
    /// The kinds of its limiters, by their keys in a plan.
    pub limiters: Vec<&'static str>,
    /// How many leave the queue in a second at most; none where nothing says.
    pub drain: Option<f64>,
    /// The share of requests that its cache answers by now; none where it has no cache.
    pub cache_hits: Option<f64>,
    /// Whether it is down for a restart.
    pub is_down: bool,
    /// How often it was changed.
    pub changes: u64,
}
