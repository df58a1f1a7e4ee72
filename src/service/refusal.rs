//! What a refused request is told: a status, and when to come back. One set of settings for every part that refuses.

use crate::config::{Node, Problems, Read, Shape, TimeScale, read_text};
use crate::policy::hint::{HintForm, Said};
use crate::record;
use crate::time::Span;

/// How long a refusal asks its client to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// Always so long.
    Constant(Span),
    /// As long as what is ahead of it takes: backlog / capacity.
    Backlog,
}

impl Read for RetryAfter {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, |text| match text {
            "backlog" => Ok(Self::Backlog),
            text => Span::parse(text).map(Self::Constant).map_err(|error| format!("{error}; or `backlog`")),
        })
    }
    fn shape() -> Shape {
        let backlog = Shape::Text { what: "as long as the backlog takes", pattern: "^backlog$", examples: &["backlog"] };
        Shape::OneOf(vec![Span::shape(), backlog])
    }
    fn rescale(&mut self, by: TimeScale) {
        if let Self::Constant(wait) = self {
            wait.rescale(by);
        }
    }
}

record! {
    /// What a refused request is told.
    pub struct Refusing {
        /// The status: 429 of a limiter, 503 of everything else, where nothing is said.
        reject: Option<u16>,
        /// How long a refusal asks its client to wait: a time, or `backlog`, which is backlog / capacity.
        retry_after: Option<RetryAfter>,
        /// In which form it says so; `Retry-After` in seconds where nothing is said.
        hint: Option<HintForm>,
    } => |r: &Refusing| {
        let wait = r.retry_after.map(|after| match after { RetryAfter::Constant(wait) => wait, RetryAfter::Backlog => Span::ZERO });
        Said::check(wait, r.hint)?;
        match r.reject {
            None | Some(300..=599) => Ok(()),
            Some(status) => Err(format!("`reject` is {status}: expected the status of a failure, from 300 to 599")),
        }
    }
}

/// What a refused request is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status.
    pub status: u16,
    /// How long it asks its client to wait.
    pub hint: Option<Said>,
}

impl Refusing {
    /// Says nothing but a status.
    pub const fn plain() -> Self {
        Self { reject: None, retry_after: None, hint: None }
    }

    /// What a refusal asks for, where it always asks for the same.
    pub fn constant(&self) -> Option<Said> {
        let wait = match self.retry_after {
            Some(RetryAfter::Backlog) => return None,
            Some(RetryAfter::Constant(wait)) => Some(wait),
            None => None,
        };
        Said::new(wait, self.hint)
    }

    /// What a refusal says whose part refuses with `status` where the plan does not say; `ahead` is how long what is ahead of it takes.
    pub fn refuse(&self, status: u16, ahead: Span) -> Refusal {
        let wait = self.retry_after.map(|after| match after {
            RetryAfter::Constant(wait) => wait,
            RetryAfter::Backlog => ahead,
        });
        Refusal { status: self.reject.unwrap_or(status), hint: Said::new(wait, self.hint) }
    }
}
