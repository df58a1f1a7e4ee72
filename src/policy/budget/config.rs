//! What a plan says of a budget: exactly one kind, and who shares it.

use super::{BucketConfig, WindowConfig};
use crate::config::{Node, Problems, Read, Shape};
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

/// A cap on retries.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetConfig {
    /// How retries are earned and spent.
    pub kind: Kind,
    /// Who shares it. It decides: per client the same budget dilutes as clients multiply.
    pub tier: Tier,
}

/// How retries are earned and spent.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A share of the first attempts within a sliding window.
    Window(WindowConfig),
    /// Tokens: deposited by operations, taken by retries.
    Bucket(BucketConfig),
}

impl Kind {
    /// Retries earned per first attempt.
    pub fn ratio(&self) -> Share {
        match self {
            Self::Window(window) => window.ratio,
            Self::Bucket(bucket) => bucket.deposit,
        }
    }

    /// Retries per second that need not be earned, in the long run.
    pub fn unearned(&self) -> f64 {
        match self {
            Self::Window(window) => window.min_per_second,
            Self::Bucket(_) => 0.0,
        }
    }
}

/// The window of a budget where nothing is said.
const USUAL_WINDOW: Span = Span::from_secs(10);

record! {
    /// A cap on retries in proportion to first attempts: `ratio` over a sliding window, or a `bucket` of tokens.
    struct RawBudget {
        /// Retries earned per first attempt, such as `10%`; or, in its place, `bucket`.
        ratio: Option<Share>,
        /// With `ratio`: how far back first attempts and retries count; 10s where nothing is said.
        window: Option<Span>,
        /// With `ratio`: retries per second that need not be earned; 0 where nothing is said.
        min_per_second: Option<f64>,
        /// Tokens, deposited by operations and taken by retries; or, in its place, `ratio`.
        bucket: Option<BucketConfig>,
        /// Who shares it: `client` or `fleet`. It decides: per client the same budget dilutes as clients multiply.
        tier: Tier,
    } => RawBudget::check
}

impl RawBudget {
    fn check(&self) -> Result<(), String> {
        if self.window.is_some_and(Span::is_zero) {
            return Err("`window` must be longer than nothing: write `10s`".into());
        }
        if let Some(n) = self.min_per_second.filter(|n| !(n.is_finite() && *n >= 0.0)) {
            return Err(format!("`min_per_second` is {n}: it must be 0 or more"));
        }
        self.kind().map(|_| ())
    }

    /// The one kind that is there.
    fn kind(&self) -> Result<Kind, String> {
        match (self.ratio, &self.bucket) {
            (Some(ratio), None) => Ok(Kind::Window(WindowConfig {
                ratio,
                window: self.window.unwrap_or(USUAL_WINDOW),
                min_per_second: self.min_per_second.unwrap_or(0.0),
            })),
            (None, Some(_)) if self.window.is_some() => {
                Err("`window` goes with `ratio`: a bucket has none, it holds `burst` tokens at most".into())
            }
            (None, Some(_)) if self.min_per_second.is_some() => {
                Err("`min_per_second` goes with `ratio`: a bucket has none, it starts full".into())
            }
            (None, Some(bucket)) => Ok(Kind::Bucket(bucket.clone())),
            (Some(_), Some(_)) => Err("`bucket` and `ratio` exclude each other: keep one".into()),
            (None, None) => Err("a budget needs `ratio: 10%`, or `bucket: { deposit: 10%, burst: 5 }`".into()),
        }
    }
}

impl Read for BudgetConfig {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let raw = RawBudget::read(node, problems)?;
        // What was read has exactly one kind: it was checked.
        raw.kind().ok().map(|kind| Self { kind, tier: raw.tier })
    }

    fn shape() -> Shape {
        RawBudget::shape()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Key, Place, Value};

    fn read(entries: &[(&str, Value)]) -> Result<BudgetConfig, String> {
        let node = |value: &Value| Node { value: value.clone(), place: Place::default() };
        let key = |name: &str| Key { name: name.into(), place: Place::default() };
        let map = entries.iter().map(|(name, value)| (key(name), node(value))).collect();
        let mut problems = Problems::default();
        BudgetConfig::read(&node(&Value::Map(map)), &mut problems)
            .ok_or_else(|| problems.sorted().iter().map(|problem| problem.message.clone()).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn a_budget_has_exactly_one_kind() {
        let text = |text: &str| Value::Text(text.into());
        let bucket = || {
            let node = |value: &str| Node { value: text(value), place: Place::default() };
            let key = |name: &str| Key { name: name.into(), place: Place::default() };
            Value::Map(vec![(key("deposit"), node("10%")), (key("burst"), node("5"))])
        };
        let tier = || ("tier", text("fleet"));
        let ratio = || ("ratio", text("10%"));
        let share = Share::new(0.1).unwrap();
        assert_eq!(
            read(&[ratio(), tier()]).unwrap().kind,
            Kind::Window(WindowConfig { ratio: share, window: Span::from_secs(10), min_per_second: 0.0 })
        );
        assert_eq!(read(&[("bucket", bucket()), tier()]).unwrap().kind, Kind::Bucket(BucketConfig { deposit: share, burst: 5 }));
        for (entries, want) in [
            (vec![tier()], "needs `ratio: 10%`, or `bucket"),
            (vec![ratio(), ("bucket", bucket()), tier()], "exclude each other"),
            (vec![("bucket", bucket()), ("window", text("10s")), tier()], "`window` goes with `ratio`"),
            (vec![("bucket", bucket()), ("min_per_second", text("1")), tier()], "`min_per_second` goes with `ratio`"),
            (vec![ratio()], "`tier` is missing"),
        ] {
            let message = read(&entries).unwrap_err();
            assert!(message.contains(want), "{message}");
        }
    }
}
