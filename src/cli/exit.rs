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
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        code.number().into()
    }
}
