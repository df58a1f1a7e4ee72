//! Synthetic runs, written as steps, for the tests of this folder: windows of 1 s, one fleet, 400 operations/s.

use super::condition::{Comparison, Condition};
use crate::event::AttemptOutcome;
use crate::metrics::{Counts, FaultRecord, Figure, RunRecord, Sketch, Window};
use crate::rng::{Key, Purpose};
use crate::time::{Span, Timestamp};

/// What a window looks like; rates as multiples of the scenario's.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    offered: f64,
    goodput: f64,
    retries: f64,
    errors: Option<f64>,
    latency: f64,
    backlog: f64,
}

impl Shape {
    pub fn offered(self, offered: f64) -> Self {
        Self { offered, ..self }
    }
    pub fn goodput(self, goodput: f64) -> Self {
        Self { goodput, ..self }
    }
    /// Retries for each operation offered.
    pub fn retries(self, retries: f64) -> Self {
        Self { retries, ..self }
    }
    /// The share of attempts that fail; what the goodput leaves where it is not given.
    pub fn errors(self, errors: f64) -> Self {
        Self { errors: Some(errors), ..self }
    }
    /// Milliseconds.
    pub fn latency(self, latency: f64) -> Self {
        Self { latency, ..self }
    }
    pub fn backlog(self, backlog: f64) -> Self {
        Self { backlog, ..self }
    }
    /// Nothing at all happens.
    pub fn silent(self) -> Self {
        self.offered(0.0).goodput(0.0).backlog(0.0)
    }

    /// Deterministic noise: load as a whole, latency and backlog each by up to so much.
    fn shaken(self, by: f64, window: usize) -> Self {
        let mut stream = Key { seed: 11, operation: window as u64, ..Key::default() }.stream(Purpose::Network);
        let mut factor = || 1.0 + by * (2.0 * stream.unit() - 1.0);
        let load = factor();
        let (offered, goodput) = (self.offered * load, self.goodput * load);
        Self { offered, goodput, latency: self.latency * factor(), backlog: self.backlog * factor(), ..self }
    }

    fn counts(self, rate: f64) -> Counts {
        let whole = |x: f64| (x * rate).round() as u64;
        let (offered, succeeded) = (whole(self.offered), whole(self.goodput));
        let retries = whole(self.offered * self.retries);
        let ended = (offered + retries).max(succeeded);
        let bad = self.errors.map_or(ended - succeeded, |share| (ended as f64 * share).round() as u64);
        let outcomes = [(AttemptOutcome::Success, ended - bad), (AttemptOutcome::Timeout, bad)];
        let latency: Sketch = std::iter::repeat_n(Span::from_secs_f64(self.latency / 1e3), succeeded as usize).collect();
        Counts {
            offered,
            attempts: offered + retries,
            retries,
            first_attempts: offered,
            by_outcome: outcomes.into_iter().filter(|(_, n)| *n > 0).collect(),
            succeeded,
            failed: offered.saturating_sub(succeeded),
            attempt_latency: latency.clone(),
            latency,
            lag: std::iter::repeat_n(Span::from_micros(300), offered as usize).collect(),
            backlog: self.backlog.round() as u64,
            ..Counts::default()
        }
    }
}

/// A run as steps.
#[derive(Clone, Debug)]
pub struct Scenario {
    rate: f64,
    noise: f64,
    shapes: Vec<Shape>,
    faults: Vec<FaultRecord>,
}

impl Scenario {
    pub fn new() -> Self {
        Self { rate: 400.0, noise: 0.0, shapes: Vec::new(), faults: Vec::new() }
    }

    /// Operations per second, of the whole run.
    pub fn rate(self, rate: f64) -> Self {
        Self { rate, ..self }
    }

    pub fn noise(self, noise: f64) -> Self {
        Self { noise, ..self }
    }

    /// All is well: 20 ms, a backlog of 8.
    pub fn good(self, seconds: usize) -> Self {
        self.with(seconds, |w| w)
    }

    pub fn with(mut self, seconds: usize, shape: impl Fn(Shape) -> Shape) -> Self {
        let good = Shape { offered: 1.0, goodput: 1.0, retries: 0.0, errors: None, latency: 20.0, backlog: 8.0 };
        self.shapes.extend(std::iter::repeat_n(shape(good), seconds));
        self
    }

    /// The backlog goes evenly from one level to the other.
    pub fn drain(mut self, seconds: usize, from: f64, to: f64, shape: impl Fn(Shape) -> Shape) -> Self {
        for i in 0..seconds {
            let level = from + (to - from) * i as f64 / seconds as f64;
            self = self.with(1, |w| shape(w).backlog(level));
        }
        self
    }

    /// A fault named `outage`, or `outage 2` and so on; like an outage unless the shape says more.
    pub fn fault(mut self, seconds: usize, shape: impl Fn(Shape) -> Shape) -> Self {
        let at = |windows: usize| Timestamp::ZERO + Span::from_secs(windows as u64);
        let from = at(self.shapes.len());
        let name = if self.faults.is_empty() { "outage".into() } else { format!("outage {}", self.faults.len() + 1) };
        let (to, touched) = (at(self.shapes.len() + seconds), 1000);
        self.faults.push(FaultRecord { name, kind: "blackhole", from, to, touched, ended_early: false, failed: None });
        self.with(seconds, |w| shape(w.goodput(0.0).backlog(1600.0)))
    }

    /// The last fault really ended so much after its time.
    pub fn later(mut self, by: Span) -> Self {
        self.faults.iter_mut().next_back().expect("a fault").to += by;
        self
    }

    pub fn record(&self) -> RunRecord {
        let window = Span::from_secs(1);
        let ended = Timestamp::ZERO + window * self.shapes.len() as u64;
        let windows = self.shapes.iter().enumerate().map(|(i, shape)| {
            let all = shape.shaken(self.noise, i).counts(self.rate);
            Window { start: Timestamp::ZERO + window * i as u64, fleets: vec![all.clone()], all }
        });
        RunRecord {
            fleets: vec!["app".into()],
            window,
            windows: windows.collect(),
            faults: self.faults.clone(),
            ended,
            length: ended.since(Timestamp::ZERO),
            cleanup_confirmed: true,
            ..RunRecord::default()
        }
    }
}

pub fn condition(figure: Figure, text: &str) -> Condition {
    Condition::new(figure, Comparison::parse(text).unwrap()).unwrap()
}
