//! The random part of a wait.
//!
//! A jitter is a function of the wait and of one uniform draw, and so is independent of the shape that it spreads.
//! Decorrelated jitter is the exception that makes the signature: it looks at the wait before, and caps itself,
//! because its growth is its own.

use super::WaitInput;
use crate::time::{Share, Span};
use crate::{choice, keyword, record};

record! {
    /// A jitter without settings.
    pub struct Plain {}
}

record! {
    /// Adds a uniform time.
    pub struct Additive {
        /// The wait grows by U(0, range).
        range: Span,
    }
}

keyword! {
    /// On which side of the wait a proportional jitter lies.
    pub enum Side {
        /// v · U(1 − share, 1 + share).
        both => Both,
        /// v · U(1, 1 + share): never shorter than v.
        above => Above,
        /// v · U(1 − share, 1): never longer than v.
        below => Below,
    }
}

record! {
    /// Multiplies by a uniform factor.
    pub struct Proportional {
        /// The wait is multiplied by U(1 − share, 1 + share), or by the half of it that `side` names.
        share: Share,
        /// On which side of the wait the jitter lies.
        side: Side = Side::Both,
    }
}

impl Proportional {
    /// The factor for a draw.
    fn factor(&self, draw: f64) -> f64 {
        let share = self.share.get();
        match self.side {
            Side::Both => 1.0 + share * (2.0 * draw - 1.0),
            Side::Above => 1.0 + share * draw,
            Side::Below => 1.0 - share * (1.0 - draw),
        }
    }
}

choice! {
    /// The random part of a wait v (already capped, unless `clamp` says otherwise).
    pub enum Jitter {
        /// v.
        none => None(Plain),
        /// U(0, v).
        full => Full(Plain),
        /// v/2 + U(0, v/2).
        equal => Equal(Plain),
        /// s ← min(cap, U(base, 3·s)), where s is the previous wait and starts at the base.
        decorrelated => Decorrelated(Plain),
        /// v + U(0, range).
        additive => Additive(Additive),
        /// v · U(1 − share, 1 + share), or one side of it.
        proportional => Proportional(Proportional),
    }
}

impl Jitter {
    /// No jitter.
    pub const fn none() -> Self {
        Self::None(Plain {})
    }
}

impl Jitter {
    /// The wait `v` with its random part, for the draw of `input`. `base` and `cap` are the shape's, for the
    /// decorrelated form; the others leave capping to the shape.
    pub fn apply(&self, v: Span, base: Span, cap: Span, input: WaitInput) -> Span {
        match self {
            Self::None(_) => v,
            Self::Full(_) => between(Span::ZERO, v, input.draw),
            Self::Equal(_) => between(v / 2, v, input.draw),
            Self::Decorrelated(_) => between(base, input.previous.unwrap_or(base).max(base) * 3, input.draw).min(cap),
            Self::Additive(additive) => v + additive.range.scale(input.draw),
            Self::Proportional(proportional) => v.scale(proportional.factor(input.draw)),
        }
    }
}

/// U(low, high): exactly `low` at draw 0 and `high` at draw 1.
fn between(low: Span, high: Span, draw: f64) -> Span {
    low + (high - low).scale(draw)
}
