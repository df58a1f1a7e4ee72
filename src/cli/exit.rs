//! The one table of exit codes.

use std::process::ExitCode;

/// What a process ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// 0: the run passed, or the command did what it should.
    Pass,
    /// 1: the run failed.
    Fail,
    /// 2: bad usage, or a bad plan.
    Usage,
    /// 3: no evidence either way.
    Inconclusive,
    /// 4: stopped by a stop condition, by `halt`, or by whoever watched it in the live view.
    Stopped,
    /// 5: refused by a guard.
    Refused,
    /// 6: an internal or environment error.
    Internal,
    /// 7: it could not be confirmed that every fault was removed.
    CleanupUnconfirmed,
    /// 128 + n: interrupted by signal n, cleanup confirmed.
    Interrupted(u8),
}

impl Code {
    /// The number.
    pub const fn number(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Usage => 2,
            Self::Inconclusive => 3,
            Self::Stopped => 4,
            Self::Refused => 5,
            Self::Internal => 6,
            Self::CleanupUnconfirmed => 7,
            Self::Interrupted(signal) => 128 + signal,
        }
    }

    /// The code where a verdict is advice: 0 in the place of those that say what came out. What is no verdict (a bad plan, a run that was stopped or
    /// refused, an error, faults that may still act) stays.
    pub const fn advised(self, advisory: bool) -> Self {
        match self {
            Self::Fail | Self::Inconclusive if advisory => Self::Pass,
            code => code,
        }
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        code.number().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_changes_verdicts_alone() {
        use Code::{CleanupUnconfirmed, Fail, Inconclusive, Internal, Interrupted, Pass, Refused, Stopped, Usage};
        let all = [Pass, Fail, Usage, Inconclusive, Stopped, Refused, Internal, CleanupUnconfirmed, Interrupted(2)];
        assert_eq!(all.map(|code| code.advised(true).number()), [0, 0, 2, 0, 4, 5, 6, 7, 130]);
        assert_eq!(all.map(|code| code.advised(false)), all);
    }
}
