//! What a plan says of a budget: exactly one kind, who shares it, and what follows when it is spent.

use super::{BucketConfig, ConcurrentConfig, GrpcConfig, QuotaConfig, WindowConfig};
use crate::config::{Node, Problems, Read, Shape, TimeScale};
use crate::time::{Share, Span};
use crate::{keyword, record};

keyword! {
    /// Who shares a budget.
    pub enum Tier {
        /// Each operation has its own, across its passes; a `quota`, or a `bucket` without deposits.
        operation => Operation,
        /// Each client has its own.
        client => Client,
        /// The fleet shares one.
        fleet => Fleet,
    }
}

keyword! {
    /// What becomes of an operation whose retry the budget refuses.
    pub enum WhenSpent {
        /// It fails.
        give_up => GiveUp,
        /// Its retry waits, first come first served, until the budget has earned it.
        park => Park,
    }
}

/// A cap on retries.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetConfig {
    /// How retries are earned and spent.
    pub kind: Kind,
    /// Who shares it. It decides: per client the same budget dilutes as clients multiply.
    pub tier: Tier,
    /// What becomes of an operation whose retry it refuses.
    pub when_spent: WhenSpent,
}

impl BudgetConfig {
    /// The most that one operation may spend, where that is what it caps; at most 65535.
    pub fn per_operation(&self) -> Option<u32> {
        match (self.tier, &self.kind) {
            (Tier::Operation, Kind::Quota(quota)) => Some(quota.capacity),
            (Tier::Operation, Kind::Bucket(bucket)) => Some(bucket.burst),
            _ => None,
        }
    }

    /// What a retry costs where its treatment says nothing.
    pub fn usual_cost(&self) -> u16 {
        match &self.kind {
            Kind::Quota(quota) => quota.cost,
            Kind::Window(_) | Kind::Bucket(_) | Kind::Concurrent(_) | Kind::Grpc(_) => 1,
        }
    }
}

/// How retries are earned and spent.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A share of the first attempts within a sliding window.
    Window(WindowConfig),
    /// Tokens: deposited by operations, taken by retries.
    Bucket(BucketConfig),
    /// Taken by retries, given back by successes.
    Quota(QuotaConfig),
    /// Retries at one time.
    Concurrent(ConcurrentConfig),
    /// Tokens: taken by failures, given back by successes.
    Grpc(GrpcConfig),
}

impl Kind {
    /// Retries earned per first attempt when everything fails, in the long run: what bounds a storm. None where no ratio does:
    /// retries at one time.
    pub fn ratio(&self) -> Option<Share> {
        match self {
            Self::Window(window) => Some(window.ratio),
            Self::Bucket(bucket) => Some(bucket.deposit),
            // Failures earn nothing.
            Self::Quota(_) | Self::Grpc(_) => Some(Share::default()),
            Self::Concurrent(_) => None,
        }
    }

    /// Retries per second that need not be earned, in the long run.
    pub fn unearned(&self) -> f64 {
        match self {
            Self::Window(window) => window.min_per_second,
            Self::Bucket(_) | Self::Quota(_) | Self::Concurrent(_) | Self::Grpc(_) => 0.0,
        }
    }
}

/// The window of a budget where nothing is said.
const USUAL_WINDOW: Span = Span::from_secs(10);

record! {
    /// A cap on retries. Exactly one of `ratio`, `bucket`, `quota`, `concurrent` and `grpc` says how they are earned and spent.
    struct RawBudget {
        /// Retries earned per first attempt, such as `10%`, over a sliding window.
        ratio: Option<Share>,
        /// With `ratio`: how far back first attempts and retries count; 10s where nothing is said.
        window: Option<Span>,
        /// With `ratio`: retries per second that need not be earned; 0 where nothing is said.
        min_per_second: Option<f64>,
        /// Tokens, deposited by operations and taken by retries.
        bucket: Option<BucketConfig>,
        /// Taken by retries, given back by successes: AWS's standard mode.
        quota: Option<QuotaConfig>,
        /// Retries at one time: Envoy.
        concurrent: Option<ConcurrentConfig>,
        /// Tokens, taken by failures and given back by successes: gRPC's retry throttling.
        grpc: Option<GrpcConfig>,
        /// Who shares it: `operation`, `client` or `fleet`. It decides: per client the same budget dilutes as clients multiply.
        tier: Tier,
        /// What becomes of an operation whose retry it refuses: `give_up` (default) or `park`.
        when_spent: WhenSpent = WhenSpent::GiveUp,
    } => RawBudget::check
}

/// How the kinds are written, for whoever named none.
const KINDS: &str =
    "a budget needs `ratio: 10%`, `bucket: { deposit: 10%, burst: 5 }`, `quota: {}`, `concurrent: { max: 3 }` or `grpc: {}`";

impl RawBudget {
    fn check(&self) -> Result<(), String> {
        if self.window.is_some_and(Span::is_zero) {
            return Err("`window` must be longer than nothing: write `10s`".into());
        }
        if let Some(n) = self.min_per_second.filter(|n| !(n.is_finite() && *n >= 0.0)) {
            return Err(format!("`min_per_second` is {n}: it must be 0 or more"));
        }
        let kind = self.kind()?;
        if self.tier == Tier::Operation { per_operation(&kind) } else { Ok(()) }
    }

    /// The one kind that is there.
    fn kind(&self) -> Result<Kind, String> {
        let window = |ratio| {
            Kind::Window(WindowConfig {
                ratio,
                window: self.window.unwrap_or(USUAL_WINDOW),
                min_per_second: self.min_per_second.unwrap_or(0.0),
            })
        };
        let all = [
            ("ratio", self.ratio.map(window)),
            ("bucket", self.bucket.clone().map(Kind::Bucket)),
            ("quota", self.quota.clone().map(Kind::Quota)),
            ("concurrent", self.concurrent.clone().map(Kind::Concurrent)),
            ("grpc", self.grpc.clone().map(Kind::Grpc)),
        ];
        let mut there = all.into_iter().filter_map(|(name, kind)| kind.map(|kind| (name, kind)));
        let (name, kind) = there.next().ok_or(KINDS)?;
        if let Some((other, _)) = there.next() {
            return Err(format!("`{other}` and `{name}` exclude each other: keep one"));
        }
        if name != "ratio" && self.window.is_some() {
            return Err(format!("`window` goes with `ratio`: a `{name}` has none"));
        }
        if name != "ratio" && self.min_per_second.is_some() {
            return Err(format!("`min_per_second` goes with `ratio`: a `{name}` has none"));
        }
        Ok(kind)
    }
}

/// The most that an operation can keep count of.
const MAX_PER_OPERATION: u32 = u16::MAX as u32;

/// Which kinds one operation alone can have: those that are a number to be spent.
fn per_operation(kind: &Kind) -> Result<(), String> {
    let number = match kind {
        Kind::Quota(quota) => quota.capacity,
        Kind::Bucket(bucket) if bucket.deposit.get() == 0.0 => bucket.burst,
        Kind::Bucket(_) => {
            return Err("`bucket` with `tier: operation` cannot earn from other operations: write `deposit: 0%`, and as `burst` how many retries an operation may have across its passes".into());
        }
        Kind::Window(_) | Kind::Concurrent(_) | Kind::Grpc(_) => {
            return Err("`tier` is `operation`, and one operation alone has no ratio, no concurrency and no successes to earn from: use `client` or `fleet`, or a `quota`".into());
        }
    };
    if number > MAX_PER_OPERATION {
        return Err(format!("`tier: operation` counts to {MAX_PER_OPERATION}, not to {number}"));
    }
    Ok(())
}

impl Read for BudgetConfig {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let raw = RawBudget::read(node, problems)?;
        // What was read has exactly one kind: it was checked.
        raw.kind().ok().map(|kind| Self { kind, tier: raw.tier, when_spent: raw.when_spent })
    }

    fn shape() -> Shape {
        RawBudget::shape()
    }

    fn rescale(&mut self, by: TimeScale) {
        if let Kind::Window(window) = &mut self.kind {
            window.window.rescale(by);
            window.min_per_second = by.rate(window.min_per_second);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Key, Place, Value};

    fn read(entries: &[(&str, Value)]) -> Result<BudgetConfig, String> {
        let mut problems = Problems::default();
        BudgetConfig::read(&node(map(entries)), &mut problems)
            .ok_or_else(|| problems.sorted().iter().map(|problem| problem.message.clone()).collect::<Vec<_>>().join("\n"))
    }

    fn node(value: Value) -> Node {
        Node { value, place: Place::default() }
    }

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    fn map(entries: &[(&str, Value)]) -> Value {
        let key = |name: &str| Key { name: name.into(), place: Place::default() };
        Value::Map(entries.iter().map(|(name, value)| (key(name), node(value.clone()))).collect())
    }

    #[test]
    fn a_budget_has_exactly_one_kind() {
        let bucket = |deposit: &str| ("bucket", map(&[("deposit", text(deposit)), ("burst", text("5"))]));
        let tier = |tier: &str| ("tier", text(tier));
        let ratio = || ("ratio", text("10%"));
        let quota = |capacity: &str| ("quota", map(&[("capacity", text(capacity))]));
        let share = Share::new(0.1).unwrap();
        let sliding = WindowConfig { ratio: share, window: Span::from_secs(10), min_per_second: 0.0 };
        for (entries, want) in [
            (vec![ratio(), tier("fleet")], Kind::Window(sliding)),
            (vec![bucket("10%"), tier("fleet")], Kind::Bucket(BucketConfig { deposit: share, burst: 5 })),
            (vec![("quota", Value::Null), tier("client")], Kind::Quota(QuotaConfig { capacity: 500, cost: 5, first_success: 1 })),
            (vec![("grpc", Value::Null), tier("client")], Kind::Grpc(GrpcConfig { tokens: 10, token_ratio: 0.1 })),
            (
                vec![("concurrent", map(&[("max", text("3"))])), tier("fleet")],
                Kind::Concurrent(ConcurrentConfig { max: Some(3), share: None, at_least: None }),
            ),
        ] {
            let config = read(&entries).unwrap();
            assert_eq!((config.kind, config.when_spent), (want, WhenSpent::GiveUp));
        }
        let parks = read(&[ratio(), tier("fleet"), ("when_spent", text("park"))]).unwrap();
        assert_eq!((parks.when_spent, parks.per_operation()), (WhenSpent::Park, None));
        assert_eq!(read(&[quota("20"), tier("operation")]).unwrap().per_operation(), Some(20));
        assert_eq!(read(&[bucket("0%"), tier("operation")]).unwrap().per_operation(), Some(5));
        for (entries, want) in [
            (vec![tier("fleet")], "needs `ratio: 10%`, `bucket"),
            (vec![ratio(), bucket("10%"), tier("fleet")], "exclude each other"),
            (vec![quota("9"), ("grpc", Value::Null), tier("fleet")], "`grpc` and `quota` exclude each other"),
            (vec![bucket("10%"), ("window", text("10s")), tier("fleet")], "`window` goes with `ratio`"),
            (vec![quota("9"), ("min_per_second", text("1")), tier("fleet")], "`min_per_second` goes with `ratio`"),
            (vec![ratio()], "`tier` is missing"),
            (vec![ratio(), tier("operation")], "no ratio, no concurrency"),
            (vec![bucket("10%"), tier("operation")], "write `deposit: 0%`"),
            (vec![quota("70000"), tier("operation")], "counts to 65535"),
            (vec![quota("0"), tier("fleet")], "`capacity` is 0"),
        ] {
            let message = read(&entries).unwrap_err();
            assert!(message.contains(want), "{message}");
        }
    }
}
