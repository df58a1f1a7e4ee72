//! The one table of figures: their names, units and definitions. Gates, stop conditions, reports, the plan
//! reference and the result's schema read it.

use crate::keyword;

/// What a figure is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A fraction; written `5%`.
    Share,
    /// Per second; written `600/s`.
    Rate,
    /// A time in seconds; written `400ms`.
    Time,
    /// A whole number.
    Count,
    /// A factor; written `1.3x`.
    Factor,
}

keyword! {
    /// A figure of a run, or of a stretch of it.
    pub enum Figure {
        /// Operations that succeeded within their deadline / operations that ended.
        success => Success,
        /// Attempts that failed / attempts that ended, booked when they end.
        errors => Errors,
        /// Operations per second that succeeded within their deadline, booked at completion.
        goodput => Goodput,
        /// Operations per second, booked at their intended start.
        offered => Offered,
        /// Attempts per second, booked when sent.
        attempts => Attempts,
        /// The most attempts in one window, per second.
        peak_attempts => PeakAttempts,
        /// Retries / attempts.
        retry_share => RetryShare,
        /// Attempts / distinct operations attempted, across passes.
        amplification => Amplification,
        /// attempts/operations − 1/(1 − retry share): retries that a requeue made look like first attempts.
        laundered_retries => LaunderedRetries,
        /// Median operation latency, from the intended start, of operations that succeeded.
        p50 => P50,
        /// 90th percentile of operation latency.
        p90 => P90,
        /// 99th percentile of operation latency.
        p99 => P99,
        /// 99.9th percentile of operation latency.
        p999 => P999,
        /// 99th percentile of attempt latency, from the send.
        attempt_p99 => AttemptP99,
        /// Attempts on the wire, at the end of a window.
        in_flight => InFlight,
        /// Operations offered and not finished, at the end of a window.
        backlog => Backlog,
        /// Age of the oldest unfinished operation, at the end of a window.
        oldest_age => OldestAge,
        /// Operations whose client gave up.
        failed => Failed,
        /// Operations that failed, and that nobody holds any more.
        lost => Lost,
        /// Operations still held when the run ended.
        unresolved => Unresolved,
        /// Operations refused at ingress.
        refused => Refused,
        /// End of the fault to the start of the first sustained good stretch.
        recovery_time => RecoveryTime,
        /// First to last window with errors above baseline + 1%, from the fault's start.
        error_window => ErrorWindow,
        /// Times that health was lost again after recovery.
        relapses => Relapses,
        /// Service work for requests whose client had gone / all service work.
        wasted_work => WastedWork,
        /// 99th percentile of generator lag.
        lag_p99 => LagP99,
    }
}

impl Figure {
    /// What it is counted in.
    pub fn unit(self) -> Unit {
        match self {
            Self::Success | Self::Errors | Self::RetryShare | Self::WastedWork => Unit::Share,
            Self::Goodput | Self::Offered | Self::Attempts | Self::PeakAttempts => Unit::Rate,
            Self::Amplification | Self::LaunderedRetries => Unit::Factor,
            Self::P50
            | Self::P90
            | Self::P99
            | Self::P999
            | Self::AttemptP99
            | Self::OldestAge
            | Self::RecoveryTime
            | Self::ErrorWindow
            | Self::LagP99 => Unit::Time,
            Self::InFlight | Self::Backlog | Self::Failed | Self::Lost | Self::Unresolved | Self::Refused | Self::Relapses => {
                Unit::Count
            }
        }
    }
}
