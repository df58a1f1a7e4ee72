//! N clients contend for one row: each must write it once, and a write fails where another came between.
//!
//! A client reads the row's version and writes with it; the write succeeds if the version has not changed, else the
//! client backs off and starts again with a read. Four messages make a try, each on its way for |Normal(10 ms, 2 ms)|. It is
//! the model behind a published comparison of jitters: Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
//!
//! The model owns the row and the messages, and uses nothing of the library but what is public. When a client tries again is
//! the library's to say: its retry loop ([`Operation`]) under its policies, at the grain of a nanosecond, on the simulator's queue.

use stormwake::engine::sim::queue::{BucketQueue, Queue};
use stormwake::event::AttemptOutcome;
use stormwake::operation::{Next, Operation, Terms};
use stormwake::policy::backoff::jitter::Plain;
use stormwake::policy::backoff::{Exponential, Jitter};
use stormwake::policy::{Attempts, Backoff, Hint, Policy, RetryOn};
use stormwake::rng::{Key, Purpose, Stream};
use stormwake::time::{Span, Timestamp};

/// What a run is worth.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Writes that reached the row.
    pub calls: u64,
    /// When the last client received its success.
    pub took: Span,
}

/// One cell of the reference table, and the policy that it belongs to.
#[derive(Clone, Debug)]
pub struct Case {
    /// The policy's name.
    pub name: &'static str,
    /// How the clients back off.
    pub backoff: Backoff,
    /// How many clients contend.
    pub clients: u32,
    /// The mean of `calls` over 200 trials of the reference.
    pub calls: f64,
    /// The mean of `took` over 200 trials of the reference, in milliseconds.
    pub millis: f64,
}

impl Case {
    /// How many seeds a mean is taken over: few clients vary more.
    pub fn seeds(&self) -> u64 {
        if self.clients == 10 { 400 } else { 100 }
    }

    /// The means of calls and of milliseconds over the seeds, and their standard errors.
    pub fn means(&self) -> [(f64, f64); 2] {
        let policy = policy(self.backoff.clone());
        let outcomes: Vec<Outcome> = (1..=self.seeds()).map(|seed| run(&policy, self.clients, seed)).collect();
        [mean(&outcomes, |o| o.calls as f64), mean(&outcomes, |o| o.took.as_secs_f64() * 1e3)]
    }
}

/// A mean and its standard error.
fn mean(outcomes: &[Outcome], figure: impl Fn(&Outcome) -> f64) -> (f64, f64) {
    let n = outcomes.len() as f64;
    let mean = outcomes.iter().map(&figure).sum::<f64>() / n;
    let variance = outcomes.iter().map(|o| (figure(o) - mean) * (figure(o) - mean)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// The reference table: calls and milliseconds for 10, 50 and 100 clients.
const REFERENCE: [(&str, [(f64, f64); 3]); 5] = [
    ("none", [(50.9, 380.0), (691.8, 1146.0), (2424.0, 2025.0)]),
    ("exponential", [(50.7, 3401.0), (623.1, 36_504.0), (1857.0, 63_473.0)]),
    ("equal", [(42.4, 726.0), (347.6, 4272.0), (811.5, 6586.0)]),
    ("full", [(39.0, 460.0), (332.4, 2945.0), (795.1, 4895.0)]),
    ("decorrelated", [(38.0, 442.0), (375.3, 2195.0), (998.4, 4569.0)]),
];

/// The cells of the reference table.
pub fn cases() -> Vec<Case> {
    let cells = |(name, cells): (&'static str, [(f64, f64); 3])| {
        let case = move |(clients, (calls, millis))| Case { name, backoff: backoff(name), clients, calls, millis };
        [10, 50, 100].into_iter().zip(cells).map(case)
    };
    REFERENCE.into_iter().flat_map(cells).collect()
}

/// The backoff of a row: base 5 ms, cap 2 s, and a first window of twice the base.
fn backoff(name: &str) -> Backoff {
    let jitter = match name {
        "exponential" => Jitter::none(),
        "equal" => Jitter::Equal(Plain {}),
        "full" => Jitter::Full(Plain {}),
        "decorrelated" => Jitter::Decorrelated(Plain {}),
        _ => return Backoff::none(),
    };
    let cap = Some(Span::from_millis(2000));
    Backoff::Exponential(Exponential { cap, jitter, first_exponent: 1, ..Exponential::new(Span::from_millis(5)) })
}

/// What a write is answered with where the version has changed.
const CONFLICT: u16 = 409;

/// A client that tries until it succeeds.
fn policy(backoff: Backoff) -> Policy {
    Policy { retry_on: vec![RetryOn::Status(CONFLICT)], backoff, ..Policy::new(Attempts::Unlimited, Span::from_secs(3600)) }
}

/// What happens next to a client.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// It starts a try.
    Start,
    /// Its read reaches the row.
    Read,
    /// It learns the version.
    Learn { version: u64 },
    /// Its write reaches the row.
    Write { version: u64 },
    /// It learns how the write went.
    Done { written: bool },
}

/// A client: its operation, and the network's draws for the try that is on.
struct Client {
    operation: Operation,
    hops: Stream,
}

/// The row, its clients, and what is to come.
struct Model<'a> {
    terms: Terms<'a>,
    clients: Vec<Client>,
    version: u64,
    calls: u64,
    pending: BucketQueue<(u32, Step)>,
}

/// Lets `clients` contend until each has written. All start at once.
pub fn run(policy: &Policy, clients: u32, seed: u64) -> Outcome {
    let terms = Terms { policy, budget: None, grain: Span(1), least_wait: Span::ZERO, key: Key { seed, ..Key::default() } };
    let client = |_| Client { operation: Operation::new(Timestamp::ZERO), hops: terms.key.stream(Purpose::Network) };
    let clients: Vec<Client> = (0..clients).map(client).collect();
    let mut model = Model { terms, clients, version: 0, calls: 0, pending: BucketQueue::default() };
    (0..model.clients.len() as u32).for_each(|client| model.plan(Timestamp::ZERO, client, Step::Start));
    let mut last = Timestamp::ZERO;
    while let Some((now, (client, step))) = model.pending.pop() {
        last = last.max(model.step(now, client, step).unwrap_or_default());
    }
    Outcome { calls: model.calls, took: last.since(Timestamp::ZERO) }
}

impl<'a> Model<'a> {
    /// Carries out one step of a client; gives the moment where it was its success.
    fn step(&mut self, now: Timestamp, client: u32, step: Step) -> Option<Timestamp> {
        match step {
            Step::Start => self.start(now, client),
            Step::Read => self.message(now, client, Step::Learn { version: self.version }),
            Step::Learn { version } => self.message(now, client, Step::Write { version }),
            Step::Write { version } => {
                self.calls += 1;
                let written = version == self.version;
                self.version += u64::from(written);
                self.message(now, client, Step::Done { written });
            }
            Step::Done { written: true } => return Some(now),
            Step::Done { written: false } => self.conflict(now, client),
        }
        None
    }

    /// A try begins with a read.
    fn start(&mut self, now: Timestamp, client: u32) {
        let terms = self.terms_of(client);
        let own = &mut self.clients[client as usize];
        let attempt = own.operation.begin(now, &terms).number;
        own.hops = Key { attempt, ..terms.key }.stream(Purpose::Network);
        self.message(now, client, Step::Read);
    }

    /// The version had changed: the retry loop says what follows.
    fn conflict(&mut self, now: Timestamp, client: u32) {
        let terms = self.terms_of(client);
        match self.clients[client as usize].operation.ended(now, AttemptOutcome::Status(CONFLICT), Hint::NONE, &terms) {
            Next::Send => self.plan(now, client, Step::Start),
            Next::Wait { until, .. } => self.plan(until, client, Step::Start),
            next @ (Next::Park { .. } | Next::Finished(_)) => unreachable!("a conflict is retried without limit: {next:?}"),
        }
    }

    fn terms_of(&self, client: u32) -> Terms<'a> {
        Terms { key: Key { client, ..self.terms.key }, ..self.terms }
    }

    /// A message is on its way for |Normal(10 ms, 2 ms)|, and then does `step`.
    fn message(&mut self, now: Timestamp, client: u32, step: Step) {
        let millis = (10.0 + 2.0 * self.clients[client as usize].hops.normal()).abs();
        self.plan(now + Span::from_secs_f64(millis / 1e3), client, step);
    }

    fn plan(&mut self, at: Timestamp, client: u32, step: Step) {
        self.pending.push(at, (client, step));
    }
}
