//! The random part of a wait.

use crate::time::{Share, Span};
use crate::{choice, record};

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

record! {
    /// Multiplies by a uniform factor.
    pub struct Proportional {
        /// The wait is multiplied by U(1 − share, 1 + share).
        share: Share,
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
        /// v · U(1 − share, 1 + share).
        proportional => Proportional(Proportional),
    }
}

impl Jitter {
    /// No jitter.
    pub const fn none() -> Self {
        Self::None(Plain {})
    }
}
