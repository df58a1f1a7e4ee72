//! Webhook waves: a delivery pipeline whose one large destination begins to answer 429 to everything.
//!
//! 600 deliveries a second go to that destination and 300 to healthy ones; 300 workers share one queue, one priority for first attempts and
//! retries; an answer takes 50 ms, whatever it says; a retry waits `min(2 s × 2^(n−1), 60 s)`. At a scale of 10 everything is a tenth: rates, workers,
//! and what stands in the queue. Times stay.

use std::sync::atomic::AtomicI32;
use stormwake::engine::Unobserved;
use stormwake::engine::sim::{Buckets, SimError, Trace, run_on};
use stormwake::event::{Event, OperationOutcome};
use stormwake::metrics::{DestinationCounts, RunRecord, Window, median};
use stormwake::plan::{Plan, PlanError, Source, load};

/// The number of the destination that fails; the healthy ones are the other.
const BIG: usize = 0;
const HEALTHY: usize = 1;

/// The policies: what the pipeline had, and what it got.
pub const DETERMINISTIC: &str = "exponential: { base: 2s, cap: 60s }";
pub const FULL_JITTER: &str = "exponential: { base: 2s, cap: 60s, jitter: full }";

/// A pipeline.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// Everything is divided by it.
    pub scale: u32,
    /// `300`, already divided, or `unlimited`.
    pub workers: String,
    /// The backoff.
    pub backoff: &'static str,
    /// Whether deliveries come, or only those that stand in the queue at the start.
    pub arrivals: bool,
    /// How many of those there are, before they are divided.
    pub standing: u32,
    /// More of the queue, as a plan says it.
    pub queue: &'static str,
    /// More steps of the timeline.
    pub steps: &'static str,
    /// In minutes.
    pub length: u32,
}

impl Pipeline {
    /// The account's, with so many workers: nothing more.
    pub fn of(scale: u32, workers: u32) -> Self {
        Self {
            scale,
            workers: (workers / scale).to_string(),
            backoff: DETERMINISTIC,
            arrivals: true,
            standing: 36_000,
            queue: "",
            steps: "",
            length: 14,
        }
    }

    /// With as many workers as there is work for.
    pub fn unlimited(scale: u32) -> Self {
        Self { workers: "unlimited".into(), ..Self::of(scale, 0) }
    }

    /// Its plan.
    ///
    /// # Errors
    /// None, as long as the text is a plan.
    pub fn plan(&self) -> Result<Plan, PlanError> {
        let Self { scale, workers, backoff, standing, queue, steps, length, .. } = self;
        let stream = |rate: u32| match self.arrivals {
            true => format!("arrivals: {{ constant: {{ rate: {}/s }} }}", f64::from(rate) / f64::from(*scale)),
            false => String::new(),
        };
        let text = format!(
            "version: 1\nname: webhook-waves\n\
             target: {{ service: {{ servers: unlimited, service_time: 0s }} }}\n\
             network: {{ latency: 25ms, upstream: 0s, connect: 0s }}\n\
             policies: {{ p: {{ attempts: 1000000, timeout: 5s, retry_on: [429, 5xx, timeout], backoff: {{ {backoff} }} }} }}\n\
             fleets:\n  hooks:\n    workers: {workers}\n    policy: p\n    queue:\n      bound: 5000000\n{queue}\
             \x20     destinations:\n        big: {{ {}{}backlog: {} }}\n        healthy: {{ {} }}\n\
             timeline:\n  - {{ at: 0s, name: refusing, fault: {{ status: {{ code: 429 }} }}, destinations: [big] }}\n{steps}\
             gates: [{{ success: '>= 0%' }}]\nlength: {length}m\n",
            stream(600),
            if self.arrivals { ", " } else { "" },
            standing / scale,
            stream(300),
        );
        load(&Source { file: "webhook-waves", text: &text, overrides: &[], env: &|_| None }).map(|loaded| loaded.plan)
    }

    /// Runs it.
    ///
    /// # Errors
    /// What the simulator says of the plan.
    pub fn run(&self) -> Result<Seen, SimError> {
        let plan = self.plan().unwrap_or_else(|error| panic!("{error}"));
        let (record, _, healthy) = run_on::<Buckets, _>(&plan, &mut Unobserved, &AtomicI32::new(0), Created::default())?;
        Ok(Seen { scale: f64::from(self.scale), record, healthy })
    }
}

/// The latencies of healthy deliveries in microseconds, by the minute in which each was created.
#[derive(Clone, Debug, Default)]
pub struct Created(Vec<Vec<u64>>);

impl Trace for Created {
    fn event(&mut self, event: &Event) {
        let Event::Finished { operation, offered, at, outcome: OperationOutcome::Succeeded, .. } = *event else { return };
        if operation.client as usize == HEALTHY {
            let minute = (offered.as_millis() / 60_000) as usize;
            self.0.resize_with(self.0.len().max(minute + 1), Vec::new);
            self.0[minute].push(at.since(offered).as_micros());
        }
    }
}

/// What a run showed. Its windows are of a second each.
pub struct Seen {
    scale: f64,
    /// The run.
    pub record: RunRecord,
    healthy: Created,
}

impl Seen {
    fn of(window: &Window, destination: usize) -> &DestinationCounts {
        &window.fleets[0].destinations[destination]
    }

    fn windows(&self, from: usize, to: usize) -> &[Window] {
        &self.record.windows[from..to]
    }

    /// How fast the backlog of the failing destination grew from one second to another, per second, at full scale.
    pub fn growth(&self, from: usize, to: usize) -> f64 {
        let at = |second: usize| Self::of(&self.record.windows[second], BIG).backlog as f64;
        (at(to) - at(from)) / (to - from) as f64 * self.scale
    }

    /// Its backlog at the end of a second, at full scale.
    pub fn backlog(&self, second: usize) -> f64 {
        Self::of(&self.record.windows[second], BIG).backlog as f64 * self.scale
    }

    /// Its share of all that the queue holds at the end of a second.
    pub fn share(&self, second: usize) -> f64 {
        let at = |destination| Self::of(&self.record.windows[second], destination).backlog as f64;
        at(BIG) / (at(BIG) + at(HEALTHY))
    }

    /// The median latency of healthy deliveries that were completed between two seconds, in seconds.
    pub fn healthy(&self, from: usize, to: usize) -> f64 {
        let windows = self.windows(from, to).iter().map(|window| Self::of(window, HEALTHY));
        median(windows).map_or(f64::NAN, |median| median.as_secs_f64())
    }

    /// The first minute, from one of them on, whose healthy deliveries by creation have a median of at most 60 ms.
    pub fn well_again(&self, from: usize) -> Option<usize> {
        (from..self.healthy.0.len()).find(|&minute| {
            let mut latencies = self.healthy.0[minute].clone();
            latencies.sort_unstable();
            latencies.get(latencies.len() / 2).is_some_and(|&median| median <= 60_000)
        })
    }

    /// The highest of each minute's peak/mean of attempts sent, by minutes counted from 0.
    pub fn peaks(&self, minutes: std::ops::Range<usize>) -> Vec<f64> {
        let peak = |minute: usize| {
            let counts = self.windows(minute * 60, minute * 60 + 60).iter().map(|window| window.all.attempts);
            let (most, sum) = counts.fold((0, 0), |(most, sum), n| (n.max(most), sum + n));
            most as f64 * 60.0 / sum as f64
        };
        minutes.map(peak).collect()
    }

    /// Attempts sent to the failing destination between two seconds.
    pub fn attempts(&self, from: usize, to: usize) -> u64 {
        self.windows(from, to).iter().map(|window| Self::of(window, BIG).attempts).sum()
    }
}

/// A figure and its bounds.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it is.
    pub name: &'static str,
    /// What came out.
    pub value: f64,
    /// What is accepted.
    pub accept: (f64, f64),
}

impl Row {
    /// Whether it is accepted.
    pub fn met(&self) -> bool {
        (self.accept.0..=self.accept.1).contains(&self.value)
    }
}

/// The table: the pipeline at one scale, and the deliveries that stand alone at another, at most 4, because where there are fewer full
/// jitter's peak is noisier.
///
/// # Errors
/// What the simulator says of the plans.
pub fn rows(scale: u32, alone: u32) -> Result<Vec<Row>, SimError> {
    let row = |name, value, low, high| Row { name, value, accept: (low, high) };
    let mut rows = Vec::new();

    let unlimited = Pipeline::unlimited(scale).run()?;
    rows.push(row("backlog grows at, per second (unlimited workers)", unlimited.growth(300, 839), 582.0, 618.0));
    rows.push(row("share at 14 minutes, unlimited workers", unlimited.share(839), 0.99, 1.0));
    drop(unlimited);

    let lane = "  - { at: 35m, name: lane, action: { set_lane: { fleet: hooks, destination: big, concurrency: 2 } } }\n";
    let pool = Pipeline { steps: lane, length: 42, ..Pipeline::of(scale, 300) }.run()?;
    rows.push(row("backlog grows at, per second (300 workers)", pool.growth(300, 839), 582.0, 618.0));
    rows.push(row("share at 14 minutes, 300 workers", pool.share(839), 0.964, 0.984));
    rows.push(row("healthy p50 completed in minute 28 to 29, in seconds", pool.healthy(28 * 60, 29 * 60), 115.0, 150.0));
    let well = pool.well_again(35).map_or(f64::INFINITY, |minute| (minute * 60 - 35 * 60) as f64);
    rows.push(row("a lane of two at minute 35: well again after, in seconds", well, 0.0, 360.0));
    rows.push(row("its backlog then", pool.backlog(41 * 60), 1_000_000.0, f64::INFINITY));
    drop(pool);

    let alone = Pipeline { arrivals: false, length: 10, ..Pipeline::unlimited(alone) };
    let waves = alone.run()?;
    let highest = waves.peaks(1..10).into_iter().fold(0.0, f64::max);
    let lowest = waves.peaks(1..10).into_iter().fold(f64::INFINITY, f64::min);
    rows.push(row("waves: deterministic peak/mean per minute, the lowest", lowest, 59.4, 60.6));
    rows.push(row("waves: deterministic peak/mean per minute, the highest", highest, 59.4, 60.6));
    let jitter = Pipeline { backoff: FULL_JITTER, ..alone }.run()?;
    rows.push(row("waves: full jitter's peak/mean in the second minute", jitter.peaks(1..2)[0], 1.0, 1.3));
    let ratio = jitter.attempts(0, 600) as f64 / waves.attempts(0, 600) as f64;
    rows.push(row("full jitter's attempts against deterministic, ten minutes", ratio, 1.729, 1.911));
    Ok(rows)
}
